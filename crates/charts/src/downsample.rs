//! Downsampling of series of any length to bounded memory, incrementally and without losing a peak.
//!
//! A series keeps every value up to its limit. Then time is divided into buckets, each of which
//! keeps its first, lowest, highest and last value; buckets double in width as often as needed. The
//! selection depends only on the values.

use crate::svg::ChartPoint;

/// A downsampled series of a value over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinnedSeries {
    points: Vec<ChartPoint>,
    open: Option<TimeBucket>,
    grid: BucketGrid,
}

/// Bucket width and limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BucketGrid {
    /// 0 while every value is kept.
    every: i64,
    limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimeBucket {
    /// Start.
    from: i64,
    first: ChartPoint,
    low: ChartPoint,
    high: ChartPoint,
    last: ChartPoint,
}

impl BucketGrid {
    /// The start of the bucket that contains `x`.
    fn from(&self, x: i64) -> i64 {
        x.wrapping_sub(x.rem_euclid(self.every))
    }

    /// Is `x` in the bucket that starts at `from`? Called for every value, so it avoids a division.
    fn holds(&self, from: i64, x: i64) -> bool {
        (x.wrapping_sub(from) as u64) < self.every as u64
    }

    /// Widens the buckets for values that cover `span`.
    fn widen(&mut self, span: i64) {
        self.every = match self.every {
            0 => {
                let buckets = (self.limit / 8).max(1) as u64;
                let every = (span.unsigned_abs() / buckets).max(1).next_power_of_two();
                i64::try_from(every).unwrap_or(i64::MAX)
            }
            every => every.saturating_mul(2),
        };
    }
}

impl ThinnedSeries {
    /// A series of at most `limit` values, at least 16.
    pub fn new(limit: usize) -> Self {
        Self::with(BucketGrid { every: 0, limit: limit.max(16) })
    }

    /// A series of four values per bucket of width `every` and any number of buckets; of every
    /// value if `every` is 0.
    pub fn every(every: i64) -> Self {
        Self::with(BucketGrid { every: every.max(0), limit: usize::MAX })
    }

    const fn with(grid: BucketGrid) -> Self {
        Self { points: Vec::new(), open: None, grid }
    }

    /// Adds a value that holds from `x` on, in ascending order; the last value of an instant
    /// counts.
    pub fn push(&mut self, x: i64, y: i64) {
        let point = ChartPoint { x, y };
        if self.grid.every > 0 {
            self.put(point);
        } else {
            match self.points.last_mut() {
                Some(last) if last.y == y => return,
                Some(last) if last.x == x => last.y = y,
                _ => self.points.push(point),
            }
        }
        while self.points.len() > self.grid.limit {
            self.compact();
        }
    }

    fn put(&mut self, point: ChartPoint) {
        match &mut self.open {
            Some(bucket) if self.grid.holds(bucket.from, point.x) => {
                if point.y < bucket.low.y {
                    bucket.low = point;
                }
                if point.y > bucket.high.y {
                    bucket.high = point;
                }
                bucket.last = point;
            }
            open => {
                let full = open.replace(TimeBucket {
                    from: self.grid.from(point.x),
                    first: point,
                    low: point,
                    high: point,
                    last: point,
                });
                self.close(full);
            }
        }
    }

    fn close(&mut self, bucket: Option<TimeBucket>) {
        let Some(TimeBucket { first, low, high, last, .. }) = bucket else { return };
        let (early, late) = if low.x <= high.x { (low, high) } else { (high, low) };
        for point in [first, early, late, last] {
            if self.points.last() != Some(&point) {
                self.points.push(point);
            }
        }
    }

    fn compact(&mut self) {
        let open = self.open.take();
        self.close(open);
        let points = core::mem::take(&mut self.points);
        let span = points.last().map_or(0, |last| last.x - points[0].x);
        self.grid.widen(span);
        points.into_iter().for_each(|point| self.put(point));
    }

    /// The kept points and the bucket width: 0 if every change of the value is kept.
    pub fn finish(mut self) -> (Vec<ChartPoint>, i64) {
        let open = self.open.take();
        self.close(open);
        (self.points, self.grid.every)
    }
}

/// A range of values at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRange {
    /// Instant.
    pub x: i64,
    /// Lower end.
    pub low: i64,
    /// Upper end.
    pub high: i64,
    /// Label, by number.
    pub word: u32,
}

