//! Outcomes of many scripts by folder, and the reasons of those that did not pass.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::{Ending, ScriptResult, ScriptTotals};

/// A table by folder, if there are several, and one by reason; empty if it would say nothing new.
pub fn summary(results: &[ScriptResult]) -> String {
    let mut folders: BTreeMap<&str, Vec<&ScriptResult>> = BTreeMap::new();
    for one in results {
        let folder = Path::new(&one.file).parent().and_then(Path::to_str).unwrap_or_default();
        folders.entry(folder).or_default().push(one);
    }
    let mut out = String::new();
    if folders.len() > 1 {
        let width = folders.keys().map(|name| name.chars().count()).fold(6, usize::max);
        let _ = writeln!(
            out,
            "\n{:<width$}  scripts  passed  failed  unsupported  unreadable",
            "folder"
        );
        for (folder, results) in &folders {
            let totals = ScriptTotals::of(results.iter().copied());
            let _ = writeln!(
                out,
                "{folder:<width$}  {:>7}  {:>6}  {:>6}  {:>11}  {:>10}",
                totals.all(),
                totals.passed,
                totals.failed,
                totals.unsupported,
                totals.unreadable
            );
        }
    }
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for one in results {
        if let Some(said) = one.ending.diagnostic() {
            *reasons.entry((one.ending.word(), &said.message)).or_default() += 1;
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|&(reason, count)| (core::cmp::Reverse(count), reason));
    if results.len() > 1 && !reasons.is_empty() {
        let _ = writeln!(out, "\nscripts  verdict      reason");
        for ((verdict, reason), count) in reasons {
            let _ = writeln!(out, "{count:>7}  {verdict:<11}  {reason}");
        }
    }
    out
}

impl Ending {
    /// Whether the script could not be run.
    pub const fn not_run(&self) -> bool {
        matches!(self, Self::Unsupported(_) | Self::Unreadable(_))
    }
}
