//! Which connection a packet belongs to.
//!
//! A connection is a pair of ends at a capture point. A SYN with another initial sequence number
//! than the connection has begins a new one between the same ends (RFC 9293 section 3.6.1 lets ports
//! come back); so does a SYN behind packets whose beginning the capture has not.

use core::hash::{Hash, Hasher};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use diagnose::{Connection, Packet, Settings, StateSample};
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use packet::wire::Endpoints;
use packet::{Dir, Flags};
use units::{Duration, Instant};

use super::Stream;
use super::crossing::{MOST_CROSSING, Seen};
use super::join::{Pair, Side, join};
use super::logs::{Anchor, Log};

/// Fewer packets or turns of a connection tell nothing.
const LEAST: usize = 64;

/// Where something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Point {
    /// Index of the file.
    pub(super) file: u32,
    /// Index of the capture point in it.
    pub(super) interface: u32,
}

/// The ends of a connection at a point, the lower one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    addresses: [u128; 2],
    /// Ports (two bytes each), interface, and whether it is IPv6.
    rest: u64,
    file: u32,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Two words of an address are enough to spread, and faster than four.
        let fold = |address: u128| (address >> 64) as u64 ^ address as u64;
        state.write_u64(fold(self.addresses[0]));
        state.write_u64(fold(self.addresses[1]));
        state.write_u64(self.rest ^ u64::from(self.file) << 56);
    }
}

fn number(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), false),
        IpAddr::V6(v6) => (v6.to_bits(), true),
    }
}

impl Key {
    fn of(point: Point, ends: Endpoints) -> Self {
        let (src, v6) = number(ends.src.ip());
        let (dst, _) = number(ends.dst.ip());
        let (src, dst) = ((src, ends.src.port()), (dst, ends.dst.port()));
        let (low, high) = if src <= dst { (src, dst) } else { (dst, src) };
        let ports = u64::from(low.1) << 16 | u64::from(high.1);
        Self {
            addresses: [low.0, high.0],
            rest: ports << 32 | u64::from(point.interface) << 1 | u64::from(v6),
            file: point.file,
        }
    }
}

/// A connection and what tells it from the next between the same ends.
#[derive(Debug)]
struct Live {
    point: Point,
    ends: Endpoints,
    /// Initial sequence numbers of each end, as far as seen.
    isn: [Option<u32>; 2],
    /// The connection before it between the same ends.
    before: Option<u32>,
    names: Option<[String; 2]>,
    connection: Connection,
    /// Packets of each direction, where captures are laid side by side.
    seen: [Vec<Seen>; 2],
    /// Time of the first and the last packet, in nanoseconds since the first of the file.
    span: (u64, u64),
    /// Largest segment that each end takes, and whether it has timestamps.
    mss: [(u16, bool); 2],
}

/// The connections of all files.
#[derive(Debug)]
pub(super) struct Table {
    settings: Settings,
    /// The last connection between two ends at a point.
    last: IndexMap<Key, u32, FixedState>,
    live: Vec<Live>,
    /// Number of the next stream in the present file.
    streams: (u32, u32),
    /// The last packet's connection: packets often come in a row.
    recent: Option<(Key, u32)>,
    /// Are packets kept to lay captures side by side, and how many are?
    crossing: bool,
    kept: usize,
    /// Points that packets came from, and when each file begins.
    points: Vec<Point>,
    begins: Vec<u64>,
}

impl Table {
    pub(super) fn new(settings: Settings, crossing: bool) -> Self {
        Self {
            settings,
            last: IndexMap::with_hasher(FixedState::with_seed(0)),
            live: Vec::new(),
            streams: (0, 0),
            recent: None,
            crossing,
            kept: 0,
            points: Vec::new(),
            begins: Vec::new(),
        }
    }

    /// From now on packets are kept, to find what several capture points have seen.
    pub(super) fn lay_side_by_side(&mut self) {
        self.crossing = true;
    }

    /// When the first packet of a file was, on its own clock.
    pub(super) fn file_begins(&mut self, file: usize, at: Duration) {
        if self.begins.len() <= file {
            self.begins.resize(file + 1, 0);
        }
        self.begins[file] = at.as_nanos();
    }

