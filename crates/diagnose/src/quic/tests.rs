//! Tests of the rules on events made by hand, and of random events.

mod applications;
mod costs;
mod link_rates;
mod public_logs;
mod real_stacks;
mod without_frames;

use proptest::prelude::*;
use units::{Duration, Instant};

use super::record::{
    QuicCloseFrame, QuicFrame, QuicLimits, QuicLossTrigger, QuicMetrics, QuicPacketKind,
    QuicPacketRecord, QuicRecord,
};
use super::{QuicAnalysis, QuicAnalyzer, QuicDiagnosis, QuicLimiter};
use crate::rules::{Finding, Severity};

const MS: u64 = 1_000_000;

/// The time `ms` milliseconds after the start.
fn time(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A log being written: one event after another.
struct Log {
    analyzer: QuicAnalyzer,
    events: u64,
}

impl Log {
    fn new(client: bool) -> Self {
        Self { analyzer: QuicAnalyzer::new(Some(client)), events: 0 }
    }

    fn push(&mut self, at_ms: u64, record: &QuicRecord<'_>) {
        self.events += 1;
        self.analyzer.push(at_ms * MS, self.events, record);
    }

    fn sent(&mut self, at: u64, number: u64, bytes: u64, frames: &[QuicFrame]) {
        let packet = QuicPacketRecord {
            number: Some(number),
            bytes: Some(bytes),
            frames,
            ..QuicPacketRecord::default()
        };
        self.push(at, &QuicRecord::Sent(packet));
    }

    fn data(&mut self, at: u64, number: u64, bytes: u64) {
        let offset = number * bytes;
        self.sent(
            at,
            number,
            bytes,
            &[QuicFrame::Stream { id: 0, offset, length: bytes, fin: false }],
        );
    }

    fn ack(&mut self, at: u64, from: u64, to: u64) {
        self.ack_after(at, from, to, 0);
    }

    fn ack_after(&mut self, at: u64, from: u64, to: u64, delay_ms: u64) {
        let packet = QuicPacketRecord {
            number: Some(at),
            bytes: Some(40),
            has_ack: true,
            acked: &[(from, to)],
            ack_delay: Some(delay_ms * MS),
            ..QuicPacketRecord::default()
        };
        self.push(at, &QuicRecord::Received(packet));
    }

    fn received(&mut self, at: u64, kind: QuicPacketKind, bytes: u64, frames: &[QuicFrame]) {
        let packet = QuicPacketRecord {
            kind,
            number: Some(0),
            bytes: Some(bytes),
            frames,
            ..QuicPacketRecord::default()
        };
        self.push(at, &QuicRecord::Received(packet));
    }

    fn window(&mut self, at: u64, window: u64) {
        let metrics = QuicMetrics { congestion_window: Some(window), ..QuicMetrics::default() };
        self.push(at, &QuicRecord::Metrics(metrics));
    }

    fn limits(&mut self, at: u64, max_data: u64, stream: u64) {
        let limits = QuicLimits {
            max_data: Some(max_data),
            bidi_local: Some(stream),
            bidi_remote: Some(stream),
            uni: Some(stream),
            max_ack_delay: Some(25 * MS),
        };
        self.push(at, &QuicRecord::Parameters { remote: true, limits });
    }

    fn finish(self) -> (QuicAnalysis, QuicDiagnosis) {
        let analysis = self.analyzer.finish().unwrap();
        let diagnosis = QuicDiagnosis::of(&analysis);
        (analysis, diagnosis)
    }
}

fn found<'a>(diagnosis: &'a QuicDiagnosis, code: &str) -> &'a Finding {
    let codes: Vec<_> = diagnosis.findings.iter().map(|found| found.code).collect();
    let one = diagnosis.findings.iter().find(|found| found.code == code);
    one.unwrap_or_else(|| panic!("no {code} in {codes:?}"))
}

