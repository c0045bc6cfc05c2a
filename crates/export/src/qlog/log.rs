//! A log being written: its events, and what changed in the state of the sender.

use std::io::{self, Write};

use logs::qlog::{Data, Event, Form, Metrics, RecoveryParameters, Trace, Writer};
use record::{Cause, Event as Told, SenderState};
use serde_json::{Map, Value};
use units::{Bytes, Duration, Instant, Rate};

/// Writes events; after an error of the output nothing more.
#[derive(Debug)]
pub(super) struct Log<W> {
    writer: Writer<W>,
    failed: Option<io::Error>,
    /// What is fixed, told with the first state.
    fixed: Option<(RecoveryParameters, Map<String, Value>)>,
    state: &'static str,
    metrics: Metrics,
    /// `partialBytesAcked` of controllers that count.
    partial: u64,
    latest_rtt: Option<Duration>,
    min_rtt: Option<Duration>,
}

impl<W: Write> Log<W> {
    pub(super) fn new(
        out: W,
        trace: &Trace,
        form: Form,
        name: &str,
        details: Map<String, Value>,
    ) -> io::Result<Self> {
        let mut writer = Writer::new(out, trace, form)?;
        let name = name.to_owned();
        writer.event(&Event::new(Duration::ZERO, Data::Scenario { name, details }))?;
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

    /// Says what is fixed of the sender, and by which names the model does not have.
    pub(super) fn announce(&mut self, fixed: RecoveryParameters, more: Map<String, Value>) {
        self.fixed = Some((fixed, more));
    }

    pub(super) fn finish(self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }

    pub(super) fn tell(&mut self, at: Instant, data: Data) {
        self.tell_more(at, data, Map::new());
    }

    fn tell_more(&mut self, at: Instant, data: Data, more: Map<String, Value>) {
        if self.failed.is_none() {
            let event = Event::new(Duration::from_nanos(at.as_nanos()), data);
            self.failed = self.writer.event(&Event { more, ..event }).err();
        }
    }

    /// A round trip was measured.
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        self.latest_rtt = Some(rtt);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// Tells what changed in the sender's state.
    pub(super) fn update(&mut self, at: Instant, sender: &SenderState, flight: Bytes, event: Told) {
        if let Some((fixed, more)) = self.fixed.take() {
            let fixed = RecoveryParameters {
                max_datagram_size: Some(sender.mss.get()),
                initial_congestion_window: Some(sender.cwnd.get()),
                ..fixed
            };
            self.tell_more(at, Data::RecoveryParametersSet(fixed), more);
        }
        if let Told::RttSample { rtt } = event {
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
            // The drafts leave room for what else a controller counts.
            let counted = (partial != self.partial).then_some(("partial_bytes_acked", partial));
            let more = counted.map(|(name, bytes)| (name.to_owned(), bytes.into()));
            (self.metrics, self.partial) = (now, partial);
            self.tell_more(at, Data::MetricsUpdated(changed), more.into_iter().collect());
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
                Told::Window { cause, .. } => trigger(cause).map(str::to_owned),
                _ => None,
            };
            self.tell(at, Data::CongestionStateUpdated { old, new: state.to_owned(), trigger });
        }
    }
}

/// What is different in `now`.
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
