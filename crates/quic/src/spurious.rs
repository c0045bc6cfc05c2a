//! Losses that were none, and thresholds that follow them: quic-go 0.65 (`detectSpuriousLosses`,
//! `lost_packet_tracker.go`).

use std::collections::VecDeque;

use units::{Duration, Instant};

use crate::loss::{LossAdaptation, QuicLossRule};
use crate::packet::AckFrame;

/// Most lost packets that are remembered (`maxTrackedLostPackets`).
const MOST_TRACKED: usize = 64;
/// `maxTimeThresholdEighths`: eighths above a round trip.
const MOST_EIGHTHS: u64 = 8;

/// The packets of a space that were declared lost, and what their acknowledgments have changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpuriousLosses {
    /// Numbers, send times and places in the order of sending, in the order in which they were lost.
    lost: VecDeque<(u64, Instant, u64)>,
    packet_threshold_disabled: bool,
    /// Doublings of the time threshold above a round trip.
    doublings: u32,
    /// Packets before this number raise the time threshold no more.
    relaxed_from: u64,
}

impl SpuriousLosses {
    /// Remembers a lost packet.
    pub(crate) fn on_lost(&mut self, number: u64, sent: Instant, order: u64) {
        if self.lost.len() == MOST_TRACKED {
            self.lost.pop_front();
        }
        self.lost.push_back((number, sent, order));
    }

    /// Returns the present rule; `rule` is that of the profile.
    pub(crate) fn adapted(&self, rule: QuicLossRule) -> QuicLossRule {
        if rule.adaptation != LossAdaptation::Disables {
            return rule;
        }
        let packets = if self.packet_threshold_disabled { u64::MAX } else { rule.packets };
        let extra = |eighths: u64| (eighths.saturating_sub(8) << self.doublings).min(MOST_EIGHTHS);
        let time_eighths = rule.time_eighths.map(|eighths| 8 + extra(eighths));
        QuicLossRule { packets, time_eighths, ..rule }
    }

    /// Processes an ACK frame sent at `acked`; appends the places of lost packets that it acknowledges to
    /// `spurious`. `delay` is the present time threshold, `next` the number of the next packet. Returns whether the time
    /// threshold has been raised.
    pub(crate) fn on_ack(
        &mut self,
        ack: &AckFrame,
        acked: Instant,
        delay: Option<Duration>,
        next: u64,
        spurious: &mut Vec<u64>,
    ) -> bool {
        let mut late = Duration::ZERO;
        let relaxed_from = self.relaxed_from;
        self.lost.retain(|&(number, sent, order)| {
            let is_acked = ack.ranges.iter().any(|&(first, last)| (first..=last).contains(&number));
            if is_acked {
                spurious.push(order);
                if number >= relaxed_from {
                    late = late.max(acked.since(sent));
                }
            }
            !is_acked
        });
        self.packet_threshold_disabled |= !spurious.is_empty();
        let raised = delay.is_some_and(|delay| late > delay) && 1 << self.doublings < MOST_EIGHTHS;
        if raised {
            self.doublings += 1;
            self.relaxed_from = next;
        }
        raised
    }

    /// Forgets packets sent before `at`.
    pub(crate) fn forget_before(&mut self, at: Instant) {
        while self.lost.front().is_some_and(|&(_, sent, _)| sent < at) {
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

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const RULE: QuicLossRule =
        QuicLossRule { adaptation: LossAdaptation::Disables, ..QuicLossRule::RFC9002 };

    #[test]
    fn a_spurious_loss_disables_the_packet_threshold_and_a_late_one_raises_that_of_time() {
        let mut losses = SpuriousLosses::default();
        assert_eq!(losses.adapted(RULE), RULE);
        losses.on_lost(3, at(0), 13);
        losses.on_lost(4, at(1), 14);
        let delay = Some(Duration::from_millis(90));
        let mut spurious = Vec::new();
        assert!(!losses.on_ack(&ack(&[(5, 9)]), at(80), delay, 20, &mut spurious));
        assert_eq!((spurious.len(), losses.adapted(RULE).packets), (0, 3));
        assert!(!losses.on_ack(&ack(&[(5, 9), (3, 3)]), at(85), delay, 20, &mut spurious));
        assert_eq!(spurious, [13]);
        let adapted = losses.adapted(RULE);
        assert_eq!((adapted.packets, adapted.time_eighths), (u64::MAX, Some(9)));
        spurious.clear();
        assert!(losses.on_ack(&ack(&[(4, 9)]), at(95), delay, 20, &mut spurious));
        assert_eq!(losses.adapted(RULE).time_eighths, Some(10));
        // Only packets sent since then raise it again, up to two round trips.
        for (number, eighths) in [(19, 10), (20, 12), (30, 16), (40, 16)] {
            losses.on_lost(number, at(100), number);
            let _ =
                losses.on_ack(&ack(&[(number, number)]), at(300), delay, number + 1, &mut spurious);
            assert_eq!(losses.adapted(RULE).time_eighths, Some(eighths), "{number}");
        }
    }

    #[test]
    fn old_losses_are_forgotten() {
        let mut losses = SpuriousLosses::default();
        for number in 0..100 {
            losses.on_lost(number, at(number), number);
        }
        assert_eq!(losses.lost.len(), MOST_TRACKED);
        losses.forget_before(at(90));
        assert_eq!(losses.lost.front(), Some(&(90, at(90), 90)));
    }
}