/// Windows of ten packets, one per round trip of 100 ms, of which `limit` allows five.
#[test]
fn flow_control_is_charged_with_the_time_it_blocks() {
    for (connection, stream, code) in [(5_000, 1 << 30, "CC821"), (1 << 30, 5_000, "CC822")] {
        let mut log = Log::new(true);
        log.limits(0, connection, stream);
        log.window(0, 100_000);
        for round in 0..10 {
            let at = round * 100;
            for n in 0..5 {
                log.data(at, round * 5 + n, 1_000);
            }
            log.ack(at + 100, 0, round * 5 + 4);
            let limit = (round + 2) * 5_000;
            let frames = if code == "CC821" {
                [QuicFrame::MaxData(limit)]
            } else {
                [QuicFrame::MaxStreamData { id: 0, limit }]
            };
            log.received(at + 100, QuicPacketKind::OneRtt, 40, &frames);
        }
        let (analysis, diagnosis) = log.finish();
        let limiter =
            if code == "CC821" { QuicLimiter::ConnectionFlow } else { QuicLimiter::StreamFlow };
        assert_eq!(analysis.time(limiter), 1_000 * MS);
        let finding = found(&diagnosis, code);
        // The rate of the path was never seen, so all of the time counts.
        assert_eq!((finding.cost.as_nanos(), diagnosis.primary), (1_000 * MS, Some(code)));
    }
}

#[test]
fn a_stream_count_blocks_until_it_is_raised() {
    let mut log = Log::new(true);
    log.window(0, 100_000);
    log.sent(0, 0, 1_000, &[QuicFrame::StreamsBlocked]);
    log.ack(50, 0, 0);
    log.received(400, QuicPacketKind::OneRtt, 40, &[QuicFrame::MaxStreams]);
    log.sent(450, 1, 1_000, &[QuicFrame::Other]);
    let (analysis, diagnosis) = log.finish();
    assert_eq!(analysis.time(QuicLimiter::StreamCount), 400 * MS);
    assert_eq!(diagnosis.primary, Some("CC823"));
}

/// A server that has received one Initial of 1,200 bytes sends 3,600 and waits 80 ms.
#[test]
fn a_server_waits_at_the_anti_amplification_limit() {
    let mut log = Log::new(false);
    log.received(
        0,
        QuicPacketKind::Initial,
        1_200,
        &[QuicFrame::Crypto { offset: 0, length: 300 }],
    );
    for number in 0..3 {
        let packet = QuicPacketRecord {
            kind: QuicPacketKind::Handshake,
            number: Some(number),
            bytes: Some(1_200),
            frames: &[QuicFrame::Crypto { offset: number * 1_100, length: 1_100 }],
            ..QuicPacketRecord::default()
        };
        log.push(0, &QuicRecord::Sent(packet));
    }
    log.received(80, QuicPacketKind::Handshake, 1_200, &[QuicFrame::Other]);
    let rest = QuicPacketRecord {
        kind: QuicPacketKind::Handshake,
        number: Some(3),
        bytes: Some(500),
        frames: &[QuicFrame::Crypto { offset: 3_300, length: 400 }],
        ..QuicPacketRecord::default()
    };
    log.push(80, &QuicRecord::Sent(rest));
    log.received(160, QuicPacketKind::OneRtt, 60, &[QuicFrame::Other]);
    let (analysis, diagnosis) = log.finish();
    assert_eq!(analysis.time(QuicLimiter::AntiAmplification), 80 * MS);
    assert_eq!(found(&diagnosis, "CC802").cost.as_nanos(), 80 * MS);
}

#[test]
fn a_retry_costs_a_round_trip() {
    let mut log = Log::new(true);
    let initial = QuicPacketRecord {
        kind: QuicPacketKind::Initial,
        number: Some(0),
        bytes: Some(1_200),
        frames: &[QuicFrame::Crypto { offset: 0, length: 300 }],
        ..QuicPacketRecord::default()
    };
    log.push(0, &QuicRecord::Sent(initial));
    log.received(50, QuicPacketKind::Retry, 100, &[]);
    log.push(50, &QuicRecord::Sent(QuicPacketRecord { number: Some(1), ..initial }));
    let ack = QuicPacketRecord {
        kind: QuicPacketKind::Initial,
        has_ack: true,
        acked: &[(1, 1)],
        ..QuicPacketRecord::default()
    };
    log.push(100, &QuicRecord::Received(ack));
    log.data(100, 0, 1_000);
    let (analysis, diagnosis) = log.finish();
    let handshake = analysis.handshake;
    assert_eq!(
        (handshake.retries, handshake.duration(), handshake.repeated),
        (1, Some(100 * MS), 0)
    );
    assert_eq!(found(&diagnosis, "CC801").cost.as_nanos(), 50 * MS);
}

