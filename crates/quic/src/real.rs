//! Real QUIC implementations as endpoints of a world: they exchange datagrams of bytes in virtual time.
//!
//! An implementation provides a [`RealStack`], which creates a [`RealEndpoint`] for each end of a flow. A
//! world calls it like [`QuicEndpoint`](crate::QuicEndpoint): after any input it takes the datagrams that are
//! ready, then the signals, then the deadline. Two ends of one flow have the same implementation, or two with TLS; a
//! model has no bytes that they could read.

use core::fmt::Debug;

use machine::Signal;
use packet::IpVersion;
use units::{Bytes, Duration, Instant};

use crate::endpoint::QuicSide;

/// Names of the implementations that a build can include, as profiles of a host. Programs are implementations with
/// other names, which a host has by its key `stack`.
pub const NAMES: [&str; 1] = ["quinn-proto-0.11"];

/// A real QUIC implementation.
pub trait RealStack: Debug + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Names of its congestion controllers whose runs can be repeated; the first is the default.
    fn controllers(&self) -> &'static [&'static str];

    /// Returns whether its packets are those of RFC 9000 and 9001, which any other such implementation reads.
    fn has_tls(&self) -> bool {
        false
    }

    /// Creates one end of a connection.
    fn endpoint(&self, config: &RealConfig) -> Box<dyn RealEndpoint>;
}

/// Configuration of one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealConfig {
    /// Index of the flow.
    pub flow: u32,
    /// Side of the connection.
    pub side: QuicSide,
    /// One of [`RealStack::controllers`].
    pub cc: &'static str,
    /// Seed of all its random numbers.
    pub seed: [u8; 32],
    /// IP bytes of the largest packet of its host.
    pub mtu: u32,
    /// Version of the internet protocol.
    pub ip: IpVersion,
}

/// A datagram on the network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Datagram {
    /// UDP payload.
    pub bytes: Vec<u8>,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// Bytes of stream data, without the headers of their frames.
    pub stream_bytes: u32,
}

/// Counters and present values of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RealState {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Bytes in flight; 0 where its interface does not show them.
    pub in_flight: Bytes,
    /// UDP payload of its largest datagram.
    pub datagram: Bytes,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Datagrams sent with stream data.
    pub data_packets: u64,
    /// Those of them with stream bytes that had been sent before.
    pub retransmitted_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
}

/// The failure of an implementation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealFailure {
    /// Virtual time.
    pub at: Instant,
    /// What failed.
    pub what: String,
}

/// One end of a connection.
pub trait RealEndpoint: Debug + Send {
    /// Starts the handshake; only the client's is called.
    fn open(&mut self, now: Instant);

    /// Takes up to this many bytes from the application; returns how many. After fewer than offered,
    /// [`Signal::Writable`] reports that the rest can be offered.
    fn write(&mut self, now: Instant, bytes: u64) -> u64;

    /// Reads up to this many bytes in order; returns how many.
    fn read(&mut self, now: Instant, most: u64) -> u64;

    /// Ends the stream after the bytes written.
    fn close(&mut self, now: Instant);

    /// Aborts the connection.
    fn reset(&mut self, now: Instant);

    /// Returns whether the peer has ended its stream and all of it has been read.
    fn at_end(&self) -> bool;

    /// Processes a datagram of the peer, with the ECN bits that it arrived with.
    fn receive(&mut self, now: Instant, datagram: &[u8], ecn: u8);

    /// Processes the timers that are due.
    fn handle_timeout(&mut self, now: Instant);

    /// Writes the next datagram that is ready; false if none is.
    fn poll_transmit(&mut self, now: Instant, into: &mut Datagram) -> bool;

    /// Returns the next signal to the application.
    fn poll_signal(&mut self) -> Option<Signal>;

    /// Returns when a timer is due; [`Instant::MAX`] if none is set.
    fn deadline(&mut self) -> Instant;

    /// Returns its counters and present values.
    fn state(&self) -> RealState;

    /// Returns why the implementation cannot go on; [`Signal::Aborted`] precedes it. One in this process has no
    /// reason.
    fn failure(&self) -> Option<&RealFailure> {
        None
    }
}
