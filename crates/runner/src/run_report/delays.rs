//! Tables of completion times, response times and other delays.

use sim::{LatencyKind, RunOutcome};
use units::Duration;

use super::{aligned, spaced};

/// The completion times of groups of connections, after an empty line; nothing without groups.
pub(super) fn completions(outcome: &RunOutcome) -> String {
    let rows = completion_rows(outcome);
    if rows.len() > 1 { format!("\n{}", aligned(&rows)) } else { String::new() }
}

/// The headings of the table of completion times, and a row for each group of connections.
pub fn completion_rows(outcome: &RunOutcome) -> Vec<[String; 10]> {
    let head = [
        "flow",
        "connections",
        "finished",
        "completion p50",
        "p95",
        "p99",
        "max",
        "slowdown p50",
        "slowdown p95",
        "slowdown p99",
    ];
    let rows = outcome.flows.iter().filter_map(|flow| {
        // Groups of pages and videos have figures of their own.
        let is_page = flow.latency.is_some_and(|latency| latency.kind == LatencyKind::Pages);
        let group = flow.group.as_ref().filter(|_| !is_page && flow.video.is_none())?;
        let time = |part: usize| {
            let time = group.completion.get(part).copied();
            let micros = time.map(|time| Duration::from_micros((time.as_nanos() + 500) / 1_000));
            micros.map_or_else(|| "–".to_owned(), spaced)
        };
        let slowdown = |part: usize| {
            group.slowdown.get(part).map_or_else(|| "–".to_owned(), |part| format!("{part:.2}"))
        };
        Some([
            flow.name.clone(),
            group.flows.to_string(),
            group.finished.to_string(),
            time(0),
            time(1),
            time(2),
            time(3),
            slowdown(0),
            slowdown(1),
            slowdown(2),
        ])
    });
    core::iter::once(head.map(str::to_owned)).chain(rows).collect()
}

/// The response times of the flows that make requests and the delays of frames, each after an empty
/// line; nothing without such flows.
pub(super) fn latencies(outcome: &RunOutcome) -> String {
    let of = |kind| {
        let rows = latency_rows(outcome, kind);
        if rows.len() > 1 { format!("\n{}", aligned(&rows)) } else { String::new() }
    };
    LATENCIES.map(of).concat()
}

/// The kinds of latencies, in the order of their tables.
pub const LATENCIES: [LatencyKind; 5] = [
    LatencyKind::Requests,
    LatencyKind::Pages,
    LatencyKind::Frames,
    LatencyKind::Pings,
    LatencyKind::Datagrams,
];

/// The headings of a table of latencies, and the row of each flow that has some of this kind.
pub fn latency_rows(outcome: &RunOutcome, kind: LatencyKind) -> Vec<[String; 6]> {
    // Rounded to a microsecond: the delays of frames have any number of nanoseconds.
    let short = |span: Duration| match kind {
        LatencyKind::Requests => spaced(span),
        _ => spaced(Duration::from_micros((span.as_nanos() + 500) / 1_000)),
    };
    let span = |span: Option<Duration>| span.map_or_else(|| "–".to_owned(), short);
    let head = match kind {
        LatencyKind::Requests => ["flow", "requests", "response p50", "p95", "p99", "max"],
        LatencyKind::Frames => ["flow", "frames", "frame delay p50", "p95", "p99", "max"],
        LatencyKind::Pages => ["flow", "pages", "page load p50", "p95", "p99", "max"],
        LatencyKind::Pings => ["flow", "pings", "round trip p50", "p95", "p99", "max"],
        LatencyKind::Datagrams => ["flow", "datagrams", "one-way delay p50", "p95", "p99", "max"],
    };
    let rows = outcome.flows.iter().filter_map(|flow| {
        let latency = flow.latency.filter(|latency| latency.kind == kind)?;
        Some([
            flow.name.clone(),
            match flow.datagrams {
                Some(counts) => format!("{} of {}", counts.received, counts.sent),
                None => latency.requests.to_string(),
            },
            short(latency.median),
            span(latency.p95),
            span(latency.p99),
            short(latency.max),
        ])
    });
    core::iter::once(head.map(str::to_owned)).chain(rows).collect()
}
