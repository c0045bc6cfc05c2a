//! Extra delay for single packets.

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant};

use crate::delay::Delay;
use crate::selection::{PacketClass, PacketSelector, RandomSource, SelectionRule};

/// Holds the packets that a rule selects for a fixed time; all others pass at once.
#[derive(Debug, Clone)]
pub struct SelectiveDelay {
    chooser: PacketSelector,
    delay: Delay,
}

impl SelectiveDelay {
    /// Creates an element that holds no packet.
    pub fn new(
        rule: &SelectionRule,
        by: Duration,
        only: PacketClass,
        random_source: &RandomSource<'_>,
    ) -> Self {
        Self { chooser: PacketSelector::new(rule, only, random_source), delay: Delay::new(by) }
    }
}

impl Element for SelectiveDelay {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        if self.chooser.picks(now, view) {
            self.delay.accept(now, packet, view)
        } else {
            PacketVerdict::Forwarded
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.delay.next_wake()
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        self.delay.wake(now)
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::*;
    use crate::testing::{data, drain, handshake};

    /// `delay:2:8000` in the convention of the Linux golden traces: every second data packet is 8
    /// ms late.
    #[test]
    fn selected_packets_are_delayed() {
        let random_source = RandomSource { seed: 1, owner: "test" };
        let every = SelectionRule::Every(NonZeroU64::new(2).unwrap());
        let mut late = SelectiveDelay::new(
            &every,
            Duration::from_millis(8),
            PacketClass::Data,
            &random_source,
        );
        let mut accept =
            |us: u64, id, view| late.accept(Instant::from_nanos(us * 1_000), PacketId(id), &view);
        assert_eq!(accept(0, 0, handshake()), PacketVerdict::Forwarded);
        assert_eq!(accept(10, 1, data(1_500)), PacketVerdict::Forwarded);
        assert_eq!(accept(20, 2, data(1_500)), PacketVerdict::Queued);
        assert_eq!(accept(30, 3, data(1_500)), PacketVerdict::Forwarded);
        assert_eq!(accept(40, 4, data(1_500)), PacketVerdict::Queued);
        assert_eq!(drain(&mut late), [(8_020_000, 2), (8_040_000, 4)]);
    }
}
