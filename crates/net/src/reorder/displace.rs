//! Moves single packets back by a number of positions.

use core::num::NonZeroU32;
use std::collections::VecDeque;

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant};

use crate::selection::{PacketClass, PacketSelector, RandomSource, SelectionRule};

/// Holds a packet that a rule selects until `positions` more have passed; with one position,
/// neighbours are swapped. While it holds a packet it selects no other, whatever the rule says.
#[derive(Debug, Clone)]
pub struct Displace {
    positions: NonZeroU32,
    /// The held packet leaves after this time even if too few packets have passed.
    timeout: Duration,
    class: PacketClass,
    chooser: PacketSelector,
    held: Option<DisplacedPacket>,
    /// Packets that leave at `ready_at`, after the packet that passed.
    ready: VecDeque<PacketId>,
    ready_at: Instant,
}

#[derive(Debug, Clone, Copy)]
struct DisplacedPacket {
    packet: PacketId,
    positions_left: u32,
    until: Instant,
}

impl Displace {
    /// Creates an element that holds no packet.
    pub fn new(
        rule: &SelectionRule,
        places: NonZeroU32,
        timeout: Duration,
        only: PacketClass,
        random_source: &RandomSource<'_>,
    ) -> Self {
        Self {
            positions: places,
            timeout,
            class: only,
            chooser: PacketSelector::new(rule, only, random_source),
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
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        let picked = self.chooser.picks(now, view);
        if !self.class.covers(view) {
            return PacketVerdict::Forwarded;
        }
        self.release_if_late(now);
        if self.held.is_none() && picked {
            let until = now + self.timeout;
            self.held =
                Some(DisplacedPacket { packet, positions_left: self.positions.get(), until });
            return PacketVerdict::Queued;
        }
        // The ready packets were released before this one arrived.
        let verdict = if self.ready.is_empty() {
            PacketVerdict::Forwarded
        } else {
            self.ready.push_back(packet);
            PacketVerdict::Queued
        };
        if let Some(held) = &mut self.held {
            held.positions_left -= 1;
            if held.positions_left == 0 {
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

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };
    const MS: Duration = Duration::from_millis(1);

    fn displace(rule: &SelectionRule, places: u32) -> Displace {
        Displace::new(rule, NonZeroU32::new(places).unwrap(), MS, PacketClass::Data, &RNG)
    }

    /// Order in which packets 1 to `n` leave that arrive `apart` nanoseconds apart, or all at once.
    fn order(displace: &mut Displace, n: u32, apart: u64) -> Vec<u32> {
        let mut left = Vec::new();
        for id in 1..=n {
            let now = Instant::from_nanos(u64::from(id) * apart);
            match displace.accept(now, PacketId(id), &data(1_500)) {
                PacketVerdict::Forwarded => left.push(id),
                verdict => assert_eq!(verdict, PacketVerdict::Queued),
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
        let all = SelectionRule::Share(Ratio::new(1, 1).unwrap());
        assert_eq!(order(&mut displace(&all, 1), 6, 1), [2, 1, 4, 3, 6, 5]);
    }

    #[test]
    fn a_packet_moves_back_by_the_declared_positions() {
        let second = SelectionRule::Listed(vec![2]);
        for apart in [1, 0] {
            assert_eq!(order(&mut displace(&second, 3), 7, apart), [1, 3, 4, 5, 2, 6, 7]);
        }
        let both = SelectionRule::Listed(vec![1, 2, 6]);
        // The second is not selected while the first is held.
        assert_eq!(order(&mut displace(&both, 3), 9, 1), [2, 3, 4, 1, 5, 7, 8, 9, 6]);
    }

    #[test]
    fn the_last_packet_is_not_held_for_ever() {
        let mut displace = displace(&SelectionRule::Listed(vec![1]), 3);
        let at = Instant::from_nanos;
        assert_eq!(displace.accept(at(5), PacketId(1), &data(1_500)), PacketVerdict::Queued);
        assert_eq!(displace.accept(at(6), PacketId(2), &handshake()), PacketVerdict::Forwarded);
        assert_eq!(displace.next_wake(), Some(at(1_000_005)));
        assert_eq!(leave(&mut displace, at(1_000_004)), []);
        assert_eq!(leave(&mut displace, at(1_000_005)), [(1_000_005, 1)]);
        assert_eq!(displace.next_wake(), None);
    }
}
