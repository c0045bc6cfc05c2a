//! Assigns packets to connections.
//!
//! A connection is a pair of addresses at a capture point. A SYN with another initial sequence
//! number than that of the connection begins a new one between the same addresses (RFC 9293 section
//! 3.6.1 allows reuse of ports); so does a SYN after packets of a connection whose SYN was not
//! captured.

mod forget;
mod of_logs;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use diagnose::analysis::MIN_DATA_PACKETS;
use diagnose::connection_events::IcmpNotice;
use diagnose::{AnalysisSettings, CapturedPacket, ConnectionRecorder};
use foldhash::fast::FixedState;
use indexmap::{IndexMap, IndexSet};
use packet::Flags;
use packet::wire::{Endpoints, IcmpError};
use units::{Duration, Instant};

use super::CapturedConnection;
use super::active::ActiveConnections;
use super::connection_key::{CaptureSource, ConnectionKey};
use super::duplicates::DuplicateFilter;
use super::join::{CapturePair, CapturedSide, join};
use super::open_connection::{MAX_ICMP, NONE, OpenConnection};
use super::transit::{MAX_TRANSIT_PACKETS, PacketRecord};

/// Most capture points of a file at which a connection is looked for: a bridge of many ports has some dozens.
pub(super) const MAX_POINTS: usize = 64;

/// Fewest packets or sender events of a connection that are useful.
const LEAST: usize = 64;

/// What all connections of a file have in common.
#[derive(Debug, Clone, Copy, Default)]
struct FileSummary {
    /// Time of its first packet, on its own clock.
    begins: u64,
    /// Time of its last packet, since the first.
    ends: u64,
    /// A bare ACK or a SYN was captured.
    has_bare_ack: bool,
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
    /// Capture points with packets.
    points: IndexSet<CaptureSource, FixedState>,
    /// While capture points are compared: those of the same addresses in a file, at most [`MAX_POINTS`].
    points_of: IndexMap<ConnectionKey, Vec<CaptureSource>, FixedState>,
    /// Connections that were not compared, since more capture points had them.
    pub(super) apart: u64,
    files: Vec<FileSummary>,
    /// Connections with packets since they were last asked for, if they are.
    active: Option<ActiveConnections>,
    /// Connections that were forgotten, and how many there are when it is next looked for old ones.
    pub(super) forgotten: u64,
    next_look: usize,
}

