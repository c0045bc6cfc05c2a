//! Files that are no ordinary ones: what is read of them, what becomes of those that are written.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::{Place, SMALL};

fn with_trace(name: &str) -> String {
    let link = "link = { rate = \"10Mbit/s\", buffer = \"100p\" }";
    let text = SMALL.replace(link, &format!("link = {{ trace = \"{name}\", buffer = \"100p\" }}"));
    assert_ne!(text, SMALL);
    text
}

#[expect(clippy::disallowed_methods, reason = "what hangs is found by wall-clock time")]
fn ends_within(mut child: Child, limit: Duration) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[test]
fn what_another_file_holds_is_not_printed() {
    let place = Place::new("what_another_file_holds_is_not_printed");
    place.write("secret", "root:$6$topsecret:19000:0:99999:7:::\n");
    place.write("numbers", "4711\n42\n");
    place.write("secret.sh", "topsecret 4711\n");
    place.write("a.pkt", "0 `./secret.sh`\n");
    for (name, said) in [("secret", "secret:1: expected"), ("numbers", "numbers:2: this moment")] {
        place.write("a.toml", with_trace(name));
        let refused = place.run(&["run", "a.toml"]).refused();
        assert!(refused.contains(said), "{refused}");
        assert!(!refused.contains("topsecret") && !refused.contains("4711"), "{refused}");
    }
    let script = place.run(&["packetdrill", "a.pkt"]);
    assert!(!(script.out + &script.err).contains("topsecret"));
}

#[test]
fn pipes_and_devices_are_refused_at_once() {
    let place = Place::new("pipes_and_devices_are_refused_at_once");
    assert!(Command::new("mkfifo").arg(place.0.join("pipe")).status().unwrap().success());
    assert!(Command::new("mkfifo").arg(place.0.join("pipe.sh")).status().unwrap().success());
    place.write("a.pkt", "0 `./pipe.sh`\n");
    let names = ["pipe", "/dev/zero", "."];
    for (number, name) in names.into_iter().enumerate() {
        let file = format!("{number}.toml");
        place.write(&file, with_trace(name));
        for arguments in [
            &["run", file.as_str()][..],
            &["run", name],
            &["scenario", "check", name],
            &["sweep", name],
            &["import-ini", name],
            &["packetdrill", name],
            &["diagnose", name],
            &["whatif", name],
            &["scenario", "from", name],
            &["read", name],
        ] {
            if arguments == ["packetdrill", "."] {
                // It is to have a directory of scripts.
                continue;
            }
            let mut command = place.command(arguments);
            let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let code = ends_within(child, Duration::from_secs(20));
            assert_eq!(code, Some(2), "{name}: {arguments:?}");
        }
    }
    // A script that names one has no such file.
    let script = place.run(&["packetdrill", "a.pkt"]);
    assert!(script.err.contains("there is no file `./pipe.sh`"), "{}", script.err);
    let refused = place.run(&["run", "0.toml"]).refused();
    assert!(refused.contains("cannot read pipe: it is not a regular file"), "{refused}");
    // A shell's <(...) is a pipe that has a writer.
    let mut run = place.command(&["run", "/dev/stdin"]);
    let mut run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut run.stdin.take().unwrap(), SMALL.as_bytes()).unwrap();
    assert!(run.wait_with_output().unwrap().status.success());
}

