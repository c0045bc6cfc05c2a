//! Any bytes can be read; every frame and problem is at a position in the file; nothing is read
//! twice or lost silently.

use packet::wire::parse_cut;
use trace::capture::{CaptureItem, CaptureProblemKind, CaptureReader};

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) {
    let Ok(mut reader) = CaptureReader::new(input) else { return };
    let (mut frames, mut problems, mut bytes, mut last) = (0, 0, 0, 0);
    while let Some(item) = reader.next().expect("bytes in memory are read") {
        match item {
            CaptureItem::Frame(frame) => {
                frames += 1;
                assert_eq!(frame.number, frames);
                assert!(frames == 1 || frame.offset > last);
                assert!(frame.offset as usize + frame.bytes.len() <= input.len());
                assert!(frame.original as usize >= frame.bytes.len());
                last = frame.offset;
                bytes += frame.bytes.len();
                if let Some(link) = frame.link() {
                    let _ = parse_cut(frame.bytes, frame.original as usize, link);
                }
            }
            CaptureItem::Secrets(_) => {}
            CaptureItem::Problem(problem) => {
                problems += 1;
                assert!(problem.offset <= input.len() as u64, "{problem}");
                assert!(!matches!(problem.kind, CaptureProblemKind::Packed { .. }));
                let _ = problem.to_string();
            }
        }
    }
    assert!(bytes <= input.len());
    let tally = *reader.tally();
    assert_eq!((tally.frames, tally.problems), (frames, problems));
    assert!(tally.skipped_bytes <= input.len() as u64);
    let by_interface: u64 = reader.interfaces().iter().map(|interface| interface.frames).sum();
    assert_eq!(by_interface, frames);
}
