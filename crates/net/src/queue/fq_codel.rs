//! FQ-CoDel (RFC 8290): flows are hashed to many queues, each with a CoDel of its own; queues are
//! served in turn by bytes (deficit round robin, Shreedhar and Varghese 1995), new queues first.
//!
//! Details that the RFC leaves open follow Linux (sch_fq_codel.c): a full queue drops up to 64
//! packets, half of its bytes, from the head of the longest flow queue.

use std::collections::VecDeque;

use machine::{PacketAction, PacketView};
use units::rng::Fnv;
use units::{Bytes, Instant};

use super::codel::{CoDelParams as CodelParams, CoDelState, LEAST_PACKET};
use super::{Fifo, QueueArrival, QueueDiscipline, QueueOutcomes, QueueSite, QueuedPacket};
use crate::link::QueueLimit;
use crate::selection::RandomSource;

/// Parameters of FQ-CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCoDelParams {
    /// CoDel parameters of the flow queues.
    pub codel: CodelParams,
    /// IP bytes that a queue may send per round.
    pub quantum: Bytes,
    /// Number of flow queues, at least 1.
    pub flows: u32,
}

impl Default for FqCoDelParams {
    /// Section 5.2: a quantum of an Ethernet frame, 1,024 queues, marking on.
    fn default() -> Self {
        let codel = CodelParams { ecn: true, ..CodelParams::default() };
        Self { codel, quantum: Bytes(1_514), flows: 1_024 }
    }
}

/// Packets dropped at a time on overflow (section 4.1.2; `drop_batch_size`).
const BATCH: u64 = 64;

#[derive(Debug, Clone)]
pub(crate) struct FqCoDel {
    params: FqCoDelParams,
    /// Makes the hashes of different runs independent.
    salt: u64,
    queues: Vec<FlowQueue>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: usize,
    bytes: Bytes,
    largest: Bytes,
}

#[derive(Debug, Clone)]
struct FlowQueue {
    queue: Fifo,
    control: CoDelState,
    /// Bytes that the queue may still send in its round.
    credits: i64,
    listed: bool,
}

impl QueueDiscipline for FqCoDel {
    type Params = FqCoDelParams;

    fn create(params: FqCoDelParams, site: &QueueSite<'_>) -> Self {
        Self::new(params, site.random_source)
    }

    fn take(&mut self, arrival: &QueueArrival<'_>, fates: &mut QueueOutcomes) -> bool {
        self.enqueue(arrival.packet, arrival.view);
        if !arrival.idle {
            self.drop_to(arrival.limit, fates);
        }
        true
    }

    fn give(&mut self, now: Instant, fates: &mut QueueOutcomes) -> Option<QueuedPacket> {
        self.dequeue(now, fates)
    }
}

impl FqCoDel {
    pub(super) fn new(params: FqCoDelParams, random_source: &RandomSource<'_>) -> Self {
        let empty =
            FlowQueue { queue: Fifo::new(), control: CoDelState::new(), credits: 0, listed: false };
        Self {
            params,
            salt: random_source.stream("hash").next_u64(),
            queues: vec![empty; params.flows.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: Bytes::ZERO,
            largest: Bytes(LEAST_PACKET),
        }
    }

    /// Returns the queue of a connection's direction (section 4.1.1: addresses, ports and
    /// protocol).
    fn queue_index(&self, view: &PacketView) -> u32 {
        let mut hash = Fnv::new();
        hash.add(&self.salt.to_le_bytes());
        hash.add(&view.flow.0.to_le_bytes());
        hash.add(&[view.dir as u8]);
        // FNV spreads differences in the last bytes to few bits: apply MurmurHash3's finalizer.
        let mut bits = hash.finish();
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        bits ^= bits >> 33;
        ((u128::from(bits) * self.queues.len() as u128) >> 64) as u32
    }

    pub(super) fn enqueue(&mut self, packet: QueuedPacket, view: &PacketView) {
        let number = self.queue_index(view);
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

    /// Drops packets from the longest queues until the rest fit.
    pub(super) fn drop_to(&mut self, limit: QueueLimit, fates: &mut QueueOutcomes) {
        let full = |fq: &Self| match limit {
            QueueLimit::Bytes(limit) => fq.bytes > limit,
            QueueLimit::Packets(limit) => fq.packets > limit as usize,
        };
        while full(self) {
            self.drop_batch(fates);
        }
    }

    fn drop_batch(&mut self, fates: &mut QueueOutcomes) {
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
            fates.push_back(PacketAction::Dropped(packet.packet));
            if lost >= half {
                break;
            }
        }
    }

    /// Dequeues a packet (section 4.2).
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        fates: &mut QueueOutcomes,
    ) -> Option<QueuedPacket> {
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
            // An empty new queue moves to the end of the old queues for one round, so that it does
            // not become new again at once.
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
    use units::{Ecn, FlowId};

    use super::*;
    use crate::testing::data;

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };

