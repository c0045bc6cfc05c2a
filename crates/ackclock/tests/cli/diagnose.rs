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
    for without in [&["--no-cures"][..], &["--every", "1s"]] {
        let text = dir.run(&[&["diagnose", &capture], without].concat()).ok();
        assert!(!text.contains("cure:") && !text.contains("cure at"), "{text}");
    }
}

/// The first line of the text, of the captures at `paths`.
fn answer(dir: &TestDirectory, paths: &[&str]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| root(path)).collect();
    let arguments: Vec<&str> =
        ["diagnose"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let text = dir.run(&arguments).ok();
    let (answer, rest) = text.split_once("\n\n").unwrap();
    assert!(!answer.contains('\n') && !rest.is_empty(), "{text}");
    answer.to_owned()
}

/// What limits by the `label` in the scenario.json of each golden capture.
#[test]
fn the_first_line_is_the_answer() {
    let dir = TestDirectory::new("the_first_line_is_the_answer");
    let line = answer(&dir, &["golden/linux/h1_rwnd_cubic/sender.pcap.xz"]);
    let expected = "limited by the receiver's window at a cost of 78 % of the time at work; \
                    cure at the receiver (net.ipv4.tcp_rmem): 3.27 s to ";
    assert!(line.starts_with(expected), "{line}");
    // Losses at random: the time without them is a range.
    let line = answer(&dir, &["golden/linux/c2_loss2r_rtt2_cubic/sender.pcap.xz"]);
    assert!(line.starts_with("limited by random losses at a cost of "), "{line}");
    assert!(line.contains("; cure on the path (without the losses): 2.25 s to between "), "{line}");
    let line = answer(&dir, &["golden/linux/l1_healthy_cubic/sender.pcap.xz"]);
    assert!(line.starts_with("no fault found: the path is busy 93 % of the time"), "{line}");
    let line = answer(&dir, &["golden/linux/k1_two_flows/sender.pcap.xz"]);
    let expected =
        "the worst connection, flow 1: limited by competing traffic at a cost of 45 % of";
    assert!(line.starts_with(expected), "{line}");
    let line = answer(&dir, &["golden/linux/g1_rto_cubic/sender.pcap.xz"]);
    assert!(line.starts_with("limited by retransmission timeouts at a cost of "), "{line}");
    // Several files: the worst is in one of them. Two captures of one transfer have no worst.
    let slow = "golden/linux/h1_rwnd_cubic/sender.pcap.xz";
    let line = answer(&dir, &["golden/linux/l1_healthy_cubic/sender.pcap.xz", slow]);
    let expected = format!("the worst connection, flow 0 of {}: limited by the rec", root(slow));
    assert!(line.starts_with(&expected), "{line}");
    let line = answer(&dir, &[slow, "golden/linux/h1_rwnd_cubic/receiver.pcap.xz"]);
    assert!(line.starts_with("flow 0 of "), "{line}");
    let line = answer(&dir, &["docs/samples/upload.sqlog"]);
    assert!(line.starts_with("no fault found"), "{line}");
}

/// Errors are in the text that the user wrote.
#[test]
fn a_setting_of_sysctl_is_refused_where_it_is_wrong() {
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let dir = TestDirectory::new("a_setting_of_sysctl_is_refused");
    let set = "tcp_rmem=\"4096 131072 oops\"";
    let refused = dir.run(&["whatif", &capture, "--set", set]).refused();
    let shown = "--> --set:1:23\n  |\n1 | tcp_rmem=\"4096 131072 oops\"\n  |                       ^^^^ \
                 expected a number of bytes, found \"oops\"";
    assert!(refused.contains(shown), "{refused}");
    assert!(!refused.contains("receiver.knobs"), "{refused}");
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

const PASTED: &str = "\
The copy is slow since the update.

[  5] local 10.0.0.1 port 45670 connected to 10.0.0.2 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  1.12 MBytes  9.43 Mbits/sec   12   42.4 KBytes
[  5]   1.00-2.00   sec  1.05 MBytes  8.81 Mbits/sec   10   38.2 KBytes
[  5]   0.00-2.00   sec  2.17 MBytes  9.10 Mbits/sec   22             sender
[  5]   0.00-2.04   sec  2.10 MBytes  8.63 Mbits/sec                  receiver

rtt min/avg/max/mdev = 40.031/41.200/43.012/0.500 ms
";

#[test]
fn pasted_text_has_a_verdict_and_the_next_command() {
    let dir = TestDirectory::new("pasted_text_has_a_verdict");
    dir.write("report.txt", PASTED);
    let report = dir.run(&["diagnose", "report.txt"]).ok();
    for text in [
        "report.txt: pasted text of iperf, ping",
        "verdict: packets are lost or reordered: 22 retransmissions",
        "missing: what limits the sender",
        "next: sudo tcpdump -i any -s 128 -w transfer.pcap 'host 10.0.0.2 and tcp port 5201'",
    ] {
        assert!(report.contains(text), "{text}: {report}");
    }
    let refused = dir.run(&["diagnose", "report.txt", "--csv", "out.csv"]).refused();
    assert!(refused.contains("report.txt: pasted text has no connections"), "{refused}");
    let json = dir.run(&["diagnose", "report.txt", "--json"]).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["sections"][1]["kind"], "ping");
    assert!(json["causes"][0].as_str().unwrap().starts_with("packets are lost"), "{json}");
    assert!(json["missing"][0]["command"].is_string() && json["next"][0].is_string(), "{json}");
    // Standard input says the same, and a recording that comes there is one.
    let file = std::fs::File::open(dir.0.join("report.txt")).unwrap();
    let piped = dir.command(&["diagnose", "-"]).stdin(file).output().unwrap();
    let piped = String::from_utf8(piped.stdout).unwrap();
    assert_eq!(piped.replace("standard input", "report.txt"), report);
    let capture = std::fs::File::open(root("golden/linux/h1_rwnd_cubic/sender.pcap.xz")).unwrap();
    let piped = dir.command(&["diagnose", "-", "--no-cures"]).stdin(capture).output().unwrap();
    assert!(String::from_utf8(piped.stdout).unwrap().contains("CC401"));
    dir.write("from.toml", dir.run(&["scenario", "from", "report.txt"]).ok());
    dir.run(&["run", "from.toml"]).ok();
    dir.write("prose.txt", "It is slow.\n");
    let refused = dir.run(&["diagnose", "prose.txt"]).refused();
    assert!(refused.contains("expected a capture or a log of TCP or QUIC"), "{refused}");
    // Columns of tshark are not records of ERF.
    let columns = "    1 0.000000000     10.0.0.1 → 10.0.0.2     TCP 74 40000 → 5201 [SYN] Seq=0 Win=64240 Len=0\n    \
                   2 0.040000000     10.0.0.2 → 10.0.0.1     TCP 66 [TCP ZeroWindow] 5201 → 40000 [ACK] Seq=1 \
                   Ack=1 Win=0 Len=0\n";
    dir.write("columns.txt", columns);
    let report = dir.run(&["diagnose", "columns.txt"]).ok();
    assert!(report.contains("verdict: the receiver closes its window in 1 packets"), "{report}");
}

