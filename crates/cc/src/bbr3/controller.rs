//! The events of a controller, and the congestion state of the stack (`bbr_set_state`, `bbr_ssthresh`, `bbr_undo_cwnd`).

use units::{Bytes, Instant, Offset, Rate};

use super::aggregation::ExtraAcked;
use super::{Bbr3, BbrCaState, BbrMode, SSTHRESH_UNSET, UNIT, UNSET, whole_micros};
use crate::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, Growth, IdleEvent, LostSegment, RateController, RateSample,
    RecoveryEnd, WindowChange,
};

impl Bbr3 {
    /// `bbr_save_cwnd`.
    pub(super) fn save_cwnd(&mut self) {
        self.prior_cwnd =
            if self.prev_ca_state < BbrCaState::Recovery && self.mode != BbrMode::ProbeRtt {
                self.snd_cwnd
            } else {
                self.prior_cwnd.max(self.snd_cwnd)
            };
    }

    /// `bbr_ssthresh`.
    fn save_for_undo(&mut self) {
        self.save_cwnd();
        self.undo_bw_lo = self.bw_lo;
        self.undo_inflight_lo = self.inflight_lo;
        self.undo_inflight_hi = self.inflight_hi;
    }

    /// `tcp_current_ssthresh` outside of a reduction.
    fn current_ssthresh(&self) -> u32 {
        self.snd_ssthresh.max((self.snd_cwnd >> 1) + (self.snd_cwnd >> 2))
    }

    /// `bbr_set_state`.
    fn set_state(&mut self, state: BbrCaState) {
        if state == BbrCaState::Loss {
            self.prev_ca_state = BbrCaState::Loss;
            self.reset_full_bw();
            self.note_timeout();
        } else if self.prev_ca_state == BbrCaState::Loss {
            // bbr_exit_loss_recovery
            self.snd_cwnd = self.snd_cwnd.max(self.prior_cwnd);
            self.try_fast_path = false;
        }
        self.state = state;
    }

    /// `tcp_enter_recovery`, `tcp_enter_cwr`.
    fn reduce(&mut self, event: &CongestionEvent, loss: bool) -> WindowChange {
        if self.state == BbrCaState::Recovery {
            return WindowChange::None;
        }
        if self.state != BbrCaState::Cwr {
            self.prior_ssthresh = if loss { self.current_ssthresh() } else { 0 };
            self.save_for_undo();
        } else if loss {
            // The same reduction goes on.
            self.prior_ssthresh = 0;
        }
        self.high_seq = event.snd_max;
        self.set_state(if loss { BbrCaState::Recovery } else { BbrCaState::Cwr });
        WindowChange::RecoveryBegan
    }

    /// `tcp_enter_loss`.
    fn enter_loss(&mut self, event: &CongestionEvent, shift: u32) -> WindowChange {
        let already_reduced = self.state != BbrCaState::Open && event.th_ack < self.high_seq;
        if !already_reduced || (self.state == BbrCaState::Loss && shift == 1) {
            let reducing = matches!(self.state, BbrCaState::Cwr | BbrCaState::Recovery);
            self.prior_ssthresh =
                if reducing { self.snd_ssthresh } else { self.current_ssthresh() };
            self.save_for_undo();
        }
        let in_flight = event.pipe.div_ceil(u64::from(self.mss));
        self.snd_cwnd = u32::try_from(in_flight).unwrap_or(u32::MAX).saturating_add(1);
        self.high_seq = event.snd_max;
        self.set_state(BbrCaState::Loss);
        WindowChange::Collapsed
    }

    /// `tcp_undo_cwnd_reduction`, `bbr_undo_cwnd`.
    fn undo(&mut self) -> WindowChange {
        if self.prior_ssthresh > 0 {
            self.reset_full_bw();
            self.loss_in_round = false;
            self.bw_lo = self.bw_lo.max(self.undo_bw_lo);
            self.inflight_lo = self.inflight_lo.max(self.undo_inflight_lo);
            self.inflight_hi = self.inflight_hi.max(self.undo_inflight_hi);
            self.try_fast_path = false;
            self.snd_cwnd = self.prior_cwnd;
            self.snd_ssthresh = self.snd_ssthresh.max(self.prior_ssthresh);
        }
        self.set_state(BbrCaState::Open);
        WindowChange::Undone
    }
}

impl DeclaredInputs for Bbr3 {
    const INPUTS: ControllerInputs = ControllerInputs::SRTT;
}

