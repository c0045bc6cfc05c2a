//! A real sender beside the model as a page: what both came to, their windows and round trips over each
//! other, and how punctual the machine was.

use report::page::{Page, Part};
use report::plots::{Axis, Mark, Panel, Plots, Role, Series};
use report::table::{Cell, Column, Table, Tone};
use units::Duration;

use crate::run_page::maker;
use runner::courses::{Course, Pair};
use runner::run_report::{FlowReport, flow_row, headings, spaced};
use runner::wire_differences::Differences;
use runner::wire_report::WireReport;

/// The page of `wire compare`.
pub fn page(report: &WireReport, flows: &[Pair<'_>]) -> Page {
    let mut parts = vec![summary(report), differences(report)];
    for (number, pair) in flows.iter().enumerate() {
        parts.push(Part::Heading(format!("Flow {}", pair.0)));
        parts.push(plots(number, pair));
    }
    parts.push(Part::Heading("How exact it is".into()));
    parts.push(timing(report));
    let mut facts = vec![
        ("real hosts".to_owned(), report.real_hosts.join(", ")),
        ("their system".to_owned(), report.system.clone()),
        ("seed".to_owned(), report.seed.to_string()),
        ("scenario".to_owned(), format!("SHA-256 {}", report.scenario_sha256)),
    ];
    if let Some(model) = &report.model {
        let added = spaced(Duration::from_nanos((model.added_rtt_s * 1e9) as u64));
        facts.push(("round trip that real hosts add, measured".to_owned(), added));
    }
    Page {
        title: match report.title.as_str() {
            "" => "A real sender beside the model".into(),
            title => format!("{title}: a real sender beside the model"),
        },
        lead: "A kernel's own TCP sent over the scenario's path in real time; then the model of the same \
               sender did in virtual time. Random decisions of the path are the same in both."
            .into(),
        facts,
        maker: maker(),
        parts,
    }
}

fn summary(report: &WireReport) -> Part {
    let is_number = |name: &str| !matches!(name, "flow" | "profile" | "cc");
    let column = |name: String| Column { is_number: is_number(&name), name };
    let mut rows = Vec::new();
    for (index, flow) in report.flows.iter().enumerate() {
        let row = flow_row(&flow.name, flow);
        rows.push(row.into_iter().map(Cell::from).collect());
        if let Some(model) = report.model.as_ref().and_then(|model| model.flows.get(index)) {
            let row = flow_row("in virtual time", model).into_iter();
            rows.push(row.map(|text| Cell::from(text).tone(Tone::Quiet)).collect());
        }
    }
    Part::Table(Table {
        caption: "On the wire, and in virtual time".into(),
        columns: headings().into_iter().map(column).collect(),
        rows,
        ..Table::default()
    })
}

fn differences(report: &WireReport) -> Part {
    let models = report.model.iter().flat_map(|model| &model.flows);
    let flows = report.flows.iter().zip(models).zip(&report.differences);
    let figures = report.differences.first().map(|flow| &flow.figures[..]).unwrap_or_default();
    let row = |((wire, model), differences): ((&FlowReport, &FlowReport), &Differences)| {
        let both = |wire: u64, model: u64| Cell::from(format!("{wire} and {model}"));
        let mut row = vec![Cell::from(wire.name.clone())];
        row.extend(differences.figures.iter().map(|figure| {
            let tone = if figure.same { Tone::Good } else { Tone::Bad };
            Cell::from(figure.text()).tone(tone)
        }));
        row.push(both(wire.fast_recoveries, model.fast_recoveries));
        row.push(both(wire.rtos, model.rtos));
        row
    };
    let mut columns = vec![Column::words("flow")];
    columns.extend(figures.iter().map(|figure| Column::numbers(figure.figure.name())));
    columns.push(Column::numbers("recoveries, wire and model"));
    columns.push(Column::numbers("timeouts, wire and model"));
    Part::Table(Table {
        caption: "The wire against virtual time".into(),
        note: "Recoveries and timeouts of the wire are those that the sending host counted, of all its \
               flows together. The longest queue is the largest smoothed round trip less the least one."
            .into(),
        columns,
        rows: flows.map(row).collect(),
        ..Table::default()
    })
}

fn plots(number: usize, &(name, wire, model): &Pair<'_>) -> Part {
    let curve = |name: &str, role, points: Vec<(i64, i64)>| {
        Series::new(name, role, Mark::Step).with_points(points)
    };
    let windows = |course: &Course| course.cwnd.iter().map(|point| (point.x, point.y)).collect();
    let trips = |course: &Course| {
        let nanos = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let point =
            |&(at, rtt): &(units::Instant, Duration)| (nanos(at.as_nanos()), nanos(rtt.as_nanos()));
        course.srtt.iter().map(point).collect()
    };
    let both = |of: &dyn Fn(&Course) -> Vec<(i64, i64)>| {
        vec![curve("kernel", Role::Nth(0), of(wire)), curve("model", Role::Nth(1), of(model))]
    };
    Part::Plots(Plots {
        id: format!("flow-{number}"),
        title: format!("Flow {name}"),
        x: Axis::new("time", "s", 9),
        panels: vec![
            Panel::new(Axis::new("congestion window", "packets", 3), both(&windows)).height(320),
            Panel::new(Axis::new("smoothed round trip", "s", 9), both(&trips)),
        ],
    })
}

fn timing(report: &WireReport) -> Part {
    let timing = &report.timing;
    let span = |ns| spaced(Duration::from_nanos(ns));
    let row = |name: &str, value: String| vec![Cell::from(name), Cell::from(value)];
    Part::Table(Table {
        caption: "How late packets came to real hosts".into(),
        note: "From the moment a packet was due to the moment the kernel had it.".into(),
        columns: vec![Column::words("of packets"), Column::numbers("")],
        rows: vec![
            row("all", timing.packets.to_string()),
            row("half were no later than", span(timing.p50_ns)),
            row("99 of 100 were no later than", span(timing.p99_ns)),
            row("the latest came", span(timing.worst_ns)),
            row("later than 1 ms", timing.too_late.to_string()),
            row("the machine was too slow for", timing.overflowed.to_string()),
        ],
        ..Table::default()
    })
}
