//! The input of the rules, and shared helpers.

use units::{Duration, Instant};

use super::{
    Confidence, DiagnosisRule, EvidenceItem, EvidenceValue, Finding, FindingHelp, Neighbours,
    Severity, kinds_of,
};
use crate::capture_point::CapturePoint;
use crate::lost_time::LostTimeCause;
use crate::time_budget::Limiter;
use crate::timeline::Timeline;
use crate::{Analysis, FlowAnalysis, Negotiated};

/// One transfer: the data of one direction of a connection.
#[derive(Debug, Clone, Copy)]
pub struct DiagnosisCase<'a> {
    /// The connection.
    pub analysis: &'a Analysis,
    /// The data.
    pub flow: &'a FlowAnalysis,
    /// The timeline of the transfer.
    pub course: &'a Timeline,
    /// The connections of the capture, this one included.
    pub neighbours: &'a Neighbours,
}

/// Evidence that is the rate of the path.
pub(super) const PATH_RATE: &str = "path_rate_bps";
/// Evidence that is the rate of payload after a path became slower.
pub(super) const RATE_AFTER: &str = "rate_after_bps";
/// One second.
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// Least cost of a warning: half of the 0.1 s that a person perceives as no delay at all.
const MIN_COST: Duration = Duration::from_millis(50);
/// Fewest bytes of bulk data: a larger page.
const MIN_BULK: u64 = 100_000;
/// A number of losses in a row is no chance if it is this many times what independent losses have.
const UNLIKELY: f64 = 10.0;
/// Least cost of a warning in a small transfer: the shortest retransmission timeout.
pub(super) const MIN_SMALL_COST: Duration = Duration::from_millis(200);

impl<'a> DiagnosisCase<'a> {
    /// A finding of `rule` about the whole transfer, with the severity of its cost.
    pub(super) fn finding(&self, rule: &DiagnosisRule, cost: Duration, title: String) -> Finding {
        let flow = self.flow;
        let begin = self.analysis.first;
        // Without ACKs the delivery is unknown: the finding covers the whole capture.
        let end = if flow.answered { flow.last_delivery } else { self.analysis.last };
        Finding {
            code: rule.code,
            kind: "",
            severity: self.severity(cost),
            confidence: self.confidence(),
            title,
            cost,
            interval: (begin, end.max(flow.first_data.0)),
            frames: (self.analysis.first_frame, self.analysis.last_frame),
            evidence: Vec::new(),
            cause: String::new(),
            help: FindingHelp::of(rule.help),
            named: None,
            unseen: String::new(),
            is_failure: false,
        }
    }

    /// Active time of the connection.
    pub(super) fn active(&self) -> Duration {
        self.course.budget.active()
    }

    /// Whether the connection rested longer than it was at work: a session of requests, not a transfer.
    pub(super) fn is_mostly_idle(&self) -> bool {
        self.course.budget.of(Limiter::Idle) > self.active()
    }

    /// Whether the cost is at least a twentieth of the active time.
    pub(super) fn is_significant(&self, cost: Duration) -> bool {
        !cost.is_zero() && cost * 20 >= self.active()
    }

    /// Severity by cost: a tenth of the active time is a warning, half of it an error. Both have a
    /// floor: a warning needs [`MIN_COST`], in a small transfer [`MIN_SMALL_COST`], and an error a
    /// transfer of some size or a second.
    pub(super) fn severity(&self, cost: Duration) -> Severity {
        let active = self.active();
        let floor = if self.is_sizeable() { MIN_COST } else { MIN_SMALL_COST };
        if cost < floor || cost * 10 < active {
            Severity::Note
        } else if cost * 2 >= active && (self.is_sizeable() || cost >= SECOND) {
            Severity::Error
        } else {
            Severity::Warning
        }
    }

    /// Severity of a wait of the applications that takes this part of a time of work: a tenth of it is a warning, half
    /// an error, with the floors of a small transfer.
    pub(super) fn severity_of_wait(cost: Duration, work: Duration) -> Severity {
        if cost < MIN_SMALL_COST || cost * 10 < work {
            Severity::Note
        } else if cost * 2 >= work && cost >= SECOND {
            Severity::Error
        } else {
            Severity::Warning
        }
    }

    /// Whether the transfer is longer than a few initial windows (RFC 6928: ten segments each), so
    /// that its windows matter.
    pub(super) fn is_sizeable(&self) -> bool {
        self.flow.is_sizeable()
    }

    /// Whether the transfer is bulk data: of [`MIN_BULK`], in packets of half a segment or more on
    /// average, and most of it captured. Terminals, chats, polls and control channels are
    /// interactive: they wait for their users.
    pub(super) fn is_bulk(&self) -> bool {
        let flow = self.flow;
        let long = flow.bytes * 2 >= flow.counts.new * flow.mss.max(536);
        self.is_sizeable() && flow.bytes >= MIN_BULK && long && flow.unseen * 2 <= flow.bytes
    }

