//! Reads and writes packet formats of other programs: text of tcpdump, pcap, pcapng and BBLog.
//! Layer 2.
//!
//! - [`tcpdump`]: packet lines as tcpdump prints them, written and parsed, also from a mail.
//! - [`pcapng`]: writes captures that tcpdump and Wireshark open.
//! - [`capture`]: reads pcap and pcapng frame by frame, also damaged files.
//! - [`bblog`]: FreeBSD's Black Box Log, a pcapng file, written and read, also damaged files.
//! - [`unpack`]: decompresses gzip, xz and zstd.
//!
//! Every writer streams into an [`io::Write`](std::io::Write) and keeps no more than the current
//! packet or event (and a few numbers per connection).
//!
//! The crate opens no files and does not interpret traces.

pub mod bblog;
mod blocks;
pub mod capture;
pub mod pcapng;
pub mod tcpdump;
pub mod unpack;
mod window;
