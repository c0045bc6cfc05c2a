//! The interface of a user-defined controller: its reports and its decisions.

use core::fmt::Debug;

use units::{Bytes, Duration, Instant, Rate};

use crate::contract::CongestionSignal;

/// The counters since the last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CcReport {
    /// Time of the acknowledgment that ended the round trip or the interval.
    pub now: Instant,
    /// Time since the last report, or since the connection was established.
    pub interval: Duration,
    /// Bytes acknowledged.
    pub acked: u64,
    /// Fast recoveries and ECN reductions that began.
    pub losses: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Minimum RTT of the interval; `None` if none was measured.
    pub rtt_min: Option<Duration>,
    /// Latest RTT of the interval.
    pub rtt_last: Option<Duration>,
    /// The stack's smoothed RTT, in microseconds.
    pub srtt_micros: u32,
    /// Current congestion window.
    pub window: Bytes,
    /// Slow-start threshold; `None` while unset.
    pub ssthresh: Option<Bytes>,
    /// Payload of a full segment.
    pub mss: u32,
    /// True during a fast recovery. A window decided now applies after its end.
    pub in_recovery: bool,
    /// Bytes sent and not yet acknowledged (`snd_nxt - snd_una`).
    pub flight: u64,
    /// Bytes acknowledged since the connection was established.
    pub delivered: u64,
    /// Packets delivered in the interval, acknowledged or SACKed, each counted once, where the stack
    /// counts them as Linux does.
    pub packets: u32,
    /// Reductions by echoes of CE marks in the interval; they count as losses too.
    pub ecn_marks: u32,
    /// The window limited the last flight. False if the application or the receiver did.
    pub window_limited: bool,
    /// Receive window of the peer, in bytes.
    pub peer_window: u64,
    /// Round trips that ended since the connection was established.
    pub rounds: u32,
}

/// A loss detected by the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossReport {
    /// Time of detection.
    pub now: Instant,
    /// The signal: [`CongestionSignal::Loss`], [`CongestionSignal::Ecn`] or
    /// [`CongestionSignal::Timeout`].
    pub signal: CongestionSignal,
    /// Congestion window before it.
    pub window: Bytes,
    /// The threshold set by the base.
    pub ssthresh: Option<Bytes>,
    /// Bytes in flight by the stack's count.
    pub pipe: u64,
    /// Payload of a full segment.
    pub mss: u32,
    /// Packets marked lost since the connection was established, where the stack counts them (Linux's
    /// `tp->lost`).
    pub lost_packets: u64,
}

/// The decision of a controller; fields that are `None` are unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CcDecision {
    /// Congestion window, at least a segment. At a loss, the window after recovery.
    pub window: Option<Bytes>,
    /// Slow-start threshold.
    pub ssthresh: Option<Bytes>,
    /// Pacing rate, if the stack paces.
    pub pacing: Option<Rate>,
}

/// When a controller is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportTrigger {
    /// At the end of each round trip: once the data in flight at the last report is acknowledged.
    Round,
    /// At the first acknowledgment after this time.
    Interval(Duration),
    /// At every acknowledgment.
    Ack,
}

/// The user-defined controller of one connection. After a hook has returned [`ControllerError`] no
/// other hook is called, the window stays as it is, and the run ends with that error.
pub trait UserController: Debug + Send + Sync {
    /// The connection is established; segments carry `mss` bytes, `window` is the initial window.
    ///
    /// # Errors
    /// The controller failed.
    fn on_start(
        &mut self,
        now: Instant,
        mss: u32,
        window: Bytes,
    ) -> Result<CcDecision, ControllerError>;

    /// A report is due.
    ///
    /// # Errors
    /// The controller failed.
    fn on_report(&mut self, report: &CcReport) -> Result<CcDecision, ControllerError>;

    /// A loss was detected.
    ///
    /// # Errors
    /// The controller failed.
    fn on_loss(&mut self, loss: &LossReport) -> Result<CcDecision, ControllerError>;

    /// A copy that makes the same decisions from here on.
    fn fork(&self) -> Box<dyn UserController>;
}

/// Error of a user-defined controller, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerError(pub String);

impl core::fmt::Display for ControllerError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ControllerError {}

/// Creates one user-defined controller per connection.
pub trait ControllerFactory: Debug + Send + Sync {
    /// Name in scenarios and results.
    fn name(&self) -> &'static str;

    /// When its controllers are called.
    fn every(&self) -> ReportTrigger;

    /// True if the base grows the window between reports.
    fn base_grows(&self) -> bool;

    /// A controller for a new connection.
    fn make(&self) -> Box<dyn UserController>;
}
