//! Reads a log record by record, and resumes after every fault.

use std::collections::VecDeque;
use std::io::{self, Read};

use packet::Segment;
use packet::wire::{Endpoints, Link, parse};
use units::Duration;

use super::connection::text;
use super::hz::HzEstimator;
use super::loss::{BblogProblem, BblogProblemKind, BblogStats};
use super::{
    BblogEvent, BblogSection, Hz, MAX_BLOCK, PEN, TcpLogBuffer, TcpLogHeader, VERSION, kind,
};
use crate::blocks::{
    BlockOptions, Blocks, CUSTOM, ENHANCED_PACKET, Endianness, FoundBlock, INTERFACE_DESCRIPTION,
    RawOption, SECTION_HEADER, part,
};
use crate::pcapng::{PacketDirection, option};

/// Most interfaces of a section; tcplog_dumper writes one.
const MOST_INTERFACES: usize = 64;

/// An item of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BblogItem {
    /// A section begins.
    Section(BblogSection),
    /// A record.
    Record(BblogRecord),
    /// A problem; reading continues.
    Problem(BblogProblem),
}

/// The state of a connection at an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BblogRecord {
    /// Byte offset of its block in the file.
    pub offset: u64,
    /// Time of the event, since 1970; `None` if unknown.
    pub at: Option<Duration>,
    /// The record.
    pub info: TcpLogBuffer,
    /// The packet, if the event is one of a packet.
    pub packet: Option<BblogPacket>,
}

/// A packet of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BblogPacket {
    /// Direction.
    pub way: PacketDirection,
    /// Addresses and ports.
    pub between: Endpoints,
    /// Headers.
    pub segment: Segment,
}

/// Reads a log with bounded memory.
#[derive(Debug)]
pub struct BblogReader<R> {
    blocks: Blocks<R>,
    body: Vec<u8>,
    ready: VecDeque<BblogItem>,
    in_section: bool,
    /// The connection of the current section, or of the last one that named it.
    connection: Option<TcpLogHeader>,
    /// Whether the current section names its connection.
    boot_known: bool,
    /// Offset of the current section, if it names no connection and that is not reported yet.
    untold: Option<u64>,
    interfaces: Vec<BblogInterface>,
    /// Number of the last record of the connection.
    serial: Option<u32>,
    /// Records declared as lost since then.
    declared: u64,
    clocks: HzEstimator,
    loss: BblogStats,
}

/// Properties of an interface.
#[derive(Debug, Clone, Copy)]
struct BblogInterface {
    link: Option<Link>,
    /// Timestamp unit in nanoseconds; `None` if it is not a whole number of them.
    unit_nanos: Option<u64>,
}

impl<R: Read> BblogReader<R> {
    /// Reads from `input`, which need not be buffered.
    pub fn new(input: R) -> Self {
        Self {
            blocks: Blocks::new(input, MAX_BLOCK),
            body: Vec::new(),
            ready: VecDeque::new(),
            in_section: false,
            connection: None,
            boot_known: false,
            untold: None,
            interfaces: Vec::new(),
            serial: None,
            declared: 0,
            clocks: HzEstimator::default(),
            loss: BblogStats::default(),
        }
    }

    /// Counts of records and losses so far.
    pub const fn loss(&self) -> &BblogStats {
        &self.loss
    }

    /// Estimate of `kern.hz` from the records so far.
    pub fn hz(&self) -> Option<Hz> {
        self.clocks.hz()
    }

    fn problem(&mut self, offset: u64, kind: BblogProblemKind) {
        self.loss.problems += 1;
        self.ready.push_back(BblogItem::Problem(BblogProblem { offset, kind }));
    }

    fn block(&mut self, offset: u64, kind: u32) {
        // A copy, since the body is in the buffer of `blocks`.
        let mut body = core::mem::take(&mut self.body);
        body.clear();
        body.extend_from_slice(self.blocks.body());
        self.decode(offset, kind, &body);
        self.body = body;
    }

