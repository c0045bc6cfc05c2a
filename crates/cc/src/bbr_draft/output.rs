//! Pacing rate, send quantum and congestion window (section "Updating Control Parameters").

use units::Duration;

use super::params::UNIT;
use super::sample::DraftSample;
use super::{BbrDraft, BbrDraftPhase, INFINITY, times, volume};

/// Largest quantum.
const MOST_QUANTUM: u64 = 64 << 10;

impl BbrDraft {
    /// `InitPacingRate`.
    pub(super) fn init_pacing_rate(&mut self, srtt: Option<Duration>) {
        self.has_seen_rtt = srtt.is_some();
        let span = srtt.unwrap_or(Duration::from_millis(1)).as_nanos().max(1);
        let nominal = u128::from(self.initial_cwnd) * 1_000_000_000 / u128::from(span);
        let nominal = u64::try_from(nominal).unwrap_or(INFINITY);
        self.pacing_rate = times(nominal, self.params().startup_pacing_gain);
    }

    /// `SetPacingRateWithGain`.
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: u64) {
        let rate = times(self.bw, gain * (100 - self.params().pacing_margin_percent) / 100);
        if rate > 0 && (self.full_bw_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// `SetPacingRate`; the first round-trip sample sets the initial rate anew.
    pub(super) fn set_pacing_rate(&mut self, rs: &DraftSample) {
        if !self.has_seen_rtt && rs.srtt.is_some() {
            self.init_pacing_rate(rs.srtt);
        }
        self.set_pacing_rate_with_gain(self.pacing_gain);
    }

    /// `SetSendQuantum`.
    pub(super) fn set_send_quantum(&mut self) {
        let earned = volume(self.pacing_rate, Duration::from_millis(1));
        self.send_quantum = earned.min(MOST_QUANTUM).max(2 * self.mss);
    }

    /// `SetCwnd`.
    pub(super) fn set_cwnd(&mut self, rs: &DraftSample) {
        let most = self.max_inflight();
        if self.full_bw_reached {
            self.cwnd = self.cwnd.saturating_add(rs.newly_acked).min(most);
        } else if self.cwnd < most || self.delivered < self.initial_cwnd {
            self.cwnd = self.cwnd.saturating_add(rs.newly_acked);
        }
        self.cwnd = self.cwnd.max(self.least_cwnd());
        if self.state == BbrDraftPhase::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// `BoundCwndForModel`.
    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            BbrDraftPhase::Cruise | BbrDraftPhase::ProbeRtt => self.inflight_with_headroom(),
            BbrDraftPhase::Down | BbrDraftPhase::Refill | BbrDraftPhase::Up => {
                self.inflight_longterm
            }
            BbrDraftPhase::Startup | BbrDraftPhase::Drain => INFINITY,
        };
        let cap = cap.min(self.inflight_shortterm).max(self.least_cwnd());
        self.cwnd = self.cwnd.min(cap);
    }

    /// The gain 1 after idle (`HandleRestartFromIdle`).
    pub(super) fn pace_at_bandwidth(&mut self) {
        self.set_pacing_rate_with_gain(UNIT);
    }
}
