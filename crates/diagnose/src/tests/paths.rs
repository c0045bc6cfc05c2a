//! Paths that change, and captures that do not see all of them.

use packet::{Dir, Flags, Segment};
use units::{Duration, SeqNum};

use super::{ISN, TestConnection};
use crate::rules::{EvidenceValue, Finding, LossProcess, Neighbours, Severity};
use crate::{Analysis, Diagnosis, Limiter, Timeline};

fn found(analysis: &Analysis, code: &str) -> Option<Finding> {
    let diagnosis = Diagnosis::of(analysis, &Neighbours::default());
    diagnosis.findings.into_iter().find(|one| one.code == code)
}

/// Between the hosts, data take longer from the sender than the small packets of the handshake: a round trip of data has
/// the way of data.
#[test]
fn the_handshake_is_no_part_of_a_round_trip_of_data() {
    let mut script = TestConnection::new();
    script.stamps = true;
    script.open_between(20_000, 10_000);
    // Eight segments are in flight: each passes here 45 ms after the one that its ACK admits.
    let mut events = Vec::new();
    for n in 0..32_u32 {
        let passed = 40_000 + n / 8 * 45_000 + n % 8 * 5_000;
        events.push((passed, true, n));
        events.push((passed + 20_000, false, n));
    }
    events.sort_unstable();
    for (us, is_data, n) in events {
        let now = us / 1_000;
        match is_data {
            true => {
                let seq = SeqNum(ISN.wrapping_add(1).wrapping_add(n * 1_000));
                let data = Segment { flags: Flags::ACK, seq, payload: 1_000, ..Segment::default() };
                // It echoes the ACK of 25 ms before.
                script.push(u64::from(us), data, (now, if n < 8 { 0 } else { now - 25 }));
            }
            false => script.ack(u64::from(us), u64::from(n + 1) * 1_000, &[]),
        }
    }
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    let trips = flow.rounds.iter().map(|round| round.min_rtt).filter(|&rtt| rtt != Duration::MAX);
    assert_eq!(trips.min(), Some(Duration::from_millis(45)));
}

/// At the receiver: flights of eight segments, a second of silence, then one segment alone, and a round trip later the
/// next; `next` is its offset behind that segment.
fn silence_at_receiver(next: u64, together: bool) -> Analysis {
    let mut script = TestConnection::new();
    script.open_between(100, 50_000);
    let (mut us, mut place) = (50_200, 0);
    for _ in 0..6 {
        for n in 0..8 {
            match n {
                7 => script.pushed(us + n * 10, place, 1_000),
                _ => script.data(us + n * 10, place, 1_000),
            }
            place += 1_000;
            script.ack(us + n * 10 + 5, place, &[]);
        }
        us += 50_000;
    }
    us += 1_000_000;
    script.data(us, place, 1_000);
    place += 1_000;
    script.ack(us + 5, place, &[]);
    let (after, first) = (if together { us + 10 } else { us + 50_000 }, place + next);
    for n in 0..8 {
        script.data(after + n * 10, first + n * 1_000, 1_000);
        let (ack, block) = match next {
            0 => (first + (n + 1) * 1_000, None),
            _ => (place, Some((first, first + (n + 1) * 1_000))),
        };
        script.ack(after + n * 10 + 5, ack, block.as_slice());
    }
    script.finish()
}

/// A segment alone after a silence, and a round trip later data above what is missing: those were in flight in the
/// silence, and the sender waited for its timer. Data that come together are those of an application that rested.
#[test]
fn a_silence_with_a_gap_behind_its_end_is_a_timeout() {
    let budget = |analysis: &Analysis| Timeline::of(analysis.main().unwrap()).budget;
    let lost = budget(&silence_at_receiver(12_000, false));
    assert!(lost.of(Limiter::Timeout) >= Duration::from_millis(900), "{lost:?}");
    let rested = budget(&silence_at_receiver(0, true));
    assert!(rested.of(Limiter::Idle) >= Duration::from_millis(900), "{rested:?}");
    assert_eq!(rested.of(Limiter::Timeout), Duration::ZERO);
}

