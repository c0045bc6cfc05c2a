//! Rules in which the systems' code differs and which no sysctl changes: one field for each
//! behaviour. A new system chooses among them.

/// The rules of a system, by the part of TCP they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackRules {
    /// Connections are opened.
    pub opening: OpeningRules,
    /// Segments arrive.
    pub receiving: ReceivingRules,
    /// Data is sent, and acknowledgments of it arrive.
    pub sending: SendingRules,
    /// Connections end.
    pub closing: ClosingRules,
}

/// How connections are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpeningRules {
    /// A write on a listener opens the connection (RFC 9293 section 3.10.2).
    pub write_opens_listener: bool,
    /// A client's SYN that meets another SYN.
    pub crossed_syns: CrossedSyns,
    /// Retransmissions of a SYN that still ask for ECN (`net.inet.tcp.ecn.maxretries`; none with
    /// `net.ipv4.tcp_ecn_fallback`).
    pub ecn_retries: u32,
    /// A timeout of a SYN ends the request for ECN (tcp_enter_loss).
    pub timeout_ends_ecn: bool,
    /// A SYN in a packet that is ECN-capable asks for nothing (tcp_ecn_create_request).
    pub ignores_ecn_capable_syn: bool,
    /// SYN-ACKs after the first are counted, whatever caused them, and their round trip is not
    /// measured (tcp_synack_rtt_meas).
    pub counts_syn_acks: bool,
    /// A SYN repeated by the peer restarts the timer of the SYN-ACK (tcp_check_req).
    pub restarts_syn_ack_timer: bool,
    /// An answer that echoes the first SYN or SYN-ACK undoes the timeouts of the handshake
    /// (tcp_try_undo_spurious_syn).
    pub undoes_timeouts: bool,
    /// An answer must echo the timestamp of a SYN of ours (`PAWSActiveRejected` of
    /// tcp_rcv_synsent_state_process).
    pub checks_echo: bool,
    /// A wrong answer to a SYN shortens its timeout (tcp_rcv_synsent_state_process).
    pub retries_soon: bool,
    /// The SYN-ACK moves the right edge of the window by the SYN (`rcv_wup` moves, `rcv_wnd` stays:
    /// tcp_rcv_synsent_state_process).
    pub syn_moves_edge: bool,
    /// Data of a SYN-ACK counts (tcp_do_segment).
    pub takes_syn_ack_data: bool,
    /// A challenge before the connection is established is a pure ACK of the syncache.
    pub syncache: bool,
}

/// What a client in SYN-SENT does with a SYN of its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossedSyns {
    /// It takes the peer's request for ECN and rounds its buffer to whole segments
    /// (tcp_ecn_input_syn_sent, tcp_mss of FreeBSD).
    TakesRequest,
    /// It sends its SYN once more, with all its options, and takes ECN if both ask for it
    /// (tcp_send_synack, tcp_ecn_rcv_syn of Linux).
    RepeatsSyn,
    /// It answers with a SYN-ACK (RFC 9293 section 3.5).
    Answers,
}

/// How segments are received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivingRules {
    /// An acknowledgment of data never sent is dropped without a challenge while the connection is
    /// established (tcp_rcv_established).
    pub drops_acks_of_unsent: bool,
    /// An acknowledgment may be as far behind `snd_una` as bytes were acknowledged, not only as the
    /// largest window (`bytes_acked` in tcp_ack; RFC 5961 section 5.2).
    pub acks_within_acked: bool,
    /// ECN marks of data that had arrived before count (not in tcp_data_queue).
    pub counts_marks_of_old_data: bool,
    /// A segment without anything new.
    pub old_segments: OldSegments,
    /// Pure ACKs that are not acceptable and repeated SYNs are answered at a limited rate
    /// (tcp_oow_rate_limited).
    pub limits_answers: bool,
    /// PAWS tolerates one tick, and ACKs out of order (TCP_PAWS_WINDOW, tcp_disordered_ack).
    pub tolerant_paws: bool,
    /// A RST may also have the number of the peer's FIN, or the end of the last block that SACK
    /// reports (tcp_validate_incoming, tcp_reset_check).
    pub rst_at_fin_or_block: bool,
    /// The window for resets and SYNs begins at the last ACK sent and has all free space (`rcv_wnd`
    /// of FreeBSD), not what was advertised from `rcv_nxt` on.
    pub resets_from_last_ack: bool,
    /// A FIN beyond a gap is acknowledged at once.
    pub acks_fin_beyond_gap: bool,
    /// Where a FIN beyond a gap waits.
    pub fin_beyond_gap: FinBeyondGap,
    /// SACK blocks are a list in the order of their updates (tcp_update_sack_list), not what the
    /// queue has.
    pub sack_list: bool,
    /// A delayed ACK may be brought forward by a later segment (tcp_send_delayed_ack).
    pub shortens_delayed_ack: bool,
    /// What a read does besides making room.
    pub after_read: AfterRead,
    /// What a window update waits for.
    pub update_waits: UpdateWaits,
}

