//! Fairness and link statistics as text.

use units::Duration;

use super::SharingReport;
use crate::run_report::{aligned, spaced};

/// The tables after the flows; empty without statistics.
pub fn text(report: &SharingReport) -> String {
    let mut text = String::new();
    if !report.links.is_empty() {
        let mut rows = vec![LINES.map(str::to_owned)];
        rows.extend(rows_of_lines(report));
        text += &aligned(&rows);
    }
    if let Some(fair) = &report.fairness {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &format!("Jain's index {:.3}", fair.jain_index);
        match fair.flows.len() {
            0 => {}
            few @ 1..=4 => text += &format!(" of {}", fair.flows[..few].join(", ")),
            many => {
                let first = &fair.flows[0];
                text += &format!(" of {many} flows that are alike, {first} and others");
            }
        }
        if let (Some(mean), Some(min)) = (fair.mean_jain_index, fair.min_jain_index) {
            text += &format!("; of single seconds {mean:.3} on average, {min:.3} at least");
        }
        text += &match (fair.convergence_s, fair.seconds_not_visible) {
            (Some(span), _) => format!("; fair shares {span:.1} s after the last start\n"),
            (None, true) => "; single seconds not visible\n".to_owned(),
            (None, false) => "; no second with fair shares\n".to_owned(),
        };
    }
    text
}

/// Headings of the link table.
pub const LINES: [&str; 9] =
    ["link", "queue", "packets", "lost", "marked", "delay p50", "p95", "p99", "max"];

/// A row for each link.
pub fn rows_of_lines(report: &SharingReport) -> impl Iterator<Item = [String; 9]> {
    let wait = |seconds: Option<f64>| seconds.map_or_else(|| "–".to_owned(), short);
    report.links.iter().map(move |line| {
        [
            line.link.clone(),
            line.queue.clone(),
            line.packets.to_string(),
            line.lost.to_string(),
            line.marked.to_string(),
            wait(line.delay_p50_s),
            wait(line.delay_p95_s),
            wait(line.delay_p99_s),
            wait(line.delay_max_s),
        ]
    })
}

/// Formats with three digits.
fn short(seconds: f64) -> String {
    let ns = (seconds * 1e9).round() as u64;
    let step = match ns {
        0..1_000 => 1,
        _ => 10_u64.pow(ns.ilog10() - 2),
    };
    spaced(Duration::from_nanos((ns + step / 2) / step * step))
}
