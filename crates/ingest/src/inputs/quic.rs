//! What a qlog tells of a QUIC connection, from the end that logs it.
//!
//! Packets of QUIC are not those of TCP, so they go into no [`diagnose::Connection`]: this is what
//! the log itself says of round trips, windows, losses and time. A log need not have all events;
//! what it lacks is told ([`Quic::untold`]), and what rests on it is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};

use logs::qlog::{Data, Event, Frame, Item, Metrics, Packet, Reader, Vantage};
use units::Duration;

use super::{File, Reason};

/// Lost packets that are remembered, to see whether they arrive after all.
const MOST_LOST: usize = 1 << 20;
/// Bytes of a packet where the log does not tell: the least that QUIC may send at first (RFC 9000
/// section 14.1).
const LEAST_DATAGRAM: u64 = 1_200;

/// What the time between two events went into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Keys were not agreed yet.
    Handshake,
    /// A recovery from losses ran.
    Recovery,
    /// The congestion window was full, and no loss had been seen.
    SlowStart,
    /// The congestion window was full.
    Window,
    /// The peer's flow control let no more pass.
    FlowControl,
    /// There was room, and nothing was sent: the application had nothing, or the sender paced.
    Application,
    /// The log had not told the window or the flight yet.
    Untold,
}

/// A QUIC connection, as its log has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Quic {
    /// Index of its file in [`Reading::files`](super::Reading::files).
    pub file: usize,
    /// Title of the trace; empty if it has none.
    pub title: String,
    /// Connection id it belongs to; empty if it is not told.
    pub group: String,
    /// Whose log it is.
    pub vantage: Vantage,
    /// Time of its first event, since the beginning that the log declares.
    pub first: Duration,
    /// Time of its last event.
    pub last: Duration,
    /// Events.
    pub events: u64,
    /// Packets sent.
    pub sent: u64,
    /// Their bytes, as far as the log tells.
    pub sent_bytes: u64,
    /// Bytes of streams sent for the first time.
    pub stream_bytes: u64,
    /// Packets received.
    pub received: u64,
    /// ACK frames received.
    pub acks: u64,
    /// Packets given up, by reason as the log has it; `""` without one.
    pub lost: BTreeMap<String, u64>,
    /// Of these, such as were acknowledged later: they had not been lost.
    pub spurious: u64,
    /// Probe timeouts: the highest count in a row.
    pub timeouts: u64,
    /// Least, last smoothed and largest latest round trip.
    pub round_trips: Option<[Duration; 3]>,
    /// First, largest and last congestion window, in bytes.
    pub windows: Option<[u64; 3]>,
    /// Lowest slow-start threshold, in bytes.
    pub ssthresh: Option<u64>,
    /// Most bytes in flight.
    pub most_in_flight: Option<u64>,
    /// What the time went into; empty without windows and bytes in flight.
    pub budget: BTreeMap<Limit, Duration>,
    /// What the log does not tell, so that nothing is said of it.
    pub untold: Vec<&'static str>,
}

/// The traces of a file.
pub(super) fn read(input: impl Read, number: usize, file: &mut File) -> Result<Vec<Quic>, Reason> {
    let mut traces: Vec<Follow> = Vec::new();
    for item in Reader::new(BufReader::new(input)) {
        match item {
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                file.problems.tell(&error);
                break;
            }
            Err(error) => return Err(Reason::Read(error)),
            Ok(Item::Problem(problem)) => file.problems.tell(&problem),
            Ok(Item::Header(info)) => {
                let mut follow = Follow::new(number);
                follow.quic.title = info.trace.title.clone();
                follow.quic.group = info.trace.group_id.clone();
                follow.quic.vantage = info.trace.vantage;
                file.begins = file.begins.or(info.trace.epoch);
                traces.push(follow);
            }
            Ok(Item::Event(event)) => {
                file.frames += 1;
                if traces.is_empty() {
                    traces.push(Follow::new(number));
                }
                if let Some(follow) = traces.last_mut() {
                    follow.event(&event);
                }
            }
        }
    }
    let read: Vec<Quic> =
        traces.into_iter().map(Follow::finish).filter(|quic| quic.events > 0).collect();
    if read.is_empty() {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    Ok(read)
}

