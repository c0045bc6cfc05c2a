//! What a controller that is written elsewhere is told, and what it answers.

use core::fmt::Debug;

use units::{Bytes, Duration, Instant, Rate};

use crate::contract::Signal;

/// What happened since the last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// When it is made: with the acknowledgment that ended the round trip or the interval.
    pub now: Instant,
    /// Since the last one, or since the connection was established.
    pub interval: Duration,
    /// Bytes acknowledged.
    pub acked: u64,
    /// Fast recoveries and ECN episodes that began.
    pub losses: u32,
    /// Times the retransmission timer fired.
    pub timeouts: u32,
    /// Least round trip of the interval; `None` if none was measured.
    pub rtt_min: Option<Duration>,
    /// Latest round trip of the interval.
    pub rtt_last: Option<Duration>,
    /// The stack's smoothed round trip, in microseconds.
    pub srtt_micros: u32,
    /// Congestion window in force.
    pub window: Bytes,
    /// Slow-start threshold; `None` while unset.
    pub ssthresh: Option<Bytes>,
    /// Payload of a full segment.
    pub mss: u32,
    /// Does a fast recovery run? A window decided now counts from its end on.
    pub in_recovery: bool,
}

/// A loss that the stack found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossReport {
    /// When it was found.
    pub now: Instant,
    /// What was seen: [`Signal::Loss`], [`Signal::Ecn`] or [`Signal::Timeout`].
    pub signal: Signal,
    /// Congestion window before it.
    pub window: Bytes,
    /// What the base would have it be afterwards: its threshold.
    pub ssthresh: Option<Bytes>,
    /// Bytes the stack takes to be under way.
    pub pipe: u64,
    /// Payload of a full segment.
    pub mss: u32,
}

/// What a pilot decides; what it leaves out stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decision {
    /// Congestion window, at least a segment. At a loss it is where the recovery leads to.
    pub window: Option<Bytes>,
    /// Slow-start threshold.
    pub ssthresh: Option<Bytes>,
    /// Rate to pace at, where the stack paces.
    pub pacing: Option<Rate>,
}

/// When a pilot is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// At the end of each round trip: once what was under way at the last report is acknowledged.
    Round,
    /// With the first acknowledgment after this time.
    Interval(Duration),
    /// At every acknowledgment.
    Ack,
}

/// One connection's controller, written elsewhere. After a hook has returned [`Gone`] no other hook is called,
/// the window stays as it is, and the run ends with that error.
pub trait Pilot: Debug + Send + Sync {
    /// The connection is established; its segments carry `mss` bytes. The first window.
    ///
    /// # Errors
    /// The controller cannot go on.
    fn on_start(&mut self, now: Instant, mss: u32, window: Bytes) -> Result<Decision, Gone>;

    /// The time of a report has come.
    ///
    /// # Errors
    /// The controller cannot go on.
    fn on_report(&mut self, report: &Report) -> Result<Decision, Gone>;

    /// A loss was found.
    ///
    /// # Errors
    /// The controller cannot go on.
    fn on_loss(&mut self, loss: &LossReport) -> Result<Decision, Gone>;

    /// Another one that would decide the same from here on.
    fn fork(&self) -> Box<dyn Pilot>;
}

/// A pilot cannot go on: why, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone(pub String);

impl core::fmt::Display for Gone {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Gone {}

/// Makes pilots: one for each connection.
pub trait Maker: Debug + Send + Sync {
    /// Name in scenarios and results.
    fn name(&self) -> &'static str;

    /// When its pilots are asked.
    fn every(&self) -> Every;

    /// Does the base grow the window between reports?
    fn base_grows(&self) -> bool;

    /// A pilot for a new connection.
    fn make(&self) -> Box<dyn Pilot>;
}
