//! The rows of one flow, and the selection of those kept.
//!
//! Every event of a run gives a row, and few are kept: a row that is not kept needs no allocation,
//! and one equal to the last no copy.

use record::Sender;
use units::unlikely;

use super::columns::{COLUMNS, SeriesField};

/// Number of fields; each has its own index.
pub(super) const MOST: usize = COLUMNS.len();

/// The values of a sender at one instant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SeriesRow {
    pub(super) at: u64,
    /// Bit mask of the known values.
    pub(super) known: u32,
    /// Unknown values and unrequested fields are 0.
    pub(super) values: [u64; MOST],
}

/// The fields of the rows.
#[derive(Debug)]
pub(super) struct Fields {
    /// In the requested order, without duplicates.
    order: Vec<SeriesField>,
    /// Bit mask of the fields.
    wanted: u32,
}

impl Fields {
    pub(super) fn new(asked: impl Iterator<Item = SeriesField>) -> Self {
        let mut order = Vec::new();
        for field in asked {
            if !order.contains(&field) {
                order.push(field);
            }
        }
        let wanted = SeriesField::bits(&order);
        Self { order, wanted }
    }

    /// Index of a field among the requested ones.
    fn place(&self, field: usize) -> usize {
        (self.wanted & ((1 << field) - 1)).count_ones() as usize
    }
}

/// The kept rows, delta-encoded: of each its time, the masks of known values and of values that
/// differ from the previous row, and the differing values.
#[derive(Debug, Default)]
struct RowStore {
    words: Vec<u64>,
    rows: usize,
    /// The values of the last row.
    last: [u64; MOST],
}

/// Decodes rows in order.
#[derive(Debug)]
pub(super) struct StateReader<'a> {
    words: &'a [u64],
    row: SeriesRow,
}

/// The candidate rows of a bucket.
#[derive(Debug)]
struct RowBucket {
    first: SeriesRow,
    /// Mask of fields with a value in the bucket.
    seen: u32,
    /// Lowest and highest value of each field, and the rows that have them for the requested
    /// fields; invalid for fields without a value.
    low: [u64; MOST],
    high: [u64; MOST],
    peaks: Vec<[SeriesRow; 2]>,
}

/// The rows of one flow.
#[derive(Debug)]
pub(super) struct FlowRows {
    name: String,
    kept: RowStore,
    /// The last row and a slot for the next. Without buckets the last one is kept next, unless
    /// another of the same time follows.
    rows: [SeriesRow; 2],
    last: usize,
    /// Mask of fields that have changed since the last kept row.
    changed_fields: u32,
    /// Whether there is a row that is not kept yet.
    is_open: bool,
    /// Current bucket, if rows are divided into buckets.
    bucket: Option<Box<RowBucket>>,
    /// End of the bucket.
    until: u64,
    /// Width of a bucket; 0 without buckets.
    every: u64,
}

impl SeriesRow {
    /// Reads the wanted fields of a sender one by one, which is faster than a loop over a list.
    /// Returns the mask of fields that differ from the last row.
    #[inline(always)]
    fn read(&mut self, sender: &impl Sender, wanted: u32, last: &Self) -> u32 {
        use SeriesField::{
            Buffered, Cwnd, CwndMss, Flight, FlightMss, InFlight, InRecovery, Pacing, PartialAcked,
            Pipe, Rto, SendBuffer, SndMax, SndNxt, SndUna, SndWnd, Srtt, Ssthresh,
        };

        self.known = 0;
        let mut changed = 0;
        if wanted & SeriesField::bits(&[SndUna, SndNxt, SndMax, Flight, InFlight, PartialAcked])
            != 0
        {
            changed |= self.read_field(sender, wanted, last, SndUna);
            changed |= self.read_field(sender, wanted, last, SndNxt);
            changed |= self.read_field(sender, wanted, last, SndMax);
            changed |= self.read_field(sender, wanted, last, Flight);
            changed |= self.read_field(sender, wanted, last, InFlight);
            changed |= self.read_field(sender, wanted, last, PartialAcked);
        }
        if wanted & SeriesField::bits(&[Pipe, Cwnd, CwndMss, FlightMss, Ssthresh, SndWnd]) != 0 {
            changed |= self.read_field(sender, wanted, last, Pipe);
            changed |= self.read_field(sender, wanted, last, Cwnd);
            changed |= self.read_field(sender, wanted, last, CwndMss);
            changed |= self.read_field(sender, wanted, last, FlightMss);
            changed |= self.read_field(sender, wanted, last, Ssthresh);
            changed |= self.read_field(sender, wanted, last, SndWnd);
        }
        if wanted & SeriesField::bits(&[Buffered, SendBuffer, Srtt, Rto, Pacing, InRecovery]) != 0 {
            changed |= self.read_field(sender, wanted, last, Buffered);
            changed |= self.read_field(sender, wanted, last, SendBuffer);
            changed |= self.read_field(sender, wanted, last, Srtt);
            changed |= self.read_field(sender, wanted, last, Rto);
            changed |= self.read_field(sender, wanted, last, Pacing);
            changed |= self.read_field(sender, wanted, last, InRecovery);
        }
        if unlikely(wanted & SeriesField::OF_BBR != 0) {
            changed |= self.read_bbr(sender, wanted, last);
        }
        changed | (self.known ^ last.known)
    }

