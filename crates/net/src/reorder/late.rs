//! Single packets that come later than the rest.

use machine::{Element, PacketId, Verdict, View};
use units::{Duration, Instant};

use crate::choice::{Chooser, Luck, Only, Rule};
use crate::delay::Delay;

/// Holds the packets that a rule picks for a fixed time; all others pass at once.
#[derive(Debug, Clone)]
pub struct Late {
    chooser: Chooser,
    held: Delay,
}

impl Late {
    /// One that holds nothing.
    pub fn new(rule: &Rule, by: Duration, only: Only, luck: &Luck<'_>) -> Self {
        Self { chooser: Chooser::new(rule, only, luck), held: Delay::new(by) }
    }
}

impl Element for Late {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &View) -> Verdict {
        if self.chooser.picks(view) { self.held.accept(now, packet, view) } else { Verdict::Passed }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.held.next_wake()
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        self.held.wake(now)
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::*;
    use crate::testing::{data, drain, handshake};

    /// `delay:2:8000` in the convention of the Linux golden traces: every second data packet
    /// comes 8 ms late.
    #[test]
    fn what_is_picked_comes_late() {
        let luck = Luck { seed: 1, owner: "test" };
        let every = Rule::Every(NonZeroU64::new(2).unwrap());
        let mut late = Late::new(&every, Duration::from_millis(8), Only::Data, &luck);
        let mut accept =
            |us: u64, id, view| late.accept(Instant::from_nanos(us * 1_000), PacketId(id), &view);
        assert_eq!(accept(0, 0, handshake()), Verdict::Passed);
        assert_eq!(accept(10, 1, data(1_500)), Verdict::Passed);
        assert_eq!(accept(20, 2, data(1_500)), Verdict::Taken);
        assert_eq!(accept(30, 3, data(1_500)), Verdict::Passed);
        assert_eq!(accept(40, 4, data(1_500)), Verdict::Taken);
        assert_eq!(drain(&mut late), [(8_020_000, 2), (8_040_000, 4)]);
    }
}
