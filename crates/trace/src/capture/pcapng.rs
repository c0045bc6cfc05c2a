//! pcapng: blocks (draft-ietf-opsawg-pcapng, section numbers below).

use std::io::Read;

use units::Duration;

use super::pcap::FrameLocation;
use super::read::NextFrame;
use super::{CaptureInterface, CaptureProblem, CaptureProblemKind, CaptureStats, MAX_FRAME};
use crate::blocks::{
    BlockOptions, Blocks, ENHANCED_PACKET, Endianness, FoundBlock, INTERFACE_DESCRIPTION,
    SECTION_HEADER, part,
};
use crate::pcapng::{PacketDirection, option};
use crate::window::Window;

/// Block of decryption secrets (4.7), and the type of those of TLS: a key log.
const DECRYPTION_SECRETS: u32 = 10;
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// Packet block of the first drafts (appendix A).
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;

/// Codes of options: 4.2 (interface), 4.3 (packet), 4.6 (statistics).
const IF_TSOFFSET: u16 = 14;
const EPB_DROPCOUNT: u16 = 4;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// Most interfaces of a file.
const MOST_INTERFACES: usize = 65_536;

/// Whether a file begins like pcapng.
pub(super) const fn begins(bytes: &[u8]) -> bool {
    matches!(bytes, [0x0a, 0x0d, 0x0d, 0x0a])
}

/// Timestamp resolution and offset of an interface.
#[derive(Debug, Clone, Copy)]
struct InterfaceClock {
    /// As in `if_tsresol`: a negative power of ten, or of two with the highest bit set.
    resolution: u8,
    /// Seconds to be added (`if_tsoffset`).
    offset: i64,
}

impl InterfaceClock {
    /// Nanoseconds since 1970; `None` after the year 2554.
    fn time(self, stamp: u64) -> Option<Duration> {
        let stamp = u128::from(stamp);
        let power = u32::from(self.resolution & 0x7f);
        let nanos = if self.resolution & 0x80 != 0 {
            (stamp * 1_000_000_000).checked_shr(power).unwrap_or(0)
        } else if power <= 9 {
            stamp * 10_u128.pow(9 - power)
        } else {
            stamp / 10_u128.checked_pow(power - 9)?
        };
        let shift = i128::from(self.offset) * 1_000_000_000;
        let nanos = i128::try_from(nanos).ok()?.checked_add(shift)?;
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }
}

#[derive(Debug)]
pub(super) struct PcapngFrames<R> {
    blocks: Blocks<R>,
    interfaces: Vec<CaptureInterface>,
    clocks: Vec<InterfaceClock>,
    /// Index of the current section's first interface.
    first: usize,
    in_section: bool,
    held: Option<CaptureProblem>,
}

impl<R: Read> PcapngFrames<R> {
    pub(super) const fn new(window: Window<R>) -> Self {
        Self {
            blocks: Blocks::of(window, MAX_FRAME * 2),
            interfaces: Vec::new(),
            clocks: Vec::new(),
            first: 0,
            in_section: false,
            held: None,
        }
    }

    pub(super) const fn interfaces(&self) -> &[CaptureInterface] {
        self.interfaces.as_slice()
    }

    pub(super) const fn window(&mut self) -> &mut Window<R> {
        self.blocks.window()
    }

    pub(super) fn bytes(&self, place: &FrameLocation) -> &[u8] {
        &self.blocks.body()[place.from..place.from + place.len]
    }

