//! The search: single changes of the plain path, then random worlds; for each cause a shrunk world
//! and a local search around it.

use std::collections::BTreeMap;

use units::RandomStream;

use crate::measure::WorldFigure;
use crate::report::{HuntCase, HuntCounts, HuntReport};
use crate::space::{
    FLOWS, GAP, NUMBERS, PARTS, PAUSE, PartPosition, RATE, RTT, SpaceLimits, TRANSFER,
};
use crate::world::{Dimension, HuntWorld};
use crate::{HuntError, HuntGoal, HuntRequest, WorldRunner};

/// Rounds of a local search, and the neighbours that each tries.
const ROUNDS: u64 = 6;
const NEIGHBOURS: usize = 12;

/// Candidates whose causes are checked at once.
const CHECKED: usize = 16;

/// Shrinking may give away this part of the badness that the local search found.
const KEPT: f64 = 0.75;

/// Numbers that make an effect larger or smaller.
const SCALE: [usize; 6] = [RATE, RTT, FLOWS, GAP, TRANSFER, PAUSE];

/// A hunt in progress.
pub(crate) struct Hunt<'a> {
    request: &'a HuntRequest,
    limits: SpaceLimits,
    /// Badness from which a world counts.
    limit: f64,
    runner: &'a mut WorldRunner<'a>,
    /// The figures of worlds that were run.
    known: BTreeMap<HuntWorld, WorldFigure>,
}

/// A case that was found.
struct FoundCase {
    causes: Vec<Dimension>,
    /// The shrunk world.
    small: HuntWorld,
    /// The worst world near it.
    worst: HuntWorld,
    figure: WorldFigure,
}

/// The dimensions of the search, by the goal, the sender and the request.
///
/// # Errors
/// A name of `without` is not in the space.
pub(crate) fn limits(request: &HuntRequest) -> Result<SpaceLimits, HuntError> {
    let mut limits = match request.goal {
        HuntGoal::Utilisation => SpaceLimits::transfers(),
        // Transfers that end leave nothing to measure in the second half.
        HuntGoal::Loss | HuntGoal::Delay => SpaceLimits::endless(1),
        HuntGoal::Starvation => SpaceLimits::endless(2),
    };
    let offload = request.sender.has_receive_offload();
    for (part, searched) in PARTS.iter().zip(&mut limits.parts) {
        let position = part.position;
        *searched = match position {
            PartPosition::ReceiverOffload | PartPosition::SenderOffload => offload,
            _ => !(request.sender.is_quic() && position.needs_tcp()),
        };
    }
    for name in &request.without {
        let number = NUMBERS.iter().position(|number| number.name == name);
        let part = PARTS.iter().position(|part| part.name == name);
        match (number, part) {
            (Some(index), _) => limits.numbers[index] = (limits.plain[index], limits.plain[index]),
            (None, Some(index)) => limits.parts[index] = false,
            (None, None) => return Err(HuntError::Unknown(name.clone())),
        }
    }
    Ok(limits)
}

impl<'a> Hunt<'a> {
    pub(crate) fn new(
        request: &'a HuntRequest,
        runner: &'a mut WorldRunner<'a>,
    ) -> Result<Self, HuntError> {
        Ok(Self {
            request,
            limits: limits(request)?,
            limit: request.goal.badness(request.limit),
            runner,
            known: BTreeMap::new(),
        })
    }

    /// The figures of worlds, in their order; each world is run once.
    fn figures(&mut self, worlds: &[HuntWorld]) -> Result<Vec<WorldFigure>, HuntError> {
        let mut new: Vec<HuntWorld> = Vec::new();
        for world in worlds {
            if !self.known.contains_key(world) && !new.contains(world) {
                new.push(world.clone());
            }
        }
        if !new.is_empty() {
            let figures = (self.runner)(&new)?;
            if figures.len() != new.len() {
                let message = format!("{} figures of {} worlds", figures.len(), new.len());
                return Err(HuntError::World(message));
            }
            self.known.extend(new.into_iter().zip(figures));
        }
        // Every world is known now.
        Ok(worlds.iter().filter_map(|world| self.known.get(world).copied()).collect())
    }

    fn badness(&mut self, worlds: &[HuntWorld]) -> Result<Vec<f64>, HuntError> {
        let goal = self.request.goal;
        Ok(self.figures(worlds)?.into_iter().map(|figure| goal.badness(figure.value)).collect())
    }

