//! One connection of a capture, packet by packet.

use packet::wire::Endpoints;
use packet::{Dir, Flags, SackBlocks, SynOptions};
use units::Instant;

use crate::analysis::Analysis;
use crate::flow::Flow;
use crate::half::{Ack, Begin, Half};
use crate::place::Place;
use crate::state::States;
use crate::{Packet, StateSample};

/// A clock that says more is wrong: ten years, which leaves room to compare twentyfold spans.
const LATEST: Instant = Instant::from_nanos(10 * 365 * 86_400 * 1_000_000_000);

/// Packets looked at before the capture point of a connection without its opening is guessed.
const PROBATION: usize = 256;

/// What the reader decides before the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Keep so many packets in [`Analysis::packets`] at most, for who draws them or replays senders.
    pub packets: usize,
    /// Keep so many [turns](crate::turns) of each sender at most.
    pub turns: usize,
}

/// The SYN of an end, as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Its options.
    pub options: SynOptions,
    /// Its window field.
    pub window: u16,
}

/// A SYN as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Syn {
    pub(crate) at: u64,
    pub(crate) seq: u32,
    pub(crate) options: SynOptions,
    pub(crate) window: u16,
    pub(crate) stamps: bool,
}

/// A connection while its packets come in.
///
/// Packets come in the order of the capture; the first may be anything, not only a SYN.
///
/// Kept of it: what is under way, and bounded lists (8192 retransmissions, 16384 recoveries, 4096
/// rounds, 256 packets until the capture point is known); with
/// [`Settings::packets`] as many packets too.
#[derive(Debug)]
pub struct Connection {
    ends: Endpoints,
    stream: u32,
    settings: Settings,
    first: Option<(u64, u64)>,
    last: (u64, u64),
    frames: u64,
    /// Packets whose TCP header alone was captured, of those with payload.
    cut: u64,
    /// The last SYN of each direction.
    syn: [Option<Syn>; 2],
    opened: Option<u64>,
    syns: u32,
    reset: Option<u64>,
    fins: u8,
    place: Option<Place>,
    waiting: Vec<Packet>,
    halves: [Option<Box<Half>>; 2],
    /// Bytes of data per direction whose reverse was never seen.
    seen: [u64; 2],
    states: States,
    packets: Vec<Packet>,
}

impl Connection {
    /// A connection that runs from `ends.src` (who opened it, or was seen first) to `ends.dst`.
    /// `stream` is its number in the file, from 0, as Wireshark counts (`tcp.stream`).
    pub fn new(ends: Endpoints, stream: u32, settings: Settings) -> Self {
        Self {
            ends,
            stream,
            settings,
            first: None,
            last: (0, 0),
            frames: 0,
            cut: 0,
            syn: [None; 2],
            opened: None,
            syns: 0,
            reset: None,
            fins: 0,
            place: None,
            waiting: Vec::new(),
            halves: [None, None],
            seen: [0; 2],
            states: States::default(),
            packets: Vec::new(),
        }
    }

    /// The next packet.
    pub fn push(&mut self, packet: &Packet) {
        // Captures of several queues have packets a little out of order; time runs on all the same.
        let at = packet.at.min(LATEST).max(Instant::from_nanos(self.last.0));
        let packet = &Packet { at, ..*packet };
        self.frames += 1;
        if self.packets.len() < self.settings.packets {
            self.packets.push(*packet);
        }
        let at = packet.at.as_nanos();
        if self.first.is_none() {
            self.first = Some((at, packet.frame));
        }
        self.last = (at.max(self.last.0), packet.frame);
        let segment = &packet.segment;
        self.seen[segment.dir as usize] += 1;
        self.cut += u64::from(segment.payload > 0 && packet.captured < segment.payload);
        if segment.flags.has(Flags::SYN) {
            return self.opening(packet, at);
        }
        if segment.flags.has(Flags::RST) {
            self.reset = Some(at);
            return;
        }
        self.fins |= u8::from(segment.flags.has(Flags::FIN)) << segment.dir as u8;
        if self.place.is_none() {
            if let Some(place) = self.opened_at(packet, at) {
                self.place = Some(place);
            } else {
                self.waiting.push(*packet);
                if self.waiting.len() >= PROBATION {
                    self.settle();
                }
                return;
            }
        }
        self.judge(packet);
    }

    /// The next word of a kernel's own log; in order of time among themselves, anywhere among
    /// the packets.
    pub fn push_state(&mut self, sample: &StateSample) {
        self.states.push(sample);
    }

    fn opening(&mut self, packet: &Packet, at: u64) {
        let segment = &packet.segment;
        let options = segment.syn_options().copied().unwrap_or_default();
        let syn = Syn {
            at,
            seq: segment.seq.0,
            options,
            window: segment.window,
            stamps: segment.timestamps.is_some(),
        };
        self.syns += u32::from(!segment.flags.has(Flags::ACK));
        self.syn[segment.dir as usize] = Some(syn);
    }

