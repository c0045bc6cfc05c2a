use units::Duration;

use super::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn acked(cc: &mut QuicNewReno, sent: u64) -> WindowChange {
    let size = cc.datagram;
    cc.on_packet_acked(&PacketAcked {
        sent: at(sent),
        order: sent,
        size,
        flight_is_empty: false,
        underused: false,
        prior_flight: u64::MAX,
    })
}

fn lost(cc: &mut QuicNewReno, now: u64, sent: u64) -> WindowChange {
    cc.on_packets_lost(&losses(now, sent, 1))
}

/// Packets lost together; the places of packets are their send times in ms.
fn losses(now: u64, sent: u64, packets: u64) -> PacketsLost {
    let (order, latest) = (sent, now);
    PacketsLost { now: at(now), sent: at(sent), order, latest, persistent: false, packets }
}

fn packets(cc: &QuicNewReno) -> (u64, u64) {
    (cc.cwnd / cc.datagram, cc.partial / cc.datagram)
}

/// In congestion avoidance with a window of `window` datagrams; the recovery began at 10 ms.
fn avoiding(params: QuicNewRenoParams, window: u32) -> QuicNewReno {
    let mut cc =
        QuicNewReno::new(QuicNewRenoParams { initial_window: 2 * window, ..params }, 1_000);
    assert_eq!(lost(&mut cc, 10, 5), WindowChange::RecoveryBegan);
    assert_eq!(cc.cwnd, u64::from(window) * 1_000);
    cc
}

#[test]
fn the_initial_window_is_that_of_section_7_2() {
    let window = |datagram| QuicNewReno::new(QuicNewRenoParams::RFC9002, datagram).cwnd;
    // Ten datagrams; 14,720 bytes; two datagrams where those are more.
    assert_eq!([window(1_200), window(1_252)], [12_000, 12_520]);
    assert_eq!([window(1_472), window(1_500)], [14_720, 14_720]);
    assert_eq!(window(9_000), 18_000);
}

#[test]
fn slow_start_adds_what_is_acknowledged_section_7_3_1() {
    let mut cc = QuicNewReno::new(QuicNewRenoParams::RFC9002, 1_200);
    assert_eq!(acked(&mut cc, 0), WindowChange::Grew(Growth::SlowStart));
    assert_eq!(cc.cwnd, 13_200);
}

#[test]
fn send_times_determine_the_recovery_section_7_3_2() {
    let mut cc = avoiding(QuicNewRenoParams::INET_2025_02, 6);
    // Lost and acknowledged packets sent before it began, or at that time, have no effect.
    assert_eq!(lost(&mut cc, 11, 10), WindowChange::None);
    assert_eq!(acked(&mut cc, 10), WindowChange::None);
    assert!(cc.in_recovery());
    assert_eq!(packets(&cc), (6, 0));
    // It ends with the first packet sent later.
    assert_eq!(acked(&mut cc, 11), WindowChange::RecoveryEnded);
    assert_eq!(packets(&cc), (6, 1));
    assert_eq!(lost(&mut cc, 13, 12), WindowChange::RecoveryBegan);
    assert_eq!(packets(&cc), (3, 0));
}

#[test]
fn inet_grows_once_a_window_of_packets_is_counted() {
    let mut cc = avoiding(QuicNewRenoParams::INET_2025_02, 5);
    for counted in 1..=4 {
        assert_eq!(
            acked(&mut cc, 11),
            if counted == 1 { WindowChange::RecoveryEnded } else { WindowChange::None }
        );
        assert_eq!(packets(&cc), (5, counted));
    }
    assert_eq!(acked(&mut cc, 11), WindowChange::Grew(Growth::Avoidance));
    assert_eq!(packets(&cc), (6, 0));
}

