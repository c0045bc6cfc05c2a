//! Losses as FreeBSD's base stack finds and repairs them where SACK was agreed: tcp_do_segment,
//! tcp_do_prr_ack, tcp_sack_partialack and tcp_sack_lost_retransmission (tcp_input.c, tcp_sack.c),
//! and what tcp_output sends of holes (tcp_output.c); releng/13 to main of October 2024.
//!
//! Three duplicates begin a recovery, and in 14.3 and main also more than two segments reported; it
//! ends when all that was under way at its beginning is acknowledged, and is never taken back.

use cc::{Controller, Recovered, Signal as Sign};
use machine::Cx;
use record::{Cause, Event, Recorder};
use recovery::holes::{Changed, Holes, PipeRule, Rescue, SackInput, Update};
use recovery::prr::freebsd::{Prr, PrrAck, Recovery};
use units::{Bytes, Offset};

use super::duplicates::DUP_THRESHOLD;
use super::{Heard, Repair};
use crate::endpoint::Endpoint;
use crate::profile::HolesRule;

/// What the base stack knows of losses.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct HolesLoss {
    rule: HolesRule,
    holes: Holes,
    prr: Prr,
}

impl HolesLoss {
    pub(crate) const fn new(rule: HolesRule) -> Self {
        Self {
            rule,
            holes: Holes::new(rule.params),
            prr: Prr { prr_delivered: 0, prr_out: 0, recover_fs: 0 },
        }
    }

    /// Reports the scoreboard and PRR's counters under the names of recordings.
    pub(crate) fn inspect(&self, see: &mut impl FnMut(&'static str, u64)) {
        see("fack", self.holes.snd_fack().0);
        see("rexb", self.holes.sack_bytes_rexmit());
        see("sackb", self.holes.sacked_bytes());
        see("rfs", self.prr.recover_fs);
        see("prrd", self.prr.prr_delivered);
        see("prro", self.prr.prr_out);
        see("nh", self.holes.len() as u64);
        see("lostb", self.holes.lost_bytes());
    }

    /// More was reported than two segments: enough without a third duplicate.
    fn much_reported(&self, maxseg: u64) -> bool {
        self.rule.newsack && self.holes.sacked_bytes() > u64::from(DUP_THRESHOLD - 1) * maxseg
    }
}

/// The part of the endpoint's state that this file is about; nothing happens without.
macro_rules! holes_of {
    ($endpoint:expr) => {
        match &mut $endpoint.snd.repair {
            Repair::Holes(loss) => loss,
            _ => return Default::default(),
        }
    };
}

impl Endpoint {
    /// An acceptable acknowledgment.
    pub(crate) fn holes_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &packet::Segment,
        heard: &Heard,
    ) {
        let update = self.holes_update(heard);
        if update.changed != Changed::None {
            self.look_for_lost_retransmission(cx);
        }
        if heard.th_ack > self.snd.una {
            self.on_new_ack(cx, segment, heard, &update);
        } else if update.changed != Changed::None && self.snd.max > self.snd.una && !heard.data {
            self.holes_dup_ack(cx, heard, &update);
        }
    }

    /// tcp_sack_doack: before `snd_una` moves.
    fn holes_update(&mut self, heard: &Heard) -> Update {
        let (snd_una, snd_max) = (self.snd.una, self.snd.max);
        let (snd_recover, t_maxseg) = (self.cc.recovery_point(), self.link.maxseg);
        let loss = holes_of!(self);
        if heard.blocks().is_empty() && loss.holes.is_empty() {
            return Update::default();
        }
        loss.holes.update(&SackInput {
            th_ack: heard.th_ack,
            blocks: heard.blocks(),
            snd_una,
            snd_max,
            snd_recover,
            t_maxseg,
        })
    }

