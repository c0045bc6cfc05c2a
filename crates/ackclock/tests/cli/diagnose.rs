//! Tests of `ackclock diagnose` and `explain`: simulated runs, captured and diagnosed, and rejected
//! input.

use std::path::Path;

use serde_json::Value;

use crate::test_directory::{SMALL, TestDirectory};

fn root(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file).display().to_string()
}

/// Runs a scenario and diagnoses the capture of its sender's or receiver's tap.
fn simulated(test: &str, scenario: &str, set: &[&str]) -> Value {
    let dir = TestDirectory::new(test);
    let scenario = root(scenario);
    let mut arguments = vec!["run", &scenario, "--pcap", "run.pcapng"];
    for change in set {
        arguments.extend(["--set", change]);
    }
    dir.run(&arguments).ok();
    let json = dir.run(&["diagnose", "run.pcapng", "--json"]).ok();
    let report: Value = serde_json::from_str(&json).unwrap();
    report["connections"][0].clone()
}

fn finding<'v>(connection: &'v Value, code: &str) -> &'v Value {
    let findings = connection["findings"].as_array().unwrap();
    findings.iter().find(|found| found["code"] == code).unwrap_or_else(|| panic!("{connection:#}"))
}

/// The transfer of the freebsd-net post: FreeBSD 13.2 with L = 2, one ACK per aggregate.
#[test]
fn byte_counting_starved_by_lro() {
    let test = "byte_counting_starved_by_lro";
    for (limit, low, high) in [(2, 1.9, 2.1), (8, 7.5, 8.5)] {
        let set = format!("host.sender.knobs.net.inet.tcp.abc_l_var={limit}");
        let connection = simulated(test, "scenarios/slow-start-lro.toml", &[&set]);
        if limit == 2 {
            assert_eq!(connection["primary"], "CC101", "{connection:#}");
        }
        let evidence = &finding(&connection, "CC101")["evidence"];
        let growth = evidence["growth_per_ack_mss"].as_f64().unwrap();
        assert!((low..high).contains(&growth), "L = {limit}: {growth}");
        assert!(evidence["acks_cover_mss"].as_f64().unwrap() > 10.0);
        finding(&connection, "CC402");
    }
    // Without the limit it is an ordinary slow start.
    let set = "host.sender.knobs.net.inet.tcp.abc_l_var=45";
    let connection = simulated(test, "scenarios/slow-start-lro.toml", &[set]);
    assert_eq!(connection["primary"], "CC102", "{connection:#}");
}

/// The path of the FreeBSD Journal: groups of four arrive last first.
#[test]
fn reordering_triggers_spurious_recovery_on_both_freebsd_stacks() {
    let test = "reordering_fools_both_stacks_of_freebsd";
    let base = simulated(test, "scenarios/reordering.toml", &["duration=5s"]);
    assert_eq!(base["primary"], "CC302", "{base:#}");
    assert_eq!(base["retransmitted_packets"], base["spurious_packets"]);
    finding(&base, "CC301");
    // 15 ms between the packets of a group: RACK declares spurious losses, and grows from a low
    // threshold for the rest, which takes longer than the recoveries.
    let rack = [
        "duration=10s",
        "host.sender.profile=freebsd-rack-14.3",
        "path.0.forward.2.reorder.gap=15ms",
    ];
    let rack = simulated(test, "scenarios/reordering.toml", &rack);
    assert_eq!(rack["primary"], "CC105", "{rack:#}");
    assert_eq!(rack["retransmitted_packets"], rack["spurious_packets"]);
    finding(&rack, "CC302");
}

