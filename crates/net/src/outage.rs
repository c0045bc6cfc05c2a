//! A time in which nothing passes.

use std::collections::VecDeque;

use machine::{Element, PacketId, Verdict, View};
use units::Instant;

/// What becomes of packets that come during an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum During {
    /// They are lost.
    Lost,
    /// They are held and leave together, in their order, when it is over.
    Held,
}

/// Lets nothing pass from `from` up to but not including `until`.
#[derive(Debug, Clone)]
pub struct Outage {
    from: Instant,
    until: Instant,
    during: During,
    held: VecDeque<PacketId>,
}

impl Outage {
    /// An outage to come.
    pub const fn new(from: Instant, until: Instant, during: During) -> Self {
        Self { from, until, during, held: VecDeque::new() }
    }
}

impl Element for Outage {
    fn accept(&mut self, now: Instant, packet: PacketId, _: &View) -> Verdict {
        let passes = now < self.from || now >= self.until;
        match self.during {
            During::Lost if !passes => Verdict::Dropped,
            // At its very end, those that are held go first.
            During::Held if !passes || !self.held.is_empty() => {
                self.held.push_back(packet);
                Verdict::Taken
            }
            _ => Verdict::Passed,
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        (!self.held.is_empty()).then_some(self.until)
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        if now < self.until { None } else { self.held.pop_front() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, drain};

    fn verdicts(outage: &mut Outage, at: [u64; 4]) -> [Verdict; 4] {
        at.map(|ns| outage.accept(Instant::from_nanos(ns), PacketId(ns as u32), &data(1_500)))
    }

    #[test]
    fn the_end_does_not_belong_to_it() {
        let (from, until) = (Instant::from_nanos(10), Instant::from_nanos(20));
        let mut outage = Outage::new(from, until, During::Lost);
        let (lost, passed) = (Verdict::Dropped, Verdict::Passed);
        assert_eq!(verdicts(&mut outage, [9, 10, 19, 20]), [passed, lost, lost, passed]);
        assert_eq!(outage.next_wake(), None);
    }

    #[test]
    fn what_is_held_leaves_at_its_end_in_order() {
        let (from, until) = (Instant::from_nanos(10), Instant::from_nanos(20));
        let mut outage = Outage::new(from, until, During::Held);
        let (held, passed) = (Verdict::Taken, Verdict::Passed);
        assert_eq!(verdicts(&mut outage, [9, 10, 19, 20]), [passed, held, held, held]);
        assert_eq!(outage.wake(Instant::from_nanos(19)), None);
        assert_eq!(drain(&mut outage), [(20, 10), (20, 19), (20, 20)]);
        assert_eq!(verdicts(&mut outage, [20, 21, 22, 23]), [passed; 4]);
    }
}
