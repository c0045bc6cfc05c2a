//! The explanation of each case, with plots.

use charts::svg::ChartPoint;
use report::page::PagePart;
use report::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};
use theory::sawtooth::{self, ExtraRtts};
use units::Duration;

use crate::cases::reordering::map::ReorderOutcome;
use crate::cases::{CaseError, cubic_hz, load, mathis, slow_start_lro};
use crate::pictures::{self, QuicCurves};
use pages::run_page::plots_of;

/// The explanation of the case with that name; empty for an unknown one.
pub(super) fn of(id: &str) -> Result<Vec<PagePart>, CaseError> {
    match id {
        "slow-start-lro" => slow_start(),
        "reordering" => reordering(),
        "mathis" => mathis(),
        "cubic-hz" => cubic(),
        _ => Ok(Vec::new()),
    }
}

fn text(words: &str) -> PagePart {
    PagePart::Text(words.to_owned())
}

fn curve(name: &str, role: SeriesRole, mark: SeriesMark, points: &[ChartPoint]) -> PlotSeries {
    PlotSeries::new(name, role, mark).with_points(points.iter().map(|point| (point.x, point.y)))
}

fn time() -> PlotAxis {
    PlotAxis::new("time", "s", 9)
}

fn slow_start() -> Result<Vec<PagePart>, CaseError> {
    let mail = load(slow_start_lro::TRACE, "slow-start-lro.toml", &[])?;
    let mail = plots_of(&mail, "mail", "The transfer of the freebsd-net post, segment by segment")
        .map_err(CaseError)?;
    let ramps = pictures::ramps()?;
    let series = ramps.iter().zip(0..).map(|((name, points), number)| {
        curve(name, SeriesRole::Nth(number), SeriesMark::Line, points)
    });
    let flight = PlotAxis::new("largest flight so far", "MSS", 3);
    let ramps = Plots {
        id: "ramps".into(),
        title: "From the initial window to the full path, by the host that merges ACKs".into(),
        x: time(),
        panels: vec![PlotPanel::new(flight, series.collect()).height(320).note(
            "The same path and the same transfer each time; only the merging differs. Each \
             line ends where the window fills 100 Mbit/s.",
        )],
    };
    let flights = pictures::window_update_flights()?;
    let series = flights.iter().zip(0..).map(|((name, points), number)| {
        curve(name, SeriesRole::Nth(number), SeriesMark::Line, points)
    });
    let flight = PlotAxis::new("largest flight of a round trip", "MSS", 3);
    let flights = Plots {
        id: "window-updates".into(),
        title: "3 MB from FreeBSD to FreeBSD, by version".into(),
        x: time(),
        panels: vec![
            PlotPanel::new(flight, series.collect())
                .height(280)
                .note("The receiver merges segments in all but the last line, which ends first."),
        ],
    };
    Ok(vec![
        text(
            "A receiver whose network card merges segments acknowledges once per aggregate. \
             FreeBSD's slow start adds at most two segments per acknowledgment, however much \
             it covers: instead of doubling, the window grows by a fixed step per round trip.",
        ),
        PagePart::Plots(mail),
        text(
            "Merging at the receiver is not the whole story: soon several aggregates fit a flight, \
             and each brings an ACK. The published ramp takes so long because the sender's \
             own LRO merges the returning ACKs too, and does not count them.",
        ),
        PagePart::Plots(ramps),
        text(
            "With FreeBSD at both ends, 14.3 and main count the receiver's window updates as duplicate \
             ACKs and keep the smaller window of the ACK before, so the flight stops at 24 segments. \
             Turning off LRO at the receiver cures it.",
        ),
        PagePart::Plots(flights),
    ])
}

