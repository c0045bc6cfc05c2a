//! Chosen columns of senders' states over time, thinned without loss of a peak.
//!
//! Time is cut into buckets; of each, and of each flow, the rows are kept that are first, last, and
//! lowest or highest in any of the columns: true states of the sender, never means. Without buckets
//! a row is kept whenever one of the columns changes.
//!
//! ```
//! use trace::series::{Columns, Form, Thinning};
//! # use ackclock_trace as trace;
//!
//! let columns = Columns::parse("cwnd, flight").unwrap();
//! assert_eq!(columns.names(), ["cwnd_bytes", "flight_bytes"]);
//! assert_eq!(Columns::parse("cwmd").unwrap_err().0, "cwmd");
//! let thinning = Thinning::Every(units::Duration::from_millis(10));
//! # let _ = (thinning, Form::Csv);
//! ```

mod rows;

use std::fmt::Write as _;
use std::io::{self, Write};

use record::SenderState;
use units::{Bytes, Duration, Instant, Rate};

use rows::FlowRows;

/// A column of a sender's state.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name, with its unit.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// Digits behind the decimal point.
    pub decimals: u32,
    of: fn(&SenderState) -> Option<u64>,
}

/// All columns there are. Times are kept in nanoseconds and written in microseconds.
pub const COLUMNS: [Column; 18] = [
    column("snd_una_bytes", 0, "oldest byte not acknowledged, from 0", |state| {
        Some(state.snd_una.0)
    }),
    column("snd_nxt_bytes", 0, "next byte to send", |state| Some(state.snd_nxt.0)),
    column("snd_max_bytes", 0, "end of what was ever sent", |state| Some(state.snd_max.0)),
    column("flight_bytes", 0, "bytes sent and not acknowledged", |state| {
        Some(state.flight().get())
    }),
    column("bytes_in_flight", 0, "what the window is held against: packets of QUIC", |state| {
        Some(state.in_flight.get())
    }),
    column("partial_bytes_acked", 0, "bytes counted towards the next increase", |state| {
        Some(state.partial_acked.get())
    }),
    column("pipe_bytes", 0, "bytes the stack takes to be in the network", |state| {
        Some(state.pipe.get())
    }),
    column("cwnd_bytes", 0, "congestion window", |state| Some(state.cwnd.get())),
    column("cwnd_mss", 3, "congestion window in full segments", |state| {
        Some(thousandths(state.cwnd, state.mss))
    }),
    column("flight_mss", 3, "bytes sent and not acknowledged, in full segments", |state| {
        Some(thousandths(state.flight(), state.mss))
    }),
    column("ssthresh_bytes", 0, "slow-start threshold; none while unset", |state| {
        state.ssthresh.map(Bytes::get)
    }),
    column("snd_wnd_bytes", 0, "window that the peer offers", |state| Some(state.snd_wnd.get())),
    column("buffered_bytes", 0, "bytes in the send buffer", |state| Some(state.buffered.get())),
    column("send_buffer_bytes", 0, "size of the send buffer", |state| {
        Some(state.send_buffer.get())
    }),
    column("srtt_us", 3, "smoothed round trip; none before the first sample", |state| {
        state.srtt.map(Duration::as_nanos)
    }),
    column("rto_us", 3, "retransmission timeout in force", |state| Some(state.rto.as_nanos())),
    column("pacing_bps", 0, "pacing rate; none where nothing is paced", |state| {
        state.pacing.map(Rate::bits_per_second)
    }),
    column("in_recovery", 0, "1 while a fast recovery runs", |state| {
        Some(u64::from(state.in_recovery))
    }),
];

const fn column(
    name: &'static str,
    decimals: u32,
    help: &'static str,
    of: fn(&SenderState) -> Option<u64>,
) -> Column {
    Column { name, help, decimals, of }
}

fn thousandths(bytes: Bytes, mss: Bytes) -> u64 {
    bytes.get().saturating_mul(1_000) / mss.get().max(1)
}

impl Column {
    /// Its name without the unit, as far as that tells it from the others.
    pub fn short(&self) -> &'static str {
        let units = ["_bytes", "_us", "_bps"];
        units.iter().find_map(|unit| self.name.strip_suffix(unit)).unwrap_or(self.name)
    }

    /// The unit that its name ends with: `B`, `us`, `bit/s`, `MSS`; empty for none.
    pub fn unit(&self) -> &'static str {
        let units = [("_bytes", "B"), ("_us", "us"), ("_bps", "bit/s"), ("_mss", "MSS")];
        units.iter().find(|(end, _)| self.name.ends_with(end)).map_or("", |(_, unit)| unit)
    }
}

