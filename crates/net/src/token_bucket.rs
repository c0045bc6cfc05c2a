//! Token buckets: a long-run rate with an allowance for bursts (RFC 2697 and Linux's sch_tbf in
//! their simplest form, without a peak rate).
//!
//! A bucket is full at the start. A packet leaves in the first whole nanosecond in which the bucket
//! holds at least its size in tokens, and consumes them; a packet larger than the bucket never
//! leaves.

use std::collections::VecDeque;

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Bytes, Duration, Instant, Rate};

use crate::link::QueueLimit;

/// The inflow per second is a number of bits, so per nanosecond it is that many billionths of a
/// bit.
const PARTS: u128 = 1_000_000_000;

/// What a line carries beside the bytes of an IP packet, as Linux counts it (`psched_l2t_ns` with
/// `struct psched_ratecfg`; the header is part of `qdisc_pkt_len`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Framing {
    /// Header of the link, in bytes: counted by the queue and the bucket.
    pub header: u32,
    /// Bytes that the bucket counts beside it.
    pub overhead: i32,
    /// Least number of bytes that the bucket counts for a packet.
    pub least: u32,
    /// Payload of a cell, for lines that send cells; 0 for others.
    pub cell: u32,
    /// Bytes added to each cell.
    pub cell_overhead: u32,
}

impl Framing {
    /// Counts the bytes of IP packets alone.
    pub const NONE: Self = Self { header: 0, overhead: 0, least: 0, cell: 0, cell_overhead: 0 };

    /// Returns the bytes that a packet of `size` IP bytes takes of a queue.
    pub fn queued(self, size: Bytes) -> Bytes {
        size + Bytes(u64::from(self.header))
    }

    /// Returns the bytes that the bucket counts for a packet of `size` IP bytes.
    pub fn counted(self, size: Bytes) -> Bytes {
        let whole = i128::from(self.queued(size).get()) + i128::from(self.overhead);
        let whole = u64::try_from(whole.max(i128::from(self.least))).unwrap_or(u64::MAX);
        Bytes(match u64::from(self.cell) {
            0 => whole,
            cell => whole.div_ceil(cell) * (cell + u64::from(self.cell_overhead)),
        })
    }
}

#[derive(Debug, Clone)]
struct TokenBucket {
    rate: Rate,
    burst: Bytes,
    /// Tokens at `at`, in billionths of a bit.
    level: u128,
    at: Instant,
}

fn parts(size: Bytes) -> u128 {
    u128::from(size.get()) * 8 * PARTS
}

impl TokenBucket {
    const fn new(rate: Rate, burst: Bytes) -> Self {
        let level = burst.get() as u128 * 8 * PARTS;
        Self { rate, burst, level, at: Instant::ZERO }
    }

    fn fill(&mut self, now: Instant) {
        let span = now.since(self.at).as_nanos();
        let inflow = u128::from(span) * u128::from(self.rate.bits_per_second());
        self.level = parts(self.burst).min(self.level.saturating_add(inflow));
        self.at = now;
    }

    /// Consumes tokens for `size` bytes, if the bucket holds them.
    fn take(&mut self, size: Bytes) -> bool {
        match self.level.checked_sub(parts(size)) {
            Some(rest) => {
                self.level = rest;
                true
            }
            None => false,
        }
    }

    /// Returns when the bucket will hold `size`, which is at most its capacity.
    fn ready_at(&self, size: Bytes) -> Instant {
        let missing = parts(size).saturating_sub(self.level);
        let span = missing.div_ceil(u128::from(self.rate.bits_per_second()));
        self.at + Duration::from_nanos(u64::try_from(span).unwrap_or(u64::MAX))
    }
}

/// Drops packets that exceed the bucket.
#[derive(Debug, Clone)]
pub struct Policer(TokenBucket);

impl Policer {
    /// Creates a policer with a full bucket.
    pub const fn new(rate: Rate, burst: Bytes) -> Self {
        Self(TokenBucket::new(rate, burst))
    }
}

impl Element for Policer {
    fn accept(&mut self, now: Instant, _: PacketId, view: &PacketView) -> PacketVerdict {
        self.0.fill(now);
        if self.0.take(view.size) { PacketVerdict::Forwarded } else { PacketVerdict::Dropped }
    }
}

/// Queues packets that exceed the bucket.
#[derive(Debug, Clone)]
pub struct Shaper {
    bucket: TokenBucket,
    framing: Framing,
    /// Capacity of the queue.
    limit: QueueLimit,
    queue: VecDeque<(PacketId, Bytes)>,
    queued: Bytes,
    /// When the first packet of the queue leaves.
    due: Instant,
}

impl Shaper {
    /// Creates a shaper with a full bucket and an empty queue.
    pub const fn new(rate: Rate, burst: Bytes, limit: QueueLimit) -> Self {
        let bucket = TokenBucket::new(rate, burst);
        let queue = VecDeque::new();
        let framing = Framing::NONE;
        Self { bucket, framing, limit, queue, queued: Bytes::ZERO, due: Instant::ZERO }
    }

    /// Counts what the line carries beside IP packets, too.
    #[must_use]
    pub const fn framed(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    fn has_room(&self, size: Bytes) -> bool {
        let fits = match self.limit {
            QueueLimit::Bytes(limit) => self.queued + self.framing.queued(size) <= limit,
            QueueLimit::Packets(limit) => self.queue.len() < limit as usize,
        };
        fits && self.framing.counted(size) <= self.bucket.burst
    }
}

impl Element for Shaper {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        if self.queue.is_empty() {
            self.bucket.fill(now);
            let counted = self.framing.counted(view.size);
            if self.bucket.take(counted) {
                return PacketVerdict::Forwarded;
            }
            self.due = self.bucket.ready_at(counted);
        }
        if !self.has_room(view.size) {
            return PacketVerdict::Dropped;
        }
        self.queue.push_back((packet, view.size));
        self.queued += self.framing.queued(view.size);
        PacketVerdict::Queued
    }

