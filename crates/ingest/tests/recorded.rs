//! Captures of Linux that this project recorded, with silences that are no losses, frames captured
//! twice and two capture points in a file: see `golden/captures/recorded/README.md`.

use std::io::Read;
use std::path::Path;

use ackclock_ingest::diagnosis::{DiagnosisReport, FileReport};
use ackclock_ingest::inputs::InputFile;
use diagnose::rules::{Confidence, Severity};

fn diagnose(name: &str) -> DiagnosisReport {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/captures/recorded");
    let bytes = std::fs::File::open(folder.join(name)).unwrap();
    let source = InputFile { name: name.to_owned(), bytes: Box::new(bytes) };
    DiagnosisReport::read(vec![source], false).unwrap()
}

/// Codes of all findings of the first connection, and of those above a note.
fn codes(file: &FileReport) -> (Vec<&'static str>, Vec<&'static str>) {
    let mut all = Vec::new();
    let mut grave = Vec::new();
    for one in &file.connections {
        for found in file.diagnosis(one).findings {
            all.push(found.code);
            if found.severity > Severity::Note {
                grave.push(found.code);
            }
        }
    }
    (all, grave)
}

/// Codes of losses and timeouts, none of which happened.
const LOSSES: [&str; 7] = ["CC201", "CC202", "CC203", "CC204", "CC205", "CC301", "CC303"];

#[test]
fn a_closed_window_is_the_readers() {
    for end in ["sender", "receiver"] {
        let report = diagnose(&format!("closed.{end}.pcap.gz"));
        let (all, grave) = codes(&report.files[0]);
        assert_eq!(report.files[0].connections[0].primary, Some("CC403"), "{end}: {all:?}");
        assert_eq!(grave, ["CC403"], "{end}");
        assert!(LOSSES.iter().all(|code| !all.contains(code)), "{end}: {all:?}");
        let analysis = report.files[0].connections[0].analysis();
        let flow = analysis.main().unwrap();
        // The reader is three times 3 s late; its window closes each time.
        assert_eq!((flow.bytes, flow.zero_windows), (450_000, 3), "{end}");
        let cost = report.files[0].connections[0].cost.as_nanos();
        assert!((7_500_000_000..9_000_000_000).contains(&cost), "{end}: {cost}");
    }
}

#[test]
fn pauses_are_no_lost_tails() {
    for end in ["sender", "receiver"] {
        let report = diagnose(&format!("silence.{end}.pcap.gz"));
        let (all, grave) = codes(&report.files[0]);
        assert!(grave.is_empty(), "{end}: {grave:?}");
        assert!(LOSSES.iter().all(|code| !all.contains(code)), "{end}: {all:?}");
    }
}

/// Of 40 second writes 39 were delayed by Linux' 40 ms (the first request comes in its quick mode).
#[test]
fn a_sender_that_waits_for_delayed_acks_is_found_at_each_point() {
    for end in ["sender", "receiver", "router"] {
        let report = diagnose(&format!("nagle.{end}.pcap.gz"));
        let connection = &report.files[0].connections[0];
        let (all, _) = codes(&report.files[0]);
        assert_eq!(connection.primary, Some("CC504"), "{end}: {all:?}");
        assert!(LOSSES.iter().all(|code| !all.contains(code)), "{end}: {all:?}");
        // 39 times 40 to 44 ms.
        assert!(
            (1_560_000_000..1_720_000_000).contains(&connection.cost.as_nanos()),
            "{end}: {}",
            connection.cost
        );
    }
}

#[test]
fn frames_captured_twice_are_neither_retransmitted_nor_counted() {
    for (name, frames) in [("twice.router", 64), ("twice.merged", 64), ("nagle.router", 414)] {
        let report = diagnose(&format!("{name}.pcap.gz"));
        let file = &report.files[0].file;
        assert_eq!((file.frames, file.duplicates), (frames, frames / 2), "{name}");
        let counts = report.files[0].connections[0].analysis().main().unwrap().counts;
        assert_eq!((counts.retransmitted, counts.spurious), (0, 0), "{name}");
    }
}

/// Round trips between 20 and 320 ms that do not depend on the load.
#[test]
fn an_answer_that_is_late_shows_no_queue() {
    for end in ["sender", "receiver"] {
        let report = diagnose(&format!("late.{end}.pcap.gz"));
        let (all, grave) = codes(&report.files[0]);
        assert!(grave.is_empty(), "{end}: {grave:?}");
        let queues = ["CC601", "CC602", "CC202", "CC103"];
        assert!(queues.iter().all(|code| !all.contains(code)), "{end}: {all:?}");
    }
}

#[test]
fn two_capture_points_are_no_competing_traffic() {
    let report = diagnose("taps.both.pcapng.gz");
    let (all, grave) = codes(&report.files[0]);
    assert_eq!(report.files[0].connections.len(), 2);
    assert!(!all.contains(&"CC602"), "{all:?}");
    assert!(grave.is_empty(), "{grave:?}");
}

/// A pcap with nanoseconds whose packets are truncated to `snap` bytes.
fn truncated(pcap: &[u8], snap: usize) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap()) as usize;
    let mut out = pcap[..24].to_vec();
    let mut at = 24;
    while at < pcap.len() {
        let len = word(at + 8);
        let kept = len.min(snap);
        out.extend(&pcap[at..at + 8]);
        out.extend((kept as u32).to_le_bytes());
        out.extend(&pcap[at + 12..at + 16 + kept]);
        at += 16 + len;
    }
    out
}

/// 40 bytes of headers are kept: the options are cut off, so that no window has a scale. A window of
/// zero is zero all the same; what is said about it is less certain.
#[test]
fn options_that_the_snap_length_cut_off_lower_the_confidence() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/captures/recorded");
    let packed = std::fs::read(folder.join("closed.sender.pcap.gz")).unwrap();
    let mut whole = Vec::new();
    trace::unpack::Unpacked::new(&packed[..]).unwrap().read_to_end(&mut whole).unwrap();
    for (snap, is_cut) in [(100, false), (44, true)] {
        let bytes = truncated(&whole, snap);
        let source = InputFile { name: "cut.pcap".to_owned(), bytes: Box::new(&bytes[..]) };
        let report = DiagnosisReport::read(vec![source], false).unwrap();
        let file = &report.files[0];
        let analysis = file.connections[0].analysis();
        let flow = analysis.main().unwrap();
        assert_eq!((file.file.options_cut > 0, flow.window.is_none()), (is_cut, is_cut));
        assert_eq!((flow.bytes, flow.zero_windows), (450_000, 3));
        let diagnosis = file.diagnosis(&file.connections[0]);
        let found = diagnosis.findings.iter().find(|found| found.code == "CC403").unwrap();
        let expected = if is_cut { Confidence::Medium } else { Confidence::High };
        assert_eq!(found.confidence, expected);
        assert_eq!(found.unseen.contains("snap length"), is_cut, "{}", found.unseen);
    }
}

/// A writer that keeps nothing and accepts a number of bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// JSON is written as one document in parts, and an error of the output ends it.
#[test]
fn json_is_written_in_parts() {
    let report = diagnose("taps.both.pcapng.gz");
    let whole = report.json(usize::MAX);
    let mut parts = Vec::new();
    report.write_json(usize::MAX, &mut parts).unwrap();
    assert_eq!(parts, whole.as_bytes());
    let error = report.write_json(usize::MAX, Full(whole.len() / 2)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    report.write_json(usize::MAX, Full(whole.len())).unwrap();
}
