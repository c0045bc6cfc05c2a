//! What BBR draws at random: of version 3 the waits between two probes, of version 1 the phase in which ProbeBW begins. Each
//! is that with which the flights are nearest to the recorded ones.

use cc::Bbr;
use cc::bbr3::{Bbr3, ProbeDraw};
use units::Duration;

use super::SenderReplay;

/// Cycles whose wait is looked for; later ones have a random one.
const MOST_CYCLES: u32 = 64;
/// Waits that are compared, in microseconds: the kernel's 2 to 3 s in steps of 100 ms.
const FIRST_WAIT: u32 = 2_050_000;
const STEP: u32 = 100_000;
const WAITS: u32 = 10;
/// Longest cycle without a probe.
const LATEST: ProbeDraw = ProbeDraw { rounds: 0, wait_us: 2_999_999 };
/// Round trips after a probe that are compared too.
const AFTER: u64 = 3;
/// Phases in which ProbeBW of version 1 may begin, and the round trips that are compared: three cycles.
const PHASES: [usize; 7] = [0, 2, 3, 4, 5, 6, 7];
const CYCLES: u64 = 24;

/// The cycles of a replay.
#[derive(Debug, Default)]
pub(super) struct ProbeCycles {
    begun: u32,
    sought: u32,
    /// Version 1 is in ProbeBW.
    is_cycling: bool,
}

fn draws_of(replay: &SenderReplay<'_>) -> Option<u32> {
    replay.cc.bbr3().map(Bbr3::draw).map(|(_, made)| made)
}

impl ProbeCycles {
    /// After event `n`: if a cycle has begun, gives it the draw that matches best at `peaks`.
    pub(super) fn follow(&mut self, replay: &mut SenderReplay<'_>, n: usize, peaks: &[usize]) {
        let cycles = replay.cc.bbr1().and_then(Bbr::probe_phase).is_some();
        if cycles && !self.is_cycling && self.sought < MOST_CYCLES {
            self.sought += 1;
            choose_phase(replay, n + 1, peaks);
        }
        self.is_cycling = cycles;
        self.follow_waits(replay, n, peaks);
    }

    fn follow_waits(&mut self, replay: &mut SenderReplay<'_>, n: usize, peaks: &[usize]) {
        let Some(made) = draws_of(replay).filter(|&made| made != self.begun) else { return };
        self.begun = made;
        if self.sought >= MOST_CYCLES {
            return;
        }
        self.sought += 1;
        let (end, least) = trial(replay, n + 1, LATEST, None, peaks);
        let sooner =
            (0..WAITS).map(|step| ProbeDraw { wait_us: FIRST_WAIT + step * STEP, ..LATEST });
        // Another round counts as passed: on paths of few packets a probe follows after a number of rounds.
        let draws = sooner.chain([ProbeDraw { rounds: 1, ..LATEST }]);
        let mut best = (least, LATEST);
        for draw in draws {
            let (_, misfit) = trial(replay, n + 1, draw, Some(end), peaks);
            if misfit < best.0 {
                best = (misfit, draw);
            }
        }
        replay.cc.redraw(best.1);
    }
}

/// Lets ProbeBW of version 1 begin in the phase that matches best from event `from` on.
fn choose_phase(replay: &mut SenderReplay<'_>, from: usize, peaks: &[usize]) {
    let turns = &replay.flow.turns;
    let Some(first) = turns.get(from) else { return };
    let end = first.at + replay.srtt.max(Duration::from_millis(1)) * CYCLES;
    let until = turns.partition_point(|later| later.at < end);
    let misfit = |phase: usize| {
        let mut one = replay.clone();
        one.cc.set_probe_phase(phase);
        let mut misfit = 0.0;
        for (n, turn) in turns.iter().enumerate().take(until).skip(from) {
            one.hear(turn);
            if peaks.binary_search(&n).is_ok() {
                misfit += one.off(turn);
            }
        }
        misfit
    };
    let best = PHASES.into_iter().map(|phase| (misfit(phase), phase));
    let best = best.min_by(|one, other| one.0.total_cmp(&other.0));
    if let Some((_, phase)) = best {
        replay.cc.set_probe_phase(phase);
    }
}

/// Replays from event `from` with this draw until event `end`, or until shortly after the next cycle begins; returns where
/// it ended, and the sum of the misfits.
fn trial(
    replay: &SenderReplay<'_>,
    from: usize,
    draw: ProbeDraw,
    end: Option<usize>,
    peaks: &[usize],
) -> (usize, f64) {
    let mut one = replay.clone();
    one.cc.redraw(draw);
    let turns = &replay.flow.turns;
    let made = draws_of(&one);
    let mut until = end.unwrap_or(turns.len());
    let mut is_open = end.is_none();
    let mut next = peaks.partition_point(|&peak| peak < from);
    let mut misfit = 0.0;
    for (n, turn) in turns.iter().enumerate().skip(from) {
        if n >= until {
            break;
        }
        one.hear(turn);
        if peaks.get(next) == Some(&n) {
            misfit += one.off(turn);
            next += 1;
        }
        if is_open && draws_of(&one) != made {
            is_open = false;
            let rest = one.srtt.max(Duration::from_millis(1)) * AFTER;
            until = turns.partition_point(|later| later.at < turn.at + rest);
        }
    }
    (until, misfit)
}
