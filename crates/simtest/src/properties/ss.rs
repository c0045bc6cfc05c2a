//! Any bytes can be read; every problem is at an existing line.

use logs::ss::{SsItem, SsReader};

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let mut reader = SsReader::new(input);
    let (mut sockets, mut problems, mut last) = (0, 0, 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            SsItem::Socket(socket) => {
                sockets += 1;
                assert!(socket.line > last && socket.line as usize <= lines.len());
                last = socket.line;
            }
            SsItem::Problem(problem) => {
                problems += 1;
                let line = lines[problem.line as usize - 1];
                assert!((1..=line.len() + 1).contains(&problem.column), "{problem}");
            }
        }
    }
    assert_eq!((reader.tally().sockets, reader.tally().problems), (sockets, problems));
}
