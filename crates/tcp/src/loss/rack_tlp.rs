//! Loss detection by transmission times: RACK-TLP (RFC 8985) as the RFC specifies it, and as Linux
//! implements it (tcp_ack, tcp_fastretrans_alert). FreeBSD's RACK stack has its own steps
//! (`super::rack`).
//!
//! All acknowledgments are processed in the same steps: deliveries (`account`), end or undo of the
//! recovery, loss detection, PRR (`recovery_state`, `prr_state`). `detector` is the loss detector
//! of each system; `timers` has the reordering timer, the probe and the timeout. Linux only: `frto`
//! (spurious timeouts), `reneging` (a receiver drops SACKed data), `reports` (D-SACKs and
//! reordering).

mod cwr;
mod deliveries;
mod detector;
mod fast_path;
mod frto;
mod prr_state;
mod recovery_state;
mod reneging;
mod reno;
mod reports;
mod send;
pub(crate) mod state;
mod timers;
mod xmit_timer;

use core::hint::cold_path;

use cc::{AckEvent, CongestionSignal as Sign, Controller, RecoveryEnd, WindowChange};
use machine::Cx;
use packet::Segment;
use record::{Cause, Event, Purpose, Recorder};
use recovery::dsack::{self};
use recovery::rack::{RackInput, RackLosses};
use recovery::tlp::{ProbeAck, TlpOutcome};
use units::{Duration, Instant, Offset, unlikely};

use crate::connection::Connection;
use crate::kernel_view::AppliedAck;
use crate::rates::AckDelivery;
use crate::received_ack::ReceivedAck;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::timers::Timers;
use deliveries::AckContext;
use detector::RackDetector;
use state::{AckAccounting, RackTlpState};

/// Linux adds this to the reordering timer (`TCP_TIMEOUT_MIN_US`, tcp_rack_mark_lost).
const LINUX_TIMEOUT_MIN: Duration = Duration::from_millis(2);

/// The connection when a D-SACK or the answer to a probe arrives.
#[derive(Debug, Clone, Copy)]
struct DuplicateInput {
    una: Offset,
    max: Offset,
    mss: u64,
    /// The acknowledgment changes nothing and has no SACK blocks.
    dup_ack_without_sack: bool,
    /// Packets of a D-SACK that count as delivered.
    delivered: u64,
}

impl RackTlpState {
    /// `snd_nxt` after the tail loss probe that is outstanding (`tlp_high_seq`).
    pub(crate) fn probe_end(&self) -> Option<Offset> {
        self.tlp.probe_end()
    }

    /// Processes a D-SACK, and returns the outcome of a tail loss probe.
    fn on_duplicate(&mut self, received: &ReceivedAck, input: &DuplicateInput) -> TlpOutcome {
        let duplicate = dsack::duplicate(received.th_ack, received.blocks());
        let verdict = self.tlp.on_ack(&ProbeAck {
            th_ack: received.th_ack,
            duplicate,
            dup_ack_without_sack: input.dup_ack_without_sack,
        });
        if let Some(block) = duplicate {
            cold_path();
            let packets = block.1.since(block.0).get().div_ceil(input.mss).max(1);
            // Linux ignores a D-SACK for what was never retransmitted (tcp_check_dsack).
            if input.delivered > 0 || !self.detector.supports_undo() {
                self.episode.undo.on_duplicate(block, packets, input.una);
            }
            // A D-SACK for a probe is no evidence of reordering.
            if verdict != TlpOutcome::NoLoss {
                self.detector.on_duplicate(input.una, input.max);
            }
        }
        verdict
    }
}

