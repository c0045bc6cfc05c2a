//! Logs without frames: quinn-proto 0.11 logs packets by number and length, lost packets, and the recovery metrics
//! after each packet sent and each datagram received.
//!
//! What was acknowledged follows from the packets in flight: a datagram received that lowers their number by *n*, with
//! *m* of them declared lost, acknowledged *n - m*: those in flight that are not declared lost within two round trips, in order.
//! The latest round trip has the largest of them. A packet is ack-eliciting if it raised the number; its stream bytes
//! are its length less the usual headers, and lost bytes are retransmitted first, as quinn-proto does.
//!
//! The peer's delay of an ACK is what the smoothed round trip left out of the latest one (RFC 9002 section 5.3).
//!
//! Round trips are in seconds in these logs, not in milliseconds as the drafts of qlog have it: the first, before any
//! acknowledgment, is the initial one (RFC 9002 section 6.2.2 recommends 333 ms).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use diagnose::quic::QuicAnalyzer;
use diagnose::quic::record::{
    QuicFrame, QuicLossTrigger, QuicMetrics, QuicPacketKind, QuicPacketRecord, QuicRecord,
};

/// Short header, connection ID of 8 bytes, packet number of 2, tag of 16, and a STREAM frame's type, stream ID and
/// offset.
const OVERHEAD: u64 = 33;
/// Ack-eliciting packets below this length carry other frames.
const LEAST_DATA: u64 = 100;
/// A round trip of a log below this one in ns, before any sample, is in seconds.
const LEAST_INITIAL_RTT: u64 = 1_000_000;
/// Most events before the first packet with frames, or the first metrics with packets in flight.
const MAX_UNDECIDED: usize = 64;
/// Most events held.
const MAX_HELD: usize = 1 << 17;
/// Largest error of a time in ns: quinn-proto writes single precision.
const TOLERANCE: u64 = 2_000;
/// Largest error in ns of a sample from two smoothed round trips: eight and seven times a microsecond.
const SMOOTHED_ERROR: u64 = 20_000;

/// An event that is held.
#[derive(Debug, Clone, Copy)]
struct HeldEvent {
    at: u64,
    index: u64,
    what: HeldRecord,
}

#[derive(Debug, Clone, Copy)]
enum HeldRecord {
    Sent { packet: LoggedPacket, eliciting: bool },
    Received { packet: LoggedPacket, acked: u64, largest: Option<u64>, delay: Option<u64> },
    Lost { kind: QuicPacketKind, number: Option<u64>, trigger: QuicLossTrigger },
    Metrics(QuicMetrics),
}

#[derive(Debug, Clone, Copy)]
struct LoggedPacket {
    kind: QuicPacketKind,
    number: Option<u64>,
    bytes: Option<u64>,
}

/// Whether the log lacks frames, and has the packets in flight instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum FrameKnowledge {
    #[default]
    Undecided,
    Logged,
    Inferred,
}

/// Infers the frames of a log that has none, and passes all events on in their order.
#[derive(Debug, Default)]
pub(super) struct FrameInference {
    knowledge: FrameKnowledge,
    /// The first events, with the packets in flight of metrics, until it is decided.
    first: Vec<(HeldEvent, Option<u64>)>,
    held: VecDeque<HeldEvent>,
    /// Packets of the 1-RTT space that are declared lost in the events held.
    lost_later: BTreeSet<u64>,
    /// Ack-eliciting packets of the 1-RTT space in flight: time and stream bytes.
    in_flight: BTreeMap<u64, (u64, Vec<(u64, u64)>)>,
    /// Of the earlier spaces in flight: their keys are discarded, with their packets, as of the first 1-RTT packet
    /// received.
    early: u64,
    /// Packets in flight by the last metrics.
    count: u64,
    /// Indices in `held` of packets sent since, and the datagram received since.
    sent_since: Vec<u64>,
    received_since: Option<u64>,
    lost_since: u64,
    /// Events passed on.
    passed: u64,
    /// Sent times of the 1-RTT packets that may be the largest acknowledged.
    times: VecDeque<(u64, u64)>,
    latest: Option<u64>,
    /// The smoothed and the least round trip of the last metrics that had them, in ns.
    smoothed: Option<u64>,
    least: Option<u64>,
    largest: Option<u64>,
    in_seconds: Option<bool>,
    /// Time of the first event on the clock of the log.
    begin: u64,
    sent_to: u64,
    again: VecDeque<(u64, u64)>,
}

