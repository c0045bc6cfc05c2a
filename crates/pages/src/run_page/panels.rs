//! What is kept of flows, as plots.

use charts::svg::Point;
use charts::thin::{Curve, Span, Spans};
use report::plots::{Axis, Mark, Panel, Plots, Role, Series};
use sim::FlowOutcome;

use super::flow::{Kept, cause_word};
use super::needless::Copy;

/// The axis of all plots over time: nanoseconds shown as seconds.
pub(super) fn time() -> Axis {
    Axis::new("time", "s", 9)
}

/// Why a series is not every value.
fn thinned(every: i64) -> String {
    match every {
        0 => String::new(),
        every => format!(
            "more values than the page holds: of every {:.3} ms the first, lowest, highest and last",
            every as f64 / 1e6
        ),
    }
}

fn of_points(mut series: Series, (points, every): (Vec<Point>, i64)) -> Series {
    series.thinned = thinned(every);
    series.with_points(points.iter().map(|point| (point.x, point.y)))
}

pub(crate) fn of_curve(name: &str, role: Role, mark: Mark, curve: Curve) -> Series {
    of_points(Series::new(name, role, mark), curve.finish())
}

pub(crate) fn of_spans(name: &str, role: Role, mark: Mark, spans: Spans) -> Series {
    let (spans, every) = spans.finish();
    let mut series = Series::new(name, role, mark);
    if every > 0 {
        series.thinned = format!(
            "more than the page holds: those of every {:.3} ms are one",
            every as f64 / 1e6
        );
    }
    series.x = spans.iter().map(|span| span.x).collect();
    series.y = spans.iter().map(|span| span.low).collect();
    if spans.iter().any(|span| span.low != span.high) {
        series.top = spans.iter().map(|span| span.high).collect();
    }
    series
}

