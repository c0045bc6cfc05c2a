//! Folders of captures, some of which cannot be read.

use std::path::Path;

use serde_json::Value;

use crate::test_directory::TestDirectory;

const SLOW: &str = "golden/linux/f2_few_losses_cubic/sender.pcap.xz";
const WINDOW: &str = "golden/linux/h1_rwnd_cubic/sender.pcap.xz";

/// A directory with two captures, and beside them an empty one, one that is none, and words.
fn folder(name: &str) -> TestDirectory {
    let dir = TestDirectory::new(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    dir.write("a.pcap.xz", std::fs::read(root.join(SLOW)).unwrap());
    dir.write("b.pcap", "");
    dir.write("c.pcapng", "these are words");
    dir.write("d.pcap.xz", std::fs::read(root.join(WINDOW)).unwrap());
    dir.write("notes.txt", "words");
    dir
}

#[test]
fn each_file_of_a_folder_has_a_verdict() {
    let dir = folder("each_file_of_a_folder_has_a_verdict");
    let answer = dir.run(&["diagnose", ".", "--limit", "0"]);
    assert_eq!(answer.code, 2, "{}", answer.out);
    let lines: Vec<_> = answer
        .out
        .lines()
        .filter(|line| line.starts_with("./") || line.contains("verdict:"))
        .collect();
    assert_eq!(
        lines,
        [
            "./a.pcap.xz: a capture, 11367 frames, 1 connection of TCP",
            "  verdict: CC205 isolated loss, 1.99 s lost",
            "./d.pcap.xz: a capture, 4600 frames, 1 connection of TCP",
            "  verdict: CC401 the receive window is the limit, 2.54 s lost",
        ]
    );
    let errors: Vec<_> = answer.err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 2, "{}", answer.err);
    assert_eq!(errors[0], "error: cannot diagnose ./b.pcap: the file is empty");
    assert!(errors[1].contains("cannot diagnose ./c.pcapng: "), "{}", answer.err);
}

#[test]
fn what_could_be_read_is_in_every_output() {
    let dir = folder("what_could_be_read_is_in_every_output");
    let outputs = ["--csv", "out.csv", "--junit", "out.xml", "--json"];
    let answer = dir.run(&[&["diagnose", "."][..], &outputs].concat());
    assert_eq!(answer.code, 2);
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    let files: Vec<_> = json.as_array().unwrap().iter().map(|one| &one["file"]).collect();
    assert_eq!(files, ["./a.pcap.xz", "./d.pcap.xz"]);
    assert_eq!(String::from_utf8(dir.read("out.csv")).unwrap().lines().count(), 3);
    // A finding is certain, whatever the other files have.
    let gate = |on: &str| dir.run(&["diagnose", ".", "--fail-on", on]).code;
    assert_eq!((gate("error"), gate("CC001")), (1, 2));
    // A file that is not there, among others.
    let answer = dir.run(&["diagnose", "a.pcap.xz", "gone.pcap", "--limit", "0"]);
    assert_eq!(answer.code, 2);
    assert!(answer.out.contains("verdict: CC205") && answer.err.contains("cannot read gone.pcap"));
}

#[test]
fn without_a_file_that_can_be_read_nothing_is_written() {
    let dir = TestDirectory::new("without_a_file_that_can_be_read_nothing_is_written");
    dir.write("b.pcap", "");
    dir.write("c.pcapng", "these are words");
    for arguments in [&["diagnose", "."][..], &["diagnose", "b.pcap", "gone.pcap"]] {
        let outputs = ["--csv", "out.csv", "--report", "out.html"];
        let error = dir.run(&[arguments, &outputs].concat()).refused();
        assert!(error.starts_with("error: cannot diagnose "), "{error}");
        assert_eq!(dir.files(), ["b.pcap", "c.pcapng"]);
    }
    // Parts of one capture belong together.
    let error = dir.run(&["diagnose", "b.pcap", "c.pcapng", "--ring"]).refused();
    assert!(error.contains("c.pcapng"), "{error}");
}