/// Three packets of 1,400 bytes with data are lost while those of 1,200 arrive.
#[test]
fn large_datagrams_that_are_lost_show_a_black_hole() {
    let mut log = Log::new(true);
    log.window(0, 100_000);
    log.data(0, 0, 1_200);
    log.ack(50, 0, 0);
    for number in 1..=3 {
        log.data(50, number, 1_400);
    }
    log.data(60, 4, 1_200);
    log.ack(110, 4, 4);
    for number in 1..=3 {
        let kind = QuicPacketKind::OneRtt;
        let trigger = QuicLossTrigger::Packets;
        log.push(110, &QuicRecord::Lost { kind, number: Some(number), trigger });
    }
    let (_, diagnosis) = log.finish();
    let finding = found(&diagnosis, "CC852");
    assert_eq!((finding.frames, finding.interval), ((9, 11), (time(110), time(110))));
}

/// Packet 0 is overtaken by five, declared lost, and acknowledged 10 ms later.
#[test]
fn a_lost_packet_that_arrives_is_spurious() {
    let mut log = Log::new(true);
    log.window(0, 10_000);
    for number in 0..6 {
        log.data(0, number, 1_000);
    }
    log.ack(50, 1, 5);
    let lost = QuicRecord::Lost {
        kind: QuicPacketKind::OneRtt,
        number: Some(0),
        trigger: QuicLossTrigger::Packets,
    };
    log.push(50, &lost);
    log.window(50, 5_000);
    log.ack(60, 0, 5);
    let (analysis, diagnosis) = log.finish();
    assert_eq!((analysis.spurious, analysis.all_lost()), (1, 1));
    assert_eq!((analysis.reordering.packets, analysis.reordering.late), (5, 10 * MS));
    let episode = analysis.episodes[0];
    assert_eq!((episode.window_before, episode.window_after), (Some(10_000), Some(5_000)));
    found(&diagnosis, "CC812");
    assert!(diagnosis.findings.iter().all(|finding| finding.code != "CC811"));
}

/// All packets are lost, the timer fires twice, and the window falls to two datagrams.
#[test]
fn timeouts_and_persistent_congestion_are_found() {
    let mut log = Log::new(true);
    log.window(0, 12_000);
    log.data(0, 0, 1_200);
    log.ack(50, 0, 0);
    for number in 1..=10 {
        log.data(50, number, 1_200);
    }
    log.push(250, &QuicRecord::TimeoutExpired);
    log.data(250, 11, 1_200);
    log.push(650, &QuicRecord::TimeoutExpired);
    log.data(650, 12, 1_200);
    log.ack(700, 12, 12);
    for number in 1..=10 {
        let trigger = QuicLossTrigger::Time;
        log.push(
            700,
            &QuicRecord::Lost { kind: QuicPacketKind::OneRtt, number: Some(number), trigger },
        );
    }
    log.window(700, 2_400);
    let (analysis, diagnosis) = log.finish();
    // From the last packet sent at 50 ms to the first timer, and from there to the second.
    assert_eq!((analysis.timeouts, analysis.time(QuicLimiter::Timeout)), (2, 600 * MS));
    assert_eq!(analysis.episodes.len(), 1);
    assert!(analysis.episodes[0].persistent);
    found(&diagnosis, "CC813");
    found(&diagnosis, "CC814");
}

