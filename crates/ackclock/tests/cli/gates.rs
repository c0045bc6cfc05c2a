//! Tests of `diagnose` as a gate of CI: what fails it, and what it judges first.

use std::path::Path;

use serde_json::Value;

use crate::test_directory::TestDirectory;

fn root(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file).display().to_string()
}

const HEALTHY: &str = "golden/linux/l1_healthy_cubic/sender.pcap.xz";
const SLOW: &str = "golden/linux/h1_rwnd_cubic/sender.pcap.xz";

const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A capture of IPv4 packets without link headers.
#[derive(Debug, Default)]
struct RawCapture {
    packets: Vec<(u64, Vec<u8>)>,
}

impl RawCapture {
    fn ip(&mut self, us: u64, protocol: u8, (from, to): (u8, u8), payload: &[u8]) {
        let len = (20 + payload.len()) as u16;
        let mut packet = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, from, 10, 0, 0, to]);
        packet.extend(payload);
        self.packets.push((us, packet));
    }

    fn udp(&mut self, us: u64) {
        self.ip(us, 17, (1, 2), &[0x9c, 0x40, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
    }

    /// A segment of the client at 10.0.0.1 from `ports.0` to `ports.1` of 10.0.0.2, or the reverse.
    fn tcp(
        &mut self,
        us: u64,
        (client, server): (u16, u16),
        is_reverse: bool,
        (flags, seq, ack): (u8, u32, u32),
        payload: usize,
    ) {
        let (from, to) = if is_reverse { (server, client) } else { (client, server) };
        let mut segment = Vec::new();
        segment.extend(from.to_be_bytes());
        segment.extend(to.to_be_bytes());
        segment.extend(seq.to_be_bytes());
        segment.extend(ack.to_be_bytes());
        segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(vec![0; payload]);
        self.ip(us, 6, if is_reverse { (2, 1) } else { (1, 2) }, &segment);
    }

    fn refused(&mut self, us: u64, ports: (u16, u16)) {
        self.tcp(us, ports, false, (SYN, 0, 0), 0);
        self.tcp(us + 20_000, ports, true, (RST | ACK, 0, 1), 0);
    }

    /// A connection whose first SYN is lost.
    fn slow_to_open(&mut self, us: u64, ports: (u16, u16)) {
        self.tcp(us, ports, false, (SYN, 0, 0), 0);
        let us = us + 1_000_000;
        self.tcp(us, ports, false, (SYN, 0, 0), 0);
        self.tcp(us + 20_000, ports, true, (SYN | ACK, 0, 1), 0);
        self.tcp(us + 20_010, ports, false, (ACK, 1, 1), 0);
        for n in 0..4 {
            let (at, seq) = (us + 20_020 + n * 20_100, 1 + n as u32 * 1_000);
            self.tcp(at, ports, false, (ACK, seq, 1), 1_000);
            self.tcp(at + 20_000, ports, true, (ACK, 1, seq + 1_000), 0);
        }
    }

    fn pcap(mut self) -> Vec<u8> {
        self.packets.sort_by_key(|packet| packet.0);
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
            file.extend(word.to_le_bytes());
        }
        for (us, packet) in self.packets {
            let len = packet.len() as u32;
            for word in [(us / 1_000_000) as u32, (us % 1_000_000) as u32, len, len] {
                file.extend(word.to_le_bytes());
            }
            file.extend(packet);
        }
        file
    }
}

fn capture(fill: impl FnOnce(&mut RawCapture)) -> Vec<u8> {
    let mut capture = RawCapture::default();
    fill(&mut capture);
    capture.pcap()
}

/// A gate that nothing has passed through is not passed.
#[test]
fn a_gate_does_not_pass_on_nothing() {
    let dir = TestDirectory::new("a_gate_does_not_pass_on_nothing");
    dir.write("udp.pcap", capture(|all| (0..9).for_each(|n| all.udp(n * 1_000))));
    dir.write(
        "oneway.pcap",
        capture(|all| {
            let send = |n: u32| (u64::from(n) * 1_000, (ACK, 1 + n * 1_000, 1));
            let mut push = |(us, header)| all.tcp(us, (40_000, 80), false, header, 1_000);
            (0..40).map(send).for_each(&mut push);
        }),
    );
    dir.write(
        "empty.sqlog",
        "\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n\
         \u{1e}{\"time\":1,\"name\":\"transport:parameters_set\",\"data\":{\"owner\":\"local\"}}\n",
    );
    let [healthy, slow] = [HEALTHY, SLOW].map(root);
    for (files, on, reason) in [
        (vec!["udp.pcap"], "error", "udp.pcap: it has no connection of TCP or QUIC"),
        (vec!["oneway.pcap"], "error", "oneway.pcap: its connection is packets of one host only"),
        (vec!["empty.sqlog"], "note", "empty.sqlog: its connection is a log without packets"),
        (vec![&healthy, "udp.pcap"], "warning", "udp.pcap: it has no connection of TCP or QUIC"),
        (vec![&healthy], "CC811", "none of the selected connections can have such a finding"),
    ] {
        let mut arguments = vec!["diagnose"];
        arguments.extend(files);
        assert_eq!(dir.run(&arguments).code, 0, "{arguments:?}");
        arguments.extend(["--fail-on", on]);
        let answer = dir.run(&arguments);
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.out);
        let expected = format!("--fail-on: nothing was judged: {reason}");
        assert!(answer.err.contains(&expected), "{arguments:?}: {}", answer.err);
        assert!(!answer.out.is_empty());
    }
    // A finding that meets the condition is an answer.
    assert_eq!(dir.run(&["diagnose", &slow, "udp.pcap", "--fail-on", "error"]).code, 1);
    assert_eq!(dir.run(&["diagnose", &healthy, "--port", "1", "--fail-on", "error"]).code, 2);
}

