//! The findings in Wireshark, by tshark: the post-dissector, and comments by the extcap.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::outside::lines;
use crate::test_directory::TestDirectory;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A capture of two connections, decompressed, with its diagnosis.
fn diagnosed(name: &str, options: &[&str]) -> (TestDirectory, Value) {
    let dir = TestDirectory::new(name);
    let packed = Path::new(ROOT).join("golden/linux/k1_two_flows/sender.pcap.xz");
    dir.write("two.pcap.xz", std::fs::read(packed).unwrap());
    let mut xz = Command::new("xz");
    assert!(xz.args(["-d", "two.pcap.xz"]).current_dir(&dir.0).status().unwrap().success());
    let shown = dir.run(&[&["diagnose", "two.pcap", "--json"], options].concat()).ok();
    (dir, serde_json::from_str(&shown).unwrap())
}

/// First and last frame, and code, of each finding.
fn findings(report: &Value) -> Vec<(u64, u64, u64, String)> {
    let connections = report["connections"].as_array().unwrap().iter();
    connections
        .flat_map(|one| {
            one["findings"].as_array().unwrap().iter().map(|found| {
                let frame = |n: usize| found["frames"][n].as_u64().unwrap();
                let code = found["code"].as_str().unwrap().to_owned();
                (one["id"].as_u64().unwrap(), frame(0), frame(1), code)
            })
        })
        .collect()
}

#[test]
fn tshark_shows_findings_on_the_packets_they_concern() {
    let (dir, report) = diagnosed("tshark_shows_findings", &["--wireshark", "findings.lua"]);
    let read = ["-X", "lua_script:findings.lua", "-r", "two.pcap", "-T", "fields"];
    let fields = ["-e", "frame.number", "-e", "tcp.stream", "-e", "ackclock.code"];
    let Some(shown) = lines(&dir, "tshark", &[&read[..], &fields].concat()) else { return };
    let findings = findings(&report);
    assert!(findings.len() >= 4 && shown.len() > 10_000);
    for line in shown {
        let [frame, stream, codes] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let (frame, stream): (u64, u64) = (frame.parse().unwrap(), stream.parse().unwrap());
        let concerns =
            |one: &&(u64, u64, u64, String)| one.0 == stream && one.1 <= frame && frame <= one.2;
        let expected: Vec<&str> =
            findings.iter().filter(concerns).map(|one| one.3.as_str()).collect();
        assert_eq!(codes, expected.join(","), "frame {frame}");
    }
    let refused = dir.run(&["diagnose", "two.pcap", "two.pcap", "--wireshark", "x.lua"]).refused();
    assert!(refused.contains("expected one capture"), "{refused}");
}

#[test]
fn the_extcap_comments_the_first_packet_of_each_finding() {
    let (dir, report) = diagnosed("the_extcap_comments", &[]);
    let extcap = format!("{ROOT}/packaging/wireshark/ackclock-extcap");
    let program = env!("CARGO_BIN_EXE_ackclock");
    let call = |arguments: &str| {
        let line = format!("ACKCLOCK='{program}' sh '{extcap}' {arguments}");
        lines(&dir, "sh", &["-c", &line]).unwrap()
    };
    assert!(call("--extcap-interfaces")[1].starts_with("interface {value=ackclock}"));
    assert!(call("--extcap-interface ackclock --extcap-dlts")[0].starts_with("dlt {number="));
    assert!(call("--extcap-interface ackclock --extcap-config")[0].contains("{call=--file}"));
    if lines(&dir, "editcap", &["--version"]).is_none() {
        return;
    }
    call("--capture --extcap-interface ackclock --fifo out.pcapng --file two.pcap");
    let read = ["-r", "out.pcapng", "-Y", "frame.comment", "-T", "fields"];
    let fields = ["-e", "frame.number", "-e", "frame.comment"];
    let shown = lines(&dir, "tshark", &[&read[..], &fields].concat()).unwrap();
    for (stream, first, last, code) in findings(&report) {
        let of_frame = shown.iter().find(|line| line.starts_with(&format!("{first}\t")));
        let comment = of_frame.unwrap_or_else(|| panic!("no comment on {first}: {shown:?}"));
        assert!(comment.contains(&format!("{code}: ")), "{comment}");
        assert!(comment.contains(&format!("(tcp.stream {stream}, to frame {last})")), "{comment}");
    }
}
