//! Drops the packets that a rule selects.

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::Instant;

use crate::selection::{PacketClass, PacketSelector, RandomSource, SelectionRule};

/// Drops the packets that a rule selects; all others pass at once.
#[derive(Debug, Clone)]
pub struct Loss(PacketSelector);

impl Loss {
    /// Creates an element that has seen no packet.
    pub fn new(rule: &SelectionRule, only: PacketClass, random_source: &RandomSource<'_>) -> Self {
        Self(PacketSelector::new(rule, only, random_source))
    }
}

impl Element for Loss {
    fn accept(&mut self, now: Instant, _: PacketId, view: &PacketView) -> PacketVerdict {
        if self.0.picks(now, view) { PacketVerdict::Dropped } else { PacketVerdict::Forwarded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    #[test]
    fn only_selected_packets_are_dropped() {
        let random_source = RandomSource { seed: 1, owner: "test" };
        let mut loss = Loss::new(&SelectionRule::Listed(vec![2]), PacketClass::All, &random_source);
        let mut accept = |n| loss.accept(Instant::ZERO, PacketId(n), &data(1_500));
        assert_eq!([accept(1), accept(2)], [PacketVerdict::Forwarded, PacketVerdict::Dropped]);
        assert_eq!(accept(3), PacketVerdict::Forwarded);
        assert_eq!(loss.next_wake(), None);
    }
}