/// Where a FIN beyond a gap waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinBeyondGap {
    /// Apart from the data.
    Apart,
    /// In the queue of data, without a byte (tcp_reass of FreeBSD).
    Queued,
    /// In the queue of data, as one byte (tcp_data_queue_ofo of Linux).
    QueuedAsByte,
}

/// What a window update waits for (RFC 9293 section 3.8.6.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateWaits {
    /// Until the timer of a delayed ACK is set (check_delack of FreeBSD).
    ForTimerOfAck,
    /// For a read (tcp_cleanup_rbuf of Linux).
    ForRead,
    /// While an ACK is delayed.
    WhileAckWaits,
}

/// A segment without anything new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldSegments {
    /// It is acknowledged (RFC 9293 section 3.10.7.4).
    Acknowledged,
    /// It passes the queue of data if it touches what was acknowledged last (tcp_data_queue of
    /// Linux), and is answered otherwise (tcp_send_dupack).
    Queued,
}

/// What a read does besides making room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRead {
    /// It calls the output routine (tcp_usr_rcvd of FreeBSD).
    Output,
    /// It acknowledges before it returns, also if the window has doubled (tcp_cleanup_rbuf of
    /// Linux).
    Cleanup,
    /// It sends a window update that is due (RFC 9293 section 3.8.6.2.2).
    UpdateIfDue,
}

/// How data is sent and acknowledgments are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendingRules {
    /// Unsent data is a queue of packets that writes have made (tcp_write_queue of Linux), not a
    /// stream of bytes.
    pub queue: SendQueue,
    /// When an output call checks for idleness.
    pub idle_check: IdleCheck,
    /// Which windows of equally old segments count.
    pub window_update: WindowUpdate,
    /// Which segments carry PSH.
    pub push: PushRule,
    /// Adjacent packets are retransmitted as one (tcp_retrans_try_collapse).
    pub collapses_retransmissions: bool,
    /// What limits retransmissions in a recovery by transmission times.
    pub retransmission_room: RetransmissionRoom,
    /// An acknowledgment is followed by an output call and the check for space
    /// (tcp_data_snd_check), and by the timer of a closed window.
    pub checks_after_ack: bool,
    /// SACK blocks of an acknowledgment before `snd_una` count (`old_ack` of tcp_ack).
    pub sacks_of_old_acks: bool,
    /// A round trip is reported to the controller with each acknowledgment (`pkts_acked`).
    pub reports_round_trips: bool,
    /// A timeout marks the losses before the controller processes it, and sets the window to the
    /// flight and one more packet (tcp_enter_loss).
    pub timeout_marks_first: bool,
    /// The first acknowledgment after a timeout undoes it if it echoes an older timestamp
    /// (`t_badrxtwin` of FreeBSD; RFC 3522).
    pub undoes_timeout_by_echo: bool,
    /// The timers are on a wheel of ticks (`timer_list`).
    pub timer_wheel: bool,
    /// The pacing timer expires after the packets of its instant have arrived (`HRTIMER_SOFTIRQ`
    /// comes after `NET_RX_SOFTIRQ`).
    pub paces_after_arrivals: bool,
    /// Which sequence numbers an ICMP message may quote.
    pub quoted: QuotedRange,
    /// A smaller path MTU: the next segments and those in flight become smaller at once
    /// (tcp_sync_mss, tcp_simple_retransmit).
    pub syncs_path_mtu: bool,
}

/// Unsent data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendQueue {
    /// A stream of bytes.
    Bytes,
    /// Packets.
    Packets,
}

/// When an output call checks how long the connection was idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleCheck {
    /// Always (tcp_output of FreeBSD).
    Always,
    /// With a write, and with a new window of the peer while data waits (Linux).
    OnNewWindow,
    /// With data to send (RFC 5681 section 4.1).
    WithData,
}

