use proptest::prelude::*;

use super::*;
use crate::dsack::SackRange;

const MSS: u64 = 1_000;

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn block(from: u64, to: u64) -> SackRange {
    (Offset(from * MSS), Offset(to * MSS))
}

/// Packets `0..n`, one each millisecond.
fn sent(n: u64) -> SendMap {
    let mut map = SendMap::new();
    for i in 0..n {
        map.push(Offset(i * MSS), Offset((i + 1) * MSS), ms(i));
    }
    map
}

fn number(segment: Option<&SentSegment>) -> Option<u64> {
    segment.map(|segment| segment.start().0 / MSS)
}

#[test]
fn a_record_is_small() {
    assert_eq!(size_of::<SentSegment>(), 24);
}

#[test]
fn without_loss_packets_come_and_go() {
    let mut map = sent(5);
    assert_eq!((map.sums().packets_in_flight(), map.sums().pipe()), (5, 5 * MSS));
    let mut seen = Vec::new();
    map.acknowledge(Offset(2_500), |segment| seen.push(segment.start().0));
    assert_eq!(seen, [0, 1_000]);
    // The third is acknowledged partly and still counts as a packet.
    assert_eq!((map.sums().packets_in_flight(), map.sums().pipe()), (3, 2_500));
    map.acknowledge(Offset(5_000), |_| {});
    assert!(map.is_empty());
    assert_eq!(map.sums(), SendMapCounters::default());
}

#[test]
fn each_packet_is_sacked_once() {
    let mut map = sent(20);
    let mut seen = Vec::new();
    let mut sack =
        |blocks: &[SackRange]| map.apply_sack(blocks, |p| seen.push(p.start().0 / MSS)).packets;
    assert_eq!(sack(&[block(5, 7)]), 2);
    assert_eq!(sack(&[block(5, 7)]), 0);
    assert_eq!(sack(&[block(10, 12), block(5, 7)]), 2);
    // Over two runs, and over the gaps before, between and after them.
    assert_eq!(sack(&[block(4, 14)]), 6);
    assert_eq!(sack(&[block(4, 14), block(3, 15)]), 2);
    assert_eq!(seen, [5, 6, 10, 11, 4, 7, 8, 9, 12, 13, 3, 14]);
    // A partly covered packet is not SACKed; blocks below or beyond are ignored.
    assert_eq!(map.apply_sack(&[(Offset(16_001), Offset(18_999))], |_| {}).packets, 1);
    assert_eq!(map.apply_sack(&[block(19, 21), block(9, 9), block(9, 8)], |_| {}).packets, 0);
    assert_eq!(map.sacked_runs(), 2);
    assert_eq!(map.highest_sacked(), Some(Offset(18_000)));
}

#[test]
fn lost_packets_are_retransmitted_lowest_first_and_counted_as_in_linux() {
    // in_flight = packets_out - sacked - lost + retrans
    let mut map = sent(10);
    map.apply_sack(&[block(3, 5)], |_| {});
    for packet in [2, 0] {
        assert!(map.lose(Offset(packet * MSS)));
        assert!(!map.lose(Offset(packet * MSS)));
    }
    assert!(!map.lose(Offset(3 * MSS)));
    assert_eq!(map.sums().packets_in_flight(), 6);
    assert_eq!(number(map.next_lost()), Some(0));
    map.retransmit(Offset(0), Offset(MSS), ms(20), false);
    assert_eq!(map.sums().packets_in_flight(), 7);
    assert_eq!(number(map.next_lost()), Some(2));
    map.retransmit(Offset(2 * MSS), Offset(3 * MSS), ms(21), false);
    assert_eq!(number(map.next_lost()), None);
    // One of them is lost again.
    assert!(map.lose(Offset(0)));
    assert_eq!((map.sums().lost.packets, map.sums().retransmission.packets), (2, 1));
    assert_eq!(number(map.next_lost()), Some(0));
    // The other arrives.
    map.apply_sack(&[block(2, 3)], |segment| {
        assert!(segment.lost() && segment.retrans_in_flight());
    });
    assert_eq!((map.sums().lost.packets, map.sums().retransmission.packets), (1, 0));
    assert_eq!(map.sums().packets_in_flight(), 6);
}

#[test]
fn the_oldest_is_found_by_time() {
    let mut map = sent(4);
    assert_eq!(number(map.oldest()), Some(0));
    map.retransmit(Offset(0), Offset(MSS), ms(2), false);
    // The third was sent in the same millisecond and is higher.
    let order: Vec<_> = (0..4).map(|_| map.mark_oldest_lost().unwrap().start().0 / MSS).collect();
    assert_eq!(order, [1, 0, 2, 3]);
    assert_eq!(map.oldest(), None);
}

