//! The rows of one flow, and which of a bucket are kept.
//!
//! A row is looked at for every event of a run, and hardly any is kept for long: nothing is allocated
//! for one that is not.

/// The values of a row.
type Values = [Option<u64>];

/// Rows that are kept, one behind the other.
#[derive(Debug)]
pub(super) struct Kept {
    width: usize,
    times: Vec<u64>,
    values: Vec<Option<u64>>,
}

/// A row in its place in a bucket.
#[derive(Debug, Clone)]
struct Row {
    at: u64,
    values: Box<Values>,
}

/// The rows of a bucket that may have to be kept.
#[derive(Debug)]
struct Bucket {
    /// Where it ends.
    until: u64,
    first: Row,
    last: Row,
    /// For each column the rows with its lowest and its highest value; both are meaningless where the
    /// column has had no value.
    peaks: Vec<[Row; 2]>,
}

/// The rows of one flow.
#[derive(Debug)]
pub(super) struct FlowRows {
    name: String,
    kept: Kept,
    bucket: Bucket,
    is_open: bool,
    /// Width of a bucket; 0 without buckets.
    every: u64,
}

impl Kept {
    const fn new(width: usize) -> Self {
        Self { width, times: Vec::new(), values: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    /// In the order in which they came.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Values)> {
        let row = |number| &self.values[number * self.width..(number + 1) * self.width];
        self.times.iter().enumerate().map(move |(number, &at)| (at, row(number)))
    }

    fn push(&mut self, at: u64, values: &Values) {
        self.times.push(at);
        self.values.extend_from_slice(values);
    }

    /// Takes in a row that differs from the last; the last of several of one moment stays.
    #[inline]
    fn change(&mut self, at: u64, values: &Values) {
        let last = self.values.len().saturating_sub(self.width);
        if self.times.is_empty() || self.values[last..] != *values {
            if self.times.last() == Some(&at) {
                self.values[last..].copy_from_slice(values);
            } else {
                self.push(at, values);
            }
        }
    }
}

impl Row {
    fn new(width: usize) -> Self {
        Self { at: 0, values: vec![None; width].into() }
    }

    #[inline]
    fn set(&mut self, at: u64, values: &Values) {
        self.at = at;
        self.values.copy_from_slice(values);
    }
}

impl Bucket {
    fn new(width: usize) -> Self {
        let row = || Row::new(width);
        let peaks = (0..width).map(|_| [row(), row()]).collect();
        Self { until: 0, first: row(), last: row(), peaks }
    }

    /// Begins anew with this row.
    fn open(&mut self, until: u64, at: u64, values: &Values) {
        self.until = until;
        self.first.set(at, values);
        self.last.set(at, values);
        for peak in self.peaks.iter_mut().flatten() {
            peak.set(at, values);
        }
    }

    #[inline]
    fn add(&mut self, at: u64, values: &Values) {
        for (column, [low, high]) in self.peaks.iter_mut().enumerate() {
            let Some(value) = values[column] else { continue };
            if low.values[column].is_none_or(|known| value < known) {
                low.set(at, values);
            }
            if high.values[column].is_none_or(|known| value > known) {
                high.set(at, values);
            }
        }
        self.last.set(at, values);
    }
}

impl FlowRows {
    /// Of so many columns, with buckets of this width; 0 for none.
    pub(super) fn new(name: String, width: usize, every: u64) -> Self {
        Self { name, kept: Kept::new(width), bucket: Bucket::new(width), is_open: false, every }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn kept(&self) -> &Kept {
        &self.kept
    }

    /// A row, not before any other.
    #[inline]
    pub(super) fn add(&mut self, at: u64, values: &Values) {
        if self.every == 0 {
            self.kept.change(at, values);
        } else if self.is_open && at < self.bucket.until {
            self.bucket.add(at, values);
        } else {
            self.close();
            let until = (at / self.every).saturating_add(1).saturating_mul(self.every);
            self.bucket.open(until, at, values);
            self.is_open = true;
        }
    }

    /// Keeps what the open bucket has to keep.
    pub(super) fn close(&mut self) {
        if !core::mem::take(&mut self.is_open) {
            return;
        }
        let Bucket { first, last, peaks, .. } = &self.bucket;
        let mut rows = vec![first];
        for (column, peaks) in peaks.iter().enumerate() {
            rows.extend(peaks.iter().filter(|row| row.values[column].is_some()));
        }
        // Several rows may have one moment; their order is lost, the last of all stays last.
        rows.sort_by_key(|row| row.at);
        rows.push(last);
        for row in rows {
            let same_moment = self.kept.iter().rev().take_while(|&(at, _)| at == row.at);
            if !same_moment.into_iter().any(|(_, values)| *values == *row.values) {
                self.kept.push(row.at, &row.values);
            }
        }
    }

    /// Makes buckets, or wider ones, so that about `limit` rows are left.
    pub(super) fn widen(&mut self, limit: usize) {
        self.close();
        let width = self.kept.width;
        let rows = core::mem::replace(&mut self.kept, Kept::new(width));
        let span = rows.times.last().map_or(0, |last| last - rows.times[0]);
        let each = 2 + 2 * width;
        self.every = match self.every {
            0 => (span / (limit / (2 * each)).max(1) as u64).max(1).next_power_of_two(),
            every => every * 2,
        };
        rows.iter().for_each(|(at, values)| self.add(at, values));
    }
}
