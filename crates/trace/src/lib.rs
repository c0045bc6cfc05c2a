//! Packets as other programs read and write them: text of tcpdump, pcap, pcapng and
//! BBLog. Layer 2.
//!
//! - [`tcpdump`]: packet lines as tcpdump prints them, written and read back, also from a mail.
//! - [`pcapng`]: captures that tcpdump and Wireshark open.
//! - [`capture`]: captures of any tcpdump or Wireshark, read frame by frame, also damaged.
//! - [`bblog`]: FreeBSD's Black Box Log, a pcapng file, written and read back, also damaged.
//! - [`unpack`]: what gzip, xz or zstd packed, as it was.
//!
//! Every writer streams into an [`io::Write`](std::io::Write) and keeps no more than the packet or
//! event at hand (and a few numbers per connection).
//!
//! What it does not do: it opens no file, and it judges nothing; what a trace means is for others.

pub mod bblog;
mod blocks;
pub mod capture;
pub mod pcapng;
pub mod tcpdump;
pub mod unpack;
mod window;
