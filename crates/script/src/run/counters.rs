//! What a connection of the model has sent and received, counted in segments of the wire as
//! `struct tcp_info` of Linux does (tcp_segs_in, __tcp_transmit_skb, __tcp_retransmit_skb).

use packet::{Flags, Segment};
use record::SendLimit;
use tcp::{TcpEndpoint, TcpSide, TcpState};
use units::Instant;

/// Counters of one connection, those of the kernel's names.
#[derive(Debug, Default)]
pub(super) struct SegmentCounters {
    pub(super) segs_in: u64,
    pub(super) data_segs_in: u64,
    pub(super) segs_out: u64,
    pub(super) data_segs_out: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_retrans: u64,
    pub(super) total_retrans: u64,
    /// Segments that arrived after a gap.
    pub(super) rcv_ooopack: u64,
    /// Packets that were acknowledged with an ECN echo.
    pub(super) delivered_ce: u64,
    /// Segments that arrived with CE.
    pub(super) received_ce: u64,
    /// Bytes of payload that arrived with ECT(1), ECT(0) and CE, the numbers of the ECN field less one.
    pub(super) received_ecn_bytes: [u64; 3],
    /// A packet was ECN-capable: data if ECN was negotiated (`TCP_ECN_SEEN`), any if it was not.
    pub(super) ecn_seen: EcnSeen,
    /// When data was last sent, or the connection was established (`lsndtime`).
    pub(super) last_data_sent: Option<Instant>,
    /// When an acknowledgment was last received (`rcv_tstamp`).
    pub(super) last_ack_recv: Option<Instant>,
    /// What has limited the sender.
    limits: LimitedTimes,
    /// The last acknowledgment that was not an old one.
    una: Option<u32>,
    /// The end of what was sent: of the SYN first.
    sent_end: Option<u32>,
}

/// Which connections have seen an ECN-capable packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum EcnSeen {
    /// None.
    #[default]
    No,
    /// One without ECN: only Linux 6.18 sets the flag then.
    WithoutEcn,
    /// One with ECN.
    WithEcn,
}

/// What limits a sender, by precedence (`enum tcp_chrono`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SenderLimit {
    /// There is nothing to send, or nothing in flight.
    #[default]
    Nothing,
    /// There is data to send or in flight.
    Busy,
    /// The peer's window is full.
    PeerWindow,
    /// A writer waits for the send buffer, and all it holds was sent.
    SendBuffer,
}

/// How long each limit has lasted in milliseconds, and the present one (tcp_chrono_start, tcp_chrono_stop).
#[derive(Debug, Default)]
struct LimitedTimes {
    ms: [u64; 4],
    now: SenderLimit,
    since: Option<Instant>,
}

impl LimitedTimes {
    fn present(&self, now: Instant, end: &TcpEndpoint) -> u64 {
        self.since.map_or(0, |since| end.elapsed_ms(since, now))
    }

    fn set(&mut self, at: Instant, end: &TcpEndpoint, limit: SenderLimit) {
        if limit != self.now {
            self.ms[self.now as usize] += self.present(at, end);
            (self.now, self.since) = (limit, Some(at));
        }
    }
}

/// The connection before a segment arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct BeforeArrival {
    state: TcpState,
    expected: u32,
    window: u64,
    delivered: u64,
    ecn: bool,
}

impl BeforeArrival {
    pub(super) fn of(end: &TcpEndpoint) -> Self {
        let info = end.info();
        Self {
            state: end.state(),
            expected: end.next_expected().0,
            window: info.rcv_wnd,
            delivered: info.delivered,
            ecn: info.ecn,
        }
    }
}

impl SegmentCounters {
    /// The connection has sent what it could, `something` or nothing, and waits for `why`.
    pub(super) fn on_output(
        &mut self,
        now: Instant,
        end: &TcpEndpoint,
        something: bool,
        why: Option<SendLimit>,
    ) {
        let info = end.info();
        let before = self.limits.now;
        let queued = info.unsent.0 > 0 || info.unacked > 0;
        let limit = if !queued {
            SenderLimit::Nothing
        } else if before == SenderLimit::SendBuffer && info.blocked_write {
            before
        } else if something
            && info.unsent.1 == 0
            && info.blocked_write
            && why != Some(SendLimit::CongestionWindow)
        {
            SenderLimit::SendBuffer
        } else if why == Some(SendLimit::PeerWindow) {
            SenderLimit::PeerWindow
        } else {
            SenderLimit::Busy
        };
        self.limits.set(now, end, limit);
    }

