//! Bad input: exit status 2, the position, a hint; nothing on standard output.

use crate::test_directory::{SMALL, TestDirectory};

/// The error of `ackclock run` for `SMALL` with one part replaced.
fn changed(test: &str, from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    let dir = TestDirectory::new(test);
    dir.write("small.toml", SMALL.replacen(from, to, 1));
    dir.run(&["run", "small.toml"]).refused()
}

/// A test that `SMALL` with one part replaced gives the error of the snapshot.
macro_rules! refused {
    ($($name:ident: $from:literal => $to:literal;)+) => { $(
        #[test]
        fn $name() {
            insta::assert_snapshot!(changed(stringify!($name), $from, $to));
        }
    )+ };
}

refused! {
    unknown_key: "duration = " => "duratoin = ";
    unknown_key_far_from_all: "title = " => "colour = ";
    unknown_table: "[[flow]]" => "[[flows]]";
    missing_unit: "\"10s\"" => "10";
    missing_unit_in_quotes: "rate = \"10Mbit/s\"" => "rate = \"10\"";
    missing_quotes: "\"10s\"" => "10s";
    wrong_unit: "\"100kB\"" => "\"100ms\"";
    bits_for_bytes: "\"100kB\"" => "\"100kb\"";
    unit_of_old_habits: "\"10Mbit/s\"" => "\"10M\"";
    negative: "{ delay = \"10ms\" }]\nreturn" => "{ delay = \"-10ms\" }]\nreturn";
    absurdly_long: "\"10s\"" => "\"1000h\"";
    absurdly_fast: "\"10Mbit/s\"" => "\"1000Tbit/s\"";
    too_fine: "\"10ms\" }]\nreturn" => "\"0.1ns\" }]\nreturn";
    wrong_kind: "title = \"small\"" => "title = [1, 2]";
    lro_in_a_path: "{ delay = \"10ms\" }]\nreturn" => "{ lro = true }]\nreturn";
    tso_in_a_path: "{ delay = \"10ms\" }]\nreturn" => "{ tso = true }]\nreturn";
    tap_in_a_path: "{ delay = \"10ms\" }]\nreturn" => "{ tap = \"sender\" }]\nreturn";
    unknown_element: "{ delay = \"10ms\" }]\nreturn" => "{ dealy = \"10ms\" }]\nreturn";
    two_elements_in_one: "}, { delay = \"10ms\" }]\nreturn" => ", delay = \"10ms\" }]\nreturn";
    path_without_return: "return = [{ delay = \"10ms\" }]\n" => "";
    path_back_to_the_same_host: "to = \"sink\"\nforward" => "to = \"sender\"\nforward";
    flow_to_the_same_host: "to = \"sink\"\nbulk" => "to = \"sender\"\nbulk";
    flow_without_a_path: "[[path]]\nfrom = \"sender\"" =>
        "[host.other]\nprofile = \"freebsd-13.2\"\n[[path]]\nfrom = \"other\"";
    paced_of_nothing: "bulk = \"100kB\"" =>
        "paced = { chunk = \"0B\", every = \"0s\", bytes = \"100kB\" }";
    flow_that_writes_nothing: "bulk = \"100kB\"\n" => "";
    unknown_profile: "freebsd-13.2" => "freebsd-13.3";
    unknown_host: "to = \"sink\"\nbulk" => "to = \"snik\"\nbulk";
    unknown_cc: "\"newreno\"" => "\"new-reno\"";
    cc_not_modelled: "\"newreno\"" => "\"htcp\"";
    cc_of_another_system: "\"newreno\"" => "\"bbr\"";
    unknown_knob: "cc = \"newreno\"" =>
        "cc = \"newreno\"\nknobs = { \"net.inet.tcp.abc_lvar\" = 2 }";
    knob_of_the_other_family: "cc = \"newreno\"" =>
        "cc = \"newreno\"\nknobs = { \"net.ipv4.tcp_rmem\" = [\"4KiB\", \"128KiB\", \"6MiB\"] }";
    knob_out_of_range: "cc = \"newreno\"" =>
        "cc = \"newreno\"\nknobs = { \"net.inet.tcp.abc_l_var\" = 0 }";
    knob_without_quotes: "cc = \"newreno\"" => "cc = \"newreno\"\nknobs.net.inet.tcp.abc_l_var = 2";
    knob_without_a_unit: "cc = \"newreno\"" =>
        "cc = \"newreno\"\nknobs = { \"net.inet.tcp.sendspace\" = 65536 }";
    duplicate_host: "[host.sink]" => "[host.sender]";
    duplicate_flow: "[[flow]]" =>
        "[[flow]]\nname = \"bulk\"\nfrom = \"sink\"\nto = \"sender\"\nbulk = \"1B\"\n\n[[flow]]";
    duplicate_path: "[[flow]]" =>
        "[[path]]\nfrom = \"sink\"\nto = \"sender\"\nforward = []\nreturn = []\n\n[[flow]]";
    toml_missing_bracket: "[[path]]" => "[[path]";
    toml_missing_quote: "\"small\"" => "\"small";
    toml_missing_value: "title = \"small\"" => "title =";
    several_at_once: "title = \"small\"\nduration = \"10s\"" =>
        "title = 5\nduration = 10\nseed = \"x\"";
}

