//! Every published case, as run by `ackclock reproduce`.

use std::path::Path;

use ackclock_reproduce as reproduce;
use reproduce::cases::{CASES, RowKind};

/// Asserted figures that do not hold; the note of each row explains why.
const MISSES: &[&str] = &[];

/// The crate's own copies, so that it can be packed, are the published figures and recorded runs.
#[test]
fn data_of_the_crate_are_those_of_the_recordings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (copy, original) in [
        ("cubic-hz-losses.txt", "published/cubic-hz-losses.txt"),
        ("slow-start-lro.txt", "published/slow-start-lro.txt"),
        ("long-runs.csv", "freebsd-closed/long-runs.csv"),
    ] {
        let read = |path: std::path::PathBuf| std::fs::read(path).unwrap();
        let same =
            read(root.join("data").join(copy)) == read(root.join("../../golden").join(original));
        assert!(same, "{copy} is not golden/{original}");
    }
}

#[test]
fn every_asserted_figure_holds_or_is_a_known_miss() {
    let mut missed = Vec::new();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ledger/fidelity.md");
    let page = std::fs::read_to_string(page).unwrap();
    for case in CASES {
        let result = case.run().unwrap();
        let stale = "docs/ledger/fidelity.md is stale: run cargo xtask docs";
        assert!(page.contains(&reproduce::cases::ledger::section(&result)), "{}: {stale}", case.id);
        let rows = result.rows;
        for row in &rows {
            assert_eq!(row.holds.is_some(), row.kind == RowKind::Assert, "{}", row.name);
            assert!(row.measured.is_some(), "{}: {} was not reached", case.id, row.name);
        }
        missed.extend(rows.into_iter().filter(|row| row.holds == Some(false)));
    }
    assert!(missed.iter().all(|row| !row.note.is_empty()), "{missed:#?}");
    let names: Vec<_> = missed.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, MISSES, "{missed:#?}");
}