#[test]
fn a_retransmission_is_passed_with_the_last_of_the_new_data_sent_before_it_at_its_instant() {
    // tcp_rack_detect_loss walks `tsorted_sent_queue` to the first packet that was not sent before; world 11 of seed 63001
    // against a kernel 6.12.
    let mut map = sent(4);
    for i in 4..6 {
        map.push(Offset(i * MSS), Offset((i + 1) * MSS), ms(10));
    }
    map.retransmit(Offset(0), Offset(MSS), ms(10), false);
    let passed = |map: &SendMap| map.get(Offset(0)).unwrap().passed();
    map.pass(ms(10), Offset(5 * MSS));
    assert!(!passed(&map));
    map.pass(ms(10), Offset(6 * MSS));
    assert!(passed(&map));
}

#[test]
fn packets_sent_before_a_delivered_one_are_passed() {
    let mut map = sent(6);
    map.retransmit(Offset(0), Offset(MSS), ms(10), false);
    map.apply_sack(&[block(3, 4)], |_| {});
    map.pass(ms(3), Offset(4 * MSS));
    let passed: Vec<_> = map.iter().filter(|p| p.passed()).map(|p| p.start().0 / MSS).collect();
    assert_eq!(passed, [1, 2]);
    assert_eq!(number(map.newest_passed()), Some(2));
    // Its retransmission clears the mark and remembers it (rack_update_rsm).
    assert_eq!(map.retransmit(Offset(2 * MSS), Offset(3 * MSS), ms(11), false).passed_bytes, MSS);
    let segment = map.get(Offset(2 * MSS)).unwrap();
    assert!(!segment.passed() && segment.was_passed());
    assert_eq!(number(map.newest_passed()), Some(1));
    map.pass(ms(11), Offset(3 * MSS));
    assert_eq!(number(map.newest_passed()), Some(0));
}

#[test]
fn reneging_is_detected() {
    let mut map = sent(4);
    map.apply_sack(&[block(1, 3)], |_| {});
    assert!(!map.reneged());
    map.acknowledge(Offset(MSS), |_| {});
    assert!(map.reneged());
    map.clear_sacked();
    assert_eq!(map.sums().packets_in_flight(), 3);
    assert_eq!(number(map.oldest()), Some(1));
}

#[test]
fn a_timeout_marks_all_lost_and_undo_clears_the_marks() {
    let mut map = sent(4);
    map.apply_sack(&[block(2, 3)], |_| {});
    map.mark_all_lost();
    assert_eq!((map.sums().packets_in_flight(), map.sums().lost.packets), (0, 3));
    map.retransmit(Offset(0), Offset(MSS), ms(9), false);
    map.unmark_lost(true);
    assert_eq!((map.sums().packets_in_flight(), map.sums().lost.packets), (4, 0));
    assert_eq!(number(map.oldest()), Some(1));
}

#[test]
fn a_packet_passed_once_more_clears_was_passed() {
    let mut map = sent(3);
    map.apply_sack(&[block(1, 2)], |_| {});
    map.pass(ms(1), Offset(2 * MSS));
    assert_eq!(map.retransmit(Offset(0), Offset(MSS), ms(5), false).passed_bytes, MSS);
    assert!(map.first().unwrap().was_passed());
    // rack_log_sack_passed clears RACK_WAS_SACKPASS.
    map.pass(ms(6), Offset(9 * MSS));
    assert!(!map.first().unwrap().was_passed() && map.first().unwrap().passed());
}

#[test]
fn rack_counts_retransmissions_twice_until_acknowledged() {
    let mut map = sent(4);
    map.apply_sack(&[block(2, 4)], |_| {});
    map.pass(ms(3), Offset(4 * MSS));
    map.expire_passed();
    assert_eq!((map.sums().rack_pipe(), map.sums().expired.packets), (0, 2));
    map.retransmit(Offset(0), Offset(MSS), ms(9), false);
    assert_eq!(map.sums().rack_pipe(), 2 * MSS);
    map.apply_sack(&[block(0, 1)], |_| {});
    assert_eq!(map.sums().rack_pipe(), MSS);
    map.acknowledge(Offset(MSS), |_| {});
    assert_eq!(map.sums().rack_pipe(), 0);
}