impl FrameInference {
    /// Whether the log has frames, so that its events need not come here.
    pub(super) fn is_idle(&self) -> bool {
        self.knowledge == FrameKnowledge::Logged
    }

    /// Takes the time of the first event on the clock of the log, whose precision falls with the time.
    pub(super) const fn begins_at(&mut self, begin: u64) {
        self.begin = begin;
    }

    /// Processes an event; `packets` are the packets in flight of its metrics.
    pub(super) fn push(
        &mut self,
        (at, index): (u64, u64),
        record: &QuicRecord<'_>,
        packets: Option<u64>,
        analyzer: &mut QuicAnalyzer,
    ) {
        match self.knowledge {
            FrameKnowledge::Logged => analyzer.push(at, index, record),
            FrameKnowledge::Inferred => self.infer((at, index), record, packets, analyzer),
            FrameKnowledge::Undecided => {
                let held = HeldRecord::of(record);
                let lacks = held.is_some() && self.first.len() < MAX_UNDECIDED;
                let decided = !lacks || packets.is_some();
                self.first.extend(held.map(|what| (HeldEvent { at, index, what }, packets)));
                if !decided {
                    return;
                }
                let first = core::mem::take(&mut self.first);
                if lacks {
                    self.knowledge = FrameKnowledge::Inferred;
                    analyzer.infer_frames();
                    for (event, packets) in first {
                        let at = (event.at, event.index);
                        self.infer(at, &event.what.record(), packets, analyzer);
                    }
                    return;
                }
                self.knowledge = FrameKnowledge::Logged;
                for (event, _) in &first {
                    analyzer.push(event.at, event.index, &event.what.record());
                }
                if first.last().is_none_or(|(event, _)| event.index != index) {
                    analyzer.push(at, index, record);
                }
            }
        }
    }

    fn infer(
        &mut self,
        (at, index): (u64, u64),
        record: &QuicRecord<'_>,
        packets: Option<u64>,
        analyzer: &mut QuicAnalyzer,
    ) {
        let what = match *record {
            QuicRecord::Sent(packet) => {
                // The metrics follow a datagram at once, if they changed.
                self.received_since = None;
                self.sent_since.push(self.passed + self.held.len() as u64);
                HeldRecord::Sent { packet: logged(&packet), eliciting: false }
            }
            QuicRecord::Received(packet) => {
                self.settle_probes();
                self.received_since = Some(self.passed + self.held.len() as u64);
                HeldRecord::Received {
                    packet: logged(&packet),
                    acked: 0,
                    largest: None,
                    delay: None,
                }
            }
            QuicRecord::Lost { kind, number, trigger } => {
                self.lost_since += 1;
                if kind.space() == Some(2) {
                    self.lost_later.extend(number);
                }
                HeldRecord::Lost { kind, number, trigger }
            }
            QuicRecord::Metrics(metrics) => {
                let metrics = self.in_nanoseconds(metrics);
                self.count_packets(at, &metrics, packets);
                HeldRecord::Metrics(metrics)
            }
            // What has no part in the inference keeps its order only when nothing is held.
            ref other => {
                self.pass(analyzer, at, true);
                analyzer.push(at, index, other);
                return;
            }
        };
        self.held.push_back(HeldEvent { at, index, what });
        self.pass(analyzer, at, self.held.len() > MAX_HELD);
    }

    /// Passes the rest on at the end of the log.
    pub(super) fn finish(&mut self, analyzer: &mut QuicAnalyzer) {
        for (event, _) in core::mem::take(&mut self.first) {
            analyzer.push(event.at, event.index, &event.what.record());
        }
        self.pass(analyzer, u64::MAX, true);
    }

    /// Round trips of metrics in ns, whatever the unit of the log.
    fn in_nanoseconds(&mut self, metrics: QuicMetrics) -> QuicMetrics {
        let first = metrics.latest_rtt.or(metrics.smoothed_rtt);
        if let Some(first) = first {
            self.in_seconds.get_or_insert(first < LEAST_INITIAL_RTT);
        }
        if self.in_seconds != Some(true) {
            return metrics;
        }
        let scaled = |span: Option<u64>| span.map(|ns| ns.saturating_mul(1_000));
        QuicMetrics {
            min_rtt: scaled(metrics.min_rtt),
            smoothed_rtt: scaled(metrics.smoothed_rtt),
            latest_rtt: scaled(metrics.latest_rtt),
            rtt_variance: scaled(metrics.rtt_variance),
            ..metrics
        }
    }