    /// Reads the wanted fields of the model of BBR.
    #[cold]
    fn read_bbr(&mut self, sender: &impl Sender, wanted: u32, last: &Self) -> u32 {
        SeriesField::BBR
            .into_iter()
            .fold(0, |changed, field| changed | self.read_field(sender, wanted, last, field))
    }

    #[inline(always)]
    fn read_field(
        &mut self,
        sender: &impl Sender,
        wanted: u32,
        last: &Self,
        field: SeriesField,
    ) -> u32 {
        let place = field as usize;
        if wanted >> place & 1 == 0 {
            return 0;
        }
        let value = field.of(sender);
        self.known |= u32::from(value.is_some()) << place;
        let value = value.unwrap_or(0);
        self.values[place] = value;
        u32::from(value != last.values[place]) << place
    }

    /// Mask of fields that differ from another row.
    fn unlike(&self, other: &Self) -> u32 {
        let values = self.values.iter().zip(&other.values).enumerate();
        let unlike = values.filter(|(_, (one, other))| one != other);
        unlike.fold(self.known ^ other.known, |fields, (field, _)| fields | 1 << field)
    }
}

impl RowStore {
    /// Appends a row that differs from the last kept one at most in `fields`.
    fn push(&mut self, row: &SeriesRow, mut fields: u32) {
        self.words.reserve(2 + MOST);
        self.words.push(row.at);
        let place = self.words.len();
        self.words.push(0);
        let mut changed = 0;
        while fields != 0 {
            let field = fields.trailing_zeros() as usize % MOST;
            fields &= fields - 1;
            let value = row.values[field];
            if self.last[field] != value {
                self.last[field] = value;
                changed |= 1 << field;
                self.words.push(value);
            }
        }
        self.words[place] = u64::from(row.known) << 32 | changed;
        self.rows += 1;
    }

    fn read(&self) -> StateReader<'_> {
        StateReader { words: &self.words, row: SeriesRow::default() }
    }
}

impl StateReader<'_> {
    /// Advances to the next row and returns its time.
    pub(super) fn step(&mut self) -> Option<u64> {
        let [at, reported, rest @ ..] = self.words else { return None };
        (self.row.at, self.row.known) = (*at, (reported >> 32) as u32);
        let mut changed = *reported as u32;
        let (values, rest) = rest.split_at_checked(changed.count_ones() as usize)?;
        for &value in values {
            self.row.values[changed.trailing_zeros() as usize] = value;
            changed &= changed - 1;
        }
        self.words = rest;
        Some(*at)
    }

    /// A value of the current row.
    pub(super) fn value(&self, field: SeriesField) -> Option<u64> {
        let place = field as usize;
        (self.row.known >> place & 1 != 0).then(|| self.row.values[place])
    }
}

impl RowBucket {
    /// An empty bucket.
    fn new(fields: &Fields) -> Self {
        let row = SeriesRow::default();
        let (low, high) = (row.values, row.values);
        Self { first: row, seen: 0, low, high, peaks: vec![[row; 2]; fields.order.len()] }
    }

    /// Restarts the bucket with this row.
    fn open(&mut self, row: &SeriesRow) {
        (self.first, self.seen) = (*row, row.known);
        (self.low, self.high) = (row.values, row.values);
        self.peaks.fill([*row; 2]);
    }

    /// Adds a row that differs from the last one in the fields `changed`.
    #[inline]
    fn add(&mut self, row: &SeriesRow, changed: u32, fields: &Fields) {
        let mut rest = changed & row.known;
        while rest != 0 {
            let field = rest.trailing_zeros() as usize % MOST;
            rest &= rest - 1;
            let is_first = self.seen >> field & 1 == 0;
            let value = row.values[field];
            if is_first || value < self.low[field] {
                (self.low[field], self.peaks[fields.place(field)][0]) = (value, *row);
            }
            if is_first || value > self.high[field] {
                (self.high[field], self.peaks[fields.place(field)][1]) = (value, *row);
            }
        }
        self.seen |= row.known;
    }
}

