//! Benchmarks:
//!
//! - `cargo bench`, or `cargo bench -- W1 W3` for some: the five workloads with their targets;
//! - `cargo bench -- costs`, or `-- costs flows loss` for some: how the cost of a segment scales;
//! - `cargo bench -- recording`: the cost of the observers of a run;
//! - `cargo bench -- sweeps`: the overhead of a sweep over its runs;
//! - `cargo bench -- peer W1 0.1`: one run of a part of a workload, for `bench/peers`.
//!
//! Each line is the best of several runs, since any disturbance makes a run slower. docs/ledger/speed.md
//! explains the figures.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod costs;
mod measure;
mod peer;
mod recording;
mod sweeps;

use simtest::workloads::{WORKLOADS, Workload};

use measure::{measure, peak_memory};

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

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    match wanted.split_first() {
        Some((first, rest)) if first == "costs" => costs::costs(rest),
        Some((first, _)) if first == "recording" => recording::recording(),
        Some((first, _)) if first == "sweeps" => sweeps::sweeps(),
        Some((first, rest)) if first == "peer" => peer::peer(rest),
        _ => five(&wanted),
    }
}
