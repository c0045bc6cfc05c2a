//! Events as in public logs that showed a fault of the rules (docs/quic.md).

use super::*;

/// A PING of 1,400 bytes is lost among packets of 1,200: the path MTU is 1,200, and the window stays.
#[test]
fn a_lost_probe_of_the_path_mtu_is_no_congestion() {
    let mut log = Log::new(true);
    log.window(0, 100_000);
    log.data(0, 0, 1_200);
    log.ack(50, 0, 0);
    log.sent(50, 1, 1_400, &[QuicFrame::Other, QuicFrame::Padding]);
    for number in 2..6 {
        log.data(50, number, 1_200);
    }
    log.ack(100, 2, 5);
    let lost = |number| QuicRecord::Lost {
        kind: QuicPacketKind::OneRtt,
        number: Some(number),
        trigger: QuicLossTrigger::Unknown,
    };
    log.push(100, &lost(1));
    let (analysis, diagnosis) = log.finish();
    assert_eq!((analysis.all_lost(), analysis.episodes.len()), (1, 0));
    let codes: Vec<_> = diagnosis.findings.iter().map(|found| found.code).collect();
    assert!(!codes.contains(&"CC811"), "{codes:?}");
}

/// A window of 10 kB, spread over 2 s and acknowledged 30 ms late: 10 kB of 2.03 s in 30 ms are 148 bytes, less than a
/// datagram, so the bottleneck has no queue. Over 100 ms and 60 ms of delay they are 3,750 bytes.
#[test]
fn a_delay_in_which_no_datagram_fits_is_no_queue() {
    for (rtt, late, queue) in [(2_000, 30, false), (100, 60, true)] {
        let mut log = Log::new(true);
        log.window(0, 10_000);
        let step = (rtt + late) / 10;
        for n in 0..150 {
            if n >= 10 {
                log.ack(n * step, n - 10, n - 10);
            }
            log.data(n * step, n, 1_000);
            // The shortest round trip.
            let metrics = QuicMetrics { min_rtt: Some(rtt * MS), ..QuicMetrics::default() };
            log.push(n * step, &QuicRecord::Metrics(metrics));
        }
        let (analysis, diagnosis) = log.finish();
        assert_eq!(analysis.is_bottleneck_known(), queue, "{:?}", analysis.bottleneck);
        let expected = if queue { "CC835" } else { "CC833" };
        assert_eq!(diagnosis.primary, Some(expected));
    }
}

/// A server that closes by its idle timeout: in order after the last ACK, not if nothing was acknowledged or
/// probe timeouts are unanswered.
#[test]
fn an_idle_timeout_is_in_order_if_all_data_were_acknowledged() {
    for (timeout_at, acked_at, by_peer, severity) in [
        (None, Some(50), false, Severity::Note),
        (Some(30), Some(50), false, Severity::Note),
        (Some(70), Some(50), false, Severity::Warning),
        (None, None, true, Severity::Warning),
    ] {
        let mut log = Log::new(false);
        log.data(0, 0, 1_000);
        let mut events: Vec<(u64, bool)> = timeout_at.map(|at| (at, true)).into_iter().collect();
        events.extend(acked_at.map(|at| (at, false)));
        events.sort_unstable();
        for (at, is_timeout) in events {
            if is_timeout {
                log.push(at, &QuicRecord::TimeoutExpired);
            } else {
                log.ack(at, 0, 0);
            }
        }
        let closed = QuicRecord::Closed {
            by_peer: Some(by_peer),
            code: "25",
            reason: "",
            idle_timeout: true,
            is_error: false,
        };
        log.push(30_000, &closed);
        let (_, diagnosis) = log.finish();
        let found = found(&diagnosis, "CC804");
        assert_eq!(found.severity, severity, "{timeout_at:?} {acked_at:?}");
        assert_eq!(found.title.starts_with("the peer closed"), by_peer);
    }
}

