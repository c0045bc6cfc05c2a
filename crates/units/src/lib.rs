//! Quantities with their units, and named random streams. Layer 0: every crate depends on it.
//!
//! Reading order: [`time`] (nanosecond instants and durations), [`bytes`] (sizes),
//! [`rate`] (decimal bits per second with a carried remainder), [`seq`] (64-bit stream offsets
//! internally, wrapping sequence numbers on the wire), [`ratio`] (probabilities and gains as
//! integers), [`dir`] and [`ecn`] (fields of packets), [`rng`] (one random stream per purpose, all from one seed), [`maths`] (floating point
//! for formulas and reports).
//!
//! This crate reads no clock and parses no text.

pub mod bytes;
pub mod dir;
pub mod ecn;
pub mod hint;
pub mod maths;
pub mod rate;
pub mod ratio;
pub mod rng;
pub mod seq;
pub mod time;

use serde::{Deserialize, Serialize};

pub use bytes::Bytes;
pub use dir::Dir;
pub use ecn::Ecn;
pub use hint::{prefetch, unlikely};
pub use rate::Rate;
pub use ratio::Ratio;
pub use rng::RandomStream;
pub use seq::{Offset, SeqNum};
pub use time::{Duration, Instant};

/// Index of a flow within a run, counted from 0 in the order of the scenario.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize,
)]
pub struct FlowId(pub u32);

/// Index of a host within a run, counted from 0 in the order of the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct HostId(pub u16);
