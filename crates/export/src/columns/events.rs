//! Event tables: the state of senders after each of their events, and the reads of applications.

use std::io::{self, Write};

use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::Scenario;
use units::{Bytes, Duration, Instant, Rate};

use super::{ColumnKind, ParquetCell, ParquetColumn, ParquetTable, of_run};

/// Writes a row per event of a sender and per read of an application.
pub struct EventColumns<W: Write + Send> {
    /// `None` once it has failed.
    table: Option<ParquetTable<W>>,
    failed: Option<io::Error>,
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
            hosts: scenario.hosts.iter().map(|host| host.name.clone()).collect(),
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
        })
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(self) -> io::Result<W> {
        match (self.table, self.failed) {
            (Some(table), _) => table.finish(),
            (None, Some(error)) => Err(error),
            (None, None) => Err(io::Error::other("the table failed earlier")),
        }
    }
}

/// The cells of a row.
fn cells<'a>(
    at: Instant,
    (host, flow, name): (&'a str, &'a str, &'static str),
    read: Option<u64>,
    state: Option<&SenderState>,
) -> [ParquetCell<'a>; 20] {
    let whole = |of: fn(&SenderState) -> u64| ParquetCell::from(state.map(of));
    let seconds = |span: Option<Duration>| ParquetCell::from(span.map(Duration::as_secs_f64));
    [
        ParquetCell::Number(at.as_secs_f64()),
        ParquetCell::Whole(at.as_nanos()),
        ParquetCell::Text(host),
        ParquetCell::Text(flow),
        ParquetCell::Text(name),
        ParquetCell::from(read),
        whole(|state| state.snd_una.0),
        whole(|state| state.snd_nxt.0),
        whole(|state| state.snd_max.0),
        whole(|state| state.in_flight.get()),
        whole(|state| state.pipe.get()),
        whole(|state| state.cwnd.get()),
        ParquetCell::from(state.and_then(|state| state.ssthresh).map(Bytes::get)),
        whole(|state| state.snd_wnd.get()),
        whole(|state| state.mss.get()),
        whole(|state| state.buffered.get()),
        seconds(state.and_then(|state| state.srtt)),
        ParquetCell::from(state.and_then(|state| state.pacing).map(Rate::bits_per_second)),
        seconds(state.map(|state| state.rto)),
        state.map_or(ParquetCell::None, |state| ParquetCell::Switch(state.in_recovery)),
    ]
}

fn named(names: &[String], at: usize) -> &str {
    names.get(at).map_or("", |name| name)
}

impl<W: Write + Send> Recorder for EventColumns<W> {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        let read = match event {
            Event::AppRead { bytes, .. } => Some(u64::from(bytes)),
            _ => None,
        };
        let Some(table) = &mut self.table else { return };
        if read.is_none() && state.is_none() {
            return;
        }
        let host = named(&self.hosts, who.host.0.into());
        let flow = named(&self.flows, who.flow.0 as usize);
        let row = cells(at, (host, flow, logs::csv::name(&event)), read, state);
        if let Err(error) = table.push(row) {
            self.failed = Some(error);
            self.table = None;
        }
    }
}

impl<W: Write + Send> Observer for EventColumns<W> {}
