//! The data of one flow.

use charts::downsample::{ThinnedRanges, ThinnedSeries, ValueRange};
use packet::{Flags, Segment};
use record::{Cause, Event, EventSource, Purpose, SenderState, SentKind};
use units::{HostId, Instant, Offset, SeqNum};

use super::rounds::{RoundRow, RoundTracker};
use super::spurious::RetransmittedRange;
use super::{amount, nanos, span};

/// Limit of the listed events.
const EVENTS: usize = 2_000;

/// A notable event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlowEvent {
    /// Time in nanoseconds.
    pub(super) at: i64,
    /// Short description.
    pub(super) what: &'static str,
    /// Congestion window after it.
    pub(super) cwnd: i64,
    /// Slow-start threshold after it.
    pub(super) ssthresh: Option<i64>,
    /// Bytes in flight after it.
    pub(super) flight: i64,
    /// Does it cost throughput?
    pub(super) is_bad: bool,
}

/// Records the data of a flow.
#[derive(Debug)]
pub(super) struct FlowStory {
    pub(super) name: String,
    host: HostId,
    /// Is the sender the server of requests?
    answers: bool,
    is_quic: bool,
    tap: Option<usize>,
    /// Sequence number of the first payload byte, once known.
    isn: Option<SeqNum>,
    /// Highest cumulative acknowledgment.
    una: Offset,
    mss: i64,
    /// The last recorded state of the sender.
    last: Option<SenderState>,
    recorded: FlowSeries,
}

/// The series of a flow.
#[derive(Debug)]
pub(super) struct FlowSeries {
    pub(super) data: ThinnedRanges,
    pub(super) retransmitted: ThinnedRanges,
    pub(super) sacks: ThinnedRanges,
    pub(super) dsacks: ThinnedRanges,
    pub(super) ack: ThinnedSeries,
    pub(super) edge: ThinnedSeries,
    pub(super) dup_acks: ThinnedRanges,
    pub(super) pushes: ThinnedRanges,
    /// SYN, FIN and RST.
    pub(super) control: Vec<(i64, i64, &'static str)>,
    pub(super) cwnd: ThinnedSeries,
    pub(super) ssthresh: ThinnedSeries,
    pub(super) flight: ThinnedSeries,
    pub(super) pipe: ThinnedSeries,
    pub(super) rtt: ThinnedSeries,
    pub(super) srtt: ThinnedSeries,
    pub(super) rto: ThinnedSeries,
    pub(super) pacing: ThinnedSeries,
    pub(super) rounds: RoundTracker,
    pub(super) notes: Vec<FlowEvent>,
    pub(super) notes_left: u64,
}

/// The complete data of a flow.
#[derive(Debug)]
pub(super) struct FlowData {
    pub(super) series: FlowSeries,
    pub(super) rounds: Vec<RoundRow>,
    pub(super) rounds_left: u64,
    pub(super) retransmissions: Vec<RetransmittedRange>,
    pub(super) mss: i64,
    pub(super) is_quic: bool,
}

impl FlowSeries {
    fn new(points: usize) -> Self {
        // In twentieths of the limit.
        let spans = |parts: usize| ThinnedRanges::new(points * parts / 20);
        let curve = |parts: usize| ThinnedSeries::new(points * parts / 20);
        Self {
            data: spans(4),
            retransmitted: spans(1),
            sacks: spans(2),
            dsacks: spans(1),
            ack: curve(2),
            edge: curve(1),
            dup_acks: spans(1),
            pushes: spans(1),
            control: Vec::new(),
            cwnd: curve(1),
            ssthresh: curve(1),
            flight: curve(2),
            pipe: curve(1),
            rtt: curve(1),
            srtt: curve(1),
            rto: curve(1),
            pacing: curve(1),
            rounds: RoundTracker::default(),
            notes: Vec::new(),
            notes_left: 0,
        }
    }

    /// Adds the sender's state of an event.
    fn state(&mut self, x: i64, state: &SenderState) {
        self.cwnd.push(x, amount(state.cwnd.get()));
        if let Some(ssthresh) = state.ssthresh {
            self.ssthresh.push(x, amount(ssthresh.get()));
        }
        self.flight.push(x, amount(state.flight_size().get().max(state.in_flight.get())));
        self.pipe.push(x, amount(state.pipe.get()));
        if let Some(srtt) = state.srtt {
            self.srtt.push(x, span(srtt));
        }
        if !state.rto.is_zero() {
            self.rto.push(x, span(state.rto));
        }
        if let Some(pacing) = state.pacing {
            self.pacing.push(x, amount(pacing.bits_per_second()));
        }
    }

