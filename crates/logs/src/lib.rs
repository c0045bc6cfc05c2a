//! Logs of senders as text: those of FreeBSD, Linux and QUIC implementations, and our own tables.
//! Layer 3.
//!
//! - [`siftr`]: logs of FreeBSD's siftr, written and read, also damaged ones.
//! - [`tcp_probe`] and [`ss`]: the state of a Linux sender, at every packet and at polls.
//! - [`qlog`]: logs of QUIC events, written in two formats and read in every version.
//! - [`nstat`]: the counters of a Linux host.
//! - [`flent`]: data files of flent, read.
//! - [`csv`]: one row per event with the sender's state.
//! - [`series`]: selected columns over time, downsampled without loss of a peak.
//!
//! Every writer streams into an [`io::Write`](std::io::Write) and keeps no more than the current
//! packet or event (and a few numbers per connection). The crate opens no files and does not
//! interpret logs.

pub mod csv;
mod decimal;
pub mod flent;
pub mod iperf3;
mod lines;
pub mod nstat;
pub mod qlog;
pub mod series;
pub mod siftr;
pub mod ss;
pub mod tcp_probe;