/// Which windows of equally old segments count; those of newer ones always do (RFC 9293
/// 3.10.7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowUpdate {
    /// Larger ones (tcp_do_segment of FreeBSD).
    Larger,
    /// Larger ones and zero (tcp_may_update_window of Linux).
    LargerOrZero,
    /// All.
    Any,
}

/// Which segments carry PSH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushRule {
    /// Those that end with the last byte written.
    EndOfData,
    /// Those whose packet of the write queue was marked (tcp_mark_push, tcp_push).
    WriteQueue,
}

/// What limits retransmissions in a recovery by transmission times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetransmissionRoom {
    /// Packets of any size (tcp_xmit_retransmit_queue).
    Packets,
    /// Bytes (RFC 6675).
    Bytes,
}

/// Which sequence numbers an ICMP message may quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotedRange {
    /// Below `snd_max` (tcp_ctlinput_with_port of FreeBSD).
    BelowMax,
    /// Up to `snd_nxt` (tcp_v4_err of Linux).
    UpToNxt,
}

/// How connections end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosingRules {
    /// An abort sends a RST also when both sides have closed (tcp_drop of FreeBSD; not
    /// tcp_need_reset, nor RFC 9293 section 3.10.5).
    pub resets_while_closing: bool,
    /// The RST of an abort has a window and options (tcp_send_active_reset).
    pub reset_has_options: bool,
    /// A connection given up sends a RST (tcp_drop of FreeBSD; not tcp_write_err).
    pub resets_when_given_up: bool,
    /// A connection whose keepalive probes are not answered sends a RST.
    pub resets_dead_peer: bool,
    /// Keepalive waits while data or a FIN is outstanding or unsent (tcp_keepalive_timer of Linux).
    pub keepalive_waits_for_data: bool,
    /// The probe of keepalive is sent past the state of the receiver (tcp_respond of FreeBSD).
    pub keepalive_by_respond: bool,
    /// Enabling keepalive that is on already changes nothing (tcp_set_keepalive).
    pub keepalive_stays: bool,
    /// After a shutdown for reading, data beyond our FIN is answered with a RST, not only after a
    /// close (`RCV_SHUTDOWN`).
    pub shutdown_refuses_data: bool,
    /// FIN-WAIT-2 of a socket that the application has closed ends (tcp_fin_timeout).
    pub orphan_times_out: bool,
    /// Consecutive retransmissions end a connection by their time, not by their number
    /// (tcp_write_timeout, retransmits_timed_out).
    pub gives_up_by_time: bool,
    /// TIME-WAIT.
    pub time_wait: TimeWaitRule,
}

/// TIME-WAIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeWaitRule {
    /// A RST is ignored (RFC 1337), every SYN that is not newer is answered (tcp_twcheck of
    /// FreeBSD).
    Check,
    /// A small socket without SACK that counts its answers anew (tcp_time_wait of Linux).
    SmallSocket,
    /// RFC 9293.
    Rfc,
}

impl StackRules {
    /// FreeBSD.
    pub const FREEBSD: Self = Self {
        opening: OpeningRules {
            crossed_syns: CrossedSyns::TakesRequest,
            ecn_retries: 1,
            takes_syn_ack_data: true,
            syncache: true,
            write_opens_listener: false,
            ..Self::RFC.opening
        },
        receiving: ReceivingRules {
            resets_from_last_ack: true,
            acks_fin_beyond_gap: true,
            sack_list: true,
            fin_beyond_gap: FinBeyondGap::Queued,
            after_read: AfterRead::Output,
            update_waits: UpdateWaits::ForTimerOfAck,
            ..Self::RFC.receiving
        },
        sending: SendingRules {
            idle_check: IdleCheck::Always,
            window_update: WindowUpdate::Larger,
            quoted: QuotedRange::BelowMax,
            ..Self::RFC.sending
        },
        closing: ClosingRules {
            resets_while_closing: true,
            resets_when_given_up: true,
            resets_dead_peer: true,
            keepalive_waits_for_data: false,
            keepalive_by_respond: true,
            time_wait: TimeWaitRule::Check,
            ..Self::RFC.closing
        },
    };