    pub(super) fn next(&mut self, tally: &mut CaptureStats) -> NextFrame {
        if let Some(problem) = self.held.take() {
            return NextFrame::Problem(problem);
        }
        loop {
            let (offset, kind) = match self.blocks.find() {
                None => return NextFrame::End,
                Some(FoundBlock::Skipped { offset, bytes, fault }) => {
                    let kind = CaptureProblemKind::Skipped { bytes, fault };
                    return NextFrame::Problem(CaptureProblem { offset, kind });
                }
                Some(FoundBlock::Block { offset, kind }) => (offset, kind),
            };
            let problem = |kind| CaptureProblem { offset, kind };
            if !self.in_section && kind != SECTION_HEADER {
                self.in_section = true;
                self.held = Some(problem(CaptureProblemKind::NoSection));
            }
            let least = match kind {
                SECTION_HEADER => 16,
                INTERFACE_DESCRIPTION => 8,
                ENHANCED_PACKET | OBSOLETE_PACKET => 20,
                SIMPLE_PACKET => 4,
                INTERFACE_STATISTICS => 12,
                DECRYPTION_SECRETS => 8,
                _ => {
                    tally.other_blocks += 1;
                    continue;
                }
            };
            let bytes = self.blocks.body().len();
            if bytes < least {
                return NextFrame::Problem(problem(CaptureProblemKind::Short {
                    bytes,
                    expected: least,
                }));
            }
            let done = match kind {
                SECTION_HEADER => {
                    tally.sections += 1;
                    self.section()
                }
                INTERFACE_DESCRIPTION => self.interface(),
                INTERFACE_STATISTICS => self.statistics(),
                DECRYPTION_SECRETS => {
                    tally.other_blocks += 1;
                    match self.secrets() {
                        Some((from, len)) => return NextFrame::Secrets { from, len },
                        None => Ok(()),
                    }
                }
                _ => match self.packet(offset, kind) {
                    Ok(place) => return NextFrame::Frame(place),
                    Err(kind) => Err(kind),
                },
            };
            if let Err(kind) = done {
                return NextFrame::Problem(problem(kind));
            }
            if let Some(held) = self.held.take() {
                return NextFrame::Problem(held);
            }
        }
    }

    /// Section header (4.1): starts a new list of interfaces.
    fn section(&mut self) -> Result<(), CaptureProblemKind> {
        self.in_section = true;
        self.first = self.interfaces.len();
        let (body, order) = (self.blocks.body(), self.blocks.order());
        match (order.u16(body, 4), order.u16(body, 6)) {
            // Some programs wrote 1.2 for 1.0 (4.1).
            (1, 0 | 2) => Ok(()),
            (major, minor) => Err(CaptureProblemKind::Version { major, minor }),
        }
    }

    /// Interface description (4.2).
    fn interface(&mut self) -> Result<(), CaptureProblemKind> {
        if self.interfaces.len() == MOST_INTERFACES {
            return Ok(());
        }
        let (body, order) = (self.blocks.body(), self.blocks.order());
        let mut interface = CaptureInterface {
            linktype: order.u16(body, 0),
            snaplen: order.u32(body, 4),
            ..CaptureInterface::default()
        };
        let mut clock = InterfaceClock { resolution: 6, offset: 0 };
        let mut wrong = Ok(());
        for found in BlockOptions::new(&body[8..], order) {
            match found {
                Err(_) => wrong = Err(CaptureProblemKind::Option),
                Ok(found) => match (found.code, found.value) {
                    (option::IF_NAME, name) => {
                        interface.name = String::from_utf8_lossy(name).into_owned();
                    }
                    (option::IF_TSRESOL, &[resolution]) => clock.resolution = resolution,
                    (IF_TSOFFSET, value) if value.len() == 8 => {
                        clock.offset = order.u64(value, 0).cast_signed();
                    }
                    _ => {}
                },
            }
        }
        self.interfaces.push(interface);
        self.clocks.push(clock);
        wrong
    }

    /// Interface statistics (4.6): the last ones of an interface have all its drops.
    fn statistics(&mut self) -> Result<(), CaptureProblemKind> {
        let (body, order) = (self.blocks.body(), self.blocks.order());
        let (mut reported, mut wrong) = (None, Ok(()));
        for found in BlockOptions::new(&body[12..], order) {
            match found {
                Err(_) => wrong = Err(CaptureProblemKind::Option),
                Ok(found) => {
                    if matches!(found.code, ISB_IFDROP | ISB_OSDROP) && found.value.len() == 8 {
                        let drops = order.u64(found.value, 0);
                        reported = Some(reported.unwrap_or(0_u64).saturating_add(drops));
                    }
                }
            }
        }
        let index = self.index(order.u32(body, 0))?;
        if let Some(drops) = reported {
            self.interfaces[index].dropped = drops;
        }
        wrong
    }

