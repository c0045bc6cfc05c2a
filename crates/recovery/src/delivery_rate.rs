//! Delivery rates: how fast the network delivered, from when a packet left to its acknowledgment.
//!
//! Source: tcp_rate.c of Linux 6.18 (tcp_rate_skb_sent, tcp_rate_skb_delivered, tcp_rate_gen,
//! tcp_rate_check_app_limited); Cheng, Cardwell, Yeganeh and Jacobson, "Delivery Rate Estimation",
//! draft-cheng-iccrg-delivery-rate-estimation.
//!
//! A packet takes along what had been delivered when it left, and when. What an acknowledgment
//! delivers tells of the newest of these packets: the packets delivered since, over the longer of the
//! times in which they were sent and were acknowledged. Times are whole microseconds, as the kernel's.

use std::collections::VecDeque;

use units::{Duration, Instant, Offset};

use crate::sendmap::SendMap;

/// What a packet takes along (`TCP_SKB_CB(skb)->tx`).
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Sent {
    /// Behind its last byte.
    end: Offset,
    /// When it left last.
    at: u64,
    /// When the packet left that was the newest delivered then (`first_tx_mstamp`).
    first: u64,
    /// When something was delivered last before (`delivered_mstamp`).
    delivered_at: u64,
    /// What was delivered by then.
    delivered: u64,
    app_limited: bool,
    /// It was reported: what it tells was told.
    told: bool,
}

/// The newest packet that the acknowledgment at hand has delivered (`struct rate_sample`).
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Newest {
    packet: Sent,
    /// Microseconds in which the packets were sent.
    interval: u64,
}

/// What was delivered since a packet had left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Packets delivered in that time.
    pub delivered: u64,
    /// Microseconds of it.
    pub interval_us: u64,
    /// What had been delivered in all when it left.
    pub prior_delivered: u64,
    /// The application held the sender back when it left.
    pub app_limited: bool,
}

/// The rates of one connection.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub struct DeliveryRates {
    /// What is under way, in the order of the stream; the first begins at `una`.
    sent: VecDeque<Sent>,
    una: Offset,
    /// Behind the last of it.
    end: Offset,
    /// When the newest packet delivered had left (`tp->first_tx_mstamp`).
    first: u64,
    /// When something was delivered last (`tp->delivered_mstamp`).
    delivered_at: u64,
    /// Packets ever delivered, the SYN included (`tp->delivered`).
    delivered: u64,
    /// Until so much is delivered the application has held the sender back (`tp->app_limited`).
    app_limited: Option<u64>,
    newest: Option<Newest>,
}

const fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1_000
}

impl DeliveryRates {
    /// The handshake is over; data begins behind `una`.
    pub fn new(now: Instant, una: Offset) -> Self {
        Self {
            sent: VecDeque::new(),
            una,
            end: una,
            first: micros(now),
            delivered_at: micros(now),
            delivered: 1,
            app_limited: None,
            newest: None,
        }
    }

    /// Packets ever delivered, the SYN included.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When the last one was.
    pub const fn delivered_at(&self) -> Instant {
        Instant::from_nanos(1_000 * self.delivered_at)
    }

    /// Does the application hold the sender back?
    pub const fn app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// Packets were appended to the map: they left (tcp_rate_skb_sent).
    pub fn on_sent(&mut self, map: &SendMap) {
        let new = map.iter().rev().take_while(|piece| piece.end() > self.end).count();
        let before = map.sums().all.packets as usize - new;
        for piece in map.iter().skip(before) {
            let at = micros(piece.sent_at());
            if self.sent.is_empty() {
                (self.first, self.delivered_at) = (at, at);
            }
            let sent = self.note(piece.end(), at);
            self.sent.push_back(sent);
        }
        self.end = map.last().map_or(self.end, |last| last.end());
    }

    const fn note(&self, end: Offset, at: u64) -> Sent {
        Sent {
            end,
            at,
            first: self.first,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            app_limited: self.app_limited.is_some(),
            told: false,
        }
    }

    /// `[start, end)` left again.
    pub fn on_resent(&mut self, start: Offset, end: Offset, now: Instant) {
        self.cut(start);
        self.cut(end);
        let from = self.sent.partition_point(|sent| sent.end <= start);
        for at in from..self.sent.len() {
            let sent = self.sent[at];
            if sent.end > end {
                break;
            }
            let told = sent.told;
            self.sent[at] = Sent { told, ..self.note(sent.end, micros(now)) };
        }
    }

