//! Assigns packets to connections.
//!
//! A connection is a pair of addresses at a capture point. A SYN with another initial sequence
//! number than that of the connection begins a new one between the same addresses (RFC 9293 section
//! 3.6.1 allows reuse of ports); so does a SYN after packets of a connection whose SYN was not
//! captured.

use core::hash::{Hash, Hasher};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use diagnose::analysis::MIN_DATA_PACKETS;
use diagnose::{AnalysisSettings, CapturedPacket, ConnectionAnalyzer, StateSample};
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use packet::wire::Endpoints;
use packet::{Dir, Flags};
use units::{Duration, Instant};

use super::CapturedConnection;
use super::duplicates::DuplicateFilter;
use super::join::{CapturePair, CapturedSide, join};
use super::logs::{Anchor, ConnectionLog};
use super::transit::{MAX_TRANSIT_PACKETS, PacketRecord};

/// Fewest packets or sender events of a connection that are useful.
const LEAST: usize = 64;

/// A capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CaptureSource {
    /// Index of the file.
    pub(super) file: u32,
    /// Index of the capture point in it.
    pub(super) interface: u32,
}

/// The addresses of a connection at a capture point, the lower one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ConnectionKey {
    addresses: [u128; 2],
    /// Ports (two bytes each), interface, and whether it is IPv6.
    rest: u64,
    file: u32,
}

impl Hash for ConnectionKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Folding an address to 64 bits distributes well enough and is faster.
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

impl ConnectionKey {
    fn of(point: CaptureSource, ends: Endpoints) -> Self {
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

/// A connection, with the state that distinguishes it from the next between the same addresses.
#[derive(Debug)]
struct OpenConnection {
    point: CaptureSource,
    ends: Endpoints,
    /// Initial sequence number of each host, if captured.
    isn: [Option<u32>; 2],
    /// Data in the SYN of each host (RFC 7413), in bytes: its answer may acknowledge them.
    syn_data: [u32; 2],
    /// The previous connection between the same addresses.
    before: Option<u32>,
    names: Option<[String; 2]>,
    connection: ConnectionAnalyzer,
    /// Packets of each direction, if captures are compared.
    seen: [Vec<PacketRecord>; 2],
    /// Time of the first and the last packet, in nanoseconds since the first of the file.
    span: (u64, u64),
    /// MSS option of each host, and whether it sent timestamps.
    mss: [(u16, bool); 2],
}

/// The connections of all files.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    settings: AnalysisSettings,
    /// The last connection between two addresses at a capture point.
    last: IndexMap<ConnectionKey, u32, FixedState>,
    live: Vec<OpenConnection>,
    /// Current file, and the index of its next stream.
    streams: (u32, u32),
    /// The last packet's connection: consecutive packets often belong to one.
    recent: Option<(ConnectionKey, u32)>,
    /// Whether packets are kept to compare captures, and how many are.
    crossing: bool,
    kept: usize,
    duplicates: DuplicateFilter,
    /// Packets that were second copies.
    pub(super) copies: u64,
    /// Capture points with packets, and the start time of each file.
    points: Vec<CaptureSource>,
    begins: Vec<u64>,
}

impl ConnectionTable {
    pub(super) fn new(settings: AnalysisSettings, crossing: bool) -> Self {
        Self {
            settings,
            last: IndexMap::with_hasher(FixedState::with_seed(0)),
            live: Vec::new(),
            streams: (0, 0),
            recent: None,
            crossing,
            kept: 0,
            duplicates: DuplicateFilter::default(),
            copies: 0,
            points: Vec::new(),
            begins: Vec::new(),
        }
    }

    /// Keeps packets from now on, to compare capture points.
    pub(super) fn record_packets(&mut self) {
        self.crossing = true;
    }

    /// Sets the time of the first packet of a file, on its own clock.
    pub(super) fn file_begins(&mut self, file: usize, at: Duration) {
        if self.begins.len() <= file {
            self.begins.resize(file + 1, 0);
        }
        self.begins[file] = at.as_nanos();
    }

    /// Adds a packet with its time to live, unless it is the second copy of one; sets its direction
    /// and returns the index of its connection.
    pub(super) fn packet(
        &mut self,
        point: CaptureSource,
        between: Endpoints,
        packet: CapturedPacket,
        ttl: u8,
    ) -> usize {
        let key = ConnectionKey::of(point, between);
        let known = match self.recent {
            Some((recent, index)) if recent == key => Some(index),
            _ => self.last.get(&key).copied(),
        };
        let segment = &packet.segment;
        let known =
            known.filter(|&index| !self.live[index as usize].is_new_connection(between, &packet));
        let index = known.unwrap_or_else(|| {
            // The sender of a SYN-ACK is the server.
            let answers = segment.flags.has(Flags::SYN | Flags::ACK);
            let ends = if answers { between.reversed() } else { between };
            self.begin(key, point, ends)
        });
        self.recent = Some((key, index));
        let live = &mut self.live[index as usize];
        let dir = live.dir(between.src);
        live.record_isn(dir, &packet);
        let mut packet = packet;
        packet.segment.dir = dir;
        let at = packet.at.as_nanos();
        if self.duplicates.is_copy(index, at, (packet.id, ttl), &packet.segment) {
            self.copies += 1;
            return index as usize;
        }
        live.span = (live.span.0.min(at), live.span.1.max(at));
        if self.crossing && self.kept < MAX_TRANSIT_PACKETS {
            self.kept += 1;
            live.seen[dir as usize].push(PacketRecord::of(&packet));
        }
        live.connection.push(&packet);
        index as usize
    }

