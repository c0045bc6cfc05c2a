//! The qlog of a run's sender.
//!
//! TCP in QUIC's words, so that tools for qlog draw it: each segment or burst that leaves the stack
//! is a packet with a number of its own, payload is stream 0, and an ACK acknowledges the packets
//! whose bytes it covers, of bytes sent twice the later packet. What is sent again was lost before,
//! unless it is a probe. A cumulative acknowledgment of half a burst acknowledges no packet yet.

use std::collections::BTreeMap;
use std::io::{self, Write};

use packet::{Dir, Flags, Segment};
use record::{Cause, Event as Told, Recorder, SenderState, SentKind, Who};
use serde_json::{Map, json};
use sim::Observer;
use sim::scenario::Scenario;
use trace::qlog::{
    Data, Event, Form, Frame, Metrics, Packet, PacketHeader, RecoveryParameters, Trace, Vantage,
    Writer,
};
use units::{Duration, Instant, Offset, SeqNum};

use crate::capture::EPOCH;
use crate::kernel_log::Side;

/// Writes the log of one end of a connection.
#[derive(Debug)]
pub struct Qlog<W> {
    side: Side,
    writer: Writer<W>,
    /// First byte of each packet in flight: where it ends, and its number.
    flying: BTreeMap<u64, (u64, u64)>,
    next: u64,
    received: u64,
    largest_acked: Option<u64>,
    isn: SeqNum,
    snd_una: Offset,
    /// Shift of the peer's windows, once both ends have offered one.
    scales: [Option<u8>; 2],
    max_data: u64,
    /// What the stack said of the segments it is about to send: first byte and why.
    announced: Vec<(u64, SentKind)>,
    state: &'static str,
    metrics: Metrics,
    min_rtt: Option<Duration>,
    begun: bool,
    /// A tick of the host in milliseconds, at least one.
    granularity: u64,
    failed: Option<io::Error>,
}

