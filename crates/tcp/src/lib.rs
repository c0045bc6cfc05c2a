//! The sans-IO TCP endpoint and its system profiles. Layer 4.
//!
//! Reading order: [`profile`] (a system's TCP as data) and [`knobs`] (its adjustable values under
//! the names users know); [`endpoint`] (the state machine), then in the life of a segment
//! `handshake`, `output` (what is sent next, one file per system), `input` (arriving segments),
//! `acks` (acknowledgments at the sender), `probes`; and the parts they use: `timers`, `timeout`,
//! `syn_timer`, `user_timeout`, `clock`, `ecn`, `challenge`, `send_buffer`, `sent`, `send_side`, `receive_side`, `receive_window`,
//! `reassembly`, `ack_policy`, `sack_compression`; `rates` (delivery rates and pacing, for BBR);
//! the application's interface: `application`, [`info`], `socket_options`; [`packed`] (idle connections, compactly
//! encoded).
//!
//! Internally, sequence numbers are 64-bit offsets, with the SYN at 0 and the first payload byte at
//! 1; they become 32-bit numbers only on a [`packet::Segment`].
//!
//! `sender` has what all sending stacks share, `stacks` those of FreeBSD and the calls of all; `loss`
//! detects and repairs losses by NewReno (RFC 6582) and by RACK-TLP (RFC 8985, Linux). Urgent data is
//! delivered in line; its pointer is ignored.

pub mod endpoint;
pub mod knobs;
pub mod profile;

mod ack_policy;
mod acks;
mod application;
mod challenge;
mod clock;
mod config;
mod connection;
mod ecn;
pub mod fast_open;
mod handshake;
mod icmp;
pub mod info;
mod input;
mod kernel_view;
mod loss;
mod output;
pub mod packed;
mod probes;
mod rates;
mod reassembly;
mod receive_side;
mod receive_window;
mod received_ack;
mod round_trips;
mod sack_compression;
mod sack_report;
mod segment_plan;
mod send_buffer;
mod send_side;
mod sender;
mod sender_state;
mod sent;
mod socket_options;
mod stacks;
mod syn_timer;
mod tcp_state;
mod tcpcb;
mod timeout;
mod timer_outcome;
mod timers;
mod totals;
mod user_timeout;

#[cfg(test)]
mod tests;

pub use endpoint::{TcpConfig, TcpEndpoint, TcpSide, TcpTotals};
pub use profile::Keepalive;
pub use send_buffer::WriteFlags;
pub use tcp_state::TcpState;
