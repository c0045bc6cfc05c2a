//! The results of scripts as text.

use std::fmt::Write as _;

use super::{Ending, ScriptResult, ScriptTotals};
use scenario::snippet::{Annotated, ReportStyle, SnippetSeverity, render};

/// One line per script, and the totals.
pub fn table(results: &[ScriptResult]) -> String {
    let width = |text: fn(&ScriptResult) -> &str, least: usize| {
        results.iter().map(|one| text(one).chars().count()).fold(least, usize::max)
    };
    let file = width(|one| &one.file, "script".len());
    let profile = width(|one| &one.profile, "profile".len());
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{:<file$}  {:<profile$}  {:<11}  first difference",
        "script", "profile", "verdict"
    );
    for one in results {
        let mut line =
            format!("{:<file$}  {:<profile$}  {:<11}  ", one.file, one.profile, one.ending.word());
        if let Some(said) = one.ending.diagnostic() {
            let _ = write!(line, "{}:{}: {}", said.line, said.column, said.message);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let totals = ScriptTotals::of(results);
    let _ = write!(
        out,
        "{}: {} passed, {} failed, {} unsupported",
        counted(totals.all()),
        totals.passed,
        totals.failed,
        totals.unsupported
    );
    if totals.unreadable > 0 {
        let _ = write!(out, ", {} unreadable", totals.unreadable);
    }
    out.push('\n');
    out
}

fn counted(scripts: usize) -> String {
    if scripts == 1 { "1 script".to_owned() } else { format!("{scripts} scripts") }
}

/// The diagnostics of all scripts that did not pass; empty if all did.
pub fn details(results: &[ScriptResult], look: ReportStyle) -> String {
    let marked: Vec<_> = results
        .iter()
        .filter_map(|one| {
            let said = one.ending.diagnostic()?;
            let weight = match one.ending {
                Ending::Unsupported(_) => SnippetSeverity::Warning,
                _ => SnippetSeverity::Error,
            };
            Some(Annotated {
                weight,
                file: &one.file,
                line: said.line,
                column: said.column,
                width: said.width,
                source_line: &said.source_line,
                message: &said.message,
                label: said.label(),
                hint: said.hint.as_deref(),
            })
        })
        .collect();
    if marked.is_empty() { String::new() } else { render(marked, look) }
}
