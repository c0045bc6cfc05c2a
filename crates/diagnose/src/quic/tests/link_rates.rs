//! The rate of the bottleneck by the spacing of packets, and what depends on it.

use super::*;

const US: u64 = 1_000;
const PACKET: u64 = 1_200;
/// 1,200 bytes in half a millisecond, in bytes per second.
const LINK: f64 = 2.4e6;

/// A transfer over a link, of which the tests say when each packet arrives.
struct Transfer {
    log: Log,
    /// Packets sent, and acknowledged.
    sent: u64,
    acked: u64,
    /// Time in ns, which is never a whole number of milliseconds.
    now: u64,
}

impl Transfer {
    fn new(window: u64) -> Self {
        let mut log = Log::new(true);
        log.window(0, window * PACKET);
        Self { log, sent: 0, acked: 0, now: 1_234 }
    }

    fn push(&mut self, record: &QuicRecord<'_>) {
        self.log.events += 1;
        self.log.analyzer.push(self.now, self.log.events, record);
    }

    fn send(&mut self) {
        let offset = self.sent * PACKET;
        let frames = [QuicFrame::Stream { id: 0, offset, length: PACKET, fin: false }];
        self.push(&QuicRecord::Sent(QuicPacketRecord {
            number: Some(self.sent),
            bytes: Some(PACKET),
            frames: &frames,
            ..QuicPacketRecord::default()
        }));
        self.sent += 1;
    }

    fn ack(&mut self) {
        let number = self.acked;
        self.push(&QuicRecord::Received(QuicPacketRecord {
            number: Some(number),
            bytes: Some(40),
            has_ack: true,
            acked: &[(0, number)],
            ack_delay: Some(0),
            ..QuicPacketRecord::default()
        }));
        self.acked += 1;
    }

    /// A first round trip without a queue, then ACKs after these times in µs, each of which lets a packet leave.
    fn clocked(&mut self, window: u64, gaps: impl Iterator<Item = u64>) {
        self.send();
        self.now += 20 * MS;
        self.ack();
        for _ in 0..window {
            self.send();
        }
        self.now += 20 * MS;
        for gap in gaps {
            self.now += gap * US;
            self.ack();
            self.send();
        }
    }

    fn finish(self) -> (QuicAnalysis, QuicDiagnosis) {
        self.log.finish()
    }
}

fn is_near(rate: f64, expected: f64) -> bool {
    (rate / expected - 1.0).abs() < 0.02
}

/// Three packets each 10 ms over 30 ms, and a window of 25: their queue at the link is none of a busy path, the application's
/// rate none of the link, and a window that is not used none that stops the sender.
#[test]
fn what_an_application_writes_at_once_is_no_busy_path() {
    let mut transfer = Transfer::new(25);
    let mut events = Vec::new();
    for write in 0..200 {
        let at = write * 10_000;
        for packet in 0..3 {
            events.push((at, false));
            events.push((at + 30_000 + packet * 500, true));
        }
    }
    events.sort_unstable();
    for (at, is_ack) in events {
        transfer.now = 1_234 + at * US;
        if is_ack { transfer.ack() } else { transfer.send() }
    }
    let (analysis, diagnosis) = transfer.finish();
    assert!(analysis.bottleneck.is_some_and(|rate| is_near(rate, LINK)), "{analysis:?}");
    assert_eq!(diagnosis.primary, Some("CC831"));
    // 720 kB take 0.3 s of the 2 s.
    let cost = found(&diagnosis, "CC831").cost.as_secs_f64();
    assert!((1.4..1.75).contains(&cost), "{cost}");
    assert!(diagnosis.findings.iter().all(|found| found.code != "CC833"));
}

/// One packet in four follows the one before it at once, others after two to six packets of other senders.
#[test]
fn a_link_that_carries_more_than_the_transfer_gets_is_shared() {
    let mut transfer = Transfer::new(40);
    transfer.clocked(40, (0..800).map(|n| if n % 4 == 0 { 500 } else { 1_500 + n % 7 * 300 }));
    let (analysis, diagnosis) = transfer.finish();
    assert!(analysis.bottleneck.is_some_and(|rate| is_near(rate, LINK)));
    let shared = found(&diagnosis, "CC835");
    assert_eq!(diagnosis.primary, Some("CC835"));
    assert!(shared.title.contains("others share the path"), "{}", shared.title);
    // 800 packets take 0.4 s of 1.54.
    let cost = shared.cost.as_secs_f64();
    assert!((1.0..1.25).contains(&cost), "{cost}");
    // Alone it has all of it.
    let mut alone = Transfer::new(80);
    alone.clocked(80, (0..800).map(|_| 500));
    let (_, diagnosis) = alone.finish();
    assert_eq!(found(&diagnosis, "CC835").severity, Severity::Note);
}

