//! The workloads that speed is measured on: `cargo bench`, or `cargo bench -- W1 W3` for some; and
//! what the costs grow with: `cargo bench -- costs`.
//!
//! Recording is off. Each line gives the best of several runs, since everything that disturbs a run
//! makes it slower. docs/speed.md explains the figures.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use lab::scenario::{Overrides, load};
use lab::workloads::{OneFlow, WORKLOADS, Workload, many_flows, one_flow};
use record::Off;

/// What a measurement has found.
struct Measured {
    segments: u64,
    seconds: f64,
    /// Reading the scenario.
    load_seconds: f64,
}

impl Measured {
    /// Nanoseconds for a data segment with its ACKs.
    fn ns(&self) -> f64 {
        self.seconds * 1e9 / self.segments as f64
    }
}

/// Seconds that the processor has given to this thread, where the system tells (Linux), else those
/// on the wall: what other programs take does not count.
fn seconds(since: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.as_deref().and_then(|told| told.split_whitespace().next()?.parse().ok());
    nanos.map_or_else(|| since.elapsed().as_secs_f64(), |nanos: u64| nanos as f64 / 1e9)
}

/// The best of several measurements of so many runs each.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn measure(text: &str, runs: u32, tries: u32) -> Measured {
    let clock = Instant::now();
    let began = seconds(clock);
    let loaded = match load(text, "workload", &Overrides::default()) {
        Ok(loaded) => loaded,
        Err(errors) => panic!("{}", errors[0]),
    };
    let load_seconds = seconds(clock) - began;
    let mut best = Measured { segments: 0, seconds: f64::INFINITY, load_seconds };
    for _ in 0..tries {
        let began = seconds(clock);
        best.segments = (0..runs)
            .map(|_| sim::run(&loaded.scenario, &mut Off).expect("a good scenario").segments)
            .sum();
        best.seconds = best.seconds.min(seconds(clock) - began);
    }
    best
}

/// Largest memory the process has held, in bytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1_024)
}

fn five(wanted: &[String]) {
    println!(
        "{:<4} {:<50} {:>12} {:>14} {:>12} {:>8} {:>9} {:>12}",
        "", "workload", "segments", "segments/s", "ns/segment", "target", "load", "peak memory"
    );
    for workload in WORKLOADS {
        let Workload { name, title, runs, .. } = *workload;
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        let tries = if name == "W4" { 2 } else { 4 };
        let measured = measure(&(workload.scenario)(1.0), runs, tries);
        let peak =
            peak_memory().map_or("unknown".into(), |b| format!("{:.1} MiB", b as f64 / 1048576.0));
        println!(
            "{name:<4} {title:<50} {:>12} {:>14.0} {:>12.1} {:>8} {:>6.1} ms {peak:>12}",
            measured.segments,
            measured.segments as f64 / measured.seconds,
            measured.ns(),
            workload.target_ns.map_or("none".into(), |ns| format!("{ns:.0}")),
            measured.load_seconds * 1e3,
        );
    }
}

/// One table: what grows, and what a segment costs.
fn table(title: &str, rows: impl IntoIterator<Item = (String, String, u32)>) {
    println!("\n{title:<28} {:>12} {:>12} {:>12}", "segments", "ns/segment", "load");
    for (label, text, tries) in rows {
        let measured = measure(&text, 1, tries);
        println!(
            "{label:<28} {:>12} {:>12.1} {:>9.1} ms",
            measured.segments,
            measured.ns(),
            measured.load_seconds * 1e3
        );
    }
}

/// What the cost of a segment grows with.
fn costs() {
    table(
        "flows, 1 Mbit/s each",
        [1_u32, 10, 100, 1_000, 10_000, 100_000].map(|flows| {
            let millis = (3_000_000 / u64::from(flows)).clamp(2_000, 300_000);
            let tries = if flows > 1_000 { 1 } else { 3 };
            (format!("{flows}"), many_flows(flows, millis), tries)
        }),
    );
    table(
        "flight (BDP), segments",
        [10_u64, 100, 1_000, 10_000, 100_000].map(|flight| {
            // 1 Gbit/s are 83,333 packets a second: 12 us each.
            let one_way_us = flight * 12 / 2;
            let millis = (flight * 12 * 60 / 1_000).max(10_000);
            let flight_bytes = 2 * flight * 1_448;
            let flow =
                OneFlow { millis, one_way_us, flight: flight_bytes.max(1 << 20), ..OneFlow::W1 };
            (format!("{flight}"), one_flow(&flow), 3)
        }),
    );
    table(
        "random loss",
        [0_u32, 1, 10, 100, 300, 1_000].map(|loss| {
            let label = format!("{}.{:02} %", loss / 100, loss % 100);
            (label, one_flow(&OneFlow { loss, ..OneFlow::W2 }), 3)
        }),
    );
    table(
        "duration (W1), s",
        [1_u64, 10, 60, 600].map(|seconds| {
            let flow = OneFlow { millis: 1_000 * seconds, ..OneFlow::W1 };
            (format!("{seconds}"), one_flow(&flow), if seconds > 60 { 1 } else { 3 })
        }),
    );
    table(
        "sender (W1, 10 s)",
        [
            ("linux-6.18", "reno"),
            ("linux-6.18", "cubic"),
            ("freebsd-14.3", "newreno"),
            ("freebsd-14.3", "cubic"),
            ("freebsd-rack-14.3", "newreno"),
            ("rfc", "newreno"),
        ]
        .map(|(profile, cc)| {
            let flow = OneFlow { profile, cc, millis: 10_000, ..OneFlow::W1 };
            (format!("{profile} {cc}"), one_flow(&flow), 3)
        }),
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if wanted.iter().any(|name| name == "costs") {
        costs();
    } else {
        five(&wanted);
    }
}