/// Ranges over time. The ranges of a bucket are merged into one that covers them all, with the
/// label of the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinnedRanges {
    spans: Vec<ValueRange>,
    /// Start of the current bucket.
    from: i64,
    grid: BucketGrid,
}

impl ThinnedRanges {
    /// A series of at most `limit` ranges, at least 16.
    pub fn new(limit: usize) -> Self {
        Self { spans: Vec::new(), from: 0, grid: BucketGrid { every: 0, limit: limit.max(16) } }
    }

    /// Adds a range, in ascending order of time.
    pub fn push(&mut self, span: ValueRange) {
        self.put(span);
        while self.spans.len() > self.grid.limit {
            let spans = core::mem::take(&mut self.spans);
            let width = spans.last().map_or(0, |last| last.x - spans[0].x);
            self.grid.widen(width);
            spans.into_iter().for_each(|span| self.put(span));
        }
    }

    fn put(&mut self, span: ValueRange) {
        if self.grid.every > 0 {
            match self.spans.last_mut() {
                Some(last) if self.grid.holds(self.from, span.x) => {
                    last.low = last.low.min(span.low);
                    last.high = last.high.max(span.high);
                    return;
                }
                _ => self.from = self.grid.from(span.x),
            }
        }
        self.spans.push(span);
    }

    /// The kept ranges and the bucket width: 0 if every range is kept.
    pub fn finish(self) -> (Vec<ValueRange>, i64) {
        (self.spans, self.grid.every)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_values_are_all_kept() {
        let mut curve = ThinnedSeries::new(16);
        for (x, y) in [(0, 5), (1, 5), (2, 7), (2, 9), (4, 1)] {
            curve.push(x, y);
        }
        let expected = [(0, 5), (2, 9), (4, 1)].map(|(x, y)| ChartPoint { x, y });
        assert_eq!(curve.finish(), (expected.to_vec(), 0));
    }

    #[test]
    fn a_bucket_keeps_first_lowest_highest_and_last() {
        let mut curve = ThinnedSeries::every(10);
        for (x, y) in [(0, 5), (1, 8), (3, 6), (4, 2), (9, 4), (10, 4), (12, 4)] {
            curve.push(x, y);
        }
        let expected = [(0, 5), (1, 8), (4, 2), (9, 4), (10, 4), (12, 4)];
        assert_eq!(curve.finish().0, expected.map(|(x, y)| ChartPoint { x, y }));
    }

    #[test]
    fn spans_of_a_bucket_become_one() {
        let mut spans = ThinnedRanges::new(16);
        for x in 0..17 {
            spans.push(ValueRange { x, low: x * 10, high: x * 10 + 10, word: x as u32 });
        }
        // A span of 16 over 2 buckets: 8 each.
        let (spans, every) = spans.finish();
        assert_eq!(every, 8);
        let expected = [(0, 0, 80, 0), (8, 80, 160, 8), (16, 160, 170, 16)];
        assert_eq!(spans, expected.map(|(x, low, high, word)| ValueRange { x, low, high, word }));
    }

    proptest! {
        #[test]
        fn no_peak_is_lost_and_the_limit_is_kept(
            steps in prop::collection::vec((0_i64..1_000, -1_000_i64..1_000), 1..2_000),
            limit in 16_usize..200,
        ) {
            let mut curve = ThinnedSeries::new(limit);
            let mut x = 0;
            for &(step, y) in &steps {
                x += step;
                curve.push(x, y);
            }
            let (points, every) = curve.finish();
            // The last bucket is still open when the limit is checked.
            prop_assert!(points.len() <= limit + 4);
            prop_assert!(points.is_sorted_by_key(|point| point.x));
            let values = |of: fn(i64, i64) -> i64| points.iter().map(|p| p.y).reduce(of).unwrap();
            // The last of several values of an instant counts while all are kept.
            if every > 0 && steps.iter().all(|(step, _)| *step > 0) {
                let all = |of: fn(i64, i64) -> i64| steps.iter().map(|s| s.1).reduce(of).unwrap();
                prop_assert_eq!(values(i64::min), all(i64::min));
                prop_assert_eq!(values(i64::max), all(i64::max));
            }
            prop_assert_eq!(points.last().unwrap().y, steps.last().unwrap().1);
        }
    }
}
