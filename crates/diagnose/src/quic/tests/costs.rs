//! Costs that what a path carries anyway is no part of.

use super::*;

const PACKET: u64 = 1_000;

/// An application that writes 50 packets each 100 ms on a link that carries one in a millisecond, with round trips of 20 ms:
/// half of the time the link is idle.
fn slow_writer() -> (QuicAnalysis, QuicDiagnosis) {
    let mut log = Log::new(true);
    log.limits(0, 1 << 30, 1 << 30);
    log.window(0, 400 * PACKET);
    // Not in milliseconds, as a coarse clock.
    let us = |log: &mut Log, at: u64, record: &QuicRecord<'_>| {
        log.events += 1;
        log.analyzer.push(at * 1_000, log.events, record);
    };
    for chunk in 0..20_u64 {
        let begin = chunk * 100_000 + 7;
        for n in chunk * 50..chunk * 50 + 50 {
            let frame = QuicFrame::Stream { id: 0, offset: n * PACKET, length: PACKET, fin: false };
            let frames = [frame];
            let packet = QuicPacketRecord {
                number: Some(n),
                bytes: Some(PACKET),
                frames: &frames,
                ..QuicPacketRecord::default()
            };
            us(&mut log, begin, &QuicRecord::Sent(packet));
        }
        for pair in 0..25 {
            let first = chunk * 50 + 2 * pair;
            let packet = QuicPacketRecord {
                number: Some(first),
                bytes: Some(40),
                has_ack: true,
                acked: &[(first, first + 1)],
                ack_delay: Some(0),
                ..QuicPacketRecord::default()
            };
            let at = begin + 20_000 + 2_000 * (pair + 1);
            us(&mut log, at, &QuicRecord::Received(packet));
        }
    }
    log.finish()
}

#[test]
fn what_a_queue_still_carries_counts_where_it_is_carried() {
    let (analysis, diagnosis) = slow_writer();
    let rate = analysis.bottleneck.unwrap();
    assert!((rate / 1e6 - 1.0).abs() < 0.02, "{rate}");
    let path = analysis.budget.of(QuicLimiter::Path);
    let carried = path.ns as f64 * rate / 1e9;
    assert!((path.bytes as f64 / carried - 1.0).abs() < 0.1, "{path:?}");
    let cost = found(&diagnosis, "CC831").cost.as_nanos() / MS;
    assert!((900..=1_000).contains(&cost), "{cost} ms of 1,000");
}

/// Two packets at once each 20 ms, of a message each.
#[test]
fn packets_that_leave_together_are_one_message() {
    let mut log = Log::new(true);
    log.limits(0, 1 << 30, 1 << 30);
    log.window(0, 40 * PACKET);
    for n in 0..50 {
        log.data(20 * n, 2 * n, PACKET);
        log.data(20 * n, 2 * n + 1, PACKET);
        if n >= 6 {
            log.ack(20 * n, 2 * n - 12, 2 * n - 11);
        }
    }
    let (analysis, _) = log.finish();
    assert!((45..=51).contains(&analysis.exchange.messages), "{:?}", analysis.exchange);
}
