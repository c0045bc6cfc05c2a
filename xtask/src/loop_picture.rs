//! The picture of README.md: a capture, the verdict on it, and its cure.
//!
//! Every figure is that of the diagnosis of a recorded transfer. The colours are those of Okabe and Ito, which colour-blind
//! people can distinguish, and each has a label.

use core::fmt::Write as _;
use std::path::Path;

use diagnose::rules::{size, time};
use diagnose::{Analysis, Limiter};
use ingest::diagnosis::{DiagnosisReport, TriedCure};
use ingest::inputs::{InputFile, ReadMode};
use runner::workers::Workers;
use units::Duration;

/// Its file.
pub(crate) const FILE: &str = "docs/pictures/loop.svg";
/// The capture: the receiver's window is small.
const CAPTURE: &str = "golden/linux/h1_rwnd_cubic/sender.pcap.xz";

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 236.0;
/// Left edge and width of the panels.
const PANELS: [f64; 3] = [16.0, 336.0, 656.0];
const PANEL: f64 = 288.0;
/// Distance of contents to the edge of a panel.
const INSET: f64 = 14.0;
/// Top of the contents, below the title.
const TOP: f64 = 56.0;
/// Bottom of the plot.
const BOTTOM: f64 = 190.0;

const BLUE: &str = "#0072b2";
const VERMILION: &str = "#d55e00";
const GREY: &str = "#57606a";

/// Colours of the parts of the time.
const COLOURS: [(Limiter, &str); 10] = [
    (Limiter::Handshake, "#cc79a7"),
    (Limiter::SlowStart, "#e69f00"),
    (Limiter::Cwnd, "#56b4e9"),
    (Limiter::Rwnd, VERMILION),
    (Limiter::Application, "#009e73"),
    (Limiter::Recovery, "#f0e442"),
    (Limiter::Timeout, "#000000"),
    (Limiter::Path, BLUE),
    (Limiter::Idle, "#d0d7de"),
    (Limiter::Unknown, GREY),
];

/// Draws the picture.
///
/// # Errors
/// The capture cannot be read, or has no finding with a cure.
pub(crate) fn draw(root: &Path) -> Result<String, String> {
    let bytes = std::fs::read(root.join(CAPTURE)).map_err(|error| format!("{CAPTURE}: {error}"))?;
    let source = InputFile { name: CAPTURE.to_owned(), bytes: Box::new(&bytes[..]) };
    let mode = ReadMode::default();
    let mut report = DiagnosisReport::read_with(vec![source], whatif::MOST_PACKETS, mode)
        .map_err(|error| error.to_string())?;
    whatif::try_worst(&mut report, &Workers::one());
    let file = report.files.first().ok_or("no file")?;
    let judged = file.connections.first().ok_or("no connection")?;
    let cure = judged.cures.first().ok_or("no cure was tried")?;
    let analysis = judged.analysis();
    let mut out = String::new();
    frame(&mut out);
    capture(&analysis, &mut out)?;
    verdict(file, judged, &analysis, &mut out)?;
    repaired(cure, &mut out);
    out.push_str("</svg>\n");
    Ok(out)
}

fn text(out: &mut String, (x, y): (f64, f64), attributes: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\"{attributes}>{words}</text>");
}

fn frame(out: &mut String) {
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         role=\"img\" font-family=\"-apple-system,BlinkMacSystemFont,'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif\" \
         font-size=\"12\" fill=\"#1f2328\">\n<title>A capture, the verdict on it, and its cure</title>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{:.1}\" height=\"{:.1}\" rx=\"7\" fill=\"#ffffff\" stroke=\"#d0d7de\"/>",
        WIDTH - 1.0,
        HEIGHT - 1.0
    );
    for (left, title) in PANELS.into_iter().zip(["1  capture", "2  verdict", "3  cure"]) {
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"12\" width=\"{PANEL:.1}\" height=\"{:.1}\" rx=\"6\" fill=\"#f6f8fa\"/>",
            HEIGHT - 24.0
        );
        text(out, (left + INSET, 36.0), " font-size=\"15\" font-weight=\"600\"", title);
    }
    for left in &PANELS[1..] {
        let (x, y) = (left - 25.0, HEIGHT / 2.0);
        let _ = writeln!(
            out,
            "<path fill=\"{GREY}\" d=\"M{:.1} {:.1}h10v-6l10 10l-10 10v-6h-10z\"/>",
            x,
            y - 4.0
        );
    }
}