/// Every fifth packet number never arrives after a handshake of 1 s: the losses are named first, although their
/// cost is not in a receiver's log.
#[test]
fn many_losses_of_a_receiver_are_named_before_a_slow_handshake() {
    let mut log = Log::new(true);
    let initial = QuicPacketRecord {
        kind: QuicPacketKind::Initial,
        number: Some(0),
        bytes: Some(1_200),
        frames: &[QuicFrame::Crypto { offset: 0, length: 300 }],
        ..QuicPacketRecord::default()
    };
    log.push(0, &QuicRecord::Sent(initial));
    log.received(1_000, QuicPacketKind::Initial, 1_200, &[QuicFrame::Other]);
    log.sent(1_000, 0, 100, &[QuicFrame::Other]);
    log.ack(1_050, 0, 0);
    for number in (2_000..6_000_u64).filter(|number| number % 5 != 0) {
        let packet = QuicPacketRecord {
            number: Some(number),
            bytes: Some(1_200),
            frames: &[QuicFrame::Stream {
                id: 0,
                offset: number * 1_000,
                length: 1_000,
                fin: false,
            }],
            ..QuicPacketRecord::default()
        };
        log.push(number, &QuicRecord::Received(packet));
    }
    let (_, diagnosis) = log.finish();
    assert!(found(&diagnosis, "CC801").cost > Duration::from_millis(900));
    let losses = found(&diagnosis, "CC811");
    assert_eq!((losses.severity, diagnosis.primary), (Severity::Error, Some("CC811")));
}

/// A log without a window: 60 s with nothing in flight are idle, 60 s with a packet in flight are not.
#[test]
fn a_silence_with_nothing_in_flight_is_idle_without_a_window_too() {
    for acked in [true, false] {
        let mut log = Log::new(true);
        for number in 0..10 {
            log.data(number * 100, number, 1_000);
            log.ack(number * 100 + 50, 0, if acked { number } else { number.saturating_sub(1) });
        }
        log.data(61_000, 10, 1_000);
        let (analysis, _) = log.finish();
        let idle = analysis.time(QuicLimiter::Idle);
        assert_eq!(idle, if acked { 60_050 * MS } else { 0 });
    }
}

/// A flight of 3,000 bytes after an Initial of 300 and the padding that few logs show, with nothing left to send:
/// the server waits for the client, not for the limit.
#[test]
fn a_server_that_sends_no_more_was_not_at_the_anti_amplification_limit() {
    let mut log = Log::new(false);
    let hello = [QuicFrame::Crypto { offset: 0, length: 280 }];
    log.received(0, QuicPacketKind::Initial, 300, &hello);
    for number in 0..3 {
        let packet = QuicPacketRecord {
            kind: QuicPacketKind::Handshake,
            number: Some(number),
            bytes: Some(1_000),
            frames: &[QuicFrame::Crypto { offset: number * 900, length: 900 }],
            ..QuicPacketRecord::default()
        };
        log.push(0, &QuicRecord::Sent(packet));
    }
    log.received(80, QuicPacketKind::Handshake, 100, &[QuicFrame::Other]);
    log.received(80, QuicPacketKind::OneRtt, 60, &[QuicFrame::Other]);
    log.data(80, 0, 1_000);
    log.ack(160, 0, 0);
    let (analysis, diagnosis) = log.finish();
    let times = [QuicLimiter::Handshake, QuicLimiter::AntiAmplification];
    assert_eq!(times.map(|limiter| analysis.time(limiter)), [80 * MS, 0]);
    assert!(diagnosis.findings.iter().all(|found| found.code != "CC802"));
}

/// Ten packets that end the only stream, of which one is lost: the application is not waited for, and the
/// retransmission costs its round trip. Control streams never end.
#[test]
fn after_the_end_of_all_streams_the_application_is_no_limit() {
    let mut log = Log::new(true);
    log.window(0, 100_000);
    log.sent(0, 0, 100, &[QuicFrame::Stream { id: 2, offset: 0, length: 10, fin: false }]);
    for number in 1..=10 {
        let fin = number == 10;
        let offset = number * 1_000;
        let frame = QuicFrame::Stream { id: 0, offset, length: 1_000, fin };
        log.sent(0, number, 1_000, &[frame]);
    }
    log.ack(100, 0, 1);
    log.ack(100, 3, 10);
    let kind = QuicPacketKind::OneRtt;
    let trigger = QuicLossTrigger::Packets;
    log.push(100, &QuicRecord::Lost { kind, number: Some(2), trigger });
    log.sent(
        100,
        11,
        1_000,
        &[QuicFrame::Stream { id: 0, offset: 2_000, length: 1_000, fin: false }],
    );
    log.ack(200, 11, 11);
    let (analysis, diagnosis) = log.finish();
    assert_eq!(analysis.time(QuicLimiter::Recovery), 100 * MS);
    assert_eq!((analysis.time(QuicLimiter::Application), diagnosis.primary), (0, Some("CC811")));
}

