//! Any bytes are read; every problem lies in a line that is there.

use logs::ss::{Item, Reader};

/// Reads `input`.
///
/// # Panics
/// If a claim does not hold.
pub fn check(input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let mut reader = Reader::new(input);
    let (mut sockets, mut problems, mut last) = (0, 0, 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            Item::Socket(socket) => {
                sockets += 1;
                assert!(socket.line > last && socket.line as usize <= lines.len());
                last = socket.line;
            }
            Item::Problem(problem) => {
                problems += 1;
                let line = lines[problem.line as usize - 1];
                assert!((1..=line.len() + 1).contains(&problem.column), "{problem}");
            }
        }
    }
    assert_eq!((reader.tally().sockets, reader.tally().problems), (sockets, problems));
}
