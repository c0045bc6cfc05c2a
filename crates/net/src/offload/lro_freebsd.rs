//! FreeBSD's software LRO, as used by drivers that queue the packets of a pass.
//!
//! Sources: tcp_lro.c of releng/14.3 (tcp_lro_queue_mbuf, tcp_lro_flush_all, tcp_lro_rx_common,
//! tcp_lro_condense, tcp_push_and_replace, tcp_flush_out_entry). Effects on timing:
//! - Packets are sorted by the flow hash that the descriptor claims. If that is garbage marked as
//!   valid, a pass is delivered in the order of the garbage, and nothing merges.
//! - Merged pure ACKs disappear without a count: N of them reach TCP as one with `nsegs` 1.
//! - A segment with SACK blocks or FIN is never appended, but later segments are appended to it.
//! - The aggregate keeps its first packet's flags; PSH of later ones is lost.
//!
//! Not modelled: bad checksums, IP options, fragments and forwarding, which switch LRO off.

use packet::{Dir, Flags, Options, Segment, Timestamps};
use units::{FlowId, SeqNum};

use super::RssHash;

/// Bits of a sort key that hold the arrival index.
const INDEX_BITS: u32 = 24;

/// Limits and counting rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LroParams {
    /// Packets that one aggregate must stay below (`lro_ackcnt_lim`).
    pub ack_limit: u32,
    /// Payload bytes that one aggregate must stay below (`lro_length_lim`).
    pub length_limit: u32,
    /// Whether `lro_nsegs` counts merged pure ACKs too.
    pub counts_pure_acks: bool,
    /// Flows that can be held at a time (`net.inet.tcp.lro.entries`).
    pub entries: usize,
}

impl LroParams {
    /// 13.1 and later, 14, main.
    pub const FREEBSD_14: Self =
        Self { ack_limit: 65_535, length_limit: 65_280, counts_pure_acks: false, entries: 8 };

    /// 13.0: an older limit, and every merged packet counts.
    pub const FREEBSD_13_0: Self =
        Self { length_limit: 65_535, counts_pure_acks: true, ..Self::FREEBSD_14 };
}

/// LRO of one receive queue.
#[derive(Debug, Clone)]
pub struct Lro {
    params: LroParams,
    /// Packets of the pass, in order of arrival.
    pass: Vec<Segment>,
    /// Hash type, hash and index in `pass` of each packet.
    keys: Vec<u64>,
    /// Flows under one key, in order of appearance.
    flows: Vec<(FlowId, Dir)>,
}

impl Lro {
    /// Creates an empty queue.
    pub fn new(params: LroParams) -> Self {
        Self { params, pass: Vec::new(), keys: Vec::new(), flows: Vec::new() }
    }

    /// `tcp_lro_queue_mbuf`: takes the next packet of the pass. The caller ends the pass with
    /// [`Lro::flush`] when the driver's queue is full, at the latest after 16,777,216 packets.
    #[inline]
    pub fn push(&mut self, packet: &Segment, rss: RssHash) {
        let arrival = self.pass.len() as u64;
        debug_assert!(arrival < 1 << INDEX_BITS, "a pass holds fewer than 2^24 packets");
        self.keys.push(u64::from(rss.hashtype) << 56 | u64::from(rss.flowid) << 24 | arrival);
        self.pass.push(*packet);
    }

    /// `tcp_lro_flush_all`: ends the pass; aggregates go to the end of `up` in order of delivery.
    pub fn flush(&mut self, up: &mut Vec<Segment>) {
        // No two keys are equal, so every correct sort gives the kernel's order.
        self.keys.sort_unstable();
        let mut start = 0;
        for at in 0..self.keys.len() {
            if self.keys[at] >> INDEX_BITS != self.keys[start] >> INDEX_BITS {
                self.flush_active(start, at, up);
                start = at;
            }
            let packet = self.packet(at);
            let flow = (packet.flow, packet.dir);
            let known = self.flows.contains(&flow);
            if packet.flags.has(Flags::SYN) || (!known && self.flows.len() == self.params.entries) {
                // The packet cannot be held: the held flows are delivered before it.
                let packet = *packet;
                self.flush_active(start, at, up);
                up.push(packet);
                start = at + 1;
            } else if !known {
                self.flows.push(flow);
            }
        }
        self.flush_active(start, self.keys.len(), up);
        self.keys.clear();
        self.pass.clear();
    }

    /// Condenses and delivers the held flows, whose packets are at `start..end` of the sorted
    /// order; the flow that began last is first.
    fn flush_active(&mut self, start: usize, end: usize, up: &mut Vec<Segment>) {
        while let Some(flow) = self.flows.pop() {
            let mut entry: Option<LroEntry> = None;
            for at in start..end {
                let packet = self.packet(at);
                if (packet.flow, packet.dir) != flow {
                    continue;
                }
                match &mut entry {
                    None => entry = Some(LroEntry::new(packet)),
                    Some(entry) => up.extend(entry.offer(&self.params, packet)),
                }
            }
            up.extend(entry.map(LroEntry::finish));
        }
    }

