//! Data files of flent, written by runs and read.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::test_directory::{SMALL, TestDirectory};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The text of a packed file.
fn unpacked(dir: &TestDirectory, name: &str) -> String {
    let mut text = String::new();
    GzDecoder::new(dir.read(name).as_slice()).read_to_string(&mut text).unwrap();
    text
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

#[test]
fn a_run_is_written_and_read() {
    let dir = TestDirectory::new("a_run_is_a_data_file_of_flent");
    dir.write("small.toml", SMALL);
    let run = |name: &str| dir.run(&["run", "small.toml", "--json", "--flent", name]).ok();
    let report: Value = serde_json::from_str(&run("small.flent.gz")).unwrap();
    let text = unpacked(&dir, "small.flent.gz");
    let data: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&data["version"], &data["metadata"]["NAME"]), (&4.into(), &"tcp_1up".into()));
    let rates = data["results"]["TCP upload"].as_array().unwrap();
    assert_eq!(rates.len(), data["x_values"].as_array().unwrap().len());
    assert_eq!(data["results"]["TCP upload::tcp_rtt"].as_array().unwrap().len(), rates.len());
    // All bytes are in the rates, each of 200 ms.
    let bits: f64 = rates.iter().map(|rate| rate.as_f64().unwrap() * 1e6 * 0.2).sum();
    let bytes = report["flows"][0]["bytes"].as_f64().unwrap();
    assert!((bits / 8.0 - bytes).abs() < 1_500.0, "{bits} bits, {bytes} bytes");
    // flent takes a name without .gz for a plain file; the same run gives the same file.
    run("small.flent");
    assert_eq!(String::from_utf8(dir.read("small.flent")).unwrap(), text);
    let shown = dir.run(&["read", "small.flent.gz"]).ok();
    assert_eq!(dir.run(&["read", "small.flent"]).ok(), shown);
    assert!(shown.contains("\nTCP upload ") && shown.contains("\n# limit: "), "{shown}");
}

#[test]
fn several_flows_have_a_sum() {
    let dir = TestDirectory::new("several_flows_are_a_data_file_of_flent");
    let scenario = format!("{ROOT}/scenarios/shared-bottleneck.toml");
    dir.run(&["run", &scenario, "--flent", "shared.flent.gz"]).ok();
    let data: Value = serde_json::from_str(&unpacked(&dir, "shared.flent.gz")).unwrap();
    assert_eq!(data["metadata"]["NAME"], "tcp_nup");
    let results = &data["results"];
    let at = |name: &str| results[name][5].as_f64().unwrap_or(0.0);
    let parts = at("TCP upload::1") + at("TCP upload::2") + at("TCP upload::3");
    assert!(parts > 1.0 && (at("TCP upload sum") - parts).abs() < 1e-9, "{parts}");
}

#[test]
fn a_standing_queue_is_the_limit() {
    let dir = TestDirectory::new("a_standing_queue_is_the_limit");
    let sample = format!("{ROOT}/docs/samples/bufferbloat.flent.gz");
    let lines = dir.run(&["read", &sample, "--json"]).ok();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["limit"]["code"], "queue");
    assert!(dir.run(&["read", &sample, "--csv"]).ok().contains("\"Ping (ms) ICMP\",ms,26,"));
    // Without the queue, and without pings.
    let mut data: Value = serde_json::from_str(&{
        let mut text = String::new();
        let file = std::fs::read(&sample).unwrap();
        GzDecoder::new(file.as_slice()).read_to_string(&mut text).unwrap();
        text
    })
    .unwrap();
    for (values, code) in [(Some(11.0), "no_queue"), (None, "unknown")] {
        data["results"]["Ping (ms) ICMP"] = vec![values; 26].into();
        dir.write("changed.flent.gz", packed(&data.to_string()));
        let shown = dir.run(&["read", "changed.flent.gz", "--json"]).ok();
        assert!(shown.contains(&format!("\"code\":\"{code}\"")), "{shown}");
    }
}

#[test]
fn damaged_and_misplaced_files_are_errors() {
    let dir = TestDirectory::new("damaged_data_files_of_flent");
    let damaged = "{\n  \"metadata\": {\"NAME\": \"rrul\"},\n  \"results\": {";
    dir.write("cut.flent.gz", packed(damaged));
    let error = dir.run(&["read", "cut.flent.gz"]).refused();
    assert!(error.contains("a data file of flent") && error.contains("line 3"), "{error}");
    let newer = "{\"metadata\": {}, \"results\": {}, \"version\": 5, \"x_values\": []}";
    dir.write("newer.flent.gz", packed(newer));
    assert!(dir.run(&["read", "newer.flent.gz"]).refused().contains("version 5"));
    let sample = format!("{ROOT}/docs/samples/bufferbloat.flent.gz");
    let error = dir.run(&["diagnose", &sample]).refused();
    assert!(error.contains(": ackclock read "), "{error}");
    // The command for the file is found by its content.
    assert!(dir.run(&[&sample]).out.contains("# limit: "));
}
