//! One run of a part of a workload, for `bench/peers`: prints the same line as the programs there.

use record::NullRecorder;
use simtest::workloads::WORKLOADS;

use crate::measure::{best, loaded};

/// `W1 0.1`: a tenth of its duration; `W5 50`: fifty runs. Prints, separated by tabs: data
/// segments, retransmitted segments, bytes delivered, virtual seconds, CPU nanoseconds.
pub(crate) fn peer(arguments: &[String]) {
    let [name, part] = arguments else { panic!("peer NAME PART") };
    let part: f64 = part.parse().expect("PART is a number");
    let workload = WORKLOADS.iter().find(|workload| workload.name == name).expect("W1 to W5");
    let (scale, runs) = if workload.runs > 1 { (1.0, part as u32) } else { (part, 1) };
    let scenario = loaded(&(workload.scenario)(scale)).scenario;
    let (seconds, sums) = best(1, || {
        (0..runs).fold((0, 0, 0, 0.0), |sums, _| {
            let outcome = sim::run(&scenario, &mut NullRecorder).expect("a good scenario");
            let retransmitted: u64 =
                outcome.flows.iter().map(|flow| flow.retransmitted_segments).sum();
            let bytes: u64 = outcome.flows.iter().map(|flow| flow.bytes.get()).sum();
            let ended = outcome.ended.as_secs_f64();
            (sums.0 + outcome.segments, sums.1 + retransmitted, sums.2 + bytes, sums.3 + ended)
        })
    });
    let (segments, retransmitted, bytes, ended) = sums;
    println!("{segments}\t{retransmitted}\t{bytes}\t{ended}\t{:.0}", seconds * 1e9);
}