    /// Packets sent without metrics after them, as probes of the path MTU are: ack-eliciting if they are large.
    fn settle_probes(&mut self) {
        for at in core::mem::take(&mut self.sent_since) {
            let mut raised = false;
            if let Some(HeldRecord::Sent { packet, eliciting }) = self.held_at(at) {
                *eliciting = packet.bytes.is_some_and(|bytes| bytes >= LEAST_DATA);
                raised = *eliciting;
            }
            self.sent_one(at, raised);
        }
    }

    fn held_at(&mut self, at: u64) -> Option<&mut HeldRecord> {
        let index = at.checked_sub(self.passed)?;
        self.held.get_mut(index as usize).map(|held| &mut held.what)
    }

    /// Counts an ack-eliciting packet sent.
    fn sent_one(&mut self, at: u64, eliciting: bool) {
        if !eliciting {
            return;
        }
        self.count += 1;
        let Some(index) = at.checked_sub(self.passed) else { return };
        let Some(held) = self.held.get(index as usize) else { return };
        let HeldRecord::Sent { packet, .. } = &held.what else { return };
        match (packet.kind.space(), packet.number) {
            (Some(2), Some(number)) => self.times.push_back((held.at, number)),
            (Some(_), _) => self.early += 1,
            _ => {}
        }
    }

    /// Applies the packets in flight of metrics to the packets before them.
    fn count_packets(&mut self, at: u64, metrics: &QuicMetrics, packets: Option<u64>) {
        let now = packets.unwrap_or(self.count);
        if let Some(received) = self.received_since.take() {
            self.settle_probes();
            let mut fewer = self.count.saturating_sub(now);
            fewer = fewer.saturating_sub(core::mem::take(&mut self.lost_since));
            let largest = self.largest_of(at, metrics.latest_rtt);
            let held_back = self.delay_of(metrics);
            let mut early = self.early;
            let mut left = None;
            if let Some(HeldRecord::Received { packet, acked, largest: into, delay }) =
                self.held_at(received)
            {
                if packet.kind.space() == Some(2) {
                    // What an earlier space had in flight was acknowledged or discarded.
                    let gone = fewer.min(early);
                    early = 0;
                    (*acked, *into, *delay) = (fewer - gone, largest, held_back);
                } else {
                    early = early.saturating_sub(fewer);
                }
                left = Some(early);
            }
            self.early = left.unwrap_or(self.early);
        } else {
            self.smoothed = metrics.smoothed_rtt.or(self.smoothed);
            self.lost_since = 0;
            let sent = core::mem::take(&mut self.sent_since);
            // Of several the last ones: the first packets of a datagram may be ACKs only.
            let raised = now.saturating_sub(self.count) as usize;
            let passive = sent.len().saturating_sub(raised);
            for (place, at) in sent.into_iter().enumerate() {
                if let Some(HeldRecord::Sent { eliciting, .. }) = self.held_at(at) {
                    *eliciting = place >= passive;
                }
                self.sent_one(at, place >= passive);
            }
        }
        self.count = now;
    }

    /// The delay in ns that the peer reported with the latest round trip: the smoothed one took an eighth of what is left
    /// without it. None is reported, or more than the wait since the least round trip, if nothing was left out.
    fn delay_of(&mut self, metrics: &QuicMetrics) -> Option<u64> {
        let before = self.smoothed;
        self.smoothed = metrics.smoothed_rtt.or(before);
        self.least = metrics.min_rtt.or(self.least);
        let (latest, least) = metrics.latest_rtt.zip(self.least)?;
        let (before, now) = before.zip(self.smoothed)?;
        let taken = now.checked_mul(8)?.checked_sub(before.checked_mul(7)?)?;
        let most = latest.saturating_add(2 * SMOOTHED_ERROR);
        let is_sample = (least..=most).contains(&taken.saturating_add(SMOOTHED_ERROR));
        let delay = latest.saturating_sub(taken);
        let is_left_out = delay > SMOOTHED_ERROR;
        let is_short = latest <= least.saturating_add(LEAST_INITIAL_RTT);
        match is_sample {
            true if is_left_out => Some(delay),
            true if is_short => Some(0),
            _ => None,
        }
    }

