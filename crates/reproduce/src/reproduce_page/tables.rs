//! Figures and inputs of cases.

use report::page::PagePart;
use report::table::{ReportTable, TableCell, TableColumn, Tone};

use super::count;
use crate::cases::text::{cells, notes};
use crate::cases::{CaseResult, RowKind};

/// Number of figures that hold, by case.
pub(super) fn verdicts(cases: &[CaseResult]) -> PagePart {
    let rows = cases.iter().map(|case| {
        let (hold, asserted) = count(case);
        let tone = if hold == asserted { Tone::Good } else { Tone::Bad };
        let of =
            |kind: RowKind| case.rows.iter().filter(|row| row.kind == kind).count().to_string();
        vec![
            TableCell::from(case.id),
            TableCell::from(format!("{hold} of {asserted}")).tone(tone),
            of(RowKind::Predicted).into(),
            of(RowKind::Calibrated).into(),
            of(RowKind::Info).into(),
        ]
    });
    PagePart::Table(ReportTable {
        caption: "What holds".into(),
        columns: vec![
            TableColumn::words("case"),
            TableColumn::numbers("asserted figures that hold"),
            TableColumn::numbers("predicted"),
            TableColumn::numbers("calibrated"),
            TableColumn::numbers("for information"),
        ],
        rows: rows.collect(),
        note: "Asserted: published, and must lie in its band. Predicted: follows from inputs of other \
               rows. Calibrated: an input was fitted to it, so it is no evidence. For information: \
               published, but not derivable from what was published."
            .into(),
        ..ReportTable::default()
    })
}

/// Every figure of a case with the measured one.
pub(super) fn figures(case: &CaseResult) -> PagePart {
    let names = [
        "",
        "figure",
        "published",
        "measured",
        "unit",
        "kind",
        "band or deviation",
        "stack",
        "note",
    ];
    let columns = names.map(|name| TableColumn {
        name: name.into(),
        is_number: matches!(name, "published" | "measured"),
    });
    let notes = notes(&case.rows);
    let rows = case.rows.iter().map(|row| {
        let mut found: Vec<TableCell> = cells(row, &notes).map(TableCell::from).into();
        found[0].tone = match row.holds {
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Quiet,
        };
        // The full note if there is space for it.
        found[7] = TableCell::from(row.note.clone()).tone(Tone::Quiet);
        found.insert(7, row.stack.unwrap_or_default().to_owned().into());
        found
    });
    PagePart::Table(ReportTable {
        caption: "Published and measured".into(),
        columns: columns.into(),
        rows: rows.collect(),
        is_long: case.rows.len() > 16,
        ..ReportTable::default()
    })
}

/// Inputs of a case, with their sources.
pub(super) fn knobs(case: &CaseResult) -> PagePart {
    let rows = case.knobs.iter().map(|knob| {
        vec![knob.name.clone().into(), knob.value.clone().into(), knob.source.clone().into()]
    });
    PagePart::Table(ReportTable {
        caption: "Declared inputs".into(),
        columns: ["input", "value", "source"].map(TableColumn::words).into(),
        rows: rows.collect(),
        is_long: case.knobs.len() > 8,
        ..ReportTable::default()
    })
}
