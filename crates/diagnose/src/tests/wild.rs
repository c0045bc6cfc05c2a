//! What captures from other people's networks have: closed windows and probes, silences without a
//! loss, numbers of another connection, saved selections of packets.

use packet::{Dir, Flags, Options, Segment, SynOptions};
use units::{Duration, SeqNum};

use super::{ISN, TestConnection};
use crate::rules::{Neighbours, Severity};
use crate::{Diagnosis, Limiter};

/// A reader stops for ten seconds: the window closes, and the sender probes it with a byte at
/// `snd_una`, again and again. Nothing is lost. Without the handshake the scale is unknown, but zero
/// is zero.
#[test]
fn probes_of_a_closed_window_are_no_retransmissions() {
    for opened in [true, false] {
        let mut script = TestConnection::new();
        if opened {
            script.open(10_000);
        }
        let mut at = 10_020;
        for n in 0..100 {
            script.data(at, n * 1_000, 1_000);
            script.ack_window(at + 10_000, (n + 1) * 1_000, &[], if n == 99 { 0 } else { 60_000 });
            at += 10_050;
        }
        for wait in [200, 400, 800, 1_600, 3_200, 5_000] {
            at += wait * 1_000;
            script.data(at, 100_000, 1);
            script.ack_window(at + 10_000, 100_000, &[], 0);
        }
        at += 500_000;
        script.ack_window(at, 100_000, &[], 60_000);
        for n in 0..10 {
            script.data(at + 20 + n, 100_000 + n * 1_000, 1_000);
        }
        script.ack(at + 10_100, 110_000, &[]);
        let analysis = script.finish();
        let flow = analysis.main().unwrap();
        assert_eq!((flow.counts.window_probes, flow.counts.retransmitted), (6, 0), "{opened}");
        assert_eq!((flow.episodes.len(), flow.bytes, flow.zero_windows), (0, 110_000, 1));
        let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
        assert_eq!(diagnosis.primary, Some("CC403"), "{:#?}", diagnosis.findings);
        let closed = diagnosis.course.budget.of(Limiter::Rwnd).as_nanos();
        assert!((11_600_000_000..11_800_000_000).contains(&closed), "{closed}");
    }
}

/// The receiver accepts the byte of a probe and acknowledges it.
#[test]
fn an_accepted_probe_is_data() {
    let mut script = TestConnection::new();
    script.open(10_000);
    script.data(10_020, 0, 1_000);
    script.ack_window(20_020, 1_000, &[], 0);
    script.data(300_000, 1_000, 1);
    script.ack(310_000, 1_001, &[]);
    script.data(310_020, 1_001, 1_000);
    script.ack(320_020, 2_001, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.bytes, flow.unseen, flow.counts.retransmitted), (2_001, 0, 0));
    assert_eq!(flow.counts.window_probes, 1);
}

/// Flights that reach a capture at the receiver; one of them after a silence of 400 ms. `missing`
/// packets of the sender were not captured in it, by its counter; `drained`: each flight ends with PSH.
fn silence_at_the_receiver(
    missing: u16,
    numbered: bool,
    asked: bool,
    drained: bool,
) -> Vec<&'static str> {
    let mut script = TestConnection::new();
    script.numbered = numbered;
    script.open_between(10, 50_000);
    let (mut at, mut offset) = (60_000, 0);
    for flight in 0..30_u64 {
        if flight == 20 {
            if asked {
                script.request(at + 349_000, offset);
            }
            at += 400_000;
            script.id += missing;
        }
        for n in 0..4 {
            match drained && n == 3 {
                true => script.pushed(at + n * 10, offset, 1_000),
                false => script.data(at + n * 10, offset, 1_000),
            }
            offset += 1_000;
            script.ack(at + n * 10 + 5, offset, &[]);
        }
        at += 50_000;
    }
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    diagnosis.findings.iter().map(|found| found.code).collect()
}

