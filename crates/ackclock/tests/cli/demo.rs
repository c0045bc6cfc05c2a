//! Examples of findings.

use serde_json::Value;

use crate::test_directory::TestDirectory;

/// The program's own copies, so that its crate can be packed, are those of the recordings.
#[test]
fn captures_of_the_program_are_those_of_the_recordings() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let failures = "../../golden/captures/recorded/failures";
    for (copy, recording) in [
        ("demo/sender.pcap.xz", "../../golden/linux/h1_rwnd_cubic/sender.pcap.xz".to_owned()),
        ("demo/examples/CC001.pcap.gz", format!("{failures}/refused.client.pcap.gz")),
        ("demo/examples/CC004.pcap.gz", format!("{failures}/time-wait.client.pcap.gz")),
        ("demo/examples/CC005.pcap.gz", format!("{failures}/unreachable.client.pcap.gz")),
    ] {
        let read = |name: &str| std::fs::read(root.join(name)).unwrap();
        assert!(read(copy) == read(&recording), "{copy} is not {recording}");
    }
}

/// Every code has an example with it as its primary finding, or with a note that has it, or a reason why it has none.
#[test]
fn examples_have_their_findings() {
    let dir = TestDirectory::new("examples_have_their_findings");
    let list = dir.run(&["demo", "--list"]).ok();
    let (with, without) = list.split_once("\nwithout an example\n").unwrap();
    let with: Vec<&str> = with.lines().map(|line| &line[..5]).collect();
    for code in &with {
        let saved = dir.run(&["demo", code, "--save", "example"]).ok();
        assert!(saved.ends_with("; next: ackclock diagnose example\n"), "{saved}");
        let json = dir.run(&["diagnose", "example", "--json"]).ok();
        let json: Value = serde_json::from_str(&json).unwrap();
        let tcp = json["connections"].as_array().unwrap().iter();
        let connections: Vec<&Value> =
            tcp.chain(json["quic"].as_array().into_iter().flatten()).collect();
        let is_found = |connection: &&Value| {
            let findings = connection["findings"].as_array().into_iter().flatten();
            let mut notes = findings.filter(|one| one["severity"] == "note");
            connection["primary"] == **code || notes.any(|one| one["code"] == **code)
        };
        // Ports are reused by several connections.
        assert!(connections.len() == 1 || *code == "CC004", "{code}");
        assert!(connections.iter().any(is_found), "{code}: {json}");
    }
    let without = without.lines().flat_map(|line| {
        let (codes, reason) = line.split_once(": ").unwrap();
        assert!(!reason.is_empty(), "{line}");
        codes.split(' ')
    });
    let mut all: Vec<&str> = with.into_iter().chain(without).collect();
    all.sort_unstable();
    let explained = dir.run(&["explain"]).ok();
    let explained: Vec<&str> =
        explained.lines().take_while(|line| !line.is_empty()).map(|line| &line[..5]).collect();
    assert_eq!(all, explained);
}

#[test]
fn a_finding_without_an_example_has_a_reason() {
    let dir = TestDirectory::new("a_finding_without_an_example_has_a_reason");
    let error = dir.run(&["demo", "903"]).refused();
    assert!(error.starts_with("error: CC903 has no example: a note"), "{error}");
    let error = dir.run(&["demo", "CC999", "--save", "none.pcap"]).refused();
    assert!(error.starts_with("error: unknown finding CC999\n"), "{error}");
    assert!(dir.files().is_empty());
    dir.run(&["demo", "CC205", "--list"]).refused();
}
