//! Connections, budgets, findings and rounds as tables.

use diagnose::rules::{Finding, Severity, percent, rate, rule, size, time};
use diagnose::{Budget, Flow, Limiter};
use report::table::{Cell, Column, Table, Tone};

use ingest::diagnosis::FileReport;

/// Rows of a table of connections or rounds.
const ROWS: usize = 500;

/// All connections of a file, worst first.
pub(super) fn connections(report: &FileReport) -> Table {
    let rows = report.connections.iter().take(ROWS).map(|judged| {
        let limit = judged.primary.and_then(rule);
        vec![
            Cell::from(judged.stream.analysis.stream.to_string()),
            judged.transfer().into(),
            size(judged.flow().map_or(0, |flow| flow.bytes)).into(),
            time(judged.stream.analysis.duration().as_nanos()).into(),
            rate(judged.goodput()).into(),
            time(judged.cost).into(),
            limit.map_or("–".into(), |rule| format!("{} {}", rule.code, rule.name)).into(),
        ]
    });
    let all = report.connections.len();
    Table {
        caption: "Connections, by lost time".into(),
        columns: vec![
            Column::numbers("flow"),
            Column::words("transfer"),
            Column::numbers("bytes"),
            Column::numbers("time"),
            Column::numbers("goodput"),
            Column::numbers("lost"),
            Column::words("limited by"),
        ],
        rows: rows.collect(),
        note: match all.checked_sub(ROWS) {
            Some(left) if left > 0 => format!("{left} more are left out."),
            _ => String::new(),
        },
        is_long: all > 20,
        ..Table::default()
    }
}

/// Where the time went.
pub(super) fn budget(budget: &Budget) -> Table {
    let whole = budget.whole();
    let held = Limiter::ALL.into_iter().filter(|limiter| budget.of(*limiter) > 0);
    let rows = held.map(|limiter| {
        let ns = budget.of(limiter);
        vec![Cell::from(limiter.name()), time(ns).into(), percent(ns, whole).into()]
    });
    Table {
        caption: "Where the time went".into(),
        columns: vec![
            Column::words("limited by"),
            Column::numbers("time"),
            Column::numbers("share"),
        ],
        rows: rows.collect(),
        ..Table::default()
    }
}

/// The findings, costliest first; each leads to its time in the graph.
pub(super) fn findings(findings: &[Finding], stream: u32, active: u64, plots: &str) -> Table {
    let rows = findings.iter().map(|found| {
        let tone = match found.severity {
            Severity::Note => Tone::Quiet,
            Severity::Warning => Tone::Plain,
            Severity::Error => Tone::Bad,
        };
        let (from, to) = found.interval;
        let code = Cell::from(found.code).tone(tone);
        let axis = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let cost = match found.cost {
            0 => "–".to_owned(),
            cost => format!("{} ({})", time(cost), percent(cost, active)),
        };
        vec![
            if plots.is_empty() { code } else { code.leads_to(axis(from), axis(to)) },
            Cell::from(found.severity.name()).tone(tone),
            found.title.clone().into(),
            cost.into(),
            format!("{:.3} to {:.3}", from as f64 / 1e9, to as f64 / 1e9).into(),
            format!("{}..{}", found.frames.0, found.frames.1).into(),
            found.confidence.name().into(),
            found.filter(stream).into(),
        ]
    });
    Table {
        caption: "Findings".into(),
        columns: vec![
            Column::words("code"),
            Column::words("severity"),
            Column::words("what"),
            Column::numbers("cost"),
            Column::numbers("when, s"),
            Column::numbers("frames"),
            Column::words("confidence"),
            Column::words("filter for Wireshark"),
        ],
        rows: rows.collect(),
        note:
            "The cost is what the transfer would have saved without this one thing, and its share \
               of the time at work. A code leads to its time in the graph."
                .into(),
        plots: plots.into(),
        is_long: false,
    }
}

/// Round trip by round trip.
pub(super) fn rounds(flow: &Flow, plots: &str) -> Table {
    let millis = |ns: u64| format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000);
    let rows = flow.rounds.iter().take(ROWS).enumerate().map(|(number, round)| {
        let (from, to) = (round.start, round.start + round.length());
        let axis = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let tenths = (round.flight * 20 + flow.mss.max(1)) / (2 * flow.mss.max(1));
        let rtt = match round.min_rtt {
            u64::MAX => "–".to_owned(),
            least if least == round.max_rtt => millis(least),
            least => format!("{} to {}", millis(least), millis(round.max_rtt)),
        };
        let again = if round.resent > 0 { Tone::Bad } else { Tone::Quiet };
        vec![
            Cell::from((number + 1).to_string()).leads_to(axis(from), axis(to)),
            format!("{}.{:06}", from / 1_000_000_000, from / 1_000 % 1_000_000).into(),
            millis(round.length()).into(),
            round.flight.to_string().into(),
            format!("{}.{}", tenths / 10, tenths % 10).into(),
            round.sent.to_string().into(),
            Cell::from(round.resent.to_string()).tone(again),
            round.delivered.to_string().into(),
            round.acks.to_string().into(),
            rtt.into(),
        ]
    });
    let names = [
        "round",
        "began, s",
        "took, ms",
        "most in flight, B",
        "most in flight, MSS",
        "sent, B",
        "sent again, B",
        "delivered, B",
        "ACKs",
        "RTT, ms",
    ];
    let mut note = "A round ends when its first byte has been acknowledged and the sender sends \
                    again. Its number leads to it in the graph."
        .to_owned();
    if flow.rounds_each > 1 {
        note += &format!(" A row stands for {} round trips.", flow.rounds_each);
    }
    if flow.rounds.len() > ROWS {
        note += &format!(" The first {ROWS} of {} are shown.", flow.rounds.len());
    }
    Table {
        caption: "Round by round".into(),
        columns: names.map(Column::numbers).into(),
        rows: rows.collect(),
        note,
        plots: plots.into(),
        is_long: true,
    }
}