/// The trace of the freebsd-net post itself.
#[test]
fn the_freebsd_net_post_of_may_2023() {
    let mail = root("golden/published/slow-start-lro.txt");
    let dir = TestDirectory::new("the_mail_of_may_2023");
    let json = dir.run(&["diagnose", &mail, "--json"]).ok();
    let report: Value = serde_json::from_str(&json).unwrap();
    let connection = &report["connections"][0];
    let evidence = &finding(connection, "CC101")["evidence"];
    assert!((evidence["growth_per_ack_mss"].as_f64().unwrap() - 2.0).abs() < 0.2, "{evidence}");
    let flights: Vec<_> =
        evidence["flights_mss"].as_array().unwrap().iter().map(|f| f.as_f64().unwrap()).collect();
    // The fourth is 22948 bytes: a write ended within it.
    assert_eq!(flights, [10.0, 12.0, 14.0, 16.0]);
}

/// A LAN of 200 us: a tick of 10 ms is fifty round trips, one of 100 us half of one.
#[test]
fn a_coarse_clock_is_detected_in_a_black_box_log() {
    let dir = TestDirectory::new("a_coarse_clock_is_distinguished_from_a_black_box_log");
    let lan = SMALL
        .replace("10Mbit/s", "1Gbit/s")
        .replace("10ms", "100us")
        .replace("bulk = \"100kB\"", "bulk = \"20MB\"");
    dir.write("lan.toml", lan);
    let diagnosed = |hz: &str| {
        let hz = format!("sender.knobs.kern.hz={hz}");
        dir.run(&["run", "lan.toml", "--set", &hz, "--bblog", "run.bblog.pcapng"]).ok();
        let json = dir.run(&["diagnose", "run.bblog.pcapng", "--json"]).ok();
        let report: Value = serde_json::from_str(&json).unwrap();
        report["connections"][0].clone()
    };
    let coarse = diagnosed("100");
    let found = finding(&coarse, "CC701");
    assert_eq!(found["severity"], "warning");
    let hz = found["evidence"]["hz"].as_f64().unwrap();
    assert!((99.0..101.0).contains(&hz), "{hz}");
    let fine = diagnosed("100000");
    let codes: Vec<_> = fine["findings"].as_array().unwrap().iter().map(|f| &f["code"]).collect();
    assert!(!codes.contains(&&Value::from("CC701")), "{codes:?}");
}

#[test]
fn json_has_the_documented_fields() {
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let dir = TestDirectory::new("json_has_the_fields_that_are_promised");
    let json = dir.run(&["diagnose", &capture, "--json"]).ok();
    let report: Value = serde_json::from_str(&json).unwrap();
    assert!(report["file"].is_string());
    let connection = &report["connections"][0];
    for key in [
        "id",
        "client",
        "server",
        "sender",
        "bytes",
        "duration_s",
        "goodput_bps",
        "time_budget",
        "profile_guess",
        "primary",
        "findings",
    ] {
        assert!(connection.get(key).is_some(), "{key}");
    }
    let found = &connection["findings"][0];
    for key in
        ["code", "severity", "confidence", "cost_s", "interval_s", "frames", "evidence", "help"]
    {
        assert!(found.get(key).is_some(), "{key}");
    }
    let budget: f64 =
        connection["time_budget"].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).sum();
    assert!((budget - connection["duration_s"].as_f64().unwrap()).abs() < 1e-6);
}

/// The primary finding ends with the cures tried, in text and JSON; scripts can leave them out.
#[test]
fn cures_are_tried_unless_they_are_left_out() {
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let dir = TestDirectory::new("cures_are_tried_unless_they_are_left_out");
    let text = dir.run(&["diagnose", &capture]).ok();
    let cure = "   = cure: receiver: net.ipv4.tcp_rmem=\"4096 131072 6291456\": 3.27 s -> ";
    assert!(text.contains(cure), "{text}");
    let json = dir.run(&["diagnose", &capture, "--json"]).ok();
    let report: Value = serde_json::from_str(&json).unwrap();
    let cures = report["connections"][0]["cures"].as_array().unwrap();
    assert_eq!(cures.len(), 1, "{cures:#?}");
    for (key, value) in [("finding", "CC401"), ("validity", "figure")] {
        assert_eq!(cures[0][key], value, "{cures:#?}");
    }
    assert!(cures[0]["duration_s"].as_f64().unwrap() < 0.8, "{cures:#?}");
    for key in ["set", "low_s", "high_s", "why"] {
        assert!(cures[0].get(key).is_some(), "{key}");
    }
    // The setting is an argument of whatif as it stands.
    let set = cures[0]["set"].as_str().unwrap();
    dir.run(&["whatif", &capture, "--set", set]).ok();
    let text = dir.run(&["diagnose", &capture, "--no-cures"]).ok();
    assert!(!text.contains("= cure:"), "{text}");
}

