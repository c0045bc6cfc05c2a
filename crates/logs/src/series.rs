//! Selected columns of the senders' states over time, downsampled without loss of a peak.
//!
//! Time is divided into buckets; for each bucket and flow, the rows are kept that are first, last,
//! and lowest or highest in any of the columns: actual states of the sender, never means. Without
//! buckets a row is kept whenever one of the columns changes.
//!
//! ```
//! use logs::series::{SeriesColumns, SeriesFormat, Downsampling};
//! # use ackclock_logs as logs;
//!
//! let columns = SeriesColumns::parse("cwnd, flight").unwrap();
//! assert_eq!(columns.names(), ["cwnd_bytes", "flight_bytes"]);
//! assert_eq!(SeriesColumns::parse("cwmd").unwrap_err().0, "cwmd");
//! let thinning = Downsampling::Every(units::Duration::from_millis(10));
//! # let _ = (thinning, SeriesFormat::Csv);
//! ```

mod columns;
mod rows;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, Write};

use record::Sender;
use units::{Duration, Instant};

use crate::decimal::Text;
use columns::SeriesField;
pub use columns::{COLUMNS, ColumnForm, SeriesColumn, SeriesColumns, UnknownColumn};
use rows::{Fields, FlowRows};

/// Downsampling of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Downsampling {
    /// Every row in which a column changes.
    None,
    /// Buckets of this width.
    Every(Duration),
    /// At most this many rows of each flow, plus one bucket.
    Points(usize),
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesFormat {
    /// Comma-separated, names first.
    Csv,
    /// One JSON object per line.
    JsonLines,
}

/// Collects the rows of all flows.
#[derive(Debug)]
pub struct Collector {
    columns: SeriesColumns,
    /// Fields to read from each sender.
    fields: Fields,
    limit: usize,
    flows: Vec<FlowRows>,
}

impl Collector {
    /// A collector for flows with these names.
    pub fn new(
        columns: SeriesColumns,
        thinning: Downsampling,
        flows: impl IntoIterator<Item = String>,
    ) -> Self {
        let (every, limit) = match thinning {
            Downsampling::None => (0, usize::MAX),
            Downsampling::Every(every) => (every.as_nanos(), usize::MAX),
            Downsampling::Points(points) => (0, points.max(16)),
        };
        let fields = Fields::new(columns.iter().map(|column| column.field));
        let flows = flows.into_iter().map(|name| FlowRows::new(name, every, &fields)).collect();
        Self { columns, fields, limit, flows }
    }

    /// Adds the current state of the sender of flow `flow`; times must not decrease.
    #[inline(never)]
    pub fn add(&mut self, at: Instant, flow: usize, sender: &impl Sender) {
        let Some(rows) = self.flows.get_mut(flow) else { return };
        rows.add(at.as_nanos(), sender, &self.fields);
        if rows.kept() > self.limit {
            self.thin(flow);
        }
    }

    /// Reduces the rows of a flow.
    #[cold]
    fn thin(&mut self, flow: usize) {
        // Most rows of a bucket: the first, the last, two for each column.
        let each = 2 + 2 * self.columns.iter().count();
        let rows = &mut self.flows[flow];
        while rows.kept() > self.limit {
            rows.widen(self.limit, each, &self.fields);
        }
    }

    /// The columns.
    pub fn columns(&self) -> &SeriesColumns {
        &self.columns
    }

    /// Calls `each` with all rows, sorted by time and flow: the time, the name of the flow, and the
    /// value of each column without its decimal point, or the index of its name. No rows may be added
    /// afterwards.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn rows<E>(
        &mut self,
        mut each: impl FnMut(Instant, &str, &[Option<u64>]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.flows.iter_mut().for_each(|flow| flow.close(&self.fields));
        let flows = &self.flows;
        self.walk(|at, flow, values| each(at, flows[flow].name(), values))
    }

