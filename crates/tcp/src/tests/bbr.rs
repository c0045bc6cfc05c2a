//! BBR in Linux's stack: pacing, bursts, delivery rates.

use cc::{Algorithm, ControllerNameError};
use machine::Endpoint as _;
use packet::Segment;
use record::Purpose;
use recovery::delivery_rate::DeliveryRates;
use units::{Bytes, Duration, Instant};

use super::pair::{TcpPair, config};
use crate::TcpSide;
use crate::profile::{BurstRule, SendBufferRule, TcpProfile};

fn pair(bytes: u64) -> TcpPair {
    let mut client = config("linux-6.18", TcpSide::Client);
    client.algorithm = Algorithm::Bbr;
    let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
    pair.to_write = bytes;
    pair
}

#[test]
fn it_requires_the_linux_stack() {
    let of = |name| TcpProfile::named(name).unwrap().algorithm("bbr");
    assert_eq!(of("linux-6.18"), Ok(Algorithm::Bbr));
    for name in ["freebsd-14.3", "freebsd-rack-14.3", "rfc"] {
        assert_eq!(of(name), Err(ControllerNameError::OtherStack));
    }
}

#[test]
fn ten_packets_are_sent_at_once_in_bursts_of_two_and_the_others_are_paced() {
    // 0.99 * 739/256 * 10 packets of 1,448 bytes in 100 ms: 413,816 bytes a second.
    let mut pair = pair(200 * 1_448);
    pair.run(Duration::from_millis(150));
    let first: Vec<u32> = pair.data().map(|segment| segment.payload).collect();
    assert_eq!(first, [2 * 1_448; 5]);
    assert!(pair.client.deadline(Purpose::Pacing).is_none());
    // The first acknowledgment covers two packets and releases some, the next has to wait.
    pair.run(Duration::from_millis(200));
    let held = pair.client.deadline(Purpose::Pacing).unwrap();
    let wait = held.since(pair.now).as_nanos();
    let rate = pair.client.snd.pacing_rate();
    assert!((413_000..415_000).contains(&rate), "{rate}");
    let burst = u64::from(pair.data().last().unwrap().payload) * 1_000_000_000 / rate;
    assert!(wait <= burst && wait > 0, "{wait} {burst}");
}

#[test]
fn the_first_write_sends_ten_packets_while_it_goes_on() {
    // A 6.12 in User-Mode Linux: `copied` at the first sk_stream_wait_memory, SO_SNDBUF 69120.
    let mut client = config("linux-6.12", TcpSide::Client);
    client.algorithm = Algorithm::Bbr;
    client.tso = true;
    let BurstRule::Linux(rule) = &mut client.profile.burst else { unreachable!() };
    rule.device_holds = true;
    let mut pair = TcpPair::new(client, config("linux-6.12", TcpSide::Server));
    pair.run(Duration::from_millis(120));
    pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 1 << 20), 75_296));
}

/// tcp_sendmsg_locked calls tcp_rate_check_app_limited once: a call that waits for space in a full send buffer is not
/// limited by the application when it goes on.
#[test]
fn a_write_that_waits_for_space_is_one_call() {
    let mut client = config("linux-6.12", TcpSide::Client);
    client.algorithm = Algorithm::Bbr;
    let SendBufferRule::Linux { wmem, .. } = &mut client.profile.send_buffer else {
        unreachable!()
    };
    wmem[2] = Bytes(32_768);
    let BurstRule::Linux(rule) = &mut client.profile.burst else { unreachable!() };
    rule.device_holds = true;
    let mut pair = TcpPair::new(client, config("linux-6.12", TcpSide::Server));
    pair.to_write = 1 << 20;
    pair.run(Duration::from_millis(1_500));
    let snd = &pair.client.snd;
    assert!(snd.packets_in_flight() < snd.cwnd() / 1_448, "the buffer is the limit");
    assert!(!snd.rates.as_ref().unwrap().delivery.app_limited());
}

/// tcp_rate_check_app_limited asks for `sk_wmem_alloc`: what the device still holds is data to send.
#[test]
fn a_write_while_the_device_holds_packets_is_not_limited_by_the_application() {
    let mut client = config("linux-6.12", TcpSide::Client);
    client.algorithm = Algorithm::Bbr;
    let BurstRule::Linux(rule) = &mut client.profile.burst else { unreachable!() };
    rule.device_holds = true;
    let mut pair = TcpPair::new(client, config("linux-6.12", TcpSide::Server));
    pair.run(Duration::from_millis(120));
    let limits = |pair: &mut TcpPair| {
        let una = pair.client.snd.max;
        let rates = pair.client.snd.rates.as_mut().unwrap();
        rates.delivery = DeliveryRates::new(pair.now, una);
        pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 1_448), 1_448));
        pair.serve();
        pair.client.snd.rates.as_ref().unwrap().delivery.app_limited()
    };
    assert!(limits(&mut pair));
    assert!(!limits(&mut pair), "at the same instant");
    pair.run(Duration::from_millis(400));
    assert!(limits(&mut pair));
}