    /// Takes a packet; its direction is set here. Gives the index of its connection.
    pub(super) fn packet(&mut self, point: Point, between: Endpoints, packet: Packet) -> usize {
        let key = Key::of(point, between);
        let known = match self.recent {
            Some((recent, index)) if recent == key => Some(index),
            _ => self.last.get(&key).copied(),
        };
        let segment = &packet.segment;
        let known = known.filter(|&index| !self.live[index as usize].ended_by(between, &packet));
        let index = known.unwrap_or_else(|| {
            // Who answers a SYN did not open the connection.
            let answers = segment.flags.has(Flags::SYN | Flags::ACK);
            let ends = if answers { between.back() } else { between };
            self.begin(key, point, ends)
        });
        self.recent = Some((key, index));
        let live = &mut self.live[index as usize];
        let dir = live.dir(between.src);
        live.note_isn(dir, &packet);
        let mut packet = packet;
        packet.segment.dir = dir;
        let at = packet.at.as_nanos();
        live.span = (live.span.0.min(at), live.span.1.max(at));
        if self.crossing && self.kept < MOST_CROSSING {
            self.kept += 1;
            live.seen[dir as usize].push(Seen::of(&packet));
        }
        live.connection.push(&packet);
        index as usize
    }

    /// Connections between these ends that files other than that of `point` have seen.
    pub(super) fn seen_elsewhere(&self, point: Point, between: Endpoints) -> Vec<usize> {
        let others = self.points.iter().filter(|other| other.file != point.file);
        others
            .flat_map(|&other| {
                let last = self.last.get(&Key::of(other, between)).copied();
                core::iter::successors(last, |&index| self.live[index as usize].before)
            })
            .map(|index| index as usize)
            .collect()
    }

    /// Who has this port, and whom it talks to, if the captures show one such connection only.
    pub(super) fn by_port(&self, port: u16) -> Option<Endpoints> {
        let mut found: Vec<Endpoints> = self
            .live
            .iter()
            .map(|live| live.ends)
            .filter_map(|ends| match (ends.src.port() == port, ends.dst.port() == port) {
                (true, false) => Some(ends),
                (false, true) => Some(ends.back()),
                _ => None,
            })
            .collect();
        found.dedup();
        (found.len() == 1).then(|| found[0])
    }

    /// Payload of a full segment between two ends, by their SYNs; that of Ethernet with timestamps
    /// where these are not known.
    pub(super) fn mss(&self, src: SocketAddr, dst: SocketAddr) -> u64 {
        const USUAL: u64 = 1_448;
        let between = Endpoints { src, dst };
        let known = self.points.iter().find_map(|&point| {
            let index = *self.last.get(&Key::of(point, between))?;
            let [(one, stamps), (other, also)] = self.live[index as usize].mss;
            let least = one.min(other);
            (least > 0).then(|| u64::from(least) - if stamps && also { 12 } else { 0 })
        });
        known.unwrap_or(USUAL)
    }

    /// When the file of a connection begins, in nanoseconds on its own clock.
    pub(super) fn begins(&self, index: usize) -> u64 {
        self.begins.get(self.file(index)).copied().unwrap_or(0)
    }

    /// The file of a connection.
    pub(super) fn file(&self, index: usize) -> usize {
        self.live[index].point.file as usize
    }

    /// Was the connection there between these moments (nanoseconds since the first packet)?
    pub(super) fn overlaps(&self, index: usize, from: u64, to: u64) -> bool {
        /// Logs tell of a connection before its first packet and behind its last.
        const SLACK: u64 = 1_000_000_000;
        let (first, last) = self.live[index].span;
        from <= last.saturating_add(SLACK) && to.saturating_add(SLACK) >= first
    }

    /// By how many nanoseconds the clock of a log is ahead of that of a connection's capture: the
    /// median over what both saw, and over how many.
    pub(super) fn ahead(
        &self,
        index: usize,
        between: Endpoints,
        log: &Log,
    ) -> Option<(i64, usize)> {
        let live = &self.live[index];
        let dir = live.dir(between.src);
        let base = if log.relative { live.isn[dir as usize]?.wrapping_add(1) } else { 0 };
        // What each event was seen at first.
        let mut first = BTreeMap::new();
        for seen in &live.seen[dir as usize] {
            if seen.len > 0 {
                first.entry(Anchor::Sent(seen.seq)).or_insert(seen.at);
            }
        }
        for seen in &live.seen[dir.back() as usize] {
            first.entry(Anchor::Acked(seen.ack)).or_insert(seen.at);
        }
        let begins = self.begins(index);
        let mut offsets = Vec::new();
        for &(anchor, at) in &log.anchors {
            let anchor = match anchor {
                Anchor::Sent(seq) => Anchor::Sent(seq.wrapping_add(base)),
                Anchor::Acked(ack) => Anchor::Acked(ack.wrapping_add(base)),
            };
            // The first of the log goes with the first of the capture.
            if let Some(seen) = first.remove(&anchor) {
                offsets.push(at.wrapping_sub(begins.wrapping_add(seen)).cast_signed());
            }
        }
        offsets.sort_unstable();
        let median = *offsets.get(offsets.len() / 2)?;
        Some((median, offsets.len()))
    }

