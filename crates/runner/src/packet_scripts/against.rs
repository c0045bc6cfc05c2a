//! A script on the model and on a real kernel, packet by packet.

use core::fmt::Write as _;

use serde::Serialize;

use super::{Ending, ScriptResult};

/// Tolerated difference of times in seconds: packets of a guest are late by its readings of the clock, which may be
/// more than a tick of the kernel later for a timer.
const TOLERANCE: f64 = 0.0021;

/// The results of a script on the model and on a kernel, with the packets of both runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// On the model.
    pub model: ScriptResult,
    /// On the kernel.
    pub kernel: ScriptResult,
}

impl Compared {
    /// Returns whether both have the same verdict, at the same line of the script.
    pub fn agrees(&self) -> bool {
        let [model, kernel] = [&self.model, &self.kernel].map(verdict);
        model == kernel
    }

    /// Returns whether both runs have the same packets, at the same times.
    pub fn has_same_packets(&self) -> bool {
        self.first_difference().is_none()
    }

    /// Returns the index of the first line of the packets that differs.
    pub fn first_difference(&self) -> Option<usize> {
        let (model, kernel) = (&self.model.packets, &self.kernel.packets);
        let most = model.len().max(kernel.len());
        (0..most).find(|&n| match (model.get(n), kernel.get(n)) {
            (Some(one), Some(other)) => !is_same(one, other),
            _ => true,
        })
    }

    /// Formats the packets of both runs: ` ` both, `-` the model only, `+` the kernel only.
    pub fn text(&self) -> String {
        let mut text = format!("{}:\n", self.model.file);
        let (model, kernel) = (&self.model.packets, &self.kernel.packets);
        let (mut at, mut other) = (0, 0);
        while at < model.len() || other < kernel.len() {
            match (model.get(at), kernel.get(other)) {
                (Some(one), Some(two)) if is_same(one, two) => {
                    let _ = writeln!(text, "    {one}");
                    (at, other) = (at + 1, other + 1);
                }
                (Some(one), two) if two.is_none_or(|two| time(one) <= time(two)) => {
                    let _ = writeln!(text, "  - {one}");
                    at += 1;
                }
                (_, Some(two)) => {
                    let _ = writeln!(text, "  + {two}");
                    other += 1;
                }
                _ => break,
            }
        }
        for (name, one) in [("model", &self.model), ("kernel", &self.kernel)] {
            if let Some(found) = one.ending.diagnostic() {
                let _ = writeln!(text, "{name}: {}", summary(one));
                for (what, value) in [("expected", &found.expected), ("found", &found.found)] {
                    if let Some(value) = value {
                        let _ = writeln!(text, "  {what} {value}");
                    }
                }
            }
        }
        text
    }
}

/// Returns the verdict and the line that it points at.
fn verdict(result: &ScriptResult) -> (&'static str, Option<usize>) {
    let line = match &result.ending {
        Ending::Passed => None,
        Ending::Failed(found) | Ending::Unsupported(found) | Ending::Unreadable(found) => {
            Some(found.line)
        }
    };
    (result.ending.word(), line)
}

fn summary(result: &ScriptResult) -> String {
    match result.ending.diagnostic() {
        Some(found) => format!("{}: {}", found.line, found.message),
        None => String::new(),
    }
}

fn time(line: &str) -> f64 {
    line.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0.0)
}

/// Returns whether two lines are equal but for small differences of time and the start of the timestamp clock.
fn is_same(one: &str, other: &str) -> bool {
    let close = (time(one) - time(other)).abs() <= TOLERANCE;
    close && (contents(one) == contents(other) || has_same_values(one, other))
}

/// Returns whether two lines printed by the script have the same values; large ones, which are times in microseconds,
/// may differ by 20.
fn has_same_values(one: &str, other: &str) -> bool {
    let values = |line: &str| {
        let (_, values) = line.split_once(" | ")?;
        values.split(' ').map(|value| value.parse::<i64>().ok()).collect::<Option<Vec<_>>>()
    };
    let same = |(one, other): (&i64, &i64)| match one.min(other) {
        ..5_000 => one == other,
        _ => one.abs_diff(*other) <= 20,
    };
    values(one)
        .zip(values(other))
        .is_some_and(|(one, other)| one.len() == other.len() && one.iter().zip(&other).all(same))
}

