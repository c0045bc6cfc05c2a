//! Information about a connection for applications and tests (`struct tcp_info`).

use cc::Controller;
use cc::external::ControllerError;
use record::Purpose;
use recovery::RttEstimator;
use units::{Bytes, Duration, Instant, Offset};

use crate::config::TcpSide;
use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::tcp_state::TcpState;

/// Congestion states of Linux (`enum tcp_ca_state`), with their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CaState {
    /// Normal.
    Open = 0,
    /// SACKs or duplicate ACKs were received.
    Disorder = 1,
    /// The window was reduced without a loss (ECN).
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a timeout.
    Loss = 4,
}

/// The sender's counters, in packets where the kernel counts packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    /// State of the connection.
    pub state: TcpState,
    /// State of its congestion control.
    pub ca_state: CaState,
    /// Congestion window.
    pub snd_cwnd: u64,
    /// Slow-start threshold; `None` while unset.
    pub snd_ssthresh: Option<u64>,
    /// Packets sent and not acknowledged.
    pub unacked: u64,
    /// Of these, SACKed; without SACK, duplicate acknowledgments.
    pub sacked: u64,
    /// Of these, marked lost.
    pub lost: u64,
    /// Of these, retransmissions in flight.
    pub retrans: u64,
    /// Payload of a full segment.
    pub snd_mss: u64,
    /// Estimated payload of the peer's full segments (`icsk_ack.rcv_mss`).
    pub rcv_mss: u64,
    /// Consecutive timeouts.
    pub backoff: u32,
    /// Consecutive window probes.
    pub probes: u32,
    /// Retransmission timeout in force.
    pub rto: Duration,
    /// Smoothed round trip.
    pub rtt: Option<Duration>,
    /// Minimum round trip.
    pub min_rtt: Option<Duration>,
    /// Bytes ready to be read.
    pub unread: u64,
    /// Bytes written but not acknowledged, and those of them never sent.
    pub unsent: (u64, u64),
    /// Window that the peer advertises.
    pub window: Bytes,
    /// Degree of reordering, in packets (`tp->reordering`).
    pub reordering: u32,
    /// Number of reordering events.
    pub reord_seen: u32,
    /// Duplicates reported by D-SACK.
    pub dsack_dups: u32,
    /// Sizes of the receive buffer and the send buffer, in the system's own unit.
    pub buffers: (Bytes, Bytes),
    /// Timestamps were negotiated.
    pub timestamps: bool,
    /// SACK was negotiated.
    pub sack: bool,
    /// Scale of the peer's window, if scaling was negotiated.
    pub snd_scale: Option<u8>,
    /// ECN was negotiated.
    pub ecn: bool,
    /// When data, or the end of the handshake, was last received (`icsk_ack.lrcvtime`); `None` if
    /// there was no data since other segments arrived.
    pub last_data: Option<Instant>,
    /// The data of the SYN was accepted (Fast Open).
    pub syn_data: bool,
    /// Delivery rate in bytes a second and whether the application limited it, where it is measured
    /// (`tcpi_delivery_rate`).
    pub delivery_rate: Option<(u64, bool)>,
    /// Why the data of a SYN was not accepted (`tcp_fastopen_client_fail`); 0 if it was, or there was none.
    pub fast_open_failure: u8,
    /// Packets delivered (`tp->delivered`), a SYN included, retransmissions counted once.
    pub delivered: u64,
    /// Payload of our largest segment, as announced to the peer, less its options.
    pub advmss: u64,
    /// Size of our largest packet.
    pub mtu: u64,
    /// Mean deviation of the round trip, where the stack is Linux's (`mdev_us`).
    pub rtt_deviation: Option<Duration>,
    /// Pacing rate in bytes a second, where it is known (`sk_pacing_rate`).
    pub pacing_rate: Option<u64>,
    /// Sequence numbers that the peer has acknowledged; those of a SYN only if it opened the connection
    /// (`bytes_acked`).
    pub acked: u64,
    /// Sequence numbers received in order after the SYN (`bytes_received`).
    pub received: u64,
    /// Window last advertised, in bytes (`rcv_wnd`).
    pub rcv_wnd: u64,
    /// Scale of our window, if scaling was negotiated.
    pub rcv_scale: Option<u8>,
    /// Limit of our window, and what the application reads in a round trip, in bytes, where the stack is
    /// Linux's (`rcv_ssthresh`, `rcvq_space.space`).
    pub receiver: Option<(u64, u64)>,
    /// The receiver's estimate of the round trip; zero before the first (`rcv_rtt_est`).
    pub rcv_rtt: Duration,
    /// The last write waits for space in the send buffer (`SOCK_NOSPACE`).
    pub blocked_write: bool,
    /// Estimated pause between data segments, for the delayed ACK (`icsk_ack.ato`).
    pub ato: Duration,
}

impl TcpEndpoint {
    /// The failure of a user-defined congestion controller, if any.
    pub fn controller_failure(&self) -> Option<&ControllerError> {
        self.snd.cc.failure()
    }

