//! The reordering timer, the tail loss probe, and the timeout.

use core::hint::cold_path;

use cc::Controller;
use machine::Cx;
use record::{Cause, Purpose, Recorder};
use recovery::rack::RackInput;
use recovery::sendmap::SendMap;
use recovery::tlp::PtoInput;
use recovery::undo::tsecr_before;
use units::{Duration, Instant, Offset, unlikely};

use super::detector::RackDetector;
use super::prr_state::PrrState;
use super::recovery_state::any_retransmitted;
use super::state::{AckAccounting, Frto, RackTlpState};
use crate::connection::Connection;
use crate::profile::ProbeRule;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::tcp_state::TcpState;
use crate::timers::Timers;

/// The connection at a retransmission timeout.
#[derive(Debug, Clone, Copy)]
struct TimeoutInput {
    /// For the loss detection.
    rack: RackInput,
    una: Offset,
    max: Offset,
    /// Not the first timeout of this packet.
    repeated: bool,
    /// The window is being reduced for an ECN echo.
    in_cwr: bool,
    /// The recovery point of the reduction in progress, if any.
    recovery_point: Option<Offset>,
}

impl RackTlpState {
    /// Marks the flight lost; returns whether the receiver has dropped data that it had SACKed.
    fn on_timeout(&mut self, map: &mut SendMap, input: &TimeoutInput) -> bool {
        let renews = self.renews_undo(input);
        let disorder = input.recovery_point.is_none() && self.episode.timeout_until.is_none();
        self.begin_frto(input.in_cwr, input.repeated);
        if self.reno {
            self.forget_reno(map);
        }
        let reneged = map.reneged();
        if reneged {
            map.clear_sacked();
            if self.detector.supports_undo() {
                map.mark_all_lost();
            }
        }
        self.episode.held = false;
        self.holds_back = false;
        self.detector.on_timeout(map, &input.rack);
        if self.detector.supports_undo() && disorder {
            self.reordering.on_timeout(map.sums().sacked.packets);
        }
        self.episode.prr = PrrState::None;
        if renews {
            // tcp_init_undo
            let retransmitted = map.sums().retransmission.packets;
            let repeated = retransmitted + u64::from(self.tlp.repeated());
            self.episode.undo.begin_again(input.una, repeated, true);
        }
        self.tlp.forget();
        self.probe_due = false;
        self.planned = None;
        self.episode.timeout_until = Some(input.max);
        self.episode.proven = false;
        reneged
    }

    /// Does a timeout begin another loss episode, which may be undone as a whole: outside of recovery, beyond its
    /// recovery point, or after the repair of the last timeout has begun (tcp_enter_loss)?
    fn renews_undo(&self, input: &TimeoutInput) -> bool {
        let point = match self.episode.timeout_until {
            Some(_) if !input.repeated => None,
            Some(end) => Some(end),
            None => input.recovery_point,
        };
        !self.detector.supports_undo() || point.is_none_or(|point| point <= input.una)
    }
}

