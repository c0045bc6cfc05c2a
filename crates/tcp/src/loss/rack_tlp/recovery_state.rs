//! Recovery: entered when losses are detected, limited by PRR, and ended or undone.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_fastretrans_alert).

use core::hint::cold_path;

use cc::{CongestionSignal as Sign, Controller, RecoveryEnd};
use machine::Cx;
use record::{Cause, Event, Recorder};
use recovery::rack::RackLosses;
use recovery::sendmap::SendMap;
use units::{Bytes, Offset, unlikely};

use super::detector::RackDetector;
use super::prr_state::{self, PrrState};
use super::state::{AckAccounting, Frto};
use crate::endpoint::TcpEndpoint;
use crate::loss::ReceivedAck;

impl TcpEndpoint {
    /// Ends a recovery, or the retransmissions after a timeout, at the recovery point; undoes it
    /// where the system does and the conditions hold. Returns true if the acknowledgment marks
    /// nothing lost and retransmits nothing.
    pub(super) fn settle_recovery<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        echo: Option<u32>,
    ) -> bool {
        if let Some(end) = self.snd.rexmt.cwr_end {
            cold_path();
            if received.th_ack > end {
                self.end_cwr(cx, received.th_ack);
            }
            return false;
        }
        let in_recovery = self.cc.in_recovery();
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return false };
        if !in_recovery && loss.episode.timeout_until.is_none() && !loss.episode.held {
            if unlikely(loss.episode.undo.all_duplicates()) && loss.detector.supports_undo() {
                self.undo_by_duplicates(cx);
            }
            return false;
        }
        let reno = loss.reno;
        let point = self.cc.recovery_point();
        let advances = received.th_ack > self.snd.una;
        let pipe = self.snd.scoreboard.sums().pipe();
        let nothing_retransmitted = self.snd.scoreboard.sums().retransmission.packets == 0;
        let outstanding = any_retransmitted(&self.snd.scoreboard);
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return false };
        if let Some(end) = loss.episode.timeout_until
            && unlikely(reno && received.th_ack == end)
        {
            return true;
        }
        if unlikely(loss.episode.held) {
            loss.episode.held = received.th_ack == point;
            return loss.episode.held;
        }
        if unlikely(loss.episode.timeout_until.is_some_and(|end| received.th_ack >= end)) {
            loss.episode.timeout_until = None;
            loss.episode.undo.end(outstanding);
            loss.detector.on_recovered();
            if let Some(rates) = &mut self.snd.rates {
                rates.reneged = false;
            }
        }
        if !in_recovery {
            return false;
        }
        // tcp_is_non_sack_preventing_reopen
        let holds = reno && received.th_ack == point;
        // tcp_try_undo_recovery, tcp_try_undo_partial: while a retransmission is in flight, its own
        // acknowledgment is awaited.
        let settled = received.th_ack >= point || nothing_retransmitted;
        let delayed = loss.episode.undo.was_delayed(echo);
        let repeats = received.th_ack >= point && loss.episode.undo.all_duplicates();
        let original_arrived = advances && settled && (delayed || repeats);
        // While one is in flight nothing more is marked or retransmitted.
        let awaits = loss.detector.supports_undo() && advances && !settled && delayed;
        if unlikely(awaits) {
            self.note_partial_delay(received.th_ack);
        }
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return false };
        let was_spurious = original_arrived || loss.episode.undo.all_duplicates();
        if loss.detector.supports_undo() && unlikely(was_spurious) {
            loss.episode.undo.forget(outstanding);
            loss.episode.held = holds;
            if !holds {
                loss.episode.prr = PrrState::None;
            }
            if let (RackDetector::Linux(rack), false) = (&mut loss.detector, original_arrived) {
                rack.on_dsack_undo();
            }
            if original_arrived && received.th_ack < point {
                self.note_partial_delay(received.th_ack);
                self.snd.scoreboard.unmark_lost(false);
            }
            self.totals.spurious += 1;
            let change = self.undo_reduction(cx.now, Sign::SpuriousRecovery);
            self.note(cx, change, Cause::Undone);
        } else if received.th_ack >= point && !holds {
            cold_path();
            loss.episode.prr = PrrState::None;
            loss.episode.undo.end(outstanding);
            loss.detector.on_recovered();
            let change = self.cc.on_recovered(&RecoveryEnd { th_ack: received.th_ack, pipe });
            self.note(cx, change, Cause::Recovered);
        }
        holds || awaits
    }

    /// tcp_try_undo_dsack after a recovery: D-SACKs cover all that it retransmitted.
    #[cold]
    fn undo_by_duplicates<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let outstanding = any_retransmitted(&self.snd.scoreboard);
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        loss.episode.undo.forget(outstanding);
        if let RackDetector::Linux(rack) = &mut loss.detector {
            rack.on_dsack_undo();
        }
        self.totals.spurious += 1;
        let change = self.undo_reduction(cx.now, Sign::SpuriousRecovery);
        self.note(cx, change, Cause::Undone);
    }

    /// tcp_try_undo_partial: a delayed packet filled the hole.
    fn note_partial_delay(&mut self, th_ack: Offset) {
        let highest = self.snd.scoreboard.highest_sacked().unwrap_or(th_ack);
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        if let RackDetector::Linux(rack) = &mut loss.detector {
            rack.on_reordering();
        }
        loss.reordering.on_reordered(self.snd.una, highest, u64::from(self.negotiated.mss));
    }

    /// Enters recovery for detected losses, unless one is in progress or the flight of a timeout is
    /// being retransmitted; `una` is `snd_una` after the acknowledgment. Linux also does so if one
    /// has ended and lost packets are still outstanding (tcp_time_to_recover), and, with
    /// `leaves_timeout`, while it retransmits the flight of a timeout.
    pub(super) fn act_on_losses<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        found: &RackLosses,
        una: Offset,
        leaves_timeout: bool,
    ) {
        if found.packets > 0 {
            let packets = found.packets.min(u64::from(u32::MAX)) as u32;
            cx.emit(|| Event::Lost { packets });
        }
        let in_recovery = self.cc.in_recovery();
        let any_lost = self.snd.scoreboard.any_lost();
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        let (enters, leaves_timeout) = match loss.detector {
            RackDetector::Linux(_) => (any_lost, leaves_timeout && found.packets > 0),
            RackDetector::Rfc(_) => (found.packets > 0, false),
        };
        let repairing = loss.episode.timeout_until.is_some();
        let in_cwr = self.snd.rexmt.cwr_end.is_some();
        if !enters || (in_recovery && !in_cwr) || (repairing && !leaves_timeout) {
            return;
        }
        loss.episode.timeout_until = None;
        loss.frto = Frto::OFF;
        cold_path();
        let continues = self.continue_cwr();
        let control = self.cc.control();
        let flight = self.snd.scoreboard.sums();
        let mss = self.mss();
        let whole = self.is_rate_based();
        let outstanding = any_retransmitted(&self.snd.scoreboard);
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        let retransmitted = flight.retransmission.packets + u64::from(loss.tlp.repeated());
        loss.tlp.forget();
        loss.episode.undo.begin_again(una, retransmitted, outstanding);
        if !continues {
            loss.episode.proven = false;
            loss.episode.prr = match whole {
                true => PrrState::Controller,
                false => loss.detector.new_prr(&flight, control.window.get(), mss),
            };
            if matches!(loss.detector, RackDetector::Linux(_)) {
                // tcp_init_cwnd_reduction
                self.ecn.on_reduced();
            }
        }
        self.totals.fast_recoveries += 1;
        self.snd.rtt.timing = None;
        self.abandon_cwr();
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
        self.note(cx, change, Cause::FastRetransmit);
    }

    /// Applies proportional rate reduction to an acknowledgment in recovery.
    pub(super) fn apply_prr<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        account: &AckAccounting,
        advances: bool,
        newly_lost: bool,
    ) {
        let sums = self.snd.scoreboard.sums();
        let control = self.cc.control();
        let ssthresh = control.ssthresh.unwrap_or(control.window).get();
        let mss = self.mss();
        let ack = prr_state::PrrInput {
            bytes: account.bytes,
            packets: account.packets,
            advances,
            newly_lost,
            ssthresh,
            mss,
        };
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        if let Some(window) = loss.episode.prr.on_ack(&ack, &sums) {
            self.cc.override_window(Bytes(window));
            self.emit_window(cx, Cause::Recovering);
        }
    }
}

/// Is anything in flight that was retransmitted (tcp_any_retrans_done)?
pub(super) fn any_retransmitted(map: &SendMap) -> bool {
    map.sums().retransmission.packets > 0
        || map.first().is_some_and(|head| head.transmissions() > 1)
}
