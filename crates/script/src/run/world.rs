//! The simulated host: its time, its endpoint, and the packets it has sent.

use std::collections::VecDeque;

use machine::{Cx, Endpoint as _, Signal};
use packet::{FastOpenOption, Flags, IpVersion, Segment};
use record::{EventSource, NullRecorder, Purpose};
use tcp::profile::Family;
use tcp::{TcpConfig, TcpEndpoint, TcpState};
use units::{Duration, Instant, SeqNum};

use super::counters::{BeforeArrival, SegmentCounters};
use super::header::{AnsweredPacket, SentHeader};
use super::real::{RealSegment, RealWorld};
use super::{ScriptPacketSeen, wording};
use crate::settings::ScriptHost;

/// Maximum segments sent per event, to stop an endless loop.
const MOST_AT_ONCE: usize = 1 << 16;

/// A packet that the endpoint has sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentPacket {
    pub(super) at: Instant,
    pub(super) segment: Segment,
    /// The rest of the IP header; `None` if it is not modelled.
    pub(super) header: Option<SentHeader>,
}

/// A line of the log.
#[derive(Debug)]
enum LogLine {
    /// A packet with its time and whether this host sent it.
    Packet(Instant, bool, Segment),
    /// A text that the script has printed.
    Printed(Instant, String),
}

/// One host with at most one connection at a time.
pub(super) struct ScriptWorld {
    pub(super) host: ScriptHost,
    pub(super) ip: IpVersion,
    start: Instant,
    now: Instant,
    /// The connection or the listener.
    pub(super) connection: Option<TcpEndpoint>,
    /// Sent packets that are not checked yet, after TSO.
    pub(super) sent: VecDeque<SentPacket>,
    /// Pending socket error (SO_ERROR), returned once.
    pub(super) error: Option<&'static str>,
    /// The connection was aborted or refused.
    pub(super) aborted: bool,
    /// All packets of the run, if they are kept.
    log: Option<Vec<LogLine>>,
    /// Signals to the application so far: data, space, a change of state.
    pub(super) signals: u64,
    /// What the connection has sent and received.
    pub(super) counters: SegmentCounters,
    /// Fast Open's option of our SYN.
    pub(super) fast_open_option: Option<FastOpenOption>,
    /// Fields of the IP header of what the present socket sends.
    pub(super) header: SentHeader,
    /// Least number of hops that a packet must have left.
    pub(super) least_hops: u8,
    /// What is being answered.
    pub(super) answered: Option<AnsweredPacket>,
    /// A real host in place of the model.
    pub(super) real: Option<RealWorld>,
}

impl ScriptWorld {
    pub(super) fn new(host: ScriptHost, ip: IpVersion) -> Self {
        let start = Instant::ZERO;
        Self {
            host,
            ip,
            start,
            now: start,
            connection: None,
            sent: VecDeque::new(),
            error: None,
            aborted: false,
            log: None,
            signals: 0,
            counters: SegmentCounters::default(),
            fast_open_option: None,
            header: SentHeader::default(),
            least_hops: 0,
            answered: None,
            real: None,
        }
    }

    /// Sets the start of script time, which is now.
    pub(super) fn start_at(&mut self, start: Instant) {
        (self.start, self.now) = (start, start);
    }

    /// Keeps a packet, if packets are kept.
    pub(super) fn log(&mut self, at: Instant, outbound: bool, segment: Segment) {
        if let Some(log) = &mut self.log {
            log.push(LogLine::Packet(at, outbound, segment));
        }
    }

    /// Keeps a line that the script prints, if packets are kept.
    pub(super) fn print(&mut self, text: String) {
        if let Some(log) = &mut self.log {
            log.push(LogLine::Printed(self.now, text));
        }
    }

    /// Takes the packets that the real host has sent.
    pub(super) fn take_real(&mut self, sent: Vec<RealSegment>) {
        for (at, burst, header) in sent {
            self.now = self.now.max(at);
            split(&burst, |segment| {
                self.log(at, true, segment);
                self.sent.push_back(SentPacket { at, segment, header: Some(header) });
            });
        }
    }

