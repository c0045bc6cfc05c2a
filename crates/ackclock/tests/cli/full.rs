//! Full and closed standard output: every command fails if it is full, and keeps its status if its
//! reader is gone.
#![cfg(target_os = "linux")]

use std::fs::{File, OpenOptions};
use std::process::Stdio;

use crate::test_directory::{SMALL, TestDirectory};

/// A directory with the input of the commands below: a scenario, its capture, its log, a sweep, an
/// ini file.
fn dir(test: &str) -> TestDirectory {
    let dir = TestDirectory::new(test);
    dir.write("small.toml", SMALL);
    let files = ["--pcap", "a.pcapng", "--qlog", "a.qlog"];
    dir.run(&[&["run", "small.toml"][..], &files].concat()).ok();
    dir.run(&["sweep", "small.toml", "-m", "seed=1,2", "--out", "swept"]).ok();
    dir.write("pass.pkt", "0 `true`\n");
    dir.write("a.ini", "[General]\nnetwork = x\nsim-time-limit = 1s\n");
    dir
}

/// Every command in each of its forms.
const COMMANDS: [&[&str]; 38] = [
    &["--help"],
    &["--version"],
    &["run", "--help"],
    &["run", "small.toml"],
    &["run", "small.toml", "--json"],
    &["run", "small.toml", "--tcpdump"],
    &["run", "small.toml", "--tcpdump", "--csv", "rows.csv"],
    &["run", "small.toml", "--csv", "/dev/stdout"],
    &["sweep", "small.toml", "-m", "seed=1,2", "--out", "new"],
    &["sweep", "small.toml", "-m", "seed=1,2", "--out", "newer", "--json"],
    &["sweep", "small.toml", "-m", "seed=1,2", "--dry-run"],
    &["sweep", "small.toml", "-m", "seed=1,2", "--show", "1"],
    &["table", "swept"],
    &["table", "swept", "--json"],
    &["table", "swept", "--svg", "/dev/stdout"],
    &["scenario", "check", "small.toml"],
    &["scenario", "check", "small.toml", "--json"],
    &["scenario", "check", "pass.pkt", "--json"],
    &["scenario", "show", "small.toml"],
    &["scenario", "keys"],
    &["scenario", "profiles"],
    &["scenario", "profiles", "--json"],
    &["scenario", "schema"],
    &["scenario", "from", "a.pcapng"],
    &["whatif", "a.pcapng"],
    &["whatif", "a.pcapng", "--json"],
    &["diagnose", "a.pcapng"],
    &["diagnose", "a.pcapng", "--json"],
    &["explain"],
    &["explain", "CC101"],
    &["read", "a.qlog"],
    &["read", "a.qlog", "--json"],
    &["read", "a.qlog", "--csv"],
    &["reproduce", "--list"],
    &["reproduce", "--list", "--json"],
    &["theory", "mathis", "--rtt", "20ms", "--loss", "0.1%"],
    &["packetdrill", "pass.pkt", "pass.pkt"],
    &["packetdrill", "pass.pkt", "--json"],
];

#[test]
fn a_full_disk_is_an_error_of_every_command() {
    let dir = dir("a_full_disk_is_an_error_of_every_command");
    for arguments in COMMANDS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = dir.command(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        let last = said.lines().last().unwrap_or_default();
        let stdout = last.starts_with("error: cannot write to standard output: No space left");
        let named = last.starts_with("error: cannot write /dev/stdout: No space left");
        assert!(stdout || named, "{arguments:?}: {said}");
    }
    // The output files are complete.
    assert!(dir.read("rows.csv").starts_with(b"time_s,"));
    assert!(!dir.files().iter().any(|name| name.ends_with(".part")), "{:?}", dir.files());
}

/// A pipe without a reader.
fn closed_pipe(dir: &TestDirectory) -> File {
    let mut reader = std::process::Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let pipe = reader.stdin.take().unwrap();
    assert!(reader.wait().unwrap().success(), "{:?}", dir.0);
    std::os::fd::OwnedFd::from(pipe).into()
}

#[test]
fn a_closed_pipe_changes_neither_status_nor_files() {
    let dir = dir("a_closed_pipe_changes_neither_status_nor_files");
    for arguments in COMMANDS {
        let with_reader = dir.run(arguments).code;
        let fresh: Vec<&str> = arguments
            .iter()
            .map(|one| if one.starts_with("new") { "other" } else { one })
            .collect();
        let _ = std::fs::remove_dir_all(dir.0.join("other"));
        let pipe = closed_pipe(&dir);
        let output = dir.command(&fresh).stdout(pipe).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(with_reader), ""), "{arguments:?}");
    }
    // An output whose reader is gone does not affect the others.
    let both = ["run", "small.toml", "--csv", "/dev/stdout", "--pcap", "b.pcapng"];
    let output = dir.command(&both).stdout(closed_pipe(&dir)).status().unwrap();
    assert_eq!(output.code(), Some(0));
    assert!(dir.read("b.pcapng") == dir.read("a.pcapng"));
    let both = ["run", "small.toml", "--tcpdump", "--svg", "b.svg"];
    dir.command(&both).stdout(closed_pipe(&dir)).status().unwrap();
    assert!(dir.read("b.svg").starts_with(b"<svg "));
}
