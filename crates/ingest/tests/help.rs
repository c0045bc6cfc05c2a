//! Help is chosen by the systems of the hosts and by what is in force there.

use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use ackclock_ingest::diagnosis::{DiagnosisReport, TextStyle};
use ackclock_ingest::inputs::InputFile;
use export::capture::PcapngRecorder;
use scenario::{Overrides, ReportStyle, load};
use serde_json::Value;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux")
}

fn diagnose(transfer: &str, end: &str) -> DiagnosisReport {
    let bytes = Box::new(File::open(golden().join(transfer).join(end)).unwrap());
    DiagnosisReport::read(vec![InputFile { name: transfer.to_owned(), bytes }], false).unwrap()
}

fn text(report: &DiagnosisReport) -> String {
    report.text(TextStyle { limit: 10, look: ReportStyle::Plain })
}

/// The hosts of all these captures are Linux with its defaults; at the sender the controller is found.
#[test]
fn help_of_linux_hosts_has_neither_settings_in_force_nor_those_of_other_systems() {
    let mut helped = 0;
    for entry in std::fs::read_dir(golden()).unwrap() {
        let transfer = entry.unwrap().file_name().into_string().unwrap();
        for end in ["sender.pcap.xz", "receiver.pcap.xz"] {
            if !golden().join(&transfer).join(end).exists() {
                continue;
            }
            let report = diagnose(&transfer, end);
            let text = text(&report);
            let help: Vec<_> = text.lines().filter(|line| line.contains("= help: ")).collect();
            helped += help.len();
            for line in &help {
                let is_router = line.contains("router") || line.contains("bottleneck");
                assert!(is_router || !line.contains("help: FreeBSD:"), "{transfer} {end}: {line}");
                assert!(!line.contains("tcp_recovery=1"), "{transfer} {end}: {line}");
                assert!(!line.contains("tcp_timestamps=1"), "{transfer} {end}: {line}");
                let is_cubic = transfer.ends_with("cubic") && end.starts_with("sender");
                let is_identified = text.contains("sends like linux-6.18 cubic:");
                assert!(
                    !(is_cubic && is_identified && line.contains("tcp_congestion_control=cubic")),
                    "{transfer} {end}: {line}"
                );
            }
        }
    }
    assert!(helped > 20, "{helped}");
}

#[test]
fn the_controller_found_decides_about_another_one() {
    for (transfer, is_advised) in [("f1_single_loss_reno", true), ("f2_few_losses_cubic", false)] {
        let report = diagnose(transfer, "sender.pcap.xz");
        // JSON has all help, and which of it applies.
        let json: Value = serde_json::from_str(&report.json(1)).unwrap();
        let findings = json["connections"][0]["findings"].as_array().unwrap();
        let found = findings.iter().find(|one| one["code"] == "CC205").unwrap();
        let [all, applicable] =
            ["help", "applicable_help"].map(|key| found[key].as_object().unwrap());
        assert!(["freebsd", "linux", "other"].iter().all(|system| all.contains_key(*system)));
        assert!(!applicable.contains_key("freebsd"), "{found:#}");
        assert_eq!(applicable.contains_key("linux"), is_advised, "{found:#}");
        assert_eq!(applicable["other"], "look for errors on the links if it happens again");
        let markdown = report.markdown(1);
        assert_eq!(markdown.contains("congestion\\_control=cubic"), is_advised, "{markdown}");
        // FreeBSD's remedy is the same controller.
        let is_folded = markdown.contains("- other systems: ackclock explain CC205\n");
        assert_eq!(is_folded, is_advised, "{markdown}");
    }
}

/// A transfer from FreeBSD to a receiver that does not permit window scaling.
fn without_scaling(receiver: &str, setting: &str) -> DiagnosisReport {
    let text = format!(
        r#"
title = "a window without a scale"
seed = 1
duration = "20s"
[host.sender]
profile = "freebsd-14.3"
[host.receiver]
profile = "{receiver}"
knobs = {{ "{setting}" = 0 }}
[[path]]
from = "sender"
to = "receiver"
forward = [{{ link = {{ rate = "50Mbit/s", buffer = "2000packets" }} }}, {{ delay = "30ms" }}]
return = [{{ delay = "30ms" }}]
[[flow]]
name = "upload"
from = "sender"
to = "receiver"
bulk = "4MB"
[[tap]]
host = "sender"
at = "stack"
"#
    );
    let loaded = load(&text, "scaling.toml", &Overrides::default()).unwrap();
    let mut seen = PcapngRecorder::new(&loaded.scenario, &[0], "", Vec::new()).unwrap();
    sim::run(&loaded.scenario, &mut seen).unwrap();
    let bytes = Box::new(Cursor::new(seen.finish().unwrap()));
    DiagnosisReport::read(vec![InputFile { name: "run".into(), bytes }], false).unwrap()
}

/// A larger buffer does not enlarge a window of 65,535 bytes without a scale.
#[test]
fn a_window_without_a_scale_is_not_cured_by_a_buffer() {
    for (receiver, setting) in
        [("linux-6.18", "net.ipv4.tcp_window_scaling"), ("freebsd-14.3", "net.inet.tcp.rfc1323")]
    {
        let text = text(&without_scaling(receiver, setting));
        assert!(text.contains("[CC401]"), "{text}");
        let cause = "the server's SYN-ACK does not permit window scaling";
        assert!(text.contains(cause), "{text}");
        assert!(!text.contains("recvbuf_max") && !text.contains("tcp_rmem"), "{text}");
        assert!(!text.contains("a buffer of at least"), "{text}");
        assert!(text.contains(&format!("window scaling: {setting}=1")), "{text}");
    }
}
