//! `ackclock watch` on transfers of this machine.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::test_directory::TestDirectory;
use super::wire::privileged;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (sender, listener.accept().unwrap().0)
}

#[expect(clippy::disallowed_methods, reason = "applications that pause")]
fn pause(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The limit of the connection whose data leave, over all intervals.
fn limit_of(lines: &[Value], local: &str) -> String {
    let end = lines.last().unwrap();
    assert_eq!(end["event"], "end");
    let all = end["connections"].as_array().unwrap();
    let found = all.iter().find(|one| one["local"] == local);
    found.map_or_else(String::new, |one| one["limit"].as_str().unwrap().to_owned())
}

/// A reader that takes 20 kB every 20 ms, and a writer that writes 2 kB every 10 ms, side by side.
#[test]
fn a_slow_reader_and_a_slow_writer_differ() {
    let dir = TestDirectory::new("a_slow_reader_and_a_slow_writer");
    let (mut bulk, mut slow_reader) = pair();
    let (mut slow_writer, mut reader) = pair();
    let [limited, paused] = [&bulk, &slow_writer].map(|one| one.local_addr().unwrap().to_string());
    let ports = [&bulk, &slow_writer].map(|one| one.local_addr().unwrap().port().to_string());
    bulk.set_write_timeout(Some(Duration::from_secs(3))).unwrap();
    let mut threads = vec![
        thread::spawn(move || while bulk.write(&[1; 65_536]).is_ok() {}),
        thread::spawn(move || {
            let mut buffer = [0; 20_000];
            while slow_reader.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {
                pause(20);
            }
        }),
    ];
    threads.push(thread::spawn(move || {
        for _ in 0..3_000 {
            if slow_writer.write_all(&[1; 2_000]).is_err() {
                return;
            }
            pause(10);
        }
    }));
    threads.push(thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while reader.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
    }));
    let arguments = ["watch", "--port", &ports[0], "--port", &ports[1], "--every", "300ms"];
    let mut json = arguments.to_vec();
    json.extend(["--count", "4", "--json", "--openmetrics", "watch.prom"]);
    let lines = lines(&dir.run(&json).ok());
    assert_eq!(lines.len(), 5);
    assert_eq!(limit_of(&lines, &limited), "receive_window", "{lines:#?}");
    assert_eq!(limit_of(&lines, &paused), "application", "{lines:#?}");
    let metrics = dir.read("watch.prom");
    let metrics = String::from_utf8_lossy(metrics.as_ref());
    assert!(
        metrics.contains("limit=\"receive_window\"") && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
    let mut text = arguments.to_vec();
    text.extend(["--count", "1"]);
    let text = dir.run(&text).ok();
    assert!(text.contains("4 active connections\n"), "{text}");
    assert!(text.contains("  receive window: the peer's receive window is full"), "{text}");
    drop(threads);
}

/// A connection that is reset between two polls, and one that this host closes first.
#[test]
fn a_vanished_connection_is_reported() {
    let dir = TestDirectory::new("a_vanished_connection");
    let (mut closed, mut peer) = pair();
    let (reset, _kept) = pair();
    let port = closed.local_addr().unwrap().port().to_string();
    let other = reset.local_addr().unwrap().port().to_string();
    let ends = thread::spawn(move || {
        closed.write_all(&[1; 5_000]).unwrap();
        pause(2_000);
        // Unread data make close send a reset (RFC 9293 section 3.6.1).
        (&_kept).write_all(&[1; 100]).unwrap();
        pause(50);
        drop(reset);
        drop(closed);
        let _ = peer.read_to_end(&mut Vec::new());
    });
    let arguments =
        ["watch", "--port", &port, "--port", &other, "--every", "500ms", "--count", "8", "--json"];
    let lines = lines(&dir.run(&arguments).ok());
    ends.join().unwrap();
    let ended: Vec<&Value> =
        lines.iter().filter_map(|line| line["gone"].as_array()).flatten().collect();
    let ending = |local: &str| {
        let port = format!(":{local}");
        let mut of = ended.iter().filter(|one| one["local"].as_str().unwrap().ends_with(&port));
        of.next().map(|one| one["ending"].clone())
    };
    assert_eq!(ending(&port), Some("closed_here".into()), "{lines:#?}");
    assert_eq!(ending(&other), Some("vanished".into()), "{lines:#?}");
}

