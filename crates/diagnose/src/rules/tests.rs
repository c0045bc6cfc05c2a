//! Tests of rules that no recorded transfer triggers.

use packet::Dir;
use units::{Duration, Instant};

use super::{FoundLimit, LossProcess, Neighbours, Proof, ProvenCost};
use crate::tests::TestConnection;
use crate::{Analysis, Diagnosis, Limiter, StateSample};

fn codes(analysis: &Analysis) -> Vec<&'static str> {
    Diagnosis::of(analysis, &Neighbours::default())
        .findings
        .iter()
        .map(|found| found.code)
        .collect()
}

/// Flights of `sizes` segments; each is sent when the first ACK of the previous one arrives, and
/// its ACKs arrive `spacing` us apart. The last segment of each carries PSH if `drained`.
fn flights(sizes: &[u64], rtt: u64, spacing: u64, drained: bool) -> Analysis {
    enum FlightEvent {
        Data(u64, bool),
        Ack(u64),
    }
    let mut events = Vec::new();
    let (mut start, mut place) = (rtt + 20, 0);
    for &size in sizes {
        for n in 0..size {
            events
                .push((start + n, FlightEvent::Data(place + n * 1_000, drained && n + 1 == size)));
            let ack = FlightEvent::Ack(place + (n + 1) * 1_000);
            events.push((start + rtt + n * spacing, ack));
        }
        start += rtt + 5;
        place += size * 1_000;
    }
    events.sort_by_key(|(at, _)| *at);
    let mut script = TestConnection::new();
    script.open(rtt);
    for (at, event) in events {
        match event {
            FlightEvent::Data(place, true) => script.pushed(at, place, 1_000),
            FlightEvent::Data(place, false) => script.data(at, place, 1_000),
            FlightEvent::Ack(place) => script.ack_window(at, place, &[], 1_000_000),
        }
    }
    script.finish()
}

#[test]
fn slow_start_that_ends_early() {
    // 8 Mbit/s per 1 ms of spacing: 80 Mbit/s at 50 ms hold 500 segments; growth ends at 40.
    let mut sizes = vec![10, 20, 40];
    sizes.extend((0..40).map(|n| 41 + n));
    let analysis = flights(&sizes, 50_000, 100, false);
    let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    let found = diagnosis.findings.iter().find(|found| found.code == "CC104").unwrap();
    assert_eq!(diagnosis.primary, Some("CC104"), "{found:?}");
    let rate = diagnosis.course.path.rate.unwrap() * 8.0;
    assert!((rate - 80e6).abs() < 5e6, "{rate}");
    // At the rate of the path, the same bytes would take a fifth of the time.
    assert!(found.cost > Duration::from_secs(1), "{found:?}");
}

#[test]
fn a_constant_flight_is_the_send_buffer() {
    // Each ACK lets as much be written as it acknowledges, and that is sent at once.
    let sent = |drained: bool| {
        let mut script = TestConnection::new();
        script.open(90_000);
        (0..30).for_each(|n| script.data(90_020 + n, n * 1_000, 1_000));
        for n in 0..1_800 {
            let at = 180_020 + n * 3_000;
            script.ack_window(at, (n + 1) * 1_000, &[], 1_000_000);
            match drained {
                true => script.pushed(at + 20, (n + 30) * 1_000, 1_000),
                false => script.data(at + 20, (n + 30) * 1_000, 1_000),
            }
        }
        script.finish()
    };
    assert!(codes(&sent(true)).contains(&"CC503"), "{:?}", codes(&sent(true)));
    // Without PSH there was more to send: something else limited it.
    assert!(!codes(&sent(false)).contains(&"CC503"));
}

/// One ACK for each flight, two segments more for each: L = 2.
#[test]
fn slow_start_starved_by_single_acks() {
    let mut script = TestConnection::new();
    script.open(100_000);
    let (mut at, mut place) = (100_020, 0);
    for size in (10..40).step_by(2) {
        for n in 0..size {
            script.data(at + n, place + n * 1_000, 1_000);
        }
        place += size * 1_000;
        at += 100_100;
        script.ack_window(at - 50, place, &[], 1_000_000);
    }
    let analysis = script.finish();
    let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    assert_eq!(diagnosis.primary, Some("CC101"));
    let found = &diagnosis.findings[0];
    assert!(found.title.contains("grows by 2.0 MSS per ACK"), "{}", found.title);
    // 15 round trips from 10 to 38, where doubling needs 3 (the last in part).
    assert!((1_100_000_000..1_300_000_000).contains(&found.cost.as_nanos()), "{}", found.cost);
}

