use proptest::prelude::*;

use super::*;
use crate::dsack::Block;

const MSS: u64 = 1_000;

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn block(from: u64, to: u64) -> Block {
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

fn number(piece: Option<&Piece>) -> Option<u64> {
    piece.map(|piece| piece.start().0 / MSS)
}

#[test]
fn a_record_is_small() {
    assert_eq!(size_of::<Piece>(), 24);
}

#[test]
fn without_loss_packets_come_and_go() {
    let mut map = sent(5);
    assert_eq!((map.sums().packets_in_flight(), map.sums().pipe()), (5, 5 * MSS));
    let mut seen = Vec::new();
    map.acknowledge(Offset(2_500), |piece| seen.push(piece.start().0));
    assert_eq!(seen, [0, 1_000]);
    // The third is acknowledged in part and counts as a packet still.
    assert_eq!((map.sums().packets_in_flight(), map.sums().pipe()), (3, 2_500));
    map.acknowledge(Offset(5_000), |_| {});
    assert!(map.is_empty());
    assert_eq!(map.sums(), Sums::default());
}

#[test]
fn each_packet_is_reported_once_whatever_is_repeated() {
    let mut map = sent(20);
    let mut seen = Vec::new();
    let mut sack =
        |blocks: &[Block]| map.apply_sack(blocks, |p| seen.push(p.start().0 / MSS)).packets;
    assert_eq!(sack(&[block(5, 7)]), 2);
    assert_eq!(sack(&[block(5, 7)]), 0);
    assert_eq!(sack(&[block(10, 12), block(5, 7)]), 2);
    // Over two runs, and over the gaps before, between and behind them.
    assert_eq!(sack(&[block(4, 14)]), 6);
    assert_eq!(sack(&[block(4, 14), block(3, 15)]), 2);
    assert_eq!(seen, [5, 6, 10, 11, 4, 7, 8, 9, 12, 13, 3, 14]);
    // A part of a packet is none; what lies below or beyond counts for nothing.
    assert_eq!(map.apply_sack(&[(Offset(16_001), Offset(18_999))], |_| {}).packets, 1);
    assert_eq!(map.apply_sack(&[block(19, 21), block(9, 9), block(9, 8)], |_| {}).packets, 0);
    assert_eq!(map.sacked_runs(), 2);
    assert_eq!(map.highest_sacked(), Some(Offset(18_000)));
}

#[test]
fn lost_packets_go_again_lowest_first_and_are_counted_as_linux_does() {
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
    map.resend(Offset(0), Offset(MSS), ms(20), false);
    assert_eq!(map.sums().packets_in_flight(), 7);
    assert_eq!(number(map.next_lost()), Some(2));
    map.resend(Offset(2 * MSS), Offset(3 * MSS), ms(21), false);
    assert_eq!(number(map.next_lost()), None);
    // One of them is lost again.
    assert!(map.lose(Offset(0)));
    assert_eq!((map.sums().lost.packets, map.sums().resent.packets), (2, 1));
    assert_eq!(number(map.next_lost()), Some(0));
    // The other arrives.
    map.apply_sack(&[block(2, 3)], |piece| assert!(piece.lost() && piece.resent()));
    assert_eq!((map.sums().lost.packets, map.sums().resent.packets), (1, 0));
    assert_eq!(map.sums().packets_in_flight(), 6);
}

#[test]
fn the_oldest_is_found_by_time() {
    let mut map = sent(4);
    assert_eq!(number(map.oldest()), Some(0));
    map.resend(Offset(0), Offset(MSS), ms(2), false);
    // The third was sent in the same millisecond and lies higher.
    let order: Vec<_> = (0..4).map(|_| map.lose_oldest().unwrap().start().0 / MSS).collect();
    assert_eq!(order, [1, 0, 2, 3]);
    assert_eq!(map.oldest(), None);
}

#[test]
fn what_was_sent_before_something_that_arrived_has_been_passed() {
    let mut map = sent(6);
    map.resend(Offset(0), Offset(MSS), ms(10), false);
    map.apply_sack(&[block(3, 4)], |_| {});
    map.pass(ms(3), Offset(4 * MSS));
    let passed: Vec<_> = map.iter().filter(|p| p.passed()).map(|p| p.start().0 / MSS).collect();
    assert_eq!(passed, [1, 2]);
    assert_eq!(number(map.newest_passed()), Some(2));
    // Its retransmission wipes the mark and remembers it (rack_update_rsm).
    assert_eq!(map.resend(Offset(2 * MSS), Offset(3 * MSS), ms(11), false).passed_bytes, MSS);
    let piece = map.get(Offset(2 * MSS)).unwrap();
    assert!(!piece.passed() && piece.was_passed());
    assert_eq!(number(map.newest_passed()), Some(1));
    map.pass(ms(11), Offset(3 * MSS));
    assert_eq!(number(map.newest_passed()), Some(0));
}

#[test]
fn a_receiver_that_drops_what_it_reported_is_seen() {
    let mut map = sent(4);
    map.apply_sack(&[block(1, 3)], |_| {});
    assert!(!map.reneged());
    map.acknowledge(Offset(MSS), |_| {});
    assert!(map.reneged());
    map.forget_sacks();
    assert_eq!(map.sums().packets_in_flight(), 3);
    assert_eq!(number(map.oldest()), Some(1));
}

#[test]
fn a_timeout_loses_all_and_its_undoing_none() {
    let mut map = sent(4);
    map.apply_sack(&[block(2, 3)], |_| {});
    map.lose_all();
    assert_eq!((map.sums().packets_in_flight(), map.sums().lost.packets), (0, 3));
    map.resend(Offset(0), Offset(MSS), ms(9), false);
    map.unmark_lost();
    assert_eq!((map.sums().packets_in_flight(), map.sums().lost.packets), (4, 0));
    assert_eq!(number(map.oldest()), Some(1));
}

#[test]
fn what_was_passed_again_does_not_count_as_passed_when_it_went() {
    let mut map = sent(3);
    map.apply_sack(&[block(1, 2)], |_| {});
    map.pass(ms(1), Offset(2 * MSS));
    assert_eq!(map.resend(Offset(0), Offset(MSS), ms(5), false).passed_bytes, MSS);
    assert!(map.first().unwrap().was_passed());
    // rack_log_sack_passed clears RACK_WAS_SACKPASS.
    map.pass(ms(6), Offset(9 * MSS));
    assert!(!map.first().unwrap().was_passed() && map.first().unwrap().passed());
}

#[test]
fn rack_counts_what_went_again_twice_until_it_is_acknowledged() {
    let mut map = sent(4);
    map.apply_sack(&[block(2, 4)], |_| {});
    map.pass(ms(3), Offset(4 * MSS));
    map.expire_passed();
    assert_eq!((map.sums().rack_pipe(), map.sums().expired.packets), (0, 2));
    map.resend(Offset(0), Offset(MSS), ms(9), false);
    assert_eq!(map.sums().rack_pipe(), 2 * MSS);
    map.apply_sack(&[block(0, 1)], |_| {});
    assert_eq!(map.sums().rack_pipe(), MSS);
    map.acknowledge(Offset(MSS), |_| {});
    assert_eq!(map.sums().rack_pipe(), 0);
}

#[test]
fn a_smaller_segment_cuts_packets() {
    let mut map = sent(3);
    map.lose(Offset(0));
    let resent = map.resend(Offset(0), Offset(600), ms(5), false);
    assert_eq!(resent.count, Count { packets: 1, bytes: 600 });
    assert_eq!(map.sums().all, Count { packets: 4, bytes: 3 * MSS });
    assert_eq!(map.next_lost().unwrap().start(), Offset(600));
    assert_eq!(map.next_lost().unwrap().end(), Offset(1_000));
}

/// One piece of the naive map: a list without sums, cursors or queues.
#[derive(Debug, Clone)]
struct Plain {
    start: u64,
    end: u64,
    sent_at: Instant,
    transmissions: u8,
    sacked: bool,
    lost: bool,
    resent: bool,
    passed: bool,
    expired: bool,
    /// Times sent again other than as a probe.
    again: u64,
}

impl Plain {
    fn under_way(&self) -> bool {
        !self.sacked && (!self.lost || self.resent)
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
    ResendLost,
    ResendLast,
    ResendPart(u64, u64),
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
            6 => Just(Op::ResendLost),
            1 => Just(Op::ResendLast),
            1 => (0..25_000_u64, 1..3_000_u64).prop_map(|(at, len)| Op::ResendPart(at, len)),
            4 => (0..30_u64).prop_map(Op::Pass),
            2 => Just(Op::Expire),
            1 => Just(Op::LoseAll),
            1 => Just(Op::Unmark),
            1 => Just(Op::Forget),
        ],
        1..120,
    )
}

