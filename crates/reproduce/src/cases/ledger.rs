//! Results of cases as a Markdown page: published and measured figures, and misses.

use core::fmt::Write;

use super::text::{band, figure, kind};
use super::{CaseResult, CaseRow};
use crate::references::{references, unmeasured};

/// The case as a section: its source, a table of its figures, its notes.
pub fn section(case: &CaseResult) -> String {
    let mut out =
        format!("## {}\n\n{}.\n\n{}\n\n", case.title, full_stop(case.source), verdict(case));
    out.push_str(&stacks(case));
    out.push_str("| figure | published | measured | unit | kind | band or deviation | stack | |\n");
    out.push_str("|---|---:|---:|---|---|---|---|---|\n");
    let mut notes: Vec<&str> = Vec::new();
    for row in &case.rows {
        let note = match row.note.as_str() {
            "" => String::new(),
            note => {
                let known = notes.iter().position(|known| *known == note);
                let number = known.unwrap_or_else(|| {
                    notes.push(note);
                    notes.len() - 1
                });
                format!("({})", number + 1)
            }
        };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| {} {note} |", cells(row).join(" | "));
    }
    if !notes.is_empty() {
        out.push('\n');
    }
    for (number, note) in notes.iter().enumerate() {
        let _ = writeln!(out, "({}) {}\n", number + 1, escaped(note));
    }
    out
}

/// What each stack of the table was measured against, or that it was not.
fn stacks(case: &CaseResult) -> String {
    let mut names: Vec<&str> = case.rows.iter().filter_map(|row| row.stack).collect();
    names.sort_unstable();
    names.dedup();
    let mut out = String::new();
    for name in names {
        let known: Vec<String> = references(name)
            .iter()
            .map(|reference| format!("{} ({})", reference.what, reference.place))
            .collect();
        // Writing to a String cannot fail.
        let _ = match known.is_empty() {
            true => writeln!(out, "- `{name}`: not measured itself; {}", unmeasured(name)),
            false => writeln!(out, "- `{name}`: measured against {}", known.join("; ")),
        };
    }
    if out.is_empty() { out } else { format!("Stacks of the senders:\n\n{out}\n") }
}

fn verdict(case: &CaseResult) -> String {
    let asserted = case.rows.iter().filter(|row| row.holds.is_some()).count();
    match case.rows.iter().filter(|row| row.holds == Some(false)).count() {
        0 => format!("All {asserted} asserted figures hold."),
        missed => format!("**{missed} of {asserted} asserted figures do not hold.**"),
    }
}

fn cells(row: &CaseRow) -> [String; 8] {
    [
        escaped(&row.name),
        escaped(&figure(row.published.as_ref())),
        escaped(&figure(row.measured.as_ref())),
        row.unit.to_owned(),
        kind(row.kind).to_owned(),
        band(row),
        row.stack.unwrap_or_default().to_owned(),
        match row.holds {
            Some(true) => "ok".to_owned(),
            Some(false) => "**miss**".to_owned(),
            None => String::new(),
        },
    ]
}

/// A bar would end the cell, a line break the table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn full_stop(text: &str) -> &str {
    text.trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_bold_and_a_note_is_printed_once() {
        let case = CaseResult {
            id: "x",
            title: "a title",
            source: "a source.",
            knobs: vec![],
            rows: vec![
                CaseRow::exact("good | well", "B", 1.0, Some(1.0)).note("why").by("rfc"),
                CaseRow::exact("bad", "B", 1.0, Some(2.0)).note("why"),
            ],
            exhibit: String::new(),
        };
        let expected = "\
## a title

a source.

**1 of 2 asserted figures do not hold.**

Stacks of the senders:

- `rfc`: not measured itself; the text of the RFCs

| figure | published | measured | unit | kind | band or deviation | stack | |
|---|---:|---:|---|---|---|---|---|
| good \\| well | 1 | 1 | B | assert | exact | rfc | ok (1) |
| bad | 1 | 2 | B | assert | exact |  | **miss** (1) |

(1) why

";
        assert_eq!(section(&case), expected);
    }
}