    /// Hands over the word of a log about `of`, at nanoseconds since the first packet.
    pub(super) fn state(&mut self, index: usize, of: SocketAddr, at: u64, sample: StateSample) {
        let live = &mut self.live[index];
        let (at, of) = (Instant::from_nanos(at), live.dir(of));
        live.connection.push_state(&StateSample { at, of, ..sample });
    }

    /// A connection of which there are no packets.
    pub(super) fn open(&mut self, point: Point, ends: Endpoints) -> usize {
        self.begin(Key::of(point, ends), point, ends) as usize
    }

    /// Names of the ends of a connection, for who opened it first.
    pub(super) fn name(&mut self, index: usize, of: impl Fn(SocketAddr) -> Option<String>) {
        let live = &mut self.live[index];
        if live.names.is_none() {
            let name = |end| of(end).unwrap_or_else(|| end.to_string());
            live.names = Some([name(live.ends.src), name(live.ends.dst)]);
        }
    }

    fn begin(&mut self, key: Key, point: Point, ends: Endpoints) -> u32 {
        if self.streams.0 != point.file {
            self.streams = (point.file, 0);
        }
        let stream = self.streams.1;
        self.streams.1 += 1;
        let index = self.live.len() as u32;
        let share = |all: usize| match all / (1 + stream as usize) {
            // All are wanted, however many.
            _ if all == usize::MAX => all,
            few if few < LEAST => 0,
            some => some,
        };
        // Many connections share the room there is.
        let Settings { packets, turns } = self.settings;
        let settings = Settings { packets: share(packets), turns: share(turns) };
        let connection = Connection::new(ends, stream, settings);
        let before = self.last.insert(key, index);
        self.live.push(Live {
            point,
            ends,
            isn: [None; 2],
            before,
            names: None,
            connection,
            seen: [Vec::new(), Vec::new()],
            span: (u64::MAX, 0),
            mss: [(0, false); 2],
        });
        if self.points.last() != Some(&point) && !self.points.contains(&point) {
            self.points.push(point);
        }
        index
    }

    /// The end of all files: the connections by file in the order in which they began, and those
    /// that two points saw.
    pub(super) fn finish(mut self) -> (Vec<Stream>, Vec<Pair>) {
        self.live.sort_by_key(|live| live.point.file);
        let sides = self.live.iter_mut().map(|live| Side {
            point: live.point,
            ends: live.ends,
            isn: live.isn,
            seen: core::mem::take(&mut live.seen),
        });
        let pairs = if self.crossing { join(&sides.collect::<Vec<_>>()) } else { Vec::new() };
        let finish = |live: Live| Stream {
            file: live.point.file as usize,
            interface: live.point.interface as usize,
            names: live.names,
            analysis: live.connection.finish(),
        };
        (self.live.into_iter().map(finish).collect(), pairs)
    }
}

impl Live {
    fn dir(&self, src: SocketAddr) -> Dir {
        if src == self.ends.src { Dir::Forward } else { Dir::Reverse }
    }

    /// Does this packet show that another connection has begun between the same ends?
    fn ended_by(&self, between: Endpoints, packet: &Packet) -> bool {
        let segment = &packet.segment;
        if !segment.flags.has(Flags::SYN) {
            return false;
        }
        let dir = self.dir(between.src);
        let (own, peer) = (self.isn[dir as usize], self.isn[dir.back() as usize]);
        if segment.flags.has(Flags::ACK) {
            // A server that lost its state answers the same SYN with another number.
            let answers = segment.ack.0.wrapping_sub(1);
            peer.is_some_and(|isn| isn != answers)
        } else {
            // Without a number, the packets before were of a connection whose SYN is not here.
            own != Some(segment.seq.0)
        }
    }

    fn note_isn(&mut self, dir: Dir, packet: &Packet) {
        let segment = &packet.segment;
        if segment.flags.has(Flags::SYN) {
            let mss = segment.syn_options().map_or(0, |syn| syn.mss);
            self.mss[dir as usize] = (mss, segment.timestamps.is_some());
            self.isn[dir as usize] = Some(segment.seq.0);
            if segment.flags.has(Flags::ACK) {
                self.isn[dir.back() as usize].get_or_insert(segment.ack.0.wrapping_sub(1));
            }
        }
    }
}
