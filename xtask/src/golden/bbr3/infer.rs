//! Infers from a recording what the kernel drew at random: when a cycle of ProbeBW begins, the rounds that count as passed
//! (0 or 1) and the wait until the next probe (2 to 3 s).
//!
//! A run without the right draw differs from the recording when one of them probes and the other does not. A run that
//! probes too early differs earlier than one that probes too late, or at the same row with a higher rate or window, so the
//! wait is found by bisection. Nothing but the draws is adjusted; a difference that no draw delays is one.

use std::fmt;

use cc::bbr3::ProbeDraw;

use super::compare::Comparison;
use super::recording::Bbr3Recording;
use super::run::{ModelRun, Transfer};

/// The kernel's range of the wait, in microseconds.
const WAITS: [u32; 2] = [2_000_000, 2_999_999];
/// The draw of a cycle that nothing is known of: the latest probe.
const LATEST: ProbeDraw = ProbeDraw { rounds: 0, wait_us: WAITS[1] };
/// Cycles beyond this number are not inferred.
const MOST_DRAWS: usize = 512;

/// The best run.
pub(super) struct Inferred {
    pub(super) comparison: Comparison,
    draws: Vec<ProbeDraw>,
}

/// A run with given draws.
struct Trial {
    draws: Vec<ProbeDraw>,
    run: ModelRun,
    comparison: Comparison,
}

impl Trial {
    /// Time until which it is equal.
    fn reach(&self) -> u64 {
        self.comparison.differs_at().unwrap_or(u64::MAX)
    }

    /// Number of draws made before it differs.
    fn drawn(&self) -> usize {
        let reach = self.reach();
        self.run.draws.iter().take_while(|(at, _)| *at <= reach).count()
    }
}

/// Runs a recording with the draws with which it is equal for longest.
///
/// # Errors
/// The scenario cannot be run.
pub(super) fn infer(recording: &Bbr3Recording) -> Result<Inferred, String> {
    let mut transfer = Transfer::of(recording)?;
    let mut attempt = |draws: &[ProbeDraw]| -> Result<Trial, String> {
        let mut given = draws.to_vec();
        given.resize(MOST_DRAWS, LATEST);
        // A few hundred runs of a development tool.
        let run = transfer.run(Box::leak(given.into_boxed_slice()), &recording.rows)?;
        let comparison = Comparison::of(recording, &run);
        Ok(Trial { draws: draws.to_vec(), run, comparison })
    };
    let mut best = attempt(&[])?;
    'cycles: while best.reach() < u64::MAX {
        let drawn = best.drawn();
        // The last cycle that began before the difference, or the one before it.
        for at in (0..drawn).rev().take(2) {
            if let Some(better) = improve(&best, at, &mut attempt)? {
                best = better;
                continue 'cycles;
            }
        }
        break;
    }
    let used = best.run.draws.len();
    let mut draws = best.draws;
    draws.resize(used, LATEST);
    Ok(Inferred { comparison: best.comparison, draws })
}

/// Looks for a draw of the cycle `at` with which the run is equal for longer.
fn improve(
    best: &Trial,
    at: usize,
    attempt: &mut impl FnMut(&[ProbeDraw]) -> Result<Trial, String>,
) -> Result<Option<Trial>, String> {
    let mut draws = best.draws.clone();
    draws.resize(at + 1, LATEST);
    draws[at] = LATEST;
    let with = |draw: ProbeDraw| {
        let mut draws = draws.clone();
        draws[at] = draw;
        draws
    };
    let better = |trial: &Trial| trial.reach() > best.reach();
    let mut found: Option<Trial> = None;
    for rounds in [0, 1] {
        let late = attempt(&with(ProbeDraw { rounds, ..LATEST }))?;
        let (reach, mut range) = (late.reach(), WAITS);
        let unprobed = late.comparison.first().map(|first| first.text.clone());
        if better(&late) && found.as_ref().is_none_or(|known| known.reach() < reach) {
            found = Some(late);
        }
        while range[0] + 1 < range[1] {
            let wait_us = range[0] + (range[1] - range[0]) / 2;
            let trial = attempt(&with(ProbeDraw { rounds, wait_us }))?;
            match trial.reach().cmp(&reach) {
                std::cmp::Ordering::Less => range[0] = wait_us,
                std::cmp::Ordering::Equal => {
                    // A probe raises rate and window.
                    let early = trial
                        .comparison
                        .first()
                        .is_some_and(|first| first.ahead && Some(&first.text) != unprobed.as_ref());
                    range[usize::from(!early)] = wait_us;
                }
                std::cmp::Ordering::Greater => {
                    if better(&trial)
                        && found.as_ref().is_none_or(|known| known.reach() < trial.reach())
                    {
                        found = Some(trial);
                    }
                    break;
                }
            }
        }
        if found.is_some() {
            break;
        }
    }
    Ok(found)
}

impl fmt::Display for Inferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.comparison.is_identical() { "identical" } else { "differs" };
        write!(f, "{verdict}: {}", self.comparison)?;
        write!(f, "\n    draws")?;
        for ProbeDraw { rounds, wait_us } in &self.draws {
            write!(f, " {rounds}:{wait_us}")?;
        }
        Ok(())
    }
}
