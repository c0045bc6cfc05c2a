//! `ackclock packetdrill` from outside: verdicts, places, exit status.

use crate::place::Place;

const GOOD: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
    +0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
    +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n\
    +0 > S 0:0(0) <...>\n";

fn place(test: &str) -> Place {
    let place = Place::new(test);
    place.write("good.pkt", GOOD);
    place.write("bad.pkt", GOOD.replace("> S ", "> SE "));
    place.write("other.pkt", GOOD.replace("+0 > S", "+0 `nstat | grep x`\n+0 > S"));
    place
}

#[test]
fn one_script_is_told_by_itself() {
    let place = place("packet_script");
    let out = place.run(&["packetdrill", "good.pkt"]).ok();
    assert_eq!(out, "good.pkt: passed, 4 events in 0.000 s\n");
    let bad = place.run(&["packetdrill", "bad.pkt"]);
    assert_eq!((bad.code, bad.out.as_str()), (1, ""));
    let other = place.run(&["packetdrill", "other.pkt"]);
    assert_eq!((other.code, other.out.as_str()), (0, ""));
    insta::assert_snapshot!(format!("{}{}", bad.err, other.err));
}

#[test]
fn a_directory_is_told_as_a_table_and_as_json() {
    let place = place("packet_scripts");
    let all = place.run(&["packetdrill", "."]);
    assert_eq!(all.code, 1);
    insta::assert_snapshot!(all.out);
    let json = place.run(&["packetdrill", ".", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["totals"]["unsupported"], 1);
    assert_eq!(json["scripts"][0]["line"], 4);
    let verdicts: Vec<_> =
        json["scripts"].as_array().unwrap().iter().map(|one| one["verdict"].clone()).collect();
    assert_eq!(verdicts, ["failed", "passed", "unsupported"]);
}

#[test]
fn mistakes_of_arguments_and_scripts_are_refused() {
    let place = place("packet_mistakes");
    place.write("unknown.pkt", "0 sokcet(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    place.write("latin.pkt", b"0 close(3) = 0 // caf\xe9\n");
    std::fs::create_dir(place.0.join("empty")).unwrap();
    let refused = |arguments: &[&str]| place.run(arguments).refused();
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