impl ConnectionTable {
    /// Whether all packets of connections are kept, as a fit needs them.
    pub(super) const fn keeps_all_packets(&self) -> bool {
        self.settings.packets == usize::MAX
    }

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
            points: IndexSet::with_hasher(FixedState::with_seed(0)),
            points_of: IndexMap::with_hasher(FixedState::with_seed(0)),
            apart: 0,
            files: Vec::new(),
            active: None,
            forgotten: 0,
            next_look: 0,
        }
    }

    /// Notes from now on which connections have packets.
    pub(super) fn note_active(&mut self) {
        self.active.get_or_insert_default();
    }

    /// The connections with packets since the last call, in order of their index: each with its record.
    pub(super) fn take_active(&mut self) -> impl Iterator<Item = (usize, &ConnectionRecorder)> {
        let mut active = self.active.as_mut().map(ActiveConnections::take).unwrap_or_default();
        active.sort_unstable();
        let live = &self.live;
        active
            .into_iter()
            .filter(|&index| !live[index].is_merged)
            .map(|index| (index, &live[index].record))
    }

    /// Keeps packets from now on, to compare capture points.
    pub(super) fn record_packets(&mut self) {
        if core::mem::replace(&mut self.crossing, true) {
            return;
        }
        for live in 0..self.live.len() {
            let (point, ends) = (self.live[live].point, self.live[live].record.ends());
            self.add_point(ConnectionKey::of(point, ends).0, point);
        }
    }

    fn add_point(&mut self, key: ConnectionKey, point: CaptureSource) {
        let points = self.points_of.entry(key.anywhere()).or_default();
        if points.contains(&point) {
            return;
        }
        if points.len() < MAX_POINTS {
            points.push(point);
        } else {
            self.apart += 1;
        }
    }

    /// Sets the time of the first packet of a file, on its own clock.
    pub(super) fn file_begins(&mut self, file: usize, at: Duration) {
        self.summary(file).begins = at.as_nanos();
    }

    fn summary(&mut self, file: usize) -> &mut FileSummary {
        if self.files.len() <= file {
            self.files.resize(file + 1, FileSummary::default());
        }
        &mut self.files[file]
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
        let (key, src_is_low) = ConnectionKey::of(point, between);
        let known = match self.recent {
            Some((recent, index)) if recent == key => Some(index),
            _ => self.last.get(&key).copied(),
        };
        let segment = &packet.segment;
        let mut is_latest = true;
        let known = known.and_then(|index| {
            let live = &self.live[index as usize];
            if !live.is_new_connection(src_is_low, &packet) {
                return Some(index);
            }
            // The answer to the SYN of the connection before, repeated.
            let before = self.live.get(live.before as usize)?;
            is_latest = !before.is_answered_by(src_is_low, &packet);
            (!is_latest).then_some(live.before)
        });
        let index = known.unwrap_or_else(|| {
            // The sender of a SYN-ACK is the server.
            let answers = segment.flags.has(Flags::SYN | Flags::ACK);
            let ends = if answers { between.reversed() } else { between };
            let index = self.begin(key, point, ends, src_is_low != answers);
            self.set_previous(index, packet.at.as_nanos());
            index
        });
        let index = if self.crossing && self.live[index as usize].record.is_full() {
            self.merge_points(index, point, between)
        } else {
            index
        };
        if is_latest {
            self.recent = Some((key, index));
        }
        let live = &mut self.live[index as usize];
        let dir = live.dir(src_is_low);
        live.record_isn(dir, &packet);
        let mut packet = packet;
        packet.segment.dir = dir;
        let at = packet.at.as_nanos();
        if self.duplicates.is_copy(index, at, (packet.id, ttl), &packet.segment) {
            self.copies += 1;
            return index as usize;
        }
        if self.crossing && self.kept < MAX_TRANSIT_PACKETS {
            self.kept += 1;
            let extra = live.extra.get_or_insert_default();
            extra.seen[dir as usize].push(PacketRecord::of(&packet));
        }
        live.record.push(&packet);
        if let Some(active) = &mut self.active {
            active.add(index as usize);
        }
        let segment = &packet.segment;
        let bare = segment.payload == 0 && segment.flags.has(Flags::ACK);
        let opens_or_ends =
            [Flags::SYN, Flags::FIN, Flags::RST].iter().any(|&f| segment.flags.has(f));
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        let summary = self.summary(point.file as usize);
        summary.has_bare_ack |= bare && !opens_or_ends || opens;
        summary.ends = summary.ends.max(at);
        index as usize
    }

    /// Adds an ICMP error at a time in ns and a frame to the connection that it is about.
    pub(super) fn icmp(&mut self, point: CaptureSource, at: (u64, u64), error: &IcmpError) {
        let (key, src_is_low) = ConnectionKey::of(point, error.packet);
        let Some(&index) = self.last.get(&key) else { return };
        let live = &mut self.live[index as usize];
        let dir = live.dir(src_is_low);
        let notices = &mut live.extra.get_or_insert_default().icmp;
        if notices.len() < MAX_ICMP {
            let &IcmpError { reporter, problem, .. } = error;
            let at = (Instant::from_nanos(at.0), at.1);
            notices.push(IcmpNotice { at, reporter, problem, dir });
        }
        let summary = self.summary(point.file as usize);
        summary.ends = summary.ends.max(at.0);
    }

    /// Whether there is a connection between these addresses at a capture point.
    pub(super) fn has(&self, point: CaptureSource, between: Endpoints) -> bool {
        self.last.contains_key(&ConnectionKey::of(point, between).0)
    }

    /// Merges a connection with the parts of it that [`MAX_POINTS`] capture points of the file have, unless
    /// they captured the same packets: a tap has an interface for each direction, and a merged file
    /// one for each of its parts. Returns the index of the connection.
    fn merge_points(&mut self, index: u32, point: CaptureSource, between: Endpoints) -> u32 {
        let mut index = index;
        let (own_key, _) = ConnectionKey::of(point, between);
        let points = self.points_of.get(&own_key.anywhere()).map_or(&[][..], Vec::as_slice);
        for other_point in points.iter().filter(|&&other| other != point) {
            let (key, _) = ConnectionKey::of(*other_point, between);
            let Some(&other) = self.last.get(&key) else { continue };
            if other == index {
                continue;
            }
            // The one that was seen first remains.
            let (first, second) = (index.min(other), index.max(other));
            let (low, high) = self.live.split_at_mut(second as usize);
            let (kept, added) = (&mut low[first as usize], &mut high[0]);
            let is_reversed = kept.client_is_low != added.client_is_low;
            if kept.is_merged || added.is_merged || !kept.has_isns_of(added, is_reversed) {
                continue;
            }
            if !kept.record.absorb(&added.record, is_reversed) {
                continue;
            }
            kept.take_state_of(added, is_reversed);
            added.is_merged = true;
            self.last.insert(own_key, first);
            self.last.insert(key, first);
            index = first;
        }
        index
    }

    /// Merges what is left of [`merge_points`](Self::merge_points), and numbers the connections anew.
    fn merge_all_points(&mut self) {
        for index in 0..self.live.len() as u32 {
            let live = &self.live[index as usize];
            if !live.is_merged {
                let (point, ends) = (live.point, live.record.ends());
                self.merge_points(index, point, ends);
            }
        }
        if !self.live.iter().any(|live| live.is_merged) {
            return;
        }
        self.live.retain(|live| !live.is_merged);
        let mut next: BTreeMap<u32, u32> = BTreeMap::new();
        for live in &mut self.live {
            let number = next.entry(live.point.file).or_default();
            live.record.set_stream(*number);
            *number += 1;
        }
    }

    /// Payload of a full segment between two hosts, by their SYNs; that of Ethernet with timestamps
    /// if they are unknown.
    pub(super) fn mss(&self, src: SocketAddr, dst: SocketAddr) -> u64 {
        const USUAL: u64 = 1_448;
        let between = Endpoints { src, dst };
        let known = self.points.iter().find_map(|&point| {
            let index = *self.last.get(&ConnectionKey::of(point, between).0)?;
            let syns = self.live[index as usize].record.syns();
            let [(one, stamps), (other, also)] = syns.map(Option::unwrap_or_default);
            let least = one.min(other);
            (least > 0).then(|| u64::from(least) - if stamps && also { 12 } else { 0 })
        });
        known.unwrap_or(USUAL)
    }

    /// Start time of the file of a connection, in nanoseconds on its own clock.
    pub(super) fn begins(&self, index: usize) -> u64 {
        self.files.get(self.file(index)).map_or(0, |file| file.begins)
    }

    /// The file of a connection.
    pub(super) fn file(&self, index: usize) -> usize {
        self.live[index].point.file as usize
    }

    /// Adds a connection without packets.
    pub(super) fn open(&mut self, point: CaptureSource, ends: Endpoints) -> usize {
        let (key, client_is_low) = ConnectionKey::of(point, ends);
        self.begin(key, point, ends, client_is_low) as usize
    }

    /// Sets the names of the client and the server of a connection.
    pub(super) fn name(&mut self, index: usize, of: impl Fn(SocketAddr) -> Option<String>) {
        let live = &mut self.live[index];
        let names = &mut live.extra.get_or_insert_default().names;
        if names.is_none() {
            let name = |end: SocketAddr| of(end).unwrap_or_else(|| end.to_string());
            let ends = live.record.ends();
            *names = Some([name(ends.src), name(ends.dst)]);
        }
    }

    fn begin(
        &mut self,
        key: ConnectionKey,
        point: CaptureSource,
        ends: Endpoints,
        client_is_low: bool,
    ) -> u32 {
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
        let record = ConnectionRecorder::new(ends, stream, settings);
        let before = self.last.insert(key, index).unwrap_or(NONE);
        self.live.push(OpenConnection {
            point,
            client_is_low,
            isn: [None; 2],
            syn_data: [0; 2],
            before,
            is_merged: false,
            record,
            extra: None,
        });
        self.points.insert(point);
        if self.crossing {
            self.add_point(key, point);
        }
        index
    }

    /// Sets what a new connection has of the one before between the same ports, if that was open.
    fn set_previous(&mut self, index: u32, at: u64) {
        let before = self.live[index as usize].before;
        let Some(previous) = self.live.get(before as usize) else { return };
        if let Some((_, end)) = previous.record.span().filter(|_| previous.record.has_been_open()) {
            let gap = Instant::from_nanos(at).since(end);
            self.live[index as usize].record.set_previous(gap);
        }
    }

    /// Ends all connections; returns them by file in order of their begin, and those present at two
    /// capture points.
    pub(super) fn finish(mut self) -> (Vec<CapturedConnection>, Vec<CapturePair>) {
        if self.crossing {
            self.merge_all_points();
        }
        // The map takes as much memory as the connections.
        drop(core::mem::take(&mut self.last));
        self.live.sort_by_key(|live| live.point.file);
        let sides = self.live.iter_mut().map(|live| CapturedSide {
            point: live.point,
            ends: live.record.ends(),
            isn: live.isn,
            seen: live
                .extra
                .as_mut()
                .map(|extra| core::mem::take(&mut extra.seen))
                .unwrap_or_default(),
        });
        let pairs = if self.crossing { join(&sides.collect::<Vec<_>>()) } else { Vec::new() };
        let files = &self.files;
        let finish = |mut live: OpenConnection| {
            let file = live.point.file as usize;
            let extra = live.extra.map(|extra| *extra).unwrap_or_default();
            extra.icmp.into_iter().for_each(|notice| live.record.push_icmp(notice));
            CapturedConnection {
                file,
                interface: live.point.interface as usize,
                names: extra.names.map(Box::new),
                record: live
                    .record
                    .finish(Instant::from_nanos(files.get(file).map_or(0, |file| file.ends))),
            }
        };
        let mut streams: Vec<CapturedConnection> = self.live.into_iter().map(finish).collect();
        // They are collected in place, in the memory of the open connections, which take twice as much.
        streams.shrink_to_fit();
        mark_filtered_captures(&mut streams, &self.files);
        (streams, pairs)
    }
}

/// Marks the connections of files that have data of many packets and not one bare ACK: a display
/// filter left them out, also in connections with too few packets to show it.
fn mark_filtered_captures(streams: &mut [CapturedConnection], files: &[FileSummary]) {
    for of_file in streams.chunk_by_mut(|one, next| one.file == next.file) {
        let file = of_file.first().and_then(|one| files.get(one.file));
        if file.is_some_and(|file| file.has_bare_ack) {
            continue;
        }
        let data: u64 =
            of_file.iter().map(|one| one.analysis().main().map_or(0, |flow| flow.counts.new)).sum();
        if data >= MIN_DATA_PACKETS {
            of_file.iter_mut().for_each(|one| one.record.set_of_filtered_capture());
        }
    }
}
