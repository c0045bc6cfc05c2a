//! quinn-proto as a host in virtual time: real code without sockets, driven by a world. Layer 5.
//!
//! [`QUINN`] is the stack; `connection` drives one end of a connection, [`null_crypto`] replaces TLS,
//! `stream_frames` finds the stream bytes of a datagram. All random numbers are from the given seed, and all
//! instants from the world's clock, so equal runs send equal bytes.

pub mod null_crypto;

mod clock;
mod connection;
mod stream_frames;

pub use clock::QuinnClock;

use quic::real::{RealConfig, RealEndpoint, RealStack};

use connection::QuinnEndpoint;

/// quinn-proto 0.11.
#[derive(Debug, Clone, Copy)]
pub struct QuinnStack;

/// quinn-proto 0.11.
pub static QUINN: QuinnStack = QuinnStack;

/// CUBIC, quinn's default.
pub(crate) const CUBIC: &str = "cubic";

impl RealStack for QuinnStack {
    fn name(&self) -> &'static str {
        quic::real::NAMES[0]
    }

    /// Without quinn's BBR, which draws from the operating system's random numbers whatever the seed.
    fn controllers(&self) -> &'static [&'static str] {
        &[CUBIC, "newreno"]
    }

    fn endpoint(&self, config: &RealConfig) -> Box<dyn RealEndpoint> {
        Box::new(QuinnEndpoint::new(config))
    }
}
