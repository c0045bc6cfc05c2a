//! pcap: a file header, and a record for each frame (draft-ietf-opsawg-pcap).
//!
//! A record has no magic number. After an invalid record, the next one is found by its constraints:
//! lengths within bounds, a time near the last one, and valid records after it.

use std::io::Read;

use units::Duration;

use super::read::NextFrame;
use super::{
    CaptureInterface, CaptureProblem, CaptureProblemKind, CaptureStats, CapturedFrame, MAX_FRAME,
    cooked_direction,
};
use crate::blocks::Endianness;
use crate::pcapng::PacketDirection;
use crate::window::Window;

/// Bytes of the file header.
const FILE_HEADER: usize = 24;
/// tcpdump's limit for captured bytes (`MAXIMUM_SNAPLEN`): files with a smaller snap length in the
/// header, or none, may have that many.
const DEFAULT_SNAPLEN: u32 = 262_144;
/// Most seconds between the last frame and the one after a fault.
const NEAR: u32 = 86_400;
/// Valid records required to resume after a fault.
const CHAIN: usize = 3;

/// Format, from the magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PcapFormat {
    order: Endianness,
    /// Nanoseconds per unit of a timestamp's fraction.
    unit: u32,
    /// Bytes of a record's header: 16, or 24 in Kuznetzov's variant (interface, protocol and packet
    /// type after the usual fields).
    header: usize,
}

impl PcapFormat {
    pub(super) fn of(begins: &[u8]) -> Option<Self> {
        let magic: [u8; 4] = begins.try_into().ok()?;
        [Endianness::Little, Endianness::Big].into_iter().find_map(|order| {
            let (unit, header) = match order.u32(&magic, 0) {
                0xa1b2_c3d4 => (1_000, 16),
                0xa1b2_3c4d => (1, 16),
                0xa1b2_cd34 => (1_000, 24),
                _ => return None,
            };
            Some(Self { order, unit, header })
        })
    }
}

/// Location of a frame in the window, and the fields of its record.
pub(in crate::capture) struct FrameLocation {
    pub(super) offset: u64,
    pub(super) at: Option<Duration>,
    pub(super) interface: u32,
    pub(super) linktype: u16,
    pub(super) way: Option<PacketDirection>,
    pub(super) original: u32,
    /// First byte and number of bytes.
    pub(super) from: usize,
    pub(super) len: usize,
}

impl FrameLocation {
    pub(super) fn frame<'a>(&self, number: u64, bytes: &'a [u8]) -> CapturedFrame<'a> {
        CapturedFrame {
            number,
            offset: self.offset,
            at: self.at,
            interface: self.interface,
            linktype: self.linktype,
            way: self.way.or_else(|| cooked_direction(self.linktype, bytes)),
            original: self.original,
            bytes,
        }
    }
}

/// A record's header.
#[derive(Debug, Clone, Copy)]
struct PcapRecordHeader {
    seconds: u32,
    fraction: u32,
    captured: u32,
    original: u32,
}

#[derive(Debug)]
pub(super) struct PcapFrames<R> {
    window: Window<R>,
    variant: PcapFormat,
    interface: [CaptureInterface; 1],
    /// Order of the two lengths, which differs in old versions.
    swapped: LengthOrder,
    begun: bool,
    most: u32,
    /// Bytes of the current record.
    current: usize,
    last_seconds: Option<u32>,
}

/// Before version 2.3 the original length came first; in 2.3 some programs wrote it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LengthOrder {
    Never,
    IfGreater,
    Always,
}

impl<R: Read> PcapFrames<R> {
    pub(super) fn new(window: Window<R>, variant: PcapFormat) -> Self {
        Self {
            window,
            variant,
            interface: [CaptureInterface::default()],
            swapped: LengthOrder::Never,
            begun: false,
            most: DEFAULT_SNAPLEN,
            current: 0,
            last_seconds: None,
        }
    }

    pub(super) const fn interfaces(&self) -> &[CaptureInterface] {
        &self.interface
    }

    pub(super) const fn window(&mut self) -> &mut Window<R> {
        &mut self.window
    }

    pub(super) fn bytes(&self, place: &FrameLocation) -> &[u8] {
        &self.window.bytes()[place.from..place.from + place.len]
    }