    fn is_over(&self) -> bool {
        self.known.len() >= self.request.worlds
    }

    /// Hunts until no world is left whose cause is not known, or until the budget is used.
    pub(crate) fn run(mut self) -> Result<HuntReport, HuntError> {
        let mut cases: Vec<FoundCase> = Vec::new();
        let singles = self.single_changes()?;
        let bad_singles = singles.iter().filter(|(_, badness)| *badness >= self.limit).count();
        let plain = HuntWorld::plain(&self.limits);
        let plain_is_bad = self.badness(core::slice::from_ref(&plain))?[0] >= self.limit;
        let drawn = (self.request.worlds / 2).max(1);
        let seed = self.request.seed;
        let worlds: Vec<HuntWorld> = (0..drawn)
            .map(|number| {
                let mut draws = RandomStream::named(seed, &format!("world {number}"), "hunt");
                HuntWorld::draw(&self.limits, &mut draws)
            })
            .collect();
        let badness = self.badness(&worlds)?;
        let mut candidates: Vec<(f64, usize)> = badness.iter().copied().zip(0..).collect();
        // Of equal draws, one counts.
        candidates.retain(|&(_, number)| !worlds[..number].contains(&worlds[number]));
        let drawn = candidates.len();
        candidates.retain(|&(badness, _)| badness >= self.limit);
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let beyond = candidates.len();
        let mut at = 0;
        if plain_is_bad {
            // So every world is.
            self.add_case(plain, &mut cases)?;
            at = candidates.len();
        } else {
            self.add_singles(&singles, &mut cases)?;
        }
        while at < candidates.len() && !self.is_over() {
            let part = &candidates[at..(at + CHECKED).min(candidates.len())];
            // Without the causes of earlier cases, is the world still bad?
            let rest: Vec<HuntWorld> = part
                .iter()
                .map(|&(_, number)| self.without_causes(&worlds[number], &cases))
                .collect();
            let badness = self.badness(&rest)?;
            let Some(found) = badness.iter().position(|&badness| badness >= self.limit) else {
                at += part.len();
                continue;
            };
            at += found + 1;
            let small = self.shrunk(&rest[found], self.limit)?;
            self.add_case(small, &mut cases)?;
        }
        // Local searches from two causes can end in one world.
        let mut seen: Vec<HuntWorld> = Vec::new();
        cases.retain(|case| {
            let new = !seen.contains(&case.worst);
            seen.push(case.worst.clone());
            new
        });
        let goal = self.request.goal;
        cases.sort_by(|a, b| goal.badness(b.figure.value).total_cmp(&goal.badness(a.figure.value)));
        let mut found = Vec::new();
        for case in &cases {
            let ablated = self.ablated(case)?;
            let (causes, world) = (&case.causes, &case.worst);
            found.push(HuntCase::new(
                self.request,
                &self.limits,
                causes,
                world,
                case.figure,
                &ablated,
            ));
        }
        let unchecked = candidates.len() - at.min(candidates.len());
        let counts = HuntCounts {
            worlds: self.known.len(),
            single_changes: singles.len(),
            single_changes_beyond: bad_singles,
            drawn,
            beyond,
            unchecked,
        };
        Ok(HuntReport::new(self.request, counts, found))
    }

    /// Runs the single changes of the plain path: all, or by the seed as many as are a quarter of the
    /// budget. Each with its badness, in the order of the space.
    fn single_changes(&mut self) -> Result<Vec<(HuntWorld, f64)>, HuntError> {
        let mut worlds = HuntWorld::single_changes(&self.limits);
        let mut draws = RandomStream::named(self.request.seed, "single changes", "hunt");
        while worlds.len() > (self.request.worlds / 4).max(1) {
            worlds.remove(draws.below(worlds.len() as u64) as usize);
        }
        let badness = self.badness(&worlds)?;
        Ok(worlds.into_iter().zip(badness).collect())
    }

    /// Adds a case for each part, and each side of a number, that is bad alone.
    fn add_singles(
        &mut self,
        singles: &[(HuntWorld, f64)],
        cases: &mut Vec<FoundCase>,
    ) -> Result<(), HuntError> {
        let mut bad: Vec<&(HuntWorld, f64)> =
            singles.iter().filter(|(_, badness)| *badness >= self.limit).collect();
        bad.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (world, _) in bad {
            if self.is_over() {
                break;
            }
            if self.without_causes(world, cases) == *world {
                self.add_case(world.clone(), cases)?;
            }
        }
        Ok(())
    }

