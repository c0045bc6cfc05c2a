//! Writes a log as tcplog_dumper does: a section, its interface, then records.

use std::io::{self, Write};

use packet::Segment;
use packet::wire::{Endpoints, emit};
use units::Offset;

use super::{BblogSection, PEN, SNAPLEN, TcpLogBuffer, VERSION, kind};
use crate::blocks::{CUSTOM, ENHANCED_PACKET, INTERFACE_DESCRIPTION, SECTION_HEADER};
use crate::pcapng::{BlockBuilder, PacketDirection, option};

/// Netflix' options have binary data and may be copied.
const CUSTOM_OPTION: u16 = 2_989;
/// `LINKTYPE_NULL`: the address family, then the IP header.
const LINKTYPE_NULL: u16 = 0;
/// Time to live of the IP headers that tcplog_dumper synthesizes.
const TTL: u8 = 127;

/// Writes one part of a log.
#[derive(Debug)]
pub struct BblogWriter<W> {
    out: W,
    block: BlockBuilder,
    value: Vec<u8>,
    packet: Vec<u8>,
    /// Local and remote address; `None` allows no packets.
    between: Option<Endpoints>,
    boot_micros: i64,
}

impl<W: Write> BblogWriter<W> {
    /// Begins a section with its header and its interface.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn new(out: W, section: &BblogSection) -> io::Result<Self> {
        let connection = section.connection.as_ref();
        let mut writer = Self {
            out,
            block: BlockBuilder::default(),
            value: Vec::new(),
            packet: Vec::new(),
            between: connection.map(|c| Endpoints { src: c.local, dst: c.remote }),
            boot_micros: connection.map_or(0, |c| c.boot_micros),
        };
        writer.section(section)?;
        let block = writer.block.begin(INTERFACE_DESCRIPTION);
        block.u16(LINKTYPE_NULL);
        block.u16(0);
        block.u32(SNAPLEN);
        block.end_options();
        writer.send()?;
        Ok(writer)
    }

    fn section(&mut self, section: &BblogSection) -> io::Result<()> {
        let block = self.block.begin(SECTION_HEADER);
        block.u32(0x1a2b_3c4d);
        // Version 1.0, length of the section not given.
        block.u16(1);
        block.u16(0);
        block.bytes(&[0xff; 8]);
        block.text_option(option::COMMENT, &section.comment);
        block.text_option(option::APPLICATION, &section.application);
        self.netflix(kind::VERSION, &[&section.version.unwrap_or(VERSION).to_le_bytes()]);
        if let Some(dumped) = section.dumped {
            let seconds = dumped.as_nanos() / 1_000_000_000;
            self.netflix(kind::DUMP_TIME, &[&seconds.to_le_bytes()]);
        }
        if let Some(connection) = &section.connection {
            self.netflix(kind::DUMP_INFO, &[&connection.encode()]);
        }
        for (id, name) in &section.stacks {
            let end = name.floor_char_boundary(usize::from(u8::MAX));
            self.netflix(kind::STACK_NAME, &[&[*id], &name.as_bytes()[..end], &[0]]);
        }
        self.block.end_options();
        self.send()
    }

    /// Writes a record without a packet.
    ///
    /// # Errors
    ///
    /// Those of `out`; `InvalidInput` if the flags of the record include a packet.
    pub fn event(&mut self, info: &TcpLogBuffer) -> io::Result<()> {
        if info.has(super::flags::HDR) {
            return Err(invalid("the record has a packet: use `packet`"));
        }
        let block = self.block.begin(CUSTOM);
        block.u32(PEN);
        block.u32(kind::EVENT_BLOCK);
        self.netflix(kind::TCP_INFO, &[&info.encode()]);
        self.block.end_options();
        self.send()
    }

    /// Writes a record with the headers of its packet; captured payload bytes are zeros.
    ///
    /// # Errors
    ///
    /// Those of `out`; `InvalidInput` if the section has no connection, if the flags of the record
    /// lack a packet, if its time is before 1970, or if the segment does not fit a packet.
    pub fn packet(
        &mut self,
        info: &TcpLogBuffer,
        way: PacketDirection,
        segment: &Segment,
    ) -> io::Result<()> {
        let between = self.between.ok_or_else(|| invalid("the section has no connection"))?;
        if !info.has(super::flags::HDR) {
            return Err(invalid("the flags of the record lack a packet"));
        }
        let micros = info.uptime_micros().and_then(|up| up.checked_add(self.boot_micros));
        let micros = micros
            .and_then(|micros| u64::try_from(micros).ok())
            .ok_or_else(|| invalid("the time of the record is before 1970"))?;
        let (between, direction) = match way {
            PacketDirection::In => (between.reversed(), 1_u32),
            PacketDirection::Out => (between, 2),
        };
        self.headers(segment, &between)?;
        let total = self.packet.len() + segment.payload as usize;
        let kept = total.min(SNAPLEN as usize);
        self.packet.resize(kept, 0);

        let block = self.block.begin(ENHANCED_PACKET);
        block.u32(0);
        block.u32((micros >> 32) as u32);
        block.u32(micros as u32);
        block.u32(kept as u32);
        block.u32(total as u32);
        block.padded(&self.packet);
        self.netflix(kind::TCP_INFO, &[&info.encode()]);
        self.block.option(option::EPB_FLAGS, &direction.to_le_bytes());
        self.block.end_options();
        self.send()
    }

    /// Declares records lost before the next one.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn skipped(&mut self, records: u32) -> io::Result<()> {
        let block = self.block.begin(CUSTOM);
        block.u32(PEN);
        block.u32(kind::SKIPPED_BLOCK);
        block.u32(records);
        block.end_options();
        self.send()
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

    /// Address family and headers of a segment as tcplog_dumper synthesizes them: no
    /// identification, no flags, no ECN bits; checksums as of a payload of zeros.
    fn headers(&mut self, segment: &Segment, between: &Endpoints) -> io::Result<()> {
        let v4 = between.src.is_ipv4();
        let family: u32 = if v4 { 2 } else { 28 };
        let bare = Segment { payload: 0, ecn: 0, ..*segment };
        self.packet.clear();
        self.packet.extend_from_slice(&family.to_le_bytes());
        emit(&bare, between, 0, Offset(0), &mut self.packet)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let ip = &mut self.packet[4..];
        let (length_at, ttl_at, ip_len) = if v4 { (2, 8, 20) } else { (4, 7, 40) };
        let length = u32::from(u16::from_be_bytes([ip[length_at], ip[length_at + 1]]));
        let length = u16::try_from(length + segment.payload)
            .map_err(|_| invalid("the segment is too long for an IP packet"))?;
        ip[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
        ip[ttl_at] = TTL;
        if v4 {
            ip[6..8].fill(0);
            ip[10..12].fill(0);
            let sum = !folded(ip[..20].chunks_exact(2).map(word).sum());
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        // Zeros add nothing to the sum; the length in the pseudo-header does.
        let sum = &mut ip[ip_len + 16..ip_len + 18];
        let before = u64::from(!u16::from_be_bytes([sum[0], sum[1]]));
        let after = !folded(before + u64::from(segment.payload));
        sum.copy_from_slice(&after.to_be_bytes());
        Ok(())
    }

    /// Adds a Netflix option.
    fn netflix(&mut self, kind: u32, parts: &[&[u8]]) {
        self.value.clear();
        self.value.extend_from_slice(&PEN.to_le_bytes());
        self.value.extend_from_slice(&kind.to_le_bytes());
        parts.iter().for_each(|part| self.value.extend_from_slice(part));
        self.block.option(CUSTOM_OPTION, &self.value);
    }

    fn send(&mut self) -> io::Result<()> {
        self.out.write_all(self.block.end())
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

fn word(pair: &[u8]) -> u64 {
    u64::from(u16::from_be_bytes([pair[0], pair[1]]))
}

/// The sum of RFC 1071 with its carries folded in.
fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
