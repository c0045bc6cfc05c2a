//! Tests of `ackclock import-ini`: the file of the INET wiki, and errors in other files.

use crate::test_directory::TestDirectory;

const SHOWN: &str = include_str!("../../../import-inet/tests/data/mathis_simple.ini");

fn dir(test: &str) -> TestDirectory {
    let dir = TestDirectory::new(test);
    dir.write("mathis_simple.ini", SHOWN);
    dir
}

#[test]
fn the_file_of_the_wiki_becomes_a_scenario() {
    let dir = dir("the_file_of_the_wiki_becomes_a_scenario");
    let import = ["import-ini", "mathis_simple.ini", "--config", "ack_every_packet"];
    let answer = dir.run(&import);
    assert_eq!(answer.code, 0);
    insta::assert_snapshot!("import_ini", answer.out);
    insta::assert_snapshot!("import_ini_left_out", answer.err);
    dir.run(&[&import[..], &["-o", "mathis.toml"]].concat());
    assert_eq!(String::from_utf8(dir.read("mathis.toml")).unwrap(), answer.out);
    assert!(dir.run(&["run", "mathis.toml", "--set", "duration=3s"]).ok().contains("stream"));
}

#[test]
fn configurations_and_runs_are_listed() {
    let dir = dir("configurations_and_runs_are_listed");
    let list = dir.run(&["import-ini", "mathis_simple.ini", "--list"]).ok();
    assert_eq!(
        list,
        "[ack_every_packet]\n  run 0  pktBeforeAck = 1, mtu = 1280\n\
         [ack_every_other_packet]\n  run 0  pktBeforeAck = 2, mtu = 1280\n"
    );
    dir.write("sweep.ini", "**.mtu = ${mtu=1280,1500}B\n**.linkDelay = 1ms\n");
    let all = dir.run(&["import-ini", "sweep.ini", "-o", "sweep.toml"]);
    assert_eq!(all.code, 0);
    let runs = dir.run(&["sweep", "sweep.toml", "--dry-run"]).ok();
    assert!(runs.starts_with("2 runs: 2 of 2 points, 1 of each"), "{runs}");
    assert!(runs.contains("host.client.mtu=1500B  host.server.mtu=1500B"), "{runs}");
    let second = dir.run(&["import-ini", "sweep.ini", "--run", "1"]);
    assert!(second.out.contains("mtu = \"1500B\""), "{}", second.out);
}

#[test]
fn errors_are_reported_with_their_position() {
    let dir = dir("errors_are_reported_with_their_position");
    let several = dir.run(&["import-ini", "mathis_simple.ini"]).refused();
    assert!(several.contains("choose with --config: ack_every_packet, ack_every_other_packet"));
    let config = ["import-ini", "mathis_simple.ini", "--config", "ack_every_pocket"];
    let unknown = dir.run(&config).refused();
    assert!(unknown.contains("did you mean \"ack_every_packet\"?"), "{unknown}");
    dir.write("wrong.ini", "**.linkDelay = 1\n");
    insta::assert_snapshot!("import_ini_wrong", dir.run(&["import-ini", "wrong.ini"]).refused());
    dir.write("right.ini", "**.linkDelay = 1ms\n");
    let profile = ["import-ini", "right.ini", "--profile", "quic-inet-2025-99"];
    let refused = dir.run(&profile).refused();
    assert!(refused.contains("quic-inet-2025-99"), "{refused}");
    let itself = dir.run(&["import-ini", "right.ini", "-o", "right.ini"]).refused();
    assert!(itself.contains("is the ini file itself"), "{itself}");
}
