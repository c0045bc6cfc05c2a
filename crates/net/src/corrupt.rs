//! Corrupts the packets that a rule selects.

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::Instant;

use crate::selection::{PacketClass, PacketSelector, RandomSource, SelectionRule};

/// Corrupts the packets that a rule selects: their checksum will be wrong.
#[derive(Debug, Clone)]
pub struct Corrupt(PacketSelector);

impl Corrupt {
    /// Creates an element that has seen no packet.
    pub fn new(rule: &SelectionRule, only: PacketClass, random_source: &RandomSource<'_>) -> Self {
        Self(PacketSelector::new(rule, only, random_source))
    }
}

impl Element for Corrupt {
    fn accept(&mut self, now: Instant, _: PacketId, view: &PacketView) -> PacketVerdict {
        if self.0.picks(now, view) { PacketVerdict::Corrupted } else { PacketVerdict::Forwarded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    #[test]
    fn only_selected_packets_are_corrupted() {
        let random_source = RandomSource { seed: 1, owner: "test" };
        let mut corrupt =
            Corrupt::new(&SelectionRule::Listed(vec![2]), PacketClass::All, &random_source);
        let mut accept = |n| corrupt.accept(Instant::ZERO, PacketId(n), &data(1_500));
        assert_eq!([accept(1), accept(2)], [PacketVerdict::Forwarded, PacketVerdict::Corrupted]);
        assert_eq!(accept(3), PacketVerdict::Forwarded);
        assert_eq!(corrupt.next_wake(), None);
    }
}