    fn packet(flow: u32, size: u64) -> (QueuedPacket, PacketView) {
        let waiting = QueuedPacket {
            packet: PacketId(flow),
            size: Bytes(size),
            enqueued_at: Instant::ZERO,
            ecn: Ecn::NotEct,
        };
        (waiting, PacketView { flow: FlowId(flow), ..data(size as u32) })
    }

    fn add(fq: &mut FqCoDel, flow: u32, size: u64) {
        let (packet, view) = packet(flow, size);
        fq.enqueue(packet, &view);
    }

    /// Flows and sizes of the next `n` packets, all dequeued at once.
    fn next(fq: &mut FqCoDel, n: usize) -> Vec<(u32, u64)> {
        let mut fates = QueueOutcomes::new();
        let taken = core::iter::from_fn(|| fq.dequeue(Instant::ZERO, &mut fates));
        taken.take(n).map(|waiting| (waiting.packet.0, waiting.size.get())).collect()
    }

    /// Shreedhar and Varghese 1995, theorem: over any interval in which both queues have packets,
    /// the bytes they send differ by at most a quantum and a packet, whatever their packet sizes.
    #[test]
    fn rfc_8290_section_4_2_queues_take_turns_by_bytes_not_packets() {
        let mut fq = FqCoDel::new(FqCoDelParams::default(), &RNG);
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
        // The packet counts were five to one.
        assert!(sent[0] > 800_000 && sent[1] > 800_000, "{sent:?}");
    }

    /// Section 4.2 and 6: a new flow precedes all existing ones, for one quantum.
    #[test]
    fn rfc_8290_section_4_2_a_sparse_flow_goes_first() {
        let mut fq = FqCoDel::new(FqCoDelParams::default(), &RNG);
        for _ in 0..1_000 {
            add(&mut fq, 0, 1_500);
        }
        assert_eq!(next(&mut fq, 3), [(0, 1_500); 3]);
        add(&mut fq, 1, 100);
        assert_eq!(next(&mut fq, 2), [(1, 100), (0, 1_500)]);
        // It returns after the others were served: it is new again, and is served first.
        next(&mut fq, 10);
        add(&mut fq, 1, 100);
        assert_eq!(next(&mut fq, 1), [(1, 100)]);
        // A flow that sends more than a quantum at once is not sparse: it gets one more round
        // (credits of 1,514 cover two packets), and then alternates.
        for _ in 0..10 {
            add(&mut fq, 2, 1_500);
        }
        let flows: Vec<u32> = next(&mut fq, 8).iter().map(|taken| taken.0).collect();
        assert_eq!(flows[..2], [2, 2]);
        let of = |flow| flows[2..].iter().filter(|taken| **taken == flow).count();
        assert_eq!((of(0), of(2)), (3, 3), "{flows:?}");
    }

    /// Section 4.2: a new queue that is emptied moves to the end of the old ones, so that it cannot
    /// return at once and starve them.
    #[test]
    fn rfc_8290_section_4_2_a_flow_that_returns_at_once_starves_no_other() {
        let mut fq = FqCoDel::new(FqCoDelParams::default(), &RNG);
        for _ in 0..100 {
            add(&mut fq, 0, 1_500);
        }
        // Flow 1 enqueues a packet whenever it has none.
        let mut sent = [0; 2];
        for _ in 0..60 {
            if fq.queues[fq.queue_index(&packet(1, 1_500).1) as usize].queue.len() == 0 {
                add(&mut fq, 1, 1_500);
            }
            sent[next(&mut fq, 1)[0].0 as usize] += 1;
        }
        assert!(sent[0] >= 25, "{sent:?}");
    }

    #[test]
    fn the_longest_queue_makes_room() {
        let mut fq = FqCoDel::new(FqCoDelParams::default(), &RNG);
        let mut fates = QueueOutcomes::new();
        add(&mut fq, 1, 1_500);
        for _ in 0..300 {
            add(&mut fq, 0, 1_500);
            fq.drop_to(QueueLimit::Packets(200), &mut fates);
        }
        // 64 at a time, from flow 0 only: at 201 and at the next overflow.
        assert_eq!(fates.len(), 128);
        assert!(fates.iter().all(|fate| *fate == PacketAction::Dropped(PacketId(0))));
        assert_eq!(fq.packets, 301 - 128);
        fates.clear();
        // Half the bytes of a short queue.
        let mut few = FqCoDel::new(FqCoDelParams::default(), &RNG);
        for _ in 0..11 {
            add(&mut few, 0, 1_000);
            few.drop_to(QueueLimit::Bytes(Bytes(10_000)), &mut fates);
        }
        assert_eq!((fates.len(), few.bytes), (6, Bytes(5_000)));
    }

    #[test]
    fn connections_are_spread_over_the_queues() {
        let fq = FqCoDel::new(FqCoDelParams::default(), &RNG);
        let mut taken = vec![false; 1_024];
        for flow in 0..1_000 {
            taken[fq.queue_index(&packet(flow, 100).1) as usize] = true;
        }
        // 1,024 (1 - (1 - 1/1,024)^1,000) = 638 queues; the deviation is about 11.
        let used = taken.iter().filter(|used| **used).count();
        assert!((590..=686).contains(&used), "{used}");
    }
}