    #[inline]
    fn packet(&self, at: usize) -> &Segment {
        &self.pass[(self.keys[at] & ((1 << INDEX_BITS) - 1)) as usize]
    }
}

/// One flow being condensed (`struct lro_entry`): a head and the packets merged into it.
#[derive(Debug, Clone)]
pub struct LroEntry {
    head: Segment,
    /// Acknowledgment number of the packet that began the entry, before any merging.
    first_ack: SeqNum,
    next_seq: SeqNum,
    ack_seq: SeqNum,
    window: u16,
    /// Newest timestamps, kept even while the head carries none.
    timestamps: Timestamps,
    needs_merge: bool,
}

impl LroEntry {
    /// An entry with `packet` as its head.
    pub fn new(packet: &Segment) -> Self {
        let mut entry = Self {
            head: *packet,
            first_ack: packet.ack,
            next_seq: SeqNum(0),
            ack_seq: SeqNum(0),
            window: 0,
            timestamps: Timestamps::default(),
            needs_merge: false,
        };
        entry.set_head(packet);
        entry
    }

    /// `tcp_set_entry_to_mbuf`.
    fn set_head(&mut self, packet: &Segment) {
        self.head = *packet;
        self.head.nsegs = 1;
        self.next_seq = SeqNum(packet.seq.0.wrapping_add(packet.payload));
        self.ack_seq = packet.ack;
        self.window = packet.window;
        if let Some(timestamps) = plain_timestamps(packet) {
            self.timestamps = timestamps;
        }
        self.needs_merge = false;
    }

    /// `tcp_lro_condense`, one step: merges `packet`, or makes it the new head and returns the
    /// old aggregate.
    pub fn offer(&mut self, params: &LroParams, packet: &Segment) -> Option<Segment> {
        // An old pure ACK is dropped before it is queued (tcp_lro_rx_common).
        if packet.payload == 0 && later(self.first_ack, packet.ack) {
            return None;
        }
        if self.must_flush_before(params, packet) {
            let done = self.aggregate();
            self.set_head(packet);
            return Some(done);
        }
        if packet.payload != 0 || later(packet.ack, self.ack_seq) {
            self.next_seq = SeqNum(self.next_seq.0.wrapping_add(packet.payload));
            self.ack_seq = packet.ack;
            self.window = packet.window;
            self.needs_merge = true;
        } else if packet.ack == self.ack_seq && packet.window > self.window {
            self.window = packet.window;
            self.needs_merge = true;
        }
        if packet.payload != 0 || params.counts_pure_acks {
            self.head.payload += packet.payload;
            self.head.nsegs = self.head.nsegs.saturating_add(1);
        }
        None
    }

    /// Returns whether the aggregate must be delivered before `packet`. The order of the checks
    /// matters: the timestamps are adopted before the last one.
    fn must_flush_before(&mut self, params: &LroParams, packet: &Segment) -> bool {
        let segments = u32::from(self.head.nsegs) + 1;
        let length = u64::from(self.head.payload) + u64::from(packet.payload);
        if segments >= params.ack_limit || length >= u64::from(params.length_limit) {
            return true;
        }
        let timestamps = plain_timestamps(packet);
        let bare = packet.timestamps.is_none() && packet.options == Options::None;
        let only_ack_push = packet.flags.without(Flags::ACK | Flags::PSH) == Flags::NONE;
        if (timestamps.is_none() && !bare) || !only_ack_push {
            return true;
        }
        if let Some(timestamps) = timestamps {
            if later(SeqNum(self.timestamps.val), SeqNum(timestamps.val)) {
                return true;
            }
            self.timestamps = timestamps;
        }
        let duplicate =
            packet.payload == 0 && packet.ack == self.ack_seq && packet.window == self.window;
        packet.seq != self.next_seq
            || packet.flags.has(Flags::ACK) != self.head.flags.has(Flags::ACK)
            || duplicate
    }

    /// `tcp_flush_out_entry`: returns the aggregate as delivered.
    fn aggregate(&self) -> Segment {
        let mut up = self.head;
        if self.needs_merge {
            up.ack = self.ack_seq;
            up.window = self.window;
            if plain_timestamps(&self.head).is_some() {
                up.timestamps = Some(self.timestamps);
            }
        }
        up
    }

    /// Returns the last aggregate.
    pub fn finish(self) -> Segment {
        self.aggregate()
    }
}

/// The timestamps of a segment that carries no other option.
fn plain_timestamps(packet: &Segment) -> Option<Timestamps> {
    packet.timestamps.filter(|_| packet.options == Options::None)
}

