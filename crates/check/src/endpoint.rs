//! One end of a connection: the events of its stack and application, checked against each other and
//! against the packets sent and received.
//!
//! Offsets count from 0 at the first payload byte; the FIN is one byte after the last.

use std::collections::{BTreeMap, VecDeque};

use record::{
    Cause, Event, EventSource, PacketNumber, Purpose, SendLimit, SenderState, SentKind, TcpBits,
};
use units::{Bytes, Ecn, Instant, Offset, SeqNum};

use crate::arrivals::Arrivals;
use crate::contents::PayloadRange;
use crate::recovery::FastRecovery;
use crate::summary::EndpointSummary;

use crate::violation::{Subject, ViolationKind, ViolationLog};
use crate::world::{FlowModel, OutputCalls, RecoveryLimit, TransportKind};

#[derive(Debug, Clone)]
pub(crate) struct EndpointModel {
    pub(crate) who: EventSource,
    /// Whether it sends the first SYN.
    opens: bool,
    ip_header: Bytes,
    pub(crate) transport: TransportKind,
    pub(crate) brake: RecoveryLimit,
    pub(crate) free_fin: bool,
    mtu: Bytes,
    isn: Option<SeqNum>,
    pub(crate) connected: bool,
    pub(crate) calls: OutputCalls,
    /// Data sent by the stack and not yet by the card, in order: all at one instant.
    bursts: VecDeque<PendingBurst>,
    /// The card has begun to send them: no other may follow.
    departing: bool,
    pub(crate) sender: SenderModel,
    receiver: ReceiverModel,
}

/// State of the sending side.
#[derive(Debug, Clone, Default)]
pub(crate) struct SenderModel {
    pub(crate) written: u64,
    /// End of the payload ever sent, and whether the FIN followed.
    pub(crate) max: u64,
    pub(crate) fin: bool,
    pub(crate) una: u64,
    /// Congestion window as last reported, and the largest.
    pub(crate) cwnd: Option<u32>,
    pub(crate) largest_cwnd: u32,
    /// End of the data that a window allowed before slow start ended: RACK has planned to send it.
    pub(crate) planned: u64,
    /// Ends of the data in flight when the retransmission timer fired, and when a duplicate
    /// acknowledgment arrived or a retransmission was found lost.
    pub(crate) timed_out: u64,
    pub(crate) in_doubt: u64,
    /// The same when the segment size was reduced, and for bytes sent as probes.
    pub(crate) too_large: u64,
    pub(crate) probed: u64,
    /// The same when the peer was seen to have closed its window.
    pub(crate) closed: u64,
    /// Probes allowed by a timer.
    pub(crate) probes_due: u32,
    /// QUIC packets exempt from the window: two probes per timeout (RFC 9002 section 6.2.4), one on
    /// entering recovery (section 7.3.2).
    pub(crate) beyond_window: u32,
    pub(crate) retransmitted: u64,
    /// The current fast recovery, and whether a loss probe is allowed.
    pub(crate) recovery: Option<FastRecovery>,
    pub(crate) loss_probe_due: bool,
    /// The timer of a loss probe fired, and the probe has not retransmitted anything.
    pub(crate) loss_probe_unsent: bool,
    /// QUIC packets that a probe timeout may still send: the second may repeat what the first sends for the first time.
    pub(crate) probe_packets: u32,
    /// The reordering timer fired, and nothing has been received or sent since.
    pub(crate) reordered: bool,
    /// Ranges retransmitted since the last input from the peer or a timer.
    pub(crate) retransmitted_since_input: BTreeMap<u64, u64>,
}

/// State of the receiving side.
#[derive(Debug, Clone, Default)]
struct ReceiverModel {
    arrivals: Arrivals,
    /// Offset of the peer's FIN, once it may have arrived.
    fin: Option<u64>,
    read: u64,
    /// Highest offset the peer can have acknowledged in the packets received; `None` before the
    /// first.
    reported: Option<u64>,
    packets: u64,
    bytes: u64,
    merged_packets: u64,
    merged_bytes: u64,
}

/// Packets that a QUIC probe timeout may send (RFC 9002 section 6.2.4).
const PROBES: u32 = 2;

/// A transmission as the stack reports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentData {
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) kind: SentKind,
}

