//! FreeBSD's default controller.
//!
//! Sources: cc_newreno.c (newreno_ack_received, newreno_cong_signal, newreno_post_recovery,
//! newreno_after_idle), cc.c (newreno_cc_*), and the bookkeeping around them in tcp_input.c
//! (cc_conn_init, cc_ack_received, cc_cong_signal, cc_post_recovery) and tcp_timer.c
//! (tcp_timer_rexmt, what an undo needs). Versions differ by [`Params`] alone.
//!
//! Where it departs from the RFCs it follows the kernel:
//! - Appropriate byte counting (RFC 3465) bounds slow start by `lro_nsegs * L * t_maxseg`, so ACKs
//!   that the host's LRO merged count as one.
//! - A window counts as in use whenever it is not larger than the peer's: a sender short of data
//!   still grows it.
//! - Beyond slow start a window's worth of acknowledged bytes adds one segment; bytes are counted
//!   in recovery too, so that the first ACK after it may add one at once.

mod params;
#[cfg(test)]
mod tests;

use units::{Bytes, Offset};

pub use params::{Counting, Params, TimeoutRule, Unit};

use crate::contract::{
    Acked, Change, Congested, Control, Controller, Established, Growth, Idle, Recovered, RttSample,
    Signal,
};
use crate::freebsd::{Tcb, clamped};
use crate::hystart::HyStart;

/// FreeBSD NewReno, one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct NewReno {
    tcb: Tcb,
}

impl NewReno {
    /// A controller that behaves as `params` say. It opens with
    /// [`on_established`](Controller::on_established).
    pub fn new(params: Params) -> Self {
        Self { tcb: Tcb::new(params) }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.tcb.params
    }

    /// `snd_cwnd` in bytes.
    pub fn snd_cwnd(&self) -> u32 {
        self.tcb.snd_cwnd
    }

    /// `snd_ssthresh` in bytes; 1,073,725,440 while unset.
    pub fn snd_ssthresh(&self) -> u32 {
        self.tcb.snd_ssthresh
    }

    /// `t_bytes_acked`: bytes on the way to the next segment of growth beyond slow start.
    pub fn bytes_acked(&self) -> u32 {
        self.tcb.bytes_acked
    }

    /// `CCF_ABC_SENTAWND`: is that next segment due?
    pub fn sent_a_wnd(&self) -> bool {
        self.tcb.sent_a_wnd
    }

    /// Does a fast recovery run (`TF_FASTRECOVERY`)?
    pub fn in_fastrecovery(&self) -> bool {
        self.tcb.in_fastrecovery
    }

    /// Has the window been lowered for congestion in the flight under way (`TF_CONGRECOVERY`)?
    pub fn in_congrecovery(&self) -> bool {
        self.tcb.in_congrecovery
    }

    /// State of HyStart++.
    pub fn hystart(&self) -> &HyStart {
        &self.tcb.hystart
    }

    fn on_timeout(&mut self, event: &Congested, shift: u32) -> Change {
        let tcb = &mut self.tcb;
        tcb.enter_timeout(event, shift);
        let snd_wnd = clamped(event.snd_wnd);
        match tcb.params.timeout_rule {
            TimeoutRule::HalfWindowEachTime => {
                let segments = snd_wnd.min(tcb.snd_cwnd) / 2 / tcb.mss.max(1);
                tcb.snd_ssthresh = segments.max(2).wrapping_mul(tcb.mss);
            }
            TimeoutRule::SharePipeOnce => {
                if shift == 1 {
                    let under_way = snd_wnd.min(clamped(event.pipe));
                    tcb.snd_ssthresh = tcb.share_of(under_way, tcb.params.beta);
                }
            }
        }
        tcb.snd_cwnd = tcb.mss;
        Change::Collapsed
    }

    fn on_loss(&mut self, event: &Congested) -> Change {
        let tcb = &mut self.tcb;
        let Some(first) = tcb.enter_recovery(event) else { return Change::None };
        // The kernel's ABE branch for loss in an ECN episode cannot be reached: its flag test
        // is misplaced inside the parenthesis.
        if first {
            tcb.snd_ssthresh = tcb.share_of(tcb.snd_cwnd, tcb.params.beta);
        }
        // The window is left to the stack's PRR.
        Change::RecoveryBegan
    }