    /// How long the sender was busy, limited by the peer's window, and by its buffer, in milliseconds.
    pub(super) fn limited(&self, now: Instant, end: &TcpEndpoint) -> [u64; 3] {
        let lasted = |limit: SenderLimit| {
            let present = match limit == self.limits.now {
                true => self.limits.present(now, end),
                false => 0,
            };
            self.limits.ms[limit as usize] + present
        };
        let [busy, window, buffer] =
            [SenderLimit::Busy, SenderLimit::PeerWindow, SenderLimit::SendBuffer].map(lasted);
        [busy + window + buffer, window, buffer]
    }

    /// A segment has arrived at `end`, which was in the state `before`.
    pub(super) fn on_arrival(
        &mut self,
        now: Instant,
        before: BeforeArrival,
        segment: &Segment,
        end: &TcpEndpoint,
    ) {
        // What a request answers is not counted: there is no connection yet.
        let request = matches!(end.state(), TcpState::Listen | TcpState::SynReceived)
            && end.side() == TcpSide::Server
            && !end.is_fast_open_child();
        if request || matches!(before.state, TcpState::TimeWait | TcpState::Closed) {
            return;
        }
        let opened =
            matches!(before.state, TcpState::Listen | TcpState::SynReceived | TcpState::SynSent)
                && end.state() != TcpState::Closed
                && !matches!(end.state(), TcpState::SynReceived | TcpState::SynSent);
        if opened {
            self.last_data_sent = Some(now);
            if end.side() == TcpSide::Server {
                // tcp_create_openreq_child: the SYN.
                self.segs_in = 1;
            }
        }
        let segments = match u32::from(segment.gso_size) {
            0 => 1,
            size => u64::from(segment.payload.div_ceil(size)).max(1),
        };
        self.segs_in += segments;
        if segment.payload > 0 {
            self.data_segs_in += segments;
        }
        let ahead = segment.seq.0.wrapping_sub(before.expected);
        let occupies = segment.payload > 0 || segment.flags.has(Flags::FIN);
        let controls = segment.flags.has(Flags::RST) || segment.flags.has(Flags::SYN);
        if occupies && !controls && ahead > 0 && u64::from(ahead) < before.window {
            self.rcv_ooopack += segments;
        }
        self.note_ecn_field(segment, before, segments);
        let newer = |una: u32| (segment.ack.0.wrapping_sub(una) as i32) >= 0;
        let resets = segment.flags.has(Flags::RST);
        if segment.flags.has(Flags::ACK) && !resets && self.una.is_none_or(newer) {
            self.una = Some(segment.ack.0);
            self.last_ack_recv = Some(now);
        }
        if before.ecn && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN) {
            self.delivered_ce += end.info().delivered.saturating_sub(before.delivered);
        }
    }

    /// Counts the ECN field, whether or not ECN was negotiated (tcp_ecn_received_counters of Linux 6.18).
    fn note_ecn_field(&mut self, segment: &Segment, before: BeforeArrival, segments: u64) {
        let opens = segment.flags.has(Flags::SYN) || before.state == TcpState::SynReceived;
        let Some(field) = segment.ecn.checked_sub(1).filter(|_| !opens) else { return };
        if before.ecn && segment.payload > 0 {
            self.ecn_seen = EcnSeen::WithEcn;
        } else if !before.ecn && self.ecn_seen == EcnSeen::No {
            self.ecn_seen = EcnSeen::WithoutEcn;
        }
        if segment.ecn == packet::ECN_CE {
            self.received_ce += segments;
        }
        if let Some(bytes) = self.received_ecn_bytes.get_mut(usize::from(field)) {
            *bytes += u64::from(segment.payload);
        }
    }

    /// A segment was sent, after TSO.
    pub(super) fn on_sent(&mut self, now: Instant, segment: &Segment, side: TcpSide) {
        let syn = segment.flags.has(Flags::SYN);
        let occupies = syn || segment.payload > 0 || segment.flags.has(Flags::FIN);
        let length = segment.payload + u32::from(syn) + u32::from(segment.flags.has(Flags::FIN));
        let end = segment.seq.0.wrapping_add(length);
        let again = occupies
            && self.sent_end.is_some_and(|sent| (segment.seq.0.wrapping_sub(sent) as i32) < 0);
        if again {
            self.total_retrans += 1;
            self.bytes_retrans += u64::from(segment.payload);
        }
        if self.sent_end.is_none_or(|sent| (end.wrapping_sub(sent) as i32) > 0) {
            self.sent_end = Some(end);
        }
        if syn && side == TcpSide::Server {
            return;
        }
        self.segs_out += 1;
        if segment.payload > 0 {
            self.data_segs_out += 1;
            self.bytes_sent += u64::from(segment.payload);
            self.last_data_sent = Some(now);
        }
    }
}
