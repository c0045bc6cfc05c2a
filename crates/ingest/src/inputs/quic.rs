//! Analysis of a QUIC connection from the qlog of one host.
//!
//! QUIC packets do not fit [`diagnose::ConnectionAnalyzer`], so this module takes RTTs, windows,
//! losses and times from the log itself. A log need not have all events; [`QuicAnalysis::missing`]
//! lists what it lacks, and results that need it are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};

use logs::qlog::{
    Metrics, QlogData, QlogEvent, QlogFrame, QlogItem, QlogPacket, QlogReader, Vantage,
};
use units::Duration;

use super::{File, Reason};

/// Most lost packets remembered to detect spurious losses.
const MAX_LOST: usize = 1 << 20;
/// Size of a packet if the log lacks it: the least that QUIC may send at first (RFC 9000 section
/// 14.1).
const MIN_DATAGRAM: u64 = 1_200;

/// What limited the sender between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuicLimit {
    /// The handshake was not complete.
    Handshake,
    /// Loss recovery.
    Recovery,
    /// The congestion window was full, before the first loss.
    SlowStart,
    /// The congestion window was full.
    Window,
    /// The peer's flow control limit was reached.
    FlowControl,
    /// The window was open and nothing was sent: the application had no data, or the sender paced.
    Application,
    /// The log had no window or bytes in flight yet.
    NoMetrics,
}

/// The analysis of a QUIC connection from its log.
#[derive(Debug, Clone, PartialEq)]
pub struct QuicAnalysis {
    /// Index of its file in [`Reading::files`](super::Reading::files).
    pub file: usize,
    /// Title of the trace; empty if it has none.
    pub title: String,
    /// Connection ID of the trace; empty if it has none.
    pub group: String,
    /// Vantage point of the log.
    pub vantage: Vantage,
    /// Time of its first event, since the reference time of the log.
    pub first: Duration,
    /// Time of its last event.
    pub last: Duration,
    /// Events.
    pub events: u64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes of the packets sent, if the log has their lengths.
    pub sent_bytes: u64,
    /// Stream bytes sent for the first time.
    pub stream_bytes: u64,
    /// Packets received.
    pub received: u64,
    /// ACK frames received.
    pub acks: u64,
    /// Packets declared lost, by the trigger in the log; `""` without one.
    pub lost: BTreeMap<String, u64>,
    /// Spurious losses: packets declared lost and acknowledged later.
    pub spurious: u64,
    /// Most consecutive probe timeouts.
    pub timeouts: u64,
    /// Minimum RTT, last smoothed RTT and largest latest RTT.
    pub round_trips: Option<[Duration; 3]>,
    /// First, largest and last congestion window, in bytes.
    pub windows: Option<[u64; 3]>,
    /// Lowest slow-start threshold, in bytes.
    pub ssthresh: Option<u64>,
    /// Most bytes in flight.
    pub max_in_flight: Option<u64>,
    /// Time by limit; empty without windows and bytes in flight.
    pub budget: BTreeMap<QuicLimit, Duration>,
    /// Information that the log lacks.
    pub untold: Vec<&'static str>,
}

/// Reads the traces of a file.
pub(super) fn read(
    input: impl Read,
    number: usize,
    file: &mut File,
) -> Result<Vec<QuicAnalysis>, Reason> {
    let mut traces: Vec<QuicTraceReader> = Vec::new();
    for item in QlogReader::new(BufReader::new(input)) {
        match item {
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                file.problems.push(&error);
                break;
            }
            Err(error) => return Err(Reason::Read(error)),
            Ok(QlogItem::Problem(problem)) => file.problems.push(&problem),
            Ok(QlogItem::Header(info)) => {
                let mut follow = QuicTraceReader::new(number);
                follow.quic.title = info.trace.title.clone();
                follow.quic.group = info.trace.group_id.clone();
                follow.quic.vantage = info.trace.vantage;
                file.begins = file.begins.or(info.trace.epoch);
                traces.push(follow);
            }
            Ok(QlogItem::Event(event)) => {
                file.frames += 1;
                if traces.is_empty() {
                    traces.push(QuicTraceReader::new(number));
                }
                if let Some(follow) = traces.last_mut() {
                    follow.event(&event);
                }
            }
        }
    }
    let read: Vec<QuicAnalysis> =
        traces.into_iter().map(QuicTraceReader::finish).filter(|quic| quic.events > 0).collect();
    if read.is_empty() {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    Ok(read)
}

/// Analyses the events of a trace.
struct QuicTraceReader {
    quic: QuicAnalysis,
    /// Latest metrics.
    window: Option<u64>,
    in_flight: Option<u64>,
    state: Option<String>,
    datagram: u64,
    agreed: bool,
    lossless: bool,
    /// Flow control limit of the connection, in bytes.
    allowed: Option<u64>,
    /// End of the highest byte sent of each stream.
    streams: BTreeMap<u64, u64>,
    /// Lost packets by space (packet type) and number.
    lost: BTreeSet<(String, u64)>,
}

