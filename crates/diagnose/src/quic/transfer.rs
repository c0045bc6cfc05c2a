//! The data that a QUIC host sends, packet by packet: what a fit needs beyond the analysis.
//!
//! The streams of a connection are one sequence of bytes here, in the order in which the bytes were
//! first sent. Kept only on request ([`QuicAnalyzer::keep_transfer`](super::QuicAnalyzer::keep_transfer)).

use std::collections::BTreeMap;

use units::Offset;

use super::exchange::QuicMessage;
use super::record::{MAX_DATAGRAM, QuicFrame, QuicPacketRecord};
use crate::ranges::StreamRanges;

/// Most packets with data kept; later ones are not.
pub const MAX_DATA_PACKETS: usize = 1 << 21;
/// Most pauses of the application kept, and most limits.
const MAX_PAUSES: usize = 1 << 16;
/// A packet is lost if one that was sent by this number later is acknowledged: `kPacketThreshold` of RFC 9002.
const REORDERED: u64 = 3;

/// A packet with stream data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicDataPacket {
    /// Packet number.
    pub number: u64,
    /// When it was sent, in ns.
    pub at: u64,
    /// Its length in bytes; 0 if unknown.
    pub bytes: u32,
    /// Stream bytes that no packet before it had.
    pub fresh: u32,
    /// When it was acknowledged, in ns.
    pub acked_at: Option<u64>,
    /// Packets with larger numbers acknowledged before it: the distance to the largest.
    pub overtaken: u64,
    /// When it was declared lost, in ns.
    pub lost_at: Option<u64>,
    /// It was declared lost, or later ones were acknowledged, and it never was.
    pub is_lost: bool,
}

/// A round-trip sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicRoundTrip {
    /// Index of the packet in [`QuicTransfer::packets`].
    pub packet: u32,
    /// When its ACK arrived, in ns.
    pub at: u64,
    /// The round trip without the ACK delay that the peer reported, in ns.
    pub rtt: u64,
    /// Packets with data newly acknowledged with it.
    pub newly: u32,
}

/// Progress of the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicProgress {
    /// Time in ns.
    pub at: u64,
    /// Bytes acknowledged without a gap.
    pub bytes: u64,
    /// Congestion window in bytes, if the log has it.
    pub window: Option<u64>,
}

/// A flow control limit of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicPeerLimit {
    /// When it arrived, in ns; that of the transport parameters when the first byte that it limits was sent.
    pub at: u64,
    /// The limit in bytes.
    pub limit: u64,
    /// The limit less the bytes acknowledged by then.
    pub ahead: u64,
}

/// The data of a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuicTransfer {
    /// Packets with data, in the order of the log.
    pub packets: Vec<QuicDataPacket>,
    /// Round-trip samples.
    pub round_trips: Vec<QuicRoundTrip>,
    /// Progress, at each ACK that advanced it.
    pub delivered: Vec<QuicProgress>,
    /// Times in which the sender was ready and the application had nothing to send, in ns.
    pub pauses: Vec<(u64, u64)>,
    /// Flow control windows of the connection and of the stream with most bytes: the limit less the bytes acknowledged
    /// when it arrived. Most of each.
    pub windows: [Option<u64>; 2],
    /// The limits themselves, each larger than the one before.
    pub limits: [Vec<QuicPeerLimit>; 2],
    /// Most streams that were at their limits at one time.
    pub blocked_streams: u64,
    /// When packets without data were sent that were lost, in ns: probes, as a rule.
    pub lost_probes: Vec<u64>,
    /// Messages of both hosts; empty if there are too many.
    pub messages: Vec<QuicMessage>,
    /// Streams with data.
    pub streams: u64,
    /// Bytes sent for the first time.
    pub bytes: u64,
    /// Packets were left out, as there were too many.
    pub is_partial: bool,
    in_flight: BTreeMap<u64, OutstandingData>,
    probes: BTreeMap<u64, u64>,
    spans: BTreeMap<u64, BTreeMap<u64, (u64, u64)>>,
    acked: StreamRanges,
    acked_by_stream: BTreeMap<u64, u64>,
    limits_by_stream: BTreeMap<u64, Vec<QuicPeerLimit>>,
    limit_count: usize,
    largest_acked: Option<u64>,
    window: Option<u64>,
}

