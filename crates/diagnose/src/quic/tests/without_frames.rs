//! Logs without frames, as quinn's: what only the numbers and times of packets show.

use super::*;

const PACKET: u64 = 1_200;

/// A log without frames whose times are in µs.
struct BareLog {
    log: Log,
    next: u64,
}

impl BareLog {
    fn new(window: u64) -> Self {
        let mut log = Log::new(true);
        log.analyzer.infer_frames();
        let rtt = Some(100 * MS);
        let metrics = QuicMetrics {
            congestion_window: Some(window),
            min_rtt: rtt,
            smoothed_rtt: rtt,
            latest_rtt: rtt,
            ..QuicMetrics::default()
        };
        log.push(0, &QuicRecord::Metrics(metrics));
        Self { log, next: 0 }
    }

    fn push(&mut self, at: u64, record: &QuicRecord<'_>) {
        self.log.events += 1;
        self.log.analyzer.push(at * 1_000, self.log.events, record);
    }

    /// Sends a packet; returns its number.
    fn data(&mut self, at: u64, bytes: u64) -> u64 {
        let number = self.next;
        self.next += 1;
        let offset = number * PACKET;
        let frames = [QuicFrame::Stream { id: 0, offset, length: bytes, fin: false }];
        let packet = QuicPacketRecord {
            number: Some(number),
            bytes: Some(bytes),
            frames: &frames,
            ..QuicPacketRecord::default()
        };
        self.push(at, &QuicRecord::Sent(packet));
        number
    }

    fn ack(&mut self, at: u64, (from, to): (u64, u64), delay: Option<u64>) {
        let packet = QuicPacketRecord {
            number: Some(at),
            has_ack: true,
            acked: &[(from, to)],
            ack_delay: delay.map(|us| us * 1_000),
            frames: &[QuicFrame::Padding],
            ..QuicPacketRecord::default()
        };
        self.push(at, &QuicRecord::Received(packet));
    }
}

/// Rounds of 100 ms with nine packets at once over a link that takes 2 ms for one; the peer acknowledges each second, and
/// the last after 25 ms.
fn odd_flights(delay: Option<u64>) -> (QuicAnalysis, QuicDiagnosis) {
    let mut log = BareLog::new(9 * PACKET);
    for round in 0..40_u64 {
        let begin = 1 + round * 150_000;
        let first = log.next;
        for _ in 0..9 {
            log.data(begin, PACKET);
        }
        for pair in 0..4 {
            let at = begin + 100_000 + (pair + 1) * 4_000;
            log.ack(at, (first + 2 * pair, first + 2 * pair + 1), delay.map(|_| 0));
        }
        log.ack(begin + 118_000 + 25_000, (first + 8, first + 8), delay);
    }
    log.log.finish()
}

/// An ACK that the peer held for the next packet shows no other traffic.
#[test]
fn a_late_ack_of_a_single_packet_shows_no_shared_link() {
    for delay in [None, Some(25_000)] {
        let (analysis, diagnosis) = odd_flights(delay);
        let spacing = analysis.spacing.unwrap();
        assert!((spacing.rate / 600_000.0 - 1.0).abs() < 0.02, "{spacing:?}");
        assert!(spacing.of_others() < 100 * MS, "{spacing:?}");
        assert!(!diagnosis.findings.iter().any(|one| one.title.contains("others share")));
    }
}

/// Forty requests of 300 bytes, each when the answer to the one before has come.
#[test]
fn requests_one_after_the_other_are_round_trips() {
    let mut log = BareLog::new(20 * PACKET);
    for round in 0..40_u64 {
        let at = 1 + round * 104_100;
        let number = log.data(at, 300);
        log.ack(at + 104_000, (number, number), None);
    }
    let (analysis, diagnosis) = log.log.finish();
    assert_eq!(analysis.exchange.rounds, 39);
    let finding = found(&diagnosis, "CC831");
    assert_eq!((finding.kind, diagnosis.primary), ("round-trips", Some("CC831")));
}

/// A window of 60 packets, of which 20 leave in each round trip of 100 ms. The first flights had the window filled.
#[test]
fn a_limit_that_the_log_does_not_show_is_a_finding() {
    let mut log = BareLog::new(60 * PACKET);
    for round in 0..60_u64 {
        let begin = 1 + round * 100_000;
        // One packet stays in flight, so that it is no answer that lets the others leave.
        let packets = if round == 0 { 21 } else { 20 };
        let first = log.next;
        for _ in 0..packets {
            log.data(begin, PACKET);
        }
        let from = first.saturating_sub(1);
        for pair in 0..10 {
            log.ack(begin + 90_000 + pair * 900, (from + 2 * pair, from + 2 * pair + 1), None);
        }
    }
    let (_, diagnosis) = log.log.finish();
    let finding = found(&diagnosis, "CC831");
    assert_eq!(diagnosis.primary, Some("CC831"), "{:?}", diagnosis.findings);
    assert!(finding.title.starts_with("a limit that the log does not show"), "{}", finding.title);
    assert!(finding.cost.as_nanos() > 3_000 * MS, "{:?}", finding.cost);
}

/// What an ACK acknowledges is inferred, and may be wrong: a round trip below the least one of the log is.
#[test]
fn no_round_trip_is_shorter_than_the_least_of_the_log() {
    let mut log = BareLog::new(20 * PACKET);
    for round in 0..10_u64 {
        let at = 1 + round * 120_000;
        let number = log.data(at, PACKET);
        log.ack(at + if round == 5 { 60_000 } else { 101_000 }, (number, number), None);
    }
    let (analysis, _) = log.log.finish();
    assert_eq!(analysis.round_trips.unwrap()[0], 100 * MS);
}

/// An opening of two messages each, and an answer: a round trip is waited for the peer, and no application.
#[test]
fn the_turns_of_an_opening_are_no_wait_for_the_application() {
    let mut log = Log::new(false);
    log.limits(0, 1 << 30, 1 << 30);
    log.window(0, 200 * PACKET);
    let (mut number, mut offset) = (0, 0);
    for (turn, packets) in [(0, 3), (1, 12)] {
        let begin = turn * 102;
        let request = QuicFrame::Stream { id: 0, offset: turn * 100, length: 100, fin: false };
        log.received(begin, QuicPacketKind::OneRtt, 140, &[request]);
        for _ in 0..packets {
            let frame = QuicFrame::Stream { id: 0, offset, length: PACKET, fin: false };
            log.sent(begin + 1, number, PACKET, &[frame]);
            (number, offset) = (number + 1, offset + PACKET);
        }
        log.ack(begin + 61, number - packets, number - 1);
    }
    let (_, diagnosis) = log.finish();
    assert_eq!(diagnosis.primary, None, "{:?}", diagnosis.findings);
}

/// A client that asks again 300 ms after it has the answer, which fills the window.
#[test]
fn a_request_after_a_full_window_is_seen_by_its_time() {
    let mut log = BareLog::new(20 * PACKET);
    for round in 0..10_u64 {
        let at = 1 + round * 400_100;
        let request = QuicPacketRecord { number: Some(at), ..QuicPacketRecord::default() };
        log.push(at, &QuicRecord::Received(request));
        let first = log.next;
        for _ in 0..20 {
            log.data(at + 50, PACKET);
        }
        log.ack(at + 100_050, (first, first + 19), None);
    }
    let (analysis, _) = log.log.finish();
    let waits = analysis.exchange.remote();
    assert_eq!((waits.count, waits.total / MS), (9, 9 * 300), "{waits:?}");
}
