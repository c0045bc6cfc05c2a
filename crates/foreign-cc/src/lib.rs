//! Congestion controllers in C as shared libraries: compiled from a kernel's own file, loaded, called. Layer 7.
//!
//! Reading order: [`compile`] (`tcp_xyz.c` to `tcp_xyz.so`, with the shim headers in `shim/` and the interface
//! `include/ackclock-cc.h`), [`named`] (a library by its name in a scenario), `library` (loading it), `process` (its
//! operations in a process of their own, which a fault ends alone).
//!
//! [`cc::kernel`] is the other side of the interface: it calls the operations where Linux's stack does.

pub mod compile;
#[cfg(unix)]
mod library;
pub mod named;
#[cfg(unix)]
mod process;

/// The interface of a library: `ackclock-cc.h`.
pub const HEADER: &str = include_str!("../include/ackclock-cc.h");
