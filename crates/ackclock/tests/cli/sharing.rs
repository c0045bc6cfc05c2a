//! Links that follow rate traces, and fairness of flows.

use crate::test_directory::{SMALL, TestDirectory};

const LATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/fairness-late-comer.toml");

#[test]
fn a_rate_trace_is_found_relative_to_its_scenario() {
    let dir = TestDirectory::new("a_recording_lies_beside_its_scenario");
    let at = SMALL.find("link = {").unwrap();
    let end = at + SMALL[at..].find('}').unwrap();
    let text = format!(
        "{}link = {{ trace = \"up.trace\", buffer = \"99p\" {}",
        &SMALL[..at],
        &SMALL[end..]
    );
    std::fs::create_dir(dir.0.join("inner")).unwrap();
    dir.write("inner/small.toml", text);
    dir.write("inner/up.trace", "1\n2\n3\n");
    let printed = dir.run(&["run", "inner/small.toml"]).ok();
    assert!(printed.contains("path.0.forward.0  drop-tail"), "{printed}");
    dir.write("inner/up.trace", "1\n2\nthree\n");
    let wrong = dir.run(&["run", "inner/small.toml"]).refused();
    assert!(wrong.contains("up.trace:3: expected a whole number of milliseconds"), "{wrong}");
    std::fs::remove_file(dir.0.join("inner/up.trace")).unwrap();
    let wrong = dir.run(&["run", "inner/small.toml"]).refused();
    assert!(wrong.contains("cannot read inner/up.trace"), "{wrong}");
}

#[test]
fn runs_and_sweeps_report_fairness() {
    let dir = TestDirectory::new("sharing_is_reported_by_runs_and_sweeps");
    let run = |queue: &str| {
        let set = format!("path.link.queue={queue}");
        let printed = dir.run(&["run", LATE, "--json", "--set", &set]).ok();
        serde_json::from_str::<serde_json::Value>(&printed).unwrap()
    };
    let (plain, fq) = (run("drop-tail"), run("fq_codel"));
    let index = |run: &serde_json::Value| run["fairness"]["mean_jain_index"].as_f64().unwrap();
    let delay = |run: &serde_json::Value| run["links"][0]["delay_p95_s"].as_f64().unwrap();
    // A queue per flow shares evenly from the start (RFC 8290), and no flow waits for the other.
    assert!(index(&fq) > 0.98 && index(&plain) < 0.95, "{} {}", index(&fq), index(&plain));
    assert!(delay(&fq) < 0.02 && delay(&plain) > 0.03, "{} {}", delay(&fq), delay(&plain));
    assert!(fq["fairness"]["convergence_s"].as_f64().unwrap() <= 3.0, "{}", fq["fairness"]);
    // The seconds add up to all bytes read.
    for flow in [0, 1] {
        let seconds = fq["by_second"]["goodput_bps"][flow].as_array().unwrap();
        let bits: f64 = seconds.iter().map(|bits| bits.as_f64().unwrap()).sum();
        assert_eq!(bits as u64 / 8, fq["flows"][flow]["bytes"].as_u64().unwrap());
    }
    let axis = "path.link.queue=drop-tail,fq_codel";
    let set = ["--set", "duration=20s"];
    let args = [&["sweep", LATE, "-m", axis, "--out", "late"][..], &set].concat();
    dir.run(&args).ok();
    let table = ["table", "late", "--rows", "path.link.queue", "--value"];
    let cells = |value| dir.run(&[&table[..], &[value]].concat()).ok();
    assert!(cells("queue_delay_p95").contains("drop-tail"), "{}", cells("queue_delay_p95"));
    assert!(cells("mean_jain_index").lines().count() == 3, "{}", cells("mean_jain_index"));
    let csv = String::from_utf8(dir.read("late/runs.csv")).unwrap();
    assert!(
        csv.lines().next().unwrap().contains("share,latency_p50_s,latency_p95_s,latency_p99_s,"),
        "{csv}"
    );
}

const BUFFERBLOAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bufferbloat.toml");

/// Only the upload is a bulk transfer, so that no flows are compared.
#[test]
fn an_upload_delays_a_call_in_the_queue_that_is_shown() {
    let dir = TestDirectory::new("an_upload_delays_a_call");
    let args = ["run", BUFFERBLOAT, "--set", "duration=15s", "--queues", "queues.csv"];
    let text = dir.run(&args).ok();
    assert!(text.contains("one-way delay p50") && text.contains("round trip p50"), "{text}");
    assert!(!text.contains("Jain"), "{text}");
    let csv = String::from_utf8(dir.read("queues.csv")).unwrap();
    let (head, rows) = csv.split_once('\n').unwrap();
    assert_eq!(head, "time_s,link,delay_mean_s,delay_max_s,most_packets,most_bytes,lost");
    let bytes = |row: &str| row.split(',').nth(5).unwrap().parse::<u64>().unwrap();
    let most = rows.lines().filter(|row| row.contains("shared.up")).map(bytes).max().unwrap();
    // The buffer of 500 kB, and the packet in transmission.
    assert!((300_000..=501_500).contains(&most), "{most}");
    let json = dir.run(&[&args[..4], &["--json"]].concat()).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let seconds = json["by_second"]["links"][0]["most_bytes"].as_array().unwrap();
    assert_eq!(seconds.iter().filter_map(serde_json::Value::as_u64).max(), Some(most));
    let voice = &json["flows"][1];
    assert_eq!(voice["latency"]["of"], "datagrams");
    assert!(voice["one_way"]["p95_s"].as_f64().unwrap() > 0.2, "{voice}");
}

/// The reads of a program that is a host are no events of the run: its single seconds are unknown, and
/// nothing is concluded from them.
#[test]
#[cfg(target_os = "linux")]
fn the_seconds_of_a_reader_that_is_a_program_are_not_visible() {
    let dir = TestDirectory::new("the_seconds_of_a_program");
    let receiver = concat!(env!("CARGO_MANIFEST_DIR"), "/../guest/tests/receiver.py");
    let scenario = format!(
        r#"
duration = "20s"
[host.a]
profile = "linux-6.18"
[host.b]
profile = "linux-6.18"
guest = "{receiver}"
[host.c]
profile = "linux-6.18"
guest = "{receiver}"
[[path]]
from = "a"
to = "b"
forward = [{{ link = {{ rate = "10Mbit/s", buffer = "10MB" }} }}, {{ delay = "10ms" }}]
return = [{{ delay = "10ms" }}]
[[path]]
from = "a"
to = "c"
forward = [{{ link = {{ rate = "10Mbit/s", buffer = "10MB" }} }}, {{ delay = "10ms" }}]
return = [{{ delay = "10ms" }}]
[[flow]]
name = "first"
from = "a"
to = "b"
bulk = "2MB"
[[flow]]
name = "second"
from = "a"
to = "c"
bulk = "2MB"
"#
    );
    dir.write("program.toml", scenario);
    let args = ["run", "program.toml", "--allow-exec"];
    let text = dir.run(&args).ok();
    assert!(text.contains("; single seconds not visible\n"), "{text}");
    assert!(!text.contains("fair shares"), "{text}");
    let json = dir.run(&[&args[..], &["--json"]].concat()).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["by_second"]["goodput_bps"], serde_json::json!([null, null]));
    assert!(json["by_second"]["jain_index"][0].is_null(), "{}", json["by_second"]);
    let fairness = &json["fairness"];
    assert!(fairness["mean_jain_index"].is_null() && fairness["seconds_not_visible"] == true);
    assert!(json["flows"][0]["goodput_bps"].as_f64().unwrap() > 3e6, "{}", json["flows"][0]);
}