    /// The packet whose round trip the metrics have, if it is larger than those before.
    fn largest_of(&mut self, at: u64, latest: Option<u64>) -> Option<u64> {
        self.latest = latest.or(self.latest);
        let sent = at.checked_sub(self.latest?)?;
        let slack = TOLERANCE + (self.begin.saturating_add(at) >> 22);
        while self.times.front().is_some_and(|(time, _)| time + slack < sent) {
            self.times.pop_front();
        }
        let near = self.times.iter().take_while(|(time, _)| *time <= sent + slack);
        // Of several at once any may be the largest: their number decides.
        let mut found = near.filter(|(_, number)| Some(*number) > self.largest);
        let (first, several) = (found.next().map(|(_, number)| *number), found.next().is_some());
        let found = first.filter(|_| !several)?;
        self.largest = Some(found);
        Some(found)
    }

    /// Passes on events from the front that are old enough, or all of them.
    fn pass(&mut self, analyzer: &mut QuicAnalyzer, now: u64, all: bool) {
        // The last packet waits for its metrics.
        let waits = self.received_since.into_iter().chain(self.sent_since.first().copied()).min();
        let patience = 2 * self.latest.unwrap_or(0);
        while let Some(front) = self.held.front() {
            if !all && waits.is_some_and(|first| first <= self.passed) {
                return;
            }
            let mut acked = Vec::new();
            if let HeldRecord::Received { acked: count, largest, .. } = front.what {
                // By then the losses of its round trip are declared.
                if count > 0 && !all && now <= front.at.saturating_add(patience) {
                    return;
                }
                if count > 0 {
                    acked = self.acknowledged(count, largest);
                }
            }
            let Some(HeldEvent { at, index, what }) = self.held.pop_front() else { return };
            self.passed += 1;
            self.emit(analyzer, (at, index), what, &acked);
        }
    }

    /// The packets that `count` acknowledgments mean, up to `largest` if it is known.
    fn acknowledged(&self, count: u64, largest: Option<u64>) -> Vec<u64> {
        let count = count as usize;
        let kept = self.in_flight.keys().filter(|number| !self.lost_later.contains(number));
        let Some(largest) = largest else {
            // In order, or a late one.
            return kept.take(count).copied().collect();
        };
        // More than were acknowledged: some are late.
        let up_to: Vec<u64> = kept.take_while(|number| **number <= largest).copied().collect();
        up_to[up_to.len().saturating_sub(count)..].to_vec()
    }

    fn emit(
        &mut self,
        analyzer: &mut QuicAnalyzer,
        (at, index): (u64, u64),
        what: HeldRecord,
        acked: &[u64],
    ) {
        match what {
            HeldRecord::Sent { packet, eliciting } => {
                let frames = self.frames(at, &packet, eliciting);
                // Without frames it has an ACK only.
                let record =
                    QuicPacketRecord { has_ack: !eliciting, frames: &frames, ..packet.record() };
                analyzer.push(at, index, &QuicRecord::Sent(record));
            }
            HeldRecord::Received { packet, delay, .. } => {
                for number in acked {
                    self.in_flight.remove(number);
                }
                let ranges: Vec<_> = acked.iter().map(|&number| (number, number)).collect();
                // Whatever else it has is not known.
                let frames = [QuicFrame::Padding];
                let record = QuicPacketRecord {
                    has_ack: !ranges.is_empty(),
                    acked: &ranges,
                    ack_delay: delay.filter(|_| !ranges.is_empty()),
                    frames: &frames,
                    ..packet.record()
                };
                analyzer.push(at, index, &QuicRecord::Received(record));
            }
            HeldRecord::Lost { kind, number, trigger } => {
                if let Some(number) = number.filter(|_| kind.space() == Some(2)) {
                    self.lost_later.remove(&number);
                    let lost = self.in_flight.remove(&number);
                    self.again.extend(lost.into_iter().flat_map(|(_, ranges)| ranges));
                }
                analyzer.push(at, index, &QuicRecord::Lost { kind, number, trigger });
            }
            HeldRecord::Metrics(metrics) => {
                analyzer.push(at, index, &QuicRecord::Metrics(metrics));
            }
        }
    }

