//! The congestion window: the bandwidth-delay product times a gain, within the bounds of the flight (`bbr_set_cwnd`,
//! `bbr_bound_cwnd_for_inflight_model`).

use super::{BW_UNIT, Bbr3, BbrMode, ProbePhase, UNIT, UNSET};
use crate::contract::RateSample;

impl Bbr3 {
    /// `bbr_bdp`: the bandwidth-delay product in packets, times `gain`.
    pub(super) fn bdp(&self, bw: u32, gain: u32) -> u32 {
        if self.min_rtt == UNSET {
            return self.init_cwnd;
        }
        let held = (u128::from(bw) * u128::from(self.min_rtt) * u128::from(gain)) >> 8;
        u32::try_from(held.div_ceil(u128::from(BW_UNIT))).unwrap_or(u32::MAX)
    }

    /// `bbr_quantization_budget`.
    fn quantization_budget(&self, packets: u32) -> u32 {
        let least = (3 * self.tso_segs_goal()).max(self.params.cwnd_min_target);
        let probes = self.mode == BbrMode::ProbeBw && self.phase == ProbePhase::Up;
        packets.max(least).saturating_add(if probes { 2 } else { 0 })
    }

    /// `bbr_inflight`.
    pub(super) fn inflight(&self, bw: u32, gain: u32) -> u32 {
        self.quantization_budget(self.bdp(bw, gain))
    }

    /// `bbr_packets_in_net_at_edt`: packets still in flight when the next one may be sent.
    pub(super) fn packets_in_net_at_edt(&self, sample: &RateSample, in_flight: u32) -> u32 {
        let interval = sample.until_next_departure.as_nanos() / 1_000;
        let delivered = (u128::from(self.bandwidth()) * u128::from(interval)) >> 24;
        let more = if self.pacing_gain > UNIT { self.tso_segs_goal() } else { 0 };
        let delivered = u32::try_from(delivered).unwrap_or(u32::MAX);
        in_flight.saturating_add(more).saturating_sub(delivered)
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, sample: &RateSample, bw: u32, gain: u32) {
        if sample.acked > 0 {
            let target = self.bdp(bw, gain).saturating_add(self.ack_aggregation_cwnd());
            let target = self.quantization_budget(target);
            let mut cwnd = self.snd_cwnd;
            self.try_fast_path = false;
            if self.full_bw_reached {
                cwnd = cwnd.saturating_add(sample.acked);
                if cwnd >= target {
                    cwnd = target;
                    self.try_fast_path = true;
                }
            } else if cwnd < target || cwnd < 2 * self.init_cwnd {
                cwnd = cwnd.saturating_add(sample.acked);
            } else {
                self.try_fast_path = true;
            }
            self.snd_cwnd = cwnd.max(self.params.cwnd_min_target);
        }
        if self.mode == BbrMode::ProbeRtt {
            self.snd_cwnd = self.snd_cwnd.min(self.probe_rtt_cwnd());
        }
    }

    /// `bbr_bound_cwnd_for_inflight_model`.
    pub(super) fn bound_cwnd(&mut self) {
        let cap = match (self.mode, self.phase) {
            (BbrMode::ProbeRtt, _) | (BbrMode::ProbeBw, ProbePhase::Cruise) => {
                self.inflight_with_headroom()
            }
            (BbrMode::ProbeBw, _) => self.inflight_hi,
            (BbrMode::Startup | BbrMode::Drain, _) => UNSET,
        };
        let cap = cap.min(self.inflight_lo).max(self.params.cwnd_min_target);
        self.snd_cwnd = self.snd_cwnd.min(cap);
    }
}
