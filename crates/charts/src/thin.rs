//! Series of any length in bounded room: what is too much is thinned as it comes, and no peak is
//! lost.
//!
//! A series keeps every value until there are more than its limit. Then time is cut into buckets,
//! each of which keeps its first, lowest, highest and last value; buckets double as often as it
//! takes. Which values are kept depends on the values alone.

use crate::svg::Point;

/// A value over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    points: Vec<Point>,
    open: Option<Bucket>,
    grid: Grid,
}

/// Width of buckets, and how much may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grid {
    /// 0 as long as every value is kept.
    every: i64,
    limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bucket {
    /// Where it begins.
    from: i64,
    first: Point,
    low: Point,
    high: Point,
    last: Point,
}

impl Grid {
    /// Where the bucket begins that `x` lies in.
    fn from(&self, x: i64) -> i64 {
        x.wrapping_sub(x.rem_euclid(self.every))
    }

    /// Does `x` lie in the bucket that begins there? Asked for every value, hence without a division.
    fn holds(&self, from: i64, x: i64) -> bool {
        (x.wrapping_sub(from) as u64) < self.every as u64
    }

    /// Widens buckets, from values that span so much.
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

impl Curve {
    /// Of at most `limit` values, at least 16.
    pub fn new(limit: usize) -> Self {
        Self::with(Grid { every: 0, limit: limit.max(16) })
    }

    /// Of four values in each bucket of the width `every`, and any number of buckets; of every
    /// value if that is 0.
    pub fn every(every: i64) -> Self {
        Self::with(Grid { every: every.max(0), limit: usize::MAX })
    }

    const fn with(grid: Grid) -> Self {
        Self { points: Vec::new(), open: None, grid }
    }

    /// Adds a value that holds from `x` on, which is not before any other; the last of a moment
    /// counts.
    pub fn push(&mut self, x: i64, y: i64) {
        let point = Point { x, y };
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

    fn put(&mut self, point: Point) {
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
                let full = open.replace(Bucket {
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

    fn close(&mut self, bucket: Option<Bucket>) {
        let Some(Bucket { first, low, high, last, .. }) = bucket else { return };
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

    /// What is kept, and the width of the buckets: 0 if that is every change of the value.
    pub fn finish(mut self) -> (Vec<Point>, i64) {
        let open = self.open.take();
        self.close(open);
        (self.points, self.grid.every)
    }
}

/// From a value to a higher one, at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When.
    pub x: i64,
    /// The lower end.
    pub low: i64,
    /// The upper end.
    pub high: i64,
    /// What is told of it, by number.
    pub word: u32,
}

/// Spans over time. Those of a bucket become one that covers them all, with what is told of the
/// first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spans {
    spans: Vec<Span>,
    /// Where the bucket of the last of them begins.
    from: i64,
    grid: Grid,
}

impl Spans {
    /// Of at most `limit` spans, at least 16.
    pub fn new(limit: usize) -> Self {
        Self { spans: Vec::new(), from: 0, grid: Grid { every: 0, limit: limit.max(16) } }
    }

    /// Adds one, not before any other.
    pub fn push(&mut self, span: Span) {
        self.put(span);
        while self.spans.len() > self.grid.limit {
            let spans = core::mem::take(&mut self.spans);
            let width = spans.last().map_or(0, |last| last.x - spans[0].x);
            self.grid.widen(width);
            spans.into_iter().for_each(|span| self.put(span));
        }
    }

    fn put(&mut self, span: Span) {
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

    /// What is kept, and the width of the buckets: 0 if that is every one.
    pub fn finish(self) -> (Vec<Span>, i64) {
        (self.spans, self.grid.every)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_values_are_all_kept() {
        let mut curve = Curve::new(16);
        for (x, y) in [(0, 5), (1, 5), (2, 7), (2, 9), (4, 1)] {
            curve.push(x, y);
        }
        let expected = [(0, 5), (2, 9), (4, 1)].map(|(x, y)| Point { x, y });
        assert_eq!(curve.finish(), (expected.to_vec(), 0));
    }

    #[test]
    fn a_bucket_keeps_first_lowest_highest_and_last() {
        let mut curve = Curve::every(10);
        for (x, y) in [(0, 5), (1, 8), (3, 6), (4, 2), (9, 4), (10, 4), (12, 4)] {
            curve.push(x, y);
        }
        let expected = [(0, 5), (1, 8), (4, 2), (9, 4), (10, 4), (12, 4)];
        assert_eq!(curve.finish().0, expected.map(|(x, y)| Point { x, y }));
    }

    #[test]
    fn spans_of_a_bucket_become_one() {
        let mut spans = Spans::new(16);
        for x in 0..17 {
            spans.push(Span { x, low: x * 10, high: x * 10 + 10, word: x as u32 });
        }
        // A span of 16 over 2 buckets: 8 each.
        let (spans, every) = spans.finish();
        assert_eq!(every, 8);
        let expected = [(0, 0, 80, 0), (8, 80, 160, 8), (16, 160, 170, 16)];
        assert_eq!(spans, expected.map(|(x, low, high, word)| Span { x, low, high, word }));
    }

    proptest! {
        #[test]
        fn no_peak_is_lost_and_the_limit_is_kept(
            steps in prop::collection::vec((0_i64..1_000, -1_000_i64..1_000), 1..2_000),
            limit in 16_usize..200,
        ) {
            let mut curve = Curve::new(limit);
            let mut x = 0;
            for &(step, y) in &steps {
                x += step;
                curve.push(x, y);
            }
            let (points, every) = curve.finish();
            // The last bucket is still open when the limit is looked at.
            prop_assert!(points.len() <= limit + 4);
            prop_assert!(points.is_sorted_by_key(|point| point.x));
            let values = |of: fn(i64, i64) -> i64| points.iter().map(|p| p.y).reduce(of).unwrap();
            // Of several values of one moment the last counts as long as all are kept.
            if every > 0 && steps.iter().all(|(step, _)| *step > 0) {
                let all = |of: fn(i64, i64) -> i64| steps.iter().map(|s| s.1).reduce(of).unwrap();
                prop_assert_eq!(values(i64::min), all(i64::min));
                prop_assert_eq!(values(i64::max), all(i64::max));
            }
            prop_assert_eq!(points.last().unwrap().y, steps.last().unwrap().1);
        }
    }
}