    /// Calls `each` with all stored rows, sorted by time and flow.
    fn walk<E>(
        &self,
        mut each: impl FnMut(Instant, usize, &[Option<u64>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let fields: Vec<SeriesField> = self.columns.iter().map(|column| column.field).collect();
        let mut readers: Vec<_> = self.flows.iter().map(FlowRows::read).collect();
        let firsts = readers.iter_mut().enumerate();
        let mut next: BinaryHeap<Reverse<(u64, usize)>> =
            firsts.filter_map(|(flow, reader)| Some(Reverse((reader.step()?, flow)))).collect();
        let mut values = vec![None; fields.len()];
        while let Some(mut first) = next.peek_mut() {
            let Reverse((at, flow)) = *first;
            for (value, &field) in values.iter_mut().zip(&fields) {
                *value = readers[flow].value(field);
            }
            each(Instant::from_nanos(at), flow, &values)?;
            match readers[flow].step() {
                Some(at) => *first = Reverse((at, flow)),
                None => drop(PeekMut::pop(first)),
            }
        }
        Ok(())
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&mut self, form: SeriesFormat, out: &mut impl Write) -> io::Result<()> {
        let columns = self.columns.clone();
        if form == SeriesFormat::Csv {
            writeln!(out, "time_s,flow,{}", columns.names().join(","))?;
        }
        self.flows.iter_mut().for_each(|flow| flow.close(&self.fields));
        let names: Vec<String> = self.flows.iter().map(|flow| form.name(flow.name())).collect();
        let mut text = Text::new(256);
        self.walk(|at, flow, values| {
            text.clear();
            line(&mut text, form, &columns, at.as_nanos(), &names[flow], values);
            out.write_all(text.bytes())
        })
    }
}

impl SeriesFormat {
    /// Formats the name of a flow as a cell or a value.
    fn name(self, flow: &str) -> String {
        match self {
            Self::Csv if flow.contains([',', '"', '\n', '\r']) => {
                format!("\"{}\"", flow.replace('"', "\"\""))
            }
            Self::Csv => flow.to_owned(),
            Self::JsonLines => serde_json::Value::from(flow).to_string(),
        }
    }
}

fn line(
    line: &mut Text,
    form: SeriesFormat,
    columns: &SeriesColumns,
    at: u64,
    flow: &str,
    values: &[Option<u64>],
) {
    let is_csv = form == SeriesFormat::Csv;
    if !is_csv {
        line.word("{\"time_s\":");
    }
    line.fixed::<9>(at);
    line.word(if is_csv { "," } else { ",\"flow\":" });
    line.word(flow);
    for (column, value) in columns.iter().zip(values) {
        line.byte(b',');
        if !is_csv {
            line.byte(b'"');
            line.word(column.name);
            line.word("\":");
        }
        match (value, column.form) {
            (Some(value), ColumnForm::Decimal(0)) => line.whole(*value),
            (Some(value), ColumnForm::Decimal(3)) => line.fixed::<3>(*value),
            (Some(value), ColumnForm::Decimal(_)) => line.fixed::<5>(*value),
            (Some(value), form @ ColumnForm::Name(_)) => {
                let quote = if is_csv { "" } else { "\"" };
                line.word(quote);
                line.word(form.name(*value).unwrap_or_default());
                line.word(quote);
            }
            (None, _) if is_csv => {}
            (None, _) => line.word("null"),
        }
    }
    line.word(if is_csv { "\n" } else { "}\n" });
}

#[cfg(test)]
mod tests {
    use record::{BbrPhase, BbrState, SenderState};
    use units::{Bytes, Offset};

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
            bbr: None,
            pipe: Bytes(flight),
            pacing: None,
        }
    }

