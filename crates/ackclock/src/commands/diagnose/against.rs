//! `ackclock diagnose --against labels.tsv DIR`: compares the verdicts on a folder of captures with
//! a list of labels.

use core::convert::Infallible;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use diagnose::rules::{Severity, rule};
use ingest::diagnosis::DiagnosisReport;
use runner::workers::Workers;
use serde::Serialize;

use super::source;
use crate::failure::Failure;
use crate::output;
use crate::visible::ShownPath as _;

/// Label of a capture in which nothing limits a transfer.
const HEALTHY: &str = "healthy";
/// Fraction of right verdicts below which the command fails.
const ENOUGH: f64 = 0.9;

/// A row of the list.
#[derive(Debug, Clone, Serialize)]
struct LabelledCapture {
    source: String,
    file: String,
    /// The code of the cause, `healthy`, or several that are equally right, separated by commas.
    label: String,
    /// The verdict: the primary finding of the worst connection, or `healthy`.
    verdict: Option<String>,
    right: bool,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The comparison as JSON.
#[derive(Debug, Serialize)]
struct LabelComparison<'a> {
    format: u32,
    captures: &'a [LabelledCapture],
    right: usize,
    missing: usize,
    share: f64,
    /// Numbers of captures by label and verdict.
    confusion: &'a BTreeMap<String, BTreeMap<String, usize>>,
}

pub(super) fn run(
    labels: &Path,
    folder: &Path,
    json: bool,
    workers: &Workers<'_>,
) -> Result<ExitCode, Failure> {
    let text =
        std::fs::read_to_string(labels).map_err(|error| Failure::file("read", labels, &error))?;
    let captures = parse(&text, labels)?;
    if !folder.is_dir() {
        return Err(Failure::new(format!("--against: {} is no folder", folder.shown()))
            .hint("the folder has a folder for each source, as owner/name, with its files"));
    }
    let Ok(captures) = workers.map(&captures, |one| Ok::<_, Infallible>(judged(one, folder)));
    let judged = captures.iter().filter(|one| one.problem.is_none()).count();
    let right = captures.iter().filter(|one| one.right).count();
    if judged == 0 {
        let problem = captures.iter().find_map(|one| one.problem.clone()).unwrap_or_default();
        return Err(Failure::new(format!("--against: no capture of the list was read: {problem}")));
    }
    let share = right as f64 / judged as f64;
    let confusion = confusion(&captures);
    if json {
        let missing = captures.len() - judged;
        let all = LabelComparison {
            format: 1,
            captures: &captures,
            right,
            missing,
            share,
            confusion: &confusion,
        };
        let text = serde_json::to_string_pretty(&all)
            .map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
        output::print(&format!("{text}\n"))?;
    } else {
        output::print(&as_text(&captures, &confusion, (right, judged)))?;
    }
    Ok(ExitCode::from(u8::from(share < ENOUGH)))
}

/// Parses the list: source, file, label, and anything after that, separated by tabs. Lines that
/// begin with `#` are comments.
fn parse(text: &str, path: &Path) -> Result<Vec<LabelledCapture>, Failure> {
    let mut captures = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: String| {
            Failure::new(format!("{}:{}: {what}", path.shown(), n + 1))
                .hint("a row is: source, file, label, why; separated by tabs")
        };
        let mut cells = line.split('\t').map(str::trim);
        let (Some(source), Some(file), Some(label)) = (cells.next(), cells.next(), cells.next())
        else {
            return Err(wrong("fewer than three columns".into()));
        };
        if let Some(bad) =
            label.split(',').find(|one| one.trim() != HEALTHY && rule(one.trim()).is_none())
        {
            return Err(wrong(format!("unknown label `{bad}`: expected a code or `{HEALTHY}`")));
        }
        captures.push(LabelledCapture {
            source: source.into(),
            file: file.into(),
            label: label.into(),
            verdict: None,
            right: false,
            problem: None,
        });
    }
    if captures.is_empty() {
        return Err(Failure::new(format!("{}: the list has no rows", path.shown())));
    }
    Ok(captures)
}

/// A row with its verdict.
fn judged(one: &LabelledCapture, folder: &Path) -> LabelledCapture {
    let mut one = one.clone();
    judge(&mut one, folder);
    one
}

fn judge(one: &mut LabelledCapture, folder: &Path) {
    let path = folder.join(&one.source).join(&one.file);
    let report = source(&path).map_err(|error| error.message()).and_then(|file| {
        DiagnosisReport::read(vec![file], false).map_err(|error| error.to_string())
    });
    let report = match report {
        Ok(report) => report,
        Err(problem) => {
            one.problem = Some(problem);
            return;
        }
    };
    // The finding of all connections that ranks highest, if it is more than a note.
    let verdict = report
        .files
        .iter()
        .flat_map(|file| file.connections.iter().map(move |one| file.diagnosis(one)))
        .filter_map(|diagnosis| {
            let primary = diagnosis.primary?;
            let found = diagnosis.findings.into_iter().find(|found| found.code == primary)?;
            let rank = (found.is_failure, found.cost);
            (found.severity > Severity::Note).then_some((rank, primary))
        })
        .max_by_key(|&(rank, _)| rank);
    let verdict = verdict.map_or(HEALTHY, |(_, code)| code);
    one.right = one.label.split(',').any(|label| label.trim().eq_ignore_ascii_case(verdict));
    one.verdict = Some(verdict.to_string());
}

/// Numbers of captures by label and verdict; of several right labels the one that was met.
fn confusion(captures: &[LabelledCapture]) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut table: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for one in captures {
        let Some(verdict) = &one.verdict else { continue };
        let first = one.label.split(',').next().unwrap_or_default().trim();
        let label = if one.right { verdict } else { first };
        *table.entry(label.to_string()).or_default().entry(verdict.clone()).or_default() += 1;
    }
    table
}

fn as_text(
    captures: &[LabelledCapture],
    table: &BTreeMap<String, BTreeMap<String, usize>>,
    (right, judged): (usize, usize),
) -> String {
    let mut out = String::new();
    for one in captures.iter().filter(|one| !one.right) {
        let name = format!("{}/{}", one.source, one.file);
        let _ = match (&one.verdict, &one.problem) {
            (Some(verdict), _) => {
                writeln!(out, "wrong    {name}: {verdict}, labelled {}", one.label)
            }
            (None, problem) => {
                writeln!(out, "missing  {name}: {}", problem.as_deref().unwrap_or("not read"))
            }
        };
    }
    let mut verdicts: Vec<&str> =
        table.values().flat_map(|row| row.keys().map(String::as_str)).collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    let _ = write!(out, "\n{:<10}", "label");
    for verdict in &verdicts {
        let _ = write!(out, "{verdict:>9}");
    }
    out.push('\n');
    for (label, row) in table {
        let _ = write!(out, "{label:<10}");
        for verdict in &verdicts {
            let count = row.get(*verdict).map_or_else(|| ".".to_string(), usize::to_string);
            let _ = write!(out, "{count:>9}");
        }
        out.push('\n');
    }
    let share = right as f64 * 100.0 / judged as f64;
    let _ = writeln!(out, "\n{right} of {judged} right ({share:.1} %)");
    if judged < captures.len() {
        let _ = writeln!(out, "{} of the list could not be read", captures.len() - judged);
    }
    out
}