/// The same after a flight that did not grow: the ramp ended there, and the climb is no congestion avoidance, which
/// grows by one segment for a flight.
#[test]
fn a_climb_of_two_segments_per_ack_is_a_starved_slow_start() {
    let climb = |step: u64| {
        let mut script = TestConnection::new();
        script.open(100_000);
        let (mut at, mut place) = (100_020, 0);
        let sizes = [10, 10, 10].into_iter().chain((1..40).map(|n| 10 + n * step));
        for size in sizes {
            for n in 0..size {
                script.data(at + n, place + n * 1_000, 1_000);
            }
            place += size * 1_000;
            at += 100_100;
            script.ack_window(at - 50, place, &[], 1_000_000);
        }
        let analysis = script.finish();
        codes(&analysis)
    };
    let (starved, avoiding) = (climb(2), climb(1));
    assert!(starved.contains(&"CC101") && !starved.contains(&"CC105"), "{starved:?}");
    assert!(!avoiding.contains(&"CC101"), "{avoiding:?}");
}

/// A receiver that has a buffer of 60 kB and reads 100 kB/s answers when it has read all.
#[test]
fn an_answer_after_slow_reading_waits_for_the_reader() {
    let transfer = |answers: bool| {
        let mut script = TestConnection::new();
        script.open(20_000);
        (0..60).for_each(|n| script.data(20_020 + n, n * 1_000, 1_000));
        for n in 0..300_u64 {
            let at = 40_020 + n * 10_000;
            script.ack_window(at, (n + 1) * 1_000, &[], if n < 20 { 60_000 } else { 30_000 });
            if n >= 30 {
                script.data(at + 20, (n + 30) * 1_000, 1_000);
            }
        }
        for n in 300..330 {
            script.ack_window(3_040_020 + n, (n + 1) * 1_000, &[], 30_000);
        }
        if answers {
            script.request(3_500_000, 330_000);
        }
        let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
        let found = diagnosis.findings.into_iter().find(|found| found.code == "CC403");
        found.unwrap_or_else(|| panic!("no CC403")).cost
    };
    let (alone, answered) = (transfer(false), transfer(true));
    assert!(answered >= alone + Duration::from_millis(300), "{alone} {answered}");
}

/// A receiver that holds 30 kB when all data were delivered has read them when its window shows that.
#[test]
fn a_slow_reader_reads_on_when_all_is_delivered() {
    let cost = |opens_at: u64| {
        let mut script = TestConnection::new();
        script.open(20_000);
        (0..60).for_each(|n| script.data(20_020 + n, n * 1_000, 1_000));
        for n in 0..300_u64 {
            let at = 40_020 + n * 10_000;
            script.ack_window(at, (n + 1) * 1_000, &[], if n < 20 { 60_000 } else { 30_000 });
            if n >= 30 {
                script.data(at + 20, (n + 30) * 1_000, 1_000);
            }
        }
        (300..330).for_each(|n| script.ack_window(3_040_020 + n, (n + 1) * 1_000, &[], 30_000));
        // Its window opens as it reads.
        script.ack_window(3_040_050 + opens_at, 330_000, &[], 60_000);
        // Nothing is read later.
        script.ack_window(6_000_000, 330_000, &[], 60_000);
        let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
        let found = diagnosis.findings.into_iter().find(|found| found.code == "CC403");
        found.unwrap_or_else(|| panic!("no CC403")).cost.as_millis()
    };
    let [at_once, soon, late] = [0, 100_000, 2_000_000].map(cost);
    assert!((95..=105).contains(&(soon - at_once)), "{at_once} {soon}");
    assert!((1_990..=2_010).contains(&(late - at_once)), "{at_once} {late}");
}

/// 300 segments, one each 10 ms, over a round trip of 20 ms.
fn one_segment_each_10_ms() -> Analysis {
    let mut script = TestConnection::new();
    script.open(20_000);
    for n in 0..300_u64 {
        script.data(20_020 + n * 10_000, n * 1_000, 1_000);
        script.ack(40_020 + n * 10_000, (n + 1) * 1_000, &[]);
    }
    script.finish()
}

