//! Which connection a packet belongs to.
//!
//! A connection is a pair of ends at a capture point. A SYN with another initial sequence number
//! than the connection has begins a new one between the same ends (RFC 9293 section 3.6.1 lets ports
//! come back); so does a SYN behind packets whose beginning the capture has not.

use core::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use diagnose::{Connection, Packet, Settings};
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use packet::wire::Endpoints;
use packet::{Dir, Flags};

use super::Stream;

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
    names: Option<[String; 2]>,
    connection: Connection,
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
}

impl Table {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            last: IndexMap::with_hasher(FixedState::with_seed(0)),
            live: Vec::new(),
            streams: (0, 0),
            recent: None,
        }
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
        live.connection.push(&packet);
        index as usize
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
        let connection = Connection::new(ends, stream, self.settings);
        self.live.push(Live { point, ends, isn: [None; 2], names: None, connection });
        self.last.insert(key, index);
        index
    }

    /// The end of all files: the connections in the order in which they began.
    pub(super) fn finish(self) -> Vec<Stream> {
        let finish = |live: Live| Stream {
            file: live.point.file as usize,
            interface: live.point.interface as usize,
            names: live.names,
            analysis: live.connection.finish(),
        };
        self.live.into_iter().map(finish).collect()
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
            self.isn[dir as usize] = Some(segment.seq.0);
            if segment.flags.has(Flags::ACK) {
                self.isn[dir.back() as usize].get_or_insert(segment.ack.0.wrapping_sub(1));
            }
        }
    }
}