/// Ten ACKs that the peer held for 60 ms against a limit of 25 ms.
#[test]
fn late_acks_are_the_peers() {
    let mut log = Log::new(true);
    log.limits(0, 1 << 30, 1 << 30);
    log.window(0, 1_500);
    for round in 0..10 {
        log.data(round * 100, round, 1_000);
        log.ack_after(round * 100 + 100, 0, round, 60);
    }
    let (analysis, diagnosis) = log.finish();
    assert_eq!((analysis.ack_delays.above, analysis.ack_delays.max), (10, 60 * MS));
    found(&diagnosis, "CC841");
}

#[test]
fn a_constant_full_window_is_a_stuck_controller() {
    let mut log = Log::new(true);
    log.window(0, 1_500);
    for round in 0..20 {
        log.data(round * 50, round, 1_000);
        log.ack(round * 50 + 50, 0, round);
        log.window(round * 50 + 50, 1_500);
    }
    let (analysis, diagnosis) = log.finish();
    assert_eq!(analysis.plateau.ns, 1_000 * MS);
    assert_eq!(diagnosis.primary, Some("CC833"));
}

/// The pacer sends 1,000 bytes every 20 ms where a window of 20,000 in 60 ms would be 6,667.
#[test]
fn a_slow_pacer_is_found() {
    let mut log = Log::new(true);
    for n in 0..100 {
        let metrics = QuicMetrics {
            congestion_window: Some(20_000),
            smoothed_rtt: Some(60 * MS),
            min_rtt: Some(60 * MS),
            latest_rtt: Some(60 * MS),
            // 1,000 bytes in 20 ms.
            pacing_rate: Some(400_000),
            ..QuicMetrics::default()
        };
        log.push(n * 20, &QuicRecord::Metrics(metrics));
        log.data(n * 20, n, 1_000);
        if n > 2 {
            log.ack(n * 20, 0, n - 3);
        }
    }
    let (analysis, diagnosis) = log.finish();
    assert!(analysis.time(QuicLimiter::Pacing) > 1_900 * MS);
    // 50 kB/s for 60 ms are 3,000 bytes of 20,000.
    let ratio = analysis.pacing.ratio / analysis.pacing.ns as f64;
    assert!((ratio - 0.15).abs() < 1e-9, "{ratio}");
    assert_eq!(diagnosis.primary, Some("CC832"));
}

/// Sixty packets at once every 50 ms, and the same in pairs.
#[test]
fn bursts_of_a_window_are_a_note_and_pairs_are_none() {
    for (at_once, is_bursty) in [(60, true), (2, false)] {
        let mut log = Log::new(true);
        for n in 0..600 {
            log.data(n / at_once * at_once * 50 / 60, n, 1_200);
            if n % 60 == 59 {
                log.ack(n / 60 * 50 + 50, 0, n);
            }
        }
        let (_, diagnosis) = log.finish();
        let has = diagnosis.findings.iter().any(|found| found.code == "CC836");
        assert_eq!(has, is_bursty, "{at_once}");
        assert_ne!(diagnosis.primary, Some("CC836"));
    }
}

/// 1,000 bytes each millisecond for two seconds, then every fifth: 8 and 1.6 Mbit/s.
#[test]
fn a_lasting_drop_of_the_rate_is_a_note_with_its_time() {
    let mut log = Log::new(true);
    let sent = (0..4_000).filter(|ms| *ms < 2_000 || ms % 5 == 0);
    for (number, ms) in sent.enumerate() {
        log.data(ms, number as u64, 1_000);
        log.ack(ms, 0, number as u64);
    }
    let (analysis, diagnosis) = log.finish();
    let drop = found(&diagnosis, "CC837");
    assert_eq!(drop.interval.0, time(2_000));
    let rates = analysis.rates.drop(0).unwrap().rates;
    assert!((rates.0 - 1e6).abs() < 2e4 && (rates.1 - 2e5).abs() < 2e4, "{rates:?}");
    assert!(drop.cost.is_zero());
}