#[test]
fn a_smaller_segment_splits_packets() {
    let mut map = sent(3);
    map.lose(Offset(0));
    let retransmission = map.retransmit(Offset(0), Offset(600), ms(5), false);
    assert_eq!(retransmission.count, SegmentCount { packets: 1, bytes: 600 });
    assert_eq!(map.sums().all, SegmentCount { packets: 4, bytes: 3 * MSS });
    assert_eq!(map.next_lost().unwrap().start(), Offset(600));
    assert_eq!(map.next_lost().unwrap().end(), Offset(1_000));
}

/// A segment of the naive map: a list without counters, cursors or queues.
#[derive(Debug, Clone)]
struct Plain {
    start: u64,
    end: u64,
    sent_at: Instant,
    transmissions: u8,
    sacked: bool,
    lost: bool,
    retransmission: bool,
    passed: bool,
    expired: bool,
    /// Retransmissions other than probes.
    retransmissions: u64,
}

impl Plain {
    fn flight_bytes(&self) -> bool {
        !self.sacked && (!self.lost || self.retransmission)
    }

    fn time(&self) -> (Instant, u64) {
        (self.sent_at, self.end)
    }
}

#[derive(Debug, Clone)]
enum Op {
    Push(u64),
    Ack(u64),
    Sack(Vec<(u64, u64)>),
    LoseOldest,
    Lose(u64),
    RetransmitLost,
    RetransmitLast,
    RetransmitPart(u64, u64),
    Pass(u64),
    Expire,
    LoseAll,
    Unmark,
    Forget,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(
        prop_oneof![
            6 => (1..12_u64).prop_map(Op::Push),
            3 => (0..4_000_u64).prop_map(Op::Ack),
            6 => prop::collection::vec((0..25_000_u64, 1..9_000_u64), 1..4).prop_map(Op::Sack),
            5 => Just(Op::LoseOldest),
            1 => (0..25_000_u64).prop_map(Op::Lose),
            6 => Just(Op::RetransmitLost),
            1 => Just(Op::RetransmitLast),
            1 => (0..25_000_u64, 1..3_000_u64).prop_map(|(at, len)| Op::RetransmitPart(at, len)),
            4 => (0..30_u64).prop_map(Op::Pass),
            2 => Just(Op::Expire),
            1 => Just(Op::LoseAll),
            1 => Just(Op::Unmark),
            1 => Just(Op::Forget),
        ],
        1..120,
    )
}

fn naive_retransmit(plain: &mut Vec<Plain>, (start, end): (u64, u64), now: Instant, probe: bool) {
    for place in [start, end] {
        if let Some(at) = plain.iter().position(|p| p.start < place && place < p.end) {
            let mut upper = plain[at].clone();
            plain[at].end = place;
            upper.start = place;
            plain.insert(at + 1, upper);
        }
    }
    for segment in plain.iter_mut().filter(|p| p.start >= start && p.end <= end) {
        segment.transmissions = segment.transmissions.saturating_add(1);
        segment.sent_at = now;
        segment.passed = false;
        segment.expired = false;
        segment.retransmissions += u64::from(!probe);
        if !segment.sacked {
            segment.retransmission = true;
        }
    }
}

