use proptest::prelude::*;

use super::*;

const MSS: u64 = 1_000;

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn span(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Packets of which one leaves each millisecond, on a path of 40 ms.
struct Sender {
    map: SendMap,
    rack: Rack,
}

impl Sender {
    fn new(packets: u64) -> Self {
        let mut map = SendMap::new();
        for i in 0..packets {
            map.push(Offset(i * MSS), Offset((i + 1) * MSS), ms(i));
        }
        Self { map, rack: Rack::new() }
    }

    fn sack(&mut self, packet: u64, now: u64) {
        let block = (Offset(packet * MSS), Offset((packet + 1) * MSS));
        let rack = &mut self.rack;
        self.map.apply_sack(&[block], |piece| {
            rack.on_delivered(&Delivered::of(piece, false), ms(now), span(40));
        });
    }

    fn detect(&mut self, now: u64, in_recovery: bool) -> Found {
        self.rack.detect_loss(&mut self.map, &standing(now, in_recovery))
    }
}

fn standing(now: u64, in_recovery: bool) -> Standing {
    Standing { now: ms(now), in_recovery, min_rtt: span(40), srtt: span(44) }
}

#[test]
fn the_third_report_finds_what_is_older_than_a_round_trip_lost() {
    let mut sender = Sender::new(6);
    sender.sack(1, 41);
    // A quarter of 40 ms is allowed before: 0 left at 0, and 1's round trip was 40.
    assert_eq!(sender.detect(41, false), Found { packets: 0, again_after: Some(span(9)) });
    sender.sack(2, 42);
    assert_eq!(sender.detect(42, false), Found { packets: 0, again_after: Some(span(8)) });
    // Three reported and no reordering known: nothing is allowed.
    sender.sack(3, 43);
    assert_eq!(sender.detect(43, false), Found { packets: 1, again_after: None });
    assert!(sender.map.first().unwrap().waits());
}

#[test]
fn the_timer_finds_it_without_a_third_report_and_goes_for_the_last() {
    let mut sender = Sender::new(6);
    sender.sack(4, 44);
    // 0 to 3 left before 4; the last of them is over at 3 + 40 + 10.
    assert_eq!(sender.detect(44, false), Found { packets: 0, again_after: Some(span(9)) });
    assert_eq!(sender.detect(50, false), Found { packets: 1, again_after: Some(span(3)) });
    assert_eq!(sender.detect(53, false), Found { packets: 3, again_after: None });
}

#[test]
fn reordering_keeps_the_window_open() {
    let mut sender = Sender::new(6);
    for packet in [4, 3, 2] {
        sender.sack(packet, 44);
    }
    assert!(sender.rack.reordering_seen());
    // The newest is 4 still; its rule takes the round trip of the packet processed last, 2.
    assert_eq!(sender.rack.rtt(), span(42));
    assert_eq!(sender.detect(44, true), Found { packets: 0, again_after: Some(span(9)) });
}

#[test]
fn an_ambiguous_retransmission_does_not_set_the_clock() {
    let mut rack = Rack::new();
    let packet = Delivered { sent_at: ms(10), end: Offset(1_000), resent: true, echo_older: false };
    // 30 ms is less than the path takes.
    rack.on_delivered(&packet, ms(40), span(40));
    assert_eq!(rack.newest, None);
    rack.on_delivered(&Delivered { echo_older: true, ..packet }, ms(60), span(40));
    assert_eq!(rack.newest, None);
    rack.on_delivered(&packet, ms(60), span(40));
    assert_eq!((rack.newest, rack.rtt()), (Some((ms(10), Offset(1_000))), span(50)));
    assert!(!rack.reordering_seen());
}

#[test]
fn duplicates_widen_the_window_once_per_round_for_sixteen_recoveries() {
    let mut rack = Rack::new();
    let window = |rack: &Rack| rack.reo_wnd(0, &standing(0, false));
    assert_eq!(window(&rack), span(10));
    rack.on_duplicate(Offset(0), Offset(100));
    rack.on_duplicate(Offset(99), Offset(200));
    assert_eq!(window(&rack), span(20));
    rack.on_duplicate(Offset(100), Offset(200));
    assert_eq!(window(&rack), span(30));
    for _ in 0..9 {
        rack.on_duplicate(Offset(200), Offset(200));
    }
    // At most the smoothed round trip.
    assert_eq!(window(&rack), span(44));
    for _ in 0..15 {
        rack.on_recovered();
    }
    assert_eq!(window(&rack), span(44));
    rack.on_recovered();
    assert_eq!(window(&rack), span(10));
    // In recovery, without reordering, none.
    assert_eq!(rack.reo_wnd(0, &standing(0, true)), Duration::ZERO);
}

#[test]
fn a_timeout_loses_the_first_packet_and_what_is_over() {
    let mut sender = Sender::new(5);
    sender.sack(2, 42);
    // Allowed are 40 + 10: at 51 those sent up to 1.
    assert_eq!(sender.rack.on_timeout(&mut sender.map, &standing(51, false)), 2);
    let mut fresh = Sender::new(5);
    fresh.rack.rtt = span(100);
    assert_eq!(fresh.rack.on_timeout(&mut fresh.map, &standing(51, false)), 1);
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut sender = Sender::new(6);
    for packet in 1..4 {
        sender.sack(packet, 40 + packet);
    }
    assert_eq!(sender.detect(43, false).packets, 1);
    sender.map.resend(Offset(0), Offset(MSS), ms(43), false);
    sender.map.push(Offset(6 * MSS), Offset(7 * MSS), ms(44));
    sender.sack(4, 44);
    assert_eq!(sender.detect(44, true), Found::default());
    sender.sack(6, 84);
    // 5 is lost too, and the retransmission, sent a millisecond before 6.
    assert_eq!(sender.detect(84, true).packets, 2);
    assert_eq!(sender.map.next_lost().map(Piece::start), Some(Offset(0)));
}

proptest! {
    // Times that often coincide, as on a path without delay; packets sent again in any order.
    #[test]
    fn what_was_passed_and_had_its_time_is_found_whatever_goes_before_it(
        ops in prop::collection::vec((0..9_u8, 0..8_u64, 0..3_u64), 1..60)
    ) {
        let mut sender = Sender { map: SendMap::new(), rack: Rack::new() };
        let (mut max, mut now) = (0, 100);
        for (op, packet, later) in ops {
            now += later;
            let (start, end) = (packet * MSS, (packet + 1) * MSS);
            match op {
                0 => {
                    sender.map.push(Offset(max), Offset(max + MSS), ms(now));
                    max += MSS;
                }
                1 | 2 if end <= max => sender.sack(packet, now),
                3 if end <= max => {
                    sender.map.resend(Offset(start), Offset(end), ms(now), false);
                }
                4 => sender.map.lose_all(),
                5 => sender.map.unmark_lost(),
                6 if end <= max => {
                    let at = Offset(start + MSS / 2);
                    sender.map.resend(Offset(start), at, ms(now), false);
                }
                7 => sender.map.forget_sacks(),
                8 if packet == 0 => {
                    let first = sender.map.first().map_or(Offset(0), Piece::end);
                    sender.map.acknowledge(first, |_| {});
                }
                _ => {}
            }
            let standing = Standing { min_rtt: span(0), srtt: span(0), ..standing(now, true) };
            let found = sender.rack.detect_loss(&mut sender.map, &standing);
            prop_assert!(found.again_after.is_none_or(|after| after > Duration::ZERO));
            let allowed = sender.rack.rtt();
            for piece in sender.map.iter().filter(|piece| piece.under_way() && piece.passed()) {
                prop_assert!(piece.sent_at() + allowed > ms(now), "{piece:?}");
            }
        }
    }
}