#[test]
fn a_silence_is_a_tail_loss_only_if_packets_are_missing_in_it() {
    assert!(silence_at_the_receiver(2, true, false, false).contains(&"CC203"));
    assert!(!silence_at_the_receiver(0, true, false, false).contains(&"CC203"));
    assert!(!silence_at_the_receiver(2, true, true, false).contains(&"CC203"));
    // Without a counter a flight that was not complete shows it.
    assert!(silence_at_the_receiver(2, false, false, false).contains(&"CC203"));
    assert!(!silence_at_the_receiver(2, false, false, true).contains(&"CC203"));
}

/// Messages in two writes: Nagle's algorithm holds the second back until the delayed ACK of the
/// first.
#[test]
fn a_sender_that_waits_for_delayed_acks_has_lost_nothing() {
    let mut script = TestConnection::new();
    script.open(10_000);
    let mut at = 10_020;
    for n in 0..40 {
        script.pushed(at, n * 900, 400);
        // 40 ms after it arrived.
        script.ack(at + 50_000, n * 900 + 400, &[]);
        script.pushed(at + 50_020, n * 900 + 400, 500);
        script.request(at + 60_100, n * 900 + 900);
        at += 60_200;
    }
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    let found = diagnosis.findings.iter().find(|found| found.code == "CC504").unwrap();
    assert_eq!(diagnosis.primary, Some("CC504"), "{:#?}", diagnosis.findings);
    // 40 ms each, and the round trip of 10 ms that the second write waits for too.
    assert!((1_990_000_000..2_010_000_000).contains(&found.cost.as_nanos()), "{}", found.cost);
}

/// Bytes are those captured, not the reach of sequence numbers.
#[test]
fn a_jump_of_sequence_numbers_sends_no_bytes() {
    let mut script = TestConnection::new();
    script.data(0, 0, 300);
    script.ack(10_000, 300, &[]);
    script.data(20_000, 2_000_000_000, 400);
    script.ack(30_000, 2_000_000_400, &[]);
    // Back again, from an ACK.
    script.ack(40_000, 500, &[]);
    script.data(50_000, 500, 100);
    let analysis = script.finish();
    assert_eq!(analysis.main().unwrap().bytes, 800);
}

/// A FIN that was not captured is no byte.
#[test]
fn the_number_of_a_fin_is_no_byte() {
    let mut script = TestConnection::new();
    script.open(10_000);
    script.data(10_020, 0, 300);
    script.ack(20_020, 301, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.bytes, flow.unseen), (300, 0));
}

/// Opens a connection near the receiver, which answers twenty segments; returns when the next follows.
fn twenty_answered_segments(script: &mut TestConnection) -> u64 {
    script.open_between(10, 50_000);
    let mut at = 60_000;
    for n in 0..20 {
        script.data(at, n * 1_000, 1_000);
        script.ack(at + 5, (n + 1) * 1_000, &[]);
        at += 50_000;
    }
    at
}

/// Both copies pass a capture near the receiver, which answers only the second: the path had lost
/// the first beyond the capture point.
#[test]
fn a_copy_that_was_not_answered_was_needed() {
    let mut script = TestConnection::new();
    let at = twenty_answered_segments(&mut script);
    script.data(at, 20_000, 1_000);
    script.data(at + 300_000, 20_000, 1_000);
    script.ack(at + 300_005, 21_000, &[]);
    let counts = script.finish().main().unwrap().counts;
    assert_eq!((counts.retransmitted, counts.spurious), (1, 0));
}

/// The last segment is retransmitted with doubled timers for 15 s: an outage, not a tail loss.
#[test]
fn a_chain_of_timeouts_is_an_outage() {
    let mut script = TestConnection::new();
    script.open(50_000);
    let mut at = 50_020;
    for n in 0..20 {
        script.data(at, n * 1_000, 1_000);
        script.ack(at + 50_000, (n + 1) * 1_000, &[]);
        at += 50_050;
    }
    script.data(at, 20_000, 1_000);
    for wait in [250, 500, 1_000, 2_000, 4_000, 8_000] {
        at += wait * 1_000;
        script.data(at, 20_000, 1_000);
    }
    script.ack(at + 50_000, 21_000, &[]);
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    assert_eq!(diagnosis.primary, Some("CC204"), "{:#?}", diagnosis.findings);
    // All waits together, less what the path needs.
    let cost = diagnosis.findings[0].cost.as_nanos();
    assert!((15_000_000_000..16_000_000_000).contains(&cost), "{cost}");
}

