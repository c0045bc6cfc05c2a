//! `ackclock diagnose - --every` on a capture that grows.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::Value;
use trace::unpack::Unpacked;

use super::test_directory::TestDirectory;

/// A capture of 3.3 s whose receiver has a small buffer, decompressed.
fn capture() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    let mut bytes = Vec::new();
    Unpacked::new(File::open(path).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// Offset after the first packet of a pcap file that is this much later than the first one.
fn offset_at(capture: &[u8], millis: u64) -> usize {
    let word = |at: usize| u64::from(u32::from_le_bytes(capture[at..at + 4].try_into().unwrap()));
    let is_nanos = word(0) == 0xa1b2_3c4d;
    let time =
        |at: usize| word(at) * 1_000_000_000 + word(at + 4) * if is_nanos { 1 } else { 1_000 };
    let begin = time(24);
    let mut at = 24;
    loop {
        let is_there = time(at) - begin >= millis * 1_000_000;
        at += 16 + word(at + 8) as usize;
        if is_there {
            return at;
        }
    }
}

struct LiveDiagnosis {
    child: Child,
    pipe: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl LiveDiagnosis {
    fn begin(test: &str, every: &str) -> Self {
        let dir = TestDirectory::new(test);
        let mut command = dir.command(&["diagnose", "-", "--every", every, "--json"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (pipe, lines) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, pipe, lines: BufReader::new(lines) }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn limit(line: &Value) -> &Value {
        assert_eq!(line["event"], "interval", "{line:#}");
        &line["connections"][0]["limit"]
    }
}

/// The first interval is reported when a packet after it arrives, however short the capture is by then;
/// the end within a packet is a problem of the file, and the result is that of the packets before.
#[test]
fn a_pipe_speaks_while_it_is_open() {
    let capture = capture();
    let mut live = LiveDiagnosis::begin("a_pipe_speaks_while_it_is_open", "100ms");
    // The handshake and an initial window: far less than a buffer.
    let begin = offset_at(&capture, 130);
    assert!(begin < 60_000, "{begin}");
    // The packet that ends an interval is confirmed by the next one.
    live.pipe.write_all(&capture[..begin]).unwrap();
    let first = live.line();
    assert_eq!(LiveDiagnosis::limit(&first), "handshake", "{first:#}");
    assert_eq!(first["from_s"], 0.0);
    let cut = offset_at(&capture, 550) - 40;
    live.pipe.write_all(&capture[begin..cut]).unwrap();
    drop(live.pipe);
    let rest: Vec<Value> =
        live.lines.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let [intervals @ .., end] = rest.as_slice() else { panic!("{rest:?}") };
    assert_eq!(intervals.len(), 5, "{rest:?}");
    let last = &intervals[4];
    assert_eq!(LiveDiagnosis::limit(last), "receive_window", "{last:#}");
    let to = last["to_s"].as_f64().unwrap();
    assert!((0.5..0.55).contains(&to), "{last:#}");
    assert_eq!(end["event"], "end");
    let file = &end["files"][0];
    assert!(file["problems"][0].as_str().unwrap().contains("ends"), "{file:#}");
    assert_eq!(file["connections"][0]["primary"], "CC401", "{file:#}");
    let bytes = |line: &Value| line["connections"][0]["bytes"].as_u64().unwrap();
    let sum: u64 = intervals.iter().map(bytes).sum();
    assert_eq!(sum + bytes(&first), file["connections"][0]["bytes"]);
    assert!(live.child.wait().unwrap().success());
}

/// An interrupt of this program alone, with the pipe still open: the last interval and the result follow.
#[cfg(unix)]
#[test]
fn an_interrupt_prints_the_last_interval() {
    let capture = capture();
    let mut live = LiveDiagnosis::begin("an_interrupt_prints_the_last_interval", "1s");
    live.pipe.write_all(&capture[..offset_at(&capture, 1_400)]).unwrap();
    let first = live.line();
    assert_eq!(LiveDiagnosis::limit(&first), "receive_window", "{first:#}");
    let pid = live.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let last = live.line();
    assert_eq!(LiveDiagnosis::limit(&last), "receive_window", "{last:#}");
    let to = last["to_s"].as_f64().unwrap();
    assert!((1.4..1.5).contains(&to), "{last:#}");
    let end = live.line();
    assert_eq!(end["files"][0]["connections"][0]["primary"], "CC401", "{end:#}");
    live.child.wait().unwrap();
    drop(live.pipe);
}

/// Intervals have the connections of a host, a port or a number; numbers stay those of the file.
#[test]
fn intervals_have_the_chosen_connections() {
    let dir = TestDirectory::new("intervals_have_the_chosen_connections");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/linux/k1_two_flows/sender.pcap.xz");
    let path = path.to_str().unwrap();
    for chosen in [&["--port", "40001"], &["--flow", "1"]] {
        let arguments = [&["diagnose", path, "--every", "2s", "--json"], &chosen[..]].concat();
        let text = dir.run(&arguments).ok();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [intervals @ .., end] = lines.as_slice() else { panic!("{text}") };
        for line in intervals {
            let ids: Vec<_> =
                line["connections"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
            assert_eq!(ids, [1], "{line:#}");
        }
        assert_eq!(end["files"][0]["connections"][0]["id"], 1);
        assert_eq!(end["files"][0]["connections"].as_array().unwrap().len(), 1);
    }
    let refused = dir.run(&["diagnose", path, path, "--every", "2s"]).refused();
    assert!(refused.contains("--every: expected one capture"), "{refused}");
    dir.write(
        "lines.txt",
        "12:00:00.1 IP 10.0.0.1.5 > 10.0.0.2.80: Flags [S], seq 1, win 9, length 0\n",
    );
    let refused = dir.run(&["diagnose", "lines.txt", "--every", "2s"]).refused();
    assert!(refused.contains("it is tcpdump's text, and only a capture"), "{refused}");
}
