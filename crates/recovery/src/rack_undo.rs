//! How FreeBSD's RACK stack takes back a recovery that reordering caused.
//!
//! Sources: tcp_stacks/rack.c (rack_check_reorder_ack of D53832, November 2025; before it, from main of
//! 2022 on, two narrower rules); the kernel's rows in `golden/freebsd/recovery.csv.gz`. All restore
//! `ssthresh` only: entering a recovery did not lower the window.

use units::{Duration, Instant};

use crate::rack_freebsd::micros;
use crate::sendmap::Piece;

/// A segment, or part of one, that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Bytes of it.
    pub bytes: u64,
    /// How often it was sent.
    pub transmissions: u32,
    /// It had been passed when it was sent again.
    pub was_passed: bool,
    /// When it left last.
    pub sent_at: Instant,
}

impl Arrived {
    /// A piece that arrived whole.
    pub const fn of(piece: &Piece) -> Self {
        Self {
            bytes: piece.len(),
            transmissions: piece.transmissions() as u32,
            was_passed: piece.was_passed(),
            sent_at: piece.sent_at(),
        }
    }
}

/// What an arrival shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing.
    Ordinary,
    /// The original arrived, not the retransmission: packets were reordered. A block that shows it
    /// passes nothing sent before it.
    Reordered,
    /// And it was the last retransmission: the recovery is left, with this threshold.
    Undone {
        /// `ssthresh` as it was when the recovery began.
        ssthresh: u64,
    },
}

/// The rule of D53832: retransmissions that are acknowledged sooner than a round trip allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RackUndo {
    /// A share of the smoothed round trip counts as too soon (`rack_rtt_divisor`, 2); 0 is off.
    divisor: u32,
    /// `ssthresh` when the recovery began, while it lasts.
    recovering_from: Option<u64>,
    /// Bytes sent again that had been passed, and whose originals have not arrived
    /// (`recovery_rxt_cnt`).
    rxt_bytes: u64,
}

impl RackUndo {
    /// Not in recovery.
    pub const fn new(divisor: u32) -> Self {
        Self { divisor, recovering_from: None, rxt_bytes: 0 }
    }

    /// A recovery begins; `ssthresh` as it was before.
    pub const fn begin(&mut self, ssthresh: u64) {
        self.recovering_from = Some(ssthresh);
        self.rxt_bytes = 0;
    }

    /// The recovery ended.
    pub const fn end(&mut self) {
        self.recovering_from = None;
    }

    /// Does a recovery run?
    pub const fn recovers(&self) -> bool {
        self.recovering_from.is_some()
    }

    /// Bytes that had been passed left again ([`crate::sendmap::Resent::passed_bytes`]).
    pub const fn on_resent(&mut self, passed_bytes: u64) {
        self.rxt_bytes += passed_bytes;
    }

    /// Bytes sent again whose originals have not arrived.
    pub const fn rxt_bytes(&self) -> u64 {
        self.rxt_bytes
    }

    /// A segment arrived: reported (`acked` false), or acknowledged without having been reported or
    /// passed (`acked` true), which alone may leave the recovery.
    pub fn on_arrival(
        &mut self,
        arrived: &Arrived,
        acked: bool,
        srtt: Duration,
        now: Instant,
    ) -> Arrival {
        let Some(ssthresh) = self.recovering_from else { return Arrival::Ordinary };
        let Some(soon) = srtt.as_micros().checked_div(u64::from(self.divisor)) else {
            return Arrival::Ordinary;
        };
        let elapsed = micros(now).saturating_sub(micros(arrived.sent_at));
        if arrived.transmissions != 2 || !arrived.was_passed || elapsed > soon.max(1) {
            return Arrival::Ordinary;
        }
        self.rxt_bytes = self.rxt_bytes.saturating_sub(arrived.bytes);
        if !acked || self.rxt_bytes > 0 {
            return Arrival::Reordered;
        }
        self.end();
        Arrival::Undone { ssthresh }
    }
}

/// The two rules of 2022 (rack_process_to_cumack, rack_note_dsack, rack_handle_might_revert): both
/// ask that no packet under way has been passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Reverts {
    /// `ssthresh` when the last recovery began (`rc_ssthresh_at_erec`).
    ssthresh: u64,
    /// Nothing new has left since (`r_ent_rec_ns`). A retransmission does not clear it: it goes out
    /// by rack_fast_rsm_output, which leaves it alone.
    unsent: bool,
    /// A packet that was passed has been acknowledged meanwhile (`r_might_revert`).
    might: bool,
    /// Bytes sent again in recovery (`retran_during_recovery`).
    resent_bytes: u64,
    /// Bytes reported as duplicates (`dsack_byte_cnt`).
    duplicate_bytes: u64,
}

impl Reverts {
    /// No recovery has begun.
    pub const fn none() -> Self {
        let unsent = false;
        Self { ssthresh: 0, unsent, might: false, resent_bytes: 0, duplicate_bytes: 0 }
    }

    /// A recovery begins; `ssthresh` as it was before.
    pub const fn begin(ssthresh: u64) -> Self {
        Self { ssthresh, unsent: true, might: false, resent_bytes: 0, duplicate_bytes: 0 }
    }