/// A packet that is not acknowledged.
#[derive(Debug, Clone, PartialEq)]
struct OutstandingData {
    index: u32,
    /// Its bytes in the sequence, with their stream.
    ranges: Vec<(u64, u64, u64)>,
}

impl QuicTransfer {
    /// A packet is sent. `first_limit` has the first limit of a stream.
    pub(super) fn sent(
        &mut self,
        at: u64,
        packet: &QuicPacketRecord<'_>,
        first_limit: impl Fn(u64) -> Option<u64>,
    ) {
        let has_data = packet
            .frames
            .iter()
            .any(|frame| matches!(frame, QuicFrame::Stream { length: 1.., .. }));
        let Some(number) = packet.number.filter(|_| packet.kind.space() == Some(2)) else { return };
        if !has_data {
            if packet.is_ack_eliciting() && self.probes.len() < MAX_PAUSES {
                self.probes.insert(number, at);
            }
            return;
        }
        if self.packets.len() >= MAX_DATA_PACKETS {
            self.is_partial = true;
            return;
        }
        let before = self.bytes;
        let mut ranges = Vec::new();
        for frame in packet.frames {
            if let QuicFrame::Stream { id, offset, length, .. } = *frame {
                // A frame fits a datagram, whatever the log says.
                let end = offset.saturating_add(length.min(MAX_DATAGRAM));
                let is_new = !self.spans.contains_key(&id);
                self.map(id, offset, end, &mut ranges);
                if let Some(limit) = first_limit(id).filter(|_| is_new) {
                    self.limit(at, Some(id), limit);
                }
            }
        }
        let index = self.packets.len() as u32;
        self.packets.push(QuicDataPacket {
            number,
            at,
            bytes: packet.bytes.unwrap_or(0) as u32,
            fresh: u32::try_from(self.bytes - before).unwrap_or(u32::MAX),
            acked_at: None,
            overtaken: 0,
            lost_at: None,
            is_lost: false,
        });
        self.in_flight.insert(number, OutstandingData { index, ranges });
    }

    /// Appends the ranges of the sequence that `[start, end)` of a stream has, new ones at its end.
    fn map(&mut self, id: u64, start: u64, end: u64, ranges: &mut Vec<(u64, u64, u64)>) {
        let spans = self.spans.entry(id).or_default();
        let mut at = start;
        let first = spans.range(..=start).next_back().map_or(start, |(&from, _)| from);
        let known: Vec<_> = spans.range(first..end).map(|(&from, &span)| (from, span)).collect();
        let mut fresh = Vec::new();
        for (from, (to, base)) in known {
            if at < from {
                fresh.push((at, from));
                at = from;
            }
            let until = to.min(end);
            if at < until {
                ranges.push((base + (at - from), base + (until - from), id));
                at = until;
            }
        }
        if at < end {
            fresh.push((at, end));
        }
        for (from, to) in fresh {
            let base = self.bytes;
            ranges.push((base, base + (to - from), id));
            self.bytes += to - from;
            // Bytes that follow each other in the stream and in the sequence are one entry.
            match spans.range_mut(..from).next_back() {
                Some((&begin, span)) if span.0 == from && span.1 + (from - begin) == base => {
                    span.0 = to;
                }
                _ => drop(spans.insert(from, (to, base))),
            }
        }
    }

    pub(super) fn acknowledged(&mut self, at: u64, packet: &QuicPacketRecord<'_>) {
        if packet.kind.space() != Some(2) {
            return;
        }
        let before = self.largest_acked;
        let (mut newest, mut newly) = (None::<(u64, u32)>, 0);
        for &(from, to) in packet.acked.iter().filter(|(from, to)| from <= to) {
            self.largest_acked = self.largest_acked.max(Some(to));
            while let Some((&number, _)) = self.probes.range(from..=to).next() {
                self.probes.remove(&number);
            }
            while let Some((&number, _)) = self.in_flight.range(from..=to).next() {
                let Some(OutstandingData { index, ranges }) = self.in_flight.remove(&number) else {
                    break;
                };
                let sent = &mut self.packets[index as usize];
                sent.acked_at = Some(at);
                sent.is_lost = false;
                sent.overtaken = before.map_or(0, |before| before.saturating_sub(number));
                for (start, end, id) in ranges {
                    let mut bytes = 0;
                    self.acked.add(Offset(start), Offset(end), |start, end| bytes += end - start);
                    *self.acked_by_stream.entry(id).or_default() += bytes;
                }
                newly += 1;
                newest = newest.max(Some((number, index)));
            }
        }
        if let Some((number, index)) = newest
            && Some(number) > before
        {
            let raw = at.saturating_sub(self.packets[index as usize].at);
            let rtt = raw.saturating_sub(packet.ack_delay.unwrap_or(0));
            self.round_trips.push(QuicRoundTrip { packet: index, at, rtt, newly });
        }
        let bytes = self.acked.contiguous().0;
        if self.delivered.last().is_none_or(|last| last.bytes < bytes) && bytes > 0 {
            self.delivered.push(QuicProgress { at, bytes, window: self.window });
        }
    }

