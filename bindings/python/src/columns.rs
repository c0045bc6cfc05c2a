//! What a run tells, as columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, StringBuilder, StringDictionaryBuilder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};
use logs::csv::{detail, name};
use record::{Event, Recorder, SenderState, Who};
use sim::Observer;
use sim::scenario::Scenario;
use units::{Bytes, Duration, Instant};

/// A column with what it says.
pub(crate) struct Column {
    name: String,
    says: String,
    values: ArrayRef,
}

impl Column {
    pub(crate) fn new(name: impl Into<String>, says: impl Into<String>, values: ArrayRef) -> Self {
        Self { name: name.into(), says: says.into(), values }
    }
}

/// Columns as a table; each field has its description in its metadata.
pub(crate) fn batch(columns: Vec<Column>) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        let field = Field::new(column.name, column.values.data_type().clone(), true);
        fields.push(field.with_metadata([("description".to_owned(), column.says)]));
        values.push(column.values);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), values)
}

/// When and where, the columns that every table begins with.
struct Moments {
    time_s: Float64Builder,
    host: StringDictionaryBuilder<Int32Type>,
    flow: StringDictionaryBuilder<Int32Type>,
    hosts: Vec<String>,
    flows: Vec<String>,
}

impl Moments {
    fn new(scenario: &Scenario) -> Self {
        Self {
            time_s: Float64Builder::new(),
            host: StringDictionaryBuilder::new(),
            flow: StringDictionaryBuilder::new(),
            hosts: scenario.hosts.iter().map(|host| host.name.clone()).collect(),
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
        }
    }

    fn push(&mut self, at: Instant, who: Who) {
        self.time_s.append_value(at.as_secs_f64());
        self.host.append_option(self.hosts.get(who.host.0 as usize));
        self.flow.append_option(self.flows.get(who.flow.0 as usize));
    }

    fn finish(mut self) -> Vec<Column> {
        vec![
            Column::new("time_s", "virtual time, in seconds", Arc::new(self.time_s.finish())),
            Column::new("host", "the host it happened on", Arc::new(self.host.finish())),
            Column::new("flow", "the flow it concerns", Arc::new(self.flow.finish())),
        ]
    }
}

/// States of senders over time: a row wherever one changed.
pub(crate) struct Series {
    moments: Moments,
    last: BTreeMap<Who, SenderState>,
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
}

impl Series {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            moments: Moments::new(scenario),
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
        }
    }

    /// # Errors
    /// None that a run can bring about.
    pub(crate) fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns = self.moments.finish();
        columns.extend([
            Column::new(
                "snd_una_bytes",
                "oldest byte not yet acknowledged, from 0",
                Arc::new(self.snd_una.finish()),
            ),
            Column::new("flight_bytes", "bytes under way", Arc::new(self.flight.finish())),
            Column::new("cwnd_bytes", "congestion window", Arc::new(self.cwnd.finish())),
            Column::new("cwnd_mss", "the same in segments", Arc::new(self.cwnd_mss.finish())),
            Column::new(
                "ssthresh_bytes",
                "slow-start threshold; null while unset",
                Arc::new(self.ssthresh.finish()),
            ),
            Column::new("snd_wnd_bytes", "window the peer offers", Arc::new(self.snd_wnd.finish())),
            Column::new(
                "send_buffer_bytes",
                "size of the send buffer",
                Arc::new(self.send_buffer.finish()),
            ),
            Column::new(
                "srtt_s",
                "smoothed round-trip time; null before the first sample",
                Arc::new(self.srtt.finish()),
            ),
            Column::new("rto_s", "retransmission timeout in force", Arc::new(self.rto.finish())),
            Column::new(
                "in_recovery",
                "does a fast recovery run?",
                Arc::new(self.in_recovery.finish()),
            ),
        ]);
        batch(columns)
    }
}

impl Recorder for Series {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, _: Event, state: Option<&SenderState>) {
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
    }
}

impl Observer for Series {}

/// All events, as `ackclock run --csv` writes them.
pub(crate) struct Events {
    moments: Moments,
    event: StringDictionaryBuilder<Int32Type>,
    detail: StringBuilder,
    cwnd: UInt64Builder,
    flight: UInt64Builder,
}

impl Events {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            moments: Moments::new(scenario),
            event: StringDictionaryBuilder::new(),
            detail: StringBuilder::new(),
            cwnd: UInt64Builder::new(),
            flight: UInt64Builder::new(),
        }
    }

    /// # Errors
    /// None that a run can bring about.
    pub(crate) fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns = self.moments.finish();
        columns.extend([
            Column::new("event", "what happened", Arc::new(self.event.finish())),
            Column::new("detail", "what else it says: key=value", Arc::new(self.detail.finish())),
            Column::new(
                "cwnd_bytes",
                "congestion window after it; null where the event is not one of a sender",
                Arc::new(self.cwnd.finish()),
            ),
            Column::new("flight_bytes", "bytes under way after it", Arc::new(self.flight.finish())),
        ]);
        batch(columns)
    }
}

impl Recorder for Events {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.moments.push(at, who);
        self.event.append_value(name(&event));
        self.detail.append_value(detail(&event));
        self.cwnd.append_option(state.map(|state| state.cwnd.get()));
        self.flight.append_option(state.map(|state| state.in_flight.get()));
    }
}

impl Observer for Events {}

#[allow(clippy::cast_precision_loss)]
fn multiple(bytes: Bytes, unit: Bytes) -> Option<f64> {
    (unit != Bytes::ZERO).then(|| bytes.get() as f64 / unit.get() as f64)
}