proptest! {
    #[test]
    fn sums_and_orders_agree_with_a_plain_list(ops in ops()) {
        let mut map = SendMap::new();
        let mut plain: Vec<Plain> = Vec::new();
        let (mut una, mut max) = (0, 0);
        let mut passed = (Instant::ZERO, 0);
        for (step, op) in ops.into_iter().enumerate() {
            let now = ms(step as u64);
            match op {
                Op::Push(n) => {
                    for _ in 0..n {
                        map.push(Offset(max), Offset(max + MSS), now);
                        plain.push(Plain {
                            start: max,
                            end: max + MSS,
                            sent_at: now,
                            transmissions: 1,
                            sacked: false,
                            lost: false,
                            retransmission: false,
                            passed: false,
                            expired: false,
                            retransmissions: 0,
                        });
                        max += MSS;
                    }
                }
                Op::Ack(ahead) => {
                    una = (una + ahead).min(max);
                    let mut seen = 0;
                    map.acknowledge(Offset(una), |_| seen += 1);
                    let before = plain.len();
                    plain.retain(|segment| segment.end > una);
                    prop_assert_eq!(seen, before - plain.len());
                    if let Some(first) = plain.first_mut() {
                        first.start = first.start.max(una);
                    }
                }
                Op::Sack(blocks) => {
                    let blocks: Vec<_> = blocks
                        .iter()
                        .map(|&(at, len)| (Offset(una + at), Offset(una + at + len)))
                        .collect();
                    let mut seen = Vec::new();
                    let got = map.apply_sack(&blocks, |segment| seen.push(segment.start().0));
                    let mut expected = Vec::new();
                    for &(start, end) in blocks.iter().filter(|block| block.1 <= Offset(max)) {
                        for segment in &mut plain {
                            if segment.start >= start.0 && segment.end <= end.0 && !segment.sacked {
                                segment.sacked = true;
                                segment.expired = false;
                                (segment.lost, segment.retransmission) = (false, false);
                                expected.push(segment.start);
                            }
                        }
                    }
                    prop_assert_eq!(got.packets as usize, seen.len());
                    prop_assert_eq!(seen, expected);
                }
                Op::LoseOldest => {
                    let oldest =
                        plain.iter_mut().filter(|p| p.flight_bytes()).min_by_key(|p| p.time());
                    let got = map.mark_oldest_lost();
                    prop_assert_eq!(got.map(|p| p.start().0), oldest.as_ref().map(|p| p.start));
                    if let Some(segment) = oldest {
                        (segment.lost, segment.retransmission, segment.expired) = (true, false, false);
                    }
                }
                Op::Lose(ahead) => {
                    let place = una + ahead;
                    let segment = plain.iter_mut().find(|p| p.start <= place && place < p.end);
                    let segment = segment.filter(|p| p.flight_bytes());
                    prop_assert_eq!(map.lose(Offset(place)), segment.is_some());
                    if let Some(segment) = segment {
                        (segment.lost, segment.retransmission, segment.expired) = (true, false, false);
                    }
                }
                Op::RetransmitLost => {
                    if let Some(&segment) = map.next_lost() {
                        map.retransmit(segment.start(), segment.end(), now, false);
                        naive_retransmit(&mut plain, (segment.start().0, segment.end().0), now, false);
                    }
                }
                Op::RetransmitLast => {
                    if let Some(&segment) = map.last() {
                        map.retransmit(segment.start(), segment.end(), now, true);
                        naive_retransmit(&mut plain, (segment.start().0, segment.end().0), now, true);
                    }
                }
                Op::RetransmitPart(ahead, len) => {
                    let start = una + ahead;
                    if start < max {
                        let end = (start + len).min(max);
                        map.retransmit(Offset(start), Offset(end), now, false);
                        naive_retransmit(&mut plain, (start, end), now, false);
                    }
                }
                Op::Pass(nth) => {
                    if !plain.is_empty() {
                        // All sent together: the end of a split segment would move within the
                        // order.
                        let time = (plain[nth as usize % plain.len()].sent_at, u64::MAX);
                        map.pass(time.0, Offset(time.1));
                        if time > passed {
                            passed = time;
                            for segment in &mut plain {
                                segment.passed |= segment.time() < time;
                            }
                        }
                    }
                }
                Op::Expire => {
                    map.expire_passed();
                    for segment in plain.iter_mut().filter(|p| p.flight_bytes()) {
                        segment.expired |= segment.passed;
                    }
                }
                Op::LoseAll => {
                    map.mark_all_lost();
                    for segment in plain.iter_mut().filter(|p| p.flight_bytes()) {
                        (segment.lost, segment.retransmission, segment.expired) = (true, false, false);
                    }
                }
                Op::Unmark => {
                    map.unmark_lost(true);
                    plain.iter_mut().for_each(|segment| segment.lost = false);
                }
                Op::Forget => {
                    map.clear_sacked();
                    plain.iter_mut().for_each(|segment| segment.sacked = false);
                }
            }
            check(&mut map, &plain)?;
        }
    }
}

