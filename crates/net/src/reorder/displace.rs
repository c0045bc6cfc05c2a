//! Single packets moved back by some places.

use core::num::NonZeroU32;
use std::collections::VecDeque;

use machine::{Element, PacketId, Verdict, View};
use units::{Duration, Instant};

use crate::choice::{Chooser, Luck, Only, Rule};

/// Holds a packet that a rule picks until `places` more have passed; with one place, neighbours
/// are swapped. While one is held no other is picked, whatever the rule says.
#[derive(Debug, Clone)]
pub struct Displace {
    places: NonZeroU32,
    /// What is held goes on after this time even if not enough packets came.
    timeout: Duration,
    only: Only,
    chooser: Chooser,
    held: Option<Held>,
    /// What leaves at once, behind the packet that passed: at `ready_at`.
    ready: VecDeque<PacketId>,
    ready_at: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    packet: PacketId,
    places_left: u32,
    until: Instant,
}

impl Displace {
    /// One that holds nothing.
    pub fn new(
        rule: &Rule,
        places: NonZeroU32,
        timeout: Duration,
        only: Only,
        luck: &Luck<'_>,
    ) -> Self {
        Self {
            places,
            timeout,
            only,
            chooser: Chooser::new(rule, only, luck),
            held: None,
            ready: VecDeque::new(),
            ready_at: Instant::ZERO,
        }
    }

    fn release(&mut self, at: Instant) {
        self.ready.extend(self.held.take().map(|held| held.packet));
        self.ready_at = at;
    }

    fn release_if_late(&mut self, now: Instant) {
        if let Some(held) = self.held.filter(|held| held.until <= now) {
            self.release(held.until);
        }
    }
}

impl Element for Displace {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &View) -> Verdict {
        let picked = self.chooser.picks(view);
        if !self.only.covers(view) {
            return Verdict::Passed;
        }
        self.release_if_late(now);
        if self.held.is_none() && picked {
            let until = now + self.timeout;
            self.held = Some(Held { packet, places_left: self.places.get(), until });
            return Verdict::Taken;
        }
        // What is about to leave was released before this one came.
        let verdict = if self.ready.is_empty() {
            Verdict::Passed
        } else {
            self.ready.push_back(packet);
            Verdict::Taken
        };
        if let Some(held) = &mut self.held {
            held.places_left -= 1;
            if held.places_left == 0 {
                self.release(now);
            }
        }
        verdict
    }

    fn next_wake(&self) -> Option<Instant> {
        if self.ready.is_empty() { self.held.map(|held| held.until) } else { Some(self.ready_at) }
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        self.release_if_late(now);
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, handshake, leave};
    use units::Ratio;

    const LUCK: Luck<'static> = Luck { seed: 1, owner: "test" };
    const MS: Duration = Duration::from_millis(1);

    fn displace(rule: &Rule, places: u32) -> Displace {
        Displace::new(rule, NonZeroU32::new(places).unwrap(), MS, Only::Data, &LUCK)
    }

    /// Order in which packets 1 to `n` leave that come a nanosecond apart, or all at once.
    fn order(displace: &mut Displace, n: u32, apart: u64) -> Vec<u32> {
        let mut left = Vec::new();
        for id in 1..=n {
            let now = Instant::from_nanos(u64::from(id) * apart);
            match displace.accept(now, PacketId(id), &data(1_500)) {
                Verdict::Passed => left.push(id),
                verdict => assert_eq!(verdict, Verdict::Taken),
            }
            if apart > 0 {
                left.extend(leave(displace, now).iter().map(|&(_, id)| id));
            }
        }
        left.extend(leave(displace, Instant::ZERO + MS + MS).iter().map(|&(_, id)| id));
        left
    }

    #[test]
    fn neighbours_are_swapped() {
        let all = Rule::Share(Ratio::new(1, 1).unwrap());
        assert_eq!(order(&mut displace(&all, 1), 6, 1), [2, 1, 4, 3, 6, 5]);
    }

    #[test]
    fn a_packet_comes_back_behind_as_many_as_declared() {
        let second = Rule::Listed(vec![2]);
        for apart in [1, 0] {
            assert_eq!(order(&mut displace(&second, 3), 7, apart), [1, 3, 4, 5, 2, 6, 7]);
        }
        let both = Rule::Listed(vec![1, 2, 6]);
        // The second is not picked, since the first is held.
        assert_eq!(order(&mut displace(&both, 3), 9, 1), [2, 3, 4, 1, 5, 7, 8, 9, 6]);
    }

    #[test]
    fn the_last_packet_is_not_held_for_ever() {
        let mut displace = displace(&Rule::Listed(vec![1]), 3);
        let at = Instant::from_nanos;
        assert_eq!(displace.accept(at(5), PacketId(1), &data(1_500)), Verdict::Taken);
        assert_eq!(displace.accept(at(6), PacketId(2), &handshake()), Verdict::Passed);
        assert_eq!(displace.next_wake(), Some(at(1_000_005)));
        assert_eq!(leave(&mut displace, at(1_000_004)), []);
        assert_eq!(leave(&mut displace, at(1_000_005)), [(1_000_005, 1)]);
        assert_eq!(displace.next_wake(), None);
    }
}
