//! Loss state of FreeBSD's base stack.

use recovery::holes::{PipeRule, SackScoreboard};
use recovery::prr::freebsd::PrrFreeBsd;

use crate::loss::DUP_THRESHOLD;
use crate::profile::SackRule;

/// Loss state of FreeBSD's base stack; without SACK the scoreboard stays empty.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct FreeBsdState {
    pub(super) rule: SackRule,
    pub(super) holes: SackScoreboard,
    pub(super) prr: PrrFreeBsd,
}

impl FreeBsdState {
    pub(crate) const fn new(rule: SackRule) -> Self {
        Self {
            rule,
            holes: SackScoreboard::new(rule.params),
            prr: PrrFreeBsd { prr_delivered: 0, prr_out: 0, recover_fs: 0 },
        }
    }

    /// By how much the bytes in flight differ from those outstanding.
    pub(crate) fn flight_correction(&self) -> i64 {
        self.holes.flight_correction()
    }

    pub(super) const fn rule(&self) -> &SackRule {
        &self.rule
    }

    pub(super) const fn sack_bytes_rexmit(&self) -> u64 {
        self.holes.sack_bytes_rexmit()
    }

    /// Reports the scoreboard and PRR's counters under the field names of recordings.
    pub(crate) fn inspect(&self, see: &mut impl FnMut(&'static str, u64)) {
        see("rexb", self.holes.sack_bytes_rexmit());
        see("sackb", self.holes.sacked_bytes());
        see("del", self.holes.delivered());
        see("rfs", self.prr.recover_fs);
        see("prrd", self.prr.prr_delivered);
        see("prro", self.prr.prr_out);
        see("nh", self.holes.len() as u64);
        if self.rule.params.pipe == PipeRule::SackedAndLost {
            see("lostb", self.holes.lost_bytes());
        }
    }

    /// Are more than two segments SACKed, which begins a recovery without a third duplicate?
    pub(super) fn sacked_beyond_threshold(&self, maxseg: u64) -> bool {
        self.rule.newsack && self.holes.sacked_bytes() > u64::from(DUP_THRESHOLD - 1) * maxseg
    }
}
