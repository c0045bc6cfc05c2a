//! The reordering timer, the tail loss probe, and the timeout.

use core::hint::cold_path;

use cc::Controller;
use machine::Cx;
use record::{Cause, Purpose, Recorder};
use recovery::tlp::PtoInput;
use recovery::undo::{Undo, older};
use units::{Duration, Instant};

use super::judge::Judge;
use super::{Account, timed_of};
use crate::endpoint::Endpoint;
use crate::loss::Repair;
use crate::profile::ProbeRule;

impl Endpoint {
    /// What was passed has had its time.
    pub(crate) fn on_reorder_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let found = self.detect_losses(cx.now, false);
        if self.has_one_timer() {
            // tcp_rack_reo_timeout
            self.rearm_timeout(cx.now, true);
        } else {
            self.watch_reordering(cx.now, &found);
        }
        let recovered = self.cc.in_recovery();
        self.act_on_losses(cx, &found);
        if self.cc.in_recovery() && !recovered {
            self.first_of_timer(cx);
        }
        self.call_output();
    }

    /// A recovery that the timer begins counts one packet as delivered (tcp_rack_reo_timeout of
    /// Linux).
    fn first_of_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if matches!(timed_of!(self).judge, Judge::Linux(_)) {
            let account = Account { packets: 1, ..Account::default() };
            self.spend(cx, &account, false, false);
        }
    }

    /// No acknowledgment came for about two round trips.
    pub(crate) fn on_probe_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.snd.wnd == 0 {
            // The peer has shut its window since; that is asked about in another way.
            return;
        }
        let loss = timed_of!(self);
        loss.probe_due = true;
        // The timeout comes one timeout after the probe.
        self.arm_retransmit(cx.now);
        self.call_output();
    }

    /// Plans a probe where nothing is reported, nothing is being repaired, and something is under
    /// way (RFC 8985 section 7.2; tcp_schedule_loss_probe).
    #[inline(always)]
    pub(crate) fn plan_probe_timer(&mut self, now: Instant) {
        if let Some(quiet) = self.unplanned_probe(now) {
            self.replan_probe_timer(now, quiet);
        }
    }

    /// The same within what is done with an ordinary acknowledgment.
    #[inline(always)]
    pub(super) fn plan_probe_timer_here(&mut self, now: Instant) {
        if let Some(quiet) = self.unplanned_probe(now) {
            self.replan_probe_timer_here(now, quiet);
        }
    }

    /// Might a probe be planned, if its time is not known already?
    #[inline(always)]
    fn unplanned_probe(&self, now: Instant) -> Option<bool> {
        let Repair::Timed(loss) = &self.snd.repair else { return None };
        let sums = self.snd.map.sums();
        let quiet = sums.all.packets > 0
            && (sums.sacked.packets | sums.lost.packets) == 0
            && !self.cc.in_recovery()
            && self.snd.wnd > 0
            && self.snd.shift == 0
            && loss.episode.timeout_until.is_none()
            && loss.tlp.allowed();
        if quiet && sums.all.packets > 1 && loss.planned == Some(now) {
            // Nothing that the time depends on has changed.
            return None;
        }
        Some(quiet)
    }

    #[inline(never)]
    fn replan_probe_timer(&mut self, now: Instant, quiet: bool) {
        self.replan_probe_timer_here(now, quiet);
    }

    #[inline(always)]
    fn replan_probe_timer_here(&mut self, now: Instant, quiet: bool) {
        let alone = self.snd.map.sums().all.packets == 1;
        let loss = timed_of!(self);
        if !quiet || !self.cfg.profile.loss_probes {
            loss.planned = None;
            self.timers.stop(Purpose::LossProbe);
            return;
        }
        loss.planned = (!alone).then_some(now);
        let pto = loss.pto.pto(&PtoInput { srtt: self.rtt.srtt(), alone, rto: self.rtt.rto() });
        match loss.judge {
            // Linux counts in jiffies, the textbook in the time itself.
            Judge::Linux(_) => {
                self.timers.set_ticks(Purpose::LossProbe, &self.clock, now, pto);
            }
            Judge::Rfc(_) => {
                let at = now + pto.max(Duration::from_micros(1));
                self.timers.set(Purpose::LossProbe, at);
            }
        }
    }

    /// The retransmission timer fired: the flight is lost as far as the system takes it for lost,
    /// its first packet goes at once.
    pub(crate) fn timed_timeout(&mut self, now: Instant) {
        let standing = self.standing(now);
        let (una, max) = (self.snd.una, self.snd.max);
        self.timers.stop(Purpose::Reorder);
        self.timers.stop(Purpose::LossProbe);
        self.begin_frto();
        let loss = timed_of!(self);
        if self.snd.map.reneged() {
            if let Some(rates) = &mut self.snd.rates {
                rates.reneged = true;
            }
            self.snd.map.forget_sacks();
            if loss.judge.takes_back() {
                self.snd.map.lose_all();
            }
        }
        loss.judge.on_timeout(&mut self.snd.map, &standing);
        loss.episode.budget = super::Budget::None;
        loss.tlp.forget();
        loss.probe_due = false;
        loss.planned = None;
        loss.episode.undo = Undo::begin(una, 0, None);
        loss.episode.timeout_until = Some(max);
        if self.snd.wnd > 0 || matches!(self.cfg.profile.probe, ProbeRule::Empty { .. }) {
            self.snd.again = Some(Cause::Timeout);
        } else {
            // A shut window is asked about, not sent into (tcp_output, `watch_window`).
            self.snd.nxt = una;
            self.snd.resend_cause = Cause::Timeout;
        }
    }

    /// The first acknowledgment after a single timeout echoes what was sent before it: the original
    /// had arrived (tcp_try_undo_loss; RFC 3522).
    pub(super) fn undo_timed_timeout<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        echo: Option<u32>,
    ) {
        let Some(sent) = self.snd.timeout_stamp.take() else { return };
        cold_path();
        if self.snd.shift != 1 || !echo.is_some_and(|echo| older(echo, sent)) {
            return;
        }
        self.undo_timeout(cx);
    }
}