    fn on_ecn(&mut self, event: &Congested) -> Change {
        let tcb = &mut self.tcb;
        if !tcb.enter_ecn_episode(event) {
            return Change::None;
        }
        let share = tcb.share_of(tcb.snd_cwnd, tcb.params.beta_ecn.unwrap_or(tcb.params.beta));
        tcb.snd_ssthresh = share;
        tcb.snd_cwnd = share;
        Change::RecoveryBegan
    }

    /// `newreno_ack_received`; CUBIC of 13.x calls it too.
    pub(crate) fn ack_received(tcb: &mut Tcb, event: &Acked, bytes: u32) -> Change {
        let (increase, growth) = if tcb.snd_cwnd > tcb.snd_ssthresh {
            tcb.hystart.slipped_into_avoidance();
            (tcb.avoidance_increase(), Growth::Avoidance)
        } else if tcb.params.rfc3465 {
            (tcb.slow_start_increase(event, bytes), Growth::SlowStart)
        } else {
            (tcb.growth_unit(), Growth::SlowStart)
        };
        if increase == 0 {
            return Change::None;
        }
        tcb.grow_to(tcb.enlarged(increase), growth)
    }
}

impl Controller for NewReno {
    fn on_established(&mut self, event: &Established) -> Change {
        self.tcb.open(event);
        Change::None
    }

    fn on_acked(&mut self, event: &Acked) -> Change {
        let bytes = clamped(event.bytes);
        let cwnd_limited = self.tcb.is_cwnd_limited(event);
        self.tcb.count(bytes, event.nsegs);
        if self.tcb.in_recovery() || event.ends_recovery || !cwnd_limited {
            return Change::None;
        }
        Self::ack_received(&mut self.tcb, event, bytes)
    }

    fn on_congested(&mut self, event: &Congested) -> Change {
        match event.signal {
            Signal::Loss => self.on_loss(event),
            Signal::Ecn => self.on_ecn(event),
            Signal::Timeout { shift } => self.on_timeout(event, shift),
            Signal::SpuriousTimeout => {
                self.tcb.undo_timeout();
                Change::Undone
            }
            Signal::SpuriousRecovery => Change::None,
        }
    }

    fn on_recovered(&mut self, event: &Recovered) -> Change {
        if self.tcb.in_fastrecovery {
            let drained = self.tcb.window_after_drain(event.pipe);
            self.tcb.snd_cwnd = drained.unwrap_or(self.tcb.snd_ssthresh);
        }
        self.tcb.end_recovery();
        Change::RecoveryEnded
    }

    fn on_idle(&mut self, _event: &Idle) -> Change {
        self.tcb.after_idle()
    }

    fn on_mss(&mut self, mss: u32, maxseg: u32) {
        self.tcb.mss = mss;
        self.tcb.maxseg = maxseg;
    }

    fn on_round(&mut self, round: u32) -> Change {
        self.tcb.on_round(round)
    }

    fn on_rtt_sample(&mut self, sample: &RttSample) -> Change {
        self.tcb.hystart.rtt_sample(sample);
        Change::None
    }

    fn control(&self) -> Control {
        self.tcb.control()
    }

    fn set_window(&mut self, window: Bytes) {
        self.tcb.set_window(window);
    }

    fn on_window_used(&mut self, window: Bytes) {
        self.tcb.window_used = Some(clamped(window.get()));
    }

    fn leave_recovery(&mut self) {
        self.tcb.leave_recovery();
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        self.tcb.set_threshold(ssthresh);
    }

    fn in_recovery(&self) -> bool {
        self.tcb.in_fastrecovery
    }

    fn in_slow_start(&self) -> bool {
        self.tcb.in_slow_start()
    }

    fn recovery_point(&self) -> Offset {
        self.tcb.snd_recover
    }
}
