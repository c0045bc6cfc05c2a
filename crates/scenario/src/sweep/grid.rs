//! The points of a grid, in their order.

use super::axis::Axis;
use super::only::Only;

/// Most points a condition is asked about.
const MOST_ASKED: u64 = 1_000_000_000;

/// Which points there are.
#[derive(Debug, Default)]
pub(super) struct Grid {
    /// Number of values of each axis.
    lens: Vec<u64>,
    /// Those that meet the condition, by number; `None` if there is none.
    chosen: Option<Vec<u64>>,
}

impl Grid {
    /// The points of all `axes` that meet all of `only`.
    ///
    /// # Errors
    /// No point meets them, or there are too many to ask.
    pub(super) fn new(axes: &[Axis], only: &[Only]) -> Result<Self, String> {
        let lens = axes.iter().map(|axis| axis.len() as u64).collect();
        let mut grid = Self { lens, chosen: None };
        if only.is_empty() {
            return Ok(grid);
        }
        if grid.size() > MOST_ASKED {
            return Err(format!("a condition over {} points, more than {MOST_ASKED}", grid.size()));
        }
        let meets = |number: &u64| {
            let point = grid.coordinates(*number);
            only.iter().all(|only| only.holds(axes, &point))
        };
        let chosen: Vec<u64> = (0..grid.size()).filter(meets).collect();
        if chosen.is_empty() {
            return Err(format!("none of the {} points meets the condition", grid.size()));
        }
        grid.chosen = Some(chosen);
        Ok(grid)
    }

    /// Points before any condition; `u64::MAX` if that many or more.
    pub(super) fn size(&self) -> u64 {
        self.lens.iter().fold(1, |size: u64, len| size.saturating_mul(*len))
    }

    /// Points that count.
    pub(super) fn points(&self) -> u64 {
        self.chosen.as_ref().map_or_else(|| self.size(), |chosen| chosen.len() as u64)
    }

    /// Which value of each axis point number `number` has.
    pub(super) fn point(&self, number: u64) -> Vec<usize> {
        let number = self.chosen.as_ref().map_or(number, |chosen| chosen[number as usize]);
        self.coordinates(number)
    }

    /// The last axis changes fastest.
    fn coordinates(&self, mut number: u64) -> Vec<usize> {
        let mut point = vec![0; self.lens.len()];
        for (value, len) in point.iter_mut().zip(&self.lens).rev() {
            *value = (number % len) as usize;
            number /= len;
        }
        point
    }
}
