//! Results of paths as text.

use std::fmt::Write as _;

use super::draws::{DrawnPath, Trouble};

/// A run of a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// Duration of the transfer.
    pub(super) seconds: f64,
    pub(super) finished: bool,
    /// Packets of the sender that the path dropped.
    pub(super) lost: u64,
}

/// Both runs of a path.
#[derive(Debug, Clone)]
pub(super) struct PathResult {
    pub(super) number: u64,
    pub(super) path: DrawnPath,
    pub(super) model: Measured,
    pub(super) stack: Measured,
    /// The first data packet that differs in size.
    pub(super) first_size: Option<u64>,
    /// The first data packet that differs in time by more than a millisecond, and both times.
    pub(super) first_time: Option<(u64, f64, f64)>,
}

impl PathResult {
    /// By how much the model's duration is above the stack's, in percent.
    fn percent(&self) -> f64 {
        100.0 * (self.model.seconds - self.stack.seconds) / self.stack.seconds
    }

    fn is_near(&self) -> bool {
        self.percent().abs() <= 1.0 && self.model.finished == self.stack.finished
    }

    /// Losses within two packets or 5 %.
    fn losses_are_near(&self) -> bool {
        let (model, stack) = (self.model.lost, self.stack.lost);
        let apart = model.abs_diff(stack);
        apart <= 2 || 20 * apart <= stack
    }
}

/// A line for each path.
pub(super) fn paths(results: &[PathResult]) -> String {
    let mut text = format!(
        "{:>4} {:<14} {:<18} {:>7} {:>6} {:>7} {:>9} {:>9} {:>7} {:>11} {:>6}  first time apart\n",
        "path", "trouble", "", "Mbit/s", "ms", "buffer", "model s", "stack s", "", "lost", "size"
    );
    for result in results {
        let DrawnPath { trouble, kbit, round_trip_us, buffer, detail, .. } = &result.path;
        let first = match result.first_time {
            Some((number, model, stack)) => format!("{number}: {model:.6} s, {stack:.6} s"),
            None => "none".to_owned(),
        };
        let size = result.first_size.map_or_else(|| "-".to_owned(), |number| number.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>4} {:<14} {detail:<18} {:>7.1} {:>6.1} {buffer:>7} {:>9.3} {:>9.3} {:>+6.2}% {:>5} {:>5} {size:>6}  {first}",
            result.number,
            trouble.name(),
            *kbit as f64 / 1e3,
            *round_trip_us as f64 / 1e3,
            result.model.seconds,
            result.stack.seconds,
            result.percent(),
            result.model.lost,
            result.stack.lost,
        );
    }
    text
}

/// The value at a fraction of the sorted values.
fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((fraction * last as f64).round() as usize).copied().unwrap_or(0.0)
}

/// A line for each kind of trouble, and one for all.
pub(super) fn summary((profile, stack): (&str, &str), results: &[PathResult]) -> String {
    let mut text = format!(
        "\n{profile} beside {stack}\n{:<14} {:>5} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}  {:>11} {:>6}\n",
        "trouble",
        "paths",
        "within 1 %",
        "least",
        "median",
        "most",
        "|p50|",
        "|p90|",
        "losses near",
        "both"
    );
    let kinds = Trouble::ALL.into_iter().map(Some).chain([None]);
    for kind in kinds {
        let chosen: Vec<&PathResult> =
            results.iter().filter(|one| kind.is_none_or(|kind| one.path.trouble == kind)).collect();
        if chosen.is_empty() {
            continue;
        }
        let mut signed: Vec<f64> = chosen.iter().map(|one| one.percent()).collect();
        signed.sort_by(f64::total_cmp);
        let mut apart: Vec<f64> = signed.iter().map(|percent| percent.abs()).collect();
        apart.sort_by(f64::total_cmp);
        let count = |what: fn(&PathResult) -> bool| chosen.iter().filter(|one| what(one)).count();
        let _ = writeln!(
            text,
            "{:<14} {:>5} {:>10} {:>+7.2}% {:>+7.2}% {:>+7.2}% {:>7.2}% {:>7.2}%  {:>11} {:>6}",
            kind.map_or("all", Trouble::name),
            chosen.len(),
            count(PathResult::is_near),
            quantile(&signed, 0.0),
            quantile(&signed, 0.5),
            quantile(&signed, 1.0),
            quantile(&apart, 0.5),
            quantile(&apart, 0.9),
            count(PathResult::losses_are_near),
            count(|one| one.is_near() && one.losses_are_near()),
        );
    }
    text
}

/// The page of the ledger.
pub(super) fn page(title: (&str, &str), seed: u64, results: &[PathResult]) -> String {
    let count = results.len();
    let (profile, stack) = title;
    let heading = match stack {
        super::FIRST_STACK => "QUIC profiles beside the stacks themselves".to_owned(),
        _ => format!("`{profile}` beside the stack `{stack}`"),
    };
    let named =
        if stack == super::FIRST_STACK { String::new() } else { format!(" --stack {stack}") };
    format!(
        "<!-- cargo xtask stacks{named} --count {count} --seed {seed} --ledger writes this page -->\n\n\
         # {heading}\n\nMachine: any: virtual time.\n\n\
         Each path has a rate of 2 to 100 Mbit/s, a round trip of 4 to 150 ms, a queue of a quarter of a bandwidth-delay product\n\
         to four of them and at least 20 kB, and one kind of trouble; the client uploads what the line sends in three seconds,\n\
         1 to 12 MB. It is run with models and with the stack, in virtual time. The percentage is the model's duration above the\n\
         stack's; `|p50|` and `|p90|` are quantiles of its absolute value. Losses are packets of the client that the path drops;\n\
         near are two packets or 5 %.\n\n\
         ```text\n$ cargo xtask stacks{named} --count {count} --seed {seed}\n{}```\n\n## Paths\n\n\
         The last columns are the first packets with stream data that differ in size, and in time by more than 1 ms.\n\n```text\n{}```\n",
        summary(title, results).trim_start(),
        paths(results)
    )
}
