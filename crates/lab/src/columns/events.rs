//! Time series: the state of senders after each of their events, and what applications read.

use std::io::{self, Write};

use record::{Event, Recorder, SenderState, Who};
use sim::Observer;
use sim::scenario::Scenario;
use units::{Bytes, Duration, Instant, Rate};

use super::{Cell, Column, Kind, Table, of_run};

/// Writes a row for each event of a sender, and for each read of an application.
pub struct EventColumns<W: Write + Send> {
    /// `None` once it has failed.
    table: Option<Table<W>>,
    failed: Option<io::Error>,
    hosts: Vec<String>,
    flows: Vec<String>,
}

impl<W: Write + Send> EventColumns<W> {
    /// For a run of `scenario`, whose text has this SHA-256.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(scenario: &Scenario, sha256: &str, out: W) -> io::Result<Self> {
        use Kind::{Number, Switch, Text, Whole};
        let column = Column::new;
        let columns = [
            column("time_s", Number, "s", "virtual time"),
            column("time_ns", Whole, "ns", "the same, exactly"),
            column("host", Text, "", "name of the host it happened on"),
            column("flow", Text, "", "name of the flow"),
            column("event", Text, "", "what happened"),
            column("read_bytes", Whole, "B", "bytes that the application took, of a read"),
            column("snd_una_bytes", Whole, "B", "oldest byte not acknowledged, from 0"),
            column("snd_nxt_bytes", Whole, "B", "next byte to send"),
            column("snd_max_bytes", Whole, "B", "end of what was ever sent"),
            column("in_flight_bytes", Whole, "B", "bytes sent and not acknowledged"),
            column("pipe_bytes", Whole, "B", "bytes the stack takes to be in the network"),
            column("cwnd_bytes", Whole, "B", "congestion window"),
            column("ssthresh_bytes", Whole, "B", "slow-start threshold; none while unset"),
            column("snd_wnd_bytes", Whole, "B", "window that the peer offers"),
            column("mss_bytes", Whole, "B", "payload of a full segment"),
            column("buffered_bytes", Whole, "B", "bytes in the send buffer"),
            column("srtt_s", Number, "s", "smoothed round trip; none before the first sample"),
            column("pacing_bps", Whole, "bit/s", "pacing rate; none where nothing is paced"),
            column("rto_s", Number, "s", "retransmission timeout in force"),
            column("in_recovery", Switch, "", "does a fast recovery run"),
        ];
        Ok(Self {
            table: Some(Table::new(&columns, &of_run("events", scenario, sha256), out)?),
            failed: None,
            hosts: scenario.hosts.iter().map(|host| host.name.clone()).collect(),
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first of the writer since the beginning.
    pub fn finish(self) -> io::Result<W> {
        match (self.table, self.failed) {
            (Some(table), _) => table.finish(),
            (None, Some(error)) => Err(error),
            (None, None) => Err(io::Error::other("the table is gone")),
        }
    }
}

impl<W: Write + Send> Recorder for EventColumns<W> {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        let read = match event {
            Event::Read { bytes, .. } => Some(u64::from(bytes)),
            _ => None,
        };
        let Some(table) = self.table.as_mut().filter(|_| read.is_some() || state.is_some()) else {
            return;
        };
        let name = |names: &'_ [String], at: usize| names.get(at).cloned().unwrap_or_default();
        let (host, flow) =
            (name(&self.hosts, who.host.0.into()), name(&self.flows, who.flow.0 as usize));
        let head = [
            Cell::Number(at.as_secs_f64()),
            Cell::Whole(at.as_nanos()),
            Cell::Text(&host),
            Cell::Text(&flow),
            Cell::Text(trace::csv::name(&event)),
            Cell::from(read),
        ];
        let cells = state.map(|state| {
            [
                Cell::Whole(state.snd_una.0),
                Cell::Whole(state.snd_nxt.0),
                Cell::Whole(state.snd_max.0),
                Cell::Whole(state.in_flight.get()),
                Cell::Whole(state.pipe.get()),
                Cell::Whole(state.cwnd.get()),
                Cell::from(state.ssthresh.map(Bytes::get)),
                Cell::Whole(state.snd_wnd.get()),
                Cell::Whole(state.mss.get()),
                Cell::Whole(state.buffered.get()),
                Cell::from(state.srtt.map(Duration::as_secs_f64)),
                Cell::from(state.pacing.map(Rate::bits_per_second)),
                Cell::Number(state.rto.as_secs_f64()),
                Cell::Switch(state.in_recovery),
            ]
        });
        if let Err(error) = table.push(head.into_iter().chain(cells.into_iter().flatten())) {
            self.failed = Some(error);
            self.table = None;
        }
    }
}

impl<W: Write + Send> Observer for EventColumns<W> {}