/// The line without its time and without timestamps.
fn contents(line: &str) -> String {
    let text = line.split_once(' ').map_or(line, |(_, rest)| rest);
    match text.split_once("TS val ") {
        Some((before, after)) => {
            let end = after.find([',', '>']).unwrap_or(after.len());
            format!("{before}TS{}", &after[end..])
        }
        None => text.to_owned(),
    }
}

/// Formats a line for each script, and their number by verdict.
pub fn compared_table(kernel: &str, results: &[Compared]) -> String {
    let names = results.iter().map(|one| one.model.file.chars().count());
    let file = names.fold("script".len(), usize::max);
    let width = kernel.chars().count().max("unsupported".len());
    let mut table = format!(
        "{:<file$}  {:<11}  {kernel:<width$}  {:<12}  different verdicts\n",
        "script", "model", "packets"
    );
    for one in results {
        let packets = match one.first_difference() {
            None => "same".to_owned(),
            Some(at) => format!("differ at {}", at + 1),
        };
        let difference = match one.agrees() {
            true => String::new(),
            false => {
                let [model, kernel] = [&one.model, &one.kernel].map(summary);
                format!("model {model}; kernel {kernel}")
            }
        };
        let (model, kernel) = (one.model.ending.word(), one.kernel.ending.word());
        let line = format!(
            "{:<file$}  {model:<11}  {kernel:<width$}  {packets:<12}  {difference}",
            one.model.file
        );
        table += line.trim_end();
        table.push('\n');
    }
    let count = |test: &dyn Fn(&Compared) -> bool| results.iter().filter(|one| test(one)).count();
    let passed = |result: &ScriptResult| result.ending == Ending::Passed;
    format!(
        "{table}{} scripts: the model passes {}, the kernel {}; same verdict {}, same packets {}\n",
        results.len(),
        count(&|one| passed(&one.model)),
        count(&|one| passed(&one.kernel)),
        count(&Compared::agrees),
        count(&Compared::has_same_packets),
    )
}

#[derive(Serialize)]
struct Side<'a> {
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    packets: &'a [String],
}

impl<'a> Side<'a> {
    fn of(result: &'a ScriptResult) -> Self {
        let (verdict, line) = verdict(result);
        let message = result.ending.diagnostic().map(|found| &*found.message);
        Self { verdict, line, message, packets: &result.packets }
    }
}

#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    profile: &'a str,
    same_verdict: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_different_packet: Option<usize>,
    model: Side<'a>,
    kernel: Side<'a>,
}

#[derive(Serialize)]
struct Report<'a> {
    kernel: &'a str,
    scripts: Vec<Row<'a>>,
}

/// Formats the results as JSON.
pub fn compared_json(kernel: &str, results: &[Compared]) -> String {
    let scripts = results
        .iter()
        .map(|one| Row {
            file: &one.model.file,
            profile: &one.model.profile,
            same_verdict: one.agrees(),
            first_different_packet: one.first_difference().map(|at| at + 1),
            model: Side::of(&one.model),
            kernel: Side::of(&one.kernel),
        })
        .collect();
    serde_json::to_string_pretty(&Report { kernel, scripts }).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_and_small_delays_are_no_difference() {
        let model = "0.050 > . 1:1(0) ack 1 win 63 <nop,nop,TS val 100050 ecr 7>";
        let kernel = "0.050001 > . 1:1(0) ack 1 win 63 <nop,nop,TS val 4000000 ecr 7>";
        assert!(is_same(model, kernel));
        assert!(!is_same(model, &kernel.replace("win 63", "win 64")));
        assert!(!is_same(model, &kernel.replace("0.050001", "0.053")));
        assert!(!is_same(model, "0.050 > . 1:1(0) ack 1 win 63"));
        assert!(is_same("0.1 | 10 0 39700", "0.1 | 10 0 39711"));
        assert!(!is_same("0.1 | 10 0 39700", "0.1 | 11 0 39700"));
        assert!(!is_same("0.1 | 10 0 39700", "0.1 | 10 0 39800"));
    }
}
