//! What others read and write: text of tcpdump, pcap and pcapng, BBLog, siftr, qlog, CSV, SVG. Layer 2.
//!
//! - [`tcpdump`]: packet lines as tcpdump prints them, written and read back, also from a mail.
//! - [`pcapng`]: captures that tcpdump and Wireshark open.
//! - [`capture`]: captures of any tcpdump or Wireshark, read frame by frame, also damaged.
//! - [`unpack`]: what gzip, xz or zstd packed, as it was.
//! - [`bblog`]: FreeBSD's Black Box Log, written and read back, also damaged.
//! - [`siftr`]: logs of FreeBSD's siftr, written and read back, also damaged.
//! - [`tcp_probe`] and [`ss`]: the state of a Linux sender, at every packet and now and then.
//! - [`qlog`]: logs of QUIC's event vocabulary, written in two forms and read in every generation.
//! - [`series`]: chosen columns over time, thinned without loss of a peak.
//! - [`csv`]: one row per event with the sender's state.
//! - [`svg`]: a chart that looks the same everywhere.
//! - [`thin`]: series of any length in bounded room, without loss of a peak.
//!
//! Every writer streams into an [`io::Write`](std::io::Write) and keeps no more than the packet or
//! event at hand (and a few numbers per connection).
//!
//! What it does not do: it opens no file, and it judges nothing; what a trace means is for others.

pub mod bblog;
mod blocks;
pub mod capture;
pub mod csv;
mod decimal;
mod lines;
pub mod pcapng;
pub mod qlog;
pub mod series;
pub mod siftr;
pub mod ss;
pub mod svg;
pub mod tcp_probe;
pub mod tcpdump;
pub mod thin;
pub mod unpack;
mod window;
