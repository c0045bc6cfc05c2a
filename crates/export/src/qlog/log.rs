//! The log writer: events, and changes of the sender's state.

use std::io::{self, Write};

use logs::qlog::{Metrics, QlogData, QlogEvent, QlogFormat, QlogWriter, RecoveryParameters, Trace};
use record::{Cause, Event as RunEvent, SenderState};
use serde_json::{Map, Value};
use units::{Bytes, Duration, Instant, Rate};

/// Writes events; nothing after an error of the output.
#[derive(Debug)]
pub(super) struct QlogLog<W> {
    writer: QlogWriter<W>,
    failed: Option<io::Error>,
    /// Constant parameters, written with the first state.
    fixed: Option<(RecoveryParameters, Map<String, Value>)>,
    state: &'static str,
    metrics: Metrics,
    /// `partialBytesAcked` of controllers that have it.
    partial: u64,
    latest_rtt: Option<Duration>,
    min_rtt: Option<Duration>,
}

impl<W: Write> QlogLog<W> {
    pub(super) fn new(
        out: W,
        trace: &Trace,
        form: QlogFormat,
        name: &str,
        details: Map<String, Value>,
    ) -> io::Result<Self> {
        let mut writer = QlogWriter::new(out, trace, form)?;
        let name = name.to_owned();
        writer.event(&QlogEvent::new(Duration::ZERO, QlogData::Scenario { name, details }))?;
        Ok(Self {
            writer,
            failed: None,
            fixed: None,
            state: "",
            metrics: Metrics::default(),
            partial: 0,
            latest_rtt: None,
            min_rtt: None,
        })
    }

    /// Sets the constant parameters of the sender, and further ones that the drafts do not name.
    pub(super) fn announce(&mut self, fixed: RecoveryParameters, more: Map<String, Value>) {
        self.fixed = Some((fixed, more));
    }

    pub(super) fn finish(self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }

    pub(super) fn write_event(&mut self, at: Instant, data: QlogData) {
        self.write_event_with(at, data, Map::new());
    }

    fn write_event_with(&mut self, at: Instant, data: QlogData, more: Map<String, Value>) {
        if self.failed.is_none() {
            let event = QlogEvent::new(Duration::from_nanos(at.as_nanos()), data);
            self.failed = self.writer.event(&QlogEvent { more, ..event }).err();
        }
    }

    /// Records a round-trip sample.
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        self.latest_rtt = Some(rtt);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// Writes the changes of the sender's state.
    pub(super) fn update(
        &mut self,
        at: Instant,
        sender: &SenderState,
        flight: Bytes,
        event: RunEvent,
    ) {
        if let Some((fixed, more)) = self.fixed.take() {
            let fixed = RecoveryParameters {
                max_datagram_size: Some(sender.mss.get()),
                initial_congestion_window: Some(sender.cwnd.get()),
                ..fixed
            };
            self.write_event_with(at, QlogData::RecoveryParametersSet(fixed), more);
        }
        if let RunEvent::RttSample { rtt } = event {
            self.on_sample(rtt);
        }
        let now = Metrics {
            min_rtt: self.min_rtt,
            smoothed_rtt: sender.srtt,
            latest_rtt: self.latest_rtt,
            congestion_window: Some(sender.cwnd.get()),
            bytes_in_flight: Some(flight.get()),
            ssthresh: sender.ssthresh.map(Bytes::get),
            pacing_rate: sender.pacing.map(Rate::bits_per_second),
            ..Metrics::default()
        };
        let partial = sender.partial_acked.get();
        let changed = changes(&self.metrics, &now);
        if changed != Metrics::default() || partial != self.partial {
            // The drafts allow additional counters of a controller.
            let counted = (partial != self.partial).then_some(("partial_bytes_acked", partial));
            let more = counted.map(|(name, bytes)| (name.to_owned(), bytes.into()));
            (self.metrics, self.partial) = (now, partial);
            self.write_event_with(
                at,
                QlogData::MetricsUpdated(changed),
                more.into_iter().collect(),
            );
        }
        let state = match sender.ssthresh {
            _ if sender.in_recovery => "recovery",
            Some(ssthresh) if sender.cwnd >= ssthresh => "congestion_avoidance",
            _ => "slow_start",
        };
        if state != self.state {
            let old = (!self.state.is_empty()).then(|| self.state.to_owned());
            self.state = state;
            let trigger = match event {
                RunEvent::Window { cause, .. } => trigger(cause).map(str::to_owned),
                _ => None,
            };
            self.write_event(
                at,
                QlogData::CongestionStateUpdated { old, new: state.to_owned(), trigger },
            );
        }
    }
}

/// The metrics that changed.
fn changes(before: &Metrics, now: &Metrics) -> Metrics {
    fn new<T: PartialEq>(before: &Option<T>, now: Option<T>) -> Option<T> {
        now.filter(|now| before.as_ref() != Some(now))
    }
    Metrics {
        min_rtt: new(&before.min_rtt, now.min_rtt),
        smoothed_rtt: new(&before.smoothed_rtt, now.smoothed_rtt),
        latest_rtt: new(&before.latest_rtt, now.latest_rtt),
        congestion_window: new(&before.congestion_window, now.congestion_window),
        bytes_in_flight: new(&before.bytes_in_flight, now.bytes_in_flight),
        ssthresh: new(&before.ssthresh, now.ssthresh),
        pacing_rate: new(&before.pacing_rate, now.pacing_rate),
        ..Metrics::default()
    }
}

const fn trigger(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::FastRetransmit => Some("packet_loss"),
        Cause::LostRetransmission => Some("lost_retransmission"),
        Cause::Timeout => Some("timeout"),
        Cause::Undone => Some("spurious_timeout"),
        Cause::Recovered => Some("recovered"),
        Cause::SlowStartExit => Some("hystart"),
        Cause::Ecn => Some("ECN"),
        Cause::Idle => Some("idle"),
        _ => None,
    }
}