impl SendSide {
    /// Processes an acceptable acknowledgment.
    pub(crate) fn rack_tlp_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        received: &ReceivedAck,
    ) {
        let advances = received.th_ack > self.una;
        let echoed = self.echoes_congestion(segment) && received.th_ack >= self.una;
        let reno = self.is_reno();
        let duplicates = if unlikely(reno) { self.reno_duplicates(received) } else { 0 };
        let queued = self.scoreboard.sums().all.packets;
        let has_news = advances
            || !received.blocks().is_empty()
            || duplicates > 0
            || (self.cc.uses_view() && queued > 0);
        let probing = self.stack.rack_tlp().is_some_and(|loss| loss.tlp.probing());
        if !has_news && !self.measures_rates() && !echoed && !probing {
            return;
        }
        // tcp_ack: with nothing outstanding only a D-SACK and a probe are looked at (`no_queue`).
        let idle = self.scoreboard.is_empty() && received.blocks().is_empty();
        if idle && !advances && self.has_one_timer() && !probing {
            return;
        }
        self.begin_rate_sample();
        self.begin_sample(conn, cx.now, echoed);
        let echo =
            segment.timestamps.filter(|_| conn.negotiated.timestamps).map(|stamps| stamps.ecr);
        if advances {
            self.undo_timeout_by_echo(conn, cx, echo);
        }
        let (one_timer, awaited) = (self.has_one_timer(), self.awaits_reordering_or_probe(timers));
        // Of an acknowledgment before snd_una Linux takes the SACK blocks and what they show to be lost,
        // and no more (`old_ack` of tcp_ack).
        let old = one_timer && received.th_ack < self.una;
        let account = self.account(conn, cx.now, received, echo, duplicates);
        if account.newly_reported > 0 || duplicates > 0 {
            let count = self.scoreboard.sums().sacked.packets.min(u64::from(u32::MAX)) as u32;
            cx.emit(|| Event::DupAck { count });
        }
        if !old {
            self.take_delivered_rtt(conn, cx, segment, received.th_ack, &account);
            let applied = AppliedAck {
                una: received.th_ack,
                acked: queued.saturating_sub(self.scoreboard.sums().all.packets),
                delivered: account.packets,
                wnd: received.wnd,
                echoed,
                blocks: !received.blocks().is_empty(),
            };
            self.report_applied(conn, cx, segment, &applied);
        }
        if advances {
            self.rexmt.shift = 0;
            if received.th_ack == self.max {
                timers.stop(Purpose::Retransmit);
            } else if !one_timer {
                self.arm_retransmit(conn, timers, cx.now);
            }
        }
        self.process_duplicate(conn, cx, received, &account);
        if self.tracks_tx() {
            self.note_probe_acked(received.th_ack);
        }
        let repaired = reno && self.repairs_timeout();
        self.check_timeout(conn, cx, received, &account, duplicates, echo);
        let reno_input = unlikely(reno).then(|| reno::RenoInput::of(self, received));
        let settled = self.settle_recovery(conn, cx, received, echo);
        if let Some(loss) = self.stack.rack_tlp() {
            loss.holds_back = settled;
        }
        let lost = match &reno_input {
            Some(before) => self.settle_without_sack(received, before, repaired),
            None => RackLosses::default(),
        };
        let reneged = self.check_reneging(conn, timers, cx.now, advances);
        if unlikely(reneged)
            && let Some(loss) = self.stack.rack_tlp()
        {
            loss.holds_back = true;
        }
        let retransmitted = self.scoreboard.sums().retransmission.packets;
        // Reneging waits for its timer (tcp_fastretrans_alert returns).
        let found = match reneged || settled {
            true => RackLosses::default(),
            false if unlikely(lost.packets > 0) => lost,
            false if unlikely(reno) => reno::detect_without_sack(self, received),
            false => self.detect_losses(cx.now, true),
        };
        self.report_lost(cx.now, account.packets);
        // FLAG_LOST_RETRANS
        let lost_again = self.scoreboard.sums().retransmission.packets < retransmitted;
        let sets = !old && self.sets_timer(advances, &account);
        if !one_timer {
            self.watch_reordering(timers, cx.now, &found);
        } else if !reneged {
            self.set_timer(conn, timers, cx.now, found.reo_timeout, sets, awaited);
        }
        if !settled {
            let una = received.th_ack.max(self.una);
            self.act_on_losses(conn, cx, &found, una, lost_again);
        }
        if unlikely(echoed) {
            self.enter_cwr(conn, cx);
        }
        self.report_order(conn, cx.now, received.th_ack);
        let reduces = self.cc.in_recovery() && (one_timer || self.rexmt.cwr_end.is_none());
        if (reduces || self.holds_recovery()) && !old {
            self.apply_prr(conn, cx, &account, advances, found.packets > 0);
        }
        if advances {
            let change = self.grow_unless_held(
                conn,
                cx.now,
                received.th_ack,
                account.packets,
                received.nsegs,
            );
            self.advance(conn, cx, received.th_ack, received.wnd, received.nsegs, change);
        } else if account.newly_reported > 0 && self.grows_on_reports() && !old {
            let change = self.grow_unless_held(
                conn,
                cx.now,
                received.th_ack,
                account.packets,
                received.nsegs,
            );
            self.note(conn, cx, change, Cause::SlowStart);
        }
        if self.has_begun_cwr() {
            self.begin_own_cwr(conn, cx);
        }
        if self.measures_rates() && !old {
            self.end_delivery_sample(conn, cx, &account);
        }
        // tcp_ack schedules a probe only with FLAG_SET_XMIT_TIMER, which a reordering timeout clears.
        if one_timer && found.reo_timeout.is_some() {
            timers.stop(Purpose::LossProbe);
        } else if sets || !one_timer {
            self.plan_probe_timer(conn, timers, cx.now, true);
        }
        self.call_output();
    }

    /// Completes the rate sample of a rate-based controller.
    #[cold]
    fn end_delivery_sample<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        account: &AckAccounting,
    ) {
        let bare = account.newly_reported == 0;
        let delivery = AckDelivery {
            packets: account.packets,
            bare_bytes: if bare { account.changed } else { 0 },
        };
        self.end_rate_sample(conn, cx, &delivery);
    }

    /// Applies the acknowledgment and its blocks to the scoreboard.
    fn account(
        &mut self,
        conn: &Connection,
        now: Instant,
        received: &ReceivedAck,
        echo: Option<u32>,
        reno_duplicates: u64,
    ) -> AckAccounting {
        let recovering = self.in_fast_recovery() || self.holds_recovery();
        let context = AckContext {
            now,
            min_rtt: self.totals.min_rtt.unwrap_or(Duration::ZERO),
            clock: conn.clock,
            echo,
            una: self.una,
            max: self.max,
            mss: conn.mss(),
            max_wnd: self.peer.max_wnd,
            retransmissions: self.totals.retransmitted_packets,
            reno_duplicates,
            recovery_point: recovering.then(|| self.cc.recovery_point()),
        };
        let SendSide { stack, sender: Sender { scoreboard, rates, .. } } = self;
        let Some(loss) = stack.rack_tlp() else { return AckAccounting::default() };
        let rates = rates.as_deref_mut().map(|rates| &mut rates.delivery);
        let account = loss.deliver(scoreboard, rates, received, &context);
        if conn.cfg.tso && account.newly_reported > 0 {
            for &(left, right) in
                received.blocks().iter().filter(|block| block.0 >= received.th_ack)
            {
                self.buffer.on_sacked(left, right);
            }
        }
        account
    }

    /// Processes a D-SACK, and the outcome of a tail loss probe.
    fn process_duplicate<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        account: &AckAccounting,
    ) {
        let probing = self.stack.rack_tlp().is_some_and(|loss| loss.tlp.probing());
        if received.blocks().is_empty() && !probing {
            // No D-SACK, and no probe outstanding.
            return;
        }
        let plain = account.bytes == 0 && received.blocks().is_empty();
        let input = DuplicateInput {
            una: self.una,
            max: self.max,
            mss: conn.mss(),
            dup_ack_without_sack: plain && self.changes_nothing(received),
            delivered: account.duplicates,
        };
        let Some(loss) = self.stack.rack_tlp() else { return };
        let verdict = loss.on_duplicate(received, &input);
        if unlikely(verdict == TlpOutcome::RepairedLoss) && !self.cc.in_recovery() {
            self.report_repaired(cx.now, account.packets);
            // RFC 8985 section 7.4.2: the window is reduced at once, as for any loss.
            // The kernel's state is CWR, not Recovery (tcp_process_tlp_ack).
            let sign = if self.cc.uses_view() { Sign::Ecn } else { Sign::Loss };
            let change = self.sender.cc.on_congested(&self.sender.congested(conn, cx.now, sign));
            self.note(conn, cx, change, Cause::LossProbe);
            if self.has_one_timer() {
                // tcp_process_tlp_ack: tcp_init_cwnd_reduction.
                self.ecn.on_reduced();
            }
            let pipe = self.scoreboard.sums().pipe();
            let change = self.cc.on_recovered(&RecoveryEnd { th_ack: received.th_ack, pipe });
            self.note(conn, cx, change, Cause::Recovered);
        }
    }

    fn standing(&self, now: Instant) -> RackInput {
        let in_recovery = match &self.stack {
            Stack::RackTlp(loss) => self.in_fast_recovery() || loss.episode.timeout_until.is_some(),
            _ => false,
        };
        RackInput {
            now,
            in_recovery,
            min_rtt: self.totals.min_rtt.unwrap_or(Duration::ZERO),
            srtt: self.rtt.estimator.srtt().unwrap_or(Duration::ZERO),
        }
    }

    /// Detects losses after an acknowledgment (`on_ack`), or when the reordering timer fires.
    pub(super) fn detect_losses(&mut self, now: Instant, on_ack: bool) -> RackLosses {
        let standing = || self.standing(now);
        let Stack::RackTlp(loss) = &self.stack else {
            return RackLosses::default();
        };
        if !loss.may_find_losses(&self.scoreboard) {
            return RackLosses::default();
        }
        let standing = standing();
        let SendSide { stack, sender: Sender { scoreboard, .. } } = self;
        let Some(loss) = stack.rack_tlp() else { return RackLosses::default() };
        loss.detect(scoreboard, &standing, on_ack)
    }

    /// Takes a round-trip sample from the packets acknowledged, else from those SACKed.
    fn take_delivered_rtt<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        th_ack: Offset,
        account: &AckAccounting,
    ) {
        let by_ack = account.acked.packets > 0 || th_ack > self.una;
        let Some(loss) = self.stack.rack_tlp() else { return };
        let delivered = match loss.detector {
            RackDetector::Linux(_) => account.acked.with_sacked(&account.reported),
            RackDetector::Rfc(_) | RackDetector::External(_) if by_ack => account.acked,
            RackDetector::Rfc(_) | RackDetector::External(_) => account.reported,
        };
        if delivered.packets == 0 {
            return;
        }
        if by_ack || delivered.oldest_sent().is_some() {
            self.take_rtt(conn, cx, segment, th_ack, &delivered);
            if let Some(loss) = self.stack.rack_tlp() {
                loss.tlp.on_rtt_sample();
            }
        }
    }
}

