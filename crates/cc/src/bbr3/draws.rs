//! The random numbers of ProbeBW (`bbr_pick_probe_wait`).

use serde::{Deserialize, Serialize};
use units::RandomStream;

use super::Bbr3Params;

/// What is drawn when a cycle of ProbeBW begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
pub struct ProbeDraw {
    /// Rounds that count as passed since the last probe (`rounds_since_probe`): 0 or 1.
    pub rounds: u32,
    /// Time until the next probe, in microseconds (`probe_wait_us`): 2,000,000 to 2,999,999.
    pub wait_us: u32,
}

/// The draws of a connection: given ones, then random ones.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct ProbeDraws {
    pub(super) rng: RandomStream,
    /// Draws that a recording of a kernel shows.
    #[serde(skip)]
    given: &'static [ProbeDraw],
    /// Number of draws made.
    made: u32,
}

impl ProbeDraws {
    pub(super) const fn new(rng: RandomStream) -> Self {
        Self { rng, given: &[], made: 0 }
    }

    pub(super) const fn give(&mut self, draws: &'static [ProbeDraw]) {
        self.given = draws;
    }

    pub(super) const fn made(&self) -> u32 {
        self.made
    }

    pub(super) fn next(&mut self, params: &Bbr3Params) -> ProbeDraw {
        let given = self.given.get(self.made as usize).copied();
        self.made += 1;
        given.unwrap_or_else(|| ProbeDraw {
            rounds: self.rng.below(u64::from(params.bw_probe_rand_rounds)) as u32,
            wait_us: params.bw_probe_base_us
                + self.rng.below(u64::from(params.bw_probe_rand_us)) as u32,
        })
    }
}
