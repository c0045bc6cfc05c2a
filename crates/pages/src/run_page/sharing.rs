//! The fairness and queue delay parts of a run's page.

use report::page::PagePart;
use report::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};
use report::table::{ReportTable, TableCell, TableColumn};
use sim::RunOutcome;
use sim::scenario::Scenario;

use runner::groups;
use runner::sharing::{
    DELTA, FairnessReport, LINES, SecondsReport, Sharing, SharingReport, rows_of_lines,
};

use super::{panels, queues, span};

/// Flows with their own curve; the others are summed.
const CURVES: usize = 12;

/// The parts: fairness of several flows, queue delays of links.
pub(super) fn parts(
    sharing: &Sharing,
    scenario: &Scenario,
    outcome: &RunOutcome,
    prefix: &str,
) -> Vec<PagePart> {
    let report = sharing.report(scenario, outcome);
    let seconds = sharing.seconds(scenario, outcome);
    // The rows of results: a group of connections is one.
    let (scenario, outcome) = &groups::grouped(scenario, outcome);
    let mut parts = Vec::new();
    if let Some(fair) = &report.fairness {
        parts.push(PagePart::Heading("How the flows share".into()));
        parts.push(figures(fair));
        parts.push(shares(outcome));
        let whole = outcome.ended.as_secs_f64() as usize;
        // The shares need the reads of all.
        let seconds = seconds.filter(|one| one.goodput_bps.iter().all(Option::is_some));
        if let Some(seconds) = seconds.filter(|_| whole >= 2) {
            parts.push(PagePart::Plots(over_time(&seconds, fair, scenario, whole, prefix)));
        }
    }
    parts.extend(super::tables::one_way(&sharing.one_way(), outcome));
    if report.links.iter().any(|line| line.packets > 0) {
        parts.push(PagePart::Heading("Queues".into()));
        parts.push(lines(&report));
        parts.push(PagePart::Plots(waits(sharing, prefix)));
        parts.extend(queues::over_time(sharing, outcome, prefix));
    }
    parts
}

/// The fairness indices as large figures.
fn figures(fair: &FairnessReport) -> PagePart {
    let index = |index: Option<f64>| index.map_or_else(|| "–".to_owned(), |i| format!("{i:.3}"));
    let converged = match (fair.convergence_s, fair.seconds_not_visible) {
        (Some(span), _) => format!("{span:.1} s"),
        (None, true) => "not visible".to_owned(),
        (None, false) => "never".to_owned(),
    };
    let found = [
        ("Jain's index of the run", index(Some(fair.jain_index))),
        ("mean over its seconds", index(fair.mean_jain_index)),
        ("least of its seconds", index(fair.min_jain_index)),
        ("fair shares after", converged),
    ];
    PagePart::Figures(found.map(|(name, value)| (name.to_owned(), value)).into())
}

/// The bytes read by each flow.
fn shares(outcome: &RunOutcome) -> PagePart {
    let all: u64 = outcome.flows.iter().map(|flow| flow.bytes.get()).sum();
    let even = 100.0 / outcome.flows.len().max(1) as f64;
    let rows = outcome.flows.iter().map(|flow| {
        let share = flow.bytes.get() as f64 * 100.0 / all.max(1) as f64;
        vec![
            TableCell::from(flow.name.clone()),
            flow.cc.to_string().into(),
            format!("{:.2} Mbit/s", flow.goodput_bps() / 1e6).into(),
            flow.bytes.get().to_string().into(),
            format!("{share:.1}").into(),
            format!("{even:.1}").into(),
        ]
    });
    PagePart::Table(ReportTable {
        caption: "Shares".into(),
        columns: vec![
            TableColumn::words("flow"),
            TableColumn::words("cc"),
            TableColumn::numbers("goodput"),
            TableColumn::numbers("read, B"),
            TableColumn::numbers("share, %"),
            TableColumn::numbers("even share, %"),
        ],
        rows: rows.collect(),
        is_long: outcome.flows.len() > 16,
        note: format!(
            "Jain's index of n rates is the square of their sum over n times the sum of their squares: 1 if \
             all are alike, 1/n if one has all. Shares are fair from {:.4} on: two flows with 55 and 45 % \
             (RFC 5166, 2.3.2); the time is counted from the last start to the end of the first \
             such second.",
            fair_from()
        ),
        ..ReportTable::default()
    })
}

/// The index above which shares count as fair.
fn fair_from() -> f64 {
    1.0 / (1.0 + DELTA * DELTA)
}

