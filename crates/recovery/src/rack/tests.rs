use proptest::prelude::*;

use super::*;

const MSS: u64 = 1_000;

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn span(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Packets sent one per millisecond on a path of 40 ms.
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
        self.map.apply_sack(&[block], |segment| {
            rack.on_delivered(&DeliveredSegment::of(segment, false), ms(now), span(40));
        });
    }

    fn detect(&mut self, now: u64, in_recovery: bool) -> RackLosses {
        self.rack.detect_loss(&mut self.map, &standing(now, in_recovery))
    }
}

fn standing(now: u64, in_recovery: bool) -> RackInput {
    RackInput { now: ms(now), in_recovery, min_rtt: span(40), srtt: span(44) }
}

#[test]
fn the_third_sack_marks_packets_older_than_an_rtt_lost() {
    let mut sender = Sender::new(6);
    sender.sack(1, 41);
    // A quarter of 40 ms is added: 0 was sent at 0, and the RTT of 1 was 40.
    assert_eq!(sender.detect(41, false), RackLosses { packets: 0, reo_timeout: Some(span(9)) });
    sender.sack(2, 42);
    assert_eq!(sender.detect(42, false), RackLosses { packets: 0, reo_timeout: Some(span(8)) });
    // Three SACKed and no reordering seen: the window is zero.
    sender.sack(3, 43);
    assert_eq!(sender.detect(43, false), RackLosses { packets: 1, reo_timeout: None });
    assert!(sender.map.first().unwrap().waits());
}

#[test]
fn the_timer_detects_losses_without_a_third_sack() {
    let mut sender = Sender::new(6);
    sender.sack(4, 44);
    // 0 to 3 were sent before 4; the last of them expires at 3 + 40 + 10.
    assert_eq!(sender.detect(44, false), RackLosses { packets: 0, reo_timeout: Some(span(9)) });
    assert_eq!(sender.detect(50, false), RackLosses { packets: 1, reo_timeout: Some(span(3)) });
    assert_eq!(sender.detect(53, false), RackLosses { packets: 3, reo_timeout: None });
}

#[test]
fn reordering_keeps_the_window_open() {
    let mut sender = Sender::new(6);
    for packet in [4, 3, 2] {
        sender.sack(packet, 44);
    }
    assert!(sender.rack.reordering_seen());
    // The most recent is still 4; the RTT is that of the packet processed last, 2.
    assert_eq!(sender.rack.rtt(), span(42));
    assert_eq!(sender.detect(44, true), RackLosses { packets: 0, reo_timeout: Some(span(9)) });
}

#[test]
fn an_ambiguous_retransmission_does_not_set_the_clock() {
    let mut rack = Rack::new();
    let packet = DeliveredSegment {
        sent_at: ms(10),
        end: Offset(1_000),
        retransmitted: true,
        echo_older: false,
    };
    // 30 ms is less than the RTT of the path.
    rack.on_delivered(&packet, ms(40), span(40));
    assert_eq!(rack.newest, None);
    rack.on_delivered(&DeliveredSegment { echo_older: true, ..packet }, ms(60), span(40));
    assert_eq!(rack.newest, None);
    rack.on_delivered(&packet, ms(60), span(40));
    assert_eq!((rack.newest, rack.rtt()), (Some((ms(10), Offset(1_000))), span(50)));
    assert!(!rack.reordering_seen());
}

#[test]
fn dsacks_widen_the_window_once_per_round_for_sixteen_recoveries() {
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
    // At most the smoothed RTT.
    assert_eq!(window(&rack), span(44));
    for _ in 0..15 {
        rack.on_recovered();
    }
    assert_eq!(window(&rack), span(44));
    rack.on_recovered();
    assert_eq!(window(&rack), span(10));
    // Zero in recovery without reordering.
    assert_eq!(rack.reo_wnd(0, &standing(0, true)), Duration::ZERO);
}

#[test]
fn a_timeout_marks_the_first_packet_and_expired_ones_lost() {
    let mut sender = Sender::new(5);
    sender.sack(2, 42);
    // The threshold is 40 + 10: at 51 it covers those sent up to 1.
    assert_eq!(sender.rack.on_timeout(&mut sender.map, &standing(51, false)), 2);
    let mut fresh = Sender::new(5);
    fresh.rack.rtt = span(100);
    assert_eq!(fresh.rack.on_timeout(&mut fresh.map, &standing(51, false)), 1);
}