/// Pieces of 20 kB of one message with these rests between them.
fn pieces(rests: impl Iterator<Item = u64>) -> Analysis {
    let mut script = TestConnection::new();
    script.open(20_000);
    let (mut us, mut place) = (21_000, 0);
    for rest in rests {
        for _ in 0..19 {
            script.data(us, place, 1_000);
            place += 1_000;
            us += 5;
        }
        script.pushed(us, place, 1_000);
        place += 1_000;
        us += 20_000;
        script.ack(us, place, &[]);
        us += rest;
    }
    script.finish()
}

/// A message that is interrupted again and again for longer than a timeout: its application waits for another host. Equal
/// rests of more than a second are those of a player, a single long one those of a user.
#[test]
fn a_message_that_its_application_interrupts_is_cc501() {
    let proxy = pieces((0..40).map(|n| if n % 10 == 0 { 4_000_000 } else { 300_000 }));
    let of_proxy = found(&proxy, "CC501").unwrap();
    assert_eq!(of_proxy.severity, Severity::Error, "{of_proxy:#?}");
    assert!(of_proxy.title.contains("within its messages"), "{}", of_proxy.title);
    assert!(of_proxy.cost >= Duration::from_secs(25), "{}", of_proxy.cost);
    let is_interrupted = |analysis: &Analysis| {
        found(analysis, "CC501").is_some_and(|one| one.title.contains("within its messages"))
    };
    assert!(!is_interrupted(&pieces((0..40).map(|_| 1_500_000))));
    assert!(!is_interrupted(&pieces((0..40).map(|n| if n == 20 { 60_000_000 } else { 1_000 }))));
}

/// Sixty segments in flight over a link that takes 1 ms for each, and from 0.8 s on `later` us.
fn over_link(later: u64) -> (Analysis, u64) {
    const WINDOW: usize = 60;
    let mut events = Vec::new();
    let (mut acks, mut departed, mut slow) = (Vec::new(), 0, 0);
    for n in 0..1_200 {
        let sent = if n < WINDOW { 50_020 + n as u64 } else { acks[n - WINDOW] + 10 };
        let begin = departed.max(sent + 25_000);
        let takes = if begin < 800_000 { 1_000 } else { later };
        slow += u64::from(takes > 1_000);
        departed = begin + takes;
        acks.push(departed + 25_000);
        events.push((sent, true, n as u64));
        events.push((departed + 25_000, false, n as u64));
    }
    events.sort_unstable();
    let mut script = TestConnection::new();
    script.open(50_000);
    for (us, is_data, n) in events {
        match is_data {
            true => script.data(us, n * 1_000, 1_000),
            false => script.ack_window(us, (n + 1) * 1_000, &[], 900_000),
        }
    }
    (script.finish(), slow)
}

/// A link that becomes slower costs the time that its data take longer from then on.
#[test]
fn a_path_that_becomes_slower_is_cc602() {
    let (analysis, slow) = over_link(3_000);
    let drop = found(&analysis, "CC602").unwrap();
    let cost = drop.cost.as_millis() as f64 / (slow * 2) as f64;
    assert!((0.9..=1.1).contains(&cost), "{slow} segments: {drop:#?}");
    assert!(drop.severity > Severity::Note);
    // A bucket that passes what this link carries, with headers, is the link; another rate is a policer's.
    let after = drop.evidence.iter().find(|item| item.key == "rate_after_bps").unwrap();
    let EvidenceValue::Number(payload) = after.value else { panic!("{after:?}") };
    let policer = |part: f64| LossProcess::Policer {
        rate_bps: (payload * part) as u64,
        burst: 100_000,
        lost: 30,
    };
    let findings = [drop];
    assert!(policer(1.04).is_of_link(&findings));
    assert!(!policer(1.3).is_of_link(&findings) && !policer(1.04).is_of_link(&[]));
    let (steady, _) = over_link(1_000);
    assert!(found(&steady, "CC602").is_none());
}

