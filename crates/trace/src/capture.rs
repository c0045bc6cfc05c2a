//! Captures, frame by frame: pcap and pcapng, of either byte order, whole or damaged.
//!
//! [`Reader`] streams: it keeps the frame at hand and one read of the file. Behind a fault it goes
//! on where a frame can be found again, and reports what was lost ([`CaptureProblem`]).
//!
//! ```
//! use trace::capture::{Item, Reader};
//! # use ackclock_trace as trace;
//!
//! // A file header (little-endian, microseconds, raw IP), and a frame of three bytes.
//! let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
//! file.extend([96, 0, 0, 0, 101, 0, 0, 0]);
//! file.extend([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 60, 0, 0, 0, 0x45, 0, 0]);
//! let mut reader = Reader::new(&file[..])?;
//! let Some(Item::Frame(frame)) = reader.next()? else { panic!() };
//! assert_eq!((frame.number, frame.offset, frame.original), (1, 24, 60));
//! assert_eq!(frame.at.unwrap().as_nanos(), 1_000_002_000);
//! assert_eq!(frame.bytes, [0x45, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, and for the variant of pcap with
//! longer records libpcap's sf-pcap.c.
//!
//! What it does not do: it looks into no frame but for the direction that Linux' cooked header
//! tells, it unpacks nothing (that is [`unpack`](crate::unpack)), and names and keys in a pcapng
//! file are passed over.

mod pcap;
mod pcapng;
mod problem;
mod read;
#[cfg(test)]
mod tests;

pub use problem::{CaptureProblem, CaptureProblemKind, OpenError};
pub use read::Reader;

use packet::wire::Link;
use units::Duration;

use crate::pcapng::Way;

/// Longest frame taken, in bytes: tcpdump's greatest snap length, which BIG TCP may double.
pub const MAX_FRAME: usize = 1_024 * 1_024;

/// One thing that a capture tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Something is wrong; reading goes on.
    Problem(CaptureProblem),
}

/// A captured frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its number in the file, from 1, as Wireshark counts.
    pub number: u64,
    /// Byte of the (unpacked) file where its record begins.
    pub offset: u64,
    /// When, since 1970; `None` in a simple packet block, which has no stamp.
    pub at: Option<Duration>,
    /// Number of the interface in the file, from 0 through all sections.
    pub interface: u32,
    /// What stands before the IP header: a LINKTYPE number.
    pub linktype: u16,
    /// Did it come in or go out, if the file tells?
    pub way: Option<Way>,
    /// Bytes it had on the wire.
    pub original: u32,
    /// Those of them that were captured.
    pub bytes: &'a [u8],
}

impl Frame<'_> {
    /// The header that stands before the IP header, if it is one this project reads.
    pub const fn link(&self) -> Option<Link> {
        Link::from_linktype(self.linktype)
    }
}

/// A capture point of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// LINKTYPE number.
    pub linktype: u16,
    /// Its name (`if_name`), if the file tells.
    pub name: String,
    /// Bytes captured of each frame at most; 0 if not limited.
    pub snaplen: u32,
    /// Packets it did not capture for want of room (`isb_ifdrop`, `isb_osdrop`, `epb_dropcount`).
    pub dropped: u64,
    /// Frames of it read so far.
    pub frames: u64,
}

/// What a capture has and has not, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Frames read.
    pub frames: u64,
    /// Sections (1 in pcap).
    pub sections: u64,
    /// Blocks that hold no frame and are of no use here.
    pub other_blocks: u64,
    /// Bytes skipped because they make no sense.
    pub skipped_bytes: u64,
    /// Problems told.
    pub problems: u64,
}

/// The direction that Linux' cooked headers tell: packet type 4 is outgoing, 0 to us
/// (draft-ietf-opsawg-pcaplinktype; `PACKET_OUTGOING`, `PACKET_HOST` of linux/if_packet.h).
fn cooked_way(linktype: u16, bytes: &[u8]) -> Option<Way> {
    let kind = match linktype {
        113 => u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]),
        276 => u16::from(*bytes.get(10)?),
        _ => return None,
    };
    match kind {
        0 => Some(Way::In),
        4 => Some(Way::Out),
        _ => None,
    }
}