/// A limit that was never lifted hides the rate of the path. Simulated without it, the transfer saves more than the
/// rate that the capture shows would allow, and that rate is stated from then on.
#[test]
fn a_proven_cost_is_not_bounded_by_the_rate_of_the_limit() {
    let analysis = one_segment_each_10_ms();
    let mut diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    // The packets of a policed flow arrive at the policer's rate.
    diagnosis.course.path.rate = Some(100_000.0);
    let cost = Duration::from_millis(2_500);
    let found = FoundLimit { code: "CC501", kind: "", title: "a clock".to_owned(), cause: "so" };
    let costs = vec![ProvenCost { code: "CC501", least: cost, most: cost }];
    let proof = Proof { costs, found: vec![found], rate: Some(600_000.0), losses: None };
    diagnosis.prove(&analysis, &Neighbours::default(), &proof);
    let found = diagnosis.findings.iter().find(|found| found.code == "CC501").unwrap();
    assert_eq!((found.cost, diagnosis.course.path.rate), (cost, Some(600_000.0)));
}

/// Without a rate of the path a cost is an upper bound: a proven one that is nearly as large is before it, a smaller one is
/// not.
#[test]
fn an_upper_bound_is_behind_a_proven_cost() {
    let primary = |proven_ms: u64| {
        let analysis = one_segment_each_10_ms();
        let mut diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
        diagnosis.course.path.rate = None;
        diagnosis.findings.clear();
        let mut prove = |code, ms| {
            let cost = Duration::from_millis(ms);
            let found = vec![FoundLimit { code, kind: "", title: "it".to_owned(), cause: "so" }];
            let costs = vec![ProvenCost { code, least: cost, most: cost }];
            let proof = Proof { costs, found, ..Proof::default() };
            diagnosis.prove(&analysis, &Neighbours::default(), &proof);
        };
        prove("CC105", 1_200);
        prove("CC601", proven_ms);
        diagnosis.primary
    };
    assert_eq!((primary(1_000), primary(700)), (Some("CC601"), Some("CC105")));
}

/// What passes a policer is no rate of the path: its losses are not free because the flow has that rate.
#[test]
fn the_rate_of_a_policer_bounds_no_cost() {
    let mut script = TestConnection::new();
    script.open(20_000);
    let mut us = 20_020;
    for n in 0..60_u64 {
        let first = n * 10_000;
        // Of ten packets at a time the third is lost, and retransmitted.
        (0..10).filter(|&k| k != 2).for_each(|k| script.data(us + k, first + k * 1_000, 1_000));
        let block = (first + 3_000, first + 10_000);
        (0..4).for_each(|k| script.ack(us + 20_000 + k, first + 2_000, &[block]));
        script.data(us + 20_010, first + 2_000, 1_000);
        script.ack(us + 40_010, first + 10_000, &[]);
        us += 40_020;
    }
    let analysis = script.finish();
    let mut diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    let rate = analysis.main().unwrap().bytes as f64 / analysis.duration().as_secs_f64();
    diagnosis.course.path.rate = Some(rate * 1.01);
    diagnosis.findings.clear();
    let policer = LossProcess::Policer { rate_bps: (rate * 8.0) as u64, burst: 10_000, lost: 60 };
    let proof = Proof { losses: Some(policer), ..Proof::default() };
    diagnosis.prove(&analysis, &Neighbours::default(), &proof);
    let found = diagnosis.findings.iter().find(|found| found.kind == "policer").unwrap();
    assert!(found.cost * 2 >= analysis.duration(), "{found:#?}");
    assert_eq!(diagnosis.course.path.rate, None);
}

