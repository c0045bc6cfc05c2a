//! The scenario in all its variants, and the throughput at the server.

use std::collections::VecDeque;

use record::{Event, EventSource, PacketEvent, PacketNumber, Recorder, SenderState};
use units::{Duration, HostId, Instant};

use super::SCENARIO;
use crate::cases::{CaseError, Workers, load, run};

/// QUIC bytes of a packet.
pub(super) const PACKET: u64 = 1_252;
/// Start of the application.
const START: Duration = Duration::from_secs(2);
/// Minimum time excluded from the measurement.
const WARM_UP: Duration = Duration::from_secs(1);

/// Which packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// This number of packets pass, then one is lost.
    Periodic(u32),
    /// Each with the probability 1 / n.
    Random(u32),
}

/// A variant of the experiment.
#[derive(Debug, Clone)]
pub(super) struct MathisVariant {
    /// Ack-eliciting packets per acknowledgment.
    pub(super) every: u32,
    pub(super) loss: Loss,
    pub(super) rtt: Duration,
    /// Link rate; `None` for an infinite one.
    pub(super) rate: Option<&'static str>,
    /// One in this number of ACKs is lost.
    pub(super) ack_loss: Option<u32>,
    /// Other overrides.
    pub(super) set: Vec<String>,
    /// Time excluded at the start: slow start.
    warm_up: Duration,
    /// Duration of the measurement.
    pub(super) span: Duration,
    pub(super) seed: u64,
}

impl MathisVariant {
    /// The experiment of the document, acknowledging every n-th packet.
    pub(super) fn new(every: u32, loss: Loss) -> Self {
        Self {
            every,
            loss,
            rtt: Duration::from_millis(2),
            rate: Some("100Gbit/s"),
            ack_loss: None,
            set: Vec::new(),
            warm_up: WARM_UP,
            span: Duration::from_secs(9),
            seed: 1,
        }
    }

    pub(super) fn rtt(self, rtt: Duration) -> Self {
        Self { rtt, ..self }
    }

    pub(super) fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Measures `count` RTTs.
    pub(super) fn round_trips(self, count: u64) -> Self {
        let span = Duration::from_nanos(self.rtt.as_nanos() * count);
        Self { span, ..self }
    }

    /// Measures `count` RTTs, after at least 200 RTTs.
    pub(super) fn settled(self, count: u64) -> Self {
        let warm_up = WARM_UP.max(Duration::from_nanos(self.rtt.as_nanos() * 200));
        Self { warm_up, ..self }.round_trips(count)
    }

    fn overrides(&self) -> Vec<String> {
        let loss = |loss| match loss {
            Loss::Periodic(pass) => format!("{{ loss = {{ pass = {pass} }} }}, "),
            Loss::Random(n) => {
                // A probability in whole millionths of a percent.
                format!("{{ loss = \"{}%\" }}, ", decimal(100_000_000 / u64::from(n)))
            }
        };
        let link = self.rate.map_or(String::new(), |rate| {
            format!("{{ link = {{ rate = \"{rate}\", buffer = \"20000p\" }} }}, ")
        });
        let delay = format!("{{ delay = \"{}ns\" }}", self.rtt.as_nanos() / 2);
        let acks = self.ack_loss.map_or(String::new(), |n| loss(Loss::Random(n)));
        let end = START + self.warm_up + self.span;
        let mut set = vec![
            format!("path.0.forward=[{}{link}{delay}]", loss(self.loss)),
            format!("path.0.return=[{acks}{link}{delay}]"),
            format!("host.server.knobs.numReceivedAckElicitingsBeforeAck={}", self.every),
            format!("duration={}ns", end.as_nanos()),
            format!("seed={}", self.seed),
        ];
        set.extend(self.set.iter().cloned());
        set
    }

    /// Runs the variant, with another observer `W`.
    pub(super) fn run_with<W: Recorder + Default>(
        &self,
        workers: &Workers<'_>,
    ) -> Result<(Meter, W), CaseError> {
        let set = self.overrides();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let loaded = load(SCENARIO, "mathis.toml", &set)?;
        let since = Instant::ZERO + START + self.warm_up;
        let mut both = MeteredRecorder { meter: Meter::new(since), watch: W::default() };
        run(&loaded, &mut both, workers)?;
        Ok((both.meter, both.watch))
    }

    /// Mbit/s of each run with the seeds 1 to `count`.
    pub(super) fn mbps_of_seeds(
        &self,
        count: u64,
        workers: &Workers<'_>,
    ) -> Result<Vec<f64>, CaseError> {
        let seeds: Vec<u64> = (1..=count).collect();
        workers.map(&seeds, |seed| self.clone().seed(*seed).mbps(workers))
    }

    /// Mbit/s of QUIC packets at the server.
    pub(super) fn mbps(&self, workers: &Workers<'_>) -> Result<f64, CaseError> {
        Ok(self.run_with::<record::NullRecorder>(workers)?.0.mbps())
    }
}

/// Millionths as a decimal number.
fn decimal(millionths: u64) -> String {
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}

struct MeteredRecorder<W> {
    meter: Meter,
    watch: W,
}

impl<W: Recorder> Recorder for MeteredRecorder<W> {
    const ON: bool = W::ON;
    const PACKETS: bool = true;

    fn record(
        &mut self,
        at: Instant,
        source: EventSource,
        event: Event,
        state: Option<&SenderState>,
    ) {
        // Only the client sends data.
        if source.host == HostId(0) {
            self.watch.record(at, source, event, state);
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.meter.moved(at, movement);
    }
}

impl<W: Recorder> sim::Observer for MeteredRecorder<W> {}

/// Counts the packets that arrive at the server.
#[derive(Debug)]
pub(super) struct Meter {
    since: Instant,
    /// Packets of the client in flight: they arrive in order.
    in_flight: VecDeque<(PacketNumber, u32)>,
    first: Option<Instant>,
    last: Instant,
    bytes: u64,
}

impl Meter {
    const fn new(since: Instant) -> Self {
        Self { since, in_flight: VecDeque::new(), first: None, last: since, bytes: 0 }
    }

    fn moved(&mut self, at: Instant, movement: PacketEvent) {
        match movement {
            PacketEvent::Sent { host: HostId(0), packet, size, .. } => {
                // UDP and IPv4 headers are excluded.
                self.in_flight.push_back((packet, size - 28));
            }
            PacketEvent::Received { host: HostId(1), packet, .. } => {
                while let Some((number, size)) = self.in_flight.pop_front() {
                    if number == packet {
                        self.arrived(at, size);
                        break;
                    }
                }
            }
            _ => {}
        }
    }

    fn arrived(&mut self, at: Instant, size: u32) {
        if at < self.since {
            return;
        }
        // All packets but the first, over the time from the first to the last.
        if self.first.is_none() {
            self.first = Some(at);
        } else {
            self.bytes += u64::from(size);
        }
        self.last = at;
    }

    pub(super) fn mbps(&self) -> f64 {
        let Some(first) = self.first else { return 0.0 };
        let seconds = self.last.since(first).as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 }
    }
}

/// Mean and standard deviation of a sample.
pub(super) fn spread(sample: &[f64]) -> (f64, f64) {
    let n = sample.len().max(1) as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let squares: f64 = sample.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}
