//! Doubles the packets that a rule picks.

use machine::{Element, PacketId, Verdict, View};
use units::Instant;

use crate::choice::{Chooser, Luck, Only, Rule};

/// Doubles the packets that a rule picks: a copy follows at once.
#[derive(Debug, Clone)]
pub struct Duplicate(Chooser);

impl Duplicate {
    /// One that has seen no packet.
    pub fn new(rule: &Rule, only: Only, luck: &Luck<'_>) -> Self {
        Self(Chooser::new(rule, only, luck))
    }
}

impl Element for Duplicate {
    fn accept(&mut self, _: Instant, _: PacketId, view: &View) -> Verdict {
        if self.0.picks(view) { Verdict::Doubled } else { Verdict::Passed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    #[test]
    fn what_is_picked_passes_twice() {
        let luck = Luck { seed: 1, owner: "test" };
        let mut duplicate = Duplicate::new(&Rule::Listed(vec![2]), Only::All, &luck);
        let mut accept = |n| duplicate.accept(Instant::ZERO, PacketId(n), &data(1_500));
        assert_eq!([accept(1), accept(2)], [Verdict::Passed, Verdict::Doubled]);
        assert_eq!(accept(3), Verdict::Passed);
        assert_eq!(duplicate.next_wake(), None);
    }
}
