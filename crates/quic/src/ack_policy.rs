//! ACK generation of a receiver: RFC 9000 section 13.2, `ReceivedPacketsAccountant` of INET
//! (58f2b31929), and draft-ietf-quic-ack-frequency section 6.

use units::{Duration, Instant};

/// The ACK generation parameters of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicAckRule {
    /// The n-th unacknowledged ack-eliciting packet triggers an ACK (INET
    /// `numReceivedAckElicitingsBeforeAck`).
    pub every: u32,
    /// Longest delay: the transport parameter `max_ack_delay`.
    pub max_delay: Duration,
    /// The transport parameter `ack_delay_exponent`.
    pub exponent: u32,
    /// Reordering threshold: a gap triggers an immediate ACK once a packet is missing by this
    /// number. 1: any packet out of order does (RFC 9000 section 13.2.1); 0: none does.
    pub reordering: u32,
    /// Packet number 0 triggers an immediate ACK (INET: the first round-trip sample is not
    /// delayed).
    pub first_at_once: bool,
    /// Most ranges in an ACK frame; older ranges are dropped (RFC 9000 section 13.2.3).
    pub max_ranges: usize,
    /// A packet with other frames also carries an ACK frame for all packets received since the last
    /// ACK, even if they were not ack-eliciting (INET `bundleAckForNonAckElicitingPackets`).
    pub bundle_all: bool,
    /// After this number of packets that only acknowledge, the next one has a PING.
    pub elicits_after: Option<u32>,
    /// An ack-eliciting packet marked CE is acknowledged at once (RFC 9000 section 13.2.1).
    pub marks_at_once: bool,
}

/// A received ack-eliciting packet, as the ACK policy sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketArrival {
    pub(crate) number: u64,
    /// The next packet number in sequence before this packet arrived; gaps before it were skipped.
    pub(crate) expected: u64,
    /// The largest ack-eliciting packet number received earlier.
    pub(crate) largest: Option<u64>,
    /// The smallest missing packet number that no ACK has reported (draft section 6.2).
    pub(crate) unreported: Option<u64>,
}

/// The ACK state of the application data space.
#[derive(Debug, Clone)]
pub(crate) struct QuicAckPolicy {
    rule: QuicAckRule,
    unacked: u32,
    due: bool,
    deadline: Option<Instant>,
}

impl QuicAckPolicy {
    pub(crate) const fn new(rule: QuicAckRule) -> Self {
        Self { rule, unacked: 0, due: false, deadline: None }
    }

    pub(crate) const fn rule(&self) -> &QuicAckRule {
        &self.rule
    }

    /// Applies the values that the peer requests (ACK_FREQUENCY).
    pub(crate) fn on_frequency(&mut self, threshold: u32, max_delay: Duration, reordering: u32) {
        self.rule.every = threshold.saturating_add(1);
        self.rule.max_delay = max_delay;
        self.rule.reordering = reordering;
    }

    /// Processes an ack-eliciting packet: schedules an ACK at once or delayed.
    pub(crate) fn on_eliciting(&mut self, now: Instant, arrived: &PacketArrival) {
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

    /// Schedules an immediate ACK: Initial and Handshake packets are acknowledged without delay
    /// (RFC 9000 section 13.2.1).
    pub(crate) fn ack_immediately(&mut self) {
        self.unacked += 1;
        self.due = true;
    }

    /// Schedules an immediate ACK of a packet of application data, which was marked CE or asks for it.
    pub(crate) const fn ack_at_once(&mut self) {
        self.due = true;
        self.deadline = None;
    }

    fn out_of_order(&self, arrived: &PacketArrival) -> bool {
        match self.rule.reordering {
            0 => false,
            // One per gap: `expected` moves past the gap with the first packet after it.
            1 => arrived.number != arrived.expected,
            n => {
                let largest = arrived.largest.map_or(arrived.number, |l| l.max(arrived.number));
                arrived.unreported.is_some_and(|missing| missing + u64::from(n) <= largest)
            }
        }
    }

    /// Checks the delayed-ACK timer; returns true if it has expired.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        let fired = self.deadline.is_some_and(|at| at <= now);
        if fired {
            self.deadline = None;
            self.due = true;
        }
        fired
    }

