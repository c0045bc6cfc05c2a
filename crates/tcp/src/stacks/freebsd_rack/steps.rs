//! The steps of an acknowledgment that change the state of FreeBSD's RACK stack: each gets the scoreboard or the
//! controller, if it changes it, and what it reads.

use core::hint::cold_path;

use cc::{AnyController, Controller, RecoveryEnd, WindowChange};
use recovery::prr::rack::PrrRack;
use recovery::rack_freebsd::RackFreeBsd;
use recovery::rack_undo::RecoveryRevert;
use recovery::sendmap::{SendMap, SentSegment};
use units::{Bytes, Duration, Instant, Offset};

use super::log_ack::{AckContext, AckEffects};
use super::state::FreeBsdRackState;
use crate::clock::KernelClock;
use crate::received_ack::ReceivedAck;

/// An acknowledgment in recovery, as PRR counts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RackPrrInput {
    /// Bytes newly acknowledged or SACKed.
    pub(super) changed: u64,
    /// Bytes in flight.
    pub(super) pipe: u64,
    pub(super) ssthresh: u64,
    pub(super) mss: u64,
    /// The application has nothing unsent.
    pub(super) limited: bool,
    /// It showed a loss.
    pub(super) lost: bool,
}

impl FreeBsdRackState {
    /// Applies the acknowledgment and its blocks to the scoreboard; returns the bytes reported by blocks, and what it
    /// has shown.
    pub(super) fn deliver(
        &mut self,
        map: &mut SendMap,
        received: &ReceivedAck,
        at: &AckContext,
        una: Offset,
        clock: &KernelClock,
    ) -> (u64, AckEffects) {
        let mut shown = AckEffects::default();
        map.acknowledge(received.th_ack, |sent_segment| {
            self.on_acked(sent_segment, at, clock.timestamp(sent_segment.sent_at()), &mut shown);
        });
        if received.th_ack > una && map.reneged() {
            // rack_peer_reneges: the receiver dropped SACKed data.
            map.clear_sacked();
        }
        if received.blocks().is_empty() && self.reverts.may_revert() {
            let reverted = self.reverts.on_bare_ack(map.newest_passed().is_some());
            shown.undone = reverted.filter(|_| self.settings.revert_unsent).or(shown.undone);
        }
        let mut newest = None;
        let reported = map.apply_sack(received.blocks(), |sent_segment| {
            if self.on_reported(sent_segment, at, &mut shown) {
                newest = newest.max(Some((sent_segment.sent_at(), sent_segment.end())));
            }
        });
        if let Some((sent_at, end)) = newest {
            map.pass(sent_at, end);
        }
        shown.reported = reported.packets > 0;
        (reported.bytes, shown)
    }

    /// Processes blocks below the acknowledgment, which report duplicates (rack_note_dsack); a
    /// D-SACK round may end. Returns the threshold to restore, if the recovery was spurious.
    pub(super) fn on_duplicates(
        &mut self,
        map: &mut SendMap,
        received: &ReceivedAck,
        in_recovery: bool,
        max: Offset,
    ) -> Option<u64> {
        let mut restored = None;
        for &(start, end) in received.blocks() {
            if start > received.th_ack || end > received.th_ack {
                continue;
            }
            cold_path();
            if !self.probes.explains((start, end)) {
                self.rack.on_duplicate(max);
            }
            let any_passed = map.newest_passed().is_some();
            let reverted =
                self.reverts.on_duplicate(end.since(start).get(), in_recovery, any_passed);
            restored = reverted.filter(|_| self.settings.revert_duplicates).or(restored);
        }
        self.rack.on_ack(received.th_ack);
        restored
    }

    /// The segment with the oldest transmission, if it is lost now (tcp_rack_output).
    pub(super) fn overdue(
        &mut self,
        map: &mut SendMap,
        srtt: Option<Duration>,
        now: Instant,
    ) -> Option<SentSegment> {
        let oldest = *map.oldest()?;
        let strikes = self.strikes(oldest.start());
        if !RackFreeBsd::is_suspected(&oldest, strikes) {
            return None;
        }
        let thresh = self.rack.thresh(RackFreeBsd::rtt(self.latest.1, srtt), now);
        RackFreeBsd::is_lost(&oldest, strikes, thresh, now).then_some(oldest)
    }

    /// Begins a recovery with `flight` bytes outstanding; `ssthresh`: the threshold before it, `u64::MAX` for none.
    pub(super) fn begin_recovery(&mut self, ssthresh: u64, flight: u64, mss: u64) {
        self.undo.begin(ssthresh);
        self.reverts = RecoveryRevert::begin(ssthresh);
        self.prr = PrrRack::begin(flight, mss);
        self.timeout.in_recovery = false;
    }

    /// Proportional rate reduction (rack_update_prr); may allow a lost segment to be sent at once.
    pub(super) fn on_prr_ack(&mut self, ack: &RackPrrInput) {
        if ack.limited {
            self.prr.on_limited_application(ack.changed);
        } else {
            self.prr.on_ack(ack.changed, ack.pipe, ack.ssthresh, ack.mss);
        }
        let credit = self.prr.prr_sndcnt >= ack.mss;
        if ack.lost && credit && !self.hpts.is_entered() && !self.hpts.is_paced() {
            self.hpts.forget_early();
            self.hpts.override_pause();
        }
    }

    /// Ends a recovery (rack_post_recovery): the window is not below the threshold, plus some of
    /// the unused credit unless the application had no more to send (`limited`).
    pub(super) fn end_recovery(
        &mut self,
        end: &RecoveryEnd,
        limited: bool,
        mss: u64,
        cc: &mut AnyController,
    ) -> WindowChange {
        let change = cc.on_recovered(end);
        let control = cc.control();
        let window = control.window.max(control.ssthresh.unwrap_or(control.window));
        let left = self.prr.left(u64::from(self.settings.addback), mss);
        self.prr.prr_sndcnt = 0;
        self.rack.on_recovered();
        self.undo.end();
        cc.override_window(window + Bytes(if limited { 0 } else { left }));
        change
    }
}
