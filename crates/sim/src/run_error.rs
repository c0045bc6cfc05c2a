//! Why a run has no outcome.

use core::fmt;

use cc::outside::Gone;
use units::Instant;

use crate::validity::SetupError;

/// A run could not be begun, or not be brought to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// The scenario cannot be run.
    Setup(SetupError),
    /// An element that duplicates packets made more than [`MOST_PACKETS`] of them.
    Duplicates(Duplicates),
    /// A user-defined congestion controller failed.
    Controller(Gone),
    /// The observer stopped it ([`Observer::progress`](crate::Observer::progress)).
    Stopped,
}

/// Where packets were duplicated without bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duplicates {
    /// Index of the path.
    pub path: usize,
    /// In the direction of its return?
    pub reverse: bool,
    /// Index of the element in that direction.
    pub element: usize,
    /// The moment.
    pub at: Instant,
}

/// Packets in flight, or copies made at one instant, at which an element makes no more copies and the
/// run is given up: some 400 MB of memory.
pub const MOST_PACKETS: usize = 1 << 21;

impl From<SetupError> for RunError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Duplicates(Duplicates { path, reverse, element, at }) => {
                let way = if *reverse { "return" } else { "forward" };
                let s = at.since(Instant::ZERO).as_secs_f64();
                write!(
                    f,
                    "path[{path}].{way}[{element}] duplicates packets without bound: more than \
                     {MOST_PACKETS} in flight after {s:.6} s (elements count from 0)"
                )
            }
            Self::Controller(Gone(why)) => f.write_str(why),
            Self::Stopped => f.write_str("the run was stopped"),
        }
    }
}

impl core::error::Error for RunError {}
