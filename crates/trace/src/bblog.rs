//! FreeBSD's Black Box Log as tcplog_dumper writes it: custom blocks and options in pcapng.
//!
//! A record is the state of a connection at an event ([`TcpLogBuffer`], tcp_log_buffer of
//! sys/netinet/tcp_log_buf.h), with the packet's headers if the event is one of a packet.
//! [`BblogWriter`] makes files that tshark dissects. [`BblogReader`] reads such files of any
//! system, also damaged ones: it resumes after every fault, reports its position ([`BblogProblem`])
//! and what is missing ([`BblogStats`]), and estimates `kern.hz`, which no file has ([`Hz`]).
//!
//! ```
//! use trace::bblog::{BblogEvent, TcpLogBuffer, BblogItem, BblogReader, BblogSection, BblogWriter, flags};
//! # use ackclock_trace as trace;
//!
//! let section = BblogSection { stacks: vec![(0, "freebsd".to_owned())], ..BblogSection::default() };
//! let mut writer = BblogWriter::new(Vec::new(), &section)?;
//! let info = TcpLogBuffer { event_id: BblogEvent::RTO.0, snd_cwnd: 1_448, ..TcpLogBuffer::default() };
//! writer.event(&info)?;
//! let file = writer.finish()?;
//!
//! let mut reader = BblogReader::new(&file[..]);
//! let records: Vec<TcpLogBuffer> = reader
//!     .by_ref()
//!     .filter_map(|item| match item.unwrap() {
//!         BblogItem::Record(record) => Some(record.info),
//!         _ => None,
//!     })
//!     .collect();
//! assert_eq!(records, [info]);
//! assert_eq!(reader.loss().missing, 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Sources: tcp_log_buf.h version 9, Netflix' tcplog_dumper, Wireshark's pcapng-netflix-custom.c.
//!
//! The module decompresses no xz and skips tcp_log_verbose.

mod connection;
mod event;
mod hz;
mod info;
mod loss;
mod read;
mod stack;
mod write;

pub use connection::{BblogSection, TcpLogHeader};
pub use event::BblogEvent;
pub use hz::Hz;
pub use info::{TcpLogBuffer, flags, t_flags};
pub use loss::{BblogProblem, BblogProblemKind, BblogStats};
pub use read::{BblogItem, BblogPacket, BblogReader, BblogRecord, is_log};
pub use stack::{StackData, TcpLogBbr};
pub use write::BblogWriter;

pub use crate::blocks::BlockFault;
use crate::blocks::part;

/// Netflix' private enterprise number.
const PEN: u32 = crate::blocks::NETFLIX;
/// Longest block read, in bytes; a longer one is skipped. Blocks of a log have up to about 1,000.
pub const MAX_BLOCK: usize = 256 * 1_024;
/// Supported version of the records (TCP_LOG_BUF_VER).
pub const VERSION: u32 = 9;

/// Types of Netflix' options and of its custom blocks.
mod kind {
    pub(super) const VERSION: u32 = 1;
    pub(super) const TCP_INFO: u32 = 2;
    pub(super) const DUMP_INFO: u32 = 4;
    pub(super) const DUMP_TIME: u32 = 5;
    pub(super) const STACK_NAME: u32 = 6;

    pub(super) const EVENT_BLOCK: u32 = 1;
    pub(super) const SKIPPED_BLOCK: u32 = 2;
}

/// Bytes of an enhanced packet that are kept: family, IPv6 header, TCP header with all options.
const SNAPLEN: u32 = 104;

/// A C structure as fields at their offsets, all little-endian; bytes between them are zero.
macro_rules! layout {
    (
        $(#[$about:meta])*
        pub struct $name:ident of $len:literal bytes {
            $($(#[$note:meta])* $field:ident: $kind:ty = $at:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[$note])* pub $field: $kind,)*
        }

        impl $name {
            /// Bytes in a file.
            pub const LEN: usize = $len;

            /// Decodes the fields from their offsets.
            pub fn decode(bytes: &[u8; $len]) -> Self {
                Self { $($field: <$kind as $crate::bblog::Cell>::get(bytes, $at),)* }
            }

            /// Encodes the fields at their offsets.
            pub fn encode(&self) -> [u8; $len] {
                let mut bytes = [0; $len];
                $($crate::bblog::Cell::put(self.$field, &mut bytes, $at);)*
                bytes
            }

            /// Calls `see` with every number and its name, in the order of the file.
            pub fn each(&self, mut see: impl FnMut(&'static str, i128)) {
                $(if let Some(number) = $crate::bblog::Cell::number(self.$field) {
                    see(stringify!($field), number);
                })*
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::decode(&[0; $len])
            }
        }
    };
}
use layout;

/// A field of a C structure.
trait Cell {
    fn get(bytes: &[u8], at: usize) -> Self;
    fn put(self, bytes: &mut [u8], at: usize);
    fn number(self) -> Option<i128>;
}

macro_rules! cells {
    ($($kind:ty)*) => {
        $(impl Cell for $kind {
            fn get(bytes: &[u8], at: usize) -> Self {
                Self::from_le_bytes(part(bytes, at))
            }

            fn put(self, bytes: &mut [u8], at: usize) {
                bytes[at..at + size_of::<Self>()].copy_from_slice(&self.to_le_bytes());
            }

            fn number(self) -> Option<i128> {
                Some(self.into())
            }
        })*
    };
}
cells!(u8 u16 u32 u64 i32 i64);

impl<const N: usize> Cell for [u8; N] {
    fn get(bytes: &[u8], at: usize) -> Self {
        part(bytes, at)
    }

    fn put(self, bytes: &mut [u8], at: usize) {
        bytes[at..at + N].copy_from_slice(&self);
    }

    fn number(self) -> Option<i128> {
        None
    }
}
