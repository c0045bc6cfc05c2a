//! Delivery-rate samples and pacing for a rate-based controller (BBR), from the events of the
//! recorded sender.
//!
//! Source: tcp_rate.c of Linux 6.18, as in `recovery::delivery_rate`. Here the packets are
//! identified by the event that delivered them, whose round-trip time gives the send time of the
//! newest. Application limits and the departure time of the next paced packet are unknown.

use std::collections::VecDeque;

use cc::{DeliveryRate, LostSegment, PathSignals, RateSample, TxSample};
use diagnose::sender_events::SenderEvent;
use units::{Duration, Instant};

/// Deliveries and rates older than this many round trips are dropped.
const KEPT: u64 = 8;

/// An acknowledgment that delivered something.
#[derive(Debug, Clone, Copy)]
struct ReplayDelivery {
    at: Instant,
    /// Packets delivered by then, the SYN included.
    total: u64,
    /// Send time of the newest of them (`first_tx_mstamp`).
    left: Instant,
    /// Packets lost by then, and the largest flight in packets until the next event.
    lost: u64,
    flight: u64,
}

/// Deliveries and pacing of one sender.
#[derive(Debug, Clone)]
pub(crate) struct ReplayRates {
    mss: u64,
    deliveries: VecDeque<ReplayDelivery>,
    total: u64,
    /// Bytes that pacing had allowed at several times, and the rate since the last.
    paced: VecDeque<(Instant, u64)>,
    rate: u64,
    /// Last and minimum round-trip time.
    rtt: Duration,
    min_rtt: Duration,
    /// Packets in flight after the previous event.
    flight_bytes: u64,
    /// Packets lost in total: those retransmitted; and those that no sample has reported.
    lost: u64,
    unreported: u64,
}

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Bytes in `time` at a rate in bytes per second.
fn bytes_in(rate: u64, time: Duration) -> u64 {
    units::ratio::scaled(rate, time.as_nanos(), 1_000_000_000)
}

impl ReplayRates {
    /// Starts with the first data sent at `at`.
    pub(crate) fn new(at: Instant, mss: u64) -> Self {
        let first = ReplayDelivery { at, total: 1, left: at, lost: 0, flight: 0 };
        Self {
            mss: mss.max(1),
            deliveries: VecDeque::from([first]),
            total: 1,
            paced: VecDeque::new(),
            rate: 0,
            rtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            flight_bytes: 0,
            lost: 0,
            unreported: 0,
        }
    }

    /// Restarts after an idle period: nothing was in flight before `at`.
    pub(crate) fn restart(&mut self, at: Instant) {
        let (total, lost) = (self.total, self.lost);
        self.deliveries.push_back(ReplayDelivery { at, total, left: at, lost, flight: 0 });
    }

    /// The last delivery before the packets that an event with this round trip delivers were sent.
    fn before(&self, turn: &SenderEvent) -> Option<&ReplayDelivery> {
        let rtt = if turn.rtt.is_zero() { self.rtt } else { turn.rtt };
        let sent = turn.at.saturating_sub(rtt);
        let before = self.deliveries.partition_point(|one| one.at <= sent).saturating_sub(1);
        self.deliveries.get(before)
    }

    /// Counts what an event shows to be lost, by what is retransmitted after it; `None` without.
    pub(crate) fn lose(&mut self, turn: &SenderEvent) -> Option<LostSegment> {
        let packets = turn.retransmitted.div_ceil(self.mss);
        if packets == 0 {
            return None;
        }
        self.lost += packets;
        self.unreported += packets;
        let before = self.before(turn)?;
        Some(LostSegment {
            now: turn.at,
            packets: narrow(packets),
            in_flight: narrow(before.flight),
            lost_since: narrow(self.lost - before.lost),
            app_limited: false,
            sacked_before: false,
            delivered: self.total,
        })
    }