/// A connection on which the server takes 300 ms for its only response of 3 kB.
fn slow_response() -> Analysis {
    let mut script = TestConnection::new();
    script.open(20_000);
    script.pushed(20_100, 0, 500);
    script.ack(40_100, 500, &[]);
    let ack = SeqNum(ISN.wrapping_add(501));
    for n in 0..3 {
        let data = Segment {
            dir: Dir::Reverse,
            flags: Flags::ACK | Flags::PSH,
            seq: SeqNum(ISN.wrapping_add(1).wrapping_add(n * 1_000)),
            ack,
            payload: 1_000,
            ..Segment::default()
        };
        script.push(340_100 + u64::from(n), data, (0, 0));
    }
    script.finish()
}

/// One slow response proves nothing; on most of the connections of a server it is the server.
#[test]
fn a_server_that_is_slow_on_its_connections_is_cc505() {
    let analysis = slow_response();
    let beside = |connections: usize| {
        let mut neighbours = Neighbours::default();
        (0..connections).for_each(|_| neighbours.add(&slow_response()));
        neighbours.sort();
        let diagnosis = Diagnosis::of(&analysis, &neighbours);
        diagnosis.findings.into_iter().find(|one| one.code == "CC505")
    };
    assert!(beside(1).is_none(), "{:?}", beside(1));
    let found = beside(6).unwrap();
    assert_eq!((found.kind, found.severity > Severity::Note), ("think-server", true), "{found:#?}");
    assert!(found.title.contains("as on 6 of its 6 connections"), "{}", found.title);
}

/// With SACK a duplicate ACK says what arrived behind the hole: without that, and without the SYNs, there is none.
#[test]
fn duplicate_acks_without_blocks_show_that_sack_is_not_in_use() {
    let repaired = |has_blocks: bool| {
        let mut script = TestConnection::new();
        for n in 0..20 {
            script.data(n * 100, n * 1_000, 1_000);
        }
        script.ack(20_000, 1_000, &[]);
        for n in 2..20 {
            let block = has_blocks.then_some((2_000, n * 1_000 + 1_000));
            script.ack(20_000 + n * 100, 1_000, block.as_slice());
        }
        script.data(30_000, 1_000, 1_000);
        script.ack(50_000, 20_000, &[]);
        script.finish().main().unwrap().duplicates_without_sack
    };
    assert!(repaired(false));
    assert!(!repaired(true));
}

/// Bursts of twenty segments over a link that takes 1 ms for each: the last of the first one is lost behind nineteen, which
/// the ACKs of the second burst report, before its own queue has grown.
#[test]
fn the_queue_at_a_loss_is_that_of_the_packets_before_it() {
    let mut script = TestConnection::new();
    script.open(8_000);
    for n in 0..20 {
        script.data(50_000 + n, n * 1_000, 1_000);
    }
    for n in 1..20 {
        script.ack(58_000 + 1_000 * n, n * 1_000, &[]);
    }
    for n in 20..40 {
        script.data(90_000 + n, n * 1_000, 1_000);
    }
    script.ack(99_000, 19_000, &[(20_000, 21_000)]);
    script.data(99_010, 19_000, 1_000);
    for n in 22..=40 {
        script.ack(79_000 + 1_000 * n, 19_000, &[(20_000, n * 1_000)]);
    }
    script.ack(120_000, 40_000, &[]);
    let analysis = script.finish();
    let episodes = &analysis.main().unwrap().episodes;
    assert_eq!(episodes.len(), 1);
    let rtt = episodes[0].rtt;
    assert!(rtt >= Duration::from_millis(26), "{rtt}");
}
