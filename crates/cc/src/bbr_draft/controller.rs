//! The events of a controller.

use units::{Bytes, Instant, Offset, Rate};

use super::model::ExtraAckedFilter;
use super::sample::DraftSample;
use super::{BbrDraft, BbrDraftPhase};
use crate::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, Growth, IdleEvent, LostSegment, RateController, RateSample,
    RecoveryEnd, WindowChange,
};

/// Segments of the initial window where the stack sets none (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;

impl BbrDraft {
    /// Bytes of a unit of the stack's counts.
    pub(super) const fn unit_bytes(&self) -> u64 {
        if self.unit == 0 { self.mss } else { self.unit }
    }

    /// `OnEnterFastRecovery`.
    fn enter_recovery(&mut self, event: &CongestionEvent) -> WindowChange {
        if self.in_recovery {
            return WindowChange::None;
        }
        self.save_state_upon_loss();
        self.in_recovery = true;
        self.recovery_round = self.round_count;
        self.recovery_point = event.snd_max;
        WindowChange::RecoveryBegan
    }

    /// `OnEnterRTO`.
    fn enter_timeout(&mut self, event: &CongestionEvent) -> WindowChange {
        self.save_state_upon_loss();
        self.after_timeout = true;
        self.in_recovery = false;
        self.recovery_point = event.snd_max;
        self.cwnd = event.pipe + self.mss;
        WindowChange::Collapsed
    }

    /// Recovery ends: `RestoreCwnd`.
    fn leave_loss(&mut self) {
        self.leave_recovery();
        self.restore_cwnd();
    }
}

impl DeclaredInputs for BbrDraft {
    const INPUTS: ControllerInputs = ControllerInputs::SRTT;
}

impl Controller for BbrDraft {
    /// `OnInit`.
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        let (unit, initial) = (self.unit, self.initial_cwnd);
        *self = Self::new(self.params(), self.rng.clone());
        (self.unit, self.mss) = (unit, u64::from(event.mss.max(1)));
        self.initial_cwnd = if initial > 0 { initial } else { INITIAL_SEGMENTS * self.mss };
        self.cwnd = if event.syn_retransmitted { self.mss } else { self.initial_cwnd };
        self.recovery_point = event.una;
        (self.min_rtt, self.probe_rtt_min_delay) = (event.rtt, event.rtt);
        (self.min_rtt_stamp, self.probe_rtt_min_stamp) = (event.now, event.now);
        (self.cycle_stamp, self.phase_stamp) = (event.now, event.now);
        self.extra_acked = ExtraAckedFilter::new(event.now);
        self.init_pacing_rate(event.rtt);
        self.set_send_quantum();
        WindowChange::None
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        if !self.after_timeout || event.una < self.recovery_point {
            return WindowChange::None;
        }
        let before = self.cwnd;
        self.leave_loss();
        if self.cwnd > before { WindowChange::Grew(Growth::Avoidance) } else { WindowChange::None }
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        match event.signal {
            CongestionSignal::Loss => self.enter_recovery(event),
            CongestionSignal::Timeout { .. } => self.enter_timeout(event),
            CongestionSignal::SpuriousTimeout | CongestionSignal::SpuriousRecovery => {
                if self.params().undo {
                    self.handle_spurious_loss_detection(event.now);
                }
                self.leave_recovery();
                WindowChange::Undone
            }
            // Marks come with the samples.
            CongestionSignal::Ecn | CongestionSignal::PathMtu => WindowChange::None,
        }
    }

    fn on_recovered(&mut self, _event: &RecoveryEnd) -> WindowChange {
        self.leave_loss();
        WindowChange::RecoveryEnded
    }

    fn on_idle(&mut self, _event: &IdleEvent) -> WindowChange {
        // "Comparison with Previous Approaches": no slow start after idle.
        WindowChange::None
    }

    fn on_mss(&mut self, mss: u32, _maxseg: u32) {
        self.mss = u64::from(mss.max(1));
    }

    fn control(&self) -> Control {
        Control {
            window: Bytes(self.cwnd),
            ssthresh: None,
            pacing: Rate::from_bits_per_second(self.pacing_rate.saturating_mul(8)),
        }
    }

    fn set_window(&mut self, window: Bytes) {
        self.cwnd = window.get();
    }

    fn leave_recovery(&mut self) {
        (self.in_recovery, self.after_timeout, self.has_saved) = (false, false, false);
    }

    fn set_threshold(&mut self, _ssthresh: Option<Bytes>) {}

    fn in_recovery(&self) -> bool {
        self.in_recovery
    }

    fn in_slow_start(&self) -> bool {
        self.state == BbrDraftPhase::Startup
    }

    fn recovery_point(&self) -> Offset {
        self.recovery_point
    }
}

impl RateController for BbrDraft {
    fn on_rate_sample(&mut self, sample: &RateSample) -> WindowChange {
        let before = (self.cwnd, self.state);
        self.update_on_ack(&DraftSample::new(sample, self.unit_bytes()));
        let is_startup = self.state == BbrDraftPhase::Startup;
        if before.1 == BbrDraftPhase::Startup && !is_startup {
            return WindowChange::SlowStartEnded;
        }
        match self.cwnd.cmp(&before.0) {
            core::cmp::Ordering::Greater if is_startup => WindowChange::Grew(Growth::SlowStart),
            core::cmp::Ordering::Greater => WindowChange::Grew(Growth::Avoidance),
            core::cmp::Ordering::Less => WindowChange::Shrank,
            core::cmp::Ordering::Equal => WindowChange::None,
        }
    }

    /// `HandleRestartFromIdle`. ProbeRTT ends with the next acknowledgment, not with the packet that is sent now: windows
    /// change with acknowledgments here.
    fn on_restart(&mut self, now: Instant, _ticks: u64, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.extra_acked.restart(now);
        if self.state.is_probe_bw() {
            self.pace_at_bandwidth();
        }
    }

    fn on_segment_lost(&mut self, lost: &LostSegment) {
        self.handle_lost_packet(lost);
    }

    fn on_probe_repaired(&mut self, _now: Instant, delivered: u64, _app_limited: bool) {
        self.delivered = self.delivered.max(delivered * self.unit_bytes());
        self.note_loss();
    }

    fn needs_tx_state(&self) -> bool {
        true
    }

    fn min_burst(&self) -> u32 {
        2
    }

    fn burst(&self, gso_max_size: u64) -> Option<u32> {
        let bytes = self.send_quantum.min(gso_max_size);
        Some(u32::try_from(bytes / self.mss).unwrap_or(u32::MAX).max(2))
    }

    /// `HandleProbeRTT` marks the connection as application-limited.
    fn sends_little(&self) -> bool {
        self.state == BbrDraftPhase::ProbeRtt
    }

    fn windows_buffered(&self) -> u64 {
        3
    }
}
