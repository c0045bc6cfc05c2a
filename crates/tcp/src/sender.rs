//! What the sending side of every stack has (the send sequence variables of RFC 9293 section 3.3.1,
//! and the variables that each system adds).

use cc::AnyController;
use machine::Signal;
use record::{Cause, SendLimit};
use recovery::lazy::{InitialValue, LazyBox};
use recovery::sendmap::SendMap;
use recovery::{RttEstimator, RttFreeBsd, RttLinux, RttRack, RttRfc};
use units::{Duration, Instant, Offset};

use crate::config::TcpConfig;
use crate::ecn::EcnSender;
use crate::fast_open::state::FastOpenState;
use crate::output::call::{Pacing, PacketBatch, WriteCall};
use crate::profile::RtoRule;
use crate::rates::state::RateState;
use crate::send_buffer::SendBuffer;
use crate::totals::TcpTotals;

/// What the sending side of every stack has: the sequence variables, the segments outstanding, the
/// controller. A stack owns the rest.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Sender {
    pub(crate) una: Offset,
    pub(crate) nxt: Offset,
    pub(crate) max: Offset,
    pub(crate) peer: PeerWindow,
    pub(crate) buffer: SendBuffer,
    /// Congestion control.
    pub(crate) cc: AnyController,
    pub(crate) ecn: EcnSender,
    pub(crate) totals: TcpTotals,
    /// The segments outstanding.
    pub(crate) scoreboard: SendMap,
    /// Not encoded: the stack gives it.
    #[serde(skip)]
    pub(crate) flight: FlightEstimate,
    pub(crate) rexmt: Retransmission,
    pub(crate) probe: WindowProbe,
    pub(crate) rare: LazyBox<RareState>,
    pub(crate) rtt: RoundTrips,
    pub(crate) last: LastSegments,
    pub(crate) usage: WindowUsage,
    /// Linux: the inputs of `sk_pacing_rate`.
    pub(crate) pacing: Pacing,
    /// Linux: delivery rates and pacing, for rate-based controllers.
    pub(crate) rates: Option<Box<RateState>>,
    pub(crate) call: OutputCall,
    pub(crate) nagle: Nagle,
}

/// How the bytes in flight are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FlightEstimate {
    /// All bytes outstanding.
    #[default]
    Outstanding,
    /// By the scoreboard (RFC 6675).
    Scoreboard,
    /// All bytes outstanding and this correction, which the holes of FreeBSD's base stack give.
    Corrected(i64),
}

/// The window that the peer has advertised.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct PeerWindow {
    pub(crate) wnd: u64,
    pub(crate) max_wnd: u64,
    /// Sequence and acknowledgment number of the last update (RFC 9293 3.10.7.4).
    pub(crate) wl1: Offset,
    pub(crate) wl2: Offset,
    /// Linux: it changed while nothing was in flight and data was waiting.
    pub(crate) opened_while_idle: bool,
}

/// Timeouts, duplicates, and what is to be retransmitted, for all loss detectors.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Retransmission {
    /// Consecutive timeouts (`t_rxtshift`).
    pub(crate) shift: u32,
    pub(crate) dup_acks: u32,
    /// Segments that limited transmit may send beyond the window; on FreeBSD those it has sent
    /// (`snd_limited`).
    pub(crate) limited: u32,
    /// The segment at `una` is to be retransmitted, for this reason.
    pub(crate) head: Option<Cause>,
    /// Why the data between `nxt` and `max` is retransmitted.
    pub(crate) cause: Cause,
    /// `max` when the window was reduced for an ECN echo (CWR), until data beyond it is
    /// acknowledged.
    pub(crate) cwr_end: Option<Offset>,
    /// Time of the last retransmission, as the scoreboard has it.
    pub(crate) last_at: Instant,
    /// Timestamp clock at the first timeout: an older echo proves that timeout spurious.
    pub(crate) timeout_stamp: Option<u32>,
}