impl FlowRows {
    /// Rows with buckets of this width; 0 for none.
    pub(super) fn new(name: String, every: u64, fields: &Fields) -> Self {
        Self {
            name,
            kept: RowStore::default(),
            rows: [SeriesRow::default(); 2],
            last: 0,
            changed_fields: 0,
            is_open: false,
            bucket: (every != 0).then(|| Box::new(RowBucket::new(fields))),
            until: 0,
            every,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Number of rows kept so far.
    #[inline(always)]
    pub(super) fn kept(&self) -> usize {
        self.kept.rows + usize::from(self.is_open && self.bucket.is_none())
    }

    /// Reads the kept rows; requires [`close`](Self::close).
    pub(super) fn read(&self) -> StateReader<'_> {
        self.kept.read()
    }

    /// Adds a row of these fields of a sender; times must not decrease.
    #[inline(always)]
    pub(super) fn add(&mut self, at: u64, sender: &impl Sender, fields: &Fields) {
        let [one, other] = &mut self.rows;
        let (last, row) = if self.last == 0 { (one, other) } else { (other, one) };
        let changed = row.read(sender, fields.wanted, last);
        if changed == 0 && self.is_open && self.bucket.is_none() {
            return;
        }
        row.at = at;
        self.take(changed, fields);
    }

    /// Adds the row in the free slot, which differs from the last one in these fields.
    #[inline(always)]
    fn take(&mut self, changed: u32, fields: &Fields) {
        let (last, row) = (&self.rows[self.last & 1], &self.rows[!self.last & 1]);
        if !self.is_open {
            self.open(fields);
        } else if let Some(bucket) = &mut self.bucket {
            if row.at >= self.until {
                self.close(fields);
                self.open(fields);
            } else {
                bucket.add(row, changed, fields);
            }
        } else if changed == 0 {
            return;
        } else if last.at != row.at {
            // Of several rows with the same time the last one is kept.
            self.kept.push(last, self.changed_fields);
            self.changed_fields = 0;
        }
        self.changed_fields |= changed;
        self.last ^= 1;
    }

    #[inline(never)]
    fn open(&mut self, fields: &Fields) {
        let row = &self.rows[!self.last & 1];
        if let Some(bucket) = &mut self.bucket {
            self.until = (row.at / self.every).saturating_add(1).saturating_mul(self.every);
            bucket.open(row);
        }
        self.changed_fields = fields.wanted;
        self.is_open = true;
    }

    /// Keeps the open row, or the selected rows of the bucket.
    #[inline(never)]
    pub(super) fn close(&mut self, fields: &Fields) {
        if !core::mem::take(&mut self.is_open) {
            return;
        }
        let last = &self.rows[self.last & 1];
        let Some(bucket) = &self.bucket else { return self.kept.push(last, fields.wanted) };
        let mut rows = vec![&bucket.first];
        for &field in &fields.order {
            let peaks = &bucket.peaks[fields.place(field as usize)];
            rows.extend(peaks.iter().filter(|row| row.known >> field as usize & 1 != 0));
        }
        // Rows with the same time may change their order; the last of all stays last.
        rows.sort_by_key(|row| row.at);
        rows.push(last);
        for (place, row) in rows.iter().enumerate() {
            let mut same_moment = rows[..place].iter().rev().take_while(|other| other.at == row.at);
            if same_moment.all(|other| other.unlike(row) != 0) {
                self.kept.push(row, fields.wanted);
            }
        }
    }

    /// Introduces buckets or doubles their width, so that about `limit` rows are left if a bucket
    /// keeps `each`.
    pub(super) fn widen(&mut self, limit: usize, each: usize, fields: &Fields) {
        self.close(fields);
        let kept = core::mem::take(&mut self.kept);
        let mut times = kept.read();
        let first = times.step().unwrap_or(0);
        let last = core::iter::from_fn(|| times.step()).last().unwrap_or(first);
        self.every = match self.every {
            0 => {
                let buckets = (limit / (2 * each)).max(1) as u64;
                ((last - first) / buckets).max(1).next_power_of_two()
            }
            every => every * 2,
        };
        self.bucket.get_or_insert_with(|| Box::new(RowBucket::new(fields)));
        let mut rows = kept.read();
        while rows.step().is_some() {
            let changed = rows.row.unlike(&self.rows[self.last & 1]);
            self.rows[!self.last & 1] = rows.row;
            self.take(changed, fields);
        }
    }
}
