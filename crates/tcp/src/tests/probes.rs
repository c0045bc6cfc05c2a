//! Probes of a zero window (RFC 9293 section 3.8.6.1) and of an idle connection (section 3.8.4).

use machine::Signal;
use packet::{Dir, Flags};
use units::{Duration, Instant, SeqNum};

use super::pair::{TcpPair, config};
use crate::knobs::{self, KnobValue};
use crate::{Keepalive, TcpSide, TcpState};

const HOUR: Duration = Duration::from_secs(3_600);

/// A sender that has filled the window of 64 KiB of a reader that does not read.
fn with_filled_window(system: &str) -> TcpPair {
    let mut server = config("freebsd-13.2", TcpSide::Server);
    let fixed = knobs::find(&server.profile, "net.inet.tcp.recvbuf_auto").unwrap();
    fixed.set(&mut server.profile, KnobValue::Switch(false)).unwrap();
    let mut pair = TcpPair::new(config(system, TcpSide::Client), server);
    pair.reads = false;
    pair.to_write = 200_000;
    pair.run(Duration::from_secs(60));
    pair
}

#[test]
fn a_zero_window_is_probed_and_its_reopening_detected() {
    for system in crate::profile::NAMES {
        let mut pair = with_filled_window(system);
        let before = pair.log.len();
        // The reader reads, but its window update is lost.
        pair.lose = |_, s| s.dir == Dir::Reverse;
        pair.reads = true;
        pair.read_all();
        pair.lose = |_, _| false;
        pair.run(HOUR);
        assert_eq!(pair.read, 200_000, "{system}");
        assert!(pair.log.len() > before, "{system}");
    }
}

#[test]
fn the_base_stack_probes_with_a_byte_rack_and_linux_with_an_old_number() {
    for (system, payload, ahead) in [
        ("freebsd-13.2", 1, 0),
        ("rfc", 1, 0),
        ("linux-6.18", 0, -1),
        // rack_timeout_persist: what a keepalive sends.
        ("freebsd-rack-14.3", 0, -1),
    ] {
        let mut pair = with_filled_window(system);
        let una = 1_001 + pair.client.sender_state().snd_una.0 as u32;
        let before = pair.log.len();
        pair.run(Duration::from_secs(120));
        let probe = pair.log[before..].iter().find(|s| s.dir == Dir::Forward).unwrap();
        assert_eq!(probe.payload, payload, "{system}");
        assert_eq!(probe.seq, SeqNum(una.wrapping_add_signed(ahead)), "{system}");
    }
}

#[test]
fn rack_probes_a_window_below_a_segment_for_ever() {
    // rack_do_segment leaves persist mode only at min(rc_high_rwnd / 2, rc_pace_min_segs), here a
    // segment.
    // In units of 1,024 bytes: less than a segment, more than one.
    for (window, sends) in [(1, false), (2, true)] {
        let mut pair = TcpPair::of("freebsd-rack-14.3", "linux-6.18");
        pair.run(Duration::from_millis(500));
        pair.lose = |_, _| true;
        let hear = |pair: &mut TcpPair, seq, window| {
            let data = pair.forge(Flags::ACK, seq, 1);
            drop(pair.hear(&packet::Segment { window, payload: 1, ..data }));
        };
        hear(&mut pair, 1, 0);
        pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 5_000), 5_000));
        pair.serve();
        let before = pair.log.len();
        hear(&mut pair, 2, window);
        pair.run(Duration::from_secs(100));
        let sent = &pair.log[before..];
        assert_eq!(sent.iter().any(|s| s.payload > 0), sends, "{window}");
        if !sends {
            // Unanswered, every two seconds at last (`rack_persist_max`).
            assert!((49..=55).contains(&sent.len()), "{}", sent.len());
        }
    }
}

#[test]
fn an_answer_that_leaves_the_window_shut_restarts_linux_probe_timer() {
    // tcp_ack_probe; the retransmission timeout is 200 to 300 ms.
    let mut pair = TcpPair::of("linux-6.12", "linux-6.12");
    pair.run(Duration::from_millis(500));
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    pair.now = at(500);
    pair.lose = |_, _| true;
    let hear = |pair: &mut TcpPair| {
        let ack = pair.forge(Flags::ACK, 1, 1);
        drop(pair.hear(&packet::Segment { window: 0, ..ack }));
    };
    hear(&mut pair);
    pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 5_000), 5_000));
    pair.serve();
    let before = pair.log.len();
    for ms in [550, 600, 650] {
        pair.run(Duration::from_millis(ms));
        pair.now = at(ms);
        hear(&mut pair);
    }
    pair.run(Duration::from_millis(840));
    assert_eq!(pair.log.len(), before, "no probe within 200 ms of an answer");
    pair.run(Duration::from_millis(1_100));
    assert_eq!(pair.log.len(), before + 1);
}