    pub(super) fn lost(&mut self, at: u64, number: u64) {
        if let Some(sent) = self.probes.remove(&number) {
            self.lost_probes.push(sent);
        }
        if let Some(outstanding) = self.in_flight.get(&number) {
            let packet = &mut self.packets[outstanding.index as usize];
            packet.lost_at.get_or_insert(at);
            packet.is_lost = true;
        }
    }

    pub(super) const fn set_window(&mut self, window: u64) {
        self.window = Some(window);
    }

    /// The peer's limit of the connection, or of the stream with this ID.
    pub(super) fn limit(&mut self, at: u64, stream: Option<u64>, limit: u64) {
        let acked = match stream {
            None => self.acked.bytes(),
            Some(id) => self.acked_by_stream.get(&id).copied().unwrap_or(0),
        };
        let limits = match stream {
            None => &mut self.limits[0],
            Some(id) => self.limits_by_stream.entry(id).or_default(),
        };
        // Repeated limits are no news.
        if limits.last().is_none_or(|last| last.limit < limit) && self.limit_count < MAX_PAUSES {
            self.limit_count += 1;
            limits.push(QuicPeerLimit { at, limit, ahead: limit.saturating_sub(acked) });
        }
    }

    /// The sender waited for the application.
    pub(super) fn pause(&mut self, from: u64, to: u64) {
        if let Some(last) = self.pauses.last_mut().filter(|last| last.1 == from) {
            last.1 = to;
        } else if self.pauses.len() < MAX_PAUSES {
            self.pauses.push((from, to));
        }
    }

