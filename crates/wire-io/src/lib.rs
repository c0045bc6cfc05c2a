//! Worlds on the wire: scenarios in real time, with this machine's own TCP as some of the hosts. Layer 6.
//!
//! A real host is a network namespace without a name: a thread that has left its parent's, with a
//! TUN device whose other end is a descriptor here. What the kernel sends comes out of the
//! descriptor as packets, becomes segments, and travels through [`sim::live::Live`], which is the
//! simulator's own world; what arrives at a real host is written to its descriptor. When the
//! threads end, namespace, device and sockets are gone, however they end.
//!
//! Reading order: [`frame`] (packets and segments), [`payload`] (what the bytes are), [`streams`]
//! (bytes under way, since a world knows only their numbers), [`directory`] (whose they are), [`space`]
//! (namespaces and devices), [`command`] (programs in them),
//! [`kernel`] (what this machine's applications do), [`drive`] (the loop), [`run()`] (all together);
//! beside them [`numbers`] (that nobody guesses), [`clock`], [`timing`] (how late the machine was), [`capture`].
//!
//! Below layer 7 only this crate reads clocks and devices. It is empty on other systems than Linux.
#![cfg(target_os = "linux")]

pub mod capture;
pub mod clock;
pub mod command;
pub mod directory;
pub mod drive;
pub mod frame;
pub mod kernel;
pub mod numbers;
pub mod payload;
pub mod run;
pub mod space;
pub mod streams;
pub mod timing;

pub use run::{Done, FlowBytes, Job, Play, WireRunError, run};