#[test]
fn probes_back_off() {
    let mut pair = with_filled_window("linux-6.18");
    let mut count = |until: u64| {
        pair.run(Duration::from_secs(until));
        pair.log.iter().filter(|s| s.dir == Dir::Forward).count()
    };
    let (minute, ten, twenty) = (count(60), count(600), count(1_200));
    assert!(ten - minute < 12, "{} probes in nine minutes", ten - minute);
    // At most one in two minutes after backoff (TCP_RTO_MAX).
    assert!(twenty - ten <= 6, "{} probes in ten minutes", twenty - ten);
    assert!(twenty > ten, "it never stops probing");
}

/// Segments sent after the peer has stopped answering.
fn unanswered(pair: &mut TcpPair) -> Vec<packet::Segment> {
    pair.lose = |_, _| true;
    let before = pair.log.len();
    pair.run(HOUR.saturating_mul(4));
    pair.log[before..].to_vec()
}

#[test]
fn linux_sends_fifteen_window_probes_to_a_silent_peer() {
    // tcp_probe_timer: icsk_probes_out against tcp_retries2; every ACK resets it.
    let mut pair = with_filled_window("linux-6.18");
    pair.run(Duration::from_secs(1_200));
    let sent = unanswered(&mut pair);
    assert_eq!(sent.len(), 15);
    assert!(sent.iter().all(|s| s.flags == Flags::ACK && s.payload == 0));
    assert_eq!(pair.client.state(), TcpState::Closed);
    assert!(pair.signals.contains(&(TcpSide::Client, Signal::Aborted)));
}

#[test]
fn freebsd_probes_a_silent_peer_for_as_long_as_all_timeouts_would_take() {
    // tcp_timer_persist: 12 doublings, and silence for TCP_REXMTVAL * 2559 or two hours.
    let mut pair = with_filled_window("freebsd-13.2");
    let received = pair.log.len();
    let last = pair.now;
    let limit = pair.client.snd.rtt.estimator.all_timeouts().unwrap();
    let sent = unanswered(&mut pair);
    assert!(
        received > 0 && limit > Duration::from_secs(200) && limit < HOUR.saturating_mul(2),
        "{limit:?}"
    );
    let silent = pair.now.since(last);
    assert!(silent >= limit && silent < limit + Duration::from_secs(121), "{silent:?} {limit:?}");
    assert!(sent.len() > 3 && sent[sent.len() - 1].flags.has(Flags::RST));
    assert_eq!(pair.client.state(), TcpState::Closed);
}

#[test]
fn freebsd_probes_for_a_minute_only_after_close() {
    let mut pair = with_filled_window("freebsd-14.3");
    pair.with(TcpSide::Client, |_, end| end.close());
    let (from, sent) = (pair.now, unanswered(&mut pair));
    assert!(pair.now.since(from) < Duration::from_secs(180), "{:?}", pair.now);
    assert!(sent[sent.len() - 1].flags.has(Flags::RST));
}

#[test]
fn a_connection_that_times_out_is_ended_with_a_reset_by_freebsd_alone() {
    // tcp_drop of FreeBSD; tcp_write_err of Linux sends nothing.
    for (system, reported) in
        [("freebsd-14.3", true), ("freebsd-rack-14.3", true), ("linux-6.18", false)]
    {
        let mut pair =
            TcpPair::new(config(system, TcpSide::Client), config("linux-6.18", TcpSide::Server));
        pair.run(Duration::from_secs(1));
        pair.lose = |_, _| true;
        pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 100), 100));
        pair.run(HOUR);
        assert_eq!(pair.client.state(), TcpState::Closed, "{system}");
        let last = pair.log[pair.log.len() - 1];
        assert_eq!(last.flags.has(Flags::RST), reported, "{system}: {last:?}");
    }
}