    /// Does this packet end the opening? Then the distances are known.
    fn opened_at(&mut self, packet: &Packet, at: u64) -> Option<Place> {
        let [Some(syn), Some(answer)] = &self.syn else { return None };
        if packet.segment.dir != Dir::Forward || !packet.segment.flags.has(Flags::ACK) {
            return None;
        }
        self.opened = Some(at);
        Some(Place {
            to_answerer: Some(answer.at.saturating_sub(syn.at)),
            to_opener: Some(at.saturating_sub(answer.at)),
        })
    }

    /// The capture point is guessed from what is there, which is judged then.
    fn settle(&mut self) {
        let waiting = core::mem::take(&mut self.waiting);
        self.place = Some(Place::guess(&waiting));
        for packet in &waiting {
            self.judge(packet);
        }
    }

    fn judge(&mut self, packet: &Packet) {
        let segment = &packet.segment;
        let dir = segment.dir;
        if segment.payload > 0 && self.halves[dir as usize].is_none() {
            self.halves[dir as usize] = Some(Box::new(Half::new(self.begin(dir), segment.seq.0)));
        }
        if let Some(half) = &mut self.halves[dir as usize] {
            half.data(packet);
        }
        let syn = |dir: Dir| self.syn[dir as usize];
        if let Some(half) = &mut self.halves[dir.back() as usize]
            && segment.flags.has(Flags::ACK)
        {
            let both = syn(dir).zip(syn(dir.back()));
            let shift = both.map_or(0, |(mine, theirs)| {
                match (mine.options.window_scale, theirs.options.window_scale) {
                    (Some(shift), Some(_)) => shift.min(14),
                    _ => 0,
                }
            });
            let mut sack = SackBlocks::EMPTY;
            for block in segment.sack_blocks() {
                sack.push(*block);
            }
            half.ecn_echoes += u64::from(segment.flags.has(Flags::ECE));
            half.ack(Ack {
                at: packet.at.as_nanos(),
                frame: packet.frame,
                number: segment.ack.0,
                window: u64::from(segment.window) << shift,
                scaled: both.is_some(),
                stamp: segment.timestamps.map(|stamps| stamps.val),
                echo: segment.timestamps.map(|stamps| stamps.ecr),
                sack,
                pure: segment.payload == 0,
                echo_of_mark: segment.flags.has(Flags::ECE),
            });
        }
    }

    fn begin(&self, dir: Dir) -> Begin {
        let place = self.place.unwrap_or_default();
        let sizes = self.syn[0].zip(self.syn[1]).map(|(one, other)| {
            let mss = one.options.mss.min(other.options.mss);
            let stamps = one.stamps && other.stamps;
            // RFC 9293 section 3.7.1: 536 where no option says otherwise.
            // An option may say anything, less than the timestamps take too.
            let mss = u32::from(if mss == 0 { 536 } else { mss });
            mss.saturating_sub(12 * u32::from(stamps)).max(1)
        });
        let open = self.opened.map(|at| {
            // The end that answers hears of the last ACK half a round trip later.
            if dir == Dir::Reverse { at + place.behind(dir).unwrap_or(0) } else { at }
        });
        Begin {
            dir,
            point: place.point(dir),
            ahead: self.opened.and(place.ahead(dir)),
            behind: self.opened.and(place.behind(dir)),
            mss: sizes,
            isn: self.syn[dir as usize].map(|syn| syn.seq),
            first: self.first.map_or(0, |(at, _)| at),
            open,
            turns: self.settings.turns,
        }
    }

    /// The end of the capture.
    pub fn finish(mut self) -> Analysis {
        if !self.waiting.is_empty() {
            self.settle();
        }
        let (end, _) = self.last;
        let start = self.first.map_or(0, |(at, _)| at);
        let syn = self.syn;
        let flows = self.halves.map(|half| {
            half.map(|mut half| {
                half.finish(end);
                Box::new(Flow::new(*half, &syn, start, end))
            })
        });
        Analysis {
            ends: self.ends,
            stream: self.stream,
            frames: self.frames,
            first: Instant::from_nanos(start),
            last: Instant::from_nanos(end),
            first_frame: self.first.map_or(0, |(_, frame)| frame),
            last_frame: self.last.1,
            opened: self.opened.is_some(),
            openings: syn
                .map(|syn| syn.map(|Syn { options, window, .. }| Opening { options, window })),
            syns: self.syns,
            reset: self.reset.is_some(),
            closed: self.fins == 3,
            seen: self.seen,
            cut: self.cut,
            flows,
            states: self.states,
            packets: self.packets,
        }
    }
}
