//! The same path in FreeBSD's complete TCP: main of 29 October 2024 with stock CUBIC and with
//! D46546, compiled into a program and run in virtual time (golden/freebsd-closed/long-runs.csv).

use super::world::{LanSender, Loss, NEWRENO, PATCHED, STOCK, Transfer, sender, transfer};
use crate::cases::{CaseError, CaseRow, Workers};

/// `version,cc,hz,loss,seed,seconds,mbit_per_s,rtos,fast_recoveries,…`
const RUNS: &str = include_str!("../../../data/long-runs.csv");
/// Lists of lost data packets: `probability seed: numbers`.
const LOSSES: &str = include_str!("../../../data/cubic-hz-losses.txt");

/// A transfer of the complete stack.
struct RealRun {
    cc: &'static str,
    hz: u32,
    loss: Loss,
    title: String,
    seconds: u32,
    mbits: f64,
    rtos: u64,
}

impl RealRun {
    fn is_periodic(&self) -> bool {
        matches!(self.loss, Loss::Periodic(_))
    }
}

/// The transfers of main.
fn runs() -> Result<Vec<RealRun>, CaseError> {
    let of_main = RUNS.lines().filter(|line| line.starts_with("main,"));
    of_main
        .map(|line| read(line).ok_or_else(|| CaseError(format!("long-runs.csv: {line}"))))
        .collect()
}

fn read(line: &str) -> Option<RealRun> {
    let mut cells = line.split(',').skip(1);
    let mut next = || cells.next();
    let cc = match next()? {
        "newreno" => NEWRENO,
        "cubic" => STOCK,
        "d46546" => PATCHED,
        _ => return None,
    };
    let hz = next()?.parse().ok()?;
    let (kind, amount) = next()?.split_once(' ')?;
    let seed = next()?;
    let (loss, title) = match kind {
        "every" => (Loss::Periodic(amount.parse().ok()?), format!("every {amount}th packet lost")),
        _ => (Loss::Listed(listed(amount, seed)?), format!("random loss {amount}, seed {seed}")),
    };
    let (seconds, mbits, rtos) =
        (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    Some(RealRun { cc, hz, loss, title, seconds, mbits, rtos })
}

/// The list with that probability and seed.
fn listed(probability: &str, seed: &str) -> Option<&'static str> {
    let head = format!("{probability} {seed}: ");
    LOSSES.lines().find_map(|line| line.strip_prefix(&head))
}

fn name_of(cc: &str) -> &'static str {
    match cc {
        STOCK => "stock cubic",
        PATCHED => "cubic with D46546",
        _ => "newreno",
    }
}

fn model(run: &RealRun, workers: &Workers<'_>) -> Result<Transfer, CaseError> {
    let mut set = sender(LanSender { hz: run.hz, cc: run.cc }, run.loss);
    set.push(format!("duration={}s", run.seconds));
    transfer(1, &set, workers)
}

/// The model's result for every transfer of the complete stack, and the claims of the review that
/// hold there.
pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let (mut rows, mut measured) = (Vec::new(), Vec::new());
    let runs = runs()?;
    let transfers = workers.map(&runs, |run| model(run, workers))?;
    for (run, came) in runs.into_iter().zip(transfers) {
        let band = if run.is_periodic() { 0.01 } else { 0.05 };
        let name = format!("real stack: {}, hz {}, {}", run.title, run.hz, name_of(run.cc));
        rows.push(
            CaseRow::band(
                name.clone(),
                "Mbit/s",
                run.mbits,
                Some(came.mbits),
                run.mbits * (1.0 - band),
                run.mbits * (1.0 + band),
            )
            .note(if run.is_periodic() { PERIODIC } else { LISTED })
            .recorded(),
        );
        let rtos = run.rtos as f64;
        let off = if run.is_periodic() { 0.0 } else { 1.0 };
        rows.push(
            CaseRow::band(
                format!("{name}: timeouts"),
                "",
                rtos,
                Some(came.rtos as f64),
                (rtos - off).max(0.0),
                rtos + off,
            )
            .note(if run.is_periodic() { PERIODIC } else { LISTED })
            .recorded(),
        );
        measured.push((run, came.mbits));
    }
    rows.extend(periodic_claims(&measured));
    rows.extend(random_claims(&measured));
    Ok(rows)
}

const PERIODIC: &str = "FreeBSD main of October 2024, 10 s; within 1 %, timeouts equal";
const LISTED: &str =
    "FreeBSD main of October 2024, 5 s, the same packets lost; within 5 % and one timeout";

/// The claims of the review, under periodic loss.
fn periodic_claims(measured: &[(RealRun, f64)]) -> Vec<CaseRow> {
    let mut rows = Vec::new();
    for every in [100, 50] {
        let of = |hz, cc| {
            let found =
                |run: &RealRun| (run.loss, run.hz, run.cc) == (Loss::Periodic(every), hz, cc);
            measured.iter().find(|(run, _)| found(run)).map_or(f64::NAN, |&(_, mbits)| mbits)
        };
        let title = format!("every {every}th packet lost");
        let mut order = [
            ("stock", of(100, STOCK)),
            ("newreno", of(100, NEWRENO)),
            ("D46546", of(100, PATCHED)),
        ];
        order.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        rows.push(CaseRow::text(
            format!("{title}, hz 100: order"),
            "stock, newreno, D46546",
            Some(order.map(|(name, _)| name).join(", ")),
        ));
        let over_hz = |cc| [100, 1_000, 10_000].map(|hz| of(hz, cc));
        let most = over_hz(PATCHED).into_iter().fold(0.0, f64::max);
        let least = over_hz(PATCHED).into_iter().fold(f64::MAX, f64::min);
        rows.push(
            CaseRow::at_most(
                format!("{title}: D46546 moves over hz 100 to 10000"),
                "%",
                10.0,
                Some(100.0 * (most / least - 1.0)),
            )
            .note("the largest figure over the least"),
        );
        rows.push(
            CaseRow::at_least(
                format!("{title}: stock gains from hz 100 to 10000"),
                "times",
                1.5,
                Some(of(10_000, STOCK) / of(100, STOCK)),
            )
            .note("published: 5.5 times at 1 % loss, 8.2 times at 2 %; the complete stack: 2.31 and 1.65"),
        );
    }
    rows
}

/// The same claims under the random lists: means over the seeds at hz 100.
fn random_claims(measured: &[(RealRun, f64)]) -> Vec<CaseRow> {
    let mut rows = Vec::new();
    for probability in ["0.01", "0.02"] {
        let prefix = format!("random loss {probability},");
        let mean = |cc| {
            let of = measured
                .iter()
                .filter(|(run, _)| run.title.starts_with(&prefix) && run.hz == 100 && run.cc == cc);
            let all: Vec<f64> = of.map(|&(_, mbits)| mbits).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        let (stock, newreno, patched) = (mean(STOCK), mean(NEWRENO), mean(PATCHED));
        rows.push(
            CaseRow::at_most(
                format!("random loss {probability}, hz 100: stock of the lesser of the others"),
                "%",
                100.0,
                Some(100.0 * stock / newreno.min(patched)),
            )
            .note("means over three lists: stock is the least"),
        );
        rows.push(
            CaseRow::info(
                format!("random loss {probability}, hz 100: D46546 of newreno"),
                "%",
                if probability == "0.01" { 101.0 } else { 114.0 },
                Some(100.0 * patched / newreno),
            )
            .note("published: under a loss that the review does not describe; in the complete stack NewReno is above D46546 at 1 %"),
        );
    }
    rows
}
