//! Fits a scenario to a capture: its path, endpoints and application. Layer 7.
//!
//! Reading order: [`PathFit`] (the estimates with their basis), `bottleneck` and `sending` (its rate), `losses` and `lost_data` (lost packets), `writes`
//! and `conversation` (what the applications write), `opening` (SYNs), `policer`, `way_back` (of ACKs), `beside` (connections that share the bottleneck), `words` (changes that are no keys of scenarios), `fingerprint` (systems of the endpoints), `text` (the
//! scenario file); `quic` (the same from the log of a QUIC host); [`guesses`] (the congestion controller; `peaks`: rounds limited by the window,
//! `rates`: delivery rates for BBR).
//!
//! It runs nothing; `whatif` runs the scenario and reports how well it matches.

mod beside;
mod bottleneck;
mod conversation;
mod delivery;
mod fingerprint;
mod fitted;
mod losses;
mod lost_data;
mod opening;
mod peaks;
mod policer;
mod quic;
mod rates;
mod reordering;
mod requests;
mod senders;
mod sending;
#[cfg(test)]
mod test_packets;
mod text;
mod transfer;
mod variants;
mod way_back;
mod words;
mod writes;

pub use crate::quic::dialects::{DialectGuess, dialects};
pub use crate::quic::{FitParts, QuicFit};
pub use beside::FlowBeside;
pub use conversation::{Conversation, Message};
pub use fingerprint::PeerSystem;
pub use fitted::{Basis, FitError, PathFit};
pub use losses::LossEstimate;
pub use opening::OpeningFit;
pub use policer::PolicerFit;
pub use reordering::ReorderingFit;
pub use senders::{Guess, MAX_EVENTS, guesses};
pub use text::LossPattern;
pub use transfer::{FittedTransfer, PathDoubt, RecordedTransfer};
pub use way_back::WayBackFit;
pub use words::WordError;
pub use writes::WritePattern;