fn naive_resend(plain: &mut Vec<Plain>, (start, end): (u64, u64), now: Instant, probe: bool) {
    for place in [start, end] {
        if let Some(at) = plain.iter().position(|p| p.start < place && place < p.end) {
            let mut upper = plain[at].clone();
            plain[at].end = place;
            upper.start = place;
            plain.insert(at + 1, upper);
        }
    }
    for piece in plain.iter_mut().filter(|p| p.start >= start && p.end <= end) {
        piece.transmissions = piece.transmissions.saturating_add(1);
        piece.sent_at = now;
        piece.passed = false;
        piece.expired = false;
        piece.again += u64::from(!probe);
        if !piece.sacked {
            piece.resent = true;
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
                            resent: false,
                            passed: false,
                            expired: false,
                            again: 0,
                        });
                        max += MSS;
                    }
                }
                Op::Ack(ahead) => {
                    una = (una + ahead).min(max);
                    let mut seen = 0;
                    map.acknowledge(Offset(una), |_| seen += 1);
                    let before = plain.len();
                    plain.retain(|piece| piece.end > una);
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
                    let got = map.apply_sack(&blocks, |piece| seen.push(piece.start().0));
                    let mut expected = Vec::new();
                    for &(start, end) in blocks.iter().filter(|block| block.1 <= Offset(max)) {
                        for piece in &mut plain {
                            if piece.start >= start.0 && piece.end <= end.0 && !piece.sacked {
                                piece.sacked = true;
                                piece.expired = false;
                                (piece.lost, piece.resent) = (false, false);
                                expected.push(piece.start);
                            }
                        }
                    }
                    prop_assert_eq!(got.packets as usize, seen.len());
                    prop_assert_eq!(seen, expected);
                }
                Op::LoseOldest => {
                    let oldest =
                        plain.iter_mut().filter(|p| p.under_way()).min_by_key(|p| p.time());
                    let got = map.lose_oldest();
                    prop_assert_eq!(got.map(|p| p.start().0), oldest.as_ref().map(|p| p.start));
                    if let Some(piece) = oldest {
                        (piece.lost, piece.resent, piece.expired) = (true, false, false);
                    }
                }
                Op::Lose(ahead) => {
                    let place = una + ahead;
                    let piece = plain.iter_mut().find(|p| p.start <= place && place < p.end);
                    let piece = piece.filter(|p| p.under_way());
                    prop_assert_eq!(map.lose(Offset(place)), piece.is_some());
                    if let Some(piece) = piece {
                        (piece.lost, piece.resent, piece.expired) = (true, false, false);
                    }
                }
                Op::ResendLost => {
                    if let Some(&piece) = map.next_lost() {
                        map.resend(piece.start(), piece.end(), now, false);
                        naive_resend(&mut plain, (piece.start().0, piece.end().0), now, false);
                    }
                }
                Op::ResendLast => {
                    if let Some(&piece) = map.last() {
                        map.resend(piece.start(), piece.end(), now, true);
                        naive_resend(&mut plain, (piece.start().0, piece.end().0), now, true);
                    }
                }
                Op::ResendPart(ahead, len) => {
                    let start = una + ahead;
                    if start < max {
                        let end = (start + len).min(max);
                        map.resend(Offset(start), Offset(end), now, false);
                        naive_resend(&mut plain, (start, end), now, false);
                    }
                }
                Op::Pass(nth) => {
                    if !plain.is_empty() {
                        // All that left together: a cut piece's end would move within the order.
                        let time = (plain[nth as usize % plain.len()].sent_at, u64::MAX);
                        map.pass(time.0, Offset(time.1));
                        if time > passed {
                            passed = time;
                            for piece in &mut plain {
                                piece.passed |= piece.time() < time;
                            }
                        }
                    }
                }
                Op::Expire => {
                    map.expire_passed();
                    for piece in plain.iter_mut().filter(|p| p.under_way()) {
                        piece.expired |= piece.passed;
                    }
                }
                Op::LoseAll => {
                    map.lose_all();
                    for piece in plain.iter_mut().filter(|p| p.under_way()) {
                        (piece.lost, piece.resent, piece.expired) = (true, false, false);
                    }
                }
                Op::Unmark => {
                    map.unmark_lost();
                    plain.iter_mut().for_each(|piece| piece.lost = false);
                }
                Op::Forget => {
                    map.forget_sacks();
                    plain.iter_mut().for_each(|piece| piece.sacked = false);
                }
            }
            check(&mut map, &plain)?;
        }
    }
}

