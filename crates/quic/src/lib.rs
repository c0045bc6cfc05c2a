//! The sans-IO QUIC endpoint and its profiles. Layer 4.
//!
//! Reading order: [`packet`] (what travels) and [`sizes`] (how large it is), [`profile`] (what
//! implementations differ in) with its [`knobs`], [`endpoint`] (one side of a connection: its
//! state and the doors), then what it does: `handshake`, `input` (a packet came), `output` (what
//! leaves). The sender: `send_stream`, `sent` (packets under way), `acks` (an ACK frame came), `rtt`,
//! [`loss`], [`pto`], `congestion_control` and `controller`, `pacer`. The receiver: `received`, [`ack_policy`],
//! `recv_stream`, [`flow_control`].
//!
//! What it does not do: cryptography (its bytes are counted), streams beyond one in each
//! direction, migration, 0-RTT, ECN, and coalescing of packets in one datagram.

pub mod ack_policy;
pub mod endpoint;
pub mod flow_control;
pub mod handshake;
pub mod knobs;
pub mod loss;
pub mod packet;
pub mod profile;
pub mod pto;
pub mod sizes;

mod acks;
mod congestion_control;
mod controller;
mod input;
mod output;
mod pacer;
mod ranges;
mod received;
mod recv_stream;
mod row;
mod rtt;
mod send_stream;
mod sent;
#[cfg(test)]
mod tests;

pub use congestion_control::CongestionControl;
pub use endpoint::{Config, Endpoint, Side, Totals};
pub use packet::Packet;
pub use profile::Profile;
