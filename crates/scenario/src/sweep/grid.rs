//! The points of a parameter grid, in order.

use super::axis::SweepAxis;
use super::only::Condition;

/// Maximum points for which conditions are evaluated.
const MAX_EVALUATED: u64 = 1_000_000_000;

/// The points of a parameter grid.
#[derive(Debug, Default)]
pub(super) struct SweepGrid {
    /// Number of values of each axis.
    lens: Vec<u64>,
    /// Numbers of the points that meet the conditions; `None` without conditions.
    chosen: Option<Vec<u64>>,
}

impl SweepGrid {
    /// Creates the grid of all `axes`, restricted to points that meet all of `only`.
    ///
    /// # Errors
    /// No point meets the conditions, or there are too many points to evaluate.
    pub(super) fn new(axes: &[SweepAxis], only: &[Condition]) -> Result<Self, String> {
        let lens = axes.iter().map(|axis| axis.len() as u64).collect();
        let mut grid = Self { lens, chosen: None };
        if only.is_empty() {
            return Ok(grid);
        }
        if grid.size() > MAX_EVALUATED {
            return Err(format!(
                "a condition over {} points, more than {MAX_EVALUATED}",
                grid.size()
            ));
        }
        let shares_key_with = |number: &u64| {
            let point = grid.coordinates(*number);
            only.iter().all(|only| only.holds(axes, &point))
        };
        let chosen: Vec<u64> = (0..grid.size()).filter(shares_key_with).collect();
        if chosen.is_empty() {
            return Err(format!("none of the {} points meets the condition", grid.size()));
        }
        grid.chosen = Some(chosen);
        Ok(grid)
    }

    /// Returns the number of points without conditions; saturates at `u64::MAX`.
    pub(super) fn size(&self) -> u64 {
        self.lens.iter().fold(1, |size: u64, len| size.saturating_mul(*len))
    }

    /// Returns the number of points that meet the conditions.
    pub(super) fn points(&self) -> u64 {
        self.chosen.as_ref().map_or_else(|| self.size(), |chosen| chosen.len() as u64)
    }

    /// Returns the value index of each axis for point `number`.
    pub(super) fn point(&self, number: u64) -> Vec<usize> {
        let number = self.chosen.as_ref().map_or(number, |chosen| chosen[number as usize]);
        self.coordinates(number)
    }

    /// Returns the value indices of a point; the last axis changes fastest.
    fn coordinates(&self, mut number: u64) -> Vec<usize> {
        let mut point = vec![0; self.lens.len()];
        for (value, len) in point.iter_mut().zip(&self.lens).rev() {
            *value = (number % len) as usize;
            number /= len;
        }
        point
    }
}