    fn decode(&mut self, offset: u64, kind: u32, body: &[u8]) {
        let order = self.blocks.order();
        if !self.in_section && kind != SECTION_HEADER {
            self.in_section = true;
            self.problem(offset, BblogProblemKind::NoSection);
        }
        // 16 bytes of magic, version and length; 8 of link type and length; 20 of a packet's
        // header; 8 of number and type.
        let least = match kind {
            SECTION_HEADER => 16,
            INTERFACE_DESCRIPTION | CUSTOM => 8,
            ENHANCED_PACKET => 20,
            _ => {
                self.loss.foreign_blocks += 1;
                return;
            }
        };
        if body.len() < least {
            return self.problem(offset, BblogProblemKind::Short { bytes: body.len() });
        }
        match kind {
            SECTION_HEADER => self.section(offset, &body[16..], order),
            INTERFACE_DESCRIPTION => self.interface(body, order),
            ENHANCED_PACKET => self.packet(offset, body, order),
            _ => self.custom(offset, body, order),
        }
    }

    fn section(&mut self, offset: u64, options: &[u8], order: Endianness) {
        let mut section = BblogSection::default();
        let mut dump_info = None;
        let mut wrong = None;
        for found in BlockOptions::new(options, order) {
            let Ok(found) = found else {
                wrong = wrong.or(Some(BblogProblemKind::Option));
                break;
            };
            let expect = |value: &[u8], expected| {
                let found = value.len();
                (found != expected).then_some(BblogProblemKind::Length { found, expected })
            };
            let Some((kind, value)) = netflix(&found) else {
                match found.code {
                    option::COMMENT => section.comment = text(found.value),
                    option::APPLICATION => section.application = text(found.value),
                    _ => {}
                }
                continue;
            };
            let fault = match kind {
                kind::VERSION => expect(value, 4),
                kind::DUMP_TIME => expect(value, 8),
                kind::DUMP_INFO => expect(value, TcpLogHeader::LEN),
                kind::STACK_NAME if value.is_empty() => expect(value, 1),
                _ => None,
            };
            match (fault, kind) {
                (Some(fault), _) => wrong = wrong.or(Some(fault)),
                (None, kind::VERSION) => {
                    section.version = Some(u32::from_le_bytes(part(value, 0)));
                }
                (None, kind::DUMP_TIME) => {
                    let seconds = i64::from_le_bytes(part(value, 0));
                    section.dumped = u64::try_from(seconds)
                        .ok()
                        .and_then(|seconds| seconds.checked_mul(1_000_000_000))
                        .map(Duration::from_nanos);
                }
                (None, kind::DUMP_INFO) => {
                    dump_info = Some(TcpLogHeader::decode(&part(value, 0)));
                }
                // At most 256 stacks.
                (None, kind::STACK_NAME) if section.stack_name(value[0]).is_none() => {
                    section.stacks.push((value[0], text(&value[1..])));
                }
                _ => {}
            }
        }
        section.connection = dump_info.clone().flatten();
        self.begin(&section);
        let version = section.version.filter(|version| *version != VERSION);
        self.ready.push_back(BblogItem::Section(section));
        if let Some(wrong) = wrong {
            self.problem(offset, wrong);
        }
        if let Some(found) = version {
            self.problem(offset, BblogProblemKind::Version { found });
        }
        match dump_info {
            // Reported only with a record: the section may be another program's.
            None => self.untold = Some(offset),
            Some(None) => self.problem(offset, BblogProblemKind::Family),
            Some(Some(_)) => {}
        }
    }

    fn begin(&mut self, section: &BblogSection) {
        self.in_section = true;
        self.untold = None;
        self.interfaces.clear();
        self.boot_known = section.connection.is_some();
        let Some(connection) = &section.connection else { return };
        if self.connection.as_ref().is_some_and(|last| !last.same_as(connection)) {
            self.serial = None;
            self.declared = 0;
        }
        self.connection = Some(connection.clone());
    }