    /// Returns the rate sample of an event that delivered data; `limited`: the window limits the flight.
    pub(crate) fn sample(
        &mut self,
        turn: &SenderEvent,
        srtt: Duration,
        ticks: u64,
        limited: bool,
    ) -> RateSample {
        let packets = turn.delivered.div_ceil(self.mss);
        self.total += packets;
        let mut left = self.deliveries.back().map_or(turn.at, |last| last.left);
        let mut rate = None;
        let mut tx = TxSample::default();
        if let Some(before) = self.before(turn) {
            tx.in_flight = narrow(before.flight);
            tx.lost = narrow(self.lost - before.lost);
            tx.delivered = narrow(self.total - before.total);
        }
        if !turn.rtt.is_zero() {
            (self.rtt, self.min_rtt) = (turn.rtt, self.min_rtt.min(turn.rtt));
            let sent = turn.at.saturating_sub(turn.rtt);
            let before = self.deliveries.partition_point(|one| one.at <= sent).saturating_sub(1);
            if let Some(before) = self.deliveries.get(before) {
                let interval = sent.since(before.left).max(turn.at.since(before.at));
                rate = (interval >= self.min_rtt).then_some(DeliveryRate {
                    delivered: narrow(self.total - before.total),
                    interval_us: narrow(interval.as_micros()),
                    prior_delivered: before.total,
                    app_limited: false,
                });
            }
            left = left.max(sent);
        }
        let (at, total, lost) = (turn.at, self.total, self.lost);
        let flight = turn.flight.div_ceil(self.mss);
        self.deliveries.push_back(ReplayDelivery { at, total, left, lost, flight });
        self.forget(turn.at);
        RateSample {
            ticks,
            rate,
            acked: narrow(packets),
            losses: narrow(core::mem::take(&mut self.unreported)),
            delivered: self.total,
            lost: self.lost,
            delivered_at: turn.at,
            delivered_clock: turn.at.as_nanos(),
            rtt_us: (!turn.rtt.is_zero()).then(|| narrow(turn.rtt.as_micros())),
            ack_delayed: turn.delivered < self.mss,
            srtt_us: narrow(srtt.as_micros()),
            prior_in_flight: narrow(self.flight_bytes),
            in_flight: narrow(self.flight_bytes.saturating_sub(packets)),
            until_next_departure: Duration::ZERO,
            signals: PathSignals { now: at, tx, window_limited: limited, ..PathSignals::NONE },
        }
    }

    fn forget(&mut self, now: Instant) {
        let old = now.saturating_sub(self.rtt * KEPT);
        while self.deliveries.get(1).is_some_and(|second| second.at < old) {
            self.deliveries.pop_front();
        }
        while self.paced.get(1).is_some_and(|second| second.0 < old) {
            self.paced.pop_front();
        }
    }

    /// Sets the pacing rate from `turn` on, in bytes per second; 0 disables pacing.
    pub(crate) fn pace(&mut self, turn: &SenderEvent, rate: u64) {
        let so_far = self.paced_bytes(turn.at);
        self.paced.push_back((turn.at, so_far));
        self.rate = rate;
        self.flight_bytes = turn.flight.div_ceil(self.mss);
    }

    /// Returns the bytes that pacing had allowed by `at`, not before the last rate change.
    fn paced_bytes(&self, at: Instant) -> u64 {
        self.paced.back().map_or(0, |&(then, bytes)| bytes + bytes_in(self.rate, at.since(then)))
    }

    /// Returns the maximum flight after `turn` by pacing: the bytes allowed in a round trip. `None`
    /// before a full round trip of pacing.
    pub(crate) fn paced_flight(&self, turn: &SenderEvent) -> Option<u64> {
        let reaches_back = turn.at.since(Instant::ZERO) >= self.rtt && !self.rtt.is_zero();
        let from = reaches_back.then(|| turn.at.saturating_sub(self.rtt))?;
        let next = self.paced.partition_point(|&(at, _)| at <= from);
        let (then, bytes) = *self.paced.get(next.checked_sub(1)?)?;
        // The rate is constant between two events.
        let before = match self.paced.get(next) {
            Some(&(later, more)) => {
                let [part, whole] = [from, later].map(|to| to.since(then).as_nanos());
                bytes + units::ratio::scaled(more - bytes, part, whole.max(1))
            }
            None => bytes + bytes_in(self.rate, from.since(then)),
        };
        Some(self.paced_bytes(turn.at) - before)
    }
}