    /// Connections between these addresses in files other than that of `point`.
    pub(super) fn in_other_files(&self, point: CaptureSource, between: Endpoints) -> Vec<usize> {
        let others = self.points.iter().filter(|other| other.file != point.file);
        others
            .flat_map(|&other| {
                let last = self.last.get(&ConnectionKey::of(other, between)).copied();
                core::iter::successors(last, |&index| self.live[index as usize].before)
            })
            .map(|index| index as usize)
            .collect()
    }

    /// The addresses of the connection with this port, if the captures have only one.
    pub(super) fn by_port(&self, port: u16) -> Option<Endpoints> {
        let mut found: Vec<Endpoints> = self
            .live
            .iter()
            .map(|live| live.ends)
            .filter_map(|ends| match (ends.src.port() == port, ends.dst.port() == port) {
                (true, false) => Some(ends),
                (false, true) => Some(ends.reversed()),
                _ => None,
            })
            .collect();
        found.dedup();
        (found.len() == 1).then(|| found[0])
    }

    /// Payload of a full segment between two hosts, by their SYNs; that of Ethernet with timestamps
    /// if they are unknown.
    pub(super) fn mss(&self, src: SocketAddr, dst: SocketAddr) -> u64 {
        const USUAL: u64 = 1_448;
        let between = Endpoints { src, dst };
        let known = self.points.iter().find_map(|&point| {
            let index = *self.last.get(&ConnectionKey::of(point, between))?;
            let [(one, stamps), (other, also)] = self.live[index as usize].mss;
            let least = one.min(other);
            (least > 0).then(|| u64::from(least) - if stamps && also { 12 } else { 0 })
        });
        known.unwrap_or(USUAL)
    }

    /// Start time of the file of a connection, in nanoseconds on its own clock.
    pub(super) fn begins(&self, index: usize) -> u64 {
        self.begins.get(self.file(index)).copied().unwrap_or(0)
    }

    /// The file of a connection.
    pub(super) fn file(&self, index: usize) -> usize {
        self.live[index].point.file as usize
    }

    /// Whether the connection existed between these times (nanoseconds since the first packet).
    pub(super) fn overlaps(&self, index: usize, from: u64, to: u64) -> bool {
        /// Logs have records before the first packet of a connection and after its last.
        const SLACK: u64 = 1_000_000_000;
        let (first, last) = self.live[index].span;
        from <= last.saturating_add(SLACK) && to.saturating_add(SLACK) >= first
    }

    /// Nanoseconds by which the clock of a log is ahead of that of a connection's capture: the
    /// median over matching events, and their number.
    pub(super) fn ahead(
        &self,
        index: usize,
        between: Endpoints,
        log: &ConnectionLog,
    ) -> Option<(i64, usize)> {
        let live = &self.live[index];
        let dir = live.dir(between.src);
        let base = if log.relative { live.isn[dir as usize]?.wrapping_add(1) } else { 0 };
        // Time of the first occurrence of each event.
        let mut first = BTreeMap::new();
        for seen in &live.seen[dir as usize] {
            if seen.len > 0 {
                first.entry(Anchor::Sent(seen.seq)).or_insert(seen.at);
            }
        }
        for seen in &live.seen[dir.reversed() as usize] {
            first.entry(Anchor::Acked(seen.ack)).or_insert(seen.at);
        }
        let begins = self.begins(index);
        let mut offsets = Vec::new();
        for &(anchor, at) in &log.anchors {
            let anchor = match anchor {
                Anchor::Sent(seq) => Anchor::Sent(seq.wrapping_add(base)),
                Anchor::Acked(ack) => Anchor::Acked(ack.wrapping_add(base)),
            };
            // The first occurrence in the log matches the first in the capture.
            if let Some(seen) = first.remove(&anchor) {
                offsets.push(at.wrapping_sub(begins.wrapping_add(seen)).cast_signed());
            }
        }
        offsets.sort_unstable();
        let median = *offsets.get(offsets.len() / 2)?;
        Some((median, offsets.len()))
    }

    /// Adds a sample of a log about host `of`, at nanoseconds since the first packet.
    pub(super) fn state(&mut self, index: usize, of: SocketAddr, at: u64, sample: StateSample) {
        let live = &mut self.live[index];
        let (at, of) = (Instant::from_nanos(at), live.dir(of));
        live.connection.push_state(&StateSample { at, of, ..sample });
    }