    pub(super) fn next(&mut self, tally: &mut CaptureStats) -> NextFrame {
        if !self.begun {
            self.begun = true;
            tally.sections = 1;
            if let Some(problem) = self.begin() {
                return NextFrame::Problem(problem);
            }
        }
        self.window.consume(self.current);
        self.current = 0;
        let header = self.variant.header;
        let offset = self.window.offset();
        let there = self.window.fill(header);
        if there == 0 {
            return NextFrame::End;
        }
        if there < header {
            return NextFrame::Problem(self.ends(offset, there, header));
        }
        let record = self.record(0);
        if record.captured > self.most {
            return NextFrame::Problem(self.resync(offset, record));
        }
        let len = record.captured as usize;
        let there = self.window.fill(header + len);
        if there < header + len {
            return NextFrame::Problem(self.ends(offset, there, header + len));
        }
        self.current = header + len;
        self.last_seconds = Some(record.seconds);
        self.interface[0].frames += 1;
        let nanos = u64::from(record.seconds) * 1_000_000_000
            + u64::from(record.fraction) * u64::from(self.variant.unit);
        // Only Kuznetzov's variant has a packet type.
        let way = match self.window.bytes().get(22) {
            Some(0) if header == 24 => Some(PacketDirection::In),
            Some(4) if header == 24 => Some(PacketDirection::Out),
            _ => None,
        };
        NextFrame::Frame(FrameLocation {
            offset,
            at: Some(Duration::from_nanos(nanos)),
            interface: 0,
            linktype: self.interface[0].linktype,
            way,
            original: record.original.max(record.captured),
            from: header,
            len,
        })
    }

    /// Reads the file header.
    fn begin(&mut self) -> Option<CaptureProblem> {
        let there = self.window.fill(FILE_HEADER);
        if there < FILE_HEADER {
            return Some(self.ends(0, there, FILE_HEADER));
        }
        let (bytes, order) = (self.window.bytes(), self.variant.order);
        let (major, minor) = (order.u16(bytes, 4), order.u16(bytes, 6));
        let snaplen = order.u32(bytes, 16);
        // The upper half is about frame check sequences.
        let linktype = order.u32(bytes, 20) as u16;
        // 543 is DG/UX' number for 2.x (libpcap, sf-pcap.c).
        self.swapped = match (major, minor) {
            (2, 543) | (2, 0..3) => LengthOrder::Always,
            (2, 3) => LengthOrder::IfGreater,
            _ => LengthOrder::Never,
        };
        self.interface[0] = CaptureInterface { linktype, snaplen, ..CaptureInterface::default() };
        self.most = snaplen.clamp(DEFAULT_SNAPLEN, MAX_FRAME as u32);
        self.current = FILE_HEADER;
        let known = major == 2;
        (!known).then_some(CaptureProblem {
            offset: 4,
            kind: CaptureProblemKind::Version { major, minor },
        })
    }

    fn record(&self, at: usize) -> PcapRecordHeader {
        let (bytes, order) = (self.window.bytes(), self.variant.order);
        let word = |n: usize| order.u32(bytes, at + 4 * n);
        let (mut captured, mut original) = (word(2), word(3));
        let swap = match self.swapped {
            LengthOrder::Never => false,
            LengthOrder::IfGreater => captured > original,
            LengthOrder::Always => true,
        };
        if swap {
            (captured, original) = (original, captured);
        }
        PcapRecordHeader { seconds: word(0), fraction: word(1), captured, original }
    }

    fn ends(&mut self, offset: u64, there: usize, expected: usize) -> CaptureProblem {
        self.window.consume(there);
        let kind = CaptureProblemKind::End { there: there as u64, expected: expected as u64 };
        CaptureProblem { offset, kind }
    }

    /// Skips to the next plausible record.
    fn resync(&mut self, offset: u64, bad: PcapRecordHeader) -> CaptureProblem {
        let header = self.variant.header;
        let resumed = loop {
            self.window.consume(1);
            let there = self.window.fill(header);
            if there < header {
                self.window.consume(there);
                break false;
            }
            if self.is_chain() {
                break true;
            }
        };
        let skipped = self.window.offset() - offset;
        let kind = CaptureProblemKind::Record {
            captured: bad.captured,
            most: self.most,
            skipped,
            resumed,
        };
        CaptureProblem { offset, kind }
    }

    /// Whether plausible records begin here, up to [`CHAIN`] of them or to the end of the file.
    fn is_chain(&mut self) -> bool {
        let (header, mut at) = (self.variant.header, 0);
        for _ in 0..CHAIN {
            let there = self.window.fill(at + header);
            // The last record ends the file.
            if at > 0 && there == at {
                return true;
            }
            if there < at + header || !self.can_be(self.record(at)) {
                return false;
            }
            at += header + self.record(at).captured as usize;
        }
        true
    }

    fn can_be(&self, record: PcapRecordHeader) -> bool {
        let second = 1_000_000_000 / self.variant.unit;
        (1..=self.most).contains(&record.captured)
            && (record.captured..=MAX_FRAME as u32).contains(&record.original)
            && record.fraction < second
            && self.last_seconds.is_none_or(|last| record.seconds.abs_diff(last) <= NEAR)
    }
}
