//! The pictures of README and docs, drawn from runs.
//!
//! `cargo xtask docs` writes them; a test there rejects a picture that the current program would
//! draw differently.

use charts::svg::{Chart, ChartAxis, ChartMark, ChartPanel, ChartPoint, ChartSeries, Draw};
use record::{Event, EventSource, Recorder, SenderState};
use units::{Duration, HostId, Instant};

use crate::cases::mathis;
use crate::cases::reordering::map::{self, ReorderOutcome};
use crate::cases::slow_start_lro::{FREEBSD, RAMP, TRACE, both_freebsd};
use crate::cases::{CaseError, load, run};
use export::curves::{CurveRecorder, FlowCurves, TIME, render};
use runner::timelines::push;
use runner::workers::Workers;

/// A picture with the name of its file.
#[derive(Debug, Clone, Copy)]
pub struct Picture {
    /// File name, in `docs/pictures`.
    pub file: &'static str,
    draw: fn() -> Result<String, CaseError>,
}

impl Picture {
    /// The picture as SVG.
    ///
    /// # Errors
    /// [`CaseError`] if its scenario cannot be run.
    pub fn draw(&self) -> Result<String, CaseError> {
        (self.draw)()
    }
}

/// All pictures.
pub const PICTURES: &[Picture] = &[
    Picture { file: "slow-start-trace.svg", draw: slow_start_trace },
    Picture { file: "slow-start-ramp.svg", draw: slow_start_ramp },
    Picture { file: "window-updates.svg", draw: window_updates },
    Picture { file: "reordering-map.svg", draw: reordering_map },
    Picture { file: "mathis-cycle.svg", draw: mathis_cycle },
];

/// The scenario of the case `reordering`.
pub(crate) const REORDERING: &str = samples::text("reordering");

/// Window and flight of a scenario's first flow.
pub(crate) fn curve(text: &str, name: &str, set: &[&str]) -> Result<FlowCurves, CaseError> {
    let loaded = load(text, name, set)?;
    let mut curves = CurveRecorder::new(&loaded.scenario);
    run(&loaded, &mut curves, &Workers::one())?;
    Ok(curves.curves().first().cloned().unwrap_or_default())
}

fn until(points: &[ChartPoint], end: Duration) -> Vec<ChartPoint> {
    let end = i64::try_from(end.as_nanos()).unwrap_or(i64::MAX);
    points.iter().copied().filter(|point| point.x <= end).collect()
}

/// The transfer of the freebsd-net post: window and flight of its first second.
fn slow_start_trace() -> Result<String, CaseError> {
    let curve = curve(TRACE, "slow-start-lro.toml", &[])?;
    let second = Duration::from_secs(1);
    let (cwnd, flight) = (until(&curve.cwnd, second), until(&curve.flight, second));
    let series = |name, look, points| ChartSeries { name, look, draw: Draw::Step, points };
    Ok(render(&Chart {
        title: "Two segments per round trip: FreeBSD 13.2 with a receiver that merges",
        subtitle: "scenarios/slow-start-lro.toml, seed 1: the transfer of the freebsd-net post, its first second",
        x: TIME,
        panels: vec![ChartPanel {
            y: ChartAxis { title: "window and flight", unit: "MSS", decimals: 3 },
            series: vec![series("congestion window", 0, &cwnd), series("in flight", 1, &flight)],
            ..ChartPanel::default()
        }],
        marks: vec![ChartMark { at: 401_800_000, label: "the published trace ends" }],
        ..Chart::default()
    }))
}

/// Flights of 3 MB from FreeBSD to FreeBSD, by version.
pub(crate) fn window_update_flights() -> Result<Vec<(&'static str, Vec<ChartPoint>)>, CaseError> {
    let mut curves = Vec::new();
    for (name, profile, lro) in [
        ("14.3 and main", "freebsd-main", true),
        ("13.0", "freebsd-13.0", true),
        ("main, LRO off at the sink", "freebsd-main", false),
    ] {
        let mut set = both_freebsd::set_of(profile);
        set.extend((!lro).then(|| "host.sink.lro=false".to_owned()));
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let flight = curve(FREEBSD, "slow-start-freebsd.toml", &set)?.flight;
        // The largest flight of each round trip.
        let mut peaks: Vec<ChartPoint> = Vec::new();
        for point in flight {
            match peaks.last_mut() {
                Some(last) if last.x / 100_000_000 == point.x / 100_000_000 => {
                    if point.y > last.y {
                        *last = point;
                    }
                }
                _ => peaks.push(point),
            }
        }
        curves.push((name, peaks));
    }
    Ok(curves)
}

