//! Results of cases as a text table and as JSON.

use core::fmt::Write;

use serde::Serialize;

use super::{Case, CaseFigure, CaseResult, CaseRow, RowKind};

/// Names, titles and sources of cases as JSON.
pub fn list_json(cases: &[&Case]) -> String {
    #[derive(Serialize)]
    struct Listed {
        id: &'static str,
        title: &'static str,
        source: &'static str,
    }
    let listed =
        cases.iter().map(|case| Listed { id: case.id, title: case.title, source: case.source });
    pretty(&listed.collect::<Vec<_>>())
}

/// Indented JSON with a final line break.
pub(super) fn pretty(value: &impl Serialize) -> String {
    // Plain structs of numbers and texts always serialize.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// The case as text: its knobs, its rows, its explanation.
pub fn render(case: &CaseResult) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}: {}", case.id, case.title);
    let _ = writeln!(out, "  {}\n", case.source);
    knobs(&mut out, case);
    table(&mut out, &case.rows);
    let _ = writeln!(out, "\n{}", case.exhibit);
    out.push_str(&verdict(case));
    out
}

fn knobs(out: &mut String, case: &CaseResult) {
    let width = |of: fn(&super::CaseInput) -> &str| {
        case.knobs.iter().map(|knob| of(knob).chars().count()).max().unwrap_or(0)
    };
    let (name, value) = (width(|k| &k.name), width(|k| &k.value));
    let _ = writeln!(out, "Declared knobs");
    for knob in &case.knobs {
        let _ = writeln!(out, "  {:<name$}  {:<value$}  {}", knob.name, knob.value, knob.source);
    }
    out.push('\n');
}

fn table(out: &mut String, rows: &[CaseRow]) {
    let header =
        ["", "figure", "published", "measured", "unit", "kind", "band or deviation", "note"]
            .map(str::to_owned);
    let mut lines = vec![header];
    let notes = notes(rows);
    lines.extend(rows.iter().map(|row| cells(row, &notes)));
    let mut widths = [0; 8];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for line in lines {
        let mut text = String::new();
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            // Figures are right-aligned, words left-aligned.
            let _ = match column {
                2 | 3 => write!(text, "{cell:>width$}  "),
                _ => write!(text, "{cell:<width$}  "),
            };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
    for (number, note) in notes.iter().enumerate() {
        let _ = writeln!(out, "({}) {note}", number + 1);
    }
}

/// The notes below the table, each once.
pub(crate) fn notes(rows: &[CaseRow]) -> Vec<&str> {
    let mut notes: Vec<&str> = Vec::new();
    for row in rows {
        if !row.note.is_empty() && !notes.contains(&row.note.as_str()) {
            notes.push(&row.note);
        }
    }
    notes
}

/// The cells of a row; its note by number.
pub(crate) fn cells(row: &CaseRow, notes: &[&str]) -> [String; 8] {
    let verdict = match row.holds {
        Some(true) => "ok",
        Some(false) => "MISS",
        None => "",
    };
    [
        verdict.into(),
        row.name.clone(),
        figure(row.published.as_ref()),
        figure(row.measured.as_ref()),
        row.unit.into(),
        kind(row.kind).into(),
        band(row),
        notes
            .iter()
            .position(|note| *note == row.note)
            .map_or(String::new(), |number| format!("({})", number + 1)),
    ]
}

/// The kind of a row, in a word.
pub(super) fn kind(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Assert => "assert",
        RowKind::Calibrated => "calibrated",
        RowKind::Predicted => "predicted",
        RowKind::Info => "info",
    }
}

/// The band of the figure, or its deviation from the published one.
pub(super) fn band(row: &CaseRow) -> String {
    match (row.low, row.high) {
        (Some(low), Some(high)) if low < high => format!("{} to {}", number(low), number(high)),
        (Some(_), Some(_)) => "exact".into(),
        (Some(low), None) => format!("at least {}", number(low)),
        (None, Some(high)) => format!("at most {}", number(high)),
        _ if row.kind == RowKind::Assert => "exact".into(),
        _ => row.deviation_percent().map_or(String::new(), |percent| format!("{percent:+.1} %")),
    }
}

pub(super) fn figure(figure: Option<&CaseFigure>) -> String {
    match figure {
        None => "-".into(),
        Some(CaseFigure::Number(value)) => number(*value),
        Some(CaseFigure::Text(text)) => text.clone(),
    }
}

/// Up to three decimals, none for whole numbers.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

fn verdict(case: &CaseResult) -> String {
    let asserted = case.rows.iter().filter(|row| row.holds.is_some()).count();
    let missed: Vec<_> = case.rows.iter().filter(|row| row.holds == Some(false)).collect();
    if missed.is_empty() {
        return format!("{}: all {asserted} asserted figures hold\n", case.id);
    }
    let names: Vec<_> = missed.iter().map(|row| row.name.as_str()).collect();
    format!(
        "{}: {} of {asserted} asserted figures do not hold: {}\n",
        case.id,
        missed.len(),
        names.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(14_480.0), "14480");
        assert_eq!(number(0.1), "0.1");
        assert_eq!(number(42.469), "42.469");
        assert_eq!(number(7.700_000_000_1), "7.7");
    }

    #[test]
    fn a_miss_is_named() {
        let case = CaseResult {
            id: "x",
            title: "t",
            source: "s",
            knobs: vec![],
            rows: vec![
                CaseRow::exact("good", "B", 1.0, Some(1.0)),
                CaseRow::exact("bad", "B", 1.0, Some(2.0)),
            ],
            exhibit: String::new(),
        };
        assert_eq!(verdict(&case), "x: 1 of 2 asserted figures do not hold: bad\n");
        assert!(!case.holds());
        assert!(render(&case).contains("MISS"));
    }

    #[test]
    fn a_note_is_printed_once_below_the_table() {
        let row = |name: &str| CaseRow::exact(name, "B", 1.0, Some(1.0));
        let rows = [row("a").note("because"), row("b"), row("c").note("because").note("why")];
        let mut out = String::new();
        table(&mut out, &[rows[0].clone(), rows[1].clone(), rows[0].clone(), rows[2].clone()]);
        assert_eq!(out.matches("because").count(), 1);
        assert_eq!(out.matches("(1)").count(), 3, "{out}");
        assert!(out.ends_with("(2) why\n"), "{out}");
    }
}