#[test]
fn ends_and_signals_of_the_path_are_reported() {
    let mut log = Log::new(true);
    log.data(0, 0, 1_000);
    log.ack(50, 0, 0);
    log.push(60, &QuicRecord::Ecn { new: "failed" });
    log.received(70, QuicPacketKind::OneRtt, 100, &[QuicFrame::PathChallenge]);
    let closed = QuicRecord::Closed {
        by_peer: Some(true),
        code: "protocol_violation",
        reason: "why not",
        idle_timeout: false,
        is_error: true,
    };
    log.push(80, &closed);
    let (_, diagnosis) = log.finish();
    assert_eq!(found(&diagnosis, "CC851").frames, (3, 3));
    found(&diagnosis, "CC853");
    let close = found(&diagnosis, "CC804");
    assert!(close.title.contains("protocol_violation") && close.cause.contains("why not"));
}

/// The client refuses the server's certificate: the log has only the frame.
#[test]
fn a_handshake_that_an_error_ends_is_closed_not_slow() {
    let mut log = Log::new(true);
    let packet = |kind, close| QuicPacketRecord {
        kind,
        number: Some(0),
        bytes: Some(1_200),
        close,
        ..QuicPacketRecord::default()
    };
    log.push(0, &QuicRecord::Sent(packet(QuicPacketKind::Initial, None)));
    log.push(30, &QuicRecord::Received(packet(QuicPacketKind::Initial, None)));
    let reason = "unable to get local issuer certificate";
    let close = QuicCloseFrame { code: 0x12a, of_application: false, reason };
    log.push(200, &QuicRecord::Sent(packet(QuicPacketKind::Handshake, Some(close))));
    let (_, diagnosis) = log.finish();
    assert_eq!(diagnosis.primary, Some("CC804"));
    let found = found(&diagnosis, "CC804");
    assert!(found.title.ends_with("0x12a (TLS alert bad_certificate)"), "{}", found.title);
    assert!(found.cause.contains(reason) && found.severity == Severity::Error);
    assert!(diagnosis.findings.iter().all(|found| found.code != "CC801"));
}

/// A sender without a congestion window logs the largest number; a third of its packets is lost.
#[test]
fn losses_without_a_window_are_an_error_if_they_are_many() {
    let mut log = Log::new(true);
    log.window(0, u64::MAX >> 2);
    for n in 0..60 {
        // A round trip of 60 ms.
        if n > 2 && n % 3 > 0 {
            log.ack(n * 20, n - 3, n - 3);
        }
        log.data(n * 20, n, 1_200);
    }
    for number in (0..60).step_by(3) {
        let kind = QuicPacketKind::OneRtt;
        let lost =
            QuicRecord::Lost { kind, number: Some(number), trigger: QuicLossTrigger::Packets };
        log.push(1_200, &lost);
    }
    let (analysis, diagnosis) = log.finish();
    assert_eq!(analysis.windows, None);
    assert_eq!(diagnosis.primary, Some("CC811"));
}

#[test]
fn a_silent_path_is_no_answer() {
    let mut log = Log::new(true);
    for n in 0..4 {
        log.data(n * 300, n, 1_200);
    }
    let (_, diagnosis) = log.finish();
    assert_eq!(diagnosis.primary, Some("CC803"));
}

fn frames() -> impl Strategy<Value = Vec<QuicFrame>> {
    let number = prop_oneof![0_u64..5_000, Just(u64::MAX), Just(1 << 62)];
    let one = (0_u8..9, number.clone(), number, 0_u64..4).prop_map(|(kind, a, b, id)| match kind {
        0 => QuicFrame::Padding,
        1 => QuicFrame::Stream { id, offset: a, length: b, fin: a % 2 == 0 },
        2 => QuicFrame::Crypto { offset: a, length: b },
        3 => QuicFrame::MaxData(a),
        4 => QuicFrame::MaxStreamData { id, limit: a },
        5 => QuicFrame::DataBlocked,
        6 => QuicFrame::StreamDataBlocked { id },
        7 => QuicFrame::PathChallenge,
        _ => QuicFrame::HandshakeDone,
    });
    proptest::collection::vec(one, 0..3)
}