fn window_updates() -> Result<String, CaseError> {
    let curves = window_update_flights()?;
    let series = curves.iter().enumerate().map(|(number, (name, points))| ChartSeries {
        name,
        look: number as u8,
        draw: Draw::Line,
        points,
    });
    Ok(render(&Chart {
        title: "A window update that counts as a duplicate ACK: 3 MB from FreeBSD to FreeBSD",
        subtitle: "scenarios/slow-start-freebsd.toml, seed 1: largest flight of each round trip, to the end of the transfer",
        x: TIME,
        panels: vec![ChartPanel {
            y: ChartAxis { title: "largest flight", unit: "MSS", decimals: 3 },
            series: series.collect(),
            ..ChartPanel::default()
        }],
        ..Chart::default()
    }))
}

/// Flights on the way to 100 Mbit/s, by the host that merges.
pub(crate) fn ramps() -> Result<Vec<(&'static str, Vec<ChartPoint>)>, CaseError> {
    let lro = "host.sender.lro=true";
    let variants: [(&str, &[&str]); 5] = [
        (
            "Linux sender",
            &["host.sender.profile=linux-6.18", "host.sender.cc=reno", "host.sender.knobs={}"],
        ),
        ("receiver merges", &[]),
        ("sender's LRO merges 2 ACKs", &[lro, "host.sender.rx_budget=2"]),
        ("sender's LRO merges 5 ACKs", &[lro, "host.sender.rx_budget=5"]),
        ("all ACKs of a round trip merged", &[lro]),
    ];
    let mut curves = Vec::new();
    for (name, set) in variants {
        let curve = curve(RAMP, "slow-start-ramp.toml", &[&["duration=43s"], set].concat())?;
        // Points beyond the target would only compress the rest.
        let end = curve.flight.iter().position(|point| point.y >= 863_000);
        let kept = &curve.flight[..end.map_or(curve.flight.len(), |end| end + 1)];
        let peaks: Vec<ChartPoint> = kept
            .iter()
            .scan(0, |peak, point| {
                let higher = point.y > *peak;
                *peak = (*peak).max(point.y);
                Some(higher.then_some(ChartPoint { x: point.x, y: point.y.min(863_000) }))
            })
            .flatten()
            .collect();
        curves.push((name, peaks));
    }
    Ok(curves)
}

fn slow_start_ramp() -> Result<String, CaseError> {
    let curves = ramps()?;
    let series = curves.iter().enumerate().map(|(number, (name, points))| ChartSeries {
        name,
        look: number as u8,
        draw: Draw::Line,
        points,
    });
    Ok(render(&Chart {
        title: "From 10 segments to 100 Mbit/s at 100 ms, by the host that merges ACKs",
        subtitle: "scenarios/slow-start-ramp.toml, seed 1: largest flight so far, up to 863 segments",
        x: TIME,
        panels: vec![ChartPanel {
            y: ChartAxis { title: "flight", unit: "MSS", decimals: 3 },
            series: series.collect(),
            height: 320,
        }],
        ..Chart::default()
    }))
}

