//! Special files as input and output.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::test_directory::{SMALL, TestDirectory};

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
fn contents_of_other_files_are_not_printed() {
    let dir = TestDirectory::new("what_another_file_holds_is_not_printed");
    dir.write("secret", "root:$6$topsecret:19000:0:99999:7:::\n");
    dir.write("numbers", "4711\n42\n");
    dir.write("secret.sh", "topsecret 4711\n");
    dir.write("a.pkt", "0 `./secret.sh`\n");
    for (name, said) in [("secret", "secret:1: expected"), ("numbers", "numbers:2: this time")] {
        dir.write("a.toml", with_trace(name));
        let refused = dir.run(&["run", "a.toml"]).refused();
        assert!(refused.contains(said), "{refused}");
        assert!(!refused.contains("topsecret") && !refused.contains("4711"), "{refused}");
    }
    let script = dir.run(&["packetdrill", "a.pkt"]);
    assert!(!(script.out + &script.err).contains("topsecret"));
}

#[test]
fn pipes_and_devices_are_refused_at_once() {
    let dir = TestDirectory::new("pipes_and_devices_are_refused_at_once");
    assert!(Command::new("mkfifo").arg(dir.0.join("pipe")).status().unwrap().success());
    assert!(Command::new("mkfifo").arg(dir.0.join("pipe.sh")).status().unwrap().success());
    dir.write("a.pkt", "0 `./pipe.sh`\n");
    let names = ["pipe", "/dev/zero", "."];
    for (number, name) in names.into_iter().enumerate() {
        let file = format!("{number}.toml");
        dir.write(&file, with_trace(name));
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
                // It expects a directory of scripts.
                continue;
            }
            let mut command = dir.command(arguments);
            let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let code = ends_within(child, Duration::from_secs(20));
            assert_eq!(code, Some(2), "{name}: {arguments:?}");
        }
    }
    // A script that names one gets an error.
    let script = dir.run(&["packetdrill", "a.pkt"]);
    assert!(script.err.contains("there is no file `./pipe.sh`"), "{}", script.err);
    let refused = dir.run(&["run", "0.toml"]).refused();
    assert!(refused.contains("cannot read pipe: it is not a regular file"), "{refused}");
    // A shell's <(...) is a pipe with a writer.
    let mut run = dir.command(&["run", "/dev/stdin"]);
    let mut run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut run.stdin.take().unwrap(), SMALL.as_bytes()).unwrap();
    assert!(run.wait_with_output().unwrap().status.success());
}

