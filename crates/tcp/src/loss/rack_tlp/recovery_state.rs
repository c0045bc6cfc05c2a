//! Recovery: entered when losses are detected, limited by PRR, and ended or undone.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_fastretrans_alert).

use core::hint::cold_path;

use cc::{CongestionSignal as Sign, Controller, RecoveryEnd};
use machine::Cx;
use record::{Cause, Event, Recorder};
use recovery::lazy::InitialValue;
use recovery::rack::RackLosses;
use recovery::undo::UndoState;
use units::{Bytes, Offset, unlikely};

use super::detector::RackDetector;
use super::frto::Frto;
use super::prr_state::{self, PrrState};
use super::{AckAccounting, timed_of};
use crate::endpoint::TcpEndpoint;
use crate::loss::ReceivedAck;

/// State of the last recovery.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct RecoveryState {
    pub(super) prr: PrrState,
    /// State that Linux needs to undo it.
    pub(super) undo: UndoState,
    /// After a timeout, its recovery point: no fast recovery begins before it is acknowledged.
    pub(super) timeout_until: Option<Offset>,
}

/// No recovery yet.
static NONE: RecoveryState = RecoveryState {
    prr: PrrState::None,
    undo: UndoState::begin(Offset(0), 0, None),
    timeout_until: None,
};

impl InitialValue for RecoveryState {
    fn initial() -> &'static Self {
        &NONE
    }
}

impl TcpEndpoint {
    /// Ends a recovery, or the retransmissions after a timeout, at the recovery point; undoes it
    /// where the system does and the conditions hold.
    pub(super) fn settle_recovery<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        echo: Option<u32>,
    ) {
        if let Some(end) = self.snd.cwr_end {
            cold_path();
            if received.th_ack > end {
                self.end_cwr(cx, received.th_ack);
            }
            return;
        }
        let in_recovery = self.cc.in_recovery();
        if !in_recovery && timed_of!(self).episode.timeout_until.is_none() {
            return;
        }
        let point = self.cc.recovery_point();
        let advances = received.th_ack > self.snd.una;
        let pipe = self.snd.scoreboard.sums().pipe();
        let nothing_retransmitted = self.snd.scoreboard.sums().retransmission.packets == 0;
        let loss = timed_of!(self);
        if unlikely(loss.episode.timeout_until.is_some_and(|end| received.th_ack >= end)) {
            loss.episode.timeout_until = None;
            loss.episode.undo.forget();
            loss.detector.on_recovered();
            if let Some(rates) = &mut self.snd.rates {
                rates.reneged = false;
            }
        }
        if !in_recovery {
            return;
        }
        // tcp_try_undo_recovery, tcp_try_undo_partial: while a retransmission is in flight, its own
        // acknowledgment is awaited.
        let settled = received.th_ack >= point || nothing_retransmitted;
        let original_arrived = advances && settled && loss.episode.undo.may(echo);
        let was_spurious = original_arrived || loss.episode.undo.all_duplicates();
        if loss.detector.supports_undo() && unlikely(was_spurious) {
            loss.episode.undo.forget();
            loss.episode.prr = PrrState::None;
            if let (RackDetector::Linux(rack), false) = (&mut loss.detector, original_arrived) {
                rack.on_dsack_undo();
            }
            if let (RackDetector::Linux(rack), true) = (&mut loss.detector, received.th_ack < point)
            {
                // tcp_try_undo_partial: a delayed packet filled the hole.
                let highest = self.snd.scoreboard.highest_sacked().unwrap_or(received.th_ack);
                rack.on_reordering();
                loss.reordering.on_reordered(self.snd.una, highest, u64::from(self.negotiated.mss));
            }
            self.snd.scoreboard.unmark_lost();
            self.totals.spurious += 1;
            let change = self.cc.on_congested(&self.congested(cx.now, Sign::SpuriousRecovery));
            self.note(cx, change, Cause::Undone);
        } else if received.th_ack >= point {
            cold_path();
            loss.episode.prr = PrrState::None;
            loss.episode.undo.forget();
            loss.detector.on_recovered();
            let change = self.cc.on_recovered(&RecoveryEnd { th_ack: received.th_ack, pipe });
            self.note(cx, change, Cause::Recovered);
        }
    }

    /// Enters recovery for detected losses, unless one is in progress or the flight of a timeout is
    /// being retransmitted. Linux also does so if one has ended and lost packets are still
    /// outstanding (tcp_time_to_recover), and, with `leaves_timeout`, while it retransmits the
    /// flight of a timeout.
    pub(super) fn act_on_losses<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        found: &RackLosses,
        leaves_timeout: bool,
    ) {
        if found.packets > 0 {
            let packets = found.packets.min(u64::from(u32::MAX)) as u32;
            cx.emit(|| Event::Lost { packets });
        }
        let in_recovery = self.cc.in_recovery();
        let any_lost = self.snd.scoreboard.any_lost();
        let loss = timed_of!(self);
        let (enters, leaves_timeout) = match loss.detector {
            RackDetector::Linux(_) => (any_lost, leaves_timeout && found.packets > 0),
            RackDetector::Rfc(_) => (found.packets > 0, false),
        };
        let repairing = loss.episode.timeout_until.is_some();
        if !enters || in_recovery || (repairing && !leaves_timeout) {
            return;
        }
        loss.episode.timeout_until = None;
        loss.frto = Frto::OFF;
        cold_path();
        let control = self.cc.control();
        let flight = self.snd.scoreboard.sums();
        let una = self.snd.una;
        let mss = self.mss();
        let whole = self.is_rate_based();
        let head = self.snd.scoreboard.first();
        let repeated = head.is_some_and(|head| head.transmissions() > 1);
        let retransmitted = flight.retransmission.packets;
        let loss = timed_of!(self);
        loss.tlp.forget();
        loss.episode.undo.begin_again(una, retransmitted, repeated || retransmitted > 0);
        loss.episode.prr = match whole {
            true => PrrState::Controller,
            false => loss.detector.new_prr(&flight, control.window.get(), mss),
        };
        self.totals.fast_recoveries += 1;
        self.snd.rtt_timing = None;
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
        if let Some(window) = timed_of!(self).episode.prr.on_ack(&ack, &sums) {
            self.override_window(Bytes(window));
            self.emit_window(cx, Cause::Recovering);
        }
    }
}
