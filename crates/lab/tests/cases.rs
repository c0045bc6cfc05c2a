//! Every published case, as `ackclock reproduce` runs it.

use ackclock_lab as lab;
use lab::cases::{CASES, Kind};

#[test]
fn every_asserted_figure_of_every_case_holds() {
    for case in CASES {
        let result = case.run().unwrap();
        let missed: Vec<_> = result.rows.iter().filter(|row| row.holds == Some(false)).collect();
        assert!(missed.is_empty(), "{}: {missed:#?}", case.id);
    }
}

#[test]
fn every_row_says_what_it_is_good_for() {
    for case in CASES {
        for row in case.run().unwrap().rows {
            assert_eq!(row.holds.is_some(), row.kind == Kind::Assert, "{}", row.name);
            assert!(row.measured.is_some(), "{}: {} was not reached", case.id, row.name);
        }
    }
}
