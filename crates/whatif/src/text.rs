//! The answer as text.

use core::fmt::{self, Write};

use ingest::diagnosis::{Prediction, Validity};

use super::{TransferResult, WhatIf};
use runner::run_report::aligned;

impl WhatIf {
    /// Formats the answer as tables.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let recorded = &self.recorded;
        writeln!(out, "{}\n", self.answer())?;
        writeln!(
            out,
            "recorded: {} B in {:.3} s, {:.2} Mbit/s\n",
            recorded.bytes,
            recorded.time_s,
            recorded.goodput_bps / 1e6
        )?;
        writeln!(out, "fitted path and hosts")?;
        let rows: Vec<_> = self
            .fitted
            .iter()
            .map(|estimate| [format!("  {}", estimate.what), estimate.why.clone()])
            .collect();
        out.push_str(&aligned(&rows));
        writeln!(out, "\nthe same transfer simulated, by sender")?;
        let mut rows = vec![
            [
                "  sender",
                "time",
                "goodput",
                "against recorded",
                "timing error",
                "windows",
                if self.senders.iter().any(|one| one.kernel.is_some()) { KERNEL } else { "" },
            ]
            .map(str::to_owned),
        ];
        rows.extend(self.senders.iter().map(|one| {
            let [time, goodput] = figures(&one.course);
            let ratio = (one.course.goodput_bps / recorded.goodput_bps - 1.0) * 100.0;
            [
                format!("  {}", one.sender),
                time,
                goodput,
                format!("{ratio:+.1} %"),
                format!("{:.1} % of the time", one.misfit * 100.0),
                if one.shown_by_windows { "as recorded" } else { "" }.to_owned(),
                kernel(one.kernel.as_ref(), &one.course),
            ]
        }));
        out.push_str(&aligned(&rows));
        if !self.licensed {
            writeln!(
                out,
                "\nwarning: the first of them does not match the recorded transfer within 10 %: \
                 predictions for this path are unreliable"
            )?;
        }
        if self.alternatives.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nwhat if")?;
        let with =
            if self.alternatives.iter().any(|one| one.kernel.is_some()) { KERNEL } else { "" };
        let mut rows = vec![
            ["  sender", "time", "goodput", "spread", "relative time", with].map(str::to_owned),
        ];
        rows.extend(self.alternatives.iter().map(|one| {
            // A figure that says nothing about the transfer is none.
            if one.prediction.validity == Validity::None {
                let unknown = || "-".to_owned();
                return [
                    format!("  {}", one.what),
                    unknown(),
                    unknown(),
                    "cannot be predicted".to_owned(),
                    unknown(),
                    kernel(one.kernel.as_ref(), &one.course),
                ];
            }
            let [time, goodput] = figures(&one.course);
            let spread = match one.runs {
                1 => "one run".to_owned(),
                runs => format!("{:.3} to {:.3} s ({runs} seeds)", one.spread_s.0, one.spread_s.1),
            };
            [
                format!("  {}", one.what),
                time,
                goodput,
                spread,
                format!("{:.2} times", one.time_ratio),
                kernel(one.kernel.as_ref(), &one.course),
            ]
        }));
        out.push_str(&aligned(&rows));
        // The spread is in the table.
        let is_wider = |one: &&super::Alternative| {
            let Prediction { validity, low_s, high_s, .. } = one.prediction;
            validity == Validity::Range && (low_s, high_s) != one.spread_s
        };
        for one in self.alternatives.iter().filter(is_wider) {
            let Prediction { low_s, high_s, why, .. } = &one.prediction;
            writeln!(out, "\n{}: {low_s:.3} to {high_s:.3} s; {why}", one.what)?;
        }
        for one in &self.alternatives {
            if one.prediction.validity == Validity::None {
                writeln!(out, "\n{}: cannot be predicted: {}", one.what, one.prediction.why)?;
            }
        }
        Ok(())
    }
}

/// Heading of the check.
const KERNEL: &str = "with real kernels";

/// The time of the check, and how far it is from the model's.
fn kernel(kernel: Option<&TransferResult>, model: &TransferResult) -> String {
    kernel.map_or_else(String::new, |kernel| {
        let apart = (kernel.time_s / model.time_s - 1.0) * 100.0;
        format!("{:.3} s ({apart:+.1} %)", kernel.time_s)
    })
}

fn figures(course: &TransferResult) -> [String; 2] {
    [format!("{:.3} s", course.time_s), format!("{:.2} Mbit/s", course.goodput_bps / 1e6)]
}
