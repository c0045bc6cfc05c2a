//! Quantities with their units, and chance with a name. Layer 0: everything else stands on it.
//!
//! Reading order: [`time`] (nanosecond instants and durations), [`bytes`] (sizes),
//! [`rate`] (decimal bits per second with a carried remainder), [`seq`] (stream offsets inside,
//! wrapping sequence numbers at the door), [`ratio`] (probabilities and gains as integers),
//! [`rng`] (one random stream per purpose, all from one seed), [`maths`] (floating point for
//! formulas and reports).
//!
//! What it does not do: it never reads a clock and never parses text.

pub mod bytes;
pub mod hint;
pub mod maths;
pub mod rate;
pub mod ratio;
pub mod rng;
pub mod seq;
pub mod time;

use serde::{Deserialize, Serialize};

pub use bytes::Bytes;
pub use hint::unlikely;
pub use rate::Rate;
pub use ratio::Ratio;
pub use rng::Stream;
pub use seq::{Offset, SeqNum};
pub use time::{Duration, Instant};

/// Number of a flow within a run, counted from 0 in the order of the scenario.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize,
)]
pub struct FlowId(pub u32);

/// Number of a host within a run, counted from 0 in the order of the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct HostId(pub u16);
