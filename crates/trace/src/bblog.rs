//! FreeBSD's Black Box Log as tcplog_dumper writes it: custom blocks and options in pcapng.
//!
//! A record is the state of a connection at an event ([`Info`], tcp_log_buffer of
//! sys/netinet/tcp_log_buf.h), with the packet's headers where the event is one of a packet.
//! [`Writer`] makes files that tshark dissects. [`Reader`] takes such files on any system, whole or
//! damaged: it goes on behind every fault, says where it was ([`BblogProblem`]) and what is missing
//! ([`Loss`]), and finds out `kern.hz`, which no file tells ([`Hz`]).
//!
//! ```
//! use trace::bblog::{Event, Info, Item, Reader, Section, Writer, flags};
//! # use ackclock_trace as trace;
//!
//! let section = Section { stacks: vec![(0, "freebsd".to_owned())], ..Section::default() };
//! let mut writer = Writer::new(Vec::new(), &section)?;
//! let info = Info { event_id: Event::RTO.0, snd_cwnd: 1_448, ..Info::default() };
//! writer.event(&info)?;
//! let file = writer.finish()?;
//!
//! let mut reader = Reader::new(&file[..]);
//! let records: Vec<Info> = reader
//!     .by_ref()
//!     .filter_map(|item| match item.unwrap() {
//!         Item::Record(record) => Some(record.info),
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
//! What it does not do: it unpacks no xz, and tcp_log_verbose is passed over.

mod connection;
mod event;
mod hz;
mod info;
mod loss;
mod read;
mod stack;
mod write;

pub use connection::{Connection, Section};
pub use event::Event;
pub use hz::Hz;
pub use info::{Info, flags, t_flags};
pub use loss::{BblogProblem, BblogProblemKind, Loss};
pub use read::{Item, Packet, Reader, Record, is_log};
pub use stack::{Bbr, Stack};
pub use write::Writer;

pub use crate::blocks::BlockFault;
use crate::blocks::part;

/// Netflix' private enterprise number.
const PEN: u32 = crate::blocks::NETFLIX;
/// Longest block taken, in bytes; a longer one is skipped. Blocks of a log have up to about 1,000.
pub const MAX_BLOCK: usize = 256 * 1_024;
/// Version of the records (TCP_LOG_BUF_VER) this module knows.
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
            /// Bytes it takes in a file.
            pub const LEN: usize = $len;

            /// Its fields, from their places.
            pub fn decode(bytes: &[u8; $len]) -> Self {
                Self { $($field: <$kind as $crate::bblog::Cell>::get(bytes, $at),)* }
            }

            /// Its fields, at their places.
            pub fn encode(&self) -> [u8; $len] {
                let mut bytes = [0; $len];
                $($crate::bblog::Cell::put(self.$field, &mut bytes, $at);)*
                bytes
            }

            /// Shows every number with its name, in the order of the file.
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

/// What a field of a C structure may be.
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