impl Controller for Bbr3 {
    /// `bbr_init`.
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        let fresh = Self::new(self.hz as u32, self.draws.rng.clone()).beginning_at(self.initial);
        *self = Self { draws: self.draws.clone(), ecn: self.ecn, params: self.params, ..fresh };
        self.mss = event.mss.max(1);
        self.high_seq = event.una;
        if event.syn_retransmitted {
            self.snd_cwnd = 1;
        }
        self.init_cwnd = self.snd_cwnd.min(0x7f);
        let rtt = event.rtt.map(|rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX));
        self.min_rtt = rtt.unwrap_or(UNSET);
        self.min_rtt_stamp = event.ticks;
        self.probe_rtt_min = self.min_rtt;
        self.probe_rtt_min_stamp = event.ticks;
        // The SYN counts as delivered.
        self.delivered = 1;
        self.next_rtt_delivered = 1;
        self.loss_round_delivered = 2;
        self.extra_acked = ExtraAcked::new(whole_micros(event.now));
        self.init_pacing_rate(rtt.unwrap_or(0));
        WindowChange::None
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        let before = self.snd_cwnd;
        if self.state == BbrCaState::Loss && event.una >= self.high_seq {
            self.set_state(BbrCaState::Open);
        }
        if self.snd_cwnd > before {
            // bbr_exit_loss_recovery
            WindowChange::Grew(Growth::Avoidance)
        } else {
            WindowChange::None
        }
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        match event.signal {
            CongestionSignal::Loss => self.reduce(event, true),
            CongestionSignal::Ecn => self.reduce(event, false),
            CongestionSignal::Timeout { shift } => self.enter_loss(event, shift),
            CongestionSignal::SpuriousTimeout | CongestionSignal::SpuriousRecovery => self.undo(),
            CongestionSignal::PathMtu => {
                if self.state != BbrCaState::Loss {
                    self.high_seq = event.snd_max;
                    self.snd_ssthresh = self.current_ssthresh();
                    self.prior_ssthresh = 0;
                    self.set_state(BbrCaState::Loss);
                }
                WindowChange::None
            }
        }
    }

    fn on_recovered(&mut self, _event: &RecoveryEnd) -> WindowChange {
        self.set_state(BbrCaState::Open);
        WindowChange::RecoveryEnded
    }

    fn on_idle(&mut self, _event: &IdleEvent) -> WindowChange {
        // tcp_slow_start_after_idle_check skips controllers with cong_control.
        WindowChange::None
    }

    fn on_mss(&mut self, mss: u32, _maxseg: u32) {
        self.mss = mss.max(1);
    }

    fn control(&self) -> Control {
        let bytes = |packets: u32| Bytes(u64::from(packets) * u64::from(self.mss));
        Control {
            window: bytes(self.snd_cwnd),
            ssthresh: (self.snd_ssthresh != SSTHRESH_UNSET).then_some(bytes(self.snd_ssthresh)),
            pacing: Rate::from_bits_per_second(self.pacing_rate.saturating_mul(8)),
        }
    }

    fn set_window(&mut self, window: Bytes) {
        let packets = window.get() / u64::from(self.mss);
        self.snd_cwnd = u32::try_from(packets).unwrap_or(u32::MAX);
    }

    fn leave_recovery(&mut self) {
        self.set_state(BbrCaState::Open);
    }

    fn set_threshold(&mut self, _ssthresh: Option<Bytes>) {}

    fn in_recovery(&self) -> bool {
        self.state == BbrCaState::Recovery
    }

    fn in_slow_start(&self) -> bool {
        self.mode == BbrMode::Startup
    }

    fn recovery_point(&self) -> Offset {
        self.high_seq
    }
}

impl RateController for Bbr3 {
    fn on_rate_sample(&mut self, sample: &RateSample) -> WindowChange {
        let before = (self.snd_cwnd, self.mode);
        self.process(sample);
        if before.1 == BbrMode::Startup && self.mode != BbrMode::Startup {
            return WindowChange::SlowStartEnded;
        }
        match self.snd_cwnd.cmp(&before.0) {
            core::cmp::Ordering::Greater if self.mode == BbrMode::Startup => {
                WindowChange::Grew(Growth::SlowStart)
            }
            core::cmp::Ordering::Greater => WindowChange::Grew(Growth::Avoidance),
            core::cmp::Ordering::Less => WindowChange::Shrank,
            core::cmp::Ordering::Equal => WindowChange::None,
        }
    }

    /// `bbr_cwnd_event`, CA_EVENT_TX_START.
    fn on_restart(&mut self, now: Instant, ticks: u64, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.extra_acked.restart(whole_micros(now));
        match self.mode {
            BbrMode::ProbeBw => {
                let bandwidth = self.bandwidth();
                self.set_pacing_rate(0, bandwidth, UNIT);
            }
            BbrMode::ProbeRtt => self.check_probe_rtt_done(ticks, now, self.delivered),
            BbrMode::Startup | BbrMode::Drain => {}
        }
    }

    fn on_segment_lost(&mut self, lost: &LostSegment) {
        self.skb_marked_lost(lost);
    }

    fn on_probe_repaired(&mut self, now: Instant, delivered: u64, app_limited: bool) {
        self.loss_probe_recovery(now, delivered, app_limited);
    }

    fn needs_tx_state(&self) -> bool {
        true
    }

    fn min_burst(&self) -> u32 {
        2
    }

    fn burst(&self, gso_max_size: u64) -> Option<u32> {
        Some(self.tso_segs(gso_max_size))
    }

    fn sends_little(&self) -> bool {
        self.probed_rtt
    }

    /// `bbr_sndbuf_expand`.
    fn windows_buffered(&self) -> u64 {
        3
    }
}