    /// Where the secrets of TLS are in a block of decryption secrets (4.7); `None` of those of other protocols.
    fn secrets(&self) -> Option<(usize, usize)> {
        let (body, order) = (self.blocks.body(), self.blocks.order());
        let len = (order.u32(body, 4) as usize).min(body.len() - 8);
        (order.u32(body, 0) == TLS_KEY_LOG).then_some((8, len))
    }

    /// The bytes of secrets.
    pub(super) fn secret_bytes(&self, from: usize, len: usize) -> &[u8] {
        &self.blocks.body()[from..from + len]
    }

    /// Index of an interface of this section.
    fn index(&self, number: u32) -> Result<usize, CaptureProblemKind> {
        let declared = self.interfaces.len() - self.first;
        let index = number as usize;
        if index < declared {
            Ok(self.first + index)
        } else {
            Err(CaptureProblemKind::Interface { number, declared })
        }
    }

    /// A packet: enhanced (4.3), simple (4.4) or obsolete (appendix A).
    fn packet(&mut self, offset: u64, kind: u32) -> Result<FrameLocation, CaptureProblemKind> {
        let (body, order) = (self.blocks.body(), self.blocks.order());
        let number = match kind {
            ENHANCED_PACKET => order.u32(body, 0),
            OBSOLETE_PACKET => u32::from(order.u16(body, 0)),
            _ => 0,
        };
        let index = self.index(number)?;
        let (from, captured, original, at) = if kind == SIMPLE_PACKET {
            let (original, snaplen) = (order.u32(body, 0), self.interfaces[index].snaplen);
            let most = if snaplen == 0 { original } else { snaplen };
            (4, original.min(most), original, None)
        } else {
            let stamp = u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8));
            let at = self.clocks[index].time(stamp);
            (20, order.u32(body, 12), order.u32(body, 16), at)
        };
        let room = body.len() - from;
        let len = (captured as usize).min(room);
        if captured as usize > room {
            let kind = CaptureProblemKind::Captured { claimed: captured, there: room };
            self.held = Some(CaptureProblem { offset, kind });
        }
        let options = body[from..].get(len.next_multiple_of(4)..).unwrap_or_default();
        let (mut way, mut dropped) = (None, 0);
        if !options.is_empty() && kind != SIMPLE_PACKET {
            (way, dropped) = packet_options(options, order);
        }
        let interface = &mut self.interfaces[index];
        interface.frames += 1;
        interface.dropped = interface.dropped.saturating_add(dropped);
        Ok(FrameLocation {
            offset,
            at,
            interface: index as u32,
            linktype: interface.linktype,
            way,
            original: original.max(len as u32),
            from,
            len,
        })
    }
}

/// Direction (`epb_flags`) and drops since the last packet (`epb_dropcount`). A broken option ends
/// the options; the packet itself is valid.
fn packet_options(options: &[u8], order: Endianness) -> (Option<PacketDirection>, u64) {
    let (mut way, mut dropped) = (None, 0);
    for found in BlockOptions::new(options, order).map_while(Result::ok) {
        match (found.code, found.value.len()) {
            (option::EPB_FLAGS, 4) => {
                way = match order.u32(found.value, 0) & 3 {
                    1 => Some(PacketDirection::In),
                    2 => Some(PacketDirection::Out),
                    _ => None,
                };
            }
            (EPB_DROPCOUNT, 8) => dropped = order.u64(found.value, 0),
            _ => {}
        }
    }
    (way, dropped)
}

impl Endianness {
    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(part(bytes, at)),
            Self::Big => u64::from_be_bytes(part(bytes, at)),
        }
    }
}