    fn interface(&mut self, body: &[u8], order: Endianness) {
        if self.interfaces.len() == MOST_INTERFACES {
            return;
        }
        let mut unit_nanos = Some(1_000);
        for found in BlockOptions::new(&body[8..], order).flatten() {
            if let (option::IF_TSRESOL, [power]) = (found.code, found.value) {
                unit_nanos = 9_u32.checked_sub(u32::from(*power)).map(|zeros| 10_u64.pow(zeros));
            }
        }
        let link = Link::from_linktype(order.u16(body, 0));
        self.interfaces.push(BblogInterface { link, unit_nanos });
    }

    fn packet(&mut self, offset: u64, body: &[u8], order: Endianness) {
        let captured = order.u32(body, 12) as usize;
        let Some(data) = body[20..].get(..captured) else {
            return self.problem(offset, BblogProblemKind::Short { bytes: body.len() });
        };
        let options = body[20..].get(captured.next_multiple_of(4)..).unwrap_or_default();
        let (info, way) = match self.record(offset, options, order) {
            (Some(info), way) => (info, way),
            (None, _) => {
                self.loss.foreign_blocks += 1;
                return;
            }
        };
        let number = order.u32(body, 0) as usize;
        let interface = self
            .interfaces
            .get(number)
            .copied()
            .unwrap_or(BblogInterface { link: Some(Link::Loopback), unit_nanos: Some(1_000) });
        let way = way.unwrap_or(match info.event() {
            BblogEvent::IN => PacketDirection::In,
            _ => PacketDirection::Out,
        });
        let packet = match parse(data, interface.link.unwrap_or(Link::Loopback)) {
            Ok(parsed) => {
                Some(BblogPacket { way, between: parsed.endpoints, segment: parsed.segment })
            }
            Err(error) => {
                self.problem(offset, BblogProblemKind::Packet(error));
                None
            }
        };
        let stamp = u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8));
        let stamped = interface.unit_nanos.and_then(|unit| stamp.checked_mul(unit));
        let at = self.time(&info).or(stamped.map(Duration::from_nanos));
        self.push_record(BblogRecord { offset, at, info, packet });
    }

    fn custom(&mut self, offset: u64, body: &[u8], order: Endianness) {
        if order.u32(body, 0) != PEN {
            self.loss.foreign_blocks += 1;
            return;
        }
        let rest = &body[8..];
        match Endianness::Little.u32(body, 4) {
            // Options of these blocks are little-endian in any section.
            kind::EVENT_BLOCK => match self.record(offset, rest, Endianness::Little) {
                (Some(info), _) => {
                    let at = self.time(&info);
                    self.push_record(BblogRecord { offset, at, info, packet: None });
                }
                (None, _) => self.problem(offset, BblogProblemKind::NoRecord),
            },
            kind::SKIPPED_BLOCK if rest.len() < 4 => {
                self.problem(offset, BblogProblemKind::Short { bytes: body.len() });
            }
            kind::SKIPPED_BLOCK => {
                let lost = u64::from(Endianness::Little.u32(rest, 0));
                self.declared += lost;
                self.loss.declared += lost;
            }
            _ => self.loss.foreign_blocks += 1,
        }
    }

    /// Decodes the record in the options of a block, and the direction of its packet.
    fn record(
        &mut self,
        offset: u64,
        options: &[u8],
        order: Endianness,
    ) -> (Option<TcpLogBuffer>, Option<PacketDirection>) {
        let (mut info, mut way, mut wrong) = (None, None, None);
        for found in BlockOptions::new(options, order) {
            let Ok(found) = found else {
                wrong = wrong.or(Some(BblogProblemKind::Option));
                break;
            };
            match netflix(&found) {
                Some((kind::TCP_INFO, value)) => match value.first_chunk() {
                    Some(bytes) if value.len() == TcpLogBuffer::LEN => {
                        info = Some(TcpLogBuffer::decode(bytes));
                    }
                    _ => {
                        let (found, expected) = (value.len(), TcpLogBuffer::LEN);
                        wrong = wrong.or(Some(BblogProblemKind::Length { found, expected }));
                    }
                },
                None if found.code == option::EPB_FLAGS && found.value.len() == 4 => {
                    way = match order.u32(found.value, 0) & 3 {
                        1 => Some(PacketDirection::In),
                        2 => Some(PacketDirection::Out),
                        _ => None,
                    };
                }
                _ => {}
            }
        }
        if let Some(wrong) = wrong {
            self.problem(offset, wrong);
        }
        (info, way)
    }

    /// Time of a record, since 1970.
    fn time(&self, info: &TcpLogBuffer) -> Option<Duration> {
        let boot = self.connection.as_ref().filter(|_| self.boot_known)?.boot_micros;
        let micros = u64::try_from(info.uptime_micros()?.checked_add(boot)?).ok()?;
        micros.checked_mul(1_000).map(Duration::from_nanos)
    }

    /// Counts a record and those missing before it.
    fn push_record(&mut self, record: BblogRecord) {
        let (offset, to) = (record.offset, record.info.serial);
        if let Some(section) = self.untold.take() {
            self.problem(section, BblogProblemKind::NoConnection);
        }
        let declared = core::mem::take(&mut self.declared);
        match self.serial.map(|from| (from, to.wrapping_sub(from))) {
            None if to > 0 => {
                self.loss.missing += u64::from(to);
                self.problem(offset, BblogProblemKind::Late { serial: to });
            }
            None => {}
            Some((_, 1)) if declared == 0 => {}
            Some((_, 1)) => {
                self.loss.missing += declared;
                self.problem(offset, BblogProblemKind::Declared { records: declared });
            }
            Some((from, step)) if step == 0 || step > u32::MAX / 2 => {
                self.problem(offset, BblogProblemKind::Back { from, to });
            }
            Some((from, step)) => {
                self.loss.missing += u64::from(step - 1).max(declared);
                self.problem(offset, BblogProblemKind::Gap { from, to, declared });
            }
        }
        self.serial = Some(to);
        self.clocks.see(&record.info);
        self.loss.records += 1;
        self.loss.unknown_events += u64::from(record.info.event().name().is_none());
        self.ready.push_back(BblogItem::Record(record));
    }
}

