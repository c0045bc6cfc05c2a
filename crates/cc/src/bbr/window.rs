//! The congestion window: the bandwidth-delay product times a gain (`bbr_set_cwnd`).

use super::{BW_UNIT, Bbr, BbrCaState, BbrMode, INIT_CWND, MIN_CWND, UNIT};
use crate::contract::RateSample;

impl Bbr {
    /// `bbr_bdp`: the bandwidth-delay product in packets, times `gain`.
    pub(super) fn bdp(&self, bw: u64, gain: u32) -> u32 {
        let Some(min_rtt) = self.min_rtt else { return INIT_CWND };
        let held = (u128::from(bw) * u128::from(min_rtt) * u128::from(gain)) >> 8;
        narrow(held.div_ceil(u128::from(BW_UNIT)))
    }

    /// `bbr_quantization_budget`: adds bursts at both ends, rounds up to an even number, and adds
    /// two packets in the probing phase.
    fn with_bursts(&self, packets: u32) -> u32 {
        let packets = packets.saturating_add(3 * self.burst());
        let even = packets.saturating_add(1) & !1;
        let probes = self.mode == BbrMode::ProbeBw && self.cycle_idx == 0;
        even.saturating_add(if probes { 2 } else { 0 })
    }

    /// `bbr_inflight`.
    pub(super) fn inflight(&self, bw: u64, gain: u32) -> u32 {
        self.with_bursts(self.bdp(bw, gain))
    }

    /// `bbr_packets_in_net_at_edt`: packets still in flight when the next one may be sent.
    pub(super) fn packets_in_net_at_edt(&self, sample: &RateSample, in_flight: u32) -> u32 {
        let interval = sample.until_next_departure.as_nanos() / 1_000;
        let delivered = (u128::from(self.bandwidth()) * u128::from(interval)) >> 24;
        let more = if self.pacing_gain > UNIT { self.burst() } else { 0 };
        in_flight.saturating_add(more).saturating_sub(narrow(delivered))
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, sample: &RateSample, bw: u64, gain: u32) {
        let acked = sample.acked;
        if acked > 0 && !self.recover_or_restore(sample, acked) {
            let mut target = self.bdp(bw, gain);
            target = target.saturating_add(self.aggregation_cwnd());
            target = self.with_bursts(target);
            let mut cwnd = self.snd_cwnd;
            if self.full_bw_reached {
                cwnd = cwnd.saturating_add(acked).min(target);
            } else if cwnd < target || sample.delivered < u64::from(INIT_CWND) {
                cwnd = cwnd.saturating_add(acked);
            }
            self.snd_cwnd = cwnd.max(MIN_CWND);
        }
        if self.mode == BbrMode::ProbeRtt {
            self.snd_cwnd = self.snd_cwnd.min(MIN_CWND);
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`: in the first round of a recovery one packet is sent
    /// for each one delivered; returns true if that determines the window.
    fn recover_or_restore(&mut self, sample: &RateSample, acked: u32) -> bool {
        let (before, state) = (self.prev_state, self.state);
        if sample.losses > 0 {
            self.snd_cwnd = self.snd_cwnd.saturating_sub(sample.losses).max(1);
        }
        if state == BbrCaState::Recovery && before != BbrCaState::Recovery {
            self.packet_conservation = true;
            self.next_rtt_delivered = sample.delivered;
            self.snd_cwnd = sample.in_flight.saturating_add(acked);
        } else if before >= BbrCaState::Recovery && state < BbrCaState::Recovery {
            self.snd_cwnd = self.snd_cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_state = state;
        if self.packet_conservation {
            self.snd_cwnd = self.snd_cwnd.max(sample.in_flight.saturating_add(acked));
        }
        self.packet_conservation
    }
}

fn narrow(packets: u128) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}
