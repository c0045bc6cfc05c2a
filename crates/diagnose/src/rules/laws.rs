//! Laws that the costs of all findings obey, whatever rule made them.
//!
//! A cost lies within the interval of its finding, which lies within the connection: losses cost time after
//! the last of them, until the window is regained, so an interval shorter than its cost is extended. And no
//! finding costs more than what the transfer took beyond its bytes at the rate of the path, where that is known; nor
//! do those above a note together.

use units::{Duration, Instant};

use super::case::DiagnosisCase;
use super::{Finding, Severity};

/// Makes a finding obey the laws.
pub(super) fn obey(finding: &mut Finding, case: &DiagnosisCase<'_>) {
    let (first, last) = (case.analysis.first, case.analysis.last);
    let spare = spare(case).unwrap_or(Duration::MAX);
    finding.cost = finding.cost.min(spare).min(last.since(first));
    finding.interval = widened(finding.interval, finding.cost, (first, last));
}

/// Makes the findings above a note obey the law of all: together they cost no more than what could be saved. What a
/// costlier one explains is not another's too.
pub(crate) fn obey_together(findings: &mut [Finding], case: &DiagnosisCase<'_>) {
    let Some(mut left) = spare(case) else { return };
    let slow = |found: &&mut Finding| found.severity > Severity::Note && !found.is_failure;
    for finding in findings.iter_mut().filter(slow) {
        if finding.cost > left {
            finding.cost = left;
            finding.severity = finding.severity.min(case.severity(left));
        }
        left = left.saturating_sub(finding.cost);
    }
}

/// Time of the connection beyond its bytes at the rate of the path; `None` if that is not known.
fn spare(case: &DiagnosisCase<'_>) -> Option<Duration> {
    let rate = case.course.path.rate.filter(|&rate| rate > 0.0)?;
    let ideal = Duration::from_nanos((case.flow.bytes as f64 / rate * 1e9) as u64);
    Some(case.analysis.last.since(case.analysis.first).saturating_sub(ideal))
}

/// The interval, extended at its end and then at its begin until it holds the cost, within the bounds.
pub(crate) fn widened(
    (begin, end): (Instant, Instant),
    cost: Duration,
    (first, last): (Instant, Instant),
) -> (Instant, Instant) {
    let (begin, end) = (begin.clamp(first, last), end.clamp(first, last));
    let end = end.max(begin + cost).min(last);
    let missing = cost.saturating_sub(end.since(begin));
    (first.max(Instant::from_nanos(begin.as_nanos().saturating_sub(missing.as_nanos()))), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn an_interval_holds_its_cost_within_the_connection() {
        let bounds = (at(10), at(100));
        let ms = Duration::from_millis;
        assert_eq!(widened((at(20), at(50)), ms(30), bounds), (at(20), at(50)));
        assert_eq!(widened((at(20), at(50)), ms(40), bounds), (at(20), at(60)));
        assert_eq!(widened((at(80), at(90)), ms(40), bounds), (at(60), at(100)));
        assert_eq!(widened((at(80), at(90)), ms(90), bounds), (at(10), at(100)));
        assert_eq!(widened((at(0), at(200)), ms(0), bounds), bounds);
    }
}