/// Data that left the stack and has not left the card.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingBurst {
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// Sequence number relative to the initial one: the SYN is at 0, the first byte at 1. `None` if
    /// any number is allowed.
    pub(crate) place: Option<Offset>,
    pub(crate) sent_at: Instant,
    pub(crate) bare: bool,
    /// Whether it may carry the FIN.
    pub(crate) fin: bool,
}

/// A packet that leaves the card.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketDeparture {
    pub(crate) packet: PacketNumber,
    pub(crate) seq: SeqNum,
    pub(crate) len: u32,
    pub(crate) size: u32,
    pub(crate) ecn: Ecn,
    pub(crate) tcp: TcpBits,
}

impl EndpointModel {
    pub(crate) fn new(who: EventSource, opens: bool, flow: &FlowModel, mtu: Bytes) -> Self {
        Self {
            who,
            opens,
            ip_header: flow.ip_header,
            transport: flow.transport,
            brake: flow.recovery_limits[usize::from(!opens)],
            free_fin: flow.free_fins[usize::from(!opens)],
            mtu,
            isn: None,
            connected: false,
            calls: flow.output_calls[usize::from(!opens)],
            bursts: VecDeque::new(),
            departing: false,
            sender: SenderModel::default(),
            receiver: ReceiverModel::default(),
        }
    }

    pub(crate) fn summary(&self) -> EndpointSummary {
        let Self { sender, receiver, .. } = self;
        EndpointSummary {
            written: Bytes(sender.written),
            sent: Bytes(sender.max),
            retransmitted: Bytes(sender.retransmitted),
            acknowledged: Bytes(sender.una.min(sender.max)),
            received: Bytes(receiver.arrivals.upto()),
            read: Bytes(receiver.read),
        }
    }

    pub(crate) fn note(&self, log: &mut ViolationLog, what: ViolationKind) {
        log.note(Subject::End(self.who), what);
    }

    pub(crate) fn finish(&self, log: &mut ViolationLog) {
        for burst in &self.bursts {
            let (at, bytes) = (Offset(burst.at), Bytes(burst.len));
            self.note(log, ViolationKind::Kept { at, bytes });
        }
    }

    /// Checks that data sent before has departed. A stack that sends while it processes an ACK may
    /// send several times at one instant before the card takes the first, but not after that.
    fn check_departed(&mut self, log: &mut ViolationLog) {
        let together = self.calls == OutputCalls::WithinInput && !self.departing;
        while let Some(burst) =
            self.bursts.front().filter(|burst| !together || burst.sent_at != log.now)
        {
            let (at, bytes) = (Offset(burst.at), Bytes(burst.len));
            self.note(log, ViolationKind::Kept { at, bytes });
            self.bursts.pop_front();
        }
    }