#[test]
fn a_link_whose_rate_falls_early_is_found_with_its_cost() {
    let mut transfer = Transfer::new(40);
    transfer.clocked(40, (0..500).map(|n| if n < 100 { 500 } else { 2_500 }));
    let (_, diagnosis) = transfer.finish();
    let fell = found(&diagnosis, "CC837");
    assert_eq!((diagnosis.primary, fell.kind), (Some("CC837"), "rate-drop"));
    // 400 packets take 1 s instead of 0.2 s.
    let cost = fell.cost.as_secs_f64();
    assert!((0.75..0.85).contains(&cost), "{cost}");
}

/// Two probe timeouts in a row, then all packets are lost and the window is small for a second.
#[test]
fn the_window_that_an_outage_reduced_is_a_part_of_its_cost() {
    let mut transfer = Transfer::new(40);
    transfer.clocked(40, (0..200).map(|_| 500));
    for wait in [60, 120] {
        transfer.now += wait * MS;
        transfer.push(&QuicRecord::TimeoutExpired);
        transfer.send();
    }
    let lost = transfer.acked..transfer.sent - 1;
    transfer.now += 20 * MS;
    transfer.acked = transfer.sent - 1;
    let probe = transfer.acked;
    transfer.push(&QuicRecord::Received(QuicPacketRecord {
        has_ack: true,
        acked: &[(probe, probe)],
        ..QuicPacketRecord::default()
    }));
    transfer.acked += 1;
    for number in lost {
        transfer.push(&QuicRecord::Lost {
            kind: QuicPacketKind::OneRtt,
            number: Some(number),
            trigger: QuicLossTrigger::Time,
        });
    }
    let window = |bytes| QuicMetrics { congestion_window: Some(bytes), ..QuicMetrics::default() };
    transfer.push(&QuicRecord::Metrics(window(4 * PACKET)));
    for _ in 0..50 {
        for _ in 0..4 {
            transfer.send();
        }
        transfer.now += 20 * MS;
        for _ in 0..4 {
            transfer.ack();
        }
    }
    let (_, diagnosis) = transfer.finish();
    let outage = found(&diagnosis, "CC813").cost.as_secs_f64();
    // 0.18 s of silence, and 1 s with four packets each 20 ms.
    assert!((0.95..1.2).contains(&outage), "{outage}");
    assert_eq!(diagnosis.primary, Some("CC813"));
    assert!(diagnosis.findings.iter().all(|found| found.code != "CC811"));
}

/// A client whose user comes back each 3 s: the handshake of 200 ms is no fault that the user waits for again.
#[test]
fn the_handshake_of_a_connection_that_mostly_rests_is_a_note() {
    for (rest, severity) in [(3_000, Severity::Note), (0, Severity::Error)] {
        let mut log = Log::new(true);
        let initial = QuicPacketRecord {
            kind: QuicPacketKind::Initial,
            number: Some(0),
            bytes: Some(PACKET),
            frames: &[QuicFrame::Crypto { offset: 0, length: 300 }],
            ..QuicPacketRecord::default()
        };
        log.push(0, &QuicRecord::Sent(initial));
        let answer = QuicPacketRecord {
            kind: QuicPacketKind::Initial,
            number: Some(0),
            bytes: Some(PACKET),
            has_ack: true,
            acked: &[(0, 0)],
            ..QuicPacketRecord::default()
        };
        log.push(200, &QuicRecord::Received(answer));
        log.push(200, &QuicRecord::HandshakeComplete);
        let answer = |n: u64| [QuicFrame::Stream { id: 0, offset: n, length: 1, fin: false }];
        for n in 0..4 {
            let at = 200 + n * (rest + 20);
            log.data(at, n, 200);
            log.ack(at + 10, 0, n);
            log.received(at + 11, QuicPacketKind::OneRtt, 40, &answer(n));
        }
        let (_, diagnosis) = log.finish();
        assert_eq!(found(&diagnosis, "CC801").severity, severity);
    }
}