#[test]
fn half_packets_of_the_window_shorten_the_count() {
    let mut cc = QuicNewReno::new(
        QuicNewRenoParams { initial_window: 11, ..QuicNewRenoParams::INET_2025_02 },
        1_000,
    );
    let _ = lost(&mut cc, 10, 5);
    assert_eq!(cc.cwnd, 5_500);
    for _ in 0..5 {
        let _ = acked(&mut cc, 11);
    }
    // 5,000 exceeds 4,500.
    assert_eq!((cc.cwnd, cc.partial), (6_500, 0));
}

#[test]
fn the_version_of_march_counts_in_recovery_and_allows_an_extra_packet() {
    let mut cc = avoiding(QuicNewRenoParams::INET_2025_03, 5);
    assert!(cc.take_extra_packet());
    assert!(!cc.take_extra_packet());
    assert_eq!(acked(&mut cc, 9), WindowChange::None);
    assert_eq!(packets(&cc), (5, 1));
    // Sent at that very time: not part of it.
    assert_eq!(acked(&mut cc, 10), WindowChange::RecoveryEnded);
    assert_eq!(packets(&cc), (5, 2));
}

#[test]
fn an_empty_flight_clears_inets_counter_before_the_packet_counts() {
    let mut cc = avoiding(QuicNewRenoParams::INET_2025_02, 5);
    let _ = acked(&mut cc, 11);
    let last = PacketAcked {
        sent: at(11),
        order: 11,
        size: 1_000,
        flight_is_empty: true,
        underused: false,
        prior_flight: 0,
    };
    let _ = cc.on_packet_acked(&last);
    assert_eq!(packets(&cc), (5, 1));
}

#[test]
fn an_underused_window_does_not_grow_section_7_8() {
    let mut cc = QuicNewReno::new(QuicNewRenoParams::RFC9002, 1_200);
    let idle = PacketAcked {
        sent: at(1),
        order: 1,
        size: 1_200,
        flight_is_empty: true,
        underused: true,
        prior_flight: 0,
    };
    assert_eq!(cc.on_packet_acked(&idle), WindowChange::None);
    assert_eq!(cc.cwnd, 12_000);
}

#[test]
fn appendix_b_divides_in_integers() {
    let mut cc = avoiding(QuicNewRenoParams::RFC9002, 7);
    let _ = acked(&mut cc, 11);
    // 1000 * 1000 / 7000 = 142.857, then 1000 * 1000 / 7142 = 140.
    assert_eq!(cc.cwnd, 7_142);
    let _ = acked(&mut cc, 11);
    assert_eq!(cc.cwnd, 7_282);
    let carries = QuicNewRenoParams {
        avoidance: QuicAvoidance::Fraction { carries: true },
        ..QuicNewRenoParams::RFC9002
    };
    let mut cc = avoiding(carries, 7);
    let _ = acked(&mut cc, 11);
    let _ = acked(&mut cc, 11);
    // (1,000,000 + 6,000) / 7142 = 140, the remainder is carried.
    assert_eq!((cc.cwnd, cc.remainder), (7_282, 1_006_000 - 140 * 7_142));
}

#[test]
fn rfc_3465_subtracts_the_old_window() {
    let abc =
        QuicNewRenoParams { avoidance: QuicAvoidance::WindowOfBytes, ..QuicNewRenoParams::RFC9002 };
    let mut cc = avoiding(abc, 2);
    let _ = acked(&mut cc, 11);
    let _ = acked(&mut cc, 11);
    assert_eq!((cc.cwnd, cc.partial), (3_000, 0));
}

#[test]
fn the_window_has_a_minimum_and_the_threshold_may_have_none() {
    for (params, ssthresh) in
        [(QuicNewRenoParams::INET_2025_02, 2_000), (QuicNewRenoParams::INET_2025_03, 1_500)]
    {
        let mut cc = QuicNewReno::new(QuicNewRenoParams { initial_window: 3, ..params }, 1_000);
        let _ = lost(&mut cc, 10, 5);
        assert_eq!((cc.cwnd, cc.ssthresh), (2_000, Some(ssthresh)));
    }
}