    /// The frames of a packet sent.
    fn frames(&mut self, at: u64, packet: &LoggedPacket, eliciting: bool) -> Vec<QuicFrame> {
        let bytes = packet.bytes.unwrap_or(0);
        if !eliciting {
            return Vec::new();
        }
        let (Some(2), Some(number)) = (packet.kind.space(), packet.number) else {
            return vec![QuicFrame::Crypto { offset: 0, length: 0 }];
        };
        if bytes < LEAST_DATA {
            self.in_flight.insert(number, (at, Vec::new()));
            return vec![QuicFrame::Other];
        }
        let mut left = bytes - OVERHEAD;
        let mut ranges = Vec::new();
        while left > 0 {
            match self.again.pop_front() {
                Some((offset, length)) if length > left => {
                    self.again.push_front((offset + left, length - left));
                    ranges.push((offset, left));
                    left = 0;
                }
                Some((offset, length)) => {
                    ranges.push((offset, length));
                    left -= length;
                }
                None => {
                    ranges.push((self.sent_to, left));
                    self.sent_to += left;
                    left = 0;
                }
            }
        }
        let frame = |&(offset, length): &(u64, u64)| QuicFrame::Stream {
            id: 0,
            offset,
            length,
            fin: false,
        };
        let frames = ranges.iter().map(frame).collect();
        self.in_flight.insert(number, (at, ranges));
        frames
    }
}

impl HeldRecord {
    /// An event of a log without frames; `None` of one that has some.
    fn of(record: &QuicRecord<'_>) -> Option<Self> {
        let is_bare = |packet: &QuicPacketRecord<'_>| {
            packet.frames.is_empty() && !packet.has_ack && packet.close.is_none()
        };
        match *record {
            QuicRecord::Sent(packet) => {
                is_bare(&packet).then(|| Self::Sent { packet: logged(&packet), eliciting: false })
            }
            QuicRecord::Received(packet) => is_bare(&packet).then(|| Self::Received {
                packet: logged(&packet),
                acked: 0,
                largest: None,
                delay: None,
            }),
            QuicRecord::Lost { kind, number, trigger } => {
                Some(Self::Lost { kind, number, trigger })
            }
            QuicRecord::Metrics(metrics) => Some(Self::Metrics(metrics)),
            _ => None,
        }
    }

    /// The event as it was logged.
    fn record(&self) -> QuicRecord<'static> {
        match *self {
            Self::Sent { packet, .. } => QuicRecord::Sent(packet.record()),
            Self::Received { packet, .. } => QuicRecord::Received(packet.record()),
            Self::Lost { kind, number, trigger } => QuicRecord::Lost { kind, number, trigger },
            Self::Metrics(metrics) => QuicRecord::Metrics(metrics),
        }
    }
}

impl LoggedPacket {
    fn record(&self) -> QuicPacketRecord<'static> {
        QuicPacketRecord {
            kind: self.kind,
            number: self.number,
            bytes: self.bytes,
            ..QuicPacketRecord::default()
        }
    }
}

fn logged(packet: &QuicPacketRecord<'_>) -> LoggedPacket {
    LoggedPacket { kind: packet.kind, number: packet.number, bytes: packet.bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 50 ms and more, of which the peer reports delays; the smoothed ones are those of RFC 9002.
    #[test]
    fn the_smoothed_round_trip_shows_the_delays_of_acks() {
        let mut inference = FrameInference::default();
        let (least, mut smoothed) = (50_000_000, 52_000_000_u64);
        inference.smoothed = Some(smoothed);
        // Held for 25 ms, at once behind a queue, and at once without one.
        for (latest, delay, shown) in [
            (78_000_000, 25_000_000, Some(25_000_000)),
            (61_000_000, 0, None),
            (50_300_000, 0, Some(0)),
        ] {
            smoothed = (7 * smoothed + latest - delay) / 8;
            let metrics = QuicMetrics {
                min_rtt: Some(least),
                latest_rtt: Some(latest),
                smoothed_rtt: Some(smoothed / 1_000 * 1_000),
                ..QuicMetrics::default()
            };
            let found = inference.delay_of(&metrics);
            assert_eq!(found.is_some(), shown.is_some(), "{latest}: {found:?}");
            let off = found.unwrap_or(0).abs_diff(shown.unwrap_or(0));
            assert!(off <= SMOOTHED_ERROR, "{latest}: {found:?}");
        }
        // The initial round trip is no sample.
        inference.smoothed = Some(333_000_000);
        let first = Some(60_000_000);
        let metrics = QuicMetrics {
            min_rtt: first,
            latest_rtt: first,
            smoothed_rtt: first,
            ..QuicMetrics::default()
        };
        assert_eq!(inference.delay_of(&metrics), None);
        // No number of a log is too large.
        let most = Some(u64::MAX);
        let metrics = QuicMetrics {
            min_rtt: most,
            latest_rtt: most,
            smoothed_rtt: most,
            ..QuicMetrics::default()
        };
        assert_eq!(inference.delay_of(&metrics), None);
    }
}
