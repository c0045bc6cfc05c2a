//! A report as text for a terminal.

use core::fmt::Write as _;

use crate::report::{CriterionVerdict, FigureBound, FigureVerdict, SuiteFigure, SuiteReport};

/// A number with three or four significant digits.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A figure's value with its confidence interval and unit.
pub(crate) fn value(figure: &SuiteFigure) -> String {
    let Some(value) = figure.value else { return "no evidence".to_owned() };
    let mut text = number(value);
    if let Some(half) = figure.confidence {
        let _ = write!(text, " +- {}", number(half));
    }
    if !figure.unit.is_empty() {
        let _ = write!(text, " {}", figure.unit);
    }
    text
}

/// A figure's limit.
pub(crate) fn limit(figure: &SuiteFigure) -> String {
    let side = match figure.bound {
        FigureBound::AtMost => "at most",
        FigureBound::AtLeast => "at least",
        FigureBound::None => return String::new(),
    };
    figure.limit.map_or_else(String::new, |limit| format!("{side} {}", number(limit)))
}

/// The worst reference with its confidence interval.
pub(crate) fn reference(figure: &SuiteFigure) -> String {
    let Some(mut text) = figure.reference.map(number) else { return String::new() };
    if let Some(half) = figure.reference_confidence {
        let _ = write!(text, " +- {}", number(half));
    }
    text
}

/// What the figure rests on: the number of runs, if there are several, and those without evidence.
pub(crate) fn evidence(figure: &SuiteFigure) -> String {
    let mut text = match figure.samples {
        0 | 1 => String::new(),
        runs => format!("; {runs} runs"),
    };
    if figure.samples > 1 && figure.confidence.is_none() {
        text.push_str(", identical");
    }
    if figure.missing > 0 {
        let _ = write!(text, "; no evidence in {}", figure.missing);
    }
    text
}

/// The number of draws and the noise, after a comma; nothing for a suite in which nothing is drawn.
fn draws(report: &SuiteReport) -> String {
    match (report.phases, report.noise.as_str()) {
        (0 | 1, _) => String::new(),
        (draws, "" | "hosts") => format!(", {draws} draws of each world"),
        (draws, noise) => format!(", {draws} draws of each world, noise {noise}"),
    }
}

/// The counts of verdicts in one sentence.
pub(crate) fn summary(report: &SuiteReport) -> String {
    let undecided = match report.count(CriterionVerdict::Undecided) {
        0 => String::new(),
        some => format!("{some} undecided, "),
    };
    format!(
        "{} criteria: {} pass, {} fail, {undecided}{} not evaluated",
        report.criteria.len(),
        report.count(CriterionVerdict::Pass),
        report.count(CriterionVerdict::Fail),
        report.count(CriterionVerdict::NotEvaluated),
    )
}

/// The verdicts, one line each, with the failed figures (`!`) and the undecided ones (`?`), whose
/// interval includes the limit or that lack evidence; `full`: with all figures and limits.
pub fn render(report: &SuiteReport, full: bool) -> String {
    let mut text = format!(
        "{}: {} against {}{}\n\n",
        report.title(),
        report.sender,
        report.against.join(", "),
        draws(report)
    );
    for criterion in &report.criteria {
        let _ = write!(
            text,
            "{:<5} {:<7} {}",
            criterion.verdict.word(),
            criterion.section,
            criterion.title
        );
        if let Some(reason) = &criterion.reason {
            let _ = write!(text, ": {reason}");
        }
        if criterion.phases > report.phases {
            let _ = write!(text, " (up to {} draws)", criterion.phases);
        }
        if criterion.verdict == CriterionVerdict::Undecided && criterion.figures.is_empty() {
            text.push_str(": nothing was measured");
        }
        text.push('\n');
        if full && !criterion.limits.is_empty() {
            let _ = writeln!(text, "      limits: {}", criterion.limits);
            if !criterion.source.is_empty() {
                let _ = writeln!(text, "      source: {}", criterion.source);
            }
        }
        let shown = |figure: &&SuiteFigure| full || !figure.holds || figure.is_undecided();
        for figure in criterion.figures.iter().filter(shown) {
            let mark = match figure.verdict {
                FigureVerdict::Fails => '!',
                FigureVerdict::Undecided => '?',
                FigureVerdict::Holds => ' ',
            };
            let mut line = format!("    {mark} {}: {}", figure.name, value(figure));
            if figure.limit.is_some() {
                let _ = write!(line, " ({}, worst reference {}", limit(figure), reference(figure));
                let _ = write!(line, "{})", evidence(figure));
            } else if figure.is_undecided() {
                line.push_str(" (no reference, so no limit)");
            } else if figure.reference.is_some() {
                let _ = write!(line, " (references at most {})", reference(figure));
            }
            let _ = writeln!(text, "{line}");
        }
    }
    let _ = writeln!(text, "\n{}", summary(report));
    text
}
