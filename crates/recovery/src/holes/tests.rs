use proptest::prelude::*;

use super::*;

/// Segment size of the tests; `t_maxseg` also includes the timestamps.
const MSS: u64 = 1_448;
const T_MAXSEG: u32 = 1_460;

fn at(segment: u64) -> Offset {
    Offset(segment * MSS)
}

fn block(from: u64, to: u64) -> SackRange {
    (at(from), at(to))
}

/// A sender of segments 0 to 100, none of them acknowledged.
struct Sender {
    holes: SackScoreboard,
    una: u64,
    max: u64,
    recover: u64,
}

impl Sender {
    fn new(params: HolesParams) -> Self {
        Self { holes: SackScoreboard::new(params), una: 0, max: 100, recover: 100 }
    }

    fn ack(&mut self, th_ack: u64, blocks: &[SackRange]) -> SackUpdate {
        let update = self.holes.update(&SackInput {
            th_ack: at(th_ack),
            blocks,
            snd_una: at(self.una),
            snd_max: at(self.max),
            snd_recover: at(self.recover),
            t_maxseg: T_MAXSEG,
        });
        self.una = th_ack.max(self.una);
        update
    }

    /// Retransmits a segment from the next hole; returns its index.
    fn retransmit(&mut self) -> Option<u64> {
        let (from, _) = self.holes.next_hole()?;
        self.holes.on_retransmit(MSS, at(self.recover));
        Some(from.0 / MSS)
    }

    fn holes(&self) -> Vec<(u64, u64)> {
        self.holes.iter().map(|hole| (hole.start.0 / MSS, hole.end.0 / MSS)).collect()
    }
}

#[test]
fn blocks_open_split_trim_and_close_holes() {
    // tcp_sack_doack, its cases in turn.
    let mut sender = Sender::new(HolesParams::FREEBSD_MAIN);
    let update = sender.ack(0, &[block(10, 12)]);
    assert_eq!(update, SackUpdate { changed: SackChange::NewData, delivered: 2 * MSS });
    assert_eq!(sender.holes(), [(0, 10)]);
    // The highest block grows.
    assert_eq!(sender.ack(0, &[block(10, 14)]).delivered, 2 * MSS);
    assert_eq!(sender.holes.snd_fack(), at(14));
    // In the middle of a hole: more is missing.
    let update = sender.ack(0, &[block(4, 5)]);
    assert_eq!(update, SackUpdate { changed: SackChange::NewLoss, delivered: MSS });
    assert_eq!(sender.holes(), [(0, 4), (5, 10)]);
    // The end of one hole, the beginning of another.
    assert_eq!(sender.ack(0, &[block(3, 6)]).changed, SackChange::NewData);
    assert_eq!(sender.holes(), [(0, 3), (6, 10)]);
    // 13.0 does not distinguish a split from other changes.
    let mut older = Sender::new(HolesParams::FREEBSD_13_0);
    older.ack(0, &[block(10, 12)]);
    assert_eq!(older.ack(0, &[block(4, 5)]).changed, SackChange::NewData);
    // Repeated blocks change nothing.
    assert_eq!(sender.ack(0, &[block(3, 6)]), SackUpdate::default());
    // Two at once, the second beyond a new hole.
    sender.ack(0, &[block(6, 10), block(20, 21)]);
    assert_eq!(sender.holes(), [(0, 3), (14, 20)]);
    assert_eq!(sender.holes.sacked_bytes(), 12 * MSS);
    // Acknowledged bytes count once: three of fourteen were missing.
    let update = sender.ack(14, &[]);
    assert_eq!(update, SackUpdate { changed: SackChange::None, delivered: 3 * MSS });
    assert_eq!(sender.holes.sacked_bytes(), MSS);
}

#[test]
fn duplicate_invalid_and_short_blocks_are_ignored() {
    let refused = |params, blocks: &[SackRange]| {
        let mut sender = Sender::new(params);
        sender.una = 5;
        let update = sender.ack(5, blocks);
        assert_eq!(update, SackUpdate::default());
        assert!(sender.holes.is_empty());
    };
    let main = HolesParams::FREEBSD_MAIN;
    refused(main, &[block(1, 3)]);
    refused(main, &[block(5, 9)]);
    refused(main, &[block(90, 101)]);
    refused(main, &[block(20, 20)]);
    refused(main, &[block(30, 20)]);
    // main 2024: shorter than t_maxseg - 40 = 1420, unless it reaches snd_max.
    refused(main, &[(at(9), at(9) + 1_419)]);
    let mut sender = Sender::new(main);
    assert_eq!(sender.ack(0, &[(Offset(100 * MSS - 10), at(100))]).delivered, 10);
    let mut older = Sender::new(HolesParams::FREEBSD_14_3);
    assert_eq!(older.ack(0, &[(at(9), at(9) + 1_419)]).delivered, 1_419);
}

