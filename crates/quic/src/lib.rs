//! The sans-IO QUIC endpoint and its profiles. Layer 4.
//!
//! Reading order: [`packet`] and [`sizes`] (packets and their sizes), [`profile`] (how
//! implementations differ) with its [`knobs`], [`endpoint`] (the state of an endpoint and its
//! interface), then `handshake`, `input` and `output`. The sender: `send_stream`, `sent` (packets
//! in flight), `acks` (ACK processing), `rtt`, [`loss`], [`pto`], `congestion_control` and
//! `controller`, `rate_based` (BBR), `pacer`. The receiver: `received`, [`ack_policy`], `recv_stream`,
//! [`flow_control`]. [`real`]: real implementations in place of the model. [`replay`]: BBR in the time of a log.
//!
//! Not modelled: cryptography (only its bytes are counted), streams beyond one in each direction,
//! migration, 0-RTT, ECN, and coalescing of packets in one datagram.

pub mod ack_policy;
pub mod ecn;
pub mod endpoint;
pub mod flow_control;
pub mod handshake;
pub mod knobs;
pub mod loss;
pub mod mtu;
pub mod packet;
pub mod profile;
pub mod pto;
pub mod real;
pub mod replay;
pub mod rtt;
pub mod sizes;
pub mod slow_start;

mod acks;
mod congestion_control;
mod controller;
mod input;
mod output;
mod pacer;
mod prr;
mod quic_cubic;
mod ranges;
mod rate_based;
mod received;
mod recv_stream;
mod reordered;
mod send_stream;
mod sender_state;
mod sent;
mod spurious;
#[cfg(test)]
mod tests;

pub use congestion_control::CongestionControl;
pub use endpoint::{QuicConfig, QuicEndpoint, QuicSide, QuicTotals};
pub use packet::QuicPacket;
pub use profile::QuicProfile;
