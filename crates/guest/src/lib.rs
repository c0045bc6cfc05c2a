//! Hosts that are real Linux kernels, in virtual time. Layer 6.
//!
//! A guest is a User-Mode Linux kernel with time travel: a program without a clock of its own,
//! whose network card is a vhost-user client. One thread is the event queue of the world, the
//! calendar of every guest's clock, and the back end of every guest's network card. So at most one
//! kernel runs at any time, and a run is a function of scenario, seed and kernel image.
//!
//! Reading order: [`guest`] (the interface of a guest: packets in, packets out, next deadline),
//! [`drive`] (the event loop), [`flows`] (packets and segments), [`plan`] (the applications of a
//! guest), [`results`] (their results), [`uml`] (a guest that is a Linux kernel), [`socket`] (a
//! guest that is any program), [`run()`] (a whole run),
//! [`script`](mod@script) (a kernel that a packet script drives), [`stack`] (QUIC stacks that are programs); in addition [`kernel`] (building kernels), [`compare`] (the same scenario with
//! models and kernels), [`card`] (what such models need of a guest) and [`recording`] (transfers of kernels as text).
//!
//! The crate starts processes and reads files; it is empty on systems other than Linux.
#![cfg(target_os = "linux")]

pub mod card;
pub mod compare;
pub mod drive;
pub mod flows;
pub mod guest;
pub mod kernel;
pub mod likeness;
pub mod plan;
pub mod recording;
pub mod results;
pub mod run;
pub mod script;
pub mod socket;
pub mod stack;
pub mod uml;

pub use run::{GuestHost, GuestProgram, GuestRun, Job, RunError, run};
