//! Random values of a draw.

use core::ops::RangeInclusive;

use units::RandomStream;

/// The random stream of one purpose of one draw.
pub(crate) struct DrawRandom(RandomStream);

impl DrawRandom {
    /// The stream of draw `number` of `seed` for `purpose`.
    pub(crate) fn new(seed: u64, number: u64, purpose: &str) -> Self {
        Self(RandomStream::named(seed, &format!("draw {number}"), purpose))
    }

    /// A number of the range, uniformly.
    pub(crate) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (min, max) = range.into_inner();
        min + self.0.below(max - min + 1)
    }

    /// A number of the range, which must not begin at 0, uniformly on a logarithmic scale by doublings.
    pub(crate) fn magnitude(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (min, max) = range.into_inner();
        let doublings = u64::from((max / min).max(1).ilog2());
        let low = min << self.within(0..=doublings);
        self.within(low..=max.min(2 * low).max(low))
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    /// One of these, uniformly.
    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.0.below(items.len() as u64) as usize].clone()
    }
}