#[cfg(test)]
mod tests {
    use diagnose::sender_events::SenderEventKind;
    use units::Offset;

    use super::*;

    fn turn(ms: u64, delivered: u64, rtt_ms: u64, flight: u64) -> SenderEvent {
        SenderEvent {
            at: Instant::ZERO + Duration::from_millis(ms),
            what: SenderEventKind::Acked,
            una: Offset(1),
            nxt: Offset(1),
            acked: delivered,
            delivered,
            late: 0,
            rtt: Duration::from_millis(rtt_ms),
            window: 1 << 20,
            flight,
            retransmitted: 0,
        }
    }

    #[test]
    fn a_rate_covers_deliveries_since_the_newest_packet_was_sent() {
        let mut rates = ReplayRates::new(Instant::ZERO, 1_000);
        // Two packets of the initial burst, delivered after ten milliseconds.
        let rate =
            rates.sample(&turn(10, 2_000, 10, 10_000), Duration::ZERO, 0, false).rate.unwrap();
        assert_eq!((rate.delivered, rate.interval_us, rate.prior_delivered), (2, 10_000, 1));
        // The other eight, a millisecond later.
        let rate =
            rates.sample(&turn(11, 8_000, 11, 10_000), Duration::ZERO, 0, false).rate.unwrap();
        assert_eq!((rate.delivered, rate.interval_us), (10, 11_000));
        // Packets sent at 10 ms had three delivered before them.
        let rate = rates.sample(&turn(20, 4_000, 10, 0), Duration::ZERO, 0, false).rate.unwrap();
        assert_eq!((rate.delivered, rate.interval_us, rate.prior_delivered), (12, 10_000, 3));
        // A retransmission gives no rate sample.
        assert_eq!(rates.sample(&turn(21, 1_000, 0, 0), Duration::ZERO, 0, false).rate, None);
    }

    #[test]
    fn a_loss_is_reported_once_with_the_flight_it_was_sent_in() {
        let mut rates = ReplayRates::new(Instant::ZERO, 1_000);
        let sample = |rates: &mut ReplayRates, turn: &SenderEvent| {
            rates.sample(turn, Duration::ZERO, 0, false)
        };
        let _ = sample(&mut rates, &turn(10, 2_000, 10, 12_000));
        assert_eq!(rates.lose(&turn(20, 1_000, 10, 12_000)), None);
        let lossy = SenderEvent { retransmitted: 2_000, ..turn(20, 1_000, 10, 12_000) };
        let lost = rates.lose(&lossy).unwrap();
        assert_eq!((lost.packets, lost.in_flight, lost.lost_since), (2, 12, 2));
        let reported = sample(&mut rates, &lossy);
        assert_eq!((reported.losses, reported.lost, reported.signals.tx.lost), (2, 2, 2));
        assert_eq!(sample(&mut rates, &turn(21, 1_000, 10, 12_000)).losses, 0);
    }

    #[test]
    fn paced_flight_is_the_bytes_of_a_round_trip() {
        let mut rates = ReplayRates::new(Instant::ZERO, 1_000);
        let _ = rates.sample(&turn(10, 1_000, 10, 0), Duration::ZERO, 0, false);
        assert_eq!(rates.paced_flight(&turn(10, 0, 0, 0)), None);
        rates.pace(&turn(10, 0, 0, 0), 1_000_000);
        rates.pace(&turn(15, 0, 0, 0), 2_000_000);
        // 5 ms at 1 MB/s, and 5 at 2.
        assert_eq!(rates.paced_flight(&turn(20, 0, 0, 0)), Some(15_000));
        assert_eq!(rates.paced_flight(&turn(22, 0, 0, 0)), Some(17_000));
        assert_eq!(rates.paced_flight(&turn(30, 0, 0, 0)), Some(20_000));
    }
}
