//! Round trip by round trip, as RFC 9406 section 4.2 cuts them: a round ends when all has been
//! acknowledged that was under way when it began.

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
    /// Acknowledged, this ends the round.
    mark: u64,
    /// Nothing was under way when it began: what leaves before the first acknowledgment belongs
    /// to it.
    is_flight: bool,
    left_out: u64,
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
                if una.0 >= self.mark {
                    self.end(at);
                    if state.snd_max > state.snd_una {
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
        if self.done.len() < KEPT {
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
