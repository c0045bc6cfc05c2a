//! What was sent and not yet acknowledged, counted in packets.
//!
//! Linux counts its window, its flight and its deliveries in packets and takes round-trip samples
//! from send times (tcp_rate.c, tcp_clean_rtx_queue of tcp_input.c).

use std::collections::VecDeque;

use units::{Instant, Offset};

/// A burst that left the stack.
#[derive(Debug, Clone, Copy)]
struct Burst {
    start: Offset,
    end: Offset,
    sent_at: Instant,
    resent: bool,
}

/// Bursts under way, oldest first.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    bursts: VecDeque<Burst>,
    mss: u64,
    packets: u64,
}

/// What an acknowledgment took off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Delivered {
    /// Packets delivered whole.
    pub(crate) packets: u64,
    /// When the oldest burst of those left, if none of them had been sent twice.
    pub(crate) oldest_sent: Option<Instant>,
    /// When the newest one left, under the same condition.
    pub(crate) newest_sent: Option<Instant>,
}

impl Sent {
    pub(crate) const fn new() -> Self {
        Self { bursts: VecDeque::new(), mss: 1, packets: 0 }
    }

    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss).max(1);
        self.packets = self.bursts.iter().map(|burst| self.packets_of(burst)).sum();
    }

    /// Packets under way (`packets_out`).
    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    fn packets_of(&self, burst: &Burst) -> u64 {
        let bytes = burst.end - burst.start;
        if bytes <= self.mss { 1 } else { bytes.div_ceil(self.mss) }
    }

    /// New bytes `[start, end)` left.
    pub(crate) fn push(&mut self, start: Offset, end: Offset, now: Instant) {
        let burst = Burst { start, end, sent_at: now, resent: false };
        self.packets += self.packets_of(&burst);
        self.bursts.push_back(burst);
    }

    /// Old bytes `[start, end)` left again: no round trip can be told from them.
    pub(crate) fn again(&mut self, start: Offset, end: Offset) {
        let first = self.bursts.partition_point(|burst| burst.end <= start);
        for burst in self.bursts.iter_mut().skip(first).take_while(|burst| burst.start < end) {
            burst.resent = true;
        }
    }

    /// All before `una` has been acknowledged.
    pub(crate) fn acknowledge(&mut self, una: Offset) -> Delivered {
        let before = self.packets;
        let (mut oldest, mut newest) = (None, None);
        let mut resent = false;
        while let Some(burst) = self.bursts.front_mut() {
            if burst.start >= una {
                break;
            }
            oldest = oldest.or(Some(burst.sent_at));
            newest = Some(burst.sent_at);
            resent |= burst.resent;
            if burst.end <= una {
                let bytes = burst.end - burst.start;
                self.packets -= if bytes <= self.mss { 1 } else { bytes.div_ceil(self.mss) };
                self.bursts.pop_front();
                continue;
            }
            // Part of a burst: whole packets only (tcp_tso_acked).
            let acked = (una - burst.start) / self.mss;
            burst.start += acked * self.mss;
            self.packets -= acked;
            break;
        }
        Delivered {
            packets: before - self.packets,
            oldest_sent: oldest.filter(|_| !resent),
            newest_sent: newest.filter(|_| !resent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn bursts_count_as_packets() {
        let mut sent = Sent::new();
        sent.set_mss(1_000);
        sent.push(Offset(1), Offset(4_001), at(1));
        sent.push(Offset(4_001), Offset(4_501), at(2));
        assert_eq!(sent.packets(), 5);
        // Two packets and a half of the first burst: two are whole.
        let part = sent.acknowledge(Offset(2_501));
        let first = Some(at(1));
        assert_eq!(part, Delivered { packets: 2, oldest_sent: first, newest_sent: first });
        assert_eq!(sent.packets(), 3);
        let rest = sent.acknowledge(Offset(4_501));
        assert_eq!(rest, Delivered { packets: 3, oldest_sent: first, newest_sent: Some(at(2)) });
        assert_eq!(sent.packets(), 0);
    }

    #[test]
    fn what_was_sent_twice_gives_no_round_trip() {
        let mut sent = Sent::new();
        sent.set_mss(1_000);
        sent.push(Offset(1), Offset(1_001), at(1));
        sent.push(Offset(1_001), Offset(2_001), at(2));
        sent.again(Offset(1), Offset(1_001));
        assert_eq!(sent.acknowledge(Offset(1_001)).oldest_sent, None);
        assert_eq!(sent.acknowledge(Offset(2_001)).oldest_sent, Some(at(2)));
    }
}