#[test]
fn persistent_congestion_sets_the_minimum_window_and_slow_start_section_7_6_2() {
    let mut cc = avoiding(QuicNewRenoParams::RFC9002, 7);
    let all = PacketsLost { persistent: true, ..losses(900, 800, 1) };
    assert_eq!(cc.on_packets_lost(&all), WindowChange::Collapsed);
    assert_eq!((cc.cwnd, cc.ssthresh), (2_000, Some(3_500)));
    assert!(cc.in_slow_start() && !cc.in_recovery());
    // The recovery is cleared: packets sent before it grow the window.
    assert_eq!(acked(&mut cc, 1), WindowChange::Grew(Growth::SlowStart));
}

/// quic-go with the factor of [`avoiding`].
const HALVING: QuicNewRenoParams =
    QuicNewRenoParams { beta: 50, ..QuicNewRenoParams::QUIC_GO_0_65 };

#[test]
fn packets_are_counted_whatever_their_size_and_only_while_the_window_is_used() {
    let mut cc = avoiding(HALVING, 10);
    let window = cc.cwnd;
    let packets = window / cc.datagram;
    let mut acked = |prior_flight: u64, count: u64| {
        for _ in 0..count {
            let _ = cc.on_packet_acked(&PacketAcked {
                sent: at(20),
                order: 20,
                size: 100,
                flight_is_empty: false,
                underused: false,
                prior_flight,
            });
        }
        cc.cwnd
    };
    // Three datagrams of the window are left: it is used; with four it is not.
    assert_eq!(acked(window - 4_000, 2 * packets), window);
    assert_eq!(acked(window - 3_000, packets - 1), window);
    assert_eq!(acked(window - 3_000, 1), window + 1_000);
}

#[test]
fn a_reduction_is_undone_with_the_last_of_its_spurious_losses() {
    let mut cc = avoiding(HALVING, 10);
    let (window, ssthresh) = (cc.cwnd, cc.ssthresh);
    let three = losses(30, 25, 3);
    assert_eq!(cc.on_packets_lost(&three), WindowChange::RecoveryBegan);
    assert_eq!(cc.cwnd, window / 2);
    // Of an earlier recovery, and sent after this one began.
    assert_eq!(cc.on_spurious_loss(10), WindowChange::None);
    assert_eq!(cc.on_spurious_loss(31), WindowChange::None);
    assert_eq!(cc.on_spurious_loss(23), WindowChange::None);
    // A further loss of the same flight counts.
    let _ = cc.on_packets_lost(&PacketsLost { packets: 1, ..three });
    assert_eq!(cc.on_spurious_loss(24), WindowChange::None);
    assert_eq!(cc.on_spurious_loss(25), WindowChange::None);
    assert_eq!(cc.on_spurious_loss(26), WindowChange::Undone);
    assert_eq!((cc.cwnd, cc.ssthresh), (window, ssthresh));
    assert_eq!(cc.on_spurious_loss(26), WindowChange::None);
}

/// quic-go compares packet numbers: what it sends in the moment in which it finds a loss belongs to no recovery.
#[test]
fn a_packet_sent_when_the_recovery_began_is_not_part_of_it() {
    let event = |order| PacketAcked {
        sent: at(30),
        order,
        size: 1_000,
        flight_is_empty: false,
        underused: false,
        prior_flight: u64::MAX,
    };
    let mut cc = avoiding(HALVING, 10);
    let _ = cc.on_packets_lost(&losses(30, 25, 1));
    let _ = cc.on_packet_acked(&event(30));
    assert_eq!(packets(&cc), (5, 0));
    let _ = cc.on_packet_acked(&event(31));
    assert_eq!(packets(&cc), (5, 1));
    // Nor is a packet of before once a later one is acknowledged.
    let _ = cc.on_packet_acked(&event(29));
    assert_eq!(packets(&cc), (5, 2));
    // That one is lost in the same moment: a recovery of its own.
    let lost = PacketsLost { order: 32, latest: 40, ..losses(30, 30, 1) };
    assert_eq!(cc.on_packets_lost(&lost), WindowChange::RecoveryBegan);
}
