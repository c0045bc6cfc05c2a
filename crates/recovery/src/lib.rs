//! Round-trip times, retransmission timeouts and loss recovery. Layer 3.
//!
//! Round-trip times: [`rtt`] (the interface of the endpoint), [`rtt_freebsd`] (in ticks of
//! `kern.hz`), [`rtt_rack`] (FreeBSD's RACK stack, in microseconds), [`rtt_linux`] (in
//! microseconds, the timeout in jiffies), [`rtt_rfc`] (RFC 6298).
//!
//! Losses: [`dsack`] (duplicate SACKs), [`holes`] (FreeBSD's SACK scoreboard), [`sendmap`] (the
//! outstanding packets, for RACK), [`rack`], [`rack_freebsd`] and [`tlp`] (time-based loss
//! detection), [`hpts_rack`], [`probe_rack`], [`burst_rack`] and [`goodput_rack`] (timers of
//! FreeBSD's RACK stack and its pauses after bursts), [`reordering`] (the degree of reordering),
//! [`prr`] (proportional rate reduction), [`undo`] and [`rack_undo`] (spurious recoveries),
//! [`external`] (loss detectors of a user's own program).
//!
//! [`lazy`] allocates state lazily that most connections never need.
//!
//! Rates: [`delivery_rate`] (delivery rate estimation).
//!
//! There are no timers here. The endpoint counts timeouts in a row and passes the number.

pub mod burst_rack;
pub mod delivery_rate;
pub mod dsack;
pub mod external;
pub mod goodput_rack;
pub mod holes;
pub mod hpts_rack;
pub mod lazy;
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

pub use rtt::{RttEstimator, RttInput, RttMeasurement};
pub use rtt_freebsd::RttFreeBsd;
pub use rtt_linux::RttLinux;
pub use rtt_rack::{RtoBounds, RttRack};
pub use rtt_rfc::RttRfc;
