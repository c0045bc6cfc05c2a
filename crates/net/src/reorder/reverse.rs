//! Reverses groups of packets, as a driver does that sorts a burst by a bogus hash.
//!
//! The convention is that of the Linux golden traces (`rev:k:t`): packets are held until there are
//! k of them or no packet has arrived for t, and leave last first. In the traces the members of a
//! group leave 1 us apart; here that gap is a parameter.

use core::cmp::Reverse as Earliest;
use core::num::NonZeroU32;
use std::collections::BinaryHeap;

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant};

use crate::selection::PacketClass;

/// Parameters of [`Reverse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReverseParams {
    /// Packets in a group.
    pub group: NonZeroU32,
    /// Time from one member to the next. The first one leaves when the group is complete; groups do
    /// not wait for each other, so with a long gap they interleave and the rate is unaffected.
    pub gap: Duration,
    /// A group that gets no further member for this long is complete as it is.
    pub timeout: Duration,
    /// The packets affected.
    pub class: PacketClass,
}

/// Releases groups of packets in reverse order.
#[derive(Debug, Clone)]
pub struct Reverse {
    params: ReverseParams,
    /// The incomplete group and its timeout.
    group: Vec<PacketId>,
    silence_at: Instant,
    /// Members of complete groups with their departure times; ties keep the order of release.
    leaving: BinaryHeap<Earliest<(Instant, u64, PacketId)>>,
    released: u64,
}

impl Reverse {
    /// Creates an element that holds no packet.
    pub const fn new(params: ReverseParams) -> Self {
        Self {
            params,
            group: Vec::new(),
            silence_at: Instant::ZERO,
            leaving: BinaryHeap::new(),
            released: 0,
        }
    }

    fn release(&mut self, mut at: Instant) {
        while let Some(packet) = self.group.pop() {
            self.leaving.push(Earliest((at, self.released, packet)));
            self.released += 1;
            at += self.params.gap;
        }
    }

    fn release_if_silent(&mut self, now: Instant) {
        if !self.group.is_empty() && self.silence_at <= now {
            self.release(self.silence_at);
        }
    }
}

impl Element for Reverse {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        if !self.params.class.covers(view) {
            return PacketVerdict::Forwarded;
        }
        self.release_if_silent(now);
        self.group.push(packet);
        self.silence_at = now + self.params.timeout;
        if self.group.len() >= self.params.group.get() as usize {
            self.release(now);
        }
        PacketVerdict::Queued
    }

    fn next_wake(&self) -> Option<Instant> {
        let leaving = self.leaving.peek().map(|Earliest((at, ..))| *at);
        let silence = (!self.group.is_empty()).then_some(self.silence_at);
        leaving.into_iter().chain(silence).min()
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        self.release_if_silent(now);
        if self.leaving.peek()?.0.0 > now {
            return None;
        }
        self.leaving.pop().map(|Earliest((.., packet))| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, drain, handshake, leave};

    fn reverse(group: u32, gap_us: u64) -> Reverse {
        Reverse::new(ReverseParams {
            group: NonZeroU32::new(group).unwrap(),
            gap: Duration::from_micros(gap_us),
            timeout: Duration::from_micros(500),
            class: PacketClass::Data,
        })
    }

    /// Feeds packets that arrive at these times (in tenths of a microsecond) and returns the
    /// departures in the same unit.
    fn run(reverse: &mut Reverse, came: &[u64]) -> Vec<(u64, u32)> {
        let mut left = Vec::new();
        for (number, tenths) in came.iter().enumerate() {
            let now = Instant::from_nanos(tenths * 100);
            while let Some(at) = reverse.next_wake().filter(|at| *at < now) {
                left.extend(leave(reverse, at));
            }
            let packet = PacketId(number as u32 + 1);
            assert_eq!(reverse.accept(now, packet, &data(1_500)), PacketVerdict::Queued);
        }
        left.extend(drain(reverse));
        left.into_iter().map(|(ns, id)| (ns / 100, id)).collect()
    }

    /// The first ten data packets of golden trace d1_rev4_rtt45_cubic (`rev:4:500`, then 22.5 ms of
    /// delay): `dep_us` in, `sched_us` less 22,500 us out.
    #[test]
    fn groups_leave_as_in_the_golden_trace() {
        let departures = [
            454_413, 455_013, 455_613, 456_213, 456_813, 457_413, 458_013, 458_613, 459_213,
            459_813,
        ];
        let scheduled = [
            (681_213, 4),
            (681_223, 3),
            (681_233, 2),
            (681_243, 1),
            (683_613, 8),
            (683_623, 7),
            (683_633, 6),
            (683_643, 5),
            (689_813, 10),
            (689_823, 9),
        ];
        let left = run(&mut reverse(4, 1), &departures);
        assert_eq!(left, scheduled.map(|(at, id)| (at - 225_000, id)));
    }

    #[test]
    fn long_gaps_let_groups_interleave() {
        let left = run(&mut reverse(2, 100), &[0, 10, 500, 510]);
        assert_eq!(left, [(10, 2), (510, 4), (1_010, 1), (1_510, 3)]);
    }

    #[test]
    fn silence_counts_from_the_last_member() {
        let left = run(&mut reverse(4, 0), &[0, 4_999, 9_998, 14_998]);
        // The last packet arrives at the timeout: a group of its own.
        assert_eq!(left, [(14_998, 3), (14_998, 2), (14_998, 1), (19_998, 4)]);
    }

    #[test]
    fn packets_of_other_classes_pass() {
        let mut reverse = reverse(2, 0);
        reverse.accept(Instant::ZERO, PacketId(1), &data(1_500));
        let verdict = reverse.accept(Instant::ZERO, PacketId(2), &handshake());
        assert_eq!(verdict, PacketVerdict::Forwarded);
        assert_eq!(drain(&mut reverse), [(500_000, 1)]);
    }
}