    /// Resets the state after an ACK frame was sent.
    pub(crate) fn on_sent(&mut self) {
        self.unacked = 0;
        self.due = false;
        self.deadline = None;
    }

    /// Is an immediate ACK due?
    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// Are ack-eliciting packets unacknowledged?
    pub(crate) const fn has_unacked(&self) -> bool {
        self.unacked > 0
    }

    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: QuicAckRule = QuicAckRule {
        every: 2,
        max_delay: Duration::from_millis(25),
        exponent: 3,
        reordering: 1,
        first_at_once: false,
        max_ranges: 32,
        bundle_all: false,
        elicits_after: None,
        marks_at_once: true,
    };

    /// The packet numbers that trigger an immediate ACK when `numbers` arrive one per millisecond.
    fn answered(rule: QuicAckRule, numbers: &[u64]) -> Vec<u64> {
        let mut policy = QuicAckPolicy::new(rule);
        let (mut expected, mut largest) = (0, None);
        let mut triggered = Vec::new();
        for (ms, &number) in (0..).zip(numbers) {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let missing = (0..number).find(|n| !numbers[..ms as usize].contains(n));
            policy.on_eliciting(
                now,
                &PacketArrival { number, expected, largest, unreported: missing },
            );
            expected = expected.max(number + 1);
            largest = largest.max(Some(number));
            if policy.is_due() {
                triggered.push(number);
                policy.on_sent();
            }
        }
        triggered
    }

    #[test]
    fn every_second_packet_draws_one_rfc_9000_section_13_2_2() {
        assert_eq!(answered(RULE, &[0, 1, 2, 3, 4]), [1, 3]);
        assert_eq!(answered(QuicAckRule { every: 1, ..RULE }, &[0, 1, 2]), [0, 1, 2]);
        assert_eq!(answered(QuicAckRule { first_at_once: true, ..RULE }, &[0, 1, 2]), [0, 2]);
    }

    #[test]
    fn a_gap_draws_one_at_once_and_so_does_what_fills_it_section_13_2_1() {
        assert_eq!(answered(RULE, &[0, 2, 3, 4, 5, 1]), [2, 4, 1]);
        assert_eq!(answered(QuicAckRule { reordering: 0, ..RULE }, &[0, 2, 3, 4, 5, 1]), [2, 4, 1]);
        assert_eq!(answered(QuicAckRule { every: 9, ..RULE }, &[0, 2, 3, 4, 5, 1]), [2, 1]);
        assert_eq!(answered(QuicAckRule { every: 9, reordering: 0, ..RULE }, &[0, 2, 1]), [0; 0]);
    }

    #[test]
    fn a_larger_reordering_threshold_waits_for_more_packets() {
        let rule = QuicAckRule { every: 99, reordering: 3, ..RULE };
        // Packet 1 is missing by three once 4 has come.
        assert_eq!(answered(rule, &[0, 2, 3, 4]), [4]);
    }

    #[test]
    fn the_delay_runs_from_the_first_packet_that_waits() {
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut policy = QuicAckPolicy::new(QuicAckRule { every: 10, ..RULE });
        for number in 0..3 {
            let arrived =
                PacketArrival { number, expected: number, largest: None, unreported: None };
            policy.on_eliciting(ms(number), &arrived);
        }
        assert_eq!(policy.deadline(), Some(ms(25)));
        assert!(!policy.on_timeout(ms(24)) && policy.on_timeout(ms(25)));
        assert!(policy.is_due());
        policy.on_sent();
        assert!(!policy.is_due() && !policy.has_unacked() && policy.deadline().is_none());
    }

    #[test]
    fn ack_frequency_counts_the_packets_that_may_wait() {
        let mut policy = QuicAckPolicy::new(RULE);
        policy.on_frequency(9, Duration::from_millis(5), 0);
        assert_eq!((policy.rule().every, policy.rule().max_delay.as_millis()), (10, 5));
    }
}
