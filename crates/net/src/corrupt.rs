//! Damages the packets that a rule picks.

use machine::{Element, PacketId, Verdict, View};
use units::Instant;

use crate::choice::{Chooser, Luck, Only, Rule};

/// Damages the packets that a rule picks: their checksum will be wrong.
#[derive(Debug, Clone)]
pub struct Corrupt(Chooser);

impl Corrupt {
    /// One that has seen no packet.
    pub fn new(rule: &Rule, only: Only, luck: &Luck<'_>) -> Self {
        Self(Chooser::new(rule, only, luck))
    }
}

impl Element for Corrupt {
    fn accept(&mut self, _: Instant, _: PacketId, view: &View) -> Verdict {
        if self.0.picks(view) { Verdict::Damaged } else { Verdict::Passed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    #[test]
    fn what_is_picked_is_damaged_and_the_rest_is_not() {
        let luck = Luck { seed: 1, owner: "test" };
        let mut corrupt = Corrupt::new(&Rule::Listed(vec![2]), Only::All, &luck);
        let mut accept = |n| corrupt.accept(Instant::ZERO, PacketId(n), &data(1_500));
        assert_eq!([accept(1), accept(2)], [Verdict::Passed, Verdict::Damaged]);
        assert_eq!(accept(3), Verdict::Passed);
        assert_eq!(corrupt.next_wake(), None);
    }
}