fn check(map: &mut SendMap, plain: &[Plain]) -> Result<(), TestCaseError> {
    let count = |of: &dyn Fn(&Plain) -> bool| {
        let bytes = plain.iter().filter(|p| of(p)).map(|p| p.end - p.start);
        bytes.fold(Count::default(), |sum, bytes| Count {
            packets: sum.packets + 1,
            bytes: sum.bytes + bytes,
        })
    };
    let expected = Sums {
        all: count(&|_| true),
        sacked: count(&|p| p.sacked),
        lost: count(&|p| p.lost),
        resent: count(&|p| p.resent),
        expired: count(&|p| p.expired),
        again_bytes: plain.iter().map(|p| p.again * (p.end - p.start)).sum(),
    };
    prop_assert_eq!(map.sums(), expected);
    for (piece, plain) in map.iter().zip(plain) {
        prop_assert_eq!((piece.start().0, piece.end().0), (plain.start, plain.end));
        if plain.under_way() {
            prop_assert_eq!(piece.passed(), plain.passed, "{:?}", piece);
        }
    }
    prop_assert_eq!(map.iter().count(), plain.len());
    let oldest = plain.iter().filter(|p| p.under_way()).min_by_key(|p| p.time());
    prop_assert_eq!(map.oldest().map(|p| p.start().0), oldest.map(|p| p.start));
    let newest = plain.iter().filter(|p| p.under_way() && p.passed).max_by_key(|p| p.time());
    prop_assert_eq!(map.newest_passed().map(|p| p.start().0), newest.map(|p| p.start));
    let lost = plain.iter().find(|p| p.lost && !p.resent);
    prop_assert_eq!(map.next_lost().map(|p| p.start().0), lost.map(|p| p.start));
    prop_assert_eq!(map.reneged(), plain.first().is_some_and(|p| p.sacked));
    let runs = plain.iter().zip(plain.iter().skip(1)).filter(|(a, b)| a.sacked != b.sacked).count();
    prop_assert!(map.sacked_runs() <= runs / 2 + 1);
    Ok(())
}

#[test]
fn a_block_that_comes_again_reports_what_it_now_covers_whole() {
    let (at, place) = (Instant::from_nanos, Offset);
    let block = [(place(1_500), place(2_000))];
    let two = || {
        let mut map = SendMap::new();
        map.push(place(0), place(1_000), at(1));
        map.push(place(1_000), place(2_000), at(2));
        // It covers the second piece in part, and so reports nothing.
        assert_eq!(map.apply_sack(&block, |_| {}).packets, 0);
        map
    };
    let mut shortened = two();
    shortened.acknowledge(place(1_500), |_| {});
    assert_eq!(shortened.apply_sack(&block, |_| {}).packets, 1);
    let mut cut = two();
    cut.resend(place(1_000), place(1_500), at(3), false);
    assert_eq!(cut.apply_sack(&block, |_| {}).packets, 1);
    assert_eq!(cut.apply_sack(&block, |_| {}).packets, 0);
    cut.forget_sacks();
    assert_eq!(cut.apply_sack(&block, |_| {}).packets, 1);
}