/// A stack with its outcome for each gap and group size.
pub(crate) type FateMap = (&'static str, Vec<(ReorderOutcome, ChartPoint)>);

/// The outcome of each stack with reversed groups: microseconds, packets per group.
pub(crate) fn outcomes() -> Result<Vec<FateMap>, CaseError> {
    let mut all = Vec::new();
    for stack in map::STACKS {
        let mut points = Vec::new();
        for us in map::GAPS_US {
            for group in map::GROUPS {
                let point = ChartPoint { x: us as i64, y: i64::from(group) };
                points.push((map::outcome(stack, group, us, &Workers::one())?, point));
            }
        }
        all.push((stack.name, points));
    }
    Ok(all)
}

/// The map of reversed groups that each stack takes for losses.
fn reordering_map() -> Result<String, CaseError> {
    let outcomes = [
        (ReorderOutcome::NoRecovery, "no recovery"),
        (ReorderOutcome::AllUndone, "undone"),
        (ReorderOutcome::SpuriousRecovery, "spurious"),
    ];
    let all: Vec<_> = self::outcomes()?
        .into_iter()
        .map(|(name, points)| {
            let of = |outcome: ReorderOutcome| -> Vec<ChartPoint> {
                let mut of: Vec<ChartPoint> =
                    points.iter().filter(|(known, _)| *known == outcome).map(|(_, p)| *p).collect();
                of.sort_by_key(|point| (point.y, point.x));
                of
            };
            (name, outcomes.map(|(outcome, _)| of(outcome)))
        })
        .collect();
    let panels = all.iter().map(|(name, points)| ChartPanel {
        y: ChartAxis { title: name, unit: "packets per group", decimals: 0 },
        series: outcomes
            .iter()
            .zip(points)
            .zip(0..)
            .map(|(((_, name), points), look)| ChartSeries {
                name,
                look,
                draw: Draw::Points,
                points,
            })
            .collect(),
        ..ChartPanel::default()
    });
    Ok(render(&Chart {
        title: "Groups that arrive in reverse order: which of them a stack takes for losses",
        subtitle: "scenarios/reordering.toml, seed 1: 1 MB for each gap and size of group",
        x: ChartAxis {
            title: "time from the first packet of a group to its last",
            unit: "ms",
            decimals: 3,
        },
        panels: panels.collect(),
        ..Chart::default()
    }))
}

/// State of a QUIC sender, in thousandths of a packet.
#[derive(Debug, Default)]
pub(crate) struct QuicCurves {
    pub(crate) cwnd: Vec<ChartPoint>,
    pub(crate) in_flight: Vec<ChartPoint>,
    pub(crate) partial: Vec<ChartPoint>,
}

/// Start of the picture of the limit cycle.
const CYCLE_FROM: Duration = Duration::from_millis(3_000);

impl Recorder for QuicCurves {
    const ON: bool = true;

    fn record(&mut self, at: Instant, source: EventSource, _: Event, state: Option<&SenderState>) {
        let (Some(state), HostId(0)) = (state, source.host) else { return };
        let since = at.since(Instant::ZERO + CYCLE_FROM);
        if since.is_zero() {
            return;
        }
        let x = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        let packets = |bytes: units::Bytes| (bytes.get() * 1_000 / state.mss.get().max(1)) as i64;
        push(&mut self.cwnd, x, packets(state.cwnd));
        push(&mut self.in_flight, x, packets(state.in_flight));
        push(&mut self.partial, x, packets(state.partial_acked));
    }
}

impl sim::Observer for QuicCurves {}

/// 50 ms of the Mathis experiment with a receiver that acknowledges every n-th packet.
pub(crate) fn quic_curves(every: u32) -> Result<QuicCurves, CaseError> {
    let acks = format!("host.server.knobs.numReceivedAckElicitingsBeforeAck={every}");
    let loaded = load(mathis::SCENARIO, "mathis.toml", &["duration=3.05s", &acks])?;
    let mut curves = QuicCurves::default();
    run(&loaded, &mut curves, &Workers::one())?;
    Ok(curves)
}

/// The limit cycles of the Mathis experiment: window, flight and counter.
fn mathis_cycle() -> Result<String, CaseError> {
    let runs = [("ACK every packet", quic_curves(1)?), ("ACK every other packet", quic_curves(2)?)];
    let panels = runs.iter().map(|(title, curves)| {
        let series = |name, look, points| ChartSeries { name, look, draw: Draw::Step, points };
        ChartPanel {
            y: ChartAxis { title, unit: "packets", decimals: 3 },
            series: vec![
                series("cwnd", 0, &curves.cwnd),
                series("bytesInFlight", 1, &curves.in_flight),
                series("partialBytesAcked", 2, &curves.partial),
            ],
            ..ChartPanel::default()
        }
    });
    Ok(render(&Chart {
        title: "QUIC under periodic loss: cycles of 7 and of 8 round trips",
        subtitle: "scenarios/mathis.toml, seed 1: 50 ms from a second after the start, RTT 2 ms",
        x: TIME,
        panels: panels.collect(),
        ..Chart::default()
    }))
}