    /// The current counters.
    pub fn info(&self) -> TcpInfo {
        let control = self.snd.cc.control();
        let mss = self.conn.mss().max(1);
        let sums = self.snd.scoreboard.sums();
        let sacked = match self.snd.stack {
            Stack::NewReno => u64::from(self.snd.rexmt.dup_acks),
            Stack::FreeBsd(_) | Stack::RackTlp(_) | Stack::FreeBsdRack(_) => sums.sacked.packets,
        };
        let written = self.snd.buffer.used();
        let sent = self.snd.max.min(self.snd.data_end()).since(self.snd.una).get();
        TcpInfo {
            state: self.conn.state,
            ca_state: self.snd.ca_state(sacked),
            snd_cwnd: control.window.get() / mss,
            snd_ssthresh: control.ssthresh.map(|bytes| bytes.get() / mss),
            unacked: sums.all.packets,
            sacked,
            lost: sums.lost.packets,
            retrans: sums.retransmission.packets,
            snd_mss: mss,
            rcv_mss: self.rcv.rcv_mss(&self.conn),
            backoff: self.snd.backoff(),
            probes: self.snd.rare.probes,
            rto: self.snd.rtt.estimator.rto(),
            rtt: self.snd.rtt.estimator.srtt(),
            min_rtt: self.snd.totals.min_rtt,
            unread: self.rcv.window.unread(),
            unsent: (written, written.saturating_sub(sent)),
            window: Bytes(self.snd.peer.wnd),
            reordering: self.snd.reordering().metric(),
            reord_seen: self.snd.reordering().seen(),
            dsack_dups: self.snd.reordering().dsack_dups(),
            buffers: (Bytes(self.rcv.window.size()), Bytes(self.snd.buffer.size())),
            timestamps: self.conn.negotiated.timestamps,
            sack: self.conn.negotiated.sack,
            snd_scale: self.conn.negotiated.snd_scale,
            ecn: self.snd.ecn.agreed(),
            last_data: self
                .rcv
                .policy
                .last_data()
                .or_else(|| (self.snd.una == Offset(1)).then_some(self.snd.last.received)),
            syn_data: self.snd.rare.fast_open.syn_data_acked,
            delivery_rate: self.snd.delivery_rate(&self.conn),
            fast_open_failure: self.snd.rare.fast_open.failure,
            delivered: self.snd.delivered(&self.conn, sacked),
            advmss: u64::from(self.snd.advmss(&self.conn)),
            mtu: u64::from(self.snd.path_mtu(&self.conn)),
            rtt_deviation: match &self.snd.rtt.estimator {
                RttEstimator::Linux(rtt) => Some(rtt.deviation()),
                _ => None,
            },
            pacing_rate: Some(self.snd.pacing_rate()).filter(|&rate| rate > 0),
            acked: self.snd.una.0.saturating_sub(u64::from(self.conn.cfg.side == TcpSide::Server)),
            received: self.rcv.nxt.0.saturating_sub(1),
            rcv_wnd: self.rcv.adv.since(self.rcv.acked).get(),
            rcv_scale: self
                .rcv
                .window
                .offered_scale()
                .filter(|_| self.conn.negotiated.snd_scale.is_some()),
            receiver: self.rcv.window.autosizing(),
            rcv_rtt: self.rcv.window.rtt(),
            blocked_write: self.snd.buffer.starved(),
            ato: self.conn.clock.span(self.rcv.policy.ato()),
        }
    }

    /// Milliseconds between two times as the kernel counts them, in whole ticks of its clock.
    pub fn elapsed_ms(&self, from: Instant, to: Instant) -> u64 {
        let ticks = self.conn.clock.tick(to).saturating_sub(self.conn.clock.tick(from));
        self.conn.clock.span(ticks).as_micros() / 1_000
    }

    /// The next deadline for that purpose.
    pub fn deadline(&self, purpose: Purpose) -> Option<Instant> {
        self.timers.at(purpose)
    }
}

impl SendSide {
    /// The SYN, the packets sent that are no longer outstanding, or SACKed (without SACK: counted by duplicate ACKs,
    /// tcp_add_reno_sack), and spurious retransmissions that D-SACKs have reported (tcp_dsack_seen).
    fn delivered(&self, conn: &Connection, sacked: u64) -> u64 {
        if self.una < Offset(1) || self.is_fast_open_child(conn) {
            return 0;
        }
        let sums = self.scoreboard.sums();
        let fin = u64::from(self.max > self.data_end());
        let first = self.totals.data_packets - self.totals.retransmitted_packets;
        let forgotten = match &self.stack {
            Stack::RackTlp(loss) => loss.forgotten(),
            _ => 0,
        };
        (1 + first + fin + sacked + forgotten).saturating_sub(sums.all.packets)
    }

    fn ca_state(&self, sacked: u64) -> CaState {
        if self.rexmt.shift > 0 || self.repairs_timeout() {
            CaState::Loss
        } else if self.rexmt.cwr_end.is_some() {
            CaState::Cwr
        } else if self.cc.in_recovery() {
            CaState::Recovery
        } else if sacked > 0 {
            CaState::Disorder
        } else {
            CaState::Open
        }
    }
}

impl Sender {
    /// `icsk_backoff`: Linux forgets it with a round-trip sample only, and counts probes of a closed
    /// window.
    fn backoff(&self) -> u32 {
        match &self.rtt.estimator {
            RttEstimator::Linux(rtt) if !self.probe.persisting => rtt.backoff(),
            _ => self.rexmt.shift,
        }
    }
}