/// As in `ackclock watch | head -1`.
#[test]
fn a_closed_output_ends_the_watch() {
    let dir = TestDirectory::new("a_closed_output_ends_the_watch");
    let arguments = ["watch", "--host", "203.0.113.1", "--every", "20ms", "--count", "1500"];
    let mut child = dir.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    drop(output);
    let ended = (0..100).any(|_| {
        pause(100);
        child.try_wait().unwrap().is_some()
    });
    assert!(ended && child.wait().unwrap().success());
}

#[test]
fn without_connections_the_watch_says_so() {
    let dir = TestDirectory::new("watch_without_connections");
    let text = dir.run(&["watch", "--host", "203.0.113.1", "--count", "1", "--every", "20ms"]).ok();
    assert_eq!(text, "0.0 s  0 active connections\nend: no connection with data is open\n");
    for (every, part) in [("5", "`5`"), ("1ms", "the shortest interval is 10ms")] {
        let answer = dir.run(&["watch", "--every", every]);
        assert!(answer.code == 2 && answer.err.contains(part), "{}", answer.err);
    }
}

/// Kinds of limits with the codes that a capture has for them.
const KINDS: [(&str, &str, &[&str]); 6] = [
    ("window", "receive_window", &["CC401", "CC403"]),
    ("reader", "receive_window", &["CC401", "CC403"]),
    ("application", "application", &["CC501"]),
    ("sndbuf", "send_buffer", &["CC503"]),
    ("loss", "loss", &["CC201", "CC204", "CC205"]),
    ("queue", "queue", &["CC103", "CC202", "CC601", "CC603"]),
];

const PATH: &str = "title = \"live\"\nseed = 1\nduration = \"30s\"\n\
[host.sender]\nprofile = \"linux-6.18\"\ncc = \"reno\"\n\
[host.sink]\nprofile = \"linux-6.18\"\ncc = \"reno\"\n\
[[tap]]\nhost = \"sender\"\nat = \"stack\"\n\
[[path]]\nfrom = \"sender\"\nto = \"sink\"\n\
forward = [{ link = { rate = \"20Mbit/s\", buffer = \"100kB\" } }, { delay = \"10ms\" }, { loss = \"0%\" }]\n\
return = [{ delay = \"10ms\" }]\n\
[[flow]]\nname = \"flow\"\nfrom = \"sender\"\nto = \"sink\"\nbulk = \"1MB\"\n";

/// Transfers between two real kernels over an emulated path: `watch` names the limit that the capture
/// of the same transfer has. In real time, so it is for a machine that does nothing else:
/// `cargo test --test cli -- --ignored the_kernel_and_the_capture`.
#[test]
#[ignore = "measures in real time"]
fn the_kernel_and_the_capture_name_the_same_limit() {
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let dir = TestDirectory::new("the_kernel_and_the_capture");
    dir.write("path.toml", PATH);
    dir.write("live.py", include_str!("live_transfer.py"));
    let program = env!("CARGO_BIN_EXE_ackclock");
    let mut equal = Vec::new();
    for (kind, limit, codes) in KINDS {
        let receive = format!("sink=python3 live.py receive {kind}");
        let send = format!(
            "sender=sleep 0.3; python3 live.py send {kind} 4 & sleep 0.8; \
             {program} watch --count 3 --json > watch.json; wait"
        );
        let loss = if kind == "loss" { "path.forward.2.loss=3%" } else { "path.forward.2.loss=0%" };
        let arguments = ["wire", "link", "path.toml", "--set", loss, "--pcap", "live.pcapng"];
        let mut arguments = arguments.to_vec();
        arguments.extend(["--run", &receive, "--run", &send]);
        let Some(answer) = privileged(dir.run(&arguments)) else { return };
        answer.ok();
        let watched = dir.read("watch.json");
        let watched = lines(&String::from_utf8_lossy(watched.as_ref()));
        let watched = watched.last().unwrap()["connections"][0]["limit"].clone();
        let capture = dir.run(&["diagnose", "live.pcapng", "--json"]).ok();
        let capture: Value = serde_json::from_str(&capture).unwrap();
        let primary = capture["connections"][0]["primary"].clone();
        let agrees = watched == limit && codes.iter().any(|code| primary == *code);
        equal.push((kind, agrees, watched, primary));
    }
    let count = equal.iter().filter(|one| one.1).count();
    assert!(count * 10 >= equal.len() * 8, "{equal:?}");
}
