//! The rows of one flow, and which of a bucket are kept.
//!
//! A row is looked at for every event of a run, and hardly any is kept for long: nothing is allocated
//! for one that is not, and nothing is copied of one that is like the last.

use record::Sender;

use super::columns::{COLUMNS, Field};

/// Fields that a row may have; each has its own place.
pub(super) const MOST: usize = COLUMNS.len();

/// The values of a sender at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row {
    pub(super) at: u64,
    /// A bit for each value that there is.
    pub(super) known: u32,
    /// What is not known is 0, and so is what nobody asks for.
    pub(super) values: [u64; MOST],
}

/// The fields that rows have.
#[derive(Debug)]
pub(super) struct Fields {
    /// In the order asked for, none twice.
    order: Vec<Field>,
    /// A bit for each.
    wanted: u32,
}

impl Fields {
    pub(super) fn new(asked: impl Iterator<Item = Field>) -> Self {
        let mut order = Vec::new();
        for field in asked {
            if !order.contains(&field) {
                order.push(field);
            }
        }
        let wanted = Field::bits(&order);
        Self { order, wanted }
    }

    /// Number of a field among those asked for.
    fn place(&self, field: usize) -> usize {
        (self.wanted & ((1 << field) - 1)).count_ones() as usize
    }
}

/// Rows that are kept, one behind the other: of each its time, which values it knows and which of
/// them differ from those of the row before, and these.
#[derive(Debug, Default)]
struct Kept {
    words: Vec<u64>,
    rows: usize,
    /// The values of the last row.
    last: [u64; MOST],
}

/// Reads rows from the first on.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    words: &'a [u64],
    row: Row,
}

/// The rows of a bucket that may have to be kept.
#[derive(Debug)]
struct Bucket {
    first: Row,
    /// Fields that have had a value.
    seen: u32,
    /// Of each field the lowest and the highest value, and the rows that have them, those of the fields
    /// asked for; all are meaningless where the field has had no value.
    low: [u64; MOST],
    high: [u64; MOST],
    peaks: Vec<[Row; 2]>,
}

/// The rows of one flow.
#[derive(Debug)]
pub(super) struct FlowRows {
    name: String,
    kept: Kept,
    /// The last row and room for the next. Without buckets the last is the one that is kept next,
    /// unless another of its moment comes.
    rows: [Row; 2],
    last: usize,
    /// Fields in which rows have differed since the last that was kept.
    unkept: u32,
    /// Is there a row that has been looked at, but not kept yet?
    is_open: bool,
    /// If rows are cut into buckets.
    bucket: Option<Box<Bucket>>,
    /// Where the bucket ends.
    until: u64,
    /// Width of a bucket; 0 without buckets.
    every: u64,
}

impl Row {
    /// Asks a sender for the fields that are wanted, each after the other: a loop over a list of them
    /// costs more than to ask of each whether it is. Returns those in which this differs from the last
    /// row.
    #[inline(always)]
    fn read(&mut self, sender: &impl Sender, wanted: u32, last: &Self) -> u32 {
        use Field::{
            Buffered, Cwnd, CwndMss, Flight, FlightMss, InFlight, InRecovery, Pacing, PartialAcked,
            Pipe, Rto, SendBuffer, SndMax, SndNxt, SndUna, SndWnd, Srtt, Ssthresh,
        };

        self.known = 0;
        let mut changed = 0;
        if wanted & Field::bits(&[SndUna, SndNxt, SndMax, Flight, InFlight, PartialAcked]) != 0 {
            changed |= self.ask(sender, wanted, last, SndUna);
            changed |= self.ask(sender, wanted, last, SndNxt);
            changed |= self.ask(sender, wanted, last, SndMax);
            changed |= self.ask(sender, wanted, last, Flight);
            changed |= self.ask(sender, wanted, last, InFlight);
            changed |= self.ask(sender, wanted, last, PartialAcked);
        }
        if wanted & Field::bits(&[Pipe, Cwnd, CwndMss, FlightMss, Ssthresh, SndWnd]) != 0 {
            changed |= self.ask(sender, wanted, last, Pipe);
            changed |= self.ask(sender, wanted, last, Cwnd);
            changed |= self.ask(sender, wanted, last, CwndMss);
            changed |= self.ask(sender, wanted, last, FlightMss);
            changed |= self.ask(sender, wanted, last, Ssthresh);
            changed |= self.ask(sender, wanted, last, SndWnd);
        }
        if wanted & Field::bits(&[Buffered, SendBuffer, Srtt, Rto, Pacing, InRecovery]) != 0 {
            changed |= self.ask(sender, wanted, last, Buffered);
            changed |= self.ask(sender, wanted, last, SendBuffer);
            changed |= self.ask(sender, wanted, last, Srtt);
            changed |= self.ask(sender, wanted, last, Rto);
            changed |= self.ask(sender, wanted, last, Pacing);
            changed |= self.ask(sender, wanted, last, InRecovery);
        }
        changed | (self.known ^ last.known)
    }

