//! Helpers of the rules.

use units::Duration;

use super::QuicRule;
use crate::quic::analysis::{QuicAnalysis, QuicEpisode};
use crate::quic::budget::QuicSpan;
use crate::quic::clock::interval;
use crate::rules::{Confidence, EvidenceItem, Finding, FindingHelp, Severity, number, rate};

/// A finding about the whole connection, with the severity of its cost.
pub(super) fn finding(
    analysis: &QuicAnalysis,
    rule: &QuicRule,
    cost: u64,
    title: String,
) -> Finding {
    Finding {
        code: rule.code,
        kind: "",
        severity: severity(analysis, cost),
        confidence: Confidence::High,
        title,
        cost: Duration::from_nanos(cost),
        interval: interval((analysis.first, analysis.last)),
        frames: analysis.range,
        evidence: Vec::new(),
        cause: String::new(),
        help: FindingHelp::of(rule.help),
        named: None,
        unseen: String::new(),
        is_failure: false,
    }
}

/// Severity by cost: a tenth of the active time is a warning, half of it an error.
pub(super) fn severity(analysis: &QuicAnalysis, cost: u64) -> Severity {
    if is_at_least(analysis, cost, 2) {
        Severity::Error
    } else if is_at_least(analysis, cost, 10) {
        Severity::Warning
    } else {
        Severity::Note
    }
}

/// Whether the cost is at least a twentieth of the active time.
pub(super) fn is_significant(analysis: &QuicAnalysis, cost: u64) -> bool {
    is_at_least(analysis, cost, 20)
}

/// Whether the cost is at least this part of the active time.
fn is_at_least(analysis: &QuicAnalysis, cost: u64, part: u64) -> bool {
    cost > 0 && cost >= analysis.budget.active().div_ceil(part)
}

/// A note that the cost is an upper bound, if the rate of the bottleneck is unknown.
pub(super) fn bound(analysis: &QuicAnalysis) -> &'static str {
    if analysis.is_bottleneck_known() {
        ""
    } else {
        "the rate of the path, whose queue was never seen, so the cost is an upper bound"
    }
}

/// Evidence: the rate of the bottleneck, if it is known.
pub(super) fn path_rate(analysis: &QuicAnalysis) -> Option<EvidenceItem> {
    let bottleneck = analysis.bottleneck?;
    let text = format!("carries {} with a standing queue", rate(bottleneck));
    Some(number("path_rate_bps", bottleneck * 8.0, "path", text))
}

/// Totals of congestion events.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EpisodeSum {
    pub(super) count: u64,
    pub(super) lost: u64,
    pub(super) spurious: u64,
    /// Lost time in ns.
    pub(super) cost: u64,
    pub(super) span: QuicSpan,
    pub(super) interval: (u64, u64),
    pub(super) events: (u64, u64),
}

/// Sums the congestion events that `keep` selects.
pub(super) fn episodes(
    analysis: &QuicAnalysis,
    keep: impl Fn(&QuicEpisode) -> bool,
) -> Option<EpisodeSum> {
    let mut sum = EpisodeSum::default();
    for episode in analysis.episodes.iter().filter(|episode| keep(episode)) {
        if sum.count == 0 {
            (sum.interval.0, sum.events.0) = (episode.at, episode.events.0);
        }
        sum.count += 1;
        sum.lost += episode.lost;
        sum.spurious += episode.spurious;
        sum.span.merge(&episode.span);
        sum.interval.1 = episode.at.max(episode.span.interval.1);
        sum.events.1 = episode.events.1.max(episode.span.events.1);
    }
    sum.cost = analysis.lost_time(&sum.span);
    (sum.count > 0).then_some(sum)
}

/// Whether most packets of a congestion event arrived, so that it was spurious.
pub(super) const fn is_spurious(episode: &QuicEpisode) -> bool {
    episode.lost > 0 && episode.spurious * 2 > episode.lost
}
