//! Writes captures in the pcapng format (draft-ietf-opsawg-pcapng, section numbers below).
//!
//! One file is one section: a header that names its program, one interface per capture point, and
//! one enhanced packet block per packet with its direction. Timestamps are in nanoseconds; all
//! numbers are little-endian on every host, so that the same run gives the same bytes.
//!
//! ```
//! use packet::wire::Endpoints;
//! use packet::{Flags, Segment};
//! use trace::pcapng::{PcapngSection, PacketMeta, PcapngInterface, PacketDirection, PcapngWriter};
//! use units::{Duration, Instant, Offset};
//! # use ackclock_trace as trace;
//!
//! let between = Endpoints {
//!     src: "10.0.0.1:40000".parse().unwrap(),
//!     dst: "10.0.0.2:5001".parse().unwrap(),
//! };
//! let section = PcapngSection {
//!     application: "ackclock 0.1",
//!     epoch: Duration::from_secs(1_683_013_561),
//!     ..PcapngSection::default()
//! };
//! let mut writer = PcapngWriter::new(Vec::new(), &section)?;
//! let tap = writer.add_interface(&PcapngInterface { name: "sender", ..PcapngInterface::default() })?;
//! let segment = Segment { flags: Flags::ACK, payload: 1_448, ..Segment::default() };
//! let seen = PacketMeta { tap, at: Instant::ZERO, way: PacketDirection::Out };
//! writer.segment(seen, &segment, &between, 1, Offset(0))?;
//! let file = writer.finish()?;
//! assert_eq!(&file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The module reads nothing and counts no drops (a tap in virtual time has none).

use std::io::{self, Write};

use packet::wire::{Endpoints, emit, emit_too_big};
use packet::{PacketTooBig, Segment};
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

/// Metadata of a file. Empty strings are omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PcapngSection<'a> {
    /// Operating system of the capture (`shb_os`).
    pub os: &'a str,
    /// Program and version that wrote it (`shb_userappl`).
    pub application: &'a str,
    /// Comment: the scenario, the seed (`opt_comment`).
    pub comment: &'a str,
    /// Time since 1970 at which virtual time begins. It should not be 0: tcpdump treats a first
    /// packet at 0 as absent, so that `-ttttt` counts from the second packet.
    pub epoch: Duration,
}

/// A capture point. Empty strings are omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PcapngInterface<'a> {
    /// Short name (`if_name`).
    pub name: &'a str,
    /// Description (`if_description`).
    pub description: &'a str,
    /// Bytes kept of each packet, from its IP header on; 0 keeps all.
    pub snaplen: u32,
}

/// Number of an interface in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(u32);

/// Direction of a packet relative to the host with the capture point (`epb_flags`, bits 0 and 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketDirection {
    /// Inbound.
    In,
    /// Outbound.
    Out,
}

/// Capture point, time and direction of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketMeta {
    /// The capture point.
    pub tap: InterfaceId,
    /// The time, in virtual time.
    pub at: Instant,
    /// The direction.
    pub way: PacketDirection,
}

/// Writes one section, block by block.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    epoch: Duration,
    snaplens: Vec<u32>,
    block: BlockBuilder,
    packet: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn new(out: W, section: &PcapngSection<'_>) -> io::Result<Self> {
        let block = BlockBuilder::default();
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

    /// Declares a capture point, at any time before its first packet.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn add_interface(&mut self, tap: &PcapngInterface<'_>) -> io::Result<InterfaceId> {
        let id = InterfaceId(self.snaplens.len() as u32);
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
    pub fn packet(&mut self, seen: PacketMeta, packet: &[u8]) -> io::Result<()> {
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
            PacketDirection::In => 1_u32,
            PacketDirection::Out => 2,
        };
        block.option(option::EPB_FLAGS, &flags.to_le_bytes());
        block.end_options();
        self.out.write_all(self.block.end())
    }

    /// Writes a segment as a packet ([`emit`] explains `id` and `offset`).
    ///
    /// # Errors
    ///
    /// Those of [`PcapngWriter::packet`]; `InvalidInput` if the segment cannot be a packet.
    pub fn segment(
        &mut self,
        seen: PacketMeta,
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

    /// Writes an ICMP error about a segment between these endpoints.
    ///
    /// # Errors
    ///
    /// Those of [`PcapngWriter::segment`].
    pub fn too_big(
        &mut self,
        seen: PacketMeta,
        message: &PacketTooBig,
        between: &Endpoints,
    ) -> io::Result<()> {
        let mut packet = Vec::new();
        emit_too_big(message, between, &mut packet)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.packet(seen, &packet)
    }

    /// Flushes and returns the output.
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
pub(crate) struct BlockBuilder(Vec<u8>);

impl BlockBuilder {
    pub(crate) fn begin(&mut self, kind: u32) -> &mut Self {
        self.0.clear();
        self.u32(kind);
        // Placeholder for the total length.
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

    /// Appends `bytes`, padded with zeros to a multiple of four.
    pub(crate) fn padded(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Appends a text option, unless it is empty; the text is truncated to the range of the length
    /// field.
    pub(crate) fn text_option(&mut self, code: u16, text: &str) {
        if !text.is_empty() {
            let end = text.floor_char_boundary(usize::from(u16::MAX));
            self.option(code, &text.as_bytes()[..end]);
        }
    }

    /// Appends an option (3.5) of at most 65,535 bytes.
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
        let section =
            PcapngSection { epoch: Duration::from_nanos(1 << 32), ..PcapngSection::default() };
        let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
        let tap = writer
            .add_interface(&PcapngInterface {
                name: "abc",
                snaplen: 4,
                ..PcapngInterface::default()
            })
            .unwrap();
        let seen = PacketMeta { tap, at: Instant::from_nanos(5), way: PacketDirection::Out };
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
        let mut writer = PcapngWriter::new(Vec::new(), &PcapngSection::default()).unwrap();
        let seen = PacketMeta { tap: InterfaceId(0), at: Instant::ZERO, way: PacketDirection::In };
        let error = writer.packet(seen, &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