    fn next_wake(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.due)
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        if self.next_wake()? > now {
            return None;
        }
        let (packet, size) = self.queue.pop_front()?;
        self.queued -= self.framing.queued(size);
        self.bucket.fill(self.due);
        self.bucket.take(self.framing.counted(size));
        if let Some(&(_, next)) = self.queue.front() {
            self.due = self.bucket.ready_at(self.framing.counted(next));
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, drain};

    /// 8 Mbit/s: a byte per microsecond.
    fn rate() -> Rate {
        Rate::from_bits_per_second(8_000_000).unwrap()
    }

    fn us(n: u64) -> Instant {
        Instant::from_nanos(n * 1_000)
    }

    #[test]
    fn a_policer_drops_packets_beyond_rate_and_burst() {
        let mut policer = Policer::new(rate(), Bytes(3_000));
        let mut goes =
            |at| policer.accept(us(at), PacketId(0), &data(1_500)) == PacketVerdict::Forwarded;
        // The bucket holds two packets; then 1500 bytes of tokens arrive in 1500 us.
        assert_eq!([goes(0), goes(0), goes(0)], [true, true, false]);
        assert_eq!([goes(1_499), goes(1_500), goes(1_501)], [false, true, false]);
        // After any pause, the bucket holds two packets.
        assert_eq!([goes(9_000), goes(9_000), goes(9_000)], [true, true, false]);
    }

    #[test]
    fn a_shaper_passes_a_burst_and_queues_the_rest() {
        let mut shaper = Shaper::new(rate(), Bytes(3_000), QueueLimit::Packets(2));
        let mut accept = |id| shaper.accept(us(0), PacketId(id), &data(1_500));
        let (passed, taken) = (PacketVerdict::Forwarded, PacketVerdict::Queued);
        assert_eq!([accept(0), accept(1), accept(2)], [passed, passed, taken]);
        assert_eq!([accept(3), accept(4)], [taken, PacketVerdict::Dropped]);
        assert_eq!(drain(&mut shaper), [(1_500_000, 2), (3_000_000, 3)]);
        // At 4 ms the bucket holds 1000 bytes.
        assert_eq!(shaper.accept(us(4_000), PacketId(5), &data(1_000)), passed);
        assert_eq!(shaper.accept(us(4_000), PacketId(6), &data(1)), taken);
        assert_eq!(drain(&mut shaper), [(4_001_000, 6)]);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_is_dropped() {
        let mut shaper = Shaper::new(rate(), Bytes(1_000), QueueLimit::Bytes(Bytes(10_000)));
        let mut policer = Policer::new(rate(), Bytes(1_000));
        assert_eq!(shaper.accept(us(0), PacketId(0), &data(1_001)), PacketVerdict::Dropped);
        assert_eq!(policer.accept(us(0), PacketId(0), &data(1_001)), PacketVerdict::Dropped);
        assert_eq!(shaper.next_wake(), None);
    }

    /// 3 bit/s: a byte takes 2,666,666,666.67 ns, and the thirds add up to whole seconds.
    #[test]
    fn no_part_of_a_nanosecond_is_lost() {
        let slow = Rate::from_bits_per_second(3).unwrap();
        let mut shaper = Shaper::new(slow, Bytes(2), QueueLimit::Packets(10));
        for id in 0..5 {
            shaper.accept(us(0), PacketId(id), &data(1));
        }
        let left = [(2_666_666_667, 2), (5_333_333_334, 3), (8_000_000_000, 4)];
        assert_eq!(drain(&mut shaper), left);
    }

    /// At 8 Gbit/s a byte takes a nanosecond: packets of 86 bytes and a header of 14 follow each other
    /// every 100 ns, with cells of 48 + 5 bytes every 159, and at least 120 ns with that minimum.
    #[test]
    fn a_framed_packet_takes_its_bytes_on_the_line() {
        let gaps = |framing: Framing, burst: u64| -> Vec<u64> {
            let rate = Rate::from_bits_per_second(8_000_000_000).unwrap();
            let limit = QueueLimit::Bytes(Bytes(300));
            let mut shaper = Shaper::new(rate, Bytes(burst), limit).framed(framing);
            for id in 0..6 {
                shaper.accept(Instant::ZERO, PacketId(id), &data(86));
            }
            let left = drain(&mut shaper);
            left.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
        };
        let ethernet = Framing { header: 14, ..Framing::NONE };
        let atm = Framing { cell: 48, cell_overhead: 5, ..ethernet };
        // One passes at once, and 300 bytes of queue hold three of 100 bytes.
        assert_eq!(gaps(ethernet, 100), [100, 100]);
        assert_eq!(gaps(atm, 159), [159, 159]);
        assert_eq!(gaps(Framing { least: 120, ..ethernet }, 120), [120, 120]);
        assert_eq!(gaps(Framing { overhead: -14, ..ethernet }, 86), [86, 86]);
        // Without a header the queue holds three of 86 bytes, too.
        assert_eq!(gaps(Framing::NONE, 86), [86, 86]);
        // A packet that is larger on the line than the bucket never passes.
        assert!(gaps(ethernet, 99).is_empty());
    }
}
