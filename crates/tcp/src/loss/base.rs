//! FreeBSD's base stack: the acknowledgment half of tcp_do_segment in the order of its steps, with
//! tcp_do_prr_ack, tcp_sack_partialack, tcp_newreno_partial_ack and tcp_sack_lost_retransmission
//! (tcp_input.c, tcp_sack.c; 13.0, 14.3 and main of October 2024, which differ by [`HolesRule`]).
//!
//! What the kernel does after `goto drop` is nothing: an ACK that leaves that way does not update the
//! window. Where it calls tcp_output before `snd_una` moves, so do we ([`Endpoint::output_now`]).

use cc::{Acked, Controller, Recovered, Signal as Sign};
use machine::Cx;
use packet::{Flags, Options, Segment};
use record::{Cause, Event, Purpose, Recorder};
use recovery::holes::{Changed, Update};
use recovery::prr::freebsd::PrrRule;
use units::{Bytes, Offset};

use super::duplicates::DUP_THRESHOLD;
use super::holes::holes_of;
use super::{Heard, Repair};
use crate::endpoint::{Endpoint, State};
use crate::profile::{DuplicateRule, HolesRule, LimitedRule, SettleRule};
use crate::sent::Delivered;

/// An acknowledgment and what the scoreboard made of it.
pub(super) struct Ack<'a> {
    pub(super) heard: &'a Heard,
    pub(super) update: Update,
    /// SACK was agreed, and it has blocks or there are holes (tcp_is_sack_recovery).
    pub(super) sack_recovery: bool,
}

/// What follows an acknowledgment that moves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Step 6: its window may count.
    Window,
    /// `goto drop`.
    Drop,
}

