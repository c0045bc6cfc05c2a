//! Round trips, divided as in RFC 9406 section 4.2: a round ends when more is acknowledged than was
//! in flight at its start, so that data sent in it has been acknowledged.

use record::{Event, SenderState, SentKind};

use super::{amount, span};

/// Limit of the listed rounds.
const KEPT: usize = 20_000;

/// A round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RoundRow {
    /// Start in nanoseconds.
    pub(super) from: i64,
    /// End in nanoseconds.
    pub(super) to: i64,
    /// Congestion window at the start, in bytes.
    pub(super) cwnd: i64,
    /// Largest number of bytes in flight.
    pub(super) flight: i64,
    /// Payload bytes sent, retransmissions included.
    pub(super) sent: i64,
    /// Payload bytes retransmitted.
    pub(super) retransmitted: i64,
    /// Bytes newly acknowledged.
    pub(super) acked: i64,
    /// Acknowledgments that advanced `snd_una`.
    pub(super) acks: i64,
    /// Smallest round-trip sample in nanoseconds; `None` without a sample.
    pub(super) min_rtt: Option<i64>,
    /// Largest round-trip sample.
    pub(super) max_rtt: Option<i64>,
}

/// The rounds of a flow.
#[derive(Debug, Default)]
pub(super) struct RoundTracker {
    done: Vec<RoundRow>,
    now: Option<RoundRow>,
    /// End of the data in flight at the start of the round.
    mark: u64,
    /// Nothing was in flight then: the data sent before the first acknowledgment is the round,
    /// which ends when all of it is acknowledged.
    is_flight: bool,
    left_out: u64,
}

impl RoundRow {
    /// Merges the next round into this one.
    fn take(&mut self, next: &Self) {
        self.to = next.to;
        self.flight = self.flight.max(next.flight);
        self.acked += next.acked;
        self.acks += next.acks;
        self.min_rtt = self.min_rtt.into_iter().chain(next.min_rtt).min();
        self.max_rtt = self.max_rtt.max(next.max_rtt);
    }
}

impl RoundTracker {
    pub(super) fn record(&mut self, at: i64, event: Event, state: Option<&SenderState>) {
        if let (Event::RttSample { rtt }, Some(round)) = (event, &mut self.now) {
            let rtt = span(rtt);
            round.min_rtt = Some(round.min_rtt.map_or(rtt, |least| least.min(rtt)));
            round.max_rtt = Some(round.max_rtt.map_or(rtt, |most| most.max(rtt)));
        }
        let Some(state) = state else { return };
        let began = match event {
            Event::Sent { kind: SentKind::New | SentKind::Retransmission(_), len, .. } => len > 0,
            _ => false,
        };
        if began && self.now.is_none() {
            self.begin(at, state);
            self.is_flight = true;
        }
        let Some(round) = &mut self.now else { return };
        round.flight = round.flight.max(amount(state.flight_size().get()));
        if self.is_flight && round.acks == 0 {
            self.mark = self.mark.max(state.snd_max.0);
        }
        match event {
            Event::Sent { len, kind: SentKind::New, .. } => round.sent += i64::from(len),
            Event::Sent { len, kind: SentKind::Retransmission(_), .. } => {
                round.sent += i64::from(len);
                round.retransmitted += i64::from(len);
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
        self.now = Some(RoundRow {
            from: at,
            cwnd: amount(state.cwnd.get()),
            flight: amount(state.flight_size().get()),
            ..RoundRow::default()
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
            // The rest of the previous round's data: after a filled hole, for example, or at the
            // end of a transfer.
            last.take(&round);
        } else if self.done.len() < KEPT {
            self.done.push(round);
        } else {
            self.left_out += 1;
        }
    }

    /// The rounds, and the number of rounds not kept.
    pub(super) fn finish(self) -> (Vec<RoundRow>, u64) {
        (self.done, self.left_out)
    }
}
