//! Captures in the pcapng format (draft-ietf-opsawg-pcapng), section numbers below.
//!
//! One file is one section: a header that says what made it, one interface per tap (where in the
//! path somebody listened), and one enhanced packet block per packet with its direction. Stamps
//! are in nanoseconds; all numbers are little-endian on every machine, so that the same run gives
//! the same bytes.
//!
//! ```
//! use packet::wire::Endpoints;
//! use packet::{Flags, Segment};
//! use trace::pcapng::{Section, Seen, Tap, Way, Writer};
//! use units::{Duration, Instant, Offset};
//! # use ackclock_trace as trace;
//!
//! let between = Endpoints {
//!     src: "10.0.0.1:40000".parse().unwrap(),
//!     dst: "10.0.0.2:5001".parse().unwrap(),
//! };
//! let section = Section {
//!     application: "ackclock 0.1",
//!     epoch: Duration::from_secs(1_683_013_561),
//!     ..Section::default()
//! };
//! let mut writer = Writer::new(Vec::new(), &section)?;
//! let tap = writer.add_tap(&Tap { name: "sender", ..Tap::default() })?;
//! let segment = Segment { flags: Flags::ACK, payload: 1_448, ..Segment::default() };
//! let seen = Seen { tap, at: Instant::ZERO, way: Way::Out };
//! writer.segment(seen, &segment, &between, 1, Offset(0))?;
//! let file = writer.finish()?;
//! assert_eq!(&file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! What it does not do: it reads nothing, and it counts no drops (a tap in virtual time has none).

use std::io::{self, Write};

use packet::Segment;
use packet::wire::{Endpoints, emit};
use units::{Duration, Instant, Offset};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// `LINKTYPE_RAW`: the packet begins with its IP header.
const RAW: u16 = 101;

/// Codes of options: 3.5 (all blocks), 4.1 (section header), 4.2 (interface), 4.3 (packet).
pub(crate) mod option {
    pub(crate) const END: u16 = 0;
    pub(crate) const COMMENT: u16 = 1;
    pub(crate) const OS: u16 = 3;
    pub(crate) const APPLICATION: u16 = 4;
    pub(crate) const IF_NAME: u16 = 2;
    pub(crate) const IF_DESCRIPTION: u16 = 3;
    pub(crate) const IF_TSRESOL: u16 = 9;
    pub(crate) const EPB_FLAGS: u16 = 2;
}

/// What a whole file is about. Empty texts are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Section<'a> {
    /// System the capture is as if taken on (`shb_os`).
    pub os: &'a str,
    /// Program and version that made it (`shb_userappl`).
    pub application: &'a str,
    /// Anything else: the scenario, the seed (`opt_comment`).
    pub comment: &'a str,
    /// Time since 1970 at which virtual time begins. tcpdump takes a first packet at 0 for none,
    /// so `-ttttt` counts from the second packet then; any other moment will do.
    pub epoch: Duration,
}

/// A place where packets are seen. Empty texts are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tap<'a> {
    /// Short name (`if_name`).
    pub name: &'a str,
    /// Where it is (`if_description`).
    pub description: &'a str,
    /// Bytes kept of each packet, from its IP header on; 0 keeps all.
    pub snaplen: u32,
}

/// Number of a tap in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TapId(u32);

/// Direction of a packet as the host with the tap sees it (`epb_flags`, bits 0 and 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// It comes in.
    In,
    /// It goes out.
    Out,
}

/// Where, when and which way a packet was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seen {
    /// The tap.
    pub tap: TapId,
    /// The moment, in virtual time.
    pub at: Instant,
    /// The direction.
    pub way: Way,
}

