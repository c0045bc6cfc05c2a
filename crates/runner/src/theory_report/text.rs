//! The report as text.

use units::{Bytes, Duration, Rate};

use super::{CubicRow, EstimateRow, TheoryReport, TrialResult};
use crate::run_report::{aligned, spaced};

pub(super) fn text(answer: &TheoryReport) -> String {
    let mut text = path(answer) + "\n\n" + &table(answer);
    if let Some(cubic) = &answer.cubic {
        text += "\n";
        text += &regions(cubic);
    }
    if let Some(measured) = &answer.measured {
        text += "\n";
        text += &run(answer, measured);
    }
    let Some(asked) = answer.estimate() else { return text };
    text += &format!("\nAssumptions ({}):\n", asked.formula);
    text += &list(&asked.assumes);
    text += if asked.doubts.is_empty() {
        "\nNo doubts in this case.\n"
    } else {
        "\nDoubts in this case:\n"
    };
    text + &list(&asked.doubts)
}

fn list<T: AsRef<str>>(points: &[T]) -> String {
    points.iter().map(|point| format!("- {}\n", point.as_ref())).collect()
}

fn path(answer: &TheoryReport) -> String {
    let path = &answer.path;
    let mut parts = vec![
        format!("{} a segment", Bytes(path.mss_bytes)),
        format!("RTT {}", seconds(path.rtt_s)),
        format!("{} % lost", plain(path.loss * 100.0)),
    ];
    if let Some(rate) = path.rate_bps.and_then(Rate::from_bits_per_second) {
        parts.push(format!("link rate {rate}"));
    }
    if let Some(window) = path.window_bytes {
        parts.push(format!("receive window {}", Bytes(window)));
    }
    parts.join(", ")
}

fn table(answer: &TheoryReport) -> String {
    let headings = ["formula", "rate", "window", "peak", "from loss to loss"];
    let mut rows = vec![headings.map(str::to_owned)];
    rows.extend(answer.estimates.iter().map(cells));
    aligned(&rows)
}

fn cells(row: &EstimateRow) -> [String; 5] {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        row.formula.clone(),
        mbps(row.rate_bps),
        format!("{} MSS", plain(row.window_segments)),
        or_none(row.peak_segments.map(|peak| format!("{} MSS", plain(peak)))),
        or_none(row.cycle_rtts.map(|rtts| format!("{} RTT", plain(rtts)))),
    ]
}

fn regions(cubic: &CubicRow) -> String {
    let headings = ["after the loss", "W_cubic", "W_est RFC 8312", "W_est RFC 9438"];
    let mut rows = vec![headings.map(str::to_owned)];
    rows.extend(cubic.epoch.iter().map(|row| {
        [seconds(row.t_s), plain(row.w_cubic), plain(row.w_est_rfc8312), plain(row.w_est_rfc9438)]
    }));
    format!(
        "cubic curve {} MSS, Reno-friendly window {} MSS on average\n\
         Reno-friendly below {} at this loss, above {} % lost at this round trip\n\n\
         A loss at {} MSS; K = {}\n\n{}",
        plain(cubic.cubic_segments),
        plain(cubic.friendly_segments),
        seconds(cubic.friendly_below_rtt_s),
        plain(cubic.friendly_above_loss * 100.0),
        plain(cubic.w_max_segments),
        seconds(cubic.k_s),
        aligned(&rows)
    )
}

fn run(answer: &TheoryReport, measured: &TrialResult) -> String {
    let share = answer.estimate().map_or(f64::NAN, |asked| measured.rate_bps / asked.rate_bps);
    format!(
        "measured: {}, {} of the formula\n  {} with {}, {}, an ACK for {}, seed {}\n  {} from {} \
         on: {} retransmitted, {} recoveries, {} timeouts\n",
        mbps(measured.rate_bps),
        plain(share),
        measured.profile,
        measured.cc,
        measured.losses,
        measured.acks,
        measured.seed,
        seconds(measured.measured_s),
        seconds(measured.warm_up_s),
        measured.retransmission,
        measured.fast_recoveries,
        measured.rtos,
    )
}

fn mbps(bps: f64) -> String {
    format!("{:.2} Mbit/s", bps / 1e6)
}

/// At least four digits, two decimals for small numbers.
fn plain(number: f64) -> String {
    match number.abs() {
        n if n >= 1_000.0 || n == 0.0 => format!("{number:.0}"),
        n if n >= 100.0 => format!("{number:.1}"),
        n if n >= 0.1 => {
            let text = format!("{number:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{number:.2e}"),
    }
}

fn seconds(seconds: f64) -> String {
    // Results of formulas are shown to the microsecond, or to four digits.
    match seconds {
        0.0 => "0 s".to_owned(),
        s if s >= 1_000.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.3} s"),
        s => spaced(Duration::from_micros((s * 1e6).round() as u64)),
    }
}
