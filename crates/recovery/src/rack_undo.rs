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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The two rules of 2022: both ask that no packet under way has been passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reverts {
    ssthresh: u64,
    sent: bool,
    resent_bytes: u64,
    duplicate_bytes: u64,
    ended: bool,
}

impl Reverts {
    /// A recovery begins; `ssthresh` as it was before.
    pub const fn begin(ssthresh: u64) -> Self {
        Self { ssthresh, sent: false, resent_bytes: 0, duplicate_bytes: 0, ended: false }
    }

    /// Bytes left in the recovery, `again` or for the first time.
    pub const fn on_sent(&mut self, bytes: u64, again: bool) {
        self.sent = true;
        if again {
            self.resent_bytes += bytes;
        }
    }

    /// A segment that had been passed was acknowledged. Nothing sent yet: the recovery was needless;
    /// returns `ssthresh` as it was.
    pub fn on_passed_acked(&self, any_passed: bool) -> Option<u64> {
        (!self.sent && !any_passed && !self.ended).then_some(self.ssthresh)
    }

    /// The recovery ended.
    pub const fn on_recovered(&mut self) {
        self.ended = true;
    }

    /// Bytes were reported to have arrived twice. As many as were resent, after the recovery: it was
    /// needless; returns `ssthresh` as it was, once.
    pub fn on_duplicate(&mut self, bytes: u64, any_passed: bool) -> Option<u64> {
        self.duplicate_bytes += bytes;
        let all = self.resent_bytes > 0 && self.duplicate_bytes >= self.resent_bytes;
        if !all || !self.ended || any_passed {
            return None;
        }
        self.resent_bytes = 0;
        Some(self.ssthresh)
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
    fn the_older_rules_revert_before_anything_was_sent_or_after_all_was_a_duplicate() {
        let mut reverts = Reverts::begin(77);
        assert_eq!(reverts.on_passed_acked(true), None);
        assert_eq!(reverts.on_passed_acked(false), Some(77));
        reverts.on_sent(2_000, true);
        assert_eq!(reverts.on_passed_acked(false), None);
        assert_eq!(reverts.on_duplicate(1_000, false), None);
        reverts.on_recovered();
        assert_eq!(reverts.on_duplicate(999, false), None);
        assert_eq!(reverts.on_duplicate(1, true), None);
        assert_eq!(reverts.on_duplicate(0, false), Some(77));
        assert_eq!(reverts.on_duplicate(1_000, false), None);
    }
}