/// In each 100 ms no more bytes are sent than the highest rate so far allows, plus a burst.
#[test]
fn no_more_is_sent_than_the_rate_allows() {
    let mut pair = pair(3_000 * 1_448);
    let (mut at, mut before) = (Duration::from_millis(300), 0);
    let mut most = 0;
    while pair.read < 3_000 * 1_448 && at < Duration::from_secs(20) {
        pair.run(at);
        let sent: u64 = pair.data().map(|segment| u64::from(segment.payload)).sum();
        most = pair.client.snd.pacing_rate().max(most);
        assert!(
            sent - before <= most / 10 + 65_536 + 14_480,
            "{} in 100 ms at {most}",
            sent - before
        );
        before = sent;
        at += Duration::from_millis(100);
    }
    assert_eq!(pair.read, 3_000 * 1_448);
}

/// tcp_xmit_retransmit_queue retransmits a packet of the retransmission queue, not a segment.
#[test]
fn a_lost_burst_is_retransmitted_as_one() {
    let mut pair = pair(400 * 1_448);
    pair.lose = |number, segment: &Segment| segment.payload == 2 * 1_448 && number % 31 == 30;
    for ms in (100..60_000).step_by(100) {
        pair.run(Duration::from_millis(ms));
        // It still counts as two packets.
        let outstanding = pair.client.snd.scoreboard.sums().all;
        assert_eq!(outstanding.bytes, outstanding.packets * 1_448, "at {ms} ms");
    }
    assert_eq!(pair.read, 400 * 1_448);
    let begin = pair.data().next().unwrap().seq.0;
    let (mut sent, mut retransmitted) = (0, Vec::new());
    for segment in pair.data() {
        let at = segment.seq.0.wrapping_sub(begin);
        if at < sent {
            retransmitted.push(segment.payload);
        }
        sent = sent.max(at + segment.payload);
    }
    assert!(retransmitted.contains(&(2 * 1_448)), "{retransmitted:?}");
}

#[test]
fn lost_packets_are_retransmitted_with_sack_and_without() {
    for sack in [true, false] {
        let mut pair = pair(400 * 1_448);
        pair.client.conn.cfg.profile.sack = sack;
        pair.lose = |number, segment: &Segment| segment.payload > 0 && number % 31 == 30;
        pair.close_after = true;
        pair.run(Duration::from_secs(60));
        assert_eq!(pair.read, 400 * 1_448, "sack {sack}");
        let totals = pair.client.totals();
        assert!(totals.fast_recoveries > 0, "{totals:?}");
        // PRR would have reduced it below the initial ten; a rate-based controller does not.
        assert!(pair.client.snd.cwnd() >= 4 * 1_448);
    }
}

#[test]
fn a_pause_of_the_application_does_not_shrink_the_window() {
    let mut pair = pair(100 * 1_448);
    pair.run(Duration::from_secs(2));
    let before = pair.client.snd.cwnd();
    pair.now = Instant::ZERO + Duration::from_secs(5);
    pair.to_write = 1_448;
    pair.with(TcpSide::Client, |cx, end| end.write(cx, 1_448));
    pair.serve();
    assert_eq!(pair.client.snd.cwnd(), before);
    assert!(pair.client.snd.rates.as_ref().unwrap().delivery.app_limited());
}

#[test]
fn pacing_lengthens_the_timers_by_whole_ticks() {
    // tcp_reset_xmit_timer and tcp_pacing_delay; a tick has 4 ms.
    let mut pair = pair(8 * 1_448);
    pair.lose = |_, segment| segment.payload > 0;
    pair.run(Duration::from_millis(110));
    let (now, rto) = (pair.now, pair.client.snd.rtt.estimator.rto());
    for (held, more) in [(0, 0), (3_900, 0), (51_000, 48)] {
        pair.client.snd.pace_until(now + Duration::from_micros(held));
        pair.client.snd.arm_retransmit(&pair.client.conn, &mut pair.client.timers, now);
        let span = rto + Duration::from_millis(more);
        let expected = pair.client.conn.clock.deadline(now, span);
        assert_eq!(pair.client.deadline(Purpose::Retransmit), Some(expected), "{held} us");
    }
    // A timeout is not lengthened (tcp_retransmit_timer).
    pair.client.snd.rearm_after_timeout(&pair.client.conn, &mut pair.client.timers, now);
    let expected = pair.client.conn.clock.deadline(now, rto);
    assert_eq!(pair.client.deadline(Purpose::Retransmit), Some(expected));
}

