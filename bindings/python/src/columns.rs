//! The data of a run as columns.

mod bbr;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, StringBuilder, StringDictionaryBuilder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};
use logs::csv::{detail, name};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::Scenario;
use units::{Bytes, Duration, Instant};

use bbr::BbrColumns;

/// A column with its description.
pub(crate) struct ArrowColumn {
    name: String,
    says: String,
    values: ArrayRef,
}

impl ArrowColumn {
    pub(crate) fn new(name: impl Into<String>, says: impl Into<String>, values: ArrayRef) -> Self {
        Self { name: name.into(), says: says.into(), values }
    }
}

/// Builds a table; the metadata of each field has its description.
pub(crate) fn batch(columns: Vec<ArrowColumn>) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        let field = Field::new(column.name, column.values.data_type().clone(), true);
        fields.push(field.with_metadata([("description".to_owned(), column.says)]));
        values.push(column.values);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), values)
}

/// The first columns of every table: time, host and flow.
struct CommonColumns {
    time_s: Float64Builder,
    host: StringDictionaryBuilder<Int32Type>,
    flow: StringDictionaryBuilder<Int32Type>,
    hosts: Vec<String>,
    flows: Vec<String>,
}

impl CommonColumns {
    fn new(scenario: &Scenario) -> Self {
        Self {
            time_s: Float64Builder::new(),
            host: StringDictionaryBuilder::new(),
            flow: StringDictionaryBuilder::new(),
            hosts: scenario.hosts.iter().map(|host| host.name.clone()).collect(),
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
        }
    }

    fn push(&mut self, at: Instant, who: EventSource) {
        self.time_s.append_value(at.as_secs_f64());
        self.host.append_option(self.hosts.get(who.host.0 as usize));
        self.flow.append_option(self.flows.get(who.flow.0 as usize));
    }

    fn finish(mut self) -> Vec<ArrowColumn> {
        vec![
            ArrowColumn::new("time_s", "virtual time, in seconds", Arc::new(self.time_s.finish())),
            ArrowColumn::new("host", "host of the event", Arc::new(self.host.finish())),
            ArrowColumn::new("flow", "flow of the event", Arc::new(self.flow.finish())),
        ]
    }
}

/// States of senders over time: a row for each change.
pub(crate) struct StateTable {
    moments: CommonColumns,
    last: BTreeMap<EventSource, SenderState>,
    snd_una: UInt64Builder,
    flight: UInt64Builder,
    cwnd: UInt64Builder,
    cwnd_mss: Float64Builder,
    ssthresh: UInt64Builder,
    snd_wnd: UInt64Builder,
    send_buffer: UInt64Builder,
    srtt: Float64Builder,
    rto: Float64Builder,
    in_recovery: BooleanBuilder,
    bbr: BbrColumns,
}

