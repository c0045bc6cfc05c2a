//! Reads captures frame by frame: pcap and pcapng, of either byte order, also damaged files.
//!
//! [`CaptureReader`] streams: it keeps the current frame and one read of the file. After a fault it
//! resumes at the next frame that it can find, and reports the loss ([`CaptureProblem`]).
//!
//! ```
//! use trace::capture::{CaptureItem, CaptureReader};
//! # use ackclock_trace as trace;
//!
//! // A file header (little-endian, microseconds, raw IP), and a frame of three bytes.
//! let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
//! file.extend([96, 0, 0, 0, 101, 0, 0, 0]);
//! file.extend([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 60, 0, 0, 0, 0x45, 0, 0]);
//! let mut reader = CaptureReader::new(&file[..])?;
//! let Some(CaptureItem::Frame(frame)) = reader.next()? else { panic!() };
//! assert_eq!((frame.number, frame.offset, frame.original), (1, 24, 60));
//! assert_eq!(frame.at.unwrap().as_nanos(), 1_000_002_000);
//! assert_eq!(frame.bytes, [0x45, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, and for the variant of pcap with
//! longer records libpcap's sf-pcap.c.
//!
//! The module parses no frames except the direction in Linux' cooked header and decompresses
//! nothing (see [`unpack`](crate::unpack)); names in a pcapng file are skipped.

mod pcap;
mod pcapng;
mod problem;
mod read;
#[cfg(test)]
mod tests;

pub use problem::{CaptureProblem, CaptureProblemKind, OpenError};
pub use read::CaptureReader;

use packet::wire::Link;
use units::Duration;

use crate::pcapng::PacketDirection;

/// Longest frame read, in bytes: tcpdump's largest snap length, which BIG TCP may double.
pub const MAX_FRAME: usize = 1_024 * 1_024;

/// An item of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureItem<'a> {
    /// A frame.
    Frame(CapturedFrame<'a>),
    /// A problem; reading continues.
    Problem(CaptureProblem),
    /// Secrets of TLS in the file: a key log.
    Secrets(&'a [u8]),
}

/// A captured frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedFrame<'a> {
    /// Frame number in the file, from 1, as Wireshark counts.
    pub number: u64,
    /// Offset of its record in the (decompressed) file.
    pub offset: u64,
    /// Time since 1970; `None` in a simple packet block, which has no timestamp.
    pub at: Option<Duration>,
    /// Index of the interface in the file, from 0 across all sections.
    pub interface: u32,
    /// LINKTYPE number of the header before the IP header.
    pub linktype: u16,
    /// Direction, if the file has it.
    pub way: Option<PacketDirection>,
    /// Length on the wire.
    pub original: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
}

impl CapturedFrame<'_> {
    /// The header before the IP header, if it is supported.
    pub const fn link(&self) -> Option<Link> {
        Link::from_linktype(self.linktype)
    }
}

/// A capture point of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaptureInterface {
    /// LINKTYPE number.
    pub linktype: u16,
    /// Its name (`if_name`); empty if absent.
    pub name: String,
    /// Snap length in bytes; 0 if unlimited.
    pub snaplen: u32,
    /// Packets dropped by the capture (`isb_ifdrop`, `isb_osdrop`, `epb_dropcount`).
    pub dropped: u64,
    /// Frames read so far.
    pub frames: u64,
}

/// Counts of frames and problems of a capture so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureStats {
    /// Frames read.
    pub frames: u64,
    /// Sections (1 in pcap).
    pub sections: u64,
    /// Ignored blocks without frames.
    pub other_blocks: u64,
    /// Bytes skipped as invalid.
    pub skipped_bytes: u64,
    /// Problems reported.
    pub problems: u64,
}

/// The direction in Linux' cooked headers: packet type 4 is outgoing, 0 is to this host
/// (draft-ietf-opsawg-pcaplinktype; `PACKET_OUTGOING`, `PACKET_HOST` of linux/if_packet.h).
fn cooked_direction(linktype: u16, bytes: &[u8]) -> Option<PacketDirection> {
    let kind = match linktype {
        113 => u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]),
        276 => u16::from(*bytes.get(10)?),
        _ => return None,
    };
    match kind {
        0 => Some(PacketDirection::In),
        4 => Some(PacketDirection::Out),
        _ => None,
    }
}
