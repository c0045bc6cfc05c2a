//! FreeBSD's NewReno, its default controller before CUBIC.
//!
//! Sources: cc_newreno.c (newreno_ack_received, newreno_cong_signal, newreno_post_recovery,
//! newreno_after_idle), cc.c (newreno_cc_*), and the bookkeeping around them in tcp_input.c
//! (cc_conn_init, cc_ack_received, cc_cong_signal, cc_post_recovery) and tcp_timer.c
//! (tcp_timer_rexmt, the undo state). Versions differ by [`NewRenoParams`] only.
//!
//! Where it departs from the RFCs it follows the kernel:
//! - Appropriate byte counting (RFC 3465) limits slow start by `lro_nsegs * L * t_maxseg`, so ACKs
//!   that the host's LRO merged count as one.
//! - The window counts as used whenever it is not larger than the peer's: an application-limited
//!   sender still grows it.
//! - In congestion avoidance a window's worth of acknowledged bytes adds one segment; bytes are
//!   counted in recovery too, so the first ACK after it may add one at once.

mod params;
#[cfg(test)]
mod tests;

use units::{Bytes, Offset};

pub use params::{AckCounting, NewRenoParams, NewRenoTimeoutRule, SegmentUnit};

use crate::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, Growth, IdleEvent, RecoveryEnd, RttSample, WindowChange,
    WindowController,
};
use crate::freebsd::{CcTcpcb, clamped};
use crate::hystart::HyStartFreeBsd;

/// FreeBSD's NewReno on one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct NewReno {
    tcb: CcTcpcb,
}

impl NewReno {
    /// A controller with these parameters. Start it with
    /// [`on_established`](Controller::on_established).
    pub fn new(params: NewRenoParams) -> Self {
        Self { tcb: CcTcpcb::new(params) }
    }

