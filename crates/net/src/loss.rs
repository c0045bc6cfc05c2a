//! Loses the packets that a rule picks.

use machine::{Element, PacketId, Verdict, View};
use units::Instant;

use crate::choice::{Chooser, Luck, Only, Rule};

/// Loses the packets that a rule picks; all others pass at once.
#[derive(Debug, Clone)]
pub struct Loss(Chooser);

impl Loss {
    /// A loss that has seen no packet.
    pub fn new(rule: &Rule, only: Only, luck: &Luck<'_>) -> Self {
        Self(Chooser::new(rule, only, luck))
    }
}

impl Element for Loss {
    fn accept(&mut self, _: Instant, _: PacketId, view: &View) -> Verdict {
        if self.0.picks(view) { Verdict::Dropped } else { Verdict::Passed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    #[test]
    fn what_is_picked_is_lost_and_the_rest_passes() {
        let luck = Luck { seed: 1, owner: "test" };
        let mut loss = Loss::new(&Rule::Listed(vec![2]), Only::All, &luck);
        let mut accept = |n| loss.accept(Instant::ZERO, PacketId(n), &data(1_500));
        assert_eq!([accept(1), accept(2)], [Verdict::Passed, Verdict::Dropped]);
        assert_eq!(accept(3), Verdict::Passed);
        assert_eq!(loss.next_wake(), None);
    }
}
