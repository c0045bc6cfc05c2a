//! Logs of senders as text: those of FreeBSD, Linux and QUIC implementations, and our own tables. Layer 3.
//!
//! - [`siftr`]: logs of FreeBSD's siftr, written and read back, also damaged.
//! - [`tcp_probe`] and [`ss`]: the state of a Linux sender, at every packet and now and then.
//! - [`qlog`]: logs of QUIC's event vocabulary, written in two forms and read in every generation.
//! - [`csv`]: one row per event with the sender's state.
//! - [`series`]: chosen columns over time, downsampled without loss of a peak.
//!
//! Every writer streams into an [`io::Write`](std::io::Write) and keeps no more than the packet or
//! event at hand (and a few numbers per connection). The crate opens no file and interprets nothing.

pub mod csv;
mod decimal;
mod lines;
pub mod qlog;
pub mod series;
pub mod siftr;
pub mod ss;
pub mod tcp_probe;