    /// Processes an event of this end; `peer` are the arrivals at the other end.
    pub(crate) fn on_event(
        &mut self,
        log: &mut ViolationLog,
        event: Event,
        state: Option<&SenderState>,
        peer: &Arrivals,
    ) {
        if self.transport == TransportKind::RealQuic {
            return self.on_real_event(log, event);
        }
        if state.is_some_and(|state| !state.in_recovery) {
            self.sender.recovery = None;
        }
        if matches!(
            event,
            Event::Acked { .. }
                | Event::DupAck { .. }
                | Event::QuicPacketsAcked { .. }
                | Event::QuicPacketLost { .. }
                | Event::Lost { .. }
                | Event::Timer(_)
                | Event::Window {
                    // FreeBSD responds to a partial ACK before it advances `snd_una`
                    // (tcp_newreno_partial_ack).
                    cause: Cause::PathMtu | Cause::LostRetransmission | Cause::Recovering,
                    ..
                }
        ) {
            self.sender.retransmitted_since_input.clear();
        }
        if !matches!(event, Event::Sent { .. } | Event::SendLimited(_) | Event::AppWrote { .. }) {
            self.forget_pipe();
        }
        if matches!(event, Event::Sent { .. } | Event::Acked { .. } | Event::DupAck { .. }) {
            self.sender.reordered = false;
        }
        match event {
            Event::Connected => self.on_connected(log),
            Event::Sent { at, len, kind } => {
                self.check_departed(log);
                let sent = SentData { at: at.0, len: u64::from(len), kind };
                let burst = self.on_sent(log, &sent, state, peer);
                self.bursts.push_back(burst);
            }
            Event::Acked { una, bytes, .. } => self.on_acked(log, una.0, u64::from(bytes), state),
            // A probe may exceed the window, and may repeat bytes in flight.
            Event::DupAck { .. } | Event::Lost { .. } | Event::Timer(Purpose::LossProbe) => {
                self.sender.in_doubt = self.sender.end();
                self.sender.loss_probe_due |= event == Event::Timer(Purpose::LossProbe);
                self.sender.loss_probe_unsent |= event == Event::Timer(Purpose::LossProbe);
                if self.transport != TransportKind::Tcp {
                    // QUIC's probes may be empty (RFC 9002 section 6.2.4).
                    let probe = event == Event::Timer(Purpose::LossProbe);
                    let (probes, beyond) = if probe { (PROBES, PROBES) } else { (0, 1) };
                    self.sender.probe_packets = self.sender.probe_packets.max(probes);
                    self.sender.probes_due = self.sender.probes_due.max(probes);
                    // A timeout may coincide with the start of a recovery.
                    let allowed = self.sender.beyond_window + beyond;
                    self.sender.beyond_window = allowed.min(PROBES + 1);
                }
            }
            Event::Timer(Purpose::Reorder) => self.on_reorder_timer(),
            Event::Timer(Purpose::Retransmit) => self.sender.timed_out = self.sender.end(),
            Event::Timer(Purpose::Persist | Purpose::Keepalive) => self.sender.probes_due = 1,
            Event::Window { cwnd, cause, .. } => self.on_window(log, cwnd, cause, state),
            Event::AppWrote { bytes } => {
                self.sender.written = self.sender.written.saturating_add(u64::from(bytes));
            }
            Event::AppRead { bytes, total: upto } => self.on_read(log, u64::from(bytes), upto.0),
            Event::Aggregated { packets, bytes } => self.on_merged(log, packets, bytes),
            Event::SendLimited(SendLimit::PeerWindow) => self.on_waiting(log, state),
            Event::Closed
            | Event::Aborted
            | Event::Timer(Purpose::DelayedAck | Purpose::TimeWait | Purpose::Pacing)
            | Event::SendLimited(_)
            | Event::SendBuffer { .. }
            | Event::ReceiveBuffer { .. }
            | Event::Dropped { .. }
            | Event::RttSample { .. }
            | Event::StreamAcked { .. }
            | Event::QuicPacketsAcked { .. }
            | Event::QuicPacketLost { .. }
            | Event::TcpInfo { .. } => {}
        }
    }

    /// Processes an event of a real implementation: the application reads no more than has arrived.
    fn on_real_event(&mut self, log: &mut ViolationLog, event: Event) {
        match event {
            Event::Connected => self.on_connected(log),
            Event::AppRead { bytes, total: upto } => self.on_read(log, u64::from(bytes), upto.0),
            _ => {}
        }
    }

    /// Returns the data received.
    pub(crate) const fn arrivals(&self) -> &Arrivals {
        &self.receiver.arrivals
    }

    /// Returns whether a packet of the peer has arrived.
    pub(crate) const fn has_received(&self) -> bool {
        self.receiver.reported.is_some()
    }

    fn on_connected(&mut self, log: &mut ViolationLog) {
        let at_once = self.opens && self.transport == TransportKind::Quic { handshake: false };
        if self.connected || !(self.has_received() || at_once) {
            self.note(log, ViolationKind::NotConnected);
        }
        self.connected = true;
    }

    /// RFC 9293 section 3.4: an acceptable acknowledgment covers sent data only, and no more than
    /// has reached the peer.
    fn on_acked(
        &mut self,
        log: &mut ViolationLog,
        una: u64,
        bytes: u64,
        state: Option<&SenderState>,
    ) {
        let before = self.sender.una;
        if una <= before || una - before != bytes {
            let (before, una, bytes) = (Offset(before), Offset(una), Bytes(bytes));
            self.note(log, ViolationKind::BadAdvance { before, una, bytes });
        }
        let end = self.sender.end();
        if una > end {
            self.note(log, ViolationKind::AckOfUnsent { una: Offset(una), snd_max: Offset(end) });
        }
        let reported = self.receiver.reported.unwrap_or(0);
        if una > reported {
            self.note(
                log,
                ViolationKind::AckTooSoon { una: Offset(una), reported: Offset(reported) },
            );
        }
        self.sender.una = before.max(una);
        match state {
            Some(state) => self.check_state(log, state),
            None => self.note(log, ViolationKind::NoState),
        }
    }

