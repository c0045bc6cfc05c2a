//! When a receiver acknowledges: RFC 9000 section 13.2, ReceivedPacketsAccountant of INET
//! (58f2b31929), and draft-ietf-quic-ack-frequency section 6.

use units::{Duration, Instant};

/// How a receiver acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckRule {
    /// The n-th ack-eliciting packet that is not acknowledged draws an ACK
    /// (INET `numReceivedAckElicitingsBeforeAck`).
    pub every: u32,
    /// Longest delay: the transport parameter `max_ack_delay`.
    pub max_delay: Duration,
    /// The transport parameter `ack_delay_exponent`.
    pub exponent: u32,
    /// Packets by which one must be missing before a gap draws an ACK at once. 1: any packet out
    /// of order does (RFC 9000 section 13.2.1); 0: none does.
    pub reordering: u32,
    /// Packet number 0 draws one (INET: so that the first sample is not delayed).
    pub first_at_once: bool,
    /// Ranges of an ACK frame at most; older ones are forgotten (RFC 9000 section 13.2.3).
    pub max_ranges: usize,
    /// A packet that leaves anyway takes an ACK frame along for whatever came since the last,
    /// even if that drew none (INET `bundleAckForNonAckElicitingPackets`).
    pub bundle_all: bool,
}

/// A packet of the peer, as the policy sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) number: u64,
    /// All before this number had come in order, or been passed.
    pub(crate) expected: u64,
    /// The largest number of an ack-eliciting packet before this one.
    pub(crate) largest: Option<u64>,
    /// The least number missing that no ACK has told of (draft section 6.2).
    pub(crate) unreported: Option<u64>,
}

/// The policy at work, for application data.
#[derive(Debug, Clone)]
pub(crate) struct AckPolicy {
    rule: AckRule,
    unacked: u32,
    due: bool,
    deadline: Option<Instant>,
}

impl AckPolicy {
    pub(crate) const fn new(rule: AckRule) -> Self {
        Self { rule, unacked: 0, due: false, deadline: None }
    }

    pub(crate) const fn rule(&self) -> &AckRule {
        &self.rule
    }

    /// The peer asks for other values (ACK_FREQUENCY).
    pub(crate) fn on_frequency(&mut self, threshold: u32, max_delay: Duration, reordering: u32) {
        self.rule.every = threshold.saturating_add(1);
        self.rule.max_delay = max_delay;
        self.rule.reordering = reordering;
    }

    /// An ack-eliciting packet came.
    pub(crate) fn on_eliciting(&mut self, now: Instant, arrived: &Arrived) {
        self.unacked += 1;
        let at_once = self.unacked >= self.rule.every
            || self.out_of_order(arrived)
            || (self.rule.first_at_once && arrived.number == 0);
        if at_once {
            self.due = true;
            self.deadline = None;
        } else if !self.due {
            self.deadline.get_or_insert(now + self.rule.max_delay);
        }
    }

    /// Initial and Handshake packets are answered at once (RFC 9000 section 13.2.1).
    pub(crate) fn at_once(&mut self) {
        self.unacked += 1;
        self.due = true;
    }

    fn out_of_order(&self, arrived: &Arrived) -> bool {
        match self.rule.reordering {
            0 => false,
            // One per gap: what follows the first packet behind it is expected again.
            1 => arrived.number != arrived.expected,
            n => {
                let largest = arrived.largest.map_or(arrived.number, |l| l.max(arrived.number));
                arrived.unreported.is_some_and(|missing| missing + u64::from(n) <= largest)
            }
        }
    }

    /// The delay is over.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        let fired = self.deadline.is_some_and(|at| at <= now);
        if fired {
            self.deadline = None;
            self.due = true;
        }
        fired
    }

    /// An ACK frame left.
    pub(crate) fn on_sent(&mut self) {
        self.unacked = 0;
        self.due = false;
        self.deadline = None;
    }

    /// Must an ACK leave now?
    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// Is anything ack-eliciting not acknowledged?
    pub(crate) const fn owes(&self) -> bool {
        self.unacked > 0
    }

    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: AckRule = AckRule {
        every: 2,
        max_delay: Duration::from_millis(25),
        exponent: 3,
        reordering: 1,
        first_at_once: false,
        max_ranges: 32,
        bundle_all: false,
    };

    /// Which of these numbers, coming one per millisecond, draw an ACK at once.
    fn answered(rule: AckRule, numbers: &[u64]) -> Vec<u64> {
        let mut policy = AckPolicy::new(rule);
        let (mut expected, mut largest) = (0, None);
        let mut drawn = Vec::new();
        for (ms, &number) in (0..).zip(numbers) {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let missing = (0..number).find(|n| !numbers[..ms as usize].contains(n));
            policy.on_eliciting(now, &Arrived { number, expected, largest, unreported: missing });
            expected = expected.max(number + 1);
            largest = largest.max(Some(number));
            if policy.is_due() {
                drawn.push(number);
                policy.on_sent();
            }
        }
        drawn
    }

    #[test]
    fn every_second_packet_draws_one_rfc_9000_section_13_2_2() {
        assert_eq!(answered(RULE, &[0, 1, 2, 3, 4]), [1, 3]);
        assert_eq!(answered(AckRule { every: 1, ..RULE }, &[0, 1, 2]), [0, 1, 2]);
        assert_eq!(answered(AckRule { first_at_once: true, ..RULE }, &[0, 1, 2]), [0, 2]);
    }

    #[test]
    fn a_gap_draws_one_at_once_and_so_does_what_fills_it_section_13_2_1() {
        assert_eq!(answered(RULE, &[0, 2, 3, 4, 5, 1]), [2, 4, 1]);
        assert_eq!(answered(AckRule { reordering: 0, ..RULE }, &[0, 2, 3, 4, 5, 1]), [2, 4, 1]);
        assert_eq!(answered(AckRule { every: 9, ..RULE }, &[0, 2, 3, 4, 5, 1]), [2, 1]);
        assert_eq!(answered(AckRule { every: 9, reordering: 0, ..RULE }, &[0, 2, 1]), [0; 0]);
    }

    #[test]
    fn a_larger_reordering_threshold_waits_for_more_packets() {
        let rule = AckRule { every: 99, reordering: 3, ..RULE };
        // Packet 1 is missing by three once 4 has come.
        assert_eq!(answered(rule, &[0, 2, 3, 4]), [4]);
    }

    #[test]
    fn the_delay_runs_from_the_first_packet_that_waits() {
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut policy = AckPolicy::new(AckRule { every: 10, ..RULE });
        for number in 0..3 {
            let arrived = Arrived { number, expected: number, largest: None, unreported: None };
            policy.on_eliciting(ms(number), &arrived);
        }
        assert_eq!(policy.deadline(), Some(ms(25)));
        assert!(!policy.on_timeout(ms(24)) && policy.on_timeout(ms(25)));
        assert!(policy.is_due());
        policy.on_sent();
        assert!(!policy.is_due() && !policy.owes() && policy.deadline().is_none());
    }

    #[test]
    fn ack_frequency_counts_the_packets_that_may_wait() {
        let mut policy = AckPolicy::new(RULE);
        policy.on_frequency(9, Duration::from_millis(5), 0);
        assert_eq!((policy.rule().every, policy.rule().max_delay.as_millis()), (10, 5));
    }
}