    /// Keeps all packets from now on.
    pub(super) fn keep_packets(&mut self) {
        self.log = Some(Vec::new());
    }

    /// The packets kept, with the time from the beginning of the script.
    pub(super) fn packets_seen(&self) -> Vec<ScriptPacketSeen> {
        let lines = self.log.iter().flatten();
        let packets = lines.filter_map(|line| match *line {
            LogLine::Packet(at, outbound, segment) => {
                Some(ScriptPacketSeen { at: self.script_time(at), outbound, segment })
            }
            LogLine::Printed(..) => None,
        });
        packets.collect()
    }

    /// The packets kept, one a line in the syntax of scripts, with the time in seconds.
    pub(super) fn packet_lines(&self) -> Vec<String> {
        // The readings of its clock, of 256 ns each, delay what a real host sends.
        let step = if self.real.is_some() { 1_000 } else { 1 };
        let round = |at: Instant| {
            let exact = self.script_time(at).as_nanos();
            wording::seconds(Duration::from_nanos(exact / step * step))
        };
        let mut peer_isn = 0;
        let lines = self.log.iter().flatten().map(|line| {
            let (at, outbound, segment) = match line {
                LogLine::Packet(at, outbound, segment) => (at, outbound, segment),
                LogLine::Printed(at, text) => {
                    return format!("{} | {text}", round(*at));
                }
            };
            let time = round(*at);
            if *outbound {
                return format!("{time} > {}", wording::segment(segment, peer_isn));
            }
            let syn = segment.flags.has(Flags::SYN);
            if syn {
                peer_isn = segment.seq.0;
            }
            let start = if syn { 0 } else { peer_isn };
            let seq = SeqNum(segment.seq.0.wrapping_sub(start));
            format!("{time} < {}", wording::segment(&Segment { seq, ..*segment }, 0))
        });
        lines.collect()
    }

    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Converts script time to an instant.
    pub(super) fn at(&self, after: Duration) -> Instant {
        self.start + after
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.now.since(self.start)
    }

    /// Converts an instant to script time.
    pub(super) fn script_time(&self, at: Instant) -> Duration {
        at.since(self.start)
    }

    /// Advances time to `at`; no timer may be due before.
    pub(super) fn reach(&mut self, at: Instant) {
        self.now = self.now.max(at);
    }

    /// Replaces the connection with a new connection or listener.
    pub(super) fn begin(&mut self, config: TcpConfig) {
        self.connection = Some(TcpEndpoint::new(config));
        self.counters = SegmentCounters::default();
        self.error = None;
        self.aborted = false;
    }

    /// Replaces the connection with one that this host opens; what the previous one sent is no
    /// longer looked at, as in packetdrill.
    pub(super) fn begin_active(&mut self, config: TcpConfig) {
        self.begin(config);
        self.sent.clear();
    }

    /// Is there a connection of a listener with Fast Open whose SYN-ACK is not acknowledged?
    pub(super) fn is_fast_open_child(&self) -> bool {
        self.connection.as_ref().is_some_and(TcpEndpoint::is_fast_open_child)
    }

    pub(super) fn state(&self) -> TcpState {
        self.connection.as_ref().map_or(TcpState::Closed, TcpEndpoint::state)
    }

