//! The model of the path: packet-timed rounds, `BBR.max_bw`, `BBR.min_rtt`, `BBR.extra_acked` (section "Updating Network
//! Path Model Parameters").

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use units::{Duration, Instant};

use super::params::UNIT;
use super::sample::DraftSample;
use super::{BbrDraft, BbrDraftPhase, times, volume};

/// `BBR.extra_acked_filter`: the maximum of some rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExtraAckedFilter {
    /// Rounds and their values, falling.
    samples: VecDeque<(u64, u64)>,
    interval_start: Instant,
    delivered: u64,
}

impl ExtraAckedFilter {
    pub(super) const fn new(now: Instant) -> Self {
        Self { samples: VecDeque::new(), interval_start: now, delivered: 0 }
    }

    /// `BBR.extra_acked`.
    pub(super) fn most(&self) -> u64 {
        self.samples.front().map_or(0, |&(_, extra)| extra)
    }

    /// `HandleRestartFromIdle` begins the interval anew.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.interval_start = now;
    }

    fn add(&mut self, round: u64, extra: u64, rounds: u64) {
        while self.samples.back().is_some_and(|&(_, least)| least <= extra) {
            self.samples.pop_back();
        }
        self.samples.push_back((round, extra));
        while self.samples.front().is_some_and(|&(first, _)| first + rounds <= round) {
            self.samples.pop_front();
        }
    }
}

impl BbrDraft {
    /// `StartRound`.
    pub(super) const fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// `UpdateRound`.
    fn update_round(&mut self, rs: &DraftSample) {
        self.round_start = rs.has_data && rs.prior_delivered >= self.next_round_delivered;
        self.min_inflight_in_round = self.min_inflight_in_round.min(rs.inflight);
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            let target = times(self.bdp(self.max_bw(), UNIT), 1_250);
            let queue = self.min_inflight_in_round >= target + 2 * self.mss;
            self.rounds_with_queue = if queue { self.rounds_with_queue + 1 } else { 0 };
            self.min_inflight_in_round = rs.inflight;
        }
    }

    /// `BBR.max_bw`, of this cycle and the one before.
    pub(super) fn max_bw(&self) -> u64 {
        self.max_bw_filter[0].max(self.max_bw_filter[1])
    }

    /// `UpdateMaxBw`.
    pub(super) fn update_max_bw(&mut self, rs: &DraftSample) {
        self.update_round(rs);
        let is_usable = rs.delivery_rate >= self.max_bw() || !rs.is_app_limited;
        if rs.delivery_rate > 0 && is_usable {
            self.max_bw_filter[1] = self.max_bw_filter[1].max(rs.delivery_rate);
        }
    }

    /// `AdvanceMaxBwFilter`.
    pub(super) const fn advance_max_bw_filter(&mut self) {
        if self.max_bw_filter[1] > 0 {
            self.max_bw_filter = [self.max_bw_filter[1], 0];
        }
    }

    /// `BDPMultiple`, of a bandwidth.
    pub(super) fn bdp(&self, bw: u64, gain: u64) -> u64 {
        self.min_rtt.map_or(self.initial_cwnd, |rtt| times(volume(bw, rtt), gain))
    }

    /// `QuantizationBudget`. The offload budget is one quantum, as for QUIC.
    fn quantization_budget(&self, inflight: u64) -> u64 {
        let least = self.send_quantum.max(self.least_cwnd());
        let more = if self.state == BbrDraftPhase::Up { 2 * self.mss } else { 0 };
        inflight.max(least).saturating_add(more)
    }

    /// `Inflight`.
    pub(super) fn inflight_of(&self, bw: u64, gain: u64) -> u64 {
        self.quantization_budget(self.bdp(bw, gain))
    }

    /// `UpdateMaxInflight`.
    pub(super) fn max_inflight(&self) -> u64 {
        let held = self.bdp(self.bw, self.cwnd_gain).saturating_add(self.extra_acked.most());
        self.quantization_budget(held)
    }

    /// `BBR.MinPipeCwnd` in bytes.
    pub(super) fn least_cwnd(&self) -> u64 {
        self.params().min_pipe * self.mss
    }

    /// `UpdateACKAggregation`.
    pub(super) fn update_ack_aggregation(&mut self, rs: &DraftSample) {
        let rounds = if self.full_bw_reached { self.params().extra_acked_rounds } else { 1 };
        let (bw, cwnd, round) = (self.bw, self.cwnd, self.round_count);
        let all = &mut self.extra_acked;
        let mut expected = volume(bw, rs.now.since(all.interval_start));
        if all.delivered <= expected {
            (all.delivered, all.interval_start, expected) = (0, rs.now, 0);
        }
        all.delivered += rs.newly_acked;
        let extra = all.delivered.saturating_sub(expected).min(cwnd);
        all.add(round, extra, rounds);
    }

    /// `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, rs: &DraftSample) {
        let params = self.params();
        self.probe_rtt_expired = rs.now.since(self.probe_rtt_min_stamp) > params.probe_rtt_interval;
        let refreshes = self.probe_rtt_expired && !params.probe_rtt_after_down;
        if let Some(rtt) = rs.rtt
            && (self.probe_rtt_min_delay.is_none_or(|least| rtt < least) || refreshes)
        {
            (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (Some(rtt), rs.now);
        }
        let expired = rs.now.since(self.min_rtt_stamp) > params.min_rtt_filter;
        let lower = |delay: Duration| self.min_rtt.is_none_or(|least| delay < least);
        if self.probe_rtt_min_delay.is_some_and(lower) || expired {
            (self.min_rtt, self.min_rtt_stamp) =
                (self.probe_rtt_min_delay, self.probe_rtt_min_stamp);
        }
    }
}