/// Three pairs of packets are lost, and six packets alone: those are CC205's, the pairs are bursts.
#[test]
fn losses_in_a_row_are_bursts_however_few() {
    let code = |pairs: bool| {
        let mut script = TestConnection::new();
        script.open(20_000);
        let mut us = 20_020;
        for n in 0..90_u64 {
            let (first, lost) = (n * 20_000, if pairs { 2 } else { 1 });
            let is_lost =
                |k: u64| n % if pairs { 30 } else { 15 } == 10 && (5..5 + lost).contains(&k);
            (0..20).filter(|&k| !is_lost(k)).for_each(|k| {
                script.data(us + k, first + k * 1_000, 1_000);
            });
            if is_lost(5) {
                let block = (first + (5 + lost) * 1_000, first + 20_000);
                (0..4).for_each(|k| script.ack(us + 20_000 + k, first + 5_000, &[block]));
                (5..5 + lost).for_each(|k| script.data(us + 20_010 + k, first + k * 1_000, 1_000));
                us += 20_020;
            }
            script.ack(us + 20_000, first + 20_000, &[]);
            us += 20_010;
        }
        let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
        let found = diagnosis.findings.into_iter().find(|one| one.code.starts_with("CC20"));
        found.map(|one| (one.code, one.kind))
    };
    assert_eq!(code(false), Some(("CC205", "")));
    assert_eq!(code(true), Some(("CC201", "burst")));
}

#[test]
fn a_clock_coarser_than_the_path() {
    for (hz, found) in [(100, true), (1_000, false)] {
        let mut script = TestConnection::new();
        script.open(10_000);
        script.data(10_020, 0, 1_000);
        script.ack(20_020, 1_000, &[]);
        for tick in 0..200_u32 {
            let at = Instant::ZERO + Duration::from_millis(u64::from(tick) * 1_000 / hz);
            let sample = StateSample { ticks: Some(tick), ..StateSample::new(at, Dir::Forward) };
            script.state(&sample);
        }
        let analysis = script.finish();
        assert!((analysis.states.hz().unwrap() - hz as f64).abs() < 1.0);
        assert_eq!(codes(&analysis).contains(&"CC701"), found, "hz {hz}");
    }
}

#[test]
fn capture_gaps_are_reported() {
    let mut middle = TestConnection::new();
    middle.data(0, 5_000, 1_000);
    middle.ack(10_000, 6_000, &[]);
    assert!(codes(&middle.finish()).contains(&"CC901"));
    let mut one_way = TestConnection::new();
    one_way.data(0, 5_000, 1_000);
    assert!(codes(&one_way.finish()).contains(&"CC902"));
    let mut acks = TestConnection::new();
    acks.ack(0, 5_000, &[]);
    assert_eq!(codes(&acks.finish()), ["CC901", "CC902"]);
    let mut missed = TestConnection::new();
    missed.open(10_000);
    missed.data(10_020, 0, 1_000);
    missed.ack(20_020, 3_000, &[]);
    assert!(codes(&missed.finish()).contains(&"CC903"));
    assert!(codes(&TestConnection::new().finish()).contains(&"CC901"));
}

/// Flights over a path with an RTT of 50 ms; an ACK of the third echoes a mark, and the sender
/// answers with CWR and a smaller flight.
#[test]
fn a_window_reduced_for_a_mark_is_cc206() {
    let mut script = TestConnection::new();
    script.open(50_000);
    let (mut at, mut place) = (50_020, 0);
    for flight in 0..40_u64 {
        let size = match flight {
            0 => 10,
            1 => 20,
            2 => 40,
            _ => 20 + (flight - 3) / 4,
        };
        for n in 0..size {
            match (flight, n) {
                // The first new data carry CWR.
                (3, 0) => script.reduced(at, place, 1_000, false),
                _ => script.data(at + n, place + n * 1_000, 1_000),
            }
        }
        for n in 0..size {
            let (when, acked) = (at + 50_000 + n * 200, place + (n + 1) * 1_000);
            match (flight, n) {
                (2, 0) => script.echo(when, acked),
                _ if n + 1 == size || n % 2 == 1 => {
                    script.ack_window(when, acked, &[], 1_000_000);
                }
                _ => {}
            }
        }
        place += size * 1_000;
        at += 50_000 + size * 200;
    }
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.ecn_echoes, flow.episodes.len(), flow.counts.retransmitted), (1, 1, 0));
    let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    assert_eq!(diagnosis.primary, Some("CC206"), "{:#?}", diagnosis.findings);
    let found = &diagnosis.findings[0];
    assert!(found.title.contains("reduced 1 time"), "{}", found.title);
    // No finding is about losses.
    let lossy = |code: &str| code.starts_with("CC20") && code != "CC206";
    assert!(!diagnosis.findings.iter().any(|found| lossy(found.code)), "{:#?}", diagnosis.findings);
}