#[test]
fn fail_on_decides_the_exit_status() {
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let dir = TestDirectory::new("fail_on_decides_the_exit_status");
    for (on, code) in
        [("note", 1), ("warning", 1), ("error", 1), ("CC401", 1), ("cc401", 1), ("CC204", 0)]
    {
        assert_eq!(dir.run(&["diagnose", &capture, "--fail-on", on]).code, code, "{on}");
    }
    let healthy = root("golden/linux/l1_healthy_cubic/sender.pcap.xz");
    assert_eq!(dir.run(&["diagnose", &healthy, "--fail-on", "warning"]).code, 0);
    assert_eq!(dir.run(&["diagnose", &healthy]).code, 0);
}

#[test]
fn verdicts_are_compared_with_labels() {
    let dir = TestDirectory::new("verdicts_are_compared_with_labels");
    let rows = |labels: [&str; 3]| {
        let files = ["c1_loss1p_rtt2_reno", "h1_rwnd_cubic", "l1_healthy_cubic"];
        let row = |(file, label)| format!("linux\t{file}/sender.pcap.xz\t{label}\twhy\n");
        files.into_iter().zip(labels).map(row).collect::<String>()
    };
    let golden = root("golden");
    dir.write("right.tsv", format!("# source\n{}", rows(["CC201", "CC403, CC401", "healthy"])));
    let right = dir.run(&["diagnose", "--against", "right.tsv", &golden]).ok();
    assert!(right.contains("3 of 3 right (100.0 %)"), "{right}");
    dir.write("wrong.tsv", rows(["CC204", "CC401", "healthy"]) + "linux\tnone.pcap\tCC201\n");
    let wrong = dir.run(&["diagnose", "--against", "wrong.tsv", &golden, "--json"]);
    assert_eq!(wrong.code, 1);
    let report: Value = serde_json::from_str(&wrong.out).unwrap();
    assert_eq!((&report["right"], &report["missing"]), (&2.into(), &1.into()));
    assert_eq!(report["confusion"]["CC204"]["CC201"], 1);
    dir.write("bad.tsv", "linux\tfile\tCC999\n");
    let refused = dir.run(&["diagnose", "--against", "bad.tsv", &golden]).refused();
    assert!(refused.contains("bad.tsv:1: unknown label `CC999`"), "{refused}");
}

#[test]
fn what_cannot_be_diagnosed_is_refused() {
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let dir = TestDirectory::new("what_cannot_be_diagnosed_is_refused");
    dir.write("empty.pcap", "");
    dir.write("words.txt", "nothing of the kind\n");
    let mut said = String::new();
    for arguments in [
        &["diagnose"][..],
        &["diagnose", "none.pcap"],
        &["diagnose", "."],
        &["diagnose", "empty.pcap"],
        &["diagnose", "words.txt"],
        &["diagnose", "-", "-"],
        &["diagnose", &capture, "--flow", "7"],
        &["diagnose", &capture, "--fail-on", "CC999"],
        &["explain", "CC999"],
    ] {
        let answer = dir.run(arguments);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}");
        said += &answer.err.replace(&root(""), "");
        said += "\n";
    }
    insta::assert_snapshot!("diagnose_refused", said);
}

