//! The one timer of a Linux sender: it serves the reordering timeout, the tail loss probe or the
//! retransmission timeout; setting one replaces the previous one.
//!
//! Source: tcp_ack, tcp_clean_rtx_queue, tcp_set_xmit_timer and tcp_rearm_rto of tcp_input.c,
//! tcp_rack_mark_lost and tcp_rack_reo_timeout of tcp_recovery.c, tcp_xmit_retransmit_queue of
//! tcp_output.c (Linux 6.18). The probe's own time is set in `timers`.

use record::Purpose;
use units::{Duration, Instant, Offset};

use super::LINUX_TIMEOUT_MIN;
use super::detector::RackDetector;
use super::state::AckAccounting;
use crate::connection::Connection;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::timers::Timers;

/// tcp_rto_delta_us, in whole microseconds: what is left of the timeout `rto` of the first packet in
/// flight, sent at `sent`; zero if it has passed.
pub(super) fn rto_left(sent: Instant, rto: Duration, now: Instant) -> Duration {
    let micros = |at: Instant| at.as_nanos() / 1_000;
    Duration::from_micros(micros(sent + rto).saturating_sub(micros(now)))
}

impl SendSide {
    /// Does the system have a single timer, as Linux does?
    pub(crate) fn has_one_timer(&self) -> bool {
        matches!(&self.stack, Stack::RackTlp(loss) if matches!(loss.detector, RackDetector::Linux(_)))
    }

    /// Sets the timer after an acknowledgment. `reordering`: the reordering timeout, if packets may
    /// be lost; `sets`: the result of [`SendSide::sets_timer`]; `awaited`: that of
    /// [`SendSide::awaits_reordering_or_probe`] before the acknowledgment.
    pub(super) fn set_timer(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        reordering: Option<Duration>,
        sets: bool,
        awaited: bool,
    ) {
        if let Some(after) = reordering {
            let ticks = conn.clock.ticks(after + LINUX_TIMEOUT_MIN);
            let expires = conn.clock.tick(now) + ticks;
            let at = conn.clock.timer_at(now, ticks);
            if let Stack::RackTlp(loss) = &mut self.stack {
                // __mod_timer leaves a pending timer of the same time in its bucket, however long that is.
                let pending = timers.runs(Purpose::Reorder);
                if !pending || loss.reorder_expires != expires as u16 {
                    loss.reorder_expires = expires as u16;
                    timers.set(Purpose::Reorder, at);
                }
            }
            timers.stop(Purpose::Retransmit);
        } else if sets {
            timers.stop(Purpose::Reorder);
            // tcp_set_xmit_timer: a probe takes the place of the timeout.
            let probes = conn.cfg.profile.loss_probes && self.may_probe();
            self.rearm_timeout(conn, timers, now, awaited && !probes);
        }
    }

    /// tcp_xmit_retransmit_queue: restarts the timeout if the packet retransmitted at `at` is the
    /// first in flight.
    pub(crate) fn head_retransmitted(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        at: Offset,
    ) {
        if at == self.una && self.has_one_timer() && !timers.runs(Purpose::Reorder) {
            self.rearm_after_timeout(conn, timers, now);
            if self.is_rate_based() {
                self.arm_retransmit(conn, timers, now);
            }
        }
    }
}

impl Sender {
    /// Is the timer set for reordering or for a probe (`icsk_pending`)?
    pub(super) fn awaits_reordering_or_probe(&self, timers: &Timers) -> bool {
        timers.runs(Purpose::Reorder) || timers.runs(Purpose::LossProbe)
    }

    /// Does the acknowledgment set the timer (`FLAG_SET_XMIT_TIMER`)? One that only SACKs does if a
    /// packet it SACKs was sent before the last transmission of the first packet in flight.
    pub(super) fn sets_timer(&self, advances: bool, account: &AckAccounting) -> bool {
        let head = self.scoreboard.first().map(|head| head.sent_at());
        advances
            || account.reported.oldest_sent_once().zip(head).is_some_and(|(sent, head)| sent < head)
    }

    /// tcp_rearm_rto: restarts the timeout from now, or, if the timer `awaited` something else,
    /// from the last transmission of the first packet in flight.
    pub(super) fn rearm_timeout(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        awaited: bool,
    ) {
        let Some(head) = self.scoreboard.first() else {
            timers.stop(Purpose::Retransmit);
            return;
        };
        if !awaited {
            self.arm_retransmit(conn, timers, now);
            return;
        }
        let left =
            rto_left(head.sent_at(), self.rtt.estimator.rto(), now).max(Duration::from_micros(1));
        let span = left + self.pacing_delay(conn, now);
        timers.set_ticks(Purpose::Retransmit, &conn.clock, now, span);
    }
}