    /// Runs `what` on the connection and collects the packets it sends.
    pub(super) fn with<T>(
        &mut self,
        what: impl FnOnce(&mut Cx<'_, NullRecorder>, &mut TcpEndpoint) -> T,
    ) -> Option<T> {
        let mut cx = Cx { now: self.now, source: EventSource::default(), rec: &mut NullRecorder };
        let result = what(&mut cx, self.connection.as_mut()?);
        self.drain("ETIMEDOUT");
        Some(result)
    }

    /// A packet arrives.
    pub(super) fn arrive(&mut self, segment: &Segment) {
        let linux = self.host.profile.family == Family::Linux;
        let reason = match self.state() {
            TcpState::SynSent => "ECONNREFUSED",
            // tcp_do_segment; tcp_reset of Linux.
            TcpState::SynReceived if !linux => "ECONNREFUSED",
            TcpState::CloseWait if linux => "EPIPE",
            _ => "ECONNRESET",
        };
        self.log(self.now, false, *segment);
        let mut cx = Cx { now: self.now, source: EventSource::default(), rec: &mut NullRecorder };
        if let Some(connection) = &mut self.connection {
            let before = BeforeArrival::of(connection);
            connection.handle_segment(&mut cx, segment);
            self.counters.on_arrival(self.now, before, segment, connection);
            self.drain(reason);
        }
    }

    /// Fires the next timer due by `until`; returns whether there was one.
    pub(super) fn step(&mut self, until: Instant) -> bool {
        if let Some(real) = &mut self.real {
            let mut sent = Vec::new();
            let fired = real.step(until, &mut sent);
            self.now = self.now.max(fired.unwrap_or(self.now));
            self.take_real(sent);
            return fired.is_some();
        }
        let due = self.connection.as_ref().and_then(machine::Endpoint::poll_timeout);
        let Some((at, _)) = due.filter(|&(at, _)| at <= until) else { return false };
        self.now = self.now.max(at);
        let _: Option<()> = self.with(|cx, end| end.handle_timeout(cx));
        true
    }

    /// Returns the next timer of the endpoint.
    pub(super) fn next_deadline(&self) -> Option<(Instant, Purpose)> {
        self.connection.as_ref()?.poll_timeout()
    }

    /// Collects the packets and signals of the endpoint.
    fn drain(&mut self, reason: &'static str) {
        let mut cx = Cx { now: self.now, source: EventSource::default(), rec: &mut NullRecorder };
        let Some(connection) = &mut self.connection else { return };
        let mut slot = Segment::default();
        let side = connection.side();
        let before = self.counters.data_segs_out;
        let mut why = None;
        let (own, family, answered) = (self.header, self.host.profile.family, self.answered);
        for _ in 0..MOST_AT_ONCE {
            if let Err(limit) = connection.poll_transmit(&mut cx, &mut slot) {
                why = Some(limit);
                break;
            }
            split(&slot, |segment| {
                if let Some(log) = &mut self.log {
                    log.push(LogLine::Packet(self.now, true, segment));
                }
                self.counters.on_sent(self.now, &segment, side);
                let header = own.of(family, answered, &segment);
                self.sent.push_back(SentPacket { at: self.now, segment, header });
            });
        }
        let sends = self.counters.data_segs_out > before;
        self.counters.on_output(self.now, connection, sends, why);
        while let Some(signal) = connection.poll_signal() {
            self.signals += 1;
            if signal == Signal::Aborted {
                self.aborted = true;
                self.error = Some(reason);
            }
        }
    }
}

/// Splits a burst as TSO does: FIN and PSH on the last packet, CWR on the first.
pub(super) fn split(burst: &Segment, mut give: impl FnMut(Segment)) {
    let size = u32::from(burst.gso_size);
    if size == 0 || burst.payload <= size {
        give(*burst);
        return;
    }
    let mut at = 0;
    while at < burst.payload {
        let payload = size.min(burst.payload - at);
        let mut flags = burst.flags;
        if at > 0 {
            flags = flags.without(Flags::CWR);
        }
        if at + payload < burst.payload {
            flags = flags.without(Flags::FIN | Flags::PSH);
        }
        let seq = SeqNum(burst.seq.0.wrapping_add(at));
        give(Segment { seq, payload, flags, gso_size: 0, ..*burst });
        at += payload;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_split_into_packets() {
        let flags = Flags::ACK | Flags::PSH | Flags::CWR;
        let burst = Segment { payload: 2_500, gso_size: 1_000, flags, ..Segment::default() };
        let mut packets = Vec::new();
        split(&burst, |p| packets.push((p.seq.0, p.payload, p.flags.to_string())));
        let expected = [(0, 1_000, ".W"), (1_000, 1_000, "."), (2_000, 500, "P.")];
        assert_eq!(packets, expected.map(|(seq, len, flags)| (seq, len, flags.to_owned())));
    }
}