impl QuicTraceReader {
    fn new(file: usize) -> Self {
        Self {
            quic: QuicAnalysis {
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
                max_in_flight: None,
                budget: BTreeMap::new(),
                untold: Vec::new(),
            },
            window: None,
            in_flight: None,
            state: None,
            datagram: MIN_DATAGRAM,
            agreed: false,
            lossless: true,
            allowed: None,
            streams: BTreeMap::new(),
            lost: BTreeSet::new(),
        }
    }

    fn event(&mut self, event: &QlogEvent) {
        if self.quic.events == 0 {
            (self.quic.first, self.quic.last) = (event.at, event.at);
        }
        self.quic.events += 1;
        // Events may be slightly out of order; no time is counted twice.
        let passed = event.at.saturating_sub(self.quic.last);
        let time_by_use = self.quic.budget.entry(self.limit()).or_insert(Duration::ZERO);
        *time_by_use += passed;
        self.quic.last = self.quic.last.max(event.at);
        match &event.data {
            QlogData::PacketSent(packet) => self.sent(packet),
            QlogData::PacketReceived(packet) => self.received(packet),
            QlogData::PacketLost { header, trigger } => {
                let trigger = trigger.clone().unwrap_or_default();
                *self.quic.lost.entry(trigger).or_default() += 1;
                self.lossless = false;
                if let Some(number) = header.packet_number
                    && self.lost.len() < MAX_LOST
                {
                    self.lost.insert((header.packet_type.clone(), number));
                }
            }
            QlogData::MetricsUpdated(metrics) => self.metrics(metrics),
            QlogData::CongestionStateUpdated { new, .. } => self.state = Some(new.clone()),
            QlogData::RecoveryParametersSet(parameters) => {
                self.datagram = parameters.max_datagram_size.unwrap_or(self.datagram).max(1);
            }
            QlogData::ParametersSet(parameters)
                if parameters.owner.as_deref() == Some("remote") =>
            {
                self.allowed = parameters.initial_max_data.or(self.allowed);
            }
            _ => {}
        }
    }

    /// What limits the sender until the next event.
    fn limit(&self) -> QuicLimit {
        if !self.agreed {
            return QuicLimit::Handshake;
        }
        let (Some(window), Some(in_flight)) = (self.window, self.in_flight) else {
            return QuicLimit::NoMetrics;
        };
        let sent = self.streams.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        if self.state.as_deref() == Some("recovery") {
            QuicLimit::Recovery
        } else if in_flight.saturating_add(self.datagram) > window {
            if self.lossless { QuicLimit::SlowStart } else { QuicLimit::Window }
        } else if self.allowed.is_some_and(|allowed| sent >= allowed) {
            QuicLimit::FlowControl
        } else {
            QuicLimit::Application
        }
    }

    fn sent(&mut self, packet: &QlogPacket) {
        self.quic.sent += 1;
        let length = packet.length.unwrap_or(0);
        self.quic.sent_bytes = self.quic.sent_bytes.saturating_add(length);
        self.agreed |= packet.header.packet_type == "1RTT";
        for frame in &packet.frames {
            if let QlogFrame::Stream { stream_id, offset, length, .. } = frame {
                let highest = self.streams.entry(*stream_id).or_default();
                let end = offset.saturating_add(*length);
                let new = end.saturating_sub(*highest);
                self.quic.stream_bytes = self.quic.stream_bytes.saturating_add(new);
                *highest = end.max(*highest);
            }
        }
    }

    fn received(&mut self, packet: &QlogPacket) {
        self.quic.received += 1;
        for frame in &packet.frames {
            match frame {
                QlogFrame::Ack { ranges, .. } => {
                    self.quic.acks += 1;
                    for &(from, to) in ranges {
                        self.acknowledged(&packet.header.packet_type, from, to);
                    }
                }
                QlogFrame::MaxData { maximum } => {
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
        // Logs write all ones for an unset threshold.
        if let Some(ssthresh) = metrics.ssthresh.filter(|&bytes| bytes < u64::from(u32::MAX)) {
            quic.ssthresh = Some(quic.ssthresh.map_or(ssthresh, |old| old.min(ssthresh)));
        }
        if let Some(in_flight) = metrics.bytes_in_flight {
            quic.max_in_flight = quic.max_in_flight.max(Some(in_flight));
            self.in_flight = Some(in_flight);
        }
    }

    fn finish(self) -> QuicAnalysis {
        let mut quic = self.quic;
        let lacks = [
            (quic.sent == 0, "packets sent"),
            (quic.sent > 0 && quic.sent_bytes == 0, "the length of packets"),
            (quic.sent > 0 && self.streams.is_empty(), "the frames of packets"),
            (quic.acks == 0, "acknowledgments and spurious losses"),
            (quic.round_trips.is_none(), "round trips"),
            (quic.windows.is_none(), "the congestion window"),
            (quic.max_in_flight.is_none(), "bytes in flight"),
            (self.allowed.is_none(), "the peer's flow control"),
            (self.state.is_none(), "congestion states"),
        ];
        quic.budget.retain(|_, time| !time.is_zero());
        quic.untold = lacks.iter().filter(|(lacks, _)| *lacks).map(|(_, what)| *what).collect();
        if quic.windows.is_none() || quic.max_in_flight.is_none() {
            quic.budget.clear();
        }
        quic
    }
}
