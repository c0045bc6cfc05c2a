//! A recovery begins with what was found lost, lets go what PRR gives room for, and ends, or was
//! needless.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_fastretrans_alert).

use core::hint::cold_path;

use cc::{Controller, Recovered, Signal as Sign};
use machine::Cx;
use record::{Cause, Event, Recorder};
use recovery::apart::Beginning;
use recovery::rack::Found;
use recovery::undo::Undo;
use units::{Bytes, Offset, unlikely};

use super::budget::{self, Budget};
use super::judge::Judge;
use super::{Account, timed_of};
use crate::endpoint::Endpoint;
use crate::loss::Heard;

/// What is known of the last episode in which losses were repaired.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct Episode {
    pub(super) budget: Budget,
    /// What Linux needs to take it back.
    pub(super) undo: Undo,
    /// After a timeout: until this is acknowledged its losses are repaired, and no recovery begins.
    pub(super) timeout_until: Option<Offset>,
}

/// There was none yet.
static NONE: Episode =
    Episode { budget: Budget::None, undo: Undo::begin(Offset(0), 0, None), timeout_until: None };

impl Beginning for Episode {
    fn beginning() -> &'static Self {
        &NONE
    }
}

impl Endpoint {
    /// Ends a recovery, or a timeout's repair, whose time has come; takes it back where the system
    /// does and may.
    pub(super) fn settle_recovery<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        heard: &Heard,
        echo: Option<u32>,
    ) {
        if let Some(end) = self.snd.ecn_episode {
            cold_path();
            if heard.th_ack > end {
                self.end_ecn_episode(cx, heard.th_ack);
            }
            return;
        }
        let in_recovery = self.cc.in_recovery();
        if !in_recovery && timed_of!(self).episode.timeout_until.is_none() {
            return;
        }
        let point = self.cc.recovery_point();
        let advances = heard.th_ack > self.snd.una;
        let pipe = self.snd.map.sums().pipe();
        let nothing_resent = self.snd.map.sums().resent.packets == 0;
        let loss = timed_of!(self);
        if unlikely(loss.episode.timeout_until.is_some_and(|end| heard.th_ack >= end)) {
            loss.episode.timeout_until = None;
            loss.episode.undo.forget();
            loss.judge.on_recovered();
            if let Some(rates) = &mut self.snd.rates {
                rates.reneged = false;
            }
        }
        if !in_recovery {
            return;
        }
        // tcp_try_undo_recovery, tcp_try_undo_partial: while a retransmission is under way its own
        // acknowledgment is awaited.
        let settled = heard.th_ack >= point || nothing_resent;
        let needless = (advances && settled && loss.episode.undo.may(echo))
            || loss.episode.undo.all_duplicates();
        if loss.judge.takes_back() && unlikely(needless) {
            loss.episode.undo.forget();
            loss.episode.budget = Budget::None;
            if let (Judge::Linux(rack), true) = (&mut loss.judge, heard.th_ack < point) {
                // tcp_try_undo_partial: the hole was filled by what had been delayed.
                let highest = self.snd.map.highest_sacked().unwrap_or(heard.th_ack);
                rack.on_reordering();
                loss.reordering.on_late(self.snd.una, highest, u64::from(self.link.mss));
            }
            self.snd.map.unmark_lost();
            self.totals.spurious += 1;
            let change = self.cc.on_congested(&self.congested(cx.now, Sign::SpuriousRecovery));
            self.note(cx, change, Cause::Undone);
        } else if heard.th_ack >= point {
            cold_path();
            loss.episode.budget = Budget::None;
            loss.episode.undo.forget();
            loss.judge.on_recovered();
            let change = self.cc.on_recovered(&Recovered { th_ack: heard.th_ack, pipe });
            self.note(cx, change, Cause::Recovered);
        }
    }

    /// What was found lost begins a recovery, unless one runs or a timeout's losses are repaired.
    pub(super) fn act_on_losses<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, found: &Found) {
        if found.packets == 0 {
            return;
        }
        let packets = found.packets.min(u64::from(u32::MAX)) as u32;
        cx.emit(|| Event::Lost { packets });
        let repairing = timed_of!(self).episode.timeout_until.is_some();
        if self.cc.in_recovery() || repairing {
            return;
        }
        cold_path();
        let control = self.cc.control();
        let flight = self.snd.map.sums();
        let una = self.snd.una;
        let mss = self.mss();
        let whole = self.is_whole();
        let loss = timed_of!(self);
        loss.tlp.forget();
        loss.episode.undo = Undo::begin(una, 0, None);
        loss.episode.budget = match whole {
            true => Budget::Controller,
            false => loss.judge.budget(&flight, control.window.get(), mss),
        };
        self.totals.fast_recoveries += 1;
        self.snd.timed = None;
        self.outlast_ecn_episode();
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
        self.note(cx, change, Cause::FastRetransmit);
    }

    /// Proportional rate reduction.
    pub(super) fn spend<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        account: &Account,
        advances: bool,
        newly_lost: bool,
    ) {
        let sums = self.snd.map.sums();
        let control = self.cc.control();
        let ssthresh = control.ssthresh.unwrap_or(control.window).get();
        let mss = self.mss();
        let ack = budget::Ack {
            bytes: account.bytes,
            packets: account.packets,
            advances,
            newly_lost,
            ssthresh,
            mss,
        };
        if let Some(window) = timed_of!(self).episode.budget.on_ack(&ack, &sums) {
            self.overrule_window(Bytes(window));
            self.emit_window(cx, Cause::Recovering);
        }
    }
}
