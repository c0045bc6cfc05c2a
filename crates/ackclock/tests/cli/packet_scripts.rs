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
    dir.write("other.pkt", GOOD.replace("+0 > S", "+0 `nstat | grep x`\n+0 > S"));
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
    assert_eq!((other.code, other.out.as_str()), (0, ""));
    insta::assert_snapshot!(format!("{}{}", bad.err, other.err));
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