#[test]
fn a_block_beyond_the_hole_limit_is_ignored() {
    // net.inet.tcp.sack.maxholes
    let mut sender = Sender::new(HolesParams { max_holes: 2, ..HolesParams::FREEBSD_MAIN });
    sender.ack(0, &[block(10, 11), block(20, 21)]);
    assert_eq!(sender.holes(), [(0, 10), (11, 20)]);
    assert_eq!(sender.ack(0, &[block(30, 31)]), SackUpdate::default());
    let split = sender.ack(0, &[block(15, 16)]);
    assert_eq!(split, SackUpdate { changed: SackChange::NewLoss, delivered: 0 });
    assert_eq!(sender.holes(), [(0, 10), (11, 20)]);
    assert_eq!(sender.holes.sacked_bytes(), 2 * MSS);
    // A block beyond is ignored, one that extends snd_fack is not.
    let update = sender.ack(0, &[block(40, 41), block(18, 24)]);
    assert_eq!(update, SackUpdate { changed: SackChange::NewData, delivered: 5 * MSS });
    assert_eq!(sender.holes.snd_fack(), at(24));
}

#[test]
fn a_hole_is_lost_with_three_blocks_or_more_than_two_segments_above() {
    // 1448 bytes in each of two blocks: not more than 2 * 1460.
    let mut sender = Sender::new(HolesParams::FREEBSD_MAIN);
    sender.ack(0, &[block(1, 2), block(3, 4)]);
    assert_eq!(sender.holes.lost_bytes(), 0);
    assert_eq!(sender.holes.pipe(at(0), at(100)), 98 * MSS as i64);
    // A third: the lowest hole has three above it.
    sender.ack(0, &[block(5, 6)]);
    assert_eq!(sender.holes.lost_bytes(), MSS);
    assert_eq!(sender.holes.pipe(at(0), at(100)), 96 * MSS as i64);
    // Three segments above it: the next hole is lost too.
    sender.ack(0, &[block(5, 7)]);
    assert_eq!(sender.holes.lost_bytes(), 2 * MSS);
}

#[test]
fn versions_count_bytes_in_flight_differently() {
    // Ten sent, five SACKed, the two lost ones retransmitted once.
    let pipe = |params| {
        let mut sender = Sender { max: 10, ..Sender::new(params) };
        sender.ack(0, &[block(2, 7)]);
        assert_eq!(
            (sender.retransmit(), sender.retransmit(), sender.retransmit()),
            (Some(0), Some(1), None)
        );
        sender.holes.pipe(at(0), at(10))
    };
    assert_eq!(pipe(HolesParams::FREEBSD_13_0), 10 * MSS as i64);
    assert_eq!(pipe(HolesParams::FREEBSD_14_3), 7 * MSS as i64);
    assert_eq!(pipe(HolesParams::FREEBSD_MAIN), 5 * MSS as i64);
}

#[test]
fn holes_are_retransmitted_in_order_and_once() {
    let mut sender = Sender::new(HolesParams::FREEBSD_14_3);
    sender.ack(0, &[block(2, 3), block(4, 8)]);
    assert_eq!((sender.retransmit(), sender.retransmit()), (Some(0), Some(1)));
    // The first hole closes; its retransmitted bytes no longer count.
    assert_eq!(sender.holes.sack_bytes_rexmit(), 2 * MSS);
    sender.ack(2, &[]);
    assert_eq!(sender.holes.sack_bytes_rexmit(), 0);
    assert_eq!((sender.retransmit(), sender.retransmit()), (Some(3), None));
    sender.ack(3, &[block(10, 11)]);
    assert_eq!(
        (sender.retransmit(), sender.retransmit(), sender.retransmit()),
        (Some(8), Some(9), None)
    );
}

