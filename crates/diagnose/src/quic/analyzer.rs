//! Analyses the events of one connection, one after another, in memory that does not grow with the
//! log.

use units::Instant;

use super::analysis::{QuicAnalysis, QuicClose};
use super::clock::LogEvent;
use super::receiver::QuicReceiver;
use super::record::{
    MAX_DATAGRAM, MAX_DURATION, MAX_TIME, MAX_VALUE, QuicFrame, QuicLimits, QuicPacketKind,
    QuicPacketRecord, QuicRecord,
};
use super::sender::QuicSender;

/// Size of a packet if the log lacks it: the least that QUIC may send at first (RFC 9000 section
/// 14.1).
const MIN_DATAGRAM: u64 = 1_200;

/// Analyses a connection.
#[derive(Debug)]
pub struct QuicAnalyzer {
    out: QuicAnalysis,
    sender: QuicSender,
    receiver: QuicReceiver,
    has_state: bool,
    has_frames: bool,
    /// Whether the log is the client's, as far as known.
    client: bool,
}

impl QuicAnalyzer {
    /// A connection logged by the client (`Some(true)`), the server, or an unknown host.
    pub fn new(client: Option<bool>) -> Self {
        let mut new = Self {
            out: QuicAnalysis { datagram: MIN_DATAGRAM, ..QuicAnalysis::default() },
            sender: QuicSender::default(),
            receiver: QuicReceiver::default(),
            has_state: false,
            has_frames: false,
            client: true,
        };
        new.set_client(client);
        new
    }

    /// Keeps the packets of the data sent, for a fit.
    pub fn keep_transfer(&mut self) {
        self.out.transfer = Some(Box::default());
    }

    /// Reports the frames as missing: the log has none, and those of the records are inferred.
    pub fn infer_frames(&mut self) {
        self.out.frames_inferred = true;
    }

    /// Reports the congestion window as missing: that of the records is inferred from the packets.
    pub const fn infer_window(&mut self) {
        self.out.window_inferred = true;
    }

    /// Lets the server send without the limit of RFC 9000 section 8.1, as Google's QUIC does.
    pub const fn lift_amplification_limit(&mut self) {
        self.out.handshake.lift_amplification_limit();
    }

    fn set_client(&mut self, client: Option<bool>) {
        self.out.client = client;
        self.client = client.unwrap_or(true);
        self.sender.streams.set_sender(client);
        self.receiver.streams.set_sender(client.map(|client| !client));
    }

