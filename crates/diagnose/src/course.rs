//! The course of a transfer: which phase each round belongs to, who is to blame for what was
//! lost in it, and the time budget.
//!
//! A round's *lost time* is the part of it in which the path could have carried more: its length
//! less what its bytes take at the rate of the bottleneck. In a round whose queue never ran empty
//! nothing is lost. Where the bottleneck was never seen busy its rate is not known, and all of the
//! round counts: an upper bound.
//!
//! Blame goes to what held the sender back: slow start, the receiver's window, the application;
//! for recovery and for the climb after it, to the loss (or the false alarm) that began it.

mod walk;

use crate::Flow;
use crate::blame::{BLAMES, Blame};
use crate::budget::{Budget, Limiter};
use crate::path::Path;
use crate::rounds::Before;

/// Less than this of a busy bottleneck is a share of it.
pub(crate) const SHARED: f64 = 0.8;

/// Linear growth that ran until its window had doubled: slow start would have taken one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Climb {
    /// Its begin and end, in ns.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// Frame of its first packet.
    pub frame: u64,
    /// Bytes a round trip at its begin and at its end.
    pub windows: (u64, u64),
    /// Rounds.
    pub rounds: u64,
    /// Lost time, in ns.
    pub lost: u64,
    /// What had set the low threshold.
    pub blame: Blame,
}

/// One stretch of slow start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramp {
    /// What came before it.
    pub before: Before,
    /// Indices of its rounds.
    pub rounds: (usize, usize),
    /// Its begin and end, in ns.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// First frame.
    pub frame: u64,
    /// Window (bytes sent in a round) at its begin and at its end.
    pub windows: (u64, u64),
    /// Time spent on it while the path was not busy, and the lost part, in ns.
    pub time: u64,
    /// See `time`.
    pub lost: u64,
    /// Largest window before a rest that it followed.
    pub window_before: u64,
}

/// The course of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The path.
    pub path: Path,
    /// The time budget.
    pub budget: Budget,
    lost: [u64; BLAMES],
    /// Stretches of slow start.
    pub ramps: Vec<Ramp>,
    /// Long climbs.
    pub climbs: Vec<Climb>,
    /// What each episode of the flow was.
    pub blames: Vec<Blame>,
    /// Longest stretch of rounds with the same window and nothing to explain it: rounds, lost ns,
    /// begin and end.
    pub plateau: (u64, u64, u64, u64),
    /// Rounds of growth after a first slow start that ended without a loss.
    pub after_exit: u64,
    /// The round trip that the first data take whatever the window is: it is no loss, and in none
    /// of those above.
    pub first_trip: u64,
    /// Time-weighted mean and largest wait in a queue that never ran empty, in ns.
    pub standing_queue: (u64, u64),
}

impl Course {
    /// Lost time by what is to blame for it, in ns.
    pub const fn lost(&self, blame: Blame) -> u64 {
        self.lost[blame as usize]
    }

    /// What these data had of a bottleneck that others used too, and its whole rate as bursts show
    /// it, in bytes per second: its queue never ran empty for a quarter of the time at work, and
    /// they had less than four fifths. The histogram of rates has steps of a sixteenth of an octave,
    /// and queues of a burst vary.
    pub fn shared(&self) -> Option<(f64, f64)> {
        let (share, all) = (self.path.share?, self.path.rate?);
        (self.is_busy() && share < SHARED * all).then_some((share, all))
    }

    /// Was the bottleneck busy for a quarter of the time at work?
    pub fn is_busy(&self) -> bool {
        let busy = self.budget.of(Limiter::Path) + self.budget.of(Limiter::Recovery);
        busy * 4 >= self.budget.active()
    }

    /// Of the data of one direction.
    pub fn of(flow: &Flow) -> Self {
        walk::over(flow)
    }
}
