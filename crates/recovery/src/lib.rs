//! Round-trip times, retransmission timeouts and the repair of losses. Layer 3.
//!
//! Round-trip times: [`rtt`] (what the endpoint asks and tells), [`rtt_freebsd`] (in ticks of
//! `kern.hz`), [`rtt_rack`] (its RACK stack's, in microseconds), [`rtt_linux`] (in microseconds, the
//! timeout in jiffies), [`rtt_rfc`] (the textbook).
//!
//! Losses: [`dsack`] (reports of duplicates), [`holes`] (FreeBSD's list of what is missing),
//! [`sendmap`] (what is under way, packet by packet), [`rack`], [`rack_freebsd`] and [`tlp`] (losses
//! told by time), [`hpts_rack`], [`probe_rack`], [`burst_rack`] and [`goodput_rack`] (its timers and
//! the pauses after bursts), [`reordering`] (how far apart packets arrive), [`prr`]
//! (how much may be sent meanwhile), [`undo`] and [`rack_undo`] (it was needless).
//!
//! [`apart`] keeps what most connections never need out of their way.
//!
//! Rates: [`delivery_rate`] (how fast the network delivers).
//!
//! What it does not do: it keeps no timer. The endpoint counts timeouts in a row and says so.

pub mod apart;
pub mod burst_rack;
pub mod delivery_rate;
pub mod dsack;
pub mod goodput_rack;
pub mod holes;
pub mod hpts_rack;
pub mod probe_rack;
pub mod prr;
pub mod rack;
pub mod rack_freebsd;
pub mod rack_undo;
mod ranges;
pub mod reordering;
pub mod rtt;
pub mod rtt_freebsd;
pub mod rtt_linux;
pub mod rtt_rack;
pub mod rtt_rfc;
pub mod sendmap;
pub mod tlp;
pub mod undo;

pub use rtt::{RttEstimator, Sample, Sampled};
pub use rtt_freebsd::RttFreeBsd;
pub use rtt_linux::RttLinux;
pub use rtt_rack::{RtoBounds, RttRack};
pub use rtt_rfc::RttRfc;
