//! Results of cases as a text table and as JSON.

use core::fmt::Write;

use runner::run_report::wrapped;
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
    let mut lines = vec![["  Declared knobs", "value", "source"].map(str::to_owned)];
    let knobs = case.knobs.iter();
    lines.extend(
        knobs.map(|knob| [format!("  {}", knob.name), knob.value.clone(), knob.source.clone()]),
    );
    columns(out, &lines, &[], &[30, 34, 32]);
    out.push('\n');
}

/// Width of a page of text.
const WIDTH: usize = 100;
/// Widest cells of each column of the table.
const WIDEST: [usize; 7] = [10, 27, 15, 15, 7, 10, 4];

fn table(out: &mut String, rows: &[CaseRow]) {
    let header = ["", "figure", "published", "measured", "unit", "band or deviation", "note"];
    let mut lines = vec![header.map(str::to_owned)];
    let notes = notes(rows);
    lines.extend(rows.iter().map(|row| {
        let [verdict, name, published, measured, unit, kind, band, note] = cells(row, &notes);
        // Of an asserted figure the verdict says that it is one.
        let first = if verdict.is_empty() { kind } else { verdict };
        [first, name, published, measured, unit, band, note]
    }));
    columns(out, &lines, &[2, 3], &WIDEST);
    for (number, note) in notes.iter().enumerate() {
        let head = format!("({}) ", number + 1);
        let room = WIDTH - head.len();
        for (line, text) in wrapped(note, room).iter().enumerate() {
            let head = if line == 0 { head.clone() } else { " ".repeat(head.len()) };
            let _ = writeln!(out, "{head}{text}");
        }
    }
}

/// Writes rows in columns; cells that are wider than their column's `widest` are wrapped. Columns
/// in `right` are aligned right.
pub(super) fn columns<const N: usize>(
    out: &mut String,
    rows: &[[String; N]],
    right: &[usize],
    widest: &[usize; N],
) {
    let rows: Vec<Vec<Vec<String>>> = rows
        .iter()
        .map(|row| row.iter().zip(widest).map(|(cell, width)| wrapped(cell, *width)).collect())
        .collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            let widest = cell.iter().map(|line| line.chars().count()).max();
            *width = (*width).max(widest.unwrap_or_default());
        }
    }
    for row in rows {
        let lines = row.iter().map(Vec::len).max().unwrap_or_default();
        for line in 0..lines {
            let mut text = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                let cell = cell.get(line).map_or("", String::as_str);
                let _ = match right.contains(&column) {
                    true => write!(text, "{cell:>width$}  "),
                    false => write!(text, "{cell:<width$}  "),
                };
            }
            let _ = writeln!(out, "{}", text.trim_end());
        }
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

/// Up to three decimals, none for whole numbers; three digits of what would be 0.
fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.001 {
        return format!("{value:.2e}").replace(".00e", "e").replace("0e", "e");
    }
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
    fn tables_fit_a_page() {
        let long = "a figure with a name of many words, for it is of one seed of many";
        let rows = [
            CaseRow::band(long, "Mbit/s", 110.0, Some(111.123), 110.642, 115.158)
                .note(long.repeat(3)),
            CaseRow::text("options", "mss,nop,wscale,sackOK,TS", Some("mss,nop,wscale".into())),
        ];
        let mut out = String::new();
        table(&mut out, &rows);
        assert!(out.lines().all(|line| line.chars().count() <= WIDTH), "{out}");
        let words: Vec<&str> = out.split_whitespace().collect();
        assert!(long.split(' ').all(|word| words.contains(&word)), "{out}");
        assert!(out.contains("mss,nop,wscale,\n") || out.contains("mss,nop,wscale,  "), "{out}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(14_480.0), "14480");
        assert_eq!(number(0.1), "0.1");
        assert_eq!(number(42.469), "42.469");
        assert_eq!(number(7.700_000_000_1), "7.7");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(0.001), "0.001");
        assert_eq!(number(2.9e-8), "2.9e-8");
        assert_eq!(number(-2e-4), "-2e-4");
        assert_eq!(number(1.367_6e-5), "1.37e-5");
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