impl<W: Write> Qlog<W> {
    /// Writes what the end `side` of a connection would log to `out`; `sha256` is that of the
    /// scenario.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(
        scenario: &Scenario,
        side: Side,
        sha256: &str,
        form: Form,
        out: W,
    ) -> io::Result<Self> {
        let host = &scenario.hosts[usize::from(side.host.0)];
        let flow = &scenario.flows[side.flow.0 as usize];
        let cc = host.cc.name();
        let trace = Trace {
            title: scenario.title.clone(),
            description: format!(
                "TCP of {} with {} in QUIC's words: a packet is a segment or burst of the stack, \
                 stream 0 is the payload",
                host.profile.name, cc,
            ),
            vantage: if side.out == Dir::Forward { Vantage::Client } else { Vantage::Server },
            vantage_name: host.name.clone(),
            group_id: flow.name.clone(),
            protocols: vec!["QUIC".to_owned(), "TCP".to_owned()],
            epoch: Some(EPOCH),
        };
        let details = [
            ("seed", json!(scenario.seed)),
            ("sha256", json!(sha256)),
            ("profile", json!(host.profile.name)),
            ("cc", json!(cc)),
            ("ackclock", json!(env!("CARGO_PKG_VERSION"))),
        ];
        let details: Map<_, _> =
            details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut writer = Writer::new(out, &trace, form)?;
        let name = scenario.title.clone();
        writer.event(&Event::new(Duration::ZERO, Data::Scenario { name, details }))?;
        Ok(Self {
            side,
            writer,
            flying: BTreeMap::new(),
            next: 0,
            received: 0,
            largest_acked: None,
            isn: SeqNum(0),
            snd_una: Offset(0),
            scales: [None; 2],
            max_data: 0,
            announced: Vec::new(),
            state: "",
            metrics: Metrics::default(),
            min_rtt: None,
            begun: false,
            granularity: (1_000 / u64::from(host.profile.hz).max(1)).max(1),
            failed: None,
        })
    }

    /// Closes the log, flushes and gives the output back.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish(self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }

    fn tell(&mut self, at: Instant, data: Data) {
        if self.failed.is_none() {
            let event = Event::new(Duration::from_nanos(at.as_nanos()), data);
            self.failed = self.writer.event(&event).err();
        }
    }

    /// A segment on its way out.
    fn sent(&mut self, at: Instant, segment: &Segment) {
        let number = self.next;
        self.next += 1;
        if segment.flags.has(Flags::SYN) {
            self.isn = SeqNum(segment.seq.0.wrapping_add(1));
            self.scales[0] = segment.syn_options().and_then(|syn| syn.window_scale);
        }
        let mut packet = packet(number, segment);
        if segment.payload > 0 {
            let first = segment.seq.near(self.isn, self.snd_una).unwrap_or_default().0;
            let end = first + u64::from(segment.payload);
            let kind = self.announced.iter().position(|(begin, _)| (first..end).contains(begin));
            let kind = kind.map(|index| self.announced.remove(index).1);
            packet.trigger = self.lost(at, first, end, kind).map(str::to_owned);
            self.flying.insert(first, (end, number));
            packet.frames.push(Frame::Stream {
                stream_id: 0,
                offset: first,
                length: segment.payload.into(),
                fin: segment.flags.has(Flags::FIN),
            });
        }
        self.announced.clear();
        self.tell(at, Data::PacketSent(packet));
    }

    /// What was in flight of these bytes was lost, unless they go as a probe; tells why they go.
    fn lost(
        &mut self,
        at: Instant,
        first: u64,
        end: u64,
        kind: Option<SentKind>,
    ) -> Option<&'static str> {
        let (lost, sent) = match kind {
            Some(SentKind::Probe) => (None, Some("pto_probe")),
            Some(SentKind::Again(Cause::LossProbe | Cause::WindowProbe)) => {
                (None, Some("pto_probe"))
            }
            Some(SentKind::Again(Cause::Timeout)) => {
                (Some("pto_expired"), Some("retransmit_timeout"))
            }
            _ => (Some("reordering_threshold"), Some("retransmit_reordered")),
        };
        let begin = self.flying.range(..=first).next_back().map_or(first, |(begin, _)| *begin);
        let over: Vec<(u64, u64, u64)> = self
            .flying
            .range(begin..end)
            .filter(|(_, (until, _))| *until > first)
            .map(|(begin, (until, number))| (*begin, *until, *number))
            .collect();
        for (begin, until, number) in &over {
            self.flying.remove(begin);
            // What is left of it flies on under its number.
            if *begin < first {
                self.flying.insert(*begin, (first, *number));
            }
            if *until > end {
                self.flying.insert(end, (*until, *number));
            }
            if let Some(trigger) = lost {
                let trigger = Some(trigger.to_owned());
                self.tell(at, Data::PacketLost { header: header(*number), trigger });
            }
        }
        if over.is_empty() { None } else { sent }
    }

    /// A segment that came in.
    fn arrived(&mut self, at: Instant, segment: &Segment) {
        let mut packet = packet(self.received, segment);
        self.received += 1;
        if segment.flags.has(Flags::SYN) {
            self.scales[1] = segment.syn_options().and_then(|syn| syn.window_scale);
        }
        if segment.flags.has(Flags::ACK) {
            let una = segment.ack.near(self.isn, self.snd_una).unwrap_or_default();
            self.snd_una = self.snd_una.max(una);
            let mut numbers = self.take(0, una.0);
            for block in segment.sack_blocks() {
                let edge = |seq: SeqNum| seq.near(self.isn, self.snd_una).unwrap_or_default().0;
                let (from, to) = (edge(block.left), edge(block.right));
                numbers.extend(self.take(from, to));
            }
            numbers.sort_unstable();
            self.largest_acked = self.largest_acked.max(numbers.last().copied());
            let ranges = match (ranges(&numbers), self.largest_acked) {
                // A duplicate: the largest again.
                (none, Some(largest)) if none.is_empty() => vec![(largest, largest)],
                (ranges, _) => ranges,
            };
            if !ranges.is_empty() {
                packet.frames.push(Frame::Ack { ranges, delay: None });
            }
            let maximum = una.0 + self.window(segment);
            if maximum > self.max_data {
                self.max_data = maximum;
                packet.frames.push(Frame::MaxData { maximum });
            }
        }
        self.tell(at, Data::PacketReceived(packet));
    }

    /// Bytes that the peer offers to take (RFC 7323, Section 2.2).
    fn window(&self, segment: &Segment) -> u64 {
        let scale = match self.scales {
            [Some(_), Some(scale)] if !segment.flags.has(Flags::SYN) => scale,
            _ => 0,
        };
        u64::from(segment.window) << scale
    }

    /// Takes the packets that lie within these bytes out of flight.
    fn take(&mut self, from: u64, to: u64) -> Vec<u64> {
        let within: Vec<u64> = self
            .flying
            .range(from..to)
            .filter(|(_, (end, _))| *end <= to)
            .map(|(begin, _)| *begin)
            .collect();
        within.iter().filter_map(|begin| self.flying.remove(begin)).map(|(_, n)| n).collect()
    }

    /// What changed in the sender's state.
    fn update(&mut self, at: Instant, sender: &SenderState, event: Told) {
        if !self.begun {
            self.begun = true;
            self.tell(
                at,
                Data::RecoveryParametersSet(RecoveryParameters {
                    timer_granularity: Some(self.granularity),
                    max_datagram_size: Some(sender.mss.get()),
                    initial_congestion_window: Some(sender.cwnd.get()),
                    ..RecoveryParameters::default()
                }),
            );
        }
        let latest = match event {
            Told::RttSample { rtt } => Some(rtt),
            _ => self.metrics.latest_rtt,
        };
        self.min_rtt = match (self.min_rtt, latest) {
            (Some(least), Some(latest)) => Some(least.min(latest)),
            (least, latest) => least.or(latest),
        };
        let now = Metrics {
            min_rtt: self.min_rtt,
            smoothed_rtt: sender.srtt,
            latest_rtt: latest,
            congestion_window: Some(sender.cwnd.get()),
            bytes_in_flight: Some(sender.flight().get()),
            ssthresh: sender.ssthresh.map(units::Bytes::get),
            ..Metrics::default()
        };
        let changed = changes(&self.metrics, &now);
        if changed != Metrics::default() {
            self.metrics = now;
            self.tell(at, Data::MetricsUpdated(changed));
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

fn header(number: u64) -> PacketHeader {
    PacketHeader { packet_type: "1RTT".to_owned(), packet_number: Some(number) }
}

/// A segment as a packet, its payload left out.
fn packet(number: u64, segment: &Segment) -> Packet {
    let length = Some(segment.wire_len().get());
    Packet { header: header(number), length, ..Packet::default() }
}

/// Sorted numbers as ranges.
fn ranges(numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, to)) if number <= *to + 1 => *to = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
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
        Cause::Ecn => Some("ecn"),
        Cause::Idle => Some("idle"),
        _ => None,
    }
}

impl<W: Write> Recorder for Qlog<W> {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Told, state: Option<&SenderState>) {
        if (who.host, who.flow) != (self.side.host, self.side.flow) {
            return;
        }
        if let Told::Sent { at, kind, .. } = event {
            self.announced.push((at.0, kind));
        }
        if let Some(sender) = state {
            self.update(at, sender, event);
        }
    }
}

impl<W: Write> Observer for Qlog<W> {
    fn tap(&mut self, at: Instant, tap: usize, _: bool, segment: &Segment) {
        if tap != self.side.tap || segment.flow != self.side.flow {
            return;
        }
        if segment.dir == self.side.out {
            self.sent(at, segment);
        } else {
            self.arrived(at, segment);
        }
    }
}
