//! Round trip by round trip, as RFC 9406 section 4.2 cuts them: a round ends when more has been
//! acknowledged than was under way when it began, so that something sent in it has come back.

use record::{Event, SenderState, SentKind};

use super::{amount, span};

/// Rounds that are kept one by one.
const KEPT: usize = 20_000;

/// A round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Round {
    /// When it began, in nanoseconds.
    pub(super) from: i64,
    /// When it ended.
    pub(super) to: i64,
    /// Congestion window at its beginning, in bytes.
    pub(super) cwnd: i64,
    /// Largest number of bytes in flight.
    pub(super) flight: i64,
    /// Payload bytes sent, those sent again included.
    pub(super) sent: i64,
    /// Those sent again.
    pub(super) again: i64,
    /// Bytes newly acknowledged.
    pub(super) acked: i64,
    /// Acknowledgments that moved the window.
    pub(super) acks: i64,
    /// Least round-trip time measured, in nanoseconds; `None` without a measurement.
    pub(super) min_rtt: Option<i64>,
    /// The largest.
    pub(super) max_rtt: Option<i64>,
}

/// The rounds of a flow.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    done: Vec<Round>,
    now: Option<Round>,
    /// What was under way when the round began ends here.
    mark: u64,
    /// Nothing was under way then: what leaves before the first acknowledgment is the round, which
    /// ends when all of it is acknowledged.
    is_flight: bool,
    left_out: u64,
}

impl Round {
    /// Goes on with a round that began when this one ended.
    fn take(&mut self, next: &Self) {
        self.to = next.to;
        self.flight = self.flight.max(next.flight);
        self.acked += next.acked;
        self.acks += next.acks;
        self.min_rtt = self.min_rtt.into_iter().chain(next.min_rtt).min();
        self.max_rtt = self.max_rtt.max(next.max_rtt);
    }
}

impl Rounds {
    pub(super) fn record(&mut self, at: i64, event: Event, state: Option<&SenderState>) {
        if let (Event::RttSample { rtt }, Some(round)) = (event, &mut self.now) {
            let rtt = span(rtt);
            round.min_rtt = Some(round.min_rtt.map_or(rtt, |least| least.min(rtt)));
            round.max_rtt = Some(round.max_rtt.map_or(rtt, |most| most.max(rtt)));
        }
        let Some(state) = state else { return };
        let began = match event {
            Event::Sent { kind: SentKind::New | SentKind::Again(_), len, .. } => len > 0,
            _ => false,
        };
        if began && self.now.is_none() {
            self.begin(at, state);
            self.is_flight = true;
        }
        let Some(round) = &mut self.now else { return };
        round.flight = round.flight.max(amount(state.flight().get()));
        if self.is_flight && round.acks == 0 {
            self.mark = self.mark.max(state.snd_max.0);
        }
        match event {
            Event::Sent { len, kind: SentKind::New, .. } => round.sent += i64::from(len),
            Event::Sent { len, kind: SentKind::Again(_), .. } => {
                round.sent += i64::from(len);
                round.again += i64::from(len);
            }
            Event::Acked { una, bytes, .. } => {
                round.acked += i64::from(bytes);
                round.acks += 1;
                let beyond = una.0 > self.mark || (self.is_flight && una.0 == self.mark);
                let is_idle = state.snd_max <= state.snd_una;
                if beyond || is_idle {
                    self.end(at);
                    if !is_idle {
                        self.begin(at, state);
                    }
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, at: i64, state: &SenderState) {
        self.now = Some(Round {
            from: at,
            cwnd: amount(state.cwnd.get()),
            flight: amount(state.flight().get()),
            ..Round::default()
        });
        self.mark = state.snd_max.0.max(state.snd_una.0 + 1);
        self.is_flight = false;
    }

    fn end(&mut self, at: i64) {
        let Some(mut round) = self.now.take() else { return };
        round.to = at;
        if let Some(last) = self.done.last_mut()
            && round.sent == 0
            && last.to == round.from
        {
            // The rest of what the one before had sent: behind a hole that was filled, say, or
            // at the end of a transfer.
            last.take(&round);
        } else if self.done.len() < KEPT {
            self.done.push(round);
        } else {
            self.left_out += 1;
        }
    }

    /// The rounds, and how many more there were.
    pub(super) fn finish(self) -> (Vec<Round>, u64) {
        (self.done, self.left_out)
    }
}
