//! Tables of connections, time budgets, findings and rounds.

use diagnose::rules::{Finding, Severity, rate, rule, size, time, time_percent};
use diagnose::{ExchangeBudget, ExchangeShare, FlowAnalysis};
use report::table::{ReportTable, TableCell, TableColumn, Tone};

use ingest::diagnosis::{FileReport, kernel_limit};
use units::Duration;

use super::graph::time_axis;

/// Most rows of a table of connections or rounds.
const ROWS: usize = 500;

/// All connections of a file, worst first.
pub(super) fn connections(report: &FileReport) -> ReportTable {
    let rows = report.connections.iter().take(ROWS).map(|judged| {
        let limit = judged.primary.and_then(rule);
        let analysis = judged.analysis();
        vec![
            TableCell::from(analysis.stream.to_string()).rank(u64::from(analysis.stream)),
            judged.transfer(&analysis).into(),
            TableCell::from(size(judged.bytes)).rank(judged.bytes),
            TableCell::from(time(judged.duration)).rank(judged.duration.as_nanos()),
            TableCell::from(rate(analysis.goodput())).rank(judged.goodput_bps),
            TableCell::from(time(judged.cost)).rank(judged.cost.as_nanos()),
            match (limit, kernel_limit(&analysis)) {
                (Some(rule), _) => format!("{} {}", rule.code, rule.name),
                (None, Some(limit)) => format!("kernel: {}", limit.name()),
                (None, None) => "–".into(),
            }
            .into(),
        ]
    });
    let all = report.connections.len();
    ReportTable {
        caption: "Connections, failed ones first, then by lost time".into(),
        columns: vec![
            TableColumn::numbers("flow"),
            TableColumn::words("transfer"),
            TableColumn::numbers("bytes"),
            TableColumn::numbers("time"),
            TableColumn::numbers("goodput"),
            TableColumn::numbers("lost"),
            TableColumn::words("limited by"),
        ],
        rows: rows.collect(),
        note: match all.checked_sub(ROWS) {
            Some(left) if left > 0 => format!("{left} more are not shown."),
            _ => String::new(),
        },
        is_long: all > 20,
        is_searchable: true,
        ..ReportTable::default()
    }
}

/// What the time of a connection with requests was spent on.
pub(super) fn exchange(budget: &ExchangeBudget) -> ReportTable {
    let whole = budget.whole();
    let spent = ExchangeShare::ALL.into_iter().filter(|share| !budget.of(*share).is_zero());
    let rows = spent.map(|share| {
        let part = budget.of(share);
        vec![TableCell::from(share.name()), time(part).into(), time_percent(part, whole).into()]
    });
    ReportTable {
        caption: "Network, client or server".into(),
        columns: vec![
            TableColumn::words("spent on"),
            TableColumn::numbers("time"),
            TableColumn::numbers("share"),
        ],
        rows: rows.collect(),
        ..ReportTable::default()
    }
}

/// The findings in their order; each links to its time in the graph.
pub(super) fn findings(
    findings: &[Finding],
    stream: u32,
    active: Duration,
    plots: &str,
) -> ReportTable {
    let rows = findings.iter().map(|found| {
        let tone = match found.severity {
            Severity::Note => Tone::Quiet,
            Severity::Warning => Tone::Plain,
            Severity::Error => Tone::Bad,
        };
        let (from, to) = found.interval;
        let code = TableCell::from(found.code).tone(tone);
        let cost = match found.cost {
            Duration::ZERO => "–".to_owned(),
            // Waits longer than a timeout are no time at work.
            cost if cost > active => time(cost),
            cost => format!("{} ({})", time(cost), time_percent(cost, active)),
        };
        vec![
            if plots.is_empty() { code } else { code.leads_to(time_axis(from), time_axis(to)) },
            TableCell::from(found.severity.name()).tone(tone),
            found.title.clone().into(),
            cost.into(),
            format!("{:.3} to {:.3}", from.as_secs_f64(), to.as_secs_f64()).into(),
            format!("{}..{}", found.frames.0, found.frames.1).into(),
            found.confidence.name().into(),
            found.filter(stream).into(),
        ]
    });
    ReportTable {
        caption: "Findings".into(),
        columns: vec![
            TableColumn::words("code"),
            TableColumn::words("severity"),
            TableColumn::words("what"),
            TableColumn::numbers("cost"),
            TableColumn::numbers("when, s"),
            TableColumn::numbers("frames"),
            TableColumn::words("confidence"),
            TableColumn::words("filter for Wireshark"),
        ],
        rows: rows.collect(),
        note:
            "The cost is what the transfer would have saved without this one thing, and its share \
               of the time at work. A code leads to its time in the graph."
                .into(),
        plots: plots.into(),
        ..ReportTable::default()
    }
}

/// The round trips.
pub(super) fn rounds(flow: &FlowAnalysis, plots: &str) -> ReportTable {
    let millis = |time: Duration| format!("{}.{:03}", time.as_millis(), time.as_micros() % 1_000);
    let rows = flow.rounds.iter().take(ROWS).enumerate().map(|(number, round)| {
        let (from, to) = (round.start, round.start + round.length());
        let micros = from.as_nanos() / 1_000;
        let tenths = (round.flight * 20 + flow.mss.max(1)) / (2 * flow.mss.max(1));
        let rtt = match round.min_rtt {
            Duration::MAX => "–".to_owned(),
            least if least == round.max_rtt => millis(least),
            least => format!("{} to {}", millis(least), millis(round.max_rtt)),
        };
        let tone = if round.retransmission > 0 { Tone::Bad } else { Tone::Quiet };
        vec![
            TableCell::from((number + 1).to_string()).leads_to(time_axis(from), time_axis(to)),
            format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000).into(),
            millis(round.length()).into(),
            round.flight.to_string().into(),
            format!("{}.{}", tenths / 10, tenths % 10).into(),
            round.sent.to_string().into(),
            TableCell::from(round.retransmission.to_string()).tone(tone),
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
        "retransmitted, B",
        "delivered, B",
        "ACKs",
        "RTT, ms",
    ];
    let mut note = "A round ends when its first byte has been acknowledged and the sender sends \
                    again. Its number leads to it in the graph."
        .to_owned();
    if flow.rounds_per_entry > 1 {
        note += &format!(" A row covers {} round trips.", flow.rounds_per_entry);
    }
    if flow.rounds.len() > ROWS {
        note += &format!(" The first {ROWS} of {} are shown.", flow.rounds.len());
    }
    ReportTable {
        caption: "Round by round".into(),
        columns: names.map(TableColumn::numbers).into(),
        rows: rows.collect(),
        note,
        plots: plots.into(),
        is_long: true,
        is_searchable: false,
    }
}