#[test]
fn endless_bulk_without_a_duration() {
    let dir = TestDirectory::new("endless_bulk");
    let text = SMALL.replace("duration = \"10s\"\n", "").replace("\"100kB\"", "\"unlimited\"");
    dir.write("small.toml", text);
    insta::assert_snapshot!(dir.run(&["run", "small.toml"]).refused());
}

#[test]
fn bytes_that_are_no_text() {
    let dir = TestDirectory::new("bytes_that_are_no_text");
    dir.write("small.toml", b"title = \"caf\xe9\"\n");
    insta::assert_snapshot!(dir.run(&["run", "small.toml"]).refused());
}

#[test]
fn overrides_point_at_the_argument() {
    let dir = TestDirectory::new("overrides_point_at_the_argument");
    dir.write("small.toml", SMALL);
    let arguments = [
        "run",
        "small.toml",
        "--set",
        "duration=60",
        "--set",
        "host.sender.knobs.net.inet.tcp.abc_lvar=4",
        "--set",
        "path.3.forward.0.delay=1ms",
        "--set",
        "flow",
    ];
    insta::assert_snapshot!(dir.run(&arguments).refused());
}

#[test]
fn missing_file() {
    let dir = TestDirectory::new("missing_file");
    for command in [&["run", "none.toml"][..], &["scenario", "check", "none.toml"]] {
        let err = dir.run(command).refused();
        assert!(err.starts_with("error: cannot read none.toml: No such file"), "{err}");
    }
    insta::assert_snapshot!(dir.run(&["run"]).refused(), @r"
    error: no scenario file given
      help: name it first: FILE.toml, or one that the program has, listed by: ackclock scenario new --list
    ");
    insta::assert_snapshot!(dir.run(&["run", "--tcpdump", "none.toml"]).refused(), @r"
    error: no scenario file given: `none.toml` is read as the host of --tcpdump
      help: put the file first: run FILE.toml --tcpdump
    ");
}

#[test]
fn unknown_host_of_a_trace() {
    let dir = TestDirectory::new("unknown_host_of_a_trace");
    dir.write("small.toml", SMALL);
    insta::assert_snapshot!(dir.run(&["run", "small.toml", "--tcpdump", "snik"]).refused(), @r"
    error: --tcpdump: unknown host `snik`
      help: did you mean `sink`?
    ");
    insta::assert_snapshot!(dir.run(&["run", "small.toml", "--tcpdump", "x"]).refused(), @r"
    error: --tcpdump: unknown host `x`
      help: hosts are sender, sink
    ");
}

#[test]
fn arguments_that_make_no_sense() {
    let dir = TestDirectory::new("arguments_that_make_no_sense");
    dir.write("small.toml", SMALL);
    for arguments in [
        &["rnu"][..],
        &["run", "small.toml", "--sed", "1"],
        &["run", "small.toml", "--seed", "-1"],
        &["run", "small.toml", "--seed", "9223372036854775808"],
        &["run", "small.toml", "--json", "--tcpdump"],
        &["scenario"],
        &["scenario", "chekc", "small.toml"],
    ] {
        let err = dir.run(arguments).refused();
        assert!(err.contains("Usage") || err.contains("error"), "{arguments:?}: {err}");
    }
}

#[test]
fn check_reports_errors_as_json() {
    let dir = TestDirectory::new("check_informs_programs_too");
    dir.write("small.toml", SMALL.replace("\"10s\"", "10"));
    let answer = dir.run(&["scenario", "check", "small.toml", "--json"]);
    assert_eq!((answer.code, answer.err.as_str()), (2, ""));
    let json: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let error = &json["errors"][0];
    assert_eq!(error["file"], "small.toml");
    assert_eq!((error["line"].as_u64(), error["column"].as_u64()), (Some(2), Some(12)));
    assert_eq!(error["message"], "`duration` has no unit");
    assert_eq!(error["found"], "10");
    assert_eq!(error["expected"], "a duration such as \"100ms\"");
    assert_eq!(error["hint"], "did you mean \"10s\"?");
}
