//! Reassembles fragmented IP packets (RFC 791 section 3.2, RFC 8200 section 4.5).
//!
//! Only the beginning of a packet, which has the headers, is kept; of the rest the ranges. As in
//! current systems (RFC 5722; Linux since 4.19 also for IPv4), a packet with fragments that overlap is
//! dropped; a second copy of a fragment is not an overlap. Memory is bounded: the oldest packet gives
//! way, and is counted as incomplete.

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use packet::wire::{FragmentKey, IpFragment};
use units::Duration;

/// Most packets under reassembly.
const MAX_PACKETS: usize = 1_024;
/// Most ranges of a packet that do not touch.
const MAX_RANGES: usize = 64;
/// Bytes that are kept: the headers of tunnels, of IP and of TCP.
const HEAD: u32 = 512;
/// Time after which a packet is given up (Linux `ipfrag_time`, FreeBSD `IPFRAGTTL`: 30 s).
const GIVE_UP: Duration = Duration::from_secs(30);
/// Most bytes of an IP packet.
const MAX_PACKET: u32 = 65_535;

/// Packets under reassembly, by capture point and key.
#[derive(Debug)]
pub(super) struct Reassembly {
    packets: IndexMap<(u32, FragmentKey), PartialPacket, FixedState>,
    pub(super) counts: FragmentCounts,
}

/// What became of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FragmentCounts {
    /// Packets that were reassembled.
    pub reassembled: u64,
    /// Their fragments.
    pub used: u64,
    /// Fragments of the others.
    pub unused: u64,
    /// Packets with missing fragments.
    pub incomplete: u64,
    /// Packets with fragments that overlap or exceed the length of a packet.
    pub overlapping: u64,
}

#[derive(Debug)]
struct PartialPacket {
    since: Duration,
    /// Number of the first frame.
    frame: u64,
    header: Vec<u8>,
    head: Vec<u8>,
    /// Sorted ranges that were received and do not touch.
    ranges: Vec<(u32, u32)>,
    /// Length of the payload, from the last fragment.
    len: Option<u32>,
    fragments: u64,
    /// Bytes that the capture truncated.
    cut: u32,
    /// It is invalid: later fragments are ignored.
    refused: bool,
}

/// A reassembled packet: its first bytes from the IP header on, and its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WholePacket {
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
    /// Bytes of the payload that the capture truncated.
    pub(super) cut: u32,
}

impl Reassembly {
    pub(super) fn new() -> Self {
        let packets = IndexMap::with_hasher(FixedState::with_seed(0));
        Self { packets, counts: FragmentCounts::default() }
    }

    /// Adds a fragment captured at a time, in a frame, and at a capture point; returns the packet that it completes.
    pub(super) fn add(
        &mut self,
        point: u32,
        (at, frame): (Duration, u64),
        fragment: &IpFragment<'_>,
    ) -> Option<WholePacket> {
        let key = (point, fragment.key);
        let stale = |packet: &PartialPacket| at.saturating_sub(packet.since) > GIVE_UP;
        if self.packets.get(&key).is_some_and(stale) {
            self.give_up(0, Some(key));
        }
        if !self.packets.contains_key(&key) && self.packets.len() >= MAX_PACKETS {
            self.give_up(0, None);
        }
        let packet = self.packets.entry(key).or_insert_with(|| PartialPacket {
            since: at,
            frame,
            header: Vec::new(),
            head: Vec::new(),
            ranges: Vec::new(),
            len: None,
            fragments: 0,
            cut: 0,
            refused: false,
        });
        packet.fragments += 1;
        if packet.refused || !packet.insert(fragment) {
            packet.refused = true;
            return None;
        }
        let len = packet.len.filter(|&len| packet.ranges == [(0, len)])?;
        let packet = self.packets.shift_remove(&key)?;
        self.counts.reassembled += 1;
        self.counts.used += packet.fragments;
        let mut bytes = packet.header;
        let whole = bytes.len() + len as usize;
        bytes.extend_from_slice(&packet.head);
        Some(WholePacket { bytes, len: whole, cut: packet.cut })
    }

    /// Counts what is left. Returns the beginnings of incomplete packets, oldest first, with the
    /// capture point, the time and the frame of each: their headers and the payload up to the first
    /// gap.
    pub(super) fn finish(&mut self) -> Vec<(u32, Duration, u64, WholePacket)> {
        let mut beginnings = Vec::new();
        for ((point, _), packet) in &self.packets {
            if let Some(&(0, end)) = packet.ranges.first()
                && !packet.refused
            {
                let bytes = [&packet.header[..], &packet.head].concat();
                let len = packet.header.len() + end as usize;
                let whole = WholePacket { bytes, len, cut: packet.cut.min(end) };
                beginnings.push((*point, packet.since, packet.frame, whole));
            }
        }
        while !self.packets.is_empty() {
            self.give_up(0, None);
        }
        beginnings
    }

    /// Gives up the packet with this key, or the one at this index.
    fn give_up(&mut self, index: usize, key: Option<(u32, FragmentKey)>) {
        let packet = match key {
            Some(key) => self.packets.shift_remove(&key),
            None => self.packets.shift_remove_index(index).map(|(_, packet)| packet),
        };
        let Some(packet) = packet else { return };
        self.counts.unused += packet.fragments;
        if packet.refused {
            self.counts.overlapping += 1;
        } else {
            self.counts.incomplete += 1;
        }
    }
}

impl PartialPacket {
    /// Inserts a fragment; false if it makes the packet invalid.
    fn insert(&mut self, fragment: &IpFragment<'_>) -> bool {
        let (start, len) = (fragment.offset, fragment.len);
        let Some(end) = start.checked_add(len).filter(|&end| end <= MAX_PACKET) else {
            return false;
        };
        let known_end = self.ranges.last().map_or(0, |range| range.1);
        if !fragment.more && (self.len.is_some_and(|len| len != end) || known_end > end)
            || self.len.is_some_and(|len| end > len)
            || fragment.more && len == 0
        {
            return false;
        }
        if self.ranges.iter().any(|&(from, to)| from <= start && end <= to && start < end) {
            // A second copy.
            return true;
        }
        if self.ranges.iter().any(|&(from, to)| start < to && from < end) {
            return false;
        }
        if !fragment.more {
            self.len = Some(end);
        }
        if start == 0 || self.header.is_empty() {
            self.header = fragment.whole_header();
        }
        self.cut += len - fragment.payload.len() as u32;
        if start < HEAD {
            let at = start as usize;
            let kept = fragment.payload.len().min(HEAD as usize - at);
            if self.head.len() < at + kept {
                self.head.resize(at + kept, 0);
            }
            self.head[at..at + kept].copy_from_slice(&fragment.payload[..kept]);
        }
        let at = self.ranges.partition_point(|range| range.0 < start);
        self.ranges.insert(at, (start, end));
        self.ranges.dedup_by(|next, range| {
            let touches = range.1 == next.0;
            if touches {
                range.1 = next.1;
            }
            touches
        });
        self.ranges.len() <= MAX_RANGES
    }
}
