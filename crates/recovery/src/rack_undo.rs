//! How FreeBSD's RACK stack undoes a recovery caused by reordering.
//!
//! Sources: tcp_stacks/rack.c (rack_check_reorder_ack of D53832, November 2025; before it, from
//! main of 2022 on, two narrower rules); the kernel's rows in `golden/freebsd/recovery.csv.gz`. All
//! restore
//! `ssthresh` only: entering recovery did not reduce the window.

use units::{Duration, Instant};

use crate::rack_freebsd::micros;
use crate::sendmap::SentSegment;

/// A segment, or part of one, that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivedSegment {
    /// Length in bytes.
    pub bytes: u64,
    /// Number of transmissions.
    pub transmissions: u32,
    /// It had been passed when it was retransmitted.
    pub was_passed: bool,
    /// Time of its last transmission.
    pub sent_at: Instant,
}

impl ArrivedSegment {
    /// Describes a sent segment that arrived entirely.
    pub const fn of(segment: &SentSegment) -> Self {
        Self {
            bytes: segment.len(),
            transmissions: segment.transmissions() as u32,
            was_passed: segment.was_passed(),
            sent_at: segment.sent_at(),
        }
    }
}

/// The conclusion from an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoDecision {
    /// None.
    NoUndo,
    /// The original arrived, not the retransmission: packets were reordered. Its SACK block marks
    /// nothing sent earlier as passed.
    Reordered,
    /// It was also the last retransmission: recovery ends with this threshold.
    Undone {
        /// `ssthresh` before the recovery.
        ssthresh: u64,
    },
}

/// The rule of D53832: retransmissions that are acknowledged sooner than an RTT allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RackUndo {
    /// The fraction of the smoothed RTT that is too soon (`rack_rtt_divisor`, 2); 0 disables the
    /// rule.
    divisor: u32,
    /// `ssthresh` before the recovery, while in recovery.
    recovering_from: Option<u64>,
    /// Retransmitted bytes that had been passed and whose originals have not arrived
    /// (`recovery_rxt_cnt`).
    rxt_bytes: u64,
}

impl RackUndo {
    /// Not in recovery.
    pub const fn new(divisor: u32) -> Self {
        Self { divisor, recovering_from: None, rxt_bytes: 0 }
    }

    /// Enters recovery; `ssthresh` is the value before it.
    pub const fn begin(&mut self, ssthresh: u64) {
        self.recovering_from = Some(ssthresh);
        self.rxt_bytes = 0;
    }

    /// Leaves recovery.
    pub const fn end(&mut self) {
        self.recovering_from = None;
    }

    /// True while in recovery.
    pub const fn in_recovery(&self) -> bool {
        self.recovering_from.is_some()
    }

    /// Bytes that had been passed were retransmitted
    /// ([`crate::sendmap::RetransmitResult::passed_bytes`]).
    pub const fn on_retransmitted(&mut self, passed_bytes: u64) {
        self.rxt_bytes += passed_bytes;
    }

    /// Retransmitted bytes whose originals have not arrived.
    pub const fn rxt_bytes(&self) -> u64 {
        self.rxt_bytes
    }

    /// A segment arrived: SACKed (`acked` false), or acknowledged without having been SACKed or
    /// passed (`acked` true), which alone may end the recovery.
    pub fn on_arrival(
        &mut self,
        arrived: &ArrivedSegment,
        acked: bool,
        srtt: Duration,
        now: Instant,
    ) -> UndoDecision {
        let Some(ssthresh) = self.recovering_from else { return UndoDecision::NoUndo };
        let Some(soon) = srtt.as_micros().checked_div(u64::from(self.divisor)) else {
            return UndoDecision::NoUndo;
        };
        let elapsed = micros(now).saturating_sub(micros(arrived.sent_at));
        if arrived.transmissions != 2 || !arrived.was_passed || elapsed > soon.max(1) {
            return UndoDecision::NoUndo;
        }
        self.rxt_bytes = self.rxt_bytes.saturating_sub(arrived.bytes);
        if !acked || self.rxt_bytes > 0 {
            return UndoDecision::Reordered;
        }
        self.end();
        UndoDecision::Undone { ssthresh }
    }
}

/// The two rules of 2022 (rack_process_to_cumack, rack_note_dsack, rack_handle_might_revert): both
/// require that no packet in flight has been passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RecoveryRevert {
    /// `ssthresh` before the last recovery (`rc_ssthresh_at_erec`).
    ssthresh: u64,
    /// No new data was sent since (`r_ent_rec_ns`). A retransmission does not clear it: it is sent
    /// by rack_fast_rsm_output, which leaves the field unchanged.
    no_new_data: bool,
    /// A packet that was passed has been acknowledged meanwhile (`r_might_revert`).
    may_revert: bool,
    /// Bytes retransmitted in recovery (`retran_during_recovery`).
    retransmitted_bytes: u64,
    /// Bytes reported by D-SACKs (`dsack_byte_cnt`).
    duplicate_bytes: u64,
}

impl RecoveryRevert {
    /// The state before the first recovery.
    pub const fn none() -> Self {
        let no_new_data = false;
        Self {
            ssthresh: 0,
            no_new_data,
            may_revert: false,
            retransmitted_bytes: 0,
            duplicate_bytes: 0,
        }
    }

    /// Enters recovery; `ssthresh` is the value before it.
    pub const fn begin(ssthresh: u64) -> Self {
        Self {
            ssthresh,
            no_new_data: true,
            may_revert: false,
            retransmitted_bytes: 0,
            duplicate_bytes: 0,
        }
    }