    /// Its parameters.
    pub fn params(&self) -> &NewRenoParams {
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

    /// `t_bytes_acked`: bytes counted towards the next segment of growth in congestion avoidance.
    pub fn bytes_acked(&self) -> u32 {
        self.tcb.bytes_acked
    }

    /// `CCF_ABC_SENTAWND`: true if that next segment is due.
    pub fn sent_a_wnd(&self) -> bool {
        self.tcb.sent_a_wnd
    }

    /// True during a fast recovery (`TF_FASTRECOVERY`).
    pub fn in_fastrecovery(&self) -> bool {
        self.tcb.in_fastrecovery
    }

    /// True if the window was reduced for congestion in the current flight (`TF_CONGRECOVERY`).
    pub fn in_congrecovery(&self) -> bool {
        self.tcb.in_congrecovery
    }

    /// State of HyStart++.
    pub fn hystart(&self) -> &HyStartFreeBsd {
        &self.tcb.hystart
    }

    fn on_timeout(&mut self, event: &CongestionEvent, shift: u32) -> WindowChange {
        let tcb = &mut self.tcb;
        tcb.enter_timeout(event, shift);
        let snd_wnd = clamped(event.snd_wnd);
        match tcb.params.timeout_rule {
            NewRenoTimeoutRule::HalfWindowEachTime => {
                let segments = snd_wnd.min(tcb.snd_cwnd) / 2 / tcb.mss.max(1);
                tcb.snd_ssthresh = segments.max(2).wrapping_mul(tcb.mss);
            }
            NewRenoTimeoutRule::SharePipeOnce => {
                if shift == 1 {
                    let flight_bytes = snd_wnd.min(clamped(event.pipe));
                    tcb.snd_ssthresh = tcb.fraction_of(flight_bytes, tcb.params.beta);
                }
            }
        }
        tcb.snd_cwnd = tcb.mss;
        WindowChange::Collapsed
    }

    fn on_loss(&mut self, event: &CongestionEvent) -> WindowChange {
        let tcb = &mut self.tcb;
        let Some(first) = tcb.enter_recovery(event) else { return WindowChange::None };
        // The kernel's ABE branch for a loss during an ECN reduction is unreachable: its flag test
        // is misplaced inside the parenthesis.
        if first {
            tcb.snd_ssthresh = tcb.fraction_of(tcb.snd_cwnd, tcb.params.beta);
        }
        // The stack's PRR sets the window.
        WindowChange::RecoveryBegan
    }

    fn on_ecn(&mut self, event: &CongestionEvent) -> WindowChange {
        let tcb = &mut self.tcb;
        if !tcb.enter_ecn_recovery(event) {
            return WindowChange::None;
        }
        let share = tcb.fraction_of(tcb.snd_cwnd, tcb.params.beta_ecn.unwrap_or(tcb.params.beta));
        tcb.snd_ssthresh = share;
        tcb.snd_cwnd = share;
        WindowChange::RecoveryBegan
    }

    /// `newreno_ack_received`; CUBIC of 13.x calls it too.
    pub(crate) fn ack_received(tcb: &mut CcTcpcb, event: &AckEvent, bytes: u32) -> WindowChange {
        let (increase, growth) = if tcb.snd_cwnd > tcb.snd_ssthresh {
            tcb.hystart.on_threshold_passed();
            (tcb.avoidance_increase(), Growth::Avoidance)
        } else if tcb.params.rfc3465 {
            (tcb.slow_start_increase(event, bytes), Growth::SlowStart)
        } else {
            (tcb.growth_unit(), Growth::SlowStart)
        };
        if increase == 0 {
            return WindowChange::None;
        }
        tcb.grow_to(tcb.enlarged(increase), growth)
    }
}

impl DeclaredInputs for NewReno {
    const INPUTS: ControllerInputs = ControllerInputs::SRTT;
}

impl Controller for NewReno {
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        self.tcb.open(event);
        WindowChange::None
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        let bytes = clamped(event.bytes);
        let cwnd_limited = self.tcb.is_cwnd_limited(event);
        self.tcb.count(bytes, event.nsegs);
        if self.tcb.in_recovery() || event.ends_recovery || !cwnd_limited {
            return WindowChange::None;
        }
        Self::ack_received(&mut self.tcb, event, bytes)
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        match event.signal {
            CongestionSignal::Loss => self.on_loss(event),
            CongestionSignal::Ecn => self.on_ecn(event),
            CongestionSignal::Timeout { shift } => self.on_timeout(event, shift),
            CongestionSignal::SpuriousTimeout => {
                self.tcb.undo_timeout();
                WindowChange::Undone
            }
            CongestionSignal::SpuriousRecovery | CongestionSignal::PathMtu => WindowChange::None,
        }
    }

    fn on_recovered(&mut self, event: &RecoveryEnd) -> WindowChange {
        if self.tcb.in_fastrecovery {
            let drained = self.tcb.window_after_drain(event.pipe);
            self.tcb.snd_cwnd = drained.unwrap_or(self.tcb.snd_ssthresh);
        }
        self.tcb.end_recovery();
        WindowChange::RecoveryEnded
    }

    fn on_idle(&mut self, _event: &IdleEvent) -> WindowChange {
        self.tcb.after_idle()
    }

    fn on_mss(&mut self, mss: u32, maxseg: u32) {
        self.tcb.mss = mss;
        self.tcb.maxseg = maxseg;
    }

    fn control(&self) -> Control {
        self.tcb.control()
    }

    fn set_window(&mut self, window: Bytes) {
        self.tcb.set_window(window);
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

    fn t_bytes_acked(&self) -> Option<u32> {
        Some(self.tcb.bytes_acked)
    }
}

impl WindowController for NewReno {
    fn on_round(&mut self, round: u32) -> WindowChange {
        self.tcb.on_round(round)
    }

    fn on_rtt_sample(&mut self, sample: &RttSample) -> WindowChange {
        self.tcb.hystart.rtt_sample(sample);
        WindowChange::None
    }

    fn on_window_used(&mut self, window: Bytes) {
        self.tcb.window_used = Some(clamped(window.get()));
    }
}
