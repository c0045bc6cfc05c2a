//! ECN of a QUIC sender: RFC 9000 section 13.4, as quic-go and quinn validate it.

use packet::ECN_CE;

use crate::packet::{EcnCounts, Space};

/// ECT(0) in the ECN field of the IP header.
const ECT0: u8 = 0b10;
/// Packets with which quic-go tests a path (`numECNTestingPackets`).
const TESTED: u64 = 10;

/// Which packets of a sender are ECN-capable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnRule {
    /// None.
    None,
    /// The first ten 1-RTT packets, and all after one of them is reported as ECT(0); a path that marks all ten is
    /// no ECN path (quic-go, `ecnTracker`).
    Tested,
    /// All, until an acknowledgment lacks the counts, or counts too few (quinn-proto, `process_ecn`).
    All,
}

/// State of the validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EcnValidation {
    /// Testing packets are sent.
    Testing,
    /// All testing packets are sent.
    Unknown,
    Capable,
    Failed,
}

/// The validation of one sender.
#[derive(Debug, Clone)]
pub(crate) struct EcnValidator {
    rule: EcnRule,
    state: EcnValidation,
    /// Packets sent as ECT(0).
    sent: u64,
    /// Testing packets declared lost.
    lost: u64,
    /// Counts of the last acknowledgment of each space.
    reported: [EcnCounts; 3],
}

impl EcnValidator {
    pub(crate) const fn new(rule: EcnRule) -> Self {
        let state = match rule {
            EcnRule::None => EcnValidation::Failed,
            EcnRule::Tested => EcnValidation::Testing,
            EcnRule::All => EcnValidation::Capable,
        };
        Self { rule, state, sent: 0, lost: 0, reported: [EcnCounts::NONE; 3] }
    }

    /// Returns the ECN field of the next packet of a space, which is sent.
    pub(crate) fn mark(&mut self, space: Space) -> u8 {
        let is_marked = match self.state {
            EcnValidation::Testing => space == Space::Application,
            EcnValidation::Capable => space == Space::Application || self.rule == EcnRule::All,
            EcnValidation::Unknown | EcnValidation::Failed => false,
        };
        if !is_marked {
            return 0;
        }
        self.sent += 1;
        if self.state == EcnValidation::Testing && self.sent >= TESTED {
            self.state = EcnValidation::Unknown;
        }
        ECT0
    }

    /// Processes an acknowledgment that raises the largest number acknowledged, of `marked` packets sent as ECT(0);
    /// returns whether it reports congestion.
    pub(crate) fn on_ack(&mut self, space: Space, counts: EcnCounts, marked: u64) -> bool {
        if self.state == EcnValidation::Failed
            || self.rule == EcnRule::Tested && space != Space::Application
        {
            return false;
        }
        let before = self.reported[space.index()];
        let ect0 = counts.ect0.checked_sub(before.ect0);
        let ce = counts.ce.checked_sub(before.ce);
        let (Some(ect0), Some(ce)) = (ect0, ce) else {
            self.state = EcnValidation::Failed;
            return false;
        };
        if ect0 + ce < marked {
            self.state = EcnValidation::Failed;
            return false;
        }
        self.reported[space.index()] = counts;
        if self.state == EcnValidation::Unknown {
            self.fail_if_mangled();
        }
        let is_tested = matches!(self.state, EcnValidation::Testing | EcnValidation::Unknown);
        if is_tested && marked > 0 && ect0 > 0 {
            self.state = EcnValidation::Capable;
        }
        self.state == EcnValidation::Capable && ce > 0
    }

    /// Processes the loss of `marked` packets sent as ECT(0).
    pub(crate) fn on_lost(&mut self, marked: u64) {
        if !matches!(self.state, EcnValidation::Testing | EcnValidation::Unknown) {
            return;
        }
        self.lost += marked;
        if self.state == EcnValidation::Unknown {
            self.fail_if_mangled();
        }
    }

    /// Ends the validation if all testing packets are lost or marked.
    fn fail_if_mangled(&mut self) {
        if self.sent <= self.reported[Space::Application.index()].ce + self.lost {
            self.state = EcnValidation::Failed;
        }
    }
}

impl EcnCounts {
    /// Adds a packet with this ECN field.
    pub(crate) const fn add(&mut self, ecn: u8) {
        match ecn {
            ECT0 => self.ect0 += 1,
            ECN_CE => self.ce += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ect0: u64, ce: u64) -> EcnCounts {
        EcnCounts { ect0, ce }
    }

    #[test]
    fn quic_go_tests_a_path_with_ten_packets() {
        let mut ecn = EcnValidator::new(EcnRule::Tested);
        assert_eq!(ecn.mark(Space::Handshake), 0);
        let sent: Vec<u8> = (0..12).map(|_| ecn.mark(Space::Application)).collect();
        assert_eq!(sent, [[ECT0; 10].as_slice(), &[0; 2]].concat());
        assert!(!ecn.on_ack(Space::Application, counts(2, 0), 2));
        assert_eq!(ecn.mark(Space::Application), ECT0);
        assert!(ecn.on_ack(Space::Application, counts(3, 1), 2));
        // No new mark.
        assert!(!ecn.on_ack(Space::Application, counts(4, 1), 1));
    }

    #[test]
    fn a_path_that_marks_or_loses_all_testing_packets_is_no_ecn_path() {
        let mut ecn = EcnValidator::new(EcnRule::Tested);
        for _ in 0..10 {
            let _ = ecn.mark(Space::Application);
        }
        assert!(!ecn.on_ack(Space::Application, counts(0, 8), 8));
        ecn.on_lost(2);
        assert_eq!(ecn.state, EcnValidation::Failed);
        assert_eq!(ecn.mark(Space::Application), 0);
    }

    #[test]
    fn quinn_marks_all_packets_until_counts_are_missing() {
        let mut ecn = EcnValidator::new(EcnRule::All);
        assert_eq!(ecn.mark(Space::Initial), ECT0);
        assert!(ecn.on_ack(Space::Initial, counts(0, 1), 1));
        // Other counts.
        assert!(!ecn.on_ack(Space::Handshake, counts(1, 0), 1));
        assert!(!ecn.on_ack(Space::Handshake, counts(1, 0), 1));
        assert_eq!(ecn.mark(Space::Application), 0);
    }
}
