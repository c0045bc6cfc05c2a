//! Any bytes can be read; every problem is at an existing line.

use logs::tcp_probe::{TcpProbeItem, TcpProbeReader};

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let mut reader = TcpProbeReader::new(input);
    let (mut rows, mut problems, mut last) = (0, 0, 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            TcpProbeItem::Row(row) => {
                rows += 1;
                assert!(row.line > last);
                last = row.line;
                assert!(row.ends.is_some() != row.flow.is_some());
            }
            TcpProbeItem::Problem(problem) => {
                problems += 1;
                let line = lines[problem.line as usize - 1];
                assert!((1..=line.len() + 1).contains(&problem.column), "{problem}");
            }
        }
    }
    assert_eq!((reader.tally().rows, reader.tally().problems), (rows, problems));
}