#[test]
fn freebsd_13_ends_the_backoff_of_its_probes_at_every_segment() {
    // tcp_output of 13.0 sets t_rxtshift to zero whenever it finds the window closed, 14.3 and main
    // only if the persist timer does not run.
    for (system, backs_off) in [
        ("freebsd-13.0", false),
        ("freebsd-13.2", false),
        ("freebsd-14.3", true),
        ("freebsd-main", true),
    ] {
        let mut pair = TcpPair::of(system, "linux-6.18");
        pair.run(Duration::from_millis(500));
        pair.lose = |_, _| true;
        let closed = packet::Segment { window: 0, ..pair.forge(Flags::ACK, 1, 1) };
        drop(pair.hear(&closed));
        pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 100), 100));
        pair.serve();
        // A byte from the peer each second, and an ACK for it: a call of tcp_output.
        for second in 1..=300 {
            pair.run(Duration::from_secs(second));
            pair.now = Instant::ZERO + Duration::from_secs(second);
            let data = pair.forge(Flags::ACK, second as i64, 1);
            drop(pair.hear(&packet::Segment { window: 0, payload: 1, ..data }));
        }
        let probes = pair.log.iter().filter(|s| s.dir == Dir::Forward && s.payload == 1).count();
        // Every five seconds (TCPTV_PERSMIN), or with the backoff at last once a minute.
        assert_eq!(probes < 30, backs_off, "{system}: {probes}");
    }
}

fn with_keepalive(client: &str) -> TcpPair {
    let mut config_of_client = config(client, TcpSide::Client);
    config_of_client.keepalive = Some(Keepalive {
        idle: Duration::from_secs(100),
        interval: Duration::from_secs(10),
        count: 3,
    });
    let mut pair = TcpPair::new(config_of_client, config("linux-6.18", TcpSide::Server));
    pair.run(Duration::from_secs(10));
    pair
}

#[test]
fn a_silent_peer_is_probed_and_its_answer_keeps_the_connection() {
    for system in crate::profile::NAMES {
        let mut pair = with_keepalive(system);
        let before = pair.log.len();
        pair.run(Duration::from_secs(350));
        let sent: Vec<_> = pair.log[before..].iter().map(|s| (s.dir, s.seq.0)).collect();
        // Probe and answer, three times in 350 s.
        let probe = (Dir::Forward, 1_000);
        let answer = (Dir::Reverse, 2_000_000_001);
        assert_eq!(sent, [probe, answer].repeat(3), "{system}");
        assert_eq!(pair.client.state(), TcpState::Established, "{system}");
    }
}

#[test]
fn linux_does_not_probe_while_a_fin_is_outstanding() {
    // tcp_keepalive_timer: `packets_out` counts the FIN.
    let mut pair = with_keepalive("linux-6.18");
    pair.lose = |_, _| true;
    let before = pair.log.len();
    pair.client.close();
    pair.run(Duration::from_secs(200));
    assert!(pair.log[before..].iter().all(|s| s.seq == SeqNum(1_001) && s.flags.has(Flags::FIN)));
}

#[test]
fn a_connection_to_a_peer_that_never_answers_is_dropped() {
    // Both kernels send a RST (tcp_drop of FreeBSD in tcp_timer_keep, tcp_send_active_reset of
    // Linux in tcp_keepalive_timer); RFC 9293 does not require one.
    for system in crate::profile::NAMES {
        let mut pair = with_keepalive(system);
        pair.lose = |_, _| true;
        let before = pair.log.len();
        pair.run(HOUR);
        let resets: Vec<_> = pair.log[before..].iter().map(|s| s.flags.has(Flags::RST)).collect();
        let reported: &[bool] = if system == "rfc" { &[] } else { &[true] };
        // rack_timeout_keepalive waits for `keepidle` again after its probe, and then finds that
        // the silence exceeds the 130 s.
        let rack = system.starts_with("freebsd-rack");
        let probes: &[bool] = if rack { &[false] } else { &[false; 3] };
        assert_eq!(resets, [probes, reported].concat(), "{system}");
        assert_eq!(pair.client.state(), TcpState::Closed, "{system}");
        assert!(pair.signals.contains(&(TcpSide::Client, Signal::Aborted)), "{system}");
        // The last segment was received at 100 ms; 100 s of idle time, then three probes 10 s
        // apart. Linux's timer wheel has buckets of 2,048 ms for the first of these spans, of 256
        // ms for the others, and a timer fires when its bucket has passed: at 100,352, 110,592,
        // 120,832 and 131,072 ms.
        let closes = match system {
            _ if rack => 200_100,
            _ if system.starts_with("linux") => 131_072,
            _ => 130_100,
        };
        assert_eq!(pair.now.as_nanos() / 1_000_000, closes, "{system}");
    }
}