    /// Adds a connection without packets.
    pub(super) fn open(&mut self, point: CaptureSource, ends: Endpoints) -> usize {
        self.begin(ConnectionKey::of(point, ends), point, ends) as usize
    }

    /// Sets the names of the client and the server of a connection.
    pub(super) fn name(&mut self, index: usize, of: impl Fn(SocketAddr) -> Option<String>) {
        let live = &mut self.live[index];
        if live.names.is_none() {
            let name = |end| of(end).unwrap_or_else(|| end.to_string());
            live.names = Some([name(live.ends.src), name(live.ends.dst)]);
        }
    }

    fn begin(&mut self, key: ConnectionKey, point: CaptureSource, ends: Endpoints) -> u32 {
        if self.streams.0 != point.file {
            self.streams = (point.file, 0);
        }
        let stream = self.streams.1;
        self.streams.1 += 1;
        let index = self.live.len() as u32;
        let share = |all: usize| match all / (1 + stream as usize) {
            // No limit.
            _ if all == usize::MAX => all,
            few if few < LEAST => 0,
            some => some,
        };
        // The connections share the limit.
        let AnalysisSettings { packets, turns } = self.settings;
        let settings = AnalysisSettings { packets: share(packets), turns: share(turns) };
        let connection = ConnectionAnalyzer::new(ends, stream, settings);
        let before = self.last.insert(key, index);
        self.live.push(OpenConnection {
            point,
            ends,
            isn: [None; 2],
            syn_data: [0; 2],
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

    /// Ends all connections; returns them by file in order of their begin, and those present at two
    /// capture points.
    pub(super) fn finish(mut self) -> (Vec<CapturedConnection>, Vec<CapturePair>) {
        self.live.sort_by_key(|live| live.point.file);
        let sides = self.live.iter_mut().map(|live| CapturedSide {
            point: live.point,
            ends: live.ends,
            isn: live.isn,
            seen: core::mem::take(&mut live.seen),
        });
        let pairs = if self.crossing { join(&sides.collect::<Vec<_>>()) } else { Vec::new() };
        let finish = |live: OpenConnection| CapturedConnection {
            file: live.point.file as usize,
            interface: live.point.interface as usize,
            names: live.names,
            analysis: live.connection.finish(),
        };
        let mut streams: Vec<CapturedConnection> = self.live.into_iter().map(finish).collect();
        mark_filtered_captures(&mut streams);
        (streams, pairs)
    }
}

/// Marks the connections of files that have data of many packets and not one bare ACK: a display
/// filter left them out, also in connections with too few packets to show it.
fn mark_filtered_captures(streams: &mut [CapturedConnection]) {
    let mut files: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for one in &*streams {
        let (data, bare) = files.entry(one.file).or_default();
        *data += one.analysis.main().map_or(0, |flow| flow.counts.new);
        *bare += one.analysis.bare_acks.iter().sum::<u64>() + u64::from(one.analysis.syns);
    }
    for one in streams {
        let (data, bare) = files.get(&one.file).copied().unwrap_or_default();
        one.analysis.of_filtered_capture = bare == 0 && data >= MIN_DATA_PACKETS;
    }
}

impl OpenConnection {
    fn dir(&self, src: SocketAddr) -> Dir {
        if src == self.ends.src { Dir::Forward } else { Dir::Reverse }
    }

    /// Whether this packet begins another connection between the same addresses.
    fn is_new_connection(&self, between: Endpoints, packet: &CapturedPacket) -> bool {
        let segment = &packet.segment;
        if !segment.flags.has(Flags::SYN) {
            return false;
        }
        let dir = self.dir(between.src);
        let (own, peer) = (self.isn[dir as usize], self.isn[dir.reversed() as usize]);
        if segment.flags.has(Flags::ACK) {
            // A server that lost its state answers the same SYN with another ISN.
            let answers = segment.ack.0.wrapping_sub(1);
            let data = self.syn_data[dir.reversed() as usize];
            peer.is_some_and(|isn| answers.wrapping_sub(isn) > data)
        } else {
            // Without an ISN, the earlier packets belong to a connection whose SYN was not
            // captured.
            own != Some(segment.seq.0)
        }
    }

    fn record_isn(&mut self, dir: Dir, packet: &CapturedPacket) {
        let segment = &packet.segment;
        if segment.flags.has(Flags::SYN) {
            let mss = segment.syn_options().map_or(0, |syn| syn.mss);
            self.mss[dir as usize] = (mss, segment.timestamps.is_some());
            self.isn[dir as usize] = Some(segment.seq.0);
            self.syn_data[dir as usize] = self.syn_data[dir as usize].max(segment.payload);
            if segment.flags.has(Flags::ACK) {
                self.isn[dir.reversed() as usize].get_or_insert(segment.ack.0.wrapping_sub(1));
            }
        }
    }
}
