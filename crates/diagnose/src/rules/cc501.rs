//! CC501: the application is the limit.
//!
//! Checks for time in which both windows were open, all written data were sent (the last segment
//! carried PSH or was short), and the next data were not triggered by an ACK.
//!
//! Times within messages, however long, are those of `interruptions`.
//!
//! Requests that go one after the other are the kind `round-trips`: see `round_trips`.
//!
//! Waits of an interactive connection (see `DiagnosisCase::is_bulk`), or of less than a few tenths of a second in
//! all, are a note; so are those that the think time of a host explains (CC505, CC506), which does not count here.
//!
//! Cost: that time less the time its bytes take at the rate of the path. Idle times longer than a
//! timeout do not count: no transfer was in progress.

use super::case::{
    DiagnosisCase, MIN_SMALL_COST, count, number, seconds, size, time, time_percent,
};
use super::help::{Remedy, RemedyHost};
use super::interruptions::{self, interruptions};
use super::round_trips::RoundTrips;
use super::think_time::{explains_waits, roles_are_known};
use super::{DiagnosisRule, Finding, Severity};
use crate::lost_time::LostTimeCause;
use crate::time_budget::Limiter;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC501",
    name: "the application is the limit",
    check,
    background: "\
TCP can send only what it was given. When the last segment of a burst carries PSH (both FreeBSD and
Linux set it on the segment that empties the send buffer), nothing follows although both windows have
room, and the next data come without an ACK having let them go, the sender was waiting for the
application: for its disk, its peer, its own pace. No setting of the network changes that.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "sender: netstat -Tan and truss -d -p PID: what the application does between its writes"),
        Remedy::linux(RemedyHost::Sender, "sender: ss -ti (app_limited, busy), strace -T -p PID: what the application does between its writes"),
        Remedy::general("sender: larger writes, read-ahead, pipelining instead of one request at a time"),
    ],
};

/// Fewest messages of the peer that show that it admits the data.
const MIN_GRANTS: u64 = 10;
/// Longest such message on average.
const MAX_GRANT: u64 = 200;

/// The window of an application above TCP (HTTP/2, SSH, SMB): what it has in flight at most, if its peer admits the
/// data by many small messages.
fn window_of_application(case: &DiagnosisCase<'_>) -> Option<u64> {
    let flow = case.flow;
    let peer = case.analysis.flows[flow.dir.reversed() as usize].as_deref()?;
    let grants = peer.counts.new;
    let is_granted = grants >= MIN_GRANTS
        && peer.bytes <= grants * MAX_GRANT
        && grants * 2 >= flow.rounds.len() as u64;
    is_granted.then(|| flow.rounds.iter().map(|round| round.flight).max())?
}

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    if let Some(found) = RoundTrips::of(case) {
        return Some(found.finding(case, &RULE));
    }
    let waiting = waiting(case);
    // Pauses shorter than a timeout are both, and a window of the application is more than pauses.
    let interrupted = interruptions(case).filter(|waits| {
        let is_known = |found: &Finding| {
            found.severity > Severity::Note
                && (found.cost >= waits.total / 2 || !found.kind.is_empty())
        };
        !waiting.as_ref().is_some_and(is_known)
    });
    match interrupted {
        Some(waits) => Some(interruptions::finding(waits, case, &RULE)),
        None => waiting,
    }
}

/// Pauses that are shorter than a timeout.
fn waiting(case: &DiagnosisCase<'_>) -> Option<Finding> {
    // What a host waited before a message is the finding of that host (CC505, CC506), or its user's.
    let thinking = case
        .analysis
        .exchange
        .as_deref()
        .map(|budget| budget.thinking[case.flow.dir as usize].total);
    let cost = case.course.lost(LostTimeCause::Application);
    let cost = cost.saturating_sub(thinking.filter(|_| roles_are_known(case)).unwrap_or_default());
    if !case.is_significant(cost) {
        return None;
    }
    let flow = case.flow;
    let waited = case.course.budget.of(Limiter::Application);
    let window = window_of_application(case);
    let mut title = format!(
        "the application has nothing to send {} of the time",
        time_percent(waited, case.active())
    );
    if let Some(window) = window {
        title = format!(
            "the application sends {} and waits for its peer: its own window, {} of the time",
            size(window),
            time_percent(waited, case.active())
        );
    }
    let (longest, frame) = flow.longest_pause;
    let mut finding = case
        .finding(&RULE, cost, title)
        .of_kind(if window.is_some() { "app-window" } else { "" })
        .with(window.map(|window| {
            count(
                "app_window_bytes",
                window,
                "window",
                format!("{} in flight at most", size(window)),
            )
        }))
        .with([
            number(
                "waited_s",
                seconds(waited),
                "waited",
                match flow.pauses {
                    0 => time(waited),
                    pauses => format!("{} in {}", time(waited), super::case::many(pauses, "pause")),
                },
            ),
            number(
                "longest_pause_s",
                seconds(longest),
                if flow.pauses == 0 { "" } else { "longest" },
                format!("{}, ended by frame {frame}", time(longest)),
            ),
            number(
                "idle_s",
                seconds(case.course.budget.of(Limiter::Idle)),
                "rests",
                format!(
                    "{} longer than a timeout, not counted",
                    time(case.course.budget.of(Limiter::Idle))
                ),
            ),
            count("pauses", flow.pauses, "", String::new()),
        ])
        .because("the sending application writes less than the path carries")
        .unseen("what it waits for; a full send buffer would look different (CC503)")
        .unseen(case.bound());
    if !case.is_bulk() || cost < MIN_SMALL_COST || case.is_mostly_idle() || explains_waits(case) {
        // An interactive connection waits for its users, and so does one that mostly rests; a wait
        // under a second is not one.
        finding = finding.note();
    }
    Some(finding)
}