fn reordering() -> Result<Vec<PagePart>, CaseError> {
    let set = [
        "duration=700ms",
        "path.0.forward.2.reorder.gap=5ms",
        "path.0.forward.2.reorder.timeout=5500us",
    ];
    let loaded = load(pictures::REORDERING, "reordering.toml", &set)?;
    let spurious = plots_of(&loaded, "groups", "The base stack with reversed groups of four")
        .map_err(CaseError)?;
    let outcomes = [
        (ReorderOutcome::NoRecovery, "no recovery", SeriesRole::Ack, SeriesMark::Dots),
        (ReorderOutcome::AllUndone, "undone", SeriesRole::Window, SeriesMark::Diamonds),
        (
            ReorderOutcome::SpuriousRecovery,
            "spurious recovery",
            SeriesRole::Retransmission,
            SeriesMark::Crosses,
        ),
    ];
    let maps = pictures::outcomes()?;
    let panels = maps.iter().map(|(name, points)| {
        let series = outcomes.iter().map(|(outcome, name, role, mark)| {
            let of = points.iter().filter(|(known, _)| known == outcome).map(|(_, point)| *point);
            curve(name, *role, *mark, &of.collect::<Vec<_>>())
        });
        let title = format!("{name}: packets per group");
        PlotPanel {
            from_zero: true,
            ..PlotPanel::new(PlotAxis::new(&title, "", 0), series.collect())
        }
    });
    let map = Plots {
        id: "map".into(),
        title: "Spurious recoveries by stack, gap and group size".into(),
        x: PlotAxis::new("from the first packet of a group to its last", "ms", 3),
        panels: panels.collect(),
    };
    Ok(vec![
        text(
            "A driver that marks garbage as a valid hash makes FreeBSD's LRO deliver groups of \
             packets in reverse order. No packet is lost. A sender that takes every gap for a loss \
             halves its window repeatedly, and retransmits data that the receiver already has: the \
             ringed bars.",
        ),
        PagePart::Plots(spurious),
        text("The differences between the stacks: each mark is one transfer."),
        PagePart::Plots(map),
    ])
}

fn mathis() -> Result<Vec<PagePart>, CaseError> {
    let mut panels = Vec::new();
    for (every, title) in [(1, "ACK every packet"), (2, "ACK every other packet")] {
        let curves = pictures::quic_curves(every)?;
        let path = mathis::document_path()?;
        let plain = ExtraRtts::new(0.0).map_err(|unfit| CaseError(unfit.to_string()))?;
        let formula = sawtooth(&path, plain, &curves);
        let lossy = match every {
            1 => ExtraRtts::EVERY_PACKET,
            _ => ExtraRtts::every_other_packet(Duration::from_millis(25), &path),
        };
        let with_loss = sawtooth(&path, lossy, &curves);
        let series = vec![
            curve("in flight", SeriesRole::Flight, SeriesMark::Step, &curves.in_flight),
            curve("partialBytesAcked", SeriesRole::Pipe, SeriesMark::Step, &curves.partial)
                .hidden(),
            curve("cwnd", SeriesRole::Window, SeriesMark::Step, &curves.cwnd),
            curve("sawtooth of the formula", SeriesRole::Event, SeriesMark::Dashes, &formula),
            curve(
                "with the round trips that a loss costs",
                SeriesRole::Theory,
                SeriesMark::Dashes,
                &with_loss,
            ),
        ];
        panels.push(PlotPanel::new(PlotAxis::new(title, "packets", 3), series).height(260));
    }
    let plots = Plots {
        id: "sawtooth".into(),
        title: "INET's QUIC sender and the sawtooth of the theory".into(),
        x: time(),
        panels,
    };
    Ok(vec![
        text(
            "The formula of Mathis models a sender as a sawtooth: half the window at each loss, one \
             packet more per round trip. A real sender first detects the loss and then waits for the \
             ACK of a packet sent after it, so each tooth is longer than the formula's, and the \
             window consists of whole packets, which locks periodic loss into cycles of their own.",
        ),
        PagePart::Plots(plots),
    ])
}