/// A trace while its events come in.
struct Follow {
    quic: Quic,
    /// Metrics as last told.
    window: Option<u64>,
    in_flight: Option<u64>,
    state: Option<String>,
    datagram: u64,
    agreed: bool,
    lossless: bool,
    /// What the peer lets pass on the connection, and what has been sent of streams.
    allowed: Option<u64>,
    /// Behind the highest byte sent of each stream.
    streams: BTreeMap<u64, u64>,
    /// Lost packets by space (packet type) and number.
    lost: BTreeSet<(String, u64)>,
}

impl Follow {
    fn new(file: usize) -> Self {
        Self {
            quic: Quic {
                file,
                title: String::new(),
                group: String::new(),
                vantage: Vantage::Unknown,
                first: Duration::ZERO,
                last: Duration::ZERO,
                events: 0,
                sent: 0,
                sent_bytes: 0,
                stream_bytes: 0,
                received: 0,
                acks: 0,
                lost: BTreeMap::new(),
                spurious: 0,
                timeouts: 0,
                round_trips: None,
                windows: None,
                ssthresh: None,
                most_in_flight: None,
                budget: BTreeMap::new(),
                untold: Vec::new(),
            },
            window: None,
            in_flight: None,
            state: None,
            datagram: LEAST_DATAGRAM,
            agreed: false,
            lossless: true,
            allowed: None,
            streams: BTreeMap::new(),
            lost: BTreeSet::new(),
        }
    }

    fn event(&mut self, event: &Event) {
        if self.quic.events == 0 {
            (self.quic.first, self.quic.last) = (event.at, event.at);
        }
        self.quic.events += 1;
        // Events may be a little out of order; no time is counted twice.
        let passed = event.at.saturating_sub(self.quic.last);
        let spent = self.quic.budget.entry(self.limit()).or_insert(Duration::ZERO);
        *spent += passed;
        self.quic.last = self.quic.last.max(event.at);
        match &event.data {
            Data::PacketSent(packet) => self.sent(packet),
            Data::PacketReceived(packet) => self.received(packet),
            Data::PacketLost { header, trigger } => {
                let trigger = trigger.clone().unwrap_or_default();
                *self.quic.lost.entry(trigger).or_default() += 1;
                self.lossless = false;
                if let Some(number) = header.packet_number
                    && self.lost.len() < MOST_LOST
                {
                    self.lost.insert((header.packet_type.clone(), number));
                }
            }
            Data::MetricsUpdated(metrics) => self.metrics(metrics),
            Data::CongestionStateUpdated { new, .. } => self.state = Some(new.clone()),
            Data::RecoveryParametersSet(parameters) => {
                self.datagram = parameters.max_datagram_size.unwrap_or(self.datagram).max(1);
            }
            Data::ParametersSet(parameters) if parameters.owner.as_deref() == Some("remote") => {
                self.allowed = parameters.initial_max_data.or(self.allowed);
            }
            _ => {}
        }
    }

    /// What holds the sender back until the next event.
    fn limit(&self) -> Limit {
        if !self.agreed {
            return Limit::Handshake;
        }
        let (Some(window), Some(in_flight)) = (self.window, self.in_flight) else {
            return Limit::Untold;
        };
        let sent = self.streams.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        if self.state.as_deref() == Some("recovery") {
            Limit::Recovery
        } else if in_flight.saturating_add(self.datagram) > window {
            if self.lossless { Limit::SlowStart } else { Limit::Window }
        } else if self.allowed.is_some_and(|allowed| sent >= allowed) {
            Limit::FlowControl
        } else {
            Limit::Application
        }
    }