/// Groups of ten packets every 200 ms over a round trip of 300 ms: without a window in the log the timer is the
/// limit, with one the application that writes on it.
#[test]
fn groups_of_a_timer_are_found() {
    for (has_window, primary) in [(false, "CC838"), (true, "CC831")] {
        let mut log = Log::new(true);
        if has_window {
            log.window(0, 1_000_000);
        }
        let mut acks = Vec::new();
        for group in 0..30_u64 {
            let at = group * 200;
            while let Some(&(ack_at, to)) = acks.first().filter(|(ack_at, _)| *ack_at < at) {
                log.ack(ack_at, 0, to);
                acks.remove(0);
            }
            for n in 0..10 {
                log.data(at, group * 10 + n, 1_200);
            }
            acks.push((at + 300, group * 10 + 9));
        }
        let (_, diagnosis) = log.finish();
        assert_eq!(diagnosis.primary, Some(primary));
        let timer = found(&diagnosis, "CC838");
        assert!(timer.title.contains("200 ms, 10 packets"), "{}", timer.title);
        assert_eq!(timer.severity == Severity::Note, has_window);
    }
}

/// Old logs of quiche have no events of losses; one packet in five is never acknowledged.
#[test]
fn losses_show_in_what_is_never_acknowledged() {
    for is_logged in [false, true] {
        let mut log = Log::new(true);
        log.window(0, 100_000);
        for number in 0..40_u64 {
            log.data(number * 20, number, 1_200);
            if number % 5 != 0 {
                log.ack(number * 20 + 10, number, number);
            }
        }
        if is_logged {
            let kind = QuicPacketKind::OneRtt;
            let trigger = QuicLossTrigger::Packets;
            log.push(800, &QuicRecord::Lost { kind, number: Some(5), trigger });
        }
        let (analysis, diagnosis) = log.finish();
        assert_eq!(analysis.passed_over, if is_logged { 0 } else { 8 });
        let expected = if is_logged { "1 of 40" } else { "8 of 40" };
        assert!(found(&diagnosis, "CC811").title.starts_with(expected));
    }
}

/// Rounds of 50 ms after the loss of a packet in a window of 100 kB. Of a sender that halves its window, the
/// congestion event lasts until the window is regained, 1 s later, also if the log has the unreduced window
/// once more between the loss and the reduction (aioquic). Of one that does not, it lasts a round trip.
#[test]
fn a_congestion_event_lasts_until_the_window_has_fallen_and_is_regained() {
    const MICROS: u64 = 1_000;
    for (unreduced, reduced, after) in [
        (Some(7), Some(20), 1_000),
        (None, Some(20), 1_000),
        (Some(7), None, 50),
        // The window is reduced in the same instant.
        (Some(0), Some(0), 1_000),
    ] {
        let mut log = Log::new(true);
        log.window(0, 100_000);
        for number in 0..100 {
            log.data(0, number, 1_000);
        }
        log.ack(50, 1, 99);
        log.push(
            50,
            &QuicRecord::Lost {
                kind: QuicPacketKind::OneRtt,
                number: Some(0),
                trigger: QuicLossTrigger::Packets,
            },
        );
        for (micros, window) in [(unreduced, 100_000), (reduced, 50_000)] {
            let Some(micros) = micros else { continue };
            let metrics = QuicMetrics { congestion_window: Some(window), ..QuicMetrics::default() };
            log.events += 1;
            let at = 50 * MS + micros * MICROS;
            log.analyzer.push(at, log.events, &QuicRecord::Metrics(metrics));
        }
        let window = if reduced.is_some() { 50 } else { 100 };
        let mut next = 100;
        for round in 1..=20 {
            for number in next..next + window {
                log.data(50 * round + 1, number, 1_000);
            }
            log.ack(50 * round + 50, next, next + window - 1);
            log.window(50 * round + 50, if round == 20 { 100_000 } else { window * 1_000 });
            next += window;
        }
        let (analysis, _) = log.finish();
        let [episode] = &analysis.episodes[..] else { panic!("{:?}", analysis.episodes) };
        let limited = episode.span.ns / MS;
        assert!(
            limited <= after && limited * 10 >= after * 9,
            "{unreduced:?}, {reduced:?}: {limited} ms"
        );
    }
}