/// The sawtooth of the theory, from the first loss in the curves.
fn sawtooth(path: &theory::Path, extra: ExtraRtts, curves: &QuicCurves) -> Vec<ChartPoint> {
    let estimate = sawtooth::estimate(path, extra);
    let (Some(peak), Some(cycle)) = (estimate.peak, estimate.cycle_rtts) else {
        return Vec::new();
    };
    let begin =
        curves.cwnd.windows(2).find(|pair| pair[1].y < pair[0].y).map_or(0, |pair| pair[1].x);
    let end = curves.cwnd.last().map_or(0, |point| point.x);
    let rtt = path.rtt_s() * 1e9;
    let (low, high) = (peak * 500.0, peak * 1_000.0);
    let mut corners = Vec::new();
    let mut at = begin as f64;
    while (at as i64) < end {
        corners.push((at, low));
        if extra.get() > 0.0 {
            corners.push((at + extra.get() * rtt, low));
        }
        at += cycle * rtt;
        corners.push((at, high));
    }
    until(&corners, end as f64)
}

/// The polyline through `corners`, cut off at `end`.
fn until(corners: &[(f64, f64)], end: f64) -> Vec<ChartPoint> {
    let point = |(x, y): (f64, f64)| ChartPoint { x: x as i64, y: y as i64 };
    let inside = corners.iter().take_while(|(x, _)| *x <= end).count();
    let mut points: Vec<ChartPoint> = corners[..inside].iter().copied().map(point).collect();
    if let (Some(&(x0, y0)), Some(&(x1, y1))) =
        (inside.checked_sub(1).and_then(|last| corners.get(last)), corners.get(inside))
    {
        points.push(point((end, y0 + (y1 - y0) * (end - x0) / (x1 - x0))));
    }
    points
}

fn cubic() -> Result<Vec<PagePart>, CaseError> {
    let variants = [
        ("NewReno, kern.hz 100", "newreno", 100),
        ("CUBIC before the change, kern.hz 100", "cubic-usec", 100),
        ("CUBIC before the change, kern.hz 10000", "cubic-usec", 10_000),
        ("CUBIC with D46546, kern.hz 100", "cubic-d46546", 100),
    ];
    let mut panels = Vec::new();
    for (name, cc, hz) in variants {
        let set = [
            format!("host.sender.cc={cc}"),
            format!("host.sender.knobs.\"kern.hz\"={hz}"),
            format!("host.sink.knobs.\"kern.hz\"={hz}"),
            // Four ticks of 10 ms.
            "duration=40ms".to_owned(),
        ];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let curve_of = pictures::curve(cubic_hz::SCENARIO, "cubic-hz.toml", &set)?;
        let cwnd = curve("congestion window", SeriesRole::Window, SeriesMark::Step, &curve_of.cwnd);
        panels.push(PlotPanel::new(PlotAxis::new(name, "MSS", 3), vec![cwnd]).height(150));
    }
    let plots = Plots {
        id: "ticks".into(),
        title: "The window in a LAN with 1 % periodic loss".into(),
        x: time(),
        panels,
    };
    Ok(vec![
        text(
            "CUBIC's TCP-friendly window is the window that NewReno would have at that time. FreeBSD modelled it \
             from time, in ticks of kern.hz. In a LAN the next loss often comes before the next \
             tick: no time has passed, the window does not grow, and each loss reduces it.",
        ),
        PagePart::Plots(plots),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polyline_ends_with_the_run() {
        let corners = [(0.0, 10.0), (4.0, 20.0), (4.0, 10.0), (8.0, 20.0)];
        let line = |end| until(&corners, end).iter().map(|p| (p.x, p.y)).collect::<Vec<_>>();
        assert_eq!(line(6.0), [(0, 10), (4, 20), (4, 10), (6, 15)]);
        assert_eq!(line(2.0), [(0, 10), (2, 15)]);
        assert_eq!(line(9.0), [(0, 10), (4, 20), (4, 10), (8, 20)]);
        assert_eq!(until(&[], 9.0), []);
    }

    /// No curve on the page of the case extends beyond the end of its run, 50 ms.
    #[test]
    fn the_sawtooth_ends_with_the_run() {
        let parts = mathis().unwrap();
        let plots = parts.iter().find_map(|part| match part {
            PagePart::Plots(plots) => Some(plots),
            _ => None,
        });
        for series in plots.unwrap().panels.iter().flat_map(|panel| &panel.series) {
            assert!(series.x.iter().all(|&x| x <= 50_000_000), "{}", series.name);
        }
    }
}
