//! Any bytes are read; every problem lies in a line that is there.

use logs::tcp_probe::{Item, Reader};

/// Reads `input`.
///
/// # Panics
/// If a claim does not hold.
pub fn check(input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let mut reader = Reader::new(input);
    let (mut rows, mut problems, mut last) = (0, 0, 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            Item::Row(row) => {
                rows += 1;
                assert!(row.line > last);
                last = row.line;
                assert!(row.ends.is_some() != row.flow.is_some());
            }
            Item::Problem(problem) => {
                problems += 1;
                let line = lines[problem.line as usize - 1];
                assert!((1..=line.len() + 1).contains(&problem.column), "{problem}");
            }
        }
    }
    assert_eq!((reader.tally().rows, reader.tally().problems), (rows, problems));
}
