//! pcap: a file header, and a record for each frame (draft-ietf-opsawg-pcap).
//!
//! Nothing in a record tells that one begins. Behind a record that cannot be, the next one is
//! looked for by what it must have: lengths within bounds, a time near the last one, and such
//! records behind it.

use std::io::Read;

use units::Duration;

use super::read::Next;
use super::{CaptureProblem, CaptureProblemKind, Frame, Interface, MAX_FRAME, Tally, cooked_way};
use crate::blocks::Order;
use crate::pcapng::Way;
use crate::window::Window;

/// Bytes of the file header.
const FILE_HEADER: usize = 24;
/// tcpdump's own limit for captured bytes (`MAXIMUM_SNAPLEN`): what a header with a smaller snap
/// length, or none, may still have.
const USUAL_MOST: u32 = 262_144;
/// A frame found again is not further than this from the last one, in seconds.
const NEAR: u32 = 86_400;
/// So many records must stand behind one that is found again.
const CHAIN: usize = 3;

/// What the magic number tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variant {
    order: Order,
    /// Nanoseconds of a unit of a stamp's fraction.
    unit: u32,
    /// Bytes of a record's header: 16, or 24 in Kuznetzov's variant (interface, protocol and
    /// packet type behind the usual fields).
    header: usize,
}

impl Variant {
    pub(super) fn of(begins: &[u8]) -> Option<Self> {
        let magic: [u8; 4] = begins.try_into().ok()?;
        [Order::Little, Order::Big].into_iter().find_map(|order| {
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

/// Where a frame lies in the window, and what its record tells.
pub(in crate::capture) struct Place {
    pub(super) offset: u64,
    pub(super) at: Option<Duration>,
    pub(super) interface: u32,
    pub(super) linktype: u16,
    pub(super) way: Option<Way>,
    pub(super) original: u32,
    /// First byte and number of bytes.
    pub(super) from: usize,
    pub(super) len: usize,
}

impl Place {
    pub(super) fn frame<'a>(&self, number: u64, bytes: &'a [u8]) -> Frame<'a> {
        Frame {
            number,
            offset: self.offset,
            at: self.at,
            interface: self.interface,
            linktype: self.linktype,
            way: self.way.or_else(|| cooked_way(self.linktype, bytes)),
            original: self.original,
            bytes,
        }
    }
}

/// A record's header.
#[derive(Debug, Clone, Copy)]
struct Record {
    seconds: u32,
    fraction: u32,
    captured: u32,
    original: u32,
}

#[derive(Debug)]
pub(super) struct Frames<R> {
    window: Window<R>,
    variant: Variant,
    interface: [Interface; 1],
    /// How the two lengths of old versions stand.
    swapped: Swapped,
    begun: bool,
    most: u32,
    /// Bytes of the record last found.
    current: usize,
    last_seconds: Option<u32>,
}

/// Before version 2.3 the original length came first; in 2.3 some wrote it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swapped {
    Never,
    IfGreater,
    Always,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(window: Window<R>, variant: Variant) -> Self {
        Self {
            window,
            variant,
            interface: [Interface::default()],
            swapped: Swapped::Never,
            begun: false,
            most: USUAL_MOST,
            current: 0,
            last_seconds: None,
        }
    }

    pub(super) const fn interfaces(&self) -> &[Interface] {
        &self.interface
    }

    pub(super) const fn window(&mut self) -> &mut Window<R> {
        &mut self.window
    }

    pub(super) fn bytes(&self, place: &Place) -> &[u8] {
        &self.window.bytes()[place.from..place.from + place.len]
    }

    pub(super) fn next(&mut self, tally: &mut Tally) -> Next {
        if !self.begun {
            self.begun = true;
            tally.sections = 1;
            if let Some(problem) = self.begin() {
                return Next::Problem(problem);
            }
        }
        self.window.consume(self.current);
        self.current = 0;
        let header = self.variant.header;
        let offset = self.window.offset();
        let there = self.window.fill(header);
        if there == 0 {
            return Next::End;
        }
        if there < header {
            return Next::Problem(self.ends(offset, there, header));
        }
        let record = self.record(0);
        if record.captured > self.most {
            return Next::Problem(self.find_again(offset, record));
        }
        let len = record.captured as usize;
        let there = self.window.fill(header + len);
        if there < header + len {
            return Next::Problem(self.ends(offset, there, header + len));
        }
        self.current = header + len;
        self.last_seconds = Some(record.seconds);
        self.interface[0].frames += 1;
        let nanos = u64::from(record.seconds) * 1_000_000_000
            + u64::from(record.fraction) * u64::from(self.variant.unit);
        // Only Kuznetzov's variant has a packet type.
        let way = match self.window.bytes().get(22) {
            Some(0) if header == 24 => Some(Way::In),
            Some(4) if header == 24 => Some(Way::Out),
            _ => None,
        };
        Next::Frame(Place {
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
        // The upper half tells of frame check sequences.
        let linktype = order.u32(bytes, 20) as u16;
        // 543 is DG/UX' number for 2.x (libpcap, sf-pcap.c).
        self.swapped = match (major, minor) {
            (2, 543) | (2, 0..3) => Swapped::Always,
            (2, 3) => Swapped::IfGreater,
            _ => Swapped::Never,
        };
        self.interface[0] = Interface { linktype, snaplen, ..Interface::default() };
        self.most = snaplen.clamp(USUAL_MOST, MAX_FRAME as u32);
        self.current = FILE_HEADER;
        let known = major == 2;
        (!known).then_some(CaptureProblem {
            offset: 4,
            kind: CaptureProblemKind::Version { major, minor },
        })
    }

    fn record(&self, at: usize) -> Record {
        let (bytes, order) = (self.window.bytes(), self.variant.order);
        let word = |n: usize| order.u32(bytes, at + 4 * n);
        let (mut captured, mut original) = (word(2), word(3));
        let swap = match self.swapped {
            Swapped::Never => false,
            Swapped::IfGreater => captured > original,
            Swapped::Always => true,
        };
        if swap {
            (captured, original) = (original, captured);
        }
        Record { seconds: word(0), fraction: word(1), captured, original }
    }

    fn ends(&mut self, offset: u64, there: usize, expected: usize) -> CaptureProblem {
        self.window.consume(there);
        let kind = CaptureProblemKind::End { there: there as u64, expected: expected as u64 };
        CaptureProblem { offset, kind }
    }

    /// Skips to the next record that can be one.
    fn find_again(&mut self, offset: u64, bad: Record) -> CaptureProblem {
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

    /// Do records stand here, up to [`CHAIN`] of them or to the end of the file?
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

    fn can_be(&self, record: Record) -> bool {
        let second = 1_000_000_000 / self.variant.unit;
        (1..=self.most).contains(&record.captured)
            && (record.captured..=MAX_FRAME as u32).contains(&record.original)
            && record.fraction < second
            && self.last_seconds.is_none_or(|last| record.seconds.abs_diff(last) <= NEAR)
    }
}
