//! Congestion controllers: how much may be under way. Layer 1, on `units` alone.
//!
//! Reading order: [`contract`] (what a controller is told and what it answers), [`newreno`]
//! (FreeBSD's NewReno, by kernel version), [`linux_reno`] (Linux's `reno`), [`cubic`] (by system and
//! version), [`linux`] (what Linux's controllers share), [`hystart`] and [`hystart_rfc`] (slow start that ends itself), [`quic_newreno`]
//! (RFC 9002's, with events of its own), [`bbr`] (Linux's BBR, by delivery rates),
//! [`any`](mod@any) (one of them, chosen while running), [`outside`] (those that are written elsewhere),
//! [`registry`] (names users know).
//!
//! A controller is a pure value: event structs in, [`Control`] and [`Change`] out. It knows no
//! clock, no socket, no log, and it can be cloned to ask what would have been.
//!
//! What it does not do: find losses, count the flight, decide what is sent during a recovery
//! (the stack does, and writes the window with [`Controller::set_window`]) or keep time.

pub mod any;
pub mod bbr;
pub mod contract;
pub mod cubic;
mod freebsd;
pub mod hystart;
pub mod hystart_rfc;
pub mod linux;
pub mod linux_reno;
pub mod newreno;
pub mod outside;
pub mod quic_newreno;
pub mod registry;

pub use any::AnyController;
pub use bbr::Bbr;
pub use contract::{
    AckSample, Acked, Change, Congested, Control, Controller, DeliveryRate, Established, Growth,
    Idle, RateSample, Recovered, RttSample, Signal, Smoothed,
};
pub use cubic::{FreeBsdCubic, LinuxCubic, RfcCubic};
pub use linux_reno::LinuxReno;
pub use newreno::NewReno;
pub use outside::Outside;
pub use quic_newreno::QuicNewReno;
pub use registry::{Algorithm, NoController};