/// Linux sets CWR after a loss too; without ECE it is not a reaction to a mark.
#[test]
fn a_reduction_without_an_echo_is_no_mark() {
    let mut script = TestConnection::new();
    script.open(50_000);
    script.data(50_020, 0, 1_000);
    script.ack(100_020, 1_000, &[]);
    script.reduced(100_040, 1_000, 1_000, true);
    script.ack(150_020, 2_000, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.marked, flow.episodes.len()), (1, 0));
}

/// Without packets from the receiver no limit is reported.
#[test]
fn one_direction_alone_has_no_limit() {
    let mut script = TestConnection::new();
    for n in 0..200 {
        script.data(n * 20_000, n * 1_000, 1_000);
    }
    let analysis = script.finish();
    assert_eq!(codes(&analysis), ["CC901", "CC902"]);
    let budget = Diagnosis::of(&analysis, &Neighbours::default()).course.budget;
    assert_eq!(budget.of(Limiter::Unknown), analysis.duration());
    assert_eq!(budget.whole(), analysis.duration());
}

/// The SYN was captured, its answer took another path: the capture did not begin late, and the
/// finding covers all of it.
#[test]
fn one_direction_alone_with_its_syn() {
    let mut script = TestConnection::new();
    script.syn(0);
    for n in 1..200 {
        script.data(n * 20_000, (n - 1) * 1_000, 1_000);
    }
    let analysis = script.finish();
    let findings = Diagnosis::of(&analysis, &Neighbours::default()).findings;
    let reported: Vec<_> =
        findings.iter().map(|found| (found.code, found.title.as_str())).collect();
    assert_eq!(reported[0], ("CC901", "only a part of the opening is in the capture"));
    assert_eq!(findings[1].code, "CC902");
    assert_eq!(
        findings[1].interval,
        (Instant::ZERO, Instant::ZERO + Duration::from_millis(199 * 20))
    );
}

/// A single packet has no limit.
#[test]
fn one_packet_alone_has_no_limit() {
    let mut script = TestConnection::new();
    script.open(50_000);
    script.data(50_020, 0, 1_000);
    assert_eq!(codes(&script.finish()), Vec::<&str>::new());
}

#[test]
fn a_lost_syn_is_a_timeout() {
    let mut script = TestConnection::new();
    script.syn(0);
    script.open_at(1_000_000, 20_000);
    for n in 0..20 {
        script.data(1_020_020 + n * 25_000, n * 1_000, 1_000);
        script.ack(1_040_020 + n * 25_000, n * 1_000 + 1_000, &[]);
    }
    let analysis = script.finish();
    let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    assert_eq!(diagnosis.primary, Some("CC204"), "{:?}", diagnosis.findings);
    assert_eq!(diagnosis.findings[0].cost.as_millis(), 1_000);
}

/// Messages shorter than a segment, each sent when the ACK of the previous one arrives: any
/// congestion window holds a segment, so the application has no more to send.
#[test]
fn a_window_holds_at_least_a_segment() {
    for bytes in [|_| 300, |n| 100 + 10 * n, |n| 10 + 20 * n] {
        let mut script = TestConnection::new();
        script.open(50_000);
        let (mut at, mut place) = (50_020, 0);
        for n in 0..40_u32 {
            let len: u32 = bytes(n);
            script.data(at, place, len);
            place += u64::from(len);
            at += 50_000;
            script.ack_window(at, place, &[], 1_000_000);
            at += 10;
        }
        let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
        let budget = diagnosis.course.budget;
        let cwnd_limited_time = budget.of(Limiter::SlowStart) + budget.of(Limiter::Cwnd);
        // The ACK of the very first message is waited for in the first round.
        assert!(cwnd_limited_time <= Duration::from_millis(60), "{cwnd_limited_time}");
        // Interactive: worth a note, no more.
        assert_eq!(diagnosis.primary, None, "{:?}", diagnosis.findings);
        assert_eq!(diagnosis.findings[0].code, "CC501");
        let text = format!("{:?}", diagnosis.findings);
        assert!(!text.contains("0 MSS"), "{text}");
    }
}