    /// Processes the event with this index at `at` ns. Events may be slightly out of order; no time
    /// is counted twice.
    pub fn push(&mut self, at: u64, index: u64, record: &QuicRecord<'_>) {
        if self.out.events == 0 {
            (self.out.first, self.out.last) = (at.min(MAX_TIME), at.min(MAX_TIME));
            self.out.range.0 = index;
        }
        self.out.events += 1;
        self.out.range.1 = index;
        let from = self.out.last;
        let at = at.clamp(from, self.out.first + MAX_DURATION);
        self.out.last = at;
        let now = LogEvent::new(at, index);
        self.sender.advance(&mut self.out, Instant::from_nanos(from), now);
        if at > from {
            let waits_for_stream = self.sender.streams.count_blocked;
            self.receiver.advance(&self.out, (from, at, index), waits_for_stream);
        }
        match record {
            QuicRecord::Sent(packet) => self.sent(at, index, &packet.bounded()),
            QuicRecord::Received(packet) => self.received(at, index, &packet.bounded()),
            QuicRecord::Lost { kind, number, trigger } => {
                if let Some(transfer) = &mut self.out.transfer
                    && let Some(number) = number.filter(|_| kind.space() == Some(2))
                {
                    transfer.lost(at, number);
                }
                self.sender.lost(&mut self.out, now, (*kind, *number), *trigger);
            }
            QuicRecord::Metrics(metrics) => {
                let metrics = metrics.bounded();
                if let (Some(transfer), Some(window)) =
                    (&mut self.out.transfer, metrics.congestion_window)
                {
                    transfer.set_window(window);
                }
                self.sender.metrics(&mut self.out, now, &metrics);
            }
            QuicRecord::State { new, trigger } => {
                self.has_state = true;
                self.sender.state(&mut self.out, now, new, *trigger);
            }
            QuicRecord::TimeoutExpired => self.sender.timer_expired(&mut self.out, now),
            QuicRecord::Parameters { remote: true, limits } => self.peer_limits(*limits),
            QuicRecord::Parameters { remote: false, limits } => {
                self.receiver.streams.limits(*limits);
            }
            QuicRecord::Constants { max_datagram_size, reordering_threshold } => {
                self.out.datagram =
                    max_datagram_size.unwrap_or(self.out.datagram).clamp(1, MAX_DATAGRAM);
                self.out.reordering_threshold =
                    reordering_threshold.or(self.out.reordering_threshold);
            }
            QuicRecord::Ecn { new } if *new == "failed" => {
                self.out.ecn_failed = self.out.ecn_failed.or(Some((at, index)));
            }
            QuicRecord::Mtu(bytes) => {
                let mtu = self.out.sizes.mtu.get_or_insert([*bytes; 3]);
                (mtu[1], mtu[2]) = (mtu[1].max(*bytes), *bytes);
            }
            QuicRecord::HandshakeComplete => self.out.handshake.complete(at, index),
            QuicRecord::SpuriousLoss => self.out.reported_spurious += 1,
            QuicRecord::Closed { by_peer, code, reason, idle_timeout, is_error } => {
                self.close_event(QuicClose {
                    at,
                    event: index,
                    by_peer: *by_peer,
                    code: (*code).to_owned(),
                    reason: (*reason).to_owned(),
                    idle_timeout: *idle_timeout,
                    is_error: *is_error,
                });
            }
            QuicRecord::Ecn { .. } | QuicRecord::Other => {}
        }
    }

    /// Takes the transport parameters of the peer.
    fn peer_limits(&mut self, limits: QuicLimits) {
        let delay = limits.max_ack_delay.map(|delay| delay.min(MAX_VALUE));
        self.out.max_ack_delay = delay.or(self.out.max_ack_delay);
        self.sender.streams.limits(limits);
        if let (Some(transfer), Some(limit)) = (&mut self.out.transfer, limits.max_data) {
            transfer.limit(self.out.last, None, limit);
        }
    }

    /// An event of the end. The first report is the cause; a later one may have more details.
    fn close_event(&mut self, close: QuicClose) {
        if self.out.close.as_ref().is_none_or(|old| close.is_error && !old.is_error) {
            self.out.close = Some(close);
        }
    }

    /// A CONNECTION_CLOSE frame; logs need not have an event of the end.
    fn close_frame(&mut self, at: u64, index: u64, packet: &QuicPacketRecord<'_>, by_peer: bool) {
        let Some(frame) = packet.close.filter(|_| self.out.close.is_none()) else { return };
        self.out.close = Some(QuicClose {
            at,
            event: index,
            by_peer: Some(by_peer),
            code: frame.code_text(),
            reason: frame.reason.to_owned(),
            idle_timeout: false,
            is_error: frame.is_error(),
        });
    }

    fn sent(&mut self, at: u64, index: u64, packet: &QuicPacketRecord<'_>) {
        self.close_frame(at, index, packet, false);
        if self.out.sent == 0 && self.out.received == 0 && packet.kind == QuicPacketKind::Initial {
            self.guess_client(true);
        }
        self.has_frames |= !packet.frames.is_empty() || packet.has_ack;
        self.out.handshake.sent(at, index, packet, self.client);
        self.challenges(at, index, packet);
        // Keys of the Initial space are dropped with the first Handshake packet that a client
        // sends or a server receives, those of the Handshake space with the confirmation (RFC 9001
        // section 4.9).
        if packet.kind == QuicPacketKind::Handshake && self.out.client == Some(true) {
            self.sender.discard(0);
        }
        self.sender.sent(&mut self.out, LogEvent::new(at, index), packet);
        if let Some(transfer) = &mut self.out.transfer {
            transfer.sent(at, packet, |id| self.sender.streams.initial_limit(id));
        }
        self.receiver.granted(at, packet);
        if packet.frames.contains(&QuicFrame::HandshakeDone) {
            self.sender.discard(0);
            self.sender.discard(1);
        }
    }

