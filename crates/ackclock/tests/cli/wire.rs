//! `ackclock wire`: with the privilege to make network namespaces; without it these tests say why
//! they skip.
#![cfg(target_os = "linux")]

use std::process::Command;

use super::place::{Answer, Place, SMALL};

/// The answer, unless a privilege is lacking.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn privileged(answer: Answer) -> Option<Answer> {
    if answer.code == 2 && answer.err.contains("this takes CAP_") {
        eprintln!("skipped: {}", answer.err);
        return None;
    }
    Some(answer)
}

#[test]
fn a_transfer_on_the_wire_stands_beside_the_same_in_virtual_time() {
    let place = Place::new("a_transfer_on_the_wire_stands_beside");
    place.write("small.toml", SMALL);
    for command in ["send", "receive"] {
        let mut arguments = vec!["wire", command, "small.toml", "--json", "--csv", "rows.csv"];
        if command == "receive" {
            // A real sender has no NewReno of FreeBSD's.
            arguments.extend(["--set", "host.sender.profile=linux-6.18"]);
            arguments.extend(["--set", "host.sender.cc=cubic"]);
        }
        let Some(answer) = privileged(place.run(&arguments)) else { return };
        let json: serde_json::Value = serde_json::from_str(&answer.ok()).unwrap();
        assert_eq!(json["bytes"][0]["equal"], true);
        assert_eq!(json["flows"][0]["bytes"], 100_000);
        assert_eq!(json["flows"][0]["finished"], true);
        assert_eq!(json["timing"]["unproven"], 0);
        // 100 kB over 10 Mbit/s cannot take less than 80 ms and the way there and back.
        for who in [&json["flows"][0], &json["model"]["flows"][0]] {
            assert!(who["duration_s"].as_f64().unwrap() > 0.1, "{json:#}");
        }
        assert!(place.read("rows.csv").len() > 1_000);
    }
}

#[test]
fn captures_on_the_wire_have_nothing_wrong() {
    let place = Place::new("captures_on_the_wire_have_nothing_wrong");
    place.write("small.toml", SMALL);
    for (ip, command) in [("4", "send"), ("6", "receive")] {
        let arguments = ["wire", command, "--bytes", "1MB", "--ip", ip, "--pcap", "w.pcapng"];
        let Some(answer) = privileged(place.run(&arguments)) else { return };
        assert!(answer.ok().contains("as written"));
        let read =
            ["-r", "w.pcapng", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
        let wrong = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 \
                     || _ws.expert.severity == error";
        let mut tshark = Command::new("tshark");
        let Ok(found) = tshark.args(read).args(["-Y", wrong]).current_dir(&place.0).output() else {
            return;
        };
        assert!(found.status.success() && found.stdout.is_empty(), "{found:?}");
    }
}

#[test]
fn what_linux_does_not_have_is_refused_before_anything_is_made() {
    let place = Place::new("what_linux_does_not_have_is_refused");
    place.write("small.toml", SMALL);
    let err = place.run(&["wire", "receive", "small.toml"]).refused();
    let expected = "error: sender is real, and Linux has no \"newreno\"\n  \
                    help: --set host.sender.cc=reno, or cubic with a profile of Linux\n";
    assert_eq!(err, expected);
    let err = place.run(&["wire", "send", "--bytes", "5"]).refused();
    assert!(err.contains("expected a size"), "{err}");
    let err = place.run(&["wire", "send", "small.toml", "--ip", "6"]).refused();
    assert!(err.contains("cannot be used with"), "{err}");
}
