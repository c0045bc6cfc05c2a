//! Delivery rate estimation.
//!
//! Source: tcp_rate.c of Linux 6.18 (tcp_rate_skb_sent, tcp_rate_skb_delivered, tcp_rate_gen,
//! tcp_rate_check_app_limited); Cheng, Cardwell, Yeganeh and Jacobson, "Delivery Rate Estimation",
//! draft-cheng-iccrg-delivery-rate-estimation.
//!
//! Each packet records how much had been delivered when it was sent, and when. A rate sample comes
//! from the newest packet that an acknowledgment delivers: the packets delivered since it was sent,
//! divided by the longer of the send and ACK intervals. Times are whole microseconds, as in the
//! kernel.

mod in_flight;

use std::collections::VecDeque;

pub use in_flight::{LostPacket, TxContext, TxInterval};
use units::{Duration, Instant, Offset};

use crate::sendmap::SendMap;

/// The delivery state recorded when a packet is sent (`TCP_SKB_CB(skb)->tx`).
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
struct PacketTxState {
    /// Sequence end.
    end: Offset,
    /// Time of the last transmission.
    at: u64,
    /// Send time of the newest packet delivered by then (`first_tx_mstamp`).
    first: u64,
    /// Time of the last delivery by then (`delivered_mstamp`).
    delivered_at: u64,
    /// Packets delivered by then.
    delivered: u64,
    app_limited: bool,
    /// Packets in flight when the burst was sent, this one and those before it in the burst included
    /// (`in_flight`).
    in_flight: u32,
    /// Packets lost, and delivered with an echo of congestion, by then (`lost`, `delivered_ce`).
    lost: u32,
    delivered_ce: u32,
    /// The packet was SACKed: its sample has been taken.
    sacked: bool,
    /// The next packet is of the same burst (`sk_buff`).
    more: bool,
}

/// The newest packet delivered by the current acknowledgment (`struct rate_sample`).
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
struct NewestDelivered {
    packet: PacketTxState,
    /// Send interval in microseconds.
    interval: u64,
    /// Its index among the packets in flight.
    at: usize,
    /// Packets in flight with its burst, where that is no longer what the burst says.
    in_flight: Option<u32>,
}

/// A delivery rate sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryRateSample {
    /// Packets delivered in the interval.
    pub delivered: u64,
    /// Interval in microseconds.
    pub interval_us: u64,
    /// Packets delivered in total when the packet was sent.
    pub prior_delivered: u64,
    /// The sender was application-limited when the packet was sent.
    pub app_limited: bool,
}

/// The delivery rate estimator of one connection.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub struct DeliveryRates {
    /// Packets in flight, in sequence order; the first begins at `una`.
    sent: VecDeque<PacketTxState>,
    una: Offset,
    /// End of the last of them.
    end: Offset,
    /// Send time of the newest packet delivered (`tp->first_tx_mstamp`).
    first: u64,
    /// Time of the last delivery (`tp->delivered_mstamp`).
    delivered_at: u64,
    /// Packets delivered in total, the SYN included (`tp->delivered`).
    delivered: u64,
    /// The sender is application-limited until this number of packets is delivered
    /// (`tp->app_limited`).
    app_limited: Option<u64>,
    newest: Option<NewestDelivered>,
    /// Packets delivered in total with an echo of congestion (`tp->delivered_ce`).
    delivered_ce: u64,
    /// Indices of the packets that the current acknowledgment has SACKed, one after the other.
    reported: Option<(usize, usize)>,
    /// What the last acknowledgment says of the newest packet that it delivered.
    interval: TxInterval,
}

const fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1_000
}