#[test]
fn truncated_captures_give_a_diagnosis_or_an_error() {
    let path = root("crates/ackclock/tests/cli/../../../../fuzz/seeds/capture/nano.pcap");
    let whole = std::fs::read(path).unwrap();
    let dir = TestDirectory::new("cut_anywhere_there_is_an_answer_or_a_reason");
    for length in (0..whole.len()).step_by(7) {
        dir.write("cut.pcap", &whole[..length]);
        let code = dir.run(&["diagnose", "cut.pcap"]).code;
        assert!(code == 0 || code == 2, "{length} bytes: {code}");
    }
}

#[test]
fn a_page_does_not_overwrite_an_input_file() {
    let dir = TestDirectory::new("a_page_takes_no_file_that_is_to_be_read");
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let copy = std::fs::read(&capture).unwrap();
    dir.write("copy.pcap.xz", &copy);
    let failed = dir.run(&["diagnose", "copy.pcap.xz", "--report", "copy.pcap.xz"]).refused();
    assert!(failed.contains("copy.pcap.xz is an input file"), "{failed}");
    assert_eq!(dir.read("copy.pcap.xz"), copy);
    // No page is written if the diagnosis fails.
    dir.write("nothing.pcap", b"");
    dir.run(&["diagnose", "nothing.pcap", "--report", "page.html"]).refused();
    assert_eq!(dir.files(), ["copy.pcap.xz", "nothing.pcap"]);
}

/// The capture of `run --pcap` with two taps: one connection seen at both hosts; it does not
/// compete with itself.
#[test]
fn two_capture_points_of_a_file_are_two_views_of_a_connection() {
    let dir = TestDirectory::new("two_capture_points_of_a_file");
    let taps = "\n[[tap]]\nhost = \"sender\"\n\n[[tap]]\nhost = \"sink\"\n";
    dir.write("two.toml", format!("{SMALL}{taps}"));
    dir.run(&["run", "two.toml", "--pcap", "two.pcapng", "--set", "bulk.bulk=4MB"]).ok();
    let printed = dir.run(&["diagnose", "two.pcapng"]).ok();
    assert!(printed.contains(", 1 connection of TCP, seen at 2 capture points\n"), "{printed}");
    assert!(!printed.contains("CC602"), "{printed}");
    let pair = "\nflow 0 and flow 1 of two.pcapng are one connection at two capture points\n";
    assert!(printed.contains(pair), "{printed}");
    // Both have the timestamps of one clock.
    assert!(!printed.contains("the second clock"), "{printed}");
    let json = dir.run(&["diagnose", "two.pcapng", "--json"]).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["joined"][0]["clock_ahead_s"], 0.0, "{json}");
    // The delay of the path plus the serialization time of a packet.
    let least = json["joined"][0]["from_client"]["delays_s"][0].as_f64().unwrap();
    assert!(least > 0.010 && least < 0.020, "{least}");
}

/// A folder is its captures; conditions choose among their connections, and a mistake in one is
/// named with its column.
#[test]
fn connections_are_chosen_by_conditions() {
    let folder = root("golden/captures/recorded/failures");
    let dir = TestDirectory::new("connections_are_chosen_by_conditions");
    let chosen = ["diagnose", &folder, "--code", "CC003", "--csv", "out.csv", "--limit", "0"];
    assert_eq!(dir.run(&chosen).code, 0);
    let table = String::from_utf8(dir.read("out.csv")).unwrap();
    assert_eq!(table.lines().count(), 7, "{table}");
    for (arguments, message) in [
        (["--filter", "lost > 5"], "--filter lost > 5: column 8: `5` "),
        (["--filter", "lost > 100s"], "no connection meets the conditions"),
        (["--code", "CC999"], "--code CC999: no finding has this code"),
        (["--min-bytes", "5"], "--min-bytes: `5` "),
    ] {
        let refused = dir.run(&["diagnose", &folder, arguments[0], arguments[1]]).refused();
        assert!(refused.contains(message), "{refused}");
    }
}