impl SendSide {
    /// Handles the reordering timer.
    pub(crate) fn on_reorder_timer<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        if let Some(loss) = self.stack.rack_tlp() {
            loss.holds_back = false;
        }
        self.begin_sample(conn, cx.now, false);
        let found = self.detect_losses(cx.now, false);
        self.report_lost(cx.now, 0);
        if self.has_one_timer() {
            // tcp_rack_reo_timeout
            self.rearm_timeout(conn, timers, cx.now, true);
        } else {
            self.watch_reordering(timers, cx.now, &found);
        }
        let recovered = self.in_fast_recovery();
        self.act_on_losses(conn, cx, &found, self.una, true);
        if self.in_fast_recovery() && !recovered {
            self.count_timer_delivery(conn, cx);
        }
        self.call_output();
    }

    /// Counts one packet as delivered in a recovery entered by the timer (tcp_rack_reo_timeout of
    /// Linux).
    fn count_timer_delivery<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        if self.has_one_timer() {
            let account = AckAccounting { packets: 1, ..AckAccounting::default() };
            self.apply_prr(conn, cx, &account, false, false);
        }
    }

    /// Handles the probe timer: no acknowledgment for about two round trips.
    pub(crate) fn on_probe_timer<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        if conn.state == TcpState::SynReceived {
            // tcp_schedule_loss_probe: not before the handshake of a Fast Open ends.
            return;
        }
        if self.peer.wnd == 0 {
            // The peer has closed its window since; window probes take over.
            return;
        }
        self.begin_sample(conn, cx.now, false);
        let one_timer = self.has_one_timer();
        let Some(loss) = self.stack.rack_tlp() else { return };
        if one_timer && loss.tlp.probing() {
            // tcp_send_loss_probe: one probe is outstanding.
            self.rearm_timeout(conn, timers, cx.now, true);
            return;
        }
        if one_timer
            && self.is_rate_based()
            && self.probes_with_new_data(conn)
            && self.pacing_blocks(conn, timers, cx.now)
        {
            // tcp_write_xmit: pacing holds back a probe of new data, which is not tried again.
            self.rearm_timeout(conn, timers, cx.now, true);
            return;
        }
        let Some(loss) = self.stack.rack_tlp() else { return };
        loss.probe_due = true;
        // The probe itself schedules no other.
        loss.planned = Some(cx.now);
        // The timeout comes one timeout after the probe.
        self.arm_retransmit(conn, timers, cx.now);
        self.call_output();
    }

    /// Schedules a tail loss probe if data is in flight, nothing is SACKed, and no recovery is in
    /// progress (RFC 8985 section 7.2; tcp_schedule_loss_probe), not later than the timeout of the
    /// first packet in flight, or, if an acknowledgment is `advancing`, of one sent now.
    #[inline(always)]
    pub(crate) fn plan_probe_timer(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        advancing: bool,
    ) {
        if let Some(quiet) = self.unplanned_probe(now) {
            self.replan_probe_timer(conn, timers, now, quiet, advancing);
        } else if unlikely(self.rates.is_some()) && self.probes_at(now) {
            // tcp_send_loss_probe restarts the timeout once the probe is sent.
            self.arm_retransmit(conn, timers, now);
        }
    }

    /// [`SendSide::plan_probe_timer`], inlined into the fast path of acknowledgments.
    #[inline(always)]
    pub(super) fn plan_probe_timer_inline(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) {
        if let Some(quiet) = self.unplanned_probe(now) {
            self.replan_probe_timer_inline(conn, timers, now, quiet, true);
        }
    }

    /// Whether a probe may be scheduled; `None` if its time is unchanged.
    #[inline(always)]
    fn unplanned_probe(&self, now: Instant) -> Option<bool> {
        let Stack::RackTlp(loss) = &self.stack else { return None };
        let quiet = self.may_probe();
        let settled = self.scoreboard.sums().all.packets > 1 || loss.tlp.probing();
        if quiet && settled && loss.planned == Some(now) {
            // Nothing that the time depends on has changed.
            return None;
        }
        Some(quiet)
    }

    /// Do the conditions of a tail loss probe hold?
    #[inline(always)]
    pub(super) fn may_probe(&self) -> bool {
        let Stack::RackTlp(loss) = &self.stack else { return false };
        let sums = self.scoreboard.sums();
        sums.all.packets > 0
            && (sums.sacked.packets | sums.lost.packets) == 0
            && !self.in_fast_recovery()
            && self.peer.wnd > 0
            && self.rexmt.shift == 0
            && loss.episode.timeout_until.is_none()
            && (loss.tlp.allowed() || matches!(loss.detector, RackDetector::Linux(_)))
            && !loss.reno
    }

    fn replan_probe_timer(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        quiet: bool,
        advancing: bool,
    ) {
        self.replan_probe_timer_inline(conn, timers, now, quiet, advancing);
    }

    #[inline(always)]
    fn replan_probe_timer_inline(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        quiet: bool,
        advancing: bool,
    ) {
        let single_packet = self.scoreboard.sums().all.packets == 1;
        let mut rto = self.rtt.estimator.rto();
        let sent = self.scoreboard.first().map_or(now, |head| head.sent_at());
        let left = (sent + rto).since(now);
        if !advancing {
            let left = match self.has_one_timer() {
                true => super::xmit_timer::rto_left(sent, rto, now),
                false => left,
            };
            rto = if left > Duration::ZERO { left } else { rto };
        }
        let (delay, paced) = (self.pacing_delay(conn, now), self.rates.is_some());
        let Some(loss) = self.stack.rack_tlp() else { return };
        if !quiet || !conn.cfg.profile.loss_probes {
            loss.planned = None;
            timers.stop(Purpose::LossProbe);
            return;
        }
        let pto =
            loss.pto.pto(&PtoInput { srtt: self.sender.rtt.estimator.srtt(), single_packet, rto });
        // What is sent now does not change it, unless what is left of the timeout is shorter, or pacing delays it.
        loss.planned = (!single_packet && !paced && (!advancing || pto <= left)).then_some(now);
        match loss.detector {
            // Linux rounds to jiffies, the RFC does not round.
            RackDetector::Linux(_) => {
                // There is one timer: that of reordering is forgotten.
                timers.stop(Purpose::Reorder);
                timers.set_ticks(Purpose::LossProbe, &conn.clock, now, pto + delay);
            }
            RackDetector::Rfc(_) | RackDetector::External(_) => {
                let at = now + pto.max(Duration::from_micros(1));
                timers.set(Purpose::LossProbe, at);
            }
        }
    }

    /// Handles a retransmission timeout: marks the flight lost by the system's rules and
    /// retransmits its first packet at once.
    pub(crate) fn rack_tlp_timeout(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) {
        timers.stop(Purpose::Reorder);
        timers.stop(Purpose::LossProbe);
        let recovery_point = match self.rexmt.cwr_end {
            Some(end) => Some(end),
            None => self.cc.in_recovery().then(|| self.cc.recovery_point()),
        };
        let input = TimeoutInput {
            rack: self.standing(now),
            una: self.una,
            max: self.max,
            repeated: self.rexmt.shift > 1,
            in_cwr: self.rexmt.cwr_end.is_some(),
            recovery_point,
        };
        let SendSide { stack, sender: Sender { scoreboard, rates, .. } } = self;
        let Some(loss) = stack.rack_tlp() else { return };
        if loss.on_timeout(scoreboard, &input)
            && let Some(rates) = rates
        {
            rates.reneged = true;
        }
        if loss.detector.supports_undo() {
            // tcp_enter_loss
            self.ecn.on_reduced();
        }
        self.report_lost(now, 0);
        if self.peer.wnd > 0 || matches!(conn.cfg.profile.probe, ProbeRule::Empty { .. }) {
            self.rexmt.head = Some(Cause::Timeout);
        } else {
            // A closed window is probed, not sent into (tcp_output, `watch_window`).
            self.nxt = self.una;
            self.rexmt.cause = Cause::Timeout;
        }
    }

    /// Enters the state in which lost packets are retransmitted, without a timeout: nothing of it can be undone
    /// (tcp_non_congestion_loss_retransmit).
    pub(crate) fn begin_mtu_repair(&mut self) {
        let (outstanding, max) = (any_retransmitted(&self.scoreboard), self.max);
        self.rexmt.cwr_end = None;
        let Stack::RackTlp(loss) = &mut self.stack else { return };
        loss.frto = Frto::OFF;
        loss.holds_back = false;
        loss.episode.held = false;
        loss.episode.prr = PrrState::None;
        loss.episode.undo.forget(outstanding);
        loss.episode.timeout_until = Some(max);
    }

    /// Undoes a timeout if the first acknowledgment after it echoes a timestamp older than the retransmission: the
    /// original had arrived (RFC 3522). Linux has no such rule of its own.
    pub(super) fn undo_timeout_by_echo<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        echo: Option<u32>,
    ) {
        let Some(sent) = self.rexmt.timeout_stamp.take() else { return };
        cold_path();
        if self.rexmt.shift == 1 && echo.is_some_and(|echo| tsecr_before(echo, sent)) {
            self.undo_timeout(conn, cx);
        }
    }
}
