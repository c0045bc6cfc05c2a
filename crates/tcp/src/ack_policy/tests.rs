use super::*;
use crate::profile::TcpProfile;

fn plain(len: u64, unacked: u64) -> InOrderArrival {
    InOrderArrival {
        now: Instant::ZERO,
        len,
        unacked,
        maxseg: 1_460,
        mss: 1_448,
        pending: false,
        window_was_zero: false,
        filled: false,
    }
}

fn arrival(unacked: u64) -> LinuxArrival {
    LinuxArrival {
        now: Instant::ZERO,
        tick: 0,
        unacked,
        mss: 1_448,
        window_grew: false,
        window_holds: true,
        tight: false,
        rcv_wnd: 65_160,
        srtt: Some(25),
        rto: 75,
        gap_left: false,
        filled: false,
        push: PushKind::None,
        ecn: EcnArrival::default(),
    }
}

fn after_quick_acks() -> DelayedAckPolicy {
    let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
    for _ in 0..16 {
        policy.on_data(&arrival(1_448));
        policy.on_ack_sent();
    }
    policy
}

#[test]
fn linux_acknowledges_at_once_after_a_pause_and_after_duplicate_data() {
    let later = |ms: u64| LinuxArrival { tick: ms / 4, ..arrival(1_448) };
    let mut policy = after_quick_acks();
    assert_ne!(policy.on_data(&later(300)), AckDecision::Now);
    // 304 ms later, longer than the timeout of 300 ms.
    assert_eq!(policy.on_data(&later(604)), AckDecision::Now);
    let mut policy = after_quick_acks();
    policy.on_old_data(65_160, 1_448, true);
    assert_eq!(policy.on_data(&later(1)), AckDecision::Now);
}

#[test]
fn the_ack_of_a_first_gap_uses_the_quick_acks_up() {
    let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.12").unwrap().into());
    policy.on_established(100_000);
    let at = |tick| LinuxArrival { tick, ..arrival(1_448) };
    let gap = LinuxArrival { gap_left: true, window_grew: true, ..at(100_020) };
    assert_eq!(policy.on_gap(&gap), AckDecision::Now);
    policy.on_ack_sent();
    // 40 ticks are less than the timeout: no pause that would bring others.
    assert_eq!(policy.on_data(&LinuxArrival { filled: true, ..at(100_040) }), AckDecision::Now);
    policy.on_ack_sent();
    assert_ne!(policy.on_data(&at(100_060)), AckDecision::Now);
}

#[test]
fn linux_compresses_acks_unless_one_is_due() {
    let gap = LinuxArrival { gap_left: true, ..arrival(0) };
    let mut policy = after_quick_acks();
    assert_eq!(policy.on_gap(&gap), AckDecision::Compress);
    assert_eq!(policy.on_gap(&LinuxArrival { unacked: 2_896, ..gap }), AckDecision::Now);
    // A part of the gap is filled, then all of it.
    let filled = LinuxArrival { filled: true, ..gap };
    assert_eq!(policy.on_data(&LinuxArrival { unacked: 1_448, ..filled }), AckDecision::Compress);
    assert_eq!(policy.on_data(&LinuxArrival { gap_left: false, ..filled }), AckDecision::Now);
    assert_eq!(policy.on_gap(&LinuxArrival { window_grew: true, ..gap }), AckDecision::Now);
    let mut other = DelayedAckPolicy::new(&TcpProfile::named("freebsd-14.3").unwrap().into());
    let plain = InOrderArrival { filled: true, ..plain(1_448, 1_448) };
    assert_eq!(other.on_gap(&gap), AckDecision::Now);
    assert_eq!(other.on_in_order_data(&plain), Some(AckDecision::Now));
}

#[test]
fn freebsd_delays_a_first_small_segment_only() {
    let mut policy = DelayedAckPolicy::new(&TcpProfile::named("freebsd-13.2").unwrap().into());
    let mut decide = |arrival| policy.on_in_order_data(&arrival).unwrap();
    let forty = AckDecision::Within(Duration::from_millis(40));
    assert_eq!(decide(plain(1_448, 1_448)), forty);
    assert_eq!(decide(InOrderArrival { pending: true, ..plain(1_448, 2_896) }), AckDecision::Now);
    assert_eq!(decide(plain(2_896, 2_896)), AckDecision::Now, "an LRO aggregate");
    let reopened = InOrderArrival { window_was_zero: true, ..plain(1_448, 1_448) };
    assert_eq!(decide(reopened), AckDecision::Now);
}