/// Bytes in flight by round trip, below the receive window.
fn capture(analysis: &Analysis, out: &mut String) -> Result<(), String> {
    let flow = analysis.main().ok_or("no data")?;
    let (_, window, _) = flow.window.ok_or("the window is unknown")?;
    let whole = analysis.duration().as_secs_f64();
    let highest = window as f64 * 1.25;
    let left = PANELS[0] + INSET;
    let x = |at: Duration| left + (PANEL - 2.0 * INSET) * (at.as_secs_f64() / whole).min(1.0);
    let y = |bytes: u64| BOTTOM - (BOTTOM - TOP) * bytes as f64 / highest;
    let mut path = String::new();
    for round in &flow.rounds {
        let letter = if path.is_empty() { 'M' } else { 'L' };
        let at = round.start.since(analysis.first);
        let _ = write!(path, "{letter}{:.1} {:.1}", x(at), y(round.flight));
    }
    let right = left + PANEL - 2.0 * INSET;
    let _ = writeln!(
        out,
        "<path fill=\"none\" stroke=\"{VERMILION}\" stroke-width=\"1.6\" stroke-dasharray=\"6 3\" d=\"M{left:.1} {0:.1}H{right:.1}\"/>\n\
         <path fill=\"none\" stroke=\"{BLUE}\" stroke-width=\"2\" stroke-linejoin=\"round\" d=\"{path}\"/>\n\
         <path stroke=\"{GREY}\" d=\"M{left:.1} {BOTTOM:.1}H{right:.1}\"/>",
        y(window)
    );
    let label = format!("receive window, {}", size(window));
    text(out, (left, y(window) - 6.0), &format!(" fill=\"{VERMILION}\""), &label);
    text(out, (left + 60.0, y(window) + 24.0), &format!(" fill=\"{BLUE}\""), "bytes in flight");
    let end = format!(" fill=\"{GREY}\" text-anchor=\"end\"");
    text(out, (right, BOTTOM + 18.0), &end, &time(analysis.duration()));
    let sent = format!(
        "{}, round trip {}",
        size(flow.bytes),
        time(flow.rtt.map_or(Duration::ZERO, |rtt| rtt.0))
    );
    text(out, (left, BOTTOM + 18.0), &format!(" fill=\"{GREY}\""), &sent);
    Ok(())
}

/// The parts of the time, and the finding that limited the connection.
fn verdict(
    file: &ingest::diagnosis::FileReport,
    judged: &ingest::diagnosis::ConnectionReport,
    analysis: &Analysis,
    out: &mut String,
) -> Result<(), String> {
    let diagnosis = file.diagnosis_of(judged, analysis);
    let found = diagnosis.findings.iter().find(|found| Some(found.code) == diagnosis.primary);
    let found = found.ok_or("no finding")?;
    let budget = &diagnosis.course.budget;
    let whole = budget.whole().as_nanos().max(1) as f64;
    let left = PANELS[1] + INSET;
    let wide = PANEL - 2.0 * INSET;
    let bold = " font-weight=\"600\"";
    text(out, (left, TOP + 14.0), bold, found.code);
    let (head, tail) = found.title.split_once(" is full ").unwrap_or((&found.title, ""));
    text(out, (left + 52.0, TOP + 14.0), "", head);
    if !tail.is_empty() {
        text(out, (left + 52.0, TOP + 31.0), "", &format!("is full {tail}"));
    }
    text(out, (left, TOP + 52.0), "", &format!("it costs {}", time(found.cost)));
    let (mut x, mut row) = (left, 0.0);
    for (limiter, colour) in COLOURS {
        let part = budget.of(limiter).as_nanos() as f64 / whole;
        if part <= 0.0 {
            continue;
        }
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\" fill=\"{colour}\"/>",
            TOP + 64.0,
            part * wide
        );
        x += part * wide;
        let (column, line) = (row % 2.0, f64::floor(row / 2.0));
        let (label_x, label_y) = (left + column * wide / 2.0, TOP + 104.0 + 17.0 * line);
        let _ = writeln!(
            out,
            "<rect x=\"{label_x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
            label_y - 9.0
        );
        let name = format!("{} {:.0} %", limiter.name(), part * 100.0);
        text(out, (label_x + 15.0, label_y), "", &name);
        row += 1.0;
    }
    Ok(())
}

/// The time of the transfer, as recorded and with the cure.
fn repaired(cure: &TriedCure, out: &mut String) {
    let left = PANELS[2] + INSET;
    let wide = PANEL - 2.0 * INSET;
    let (host, setting) = cure.what.split_once(": ").unwrap_or(("", &cure.what));
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    text(out, (left, TOP + 14.0), "", &format!("{host}: {name}"));
    text(out, (left, TOP + 31.0), " font-family=\"monospace\"", &format!("= {value}"));
    let longest = cure.recorded_s.max(cure.duration_s).max(1e-9);
    let rows =
        [("recorded", cure.recorded_s, VERMILION), ("simulated with it", cure.duration_s, BLUE)];
    for (row, (label, seconds, colour)) in rows.into_iter().enumerate() {
        let y = TOP + 56.0 + 44.0 * row as f64;
        let shown = time(Duration::from_nanos((seconds * 1e9) as u64));
        text(out, (left, y), "", &format!("{label}: {shown}"));
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"18\" fill=\"{colour}\"/>",
            y + 6.0,
            wide * seconds / longest
        );
    }
}
