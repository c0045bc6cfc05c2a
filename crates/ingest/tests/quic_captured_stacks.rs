//! Captures of real stacks with their keys give the verdict of the log beside them: `golden/quic/releases`.

use std::fs::File;
use std::path::Path;

use ackclock_ingest as ingest;
use ingest::diagnosis::{DiagnosisReport, QuicReport};
use ingest::inputs::{InputFile, KeyLog, ReadMode, read_with};

fn diagnosed(name: &str, keys: KeyLog) -> QuicReport {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/quic/releases");
    let bytes = Box::new(File::open(folder.join(name)).unwrap());
    let source = InputFile { name: name.to_owned(), bytes };
    let mode = ReadMode { keys, ..ReadMode::default() };
    let reading = read_with(vec![source], diagnose::AnalysisSettings::default(), mode).unwrap();
    let mut report = DiagnosisReport::of(reading);
    assert_eq!(report.files[0].file.problems.count, 0, "{:?}", report.files[0].file.problems);
    report.files[0].quic.swap_remove(0)
}

/// One packet in 13 is lost on a path of 100 ms.
#[test]
fn a_capture_with_keys_has_the_verdict_of_its_log() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/quic/releases");
    for stack in ["quic-go-0.65", "quinn-0.11", "ngtcp2-0.12", "aioquic-1.7"] {
        let log = diagnosed(&format!("{stack}.captured.sqlog.xz"), KeyLog::default());
        let keys = std::fs::read(folder.join(format!("{stack}.captured.keys"))).unwrap();
        let keys = KeyLog::parse(&keys[..]).unwrap();
        let capture = diagnosed(&format!("{stack}.captured.pcap.xz"), keys);
        assert_eq!(log.diagnosis.primary, Some("CC811"), "{stack}");
        assert_eq!(capture.diagnosis.primary, log.diagnosis.primary, "{stack}");
        let counts = capture.connection.decrypted.unwrap();
        assert_eq!(counts.failed, 0, "{stack}: {counts:?}");
        // All packets of the log but the one that closes the connection after the run, and only these.
        let [of_log, of_capture] = [&log, &capture].map(|one| &one.connection.analysis);
        assert!((0..=1).contains(&(of_log.sent - of_capture.sent)), "{stack}: {}", of_capture.sent);
        assert_eq!(of_capture.received, of_log.received, "{stack}");
        if stack != "quinn-0.11" {
            // quinn's log lacks frames.
            assert_eq!(of_capture.stream_bytes, of_log.stream_bytes, "{stack}");
        }
    }
}
