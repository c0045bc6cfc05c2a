//! Fits a scenario to a capture: its path, endpoints and application. Layer 7.
//!
//! Reading order: [`PathFit`] (the estimates with their basis), `bottleneck` (its rate), `losses` (lost packets), `writes`
//! (write pattern of the application), `fingerprint` (systems of the endpoints), `text` (the
//! scenario file); `quic` (the same from the log of a QUIC host); [`guesses`] (the congestion controller; `peaks`: rounds limited by the window,
//! `rates`: delivery rates for BBR).
//!
//! It runs nothing; `whatif` runs the scenario and reports how well it matches.

mod bottleneck;
mod fingerprint;
mod fitted;
mod losses;
mod peaks;
mod quic;
mod rates;
mod senders;
mod text;
mod transfer;
mod variants;
mod writes;

pub use fingerprint::PeerSystem;
pub use fitted::{Basis, FitError, PathFit, ReorderingFit};
pub use losses::LossEstimate;
pub use quic::QuicFit;
pub use senders::{Guess, MAX_EVENTS, guesses};
pub use text::LossPattern;
pub use transfer::{FittedTransfer, PathDoubt, RecordedTransfer};
pub use writes::WritePattern;
