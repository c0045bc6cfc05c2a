//! The page of a comparison: sequence numbers and windows of all grades, and the first differences.

use std::path::Path;

use charts::downsample::{ThinnedRanges, ThinnedSeries, ValueRange};
use guest::compare::{ComparedPacket, Difference, FlowComparison};
use pages::run_page::{maker, of_curve, of_spans};
use report::page::{Page, PagePart};
use report::plots::{PlotAxis, PlotPanel, Plots, SeriesMark, SeriesRole};
use report::table::{ReportTable, TableCell, TableColumn, Tone};
use report::verdict::{PartColour, Verdict, VerdictPart};
use scenario::Loaded;
use units::Duration;

use super::linux::{Comparison, GradeRun};
use crate::visible::ShownPath as _;

/// Values of a series at most.
const POINTS: usize = 40_000;
/// Flows with plots at most.
const FLOWS: usize = 6;

/// What a page shows.
pub(super) struct GradePage<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) file: &'a Path,
    /// Which host is which kernel.
    pub(super) kernels: &'a [String],
    pub(super) runs: &'a [GradeRun],
    pub(super) comparisons: &'a [Comparison],
    pub(super) tolerance: Duration,
}

pub(super) fn page(of: &GradePage<'_>) -> Page {
    let scenario = &of.loaded.scenario;
    let grades: Vec<&str> = of.runs.iter().map(|run| run.grade.name()).collect();
    let title = match scenario.title.as_str() {
        "" => of.file.file_name().map_or_else(String::new, |name| name.shown()),
        title => title.to_owned(),
    };
    let mut facts = vec![
        ("scenario".to_owned(), of.file.shown()),
        ("seed".to_owned(), scenario.seed.to_string()),
        ("scenario sha256".to_owned(), of.loaded.sha256.clone()),
        ("times may differ by".to_owned(), of.tolerance.to_string()),
    ];
    if !of.kernels.is_empty() {
        facts.push(("kernels".to_owned(), of.kernels.join(", ")));
    }
    let mut parts: Vec<PagePart> = of
        .comparisons
        .iter()
        .flat_map(|one| [PagePart::Verdict(verdict(one, of.runs)), summary(one, of.runs)])
        .collect();
    for (number, flow) in scenario.flows.iter().enumerate().take(FLOWS) {
        parts.push(PagePart::Heading(format!("Flow {}", flow.name)));
        parts.push(PagePart::Plots(plots(number, &flow.name, of.runs)));
        for one in of.comparisons {
            parts.extend(difference(&one.flows[number], one, of.runs, number).map(PagePart::Table));
        }
    }
    if scenario.flows.len() > FLOWS {
        let text = format!("Only the first {FLOWS} of {} flows have plots.", scenario.flows.len());
        parts.push(PagePart::Text(text));
    }
    Page {
        title: format!("{title}: {}", grades.join(", ")),
        lead: "The same scenario in several grades, packet by packet, as seen at the card of the host \
               that opens the connection. Random decisions of the path are the same in all."
            .into(),
        facts,
        maker: maker(),
        parts,
    }
}

/// Whether two grades send the same, and how far.
fn verdict(one: &Comparison, runs: &[GradeRun]) -> Verdict {
    let [first, second] = one.runs.map(|run| runs[run].grade.name());
    let packets: usize = one.flows.iter().map(|flow| flow.packets[0].max(flow.packets[1])).sum();
    let same: usize = one.flows.iter().map(|flow| flow.same_packets).sum();
    let earliest = one.flows.iter().filter_map(|flow| Some((flow, flow.first.as_ref()?)));
    let earliest = earliest.min_by_key(|(_, difference)| difference.at_ns());
    let sentence = match earliest {
        None => format!("{first} and {second} send the same in all {packets} packets."),
        Some((flow, difference)) => format!(
            "{first} and {second} differ first at {:.6} s, in flow {}: {}.",
            difference.at_ns() as f64 / 1e9,
            flow.flow,
            flow.kind().unwrap_or_default()
        ),
    };
    Verdict {
        sentence,
        whole: format!("{packets} packets"),
        parts: vec![
            VerdictPart::count(
                "the same before the first difference",
                '=',
                same,
                PartColour::Green,
            ),
            VerdictPart::count(
                "after it",
                '!',
                packets.saturating_sub(same),
                PartColour::Vermilion,
            ),
        ],
        ..Verdict::default()
    }
}