#[test]
fn a_lost_retransmission_is_found_by_later_packets() {
    let mut sender = Sender::new(6);
    for packet in 1..4 {
        sender.sack(packet, 40 + packet);
    }
    assert_eq!(sender.detect(43, false).packets, 1);
    sender.map.retransmit(Offset(0), Offset(MSS), ms(43), false);
    sender.map.push(Offset(6 * MSS), Offset(7 * MSS), ms(44));
    sender.sack(4, 44);
    assert_eq!(sender.detect(44, true), RackLosses::default());
    sender.sack(6, 84);
    // 5 is lost too, and the retransmission, sent a millisecond before 6.
    assert_eq!(sender.detect(84, true).packets, 2);
    assert_eq!(sender.map.next_lost().map(SentSegment::start), Some(Offset(0)));
}

proptest! {
    // Times that often coincide, as on a path without delay; packets retransmitted in any order.
    #[test]
    fn passed_and_expired_packets_are_always_marked_lost(
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
                    sender.map.retransmit(Offset(start), Offset(end), ms(now), false);
                }
                4 => sender.map.mark_all_lost(),
                5 => sender.map.unmark_lost(true),
                6 if end <= max => {
                    let at = Offset(start + MSS / 2);
                    sender.map.retransmit(Offset(start), at, ms(now), false);
                }
                7 => sender.map.clear_sacked(),
                8 if packet == 0 => {
                    let first = sender.map.first().map_or(Offset(0), SentSegment::end);
                    sender.map.acknowledge(first, |_| {});
                }
                _ => {}
            }
            let standing = RackInput { min_rtt: span(0), srtt: span(0), ..standing(now, true) };
            let found = sender.rack.detect_loss(&mut sender.map, &standing);
            prop_assert!(found.reo_timeout.is_none_or(|after| after > Duration::ZERO));
            let allowed = sender.rack.rtt();
            for segment in sender.map.iter().filter(|segment| segment.in_flight() && segment.passed()) {
                prop_assert!(segment.sent_at() + allowed > ms(now), "{segment:?}");
            }
        }
    }
}

#[test]
fn a_packet_stamped_later_than_its_acknowledgment_has_an_rtt_of_zero() {
    // A probe goes out before the pacing timer, with its departure time (tcp_stamp_us_delta).
    let mut rack = Rack::linux();
    let early = DeliveredSegment {
        sent_at: ms(70),
        end: Offset(1),
        retransmitted: true,
        echo_older: false,
    };
    assert!(!rack.take_rtt(&early, ms(60), span(40)), "below the minimum: the original arrived");
    assert!(rack.take_rtt(&DeliveredSegment { retransmitted: false, ..early }, ms(60), span(40)));
    assert_eq!(rack.rtt(), Duration::ZERO);
}

#[test]
fn linux_widens_the_window_at_the_next_delivery_once_per_round_trip() {
    let mut rack = Rack::linux();
    let window = |rack: &Rack| rack.reo_wnd(0, &standing(0, false));
    let deliver = |rack: &mut Rack, sent, at| rack.update_reo_wnd(Some(ms(sent)), ms(at));
    // A D-SACK alone delivers nothing.
    rack.on_dsack_seen();
    rack.update_reo_wnd(None, ms(50));
    assert_eq!(window(&rack), span(10));
    deliver(&mut rack, 10, 51);
    assert_eq!(window(&rack), span(20));
    // What was sent before the window was widened does not widen it again, nor later.
    rack.on_dsack_seen();
    deliver(&mut rack, 50, 90);
    deliver(&mut rack, 52, 92);
    assert_eq!(window(&rack), span(20));
    rack.on_dsack_seen();
    deliver(&mut rack, 53, 93);
    assert_eq!(window(&rack), span(30));
    for _ in 0..16 {
        rack.on_linux_recovered();
    }
    assert_eq!(window(&rack), span(30));
    deliver(&mut rack, 100, 140);
    assert_eq!(window(&rack), span(10));
}