/// Texts are read wherever a file is: beside captures, in a folder, without a command.
#[test]
fn pasted_text_is_read_beside_other_files() {
    let dir = TestDirectory::new("pasted_text_is_read_beside");
    // One line of nstat does not make it a log of counters.
    let mixed = format!("{PASTED}\nTcpRetransSegs                  12                 0.0\n");
    dir.write("mixed.txt", &mixed);
    let report = dir.run(&["diagnose", "mixed.txt"]).ok();
    assert!(report.contains("mixed.txt: pasted text of iperf, ping, nstat"), "{report}");
    assert!(report.contains("verdict: packets are lost or reordered: 22 retransmissions"));
    let packets = "10:00:00.1 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 7, win 64240, length 0\n\
                   10:00:01.1 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 7, win 64240, length 0\n";
    dir.write("packets.txt", packets);
    let both = dir.run(&["diagnose", "mixed.txt", "packets.txt", "--no-cures"]).ok();
    assert!(both.contains("pasted text of iperf") && both.contains("CC002"), "{both}");
    // A list of JSON has the documents of captures, then those of texts; of texts alone, too.
    let json = dir.run(&["diagnose", "mixed.txt", "packets.txt", "--no-cures", "--json"]).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["file"], &json[1]["file"]), (&"packets.txt".into(), &"mixed.txt".into()));
    assert_eq!(json[1]["sections"][0]["kind"], "iperf");
    dir.write("other.txt", &mixed);
    let json = dir.run(&["diagnose", "mixed.txt", "other.txt", "--json"]).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["file"], &json[1]["file"]), (&"mixed.txt".into(), &"other.txt".into()));
    // tcpdump -t: what can be said without times.
    let untimed: String = packets.lines().map(|line| format!("{}\n", &line[11..])).collect();
    dir.write("untimed.txt", &untimed);
    let report = dir.run(&["diagnose", "untimed.txt"]).ok();
    assert!(
        report.contains("pasted text of tcpdump -t") && report.contains("without -t"),
        "{report}"
    );
    std::fs::create_dir(dir.0.join("texts")).unwrap();
    dir.write("texts/mixed.txt", &mixed);
    let folder = dir.run(&["diagnose", "texts"]).ok();
    assert!(folder.contains("texts/mixed.txt: pasted text of iperf"), "{folder}");
    let short = dir.run(&["mixed.txt"]);
    assert_eq!(short.code, 0);
    assert!(short.err.contains("mixed.txt is pasted text: ackclock diagnose mixed.txt"));
    // A quoted socket is a recording, and so is the text beside it; its figures make a scenario.
    let socket = "> ESTAB 0 31856 10.0.0.1:40001 10.0.0.2:5001\n> \t cubic wscale:10,10 rto:248 rtt:45.6/1.7 \
                  mss:1448 cwnd:170 bytes_sent:3000000 bytes_acked:2900000 data_segs_out:2098 delivery_rate \
                  4200000bps busy:7000ms rwnd_limited:6300ms(90.0%) minrtt:40.1\n";
    dir.write("ss.txt", socket);
    let report = dir.run(&["diagnose", "ss.txt"]).ok();
    assert!(report.contains("CC401") && !report.contains("damaged"), "{report}");
    let toml = dir.run(&["scenario", "from", "ss.txt"]).ok();
    assert!(toml.contains("rate = \"4410000bit/s\""), "{toml}");
    let beside = format!("{packets}\nrtt min/avg/max/mdev = 40.0/41.2/43.0/0.5 ms\n");
    dir.write("beside.txt", beside);
    let report = dir.run(&["diagnose", "beside.txt", "--no-cures"]).ok();
    assert!(report.contains("pasted text of ping") && !report.contains("missing:"), "{report}");
    let json = dir.run(&["diagnose", "beside.txt", "--no-cures", "--json"]).ok();
    let _: Value = serde_json::from_str(&json).unwrap();
}
