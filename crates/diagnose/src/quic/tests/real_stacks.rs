//! What the logs of today's stacks showed: outages of one timeout, requests at a limit, new paths, initial round trips.

use super::*;

const PACKET: u64 = 1_000;

/// Three round trips of 100 ms with a full window of ten packets, and a fourth of which `arrived` packets arrive; a probe
/// 300 ms later shows that the others are lost.
fn silence(arrived: u64) -> (QuicAnalysis, QuicDiagnosis) {
    let mut log = Log::new(true);
    log.limits(0, 1 << 30, 1 << 30);
    log.window(0, 10 * PACKET);
    for round in 0..4 {
        for n in 0..10 {
            log.data(round * 100, round * 10 + n, PACKET);
        }
        match round {
            0..3 => log.ack(round * 100 + 100, 0, round * 10 + 9),
            _ if arrived > 0 => log.ack(400, 30, 29 + arrived),
            _ => {}
        }
    }
    log.data(700, 40, PACKET);
    log.ack(800, 40, 40);
    for number in 30 + arrived..40 {
        let kind = QuicPacketKind::OneRtt;
        let trigger = QuicLossTrigger::Packets;
        log.push(800, &QuicRecord::Lost { kind, number: Some(number), trigger });
    }
    log.window(801, 5 * PACKET);
    for round in 0..10 {
        let (at, first) = (810 + round * 100, 41 + round * 5);
        for n in 0..5 {
            log.data(at, first + n, PACKET);
        }
        log.ack(at + 100, first, first + 4);
    }
    log.finish()
}

#[test]
fn a_full_window_of_which_nothing_arrives_is_an_outage() {
    let (analysis, diagnosis) = silence(0);
    assert_eq!((analysis.timeouts, analysis.max_timeouts), (1, 1));
    assert!(analysis.episodes[0].after_outage);
    // The ACKs were due at 400 ms, and the window is not regained.
    let finding = found(&diagnosis, "CC813");
    assert_eq!(diagnosis.primary, Some("CC813"));
    assert!(finding.cost.as_nanos() >= 1_200 * MS, "{:?}", finding.cost);
    assert!(!diagnosis.findings.iter().any(|found| found.code == "CC811"));
}

#[test]
fn the_lost_end_of_a_flight_is_no_outage() {
    let (analysis, diagnosis) = silence(5);
    assert!(!analysis.episodes[0].after_outage);
    assert_eq!(diagnosis.primary, Some("CC811"));
}

#[test]
fn the_requester_shows_its_own_limit_a_round_trip_later() {
    let mut log = Log::new(true);
    let limits = QuicLimits {
        max_data: Some(1 << 30),
        bidi_local: Some(5_000),
        bidi_remote: Some(5_000),
        uni: Some(5_000),
        max_ack_delay: Some(25 * MS),
    };
    log.push(0, &QuicRecord::Parameters { remote: false, limits });
    log.data(0, 0, 100);
    log.ack(100, 0, 0);
    for round in 0..10 {
        let at = 100 + round * 100;
        let offset = round * 5_000;
        let frame = QuicFrame::Stream { id: 0, offset, length: 5_000, fin: false };
        log.received(at, QuicPacketKind::OneRtt, 5_100, &[frame]);
        let raised = QuicFrame::MaxStreamData { id: 0, limit: offset + 10_000 };
        log.sent(at + 1, round + 1, 40, &[raised]);
    }
    let (analysis, diagnosis) = log.finish();
    assert!(!analysis.is_sender());
    assert!(analysis.time(QuicLimiter::StreamFlow) >= 800 * MS);
    let finding = found(&diagnosis, "CC822");
    assert_eq!((finding.kind, diagnosis.primary), ("small-window", Some("CC822")));
}

#[test]
fn a_new_path_that_resets_the_window_is_the_verdict() {
    let mut log = Log::new(false);
    log.limits(0, 1 << 30, 1 << 30);
    log.window(0, 100 * PACKET);
    for n in 0..100 {
        log.data(0, n, PACKET);
    }
    log.ack(100, 0, 49);
    log.received(110, QuicPacketKind::OneRtt, 40, &[QuicFrame::PathChallenge]);
    for number in 50..60 {
        let kind = QuicPacketKind::OneRtt;
        let trigger = QuicLossTrigger::Packets;
        log.push(150, &QuicRecord::Lost { kind, number: Some(number), trigger });
    }
    log.ack(150, 60, 99);
    log.window(151, 10 * PACKET);
    for round in 0..10 {
        let (at, first) = (160 + round * 100, 100 + round * 10);
        for n in 0..10 {
            log.data(at, first + n, PACKET);
        }
        log.ack(at + 100, first, first + 9);
    }
    let (_, diagnosis) = log.finish();
    let finding = found(&diagnosis, "CC853");
    assert_eq!(diagnosis.primary, Some("CC853"));
    assert!(finding.cost.as_nanos() >= 500 * MS, "{:?}", finding.cost);
}

#[test]
fn the_initial_round_trip_is_no_sample() {
    let mut log = Log::new(false);
    let logged = |ms: u64| QuicMetrics {
        min_rtt: Some(ms * MS),
        smoothed_rtt: Some(ms * MS),
        latest_rtt: Some(ms * MS),
        ..QuicMetrics::default()
    };
    log.received(0, QuicPacketKind::Initial, 1_200, &[QuicFrame::Other]);
    log.push(0, &QuicRecord::Metrics(logged(333)));
    log.sent(1, 0, PACKET, &[QuicFrame::Crypto { offset: 0, length: 900 }]);
    log.push(1, &QuicRecord::Metrics(logged(333)));
    log.ack(31, 0, 0);
    log.push(31, &QuicRecord::Metrics(logged(30)));
    let (analysis, _) = log.finish();
    assert_eq!(analysis.round_trips, Some([30 * MS; 3]));
}