/// Lets a tail loss probe become due while pacing holds back the next packet; returns what is sent at once.
fn probe_while_held(unsent: u64, shut: bool) -> (TcpPair, Vec<Segment>) {
    let mut pair = pair(10 * 1_448 + unsent);
    pair.lose = |_, segment| segment.payload > 0;
    pair.run(Duration::from_millis(110));
    assert_eq!(pair.client.snd.packets_in_flight(), 10);
    pair.now = pair.client.deadline(Purpose::LossProbe).unwrap();
    pair.client.snd.pace_until(pair.now + Duration::from_millis(50));
    if shut {
        pair.client.snd.peer.wnd = 10 * 1_448;
    }
    let before = pair.log.len();
    pair.with(TcpSide::Client, |cx, end| end.handle_timeout(cx));
    pair.serve();
    let sent = pair.log[before..].to_vec();
    (pair, sent)
}

#[test]
fn pacing_holds_back_a_probe_of_new_data_and_no_other() {
    // tcp_send_loss_probe: tcp_write_xmit is paced, __tcp_retransmit_skb is not.
    let (pair, sent) = probe_while_held(1_448, false);
    assert!(sent.is_empty());
    assert!(pair.client.deadline(Purpose::Retransmit).is_some());
    let (_, sent) = probe_while_held(1_448, true);
    assert_eq!(sent.iter().map(|segment| segment.seq.0).collect::<Vec<_>>(), [1_001 + 9 * 1_448]);
}

#[test]
fn pacing_alone_runs_after_packets_of_the_same_instant() {
    let mut pair = pair(200 * 1_448);
    pair.run(Duration::from_millis(200));
    let held = pair.client.deadline(Purpose::Pacing).unwrap();
    assert!(pair.client.only_paces(held) && !pair.client.only_paces(pair.now));
    let other = pair.client.deadline(Purpose::LossProbe).unwrap();
    pair.client.timers.stop(Purpose::Pacing);
    assert!(!pair.client.only_paces(other));
}

#[test]
fn pacing_holds_back_a_fin() {
    // tcp_write_xmit looks at the pacing before it looks at the packet.
    let mut pair = pair(8 * 1_448);
    pair.run(Duration::from_millis(110));
    let held = pair.now + Duration::from_millis(30);
    pair.client.snd.pace_until(held);
    pair.client.close();
    pair.serve();
    assert!(!pair.log.last().unwrap().flags.has(packet::Flags::FIN));
    pair.run(Duration::from_millis(145));
    let fin = pair.log.iter().position(|segment| segment.flags.has(packet::Flags::FIN)).unwrap();
    assert_eq!(pair.times[fin], held);
}

fn pair_of_version_3(bytes: u64) -> TcpPair {
    let mut client = config("linux-6.12", TcpSide::Client);
    client.algorithm = Algorithm::Bbr3;
    let mut pair = TcpPair::new(client, config("linux-6.12", TcpSide::Server));
    pair.to_write = bytes;
    pair
}

#[test]
fn version_3_reports_lost_packets_to_the_controller() {
    let mut pair = pair_of_version_3(400 * 1_448);
    pair.lose = |number, segment| segment.payload > 0 && (60..70).contains(&number);
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.client.acknowledged().get(), 400 * 1_448);
    assert!(pair.client.totals().retransmitted_packets > 0);
    assert!(pair.client.snd.scoreboard.take_marked().is_empty());
}

#[test]
fn version_3_looks_for_unsent_data_at_each_acknowledgment() {
    // tcp_ack calls tcp_rate_check_app_limited: the last packets are sent without others behind them.
    let mut pair = pair_of_version_3(30 * 1_448);
    pair.run(Duration::from_millis(250));
    assert!(!pair.client.snd.rates.as_ref().unwrap().delivery.app_limited());
    pair.run(Duration::from_millis(450));
    assert_eq!(pair.client.acknowledged().get(), 30 * 1_448);
    assert!(pair.client.snd.rates.as_ref().unwrap().delivery.app_limited());
}

/// A process of a machine whose clock takes time to read gets to its output later; the output is then still that of the
/// write, which sends by tcp_push_one.
#[test]
fn an_output_that_a_call_reaches_later_is_that_of_the_call() {
    let mut client = config("linux-6.12", TcpSide::Client);
    client.algorithm = Algorithm::Bbr3;
    client.tso = true;
    client.profile.clock_step = 256;
    let BurstRule::Linux(rule) = &mut client.profile.burst else { unreachable!() };
    rule.device_holds = true;
    let mut pair = TcpPair::new(client, config("linux-6.12", TcpSide::Server));
    pair.run(Duration::from_millis(120));
    let begun = pair.now;
    pair.with(TcpSide::Client, |cx, end| {
        let written = end.write(cx, 1 << 20);
        let mut slot = Segment::default();
        assert!(end.poll_transmit(cx, &mut slot).is_err(), "the clock was not read yet");
        let pushed = end.snd.rates.as_ref().and_then(|rates| rates.awaited_push);
        let (at, until) = pushed.expect("the write has a full packet");
        assert!(at > begun && until.0 > 1 && until.0 <= 1 + written);
        cx.now = at;
        end.handle_timeout(cx);
        assert_eq!(end.snd.pushed_until(&end.conn), Some(until));
        end.snd.end_write_turn();
        assert_eq!(end.snd.pushed_until(&end.conn), None);
    });
}