/// Returns whether `a` is after `b` modulo 2^32 (`SEQ_GT`, `TSTMP_GT`).
fn later(a: SeqNum, b: SeqNum) -> bool {
    (a.0.wrapping_sub(b.0) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_448;

    fn data(flow: u32, number: u32) -> Segment {
        Segment {
            flow: FlowId(flow),
            seq: SeqNum(number.wrapping_mul(MSS)),
            payload: MSS,
            flags: Flags::ACK,
            window: 100,
            timestamps: Some(Timestamps { val: 7, ecr: 9 }),
            ..Segment::default()
        }
    }

    fn ack(upto: u32) -> Segment {
        Segment { ack: SeqNum(upto), payload: 0, seq: SeqNum(0), ..data(0, 0) }
    }

    fn pass(params: LroParams, packets: &[(Segment, RssHash)]) -> Vec<Segment> {
        let mut lro = Lro::new(params);
        for (packet, rss) in packets {
            lro.push(packet, *rss);
        }
        let mut up = Vec::new();
        lro.flush(&mut up);
        up
    }

    fn good_hash(packets: &[Segment]) -> Vec<Segment> {
        let hashed: Vec<_> = packets.iter().map(|p| (*p, RssHash::of_flow(p.flow))).collect();
        pass(LroParams::FREEBSD_14, &hashed)
    }

    #[test]
    fn forty_five_segments_fit_and_the_next_begins_another() {
        // 45 * 1448 = 65160 < 65280 <= 46 * 1448.
        let packets: Vec<_> = (0..46).map(|n| data(0, n)).collect();
        let up = good_hash(&packets);
        let sizes: Vec<_> = up.iter().map(|s| (s.payload, s.nsegs)).collect();
        assert_eq!(sizes, [(65_160, 45), (MSS, 1)]);
    }

    #[test]
    fn merged_pure_acks_are_counted_by_13_0_only() {
        let packets: Vec<_> = (1..=5).map(|n| (ack(n * 2 * MSS), RssHash::NONE)).collect();
        let new = pass(LroParams::FREEBSD_14, &packets);
        assert_eq!(new.len(), 1);
        assert_eq!((new[0].ack, new[0].nsegs), (SeqNum(10 * MSS), 1));
        let old = pass(LroParams::FREEBSD_13_0, &packets);
        assert_eq!((old[0].ack, old[0].nsegs), (SeqNum(10 * MSS), 5));
    }

    #[test]
    fn duplicates_are_delivered_one_by_one_and_old_acks_are_dropped() {
        let acks: Vec<_> = good_hash(&[ack(100), ack(100), ack(100), ack(99), ack(200)])
            .iter()
            .map(|s| s.ack.0)
            .collect();
        assert_eq!(acks, [100, 100, 200]);
    }

    #[test]
    fn decreasing_hash_garbage_reverses_a_pass() {
        let packets: Vec<_> =
            (0..4).map(|n| (data(0, n), RssHash { hashtype: 2, flowid: 90 - n })).collect();
        let seqs: Vec<_> =
            pass(LroParams::FREEBSD_14, &packets).iter().map(|s| s.seq.0 / MSS).collect();
        assert_eq!(seqs, [3, 2, 1, 0]);
    }

    #[test]
    fn flows_under_one_key_are_delivered_newest_first() {
        let packets: Vec<_> = [data(1, 0), data(2, 0), data(1, 1), data(2, 1)]
            .into_iter()
            .map(|p| (p, RssHash::NONE))
            .collect();
        let up = pass(LroParams::FREEBSD_14, &packets);
        let order: Vec<_> = up.iter().map(|s| (s.flow.0, s.nsegs)).collect();
        assert_eq!(order, [(2, 2), (1, 2)]);
        // With one entry the second flow is delivered at once, after the first.
        let one = LroParams { entries: 1, ..LroParams::FREEBSD_14 };
        let order: Vec<_> = pass(one, &packets).iter().map(|s| (s.flow.0, s.nsegs)).collect();
        assert_eq!(order, [(1, 1), (2, 0), (1, 1), (2, 0)]);
    }

    #[test]
    fn a_syn_is_delivered_unmerged_after_the_held_flows() {
        let syn = Segment { flags: Flags::SYN, payload: 0, ..data(0, 9) };
        let up = good_hash(&[data(0, 0), data(0, 1), syn, data(0, 2)]);
        let got: Vec<_> = up.iter().map(|s| (s.flags, s.nsegs)).collect();
        assert_eq!(got, [(Flags::ACK, 2), (Flags::SYN, 0), (Flags::ACK, 1)]);
    }

    #[test]
    fn the_aggregate_has_its_first_flags_and_its_last_acknowledgment() {
        let last = Segment {
            flags: Flags::ACK | Flags::PSH,
            ack: SeqNum(50),
            window: 90,
            timestamps: Some(Timestamps { val: 8, ecr: 10 }),
            ..data(0, 1)
        };
        let up = good_hash(&[data(0, 0), last]);
        let expected = Segment {
            payload: 2 * MSS,
            nsegs: 2,
            ack: SeqNum(50),
            window: 90,
            timestamps: last.timestamps,
            ..data(0, 0)
        };
        assert_eq!(up, [expected]);
    }

    #[test]
    fn buffers_are_reused_between_passes() {
        let mut lro = Lro::new(LroParams::FREEBSD_14);
        let mut up = Vec::new();
        for _ in 0..2 {
            lro.push(&data(0, 0), RssHash::NONE);
            lro.flush(&mut up);
            lro.flush(&mut up);
        }
        assert_eq!(up.len(), 2);
        assert!(lro.pass.is_empty() && lro.pass.capacity() > 0);
    }
}
