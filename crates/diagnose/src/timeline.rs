//! The timeline of a transfer: the phase of each round, the cause of the lost time in it, and the
//! time budget.
//!
//! A round's *lost time* is the part of it in which the path could have carried more: its length
//! less the time its bytes take at the rate of the bottleneck. A round whose queue never ran empty
//! has none. If the bottleneck was never seen busy its rate is unknown and the whole round counts,
//! which is an upper bound.
//!
//! Lost time is attributed to what limited the sender: slow start, the receive window, the
//! application; for recovery and the growth after it, to the loss (or the spurious recovery) that
//! began it.

mod builder;

use units::{Duration, Instant};

use crate::FlowAnalysis;
use crate::lost_time::{LOST_TIME_CAUSES, LostTimeCause};
use crate::path::PathEstimate;
use crate::rounds::RoundOrigin;
use crate::time_budget::{Limiter, TimeBudget};

/// A flow with less than this fraction of a busy bottleneck shares it.
pub(crate) const SHARED_FRACTION: f64 = 0.8;

/// Linear growth until the window had doubled; slow start would have taken one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearGrowth {
    /// Begin and end.
    pub from: Instant,
    /// See `from`.
    pub to: Instant,
    /// Frame of its first packet.
    pub frame: u64,
    /// Bytes per round at the begin and at the end.
    pub windows: (u64, u64),
    /// Rounds.
    pub rounds: u64,
    /// Lost time.
    pub lost: Duration,
    /// What had set the low slow-start threshold.
    pub blame: LostTimeCause,
}

impl LinearGrowth {
    /// Whether lost packets made it necessary.
    pub(crate) const fn is_of_loss(&self) -> bool {
        matches!(
            self.blame,
            LostTimeCause::Random
                | LostTimeCause::QueueOverflow
                | LostTimeCause::Overshoot
                | LostTimeCause::TailLoss
                | LostTimeCause::Timeout
        )
    }
}

/// One slow-start phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowStartRamp {
    /// What preceded it.
    pub before: RoundOrigin,
    /// Indices of its rounds.
    pub rounds: (usize, usize),
    /// Begin and end.
    pub from: Instant,
    /// See `from`.
    pub to: Instant,
    /// First frame.
    pub frame: u64,
    /// Window (bytes sent in a round) at the begin and at the end.
    pub windows: (u64, u64),
    /// Time in it while the path was not busy, and the lost part.
    pub time: Duration,
    /// See `time`.
    pub lost: Duration,
    /// Times at which the sender waited for an ACK and then sent more.
    pub waits: u64,
    /// Largest window before the idle time that it follows.
    pub window_before: u64,
}

/// A run of rounds with a constant window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowPlateau {
    /// Rounds.
    pub rounds: u64,
    /// Lost time.
    pub lost: Duration,
    /// Begin and end.
    pub from: Instant,
    /// See `from`.
    pub to: Instant,
}

/// The timeline of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// The path.
    pub path: PathEstimate,
    /// The time budget.
    pub budget: TimeBudget,
    lost: [Duration; LOST_TIME_CAUSES],
    /// Slow-start phases.
    pub ramps: Vec<SlowStartRamp>,
    /// Long phases of linear growth.
    pub linear_growths: Vec<LinearGrowth>,
    /// Cause of each recovery episode of the flow.
    pub episode_causes: Vec<LostTimeCause>,
    /// Longest run of rounds with a constant, unexplained window; `None` without one.
    pub plateau: Option<WindowPlateau>,
    /// Rounds of growth after a first slow start that ended without a loss.
    pub rounds_after_exit: u64,
    /// RTT of the first data, which no window could avoid: it is not lost time and not part of the
    /// sums above.
    pub first_rtt: Duration,
    /// Time-weighted mean and largest delay of a queue that never ran empty.
    pub standing_queue: (Duration, Duration),
}

impl Timeline {
    /// Time lost to `cause`.
    pub const fn lost(&self, cause: LostTimeCause) -> Duration {
        self.lost[cause as usize]
    }

    /// Rate of this flow at a shared bottleneck, and the bottleneck's rate from the spacing of
    /// bursts, in bytes per second. A bottleneck is shared if its queue never ran empty for a
    /// quarter of the active time and the flow had less than four fifths of it: the histogram of
    /// rates has steps of a sixteenth of an octave, and the queues of a burst vary.
    pub fn shared(&self) -> Option<(f64, f64)> {
        let (share, all) = (self.path.share?, self.path.rate?);
        (self.is_busy() && share < SHARED_FRACTION * all).then_some((share, all))
    }

    /// Whether the bottleneck was busy for a quarter of the active time.
    pub fn is_busy(&self) -> bool {
        let busy = self.budget.of(Limiter::Path) + self.budget.of(Limiter::Recovery);
        busy * 4 >= self.budget.active()
    }

    /// Builds the timeline of the data of one direction.
    pub fn of(flow: &FlowAnalysis) -> Self {
        builder::over(flow, PathEstimate::of(flow))
    }

    /// Builds the timeline of a part of a flow on a path that the whole flow has shown.
    pub(crate) fn on(path: PathEstimate, flow: &FlowAnalysis) -> Self {
        builder::over(flow, path)
    }
}