/// Answers without a single bare ACK: saved through a display filter.
#[test]
fn a_capture_without_bare_acks_is_judged_as_such() {
    let mut script = TestConnection::new();
    let mut at = 0;
    for n in 0..10 {
        script.request(at, n * 3_000);
        for part in 0..3 {
            script.data(at + 50_000 + part, n * 3_000 + part * 1_000, 1_000);
        }
        at += 300_000;
    }
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    let codes: Vec<_> = diagnosis.findings.iter().map(|found| found.code).collect();
    assert!(codes.contains(&"CC906"), "{codes:?}");
    assert!(codes.iter().all(|code| code.starts_with("CC9")), "{codes:?}");
}

/// Messages of a few bytes, answered 200 to 400 ms late, a minute apart: no queue, and no fault.
#[test]
fn an_interactive_session_has_no_queue_and_no_fault() {
    let mut script = TestConnection::new();
    script.open(20_000);
    let mut at = 20_020;
    for n in 0..60 {
        script.pushed(at, n * 80, 80);
        script.ack(at + 200_000 + n * 3_000, (n + 1) * 80, &[]);
        at += 900_000;
    }
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    assert_eq!(diagnosis.primary, None, "{:#?}", diagnosis.findings);
}

/// On a loopback device a segment is as long as the window of 64 kB, and 300 bytes do not fill it.
#[test]
fn a_few_bytes_fill_no_window() {
    let mut script = TestConnection::new();
    script.mss = 65_495;
    script.open(100);
    let mut at = 200;
    for n in 0..10 {
        script.pushed(at, n * 30, 30);
        script.ack_window(at + 100, (n + 1) * 30, &[], 65_536);
        at += 100_000;
    }
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    assert_eq!(
        diagnosis.course.budget.of(Limiter::Rwnd),
        Duration::ZERO,
        "{:#?}",
        diagnosis.findings
    );
}

/// Some systems send a FIN with a window of zero: they read nothing more, and no sender waits.
#[test]
fn the_zero_window_of_a_fin_closes_nothing() {
    let mut script = TestConnection::new();
    script.open(10_000);
    script.data(10_020, 0, 1_000);
    script.ack(20_020, 1_000, &[]);
    let fin = Segment {
        dir: Dir::Reverse,
        flags: Flags::ACK | Flags::FIN,
        seq: SeqNum(ISN.wrapping_add(1)),
        ack: SeqNum(ISN.wrapping_add(1_001)),
        ..Segment::default()
    };
    script.push(5_000_000, fin, (0, 0));
    script.data(15_000_000, 1_000, 500);
    let analysis = script.finish();
    assert_eq!(analysis.main().unwrap().zero_windows, 0);
    assert_eq!(Diagnosis::of(&analysis, &Neighbours::default()).primary, None);
}

/// An interactive sender at whose receiver ACKs are delayed by 200 ms: it writes in the meantime. That
/// is no tail loss probe, for it had nothing to send before.
#[test]
fn writes_while_an_ack_is_delayed_are_no_probes() {
    let mut script = TestConnection::new();
    script.open_between(10, 50_000);
    let (mut at, mut offset) = (60_000, 0);
    for n in 0..60 {
        script.pushed(at, offset, 120);
        offset += 120;
        at += 130_000;
        if n % 2 == 1 {
            script.ack(at - 60_000, offset, &[]);
        }
    }
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    assert_eq!(
        diagnosis.course.budget.of(Limiter::Timeout),
        Duration::ZERO,
        "{:#?}",
        diagnosis.course.budget
    );
    assert_eq!(diagnosis.primary, None, "{:#?}", diagnosis.findings);
}