/// Columns in the order asked for.
#[derive(Debug, Clone)]
pub struct Columns(Vec<Column>);

impl PartialEq for Columns {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for Columns {}

/// No column has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoColumn(
    /// The name.
    pub String,
);

impl Columns {
    /// Names with commas between; units may be left out.
    ///
    /// # Errors
    /// The first name that is none, or an empty text.
    pub fn parse(text: &str) -> Result<Self, NoColumn> {
        text.split(',').map(|name| Self::named(name.trim())).collect::<Result<_, _>>().map(Self)
    }

    /// The column of this name; its unit may be left out.
    fn named(name: &str) -> Result<Column, NoColumn> {
        let is = |column: &&Column| column.name == name || column.short() == name;
        COLUMNS.iter().find(is).copied().ok_or_else(|| NoColumn(name.to_owned()))
    }

    /// The columns in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.0.iter()
    }

    /// Their names.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|column| column.name).collect()
    }
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinning {
    /// Every row in which a column changes.
    None,
    /// Buckets of this width.
    Every(Duration),
    /// At most so many rows of each flow, and a bucket more.
    Points(usize),
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Comma-separated, names first.
    Csv,
    /// A JSON object a line.
    JsonLines,
}

/// Collects the rows of all flows.
#[derive(Debug)]
pub struct Collector {
    columns: Columns,
    limit: usize,
    flows: Vec<FlowRows>,
    /// The row at hand.
    row: Vec<Option<u64>>,
}

impl Collector {
    /// For flows of these names.
    pub fn new(
        columns: Columns,
        thinning: Thinning,
        flows: impl IntoIterator<Item = String>,
    ) -> Self {
        let (every, limit) = match thinning {
            Thinning::None => (0, usize::MAX),
            Thinning::Every(every) => (every.as_nanos(), usize::MAX),
            Thinning::Points(points) => (0, points.max(16)),
        };
        let width = columns.0.len();
        let flows = flows.into_iter().map(|name| FlowRows::new(name, width, every)).collect();
        Self { columns, limit, flows, row: vec![None; width] }
    }

    /// The state of the sender of flow number `flow`; not before any other.
    pub fn add(&mut self, at: Instant, flow: usize, state: &SenderState) {
        let Some(rows) = self.flows.get_mut(flow) else { return };
        for (value, column) in self.row.iter_mut().zip(&self.columns.0) {
            *value = (column.of)(state);
        }
        rows.add(at.as_nanos(), &self.row);
        while rows.kept().len() > self.limit {
            rows.widen(self.limit);
        }
    }

    /// The columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Hands over all rows by time, those of one moment by flow: the moment, the name of the flow,
    /// and the value of each column, its decimal point left out.
    ///
    /// # Errors
    /// The first that `each` gives.
    pub fn rows<E>(
        &mut self,
        mut each: impl FnMut(Instant, &str, &[Option<u64>]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.flows.iter_mut().for_each(FlowRows::close);
        let mut all: Vec<(u64, usize, &[Option<u64>])> = Vec::new();
        for (number, flow) in self.flows.iter().enumerate() {
            all.extend(flow.kept().iter().map(|(at, row)| (at, number, row)));
        }
        // Rows of a flow stay in their order.
        all.sort_by_key(|&(at, number, _)| (at, number));
        all.into_iter().try_for_each(|(at, number, row)| {
            each(Instant::ZERO + Duration::from_nanos(at), self.flows[number].name(), row)
        })
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&mut self, form: Form, out: &mut impl Write) -> io::Result<()> {
        let columns = self.columns.clone();
        if form == Form::Csv {
            writeln!(out, "time_s,flow,{}", columns.names().join(","))?;
        }
        let mut text = String::new();
        self.rows(|at, flow, values| {
            text.clear();
            line(&mut text, form, &columns, at.as_nanos(), flow, values);
            out.write_all(text.as_bytes())
        })
    }
}

fn line(
    line: &mut String,
    form: Form,
    columns: &Columns,
    at: u64,
    flow: &str,
    values: &[Option<u64>],
) {
    let seconds = format_args!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000).to_string();
    // A String takes every text.
    let _ = match form {
        Form::Csv if flow.contains([',', '"', '\n', '\r']) => {
            write!(line, "{seconds},\"{}\"", flow.replace('"', "\"\""))
        }
        Form::Csv => write!(line, "{seconds},{flow}"),
        Form::JsonLines => {
            let name = serde_json::Value::from(flow);
            write!(line, "{{\"time_s\":{seconds},\"flow\":{name}")
        }
    };
    for (column, value) in columns.iter().zip(values) {
        let text = value.map_or(String::new(), |value| decimal(value, column.decimals));
        let _ = match form {
            Form::Csv => write!(line, ",{text}"),
            Form::JsonLines if text.is_empty() => write!(line, ",\"{}\":null", column.name),
            Form::JsonLines => write!(line, ",\"{}\":{text}", column.name),
        };
    }
    line.push_str(if form == Form::Csv { "\n" } else { "}\n" });
}