    /// High at the sender; elsewhere the sender's actions are inferred.
    pub(super) fn confidence(&self) -> Confidence {
        match self.flow.point {
            CapturePoint::Sender => Confidence::High,
            CapturePoint::Receiver | CapturePoint::Middle => Confidence::Medium,
            CapturePoint::Unknown => Confidence::Low,
        }
    }

    /// Totals of the recovery episodes with this cause.
    pub(super) fn episodes(&self, blame: LostTimeCause) -> EpisodeTotals {
        let mut found = EpisodeTotals::default();
        for (episode, _) in
            self.flow.episodes.iter().zip(&self.course.episode_causes).filter(|(_, b)| **b == blame)
        {
            if found.count == 0 {
                found.interval.0 = episode.silent_since.min(episode.begin);
                found.frames.0 = episode.frames.0;
            }
            found.count += 1;
            found.interval.1 = episode.end;
            found.frames.1 = episode.frames.1;
            found.retransmitted += episode.retransmitted;
            found.acked_before += episode.acked_before;
            found.in_a_row += episode.in_a_row;
            found.lost += episode.retransmitted - episode.spurious;
            found.timeouts += u64::from(episode.timeouts);
            found.stalled += episode.begin.since(episode.silent_since);
            found.rtt = found.rtt.max(episode.rtt);
            found.window = found.window.max(episode.window);
        }
        found
    }

    /// Whether the losses with an empty queue are many, or come in bursts: what CC201 is about. Few single ones are
    /// CC205's.
    pub(super) fn loses_often(&self, losses: &EpisodeTotals) -> bool {
        losses.count >= super::ENOUGH_LOSSES || self.are_bursts(losses)
    }

    /// Whether packets are lost several in a row: three or more a recovery on average, where independent losses are hardly
    /// more than one; or two or more directly behind another, a third of all and [`UNLIKELY`] times as many as
    /// independent losses at their rate have.
    pub(super) fn are_bursts(&self, losses: &EpisodeTotals) -> bool {
        let EpisodeTotals { count, lost, in_a_row, .. } = *losses;
        let sent = self.flow.counts.new as f64;
        let expected = lost as f64 * lost as f64 / sent.max(1.0);
        let is_likely = in_a_row < 2 || (in_a_row as f64) < UNLIKELY * expected;
        lost >= 3 * count && lost >= 3 || !is_likely && in_a_row * 3 >= lost
    }

    /// Whether SACK is not in use: a SYN lacks it, or without SYNs duplicate ACKs show it.
    pub(super) fn has_no_sack(&self) -> bool {
        let negotiated = Negotiated::of(self.analysis).sack();
        negotiated.map_or(self.flow.duplicates_without_sack, |has| !has)
    }

    /// The kind of these losses with an empty queue.
    pub(super) fn kind_of_losses(&self, losses: &EpisodeTotals) -> &'static str {
        match () {
            () if self.has_no_sack() => "no-sack",
            () if self.are_bursts(losses) => "burst",
            () => "",
        }
    }

    /// Evidence: number of lost packets and of recoveries.
    pub(super) fn lost_packets(losses: &EpisodeTotals) -> EvidenceItem {
        let text = format!("{} in {}", losses.lost, many(losses.count, "recovery"));
        count("lost_packets", losses.lost, "losses", text)
    }

    /// Evidence: RTT at the loss, and that of the empty path.
    pub(super) fn queue_at_loss(&self, losses: &EpisodeTotals) -> EvidenceItem {
        let base = self.course.path.base_rtt.unwrap_or_default();
        let text = if losses.rtt.is_zero() {
            format!("not seen: no round trip could be measured but {} at rest", time(base))
        } else {
            format!("round trip at the loss at most {}, at rest {}", time(losses.rtt), time(base))
        };
        number("rtt_at_loss_s", seconds(losses.rtt), "queue", text)
    }

    /// A note that the cost is an upper bound, if the rate of the path is unknown.
    pub(super) fn bound(&self) -> &'static str {
        if self.course.path.rate.is_some() {
            ""
        } else {
            "the rate of the path was never reached, so the cost is an upper bound"
        }
    }

    /// Bytes as segments, rounded.
    pub(super) fn segments(&self, bytes: u64) -> u64 {
        let mss = self.flow.mss.max(1);
        // A window that was in use holds at least a segment.
        ((bytes + mss / 2) / mss).max(u64::from(bytes > 0))
    }

    /// Evidence: the rate of the path, if it is known.
    pub(super) fn path_rate(&self) -> Option<EvidenceItem> {
        let rate = self.course.path.rate?;
        Some(number(PATH_RATE, rate * 8.0, "path", format!("carries {}", self::rate(rate))))
    }
}

/// Totals of recovery episodes with one cause.
#[derive(Debug, Clone, Copy)]
pub(super) struct EpisodeTotals {
    pub(super) count: u64,
    pub(super) interval: (Instant, Instant),
    pub(super) frames: (u64, u64),
    pub(super) retransmitted: u64,
    pub(super) lost: u64,
    /// Packets whose ACK had passed the capture point.
    pub(super) acked_before: u64,
    /// Packets that were lost behind another one.
    pub(super) in_a_row: u64,
    pub(super) timeouts: u64,
    /// Silence before the episodes.
    pub(super) stalled: Duration,
    pub(super) rtt: Duration,
    pub(super) window: u64,
}

