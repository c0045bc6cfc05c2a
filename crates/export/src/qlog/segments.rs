//! Segments of TCP as QUIC packets, so that tools for qlog draw them.
//!
//! Each segment or burst that the stack sends is a packet with its own number, payload is stream 0,
//! and an ACK acknowledges the packets whose bytes it covers; of bytes sent twice, the later
//! packet. A retransmission means that the earlier packet was lost, unless it is a probe. A
//! cumulative acknowledgment of a part of a burst acknowledges no packet yet.

use std::collections::BTreeMap;
use std::io::Write;

use logs::qlog::{PacketHeader, QlogData, QlogFrame, QlogPacket};
use packet::{Flags, Segment};
use record::{Cause, Event as RunEvent, SentKind};
use units::{Instant, Offset, SeqNum};

use super::log::QlogLog;

/// The packets of a TCP connection.
#[derive(Debug, Default)]
pub(super) struct TcpPacketLog {
    /// Packets in flight by their first byte: end and number.
    in_flight: BTreeMap<u64, (u64, u64)>,
    next: u64,
    received: u64,
    largest_acked: Option<u64>,
    isn: SeqNum,
    snd_una: Offset,
    /// Window scales of both SYNs; in effect if both are present.
    scales: [Option<u8>; 2],
    max_data: u64,
    /// The segments that are about to be sent: first byte and kind.
    announced: Vec<(u64, SentKind)>,
}

impl TcpPacketLog {
    pub(super) fn on_event(&mut self, event: RunEvent) {
        if let RunEvent::Sent { at, kind, .. } = event {
            self.announced.push((at.0, kind));
        }
    }

    /// Logs an outgoing segment.
    pub(super) fn sent<W: Write>(&mut self, log: &mut QlogLog<W>, at: Instant, segment: &Segment) {
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
            packet.trigger = self.lost(log, at, first, end, kind).map(str::to_owned);
            self.in_flight.insert(first, (end, number));
            packet.frames.push(QlogFrame::Stream {
                stream_id: 0,
                offset: first,
                length: segment.payload.into(),
                fin: segment.flags.has(Flags::FIN),
            });
        }
        self.announced.clear();
        log.write_event(at, QlogData::PacketSent(packet));
    }

    /// Logs the packets in flight with these bytes as lost, unless they are probed; returns the
    /// reason of the retransmission.
    fn lost<W: Write>(
        &mut self,
        log: &mut QlogLog<W>,
        at: Instant,
        first: u64,
        end: u64,
        kind: Option<SentKind>,
    ) -> Option<&'static str> {
        let (lost, sent) = match kind {
            Some(SentKind::Probe) => (None, Some("pto_probe")),
            Some(SentKind::Retransmission(Cause::LossProbe | Cause::WindowProbe)) => {
                (None, Some("pto_probe"))
            }
            Some(SentKind::Retransmission(Cause::Timeout)) => {
                (Some("pto_expired"), Some("retransmit_timeout"))
            }
            _ => (Some("reordering_threshold"), Some("retransmit_reordered")),
        };
        let begin = self.in_flight.range(..=first).next_back().map_or(first, |(begin, _)| *begin);
        let over: Vec<(u64, u64, u64)> = self
            .in_flight
            .range(begin..end)
            .filter(|(_, (until, _))| *until > first)
            .map(|(begin, (until, number))| (*begin, *until, *number))
            .collect();
        for (begin, until, number) in &over {
            self.in_flight.remove(begin);
            // The rest of it stays in flight under its number.
            if *begin < first {
                self.in_flight.insert(*begin, (first, *number));
            }
            if *until > end {
                self.in_flight.insert(end, (*until, *number));
            }
            if let Some(trigger) = lost {
                let trigger = Some(trigger.to_owned());
                log.write_event(at, QlogData::PacketLost { header: header(*number), trigger });
            }
        }
        if over.is_empty() { None } else { sent }
    }

    /// Logs an incoming segment.
    pub(super) fn arrived<W: Write>(
        &mut self,
        log: &mut QlogLog<W>,
        at: Instant,
        segment: &Segment,
    ) {
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
                // A duplicate ACK: the largest number.
                (none, Some(largest)) if none.is_empty() => vec![(largest, largest)],
                (ranges, _) => ranges,
            };
            if !ranges.is_empty() {
                packet.frames.push(QlogFrame::Ack { ranges, delay: None });
            }
            let maximum = una.0 + self.window(segment);
            if maximum > self.max_data {
                self.max_data = maximum;
                packet.frames.push(QlogFrame::MaxData { maximum });
            }
        }
        log.write_event(at, QlogData::PacketReceived(packet));
    }

    /// The receive window of the peer in bytes (RFC 7323, Section 2.2).
    fn window(&self, segment: &Segment) -> u64 {
        let scale = match self.scales {
            [Some(_), Some(scale)] if !segment.flags.has(Flags::SYN) => scale,
            _ => 0,
        };
        u64::from(segment.window) << scale
    }

    /// Removes the packets within this range from those in flight.
    fn take(&mut self, from: u64, to: u64) -> Vec<u64> {
        // A malicious block may end before it begins.
        let within: Vec<u64> = self
            .in_flight
            .range(from..to.max(from))
            .filter(|(_, (end, _))| *end <= to)
            .map(|(begin, _)| *begin)
            .collect();
        within.iter().filter_map(|begin| self.in_flight.remove(begin)).map(|(_, n)| n).collect()
    }
}

fn header(number: u64) -> PacketHeader {
    PacketHeader { packet_type: "1RTT".to_owned(), packet_number: Some(number) }
}

/// A segment as a packet, without its payload.
fn packet(number: u64, segment: &Segment) -> QlogPacket {
    let length = Some(segment.wire_len().get());
    QlogPacket { header: header(number), length, ..QlogPacket::default() }
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