    /// A packet ends at `place`, as it does in the map: one that holds it becomes two.
    fn cut(&mut self, place: Offset) {
        let at = self.sent.partition_point(|sent| sent.end < place);
        if let Some(&sent) = self.sent.get(at).filter(|sent| sent.end > place && place > self.una) {
            self.sent.insert(at, Sent { end: place, ..sent });
        }
    }

    /// The packet that ends at `end` was delivered, acknowledged or `reported`
    /// (tcp_rate_skb_delivered).
    pub fn on_delivered(&mut self, end: Offset, reported: bool) {
        let front = self.sent.front().is_some_and(|sent| sent.end == end);
        let at = if front { 0 } else { self.sent.partition_point(|sent| sent.end < end) };
        let Some(sent) = self.sent.get_mut(at).filter(|sent| sent.end == end && !sent.told) else {
            return;
        };
        sent.told = reported;
        let packet = *sent;
        // Sent after the newest so far; that told when it had left.
        let newer = |newest: &Newest| (packet.at, packet.end) > (self.first, newest.packet.end);
        if self.newest.as_ref().is_none_or(newer) {
            self.first = packet.at;
            let interval = packet.at.saturating_sub(packet.first);
            self.newest = Some(Newest { packet, interval });
        }
    }

    /// All before `una` is acknowledged, and was told of.
    pub fn acknowledge(&mut self, una: Offset) {
        self.una = self.una.max(una);
        while self.sent.front().is_some_and(|sent| sent.end <= una) {
            self.sent.pop_front();
        }
    }

    /// The acknowledgment is worked off: it delivered so many packets (tcp_rate_gen). The rate cannot
    /// be told where nothing was delivered, in less time than the least round trip, or while the
    /// receiver drops what it reported.
    pub fn generate(
        &mut self,
        now: Instant,
        packets: u64,
        min_rtt: Option<Duration>,
        reneged: bool,
    ) -> Option<Rate> {
        self.delivered += packets;
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        if packets > 0 {
            self.delivered_at = micros(now);
        }
        let Newest { packet, interval } = self.newest.take().filter(|_| !reneged)?;
        let acknowledged = micros(now).saturating_sub(packet.delivered_at);
        let interval_us = interval.max(acknowledged);
        let least = min_rtt.map_or(u64::MAX, |rtt| rtt.as_micros());
        (interval_us >= least).then_some(Rate {
            delivered: self.delivered - packet.delivered,
            interval_us,
            prior_delivered: packet.delivered,
            app_limited: packet.app_limited,
        })
    }

