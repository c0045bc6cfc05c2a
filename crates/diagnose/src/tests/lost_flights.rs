//! Flights that were lost before the capture point, and what shows them.

use packet::{Flags, Segment};
use units::{Duration, SeqNum};

use super::{ISN, TestConnection};
use crate::rules::{Finding, Neighbours};
use crate::{Analysis, Diagnosis, Limiter, Timeline};

/// A slow start from one segment at `us` and `place`, captured at the receiver, and linear growth after four round trips
/// of 50 ms; each segment is acknowledged, the first after `delay`.
fn from_one_segment(script: &mut TestConnection, mut us: u64, mut place: u64, delay: u64) {
    for window in [1, 2, 4, 8, 8].into_iter().chain(9..40) {
        for n in 0..window {
            script.data(us + n * 20, place, 1_000);
            place += 1_000;
            script.ack(us + n * 20 + 5 + if window == 1 { delay } else { 0 }, place, &[]);
        }
        us += 51_000 + if window == 1 { delay } else { 0 };
    }
}

fn primary(analysis: &Analysis) -> Finding {
    let diagnosis = Diagnosis::of(analysis, &Neighbours::default());
    diagnosis.findings.into_iter().next().unwrap()
}

fn in_timeouts(analysis: &Analysis) -> Duration {
    Timeline::of(analysis.main().unwrap()).budget.of(Limiter::Timeout)
}

/// An ACK of the sender has a sequence number beyond its first data, which come a second later, one segment first: they
/// were lost, and a timer has sent them again.
#[test]
fn an_ack_ahead_of_the_data_shows_lost_ones() {
    let lost = |ahead: u32| {
        let mut script = TestConnection::new();
        (script.stamps, script.mss) = (true, 1_012);
        script.open_between(100, 50_000);
        let seq = SeqNum(ISN.wrapping_add(1).wrapping_add(ahead));
        script.push(60_000, Segment { flags: Flags::ACK, seq, ..Segment::default() }, (60, 0));
        from_one_segment(&mut script, 1_060_000, 0, 0);
        script.finish()
    };
    let analysis = lost(10_000);
    let found = primary(&analysis);
    assert_eq!(found.code, "CC204", "{found:#?}");
    assert!(found.cost >= Duration::from_millis(1_500), "{found:#?}");
    assert!(in_timeouts(&analysis) >= Duration::from_millis(900));
}

/// After some flights a silence of 0.4 s, then one segment alone, whose ACK is delayed by 40 ms, and the next as soon as
/// that ACK admits them: the window is one segment.
#[test]
fn a_window_of_one_segment_after_a_silence_is_a_timeout_though_its_ack_is_delayed() {
    let mut script = TestConnection::new();
    (script.stamps, script.mss) = (true, 1_012);
    script.open_between(100, 50_000);
    for n in 0..10 {
        script.data(50_200 + n * 20, n * 1_000, 1_000);
        script.ack(50_205 + n * 20, (n + 1) * 1_000, &[]);
    }
    from_one_segment(&mut script, 450_000, 10_000, 40_000);
    let analysis = script.finish();
    assert!(in_timeouts(&analysis) >= Duration::from_millis(300), "{:?}", in_timeouts(&analysis));
    assert_eq!(primary(&analysis).code, "CC204");
}

/// The first data come a second after the handshake, one segment alone, then one above a gap of a flight, which is filled:
/// one loss, of the whole flight.
#[test]
fn a_gap_behind_the_first_segment_is_of_the_flight_that_was_lost() {
    let mut script = TestConnection::new();
    (script.stamps, script.mss) = (true, 1_012);
    script.open_between(100, 50_000);
    script.data(1_050_000, 0, 1_000);
    script.ack(1_050_005, 1_000, &[]);
    let mut us = 1_101_000;
    script.data(us, 10_000, 1_000);
    script.ack(us + 5, 1_000, &[(10_000, 11_000)]);
    for n in 1..10 {
        us += if n % 3 == 1 { 51_000 } else { 20 };
        script.data(us, n * 1_000, 1_000);
        match n {
            9 => script.ack(us + 5, 11_000, &[]),
            _ => script.ack(us + 5, (n + 1) * 1_000, &[(10_000, 11_000)]),
        }
    }
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!(flow.episodes.len(), 1, "{:#?}", flow.episodes);
    let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    let codes: Vec<_> = diagnosis.findings.iter().map(|one| one.code).collect();
    assert!(codes.contains(&"CC204") && !codes.contains(&"CC201"), "{codes:?}");
}

/// The server repeats its SYN-ACK until the ACK of the client arrives: that time is of the opening.
#[test]
fn a_repeated_answer_to_the_syn_is_an_opening_with_losses() {
    let mut script = TestConnection::new();
    let syn = script.syn(0);
    let answer = Segment { flags: Flags::SYN | Flags::ACK, dir: packet::Dir::Reverse, ..syn };
    for us in [100, 1_000_100, 3_000_100] {
        script.push(us, answer, (0, 0));
    }
    script.push(3_050_100, Segment { flags: Flags::ACK, ..Segment::default() }, (0, 0));
    for n in 0..20 {
        script.data(3_060_000 + n * 20, n * 1_000, 1_000);
        script.ack(3_060_005 + n * 20, (n + 1) * 1_000, &[]);
    }
    let found = primary(&script.finish());
    assert_eq!((found.code, found.kind), ("CC204", "syn-lost"), "{found:#?}");
    assert!(found.title.contains("3 SYN-ACKs"), "{}", found.title);
}

/// Of eleven segments the first is retransmitted four times, and the capture has no packet of the other direction.
#[test]
fn a_flight_without_any_answer_is_a_failure() {
    let mut script = TestConnection::new();
    for n in 0..11 {
        script.data(50 + n, n * 1_000, 1_000);
    }
    for us in [220_000, 660_000, 1_540_000, 3_300_000] {
        script.data(us, 0, 1_000);
    }
    let found = primary(&script.finish());
    assert!(found.code == "CC204" && found.is_failure, "{found:#?}");
    assert!(found.title.contains("5 times"), "{}", found.title);
}

/// A link that takes 6 ms for a packet, on a path with a round trip of 2 ms, captured at the receiver: nothing is lost.
#[test]
fn packets_that_a_slow_link_spaces_are_no_losses() {
    let mut script = TestConnection::new();
    (script.stamps, script.mss) = (true, 1_012);
    script.open_between(100, 2_000);
    for n in 0..40 {
        script.data(8_000 + n * 6_000, n * 1_000, 1_000);
        script.ack(8_005 + n * 6_000, (n + 1) * 1_000, &[]);
    }
    let analysis = script.finish();
    // The first two show what the spacing is.
    assert!(analysis.main().unwrap().episodes.len() <= 1, "{:#?}", analysis.main());
}