/// The receiver acknowledges each copy, 0.25 to 8 s apart, and the sender repeats the segment all the
/// same: no ACK reaches it. That is one outage of the path back, not six spurious timeouts.
#[test]
fn copies_of_acknowledged_data_are_one_outage_of_the_path_back() {
    let mut script = TestConnection::new();
    let mut at = twenty_answered_segments(&mut script);
    script.data(at, 20_000, 1_000);
    script.ack(at + 5, 21_000, &[]);
    for wait in [250, 500, 1_000, 2_000, 4_000, 8_000] {
        at += wait * 1_000;
        script.data(at, 20_000, 1_000);
        script.ack(at + 5, 21_000, &[]);
    }
    script.data(at + 300_000, 21_000, 1_000);
    script.ack(at + 300_005, 22_000, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    let episodes: Vec<_> =
        flow.episodes.iter().map(|one| (one.timeouts, one.acked_before)).collect();
    assert_eq!(episodes, [(6, 6)]);
    let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
    assert_eq!(diagnosis.primary, Some("CC204"), "{:#?}", diagnosis.findings);
    assert!(diagnosis.findings[0].title.starts_with("no ACK came back"));
    // All waits together.
    let cost = diagnosis.findings[0].cost.as_nanos();
    assert!((15_000_000_000..16_100_000_000).contains(&cost), "{cost}");
}

/// A packet each second, whatever the peer does: the growing rounds are not a window that doubles.
#[test]
fn a_sender_with_a_clock_of_its_own_is_not_in_slow_start() {
    let mut script = TestConnection::new();
    script.open(100_000);
    let (mut at, mut offset) = (200_000, 0);
    for round in [1_u64, 2, 4, 8, 16, 32] {
        for _ in 0..round {
            script.pushed(at, offset, 1_000);
            offset += 1_000;
            at += 80_000;
        }
        script.ack(at + 20_000, offset, &[]);
        at += 40_000;
    }
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    assert!(diagnosis.findings.iter().all(|one| one.code != "CC102"), "{:#?}", diagnosis.findings);
}

/// The SYN-ACK was sent twice, 3 s apart, so that the ACK gives no round trip. A retransmission that
/// is needed, 0.3 s after the first copy, is not spurious because of it.
#[test]
fn a_repeated_syn_ack_gives_no_round_trip() {
    let mut script = TestConnection::new();
    let syn = script.syn(0);
    let flags = Flags::SYN | Flags::ACK;
    script.push(20, Segment { flags, dir: Dir::Reverse, ..syn }, (0, 0));
    script.push(3_000_020, Segment { flags, dir: Dir::Reverse, ..syn }, (0, 0));
    script.push(7_000_000, Segment { flags: Flags::ACK, ..Segment::default() }, (0, 0));
    let answer = |seq: u32, ack: u32, payload: u32| Segment {
        dir: Dir::Reverse,
        flags: Flags::ACK | Flags::PSH,
        seq: SeqNum(ISN.wrapping_add(1).wrapping_add(seq)),
        ack: SeqNum(ISN.wrapping_add(1).wrapping_add(ack)),
        payload,
        window: 4_000,
        ..Segment::default()
    };
    let ask = |ack: u32| Segment {
        flags: Flags::ACK,
        seq: SeqNum(ISN.wrapping_add(1)),
        ack: SeqNum(ISN.wrapping_add(1).wrapping_add(ack)),
        window: 4_000,
        ..Segment::default()
    };
    for (at, segment) in [
        (7_000_100, answer(0, 0, 1_000)),
        (7_100_100, ask(1_000)),
        (7_100_200, answer(1_000, 0, 500)),
        (7_400_200, answer(1_000, 0, 500)),
        (7_500_200, ask(1_500)),
    ] {
        script.push(at, segment, (0, 0));
    }
    let analysis = script.finish();
    assert!(analysis.opened);
    let counts = analysis.main().unwrap().counts;
    assert_eq!((counts.retransmitted, counts.spurious), (1, 0));
}

/// TCP Fast Open: a SYN with a request of 200 bytes, answered by 300 bytes after the SYN-ACK; the SYN
/// is repeated once. By RFC 9293 section 3.4 its data are the first of the stream.
#[test]
fn the_data_of_a_syn_are_bytes_of_the_stream() {
    let mut script = TestConnection::new();
    let options = Options::Syn(SynOptions {
        mss: 1_000,
        window_scale: Some(7),
        sack_permitted: true,
        ..SynOptions::default()
    });
    let syn = Segment {
        flags: Flags::SYN,
        seq: SeqNum(ISN),
        window: 65_535,
        payload: 200,
        options,
        ..Segment::default()
    };
    script.push(0, syn, (0, 0));
    script.push(1_000_000, syn, (0, 0));
    let (flags, dir) = (Flags::SYN | Flags::ACK, Dir::Reverse);
    let ack = SeqNum(ISN.wrapping_add(201));
    script.push(1_010_000, Segment { flags, dir, ack, payload: 0, ..syn }, (0, 0));
    let answer = Segment {
        flags: Flags::ACK,
        dir,
        seq: SeqNum(ISN.wrapping_add(1)),
        ack,
        payload: 300,
        window: 500,
        ..Segment::default()
    };
    script.push(1_010_100, answer, (0, 0));
    let seq = ack;
    let ack = SeqNum(ISN.wrapping_add(301));
    script.push(1_010_200, Segment { dir: Dir::Forward, seq, ack, payload: 0, ..answer }, (0, 0));
    let analysis = script.connection.finish();
    let flow = |dir: Dir| analysis.flows[dir as usize].as_ref().unwrap();
    let request = flow(Dir::Forward);
    assert_eq!((request.bytes, request.captured, request.unseen), (200, 200, 0));
    assert_eq!((request.counts.new, request.counts.retransmitted), (1, 0));
    assert_eq!(request.window.unwrap().2, 500 << 7);
    let answer = flow(Dir::Reverse);
    assert_eq!((answer.bytes, answer.captured), (300, 300));
    assert_eq!((analysis.syns, analysis.opened), (2, true));
}

/// Packets of two NIC queues: an ACK is captured microseconds before the data that it covers. They
/// are neither missing in the capture nor retransmitted.
#[test]
fn data_captured_after_their_ack_are_no_retransmission() {
    let mut script = TestConnection::new();
    script.open(10_000);
    script.data(10_100, 0, 1_000);
    script.ack(20_100, 3_000, &[]);
    script.data(20_105, 1_000, 1_000);
    script.data(20_106, 2_000, 1_000);
    script.data(30_000, 3_000, 1_000);
    script.ack(40_000, 4_000, &[]);
    let flow = script.finish().main().unwrap().clone();
    assert_eq!((flow.bytes, flow.captured, flow.unseen), (4_000, 4_000, 0));
    assert_eq!((flow.counts.new, flow.counts.retransmitted), (4, 0));
}

/// The server answers the handshake and then nothing: the client repeats its request at 0.3, 0.9, 2.1
/// and 4.5 s. The other direction is in the capture, so the silence is the path's or the server's.
#[test]
fn a_request_repeated_without_an_answer_is_an_outage() {
    let mut script = TestConnection::new();
    script.open(5_000);
    for us in [5_100, 305_000, 905_000, 2_105_000, 4_505_000] {
        script.pushed(us, 0, 400);
    }
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    assert_eq!(diagnosis.primary, Some("CC204"));
    // From the request to the last repetition.
    let cost = diagnosis.primary_cost().as_nanos();
    assert!((4_000_000_000..=4_505_000_000).contains(&cost), "{cost}");
}

/// An answer within one flight, whose ACK the client delays by 200 ms, since no more comes, and its
/// next request: the server waited for the client, not in slow start.
#[test]
fn the_delayed_ack_of_a_complete_answer_is_no_slow_start() {
    let mut script = TestConnection::new();
    script.open(50_000);
    let (mut us, mut place) = (60_000, 0);
    for _ in 0..6 {
        for n in 0..6 {
            match n {
                5 => script.pushed(us + n, place, 700),
                _ => script.data(us + n, place, 1_000),
            }
            place += if n == 5 { 700 } else { 1_000 };
        }
        script.ack(us + 250_000, place, &[]);
        script.request(us + 260_000, place);
        us += 260_100;
    }
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    assert_eq!(diagnosis.primary, None, "{:?}", diagnosis.findings);
}

/// A sender whose timestamps count 10 ms (RFC 7323 section 5.4 allows it) rests for 20 s. Captured at
/// the receiver, its clock shows that it rested, not that the path held its packets.
#[test]
fn a_slow_timestamp_clock_shows_a_rest() {
    let mut script = TestConnection::new();
    script.stamps = true;
    script.open_between(10, 10_000);
    for n in 0..8_u64 {
        let us = 100_000 * n + if n == 7 { 20_000_000 } else { 100_000 };
        let segment = Segment {
            flags: Flags::ACK | Flags::PSH,
            seq: SeqNum(ISN.wrapping_add(1 + 500 * n as u32)),
            payload: 500,
            window: 1_000,
            ..Segment::default()
        };
        script.push(us, segment, (1_000 + (us / 10_000) as u32, 0));
        script.ack(us + 50, 500 * (n + 1), &[]);
    }
    let flow = script.finish();
    let budget = crate::Timeline::of(flow.main().unwrap()).budget;
    assert_eq!(budget.of(Limiter::Timeout), Duration::ZERO, "{budget:?}");
}

/// Copies of data that had been acknowledged, and then a rest of 30 s: the rest is no timeout.
#[test]
fn a_rest_after_spurious_copies_is_no_timeout() {
    let mut script = TestConnection::new();
    script.open(50_000);
    script.data(50_100, 0, 1_000);
    script.pushed(50_200, 1_000, 500);
    script.ack(100_300, 1_500, &[]);
    script.data(600_000, 0, 1_000);
    script.ack(650_100, 1_500, &[]);
    script.pushed(30_650_000, 1_500, 500);
    script.ack(30_700_000, 2_000, &[]);
    let budget = crate::Timeline::of(script.finish().main().unwrap()).budget;
    assert!(budget.of(Limiter::Timeout).as_nanos() <= 600_000_000, "{budget:?}");
    assert!(budget.of(Limiter::Idle).as_nanos() >= 29_000_000_000, "{budget:?}");
}

/// No retransmission timer runs for five minutes (Linux TCP_RTO_MAX: 120 s): the clock was set, or the
/// capture paused.
#[test]
fn no_timer_runs_for_minutes() {
    let mut script = TestConnection::new();
    script.open(50_000);
    script.pushed(50_100, 0, 1_000);
    script.pushed(300_050_100, 0, 1_000);
    script.ack(300_100_000, 1_000, &[]);
    let budget = crate::Timeline::of(script.finish().main().unwrap()).budget;
    assert_eq!(budget.of(Limiter::Timeout), Duration::ZERO, "{budget:?}");
    assert!(budget.of(Limiter::Idle).as_nanos() >= 299_000_000_000, "{budget:?}");

    // New data after a clock was set, with data outstanding.
    let mut script = TestConnection::new();
    script.open(50_000);
    script.data(50_100, 0, 1_000);
    script.data(300_000_000_000, 1_000, 1_000);
    script.ack(300_000_050_000, 2_000, &[]);
    let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
    assert!(
        diagnosis.course.budget.active().as_nanos() < 1_000_000_000,
        "{:?}",
        diagnosis.course.budget
    );
}

/// A session with a file server: 40 exchanges of 20 kB, 100 ms apart, and then half a minute of rest. It
/// waits for its user; without the rest the application limits it.
#[test]
fn a_session_that_mostly_rests_is_not_limited_by_its_application() {
    for (rest, severity) in [(0, Severity::Error), (30_000_000, Severity::Note)] {
        let mut script = TestConnection::new();
        script.open(20_000);
        let (mut us, mut place) = (21_000, 0);
        for n in 0..80 {
            us += if n == 40 { rest } else { 100_000 };
            for _ in 0..19 {
                script.data(us, place, 1_000);
                place += 1_000;
                us += 5;
            }
            script.pushed(us, place, 900);
            place += 900;
            us += 20_000;
            script.ack(us, place, &[]);
        }
        let diagnosis = Diagnosis::of(&script.finish(), &Neighbours::default());
        let found = &diagnosis.findings;
        let codes: Vec<_> = found.iter().map(|found| (found.code, found.severity)).collect();
        assert!(
            codes.contains(&("CC501", severity)),
            "{rest}: {codes:?} {:?}",
            diagnosis.course.budget
        );
    }
}
