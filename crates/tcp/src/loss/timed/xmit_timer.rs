//! The one timer of a Linux sender: it waits for reordering, for a tail loss probe or for the retransmission
//! timeout, and whichever is set replaces the one before.
//!
//! Source: tcp_ack, tcp_clean_rtx_queue, tcp_set_xmit_timer and tcp_rearm_rto of tcp_input.c,
//! tcp_rack_mark_lost and tcp_rack_reo_timeout of tcp_recovery.c, tcp_xmit_retransmit_queue of tcp_output.c
//! (Linux 6.18). The probe's own time is set in `timers`.

use record::Purpose;
use units::{Duration, Instant, Offset};

use super::judge::Judge;
use super::{Account, LINUX_TIMEOUT_MIN};
use crate::endpoint::Endpoint;
use crate::loss::Repair;

impl Endpoint {
    /// Does it have one timer for all, as Linux does?
    pub(super) fn has_one_timer(&self) -> bool {
        matches!(&self.snd.repair, Repair::Timed(loss) if matches!(loss.judge, Judge::Linux(_)))
    }

    /// Does the timer wait for reordering or for a probe (`icsk_pending`)?
    pub(super) fn awaits_reordering_or_probe(&self) -> bool {
        self.timers.runs(Purpose::Reorder) || self.timers.runs(Purpose::LossProbe)
    }

    /// Does the acknowledgment set the timer (`FLAG_SET_XMIT_TIMER`)? One that only reports does if what it
    /// reports left before the first packet in flight, which may have been retransmitted since, did.
    pub(super) fn sets_timer(&self, advances: bool, account: &Account) -> bool {
        let head = self.snd.map.first().map(|head| head.sent_at());
        advances
            || account.reported.oldest_sent_once().zip(head).is_some_and(|(sent, head)| sent < head)
    }

    /// Sets the timer behind an acknowledgment. `reordering`: some packets may be lost after this time;
    /// `sets`: the answer of [`Endpoint::sets_timer`]; `awaited`: that of
    /// [`Endpoint::awaits_reordering_or_probe`] before.
    pub(super) fn set_timer(
        &mut self,
        now: Instant,
        reordering: Option<Duration>,
        sets: bool,
        awaited: bool,
    ) {
        if let Some(after) = reordering {
            let at = self.clock.deadline(now, after + LINUX_TIMEOUT_MIN);
            self.timers.set(Purpose::Reorder, at);
            self.timers.stop(Purpose::Retransmit);
        } else if sets {
            self.timers.stop(Purpose::Reorder);
            self.rearm_timeout(now, awaited);
        }
    }

    /// tcp_rearm_rto: the timeout counts from now, or, where the timer `awaited` something else, from when the
    /// first packet in flight was last sent.
    pub(super) fn rearm_timeout(&mut self, now: Instant, awaited: bool) {
        let Some(head) = self.snd.map.first() else {
            self.timers.stop(Purpose::Retransmit);
            return;
        };
        if !awaited {
            self.arm_retransmit(now);
            return;
        }
        let left = (head.sent_at() + self.rtt.rto()).since(now).max(Duration::from_micros(1));
        self.timers.set_ticks(Purpose::Retransmit, &self.clock, now, left);
    }

    /// tcp_xmit_retransmit_queue: the first packet in flight, which begins at `at`, was retransmitted.
    pub(crate) fn head_resent(&mut self, now: Instant, at: Offset) {
        if at == self.snd.una && self.has_one_timer() && !self.timers.runs(Purpose::Reorder) {
            self.arm_retransmit(now);
        }
    }
}