    #[inline(always)]
    fn ask(&mut self, sender: &impl Sender, wanted: u32, last: &Self, field: Field) -> u32 {
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

    /// The fields in which this differs from another row.
    fn unlike(&self, other: &Self) -> u32 {
        let values = self.values.iter().zip(&other.values).enumerate();
        let unlike = values.filter(|(_, (one, other))| one != other);
        unlike.fold(self.known ^ other.known, |fields, (field, _)| fields | 1 << field)
    }
}

impl Kept {
    /// A row that differs from the last that was kept in no other fields than these.
    fn push(&mut self, row: &Row, mut fields: u32) {
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

    fn read(&self) -> Reader<'_> {
        Reader { words: &self.words, row: Row::default() }
    }
}

impl Reader<'_> {
    /// Goes to the next row and says when it was.
    pub(super) fn step(&mut self) -> Option<u64> {
        let [at, told, rest @ ..] = self.words else { return None };
        (self.row.at, self.row.known) = (*at, (told >> 32) as u32);
        let mut changed = *told as u32;
        let (values, rest) = rest.split_at_checked(changed.count_ones() as usize)?;
        for &value in values {
            self.row.values[changed.trailing_zeros() as usize] = value;
            changed &= changed - 1;
        }
        self.words = rest;
        Some(*at)
    }

    /// A value of the row at hand.
    pub(super) fn value(&self, field: Field) -> Option<u64> {
        let place = field as usize;
        (self.row.known >> place & 1 != 0).then(|| self.row.values[place])
    }
}

impl Bucket {
    /// Before its first row.
    fn new(fields: &Fields) -> Self {
        let row = Row::default();
        let (low, high) = (row.values, row.values);
        Self { first: row, seen: 0, low, high, peaks: vec![[row; 2]; fields.order.len()] }
    }

    /// Begins anew with this row.
    fn open(&mut self, row: &Row) {
        (self.first, self.seen) = (*row, row.known);
        (self.low, self.high) = (row.values, row.values);
        self.peaks.fill([*row; 2]);
    }

    /// A row that differs from the last in these fields.
    #[inline]
    fn add(&mut self, row: &Row, changed: u32, fields: &Fields) {
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
    /// With buckets of this width; 0 for none.
    pub(super) fn new(name: String, every: u64, fields: &Fields) -> Self {
        Self {
            name,
            kept: Kept::default(),
            rows: [Row::default(); 2],
            last: 0,
            unkept: 0,
            is_open: false,
            bucket: (every != 0).then(|| Box::new(Bucket::new(fields))),
            until: 0,
            every,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How many rows are kept so far.
    #[inline(always)]
    pub(super) fn kept(&self) -> usize {
        self.kept.rows + usize::from(self.is_open && self.bucket.is_none())
    }

    /// The rows that are kept; none is left open.
    pub(super) fn read(&self) -> Reader<'_> {
        self.kept.read()
    }

    /// A row of these fields of a sender, not before any other.
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

    /// Takes in the row that stands behind the last and differs from it in these fields.
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
            // The last of several of one moment stays.
            self.kept.push(last, self.unkept);
            self.unkept = 0;
        }
        self.unkept |= changed;
        self.last ^= 1;
    }

    #[inline(never)]
    fn open(&mut self, fields: &Fields) {
        let row = &self.rows[!self.last & 1];
        if let Some(bucket) = &mut self.bucket {
            self.until = (row.at / self.every).saturating_add(1).saturating_mul(self.every);
            bucket.open(row);
        }
        self.unkept = fields.wanted;
        self.is_open = true;
    }

    /// Keeps what is open, of a bucket what it has to keep.
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
        // Several rows may have one moment; their order is lost, the last of all stays last.
        rows.sort_by_key(|row| row.at);
        rows.push(last);
        for (place, row) in rows.iter().enumerate() {
            let mut same_moment = rows[..place].iter().rev().take_while(|other| other.at == row.at);
            if same_moment.all(|other| other.unlike(row) != 0) {
                self.kept.push(row, fields.wanted);
            }
        }
    }

    /// Makes buckets, or wider ones, so that about `limit` rows are left, if one leaves `each`.
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
        self.bucket.get_or_insert_with(|| Box::new(Bucket::new(fields)));
        let mut rows = kept.read();
        while rows.step().is_some() {
            let changed = rows.row.unlike(&self.rows[self.last & 1]);
            self.rows[!self.last & 1] = rows.row;
            self.take(changed, fields);
        }
    }
}
