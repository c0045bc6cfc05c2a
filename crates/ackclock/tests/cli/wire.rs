//! Tests of `ackclock wire`, which need the privilege to create network namespaces; without it they
//! print why they are skipped.
#![cfg(target_os = "linux")]

use std::process::Command;

use super::test_directory::{CommandOutput, SMALL, TestDirectory};

/// The output, unless a privilege is lacking.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub(super) fn privileged(answer: CommandOutput) -> Option<CommandOutput> {
    if answer.code == 2 && answer.err.contains("this needs CAP_") {
        eprintln!("skipped: {}", answer.err);
        return None;
    }
    Some(answer)
}

#[test]
fn a_transfer_on_the_wire_is_shown_with_its_simulation() {
    let dir = TestDirectory::new("a_transfer_on_the_wire_stands_beside");
    dir.write("small.toml", SMALL);
    for command in ["send", "receive"] {
        let mut arguments = vec!["wire", command, "small.toml", "--json", "--csv", "rows.csv"];
        if command == "receive" {
            // A real sender does not have FreeBSD's NewReno.
            arguments.extend(["--set", "host.sender.profile=linux-6.18"]);
            arguments.extend(["--set", "host.sender.cc=cubic"]);
        }
        let Some(answer) = privileged(dir.run(&arguments)) else { return };
        let json: serde_json::Value = serde_json::from_str(&answer.ok()).unwrap();
        assert_eq!(json["bytes"][0]["equal"], true);
        assert_eq!(json["flows"][0]["bytes"], 100_000);
        assert_eq!(json["flows"][0]["finished"], true);
        assert_eq!(json["timing"]["unproven"], 0);
        // 100 kB over 10 Mbit/s take at least 80 ms and a round trip.
        for who in [&json["flows"][0], &json["model"]["flows"][0]] {
            assert!(who["duration_s"].as_f64().unwrap() > 0.1, "{json:#}");
        }
        assert!(dir.read("rows.csv").len() > 1_000);
    }
}