    /// tcp_sack_lost_retransmission: what was resent before data beyond the recovery point was
    /// sent, and is still missing now that such data has arrived, is lost again. That is a new
    /// congestion signal.
    fn look_for_lost_retransmission<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let point = self.cc.recovery_point();
        let outstanding = self.snd.max - self.snd.una;
        let in_recovery = self.cc.in_recovery();
        let loss = holes_of!(self);
        if !in_recovery || !loss.holes.lost_retransmission(point) {
            return;
        }
        loss.prr.begin_again(outstanding);
        let ssthresh = self.cc.control().ssthresh.unwrap_or(self.cc.control().window);
        self.cc.set_window(ssthresh);
        self.cc.leave_recovery();
        self.totals.fast_recoveries += 1;
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
        self.cc.set_window(Bytes(self.mss()));
        self.note(cx, change, Cause::LostRetransmission);
        self.call_output();
    }

    /// An acknowledgment that reports something new, in recovery or not.
    fn holes_dup_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, heard: &Heard, update: &Update) {
        self.snd.dup_acks += 1;
        let count = self.snd.dup_acks;
        cx.emit(|| Event::DupAck { count });
        let maxseg = self.mss();
        if self.cc.in_recovery() {
            self.holes_prr(cx, heard, update);
        } else if count >= DUP_THRESHOLD || holes_of!(self).much_reported(maxseg) {
            self.holes_enter(cx);
        } else {
            self.transmit_limited(count);
            return;
        }
        self.call_output();
    }

    /// A recovery begins: the first hole goes at once, the rest as PRR gives room.
    fn holes_enter<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let maxseg = self.mss();
        let flight = (self.snd.nxt - self.snd.una).max(1);
        self.totals.fast_recoveries += 1;
        self.snd.dup_acks = DUP_THRESHOLD;
        self.outlast_ecn_episode();
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
        // The kernel stops the timer and starts it again with the first hole.
        self.arm_retransmit(cx.now);
        self.snd.timed = None;
        self.snd.nxt = self.snd.max;
        holes_of!(self).prr = Prr::begin(flight, maxseg);
        // Room for one segment, and for none where lost retransmissions of earlier episodes are
        // still counted as resent: then the first hole waits for the next ACK.
        self.cc.set_window(Bytes(maxseg));
        self.note(cx, change, Cause::FastRetransmit);
    }

    /// tcp_do_prr_ack: the window for what this acknowledgment allows.
    fn holes_prr<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, heard: &Heard, update: &Update) {
        let snd = &self.snd;
        let (una, nxt, max) = (snd.una.0 as i64, snd.nxt.0 as i64, snd.max.0 as i64);
        let recover = self.cc.recovery_point().0 as i64;
        let control = self.cc.control();
        let ssthresh = control.ssthresh.unwrap_or(control.window).get();
        let (maxseg, pipe) = (self.mss(), self.holes_pipe(heard.th_ack, true));
        let dup_acks = u64::from(self.snd.dup_acks);
        let loss = holes_of!(self);
        let window = loss.prr.on_ack(&PrrAck {
            recovery: Recovery::Sack,
            changed: update.changed,
            maxseg,
            ssthresh,
            delivered: update.delivered,
            sack_bytes_rexmit: loss.holes.sack_bytes_rexmit(),
            nxt: nxt - una,
            outstanding: (max - una) as u64,
            recover: recover - una,
            pipe,
            dup_acks,
        });
        self.cc.set_window(Bytes(window));
        self.emit_window(cx, Cause::Recovering);
    }

    /// Bytes under way. In 13.0, without `rfc6675_pipe`, PRR counts what lies beyond the highest
    /// report and what was resent, the end of a recovery all that is not acknowledged.
    pub(crate) fn holes_pipe(&self, th_ack: Offset, for_prr: bool) -> u64 {
        let (una, nxt, max) = (self.snd.una, self.snd.nxt, self.snd.max);
        let Repair::Holes(loss) = &self.snd.repair else { return max.since(th_ack).get() };
        match loss.rule.params.pipe {
            PipeRule::Outstanding if for_prr => {
                nxt.since(loss.holes.snd_fack()).get() + loss.holes.sack_bytes_rexmit()
            }
            PipeRule::Outstanding => max.since(th_ack).get(),
            PipeRule::Sacked | PipeRule::SackedAndLost => loss.holes.pipe(una, max),
        }
    }

    /// An acknowledgment advances in recovery, before `snd_una` moves: it ends it, or is partial.
    pub(crate) fn holes_settle<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        heard: &Heard,
        update: &Update,
    ) {
        if !self.cc.in_recovery() {
            self.snd.dup_acks = 0;
            let maxseg = self.mss();
            if heard.blocks().is_empty() || update.changed == Changed::None {
                return;
            }
            // It advances and reports: that counts as a duplicate, and much may be reported.
            self.snd.dup_acks = 1;
            cx.emit(|| Event::DupAck { count: 1 });
            if !holes_of!(self).much_reported(maxseg) {
                return;
            }
            self.holes_enter(cx);
        }
        if heard.th_ack >= self.cc.recovery_point() {
            self.snd.dup_acks = 0;
            let pipe = self.holes_pipe(heard.th_ack, false);
            let change = self.cc.on_recovered(&Recovered { th_ack: heard.th_ack, pipe });
            holes_of!(self).prr = Prr::default();
            self.note(cx, change, Cause::Recovered);
            return;
        }
        self.snd.timed = None;
        if heard.blocks().is_empty() {
            self.holes_partial_ack(cx, heard, update);
        } else {
            self.holes_prr(cx, heard, update);
        }
    }

    /// tcp_sack_partialack: an acknowledgment in recovery that reports nothing.
    fn holes_partial_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        heard: &Heard,
        update: &Update,
    ) {
        let maxseg = self.link.mss;
        let acked = heard.th_ack - self.snd.una;
        let snd_recover = self.cc.recovery_point();
        let since = self.snd.nxt.0 as i64 - snd_recover.0 as i64;
        let control = self.cc.control();
        let ssthresh = control.ssthresh.unwrap_or(control.window).get();
        let rescue = Rescue {
            th_ack: heard.th_ack,
            high_data: self.snd.max.min(self.data_end()),
            snd_recover,
            maxseg,
            delivered: update.delivered,
        };
        let loss = holes_of!(self);
        let window = loss.holes.partial_ack_window(acked, since, maxseg, ssthresh);
        if loss.rule.newsack && loss.holes.rescue(&rescue) {
            // The last segments may be missing too, though nothing beyond them tells.
            cx.emit(|| Event::Lost { packets: 1 });
        }
        self.cc.set_window(Bytes(window));
        self.emit_window(cx, Cause::Recovering);
    }

    /// The retransmission timer fired.
    pub(crate) fn holes_timeout(&mut self) {
        let shift = self.snd.shift;
        holes_of!(self).holes.on_timeout(shift);
    }

    /// The part of a hole to send again now (tcp_output, `sack_rxmit`): where it begins, its
    /// length.
    pub(crate) fn next_hole(&mut self) -> Option<(Offset, u64)> {
        if !self.cc.in_recovery() {
            return None;
        }
        let point = self.cc.recovery_point();
        let window = self.snd.wnd.min(self.cwnd());
        let (mss, data_end) = (self.mss(), self.data_end());
        let loss = holes_of!(self);
        let room = window.saturating_sub(loss.holes.sack_bytes_rexmit());
        let (start, end) = loss.holes.next_hole()?;
        // Not beyond what this recovery is about.
        let left = end.min(point).min(data_end).since(start).get();
        let len = room.min(left).min(mss);
        (len > 0).then_some((start, len))
    }

    /// Room for new data in a recovery whose holes were resent: what PRR gives, less what left
    /// since. `None` where the plain windows hold.
    pub(crate) fn room_beyond_holes(&self) -> Option<u64> {
        let Repair::Holes(loss) = &self.snd.repair else { return None };
        let resent = loss.holes.sack_bytes_rexmit();
        if !self.cc.in_recovery() || resent == 0 {
            return None;
        }
        let since = self.snd.nxt.since(self.cc.recovery_point()).get();
        Some(self.cwnd().saturating_sub(since + resent))
    }

    /// `snd_nxt` after a timeout, moved over what was reported (tcp_sack_adjust).
    pub(crate) fn skip_reported(&mut self) {
        if let Repair::Holes(loss) = &self.snd.repair
            && self.snd.nxt < self.snd.max
        {
            self.snd.nxt = loss.holes.adjust(self.snd.nxt).min(self.snd.max);
        }
    }

    /// `len` bytes left in recovery, from a hole or not.
    pub(crate) fn holes_sent(&mut self, len: u64, hole: bool) {
        if !self.cc.in_recovery() {
            return;
        }
        let point = self.cc.recovery_point();
        if let Repair::Duplicates(Some(prr)) = &mut self.snd.repair {
            prr.on_sent(len);
        }
        let loss = holes_of!(self);
        loss.prr.on_sent(len);
        if hole {
            loss.holes.resent(len, point);
        }
    }
}