fn check(map: &mut SendMap, plain: &[Plain]) -> Result<(), TestCaseError> {
    let count = |of: &dyn Fn(&Plain) -> bool| {
        let bytes = plain.iter().filter(|p| of(p)).map(|p| p.end - p.start);
        bytes.fold(SegmentCount::default(), |sum, bytes| SegmentCount {
            packets: sum.packets + 1,
            bytes: sum.bytes + bytes,
        })
    };
    let expected = SendMapCounters {
        all: count(&|_| true),
        sacked: count(&|p| p.sacked),
        lost: count(&|p| p.lost),
        retransmission: count(&|p| p.retransmission),
        expired: count(&|p| p.expired),
        holes_rxt_bytes: plain.iter().map(|p| p.retransmissions * (p.end - p.start)).sum(),
    };
    prop_assert_eq!(map.sums(), expected);
    for (segment, plain) in map.iter().zip(plain) {
        prop_assert_eq!((segment.start().0, segment.end().0), (plain.start, plain.end));
        if plain.flight_bytes() {
            prop_assert_eq!(segment.passed(), plain.passed, "{:?}", segment);
        }
    }
    prop_assert_eq!(map.iter().count(), plain.len());
    let oldest = plain.iter().filter(|p| p.flight_bytes()).min_by_key(|p| p.time());
    prop_assert_eq!(map.oldest().map(|p| p.start().0), oldest.map(|p| p.start));
    let newest = plain.iter().filter(|p| p.flight_bytes() && p.passed).max_by_key(|p| p.time());
    prop_assert_eq!(map.newest_passed().map(|p| p.start().0), newest.map(|p| p.start));
    let lost = plain.iter().find(|p| p.lost && !p.retransmission);
    prop_assert_eq!(map.next_lost().map(|p| p.start().0), lost.map(|p| p.start));
    prop_assert_eq!(map.reneged(), plain.first().is_some_and(|p| p.sacked));
    let runs = plain.iter().zip(plain.iter().skip(1)).filter(|(a, b)| a.sacked != b.sacked).count();
    prop_assert!(map.sacked_runs() <= runs / 2 + 1);
    Ok(())
}

#[test]
fn a_repeated_block_sacks_newly_covered_segments() {
    let (at, place) = (Instant::from_nanos, Offset);
    let block = [(place(1_500), place(2_000))];
    let two = || {
        let mut map = SendMap::new();
        map.push(place(0), place(1_000), at(1));
        map.push(place(1_000), place(2_000), at(2));
        // It covers the second segment partly, and so SACKs nothing.
        assert_eq!(map.apply_sack(&block, |_| {}).packets, 0);
        map
    };
    let mut shortened = two();
    shortened.acknowledge(place(1_500), |_| {});
    assert_eq!(shortened.apply_sack(&block, |_| {}).packets, 1);
    let mut cut = two();
    cut.retransmit(place(1_000), place(1_500), at(3), false);
    assert_eq!(cut.apply_sack(&block, |_| {}).packets, 1);
    assert_eq!(cut.apply_sack(&block, |_| {}).packets, 0);
    cut.clear_sacked();
    assert_eq!(cut.apply_sack(&block, |_| {}).packets, 1);
}

#[test]
fn without_sack_fewer_packets_can_have_arrived_after_small_ones_are_merged() {
    // tcp_adjust_pcount: `sacked_out` falls with `packets_out`.
    let mut map = sent(4);
    map.set_reno_sacked(3, MSS);
    assert_eq!((map.sums().packets_in_flight(), map.sums().pipe()), (1, MSS));
    map.collapse(Offset(0), Offset(2 * MSS));
    let sums = map.sums();
    assert_eq!((sums.all.packets, sums.sacked.packets, sums.packets_in_flight()), (3, 2, 1));
    map.set_reno_sacked(0, MSS);
    assert_eq!(map.sums().packets_in_flight(), 3);
}

#[test]
fn a_packet_is_cut_anew_for_a_smaller_segment_size() {
    let mut map = sent(3);
    let edge = |n: u64| Offset(n);
    let ends = |map: &SendMap| map.iter().map(|segment| segment.end().0).collect::<Vec<_>>();
    let (start, end) = (map.first().unwrap().start(), map.last().unwrap().end());
    map.lose_from(start, end);
    map.resegment(start, end, 600);
    let cut: Vec<_> = (1..5).map(|n| start.0 + n * 600).chain([end.0]).collect();
    assert_eq!(ends(&map), cut);
    let sums = map.sums();
    assert_eq!((sums.all.packets, sums.lost.packets, sums.all.bytes), (5, 5, 3 * MSS));
    // Retransmitted, lost once more, and cut anew.
    map.retransmit(start, end, ms(50), false);
    map.lose_from(start, end);
    map.resegment(start, end, 500);
    assert_eq!(ends(&map).len(), 6);
    assert_eq!(map.next_lost().map(|segment| segment.end()), Some(edge(start.0 + 500)));
    map.retransmit(start, end, ms(90), false);
    assert_eq!((map.sums().packets_in_flight(), map.sums().lost.packets), (6, 6));
    map.acknowledge(end, |_| {});
    assert!(map.is_empty() && map.sums().lost.packets == 0);
}
