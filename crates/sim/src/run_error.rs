//! Errors of a run.

use core::fmt;

use cc::external::ControllerError;
use quic::real::RealFailure;
use units::Instant;

use crate::validity::SetupError;

/// A run could not be started or completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// The scenario cannot be run.
    Setup(SetupError),
    /// An element that duplicates packets made more than [`MAX_PACKETS_IN_FLIGHT`] of them.
    Duplicates(DuplicationLimit),
    /// More than [`MAX_PACKETS_IN_FLIGHT`] packets were in flight.
    InFlight(InFlightLimit),
    /// A user-defined congestion controller failed.
    Controller(ControllerError),
    /// A real implementation of QUIC failed.
    Stack(StackFailure),
    /// The observer stopped the run ([`Observer::progress`](crate::Observer::progress)).
    Stopped,
}

/// A real implementation of QUIC that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackFailure {
    /// Name of its host.
    pub host: String,
    /// Name of the implementation.
    pub stack: &'static str,
    /// Time and reason.
    pub failure: RealFailure,
}

/// The element that duplicated packets without bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicationLimit {
    /// Index of the path.
    pub path: usize,
    /// Whether the element is in the reverse direction.
    pub reverse: bool,
    /// Index of the element in that direction.
    pub element: usize,
    /// Time of the event.
    pub at: Instant,
}

/// The element that held the most packets when too many were in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlightLimit {
    /// Index of the path.
    pub path: usize,
    /// Whether the element is in the reverse direction.
    pub reverse: bool,
    /// Index of the element in that direction.
    pub element: usize,
    /// Packets in the element.
    pub held: usize,
    /// Time of the event.
    pub at: Instant,
}

/// Number of packets in flight, or of copies made at one instant, at which the run is aborted:
/// about 400 MB of memory.
pub const MAX_PACKETS_IN_FLIGHT: usize = 1 << 21;

impl From<SetupError> for RunError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Duplicates(DuplicationLimit { path, reverse, element, at }) => {
                let way = if *reverse { "return" } else { "forward" };
                let s = at.since(Instant::ZERO).as_secs_f64();
                write!(
                    f,
                    "path[{path}].{way}[{element}] duplicates packets without bound: more than \
                     {MAX_PACKETS_IN_FLIGHT} in flight after {s:.6} s (elements count from 0)"
                )
            }
            Self::InFlight(InFlightLimit { path, reverse, element, held, at }) => {
                let way = if *reverse { "return" } else { "forward" };
                let s = at.since(Instant::ZERO).as_secs_f64();
                write!(
                    f,
                    "more than {MAX_PACKETS_IN_FLIGHT} packets are in flight after {s:.6} s, {held} of \
                     them in path[{path}].{way}[{element}] (elements count from 0); lower its \
                     `delay` or `buffer`, or the `rate` of what is sent"
                )
            }
            Self::Controller(ControllerError(why)) => f.write_str(why),
            Self::Stack(StackFailure { host, stack, failure: RealFailure { at, what } }) => {
                let s = at.since(Instant::ZERO).as_secs_f64();
                write!(f, "host `{host}` at {s:.6} s: {stack}: {what}")
            }
            Self::Stopped => f.write_str("the run was stopped"),
        }
    }
}

impl core::error::Error for RunError {}