impl SendSide {
    /// [`Sender::grow`], unless Linux keeps its recovery open.
    #[inline(always)]
    pub(super) fn grow_unless_held(
        &mut self,
        conn: &Connection,
        now: Instant,
        th_ack: Offset,
        packets: u64,
        nsegs: u32,
    ) -> WindowChange {
        if self.holds_recovery() {
            self.rtt.sample = None;
            return WindowChange::None;
        }
        let retransmitting = self.repairs_timeout();
        self.grow(conn, now, th_ack, packets, nsegs, retransmitting)
    }
}

impl Sender {
    /// Sets the reordering timer, where it is separate.
    pub(super) fn watch_reordering(
        &mut self,
        timers: &mut Timers,
        now: Instant,
        found: &RackLosses,
    ) {
        match found.reo_timeout {
            Some(after) => {
                let at = now + after.max(Duration::from_micros(1));
                timers.set(Purpose::Reorder, at);
            }
            None => timers.stop(Purpose::Reorder),
        }
    }

    /// Passes the packets delivered by an acknowledgment to the controller; `snd_una` has not
    /// advanced yet. `retransmitting`: what a timeout lost still is.
    #[inline(always)]
    pub(crate) fn grow(
        &mut self,
        conn: &Connection,
        now: Instant,
        th_ack: Offset,
        packets: u64,
        nsegs: u32,
        retransmitting: bool,
    ) -> WindowChange {
        if self.cc.ignores_ack(self.usage.limited, self.usage.max_packets_out as u32) {
            self.rtt.sample = None;
            return WindowChange::None;
        }
        self.cc.on_acked(&AckEvent {
            now,
            ticks: conn.clock.tick(now),
            rtt: self.rtt.sample.take(),
            srtt: self.smoothed(conn),
            snd_nxt: self.nxt,
            una: th_ack,
            bytes: th_ack - self.una,
            packets: packets.min(u64::from(u32::MAX)) as u32,
            nsegs,
            ends_recovery: false,
            retransmitting,
            snd_wnd: self.peer.wnd,
            window_limited: self.usage.limited,
            max_packets_out: self.usage.max_packets_out as u32,
        })
    }
}