#[test]
fn endless_input_ends() {
    let dir = TestDirectory::new("endless_input_ends");
    for arguments in [&["run", "/dev/stdin"][..], &["diagnose", "-"]] {
        let zero = fs::File::open("/dev/zero").unwrap();
        let mut command = dir.command(arguments);
        let child =
            command.stdin(zero).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(ends_within(child, Duration::from_secs(60)), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_file_keeps_its_mode_and_a_new_one_has_that_of_the_umask() {
    let dir = TestDirectory::new("a_file_keeps_its_mode");
    dir.write("small.toml", SMALL);
    let mode = |name: &str| fs::metadata(dir.0.join(name)).unwrap().mode() & 0o7777;
    for kept in [0o600, 0o640, 0o664] {
        dir.write("old.csv", "old");
        let permissions = fs::Permissions::from_mode(kept);
        fs::set_permissions(dir.0.join("old.csv"), permissions).unwrap();
        dir.run(&["run", "small.toml", "--csv", "old.csv"]).ok();
        assert_eq!(mode("old.csv"), kept);
    }
    let program = env!("CARGO_BIN_EXE_ackclock");
    for (umask, expected) in [("027", 0o640), ("077", 0o600), ("002", 0o664)] {
        let name = format!("{umask}.csv");
        let line = format!("umask {umask}; exec {program} run small.toml --csv {name}");
        let status = Command::new("sh").args(["-c", &line]).current_dir(&dir.0).output();
        assert!(status.unwrap().status.success());
        assert_eq!(mode(&name), expected, "{umask}");
    }
}

#[test]
fn a_link_under_a_temporary_name_is_not_followed() {
    let dir = TestDirectory::new("a_link_under_a_temporary_name_is_not_followed");
    dir.write("small.toml", SMALL);
    dir.write("victim", "untouched");
    // The predictable names of earlier versions, for every process id that the command could have.
    let own = std::process::id();
    for id in own..own + 300 {
        let _ = symlink("victim", dir.0.join(format!(".out.csv.{id}.part")));
    }
    dir.run(&["run", "small.toml", "--csv", "out.csv"]).ok();
    assert_eq!(dir.read("victim"), b"untouched");
    assert!(!fs::symlink_metadata(dir.0.join("out.csv")).unwrap().is_symlink());
}

/// Whether the tests run under nohup: then their children ignore a hangup, as they should.
fn ignores_hangups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t"));
    ignored.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a signal comes at a moment of wall-clock time")]
fn a_signal_leaves_no_temporary_file() {
    let dir = TestDirectory::new("a_signal_leaves_no_temporary_file");
    dir.write("long.toml", SMALL.replace("100kB", "100GB").replace("\"10s\"", "\"100000s\""));
    dir.write("old.csv", "old");
    for (signal, expected) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        if signal == "HUP" && ignores_hangups() {
            continue;
        }
        let mut run = dir.command(&["run", "long.toml", "--csv", "old.csv", "--svg", "new.svg"]);
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let temporary = || dir.files().iter().filter(|name| name.ends_with(".part")).count();
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
        assert_eq!(number, Some(expected), "{status}");
        assert_eq!(dir.files(), ["long.toml", "old.csv"], "{signal}");
        assert_eq!(dir.read("old.csv"), b"old");
    }
}

/// A scenario of others reads no file of other folders, unless the user names them.
#[test]
fn files_outside_of_the_folder_of_a_scenario_need_a_permission() {
    let dir = TestDirectory::new("files_outside_of_the_folder_of_a_scenario");
    for folder in ["of", "of/below", "traces"] {
        fs::create_dir_all(dir.0.join(folder)).unwrap();
        dir.write(&format!("{folder}/a.trace"), "1\n2\n3\n");
    }
    let absolute = dir.0.join("traces/a.trace").display().to_string();
    symlink(&absolute, dir.0.join("of/link.trace")).unwrap();
    for (name, is_inside) in [
        ("a.trace", true),
        ("below/../a.trace", true),
        ("below/a.trace", true),
        ("../traces/a.trace", false),
        (&absolute, false),
        ("link.trace", false),
    ] {
        dir.write("of/s.toml", with_trace(name));
        let check = ["scenario", "check", "of/s.toml"];
        if is_inside {
            dir.run(&check).ok();
        } else {
            let error = dir.run(&check).refused();
            assert!(
                error.contains("outside of the scenario's folder; add --allow-path"),
                "{error}"
            );
            dir.run(&[&check[..], &["--allow-path", "traces"]].concat()).ok();
            assert_eq!(dir.run(&[&check[..], &["--allow-path", "of"]].concat()).code, 2);
        }
    }
    let error = dir.run(&["scenario", "check", "of/s.toml", "--allow-path", "nowhere"]).refused();
    assert!(error.contains("--allow-path nowhere: not a folder"), "{error}");
}

/// The lines of a name are not lines of a message.
#[test]
fn a_newline_in_a_name_forges_no_line() {
    let dir = TestDirectory::new("a_newline_in_a_name_forges_no_line");
    let name = "x\nerror: forged.toml";
    dir.write(name, SMALL.replace("profile", "profil"));
    dir.write("x\nwarning: forged.pcap", "no capture");
    let all = [
        vec!["run", name],
        vec!["scenario", "check", name],
        vec!["run", "x\nerror: none.toml"],
        vec!["diagnose", "x\nwarning: forged.pcap"],
        vec!["diagnose", "x\nwarning: none.pcap"],
        vec!["sweep", name, "--dry-run"],
    ];
    for arguments in all {
        let answer = dir.run(&arguments);
        assert_eq!(answer.code, 2);
        let is_forged = |line: &str| {
            let rest = line.strip_prefix("error: ").or(line.strip_prefix("warning: "));
            rest.is_some_and(|rest| rest.starts_with("forged") || rest.starts_with("none"))
        };
        assert!(!answer.err.lines().any(is_forged), "{arguments:?}: {}", answer.err);
        assert!(answer.err.contains("\\u000a"), "{arguments:?}: {}", answer.err);
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let dir = TestDirectory::new("control_characters_do_not_reach_the_terminal");
    let hostile = r"x\u001b]0;owned\u0007\u009b2J\u202e";
    let text = SMALL
        .replace("\"small\"", &format!("\"{hostile}\""))
        .replace("host.sink", &format!("host.\"{hostile}\""))
        .replace("to = \"sink\"", &format!("to = \"{hostile}\""))
        .replace("name = \"bulk\"", &format!("name = \"{hostile}\""));
    dir.write("a.toml", text);
    let wrong = SMALL.replace("\"freebsd-13.2\"", &format!("\"{hostile}\""));
    dir.write("wrong.toml", wrong);
    let name = "e\u{1b}[31mvil.toml";
    dir.write(name, SMALL);
    dir.write("b.txt", "\u{1b}]0;x\u{7} 10:00:00.0 IP \u{1b}[2Ja > b: Flags [S], seq 1\n");
    dir.write("a.pkt", "0 `\u{1b}[31mfoo`\n\u{1b}[2J");
    dir.write("a.ini", "[General]\n\u{1b}[2J = \u{1b}]0;x\n**.x = 3\n");
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
        let answer = dir.run(arguments);
        for text in [&answer.out, &answer.err] {
            let control = |c: char| c != '\n' && c != '\t' && (c.is_control() || c == '\u{202e}');
            assert!(!text.contains(control), "{arguments:?}: {text:?}");
        }
    }
    let shown = dir.run(&["run", "a.toml"]).ok();
    assert!(shown.contains(hostile), "{shown}");
    // JSON still has the name itself.
    let json = dir.run(&["run", "a.toml", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["title"], "x\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}");
}
