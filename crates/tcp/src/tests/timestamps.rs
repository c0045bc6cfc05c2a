//! Timestamps: RFC 7323 sections 3 to 5.

use packet::{Flags, Segment, Timestamps};
use units::{Duration, SeqNum};

use super::pair::TcpPair;
use crate::TcpSide;

fn established(system: &str) -> (TcpPair, Segment) {
    let mut pair = TcpPair::of(system, system);
    pair.run(Duration::from_secs(1));
    let data = Segment { payload: 500, ..pair.forge(Flags::ACK, 1, 1) };
    (pair, data)
}

fn stamped(segment: &Segment, val: u32) -> Segment {
    let ecr = segment.timestamps.unwrap().ecr;
    Segment { timestamps: Some(Timestamps { val, ecr }), ..*segment }
}

#[test]
fn a_segment_older_than_the_last_is_dropped_and_answered() {
    for system in crate::profile::NAMES {
        let (mut pair, data) = established(system);
        let recent = data.timestamps.unwrap().val;
        let answer = pair.hear(&stamped(&data, recent - 100));
        assert_eq!(pair.with(TcpSide::Client, |cx, end| end.read(cx)), 0, "{system}");
        assert_eq!(answer.len(), 1, "{system}");
        pair.hear(&stamped(&data, recent));
        assert_eq!(pair.with(TcpSide::Client, |cx, end| end.read(cx)), 500, "{system}");
    }
}

#[test]
fn linux_reports_old_data_with_an_old_timestamp_as_duplicate() {
    // tcp_validate_incoming calls tcp_send_dupack if PAWS rejects a segment; a FIN counts as a byte.
    for (flags, end) in [(Flags::ACK, 501), (Flags::ACK | Flags::FIN, 502)] {
        let (mut pair, data) = established("linux-6.18");
        let data = Segment { flags, ..data };
        pair.hear(&data);
        let recent = data.timestamps.unwrap().val;
        let answer = pair.hear(&stamped(&data, recent - 100));
        let blocks: Vec<_> = answer[0].sack_blocks().to_vec();
        let at = |n: u32| SeqNum(2_000_000_000 + n);
        assert_eq!(blocks.len(), 1);
        assert_eq!((blocks[0].left, blocks[0].right), (at(1), at(end)));
    }
}

#[test]
fn linux_takes_an_overtaken_duplicate_ack() {
    // tcp_disordered_ack: it is not answered, unless it is older than the timeout.
    for (age, answers) in [(2, 0), (10_000, 1)] {
        let (mut pair, data) = established("linux-6.18");
        pair.hear(&data);
        let recent = data.timestamps.unwrap().val;
        let ack = Segment { payload: 0, seq: SeqNum(data.seq.0 + 500), ..data };
        pair.hear(&ack);
        let answer = pair.hear(&stamped(&ack, recent.wrapping_sub(age)));
        assert_eq!(answer.len(), answers, "{age}");
    }
}

#[test]
fn linux_takes_a_segment_that_is_a_tick_older() {
    // tcp_paws_discard has TCP_PAWS_WINDOW.
    for (age, taken) in [(1, 1_000), (2, 500)] {
        let (mut pair, data) = established("linux-6.18");
        pair.hear(&data);
        let recent = data.timestamps.unwrap().val;
        let next = Segment { seq: SeqNum(data.seq.0 + 500), ..data };
        pair.hear(&stamped(&next, recent.wrapping_sub(age)));
        assert_eq!(pair.with(TcpSide::Client, |cx, end| end.read(cx)), taken, "{age}");
    }
}

#[test]
fn after_24_days_an_old_timestamp_is_accepted() {
    let (mut pair, data) = established("freebsd-13.2");
    let recent = data.timestamps.unwrap().val;
    pair.now += Duration::from_secs(25 * 24 * 3_600);
    pair.hear(&stamped(&data, recent - 100));
    assert_eq!(pair.with(TcpSide::Client, |cx, end| end.read(cx)), 500);
}

#[test]
fn a_segment_without_the_negotiated_timestamps_is_dropped_by_strict_systems() {
    for (system, taken) in [("freebsd-13.2", 0), ("rfc", 0), ("linux-6.18", 500)] {
        let (mut pair, data) = established(system);
        pair.hear(&Segment { timestamps: None, ..data });
        assert_eq!(pair.with(TcpSide::Client, |cx, end| end.read(cx)), taken, "{system}");
    }
}

#[test]
fn the_echo_is_that_of_the_segment_that_advanced_the_ack() {
    // RFC 7323 section 4.3 (B): timestamps of segments after a gap are not echoed until the gap is
    // filled.
    let (mut pair, data) = established("freebsd-13.2");
    let recent = data.timestamps.unwrap().val;
    let mut behind = stamped(&data, recent + 10);
    behind.seq.0 += 500;
    let dup = pair.hear(&behind)[0];
    assert_eq!(dup.timestamps.unwrap().ecr, recent);
    let filler = pair.hear(&stamped(&data, recent + 20))[0];
    assert_eq!(filler.timestamps.unwrap().ecr, recent + 20);
}

#[test]
fn the_echo_of_a_delayed_acknowledgment_is_that_of_the_first_segment() {
    // RFC 7323 section 4.3 (A): the segment at Last.ACK.sent counts.
    let (mut pair, data) = established("freebsd-13.2");
    let recent = data.timestamps.unwrap().val;
    let first = pair.hear(&stamped(&data, recent + 10));
    assert!(first.is_empty(), "{first:?}");
    let mut second = stamped(&data, recent + 20);
    second.seq.0 += 500;
    let answer = pair.hear(&second)[0];
    assert_eq!(answer.timestamps.unwrap().ecr, recent + 10);
}