    fn add_event(&mut self, x: i64, what: &'static str, is_bad: bool, state: Option<&SenderState>) {
        if self.notes.len() >= EVENTS {
            self.notes_left += 1;
            return;
        }
        let of = |of: fn(&SenderState) -> u64| state.map_or(0, |state| amount(of(state)));
        self.notes.push(FlowEvent {
            at: x,
            what,
            cwnd: of(|state| state.cwnd.get()),
            ssthresh: state.and_then(|state| state.ssthresh).map(|bytes| amount(bytes.get())),
            flight: of(|state| state.flight_size().get()),
            is_bad,
        });
    }
}

impl FlowStory {
    pub(super) fn new(
        name: String,
        host: usize,
        answers: bool,
        is_quic: bool,
        tap: Option<usize>,
        points: usize,
    ) -> Self {
        Self {
            name,
            host: HostId(host as u16),
            answers,
            is_quic,
            tap,
            isn: is_quic.then_some(SeqNum(0)),
            una: Offset(0),
            mss: 0,
            last: None,
            recorded: FlowSeries::new(points),
        }
    }

    pub(super) fn is_host(&self, host: HostId) -> bool {
        self.host == host
    }

    pub(super) fn concerns(&self, who: EventSource) -> bool {
        self.is_host(who.host)
    }

    /// Offset of the first payload byte of a packet on the wire.
    pub(super) fn offset(&mut self, seq: SeqNum, len: u32) -> Option<u64> {
        // The first packet of a TCP connection is its SYN.
        let isn = *self.isn.get_or_insert(SeqNum(seq.0.wrapping_add(1)));
        (len > 0).then(|| seq.near(isn, self.una).unwrap_or_default().0)
    }

    pub(super) fn record(&mut self, at: Instant, event: Event, state: Option<&SenderState>) {
        let x = nanos(at);
        let recorded = &mut self.recorded;
        recorded.rounds.record(x, event, state);
        if let Some(state) = state {
            self.mss = self.mss.max(amount(state.mss.get()));
            self.una = state.snd_una;
            recorded.state(x, state);
            self.last = Some(*state);
        }
        // Timer events have no state; nothing has changed since the last state.
        let state = self.last.as_ref();
        match event {
            Event::Sent { at, len, kind } if len > 0 => {
                let low = amount(at.0);
                let high = low + i64::from(len);
                match kind {
                    SentKind::Retransmission(cause) => {
                        recorded.retransmitted.push(ValueRange {
                            x,
                            low,
                            high,
                            word: cause as u32,
                        });
                    }
                    _ => recorded.data.push(ValueRange { x, low, high, word: 0 }),
                }
            }
            Event::Acked { una, .. } => {
                let window = state.map_or(0, |state| amount(state.snd_wnd.get()));
                recorded.ack.push(x, amount(una.0));
                recorded.edge.push(x, amount(una.0) + window);
            }
            Event::DupAck { .. } => {
                let una = amount(self.una.0);
                recorded.dup_acks.push(ValueRange { x, low: una, high: una, word: 0 });
            }
            Event::StreamAcked { at, len } => {
                let low = amount(at.0);
                recorded.sacks.push(ValueRange { x, low, high: low + i64::from(len), word: 0 });
            }
            Event::RttSample { rtt } => recorded.rtt.push(x, span(rtt)),
            Event::Connected => recorded.add_event(x, "connected", false, state),
            Event::Closed => recorded.add_event(x, "closed", false, state),
            Event::Aborted => recorded.add_event(x, "connection aborted", true, state),
            Event::Timer(Purpose::Retransmit) => {
                recorded.add_event(x, "retransmission timer fired", true, state);
            }
            Event::Timer(Purpose::Persist) => {
                recorded.add_event(x, "zero-window probe", true, state);
            }
            Event::Window { cause, .. } => {
                if let Some((what, is_bad)) = notable_change(cause) {
                    recorded.add_event(x, what, is_bad, state);
                }
            }
            _ => {}
        }
    }