    fn written(
        columns: &str,
        thinning: Downsampling,
        form: SeriesFormat,
        rows: &[(u64, u64, u64)],
    ) -> String {
        let columns = SeriesColumns::parse(columns).unwrap();
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
    fn a_row_is_kept_where_a_selected_column_changes() {
        let rows = [(0, 1_000, 0), (1, 1_000, 500), (2, 2_000, 500)];
        let expected = "time_s,flow,cwnd_bytes,ssthresh_bytes,srtt_us\n\
                        0.000000000,up,1000,,1.500\n0.002000000,up,2000,,1.500\n";
        assert_eq!(
            written("cwnd,ssthresh,srtt", Downsampling::None, SeriesFormat::Csv, &rows),
            expected
        );
        let json = written("cwnd,ssthresh", Downsampling::None, SeriesFormat::JsonLines, &rows);
        assert_eq!(
            json.lines().next().unwrap(),
            r#"{"time_s":0.000000000,"flow":"up","cwnd_bytes":1000,"ssthresh_bytes":null}"#
        );
    }

    #[test]
    fn the_model_of_bbr_has_names_rates_packets_and_gains() {
        let columns = "bbr_mode,bbr_phase,bbr_bw_hi,bbr_bw_lo,bbr_inflight_hi,bbr_inflight_lo,bbr_pacing_gain,bbr_cwnd_gain";
        let bbr = |phase, pacing_gain, inflight_hi| {
            Some(BbrState {
                phase,
                bw_hi: 1_250_000,
                bw_lo: None,
                inflight_hi,
                inflight_lo: None,
                pacing_gain,
                cwnd_gain: 512,
                min_rtt_us: None,
                draws: 0,
                rounds: 0,
                wait_us: 0,
            })
        };
        let states = [
            None,
            bbr(BbrPhase::Startup, 710, None),
            bbr(BbrPhase::Refill, 256, Some(17)),
            bbr(BbrPhase::ProbeRtt, 256, Some(17)),
        ];
        let write = |form| {
            let columns = SeriesColumns::parse(columns).unwrap();
            let mut collector = Collector::new(columns, Downsampling::None, ["up".to_owned()]);
            for (millis, bbr) in (0..).zip(states) {
                let at = Instant::ZERO + Duration::from_millis(millis);
                collector.add(at, 0, &SenderState { bbr, ..state(1_000, 0) });
            }
            let mut out = Vec::new();
            collector.write(form, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let csv = write(SeriesFormat::Csv);
        let rows: Vec<&str> = csv.lines().collect();
        assert_eq!(
            rows,
            [
                "time_s,flow,bbr_mode,bbr_phase,bbr_bw_hi_bps,bbr_bw_lo_bps,bbr_inflight_hi_packets,\
                 bbr_inflight_lo_packets,bbr_pacing_gain,bbr_cwnd_gain",
                "0.000000000,up,,,,,,,,",
                "0.001000000,up,startup,startup,10000000,,,,2.77344,2.00000",
                "0.002000000,up,probe_bw,probe_bw_refill,10000000,,17,,1.00000,2.00000",
                "0.003000000,up,probe_rtt,probe_rtt,10000000,,17,,1.00000,2.00000",
            ]
        );
        let json = write(SeriesFormat::JsonLines);
        assert_eq!(
            json.lines().nth(1).unwrap(),
            r#"{"time_s":0.001000000,"flow":"up","bbr_mode":"startup","bbr_phase":"startup","bbr_bw_hi_bps":10000000,"bbr_bw_lo_bps":null,"bbr_inflight_hi_packets":null,"bbr_inflight_lo_packets":null,"bbr_pacing_gain":2.77344,"bbr_cwnd_gain":2.00000}"#
        );
    }

    #[test]
    fn a_bucket_keeps_the_peaks_of_every_column() {
        let rows = [(0, 5, 5), (1, 9, 5), (2, 5, 1), (3, 6, 7), (4, 5, 5), (10, 5, 5)];
        let text = written(
            "cwnd,flight",
            Downsampling::Every(Duration::from_millis(10)),
            SeriesFormat::Csv,
            &rows,
        );
        let times: Vec<&str> = text.lines().skip(1).map(|line| &line[..5]).collect();
        assert_eq!(times, ["0.000", "0.001", "0.002", "0.003", "0.004", "0.010"]);
        let dull = [(0, 5, 5), (1, 5, 5), (2, 5, 5), (3, 5, 5), (4, 5, 5), (10, 5, 5)];
        let text = written(
            "cwnd,flight",
            Downsampling::Every(Duration::from_millis(10)),
            SeriesFormat::Csv,
            &dull,
        );
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn a_limit_is_kept_and_no_peak_lost() {
        let rows: Vec<(u64, u64, u64)> =
            (0..5_000).map(|n| (n, 1_000 + n * 7_919 % 5_003, n * 31 % 977)).collect();
        let text = written("cwnd,flight", Downsampling::Points(100), SeriesFormat::Csv, &rows);
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

    /// A sender that panics if a field other than the window is read.
    struct Shy;

    macro_rules! shy {
        ($($field:ident: $type:ty),+) => {
            impl Sender for Shy {
                fn cwnd(&self) -> Bytes {
                    Bytes(7)
                }
                $(fn $field(&self) -> $type {
                    panic!("unexpected read of {}", stringify!($field))
                })+
            }
        };
    }

    shy! {
        snd_una: Offset, snd_nxt: Offset, snd_max: Offset, ssthresh: Option<Bytes>, snd_wnd: Bytes,
        mss: Bytes, buffered: Bytes, send_buffer: Bytes, srtt: Option<Duration>, rto: Duration,
        in_recovery: bool, in_flight: Bytes, partial_acked: Bytes, pipe: Bytes,
        pacing: Option<units::Rate>, bbr: Option<BbrState>
    }

    #[test]
    fn only_the_fields_of_the_columns_are_read() {
        let columns = SeriesColumns::parse("cwnd,cwnd").unwrap();
        let mut collector = Collector::new(columns, Downsampling::None, ["up".to_owned()]);
        collector.add(Instant::ZERO, 0, &Shy);
        let mut out = Vec::new();
        collector.write(SeriesFormat::Csv, &mut out).unwrap();
        let expected = "time_s,flow,cwnd_bytes,cwnd_bytes\n0.000000000,up,7,7\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_last_row_of_an_instant_is_kept() {
        let rows = [(0, 1, 0), (1, 2, 0), (1, 3, 0), (2, 4, 0), (2, 3, 0), (3, 3, 0), (4, 1, 0)];
        let text = written("cwnd", Downsampling::None, SeriesFormat::Csv, &rows);
        let rows: Vec<&str> = text.lines().skip(1).collect();
        let expected =
            ["0.000000000,up,1", "0.001000000,up,3", "0.002000000,up,3", "0.004000000,up,1"];
        assert_eq!(rows, expected);
    }

    #[test]
    fn rows_of_several_flows_are_sorted_by_time() {
        let columns = SeriesColumns::parse("cwnd").unwrap();
        let names = ["a, b", "c"].map(str::to_owned);
        let mut collector = Collector::new(columns, Downsampling::None, names);
        for (millis, flow, cwnd) in [(0, 1, 5), (0, 0, 6), (1, 1, 7), (2, 0, 8), (2, 1, 9)] {
            let at = Instant::ZERO + Duration::from_millis(millis);
            collector.add(at, flow, &state(cwnd, 0));
        }
        let mut out = Vec::new();
        collector.write(SeriesFormat::Csv, &mut out).unwrap();
        let expected = "time_s,flow,cwnd_bytes\n0.000000000,\"a, b\",6\n0.000000000,c,5\n\
                        0.001000000,c,7\n0.002000000,\"a, b\",8\n0.002000000,c,9\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn short_names_are_unique() {
        for column in COLUMNS {
            assert_eq!(COLUMNS.iter().filter(|other| other.short() == column.short()).count(), 1);
        }
        assert_eq!(SeriesColumns::parse("cwnd,").unwrap_err(), UnknownColumn(String::new()));
    }
}
