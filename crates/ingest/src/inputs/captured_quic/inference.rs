//! What a host does not put on the wire, inferred from the packets it sends and the ACKs it receives: losses as RFC 9002
//! section 6.1 declares them, and the congestion window.
//!
//! The window is what is in flight when an ACK lets the next packets leave while others stay in flight: then the sender
//! has more to send, and the window holds it. A loss halves it until then.

use std::collections::BTreeMap;

use diagnose::quic::QuicAnalyzer;
use diagnose::quic::record::{
    QuicLossTrigger, QuicMetrics, QuicPacketKind, QuicPacketRecord, QuicRecord,
};

/// Later packets acknowledged that make one lost.
const PACKET_THRESHOLD: u64 = 3;
/// Time within which an ACK lets packets leave, in ns.
const AT_ONCE: u64 = 1_000_000;
/// Most packets remembered; the oldest are forgotten.
const MAX_PACKETS: usize = 1 << 17;
/// Smallest window in bytes: two datagrams of the least size (RFC 9002 section 7.2).
const LEAST_WINDOW: u64 = 2 * 1_200;

#[derive(Debug, Clone, Copy)]
struct InFlight {
    at: u64,
    bytes: u64,
    eliciting: bool,
}

/// The sender of one host, as far as it is inferred. Its 1-RTT packets count.
#[derive(Debug, Default)]
pub(super) struct SenderInference {
    sent: BTreeMap<u64, InFlight>,
    flight: u64,
    window: Option<u64>,
    smoothed: Option<u64>,
    latest: u64,
    /// When an ACK last left packets in flight.
    clocked_at: Option<u64>,
    /// Packets sent until then belong to the present recovery.
    recovery_until: Option<u64>,
}

impl SenderInference {
    /// A packet was sent; passes the window on, if it shows.
    pub(super) fn sent(
        &mut self,
        (at, frame): (u64, u64),
        packet: &QuicPacketRecord<'_>,
        analyzer: &mut QuicAnalyzer,
    ) {
        let (QuicPacketKind::OneRtt, Some(number)) = (packet.kind, packet.number) else { return };
        let eliciting = packet.is_ack_eliciting();
        let bytes = if eliciting { packet.bytes.unwrap_or(0) } else { 0 };
        if self.sent.len() >= MAX_PACKETS
            && let Some((_, old)) = self.sent.pop_first()
        {
            self.flight -= old.bytes;
        }
        let before = self.sent.insert(number, InFlight { at, bytes, eliciting });
        self.flight = self.flight + bytes - before.map_or(0, |old| old.bytes);
        let is_clocked = self.clocked_at.is_some_and(|acked| at - acked.min(at) <= AT_ONCE);
        if eliciting && is_clocked {
            self.set_window((at, frame), self.flight, analyzer);
        }
    }

    fn set_window(&mut self, (at, frame): (u64, u64), window: u64, analyzer: &mut QuicAnalyzer) {
        let window = window.max(LEAST_WINDOW);
        if self.window.replace(window) != Some(window) {
            let metrics = QuicMetrics { congestion_window: Some(window), ..QuicMetrics::default() };
            analyzer.push(at, frame, &QuicRecord::Metrics(metrics));
        }
    }

    /// A packet was received; passes on the losses that its ACK shows.
    pub(super) fn received(
        &mut self,
        (at, frame): (u64, u64),
        packet: &QuicPacketRecord<'_>,
        analyzer: &mut QuicAnalyzer,
    ) {
        if packet.kind != QuicPacketKind::OneRtt || !packet.has_ack {
            return;
        }
        let mut newest: Option<InFlight> = None;
        for &(from, to) in packet.acked {
            while let Some((&number, _)) = self.sent.range(from..=to).next() {
                let Some(one) = self.sent.remove(&number) else { break };
                self.flight -= one.bytes;
                newest = newest.filter(|newest| newest.at >= one.at).or(Some(one));
            }
        }
        let Some(newest) = newest else { return };
        let largest = packet.acked.iter().map(|range| range.1).max().unwrap_or(0);
        self.latest = at.saturating_sub(newest.at);
        let smoothed = self.smoothed.map_or(self.latest, |old| (7 * old + self.latest) / 8);
        self.smoothed = Some(smoothed);
        // 9/8 of a round trip, at least the granularity (RFC 9002 section 6.1.2).
        let patience = (self.latest.max(smoothed) / 8 * 9).max(AT_ONCE);
        let lost: Vec<_> = self
            .sent
            .range(..largest)
            .filter_map(|(&number, one)| {
                let trigger = match () {
                    () if number + PACKET_THRESHOLD <= largest => QuicLossTrigger::Packets,
                    () if one.at + patience <= at => QuicLossTrigger::Time,
                    () => return None,
                };
                Some((number, trigger))
            })
            .collect();
        for (number, trigger) in lost {
            let Some(one) = self.sent.remove(&number) else { continue };
            self.flight -= one.bytes;
            if !one.eliciting {
                continue;
            }
            let kind = QuicPacketKind::OneRtt;
            analyzer.push(at, frame, &QuicRecord::Lost { kind, number: Some(number), trigger });
            if self.recovery_until.is_none_or(|until| one.at > until) {
                self.recovery_until = Some(at);
                if let Some(window) = self.window {
                    self.set_window((at, frame), window / 2, analyzer);
                }
            }
        }
        self.clocked_at = (self.flight > 0).then_some(at);
    }
}
