//! What is kept of one flow.

use charts::thin::{Curve, Span, Spans};
use packet::{Flags, Segment};
use record::{Cause, Event, Purpose, SenderState, SentKind, Who};
use units::{HostId, Instant, Offset, SeqNum};

use super::needless::Copy;
use super::rounds::{Round, Rounds};
use super::{amount, nanos, span};

/// Events that are kept one by one.
const EVENTS: usize = 2_000;

/// Something of note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// When, in nanoseconds.
    pub(super) at: i64,
    /// What, in a few words.
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

/// Keeps what a page tells of a flow.
#[derive(Debug)]
pub(super) struct FlowStory {
    pub(super) name: String,
    host: HostId,
    /// Is the sender the end that answers?
    answers: bool,
    is_quic: bool,
    tap: Option<usize>,
    /// First payload byte's sequence number, once known.
    isn: Option<SeqNum>,
    /// Where acknowledgments stand.
    una: Offset,
    mss: i64,
    /// The sender's state after the last event that told it.
    last: Option<SenderState>,
    kept: Series,
}

/// What is kept of a flow.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) data: Spans,
    pub(super) again: Spans,
    pub(super) sacks: Spans,
    pub(super) dsacks: Spans,
    pub(super) ack: Curve,
    pub(super) edge: Curve,
    pub(super) dup_acks: Spans,
    pub(super) pushes: Spans,
    /// SYN, FIN and RST.
    pub(super) control: Vec<(i64, i64, &'static str)>,
    pub(super) cwnd: Curve,
    pub(super) ssthresh: Curve,
    pub(super) flight: Curve,
    pub(super) pipe: Curve,
    pub(super) rtt: Curve,
    pub(super) srtt: Curve,
    pub(super) rto: Curve,
    pub(super) pacing: Curve,
    pub(super) rounds: Rounds,
    pub(super) notes: Vec<Note>,
    pub(super) notes_left: u64,
}

/// What is kept of a flow that has ended.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) series: Series,
    pub(super) rounds: Vec<Round>,
    pub(super) rounds_left: u64,
    pub(super) copies: Vec<Copy>,
    pub(super) mss: i64,
    pub(super) is_quic: bool,
}

impl Series {
    fn new(points: usize) -> Self {
        // Parts of twenty.
        let spans = |parts: usize| Spans::new(points * parts / 20);
        let curve = |parts: usize| Curve::new(points * parts / 20);
        Self {
            data: spans(4),
            again: spans(1),
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
            rounds: Rounds::default(),
            notes: Vec::new(),
            notes_left: 0,
        }
    }