    fn received(&mut self, at: u64, index: u64, packet: &QuicPacketRecord<'_>) {
        self.close_frame(at, index, packet, true);
        if self.out.sent == 0 && self.out.received == 0 && packet.kind == QuicPacketKind::Initial {
            self.guess_client(false);
        }
        self.out.received += 1;
        self.out.last_received = Some(at);
        self.sender.received(&mut self.out, LogEvent::new(at, index), packet);
        self.has_frames |= !packet.frames.is_empty() || packet.has_ack;
        self.challenges(at, index, packet);
        if self.out.client == Some(false) {
            match packet.kind {
                QuicPacketKind::Handshake => self.sender.discard(0),
                // Which a server can read once the handshake is complete (RFC 9001 section 5.7).
                QuicPacketKind::OneRtt => {
                    self.sender.discard(0);
                    self.sender.discard(1);
                }
                _ => {}
            }
        }
        if packet.has_ack {
            self.sender.acks(&mut self.out, LogEvent::new(at, index), packet);
            if let Some(transfer) = &mut self.out.transfer {
                transfer.acknowledged(at, packet);
            }
        }
        self.out.handshake.received(at, index, packet, self.client);
        for frame in packet.frames {
            match *frame {
                QuicFrame::MaxData(limit) => {
                    self.sender.streams.raise(limit);
                    if let Some(transfer) = &mut self.out.transfer {
                        transfer.limit(at, None, limit);
                    }
                }
                QuicFrame::MaxStreamData { id, limit } => {
                    self.sender.streams.raise_stream(id, limit);
                    if let Some(transfer) = &mut self.out.transfer {
                        transfer.limit(at, Some(id), limit);
                    }
                }
                QuicFrame::MaxStreams => self.sender.streams.count_blocked = false,
                QuicFrame::HandshakeDone => {
                    self.sender.discard(0);
                    self.sender.discard(1);
                }
                _ => {}
            }
        }
        self.receiver.received(&mut self.out, at, index, packet);
    }

    fn guess_client(&mut self, client: bool) {
        if self.out.client.is_none() {
            self.set_client(Some(client));
        }
    }

    fn challenges(&mut self, at: u64, index: u64, packet: &QuicPacketRecord<'_>) {
        if self.out.handshake.complete.is_some()
            && packet.frames.contains(&QuicFrame::PathChallenge)
        {
            if self.out.challenges.0 == 0 {
                (self.out.challenges.1, self.out.challenges.2) = (at, index);
                self.sender.challenge(&mut self.out);
            }
            self.out.challenges.0 += 1;
        }
    }

    /// Ends the connection; `None` without events.
    pub fn finish(self) -> Option<QuicAnalysis> {
        let (mut out, mut sender) = (self.out, self.sender);
        if out.events == 0 {
            return None;
        }
        sender.finish(&mut out);
        self.receiver.finish(&mut out);
        if let Some(transfer) = &mut out.transfer {
            transfer.finish();
            transfer.blocked_streams = sender.streams.most_blocked as u64;
        }
        let sends = out.is_sender();
        let lacks = [
            (out.sent == 0, "packets sent"),
            (out.sent > 0 && out.sent_bytes == 0, "the length of packets"),
            (out.sent + out.received > 0 && !self.has_frames, "the frames of packets"),
            (out.frames_inferred, "the frames of packets (inferred from the packets in flight)"),
            (sends && out.acks == 0, "acknowledgments and spurious losses"),
            (sends && out.round_trips.is_none(), "round trips"),
            (sends && !out.window_inferred && !sender.knows_window(), "the congestion window"),
            (
                sends && out.window_inferred,
                "the congestion window (inferred from the packets and ACKs)",
            ),
            (sends && !sender.has_flight(), "bytes in flight"),
            (sends && !sender.streams.is_known(), "the peer's flow control"),
            (!sends && !self.receiver.streams.is_known(), "this host's flow control"),
            (sends && !self.has_state, "congestion states"),
        ];
        out.missing = lacks.iter().filter(|(lacks, _)| *lacks).map(|(_, what)| *what).collect();
        Some(out)
    }
}
