//! Tests of the formats of other tools: JUnit, SARIF, Markdown, OpenMetrics.

use std::path::Path;

use serde_json::Value;

use crate::test_directory::{SMALL, TestDirectory};

fn root(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file).display().to_string()
}

const FEW_LOSSES: &str = "golden/linux/f2_few_losses_cubic/sender.pcap.xz";
const HEALTHY: &str = "golden/linux/l1_healthy_cubic/sender.pcap.xz";

fn text(dir: &TestDirectory, name: &str) -> String {
    String::from_utf8(dir.read(name)).unwrap()
}

#[test]
fn a_diagnosis_as_junit_fails_by_severity_or_code() {
    let dir = TestDirectory::new("a_diagnosis_as_junit");
    let [losses, healthy] = [FEW_LOSSES, HEALTHY].map(root);
    // CC205 costs most of the transfer of one capture; the other has no warning. CC102 is a note.
    for (fail_on, message) in [(None, "CC205: "), (Some("CC102"), "CC102: ")] {
        let mut arguments = vec!["diagnose", &losses, &healthy, "--junit", "out.xml"];
        arguments.extend(fail_on.iter().flat_map(|on| ["--fail-on", on]));
        let code = dir.run(&arguments).code;
        assert_eq!(code, i32::from(fail_on.is_some()), "{fail_on:?}");
        let xml = text(&dir, "out.xml");
        assert!(xml.contains("tests=\"2\" failures=\"1\""), "{fail_on:?}: {xml}");
        assert_eq!(xml.matches(&format!("<failure message=\"{message}")).count(), 1, "{xml}");
    }
}

#[test]
fn a_diagnosis_as_sarif_has_every_finding_of_the_json() {
    let dir = TestDirectory::new("a_diagnosis_as_sarif");
    let capture = std::fs::read(root(FEW_LOSSES)).unwrap();
    dir.write("a b.pcap.xz", capture);
    let json = dir.run(&["diagnose", "a b.pcap.xz", "--json", "--sarif", "out.sarif"]).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    let sarif: Value = serde_json::from_slice(&dir.read("out.sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let results = run["results"].as_array().unwrap();
    let findings = json["connections"][0]["findings"].as_array().unwrap();
    assert_eq!(results.len(), findings.len());
    for (result, finding) in results.iter().zip(findings) {
        assert_eq!(result["ruleId"], finding["code"]);
        assert_eq!(result["level"], finding["severity"]);
        let number = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(run["tool"]["driver"]["rules"][number]["id"], finding["code"]);
        for key in ["evidence", "frames", "cost_s", "filter"] {
            assert_eq!(result["properties"][key], finding[key], "{key}");
        }
        let file = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(file, "a%20b.pcap.xz");
    }
}

#[test]
fn a_diagnosis_as_markdown_names_cause_and_cure() {
    let dir = TestDirectory::new("a_diagnosis_as_markdown");
    dir.run(&["diagnose", &root(FEW_LOSSES), "--markdown", "out.md"]).ok();
    let page = text(&dir, "out.md");
    assert!(page.contains("| CC205 isolated loss |"), "{page}");
    assert!(page.contains("- **general**: look for errors on the links"), "{page}");
}

/// Each format has the cures with the time without and with them, for the primary finding only.
#[test]
fn cures_are_in_every_format() {
    let dir = TestDirectory::new("cures_are_in_every_format");
    let capture = root("golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let outputs = [
        "--sarif",
        "out.sarif",
        "--markdown",
        "out.md",
        "--junit",
        "out.xml",
        "--report",
        "out.html",
    ];
    let json = dir.run(&[&["diagnose", &capture, "--json"], &outputs[..]].concat()).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    let cures = &json["connections"][0]["cures"];
    let cure = "receiver: net.ipv4.tcp_rmem=\"4096 131072 6291456\": 3.27 s -> ";
    let sarif: Value = serde_json::from_slice(&dir.read("out.sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(&result["properties"]["cures"], cures);
    let message = result["message"]["text"].as_str().unwrap();
    assert!(message.contains(&format!(". Cure: {cure}")), "{message}");
    let page = text(&dir, "out.md");
    let escaped = cure.replace('_', "\\_").replace('>', "\\>");
    assert!(page.contains(&format!("\n- **cure**: {escaped}")), "{page}");
    let answer =
        "\n\n**limited by the receiver's window at a cost of 78 % of the time at work; cure at ";
    assert!(page.contains(answer), "{page}");
    let xml = text(&dir, "out.xml");
    let escaped = cure.replace('"', "&quot;").replace('>', "&gt;");
    assert!(xml.contains(&format!("  cure: {escaped}")), "{xml}");
    let page = text(&dir, "out.html");
    for part in ["Limited by the receiver", "with receiver: net.ipv4.tcp_rmem"] {
        assert!(page.contains(part), "{part}");
    }
    // Without cures in none, and not beside findings that are not primary.
    dir.run(&[&["diagnose", &capture, "--no-cures"], &outputs[..]].concat()).ok();
    for name in ["out.sarif", "out.md", "out.xml", "out.html"] {
        let lower = text(&dir, name).to_lowercase();
        assert!(!lower.contains("cures") && !lower.contains("cure: receiver"), "{name}");
    }
    dir.run(&["diagnose", &root(FEW_LOSSES), "--sarif", "out.sarif"]).ok();
    let sarif: Value = serde_json::from_slice(&dir.read("out.sarif")).unwrap();
    for result in sarif["runs"][0]["results"].as_array().unwrap() {
        let properties = &result["properties"];
        assert_eq!(properties["primary"], properties.get("cures").is_some(), "{result:#}");
    }
}

#[test]
fn outputs_do_not_overwrite_each_other_or_an_input() {
    let dir = TestDirectory::new("outputs_do_not_overwrite_each_other");
    dir.write("a.pcap.xz", std::fs::read(root(HEALTHY)).unwrap());
    let same = ["diagnose", "a.pcap.xz", "--junit", "out", "--sarif", "out"];
    assert!(dir.run(&same).refused().contains("two outputs write out"));
    let input = ["diagnose", "a.pcap.xz", "--openmetrics", "a.pcap.xz"];
    assert!(dir.run(&input).refused().contains("a.pcap.xz is an input file"));
    assert_eq!(dir.files(), ["a.pcap.xz"]);
}

/// One line for each flow in each family, with the figures of the JSON.
#[test]
fn openmetrics_of_a_run_has_the_figures_of_the_json() {
    let dir = TestDirectory::new("openmetrics_of_a_run");
    dir.write("small.toml", SMALL);
    let json = dir.run(&["run", "small.toml", "--json", "--openmetrics", "out.txt"]).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    let metrics = text(&dir, "out.txt");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let value = |name: &str| -> f64 {
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{"))).unwrap();
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    let flow = &json["flows"][0];
    for (name, key) in [
        ("ackclock_flow_goodput_bits_per_second", "goodput_bps"),
        ("ackclock_flow_duration_seconds", "duration_s"),
        ("ackclock_flow_payload_bytes", "bytes"),
        ("ackclock_flow_min_rtt_seconds", "min_rtt_s"),
    ] {
        assert_eq!(Some(value(name)), flow[key].as_f64(), "{name}");
    }
}
