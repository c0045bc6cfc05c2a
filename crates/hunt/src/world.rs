//! A world: a level of each number and each part.

use units::RandomStream;

use crate::space::{FLOWS, NUMBERS, PARTS, PAUSE, PartPosition, RATIO, SpaceLimits, TRANSFER};

/// A point of the search space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HuntWorld {
    /// The index of the value of each number.
    pub(crate) numbers: [usize; NUMBERS.len()],
    /// The level of each part; 0: the world does not have it.
    pub(crate) parts: [usize; PARTS.len()],
}

/// A number or a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    Number(usize),
    Part(usize),
}

impl HuntWorld {
    /// The levels of the numbers and then of the parts: the world for another process.
    pub fn levels(&self) -> Vec<u32> {
        self.numbers.iter().chain(&self.parts).map(|&level| level as u32).collect()
    }

    /// The world with these levels; `None` if this version's space has no such world.
    pub fn from_levels(levels: &[u32]) -> Option<Self> {
        let (numbers, parts) = levels.split_at_checked(NUMBERS.len())?;
        let read = |levels: &[u32]| levels.iter().map(|&level| level as usize).collect::<Vec<_>>();
        let numbers: [usize; NUMBERS.len()] = read(numbers).try_into().ok()?;
        let parts: [usize; PARTS.len()] = read(parts).try_into().ok()?;
        let in_space = NUMBERS.iter().zip(numbers).all(|(of, level)| level < of.values.len())
            && PARTS.iter().zip(parts).all(|(of, level)| level <= of.levels.len());
        in_space.then_some(Self { numbers, parts })
    }

    /// The plain path.
    pub(crate) fn plain(limits: &SpaceLimits) -> Self {
        Self { numbers: limits.plain, parts: [0; PARTS.len()] }
    }

    /// The value of a number.
    pub(crate) fn number(&self, index: usize) -> f64 {
        NUMBERS[index].values[self.numbers[index]]
    }

    /// The text of the level of a part; `None` if the world does not have it.
    pub(crate) fn part(&self, index: usize) -> Option<&'static str> {
        self.parts[index].checked_sub(1).map(|level| PARTS[index].levels[level])
    }

    /// Draws a world: each number is plain with one half, and zero to three parts are drawn with
    /// equal probability.
    pub(crate) fn draw(limits: &SpaceLimits, draws: &mut RandomStream) -> Self {
        let mut world = Self::plain(limits);
        for index in 0..NUMBERS.len() {
            if draws.below(2) == 1 {
                world.draw_number(index, limits, draws);
            }
        }
        let parts: Vec<usize> = (0..PARTS.len()).filter(|&part| limits.parts[part]).collect();
        for _ in 0..draws.below(4) {
            if let Some(&part) = parts.get(draws.below(parts.len().max(1) as u64) as usize) {
                world.draw_level(part, draws);
            }
        }
        world.settled()
    }

    /// The plain path with one number or part at another level: every such world.
    pub(crate) fn single_changes(limits: &SpaceLimits) -> Vec<Self> {
        let plain = Self::plain(limits);
        let mut worlds = Vec::new();
        for (index, &(least, most)) in limits.numbers.iter().enumerate() {
            for value in least..=most {
                let mut world = plain.clone();
                world.numbers[index] = value;
                worlds.push(world.settled());
            }
        }
        for (index, part) in PARTS.iter().enumerate().filter(|(index, _)| limits.parts[*index]) {
            for level in 1..=part.levels.len() {
                let mut world = plain.clone();
                world.parts[index] = level;
                worlds.push(world.settled());
            }
        }
        // A change that has no effect alone is none.
        worlds.retain(|world| *world != plain);
        worlds
    }

    /// A neighbour: one to three of these dimensions are drawn again.
    pub(crate) fn mutated(
        &self,
        varied: &[Dimension],
        limits: &SpaceLimits,
        draws: &mut RandomStream,
    ) -> Self {
        let mut world = self.clone();
        for _ in 0..=draws.below(3) {
            match varied[draws.below(varied.len() as u64) as usize] {
                Dimension::Number(index) => world.draw_number(index, limits, draws),
                Dimension::Part(index) => world.draw_level(index, draws),
            }
        }
        world.settled()
    }

    fn draw_number(&mut self, index: usize, limits: &SpaceLimits, draws: &mut RandomStream) {
        let (least, most) = limits.numbers[index];
        self.numbers[index] = least + draws.below((most - least + 1) as u64) as usize;
    }

    fn draw_level(&mut self, part: usize, draws: &mut RandomStream) {
        self.parts[part] = 1 + draws.below(PARTS[part].levels.len() as u64) as usize;
    }

    /// The world without choices that have no effect in it.
    pub(crate) fn settled(mut self) -> Self {
        if self.numbers[TRANSFER] == 0 {
            self.numbers[PAUSE] = 0;
        }
        if self.number(FLOWS) < 2.0 {
            self.numbers[RATIO] = 0;
        }
        // Of several parts at one position, the first holds.
        for (part, of) in PARTS.iter().enumerate() {
            let position = of.position;
            let taken = position.is_single()
                && (0..part)
                    .any(|other| PARTS[other].position == position && self.parts[other] > 0);
            if taken {
                self.parts[part] = 0;
            }
        }
        let of_path = |part: usize| {
            matches!(PARTS[part].position, PartPosition::Forward | PartPosition::Return)
        };
        let any = (0..PARTS.len()).any(|part| of_path(part) && self.parts[part] > 0);
        for (part, level) in self.parts.iter_mut().enumerate() {
            if PARTS[part].position == PartPosition::FirstFlowOnly
                && (!any || self.numbers[FLOWS] == 0)
            {
                *level = 0;
            }
        }
        self
    }

    /// The world with this dimension plain.
    pub(crate) fn without(&self, dimension: Dimension, limits: &SpaceLimits) -> Self {
        let mut world = self.clone();
        match dimension {
            Dimension::Number(index) => {
                world.numbers[index] = Self::plain(limits).numbers[index];
            }
            Dimension::Part(index) => world.parts[index] = 0,
        }
        world.settled()
    }

    /// The parts first, then the numbers that are not plain.
    pub(crate) fn dimensions(&self, limits: &SpaceLimits) -> Vec<Dimension> {
        let plain = Self::plain(limits);
        let parts = (0..PARTS.len()).filter(|&part| self.parts[part] > 0).map(Dimension::Part);
        let numbers = (0..NUMBERS.len())
            .filter(|&index| self.numbers[index] != plain.numbers[index])
            .map(Dimension::Number);
        parts.chain(numbers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_a_world_again_and_others_are_none() {
        let limits = SpaceLimits::transfers();
        for (number, world) in HuntWorld::single_changes(&limits).into_iter().enumerate() {
            let levels = world.levels();
            assert_eq!(HuntWorld::from_levels(&levels), Some(world), "{number}");
            assert_eq!(HuntWorld::from_levels(&levels[1..]), None);
        }
        let mut levels = HuntWorld::plain(&limits).levels();
        levels[0] = 1_000;
        assert_eq!(HuntWorld::from_levels(&levels), None);
    }
}
