//! Data received: order of arrival, flow control that this host imposes on the peer, and the time
//! budget of the peer as far as it is visible here.

use std::collections::{BTreeMap, VecDeque};

use super::analysis::QuicAnalysis;
use super::budget::{QuicBudget, QuicLimiter};
use super::record::{QuicFrame, QuicPacketKind, QuicPacketRecord};
use super::streams::StreamsFlow;

/// Most gaps between packet numbers remembered.
const MAX_GAPS: usize = 1 << 14;
/// Most raised limits that are remembered.
const MAX_RAISED: usize = 1 << 14;
/// Silence after which the peer counts as idle if no RTT is known (RFC 9002 section 6.2.2).
const INITIAL_RTT: u64 = 333_000_000;

/// State of the receiver.
#[derive(Debug, Default)]
pub(super) struct QuicReceiver {
    pub(super) streams: StreamsFlow,
    pub(super) budget: QuicBudget,
    /// Numbers not received below the largest: first and last of each gap.
    gaps: BTreeMap<u64, u64>,
    largest: Option<u64>,
    last_data: Option<u64>,
    /// Gaps that were forgotten.
    forgotten: u64,
    /// Limits that this host raised, with the times in ns: what the peer sends by them arrives a round trip later.
    raised: VecDeque<(u64, QuicFrame)>,
}

impl QuicReceiver {
    /// Attributes the time since the last event. `waits_for_stream`: this host may open no further stream.
    pub(super) fn advance(
        &mut self,
        out: &QuicAnalysis,
        (from, to, event): (u64, u64, u64),
        waits_for_stream: bool,
    ) {
        let [least, rtt, _] = out.round_trips.unwrap_or([0, INITIAL_RTT, INITIAL_RTT]);
        self.raise_until(from.saturating_sub(least));
        let limiter = if out.handshake.complete.is_none() {
            QuicLimiter::Handshake
        } else if waits_for_stream {
            QuicLimiter::StreamCount
        } else if self.streams.is_blocked() {
            QuicLimiter::ConnectionFlow
        } else if self.streams.is_stream_blocked() {
            QuicLimiter::StreamFlow
        } else if to - from > (4 * rtt).max(INITIAL_RTT) {
            QuicLimiter::Idle
        } else {
            QuicLimiter::Peer
        };
        self.budget.spans[limiter as usize].add(from, to, event);
    }

    pub(super) fn received(
        &mut self,
        out: &mut QuicAnalysis,
        at: u64,
        event: u64,
        packet: &QuicPacketRecord<'_>,
    ) {
        let arrivals = &mut out.arrivals;
        arrivals.bytes = arrivals.bytes.saturating_add(packet.bytes.unwrap_or(0));
        let mut carries_data = false;
        for frame in packet.frames {
            match *frame {
                QuicFrame::Stream { id, offset, length, fin } => {
                    carries_data |= length > 0;
                    let new = self.streams.send(id, offset, length, fin);
                    arrivals.stream_bytes = arrivals.stream_bytes.saturating_add(new);
                }
                QuicFrame::DataBlocked => self.streams.report_blocked(),
                QuicFrame::StreamDataBlocked { id } => self.streams.report_stream_blocked(id),
                _ => {}
            }
        }
        if carries_data {
            out.rates.push(at - out.first, 1, packet.bytes.unwrap_or(0));
            arrivals.interval = Some((arrivals.interval.map_or(at, |(first, _)| first), at));
            if arrivals.events.0 == 0 {
                arrivals.events.0 = event;
            }
            arrivals.events.1 = event;
            self.last_data = Some(at);
        }
        if packet.kind == QuicPacketKind::OneRtt
            && let Some(number) = packet.number
        {
            arrivals.packets += 1;
            self.order(out, number);
        }
    }

    fn order(&mut self, out: &mut QuicAnalysis, number: u64) {
        let Some(largest) = self.largest else {
            self.largest = Some(number);
            return;
        };
        if number > largest {
            if number > largest + 1 {
                if self.gaps.len() >= MAX_GAPS
                    && let Some((from, to)) = self.gaps.pop_first()
                {
                    self.forgotten += to - from + 1;
                }
                self.gaps.insert(largest + 1, number - 1);
            }
            self.largest = Some(number);
            return;
        }
        let gap = self.gaps.range(..=number).next_back().map(|(from, to)| (*from, *to));
        let Some((from, to)) = gap.filter(|(_, to)| *to >= number) else { return };
        self.gaps.remove(&from);
        if from < number {
            self.gaps.insert(from, number - 1);
        }
        if number < to {
            self.gaps.insert(number + 1, to);
        }
        out.arrivals.late += 1;
        out.arrivals.max_overtaken = out.arrivals.max_overtaken.max(largest - number);
    }

    /// Takes the limits that this host grants.
    pub(super) fn granted(&mut self, at: u64, packet: &QuicPacketRecord<'_>) {
        let is_limit = |frame: &&QuicFrame| {
            matches!(frame, QuicFrame::MaxData(_) | QuicFrame::MaxStreamData { .. })
        };
        for frame in packet.frames.iter().filter(is_limit) {
            if self.raised.len() >= MAX_RAISED {
                self.raise_until(u64::MAX);
            }
            self.raised.push_back((at, *frame));
        }
    }

    /// Raises the limits that the peer knew when it sent what arrives now.
    fn raise_until(&mut self, at: u64) {
        while let Some((_, frame)) = self.raised.pop_front_if(|(raised, _)| *raised <= at) {
            match frame {
                QuicFrame::MaxData(limit) => self.streams.raise(limit),
                QuicFrame::MaxStreamData { id, limit } => self.streams.raise_stream(id, limit),
                _ => {}
            }
        }
    }

    pub(super) fn finish(&self, out: &mut QuicAnalysis) {
        let sum: u64 = self.gaps.iter().map(|(from, to)| (to - from).saturating_add(1)).sum();
        out.arrivals.missing = sum.saturating_add(self.forgotten);
        if !out.is_sender() {
            out.budget = self.budget;
            out.flow.connection = self.streams.last_connection;
            out.flow.stream = self.streams.last_blocked;
            out.flow.first = self.streams.first_limits();
            out.flow.streams = self.streams.opened;
        }
    }
}
