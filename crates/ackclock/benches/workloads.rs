//! The workloads that speed is measured on: `cargo bench`, or `cargo bench -- W1 W3` for some.
//!
//! Pinned: sender `linux-6.18` with reno, segments of 1448 bytes, timestamps and SACK on, TSO and
//! LRO off, an ACK for every second segment, recording off. Each line gives the best of several
//! runs, since everything that disturbs a run makes it slower.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use lab::scenario::{Overrides, load};
use record::Off;

/// A workload.
struct Workload {
    name: &'static str,
    title: &'static str,
    /// Scenario text.
    scenario: fn() -> String,
    /// Runs of the scenario that one measurement consists of.
    repeat: u32,
    /// Measurements, of which the best counts.
    tries: u32,
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "W1",
        title: "1 flow, 1 Gbit/s, 40 ms, 1 BDP, 60 s",
        scenario: || one_flow("60s", "20ms", "1bdp", ""),
        repeat: 1,
        tries: 3,
    },
    Workload {
        name: "W2",
        title: "1 flow, 1 Gbit/s, 0.15 ms, 1 % random loss, 10 s",
        scenario: || one_flow("10s", "75us", "100p", "{ loss = \"1%\", only = \"data\" }, "),
        repeat: 1,
        tries: 5,
    },
    Workload {
        name: "W3",
        title: "100 flows, dumbbell of 1 Gbit/s, 10 s",
        scenario: || dumbbell(100, "1Gbit/s", "1Gbit/s", "10s"),
        repeat: 1,
        tries: 3,
    },
    Workload {
        name: "W4",
        title: "10,000 flows, dumbbell of 10 Gbit/s, 2 s",
        scenario: || dumbbell(10_000, "10Gbit/s", "1Gbit/s", "2s"),
        repeat: 1,
        tries: 2,
    },
    Workload {
        name: "W5",
        title: "1,000 runs of 1 MB, 100 Mbit/s, 20 ms",
        scenario: one_megabyte,
        repeat: 1_000,
        tries: 3,
    },
];

const HOSTS: &str = r#"
[host.sender]
profile = "linux-6.18"
cc = "reno"

[host.sink]
profile = "rfc"
"#;

fn one_flow(duration: &str, one_way: &str, buffer: &str, loss: &str) -> String {
    format!(
        r#"title = "one flow"
duration = "{duration}"
{HOSTS}
[[path]]
from = "sender"
to = "sink"
forward = [{loss}{{ link = {{ rate = "1Gbit/s", buffer = "{buffer}" }} }}, {{ delay = "{one_way}" }}]
return = [{{ delay = "{one_way}" }}]

[[flow]]
name = "bulk"
from = "sender"
to = "sink"
bulk = "unlimited"
"#
    )
}

fn one_megabyte() -> String {
    format!(
        r#"title = "one megabyte"
{HOSTS}
[[path]]
from = "sender"
to = "sink"
forward = [{{ link = {{ rate = "100Mbit/s", buffer = "1bdp" }} }}, {{ delay = "10ms" }}]
return = [{{ delay = "10ms" }}]

[[flow]]
name = "bulk"
from = "sender"
to = "sink"
bulk = "1MB"
"#
    )
}

/// Every flow has hosts and access links of its own, both ways; all share one link each way.
fn dumbbell(flows: u32, bottleneck: &str, access: &str, duration: &str) -> String {
    let shared = |name: &str| {
        format!("[shared.{name}]\nlink = {{ rate = \"{bottleneck}\", buffer = \"5000p\" }}\n\n")
    };
    let mut text = format!("title = \"dumbbell\"\nduration = \"{duration}\"\n\n");
    text += &shared("there");
    text += &shared("back");
    let link = format!("{{ link = {{ rate = \"{access}\", buffer = \"1000p\" }} }}");
    for n in 0..flows {
        let hosts = HOSTS.replace("sender", &format!("a{n}")).replace("sink", &format!("b{n}"));
        text += &hosts;
        text += &format!(
            r#"
[[path]]
from = "a{n}"
to = "b{n}"
forward = [{link}, {{ shared = "there" }}, {link}, {{ delay = "20ms" }}]
return = [{link}, {{ shared = "back" }}, {link}, {{ delay = "20ms" }}]

[[flow]]
name = "{n}"
from = "a{n}"
to = "b{n}"
start = "{}us"
bulk = "unlimited"
"#,
            n * 10
        );
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]
fn measure(workload: &Workload) -> (u64, f64) {
    let text = (workload.scenario)();
    let loaded = match load(&text, workload.name, &Overrides::default()) {
        Ok(loaded) => loaded,
        Err(errors) => panic!("{}: {}", workload.name, errors[0]),
    };
    let mut segments = 0;
    let mut best = f64::INFINITY;
    for _ in 0..workload.tries {
        segments = 0;
        let began = Instant::now();
        for _ in 0..workload.repeat {
            let outcome = sim::run(&loaded.scenario, &mut Off).expect("a good scenario");
            segments += outcome.segments;
        }
        best = best.min(began.elapsed().as_secs_f64());
    }
    (segments, best)
}

/// Largest memory the process has held, in bytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1_024)
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    println!(
        "{:<4} {:<50} {:>12} {:>14} {:>12} {:>12}",
        "", "workload", "segments", "segments/s", "ns/segment", "peak memory"
    );
    for workload in WORKLOADS {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == workload.name) {
            continue;
        }
        let (segments, seconds) = measure(workload);
        let peak =
            peak_memory().map_or("unknown".into(), |b| format!("{:.1} MiB", b as f64 / 1048576.0));
        println!(
            "{:<4} {:<50} {:>12} {:>14.0} {:>12.1} {:>12}",
            workload.name,
            workload.title,
            segments,
            segments as f64 / seconds,
            seconds * 1e9 / segments as f64,
            peak
        );
    }
}