#[test]
fn endless_input_ends() {
    let place = Place::new("endless_input_ends");
    for arguments in [&["run", "/dev/stdin"][..], &["diagnose", "-"]] {
        let zero = fs::File::open("/dev/zero").unwrap();
        let mut command = place.command(arguments);
        let child =
            command.stdin(zero).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(ends_within(child, Duration::from_secs(60)), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_file_keeps_its_mode_and_a_new_one_has_that_of_the_umask() {
    let place = Place::new("a_file_keeps_its_mode");
    place.write("small.toml", SMALL);
    let mode = |name: &str| fs::metadata(place.0.join(name)).unwrap().mode() & 0o7777;
    for kept in [0o600, 0o640, 0o664] {
        place.write("old.csv", "old");
        let permissions = fs::Permissions::from_mode(kept);
        fs::set_permissions(place.0.join("old.csv"), permissions).unwrap();
        place.run(&["run", "small.toml", "--csv", "old.csv"]).ok();
        assert_eq!(mode("old.csv"), kept);
    }
    let program = env!("CARGO_BIN_EXE_ackclock");
    for (umask, expected) in [("027", 0o640), ("077", 0o600), ("002", 0o664)] {
        let name = format!("{umask}.csv");
        let line = format!("umask {umask}; exec {program} run small.toml --csv {name}");
        let status = Command::new("sh").args(["-c", &line]).current_dir(&place.0).output();
        assert!(status.unwrap().status.success());
        assert_eq!(mode(&name), expected, "{umask}");
    }
}

#[test]
fn a_link_under_a_temporary_name_is_not_followed() {
    let place = Place::new("a_link_under_a_temporary_name_is_not_followed");
    place.write("small.toml", SMALL);
    place.write("victim", "untouched");
    // The names that were used before: of every process that the command could be.
    let own = std::process::id();
    for id in own..own + 300 {
        let _ = symlink("victim", place.0.join(format!(".out.csv.{id}.part")));
    }
    place.run(&["run", "small.toml", "--csv", "out.csv"]).ok();
    assert_eq!(place.read("victim"), b"untouched");
    assert!(!fs::symlink_metadata(place.0.join("out.csv")).unwrap().is_symlink());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a signal comes at a moment of wall-clock time")]
fn a_signal_leaves_no_temporary_file() {
    let place = Place::new("a_signal_leaves_no_temporary_file");
    place.write("long.toml", SMALL.replace("100kB", "100GB").replace("\"10s\"", "\"100000s\""));
    place.write("old.csv", "old");
    for signal in ["INT", "TERM"] {
        let mut run = place.command(&["run", "long.toml", "--csv", "old.csv", "--svg", "new.svg"]);
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let temporary = || place.files().iter().filter(|name| name.ends_with(".part")).count();
        for _ in 0..500 {
            if temporary() == 2 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(temporary(), 2, "{signal}");
        let id = run.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        let status = run.wait().unwrap();
        let number = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(number, Some(if signal == "INT" { 2 } else { 15 }), "{status}");
        assert_eq!(place.files(), ["long.toml", "old.csv"], "{signal}");
        assert_eq!(place.read("old.csv"), b"old");
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let place = Place::new("control_characters_do_not_reach_the_terminal");
    let hostile = r"x\u001b]0;owned\u0007\u009b2J\u202e";
    let text = SMALL
        .replace("\"small\"", &format!("\"{hostile}\""))
        .replace("host.sink", &format!("host.\"{hostile}\""))
        .replace("to = \"sink\"", &format!("to = \"{hostile}\""))
        .replace("name = \"bulk\"", &format!("name = \"{hostile}\""));
    place.write("a.toml", text);
    let wrong = SMALL.replace("\"freebsd-13.2\"", &format!("\"{hostile}\""));
    place.write("wrong.toml", wrong);
    let name = "e\u{1b}[31mvil.toml";
    place.write(name, SMALL);
    place.write("b.txt", "\u{1b}]0;x\u{7} 10:00:00.0 IP \u{1b}[2Ja > b: Flags [S], seq 1\n");
    place.write("a.pkt", "0 `\u{1b}[31mfoo`\n\u{1b}[2J");
    place.write("a.ini", "[General]\n\u{1b}[2J = \u{1b}]0;x\n**.x = 3\n");
    let commands: [&[&str]; 14] = [
        &["run", "a.toml"],
        &["run", "a.toml", "--json"],
        &["run", "a.toml", "--tcpdump"],
        &["run", "a.toml", "--tcpdump=\u{1b}[2J"],
        &["run", "wrong.toml"],
        &["scenario", "check", name],
        &["scenario", "show", "a.toml"],
        &["sweep", "a.toml", "-m", "seed=1,2"],
        &["table", "a.sweep"],
        &["diagnose", "b.txt"],
        &["diagnose", "no\u{1b}[2J"],
        &["read", "b.txt"],
        &["packetdrill", "a.pkt", name],
        &["import-ini", "a.ini", "--list"],
    ];
    for arguments in commands {
        let answer = place.run(arguments);
        for text in [&answer.out, &answer.err] {
            let control = |c: char| c != '\n' && c != '\t' && (c.is_control() || c == '\u{202e}');
            assert!(!text.contains(control), "{arguments:?}: {text:?}");
        }
    }
    let shown = place.run(&["run", "a.toml"]).ok();
    assert!(shown.contains(hostile), "{shown}");
    // JSON still has the name itself.
    let json = place.run(&["run", "a.toml", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["title"], "x\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}");
}