/// An integer with its decimal point set.
fn decimal(value: u64, decimals: u32) -> String {
    if decimals == 0 {
        return value.to_string();
    }
    let one = 10_u64.pow(decimals);
    format!("{}.{:0width$}", value / one, value % one, width = decimals as usize)
}

#[cfg(test)]
mod tests {
    use units::Offset;

    use super::*;

    fn state(cwnd: u64, flight: u64) -> SenderState {
        SenderState {
            snd_una: Offset(0),
            snd_nxt: Offset(flight),
            snd_max: Offset(flight),
            cwnd: Bytes(cwnd),
            ssthresh: None,
            snd_wnd: Bytes(65_535),
            mss: Bytes(1_000),
            buffered: Bytes(0),
            send_buffer: Bytes(0),
            srtt: Some(Duration::from_nanos(1_500)),
            rto: Duration::from_millis(1),
            in_recovery: false,
            in_flight: Bytes(flight),
            partial_acked: Bytes::ZERO,
            pipe: Bytes(flight),
            pacing: None,
        }
    }

    fn written(columns: &str, thinning: Thinning, form: Form, rows: &[(u64, u64, u64)]) -> String {
        let columns = Columns::parse(columns).unwrap();
        let mut collector = Collector::new(columns, thinning, ["up".to_owned()]);
        for &(millis, cwnd, flight) in rows {
            let at = Instant::ZERO + Duration::from_millis(millis);
            collector.add(at, 0, &state(cwnd, flight));
        }
        let mut out = Vec::new();
        collector.write(form, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_row_stands_where_a_chosen_column_changes() {
        let rows = [(0, 1_000, 0), (1, 1_000, 500), (2, 2_000, 500)];
        let expected = "time_s,flow,cwnd_bytes,ssthresh_bytes,srtt_us\n\
                        0.000000000,up,1000,,1.500\n0.002000000,up,2000,,1.500\n";
        assert_eq!(written("cwnd,ssthresh,srtt", Thinning::None, Form::Csv, &rows), expected);
        let json = written("cwnd,ssthresh", Thinning::None, Form::JsonLines, &rows);
        assert_eq!(
            json.lines().next().unwrap(),
            r#"{"time_s":0.000000000,"flow":"up","cwnd_bytes":1000,"ssthresh_bytes":null}"#
        );
    }

    #[test]
    fn a_bucket_keeps_the_peaks_of_every_column() {
        let rows = [(0, 5, 5), (1, 9, 5), (2, 5, 1), (3, 6, 7), (4, 5, 5), (10, 5, 5)];
        let text =
            written("cwnd,flight", Thinning::Every(Duration::from_millis(10)), Form::Csv, &rows);
        let times: Vec<&str> = text.lines().skip(1).map(|line| &line[..5]).collect();
        assert_eq!(times, ["0.000", "0.001", "0.002", "0.003", "0.004", "0.010"]);
        let dull = [(0, 5, 5), (1, 5, 5), (2, 5, 5), (3, 5, 5), (4, 5, 5), (10, 5, 5)];
        let text =
            written("cwnd,flight", Thinning::Every(Duration::from_millis(10)), Form::Csv, &dull);
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn a_limit_is_kept_and_no_peak_lost() {
        let rows: Vec<(u64, u64, u64)> =
            (0..5_000).map(|n| (n, 1_000 + n * 7_919 % 5_003, n * 31 % 977)).collect();
        let text = written("cwnd,flight", Thinning::Points(100), Form::Csv, &rows);
        let cells = |index: usize| -> Vec<u64> {
            let cell = |line: &str| line.split(',').nth(index).unwrap().parse().unwrap();
            text.lines().skip(1).map(cell).collect()
        };
        assert!((20..=106).contains(&cells(2).len()), "{}", cells(2).len());
        for (index, of) in [(2, 1), (3, 2)] {
            let all = rows.iter().map(|row| if of == 1 { row.1 } else { row.2 });
            assert_eq!(cells(index).iter().max(), all.clone().max().as_ref());
            assert_eq!(cells(index).iter().min(), all.min().as_ref());
        }
    }

    #[test]
    fn names_are_told_apart() {
        for column in COLUMNS {
            assert_eq!(COLUMNS.iter().filter(|other| other.short() == column.short()).count(), 1);
        }
        assert_eq!(Columns::parse("cwnd,").unwrap_err(), NoColumn(String::new()));
    }
}
