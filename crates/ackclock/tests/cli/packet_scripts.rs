//! Black-box tests of `ackclock packetdrill`: verdicts, positions, exit status.

use crate::test_directory::TestDirectory;

const GOOD: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
    +0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
    +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n\
    +0 > S 0:0(0) <...>\n";

fn dir(test: &str) -> TestDirectory {
    let dir = TestDirectory::new(test);
    dir.write("good.pkt", GOOD);
    dir.write("bad.pkt", GOOD.replace("> S ", "> SE "));
    dir.write("other.pkt", GOOD.replace("+0 > S", "+0 `cat x | grep x`\n+0 > S"));
    dir
}

#[test]
fn one_script_is_reported_by_itself() {
    let dir = dir("packet_script");
    let out = dir.run(&["packetdrill", "good.pkt"]).ok();
    assert_eq!(out, "good.pkt: passed, 4 events in 0.000 s\n");
    let bad = dir.run(&["packetdrill", "bad.pkt"]);
    assert_eq!((bad.code, bad.out.as_str()), (1, ""));
    let other = dir.run(&["packetdrill", "other.pkt"]);
    assert_eq!((other.code, other.out.as_str()), (1, ""));
    insta::assert_snapshot!(format!("{}{}", bad.err, other.err));
}

#[test]
fn packets_are_written_as_a_capture_and_failures_may_be_noted() {
    let dir = dir("packet_pcap");
    dir.run(&["packetdrill", "good.pkt", "--pcap", "good.pcapng"]).ok();
    let read = dir.run(&["diagnose", "good.pcapng", "--json"]);
    assert!(read.out.contains("\"192.168.0.1:8080\""), "{}", read.out);
    let several = dir.run(&["packetdrill", ".", "--pcap", "all.pcapng"]);
    assert_eq!(several.code, 2);
    assert!(several.err.contains("one script"), "{}", several.err);
    assert!(!dir.0.join("all.pcapng").exists());
    let noted = dir.run(&["packetdrill", "bad.pkt", "--non-fatal", "packet"]).ok();
    assert!(noted.contains("note: line 4: "), "{noted}");
    let unknown = dir.run(&["packetdrill", "bad.pkt", "--non-fatal", "all"]);
    assert_eq!(unknown.code, 2);
}

#[test]
fn a_directory_is_reported_as_a_table_and_as_json() {
    let dir = dir("packet_scripts");
    let all = dir.run(&["packetdrill", "."]);
    assert_eq!(all.code, 1);
    insta::assert_snapshot!(all.out);
    let json = dir.run(&["packetdrill", ".", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["totals"]["unsupported"], 1);
    assert_eq!(json["scripts"][0]["line"], 4);
    let verdicts: Vec<_> =
        json["scripts"].as_array().unwrap().iter().map(|one| one["verdict"].clone()).collect();
    assert_eq!(verdicts, ["failed", "passed", "unsupported"]);
}

#[test]
fn scripts_that_were_not_run_fail_the_run_unless_they_are_allowed() {
    let dir = dir("packet_allowed");
    dir.write("unreadable.pkt", "0 close(3 = 0\n");
    let code = |arguments: &[&str]| {
        dir.run(&[&["packetdrill"], arguments, &["--junit", "out.xml"]].concat()).code
    };
    assert_eq!(code(&["good.pkt", "other.pkt"]), 1);
    assert_eq!(code(&["good.pkt", "other.pkt", "--allow-unsupported"]), 0);
    assert_eq!(code(&["good.pkt", "unreadable.pkt"]), 2);
    assert_eq!(code(&["good.pkt", "unreadable.pkt", "--allow-unsupported"]), 0);
    // A run of nothing never succeeds.
    assert_eq!(code(&["other.pkt", "--allow-unsupported"]), 1);
    assert_eq!(code(&[".", "--allow-unsupported"]), 1);
    let xml = std::fs::read_to_string(dir.0.join("out.xml")).unwrap();
    assert!(xml.contains("tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""), "{xml}");
}

#[test]
fn a_definition_chooses_lines_and_replaces_words() {
    let dir = dir("packet_defined");
    let text = GOOD.replace("+0 > S 0:0(0) <...>\n", "#ifdef A\n+0 > SE 0:0(0) <...>\n#endif\n");
    dir.write("defined.pkt", text.replace("SOCK_STREAM", "KIND"));
    let passes = ["packetdrill", "defined.pkt", "-D", "KIND=SOCK_STREAM"];
    assert_eq!(dir.run(&passes).ok(), "defined.pkt: passed, 3 events in 0.000 s\n");
    assert_eq!(dir.run(&[&passes[..], &["-D", "A"]].concat()).code, 1);
}

#[test]
fn mistakes_of_arguments_and_scripts_are_refused() {
    let dir = dir("packet_mistakes");
    dir.write("unknown.pkt", "0 sokcet(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    dir.write("latin.pkt", b"0 close(3) = 0 // caf\xe9\n");
    std::fs::create_dir(dir.0.join("empty")).unwrap();
    let refused = |arguments: &[&str]| dir.run(arguments).refused();
    insta::assert_snapshot!(
        [
            refused(&["packetdrill", "unknown.pkt"]),
            refused(&["packetdrill", "latin.pkt"]),
            refused(&["packetdrill", "missing.pkt"]),
            refused(&["packetdrill", "empty"]),
            refused(&["packetdrill", "good.pkt", "--profile", "linux-6.19"]),
        ]
        .concat()
    );
}

/// A file that is no script is reported, and the others are run.
#[test]
fn one_bad_file_among_many_is_reported_and_the_rest_is_run() {
    let dir = TestDirectory::new("one_bad_file_among_many_scripts");
    dir.write("a.pkt", "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    dir.write("b.pkt", b"*\xa2\n");
    let answer = dir.run(&["packetdrill", "a.pkt", "b.pkt", "none.pkt"]);
    assert_eq!(answer.code, 2);
    assert!(answer.out.contains("a.pkt") && answer.out.contains("1 passed"), "{}", answer.out);
    assert!(
        answer.err.contains("b.pkt:1:2") && answer.err.contains("cannot read none.pkt"),
        "{}",
        answer.err
    );
    let answer = dir.run(&["packetdrill", "b.pkt", "none.pkt"]);
    assert!(answer.code == 2 && answer.err.contains("b.pkt:1:2"), "{}", answer.err);
    assert!(answer.err.contains("cannot read none.pkt"), "{}", answer.err);
}
