//! FQ-CoDel (RFC 8290): a queue for each of many buckets that flows are hashed to, each with a
//! CoDel of its own; queues take turns by bytes (deficit round robin, Shreedhar and Varghese 1995),
//! and those that have just begun go first.
//!
//! What the RFC leaves open follows Linux (sch_fq_codel.c): a full queue loses up to 64 packets,
//! half of its bytes, from the head of the longest.

use std::collections::VecDeque;

use machine::{Fate, View};
use units::rng::Fnv;
use units::{Bytes, Instant};

use super::codel::{Control, LEAST_PACKET, Params as CodelParams};
use super::{Fates, Fifo, Waiting};
use crate::choice::Luck;
use crate::link::Limit;

/// Parameters of FQ-CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Those of the queues.
    pub codel: CodelParams,
    /// Bytes that a queue may send in its turn, of IP.
    pub quantum: Bytes,
    /// Queues, at least 1.
    pub flows: u32,
}

impl Default for Params {
    /// Section 5.2: a quantum of an Ethernet frame, 1,024 queues, marking on.
    fn default() -> Self {
        let codel = CodelParams { ecn: true, ..CodelParams::default() };
        Self { codel, quantum: Bytes(1_514), flows: 1_024 }
    }
}

/// Packets lost at a time for want of room (section 4.1.2; `drop_batch_size`).
const BATCH: u64 = 64;

#[derive(Debug, Clone)]
pub(crate) struct FqCodel {
    params: Params,
    /// What keeps hashes of one world from those of another.
    salt: u64,
    queues: Vec<Bucket>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: usize,
    bytes: Bytes,
    largest: Bytes,
}

#[derive(Debug, Clone)]
struct Bucket {
    queue: Fifo,
    control: Control,
    /// Bytes it may still send.
    credits: i64,
    listed: bool,
}

