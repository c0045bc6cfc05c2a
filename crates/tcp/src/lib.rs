//! The sans-IO TCP endpoint and its system profiles. Layer 4.
//!
//! Reading order: [`profile`] (what a system's TCP does, as data) and [`knobs`] (its adjustable
//! values under the names users know); [`endpoint`] (the machine), then in the life of a segment
//! `handshake`, `output` (with one file per system: what is sent next), `input` (what an arrival
//! means), `acks` (what an acknowledgment means to the sender), [`probes`]; and the parts they use:
//! `timers`, `syn_timer`, `clock`, `ecn`, `challenge`, `send_buffer`, `sent`, `state`, `receive_window`,
//! `reassembly`, `ack_policy`, `sack_compression`; `rates` (delivery rates and pacing, for BBR); and what an application may ask
//! and change: [`info`], `socket_options`; [`packed`] (connections at rest, in few bytes).
//!
//! Sequence numbers are 64-bit offsets inside, with the SYN at 0 and the first payload byte at
//! 1; they become 32-bit numbers only on a [`packet::Segment`].
//!
//! Losses are found and repaired by `loss`: NewReno (RFC 6582), FreeBSD's SACK recovery, or RACK-TLP (RFC 8985,
//! Linux, FreeBSD's RACK). Not done: urgent data is delivered in line, its pointer ignored.

pub mod endpoint;
pub mod knobs;
pub mod probes;
pub mod profile;

mod ack_policy;
mod acks;
mod challenge;
mod clock;
mod config;
mod ecn;
mod handshake;
pub mod info;
mod input;
mod loss;
mod output;
pub mod packed;
mod persist;
mod rates;
mod reassembly;
mod receive_window;
mod row;
mod sack_compression;
mod sack_report;
mod send_buffer;
mod sent;
mod socket_options;
mod state;
mod syn_timer;
mod tcpcb;
mod timers;

#[cfg(test)]
mod tests;

pub use endpoint::{Config, Endpoint, Side, State, Totals};
pub use probes::Keepalive;
