//! Laws that the costs of all findings of QUIC obey, as those of captures do.
//!
//! A cost lies within the interval of its finding, which lies within the connection. No finding costs more than what the
//! transfer took beyond its bytes at the rate of the bottleneck, where that is known, nor do those above a note together;
//! where it is not, they cost no more than the connection took. Where the limit of most of the time is not known, what costs less
//! is a note. What a sender's first round trips take while its window
//! doubles is a cost of slow start only.

use units::Duration;

use super::SLOW_START;
use super::case::{avoidable, severity};
use crate::quic::clock::interval;
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::laws::widened;
use crate::rules::{Finding, Severity};

/// What all costs together are at most.
fn spare(analysis: &QuicAnalysis) -> Duration {
    Duration::from_nanos(analysis.spare().unwrap_or_else(|| analysis.duration()))
}

/// Makes a finding obey the laws.
pub(super) fn obey(finding: &mut Finding, analysis: &QuicAnalysis) {
    let stated = finding.cost;
    finding.cost = finding.cost.min(spare(analysis));
    // Only the one about slow start could save that.
    if finding.code != SLOW_START
        && let Some(most) = avoidable(analysis)
    {
        finding.cost = finding.cost.min(Duration::from_nanos(most));
    }
    if finding.cost < stated && !finding.is_failure {
        finding.severity = finding.severity.min(severity(analysis, finding.cost.as_nanos()));
    }
    // What limited most of the time is not known: a smaller share is no verdict.
    let unknown = analysis.lost_time(analysis.budget.of(QuicLimiter::Unknown));
    if analysis.is_limit_unknown()
        && !finding.cost.is_zero()
        && stated < Duration::from_nanos(unknown)
        && !finding.is_failure
    {
        finding.severity = Severity::Note;
    }
    let bounds = interval((analysis.first, analysis.last));
    finding.interval = widened(finding.interval, finding.cost, bounds);
}

/// Makes the findings above a note obey the law of all, in their order. What a costlier one explains is not another's too.
pub(super) fn obey_together(findings: &mut [Finding], analysis: &QuicAnalysis) {
    let mut left = spare(analysis);
    let slow = |found: &&mut Finding| found.severity > Severity::Note && !found.is_failure;
    for finding in findings.iter_mut().filter(slow) {
        if finding.cost > left {
            finding.cost = left;
            finding.severity = finding.severity.min(severity(analysis, left.as_nanos()));
        }
        left = left.saturating_sub(finding.cost);
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::finding;
    use super::super::cc834::RULE;
    use super::*;

    /// Of a second 200 ms are slow start; what limited the rest is not known.
    #[test]
    fn a_small_share_is_no_verdict_where_most_is_unknown() {
        for (limiter, severity) in
            [(QuicLimiter::Unknown, Severity::Note), (QuicLimiter::Application, Severity::Warning)]
        {
            let mut analysis = QuicAnalysis { last: 1_000_000_000, ..QuicAnalysis::default() };
            analysis.budget.spans[limiter as usize].add(0, 800_000_000, 1);
            let slow_start = &mut analysis.budget.spans[QuicLimiter::SlowStart as usize];
            slow_start.add(800_000_000, 1_000_000_000, 2);
            let mut found = finding(&analysis, &RULE, 200_000_000, "slow start".to_owned());
            obey(&mut found, &analysis);
            assert_eq!(found.severity, severity);
        }
    }
}
