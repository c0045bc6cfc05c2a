//! The cases of the appendix, in its order, and one on ProbeRTT's interval against the filter of the minimum RTT.

mod loss;
mod probe_bw;
mod probe_rtt;
mod rates;
mod startup;

use super::context::CaseContext;
use super::paths::BbrPath;
use super::report::{BbrResult, BbrVerdict};
use crate::SuiteError;

/// What a case says: `None`, or why it does not apply here.
type CaseOutcome = Result<Option<&'static str>, SuiteError>;

/// A case.
pub struct BbrCase {
    /// Its name.
    pub id: &'static str,
    /// Its heading in the appendix, or the section that the case is derived from.
    pub section: &'static str,
    judge: fn(&mut CaseContext<'_>) -> CaseOutcome,
}

impl core::fmt::Debug for BbrCase {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BbrCase").field("id", &self.id).finish_non_exhaustive()
    }
}

impl BbrCase {
    /// Runs the case.
    pub(super) fn run(&self, context: &mut CaseContext<'_>) -> Result<BbrResult, SuiteError> {
        let why = (self.judge)(context)?;
        let checks = core::mem::take(&mut context.checks);
        let failed = checks.iter().filter(|check| !check.holds);
        let verdict = match (why, failed.clone().count()) {
            (Some(_), _) => BbrVerdict::NotApplicable,
            (None, 0) => BbrVerdict::Pass,
            _ if failed.clone().all(|check| check.conflict.is_some()) => BbrVerdict::Conflict,
            _ => BbrVerdict::Fail,
        };
        Ok(BbrResult {
            case: self.id,
            section: self.section,
            path: context.path.name,
            verdict,
            checks,
            why: why.map(str::to_owned),
        })
    }
}

const fn case(
    id: &'static str,
    section: &'static str,
    judge: fn(&mut CaseContext<'_>) -> CaseOutcome,
) -> BbrCase {
    BbrCase { id, section, judge }
}

/// All cases.
pub static CASES: [BbrCase; 23] = [
    case("startup-plateau", "Exiting STARTUP on Bandwidth Plateau", startup::plateau),
    case("startup-loss", "Exiting STARTUP on Loss When Application-Limited", startup::loss),
    case("drain-inflight", "Exiting DRAIN Based on Inflight", startup::drain_inflight),
    case("drain-time", "Exiting DRAIN Based on Time", startup::drain_time),
    case("up-plateau", "Exiting PROBE_UP on Bandwidth Plateau", probe_bw::up_plateau),
    case("up-loss", "Exiting PROBE_UP on Loss When Application-Limited", probe_bw::up_loss),
    case(
        "app-limited",
        "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss",
        startup::app_limited,
    ),
    case("down-inflight", "Exiting PROBE_DOWN on Inflight", probe_bw::down_inflight),
    case("down-time", "Exiting PROBE_DOWN After Max Time", probe_bw::down_time),
    case("probe-rtt", "Entering and Exiting PROBE_RTT", probe_rtt::enters_and_exits),
    case(
        "probe-rtt-idle",
        "Skipping PROBE_RTT Due to Application-Limited Sending",
        probe_rtt::skipped_after_idle,
    ),
    case(
        "startup-aggregation",
        "Achieving Expected STARTUP Bandwidth on a Link With Aggregation",
        rates::startup_aggregation,
    ),
    case(
        "cruise-aggregation",
        "Achieving Expected Cruise Bandwidth on a Link With Aggregation",
        rates::cruise_aggregation,
    ),
    case("sub-packet", "Correctly Managing Sub-Packet BDPs", rates::sub_packet),
    case(
        "rate-up",
        "Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached",
        rates::rate_up,
    ),
    case(
        "rate-down",
        "Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down",
        rates::rate_down,
    ),
    case("policer", "Handling Token Bucket Policers", loss::policer),
    case("spurious-recovery", "Handling Spurious Fast Recovery", loss::spurious_recovery),
    case("spurious-timeout", "Handling Spurious RTO Recovery", loss::spurious_timeout),
    case(
        "probe-rtt-startup",
        "Entering and Exiting PROBE_RTT During STARTUP",
        probe_rtt::in_startup,
    ),
    case(
        "up-loss-longterm",
        "Handling Loss During PROBE_UP After inflight_longterm is Set",
        probe_bw::up_loss_longterm,
    ),
    case(
        "refill-app-limited",
        "Handling Application-Limited Sending During PROBE_REFILL",
        probe_bw::refill_app_limited,
    ),
    case(
        "min-rtt-filter",
        "ProbeRTT Design Rationale: BBR.ProbeRTTInterval against BBR.MinRTTFilterLen",
        probe_rtt::min_rtt_filter,
    ),
];

/// Does a path hold at least `least` packets?
fn holds(path: &BbrPath, least: u64) -> bool {
    path.packets() >= least
}

const SMALL: &str = "a flight of this path has too few packets";
