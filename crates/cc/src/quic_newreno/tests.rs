use units::Duration;

use super::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn acked(cc: &mut QuicNewReno, sent: u64) -> Change {
    let size = cc.datagram;
    cc.on_packet_acked(&PacketAcked {
        sent: at(sent),
        size,
        flight_is_empty: false,
        underused: false,
    })
}

fn lost(cc: &mut QuicNewReno, now: u64, sent: u64) -> Change {
    cc.on_packets_lost(&PacketsLost { now: at(now), sent: at(sent), persistent: false })
}

fn packets(cc: &QuicNewReno) -> (u64, u64) {
    (cc.cwnd / cc.datagram, cc.partial / cc.datagram)
}

/// In congestion avoidance with a window of `window` datagrams, the recovery begun at 10 ms.
fn avoiding(params: Params, window: u32) -> QuicNewReno {
    let mut cc = QuicNewReno::new(Params { initial_window: 2 * window, ..params }, 1_000);
    assert_eq!(lost(&mut cc, 10, 5), Change::RecoveryBegan);
    assert_eq!(cc.cwnd, u64::from(window) * 1_000);
    cc
}

#[test]
fn the_initial_window_is_that_of_section_7_2() {
    let window = |datagram| QuicNewReno::new(Params::RFC9002, datagram).cwnd;
    // Ten datagrams; 14,720 bytes; two datagrams where those are more.
    assert_eq!([window(1_200), window(1_252)], [12_000, 12_520]);
    assert_eq!([window(1_472), window(1_500)], [14_720, 14_720]);
    assert_eq!(window(9_000), 18_000);
}

#[test]
fn slow_start_adds_what_is_acknowledged_section_7_3_1() {
    let mut cc = QuicNewReno::new(Params::RFC9002, 1_200);
    assert_eq!(acked(&mut cc, 0), Change::Grew(Growth::SlowStart));
    assert_eq!(cc.cwnd, 13_200);
}

#[test]
fn a_recovery_is_told_by_when_packets_left_section_7_3_2() {
    let mut cc = avoiding(Params::INET_2025_02, 6);
    // Lost and acknowledged packets that left before it began, or in that moment, change nothing.
    assert_eq!(lost(&mut cc, 11, 10), Change::None);
    assert_eq!(acked(&mut cc, 10), Change::None);
    assert!(cc.in_recovery());
    assert_eq!(packets(&cc), (6, 0));
    // It ends with the first that left later.
    assert_eq!(acked(&mut cc, 11), Change::RecoveryEnded);
    assert_eq!(packets(&cc), (6, 1));
    assert_eq!(lost(&mut cc, 13, 12), Change::RecoveryBegan);
    assert_eq!(packets(&cc), (3, 0));
}

#[test]
fn inet_grows_once_a_window_of_packets_is_counted() {
    let mut cc = avoiding(Params::INET_2025_02, 5);
    for counted in 1..=4 {
        assert_eq!(
            acked(&mut cc, 11),
            if counted == 1 { Change::RecoveryEnded } else { Change::None }
        );
        assert_eq!(packets(&cc), (5, counted));
    }
    assert_eq!(acked(&mut cc, 11), Change::Grew(Growth::Avoidance));
    assert_eq!(packets(&cc), (6, 0));
}

#[test]
fn half_packets_of_the_window_shorten_the_count() {
    let mut cc = QuicNewReno::new(Params { initial_window: 11, ..Params::INET_2025_02 }, 1_000);
    let _ = lost(&mut cc, 10, 5);
    assert_eq!(cc.cwnd, 5_500);
    for _ in 0..5 {
        let _ = acked(&mut cc, 11);
    }
    // 5,000 exceeds 4,500.
    assert_eq!((cc.cwnd, cc.partial), (6_500, 0));
}

#[test]
fn the_change_of_march_counts_in_recovery_and_lets_a_packet_go() {
    let mut cc = avoiding(Params::INET_2025_03, 5);
    assert!(cc.take_extra_packet());
    assert!(!cc.take_extra_packet());
    assert_eq!(acked(&mut cc, 9), Change::None);
    assert_eq!(packets(&cc), (5, 1));
    // Sent in the moment itself: no part of it any more.
    assert_eq!(acked(&mut cc, 10), Change::RecoveryEnded);
    assert_eq!(packets(&cc), (5, 2));
}

#[test]
fn an_empty_flight_clears_inets_counter_before_the_packet_counts() {
    let mut cc = avoiding(Params::INET_2025_02, 5);
    let _ = acked(&mut cc, 11);
    let last = PacketAcked { sent: at(11), size: 1_000, flight_is_empty: true, underused: false };
    let _ = cc.on_packet_acked(&last);
    assert_eq!(packets(&cc), (5, 1));
}

#[test]
fn an_underused_window_does_not_grow_section_7_8() {
    let mut cc = QuicNewReno::new(Params::RFC9002, 1_200);
    let idle = PacketAcked { sent: at(1), size: 1_200, flight_is_empty: true, underused: true };
    assert_eq!(cc.on_packet_acked(&idle), Change::None);
    assert_eq!(cc.cwnd, 12_000);
}

#[test]
fn appendix_b_divides_in_integers() {
    let mut cc = avoiding(Params::RFC9002, 7);
    let _ = acked(&mut cc, 11);
    // 1000 * 1000 / 7000 = 142.857, then 1000 * 1000 / 7142 = 140.
    assert_eq!(cc.cwnd, 7_142);
    let _ = acked(&mut cc, 11);
    assert_eq!(cc.cwnd, 7_282);
    let carries = Params { avoidance: Avoidance::Fraction { carries: true }, ..Params::RFC9002 };
    let mut cc = avoiding(carries, 7);
    let _ = acked(&mut cc, 11);
    let _ = acked(&mut cc, 11);
    // (1,000,000 + 6,000) / 7142 = 140, the rest is carried on.
    assert_eq!((cc.cwnd, cc.remainder), (7_282, 1_006_000 - 140 * 7_142));
}

#[test]
fn rfc_3465_takes_the_old_window_off() {
    let abc = Params { avoidance: Avoidance::WindowOfBytes, ..Params::RFC9002 };
    let mut cc = avoiding(abc, 2);
    let _ = acked(&mut cc, 11);
    let _ = acked(&mut cc, 11);
    assert_eq!((cc.cwnd, cc.partial), (3_000, 0));
}

#[test]
fn the_window_has_a_floor_and_the_threshold_may_have_none() {
    for (params, ssthresh) in [(Params::INET_2025_02, 2_000), (Params::INET_2025_03, 1_500)] {
        let mut cc = QuicNewReno::new(Params { initial_window: 3, ..params }, 1_000);
        let _ = lost(&mut cc, 10, 5);
        assert_eq!((cc.cwnd, cc.ssthresh), (2_000, Some(ssthresh)));
    }
}

#[test]
fn persistent_congestion_leaves_the_least_window_and_slow_start_section_7_6_2() {
    let mut cc = avoiding(Params::RFC9002, 7);
    let all = PacketsLost { now: at(900), sent: at(800), persistent: true };
    assert_eq!(cc.on_packets_lost(&all), Change::Collapsed);
    assert_eq!((cc.cwnd, cc.ssthresh), (2_000, Some(3_500)));
    assert!(cc.in_slow_start() && !cc.in_recovery());
    // The recovery is forgotten: what left before grows the window again.
    assert_eq!(acked(&mut cc, 1), Change::Grew(Growth::SlowStart));
}