/// Probes of the peer's window.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct WindowProbe {
    /// The window is closed and being probed.
    pub(crate) persisting: bool,
    /// The probe to send next.
    pub(crate) segment: Option<ProbeSegment>,
}

/// Measurement of round trips.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct RoundTrips {
    /// Smoothed round trip and timeout.
    pub(crate) estimator: RttEstimator,
    /// Byte whose round trip is being measured and when it was sent, where timestamps are off.
    pub(crate) timing: Option<(Offset, Instant)>,
    /// Round-trip sample of the current acknowledgment, and the number of samples so far.
    pub(crate) sample: Option<Duration>,
    pub(crate) samples: u32,
}

/// Times of the last segments.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct LastSegments {
    /// When data, a SYN or a FIN was sent.
    pub(crate) sent: Instant,
    /// Linux: when an ACK without data was sent.
    pub(crate) acked: Instant,
    /// When a segment was received.
    pub(crate) received: Instant,
}

/// Linux: is the window used up?
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct WindowUsage {
    /// `is_cwnd_limited`.
    pub(crate) limited: bool,
    /// `max_packets_out`.
    pub(crate) max_packets_out: u64,
    /// End of the window they apply to (`cwnd_usage_seq`).
    pub(crate) end: Offset,
}

/// The output call.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct OutputCall {
    /// A call is pending; `first_pass` until its first pass.
    pub(crate) due: bool,
    pub(crate) first_pass: bool,
    /// Nothing was in flight when it began.
    pub(crate) idle: bool,
    /// `nxt` when it began.
    pub(crate) nxt_at_call: Offset,
    /// What held back the last pass that sent nothing.
    pub(crate) waiting: SendLimit,
    /// Linux: check whether to wake a blocked writer when output is done.
    pub(crate) check_space: bool,
    /// Signals that the application has not taken yet, a bit for each [`Signal`].
    pub(crate) signals: u8,
    /// Further packets that the last decision covers.
    pub(crate) batch: PacketBatch,
    /// Linux: the write that the call belongs to.
    pub(crate) write: Option<WriteCall>,
    /// Linux: the call is that of a close.
    pub(crate) nagle_off: bool,
    /// Linux: the device is done with all packets before this.
    pub(crate) device_done: Offset,
}

/// Segments that wait to become full.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Nagle {
    /// `TCP_CORK` (TCP_NAGLE_CORK).
    pub(crate) corked: bool,
    /// What waits may go once, corked or not (TCP_NAGLE_PUSH).
    pub(crate) uncorks: bool,
    /// End of the last partial segment sent (Linux `snd_sml`).
    pub(crate) minshall_end: Offset,
}

/// Kinds of probe segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) enum ProbeSegment {
    /// The next byte, whatever the window.
    Byte,
    /// An empty segment with the sequence number `snd_una - 1`.
    Empty,
    /// The part of a segment that fits the window.
    Part,
}

/// State that most connections never need: probes of windows and of idle peers, Fast Open, and
/// socket options seldom used.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct RareState {
    /// Consecutive window probes, those of them since the last segment from the peer, and when the
    /// last was sent.
    pub(crate) probes: u32,
    pub(crate) unanswered_probes: u32,
    pub(crate) probed_at: Instant,
    /// Consecutive keepalive probes without an answer.
    pub(crate) unanswered_keepalives: u32,
    pub(crate) fast_open: FastOpenState,
    /// The pending RST is an ordinary segment, with a window and options (tcp_send_active_reset).
    pub(crate) active_reset: bool,
    /// `TCP_USER_TIMEOUT`, in milliseconds; 0 for the system's limits.
    pub(crate) user_timeout: u32,
    /// First expiry of the timer of window probes under that limit (`icsk_probes_tstamp`).
    pub(crate) probing_since: Option<Instant>,
    /// The application has closed the socket (`SOCK_DEAD`).
    pub(crate) orphaned: bool,
    /// Nothing that arrives will be read (`RCV_SHUTDOWN`).
    pub(crate) receive_shut: bool,
    /// The path MTU of a router's message (`icsk_pmtu_cookie`), where it is below that of the interface.
    pub(crate) path_mtu: Option<u32>,
    /// The same when the last SYN was sent, which has its segment size.
    pub(crate) syn_mtu: Option<u32>,
}

