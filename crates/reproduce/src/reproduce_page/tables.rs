//! Figures and inputs of cases.

use report::page::Part;
use report::table::{Cell, Column, Table, Tone};

use super::count;
use crate::cases::text::{cells, notes};
use crate::cases::{CaseResult, Kind};

/// How many figures hold, case by case.
pub(super) fn verdicts(cases: &[CaseResult]) -> Part {
    let rows = cases.iter().map(|case| {
        let (hold, asserted) = count(case);
        let tone = if hold == asserted { Tone::Good } else { Tone::Bad };
        let of = |kind: Kind| case.rows.iter().filter(|row| row.kind == kind).count().to_string();
        vec![
            Cell::from(case.id),
            Cell::from(format!("{hold} of {asserted}")).tone(tone),
            of(Kind::Predicted).into(),
            of(Kind::Calibrated).into(),
            of(Kind::Info).into(),
        ]
    });
    Part::Table(Table {
        caption: "What holds".into(),
        columns: vec![
            Column::words("case"),
            Column::numbers("asserted figures that hold"),
            Column::numbers("predicted"),
            Column::numbers("calibrated"),
            Column::numbers("for information"),
        ],
        rows: rows.collect(),
        note: "Asserted: published, and must lie in its band. Predicted: follows from inputs of other \
               rows. Calibrated: an input was fitted to it, so it proves nothing. For information: \
               published, but not derivable from what was published."
            .into(),
        ..Table::default()
    })
}

/// Every figure of a case beside the measured one.
pub(super) fn figures(case: &CaseResult) -> Part {
    let names =
        ["", "figure", "published", "measured", "unit", "kind", "band or deviation", "note"];
    let columns = names.map(|name| Column {
        name: name.into(),
        is_number: matches!(name, "published" | "measured"),
    });
    let notes = notes(&case.rows);
    let rows = case.rows.iter().map(|row| {
        let mut found = cells(row, &notes).map(Cell::from);
        found[0].tone = match row.holds {
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Quiet,
        };
        // The whole note, where there is room for it.
        found[7] = Cell::from(row.note.clone()).tone(Tone::Quiet);
        found.into()
    });
    Part::Table(Table {
        caption: "Published and measured".into(),
        columns: columns.into(),
        rows: rows.collect(),
        is_long: case.rows.len() > 16,
        ..Table::default()
    })
}

/// Inputs of a case, with where each is from.
pub(super) fn knobs(case: &CaseResult) -> Part {
    let rows = case.knobs.iter().map(|knob| {
        vec![knob.name.clone().into(), knob.value.clone().into(), knob.source.clone().into()]
    });
    Part::Table(Table {
        caption: "Declared inputs".into(),
        columns: ["input", "value", "where it is from"].map(Column::words).into(),
        rows: rows.collect(),
        is_long: case.knobs.len() > 8,
        ..Table::default()
    })
}