#[test]
fn lost_retransmissions_are_found_by_data_sent_after_the_recovery_point() {
    let mut sender = Sender { max: 10, recover: 10, ..Sender::new(HolesParams::FREEBSD_MAIN) };
    sender.ack(0, &[block(1, 3), block(4, 10)]);
    assert_eq!(
        (sender.retransmit(), sender.retransmit(), sender.retransmit()),
        (Some(0), Some(3), None)
    );
    assert!(!sender.holes.lost_retransmission(at(10)));
    // Segment 10, sent after both, arrives; neither of them has.
    sender.max = 12;
    sender.ack(0, &[block(11, 12)]);
    assert!(sender.holes.lost_retransmission(at(10)));
    assert_eq!((sender.retransmit(), sender.retransmit()), (Some(0), Some(3)));
    // The hole before 11 was never retransmitted and is beyond the recovery point.
    assert_eq!(sender.holes.next_hole(), Some(block(10, 11)));
    // The kernel does not subtract lost ones: two segments lost, two retransmitted since.
    assert_eq!(sender.holes.sack_bytes_rexmit(), 4 * MSS);
    let mut off = Sender { max: 10, recover: 10, ..Sender::new(HolesParams::FREEBSD_14_3) };
    off.ack(0, &[block(1, 10)]);
    off.retransmit();
    off.max = 12;
    off.ack(0, &[block(1, 12)]);
    assert!(!off.holes.lost_retransmission(at(10)));
}

#[test]
fn a_hole_that_shrinks_to_its_retransmitted_part_is_marked() {
    // tcp_sack_doack under TF_LRD: the end moves down to rxmit.
    let mut sender = Sender { recover: 50, ..Sender::new(HolesParams::FREEBSD_MAIN) };
    sender.ack(0, &[block(4, 10)]);
    assert_eq!((sender.retransmit(), sender.retransmit()), (Some(0), Some(1)));
    sender.ack(0, &[block(2, 10)]);
    assert_eq!(sender.holes.iter().next().unwrap().rxmit, at(50));
    assert_eq!(sender.holes.sack_bytes_rexmit(), 2 * MSS);
}

#[test]
fn the_last_segment_is_rescued_once_the_scoreboard_is_empty() {
    let mut sender = Sender { max: 10, recover: 10, ..Sender::new(HolesParams::FREEBSD_MAIN) };
    sender.ack(0, &[block(1, 3)]);
    sender.retransmit();
    let delivered = sender.ack(3, &[]).delivered;
    assert_eq!(delivered, MSS);
    let rescue =
        RescueInput { th_ack: at(3), high_data: at(10), snd_recover: at(10), maxseg: MSS as u32 };
    assert!(!sender.holes.open_rescue_hole(&RescueInput { th_ack: at(10), ..rescue }));
    assert!(sender.holes.open_rescue_hole(&rescue));
    assert!(!sender.holes.open_rescue_hole(&rescue));
    assert_eq!((sender.retransmit(), sender.retransmit()), (Some(9), None));
    // Its arrival shows that all before it is missing.
    let update = sender.ack(3, &[block(9, 10)]);
    assert_eq!(update, SackUpdate { changed: SackChange::NewLoss, delivered: MSS });
    assert_eq!(sender.holes(), [(3, 9)]);
    assert_eq!(sender.retransmit(), Some(3));
}

#[test]
fn the_first_timeout_keeps_the_holes_and_the_second_drops_them() {
    let mut sender = Sender::new(HolesParams::FREEBSD_MAIN);
    sender.ack(0, &[block(1, 3), block(4, 10)]);
    sender.retransmit();
    sender.holes.on_timeout(1);
    assert_eq!(sender.holes.sack_bytes_rexmit(), 0);
    assert_eq!((sender.retransmit(), sender.retransmit()), (Some(0), Some(3)));
    // snd_nxt skips SACKed data (tcp_sack_adjust), and the SACKed bytes below it enlarge the
    // window: two segments before the second hole, eight in total.
    for (nxt, moved, reported) in
        [(0, 0, 0), (1, 3, 2), (2, 3, 2), (3, 3, 2), (4, 10, 8), (10, 10, 8)]
    {
        let (to, bytes) = sender.holes.adjust(at(nxt));
        assert_eq!((to, bytes), (at(moved), reported * MSS), "{nxt}");
    }
    sender.holes.on_timeout(2);
    assert!(sender.holes.is_empty());
    assert_eq!(sender.holes.pipe(at(0), at(100)), 100 * MSS as i64);
}

#[test]
fn the_first_timeout_of_14_3_drops_the_holes_and_keeps_the_counters() {
    // tcp_free_sackholes of 13.0 and 14.3 resets sack_bytes_rexmit alone.
    let mut sender = Sender::new(HolesParams::FREEBSD_14_3);
    sender.ack(0, &[block(1, 3)]);
    sender.holes.on_timeout(1);
    assert!(sender.holes.is_empty());
    assert_eq!((sender.holes.sacked_bytes(), sender.holes.delivered()), (2 * MSS, 2 * MSS));
}