/// Packets without Netflix' data after which a pcapng file is no BBLog.
const MAX_FOREIGN_PACKETS: usize = 16;

/// Whether a pcapng file with this beginning is a BBLog: one of its first packets, or a block between
/// them, has Netflix' data. `None` if none has and the beginning has fewer packets.
pub fn is_log(begin: &[u8]) -> Option<bool> {
    let mut blocks = Blocks::new(begin, MAX_BLOCK);
    let mut packets = 0;
    while let Some(found) = blocks.find() {
        let FoundBlock::Block { kind, .. } = found else { continue };
        let (body, order) = (blocks.body(), blocks.order());
        packets += usize::from(kind == ENHANCED_PACKET);
        let options = match kind {
            SECTION_HEADER => body.get(16..),
            ENHANCED_PACKET => body.get(12..20).and_then(|lengths| {
                let captured = order.u32(lengths, 0) as usize;
                body.get(20 + captured.next_multiple_of(4)..)
            }),
            CUSTOM => {
                if body.len() >= 4 && order.u32(body, 0) == PEN {
                    return Some(true);
                }
                None
            }
            _ => None,
        };
        let mut options =
            BlockOptions::new(options.unwrap_or_default(), order).map_while(Result::ok);
        if options.any(|option| netflix(&option).is_some()) {
            return Some(true);
        }
        if packets > MAX_FOREIGN_PACKETS {
            return Some(false);
        }
    }
    None
}

/// Type and data of a Netflix option.
fn netflix<'a>(option: &RawOption<'a>) -> Option<(u32, &'a [u8])> {
    let (kind, data) = option.custom(PEN)?.split_first_chunk()?;
    // The type is little-endian whatever the section is.
    Some((u32::from_le_bytes(*kind), data))
}

impl<R: Read> Iterator for BblogReader<R> {
    type Item = io::Result<BblogItem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            match self.blocks.find() {
                None => return self.blocks.window().take_error().map(Err),
                Some(FoundBlock::Block { offset, kind }) => self.block(offset, kind),
                Some(FoundBlock::Skipped { offset, bytes, fault }) => {
                    self.loss.skipped_bytes += bytes;
                    self.problem(offset, BblogProblemKind::Skipped { bytes, fault });
                }
            }
        }
    }
}
