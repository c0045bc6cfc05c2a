//! Whether the think time of one host is much of the time of a connection: shared by CC505 and CC506.
//!
//! A few long waits are no sign of a slow host: a lost message, a long poll or a user look the same.
//! So the condition must also hold without the longest wait. For a single slow response see `slow_responses`.

use packet::Dir;
use units::Duration;

use super::case::{DiagnosisCase, count, many, number, seconds, time, time_percent, time_share};
use super::{Confidence, DiagnosisRule, Finding};
use crate::capture_point::CapturePoint;
use crate::exchange::{ExchangeBudget, ExchangeShare, MIN_MESSAGE, Waits};

/// Fewest turns of a host from which its think time is judged.
pub(super) const MIN_TURNS: u64 = 3;
/// Fewest turns of a client, which may wait for a user.
const MIN_CLIENT_TURNS: u64 = 5;
/// Shortest mean think time: half of the 0.1 s that a person perceives as no delay at all.
const MIN_MEAN: Duration = Duration::from_millis(50);
/// The same of a client between bulk data, for which a program waits: a tick of a clock of 100 Hz.
const MIN_BULK_MEAN: Duration = Duration::from_millis(10);
/// Longest mean think time of a server. Long polls and heartbeats take longer.
pub(super) const MAX_SERVER_MEAN: Duration = Duration::from_secs(10);
/// Longest think time of a client. Users take longer, and players of media fetch
/// a piece of a second or more at a time.
const MAX_CLIENT_WAIT: Duration = Duration::from_millis(900);
/// A client's longest wait is at most this many times the mean: a program's are alike, a user's vary.
const CLIENT_SPREAD: u64 = 4;
/// The same of a client that waits in equal steps, whatever it transfers.
const EQUAL_SPREAD: u64 = 2;

/// The turns of a host that takes most of the time of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThinkTime<'a> {
    pub(super) waits: Waits,
    /// Its think time and its pauses within messages.
    pub(super) total: Duration,
    budget: &'a ExchangeBudget,
    /// Time of the connection without rests.
    work: Duration,
}

impl<'a> ThinkTime<'a> {
    /// The think time of the host that sends in this direction, if that and its pauses are at least a tenth
    /// of the time. `None` also where that is in doubt.
    pub(super) fn of(case: &DiagnosisCase<'a>, host: Dir) -> Option<Self> {
        let analysis = case.analysis;
        let budget = analysis.exchange.as_deref()?;
        if !roles_are_known(case) || case.flow.dir != analysis.main_dir() {
            return None;
        }
        let waits = budget.thinking[host as usize];
        let work = budget.whole().saturating_sub(budget.of(ExchangeShare::Idle));
        let is_client = host == Dir::Forward;
        let fewest = if is_client { MIN_CLIENT_TURNS } else { MIN_TURNS };
        if waits.count < fewest {
            return None;
        }
        let longest = waits.longest.length;
        let rest = waits.total.saturating_sub(longest);
        let mean = rest / (waits.count - 1);
        let total = waits.total + budget.pauses[host as usize];
        let is_most = |total: Duration, work: Duration| total * 10 >= work;
        let is_most = is_most(total, work)
            && is_most(total.saturating_sub(longest), work.saturating_sub(longest))
            // Pauses alone may be those of a server that reports events.
            && rest * 10 >= work;
        let least = if is_client && case.is_bulk() { MIN_BULK_MEAN } else { MIN_MEAN };
        let is_long = mean >= least.max(queue(case) * 2);
        let is_usual = if is_client {
            // An interactive connection waits for its users.
            // Polls wait in equal steps too, on purpose.
            let transfers = case.flow.bytes >= waits.count * case.flow.mss;
            let spread = if case.is_bulk() { CLIENT_SPREAD } else { EQUAL_SPREAD };
            transfers && longest <= MAX_CLIENT_WAIT && longest <= mean * spread
        } else {
            mean <= MAX_SERVER_MEAN && has_messages(case, waits.count)
        };
        (is_most && is_long && is_usual).then_some(Self { waits, total, budget, work })
    }