#[test]
fn a_partial_acknowledgment_without_blocks_allows_one_or_two_segments() {
    let window = |params, acked: u64, nxt: u64| {
        let mut sender = Sender::new(params);
        sender.ack(0, &[block(5, 10)]);
        sender.retransmit();
        sender.holes.partial_ack_window(&PartialAckInput {
            th_ack: at(acked),
            snd_una: at(0),
            snd_nxt: at(nxt),
            snd_recover: at(20),
            maxseg: 1_448,
            ssthresh: 10 * MSS,
        })
    };
    // 14.3: above the data sent in the recovery and retransmitted.
    assert_eq!(window(HolesParams::FREEBSD_14_3, 1, 20), 2 * MSS);
    assert_eq!(window(HolesParams::FREEBSD_14_3, 2, 23), 6 * MSS);
    assert_eq!(window(HolesParams::FREEBSD_14_3, 2, 50), 10 * MSS);
    // Negative: 32 bits wrap, and the threshold limits.
    assert_eq!(window(HolesParams::FREEBSD_14_3, 1, 10), 10 * MSS);
    // main: above the pipe: 13 sent and 1 retransmitted less 5 SACKed and 5 lost.
    assert_eq!(window(HolesParams::FREEBSD_MAIN, 1, 14), 5 * MSS);
}

/// The scoreboard as a list of flags per segment.
#[derive(Debug, Clone, Default)]
struct Naive {
    known: Vec<bool>,
    retransmission: Vec<bool>,
    una: usize,
}

impl Naive {
    fn fack(&self) -> usize {
        self.known.iter().rposition(|&known| known).map_or(self.una, |last| last + 1)
    }

    fn holes(&self) -> Vec<(u64, u64)> {
        let mut holes: Vec<(u64, u64)> = Vec::new();
        for at in (self.una..self.fack()).filter(|&at| !self.known[at]) {
            let at = at as u64;
            match holes.last_mut() {
                Some(last) if last.1 == at => last.1 += 1,
                _ => holes.push((at, at + 1)),
            }
        }
        holes
    }

    /// Lost segments below `fack`, by the literal rule per hole.
    fn lost(&self) -> u64 {
        let lost = |&(_, end): &(u64, u64)| {
            let above = &self.known[end as usize..];
            let segments = above.iter().filter(|&&known| known).count() as u64;
            let blocks =
                (0..above.len()).filter(|&i| above[i] && (i == 0 || !above[i - 1])).count();
            blocks >= 3 || segments * MSS > 2 * u64::from(T_MAXSEG)
        };
        self.holes().iter().filter(|hole| lost(hole)).map(|(start, end)| end - start).sum()
    }
}

#[derive(Debug, Clone)]
enum Op {
    Send(u64),
    /// Advance of the acknowledgment within the allowed range, and blocks.
    Ack(u64, Vec<(u64, u64)>),
    Retransmit(u64),
    Timeout,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let ack = (0..8_u64, prop::collection::vec((0..60_u64, 1..12_u64), 0..4));
    prop::collection::vec(
        prop_oneof![
            2 => (1..20_u64).prop_map(Op::Send),
            6 => ack.prop_map(|(ack, blocks)| Op::Ack(ack, blocks)),
            3 => (1..6_u64).prop_map(Op::Retransmit),
            1 => Just(Op::Timeout),
        ],
        1..80,
    )
}