impl FqCodel {
    pub(super) fn new(params: Params, luck: &Luck<'_>) -> Self {
        let empty =
            Bucket { queue: Fifo::new(), control: Control::new(), credits: 0, listed: false };
        Self {
            params,
            salt: luck.stream("hash").next_u64(),
            queues: vec![empty; params.flows.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: Bytes::ZERO,
            largest: Bytes(LEAST_PACKET),
        }
    }

    /// The queue of a connection and its direction (section 4.1.1: addresses, ports and protocol).
    fn bucket(&self, view: &View) -> u32 {
        let mut hash = Fnv::new();
        hash.add(&self.salt.to_le_bytes());
        hash.add(&view.flow.0.to_le_bytes());
        hash.add(&[u8::from(view.back)]);
        // FNV leaves what differs in the last bytes in few bits: spread it (MurmurHash3's last step).
        let mut bits = hash.finish();
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        bits ^= bits >> 33;
        ((u128::from(bits) * self.queues.len() as u128) >> 64) as u32
    }

    pub(super) fn enqueue(&mut self, packet: Waiting, view: &View) {
        let number = self.bucket(view);
        let bucket = &mut self.queues[number as usize];
        bucket.queue.push(packet);
        self.packets += 1;
        self.bytes += packet.size;
        self.largest = self.largest.max(packet.size);
        if !bucket.listed {
            bucket.listed = true;
            bucket.credits = self.params.quantum.get() as i64;
            self.new.push_back(number);
        }
    }

    /// Loses what finds no room, of the longest queues.
    pub(super) fn shrink_to(&mut self, limit: Limit, fates: &mut Fates) {
        let full = |fq: &Self| match limit {
            Limit::Bytes(limit) => fq.bytes > limit,
            Limit::Packets(limit) => fq.packets > limit as usize,
        };
        while full(self) {
            self.lose_batch(fates);
        }
    }

    fn lose_batch(&mut self, fates: &mut Fates) {
        // The first among equals.
        let longest = self.queues.iter_mut().rev().max_by_key(|bucket| bucket.queue.bytes());
        let Some(bucket) = longest else { return };
        let half = bucket.queue.bytes().get() / 2;
        let mut lost = 0;
        for _ in 0..BATCH {
            let Some(packet) = bucket.queue.pop() else { break };
            self.packets -= 1;
            self.bytes -= packet.size;
            lost += packet.size.get();
            bucket.control.count += 1;
            fates.push_back(Fate::Lost(packet.packet));
            if lost >= half {
                break;
            }
        }
    }

    /// Section 4.2.
    pub(super) fn dequeue(&mut self, now: Instant, fates: &mut Fates) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let bucket = &mut self.queues[number as usize];
            if bucket.credits <= 0 {
                bucket.credits += self.params.quantum.get() as i64;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let before = (bucket.queue.len(), bucket.queue.bytes());
            let codel = &self.params.codel;
            let queue = &mut bucket.queue;
            let packet = bucket.control.dequeue(now, codel, self.largest, queue, fates);
            self.packets -= before.0 - queue.len();
            self.bytes -= before.1.saturating_sub(queue.bytes());
            if let Some(packet) = packet {
                bucket.credits -= packet.size.get() as i64;
                return Some(packet);
            }
            list.pop_front();
            // A queue that has just begun and is empty already waits a turn among the others, so
            // that it does not begin again at once.
            if is_new && !self.old.is_empty() {
                self.old.push_back(number);
            } else {
                bucket.listed = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use machine::PacketId;
    use units::FlowId;

    use super::*;
    use crate::testing::data;

    const LUCK: Luck<'static> = Luck { seed: 1, owner: "test" };

    fn packet(flow: u32, size: u64) -> (Waiting, View) {
        let waiting = Waiting {
            packet: PacketId(flow),
            size: Bytes(size),
            since: Instant::ZERO,
            capable: false,
        };
        (waiting, View { flow: FlowId(flow), ..data(size as u32) })
    }

    fn add(fq: &mut FqCodel, flow: u32, size: u64) {
        let (packet, view) = packet(flow, size);
        fq.enqueue(packet, &view);
    }

    /// Flows and sizes of the next `n`, all of which go at once.
    fn next(fq: &mut FqCodel, n: usize) -> Vec<(u32, u64)> {
        let mut fates = Fates::new();
        let taken = core::iter::from_fn(|| fq.dequeue(Instant::ZERO, &mut fates));
        taken.take(n).map(|waiting| (waiting.packet.0, waiting.size.get())).collect()
    }

    /// Shreedhar and Varghese 1995, theorem: over any time in which both have packets, what two
    /// queues send differs by no more than a quantum and a packet, whatever their sizes.
    #[test]
    fn rfc_8290_section_4_2_queues_take_turns_by_bytes_not_packets() {
        let mut fq = FqCodel::new(Params::default(), &LUCK);
        for _ in 0..3_000 {
            add(&mut fq, 0, 300);
        }
        for _ in 0..600 {
            add(&mut fq, 1, 1_500);
        }
        let (mut sent, mut most) = ([0_i64; 2], 0);
        for (flow, size) in next(&mut fq, 3_500) {
            sent[flow as usize] += size as i64;
            if fq.packets > 700 {
                most = most.max((sent[0] - sent[1]).abs());
            }
        }
        assert!(most <= 1_514 + 2 * 1_500, "{most}");
        // Packets were as five to one.
        assert!(sent[0] > 800_000 && sent[1] > 800_000, "{sent:?}");
    }

    /// Section 4.2 and 6: what begins goes before all that has been there, for one quantum.
    #[test]
    fn rfc_8290_section_4_2_a_sparse_flow_goes_first() {
        let mut fq = FqCodel::new(Params::default(), &LUCK);
        for _ in 0..1_000 {
            add(&mut fq, 0, 1_500);
        }
        assert_eq!(next(&mut fq, 3), [(0, 1_500); 3]);
        add(&mut fq, 1, 100);
        assert_eq!(next(&mut fq, 2), [(1, 100), (0, 1_500)]);
        // It comes again after the others had their turn: it is new again, and goes first.
        next(&mut fq, 10);
        add(&mut fq, 1, 100);
        assert_eq!(next(&mut fq, 1), [(1, 100)]);
        // What sends more than a quantum at once is no sparse flow: it has one turn more (credits of
        // 1,514 let two packets go), and then takes turns.
        for _ in 0..10 {
            add(&mut fq, 2, 1_500);
        }
        let flows: Vec<u32> = next(&mut fq, 8).iter().map(|taken| taken.0).collect();
        assert_eq!(flows[..2], [2, 2]);
        let of = |flow| flows[2..].iter().filter(|taken| **taken == flow).count();
        assert_eq!((of(0), of(2)), (3, 3), "{flows:?}");
    }

    /// Section 4.2: a queue that is emptied while new waits behind the old ones, so that it cannot
    /// come back at once and starve them.
    #[test]
    fn rfc_8290_section_4_2_a_flow_that_comes_back_at_once_starves_nobody() {
        let mut fq = FqCodel::new(Params::default(), &LUCK);
        for _ in 0..100 {
            add(&mut fq, 0, 1_500);
        }
        // A packet of flow 1 whenever it has none.
        let mut sent = [0; 2];
        for _ in 0..60 {
            if fq.queues[fq.bucket(&packet(1, 1_500).1) as usize].queue.len() == 0 {
                add(&mut fq, 1, 1_500);
            }
            sent[next(&mut fq, 1)[0].0 as usize] += 1;
        }
        assert!(sent[0] >= 25, "{sent:?}");
    }

    #[test]
    fn the_longest_queue_makes_room() {
        let mut fq = FqCodel::new(Params::default(), &LUCK);
        let mut fates = Fates::new();
        add(&mut fq, 1, 1_500);
        for _ in 0..300 {
            add(&mut fq, 0, 1_500);
            fq.shrink_to(Limit::Packets(200), &mut fates);
        }
        // 64 at a time, from flow 0 only: at 201 and again when it is full anew.
        assert_eq!(fates.len(), 128);
        assert!(fates.iter().all(|fate| *fate == Fate::Lost(PacketId(0))));
        assert_eq!(fq.packets, 301 - 128);
        fates.clear();
        // Half the bytes of a short queue.
        let mut few = FqCodel::new(Params::default(), &LUCK);
        for _ in 0..11 {
            add(&mut few, 0, 1_000);
            few.shrink_to(Limit::Bytes(Bytes(10_000)), &mut fates);
        }
        assert_eq!((fates.len(), few.bytes), (6, Bytes(5_000)));
    }

    #[test]
    fn connections_are_spread_over_the_queues() {
        let fq = FqCodel::new(Params::default(), &LUCK);
        let mut taken = vec![false; 1_024];
        for flow in 0..1_000 {
            taken[fq.bucket(&packet(flow, 100).1) as usize] = true;
        }
        // 1,024 (1 - (1 - 1/1,024)^1,000) = 638 queues; the deviation is about 11.
        let used = taken.iter().filter(|used| **used).count();
        assert!((590..=686).contains(&used), "{used}");
    }
}
