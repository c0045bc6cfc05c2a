//! Plots of flows.

use charts::downsample::{ThinnedRanges, ThinnedSeries, ValueRange};
use charts::svg::ChartPoint;
use report::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};
use sim::FlowOutcome;

use super::flow::{FlowData, cause_word};
use super::spurious::RetransmittedRange;

/// The axis of all plots over time: nanoseconds shown as seconds.
pub(super) fn time() -> PlotAxis {
    PlotAxis::new("time", "s", 9)
}

/// The note of a thinned series.
fn thinned(every: i64) -> String {
    match every {
        0 => String::new(),
        every => format!(
            "thinned: per {:.3} ms the first, lowest, highest and last value",
            every as f64 / 1e6
        ),
    }
}

fn of_points(mut series: PlotSeries, (points, every): (Vec<ChartPoint>, i64)) -> PlotSeries {
    series.thinned = thinned(every);
    series.with_points(points.iter().map(|point| (point.x, point.y)))
}

/// A thinned curve as a series.
pub fn of_curve(
    name: &str,
    role: SeriesRole,
    mark: SeriesMark,
    curve: ThinnedSeries,
) -> PlotSeries {
    of_points(PlotSeries::new(name, role, mark), curve.finish())
}

/// Thinned ranges as a series of bars.
pub fn of_spans(
    name: &str,
    role: SeriesRole,
    mark: SeriesMark,
    spans: ThinnedRanges,
) -> PlotSeries {
    let (spans, every) = spans.finish();
    let mut series = PlotSeries::new(name, role, mark);
    if every > 0 {
        series.thinned = format!("thinned: ranges of {:.3} ms are merged", every as f64 / 1e6);
    }
    series.x = spans.iter().map(|span| span.x).collect();
    series.y = spans.iter().map(|span| span.low).collect();
    if spans.iter().any(|span| span.low != span.high) {
        series.top = spans.iter().map(|span| span.high).collect();
    }
    series
}

/// Retransmissions with their causes.
fn of_retransmissions(spans: ThinnedRanges) -> PlotSeries {
    let words: Vec<ValueRange> = spans.clone().finish().0;
    let mut series =
        of_spans("retransmission", SeriesRole::Retransmission, SeriesMark::CrossedBars, spans);
    for span in words {
        let word = cause_word(span.word);
        let number = series.words.iter().position(|known| *known == word).unwrap_or_else(|| {
            series.words.push(word);
            series.words.len() - 1
        });
        series.word.push(number as u32);
    }
    series
}

/// Spurious retransmissions.
fn of_spurious(retransmissions: &[RetransmittedRange]) -> PlotSeries {
    let mut series = PlotSeries::new("spurious", SeriesRole::Spurious, SeriesMark::RingedBars);
    let spurious_copies = || retransmissions.iter().filter(|copy| !copy.was_lost);
    series.x = spurious_copies().map(|copy| copy.at).collect();
    series.y = spurious_copies().map(|copy| super::amount(copy.from)).collect();
    series.top = spurious_copies().map(|copy| super::amount(copy.to)).collect();
    series
}