impl DeliveryRates {
    /// The handshake has completed; data begins at `una`.
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
            delivered_ce: 0,
            reported: None,
            interval: TxInterval::default(),
        }
    }

    /// Packets delivered in total, the SYN included.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Packets that had been delivered when the newest packet that the current acknowledgment delivers was sent
    /// (`rs->prior_delivered` before tcp_rate_gen).
    pub fn prior_delivered(&self) -> Option<u64> {
        self.newest.as_ref().map(|newest| newest.packet.delivered)
    }

    /// Time of the last delivery.
    pub const fn delivered_at(&self) -> Instant {
        Instant::from_nanos(1_000 * self.delivered_at)
    }

    /// True while the sender is application-limited.
    pub const fn app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// New packets were sent in a burst and appended to the map (tcp_rate_skb_sent).
    pub fn on_sent(&mut self, map: &SendMap) {
        let context = TxContext::of(map);
        let new = map.iter().rev().take_while(|segment| segment.end() > self.end).count();
        let before = map.sums().all.packets as usize - new;
        for (nth, segment) in map.iter().skip(before).enumerate() {
            let at = micros(segment.sent_at());
            if self.sent.is_empty() {
                (self.first, self.delivered_at) = (at, at);
            }
            let sent = self.tx_state(segment.end(), at);
            self.sent.push_back(context.of_burst(sent, nth, new));
        }
        self.end = map.last().map_or(self.end, |last| last.end());
    }

    const fn tx_state(&self, end: Offset, at: u64) -> PacketTxState {
        PacketTxState {
            end,
            at,
            first: self.first,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            app_limited: self.app_limited.is_some(),
            in_flight: 0,
            lost: 0,
            delivered_ce: self.delivered_ce as u32,
            sacked: false,
            more: false,
        }
    }

    /// `[start, end)` was retransmitted, as the map knows.
    pub fn on_retransmitted(&mut self, map: &SendMap, start: Offset, end: Offset, now: Instant) {
        self.split_at(start);
        self.split_at(end);
        let context = TxContext::of(map);
        let from = self.sent.partition_point(|sent| sent.end <= start);
        let until = self.sent.partition_point(|sent| sent.end <= end);
        if let Some(before) = from.checked_sub(1) {
            self.sent[before].more = false;
        }
        for at in from..until {
            let sent = self.sent[at];
            let again =
                PacketTxState { sacked: sent.sacked, ..self.tx_state(sent.end, micros(now)) };
            self.sent[at] = context.of_burst(again, at - from, until - from);
        }
    }

    /// Splits the packet that contains `place`, as the send map does.
    fn split_at(&mut self, place: Offset) {
        let at = self.sent.partition_point(|sent| sent.end < place);
        if let Some(&sent) = self.sent.get(at).filter(|sent| sent.end > place && place > self.una) {
            self.sent.insert(at, PacketTxState { end: place, more: true, ..sent });
        }
    }

    /// The packet that ends at `end` was acknowledged, or SACKed if `reported`
    /// (tcp_rate_skb_delivered).
    pub fn on_delivered(&mut self, end: Offset, reported: bool) {
        let front = self.sent.front().is_some_and(|sent| sent.end == end);
        let at = if front { 0 } else { self.sent.partition_point(|sent| sent.end < end) };
        let Some(sent) = self.sent.get_mut(at).filter(|sent| sent.end == end && !sent.sacked)
        else {
            return;
        };
        sent.sacked = reported;
        let packet = *sent;
        if reported {
            self.report(at);
        }
        // Sent after the newest so far.
        let newer =
            |newest: &NewestDelivered| (packet.at, packet.end) > (self.first, newest.packet.end);
        if self.newest.as_ref().is_none_or(newer) {
            self.first = packet.at;
            let interval = packet.at.saturating_sub(packet.first);
            self.newest = Some(NewestDelivered { packet, interval, at, in_flight: None });
        }
    }

    /// All data before `una` was acknowledged and passed to [`DeliveryRates::on_delivered`].
    pub fn acknowledge(&mut self, una: Offset) {
        self.una = self.una.max(una);
        self.settle_newest();
        while self.sent.front().is_some_and(|sent| sent.end <= una) {
            self.sent.pop_front();
        }
    }

    /// Completes the processing of an acknowledgment that delivered `packets` packets
    /// (tcp_rate_gen). There is no sample if nothing was delivered, the interval is shorter than
    /// the minimum RTT, or the receiver reneged.
    pub fn generate(
        &mut self,
        now: Instant,
        packets: u64,
        min_rtt: Option<Duration>,
        reneged: bool,
    ) -> Option<DeliveryRateSample> {
        self.delivered += packets;
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        if packets > 0 {
            self.delivered_at = micros(now);
        }
        self.settle_newest();
        self.interval = TxInterval::default();
        let newest = self.newest.take()?;
        self.interval = self.tx_interval(&newest, reneged);
        let NewestDelivered { packet, interval, .. } = newest;
        if reneged {
            return None;
        }
        let acknowledged = micros(now).saturating_sub(packet.delivered_at);
        let interval_us = interval.max(acknowledged);
        let least = min_rtt.map_or(u64::MAX, |rtt| rtt.as_micros());
        (interval_us >= least).then_some(DeliveryRateSample {
            delivered: self.delivered - packet.delivered,
            interval_us,
            prior_delivered: packet.delivered,
            app_limited: packet.app_limited,
        })
    }

    /// The application writes with less than a packet unsent, the window not full and no
    /// retransmission pending: the sender was application-limited (tcp_rate_check_app_limited).
    pub fn set_app_limited(&mut self, in_flight: u64) {
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

        fn ack(&mut self, packets: u64, ms: u64) -> Option<DeliveryRateSample> {
            let (map, rates) = (&mut self.map, &mut self.rates);
            let una = Offset(map.first().unwrap().start().0 + 1_000 * packets);
            let mut count = 0;
            map.acknowledge(una, |segment| {
                count += u64::from(!segment.sacked());
                rates.on_delivered(segment.end(), false);
            });
            rates.acknowledge(una);
            rates.generate(at(ms), count, Some(Duration::from_millis(5)), false)
        }

        fn report(&mut self, from: u64, to: u64, ms: u64) -> Option<DeliveryRateSample> {
            let (map, rates) = (&mut self.map, &mut self.rates);
            let block = (Offset(1 + 1_000 * from), Offset(1 + 1_000 * to));
            let count =
                map.apply_sack(&[block], |segment| rates.on_delivered(segment.end(), true)).packets;
            rates.generate(at(ms), count, Some(Duration::from_millis(5)), false)
        }
    }

    #[test]
    fn a_sample_counts_deliveries_since_the_newest_packet_was_sent() {
        let mut world = World::new();
        world.send(10, 0);
        // Two packets in the 10 ms since they were sent; the SYN had been delivered before.
        let rate = world.ack(2, 10).unwrap();
        let first = DeliveryRateSample {
            delivered: 2,
            interval_us: 10_000,
            prior_delivered: 1,
            app_limited: false,
        };
        assert_eq!(rate, first);
        world.send(4, 10);
        // The other eight, one more millisecond later.
        assert_eq!(
            world.ack(8, 11).unwrap(),
            DeliveryRateSample { delivered: 10, interval_us: 11_000, ..first }
        );
        // The packets sent at 10 ms had 3 delivered before them: 12 since then.
        let rate = world.ack(4, 20).unwrap();
        assert_eq!((rate.delivered, rate.interval_us, rate.prior_delivered), (12, 10_000, 3));
    }

    #[test]
    fn the_send_interval_counts_when_acknowledgments_are_compressed() {
        let mut world = World::new();
        world.send(1, 0);
        assert!(world.ack(1, 10).is_some());
        // Nothing was in flight: the intervals restart.
        world.send(1, 20);
        world.send(1, 21);
        let rate = world.ack(1, 40).unwrap();
        assert_eq!((rate.delivered, rate.interval_us), (1, 20_000));
        // Sent 21 ms after the packet delivered before it, acknowledged after 10.
        world.send(1, 41);
        let rate = world.ack(2, 50).unwrap();
        assert_eq!((rate.delivered, rate.interval_us, rate.prior_delivered), (2, 21_000, 3));
    }

    #[test]
    fn a_sacked_packet_counts_once() {
        let mut world = World::new();
        world.send(4, 0);
        let rate = world.report(2, 4, 10).unwrap();
        assert_eq!((rate.delivered, rate.prior_delivered), (2, 1));
        // Of the four acknowledged two are new, and none was sent after the SACKed ones.
        let rate = world.ack(4, 12).unwrap();
        assert_eq!((rate.delivered, rate.interval_us), (4, 12_000));
        assert_eq!(world.rates.delivered(), 5);
        // An acknowledgment that delivers nothing gives no sample.
        assert_eq!(world.rates.generate(at(13), 0, Some(Duration::ZERO), false), None);
    }

    #[test]
    fn a_retransmitted_packet_counts_from_its_last_transmission() {
        let mut world = World::new();
        world.send(4, 0);
        assert!(world.report(1, 4, 10).is_some());
        world.map.retransmit(Offset(1), Offset(1_001), at(11), false);
        world.rates.on_retransmitted(&world.map, Offset(1), Offset(1_001), at(11));
        let rate = world.ack(4, 21).unwrap();
        // 4 had been delivered by 10 ms; one more in 11 ms.
        assert_eq!((rate.delivered, rate.interval_us, rate.prior_delivered), (1, 11_000, 4));
    }

    #[test]
    fn no_sample_below_the_minimum_rtt() {
        let mut world = World::new();
        world.send(1, 0);
        assert_eq!(world.ack(1, 4), None);
        assert_eq!((world.rates.delivered(), world.rates.delivered_at()), (2, at(4)));
    }

    #[test]
    fn application_limited_until_the_packets_in_flight_are_delivered() {
        let mut world = World::new();
        world.send(2, 0);
        world.rates.set_app_limited(2);
        world.send(1, 1);
        assert!(!world.ack(2, 10).unwrap().app_limited);
        assert!(world.rates.app_limited());
        let rate = world.ack(1, 11).unwrap();
        assert!(rate.app_limited && !world.rates.app_limited());
    }

    #[test]
    fn both_parts_of_a_split_packet_count() {
        let mut world = World::new();
        world.send(2, 0);
        world.map.retransmit(Offset(1_001), Offset(1_501), at(5), false);
        world.rates.on_retransmitted(&world.map, Offset(1_001), Offset(1_501), at(5));
        assert!(world.ack(1, 10).is_some());
        let rate = world.report(1, 2, 11);
        assert_eq!(rate.map(|rate| rate.delivered), Some(3));
    }

    #[test]
    fn packets_record_the_flight_of_their_burst() {
        let mut world = World::new();
        world.send(4, 0);
        // tcp_fragment: the second half of the burst was sent with all four in flight, the first with two.
        assert!(world.report(2, 4, 10).is_some());
        assert_eq!(world.rates.interval().in_flight, 4);
        let lost = world.rates.lost_packet(Offset(1_001), 2).unwrap();
        assert_eq!((lost.packets, lost.in_flight, lost.prior_lost), (2, 2, 0));
    }

    #[test]
    fn what_joins_a_sacked_neighbour_is_taken_from_the_flight_of_its_burst() {
        let mut world = World::new();
        world.send(2, 0);
        world.send(4, 1);
        assert!(world.report(1, 2, 10).is_some());
        // tcp_shifted_skb: the sample is that of the whole burst, the rest of it keeps 6 - 2.
        assert!(world.report(1, 4, 11).is_some());
        assert_eq!(world.rates.interval().in_flight, 6);
        let lost = world.rates.lost_packet(Offset(5_001), 2).unwrap();
        assert_eq!((lost.packets, lost.in_flight), (2, 4));
    }

    #[test]
    fn a_retransmission_records_the_losses_before_it() {
        let mut world = World::new();
        world.map.list_lost();
        world.send(4, 0);
        assert!(world.report(1, 4, 10).is_some());
        assert!(world.map.lose(Offset(1)));
        assert_eq!(world.map.take_marked(), [Offset(1_001)]);
        assert!(world.map.take_marked().is_empty());
        world.map.retransmit(Offset(1), Offset(1_001), at(11), false);
        world.rates.on_retransmitted(&world.map, Offset(1), Offset(1_001), at(11));
        assert!(world.ack(4, 21).is_some());
        let interval = world.rates.interval();
        assert_eq!((interval.in_flight, interval.prior_lost, interval.delivered), (1, Some(1), 1));
    }
}
