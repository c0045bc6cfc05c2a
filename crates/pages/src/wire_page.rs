//! The page that compares a real sender with the model: results, windows and round trips of both,
//! and the timing accuracy of the machine.

use report::page::{Page, PagePart};
use report::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};
use report::table::{ReportTable, TableCell, TableColumn, Tone};
use units::Duration;

use crate::run_page::maker;
use runner::run_report::{FlowReport, flow_row, headings, spaced};
use runner::timelines::{SenderTimeline, TimelinePair};
use runner::wire_differences::FlowDifferences;
use runner::wire_report::WireReport;

/// The page of `wire compare`.
pub fn page(report: &WireReport, flows: &[TimelinePair<'_>]) -> Page {
    let mut parts = vec![summary(report), differences(report)];
    for (number, pair) in flows.iter().enumerate() {
        parts.push(PagePart::Heading(format!("Flow {}", pair.0)));
        parts.push(plots(number, pair));
    }
    parts.push(PagePart::Heading("Timing accuracy".into()));
    parts.push(timing(report));
    let mut facts = vec![
        ("real hosts".to_owned(), report.real_hosts.join(", ")),
        ("system of the real hosts".to_owned(), report.system.clone()),
        ("seed".to_owned(), report.seed.to_string()),
        ("scenario".to_owned(), format!("SHA-256 {}", report.scenario_sha256)),
    ];
    if let Some(model) = &report.model {
        let added = spaced(Duration::from_nanos((model.added_rtt_s * 1e9) as u64));
        facts.push(("round-trip time added by real hosts, measured".to_owned(), added));
    }
    Page {
        title: match report.title.as_str() {
            "" => "A real sender and the model".into(),
            title => format!("{title}: a real sender and the model"),
        },
        lead: "A kernel's own TCP sent over the scenario's path in real time; then the model of the same \
               sender did in virtual time. Random decisions of the path are the same in both."
            .into(),
        facts,
        maker: maker(),
        parts,
    }
}

fn summary(report: &WireReport) -> PagePart {
    let is_number = |name: &str| !matches!(name, "flow" | "profile" | "cc");
    let column = |name: String| TableColumn { is_number: is_number(&name), name };
    let mut rows = Vec::new();
    for (index, flow) in report.flows.iter().enumerate() {
        let row = flow_row(&flow.name, flow);
        rows.push(row.into_iter().map(TableCell::from).collect());
        if let Some(model) = report.model.as_ref().and_then(|model| model.flows.get(index)) {
            let row = flow_row("in virtual time", model).into_iter();
            rows.push(row.map(|text| TableCell::from(text).tone(Tone::Quiet)).collect());
        }
    }
    PagePart::Table(ReportTable {
        caption: "On the wire, and in virtual time".into(),
        columns: headings().into_iter().map(column).collect(),
        rows,
        ..ReportTable::default()
    })
}

fn differences(report: &WireReport) -> PagePart {
    let models = report.model.iter().flat_map(|model| &model.flows);
    let flows = report.flows.iter().zip(models).zip(&report.differences);
    let figures = report.differences.first().map(|flow| &flow.figures[..]).unwrap_or_default();
    let row = |((wire, model), differences): ((&FlowReport, &FlowReport), &FlowDifferences)| {
        let both = |wire: u64, model: u64| TableCell::from(format!("{wire} and {model}"));
        let mut row = vec![TableCell::from(wire.name.clone())];
        row.extend(differences.figures.iter().map(|figure| {
            let tone = if figure.same { Tone::Good } else { Tone::Bad };
            TableCell::from(figure.text()).tone(tone)
        }));
        row.push(both(wire.fast_recoveries, model.fast_recoveries));
        row.push(both(wire.rtos, model.rtos));
        row
    };
    let mut columns = vec![TableColumn::words("flow")];
    columns.extend(figures.iter().map(|figure| TableColumn::numbers(figure.figure.name())));
    columns.push(TableColumn::numbers("recoveries, wire and model"));
    columns.push(TableColumn::numbers("timeouts, wire and model"));
    PagePart::Table(ReportTable {
        caption: "Wire and virtual time compared".into(),
        note: "Recoveries and timeouts of the wire are those that the sending host counted, of all its \
               flows together. The longest queue is the largest smoothed round trip less the least one, \
               its p95 what 95 % of the time it did not exceed."
            .into(),
        columns,
        rows: flows.map(row).collect(),
        ..ReportTable::default()
    })
}

fn plots(number: usize, &(name, wire, model): &TimelinePair<'_>) -> PagePart {
    let curve = |name: &str, role, points: Vec<(i64, i64)>| {
        PlotSeries::new(name, role, SeriesMark::Step).with_points(points)
    };
    let windows =
        |timeline: &SenderTimeline| timeline.cwnd.iter().map(|point| (point.x, point.y)).collect();
    let trips = |timeline: &SenderTimeline| {
        let nanos = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let point =
            |&(at, rtt): &(units::Instant, Duration)| (nanos(at.as_nanos()), nanos(rtt.as_nanos()));
        timeline.srtt.iter().map(point).collect()
    };
    let both = |of: &dyn Fn(&SenderTimeline) -> Vec<(i64, i64)>| {
        vec![
            curve("kernel", SeriesRole::Nth(0), of(wire)),
            curve("model", SeriesRole::Nth(1), of(model)),
        ]
    };
    PagePart::Plots(Plots {
        id: format!("flow-{number}"),
        title: format!("Flow {name}"),
        x: PlotAxis::new("time", "s", 9),
        panels: vec![
            PlotPanel::new(PlotAxis::new("congestion window", "packets", 3), both(&windows))
                .height(320),
            PlotPanel::new(PlotAxis::new("smoothed round trip", "s", 9), both(&trips)),
        ],
    })
}

fn timing(report: &WireReport) -> PagePart {
    let timing = &report.timing;
    let span = |ns| spaced(Duration::from_nanos(ns));
    let row = |name: &str, value: String| vec![TableCell::from(name), TableCell::from(value)];
    PagePart::Table(ReportTable {
        caption: "Lateness of packets to real hosts".into(),
        note: "From the due time of a packet to its delivery to the kernel.".into(),
        columns: vec![TableColumn::words("packets"), TableColumn::numbers("")],
        rows: vec![
            row("all", timing.packets.to_string()),
            row("50 % at most", span(timing.p50_ns)),
            row("99 % at most", span(timing.p99_ns)),
            row("latest", span(timing.worst_ns)),
            row("later than 1 ms", timing.too_late.to_string()),
            row("dropped: machine too slow", timing.overflowed.to_string()),
        ],
        ..ReportTable::default()
    })
}