    fn on_window(
        &mut self,
        log: &mut ViolationLog,
        cwnd: u32,
        cause: Cause,
        state: Option<&SenderState>,
    ) {
        let before = self.sender.cwnd.replace(cwnd);
        self.sender.largest_cwnd = self.sender.largest_cwnd.max(cwnd);
        if cause == Cause::SlowStartExit && self.brake == RecoveryLimit::Credit {
            // HyStart++ reduces the window between the segments of a flight. rack_fast_output sends
            // the rest of what the window allowed (`fsb.left_to_send`) and does not compare again.
            let allowed = u64::from(before.unwrap_or(cwnd));
            self.sender.planned = self.sender.una.saturating_add(allowed);
        }
        self.on_recovery(cause);
        match cause {
            Cause::PathMtu => self.sender.too_large = self.sender.end(),
            Cause::LostRetransmission => self.sender.in_doubt = self.sender.end(),
            _ => {}
        }
        match state {
            Some(state) => self.check_state(log, state),
            None => self.note(log, ViolationKind::NoState),
        }
    }

    fn on_waiting(&mut self, log: &mut ViolationLog, state: Option<&SenderState>) {
        let Some(state) = state else { return };
        self.check_state(log, state);
        // FreeBSD's base stack probes if its congestion window is zero too (`sendwin == 0` of
        // tcp_output). tcp_sack_partialack of 14.3 sets it to zero if `snd_nxt` is a segment below
        // `snd_recover`; no other stack has such a window.
        if state.snd_wnd == Bytes::ZERO || state.cwnd == Bytes::ZERO {
            self.sender.closed = self.sender.end();
        }
    }

    fn on_read(&mut self, log: &mut ViolationLog, bytes: u64, upto: u64) {
        let arrived = match self.transport {
            // Datagrams have no order, and those of a real implementation no known offsets.
            TransportKind::Udp | TransportKind::RealQuic => self.receiver.bytes,
            _ => self.receiver.arrivals.upto(),
        };
        let before = self.receiver.read;
        if bytes == 0 || before.checked_add(bytes) != Some(upto) {
            let (upto, before, bytes) = (Offset(upto), Offset(before), Bytes(bytes));
            self.note(log, ViolationKind::BadRead { upto, before, bytes });
        }
        if upto > arrived {
            let (upto, arrived) = (Offset(upto), Offset(arrived));
            self.note(log, ViolationKind::ReadTooSoon { upto, arrived });
        }
        self.receiver.read = upto;
    }

    fn on_merged(&mut self, log: &mut ViolationLog, packets: u16, bytes: u32) {
        let receiver = &mut self.receiver;
        receiver.merged_packets += u64::from(packets);
        receiver.merged_bytes += u64::from(bytes);
        if receiver.merged_packets > receiver.packets || receiver.merged_bytes > receiver.bytes {
            self.note(log, ViolationKind::MergedFromNothing);
        }
    }

    /// Processes the arrival of an intact packet at the card.
    pub(crate) fn arrive(&mut self, contents: &PayloadRange) {
        if self.brake == RecoveryLimit::Credit {
            // tcp_rack_output compares the times of retransmitted segments too, at each call of
            // rack_output.
            self.sender.retransmitted_since_input.clear();
        }
        let receiver = &mut self.receiver;
        receiver.packets += 1;
        receiver.bytes += contents.len;
        let stop = contents.at.saturating_add(contents.len);
        if matches!(self.transport, TransportKind::Udp | TransportKind::RealQuic) {
            // By number.
            receiver.arrivals.insert(contents.at, contents.at.saturating_add(1));
        } else if contents.len > 0 {
            receiver.arrivals.insert(contents.at, stop);
        }
        if contents.fin {
            receiver.fin = Some(stop);
        }
        receiver.reported = receiver.reported.max(Some(contents.had));
    }

