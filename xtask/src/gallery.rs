//! The pictures of docs/gallery.md: recorded transfers, with the finding of each, and runs.

use std::path::Path;

use charts::svg::{Chart, ChartAxis, ChartPanel, ChartPoint, ChartSeries, Draw};
use export::curves::{CurveRecorder, TIME, render};
use ingest::diagnosis::DiagnosisReport;
use ingest::inputs::{InputFile, ReadMode};
use runner::stop::{self, NEVER};
use scenario::Overrides;

/// A recorded transfer: its picture, its folder in golden/linux, and the code of its finding.
const CAPTURES: [[&str; 3]; 8] = [
    ["small-window", "h1_rwnd_cubic", "CC401"],
    ["slow-start", "a2_slowstart_reno", "CC103"],
    ["random-loss", "c1_loss1p_rtt2_reno", "CC201"],
    ["few-losses", "f2_few_losses_cubic", "CC205"],
    ["blackout", "g1_rto_cubic", "CC204"],
    ["slow-reader", "h2_slowreader_reno", "CC403"],
    ["idle-restart", "i2_idle_restart_reno", "CC502"],
    ["bufferbloat", "j1_bufferbloat_cubic", "CC601"],
];

/// A run: its picture, its file in scenarios, and when it ends.
const RUNS: [[&str; 3]; 4] = [
    ["merged-acks", "slow-start-lro", "60s"],
    ["rough-path", "rough-path", "30s"],
    ["bbr-beside-cubic", "fairness-bbr-cubic", "20s"],
    ["quic", "mathis", "2100ms"],
];

/// Width of a picture.
const WIDTH: u32 = 640;
/// Height of each plot.
const HEIGHT: u32 = 90;

/// Draws all pictures: the file of each below the root, and its content.
///
/// # Errors
/// A capture or a scenario that cannot be read, or a capture without the finding of its entry.
pub(crate) fn pictures(root: &Path) -> Result<Vec<(String, String)>, String> {
    let file = |name: &str| format!("docs/pictures/gallery-{name}.svg");
    let captures = CAPTURES.iter().map(|[name, folder, code]| {
        Ok((file(name), transfer(root, &format!("golden/linux/{folder}/sender.pcap.xz"), code)?))
    });
    let runs = RUNS.iter().map(|[name, scenario, end]| {
        Ok((file(name), windows(root, &format!("scenarios/{scenario}.toml"), end)?))
    });
    captures.chain(runs).collect()
}

/// Bytes in flight and round-trip time of a recorded transfer.
fn transfer(root: &Path, capture: &str, code: &str) -> Result<String, String> {
    let bytes = std::fs::read(root.join(capture)).map_err(|error| format!("{capture}: {error}"))?;
    let source = InputFile { name: capture.to_owned(), bytes: Box::new(&bytes[..]) };
    let report =
        DiagnosisReport::read_with(vec![source], whatif::MOST_PACKETS, ReadMode::default())
            .map_err(|error| format!("{capture}: {error}"))?;
    let file = report.files.first().ok_or_else(|| format!("{capture}: no file"))?;
    let judged = file.connections.first().ok_or_else(|| format!("{capture}: no connection"))?;
    let analysis = judged.analysis();
    let diagnosis = file.diagnosis_of(judged, &analysis);
    let found = diagnosis.findings.iter().find(|found| found.code == code);
    let found = found.ok_or_else(|| format!("{capture}: no {code}"))?;
    let flow = analysis.main().ok_or_else(|| format!("{capture}: no data"))?;
    let (mut flight, mut round_trip) = (Vec::new(), Vec::new());
    for round in &flow.rounds {
        let x = as_i64(round.start.since(analysis.first).as_nanos());
        flight.push(ChartPoint { x, y: as_i64(round.flight) });
        if !round.max_rtt.is_zero() {
            round_trip.push(ChartPoint { x, y: as_i64(round.max_rtt.as_nanos()) });
        }
    }
    let kilobytes = ChartAxis { title: "in flight", unit: "kB", decimals: 3 };
    let milliseconds = ChartAxis { title: "round trip", unit: "ms", decimals: 6 };
    Ok(render(&Chart {
        title: code,
        subtitle: &found.title,
        x: TIME,
        panels: vec![panel(kilobytes, 0, &flight), panel(milliseconds, 1, &round_trip)],
        width: WIDTH,
        ..Chart::default()
    }))
}

/// Congestion windows of the flows of a run.
fn windows(root: &Path, file: &str, end: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
    let overrides = Overrides { set: vec![format!("duration={end}")], ..Overrides::default() };
    let loaded = scenario::load(&text, file, &overrides)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let mut curves = CurveRecorder::new(&loaded.scenario);
    stop::run_shared(&loaded.scenario, &mut curves, &NEVER)
        .map_err(|error| format!("{file}: {error}"))?;
    let flows = loaded.scenario.flows.iter().zip(curves.curves()).enumerate();
    let series = flows.map(|(number, (flow, curve))| ChartSeries {
        name: &flow.name,
        look: number as u8,
        draw: Draw::Step,
        points: &curve.cwnd,
    });
    Ok(render(&Chart {
        title: &loaded.scenario.title,
        subtitle: file,
        x: TIME,
        panels: vec![ChartPanel {
            y: ChartAxis { title: "congestion window", unit: "MSS", decimals: 3 },
            series: series.collect(),
            height: 2 * HEIGHT,
        }],
        width: WIDTH,
        ..Chart::default()
    }))
}

fn panel<'a>(y: ChartAxis<'a>, look: u8, points: &'a [ChartPoint]) -> ChartPanel<'a> {
    let series = ChartSeries { name: y.title, look, draw: Draw::Line, points };
    ChartPanel { y, series: vec![series], height: HEIGHT }
}

fn as_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