/// Retransmissions with their causes.
fn of_again(spans: Spans) -> Series {
    let words: Vec<Span> = spans.clone().finish().0;
    let mut series = of_spans("retransmission", Role::Again, Mark::CrossedBars, spans);
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

/// The bytes that need not have gone again.
fn of_copies(copies: &[Copy]) -> Series {
    let mut series = Series::new("needless", Role::Spurious, Mark::RingedBars);
    let needless = || copies.iter().filter(|copy| !copy.was_lost);
    series.x = needless().map(|copy| copy.at).collect();
    series.y = needless().map(|copy| super::amount(copy.from)).collect();
    series.top = needless().map(|copy| super::amount(copy.to)).collect();
    series
}

/// The plots of a flow: sequence numbers, windows, round trips, rates.
pub(super) fn of_flow(kept: Kept, outcome: &FlowOutcome, name: &str, id: &str) -> Plots {
    let mss = outcome.mss.get().max(kept.mss.unsigned_abs());
    let rates = rates(&kept);
    let moments = moments(&kept);
    let Kept { series, copies, is_quic, .. } = kept;
    let unit = if is_quic { "packets" } else { "MSS" };

    let mut control = Series::new("SYN, FIN, RST", Role::Event, Mark::Letters);
    for (x, y, word) in series.control {
        control.push(x, y, word);
    }
    let mut sequence = vec![
        of_curve("peer's window", Role::Window, Mark::Step, series.edge),
        of_curve("acknowledged", Role::Ack, Mark::Step, series.ack),
        of_spans(
            if is_quic { "ACK ranges" } else { "SACK" },
            Role::Sack,
            Mark::BareBars,
            series.sacks,
        ),
        of_spans("D-SACK", Role::Spurious, Mark::BareBars, series.dsacks),
        of_spans("data", Role::Data, Mark::Bars, series.data),
        of_again(series.again),
        of_copies(&copies),
        of_spans("duplicate ACK", Role::Ack, Mark::Ticks, series.dup_acks),
        of_spans("PSH", Role::Data, Mark::Diamonds, series.pushes),
        control,
    ];
    sequence.retain(|series| !series.x.is_empty());
    // The window of the peer may be far away from what is under way.
    for series in sequence.iter_mut().filter(|series| series.name == "peer's window") {
        series.is_shown = false;
    }
    let note = if copies.is_empty() {
        "Bars are bytes leaving the sender, the steps below them what has been acknowledged."
    } else {
        "Bars are bytes leaving the sender, the steps below them what has been acknowledged. \
         Needless: no packet that had carried these bytes before was lost; the simulator knows, \
         a sender may not."
    };
    let bytes = |title: &str| Axis::new(title, "B", 0).and_in(unit, mss);
    let mut windows = vec![
        of_curve("ssthresh", Role::Threshold, Mark::DashedStep, series.ssthresh),
        of_curve("in flight", Role::Flight, Mark::Step, series.flight),
        of_curve("pipe", Role::Pipe, Mark::Step, series.pipe).hidden(),
        of_curve("cwnd", Role::Window, Mark::Step, series.cwnd),
        moments,
    ];
    windows.retain(|series| !series.x.is_empty());
    let mut times = vec![
        of_curve("measured", Role::Sample, Mark::Dots, series.rtt),
        of_curve("smoothed", Role::Smooth, Mark::Step, series.srtt),
        of_curve("retransmission timeout", Role::Event, Mark::DashedStep, series.rto).hidden(),
    ];
    times.retain(|series| !series.x.is_empty());
    let mut speeds = vec![rates];
    let pacing = of_curve("pacing", Role::Window, Mark::DashedStep, series.pacing);
    if !pacing.x.is_empty() {
        // A sender that does not pace by this rate still reckons it.
        speeds.push(if is_quic { pacing } else { pacing.hidden() });
    }
    Plots {
        id: id.into(),
        title: format!("Flow {name}"),
        x: time(),
        panels: vec![
            Panel { from_zero: false, ..Panel::new(bytes("sequence"), sequence) }
                .height(340)
                .note(note),
            Panel::new(bytes("windows"), windows).height(240),
            Panel::new(Axis::new("round-trip time", "s", 9), times).height(160),
            Panel::new(Axis::new("rate", "bit/s", 0), speeds).height(160),
        ],
    }
}

/// Bytes acknowledged per second in each round, and nothing between rounds.
fn rates(kept: &Kept) -> Series {
    let mut points = Vec::new();
    let mut end: Option<i64> = None;
    for round in &kept.rounds {
        points.extend(end.filter(|end| *end < round.from).map(|end| (end, 0)));
        let nanos = (round.to - round.from).max(1);
        let bits = i128::from(round.acked) * 8_000_000_000 / i128::from(nanos);
        points.push((round.from, i64::try_from(bits).unwrap_or(i64::MAX)));
        end = Some(round.to);
    }
    points.extend(end.map(|end| (end, 0)));
    let series = Series::new("acknowledged in the round", Role::Rate, Mark::Step);
    series.with_points(points)
}

/// Losses and what follows them.
fn moments(kept: &Kept) -> Series {
    let mut series = Series::new("events", Role::Event, Mark::Moments);
    for note in kept.series.notes.iter().filter(|note| note.is_bad) {
        series.push(note.at, 0, note.what);
    }
    series
}

/// Windows and flights of all flows together.
pub(super) fn together(flows: &[(String, Kept, &FlowOutcome)], id: &str) -> Plots {
    let series = |of: fn(&Kept) -> &Curve| -> Vec<Series> {
        let numbered = flows.iter().enumerate();
        numbered
            .map(|(number, (name, kept, _))| {
                let mark = if number < 8 { Mark::Step } else { Mark::DashedStep };
                of_curve(name, Role::Nth(number as u8), mark, of(kept).clone())
            })
            .collect()
    };
    let rates = flows.iter().enumerate().map(|(number, (name, kept, _))| Series {
        name: name.clone(),
        role: Role::Nth(number as u8),
        ..rates(kept)
    });
    Plots {
        id: id.into(),
        title: "All flows".into(),
        x: time(),
        panels: vec![
            Panel::new(Axis::new("congestion window", "B", 0), series(|kept| &kept.series.cwnd)),
            Panel::new(Axis::new("in flight", "B", 0), series(|kept| &kept.series.flight)),
            Panel::new(Axis::new("rate: acknowledged in each round", "bit/s", 0), rates.collect()),
        ],
    }
}