    /// Time of the connection without rests.
    pub(super) const fn work(&self) -> Duration {
        self.work
    }

    /// Mean time to the first byte of a response, as the client observes it.
    pub(super) fn first_byte(&self) -> Duration {
        self.budget.first_byte.mean().unwrap_or_default()
    }

    /// A finding about it.
    pub(super) fn finding(
        &self,
        case: &DiagnosisCase<'_>,
        rule: &DiagnosisRule,
        host: Dir,
        title: String,
    ) -> Finding {
        let (waits, longest) = (self.waits, self.waits.longest);
        let mean = waits.mean().unwrap_or_default();
        let spent = |share: ExchangeShare| {
            format!("{} {}", share.name(), time_percent(self.budget.of(share), self.work))
        };
        let shares = [
            ExchangeShare::Network,
            ExchangeShare::Client,
            ExchangeShare::Server,
            ExchangeShare::Transfer,
        ];
        let (what, message, name, kind) = match host {
            Dir::Reverse => ("response", "response", "server", "think-server"),
            Dir::Forward => ("further request", "request", "client", "think-client"),
        };
        let mut finding = case.finding(rule, self.total, title).of_kind(kind).with([
            number(
                "think_s",
                seconds(waits.total),
                "thinks",
                format!(
                    "{} before {}, {} on average",
                    time(waits.total),
                    many(waits.count, what),
                    time(mean)
                ),
            ),
            number(
                "longest_think_s",
                seconds(longest.length),
                "longest",
                format!(
                    "{} in frames {}..{}, until {:.3} s",
                    time(longest.length),
                    longest.frames.0,
                    longest.frames.1,
                    longest.until.as_secs_f64()
                ),
            ),
            count("turns", waits.count, "", String::new()),
            number("mean_think_s", seconds(mean), "", String::new()),
            number(
                "think_share",
                time_share(self.total, self.work),
                "time",
                shares.map(spent).join(", "),
            ),
        ]);
        if self.total > waits.total {
            let pauses = self.total - waits.total;
            let text = format!("{} within its {}s", time(pauses), message);
            finding = finding.with([number("pauses_s", seconds(pauses), "pauses", text)]);
        }
        finding.severity = DiagnosisCase::severity_of_wait(self.total, self.work);
        let is_here = case.analysis.capture_point(host) == CapturePoint::Sender;
        finding.confidence = if is_here { Confidence::High } else { Confidence::Medium };
        if !is_here {
            finding = finding
                .unseen(format!("packets that were lost between the {name} and the capture point"));
        }
        finding
    }
}

/// Whether the think time of a host explains the waits of the applications.
pub(super) fn explains_waits(case: &DiagnosisCase<'_>) -> bool {
    [Dir::Forward, Dir::Reverse].into_iter().any(|host| ThinkTime::of(case, host).is_some())
}

/// Least port that systems give to clients: 32,768 on Linux, 49,152 elsewhere (RFC 6335 section 6).
const FIRST_EPHEMERAL: u16 = 32_768;

/// Whether the capture shows who the client and the server are: by a SYN, or by a port that only clients have.
pub(super) fn roles_are_known(case: &DiagnosisCase<'_>) -> bool {
    let (events, ends) = (&case.analysis.events, &case.analysis.ends);
    let is_client = |port: u16| port >= FIRST_EPHEMERAL;
    events.syns.count > 0
        || events.syn_acks.count > 0
        || is_client(ends.src.port()) && !is_client(ends.dst.port())
}

/// The usual delay of a queue in either direction. It counts as think time of the host at its
/// far end.
pub(super) fn queue(case: &DiagnosisCase<'_>) -> Duration {
    let flows = case.analysis.flows.iter().flatten();
    flows
        .filter_map(|flow| flow.rtt)
        .map(|(min, smoothed, _)| smoothed.saturating_sub(min))
        .max()
        .unwrap_or_default()
}

/// Whether a message of either host has some bytes on average.
pub(super) fn has_messages(case: &DiagnosisCase<'_>, turns: u64) -> bool {
    let mut flows = case.analysis.flows.iter().flatten();
    flows.any(|flow| flow.bytes >= MIN_MESSAGE * turns)
}
