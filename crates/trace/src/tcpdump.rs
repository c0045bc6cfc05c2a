//! Packet lines of tcpdump.
//!
//! [`TcpdumpWriter`] prints segments; with [`Style::tcpdump`] its lines are, byte for byte, those
//! of `tcpdump -n -r` on the same packets in a [pcapng](crate::pcapng) file, unless tcpdump decodes
//! the payload of the port (80, 443, 53, ...). With [`Style::brief`] they have the form used in
//! mails: host names, no ports, seconds with three decimals.
//!
//! [`read`] parses such lines in any text: the output of tcpdump, with `-n` or names, `-tt`,
//! `-tttt`, `-ttttt`, `-v`, or a mail that quotes, wraps and shortens them.
//!
//! ```
//! use trace::tcpdump::{TimestampKind, read};
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
//! assert_eq!(packets[0].clock, TimestampKind::Seconds);
//! assert_eq!(packets[0].length, 14_480);
//! assert_eq!(packets[1].ack, Some(14_481));
//! assert_eq!(packets[1].line, 6);
//! # Ok::<(), trace::tcpdump::TextError>(())
//! ```
//!
//! Source of the format: print-tcp.c, print-ip.c, print-ip6.c and util-print.c of tcpdump 4.99; lines of
//! versions before 4 are read, too.
//!
//! The link headers of `-e`, the numbers of `--number` and tunnels (GRE, IP in IP, VXLAN, Geneve, PPPoE)
//! before the packets of TCP are skipped, and so are the bytes of `-x` and `-X`. `-ttt` (time since the
//! previous packet) looks like `-ttttt`: its timestamps go back.

pub mod clock;
mod cursor;
mod error;
mod line;
mod old;
mod options;
mod read;
mod write;

pub use clock::TimestampKind;
pub use error::TextError;
pub use line::{Address, LineOptions, SeqNumbering, SeqRange, TcpdumpLine};
pub use old::is_old_packet;
pub use read::{TcpdumpLines, read};
pub use write::{HostNaming, Stamp, Style, TcpdumpWriter};