/// The shares in each second.
fn over_time(
    seconds: &SecondsReport,
    fair: &FairnessReport,
    scenario: &Scenario,
    whole: usize,
    prefix: &str,
) -> Plots {
    let at = |second: usize| second as i64 * 1_000_000_000;
    // The last value is repeated, so that the last second is as long as the others.
    let ends = |values: Vec<i64>| -> Vec<(i64, i64)> {
        let last = values.last().copied();
        let ends = values.into_iter().chain(last);
        ends.enumerate().map(|(second, value)| (at(second), value)).collect()
    };
    let bits = |flow: usize, second: usize| {
        let rates = seconds.goodput_bps[flow].as_deref().unwrap_or_default();
        rates.get(second).map_or(0.0, |b| *b)
    };
    let flows = scenario.flows.len();
    let own = if flows > CURVES { CURVES - 1 } else { flows };
    let mut names: Vec<String> = scenario.flows[..own].iter().map(|f| f.name.clone()).collect();
    if flows > own {
        names.push(format!("{} others", flows - own));
    }
    let of = |curve: usize, second: usize| -> f64 {
        if curve < own { bits(curve, second) } else { (own..flows).map(|f| bits(f, second)).sum() }
    };
    let all = |second: usize| -> f64 { (0..flows).map(|flow| bits(flow, second)).sum() };
    let curves = |value: &dyn Fn(usize, usize) -> i64| -> Vec<PlotSeries> {
        let series = names.iter().enumerate().map(|(curve, name)| {
            let mark = if curve < 8 { SeriesMark::Step } else { SeriesMark::DashedStep };
            let values = (0..whole).map(|second| value(curve, second)).collect();
            PlotSeries::new(name, SeriesRole::Nth(curve as u8), mark).with_points(ends(values))
        });
        series.collect()
    };
    let rates = curves(&|curve, second| of(curve, second) as i64);
    let mut shares = curves(&|curve, second| match all(second) {
        sum if sum > 0.0 => (of(curve, second) * 1_000.0 / sum) as i64,
        _ => 0,
    });
    let even = PlotSeries::new("even share of all flows", SeriesRole::Event, SeriesMark::Dashes);
    shares.push(even.with_points([(0, 1_000 / flows as i64), (at(whole), 1_000 / flows as i64)]));
    let index = |second: usize| seconds.jain_index.get(second).copied().flatten();
    let known = (0..whole).filter_map(|s| index(s).map(|index| (at(s), (index * 1_000.0) as i64)));
    let mut jain = vec![
        PlotSeries::new("Jain's index", SeriesRole::Rate, SeriesMark::Step).with_points(known),
    ];
    let from = (fair_from() * 1_000.0) as i64;
    let line = PlotSeries::new("fair above", SeriesRole::Event, SeriesMark::Dashes);
    jain.push(line.with_points([(0, from), (at(whole), from)]));
    if let Some(span) = fair.convergence_s {
        let last = scenario.flows.iter().map(|flow| flow.start.as_secs_f64()).fold(0.0, f64::max);
        let mut moment = PlotSeries::new("fair shares", SeriesRole::Event, SeriesMark::Moments);
        moment.push(((last + span) * 1e9) as i64, 0, "fair shares");
        jain.push(moment);
    }
    Plots {
        id: format!("{prefix}shares"),
        title: "Shares, second by second".into(),
        x: panels::time(),
        panels: vec![
            PlotPanel::new(PlotAxis::new("goodput in each second", "bit/s", 0), rates).height(200),
            PlotPanel::new(PlotAxis::new("share of all bytes read", "%", 1), shares).height(200),
            PlotPanel::new(PlotAxis::new("Jain's index of the active flows", "", 3), jain)
                .height(150)
                .note("Over whole seconds with at least two active flows."),
        ],
    }
}

/// The table of links.
fn lines(report: &SharingReport) -> PagePart {
    let column = |name: &str| match name {
        "link" | "queue" => TableColumn::words(name),
        _ => TableColumn::numbers(name),
    };
    let rows = rows_of_lines(report).map(|row| row.map(TableCell::from).into());
    PagePart::Table(ReportTable {
        caption: "Links".into(),
        columns: LINES.map(column).into(),
        rows: rows.collect(),
        note: "Delays of sent packets, from their arrival to the start of their transmission."
            .into(),
        ..ReportTable::default()
    })
}

/// The distribution of queue delays.
fn waits(sharing: &Sharing, prefix: &str) -> Plots {
    let mut series = Vec::new();
    for (number, (key, steps)) in sharing.waits().filter(|(_, steps)| !steps.is_empty()).enumerate()
    {
        let mark = if number < 8 { SeriesMark::Step } else { SeriesMark::DashedStep };
        // The distribution starts at zero.
        let start = steps.first().filter(|(wait, _)| !wait.is_zero()).map(|_| (0, 0));
        let points =
            start.into_iter().chain(steps.iter().map(|(wait, part)| (span(*wait), *part as i64)));
        series.push(PlotSeries::new(key, SeriesRole::Nth(number as u8), mark).with_points(points));
    }
    let panel = PlotPanel::new(PlotAxis::new("packets with at most this delay", "%", 1), series)
        .height(220)
        .note("Delays are exact to 1/128.");
    Plots {
        id: format!("{prefix}waits"),
        title: "Queue delay of the packets of each link".into(),
        x: PlotAxis::new("queue delay", "s", 9),
        panels: vec![panel],
    }
}