/// What of each flow is the same in two grades.
fn summary(one: &Comparison, runs: &[GradeRun]) -> PagePart {
    let [first, second] = one.runs.map(|run| runs[run].grade.name());
    let columns = [
        "flow".to_owned(),
        format!("packets of {first}"),
        format!("packets of {second}"),
        "the same before the first difference".to_owned(),
        "first difference".to_owned(),
        "at, s".to_owned(),
        "largest difference of times, us".to_owned(),
    ];
    let column = |(at, name): (usize, String)| TableColumn { is_number: at != 0 && at != 4, name };
    let row = |flow: &FlowComparison| {
        let micros = format!("{:.3}", flow.largest_time_ns as f64 / 1e3);
        let at = |first: &Difference| format!("{:.6}", first.at_ns() as f64 / 1e9);
        let tone = if flow.first.is_some() { Tone::Bad } else { Tone::Good };
        vec![
            TableCell::from(flow.flow.clone()),
            TableCell::from(flow.packets[0].to_string()),
            TableCell::from(flow.packets[1].to_string()),
            TableCell::from(flow.same_packets.to_string()),
            TableCell::from(flow.kind().unwrap_or_else(|| "none".into())).tone(tone),
            TableCell::from(flow.first.as_ref().map_or_else(|| "-".into(), at)),
            TableCell::from(micros),
        ]
    };
    PagePart::Table(ReportTable {
        caption: format!("{first} and {second}"),
        columns: columns.into_iter().enumerate().map(column).collect(),
        rows: one.flows.iter().map(row).collect(),
        ..ReportTable::default()
    })
}

/// Sequence numbers, acknowledgments, congestion and receive windows of a flow.
fn plots(flow: usize, name: &str, runs: &[GradeRun]) -> Plots {
    let x = |at_ns: u64| i64::try_from(at_ns).unwrap_or(i64::MAX);
    let (mut sequence, mut congestion, mut receive) = (Vec::new(), Vec::new(), Vec::new());
    for (number, run) in runs.iter().enumerate() {
        let (grade, role) = (run.grade.name(), SeriesRole::Nth(number as u8));
        let mut data = ThinnedRanges::new(POINTS);
        for packet in run.record.packets(flow, true).iter().filter(|packet| packet.len > 0) {
            let low = i64::from(packet.seq);
            let high = low + i64::from(packet.len);
            data.push(ValueRange { x: x(packet.at_ns), low, high, word: 0 });
        }
        let [mut acks, mut window] = [ThinnedSeries::new(POINTS), ThinnedSeries::new(POINTS)];
        for packet in run.record.packets(flow, false) {
            acks.push(x(packet.at_ns), packet.ack.into());
            window.push(x(packet.at_ns), x(packet.window));
        }
        let mut cwnd = ThinnedSeries::new(POINTS);
        for sample in run.record.windows(flow) {
            cwnd.push(x(sample.at.as_nanos()), x(sample.cwnd));
        }
        sequence.push(of_spans(&format!("{grade}: data"), role, SeriesMark::Bars, data));
        sequence.push(of_curve(&format!("{grade}: ACK"), role, SeriesMark::Step, acks));
        congestion.push(of_curve(grade, role, SeriesMark::Step, cwnd));
        receive.push(of_curve(grade, role, SeriesMark::Step, window));
    }
    let bytes = |title: &str| PlotAxis::new(title, "B", 0);
    Plots {
        id: format!("flow-{flow}"),
        title: format!("Flow {name}"),
        x: PlotAxis::new("time", "s", 9),
        panels: vec![
            PlotPanel::new(bytes("sequence number"), sequence).height(380),
            PlotPanel::new(bytes("congestion window"), congestion),
            PlotPanel::new(bytes("receive window"), receive),
        ],
    }
}

/// Both packets of a flow's first difference.
fn difference(
    flow: &FlowComparison,
    one: &Comparison,
    runs: &[GradeRun],
    number: usize,
) -> Option<ReportTable> {
    let first = flow.first.as_ref()?;
    let around = x_range(first);
    let row = |(run, packet): (usize, &Option<ComparedPacket>)| {
        let grade = TableCell::from(runs[run].grade.name()).leads_to(around.0, around.1);
        let fields = packet.as_ref().map(|packet| {
            let sack: Vec<String> =
                packet.sack.iter().map(|(left, right)| format!("{left}:{right}")).collect();
            [
                format!("{:.9}", packet.at_ns as f64 / 1e9),
                packet.flags.clone(),
                packet.seq.to_string(),
                packet.len.to_string(),
                packet.ack.to_string(),
                packet.window.to_string(),
                sack.join(" "),
            ]
        });
        let none = || ["none", "", "", "", "", "", ""].map(str::to_owned);
        let cells = fields.unwrap_or_else(none).map(TableCell::from);
        core::iter::once(grade).chain(cells).collect::<Vec<_>>()
    };
    let way = if first.forward { "forward" } else { "return" };
    let columns = ["grade", "time, s", "flags", "seq", "length, B", "ack", "window, B", "SACK"];
    let column = |name: &str| TableColumn {
        name: name.into(),
        is_number: !matches!(name, "grade" | "flags" | "SACK"),
    };
    Some(ReportTable {
        caption: format!("First difference: packet {} on the {way} path", first.index + 1),
        columns: columns.into_iter().map(column).collect(),
        rows: one.runs.into_iter().zip(&first.packets).map(row).collect(),
        plots: format!("flow-{number}"),
        ..ReportTable::default()
    })
}

/// 20 ms around a difference.
fn x_range(first: &Difference) -> (i64, i64) {
    let at = i64::try_from(first.at_ns()).unwrap_or(i64::MAX - 10_000_000);
    ((at - 10_000_000).max(0), at + 10_000_000)
}
