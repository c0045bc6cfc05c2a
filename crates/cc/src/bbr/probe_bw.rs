//! ProbeBW: eight phases of one RTT each; the rate is a quarter above the bandwidth in the first, a
//! quarter below in the second, then equal to it (`bbr_update_cycle_phase`).

use units::Instant;

use super::{Bbr, BbrMode, UNIT, micros};
use crate::contract::RateSample;

/// Phases of a cycle (`CYCLE_LEN`).
const PHASES: usize = 8;
/// Gains of the phases (`bbr_pacing_gain`).
pub(super) const GAINS: [u32; PHASES] =
    [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// A cycle starts in any phase except the second (`bbr_cycle_rand`).
const FIRST_PHASES: u64 = 7;

impl Bbr {
    /// `bbr_reset_probe_bw_mode`.
    pub(super) fn reset_probe_bw(&mut self, now: Instant) {
        self.mode = BbrMode::ProbeBw;
        let given = self.given_phases.get(self.drawn as usize).copied().or(self.first_phase);
        self.drawn += 1;
        let drawn = PHASES - 1 - self.rng.below(FIRST_PHASES) as usize;
        self.cycle_idx = given.map_or(drawn, |phase| (usize::from(phase) + PHASES - 1) % PHASES);
        self.advance_cycle(now);
    }

    /// Index of the phase of ProbeBW; `None` outside of it.
    pub fn probe_phase(&self) -> Option<usize> {
        (self.mode == BbrMode::ProbeBw).then_some(self.cycle_idx)
    }

    /// Replaces the phase in which ProbeBW has just begun.
    pub const fn set_probe_phase(&mut self, phase: usize) {
        self.cycle_idx = phase % PHASES;
    }

    /// `bbr_advance_cycle_phase`.
    fn advance_cycle(&mut self, now: Instant) {
        self.cycle_idx = (self.cycle_idx + 1) % PHASES;
        self.cycle_stamp = now;
    }

    /// `bbr_update_cycle_phase`.
    pub(super) fn update_cycle_phase(&mut self, sample: &RateSample) {
        if self.mode == BbrMode::ProbeBw && self.is_next_phase(sample) {
            self.advance_cycle(sample.delivered_at);
        }
    }

    /// `bbr_is_next_cycle_phase`.
    fn is_next_phase(&self, sample: &RateSample) -> bool {
        let min_rtt = u64::from(self.min_rtt.unwrap_or(u32::MAX));
        let whole = micros(self.cycle_stamp, sample.delivered_at) > min_rtt;
        if self.pacing_gain == UNIT {
            return whole;
        }
        let in_flight = self.packets_in_net_at_edt(sample, sample.prior_in_flight);
        let bw = self.max_bw();
        if self.pacing_gain > UNIT {
            // Until the target is reached or a packet is lost.
            let reached = in_flight >= self.inflight(bw, self.pacing_gain);
            return whole && (sample.losses > 0 || reached);
        }
        whole || in_flight <= self.inflight(bw, UNIT)
    }
}