    /// Bytes left in recovery, `again` or for the first time.
    pub const fn on_sent(&mut self, bytes: u64, again: bool) {
        if again {
            self.resent_bytes += bytes;
        } else {
            self.unsent = false;
        }
    }

    /// A packet that had been passed was acknowledged, not reported.
    pub const fn on_passed_acked(&mut self) {
        self.might |= self.unsent;
    }

    /// Is it to be decided whether the recovery was needless?
    pub const fn may_revert(&self) -> bool {
        self.might
    }

    /// An acknowledgment without any block came. Tells the threshold to go back to if that shows
    /// the recovery to have been needless; `any_passed` packets are under way.
    pub const fn on_bare_ack(&mut self, any_passed: bool) -> Option<u64> {
        let might = core::mem::replace(&mut self.might, false);
        if !might || any_passed {
            return None;
        }
        self.unsent = false;
        Some(self.ssthresh)
    }

    /// A duplicate was reported. Tells the threshold to go back to if all that went again has been,
    /// which is asked once, and not in recovery.
    pub const fn on_duplicate(
        &mut self,
        bytes: u64,
        in_recovery: bool,
        any_passed: bool,
    ) -> Option<u64> {
        self.duplicate_bytes += bytes;
        let all = self.resent_bytes > 0 && self.duplicate_bytes >= self.resent_bytes;
        if in_recovery || !all {
            return None;
        }
        self.forget();
        if any_passed { None } else { Some(self.ssthresh) }
    }

    /// A timer fired, or nothing is under way: duplicates tell nothing any more.
    pub const fn forget(&mut self) {
        self.might = false;
        self.resent_bytes = 0;
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

    fn arrived(us: u64) -> Arrived {
        Arrived { bytes: 1_000, transmissions: 2, was_passed: true, sent_at: at(us) }
    }

    #[test]
    fn the_last_retransmission_acknowledged_too_soon_undoes_the_recovery() {
        let mut undo = RackUndo::new(2);
        undo.begin(77);
        undo.on_resent(2_000);
        // 20 ms, half a round trip, is still too soon.
        assert_eq!(undo.on_arrival(&arrived(0), true, SRTT, at(20_001)), Arrival::Ordinary);
        assert_eq!(undo.on_arrival(&arrived(0), false, SRTT, at(20_000)), Arrival::Reordered);
        let undone = Arrival::Undone { ssthresh: 77 };
        assert_eq!(undo.on_arrival(&arrived(0), true, SRTT, at(20_000)), undone);
        assert_eq!(undo.on_arrival(&arrived(0), true, SRTT, at(20_000)), Arrival::Ordinary);
    }

    #[test]
    fn a_report_alone_does_not_undo_it() {
        let mut undo = RackUndo::new(2);
        undo.begin(77);
        undo.on_resent(1_000);
        assert_eq!(undo.on_arrival(&arrived(0), false, SRTT, at(9)), Arrival::Reordered);
        assert_eq!(undo.rxt_bytes(), 0);
    }

    #[test]
    fn only_second_transmissions_of_passed_segments_count() {
        let ordinary = |divisor, arrived: Arrived| {
            let mut undo = RackUndo::new(divisor);
            undo.begin(77);
            undo.on_resent(1_000);
            assert_eq!(undo.on_arrival(&arrived, true, SRTT, at(9)), Arrival::Ordinary);
        };
        ordinary(0, arrived(0));
        ordinary(2, Arrived { transmissions: 3, ..arrived(0) });
        ordinary(2, Arrived { transmissions: 1, ..arrived(0) });
        ordinary(2, Arrived { was_passed: false, ..arrived(0) });
    }

    #[test]
    fn an_older_rule_reverts_if_nothing_new_was_sent_and_nothing_passed_is_left() {
        let mut reverts = Reverts::begin(77);
        assert_eq!(reverts.on_bare_ack(false), None);
        reverts.on_sent(1_000, true);
        reverts.on_passed_acked();
        assert_eq!(reverts.on_bare_ack(true), None);
        reverts.on_passed_acked();
        assert_eq!(reverts.on_bare_ack(false), Some(77));
        assert_eq!(reverts.on_bare_ack(false), None);
        let mut reverts = Reverts::begin(77);
        reverts.on_sent(1_000, false);
        reverts.on_passed_acked();
        assert_eq!(reverts.on_bare_ack(false), None);
    }

    #[test]
    fn another_older_rule_reverts_after_all_that_went_again_was_a_duplicate() {
        let begin = || {
            let mut reverts = Reverts::begin(77);
            reverts.on_sent(2_000, true);
            reverts
        };
        let mut reverts = begin();
        assert_eq!(reverts.on_duplicate(1_000, true, false), None);
        assert_eq!(reverts.on_duplicate(999, false, false), None);
        assert_eq!(reverts.on_duplicate(1, false, false), Some(77));
        assert_eq!(reverts.on_duplicate(1_000, false, false), None);
        // It is asked once.
        let mut reverts = begin();
        assert_eq!(reverts.on_duplicate(2_000, false, true), None);
        assert_eq!(reverts.on_duplicate(2_000, false, false), None);
        let mut reverts = begin();
        reverts.forget();
        assert_eq!(reverts.on_duplicate(2_000, false, false), None);
    }
}
