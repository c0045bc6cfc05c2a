//! Closed forms of throughput, each with what it takes for granted. Layer 1, on `units` alone.
//!
//! Reading order: [`path`] (what a formula is asked about), [`validity`] (when its answer does not
//! apply), [`mathis`] (the square root of loss), [`sawtooth`] (the same with round trips that a
//! loss costs), [`aimd`] (any additive increase and multiplicative decrease), [`pftk`]
//! (timeouts counted), [`cubic`] (the response function, the Reno-friendly bound, one epoch).
//!
//! ```
//! # use ackclock_theory as theory;
//! use theory::{Path, sawtooth};
//! use units::{Bytes, Duration, Ratio};
//!
//! // 1252 bytes a packet, 2 ms, 2 % lost, two round trips more per cycle than the sawtooth has.
//! let loss = Ratio::new(2, 100).unwrap();
//! let path = Path::new(Bytes(1_252), Duration::from_millis(2), loss)?;
//! let estimate = sawtooth::estimate(&path, sawtooth::ExtraRtts::new(2.0)?);
//! assert!((estimate.rate_bps / 1e6 - 36.50).abs() < 0.005);
//! # Ok::<(), theory::TheoryError>(())
//! ```
//!
//! Windows are in segments and may be fractions of one; rates are bits per second of whole
//! segments (`mss` bytes each, whatever that counts), the way the papers have it.
//!
//! What it does not do: it runs nothing and measures nothing, and it reads no text.

pub mod aimd;
pub mod cubic;
pub mod mathis;
pub mod path;
pub mod pftk;
pub mod sawtooth;
pub mod validity;

pub use path::{Path, TheoryError};
pub use validity::{Doubt, Validity};

/// What a formula says of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Whole segments per second, in bit/s.
    pub rate_bps: f64,
    /// Segments under way on average: the rate times the round-trip time.
    pub window: f64,
    /// The largest window of a cycle, in segments; `None` where the formula knows no cycle.
    pub peak: Option<f64>,
    /// From one loss to the next, in round trips; `None` where the formula knows no cycle.
    pub cycle_rtts: Option<f64>,
    /// What the formula takes for granted, and what speaks against it here.
    pub validity: Validity,
}