    /// Processes a segment at the tap of the sender's stack.
    pub(super) fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if self.tap != Some(tap) {
            return;
        }
        let x = nanos(at);
        let ours = outbound && (segment.dir == packet::Dir::Reverse) == self.answers;
        let flags = segment.flags;
        let sign = [(Flags::SYN, "SYN"), (Flags::FIN, "FIN"), (Flags::RST, "RST")]
            .into_iter()
            .find(|(flag, _)| flags.has(*flag));
        if ours {
            if flags.has(Flags::SYN) {
                self.isn = Some(SeqNum(segment.seq.0.wrapping_add(1)));
            }
            let from = self.stream_offset(segment.seq);
            let end = from + i64::from(segment.payload);
            if let Some((flag, word)) = sign {
                let y = if flag == Flags::SYN { 0 } else { end };
                self.recorded.control.push((x, y, word));
            } else if flags.has(Flags::PSH) && segment.payload > 0 {
                self.recorded.pushes.push(ValueRange { x, low: end, high: end, word: 0 });
            }
            return;
        }
        if outbound {
            return;
        }
        // An RST may have no acknowledgment number.
        let ack =
            segment.acknowledgment().map_or(amount(self.una.0), |ack| self.stream_offset(ack));
        if let Some((flag, _)) = sign {
            let y = if flag == Flags::SYN { 0 } else { ack };
            let word = match flag {
                Flags::SYN => "SYN of the peer",
                Flags::FIN => "FIN of the peer",
                _ => "RST of the peer",
            };
            self.recorded.control.push((x, y, word));
        }
        for (number, block) in segment.sack_blocks().iter().enumerate() {
            let (low, high) = (self.stream_offset(block.left), self.stream_offset(block.right));
            // RFC 2883 section 4: the first block reports a duplicate if it is below the
            // acknowledgment, or within the second block.
            let second = segment
                .sack_blocks()
                .get(1)
                .map(|b| (self.stream_offset(b.left), self.stream_offset(b.right)));
            let within = second.is_some_and(|(from, to)| from <= low && high <= to);
            let sack_block = ValueRange { x, low, high, word: 0 };
            if number == 0 && (high <= ack || within) {
                self.recorded.dsacks.push(sack_block);
            } else {
                self.recorded.sacks.push(sack_block);
            }
        }
    }

    /// Offset of a sequence number near the data in flight.
    fn stream_offset(&self, seq: SeqNum) -> i64 {
        let Some(isn) = self.isn else { return 0 };
        amount(seq.near(isn, self.una).unwrap_or_default().0)
    }

    /// Finishes the flow's data; `retransmissions` are its retransmitted ranges.
    pub(super) fn finish(&mut self, retransmissions: Vec<RetransmittedRange>) -> FlowData {
        let mut series = core::mem::replace(&mut self.recorded, FlowSeries::new(0));
        let (rounds, rounds_left) = core::mem::take(&mut series.rounds).finish();
        let (mss, is_quic) = (self.mss, self.is_quic);
        FlowData { series, rounds, rounds_left, retransmissions, mss, is_quic }
    }
}

/// Name of the cause of a retransmission, by number.
pub(super) fn cause_word(number: u32) -> String {
    let all = [
        Cause::Start,
        Cause::SlowStart,
        Cause::Avoidance,
        Cause::SlowStartExit,
        Cause::FastRetransmit,
        Cause::LostRetransmission,
        Cause::LossProbe,
        Cause::PartialAck,
        Cause::Recovering,
        Cause::Recovered,
        Cause::Timeout,
        Cause::Undone,
        Cause::Idle,
        Cause::Ecn,
        Cause::PathMtu,
        Cause::WindowProbe,
    ];
    let cause = all.into_iter().find(|cause| *cause as u32 == number);
    cause.map_or(String::new(), |cause| cause.name().replace('_', " "))
}

/// The window changes that are listed, and whether they cost throughput.
fn notable_change(cause: Cause) -> Option<(&'static str, bool)> {
    Some(match cause {
        Cause::SlowStartExit => ("slow start ends without a loss", false),
        Cause::FastRetransmit => ("loss detected: fast recovery begins", true),
        Cause::LostRetransmission => ("retransmission lost: new recovery begins", true),
        Cause::Recovered => ("recovery ends", false),
        Cause::Timeout => ("window reset by a timeout", true),
        Cause::Undone => ("spurious: reduction undone", false),
        Cause::Idle => ("window reduced after idle", true),
        Cause::Ecn => ("ECN echo: window reduced", true),
        Cause::PathMtu => ("path MTU reduced", true),
        _ => return None,
    })
}