#[test]
fn files_of_ci_name_what_was_not_judged() {
    let dir = TestDirectory::new("files_of_ci_name_what_was_not_judged");
    dir.write("udp.pcap", capture(|all| all.udp(0)));
    dir.run(&["diagnose", "udp.pcap", "--junit", "out.xml", "--sarif", "out.sarif"]).ok();
    let xml = String::from_utf8(dir.read("out.xml")).unwrap();
    assert!(xml.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{xml}");
    assert!(xml.contains("nothing was judged: it has no connection of TCP or QUIC"), "{xml}");
    let sarif: Value = serde_json::from_slice(&dir.read("out.sarif")).unwrap();
    let invocation = &sarif["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false, "{sarif:#}");
    assert_eq!(invocation["toolExecutionNotifications"][0]["level"], "error");
    let healthy = root(HEALTHY);
    dir.run(&["diagnose", &healthy, "--junit", "out.xml", "--sarif", "out.sarif"]).ok();
    let sarif: Value = serde_json::from_slice(&dir.read("out.sarif")).unwrap();
    assert_eq!(sarif["runs"][0]["invocations"], Value::Null);
}

/// Failed connections come first in every output, although the others lost more time.
#[test]
fn failed_connections_come_first() {
    let dir = TestDirectory::new("failed_connections_come_first");
    dir.write(
        "mixed.pcap",
        capture(|all| {
            all.slow_to_open(0, (40_000, 80));
            all.slow_to_open(100_000, (40_001, 80));
            all.refused(200_000, (40_002, 5_432));
            all.refused(300_000, (40_003, 5_432));
        }),
    );
    let files = ["--json", "--sarif", "out.sarif", "--csv", "out.csv", "--report", "out.html"];
    let json = dir.run(&[&["diagnose", "mixed.pcap"][..], &files].concat()).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    let primaries = |json: &Value| -> Vec<String> {
        let connections = json["connections"].as_array().unwrap().iter();
        connections.map(|one| one["primary"].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert_eq!(primaries(&json), ["CC001", "CC001", "CC204", "CC204"], "{json:#}");
    assert_eq!(json["groups"][0]["code"], "CC001");
    let text = dir.run(&["diagnose", "mixed.pcap"]).ok();
    let summary = "summary: 2 failed, 2 limited by a finding, 0 without one above a note\n  \
                   2 connections to 10.0.0.2:5432: CC001 connection refused";
    assert!(text.contains(summary), "{text}");
    let rows: Vec<_> = text.lines().filter(|line| line.contains(" > 10.0.0.2:")).collect();
    assert!(rows[0].ends_with("CC001 connection refused"), "{text}");
    let opening = "CC204 retransmission timeout or blackout: a lost SYN";
    assert!(rows[2].ends_with(opening), "{text}");
    let csv = String::from_utf8(dir.read("out.csv")).unwrap();
    assert!(csv.lines().nth(1).unwrap().contains("CC001"), "{csv}");
    let sarif: Value = serde_json::from_slice(&dir.read("out.sarif")).unwrap();
    let first = &sarif["runs"][0]["results"][0];
    assert_eq!(
        (&first["ruleId"], &first["properties"]["primary"]),
        (&"CC001".into(), &true.into())
    );
    let page = String::from_utf8(dir.read("out.html")).unwrap();
    assert!(page.find("CC001 connection refused") < page.find("CC204 retransmission"));
    // Several files.
    dir.write("refused.pcap", capture(|all| all.refused(0, (40_002, 5_432))));
    let text = dir.run(&["diagnose", &root(SLOW), "refused.pcap", "--limit", "0"]).ok();
    let expected = "2 files, failed connections first, then the costliest\n  \
                    20.0 ms  refused.pcap flow 0: CC001 connection refused\n";
    let (answer, rest) = text.split_once("\n\n").unwrap();
    assert!(rest.starts_with(expected), "{text}");
    let failed = "the worst connection, flow 0 of refused.pcap, failed: the connection was refused";
    assert!(answer.starts_with(failed), "{answer}");
}