static NO_RARE: RareState = RareState {
    probes: 0,
    unanswered_probes: 0,
    probed_at: Instant::ZERO,
    unanswered_keepalives: 0,
    fast_open: FastOpenState {
        child: false,
        syn_ack_due: false,
        syn_data_acked: false,
        failure: 0,
        reply: None,
    },
    active_reset: false,
    user_timeout: 0,
    probing_since: None,
    orphaned: false,
    receive_shut: false,
    path_mtu: None,
    syn_mtu: None,
};

impl InitialValue for RareState {
    fn initial() -> &'static Self {
        &NO_RARE
    }
}

impl Sender {
    /// The sending side of a connection that is not open.
    pub(crate) fn new(cfg: &TcpConfig) -> Self {
        let profile = &cfg.profile;
        let estimator = match profile.rto {
            RtoRule::FreeBsd => RttFreeBsd::new(profile.hz).into(),
            RtoRule::Rack(bounds) => RttRack::new(bounds).into(),
            RtoRule::Linux => RttLinux::new(profile.hz).into(),
            RtoRule::Rfc => RttRfc::new().into(),
        };
        Self {
            una: Offset(0),
            nxt: Offset(0),
            max: Offset(0),
            peer: PeerWindow {
                wnd: 0,
                max_wnd: 0,
                wl1: Offset(0),
                wl2: Offset(0),
                opened_while_idle: false,
            },
            buffer: SendBuffer::new(profile),
            cc: profile.build(cfg.algorithm, &cfg.draws),
            ecn: EcnSender::new(profile.ecn),
            totals: TcpTotals::default(),
            scoreboard: SendMap::new(),
            flight: FlightEstimate::Outstanding,
            rexmt: Retransmission {
                shift: 0,
                dup_acks: 0,
                limited: 0,
                head: None,
                cause: Cause::Timeout,
                cwr_end: None,
                last_at: Instant::ZERO,
                timeout_stamp: None,
            },
            probe: WindowProbe { persisting: false, segment: None },
            rare: LazyBox::default(),
            rtt: RoundTrips { estimator, timing: None, sample: None, samples: 0 },
            last: LastSegments {
                sent: Instant::ZERO,
                acked: Instant::ZERO,
                received: Instant::ZERO,
            },
            usage: WindowUsage { limited: false, max_packets_out: 0, end: Offset(0) },
            pacing: Pacing::default(),
            rates: None,
            call: OutputCall {
                due: false,
                first_pass: false,
                idle: false,
                nxt_at_call: Offset(0),
                waiting: SendLimit::Handshake,
                check_space: false,
                signals: 0,
                batch: PacketBatch::NONE,
                write: None,
                nagle_off: false,
                device_done: Offset(0),
            },
            nagle: Nagle { corked: false, uncorks: false, minshall_end: Offset(0) },
        }
    }

    /// Bytes in flight as the stack estimates them (tcp_compute_pipe of FreeBSD, which is used in 32
    /// bits without a sign; RFC 6675).
    pub(crate) fn pipe(&self) -> u64 {
        match self.flight {
            FlightEstimate::Outstanding => self.max - self.una,
            FlightEstimate::Scoreboard => self.scoreboard.sums().pipe(),
            FlightEstimate::Corrected(by) => {
                u64::from((self.max.since(self.una).get() as i64 + by) as u32)
            }
        }
    }
}

impl OutputCall {
    /// Signals the application.
    pub(crate) const fn signal(&mut self, signal: Signal) {
        self.signals |= 1 << signal as u8;
    }
}
