//! `ackclock diagnose` and `explain`: runs of our own, captured and diagnosed, and what is refused.

use std::path::Path;

use serde_json::Value;

use crate::place::{Place, SMALL};

fn root(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file).display().to_string()
}

/// Runs a scenario of ours and diagnoses what its sender's or receiver's tap saw.
fn simulated(test: &str, scenario: &str, set: &[&str]) -> Value {
    let place = Place::new(test);
    let scenario = root(scenario);
    let mut arguments = vec!["run", &scenario, "--pcap", "run.pcapng"];
    for change in set {
        arguments.extend(["--set", change]);
    }
    place.run(&arguments).ok();
    let json = place.run(&["diagnose", "run.pcapng", "--json"]).ok();
    let report: Value = serde_json::from_str(&json).unwrap();
    report["connections"][0].clone()
}

fn finding<'v>(connection: &'v Value, code: &str) -> &'v Value {
    let findings = connection["findings"].as_array().unwrap();
    findings.iter().find(|found| found["code"] == code).unwrap_or_else(|| panic!("{connection:#}"))
}

/// The transfer of the mail: FreeBSD 13.2 with L = 2, one ACK per aggregate.
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
    // Without the limit it is a plain slow start.
    let set = "host.sender.knobs.net.inet.tcp.abc_l_var=45";
    let connection = simulated(test, "scenarios/slow-start-lro.toml", &[set]);
    assert_eq!(connection["primary"], "CC102", "{connection:#}");
}

/// The path of the FreeBSD Journal: groups of four arrive last first.
#[test]
fn reordering_fools_both_stacks_of_freebsd() {
    let test = "reordering_fools_both_stacks_of_freebsd";
    let base = simulated(test, "scenarios/reordering.toml", &["duration=5s"]);
    assert_eq!(base["primary"], "CC302", "{base:#}");
    assert_eq!(base["retransmitted_packets"], base["spurious_packets"]);
    finding(&base, "CC301");
    // 15 ms between the packets of a group: RACK is fooled, and climbs from a low threshold for the
    // rest, which takes longer than the recoveries.
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

/// The lines of the mail itself.
#[test]
fn the_mail_of_may_2023() {
    let mail = root("golden/published/slow-start-lro.txt");
    let place = Place::new("the_mail_of_may_2023");
    let json = place.run(&["diagnose", &mail, "--json"]).ok();
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
fn a_coarse_clock_is_told_from_a_black_box_log() {
    let place = Place::new("a_coarse_clock_is_told_from_a_black_box_log");
    let lan = SMALL
        .replace("10Mbit/s", "1Gbit/s")
        .replace("10ms", "100us")
        .replace("bulk = \"100kB\"", "bulk = \"20MB\"");
    place.write("lan.toml", lan);
    let diagnosed = |hz: &str| {
        let hz = format!("sender.knobs.kern.hz={hz}");
        place.run(&["run", "lan.toml", "--set", &hz, "--bblog", "run.bblog.pcapng"]).ok();
        let json = place.run(&["diagnose", "run.bblog.pcapng", "--json"]).ok();
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
fn json_has_the_fields_that_are_promised() {
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let place = Place::new("json_has_the_fields_that_are_promised");
    let json = place.run(&["diagnose", &capture, "--json"]).ok();
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

#[test]
fn fail_on_decides_the_exit_status() {
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let place = Place::new("fail_on_decides_the_exit_status");
    for (on, code) in
        [("note", 1), ("warning", 1), ("error", 1), ("CC401", 1), ("cc401", 1), ("CC204", 0)]
    {
        assert_eq!(place.run(&["diagnose", &capture, "--fail-on", on]).code, code, "{on}");
    }
    let healthy = root("golden/linux/l1_healthy_cubic/sender.pcap.xz");
    assert_eq!(place.run(&["diagnose", &healthy, "--fail-on", "warning"]).code, 0);
    assert_eq!(place.run(&["diagnose", &healthy]).code, 0);
}

#[test]
fn what_cannot_be_diagnosed_is_refused() {
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let place = Place::new("what_cannot_be_diagnosed_is_refused");
    place.write("empty.pcap", "");
    place.write("words.txt", "nothing of the kind\n");
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
        let answer = place.run(arguments);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}");
        said += &answer.err.replace(&root(""), "");
        said += "\n";
    }
    insta::assert_snapshot!("diagnose_refused", said);
}

#[test]
fn cut_anywhere_there_is_an_answer_or_a_reason() {
    let path = root("crates/ackclock/tests/cli/../../../../fuzz/seeds/capture/nano.pcap");
    let whole = std::fs::read(path).unwrap();
    let place = Place::new("cut_anywhere_there_is_an_answer_or_a_reason");
    for length in (0..whole.len()).step_by(7) {
        place.write("cut.pcap", &whole[..length]);
        let code = place.run(&["diagnose", "cut.pcap"]).code;
        assert!(code == 0 || code == 2, "{length} bytes: {code}");
    }
}

#[test]
fn a_page_takes_no_file_that_is_to_be_read() {
    let place = Place::new("a_page_takes_no_file_that_is_to_be_read");
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let copy = std::fs::read(&capture).unwrap();
    place.write("copy.pcap.xz", &copy);
    let failed = place.run(&["diagnose", "copy.pcap.xz", "--report", "copy.pcap.xz"]).refused();
    assert!(failed.contains("copy.pcap.xz is to be read"), "{failed}");
    assert_eq!(place.read("copy.pcap.xz"), copy);
    // No page is left of what cannot be diagnosed.
    place.write("nothing.pcap", b"");
    place.run(&["diagnose", "nothing.pcap", "--report", "page.html"]).refused();
    assert_eq!(place.files(), ["copy.pcap.xz", "nothing.pcap"]);
}

/// What `run --pcap` writes for two taps: one connection seen at both ends, which competes with nothing.
#[test]
fn two_capture_points_of_a_file_are_two_views_of_a_connection() {
    let place = Place::new("two_capture_points_of_a_file");
    let taps = "\n[[tap]]\nhost = \"sender\"\n\n[[tap]]\nhost = \"sink\"\n";
    place.write("two.toml", format!("{SMALL}{taps}"));
    place.run(&["run", "two.toml", "--pcap", "two.pcapng", "--set", "bulk.bulk=4MB"]).ok();
    let told = place.run(&["diagnose", "two.pcapng"]).ok();
    assert!(told.contains(", 1 connection of TCP, seen at 2 capture points\n"), "{told}");
    assert!(!told.contains("CC602"), "{told}");
    let pair = "\nflow 0 and flow 1 of two.pcapng are one connection at two capture points\n";
    assert!(told.contains(pair), "{told}");
    // One clock has stamped both.
    assert!(!told.contains("the second clock"), "{told}");
    let json = place.run(&["diagnose", "two.pcapng", "--json"]).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["joined"][0]["clock_ahead_s"], 0.0, "{json}");
    // The delay of the path, and the time that a packet takes on the link.
    let least = json["joined"][0]["from_client"]["delays_s"][0].as_f64().unwrap();
    assert!(least > 0.010 && least < 0.020, "{least}");
}
