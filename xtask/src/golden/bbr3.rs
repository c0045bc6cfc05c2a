//! Transfers of a Linux kernel with BBR version 3, in virtual time: run with our stack at both hosts and compared in
//! every data packet, and in the windows and the pacing rate of every row of `tcp_info`.
//!
//! What the kernel draws at random when a cycle of ProbeBW begins is inferred from the recording (`infer`).

mod compare;
mod infer;
mod recording;
mod run;

use std::path::Path;

use super::closed::ClosedVerdict;
use crate::processors;
use recording::Bbr3Recording;
use sim::scenario::{Scenario, StackSpec};
use units::Duration;

/// Compares the recordings of a directory or file: a line for each transfer, and a summary.
pub(super) fn run(place: &Path, verdict: &mut ClosedVerdict) {
    let mut files = recording::files(place);
    if files.is_empty() {
        return;
    }
    files.sort();
    let (mut all, mut identical) = (0, 0);
    let mut totals = Totals::default();
    let outcomes = processors::map(&files, |file| {
        let recording = Bbr3Recording::read(file)?;
        let outcome = infer::infer(&recording)?;
        Ok::<_, String>((recording.name, outcome))
    });
    for (file, outcome) in files.iter().zip(outcomes) {
        let (name, outcome) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                verdict.garbled = true;
                continue;
            }
        };
        verdict.replayed += 1;
        all += 1;
        let same = outcome.comparison.is_identical();
        identical += u32::from(same);
        verdict.differ |= !same;
        totals.add(&outcome.comparison);
        println!("{name} {outcome}");
    }
    println!("bbr3: {totals}");
    println!("bbr3: {all} transfers, {identical} identical");
}

/// Sums over transfers.
#[derive(Debug, Default)]
struct Totals {
    packets: usize,
    same_packets: usize,
    all_packets: u32,
    rows: usize,
    same_rows: usize,
    largest_ns: u64,
}

impl Totals {
    fn add(&mut self, one: &compare::Comparison) {
        self.packets += one.packets;
        self.same_packets += one.same_packets;
        self.all_packets += u32::from(one.packets == one.same_packets);
        self.rows += one.rows;
        self.same_rows += one.same_rows;
        self.largest_ns = self.largest_ns.max(one.largest_ns);
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "data packets {} equal {}, transfers with all equal {}, largest difference in time {} ns; rows of tcp_info {} \
             equal {}",
            self.packets,
            self.same_packets,
            self.all_packets,
            self.largest_ns,
            self.rows,
            self.same_rows
        )
    }
}

/// Resolution of the clock of a kernel in User-Mode Linux (`TIMER_MULTIPLIER`).
const CLOCK_STEP: u32 = 256;
/// How often the recorder reads `tcp_info`.
const RECORDED_EVERY: Duration = Duration::from_millis(10);
/// When the SYN leaves: the timer of the process that opens the connection fires 232 ns late, by what the clock did not show
/// when the last tick of the boot programmed it (231 ns) and one; connect(2) reads the clock twice.
const SYN_AT: Duration = Duration::from_nanos(744);

/// Sets what the scenario of a recording does not say of the recorder: the clock of its kernels.
pub(super) fn prepare(scenario: &mut Scenario) {
    for host in &mut scenario.hosts {
        if let StackSpec::Tcp(tcp) = &mut host.stack {
            tcp.profile.clock_step = CLOCK_STEP;
        }
    }
    for flow in &scenario.flows {
        if let StackSpec::Tcp(tcp) = &mut scenario.hosts[flow.from].stack {
            tcp.profile.recorder = RECORDED_EVERY;
        }
    }
    for flow in &mut scenario.flows {
        flow.start = SYN_AT;
    }
}
