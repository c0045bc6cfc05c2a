//! BBR of a QUIC sender against quinn-proto's BBR. quinn's draws the phase of its cycle from the operating system's
//! random numbers, so no two runs are equal: means of several runs are compared with bounds. docs/ledger/quic.md has a table.
//!
//! quinn-proto 0.11.19 follows Chromium's BBR. It uses its window only: packets are paced at 5/4 of a window in a round trip
//! (`connection/pacing.rs`), not at the rate that BBR computes, which appears in qlog alone (`metrics`).

use std::fmt::Write as _;

use units::{Duration, Instant};

use crate::meter::SenderMeter;
use crate::profile::{Path, scenario};
use crate::quinn_world::{self, QuinnController};

const WARM_UP: Duration = Duration::from_secs(3);
const RUNS: u64 = 3;

const PATHS: [Path; 8] = [
    (10, 40, 50, "", RUNS),
    (10, 100, 100, "", RUNS),
    (50, 20, 200, "", RUNS),
    (50, 80, 400, "", RUNS),
    (50, 40, 50, "", RUNS),
    (50, 40, 200, "{ loss = \"0.1%\" },", RUNS),
    (50, 20, 200, "{ loss = \"1%\" },", RUNS),
    (10, 80, 100, "{ loss = \"0.5%\" },", RUNS),
];

/// Mbit/s of quinn's BBR, of ours with quinn's other rules, and of ours with CUBIC; means of the runs.
fn rates(path: Path) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for seed in 1..=RUNS {
        let meter = || SenderMeter::new(Instant::ZERO + WARM_UP);
        let real = scenario(("rfc", ""), path, 2, seed);
        let controller = (2, QuinnController::Bbr);
        sums[0] += quinn_world::run(&real, controller, seed as u8, meter()).mbps();
        for (sum, cc) in sums[1..].iter_mut().zip(["bbr", "cubic"]) {
            let mut ours = meter();
            let scenario = scenario(("quinn-0.11", cc), path, 2, seed);
            sim::run(&scenario, &mut ours).unwrap_or_else(|error| panic!("{error:?}"));
            *sum += ours.mbps();
        }
    }
    sums.map(|sum| sum / RUNS as f64)
}

#[test]
#[expect(clippy::print_stdout, reason = "prints the table, which differs from run to run")]
fn bbr_beside_quinns() {
    let mut table = format!(
        "{:>6} {:>6} {:>6} {:<18} {:>8} {:>8} {:>8}\n",
        "Mbit/s", "RTT ms", "buffer", "loss", "quinn", "bbr", "cubic"
    );
    let mut off = Vec::new();
    for path in PATHS {
        let [real, ours, cubic] = rates(path);
        let (rate, rtt, buffer, loss, _) = path;
        let loss = loss.trim_end_matches(" },").trim_start_matches("{ ");
        let _ = writeln!(
            table,
            "{rate:>6} {rtt:>6} {buffer:>6} {loss:<18} {real:>8.2} {ours:>8.2} {cubic:>8.2}"
        );
        off.push((ours / real - 1.0).abs());
    }
    println!("{table}");
    assert!(off.iter().all(|off| *off < 0.06), "{table}");
}