    /// Linux.
    pub const LINUX: Self = Self {
        opening: OpeningRules {
            write_opens_listener: false,
            crossed_syns: CrossedSyns::RepeatsSyn,
            ecn_retries: 0,
            timeout_ends_ecn: true,
            ignores_ecn_capable_syn: true,
            counts_syn_acks: true,
            restarts_syn_ack_timer: true,
            undoes_timeouts: true,
            checks_echo: true,
            retries_soon: true,
            syn_moves_edge: true,
            takes_syn_ack_data: false,
            syncache: false,
        },
        receiving: ReceivingRules {
            drops_acks_of_unsent: true,
            acks_within_acked: true,
            counts_marks_of_old_data: false,
            old_segments: OldSegments::Queued,
            limits_answers: true,
            tolerant_paws: true,
            rst_at_fin_or_block: true,
            resets_from_last_ack: false,
            acks_fin_beyond_gap: false,
            fin_beyond_gap: FinBeyondGap::QueuedAsByte,
            sack_list: false,
            shortens_delayed_ack: true,
            after_read: AfterRead::Cleanup,
            update_waits: UpdateWaits::ForRead,
        },
        sending: SendingRules {
            queue: SendQueue::Packets,
            idle_check: IdleCheck::OnNewWindow,
            window_update: WindowUpdate::LargerOrZero,
            push: PushRule::WriteQueue,
            collapses_retransmissions: true,
            retransmission_room: RetransmissionRoom::Packets,
            checks_after_ack: true,
            sacks_of_old_acks: true,
            reports_round_trips: true,
            timeout_marks_first: true,
            undoes_timeout_by_echo: false,
            timer_wheel: true,
            paces_after_arrivals: true,
            quoted: QuotedRange::UpToNxt,
            syncs_path_mtu: true,
        },
        closing: ClosingRules {
            resets_while_closing: false,
            reset_has_options: true,
            resets_when_given_up: false,
            resets_dead_peer: true,
            keepalive_waits_for_data: true,
            keepalive_by_respond: false,
            keepalive_stays: true,
            shutdown_refuses_data: true,
            orphan_times_out: true,
            gives_up_by_time: true,
            time_wait: TimeWaitRule::SmallSocket,
        },
    };

    /// The RFCs.
    pub const RFC: Self = Self {
        opening: OpeningRules {
            write_opens_listener: true,
            crossed_syns: CrossedSyns::Answers,
            ecn_retries: 0,
            timeout_ends_ecn: false,
            ignores_ecn_capable_syn: false,
            counts_syn_acks: false,
            restarts_syn_ack_timer: false,
            undoes_timeouts: false,
            checks_echo: false,
            retries_soon: false,
            syn_moves_edge: false,
            takes_syn_ack_data: false,
            syncache: false,
        },
        receiving: ReceivingRules {
            drops_acks_of_unsent: false,
            acks_within_acked: false,
            counts_marks_of_old_data: true,
            old_segments: OldSegments::Acknowledged,
            limits_answers: false,
            tolerant_paws: false,
            rst_at_fin_or_block: false,
            resets_from_last_ack: false,
            acks_fin_beyond_gap: false,
            fin_beyond_gap: FinBeyondGap::Apart,
            sack_list: false,
            shortens_delayed_ack: false,
            after_read: AfterRead::UpdateIfDue,
            update_waits: UpdateWaits::WhileAckWaits,
        },
        sending: SendingRules {
            queue: SendQueue::Bytes,
            idle_check: IdleCheck::WithData,
            window_update: WindowUpdate::Any,
            push: PushRule::EndOfData,
            collapses_retransmissions: false,
            retransmission_room: RetransmissionRoom::Bytes,
            checks_after_ack: false,
            sacks_of_old_acks: false,
            reports_round_trips: false,
            timeout_marks_first: false,
            undoes_timeout_by_echo: true,
            timer_wheel: false,
            paces_after_arrivals: false,
            quoted: QuotedRange::UpToNxt,
            syncs_path_mtu: false,
        },
        closing: ClosingRules {
            resets_while_closing: false,
            reset_has_options: false,
            resets_when_given_up: false,
            resets_dead_peer: false,
            keepalive_waits_for_data: true,
            keepalive_by_respond: false,
            keepalive_stays: false,
            shutdown_refuses_data: false,
            orphan_times_out: false,
            gives_up_by_time: false,
            time_wait: TimeWaitRule::Rfc,
        },
    };
}
