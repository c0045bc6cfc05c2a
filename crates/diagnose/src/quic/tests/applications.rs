//! Waits of applications beside what only looks like them: pacing, the end of data before a rest, slow readers.

use super::*;

const PACKET: u64 = 1_000;

/// The server's log of `rounds` requests, each each `each` ms, with answers of these parts: bytes and ms after the request.
/// The window is large, and the round trip takes 30 ms.
fn answers(rounds: u64, each: u64, parts: &[(u64, u64)]) -> (QuicAnalysis, QuicDiagnosis) {
    let mut log = Log::new(false);
    log.limits(0, 1 << 30, 1 << 30);
    log.window(0, 200 * PACKET);
    let (mut number, mut offset) = (0, 0);
    for round in 0..rounds {
        let begin = round * each;
        let request = QuicFrame::Stream { id: 0, offset: round * 100, length: 100, fin: false };
        log.received(begin, QuicPacketKind::OneRtt, 140, &[request]);
        for &(bytes, after) in parts {
            let frame = QuicFrame::Stream { id: 0, offset, length: bytes, fin: false };
            log.sent(begin + after, number, bytes + 40, &[frame]);
            log.ack(begin + after + 30, number, number);
            (number, offset) = (number + 1, offset + bytes);
        }
    }
    log.finish()
}

/// 300 bytes, and the rest of the answer 40 ms later; between the answers are 90 ms for round trips.
#[test]
fn pauses_within_answers_cost_themselves_and_not_the_round_trips() {
    let (analysis, diagnosis) = answers(20, 130, &[(300, 0), (900, 40), (900, 80)]);
    assert_eq!(analysis.exchange.pause_count, 40);
    let finding = found(&diagnosis, "CC831");
    assert_eq!((finding.kind, diagnosis.primary), ("in-request", Some("CC831")));
    let cost = finding.cost.as_nanos() / MS;
    assert!((1_500..=1_650).contains(&cost), "{cost} ms of 1,600");
}

/// Chunks at once, each acknowledged 30 ms later, with rests of two seconds: nothing waits for an application.
#[test]
fn the_end_of_a_chunk_before_a_rest_is_no_wait_for_the_application() {
    let (analysis, _) = answers(5, 2_000, &[(1_000, 0)]);
    // But for the pacer, of 120 ms until the ACKs.
    assert!(analysis.time(QuicLimiter::Application) < MS, "{:?}", analysis.budget);
}

/// The server thinks 60 ms, and round trips have a queue of 60 ms on average.
#[test]
fn what_the_own_host_waits_is_seen_beside_a_queue() {
    let mut log = Log::new(false);
    log.limits(0, 1 << 30, 1 << 30);
    log.window(0, 200 * PACKET);
    for round in 0..20 {
        let begin = round * 160;
        let request = QuicFrame::Stream { id: 0, offset: round * 100, length: 100, fin: false };
        log.received(begin, QuicPacketKind::OneRtt, 140, &[request]);
        for n in 0..4 {
            log.data(begin + 60, round * 4 + n, PACKET);
        }
        for n in 0..4 {
            log.ack(begin + 70 + 25 * n, round * 4, round * 4 + n);
        }
    }
    let (_, diagnosis) = log.finish();
    assert_eq!(found(&diagnosis, "CC831").kind, "think-server");
}

/// The client's log: the window of 60 packets is full after 60, then the reader takes one packet each 10 ms, and answers
/// when it has read all.
#[test]
fn the_answer_of_a_slow_reader_is_no_slow_server() {
    let mut log = Log::new(true);
    log.limits(0, 1 << 30, 60 * PACKET);
    log.window(0, 200 * PACKET);
    for n in 0..60 {
        log.data(0, n, PACKET);
    }
    log.ack(20, 0, 59);
    for n in 0..60 {
        let at = 20 + 10 * n;
        let raised = QuicFrame::MaxStreamData { id: 0, limit: (61 + n) * PACKET };
        log.received(at, QuicPacketKind::OneRtt, 40, &[raised]);
        log.data(at, 60 + n, PACKET);
        log.ack(at + 5, 60 + n, 60 + n);
    }
    let answer = QuicFrame::Stream { id: 0, offset: 0, length: 200, fin: true };
    log.received(1_220, QuicPacketKind::OneRtt, 240, &[answer]);
    let (_, diagnosis) = log.finish();
    let finding = found(&diagnosis, "CC822");
    assert_eq!((finding.kind, diagnosis.primary), ("slow-reader", Some("CC822")));
    // Half of it before the last packet could leave, half after it.
    assert!(finding.cost.as_nanos() >= 1_000 * MS, "{:?}", finding.cost);
    assert!(!diagnosis.findings.iter().any(|one| one.kind == "think-server"));
}

/// The server's log: the reader takes one packet each 10 ms of a window of 60 packets, and closes when it has read all.
#[test]
fn what_a_slow_reader_has_left_at_the_end_is_read_too() {
    let mut log = Log::new(false);
    log.limits(0, 1 << 30, 60 * PACKET);
    log.window(0, 200 * PACKET);
    for n in 0..60 {
        log.data(0, n, PACKET);
    }
    log.ack(20, 0, 59);
    for n in 0..60 {
        let at = 20 + 10 * n;
        let raised = QuicFrame::MaxStreamData { id: 0, limit: (61 + n) * PACKET };
        log.received(at, QuicPacketKind::OneRtt, 40, &[raised]);
        log.data(at, 60 + n, PACKET);
        log.ack(at + 5, 60 + n, 60 + n);
    }
    // All is sent: the limit holds nothing any more.
    let raised = QuicFrame::MaxStreamData { id: 0, limit: 200 * PACKET };
    log.received(616, QuicPacketKind::OneRtt, 40, &[raised]);
    let end = QuicFrame::Stream { id: 0, offset: 120 * PACKET, length: 0, fin: true };
    log.sent(616, 120, 40, &[end]);
    log.ack(620, 120, 120);
    log.received(1_220, QuicPacketKind::OneRtt, 40, &[QuicFrame::Other]);
    let (_, diagnosis) = log.finish();
    let finding = found(&diagnosis, "CC822");
    assert_eq!((finding.kind, diagnosis.primary), ("slow-reader", Some("CC822")));
    // The limit was raised in 0.6 s, and half as long again shows the rest: the first packets came at once.
    assert!(finding.cost.as_nanos() >= 900 * MS, "{:?}", finding.cost);
}

/// Ten packets of 1,440 bytes in a window of 15,720: no other one fits, though one of 1,200 would.
#[test]
fn a_window_is_full_when_no_packet_of_the_largest_size_fits() {
    let mut log = Log::new(true);
    log.limits(0, 1 << 30, 1 << 30);
    log.window(0, 15_720);
    for round in 0..5 {
        for n in 0..10 {
            log.data(round * 100, round * 10 + n, 1_440);
        }
        log.ack(round * 100 + 100, round * 10, round * 10 + 9);
    }
    let (analysis, _) = log.finish();
    // In all round trips but the first, of which no size is known.
    assert!(analysis.time(QuicLimiter::SlowStart) >= 380 * MS, "{:?}", analysis.budget);
}
