//! A queue with a discipline of its own in front of a line, which has a rate or follows a
//! recording. [`crate::link`] is the same for the plainest case, and faster.

use machine::{Element, Fate, PacketId, Verdict, View};
use units::{Bytes, Duration, Instant, Rate};

use crate::choice::Luck;
use crate::link::Limit;
use crate::queue::{Fates, Policy, Queue, Waiting};
use crate::trace::{Schedule, TraceLine};

/// What a line can send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capacity {
    /// The same at all times.
    Rate(Rate),
    /// What a recording says.
    Trace(Schedule),
}

impl Capacity {
    /// In the mean.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Rate(rate) => *rate,
            Self::Trace(schedule) => schedule.mean(),
        }
    }
}

#[derive(Debug, Clone)]
enum Line {
    Rate { rate: Rate, carry: u64 },
    Trace(TraceLine),
}

impl Line {
    /// When a packet is out that goes from `now` on; `idle`: the line has been idle.
    fn send(&mut self, now: Instant, size: Bytes, idle: bool) -> Instant {
        match self {
            Self::Rate { rate, carry } => {
                if idle {
                    // What was left of the last nanosecond is gone.
                    *carry = 0;
                }
                now + rate.time_to_send(size, carry)
            }
            Self::Trace(line) => line.send(now, size),
        }
    }
}

/// A line and its queue.
#[derive(Debug, Clone)]
pub struct ManagedLink {
    line: Line,
    limit: Limit,
    queue: Queue,
    /// The packet on the line and when its last bit leaves.
    sending: Option<(PacketId, Instant)>,
    fates: Fates,
}

/// Size of the packet by which RED reckons idle times (ns-2's mean_pktsize of Floyd's scripts).
const TYPICAL: Bytes = Bytes(1_000);

impl ManagedLink {
    /// An idle line. The room of the queue does not count the packet on the line.
    pub fn new(capacity: Capacity, limit: Limit, policy: Policy, luck: &Luck<'_>) -> Self {
        let slot: Duration = capacity.mean().time_to_send(TYPICAL, &mut 0);
        let line = match capacity {
            Capacity::Rate(rate) => Line::Rate { rate, carry: 0 },
            Capacity::Trace(schedule) => Line::Trace(TraceLine::new(schedule)),
        };
        let queue = Queue::new(policy, slot, luck);
        Self { line, limit, queue, sending: None, fates: Fates::new() }
    }

    /// The next packet goes on the line.
    fn start(&mut self, now: Instant, idle: bool) {
        let next = self.queue.dequeue(now, &mut self.fates);
        self.sending =
            next.map(|waiting| (waiting.packet, self.line.send(now, waiting.size, idle)));
    }
}

impl Element for ManagedLink {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &View) -> Verdict {
        let idle = self.sending.is_none();
        let waiting = Waiting { packet, size: view.size, since: now, capable: view.capable };
        if !self.queue.enqueue(waiting, view, self.limit, idle, &mut self.fates) {
            return Verdict::Dropped;
        }
        if idle {
            self.start(now, true);
        }
        Verdict::Taken
    }

    fn next_wake(&self) -> Option<Instant> {
        self.sending.map(|(_, at)| at)
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        let (packet, left_at) = self.sending.filter(|&(_, at)| at <= now)?;
        self.start(left_at, false);
        Some(packet)
    }

    fn next_fate(&mut self) -> Option<Fate> {
        self.fates.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Link;
    use crate::testing::data;

    const LUCK: Luck<'static> = Luck { seed: 1, owner: "test" };

    /// Whatever comes, with drop-tail both forms of a link do the same.
    #[test]
    fn with_drop_tail_it_is_the_plain_link() {
        let rate = Rate::from_bits_per_second(7_777_777).unwrap();
        for limit in [Limit::Packets(5), Limit::Bytes(Bytes(6_000)), Limit::Packets(0)] {
            let mut plain = Link::new(rate, limit);
            let capacity = Capacity::Rate(rate);
            let mut managed = ManagedLink::new(capacity, limit, Policy::DropTail, &LUCK);
            let mut draws = LUCK.stream("arrivals");
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
                assert_eq!(managed.next_fate(), None);
            }
        }
    }
}