#[test]
fn crypto_frames_of_any_length_may_repeat() {
    let frames = [QuicFrame::Crypto { offset: 0, length: u64::MAX }];
    let packet =
        QuicPacketRecord { kind: QuicPacketKind::Initial, frames: &frames, ..Default::default() };
    let mut analyzer = QuicAnalyzer::new(None);
    for event in 1..=3 {
        analyzer.push(event, event, &QuicRecord::Sent(packet));
    }
    assert!(analyzer.finish().is_some());
}

#[test]
fn an_answer_after_a_century_is_analysed() {
    let frames = [QuicFrame::Stream { id: 0, offset: 0, length: 1, fin: true }];
    let packet =
        QuicPacketRecord { kind: QuicPacketKind::OneRtt, frames: &frames, ..Default::default() };
    let mut analyzer = QuicAnalyzer::new(Some(false));
    analyzer.push(0, 1, &QuicRecord::Received(packet));
    analyzer.push(u64::MAX / 2, 2, &QuicRecord::Sent(packet));
    let analysis = analyzer.finish().unwrap();
    assert_eq!(analysis.duration(), 1 << 56);
    assert!(
        QuicDiagnosis::of(&analysis).findings.iter().all(|found| found.cost.as_nanos() <= 1 << 56)
    );
}

proptest! {
    /// Any events, with extreme numbers and times out of order: no panic, the budget is the
    /// duration, and findings lie within the log.
    #[test]
    fn any_events_are_analysed(
        client in proptest::option::of(any::<bool>()),
        events in proptest::collection::vec(
            (
                0_u8..9,
                prop_oneof![0_u64..10_000_000_000, Just(u64::MAX / 2)],
                prop_oneof![0_u64..50, Just(u64::MAX)],
                prop_oneof![0_u64..3_000, Just(u64::MAX)],
                frames(),
                0_u8..4,
            ),
            1..60,
        ),
    ) {
        let mut analyzer = QuicAnalyzer::new(client);
        analyzer.keep_transfer();
        for (index, (what, at, number, value, frames, kind)) in events.iter().enumerate() {
            let kind = [QuicPacketKind::Initial, QuicPacketKind::Handshake, QuicPacketKind::OneRtt,
                QuicPacketKind::Retry][*kind as usize];
            let packet = QuicPacketRecord {
                kind,
                number: Some(*number),
                bytes: Some(*value),
                frames,
                has_ack: value % 2 == 0,
                acked: &[(number.saturating_sub(5), *number)],
                ack_delay: Some(*value),
                ce: Some(*value),
                close: None,
            };
            let some = Some(*value);
            let record = match what {
                0 | 1 => QuicRecord::Sent(packet),
                2 | 3 => QuicRecord::Received(packet),
                4 => QuicRecord::Lost { kind, number: Some(*number), trigger: QuicLossTrigger::Packets },
                5 => QuicRecord::Metrics(QuicMetrics {
                    min_rtt: some, smoothed_rtt: some, latest_rtt: some, rtt_variance: some,
                    pto_count: Some(*number), congestion_window: some, bytes_in_flight: some,
                    ssthresh: some, pacing_rate: some,
                }),
                6 => QuicRecord::TimeoutExpired,
                7 => QuicRecord::Constants { max_datagram_size: some, reordering_threshold: some },
                _ => QuicRecord::State { new: "recovery", trigger: Some("persistent_congestion") },
            };
            analyzer.push(*at, index as u64 + 1, &record);
        }
        let analysis = analyzer.finish().unwrap();
        prop_assert_eq!(analysis.budget.whole(), analysis.duration());
        for finding in QuicDiagnosis::of(&analysis).findings {
            prop_assert!(finding.frames.0 <= finding.frames.1, "{}: {:?}", finding.code, finding.frames);
            prop_assert!(finding.frames.1 <= analysis.range.1, "{}", finding.code);
            prop_assert!(finding.interval.0 <= finding.interval.1, "{}", finding.code);
            prop_assert!(finding.cost.as_nanos() <= analysis.duration(), "{}", finding.code);
        }
    }
}