/// The plots of a flow: sequence numbers, windows, round trips, rates.
pub(super) fn of_flow(flow_data: FlowData, outcome: &FlowOutcome, name: &str, id: &str) -> Plots {
    let mss = outcome.mss.get().max(flow_data.mss.unsigned_abs());
    let rates = rates(&flow_data);
    let moments = moments(&flow_data);
    let FlowData { series, retransmissions, is_quic, .. } = flow_data;
    let unit = if is_quic { "packets" } else { "MSS" };

    let mut control = PlotSeries::new("SYN, FIN, RST", SeriesRole::Event, SeriesMark::Letters);
    for (x, y, word) in series.control {
        control.push(x, y, word);
    }
    let mut sequence = vec![
        of_curve("peer's window", SeriesRole::Window, SeriesMark::Step, series.edge),
        of_curve("acknowledged", SeriesRole::Ack, SeriesMark::Step, series.ack),
        of_spans(
            if is_quic { "ACK ranges" } else { "SACK" },
            SeriesRole::Sack,
            SeriesMark::BareBars,
            series.sacks,
        ),
        of_spans("D-SACK", SeriesRole::Spurious, SeriesMark::BareBars, series.dsacks),
        of_spans("data", SeriesRole::Data, SeriesMark::Bars, series.data),
        of_retransmissions(series.retransmitted),
        of_spurious(&retransmissions),
        of_spans("duplicate ACK", SeriesRole::Ack, SeriesMark::Ticks, series.dup_acks),
        of_spans("PSH", SeriesRole::Data, SeriesMark::Diamonds, series.pushes),
        control,
    ];
    sequence.retain(|series| !series.x.is_empty());
    // The peer's window may be far beyond the data in flight.
    for series in sequence.iter_mut().filter(|series| series.name == "peer's window") {
        series.is_shown = false;
    }
    let note = if retransmissions.is_empty() {
        "Bars are sent bytes, the steps below them acknowledged bytes."
    } else {
        "Bars are sent bytes, the steps below them acknowledged bytes. \
         Spurious: no packet that had carried these bytes before was lost; the simulator knows, \
         a sender may not."
    };
    let bytes = |title: &str| PlotAxis::new(title, "B", 0).and_in(unit, mss);
    let mut windows = vec![
        of_curve("ssthresh", SeriesRole::Threshold, SeriesMark::DashedStep, series.ssthresh),
        of_curve("in flight", SeriesRole::Flight, SeriesMark::Step, series.flight),
        of_curve("pipe", SeriesRole::Pipe, SeriesMark::Step, series.pipe).hidden(),
        of_curve("cwnd", SeriesRole::Window, SeriesMark::Step, series.cwnd),
        moments,
    ];
    windows.retain(|series| !series.x.is_empty());
    let mut times = vec![
        of_curve("measured", SeriesRole::Sample, SeriesMark::Dots, series.rtt),
        of_curve("smoothed", SeriesRole::Smooth, SeriesMark::Step, series.srtt),
        of_curve("retransmission timeout", SeriesRole::Event, SeriesMark::DashedStep, series.rto)
            .hidden(),
    ];
    times.retain(|series| !series.x.is_empty());
    let mut speeds = vec![rates];
    let pacing = of_curve("pacing", SeriesRole::Window, SeriesMark::DashedStep, series.pacing);
    if !pacing.x.is_empty() {
        // A sender that does not pace still computes this rate.
        speeds.push(if is_quic { pacing } else { pacing.hidden() });
    }
    Plots {
        id: id.into(),
        title: format!("Flow {name}"),
        x: time(),
        panels: vec![
            PlotPanel { from_zero: false, ..PlotPanel::new(bytes("sequence"), sequence) }
                .height(340)
                .note(note),
            PlotPanel::new(bytes("windows"), windows).height(240),
            PlotPanel::new(PlotAxis::new("round-trip time", "s", 9), times).height(160),
            PlotPanel::new(PlotAxis::new("rate", "bit/s", 0), speeds).height(160),
        ],
    }
}

/// Bytes acknowledged per second in each round, and zero between rounds.
fn rates(flow_data: &FlowData) -> PlotSeries {
    let mut points = Vec::new();
    let mut end: Option<i64> = None;
    for round in &flow_data.rounds {
        points.extend(end.filter(|end| *end < round.from).map(|end| (end, 0)));
        let nanos = (round.to - round.from).max(1);
        let bits = i128::from(round.acked) * 8_000_000_000 / i128::from(nanos);
        points.push((round.from, i64::try_from(bits).unwrap_or(i64::MAX)));
        end = Some(round.to);
    }
    points.extend(end.map(|end| (end, 0)));
    let series = PlotSeries::new("acknowledged per round", SeriesRole::Rate, SeriesMark::Step);
    series.with_points(points)
}

/// Losses and the reactions to them.
fn moments(flow_data: &FlowData) -> PlotSeries {
    let mut series = PlotSeries::new("events", SeriesRole::Event, SeriesMark::Moments);
    for note in flow_data.series.notes.iter().filter(|note| note.is_bad) {
        series.push(note.at, 0, note.what);
    }
    series
}

/// Congestion windows and bytes in flight of all flows.
pub(super) fn together(flows: &[(String, FlowData, &FlowOutcome)], id: &str) -> Plots {
    let series = |of: fn(&FlowData) -> &ThinnedSeries| -> Vec<PlotSeries> {
        let numbered = flows.iter().enumerate();
        numbered
            .map(|(number, (name, flow_data, _))| {
                let mark = if number < 8 { SeriesMark::Step } else { SeriesMark::DashedStep };
                of_curve(name, SeriesRole::Nth(number as u8), mark, of(flow_data).clone())
            })
            .collect()
    };
    let rates = flows.iter().enumerate().map(|(number, (name, flow_data, _))| PlotSeries {
        name: name.clone(),
        role: SeriesRole::Nth(number as u8),
        ..rates(flow_data)
    });
    Plots {
        id: id.into(),
        title: "All flows".into(),
        x: time(),
        panels: vec![
            PlotPanel::new(
                PlotAxis::new("congestion window", "B", 0),
                series(|flow_data| &flow_data.series.cwnd),
            ),
            PlotPanel::new(
                PlotAxis::new("in flight", "B", 0),
                series(|flow_data| &flow_data.series.flight),
            ),
            PlotPanel::new(
                PlotAxis::new("rate: acknowledged in each round", "bit/s", 0),
                rates.collect(),
            ),
        ],
    }
}