    pub(super) fn finish(&mut self) {
        self.streams = self.spans.len() as u64;
        let limits = core::mem::take(&mut self.limits_by_stream);
        let acked = |id: &u64| self.acked_by_stream.get(id).copied().unwrap_or(0);
        // Of streams with as many bytes, the first.
        let main = limits.into_iter().min_by_key(|(id, _)| core::cmp::Reverse(acked(id)));
        self.limits[1] = main.map(|(_, limits)| limits).unwrap_or_default();
        let window = |limits: &Vec<QuicPeerLimit>| limits.iter().map(|one| one.ahead).max();
        self.windows = self.limits.each_ref().map(window);
        // Logs need not report what was lost. Later packets were acknowledged.
        let is_lost = |number: u64| Some(number.saturating_add(REORDERED)) <= self.largest_acked;
        let lost = self.probes.iter().filter(|(number, _)| is_lost(**number));
        self.lost_probes.extend(lost.map(|(_, &at)| at));
        for packet in &mut self.packets {
            packet.is_lost |= packet.acked_at.is_none() && is_lost(packet.number);
        }
        (self.in_flight, self.spans) = (BTreeMap::new(), BTreeMap::new());
        self.probes = BTreeMap::new();
        (self.acked, self.acked_by_stream) = (StreamRanges::default(), BTreeMap::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(id: u64, offset: u64, length: u64) -> QuicFrame {
        QuicFrame::Stream { id, offset, length, fin: false }
    }

    fn send(transfer: &mut QuicTransfer, at: u64, number: u64, frames: &[QuicFrame]) {
        let packet = QuicPacketRecord {
            number: Some(number),
            bytes: Some(1_200),
            frames,
            ..QuicPacketRecord::default()
        };
        transfer.sent(at, &packet, |id| Some(9_000 + id));
    }

    fn ack(transfer: &mut QuicTransfer, at: u64, acked: &[(u64, u64)]) {
        let packet = QuicPacketRecord { has_ack: true, acked, ..QuicPacketRecord::default() };
        transfer.acknowledged(at, &packet);
    }

    #[test]
    fn two_streams_are_one_sequence_and_a_retransmission_fills_its_gap() {
        let mut transfer = QuicTransfer::default();
        send(&mut transfer, 0, 1, &[stream(0, 0, 1_000)]);
        send(&mut transfer, 1, 2, &[stream(4, 0, 500), stream(0, 1_000, 500)]);
        send(&mut transfer, 2, 3, &[stream(4, 500, 1_000)]);
        ack(&mut transfer, 10, &[(1, 1), (3, 3)]);
        transfer.lost(10, 2);
        // The lost bytes of both streams, and 100 new ones.
        send(&mut transfer, 11, 4, &[stream(4, 0, 500), stream(0, 1_000, 600)]);
        ack(&mut transfer, 21, &[(1, 1), (3, 4)]);
        let progress: Vec<_> = transfer.delivered.iter().map(|one| (one.at, one.bytes)).collect();
        assert_eq!(progress, [(10, 1_000), (21, 3_100)]);
        let fresh: Vec<_> = transfer.packets.iter().map(|packet| packet.fresh).collect();
        assert_eq!(fresh, [1_000, 1_000, 1_000, 100]);
        let lost: Vec<_> = transfer.packets.iter().map(|packet| packet.lost_at).collect();
        assert_eq!(lost, [None, Some(10), None, None]);
        assert_eq!(transfer.round_trips.iter().map(|one| one.rtt).collect::<Vec<_>>(), [8, 10]);
    }

    #[test]
    fn a_packet_acknowledged_after_later_ones_was_overtaken() {
        let mut transfer = QuicTransfer::default();
        for number in 0..6 {
            send(&mut transfer, number, number, &[stream(0, number * 100, 100)]);
        }
        ack(&mut transfer, 20, &[(0, 0), (2, 5)]);
        ack(&mut transfer, 25, &[(0, 5)]);
        let overtaken: Vec<_> = transfer.packets.iter().map(|packet| packet.overtaken).collect();
        assert_eq!(overtaken, [0, 4, 0, 0, 0, 0]);
        assert_eq!(transfer.delivered.last().map(|last| last.bytes), Some(600));
        // No round-trip sample of a packet below the largest.
        assert_eq!(transfer.round_trips.len(), 1);
    }

    #[test]
    fn a_window_is_the_limit_less_the_bytes_acknowledged() {
        let mut transfer = QuicTransfer::default();
        transfer.limit(0, None, 10_000);
        // The window is that of the stream with most bytes.
        send(&mut transfer, 0, 0, &[stream(4, 0, 1_000), stream(7, 0, 10)]);
        ack(&mut transfer, 5, &[(0, 0)]);
        transfer.limit(5, None, 10_500);
        transfer.limit(5, Some(4), 9_504);
        transfer.limit(6, Some(4), 9_504);
        transfer.finish();
        assert_eq!(transfer.windows, [Some(10_000), Some(9_004)]);
        let of_stream = transfer.limits[1].iter().map(|one| (one.at, one.limit, one.ahead));
        assert_eq!(of_stream.collect::<Vec<_>>(), [(0, 9_004, 9_004), (5, 9_504, 8_504)]);
    }

    /// quiche reports no losses.
    #[test]
    fn packets_of_which_only_later_ones_are_acknowledged_are_lost() {
        let mut transfer = QuicTransfer::default();
        for number in [0, 2, 3, 4, 5] {
            send(&mut transfer, number, number, &[stream(0, number * 100, 100)]);
        }
        send(&mut transfer, 6, 1, &[QuicFrame::Other]);
        ack(&mut transfer, 20, &[(0, 0), (3, 4)]);
        transfer.finish();
        let lost: Vec<_> = transfer.packets.iter().map(|packet| packet.is_lost).collect();
        // Of the packet before two that arrived that is not known yet, nor of the last one.
        assert_eq!(lost, [false, false, false, false, false]);
        assert_eq!(transfer.lost_probes, [6]);
        let mut transfer = QuicTransfer::default();
        for number in 0..6 {
            send(&mut transfer, number, number, &[stream(0, number * 100, 100)]);
        }
        ack(&mut transfer, 20, &[(0, 0), (2, 4)]);
        transfer.finish();
        let lost: Vec<_> = transfer.packets.iter().map(|packet| packet.is_lost).collect();
        assert_eq!(lost, [false, true, false, false, false, false]);
    }
}
