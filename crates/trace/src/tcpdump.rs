//! Packet lines as tcpdump prints them.
//!
//! [`Writer`] prints segments; with [`Style::tcpdump`] its lines are, byte for byte, those of
//! `tcpdump -n -r` on the same packets in a [pcapng](crate::pcapng) file, as long as no port is
//! one whose payload tcpdump knows (80, 443, 53, ...). With [`Style::brief`] they are those of a
//! mail: host names, no ports, seconds with three decimals.
//!
//! [`read`] takes such lines back from any text: the output of tcpdump, with `-n` or names, `-tt`,
//! `-tttt`, `-ttttt`, `-v`, or a mail that quotes, wraps and shortens them.
//!
//! ```
//! use trace::tcpdump::{Clock, read};
//! # use ackclock_trace as trace;
//!
//! let mail = "\
//! Sending 1MB over a link of 100ms delay:
//!
//!  0.101 IP sender > sink: Flags [.], seq 1:14481, ack 1, win 65,
//! length 14480
//!  // got one ACK for all
//!  0.201 IP sink > sender: Flags [.], ack 14481, win 427, length 0
//! ";
//! let packets = read(mail)?;
//! assert_eq!(packets.len(), 2);
//! assert_eq!(packets[0].clock, Clock::Seconds);
//! assert_eq!(packets[0].length, 14_480);
//! assert_eq!(packets[1].ack, Some(14_481));
//! assert_eq!(packets[1].line, 6);
//! # Ok::<(), trace::tcpdump::TextError>(())
//! ```
//!
//! Source of the format: print-tcp.c, print-ip.c, print-ip6.c and util-print.c of tcpdump 4.99.
//!
//! What it does not do: `-e`, `-x` and `-X` are not read, and `-ttt` (time since the line before)
//! looks like `-ttttt` and is read as such.

pub mod clock;
mod cursor;
mod error;
mod line;
mod options;
mod read;
mod write;

pub use clock::Clock;
pub use error::TextError;
pub use line::{Address, LineOptions, Numbers, SeqRange, TraceLine};
pub use read::{Lines, read};
pub use write::{Names, Stamp, Style, Writer};