    /// What every event with a sender's state tells.
    fn state(&mut self, x: i64, state: &SenderState) {
        self.cwnd.push(x, amount(state.cwnd.get()));
        if let Some(ssthresh) = state.ssthresh {
            self.ssthresh.push(x, amount(ssthresh.get()));
        }
        self.flight.push(x, amount(state.flight().get().max(state.in_flight.get())));
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

    fn note(&mut self, x: i64, what: &'static str, is_bad: bool, state: Option<&SenderState>) {
        if self.notes.len() >= EVENTS {
            self.notes_left += 1;
            return;
        }
        let of = |of: fn(&SenderState) -> u64| state.map_or(0, |state| amount(of(state)));
        self.notes.push(Note {
            at: x,
            what,
            cwnd: of(|state| state.cwnd.get()),
            ssthresh: state.and_then(|state| state.ssthresh).map(|bytes| amount(bytes.get())),
            flight: of(|state| state.flight().get()),
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
            kept: Series::new(points),
        }
    }

    pub(super) fn is_host(&self, host: HostId) -> bool {
        self.host == host
    }

    pub(super) fn concerns(&self, who: Who) -> bool {
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
        let kept = &mut self.kept;
        kept.rounds.record(x, event, state);
        if let Some(state) = state {
            self.mss = self.mss.max(amount(state.mss.get()));
            self.una = state.snd_una;
            kept.state(x, state);
            self.last = Some(*state);
        }
        // Timers tell no state; nothing has moved since the last that did.
        let state = self.last.as_ref();
        match event {
            Event::Sent { at, len, kind } if len > 0 => {
                let low = amount(at.0);
                let high = low + i64::from(len);
                match kind {
                    SentKind::Again(cause) => {
                        kept.again.push(Span { x, low, high, word: cause as u32 });
                    }
                    _ => kept.data.push(Span { x, low, high, word: 0 }),
                }
            }
            Event::Acked { una, .. } => {
                let window = state.map_or(0, |state| amount(state.snd_wnd.get()));
                kept.ack.push(x, amount(una.0));
                kept.edge.push(x, amount(una.0) + window);
            }
            Event::DupAck { .. } => {
                let una = amount(self.una.0);
                kept.dup_acks.push(Span { x, low: una, high: una, word: 0 });
            }
            Event::Covered { at, len } => {
                let low = amount(at.0);
                kept.sacks.push(Span { x, low, high: low + i64::from(len), word: 0 });
            }
            Event::RttSample { rtt } => kept.rtt.push(x, span(rtt)),
            Event::Connected => kept.note(x, "connected", false, state),
            Event::Closed => kept.note(x, "closed", false, state),
            Event::Aborted => kept.note(x, "given up", true, state),
            Event::Timer(Purpose::Retransmit) => {
                kept.note(x, "retransmission timer fired", true, state);
            }
            Event::Timer(Purpose::Persist) => {
                kept.note(x, "probe of a closed window", true, state);
            }
            Event::Window { cause, .. } => {
                if let Some((what, is_bad)) = of_note(cause) {
                    kept.note(x, what, is_bad, state);
                }
            }
            _ => {}
        }
    }

    /// A segment passed the sender's stack.
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
            let from = self.place(segment.seq);
            let end = from + i64::from(segment.payload);
            if let Some((flag, word)) = sign {
                let y = if flag == Flags::SYN { 0 } else { end };
                self.kept.control.push((x, y, word));
            } else if flags.has(Flags::PSH) && segment.payload > 0 {
                self.kept.pushes.push(Span { x, low: end, high: end, word: 0 });
            }
            return;
        }
        if outbound {
            return;
        }
        if let Some((flag, _)) = sign {
            let y = if flag == Flags::SYN { 0 } else { self.place(segment.ack) };
            let word = match flag {
                Flags::SYN => "SYN of the peer",
                Flags::FIN => "FIN of the peer",
                _ => "RST of the peer",
            };
            self.kept.control.push((x, y, word));
        }
        let ack = self.place(segment.ack);
        for (number, block) in segment.sack_blocks().iter().enumerate() {
            let (low, high) = (self.place(block.left), self.place(block.right));
            // RFC 2883 section 4: the first block tells of a duplicate if it lies below the
            // acknowledgment, or within the second.
            let second =
                segment.sack_blocks().get(1).map(|b| (self.place(b.left), self.place(b.right)));
            let within = second.is_some_and(|(from, to)| from <= low && high <= to);
            let told = Span { x, low, high, word: 0 };
            if number == 0 && (high <= ack || within) {
                self.kept.dsacks.push(told);
            } else {
                self.kept.sacks.push(told);
            }
        }
    }

    /// Offset of a sequence number near what is under way.
    fn place(&self, seq: SeqNum) -> i64 {
        let Some(isn) = self.isn else { return 0 };
        amount(seq.near(isn, self.una).unwrap_or_default().0)
    }

    /// What was kept; `copies` are the bytes that left again.
    pub(super) fn finish(&mut self, copies: Vec<Copy>) -> Kept {
        let mut series = core::mem::replace(&mut self.kept, Series::new(0));
        let (rounds, rounds_left) = core::mem::take(&mut series.rounds).finish();
        let (mss, is_quic) = (self.mss, self.is_quic);
        Kept { series, rounds, rounds_left, copies, mss, is_quic }
    }
}

/// Why bytes went again, by the number of its cause.
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

/// The changes of a window that are told one by one, and whether they cost throughput.
fn of_note(cause: Cause) -> Option<(&'static str, bool)> {
    Some(match cause {
        Cause::SlowStartExit => ("slow start ends by its own rule", false),
        Cause::FastRetransmit => ("loss found: fast recovery begins", true),
        Cause::LostRetransmission => ("a retransmission was lost: recovery begins again", true),
        Cause::Recovered => ("recovery ends", false),
        Cause::Timeout => ("window reset by a timeout", true),
        Cause::Undone => ("false alarm: the reduction is taken back", false),
        Cause::Idle => ("window reduced after idling", true),
        Cause::Ecn => ("ECN echo: window reduced", true),
        Cause::PathMtu => ("the path takes smaller segments", true),
        _ => return None,
    })
}