/// Writes one section, block by block.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    epoch: Duration,
    snaplens: Vec<u32>,
    block: Block,
    packet: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn new(out: W, section: &Section<'_>) -> io::Result<Self> {
        let block = Block::default();
        let mut writer =
            Self { out, epoch: section.epoch, snaplens: Vec::new(), block, packet: Vec::new() };
        let block = writer.block.begin(SECTION_HEADER);
        block.u32(BYTE_ORDER_MAGIC);
        // Version 1.0, length of the section not given.
        block.u16(1);
        block.u16(0);
        block.bytes(&[0xff; 8]);
        block.text_option(option::COMMENT, section.comment);
        block.text_option(option::OS, section.os);
        block.text_option(option::APPLICATION, section.application);
        block.end_options();
        writer.out.write_all(writer.block.end())?;
        Ok(writer)
    }

    /// Declares a tap; it may be done at any time before its first packet.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn add_tap(&mut self, tap: &Tap<'_>) -> io::Result<TapId> {
        let id = TapId(self.snaplens.len() as u32);
        self.snaplens.push(if tap.snaplen == 0 { u32::MAX } else { tap.snaplen });
        let block = self.block.begin(INTERFACE_DESCRIPTION);
        block.u16(RAW);
        block.u16(0);
        block.u32(tap.snaplen);
        block.text_option(option::IF_NAME, tap.name);
        block.text_option(option::IF_DESCRIPTION, tap.description);
        block.option(option::IF_TSRESOL, &[9]);
        block.end_options();
        self.out.write_all(self.block.end())?;
        Ok(id)
    }

    /// Writes an IP packet. Packets should come in the order of time.
    ///
    /// # Errors
    ///
    /// Those of `out`; `InvalidInput` if the tap is of another file.
    pub fn packet(&mut self, seen: Seen, packet: &[u8]) -> io::Result<()> {
        let snaplen = self.snaplens.get(seen.tap.0 as usize).copied().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the tap is not one of this capture")
        })?;
        let kept = packet.len().min(snaplen as usize);
        let stamp = self.epoch.as_nanos().saturating_add(seen.at.as_nanos());
        let block = self.block.begin(ENHANCED_PACKET);
        block.u32(seen.tap.0);
        block.u32((stamp >> 32) as u32);
        block.u32(stamp as u32);
        block.u32(kept as u32);
        block.u32(packet.len() as u32);
        block.padded(&packet[..kept]);
        let flags = match seen.way {
            Way::In => 1_u32,
            Way::Out => 2,
        };
        block.option(option::EPB_FLAGS, &flags.to_le_bytes());
        block.end_options();
        self.out.write_all(self.block.end())
    }

    /// Writes a segment as a packet ([`emit`] explains `id` and `offset`).
    ///
    /// # Errors
    ///
    /// Those of [`Writer::packet`]; `InvalidInput` if the segment cannot be a packet.
    pub fn segment(
        &mut self,
        seen: Seen,
        segment: &Segment,
        between: &Endpoints,
        id: u16,
        offset: Offset,
    ) -> io::Result<()> {
        let mut packet = core::mem::take(&mut self.packet);
        packet.clear();
        let written = emit(segment, between, id, offset, &mut packet)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
            .and_then(|()| self.packet(seen, &packet));
        self.packet = packet;
        written
    }

    /// Flushes and gives the output back.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A block under construction (3.1): type, total length, body, total length again.
#[derive(Debug, Default)]
pub(crate) struct Block(Vec<u8>);

impl Block {
    pub(crate) fn begin(&mut self, kind: u32) -> &mut Self {
        self.0.clear();
        self.u32(kind);
        // The total length takes this place at the end.
        self.u32(0);
        self
    }

    pub(crate) fn end(&mut self) -> &[u8] {
        let total = (self.0.len() as u32 + 4).to_le_bytes();
        self.0[4..8].copy_from_slice(&total);
        self.bytes(&total);
        &self.0
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn u16(&mut self, n: u16) {
        self.bytes(&n.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, n: u32) {
        self.bytes(&n.to_le_bytes());
    }

    /// `bytes`, filled up with zeros to a multiple of four.
    pub(crate) fn padded(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// A text, unless it is empty; what the length field cannot count is cut off.
    pub(crate) fn text_option(&mut self, code: u16, text: &str) {
        if !text.is_empty() {
            let end = text.floor_char_boundary(usize::from(u16::MAX));
            self.option(code, &text.as_bytes()[..end]);
        }
    }

    /// An option (3.5) of at most 65,535 bytes.
    pub(crate) fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }

    pub(crate) fn end_options(&mut self) {
        self.u16(option::END);
        self.u16(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_bytes_of_the_draft() {
        let section = Section { epoch: Duration::from_nanos(1 << 32), ..Section::default() };
        let mut writer = Writer::new(Vec::new(), &section).unwrap();
        let tap = writer.add_tap(&Tap { name: "abc", snaplen: 4, ..Tap::default() }).unwrap();
        let seen = Seen { tap, at: Instant::from_nanos(5), way: Way::Out };
        writer.packet(seen, &[1, 2, 3, 4, 5]).unwrap();
        let file = writer.finish().unwrap();

        let header = [
            &[0x0a, 0x0d, 0x0d, 0x0a, 32, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..],
            &[0xff; 8],
            &[0, 0, 0, 0, 32, 0, 0, 0],
        ]
        .concat();
        let interface = [
            &[1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 4, 0, 0, 0][..],
            &[2, 0, 3, 0, b'a', b'b', b'c', 0, 9, 0, 1, 0, 9, 0, 0, 0],
            &[0, 0, 0, 0, 40, 0, 0, 0],
        ]
        .concat();
        let packet = [
            &[6, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0][..],
            &[4, 0, 0, 0, 5, 0, 0, 0, 1, 2, 3, 4, 2, 0, 4, 0, 2, 0, 0, 0],
            &[0, 0, 0, 0, 48, 0, 0, 0],
        ]
        .concat();
        assert_eq!(file, [header, interface, packet].concat());
    }

    #[test]
    fn a_tap_of_another_file_is_refused() {
        let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
        let seen = Seen { tap: TapId(0), at: Instant::ZERO, way: Way::In };
        let error = writer.packet(seen, &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