#[test]
fn linux_acknowledges_the_first_segments_and_every_growth_at_once() {
    let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
    for n in 0..16 {
        assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now, "segment {n}");
        policy.on_ack_sent();
    }
    let delayed = AckDecision::Within(Duration::from_millis(40));
    assert_eq!(policy.on_data(&arrival(1_448)), delayed);
    assert_eq!(policy.on_data(&arrival(2_896)), AckDecision::Now, "the second one");
    policy.on_ack_sent();
    let grew = LinuxArrival { window_grew: true, ..arrival(1_448) };
    assert_eq!(policy.on_data(&grew), AckDecision::Now);
}

#[test]
fn linux_waits_for_the_reader_where_the_window_would_shrink() {
    // golden/linux c3: at 2522.2 ms six packets arrive before the application runs; the window
    // is at its limit, and one ACK follows the read.
    let mut policy = after_quick_acks();
    let full = LinuxArrival { window_holds: false, ..arrival(6 * 1_448) };
    assert_ne!(policy.on_data(&full), AckDecision::Now);
    assert!(policy.on_read(true, 6 * 1_448, 1_448));
}

#[test]
fn linux_answers_a_pushed_segment_once_it_is_read() {
    // tcp_cleanup_rbuf: in ping-pong mode only a second small segment is answered.
    for (pushes, pingpong, answers) in [
        (&[PushKind::None][..], false, false),
        (&[PushKind::Full], false, true),
        (&[PushKind::Small], false, true),
        (&[PushKind::Small], true, false),
        (&[PushKind::Full, PushKind::Full], true, false),
        (&[PushKind::Full, PushKind::Small], true, true),
    ] {
        let mut policy = after_quick_acks();
        for &push in pushes {
            policy.on_data(&LinuxArrival { push, ..arrival(100) });
        }
        if pingpong {
            policy.on_data_sent(|| 0);
        }
        assert_eq!(policy.on_read(true, 200, 1_448), answers, "{pushes:?} {pingpong}");
        assert!(!policy.on_read(false, 200, 1_448), "more is unread");
        policy.on_ack_sent();
        assert!(!policy.on_read(true, 200, 1_448), "it is acknowledged");
    }
}

#[test]
fn linux_counts_data_that_fills_a_gap() {
    // After a pause longer than the timeout, 75 ticks, the first data fills a gap:
    // tcp_event_data_recv gives quick ACKs for those that follow.
    let mut policy = after_quick_acks();
    assert_ne!(policy.on_data(&arrival(1_448)), AckDecision::Now);
    let filling = LinuxArrival { tick: 76, filled: true, ..arrival(1_448) };
    assert_eq!(policy.on_data(&filling), AckDecision::Now);
    policy.on_ack_sent();
    assert_eq!(policy.on_data(&LinuxArrival { tick: 76, ..arrival(1_448) }), AckDecision::Now);
}

#[test]
fn linux_gives_one_quick_ack_to_a_window_of_few_segments() {
    // tcp_incr_quickack: rcv_wnd / (2 * rcv_mss), and 2 only if that is 0.
    for (rcv_wnd, quick) in [(2 * 1_448, 1), (1_448, 2), (6 * 1_448, 3)] {
        let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
        policy.on_data(&LinuxArrival { rcv_wnd, ..arrival(1_448) });
        assert_eq!(policy.quick, quick, "{rcv_wnd}");
    }
}

#[test]
fn linux_delays_acks_in_ping_pong_mode() {
    let forty = AckDecision::Within(Duration::from_millis(40));
    let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
    assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now);
    // A reply within the timeout; the quick ACKs are not used up.
    policy.on_data_sent(|| 9);
    assert_eq!(policy.on_data(&arrival(1_448)), forty);
    // tcp_delack_timer_handler: the reply did not come.
    policy.on_timer(75);
    assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now);
    policy.on_data_sent(|| 10);
    assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now, "the data was no reply");
    // tcp_fin.
    assert_eq!(policy.on_fin(&arrival(1)), Some(forty));
    assert_eq!(policy.on_fin(&arrival(1_449)), Some(AckDecision::Now));
    policy.on_old_data(65_160, 1_448, true);
    assert_eq!(policy.on_data(&arrival(1_448)), AckDecision::Now);
    let mut policy = DelayedAckPolicy::new(&TcpProfile::named("linux-6.18").unwrap().into());
    assert_eq!(policy.on_fin(&arrival(1)), Some(AckDecision::Within(Duration::ZERO)));
}
