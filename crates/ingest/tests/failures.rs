//! Connections of Linux that fail, recorded at the client and at the server: see
//! `golden/captures/recorded/README.md`.

use std::path::Path;

use ackclock_ingest::diagnosis::DiagnosisReport;
use ackclock_ingest::inputs::InputFile;
use diagnose::rules::{Confidence, Finding, Severity};

fn diagnose(name: &str) -> DiagnosisReport {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/captures/recorded/failures");
    let bytes = std::fs::File::open(folder.join(format!("{name}.pcap.gz"))).unwrap();
    let source = InputFile { name: name.to_owned(), bytes: Box::new(bytes) };
    DiagnosisReport::read(vec![source], false).unwrap()
}

/// The findings of the connection with this number.
fn findings(name: &str, number: u32) -> Vec<Finding> {
    let report = diagnose(name);
    let file = &report.files[0];
    let one = file.connections.iter().find(|one| one.number() == number).unwrap();
    file.diagnosis(one).findings
}

fn finding(name: &str, number: u32, code: &str) -> Finding {
    let all = findings(name, number);
    let found = all.iter().find(|found| found.code == code);
    found.unwrap_or_else(|| panic!("{name}: {all:?}")).clone()
}

/// The closed port of a server 31.7 ms away.
#[test]
fn a_refused_connection_is_refused_at_either_end() {
    for (end, least, most) in [("client", 20_000_000, 40_000_000), ("server", 1, 1_000_000)] {
        let all = findings(&format!("refused.{end}"), 0);
        assert_eq!(all.len(), 1, "{end}: {all:?}");
        assert_eq!((all[0].code, all[0].severity), ("CC001", Severity::Error), "{end}");
        assert!((least..most).contains(&all[0].cost.as_nanos()), "{end}: {}", all[0].cost);
    }
}

/// The client gave up after 4 s.
#[test]
fn syns_without_an_answer_are_no_capture_of_one_direction() {
    let all = findings("unanswered.client", 0);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].code, all[0].severity), ("CC002", Severity::Error));
    assert!(all[0].title.starts_with("no answer to 4 SYNs in 3.04 s"), "{}", all[0].title);
}

#[test]
fn icmp_errors_end_connections_that_are_being_opened() {
    for (name, what) in [
        ("unreachable", "host unreachable"),
        ("prohibited", "administratively prohibited"),
        ("ttl", "time to live exceeded"),
    ] {
        let all = findings(&format!("{name}.client"), 0);
        assert_eq!(all.len(), 1, "{name}: {all:?}");
        assert_eq!((all[0].code, all[0].severity), ("CC005", Severity::Error), "{name}");
        let title = format!("10.9.1.2 reports: {what} (1 ICMP error)");
        assert_eq!(all[0].title, title);
    }
}

#[test]
fn too_big_names_the_mtu_and_no_other_cause() {
    let found = finding("too-big.client", 0, "CC005");
    assert_eq!(found.severity, Severity::Note);
    assert_eq!(
        found.title,
        "10.9.1.2 reports: packet too big, at most 1300 bytes (10 ICMP errors)"
    );
    let all = findings("too-big.client", 0);
    assert!(all.iter().all(|found| found.code != "CC302"), "{all:?}");
    // The errors go to the sender only.
    assert!(findings("too-big.server", 0).iter().all(|found| found.code != "CC005"));
}

#[test]
fn resets_name_who_sent_them() {
    let between = |host: &str| {
        format!("the connection was reset in the {host}'s name, by something between the hosts")
    };
    let by = |host: &str| format!("the connection was reset by the {host}");
    let table = [
        // The host that reset is where the capture was taken, or not.
        ("reset-client.client", by("client"), Severity::Warning, Confidence::High),
        ("reset-client.server", by("client"), Severity::Warning, Confidence::Medium),
        ("reset-server.client", by("server"), Severity::Note, Confidence::Medium),
        ("reset-server.server", by("server"), Severity::Note, Confidence::High),
        ("reset-between.client", between("server"), Severity::Error, Confidence::High),
        ("reset-between.server", between("client"), Severity::Error, Confidence::Medium),
    ];
    for (name, title, severity, confidence) in table {
        let found = finding(name, 0, "CC003");
        assert_eq!((found.title, found.severity), (title, severity), "{name}");
        assert!(found.confidence >= confidence.min(Confidence::Medium), "{name}");
        if !name.starts_with("reset-between") {
            assert_eq!(found.confidence, confidence, "{name}");
        }
    }
}

/// The second connection between the same ports: the server is in TIME-WAIT.
#[test]
fn ports_in_time_wait_answer_for_the_earlier_connection() {
    for end in ["client", "server"] {
        let found = finding(&format!("time-wait.{end}"), 1, "CC004");
        assert_eq!(found.confidence, Confidence::High, "{end}");
        // From the SYN to the SYN-ACK 8.86 ms, of which a round trip is below 0.1 ms.
        assert!((8_700_000..8_900_000).contains(&found.cost.as_nanos()), "{end}: {}", found.cost);
        let all = findings(&format!("time-wait.{end}"), 1);
        assert!(all.iter().all(|found| !["CC003", "CC204"].contains(&found.code)), "{all:?}");
    }
}
