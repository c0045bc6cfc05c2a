//! A TCP's segments as packets of QUIC, so that tools for qlog draw them.
//!
//! Each segment or burst that leaves the stack is a packet with a number of its own, payload is
//! stream 0, and an ACK acknowledges the packets whose bytes it covers, of bytes sent twice the
//! later packet. What is sent again was lost before, unless it is a probe. A cumulative
//! acknowledgment of half a burst acknowledges no packet yet.

use std::collections::BTreeMap;
use std::io::Write;

use logs::qlog::{Data, Frame, Packet, PacketHeader};
use packet::{Flags, Segment};
use record::{Cause, Event as Told, SentKind};
use units::{Instant, Offset, SeqNum};

use super::log::Log;

/// What is known of a TCP's packets.
#[derive(Debug, Default)]
pub(super) struct Segments {
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
}

impl Segments {
    pub(super) fn on_event(&mut self, event: Told) {
        if let Told::Sent { at, kind, .. } = event {
            self.announced.push((at.0, kind));
        }
    }

    /// A segment on its way out.
    pub(super) fn sent<W: Write>(&mut self, log: &mut Log<W>, at: Instant, segment: &Segment) {
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
            self.flying.insert(first, (end, number));
            packet.frames.push(Frame::Stream {
                stream_id: 0,
                offset: first,
                length: segment.payload.into(),
                fin: segment.flags.has(Flags::FIN),
            });
        }
        self.announced.clear();
        log.tell(at, Data::PacketSent(packet));
    }

    /// What was in flight of these bytes was lost, unless they go as a probe; tells why they go.
    fn lost<W: Write>(
        &mut self,
        log: &mut Log<W>,
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
                log.tell(at, Data::PacketLost { header: header(*number), trigger });
            }
        }
        if over.is_empty() { None } else { sent }
    }

    /// A segment that came in.
    pub(super) fn arrived<W: Write>(&mut self, log: &mut Log<W>, at: Instant, segment: &Segment) {
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
        log.tell(at, Data::PacketReceived(packet));
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
        // A hostile block may end before it begins.
        let within: Vec<u64> = self
            .flying
            .range(from..to.max(from))
            .filter(|(_, (end, _))| *end <= to)
            .map(|(begin, _)| *begin)
            .collect();
        within.iter().filter_map(|begin| self.flying.remove(begin)).map(|(_, n)| n).collect()
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
