//! Event tables: the state of senders after each of their events, and the reads of applications.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt64Array};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::Scenario;
use units::{Bytes, Duration, Instant, Rate};

use super::{BATCH_ROWS, ColumnKind, ParquetColumn, ParquetTable, of_run};

/// An event of a sender, or a read.
struct EventRow {
    at: Instant,
    who: EventSource,
    name: &'static str,
    read: Option<u64>,
    state: Option<SenderState>,
}

/// Writes a row per event of a sender and per read of an application.
pub struct EventColumns<W: Write + Send> {
    /// `None` once it has failed.
    table: Option<ParquetTable<W>>,
    failed: Option<io::Error>,
    /// Pending rows.
    rows: Vec<EventRow>,
    hosts: Vec<String>,
    flows: Vec<String>,
}

impl<W: Write + Send> EventColumns<W> {
    /// A table for a run of `scenario` with this SHA-256.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(scenario: &Scenario, sha256: &str, out: W) -> io::Result<Self> {
        use ColumnKind::{Moment, Number, Switch, Text, Whole};
        let column = ParquetColumn::new;
        let columns = [
            column("time_s", Moment, "s", "virtual time"),
            column("time_ns", Whole, "ns", "virtual time, exact"),
            column("host", Text, "", "name of the host of the event"),
            column("flow", Text, "", "name of the flow"),
            column("event", Text, "", "kind of the event"),
            column("read_bytes", Whole, "B", "bytes read by the application, for read events"),
            column("snd_una_bytes", Whole, "B", "oldest byte not acknowledged, from 0"),
            column("snd_nxt_bytes", Whole, "B", "next byte to send"),
            column("snd_max_bytes", Whole, "B", "end of the data ever sent"),
            column("in_flight_bytes", Whole, "B", "bytes sent and not acknowledged"),
            column("pipe_bytes", Whole, "B", "bytes estimated to be in the network (pipe)"),
            column("cwnd_bytes", Whole, "B", "congestion window"),
            column("ssthresh_bytes", Whole, "B", "slow-start threshold; none while unset"),
            column("snd_wnd_bytes", Whole, "B", "receive window of the peer"),
            column("mss_bytes", Whole, "B", "payload of a full segment"),
            column("buffered_bytes", Whole, "B", "bytes in the send buffer"),
            column("srtt_s", Number, "s", "smoothed round trip; none before the first sample"),
            column("pacing_bps", Whole, "bit/s", "pacing rate; none without pacing"),
            column("rto_s", Number, "s", "current retransmission timeout"),
            column("in_recovery", Switch, "", "in fast recovery"),
        ];
        Ok(Self {
            table: Some(ParquetTable::new(&columns, &of_run("events", scenario, sha256), out)?),
            failed: None,
            rows: Vec::with_capacity(BATCH_ROWS),
            hosts: scenario.hosts.iter().map(|host| host.name.clone()).collect(),
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
        })
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.write();
        match (self.table, self.failed) {
            (Some(table), _) => table.finish(),
            (None, Some(error)) => Err(error),
            (None, None) => Err(io::Error::other("the table failed earlier")),
        }
    }

    #[inline(never)]
    fn write(&mut self) {
        let rows = core::mem::take(&mut self.rows);
        if let Some(table) = &mut self.table
            && let Err(error) = table.write(columns(&rows, &self.hosts, &self.flows))
        {
            self.failed = Some(error);
            self.table = None;
        }
        self.rows = rows;
        self.rows.clear();
    }
}

/// The values of all columns in these rows.
fn columns(rows: &[EventRow], hosts: &[String], flows: &[String]) -> Vec<ArrayRef> {
    vec![
        Arc::new(rows.iter().map(|row| Some(row.at.as_secs_f64())).collect::<Float64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.at.as_nanos())).collect::<UInt64Array>()),
        Arc::new(text(rows, |row| named(hosts, row.who.host.0.into()))),
        Arc::new(text(rows, |row| named(flows, row.who.flow.0 as usize))),
        Arc::new(text(rows, |row| row.name)),
        Arc::new(rows.iter().map(|row| row.read).collect::<UInt64Array>()),
        whole(rows, |state| Some(state.snd_una.0)),
        whole(rows, |state| Some(state.snd_nxt.0)),
        whole(rows, |state| Some(state.snd_max.0)),
        whole(rows, |state| Some(state.in_flight.get())),
        whole(rows, |state| Some(state.pipe.get())),
        whole(rows, |state| Some(state.cwnd.get())),
        whole(rows, |state| state.ssthresh.map(Bytes::get)),
        whole(rows, |state| Some(state.snd_wnd.get())),
        whole(rows, |state| Some(state.mss.get())),
        whole(rows, |state| Some(state.buffered.get())),
        number(rows, |state| state.srtt.map(Duration::as_secs_f64)),
        whole(rows, |state| state.pacing.map(Rate::bits_per_second)),
        number(rows, |state| Some(state.rto.as_secs_f64())),
        Arc::new(of_states(rows, |state| Some(state.in_recovery)).collect::<BooleanArray>()),
    ]
}

fn named(names: &[String], at: usize) -> &str {
    names.get(at).map_or("", |name| name)
}

fn text<'a>(rows: &'a [EventRow], of: impl Fn(&'a EventRow) -> &'a str) -> StringArray {
    StringArray::from_iter_values(rows.iter().map(of))
}

fn of_states<T>(
    rows: &[EventRow],
    of: impl Fn(&SenderState) -> Option<T>,
) -> impl Iterator<Item = Option<T>> {
    rows.iter().map(move |row| row.state.as_ref().and_then(&of))
}

fn whole(rows: &[EventRow], of: impl Fn(&SenderState) -> Option<u64>) -> ArrayRef {
    Arc::new(of_states(rows, of).collect::<UInt64Array>())
}

fn number(rows: &[EventRow], of: impl Fn(&SenderState) -> Option<f64>) -> ArrayRef {
    Arc::new(of_states(rows, of).collect::<Float64Array>())
}

impl<W: Write + Send> Recorder for EventColumns<W> {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        let read = match event {
            Event::AppRead { bytes, .. } => Some(u64::from(bytes)),
            _ => None,
        };
        if read.is_none() && state.is_none() || self.table.is_none() {
            return;
        }
        let (name, state) = (logs::csv::name(&event), state.copied());
        self.rows.push(EventRow { at, who, name, read, state });
        if self.rows.len() == BATCH_ROWS {
            self.write();
        }
    }
}

impl<W: Write + Send> Observer for EventColumns<W> {}