#[test]
fn a_keepalive_probe_of_freebsd_is_not_the_ack_that_is_due() {
    // tcp_timer_keep sends it by tcp_respond, which leaves TF_ACKNOW and rcv_adv alone.
    for system in crate::profile::NAMES.into_iter().filter(|name| name.starts_with("freebsd")) {
        let mut client = config(system, TcpSide::Client);
        // The delayed ACK and the probe are due at the same time.
        let (idle, interval) = (Duration::from_millis(40), Duration::from_secs(100));
        client.keepalive = Some(Keepalive { idle, interval, count: 3 });
        let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
        pair.run(Duration::from_millis(500));
        let data = packet::Segment { payload: 100, ..pair.forge(Flags::ACK, 1, 1) };
        assert_eq!(pair.hear(&data), [], "{system}");
        let before = pair.log.len();
        pair.run(Duration::from_millis(580));
        let sent = pair.log[before..].iter().filter(|s| s.dir == Dir::Forward);
        let sent: Vec<_> = sent.map(|s| (s.seq.0, s.ack.0, s.payload)).take(2).collect();
        let acked = 2_000_000_101;
        assert_eq!(sent, [(1_000, acked, 0), (1_001, acked, 0)], "{system}");
    }
}

#[test]
fn data_of_the_peer_restarts_the_keepalive_timer() {
    let mut pair = with_keepalive("freebsd-13.2");
    let before = pair.log.len();
    for seconds in [90, 180, 270] {
        pair.run(Duration::from_secs(seconds));
        pair.now = Instant::ZERO + Duration::from_secs(seconds);
        pair.with(TcpSide::Server, |cx, end| assert_eq!(end.write(cx, 10), 10));
        pair.serve();
    }
    pair.run(Duration::from_secs(360));
    assert!(pair.log[before..].iter().all(|s| s.seq != SeqNum(1_000)), "no probe");
}

#[test]
fn no_keepalive_probe_is_sent_while_data_is_outstanding() {
    // tcp_keepalive_timer of Linux: "It is alive without keepalive" while packets are outstanding;
    // the retransmissions show whether the peer is alive.
    let mut client = config("linux-6.18", TcpSide::Client);
    let second = Duration::from_secs(1);
    client.keepalive = Some(Keepalive { idle: second, interval: second, count: 100 });
    let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
    pair.run(Duration::from_millis(500));
    pair.lose = |_, _| true;
    pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 100), 100));
    let before = pair.log.len();
    pair.run(Duration::from_secs(20));
    assert!(pair.log.len() > before + 3);
    assert!(pair.log[before..].iter().all(|s| s.payload == 100), "{:?}", &pair.log[before..]);
}

#[test]
fn outstanding_data_suspends_keepalive_on_linux_and_not_on_freebsd() {
    // tcp_keepalive_timer restarts while packets are outstanding; tcp_timer_keep probes and drops.
    for (system, state) in
        [("linux-6.18", TcpState::Established), ("freebsd-14.3", TcpState::Closed)]
    {
        let mut pair = with_keepalive(system);
        pair.lose = |_, _| true;
        pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 100), 100));
        pair.run(Duration::from_secs(135));
        assert_eq!(pair.client.state(), state, "{system}");
    }
}

#[test]
fn linux_fills_a_window_smaller_than_the_segment_by_a_probe() {
    // golden/packetdrill/persist-small-window-split; tcp_write_wakeup.
    let mut client = config("linux-6.18", TcpSide::Client);
    client.profile.timestamps = false;
    let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
    pair.run(Duration::from_millis(200));
    let small = pair.forge(Flags::ACK, 1, 1);
    // Scaled by 10 bits.
    pair.hear(&packet::Segment { window: 0, ..small });
    pair.hear(&packet::Segment { window: 1, ..small });
    pair.lose = |_, segment| segment.dir == Dir::Reverse;
    let before = pair.log.len();
    pair.with(TcpSide::Client, |cx, end| end.write(cx, 1_460));
    pair.serve();
    assert_eq!(pair.log.len(), before, "the segment does not fit");
    pair.run(Duration::from_millis(700));
    let part = pair.log[before..].iter().find(|s| s.dir == Dir::Forward).unwrap();
    assert_eq!(
        (part.payload, part.flags, part.seq),
        (1_024, Flags::ACK | Flags::PSH, SeqNum(1_001))
    );
}