proptest! {
    #[test]
    fn counters_agree_with_a_naive_list(ops in ops()) {
        let params = HolesParams { max_holes: 1 << 20, lrd: false, ..HolesParams::FREEBSD_MAIN };
        let mut sender = Sender { max: 0, ..Sender::new(params) };
        let mut naive = Naive::default();
        for op in ops {
            match op {
                Op::Send(n) => {
                    sender.max += n;
                    naive.known.resize(sender.max as usize, false);
                    naive.retransmission.resize(sender.max as usize, false);
                }
                Op::Ack(ahead, blocks) => {
                    // Not beyond the SACKed data: there the kernel's sum goes wrong.
                    let una = sender.una;
                    let th_ack = (una + ahead).min(naive.fack() as u64).max(una);
                    let blocks: Vec<_> = blocks
                        .iter()
                        .map(|&(from, len)| (una + from, una + from + len))
                        .collect();
                    let sack_blocks: Vec<_> = blocks.iter().map(|&(a, b)| block(a, b)).collect();
                    let before: u64 = naive.holes().iter().map(|hole| hole.1 - hole.0).sum();
                    let (was, reported) = (naive.clone(), naive.fack() as u64);
                    let got = sender.ack(th_ack, &sack_blocks);
                    for &(from, to) in &blocks {
                        if from > th_ack && to <= sender.max {
                            naive.known[from as usize..to as usize].fill(true);
                        }
                    }
                    naive.una = th_ack as usize;
                    naive.known[..th_ack as usize].fill(false);
                    let newly_sacked = (una.max(1) - 1..sender.max)
                        .filter(|&at| at >= una)
                        .filter(|&at| {
                            let at = at as usize;
                            !was.known[at] && (naive.known[at] || (at < naive.una && before > 0))
                        })
                        .count() as u64;
                    prop_assert_eq!(got.delivered, newly_sacked * MSS, "{} {}", reported, before);
                }
                Op::Retransmit(n) => {
                    for _ in 0..n {
                        let expected = naive
                            .holes()
                            .iter()
                            .flat_map(|&(start, end)| start..end)
                            .find(|&at| !naive.retransmission[at as usize]);
                        let got = sender.retransmit();
                        if let Some(at) = got {
                            naive.retransmission[at as usize] = true;
                        }
                        // The kernel continues from its hint, not from the lowest hole.
                        prop_assert_eq!(got.is_some(), expected.is_some());
                    }
                }
                Op::Timeout => {
                    sender.holes.on_timeout(1);
                    naive.retransmission.fill(false);
                }
            }
            if naive.holes().is_empty() {
                // An empty scoreboard remembers nothing of SACKed or retransmitted bytes.
                naive.retransmission.fill(false);
                naive.known.fill(false);
            }
            let missing = naive.holes();
            prop_assert_eq!(&sender.holes(), &missing);
            let retransmission = missing
                .iter()
                .flat_map(|&(start, end)| start..end)
                .filter(|&at| naive.retransmission[at as usize])
                .count() as u64;
            prop_assert_eq!(sender.holes.sack_bytes_rexmit(), retransmission * MSS);
            if !missing.is_empty() {
                let known = naive.known.iter().filter(|&&known| known).count() as u64;
                prop_assert_eq!(sender.holes.snd_fack(), at(naive.fack() as u64));
                prop_assert_eq!(sender.holes.sacked_bytes(), known * MSS);
                prop_assert_eq!(sender.holes.lost_bytes(), naive.lost() * MSS);
            }
        }
    }

    #[test]
    fn invalid_blocks_do_not_corrupt_the_counters(
        acks in prop::collection::vec(
            (0..300_u64, prop::collection::vec((0..300_u64, 0..300_u64), 0..6), 0..3_u64, 0..9_u32),
            1..100,
        )
    ) {
        // Bytes instead of segments, a low limit, acknowledgments that jump.
        let mut holes = SackScoreboard::new(HolesParams { max_holes: 5, ..HolesParams::FREEBSD_MAIN });
        let mut una = 0;
        for (ack, blocks, retransmissions, other) in acks {
            let blocks: Vec<_> = blocks.iter().map(|&(a, b)| (Offset(a), Offset(b))).collect();
            let th_ack = if other == 0 { ack.max(una) } else { una.max(ack / 16) };
            holes.update(&SackInput {
                th_ack: Offset(th_ack),
                blocks: &blocks,
                snd_una: Offset(una),
                snd_max: Offset(300),
                snd_recover: Offset(200),
                t_maxseg: 60,
            });
            una = th_ack;
            if other == 1 {
                holes.open_rescue_hole(&RescueInput {
                    th_ack: Offset(una),
                    high_data: Offset(300),
                    snd_recover: Offset(290),
                    maxseg: 20,
                });
            }
            for _ in 0..retransmissions {
                if let Some((from, end)) = holes.next_hole() {
                    prop_assert!(from < end);
                    holes.on_retransmit(7, Offset(200));
                }
            }
            holes.lost_retransmission(Offset(200));
            prop_assert!(holes.len() <= 5);
            let bytes: u64 = holes.iter().map(SackHole::bytes).sum();
            prop_assert_eq!(bytes, holes.hole_bytes);
            let retransmitted: u64 = holes.iter().map(SackHole::retransmitted_bytes).sum();
            prop_assert!(holes.sack_bytes_rexmit() >= retransmitted);
            let sorted: Vec<_> = holes.iter().flat_map(|hole| [hole.start, hole.end]).collect();
            prop_assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", sorted);
            prop_assert!(sorted.first().is_none_or(|&first| first >= Offset(una)));
        }
    }
}