    fn sent(&mut self, packet: &Packet) {
        self.quic.sent += 1;
        let length = packet.length.unwrap_or(0);
        self.quic.sent_bytes = self.quic.sent_bytes.saturating_add(length);
        self.agreed |= packet.header.packet_type == "1RTT";
        for frame in &packet.frames {
            if let Frame::Stream { stream_id, offset, length, .. } = frame {
                let highest = self.streams.entry(*stream_id).or_default();
                let end = offset.saturating_add(*length);
                let new = end.saturating_sub(*highest);
                self.quic.stream_bytes = self.quic.stream_bytes.saturating_add(new);
                *highest = end.max(*highest);
            }
        }
    }

    fn received(&mut self, packet: &Packet) {
        self.quic.received += 1;
        for frame in &packet.frames {
            match frame {
                Frame::Ack { ranges, .. } => {
                    self.quic.acks += 1;
                    for &(from, to) in ranges {
                        self.acknowledged(&packet.header.packet_type, from, to);
                    }
                }
                Frame::MaxData { maximum } => {
                    self.allowed = Some(self.allowed.map_or(*maximum, |old| old.max(*maximum)));
                }
                _ => {}
            }
        }
    }

    fn acknowledged(&mut self, space: &str, from: u64, to: u64) {
        if self.lost.is_empty() || from > to {
            return;
        }
        let range = (space.to_owned(), from)..=(space.to_owned(), to);
        let back: Vec<_> = self.lost.range(range).cloned().collect();
        for packet in back {
            self.quic.spurious += 1;
            self.lost.remove(&packet);
        }
    }

    fn metrics(&mut self, metrics: &Metrics) {
        let quic = &mut self.quic;
        quic.timeouts = quic.timeouts.max(metrics.pto_count.unwrap_or(0));
        let least = metrics.min_rtt.or(metrics.latest_rtt);
        let latest = metrics.latest_rtt.or(metrics.smoothed_rtt);
        if let Some(latest) = latest.or(least) {
            let smoothed = metrics.smoothed_rtt.unwrap_or(latest);
            let trips = quic.round_trips.get_or_insert([latest, smoothed, latest]);
            trips[0] = trips[0].min(least.unwrap_or(latest));
            trips[1] = metrics.smoothed_rtt.unwrap_or(trips[1]);
            trips[2] = trips[2].max(latest);
        }
        if let Some(window) = metrics.congestion_window {
            let windows = quic.windows.get_or_insert([window; 3]);
            (windows[1], windows[2]) = (windows[1].max(window), window);
            self.window = Some(window);
        }
        // Logs write all ones for a threshold that is not set.
        if let Some(ssthresh) = metrics.ssthresh.filter(|&bytes| bytes < u64::from(u32::MAX)) {
            quic.ssthresh = Some(quic.ssthresh.map_or(ssthresh, |old| old.min(ssthresh)));
        }
        if let Some(in_flight) = metrics.bytes_in_flight {
            quic.most_in_flight = quic.most_in_flight.max(Some(in_flight));
            self.in_flight = Some(in_flight);
        }
    }

    fn finish(self) -> Quic {
        let mut quic = self.quic;
        let lacks = [
            (quic.sent == 0, "packets sent"),
            (quic.sent > 0 && quic.sent_bytes == 0, "the length of packets"),
            (quic.sent > 0 && self.streams.is_empty(), "what packets carry"),
            (quic.acks == 0, "acknowledgments: losses that were none"),
            (quic.round_trips.is_none(), "round trips"),
            (quic.windows.is_none(), "the congestion window"),
            (quic.most_in_flight.is_none(), "bytes in flight"),
            (self.allowed.is_none(), "the peer's flow control"),
            (self.state.is_none(), "congestion states"),
        ];
        quic.budget.retain(|_, time| !time.is_zero());
        quic.untold = lacks.iter().filter(|(lacks, _)| *lacks).map(|(_, what)| *what).collect();
        if quic.windows.is_none() || quic.most_in_flight.is_none() {
            quic.budget.clear();
        }
        quic
    }
}
