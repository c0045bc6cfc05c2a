//! Closed forms of throughput, each with its assumptions. Layer 1, depends on `units` only.
//!
//! Reading order: [`path`] (the input of a formula), [`validity`] (when its result does not apply),
//! [`mathis`] (the square root of loss), [`sawtooth`] (Mathis with the round trips that a loss
//! costs), [`aimd`] (any additive increase and multiplicative decrease), [`pftk`] (with timeouts),
//! [`cubic`] (the response function, the Reno-friendly bound, one epoch), [`bbr`] (the share of BBR version 1 beside loss-based
//! flows).
//!
//! ```
//! # use ackclock_theory as theory;
//! use theory::{Path, sawtooth};
//! use units::{Bytes, Duration, Ratio};
//!
//! // 1252 bytes per packet, 2 ms, 2 % loss, two more round trips per cycle than the sawtooth.
//! let loss = Ratio::new(2, 100).unwrap();
//! let path = Path::new(Bytes(1_252), Duration::from_millis(2), loss)?;
//! let estimate = sawtooth::estimate(&path, sawtooth::ExtraRtts::new(2.0)?);
//! assert!((estimate.rate_bps / 1e6 - 36.50).abs() < 0.005);
//! # Ok::<(), theory::TheoryError>(())
//! ```
//!
//! Windows are in segments and may be fractional; rates are bits per second of full segments (`mss`
//! bytes each, whatever that includes), as in the papers.
//!
//! This crate runs no simulation, measures nothing and parses no text.

pub mod aimd;
pub mod bbr;
pub mod cubic;
pub mod mathis;
pub mod path;
pub mod pftk;
pub mod sawtooth;
pub mod validity;

pub use path::{Path, TheoryError};
pub use validity::{Doubt, Validity};

/// The estimate of a formula for a path.
#[derive(Debug, Clone, PartialEq)]
pub struct TheoryEstimate {
    /// Full segments per second, in bit/s.
    pub rate_bps: f64,
    /// Average number of segments in flight: the rate times the RTT.
    pub window: f64,
    /// The largest window of a cycle, in segments; `None` if the formula has no cycle.
    pub peak: Option<f64>,
    /// Round trips from one loss to the next; `None` if the formula has no cycle.
    pub cycle_rtts: Option<f64>,
    /// The assumptions of the formula, and doubts about them here.
    pub validity: Validity,
}