    /// Processes the departure of a packet from the card: it carries the next bytes that the stack
    /// has just sent.
    pub(crate) fn depart(
        &mut self,
        log: &mut ViolationLog,
        packet: &PacketDeparture,
    ) -> Option<PayloadRange> {
        let about = Subject::Packet(packet.packet);
        let len = u64::from(packet.len);
        if matches!(self.transport, TransportKind::Udp | TransportKind::RealQuic) {
            return Some(self.depart_datagram(log, packet));
        }
        // Data sent before it that did not depart is missing.
        let fits = |burst: &PendingBurst| {
            let at = burst.place.zip(self.isn).is_none_or(|(at, isn)| packet.seq == at.to_seq(isn));
            at && burst.sent_at == log.now && len <= burst.len && (len > 0 || burst.len == 0)
        };
        let kept = self.bursts.iter().position(fits).unwrap_or(0);
        for burst in self.bursts.drain(..kept) {
            let (at, bytes) = (Offset(burst.at), Bytes(burst.len));
            log.note(Subject::End(self.who), ViolationKind::Kept { at, bytes });
        }
        let next = self.bursts.front().copied().filter(|burst| {
            burst.sent_at == log.now && len <= burst.len && (len > 0 || burst.len == 0)
        });
        let Some(burst) = next else {
            log.note(about, ViolationKind::NeverSent);
            return None;
        };
        if let Some(place) = burst.place
            && packet.seq != place.to_seq(*self.isn.get_or_insert(packet.seq))
        {
            log.note(about, ViolationKind::NeverSent);
        }
        self.check_size(log, packet);
        let rest = PendingBurst {
            at: burst.at.saturating_add(len),
            len: burst.len - len,
            place: burst.place.map(|place| Offset(place.0.saturating_add(len))),
            ..burst
        };
        self.bursts.pop_front();
        if rest.len > 0 {
            self.bursts.push_front(rest);
        }
        self.departing = !self.bursts.is_empty();
        let receiver = &self.receiver;
        let had = receiver.arrivals.upto();
        Some(PayloadRange {
            at: burst.at,
            len,
            bare: burst.bare,
            fin: burst.fin && rest.len == 0,
            had: had + u64::from(receiver.fin == Some(had)),
        })
    }

    /// Processes the departure of a datagram: a source of UDP numbers them, and a receiver only returns those
    /// that arrived. Both ends of a real implementation number theirs, with or without data.
    fn depart_datagram(
        &mut self,
        log: &mut ViolationLog,
        packet: &PacketDeparture,
    ) -> PayloadRange {
        let number = u64::from(packet.seq.0);
        let is_udp = self.transport == TransportKind::Udp;
        let known = match self.opens || !is_udp {
            true => number == self.sender.max & u64::from(u32::MAX),
            false => self.receiver.arrivals.missing(number, number + 1) == 0,
        };
        if !known || (is_udp && packet.len == 0) {
            log.note(Subject::Packet(packet.packet), ViolationKind::NeverSent);
        }
        self.sender.max += 1;
        self.check_size(log, packet);
        let len = u64::from(packet.len);
        PayloadRange { at: number, len, bare: false, fin: false, had: 0 }
    }

    /// RFC 9293 section 3.1: a TCP header has 20 to 60 bytes in words of four. A UDP header has 8,
    /// a QUIC packet at least a byte of flags and one of its number.
    fn check_size(&self, log: &mut ViolationLog, packet: &PacketDeparture) {
        let (size, payload) = (u64::from(packet.size), u64::from(packet.len));
        let header = size.checked_sub(payload + self.ip_header.get());
        let fits = header.is_some_and(|n| match self.transport {
            TransportKind::Tcp => (20..=60).contains(&n) && n.is_multiple_of(4),
            TransportKind::Quic { .. } | TransportKind::RealQuic => n >= 10,
            TransportKind::Udp => n == 8,
        });
        if !fits || size > self.mtu.get() {
            let (size, payload) = (Bytes(size), Bytes(payload));
            log.note(Subject::Packet(packet.packet), ViolationKind::BadSize { size, payload });
        }
    }

    /// Returns whether it may send: a SYN, a response to a received packet, or anything once
    /// connected.
    pub(crate) fn may_speak(&self, kind: SentKind) -> bool {
        let opening = matches!(kind, SentKind::Control) && self.opens;
        let answer = matches!(kind, SentKind::Control | SentKind::Reset) && self.has_received();
        // QUIC acknowledges packets of its handshake, and repeats them. TCP answers a late SYN or RST
        // in SYN-RECEIVED with a challenge ACK (RFC 5961; syncache_chkrst of FreeBSD).
        let ack = matches!(kind, SentKind::Ack) && self.has_received();
        self.connected || opening || answer || ack
    }
}

impl SenderModel {
    /// Returns the offset after everything ever sent, the FIN included.
    pub(crate) const fn end(&self) -> u64 {
        self.max.saturating_add(self.fin as u64)
    }
}
