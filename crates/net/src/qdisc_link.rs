//! A queue discipline in front of a line that has a rate, changes it or follows a trace.
//! [`crate::link`] is the faster special case of drop-tail at a constant rate.

use machine::{Element, PacketAction, PacketId, PacketVerdict, PacketView};
use units::{Bytes, Duration, Instant, Rate};

use crate::link::QueueLimit;
use crate::queue::{Qdisc, QdiscConfig, QueueArrival, QueueOutcomes, QueueSite, QueuedPacket};
use crate::schedule::{Schedule, ScheduledTransmitter};
use crate::selection::RandomSource;
use crate::trace::{LinkTrace, TraceTransmitter};

/// Capacity of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkCapacity {
    /// A constant rate.
    Rate(Rate),
    /// A trace of send opportunities.
    Trace(LinkTrace),
    /// A rate in bits per second that changes; zero suspends the line.
    Changing(Schedule<u64>),
}

impl LinkCapacity {
    /// Rate by which buffers and queue disciplines are sized: of a trace its mean, of a changing
    /// rate the first that is not zero, at least 1 bit/s.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Rate(rate) => *rate,
            Self::Trace(schedule) => schedule.mean(),
            Self::Changing(schedule) => {
                let mut rates = schedule.steps().iter().map(|&(_, rate)| rate);
                let least = const { Rate::from_bits_per_second(1).unwrap() };
                rates.find_map(Rate::from_bits_per_second).unwrap_or(least)
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Transmitter {
    Rate { rate: Rate, carry: u64 },
    Trace(TraceTransmitter),
    Changing(ScheduledTransmitter),
}

impl Transmitter {
    /// Returns when the last bit of a packet leaves whose transmission starts at `now`, which may
    /// be never; `idle`: the line was idle before.
    fn send(&mut self, now: Instant, size: Bytes, idle: bool) -> Instant {
        match self {
            Self::Rate { rate, carry } => {
                if idle {
                    // The fraction of the last nanosecond expires with the idle time.
                    *carry = 0;
                }
                now + rate.time_to_send(size, carry)
            }
            Self::Trace(line) => line.send(now, size),
            Self::Changing(line) => line.send(now, size.get() * 8, idle).unwrap_or(NEVER),
        }
    }
}

/// The end of a transmission on a line that stays suspended.
const NEVER: Instant = Instant::MAX;

/// A line and its queue.
#[derive(Debug, Clone)]
pub struct QdiscLink {
    line: Transmitter,
    limit: QueueLimit,
    /// The limit over time, if it changes.
    limits: Option<Schedule<QueueLimit>>,
    queue: Qdisc,
    /// The packet in transmission and when its last bit leaves.
    sending: Option<(PacketId, Instant)>,
    fates: QueueOutcomes,
}

/// Packet size by which RED counts idle times (ns-2's mean_pktsize of Floyd's scripts).
const MEAN_PACKET_SIZE: Bytes = Bytes(1_000);

impl QdiscLink {
    /// Creates an idle line. The capacity of the queue excludes the packet in transmission.
    pub fn new(
        capacity: LinkCapacity,
        limit: QueueLimit,
        policy: QdiscConfig,
        random_source: &RandomSource<'_>,
    ) -> Self {
        let slot: Duration = capacity.mean().time_to_send(MEAN_PACKET_SIZE, &mut 0);
        let line = match capacity {
            LinkCapacity::Rate(rate) => Transmitter::Rate { rate, carry: 0 },
            LinkCapacity::Trace(schedule) => Transmitter::Trace(TraceTransmitter::new(schedule)),
            LinkCapacity::Changing(rate) => Transmitter::Changing(ScheduledTransmitter::new(rate)),
        };
        let queue = Qdisc::new(policy, &QueueSite { slot, random_source });
        Self { line, limit, limits: None, queue, sending: None, fates: QueueOutcomes::new() }
    }

    /// Changes the capacity of the queue over time. Packets that a smaller queue has no room for
    /// remain in it.
    #[must_use]
    pub fn with_limits(self, limits: Option<Schedule<QueueLimit>>) -> Self {
        Self { limits, ..self }
    }

    /// Starts the transmission of the next packet.
    fn start(&mut self, now: Instant, idle: bool) {
        let next = self.queue.dequeue(now, &mut self.fates);
        self.sending =
            next.map(|waiting| (waiting.packet, self.line.send(now, waiting.size, idle)));
    }
}

impl Element for QdiscLink {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        let idle = self.sending.is_none();
        if let Some(limits) = &self.limits {
            self.limit = limits.at(now);
        }
        let packet = QueuedPacket { packet, size: view.size, enqueued_at: now, ecn: view.ecn };
        let arrival = QueueArrival { packet, view, limit: self.limit, idle };
        if !self.queue.enqueue(&arrival, &mut self.fates) {
            return PacketVerdict::Dropped;
        }
        if idle {
            self.start(now, true);
        }
        PacketVerdict::Queued
    }

    fn next_wake(&self) -> Option<Instant> {
        self.sending.map(|(_, at)| at).filter(|&at| at < NEVER)
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        let (packet, left_at) = self.sending.filter(|&(_, at)| at <= now)?;
        self.start(left_at, false);
        Some(packet)
    }

    fn next_action(&mut self) -> Option<PacketAction> {
        self.fates.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Link;
    use crate::testing::data;

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };

    /// With drop-tail both kinds of link behave identically for any arrivals.
    #[test]
    fn with_drop_tail_it_equals_the_drop_tail_link() {
        let rate = Rate::from_bits_per_second(7_777_777).unwrap();
        for limit in
            [QueueLimit::Packets(5), QueueLimit::Bytes(Bytes(6_000)), QueueLimit::Packets(0)]
        {
            let mut plain = Link::new(rate, limit);
            let capacity = LinkCapacity::Rate(rate);
            let mut managed = QdiscLink::new(capacity, limit, QdiscConfig::DropTail, &RNG);
            let mut draws = RNG.stream("arrivals");
            let mut now = Instant::ZERO;
            for n in 0..20_000 {
                now += Duration::from_nanos(draws.below(2_000_000));
                while let Some(at) = plain.next_wake().filter(|at| *at <= now) {
                    assert_eq!(managed.next_wake(), Some(at));
                    assert_eq!(managed.wake(at), plain.wake(at));
                }
                let view = data(40 + draws.below(1_461) as u32);
                let verdict = plain.accept(now, PacketId(n), &view);
                assert_eq!(managed.accept(now, PacketId(n), &view), verdict);
                assert_eq!(managed.next_action(), None);
            }
        }
    }
}