#[test]
fn captures_on_the_wire_have_no_errors() {
    let dir = TestDirectory::new("captures_on_the_wire_have_nothing_wrong");
    dir.write("small.toml", SMALL);
    for (ip, command) in [("4", "send"), ("6", "receive")] {
        let arguments = ["wire", command, "--bytes", "1MB", "--ip", ip, "--pcap", "w.pcapng"];
        let Some(answer) = privileged(dir.run(&arguments)) else { return };
        assert!(answer.ok().contains("as written"));
        let read =
            ["-r", "w.pcapng", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
        // Random payload may begin as a message of Thrift does, by which tshark would know it.
        let read = read.into_iter().chain(["--disable-protocol", "thrift"]);
        let wrong = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 \
                     || _ws.expert.severity == error";
        let mut tshark = Command::new("tshark");
        let Ok(found) = tshark.args(read).args(["-Y", wrong]).current_dir(&dir.0).output() else {
            return;
        };
        assert!(found.status.success() && found.stdout.is_empty(), "{found:?}");
    }
}

#[test]
fn a_page_compares_a_real_sender_with_the_model() {
    let dir = TestDirectory::new("a_real_sender_stands_beside_the_model");
    dir.write("small.toml", SMALL);
    let mut arguments = vec!["wire", "compare", "small.toml", "--report", "page.html", "--json"];
    for host in ["sender", "sink"] {
        arguments.push("--set");
        arguments.push(if host == "sender" {
            "host.sender={ profile = \"linux-6.18\", cc = \"reno\" }"
        } else {
            "host.sink={ profile = \"linux-6.18\" }"
        });
    }
    let Some(answer) = privileged(dir.run(&arguments)) else { return };
    let json: serde_json::Value = serde_json::from_str(&answer.ok()).unwrap();
    let page = String::from_utf8(dir.read("page.html")).unwrap();
    assert!(page.contains("a real sender and the model"), "{page:.500}");
    // The page shows the figure of the report.
    let of = |who: &serde_json::Value| who["flows"][0]["goodput_bps"].as_f64().unwrap();
    let percent = (of(&json) / of(&json["model"]) - 1.0) * 100.0;
    assert!(page.contains(&format!("{percent:+.1} %")), "{percent}");
    assert!(page.contains("99 % at most"));
}

#[test]
fn a_link_gives_hosts_their_congestion_control() {
    let dir = TestDirectory::new("a_link_gives_hosts_their_congestion_control");
    dir.write("small.toml", SMALL);
    let own = "cat /proc/sys/net/ipv4/tcp_congestion_control";
    let (sender, sink) = (format!("sender={own}"), format!("sink={own}"));
    let mut link = vec!["wire", "link", "small.toml", "--run", &sender, "--run", &sink];
    link.extend(["--set", "host.sender={ profile = \"linux-6.18\", cc = \"reno\" }"]);
    link.extend(["--set", "host.sink={ profile = \"linux-6.18\", cc = \"reno\" }"]);
    let Some(answer) = privileged(dir.run(&link)) else { return };
    assert!(answer.ok().starts_with("reno\nreno\n"));
    link.extend(["--set", "host.sender.cc=cubic-rfc9438"]);
    let refused = dir.run(&link).refused();
    assert!(
        refused.contains("sender is real, and Linux lacks the `cubic` of its profile"),
        "{refused}"
    );
}

/// Network namespaces of the processes that have `tag` in their environment.
fn namespaces_of(tag: &str) -> Vec<String> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        if !String::from_utf8_lossy(&environment).contains(tag) {
            continue;
        }
        let tasks = std::fs::read_dir(process.path().join("task")).into_iter().flatten();
        for task in tasks.filter_map(Result::ok) {
            let space = std::fs::read_link(task.path().join("ns/net")).unwrap_or_default();
            found.push(space.to_string_lossy().into_owned());
        }
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn another_user_than_root_gets_real_hosts_or_an_error_with_the_missing_privilege() {
    // A copy that every user can read, in a directory that every user can enter.
    let program = std::env::temp_dir().join(format!("ackclock-{}", std::process::id()));
    std::fs::copy(env!("CARGO_BIN_EXE_ackclock"), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    command.args(["wire", "send", "--bytes", "1MB"]).current_dir("/");
    let answer = command.output();
    std::fs::remove_file(&program).unwrap();
    let Ok(answer) = answer else { return };
    let (out, err) =
        (String::from_utf8_lossy(&answer.stdout), String::from_utf8_lossy(&answer.stderr));
    if err.starts_with("setpriv") {
        // Not root, or the tool is missing: nothing to test.
        return;
    }
    assert!(!err.contains("Invalid argument"), "{err}");
    match answer.status.code() {
        Some(0) => assert!(out.contains("as written"), "{out}"),
        Some(2) => assert!(err.contains("this needs CAP_"), "{err}"),
        other => panic!("{other:?}: {err}"),
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real hosts take real time to come up")]
fn real_hosts_are_removed_after_ctrl_c_and_after_a_kill() {
    let dir = TestDirectory::new("nothing_is_left_of_real_hosts");
    dir.write("small.toml", SMALL);
    let own = std::fs::read_link("/proc/self/ns/net").unwrap().to_string_lossy().into_owned();
    let devices = || std::fs::read_to_string("/proc/self/net/dev").unwrap().lines().count();
    let before = devices();
    for (signal, status) in [("INT", Some(130)), ("KILL", None)] {
        let tag = format!("ACKCLOCK_TEST_WIRE={}-{signal}", std::process::id());
        let (name, value) = tag.split_once('=').unwrap();
        let mut link = dir.command(&["wire", "link", "small.toml", "--set", "duration=60s"]);
        let link = link.env(name, value).stdout(std::process::Stdio::null());
        let mut link = link.stderr(std::process::Stdio::null()).spawn().unwrap();
        // Its hosts exist once its threads are in their own namespaces.
        let mut there = false;
        for _ in 0..300 {
            there = namespaces_of(&tag).iter().filter(|space| **space != own).count() >= 2;
            if there || link.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        if !there {
            let answer = dir.run(&["wire", "link", "small.toml", "--set", "duration=1ms"]);
            assert!(privileged(answer).is_none(), "no real host came up");
            return;
        }
        let pid = link.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let ended = link.wait().unwrap();
        assert_eq!(ended.code(), status, "{signal}");
        assert!(namespaces_of(&tag).is_empty(), "{signal}");
        assert_eq!(devices(), before, "{signal}: outside nothing was ever touched");
    }
}

/// Number of processes with `tag` in their environment.
fn processes_of(tag: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let has = |process: &std::fs::DirEntry| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(tag)
    };
    processes.filter(has).count()
}

/// The commands start a child of the shell, a daemon in its own session, and a process that ignores
/// signals.
#[test]
#[expect(clippy::disallowed_methods, reason = "real hosts take real time to come up")]
fn processes_of_a_link_end_with_it() {
    let dir = TestDirectory::new("what_a_link_has_started_goes_with_it");
    dir.write("small.toml", SMALL);
    let second = std::time::Duration::from_secs(1);
    for (signal, status) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let tag = format!("ACKCLOCK_TEST_LINK={}-{signal}", std::process::id());
        let (name, value) = tag.split_once('=').unwrap();
        let lines = [
            "sender=sleep 987 & setsid sleep 987 & wait",
            "sink=trap '' INT TERM; (setsid sh -c 'trap \"\" INT TERM; sleep 987; true' &) ; sleep 987; true",
        ];
        let mut link =
            dir.command(&["wire", "link", "small.toml", "--run", lines[0], "--run", lines[1]]);
        link.args(["--set", "duration=60s"]).env(name, value).stdout(std::process::Stdio::null());
        let mut link = link.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let mut there = 0;
        for _ in 0..300 {
            there = processes_of(&tag);
            // Four sleeping processes, shells above three of them, two that hold the namespaces,
            // and the command.
            if there >= 8 || link.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        if there < 8 {
            let answer = dir.run(&["wire", "link", "small.toml", "--set", "duration=1ms"]);
            assert!(privileged(answer).is_none(), "{there} processes came up");
            return;
        }
        let pid = link.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        assert_eq!(link.wait().unwrap().code(), status, "{signal}");
        // After a KILL the kernel cleans up, a little later.
        for _ in 0..100 {
            if processes_of(&tag) == 0 {
                break;
            }
            std::thread::sleep(second / 50);
        }
        assert_eq!((processes_of(&tag), namespaces_of(&tag)), (0, vec![]), "{signal}");
    }
}

#[test]
fn unsupported_congestion_control_is_refused_before_anything_is_created() {
    let dir = TestDirectory::new("what_linux_does_not_have_is_refused");
    dir.write("small.toml", SMALL);
    let err = dir.run(&["wire", "receive", "small.toml"]).refused();
    let expected = "error: sender is real, and Linux lacks the `newreno` of its profile\n  \
                    help: --set host.sender.cc=reno, or cubic with a Linux profile\n";
    assert_eq!(err, expected);
    let err = dir.run(&["wire", "send", "--bytes", "5"]).refused();
    assert!(err.contains("expected a size"), "{err}");
    let err = dir.run(&["wire", "send", "small.toml", "--ip", "6"]).refused();
    assert!(err.contains("cannot be used with"), "{err}");
}
