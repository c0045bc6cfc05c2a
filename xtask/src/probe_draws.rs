//! Infers from a recording what kernels with BBR version 3 drew at random: when a cycle of ProbeBW begins, the rounds that
//! count as passed (0 or 1) and the wait until the next probe (2 to 3 s).
//!
//! A run without the right draw differs from the recording when one of them probes and the other does not. A run that
//! probes too early differs earlier than one that probes too late, or at the same place with the model ahead, so the wait
//! is found by bisection. Nothing but the draws is adjusted; a difference that no draw delays is one.

use std::cmp::Ordering;
use std::fmt;

use cc::bbr3::ProbeDraw;

/// The kernel's range of the wait, in microseconds.
const WAITS: [u32; 2] = [2_000_000, 2_999_999];
/// The draw of a cycle that nothing is known of: the latest probe.
const LATEST: ProbeDraw = ProbeDraw { rounds: 0, wait_us: WAITS[1] };

/// Where a run first differs from its recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FirstDifference {
    /// Nanoseconds since the start.
    pub(crate) at: u64,
    /// The difference in words: of two runs, equal where nothing but its time may differ.
    pub(crate) text: String,
    /// The run has sent the packet earlier, or has the higher rate or window.
    pub(crate) ahead: bool,
}

/// A draw that a run made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeDraw {
    /// Nanoseconds since the start.
    pub(crate) at: u64,
    /// Index of the sender that made it.
    pub(crate) sender: usize,
}

/// A run with given draws, compared with its recording.
pub(crate) trait DrawTrial {
    /// The first difference.
    fn first(&self) -> Option<&FirstDifference>;

    /// The draws made, in order of time.
    fn made(&self) -> &[MadeDraw];
}

/// The run that is equal to its recording for longest.
#[derive(Debug)]
pub(crate) struct InferredDraws<T> {
    pub(crate) trial: T,
    /// The draws of the cycles that began before it differs, by sender.
    pub(crate) draws: Vec<Vec<ProbeDraw>>,
}

/// Draws for every cycle of a sender: the known ones, then the latest probe.
pub(crate) fn padded(draws: &[ProbeDraw], cycles: usize) -> &'static [ProbeDraw] {
    let mut given = draws.to_vec();
    given.resize(cycles.max(draws.len()), LATEST);
    // A few hundred runs of a development tool.
    Box::leak(given.into_boxed_slice())
}

/// Runs a recording of `senders` senders with the draws with which it is equal for longest; `run` runs it with draws by
/// sender.
///
/// # Errors
/// Those of `run`.
pub(crate) fn infer<T: DrawTrial, E>(
    senders: usize,
    run: impl FnMut(&[Vec<ProbeDraw>]) -> Result<T, E>,
) -> Result<InferredDraws<T>, E> {
    let mut search = Search { run };
    let mut best = search.attempt(vec![Vec::new(); senders])?;
    'cycles: while best.reach() < u64::MAX {
        // The last cycle of a sender that began before the difference, or the one before it.
        for (sender, cycle) in best.last_cycles(2 * senders) {
            if let Some(better) = search.improve(&best, sender, cycle)? {
                best = better;
                continue 'cycles;
            }
        }
        break;
    }
    let reach = best.reach();
    let Attempt { trial, mut draws } = best;
    for (sender, draws) in draws.iter_mut().enumerate() {
        // Later ones have no effect on what is equal.
        let made = trial.made().iter().filter(|made| made.sender == sender && made.at <= reach);
        draws.resize(made.count(), LATEST);
    }
    Ok(InferredDraws { trial, draws })
}

/// A trial with the draws that it was given.
struct Attempt<T> {
    trial: T,
    draws: Vec<Vec<ProbeDraw>>,
}

impl<T: DrawTrial> Attempt<T> {
    /// Time until which it is equal.
    fn reach(&self) -> u64 {
        self.trial.first().map_or(u64::MAX, |first| first.at)
    }

    /// Senders and indices of the last `most` cycles that began before it differs, latest first.
    fn last_cycles(&self, most: usize) -> Vec<(usize, usize)> {
        let mut counts = vec![0; self.draws.len()];
        let reach = self.reach();
        let made = self.trial.made().iter().take_while(|made| made.at <= reach);
        let mut cycles: Vec<_> = made
            .map(|made| {
                counts[made.sender] += 1;
                (made.sender, counts[made.sender] - 1)
            })
            .collect();
        cycles.reverse();
        cycles.truncate(most);
        cycles
    }
}

struct Search<F> {
    run: F,
}

impl<F> Search<F> {
    fn attempt<T: DrawTrial, E>(&mut self, draws: Vec<Vec<ProbeDraw>>) -> Result<Attempt<T>, E>
    where
        F: FnMut(&[Vec<ProbeDraw>]) -> Result<T, E>,
    {
        Ok(Attempt { trial: (self.run)(&draws)?, draws })
    }

    /// Looks for a draw of one cycle with which the run is equal for longer.
    fn improve<T: DrawTrial, E>(
        &mut self,
        best: &Attempt<T>,
        sender: usize,
        cycle: usize,
    ) -> Result<Option<Attempt<T>>, E>
    where
        F: FnMut(&[Vec<ProbeDraw>]) -> Result<T, E>,
    {
        let with = |draw: ProbeDraw| {
            let mut draws = best.draws.clone();
            // Later cycles of the sender depend on this one.
            draws[sender].resize(cycle + 1, LATEST);
            draws[sender][cycle] = draw;
            draws
        };
        // Most cycles that end by their rounds need no other wait.
        let mut latest = Vec::new();
        for rounds in [0, 1] {
            let late = self.attempt(with(ProbeDraw { rounds, ..LATEST }))?;
            if late.reach() > best.reach() {
                return Ok(Some(late));
            }
            latest.push(late);
        }
        for (rounds, late) in (0..).zip(latest) {
            let found = self.bisect(&late, |wait_us| with(ProbeDraw { rounds, wait_us }))?;
            if let Some(found) = found.filter(|found| found.reach() > best.reach()) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Looks for a wait with which the run is equal for longer than `late`, which has the longest.
    fn bisect<T: DrawTrial, E>(
        &mut self,
        late: &Attempt<T>,
        with: impl Fn(u32) -> Vec<Vec<ProbeDraw>>,
    ) -> Result<Option<Attempt<T>>, E>
    where
        F: FnMut(&[Vec<ProbeDraw>]) -> Result<T, E>,
    {
        let unprobed = late.trial.first().map(|first| &first.text);
        let mut range = WAITS;
        while range[0] + 1 < range[1] {
            let wait_us = range[0] + (range[1] - range[0]) / 2;
            let trial = self.attempt(with(wait_us))?;
            match trial.reach().cmp(&late.reach()) {
                Ordering::Less => range[0] = wait_us,
                Ordering::Equal => {
                    // A probe raises rate and window.
                    let first = trial.trial.first();
                    let early =
                        first.is_some_and(|first| first.ahead && Some(&first.text) != unprobed);
                    range[usize::from(!early)] = wait_us;
                }
                Ordering::Greater => return Ok(Some(trial)),
            }
        }
        Ok(None)
    }
}

/// The draws of a sender as `ROUNDS:MICROSECONDS`.
pub(crate) struct ShownDraws<'a>(pub(crate) &'a [ProbeDraw]);

impl fmt::Display for ShownDraws<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, ProbeDraw { rounds, wait_us }) in self.0.iter().enumerate() {
            let space = if position == 0 { "" } else { " " };
            write!(f, "{space}{rounds}:{wait_us}")?;
        }
        Ok(())
    }
}