    /// Adds the case of a shrunk world: the worst world near it that still has its causes.
    fn add_case(&mut self, small: HuntWorld, cases: &mut Vec<FoundCase>) -> Result<(), HuntError> {
        let causes = small.dimensions(&self.limits);
        let worst = self.worst_near(&small, &causes, cases.len())?;
        let bar = self.badness(core::slice::from_ref(&worst))?[0] * KEPT;
        let mut worst = self.shrunk(&worst, bar.max(self.limit))?;
        let kept = worst.dimensions(&self.limits);
        if !causes.iter().all(|cause| kept.contains(cause)) {
            // The local search ended in a world that is bad without the cause.
            worst = small.clone();
        }
        let figure = self.figures(core::slice::from_ref(&worst))?[0];
        cases.push(FoundCase { causes, small, worst, figure });
        Ok(())
    }

    /// The figure of the worst world of a case without each of its causes.
    fn ablated(&mut self, case: &FoundCase) -> Result<Vec<f64>, HuntError> {
        let without = |cause: &Dimension| case.worst.without(*cause, &self.limits);
        let worlds: Vec<HuntWorld> = case.causes.iter().map(without).collect();
        Ok(self.figures(&worlds)?.into_iter().map(|figure| figure.value).collect())
    }

    /// The world without the parts (or else the numbers) of the cases that may explain it: those
    /// whose causes it has, each number on the same side of the plain path.
    fn without_causes(&self, world: &HuntWorld, cases: &[FoundCase]) -> HuntWorld {
        let side =
            |world: &HuntWorld, index: usize| world.numbers[index].cmp(&self.limits.plain[index]);
        let mut rest = world.clone();
        for FoundCase { causes, small, .. } in cases {
            let is_part = |cause: &&Dimension| matches!(cause, Dimension::Part(_));
            let any = causes.iter().any(|cause| is_part(&cause));
            let explains = causes.iter().all(|cause| match *cause {
                Dimension::Part(index) => rest.parts[index] > 0,
                // The same parts at another scale are no other cause.
                Dimension::Number(index) if any && SCALE.contains(&index) => true,
                Dimension::Number(index) => side(&rest, index) == side(small, index),
            });
            if explains {
                let taken = causes.iter().filter(|cause| !any || is_part(cause));
                rest = taken.fold(rest, |world, &cause| world.without(cause, &self.limits));
            }
        }
        rest
    }

    /// Returns dimensions to the plain path while the world is at least this bad. Of several that may
    /// return, the one without which the world remains worst does: what matters most is kept.
    fn shrunk(&mut self, world: &HuntWorld, badness: f64) -> Result<HuntWorld, HuntError> {
        let mut world = world.clone();
        loop {
            let smaller: Vec<HuntWorld> = world
                .dimensions(&self.limits)
                .into_iter()
                .map(|dimension| world.without(dimension, &self.limits))
                .collect();
            let found = self.badness(&smaller)?;
            let mut worst: Option<(f64, &HuntWorld)> = None;
            for (&found, smaller) in found.iter().zip(&smaller) {
                if found >= badness && worst.is_none_or(|(most, _)| found > most) {
                    worst = Some((found, smaller));
                }
            }
            let Some((_, worst)) = worst else { return Ok(world) };
            world = worst.clone();
        }
    }

    /// The worst world found near this one: its causes and the scale of the path vary.
    fn worst_near(
        &mut self,
        world: &HuntWorld,
        causes: &[Dimension],
        case: usize,
    ) -> Result<HuntWorld, HuntError> {
        let scale = [RATE, RTT, TRANSFER].map(Dimension::Number);
        let mut varied = causes.to_vec();
        varied.extend(scale.into_iter().filter(|dimension| !causes.contains(dimension)));
        let mut best = world.clone();
        let mut badness = self.badness(core::slice::from_ref(&best))?[0];
        let owner = format!("case {case}");
        let mut draws = RandomStream::named(self.request.seed, &owner, "local search");
        for _ in 0..ROUNDS {
            let near: Vec<HuntWorld> =
                (0..NEIGHBOURS).map(|_| best.mutated(&varied, &self.limits, &mut draws)).collect();
            let found = self.badness(&near)?;
            for (world, found) in near.into_iter().zip(found) {
                if found > badness {
                    (best, badness) = (world, found);
                }
            }
        }
        Ok(best)
    }
}