impl Default for EpisodeTotals {
    fn default() -> Self {
        Self {
            count: 0,
            interval: (Instant::ZERO, Instant::ZERO),
            frames: (0, 0),
            retransmitted: 0,
            lost: 0,
            acked_before: 0,
            in_a_row: 0,
            timeouts: 0,
            stalled: Duration::ZERO,
            rtt: Duration::ZERO,
            window: 0,
        }
    }
}

impl EpisodeTotals {
    /// From the first of them to the last.
    pub(super) const fn length(&self) -> Duration {
        self.interval.1.since(self.interval.0)
    }
}

impl Finding {
    pub(crate) fn at(mut self, interval: (Instant, Instant), frames: (u64, u64)) -> Self {
        self.interval = interval;
        self.frames = frames;
        self
    }

    pub(crate) fn with(mut self, evidence: impl IntoIterator<Item = EvidenceItem>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = cause.into();
        self
    }

    pub(crate) fn unseen(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            if !self.unseen.is_empty() {
                self.unseen.push_str("; ");
            }
            self.unseen.push_str(&text);
        }
        self
    }

    pub(crate) fn of_kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        let own = kinds_of(self.code).find(|one| one.name == kind && !one.help.is_empty());
        if let Some(own) = own {
            self.help = FindingHelp::of(own.help);
        }
        self
    }

    pub(crate) fn note(mut self) -> Self {
        self.severity = Severity::Note;
        self
    }

    /// Marks the connection as failed, which is an error.
    pub(crate) const fn failure(mut self) -> Self {
        (self.severity, self.is_failure) = (Severity::Error, true);
        self
    }

    /// Marks the connection as failed if the finding is above a note.
    pub(crate) fn failure_above_note(mut self) -> Self {
        self.is_failure = self.severity > Severity::Note;
        self
    }
}

pub(crate) fn number(
    key: &'static str,
    value: f64,
    label: &'static str,
    text: String,
) -> EvidenceItem {
    EvidenceItem { key, value: EvidenceValue::Number(value), label, text }
}

pub(crate) fn count(
    key: &'static str,
    value: u64,
    label: &'static str,
    text: String,
) -> EvidenceItem {
    EvidenceItem { key, value: EvidenceValue::Count(value), label, text }
}

/// A time in seconds.
pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// Formats a time with three digits: `620 us`, `45.3 ms`, `1.27 s`.
pub fn time(time: Duration) -> String {
    let ns = time.as_nanos();
    match ns {
        0 => "0 s".into(),
        1..1_000_000 => format!("{} us", ns / 1_000),
        1_000_000..10_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        10_000_000..100_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        100_000_000..1_000_000_000 => format!("{:.0} ms", ns as f64 / 1e6),
        1_000_000_000..10_000_000_000 => format!("{:.2} s", ns as f64 / 1e9),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// Formats a rate, given in bytes per second, in bits: `98.6 Mbit/s`.
pub fn rate(bytes_per_second: f64) -> String {
    let bits = bytes_per_second * 8.0;
    let (value, unit) = if bits >= 1e9 {
        (bits / 1e9, "Gbit/s")
    } else if bits >= 1e6 {
        (bits / 1e6, "Mbit/s")
    } else if bits >= 1e3 {
        (bits / 1e3, "kbit/s")
    } else {
        (bits, "bit/s")
    };
    if value >= 100.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// Formats a size, decimal: `1.25 MB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

/// Formats a fraction in percent.
pub fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    if share > 0.0 && share < 1.0 { "<1 %".into() } else { format!("{share:.0} %") }
}

/// Formats the fraction `part` of the time `whole` in percent.
pub fn time_percent(part: Duration, whole: Duration) -> String {
    percent(part.as_nanos(), whole.as_nanos())
}

/// The fraction `part` of the time `whole`.
pub(super) fn time_share(part: Duration, whole: Duration) -> f64 {
    part.as_nanos() as f64 / whole.as_nanos().max(1) as f64
}

/// `bytes` in `time`, in bytes per second.
pub(super) fn throughput(bytes: u64, time: Duration) -> f64 {
    bytes as f64 * 1e9 / time.as_nanos() as f64
}

/// Bytes in `time` at a rate in bytes per second.
pub(super) fn bytes_in(rate: f64, time: Duration) -> f64 {
    rate * time.as_nanos() as f64 / 1e9
}

/// Number of doublings of a window from `from` to `to`, the last one in proportion.
pub(super) fn doublings(from: u64, to: u64) -> f64 {
    let (mut window, mut count) = (from.max(1), 0.0);
    while window * 2 <= to {
        window *= 2;
        count += 1.0;
    }
    count + (to.max(window) - window) as f64 / window as f64
}

/// `1 lost packet`, `7 lost packets`, `7 recoveries`, `7 echoes`.
pub fn many(count: u64, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) if what.ends_with('o') || what.ends_with("ch") => format!("{count} {what}es"),
        (_, None) => format!("{count} {what}s"),
    }
}