    /// The application writes, with less than a packet unsent, room in the window and nothing that
    /// waits to go again: it has held the sender back (tcp_rate_check_app_limited).
    pub fn limit_by_application(&mut self, in_flight: u64) {
        self.app_limited = Some(self.delivered + in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Packets of 1,000 bytes, the first at 1.
    struct World {
        map: SendMap,
        rates: DeliveryRates,
        next: u64,
    }

    impl World {
        fn new() -> Self {
            let rates = DeliveryRates::new(at(0), Offset(1));
            Self { map: SendMap::new(), rates, next: 1 }
        }

        fn send(&mut self, packets: u64, ms: u64) {
            for _ in 0..packets {
                self.map.push(Offset(self.next), Offset(self.next + 1_000), at(ms));
                self.next += 1_000;
            }
            self.rates.on_sent(&self.map);
        }

        fn ack(&mut self, packets: u64, ms: u64) -> Option<Rate> {
            let (map, rates) = (&mut self.map, &mut self.rates);
            let una = Offset(map.first().unwrap().start().0 + 1_000 * packets);
            let mut count = 0;
            map.acknowledge(una, |piece| {
                count += u64::from(!piece.sacked());
                rates.on_delivered(piece.end(), false);
            });
            rates.acknowledge(una);
            rates.generate(at(ms), count, Some(Duration::from_millis(5)), false)
        }

        fn report(&mut self, from: u64, to: u64, ms: u64) -> Option<Rate> {
            let (map, rates) = (&mut self.map, &mut self.rates);
            let block = (Offset(1 + 1_000 * from), Offset(1 + 1_000 * to));
            let count =
                map.apply_sack(&[block], |piece| rates.on_delivered(piece.end(), true)).packets;
            rates.generate(at(ms), count, Some(Duration::from_millis(5)), false)
        }
    }

    #[test]
    fn a_rate_is_what_was_delivered_since_the_newest_packet_left() {
        let mut world = World::new();
        world.send(10, 0);
        // Two packets in the 10 ms since they left; the SYN had been delivered before.
        let rate = world.ack(2, 10).unwrap();
        let first =
            Rate { delivered: 2, interval_us: 10_000, prior_delivered: 1, app_limited: false };
        assert_eq!(rate, first);
        world.send(4, 10);
        // The other eight, one more millisecond later.
        assert_eq!(world.ack(8, 11).unwrap(), Rate { delivered: 10, interval_us: 11_000, ..first });
        // Those sent at 10 ms had 3 delivered before them: 12 since, of them 8 in between.
        let rate = world.ack(4, 20).unwrap();
        assert_eq!((rate.delivered, rate.interval_us, rate.prior_delivered), (12, 10_000, 3));
    }

    #[test]
    fn the_time_in_which_they_were_sent_counts_where_acknowledgments_come_at_once() {
        let mut world = World::new();
        world.send(1, 0);
        assert!(world.ack(1, 10).is_some());
        // Nothing was under way: a new beginning.
        world.send(1, 20);
        world.send(1, 21);
        let rate = world.ack(1, 40).unwrap();
        assert_eq!((rate.delivered, rate.interval_us), (1, 20_000));
        // It leaves 21 ms after the one that was delivered before it, and is back in 10.
        world.send(1, 41);
        let rate = world.ack(2, 50).unwrap();
        assert_eq!((rate.delivered, rate.interval_us, rate.prior_delivered), (2, 21_000, 3));
    }

    #[test]
    fn what_was_reported_is_told_once() {
        let mut world = World::new();
        world.send(4, 0);
        let rate = world.report(2, 4, 10).unwrap();
        assert_eq!((rate.delivered, rate.prior_delivered), (2, 1));
        // Of the four acknowledged two are new, and these left no later than what was reported.
        let rate = world.ack(4, 12).unwrap();
        assert_eq!((rate.delivered, rate.interval_us), (4, 12_000));
        assert_eq!(world.rates.delivered(), 5);
        // An acknowledgment that delivers nothing tells nothing.
        assert_eq!(world.rates.generate(at(13), 0, Some(Duration::ZERO), false), None);
    }

    #[test]
    fn one_sent_again_tells_of_its_last_transmission() {
        let mut world = World::new();
        world.send(4, 0);
        assert!(world.report(1, 4, 10).is_some());
        world.map.resend(Offset(1), Offset(1_001), at(11), false);
        world.rates.on_resent(Offset(1), Offset(1_001), at(11));
        let rate = world.ack(4, 21).unwrap();
        // 4 had been delivered by 10 ms; one more in 11 ms.
        assert_eq!((rate.delivered, rate.interval_us, rate.prior_delivered), (1, 11_000, 4));
    }

    #[test]
    fn sooner_than_the_least_round_trip_nothing_can_be_told() {
        let mut world = World::new();
        world.send(1, 0);
        assert_eq!(world.ack(1, 4), None);
        assert_eq!((world.rates.delivered(), world.rates.delivered_at()), (2, at(4)));
    }

    #[test]
    fn an_application_that_writes_late_marks_what_follows_until_that_is_delivered() {
        let mut world = World::new();
        world.send(2, 0);
        world.rates.limit_by_application(2);
        world.send(1, 1);
        assert!(!world.ack(2, 10).unwrap().app_limited);
        assert!(world.rates.app_limited());
        let rate = world.ack(1, 11).unwrap();
        assert!(rate.app_limited && !world.rates.app_limited());
    }

    #[test]
    fn a_packet_cut_in_two_tells_of_both_parts() {
        let mut world = World::new();
        world.send(2, 0);
        world.map.resend(Offset(1_001), Offset(1_501), at(5), false);
        world.rates.on_resent(Offset(1_001), Offset(1_501), at(5));
        assert!(world.ack(1, 10).is_some());
        let rate = world.report(1, 2, 11);
        assert_eq!(rate.map(|rate| rate.delivered), Some(3));
    }
}