impl StateTable {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            moments: CommonColumns::new(scenario),
            last: BTreeMap::new(),
            snd_una: UInt64Builder::new(),
            flight: UInt64Builder::new(),
            cwnd: UInt64Builder::new(),
            cwnd_mss: Float64Builder::new(),
            ssthresh: UInt64Builder::new(),
            snd_wnd: UInt64Builder::new(),
            send_buffer: UInt64Builder::new(),
            srtt: Float64Builder::new(),
            rto: Float64Builder::new(),
            in_recovery: BooleanBuilder::new(),
            bbr: BbrColumns::default(),
        }
    }

    /// # Errors
    /// None that a run can cause.
    pub(crate) fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns = self.moments.finish();
        columns.extend([
            ArrowColumn::new(
                "snd_una_bytes",
                "oldest byte not yet acknowledged, from 0",
                Arc::new(self.snd_una.finish()),
            ),
            ArrowColumn::new("flight_bytes", "bytes in flight", Arc::new(self.flight.finish())),
            ArrowColumn::new("cwnd_bytes", "congestion window", Arc::new(self.cwnd.finish())),
            ArrowColumn::new(
                "cwnd_mss",
                "congestion window in segments",
                Arc::new(self.cwnd_mss.finish()),
            ),
            ArrowColumn::new(
                "ssthresh_bytes",
                "slow-start threshold; null while unset",
                Arc::new(self.ssthresh.finish()),
            ),
            ArrowColumn::new(
                "snd_wnd_bytes",
                "receive window of the peer",
                Arc::new(self.snd_wnd.finish()),
            ),
            ArrowColumn::new(
                "send_buffer_bytes",
                "size of the send buffer",
                Arc::new(self.send_buffer.finish()),
            ),
            ArrowColumn::new(
                "srtt_s",
                "smoothed round-trip time; null before the first sample",
                Arc::new(self.srtt.finish()),
            ),
            ArrowColumn::new(
                "rto_s",
                "current retransmission timeout",
                Arc::new(self.rto.finish()),
            ),
            ArrowColumn::new(
                "in_recovery",
                "in fast recovery?",
                Arc::new(self.in_recovery.finish()),
            ),
        ]);
        columns.extend(self.bbr.finish());
        batch(columns)
    }
}

impl Recorder for StateTable {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, _: Event, state: Option<&SenderState>) {
        let Some(state) = state else { return };
        if self.last.insert(who, *state) == Some(*state) {
            return;
        }
        self.moments.push(at, who);
        self.snd_una.append_value(state.snd_una.0);
        self.flight.append_value(state.in_flight.get());
        self.cwnd.append_value(state.cwnd.get());
        self.cwnd_mss.append_option(multiple(state.cwnd, state.mss));
        self.ssthresh.append_option(state.ssthresh.map(Bytes::get));
        self.snd_wnd.append_value(state.snd_wnd.get());
        self.send_buffer.append_value(state.send_buffer.get());
        self.srtt.append_option(state.srtt.map(Duration::as_secs_f64));
        self.rto.append_value(state.rto.as_secs_f64());
        self.in_recovery.append_value(state.in_recovery);
        self.bbr.push(state.bbr.as_ref());
    }
}

impl Observer for StateTable {}

/// All events, as in `ackclock run --csv`.
pub(crate) struct EventTable {
    moments: CommonColumns,
    event: StringDictionaryBuilder<Int32Type>,
    detail: StringBuilder,
    cwnd: UInt64Builder,
    flight: UInt64Builder,
}

impl EventTable {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            moments: CommonColumns::new(scenario),
            event: StringDictionaryBuilder::new(),
            detail: StringBuilder::new(),
            cwnd: UInt64Builder::new(),
            flight: UInt64Builder::new(),
        }
    }

    /// # Errors
    /// None that a run can cause.
    pub(crate) fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns = self.moments.finish();
        columns.extend([
            ArrowColumn::new("event", "kind of the event", Arc::new(self.event.finish())),
            ArrowColumn::new(
                "detail",
                "further fields of the event: key=value",
                Arc::new(self.detail.finish()),
            ),
            ArrowColumn::new(
                "cwnd_bytes",
                "congestion window after it; null where the event is not one of a sender",
                Arc::new(self.cwnd.finish()),
            ),
            ArrowColumn::new(
                "flight_bytes",
                "bytes in flight after it",
                Arc::new(self.flight.finish()),
            ),
        ]);
        batch(columns)
    }
}

impl Recorder for EventTable {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.moments.push(at, who);
        self.event.append_value(name(&event));
        self.detail.append_value(detail(&event));
        self.cwnd.append_option(state.map(|state| state.cwnd.get()));
        self.flight.append_option(state.map(|state| state.in_flight.get()));
    }
}

impl Observer for EventTable {}

#[allow(clippy::cast_precision_loss)]
fn multiple(bytes: Bytes, unit: Bytes) -> Option<f64> {
    (unit != Bytes::ZERO).then(|| bytes.get() as f64 / unit.get() as f64)
}