impl Endpoint {
    /// An acceptable segment acknowledges up to `ack`.
    pub(crate) fn base_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        ack: Offset,
    ) {
        let rule = *holes_of!(self).rule();
        if self.ecn.echoed(segment.flags) {
            self.on_ecn_echo(cx, ack);
        }
        if rule.undoes_on_any_ack {
            self.undo_bad_timeout(cx, segment, &rule);
        }
        let wnd = self.scaled_window(segment);
        if self.predicts_ack(segment, seq, ack, wnd) {
            let heard = self.hear(segment, ack, wnd);
            self.advance_una(cx, segment, seq, &heard, &rule);
            self.snd.dup_acks = 0;
            self.snd.wl2 = ack;
            self.call_output();
            self.wake_writer_after(cx);
            return;
        }
        let heard = self.hear(segment, ack, wnd);
        if self.acknowledge(cx, segment, seq, &heard, &rule) == Then::Window {
            self.take_window(seq, ack, wnd);
            self.wake_writer_after(cx);
        }
    }

    /// A writer that sleeps runs once the segment is processed: it finds the buffer as tcp_output has
    /// left it.
    fn wake_writer_after<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.snd.due {
            self.snd.check_space = true;
        } else {
            self.wake_writer(cx);
        }
    }

    /// Header prediction: a bare ACK for new data while nothing is amiss.
    fn predicts_ack(&self, segment: &Segment, seq: Offset, ack: Offset, wnd: u64) -> bool {
        let Repair::Holes(loss) = &self.snd.repair else { return false };
        segment.payload == 0
            && ack > self.snd.una
            && wnd != 0
            && wnd == self.snd.wnd
            && self.snd.nxt == self.snd.max
            && self.state == State::Established
            && seq == self.rcv.nxt
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && matches!(segment.options, Options::None)
            && loss.holes.is_empty()
            && !self.cc.in_recovery()
            && self.snd.ecn_episode.is_none()
            && self.rcv.reassembly.is_empty()
    }

    /// From the scoreboard on.
    fn acknowledge<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        heard: &Heard,
        rule: &HolesRule,
    ) -> Then {
        let loss = match &mut self.snd.repair {
            Repair::Holes(loss) => loss,
            _ => return Then::Window,
        };
        let sack_recovery = self.link.sack && (heard.sacks || !loss.holes.is_empty());
        let update = if sack_recovery {
            let update = self.holes_update(heard);
            if update.changed != Changed::None {
                self.look_for_lost_retransmission(cx);
            }
            update
        } else {
            loss.holes.forget_sacked();
            Update::default()
        };
        let ack = Ack { heard, update, sack_recovery };
        if heard.th_ack <= self.snd.una {
            return self.no_new_ack(cx, segment, &ack, rule);
        }
        self.snd.dup_acks = 0;
        if self.also_counts_as_duplicate(&ack, rule) {
            self.snd.dup_acks = 1;
            cx.emit(|| Event::DupAck { count: 1 });
            let maxseg = self.mss();
            if rule.newsack
                && !self.cc.in_recovery()
                && matches!(&self.snd.repair, Repair::Holes(loss) if loss.much_reported(maxseg))
            {
                self.enter_recovery(cx, &ack, rule);
            }
        }
        if heard.th_ack < self.cc.recovery_point() && self.cc.in_recovery() {
            self.on_partial_ack(cx, &ack, rule);
        }
        self.advance_una(cx, segment, seq, heard, rule);
        Then::Window
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
    }

    /// It advances `snd_una` and reports: RFC 6675 counts that as a duplicate.
    fn also_counts_as_duplicate(&self, ack: &Ack<'_>, rule: &HolesRule) -> bool {
        let changed = ack.update.changed;
        match rule.duplicates {
            DuplicateRule::ChangesScoreboard => ack.heard.sacks && changed != Changed::None,
            DuplicateRule::AnyWhileEmpty => {
                // After a timeout only what shows a new loss does, and nothing while the flight is
                // being resent.
                let news = match self.snd.shift {
                    0 => changed != Changed::None,
                    _ => changed == Changed::NewLoss,
                };
                ack.sack_recovery && news && self.snd.nxt == self.snd.max
            }
        }
    }

    /// `th_ack <= snd_una`.
    fn no_new_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &Ack<'_>,
        rule: &HolesRule,
    ) -> Then {
        let heard = ack.heard;
        if heard.data || !(heard.wnd == self.snd.wnd || self.link.sack) {
            return Then::Window;
        }
        if segment.flags.has(Flags::FIN) && self.rcv.fin.is_none() {
            // The peer closes: no duplicate.
            self.snd.dup_acks = 0;
            return Then::Window;
        }
        let must_change = match rule.duplicates {
            DuplicateRule::ChangesScoreboard => self.link.sack,
            DuplicateRule::AnyWhileEmpty => ack.sack_recovery,
        };
        if heard.th_ack != self.snd.una || (must_change && ack.update.changed == Changed::None) {
            return Then::Window;
        }
        if !self.timers.runs(Purpose::Retransmit) {
            self.snd.dup_acks = 0;
            return Then::Window;
        }
        self.on_duplicate_ack(cx, ack, rule)
    }

    fn on_duplicate_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        ack: &Ack<'_>,
        rule: &HolesRule,
    ) -> Then {
        self.snd.dup_acks += 1;
        let count = self.snd.dup_acks;
        cx.emit(|| Event::DupAck { count });
        let maxseg = self.mss();
        if count > DUP_THRESHOLD || self.cc.in_recovery() {
            self.count_duplicate(cx, ack.heard);
            if self.link.sack && self.cc.in_recovery() {
                self.holes_prr(cx, ack);
            } else {
                // No PRR without SACK (`V_tcp_do_prr && TF_SACK_PERMIT`).
                self.overrule_window(Bytes(self.cwnd() + maxseg));
                self.emit_window(cx, Cause::Recovering);
            }
            self.call_output();
            return Then::Drop;
        }
        let much = self.link.sack
            && matches!(&self.snd.repair, Repair::Holes(loss) if loss.much_reported(maxseg));
        if count == DUP_THRESHOLD || much {
            self.enter_recovery(cx, ack, rule);
            return Then::Drop;
        }
        if self.cfg.profile.limited_transmit {
            self.count_duplicate(cx, ack.heard);
            self.limited_transmit(cx, rule);
            return Then::Drop;
        }
        Then::Window
    }

    /// A recovery begins: the first hole or segment is retransmitted at once, the rest as PRR or
    /// duplicates give room.
    fn enter_recovery<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, ack: &Ack<'_>, rule: &HolesRule) {
        let maxseg = self.mss();
        let (una, nxt, max) = (self.snd.una, self.snd.nxt, self.snd.max);
        self.totals.fast_recoveries += 1;
        self.snd.dup_acks = DUP_THRESHOLD;
        self.outlast_ecn_episode();
        let by_holes = match rule.duplicates {
            DuplicateRule::ChangesScoreboard => self.link.sack,
            DuplicateRule::AnyWhileEmpty => ack.sack_recovery,
        };
        let mut congested = self.congested(cx.now, Sign::Loss);
        if by_holes && rule.recovers_to_nxt {
            congested.snd_max = nxt;
        }
        let change = self.cc.on_congested(&congested);
        self.count_duplicate(cx, ack.heard);
        self.timers.stop(Purpose::Retransmit);
        self.snd.timed = None;
        let loss = match &mut self.snd.repair {
            Repair::Holes(loss) => loss,
            _ => return,
        };
        loss.holes.bound_fack(una, max);
        let delivered = match rule.prr {
            PrrRule::Rfc6937 => loss.holes.sacked_bytes(),
            PrrRule::Rfc6937bis if ack.sack_recovery => maxseg,
            PrrRule::Rfc6937bis => (max - una).min(u64::from(DUP_THRESHOLD) * maxseg),
        };
        loss.prr.begin(nxt.since(una).get().max(1), delivered);
        if by_holes {
            self.cc.set_window(Bytes(maxseg));
            self.note(cx, change, Cause::FastRetransmit);
            self.output_now(cx);
            return;
        }
        self.snd.nxt = ack.heard.th_ack;
        self.snd.resend_cause = Cause::FastRetransmit;
        self.overrule_window(Bytes(maxseg));
        self.emit_window(cx, Cause::FastRetransmit);
        self.output_now(cx);
        let ssthresh = self.cc.control().ssthresh.map_or(0, Bytes::get);
        let left = self.snd.dup_acks - self.snd.limited.min(DUP_THRESHOLD);
        self.overrule_window(Bytes(ssthresh + maxseg * u64::from(left)));
        self.snd.nxt = self.snd.nxt.max(nxt);
        self.note(cx, change, Cause::FastRetransmit);
    }

    /// The first and the second duplicate: each releases a segment (RFC 3042).
    fn limited_transmit<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, rule: &HolesRule) {
        let (maxseg, before, cwnd) = (self.mss(), self.snd.max, self.cwnd());
        if self.snd.dup_acks == 1 {
            self.snd.limited = 0;
        }
        let flight = self.snd.nxt.since(self.snd.una).get();
        let resending = self.snd.nxt < self.snd.max || self.snd.shift > 0;
        let from_window = rule.limited == LimitedRule::WindowWhileResending && resending;
        let base = if from_window { cwnd } else { flight };
        let more = u64::from(self.snd.dup_acks.saturating_sub(self.snd.limited)) * maxseg;
        self.overrule_window(Bytes(base + more));
        let owes_ack = rule.limited == LimitedRule::WindowWhileResending && self.rcv.ack_now;
        if self.snd.buffer.used() + u64::from(rule.limited_without_data) > flight || owes_ack {
            self.emit_window(cx, Cause::Recovering);
            self.output_now(cx);
        }
        let sent = self.snd.max.since(before).get();
        if sent > maxseg {
            self.snd.limited = 2;
        } else if sent > 0 {
            self.snd.limited += 1;
        }
        self.overrule_window(Bytes(cwnd));
        self.emit_window(cx, Cause::Recovering);
    }

    /// An acknowledgment advances in recovery, but not to its end; `snd_una` and `snd_wnd` are still
    /// the old ones when the kernel calls tcp_output.
    fn on_partial_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, ack: &Ack<'_>, rule: &HolesRule) {
        self.timers.stop(Purpose::Retransmit);
        self.snd.timed = None;
        let th_ack = ack.heard.th_ack;
        if !self.link.sack {
            self.newreno_partial_ack(cx, th_ack);
            return;
        }
        if ack.heard.sacks || rule.prr == PrrRule::Rfc6937 {
            self.holes_prr(cx, ack);
        } else {
            self.holes_partial_ack(cx, th_ack);
        }
        self.rcv.ack_now = true;
        self.output_now(cx);
    }

    /// tcp_newreno_partial_ack: the next segment, then the window deflated by what was acknowledged.
    fn newreno_partial_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, th_ack: Offset) {
        let (nxt, cwnd, maxseg) = (self.snd.nxt, self.cwnd(), self.mss());
        let acked = th_ack - self.snd.una;
        self.snd.nxt = th_ack;
        self.snd.resend_cause = Cause::PartialAck;
        self.overrule_window(Bytes(maxseg + acked));
        self.rcv.ack_now = true;
        self.emit_window(cx, Cause::Recovering);
        self.output_now(cx);
        self.snd.nxt = self.snd.nxt.max(nxt);
        self.overrule_window(Bytes(cwnd.saturating_sub(acked) + maxseg));
        self.emit_window(cx, Cause::Recovering);
    }

    /// `process_ACK`: round trip, timer, controller, `snd_una`, the end of a recovery.
    fn advance_una<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        heard: &Heard,
        rule: &HolesRule,
    ) {
        let ack = heard.th_ack;
        let bytes = ack - self.snd.una;
        let recovering = self.cc.in_recovery();
        let early = rule.settle == SettleRule::BeforeCounting;
        if recovering && early && ack >= self.cc.recovery_point() {
            self.settle(cx, ack, (self.snd.max - ack) as i64);
        }
        self.undo_bad_timeout(cx, segment, rule);
        let mut delivered = Delivered::default();
        self.snd.map.acknowledge(ack, |piece| delivered.add(piece));
        let samples = self.snd.rtt_samples;
        self.take_rtt(cx, segment, ack, &delivered);
        if self.snd.rtt_samples != samples {
            self.snd.shift = 0;
        }
        if ack == self.snd.max {
            self.timers.stop(Purpose::Retransmit);
            self.call_output();
        } else if !self.timers.runs(Purpose::Persist) {
            self.arm_retransmit(cx.now);
        }
        let acked = Acked {
            una: ack,
            bytes,
            packets: delivered.packets as u32,
            ends_recovery: recovering && !self.cc.in_recovery(),
            ..self.acked(cx, heard)
        };
        let change = self.cc.on_acked(&acked);
        // Step 6 takes the window of a segment that is not old; else what was acknowledged is off.
        let wnd = if self.snd.wl1 <= seq {
            heard.wnd
        } else {
            self.snd.wnd.saturating_sub(bytes.min(self.snd.buffer.used()))
        };
        self.advance(cx, ack, wnd, heard.nsegs, change);
        if let Some(end) = self.snd.ecn_episode {
            if ack > end {
                self.end_ecn_episode(cx, ack);
            }
        } else if self.cc.in_recovery() && ack >= self.cc.recovery_point() {
            // A timeout just undone may have brought back a recovery that is over.
            if early {
                self.cc.leave_recovery();
            } else {
                self.settle(cx, ack, self.computed_pipe());
            }
        }
    }

    /// The first timeout in a row was a mistake: an acknowledgment echoes a timestamp older than what
    /// was last sent since (`t_badrxtwin`).
    fn undo_bad_timeout<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        rule: &HolesRule,
    ) {
        let Some(resent) = self.snd.timeout_stamp else { return };
        let echo = segment.timestamps.map_or(0, |stamps| stamps.ecr);
        let older = echo != 0 && (echo.wrapping_sub(resent) as i32) < 0;
        if self.snd.shift != 1 || !older {
            return;
        }
        self.snd.timeout_stamp = None;
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::SpuriousTimeout));
        self.totals.spurious += 1;
        self.snd.nxt = self.snd.max;
        if rule.undo_ends_backoff {
            self.snd.shift = 0;
        }
        self.note(cx, change, Cause::Undone);
    }

    /// cc_post_recovery.
    fn settle<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, th_ack: Offset, pipe: i64) {
        let max = self.snd.max;
        let loss = holes_of!(self);
        loss.holes.bound_fack(th_ack, max);
        // An `int` is compared with an `uint32_t`: a negative pipe is large.
        let pipe = u64::from(pipe as u32);
        let change = self.cc.on_recovered(&Recovered { th_ack, pipe });
        let loss = holes_of!(self);
        loss.prr.prr_out = 0;
        if loss.rule.settle == SettleRule::AfterAdvancing {
            loss.prr.prr_delivered = 0;
            loss.holes.forget_delivered();
        }
        self.note(cx, change, Cause::Recovered);
    }

    /// cc_ack_received with CC_DUPACK: FreeBSD's CUBIC samples the smoothed round trip.
    fn count_duplicate<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, heard: &Heard) {
        let acked = self.acked(cx, heard);
        self.cc.on_duplicate(&acked);
    }

    fn acked<R: Recorder>(&mut self, cx: &Cx<'_, R>, heard: &Heard) -> Acked {
        Acked {
            now: cx.now,
            ticks: self.clock.tick(cx.now),
            rtt: self.snd.rtt_sample.take(),
            srtt: self.smoothed(),
            snd_nxt: self.snd.nxt,
            una: self.snd.una,
            bytes: 0,
            packets: 0,
            nsegs: heard.nsegs,
            ends_recovery: false,
            resending: self.snd.nxt != self.snd.max,
            snd_wnd: self.snd.wnd,
            window_limited: self.snd.window_limited,
            max_packets_out: self.snd.max_packets_out as u32,
        }
    }

    /// Step 6: the window counts if its segment is not older than the last that did.
    fn take_window(&mut self, seq: Offset, ack: Offset, wnd: u64) {
        let snd = &mut self.snd;
        let newer = snd.wl1 < seq
            || (snd.wl1 == seq && (snd.wl2 < ack || (snd.wl2 == ack && wnd > snd.wnd)));
        if !newer {
            return;
        }
        snd.wnd = wnd;
        snd.max_wnd = snd.max_wnd.max(wnd);
        (snd.wl1, snd.wl2) = (seq, ack);
        self.call_output();
    }
}