    /// Bytes were sent in recovery, retransmitted (`repeated`) or new.
    pub const fn on_sent(&mut self, bytes: u64, repeated: bool) {
        if repeated {
            self.retransmitted_bytes += bytes;
        } else {
            self.no_new_data = false;
        }
    }

    /// A packet that had been passed was acknowledged, not SACKed.
    pub const fn on_passed_acked(&mut self) {
        self.may_revert |= self.no_new_data;
    }

    /// True if a revert is to be decided.
    pub const fn may_revert(&self) -> bool {
        self.may_revert
    }

    /// An acknowledgment without SACK blocks arrived. Returns the threshold to restore if the
    /// recovery was spurious; `any_passed`: packets in flight have been passed.
    pub const fn on_bare_ack(&mut self, any_passed: bool) -> Option<u64> {
        let may_revert = core::mem::replace(&mut self.may_revert, false);
        if !may_revert || any_passed {
            return None;
        }
        self.no_new_data = false;
        Some(self.ssthresh)
    }

    /// A D-SACK arrived. Returns the threshold to restore if all retransmitted bytes were
    /// duplicates; decided once, and not in recovery.
    pub const fn on_duplicate(
        &mut self,
        bytes: u64,
        in_recovery: bool,
        any_passed: bool,
    ) -> Option<u64> {
        self.duplicate_bytes += bytes;
        let all = self.retransmitted_bytes > 0 && self.duplicate_bytes >= self.retransmitted_bytes;
        if in_recovery || !all {
            return None;
        }
        self.forget();
        if any_passed { None } else { Some(self.ssthresh) }
    }

    /// A timer fired, or nothing is in flight: D-SACKs no longer count.
    pub const fn forget(&mut self) {
        self.may_revert = false;
        self.retransmitted_bytes = 0;
        self.duplicate_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    const SRTT: Duration = Duration::from_micros(40_000);

    fn arrived(us: u64) -> ArrivedSegment {
        ArrivedSegment { bytes: 1_000, transmissions: 2, was_passed: true, sent_at: at(us) }
    }

    #[test]
    fn the_last_retransmission_acknowledged_too_soon_undoes_the_recovery() {
        let mut undo = RackUndo::new(2);
        undo.begin(77);
        undo.on_retransmitted(2_000);
        // 20 ms, half an RTT, is still too soon.
        assert_eq!(undo.on_arrival(&arrived(0), true, SRTT, at(20_001)), UndoDecision::NoUndo);
        assert_eq!(undo.on_arrival(&arrived(0), false, SRTT, at(20_000)), UndoDecision::Reordered);
        let undone = UndoDecision::Undone { ssthresh: 77 };
        assert_eq!(undo.on_arrival(&arrived(0), true, SRTT, at(20_000)), undone);
        assert_eq!(undo.on_arrival(&arrived(0), true, SRTT, at(20_000)), UndoDecision::NoUndo);
    }

    #[test]
    fn a_sack_alone_does_not_undo_it() {
        let mut undo = RackUndo::new(2);
        undo.begin(77);
        undo.on_retransmitted(1_000);
        assert_eq!(undo.on_arrival(&arrived(0), false, SRTT, at(9)), UndoDecision::Reordered);
        assert_eq!(undo.rxt_bytes(), 0);
    }

    #[test]
    fn only_second_transmissions_of_passed_segments_count() {
        let ordinary = |divisor, arrived: ArrivedSegment| {
            let mut undo = RackUndo::new(divisor);
            undo.begin(77);
            undo.on_retransmitted(1_000);
            assert_eq!(undo.on_arrival(&arrived, true, SRTT, at(9)), UndoDecision::NoUndo);
        };
        ordinary(0, arrived(0));
        ordinary(2, ArrivedSegment { transmissions: 3, ..arrived(0) });
        ordinary(2, ArrivedSegment { transmissions: 1, ..arrived(0) });
        ordinary(2, ArrivedSegment { was_passed: false, ..arrived(0) });
    }

    #[test]
    fn an_older_rule_reverts_if_no_new_data_was_sent_and_no_passed_packet_is_left() {
        let mut reverts = RecoveryRevert::begin(77);
        assert_eq!(reverts.on_bare_ack(false), None);
        reverts.on_sent(1_000, true);
        reverts.on_passed_acked();
        assert_eq!(reverts.on_bare_ack(true), None);
        reverts.on_passed_acked();
        assert_eq!(reverts.on_bare_ack(false), Some(77));
        assert_eq!(reverts.on_bare_ack(false), None);
        let mut reverts = RecoveryRevert::begin(77);
        reverts.on_sent(1_000, false);
        reverts.on_passed_acked();
        assert_eq!(reverts.on_bare_ack(false), None);
    }

    #[test]
    fn another_older_rule_reverts_if_all_retransmissions_were_duplicates() {
        let begin = || {
            let mut reverts = RecoveryRevert::begin(77);
            reverts.on_sent(2_000, true);
            reverts
        };
        let mut reverts = begin();
        assert_eq!(reverts.on_duplicate(1_000, true, false), None);
        assert_eq!(reverts.on_duplicate(999, false, false), None);
        assert_eq!(reverts.on_duplicate(1, false, false), Some(77));
        assert_eq!(reverts.on_duplicate(1_000, false, false), None);
        // Decided only once.
        let mut reverts = begin();
        assert_eq!(reverts.on_duplicate(2_000, false, true), None);
        assert_eq!(reverts.on_duplicate(2_000, false, false), None);
        let mut reverts = begin();
        reverts.forget();
        assert_eq!(reverts.on_duplicate(2_000, false, false), None);
    }
}
