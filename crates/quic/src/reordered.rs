//! Thresholds of loss detection that follow reordering: quiche 0.30 (`recovery/congestion/recovery.rs`,
//! `detect_and_remove_acked_packets`, `on_ack_received`).
//!
//! An acknowledged packet that had been declared lost raises the packet threshold to the distance by which it was
//! overtaken, at most 20, and the time threshold to 5/4 of a round trip; neither falls again.

use std::collections::VecDeque;

use units::Instant;

use crate::loss::{LossAdaptation, QuicLossRule};
use crate::packet::AckFrame;

/// `MAX_PACKET_THRESHOLD`.
const MOST_PACKETS: u64 = 20;
/// `PACKET_REORDER_TIME_THRESHOLD`, in eighths.
const RAISED_EIGHTHS: u64 = 10;

/// The packets of a space that were declared lost, and the thresholds that their acknowledgments have raised.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReorderedPackets {
    /// Numbers, and when they were declared lost.
    lost: VecDeque<(u64, Instant)>,
    /// The raised packet threshold; 0 before.
    packets: u64,
}

impl ReorderedPackets {
    /// Remembers a lost packet.
    pub(crate) fn on_lost(&mut self, number: u64, now: Instant) {
        self.lost.push_back((number, now));
    }

    /// Returns the present rule; `rule` is that of the profile.
    pub(crate) fn adapted(&self, rule: QuicLossRule) -> QuicLossRule {
        if rule.adaptation != LossAdaptation::Raises || self.packets == 0 {
            return rule;
        }
        let packets = rule.packets.max(self.packets);
        QuicLossRule { packets, time_eighths: rule.time_eighths.map(|_| RAISED_EIGHTHS), ..rule }
    }

    /// Processes an ACK frame; returns whether it acknowledges a packet declared lost. `largest` is the largest number
    /// acknowledged so far.
    pub(crate) fn on_ack(&mut self, ack: &AckFrame, largest: u64) -> bool {
        let mut first = None;
        self.lost.retain(|&(number, _)| {
            let is_acked = ack.ranges.iter().any(|&(low, high)| (low..=high).contains(&number));
            if is_acked {
                first = first.or(Some(number));
            }
            !is_acked
        });
        let Some(first) = first else { return false };
        self.packets = self.packets.max((largest - first + 1).min(MOST_PACKETS));
        true
    }

    /// Forgets packets declared lost before `at` and sent before the first one outstanding.
    pub(crate) fn forget_before(&mut self, at: Instant, outstanding: u64) {
        while self.lost.front().is_some_and(|&(number, lost)| lost <= at && number < outstanding) {
            self.lost.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(ranges: &[(u64, u64)]) -> AckFrame {
        AckFrame { ranges: ranges.to_vec(), ..AckFrame::default() }
    }

    const RULE: QuicLossRule =
        QuicLossRule { adaptation: LossAdaptation::Raises, ..QuicLossRule::RFC9002 };

    #[test]
    fn the_first_packet_that_was_not_lost_raises_the_thresholds() {
        let mut reordered = ReorderedPackets::default();
        for number in [3, 4, 5] {
            reordered.on_lost(number, Instant::from_nanos(number));
        }
        assert!(!reordered.on_ack(&ack(&[(6, 9)]), 9));
        assert_eq!(reordered.adapted(RULE), RULE);
        // 4 was overtaken by six packets.
        assert!(reordered.on_ack(&ack(&[(6, 9), (4, 5)]), 9));
        let adapted = reordered.adapted(RULE);
        assert_eq!((adapted.packets, adapted.time_eighths), (6, Some(10)));
        // At most 20, and no less afterwards.
        assert!(reordered.on_ack(&ack(&[(3, 3)]), 90));
        assert_eq!(reordered.adapted(RULE).packets, 20);
        reordered.on_lost(91, Instant::from_nanos(91));
        assert!(reordered.on_ack(&ack(&[(91, 91)]), 95));
        assert_eq!(reordered.adapted(RULE).packets, 20);
    }

    #[test]
    fn a_packet_that_is_forgotten_raises_nothing() {
        let mut reordered = ReorderedPackets::default();
        reordered.on_lost(3, Instant::from_nanos(10));
        reordered.forget_before(Instant::from_nanos(10), 3);
        reordered.forget_before(Instant::from_nanos(9), 4);
        assert_eq!(reordered.lost.len(), 1);
        reordered.forget_before(Instant::from_nanos(10), 4);
        assert!(!reordered.on_ack(&ack(&[(3, 9)]), 9));
    }
}
