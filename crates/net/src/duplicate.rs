//! Duplicates the packets that a rule selects.

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::Instant;

use crate::selection::{PacketClass, PacketSelector, RandomSource, SelectionRule};

/// Duplicates the packets that a rule selects: the copy follows at once.
#[derive(Debug, Clone)]
pub struct Duplicate(PacketSelector);

impl Duplicate {
    /// Creates an element that has seen no packet.
    pub fn new(rule: &SelectionRule, only: PacketClass, random_source: &RandomSource<'_>) -> Self {
        Self(PacketSelector::new(rule, only, random_source))
    }
}

impl Element for Duplicate {
    fn accept(&mut self, now: Instant, _: PacketId, view: &PacketView) -> PacketVerdict {
        if self.0.picks(now, view) { PacketVerdict::Duplicated } else { PacketVerdict::Forwarded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    #[test]
    fn selected_packets_pass_twice() {
        let random_source = RandomSource { seed: 1, owner: "test" };
        let mut duplicate =
            Duplicate::new(&SelectionRule::Listed(vec![2]), PacketClass::All, &random_source);
        let mut accept = |n| duplicate.accept(Instant::ZERO, PacketId(n), &data(1_500));
        assert_eq!([accept(1), accept(2)], [PacketVerdict::Forwarded, PacketVerdict::Duplicated]);
        assert_eq!(accept(3), PacketVerdict::Forwarded);
        assert_eq!(duplicate.next_wake(), None);
    }
}
