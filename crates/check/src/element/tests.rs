use record::{SynOffers, TcpBits};
use units::{Bytes, Rate};

use super::*;
use crate::contents::PayloadRange;
use crate::invariants::{BucketFrame, Changes, Line, Outage};

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_second(bits).unwrap()
}

/// The contents of a packet of no protocol.
const NOTHING: PacketContents = PacketContents {
    payload: PayloadRange { at: 0, len: 0, bare: false, fin: false, had: 0 },
    tcp: TcpBits { flags: 0, offers: SynOffers::NONE },
};

const fn way(packet: u64) -> FlowDirection {
    ((packet / 10) as u32, 0)
}

/// Events at an element: the time, and the packet, which belongs to flow `packet / 10`.
#[derive(Clone, Copy)]
enum Step {
    In(u64, u64, u64),
    Lost(u64, u64, u64),
    /// Dropped from the queue.
    Thrown(u64, u64, u64),
    Out(u64, u64),
}

use Step::{In, Lost, Out, Thrown};

/// All violations, with the packet.
fn found(law: ElementInvariants, steps: &[Step]) -> Vec<(u64, ViolationKind)> {
    found_with(law, ElementChanges::default(), steps)
}

/// The same, for an element that changes.
fn found_with(
    law: ElementInvariants,
    changes: ElementChanges,
    steps: &[Step],
) -> Vec<(u64, ViolationKind)> {
    let world = WorldModel {
        hosts: Vec::new(),
        hops: vec![law],
        routes: Vec::new(),
        flows: Vec::new(),
        traces: vec![vec![2, 2, 5]],
        changes: vec![changes],
    };
    let mut element = ElementModel::new(ElementId(0), law, &world);
    let mut log = ViolationLog::new();
    for &step in steps {
        match step {
            In(now, packet, size) => {
                log.now = at(now);
                element.enter(&mut log, PacketNumber(packet), way(packet), (size, &NOTHING));
            }
            Lost(now, packet, size) => {
                log.now = at(now);
                let packet = PacketNumber(packet);
                element.lose(&mut log, (packet, size), ((0, 0), 0), &NOTHING, false);
            }
            Thrown(now, packet, size) => {
                log.now = at(now);
                let packet = PacketNumber(packet);
                element.lose(&mut log, (packet, size), ((0, 0), 0), &NOTHING, true);
            }
            Out(now, packet) => {
                log.now = at(now);
                element.leave(&mut log, PacketNumber(packet));
            }
        }
    }
    log.now += Duration::from_nanos(1);
    element.overdue(&mut log);
    let of = |violation: &crate::Violation| match violation.about {
        Subject::Packet(packet) => (packet.0, violation.what),
        other => panic!("{other:?}"),
    };
    log.found.iter().map(of).collect()
}

const ELEMENT: ElementId = ElementId(0);

fn early(due: u64) -> ViolationKind {
    ViolationKind::LeftEarly { hop_index: ELEMENT, due: at(due) }
}

fn late(due: u64) -> ViolationKind {
    ViolationKind::LeftLate { hop_index: ELEMENT, due: at(due) }
}

const NO_ROOM: ViolationKind = ViolationKind::NoRoom { hop_index: ELEMENT };
const FOR_NOTHING: ViolationKind = ViolationKind::LostForNothing { hop_index: ELEMENT };

#[test]
fn a_line_carries_the_fraction_of_a_nanosecond() {
    // 64 bytes at 100 Gbit/s take 5.12 ns: 5.12, 10.24, ... 40.96, 46.08.
    let law = ElementInvariants::link(rate(100_000_000_000), QueueCapacity::Packets(100));
    let ins = (0..9).map(|n| In(0, n, 64));
    let outs = [5, 10, 15, 20, 25, 30, 35, 40, 46];
    let steps = |outs: [u64; 9]| -> Vec<Step> {
        ins.clone().chain((0..9).zip(outs).map(|(n, ns)| Out(ns, n))).collect()
    };
    assert_eq!(found(law, &steps(outs)), []);
    // Without the fraction the ninth would leave at 45; with rounding up, at 47.
    assert_eq!(found(law, &steps([5, 10, 15, 20, 25, 30, 35, 40, 45])), [(8, early(46))]);
    assert_eq!(found(law, &steps([5, 10, 15, 20, 25, 30, 35, 40, 47])), [(8, late(46))]);
}

#[test]
fn a_line_is_work_conserving() {
    // 1,000 bytes at 8 Gbit/s take 1,000 ns.
    let law = ElementInvariants::link(rate(8_000_000_000), QueueCapacity::Packets(10));
    let good = [In(0, 0, 1_000), In(999, 1, 1_000), Out(1_000, 0), Out(2_000, 1)];
    assert_eq!(found(law, &good), []);
    let rested = [In(0, 0, 1_000), In(999, 1, 1_000), Out(1_000, 0), Out(2_001, 1)];
    assert_eq!(found(law, &rested), [(1, late(2_000))]);
    let anew = [In(0, 0, 1_000), Out(1_000, 0), In(1_500, 1, 1_000), Out(2_500, 1)];
    assert_eq!(found(law, &anew), []);
    // At the end of the first, the record defines the order of an arrival and a departure.
    let queued = [In(0, 0, 1_000), In(1_000, 1, 1_000), Out(1_000, 0), Out(2_000, 1)];
    assert_eq!(found(law, &queued), []);
}

#[test]
fn the_packet_in_transmission_is_not_queued() {
    let packets = ElementInvariants::link(rate(8_000_000_000), QueueCapacity::Packets(1));
    let bytes = ElementInvariants::link(rate(8_000_000_000), QueueCapacity::Bytes(Bytes(1_000)));
    for law in [packets, bytes] {
        let full = [In(0, 0, 1_000), In(0, 1, 1_000), Lost(0, 2, 1), Out(1_000, 0)];
        assert_eq!(found(law, &full), []);
        let too_many = [In(0, 0, 1_000), In(0, 1, 1_000), In(0, 2, 1)];
        assert_eq!(found(law, &too_many), [(2, NO_ROOM)]);
        let with_room = [In(0, 0, 1_000), In(0, 1, 1_000), Out(1_000, 0), Lost(1_000, 2, 1_000)];
        assert_eq!(found(law, &with_room), [(2, FOR_NOTHING)]);
        assert_eq!(found(law, &[Lost(0, 0, 1_000)]), [(0, FOR_NOTHING)]);
    }
    let exact = [In(0, 0, 1_000), In(0, 1, 400), In(0, 2, 600), Lost(0, 3, 1)];
    assert_eq!(found(bytes, &exact), []);
    let fits = [In(0, 0, 1_000), In(0, 1, 400), In(0, 2, 599), Lost(0, 3, 1)];
    assert_eq!(found(bytes, &fits), [(3, FOR_NOTHING)]);
    // With no queue capacity the line itself still holds a packet.
    let none = ElementInvariants::link(rate(8_000_000_000), QueueCapacity::Packets(0));
    assert_eq!(found(none, &[In(0, 0, 1_000), Lost(0, 1, 1)]), []);
}

#[test]
fn a_bucket_releases_what_it_holds() {
    // 8 Gbit/s is a byte per ns; the bucket holds 1,500.
    let law = ElementInvariants::token_bucket(
        rate(8_000_000_000),
        Bytes(1_500),
        QueueCapacity::Bytes(Bytes(2_000)),
    );
    // 500 remain; the second waits for 500 more, the third for 1,000.
    let good = [
        In(0, 0, 1_000),
        Out(0, 0),
        In(0, 1, 1_000),
        In(100, 2, 1_000),
        Lost(100, 3, 1),
        Out(500, 1),
        Out(1_500, 2),
        // Full after 1,500 idle ns, and never more than full.
        In(9_000, 4, 1_500),
        Out(9_000, 4),
        In(9_000, 5, 1),
        Out(9_001, 5),
    ];
    assert_eq!(found(law, &good), []);
    assert_eq!(
        found(law, &[In(0, 0, 1_000), Out(0, 0), In(0, 1, 1_000), Out(499, 1)]),
        [(1, early(500))]
    );
    assert_eq!(found(law, &[In(0, 0, 1_000), Out(1, 0)]), [(0, late(0))]);
    let too_large = [Lost(0, 0, 1_501), In(0, 1, 1_501)];
    assert_eq!(found(law, &too_large)[0], (1, NO_ROOM));
    let policer = ElementInvariants::policer(rate(8_000_000_000), Bytes(1_500));
    let good = [In(0, 0, 1_000), Out(0, 0), Lost(0, 1, 501), In(0, 2, 500), Out(0, 2)];
    assert_eq!(found(policer, &good), []);
    assert_eq!(found(policer, &[Lost(0, 0, 1_500)]), [(0, FOR_NOTHING)]);
}

/// A header of 14 bytes counts in the queue and in the bucket; cells count in the bucket.
#[test]
fn a_bucket_counts_the_frames_of_packets() {
    let of = |burst, frame| {
        ElementInvariants::token_bucket(
            rate(8_000_000_000),
            Bytes(burst),
            QueueCapacity::Bytes(Bytes(200)),
        )
        .framed(frame)
    };
    let ethernet = BucketFrame { header: 14, ..BucketFrame::default() };
    let burst = [In(0, 0, 86), Out(0, 0), In(0, 1, 86), In(0, 2, 86), Lost(0, 3, 1)];
    let with = |ends: &[Step]| [burst.as_slice(), ends].concat();
    assert_eq!(found(of(100, ethernet), &with(&[Out(100, 1), Out(200, 2)])), []);
    assert_eq!(found(of(100, ethernet), &with(&[Out(86, 1)])), [(1, early(100))]);
    let atm = BucketFrame { cell: 48, cell_overhead: 5, ..ethernet };
    assert_eq!(found(of(159, atm), &with(&[Out(159, 1), Out(318, 2)])), []);
    let least = BucketFrame { least: 120, ..ethernet };
    assert_eq!(found(of(120, least), &with(&[Out(120, 1), Out(240, 2)])), []);
    assert_eq!(found(of(99, ethernet), &[In(0, 0, 86)])[0], (0, NO_ROOM));
}

#[test]
fn a_bucket_releases_at_whole_nanoseconds() {
    // At 3 Gbit/s, the 8 bits of a byte need 2.67 ns: it leaves in the third, and the excess inflow
    // of 1 bit stays: the next has its 8 after 5.33 ns, the third after 8.
    let law =
        ElementInvariants::token_bucket(rate(3_000_000_000), Bytes(2), QueueCapacity::Packets(10));
    let good = [
        In(0, 0, 2),
        Out(0, 0),
        In(0, 1, 1),
        In(0, 2, 1),
        In(0, 3, 1),
        Out(3, 1),
        Out(6, 2),
        Out(8, 3),
    ];
    assert_eq!(found(law, &good), []);
}

#[test]
fn a_bucket_never_exceeds_its_capacity() {
    // A bucket of one byte is full after 2.67 ns, and at 3 ns holds 8 bits, not 9 (Linux's
    // tbf_dequeue caps the tokens before it dequeues the packet).
    let law =
        ElementInvariants::token_bucket(rate(3_000_000_000), Bytes(1), QueueCapacity::Packets(10));
    let ins = [In(0, 0, 1), Out(0, 0), In(0, 1, 1), In(0, 2, 1), In(0, 3, 1)];
    let outs = |last| [ins.as_slice(), &[Out(3, 1), Out(6, 2), Out(last, 3)]].concat();
    assert_eq!(found(law, &outs(9)), []);
    assert_eq!(found(law, &outs(8)), [(3, early(9))]);
}

#[test]
fn random_delays_may_keep_order_or_not() {
    let most = Duration::from_nanos(100);
    let swapped = [In(0, 1, 1), In(10, 2, 1), Out(50, 2), Out(60, 1)];
    let overtook = [(2, ViolationKind::Overtook { hop_index: ELEMENT, before: PacketNumber(1) })];
    assert_eq!(found(ElementInvariants::jitter(most), &swapped), overtook);
    assert_eq!(found(ElementInvariants::thin(most), &swapped), overtook);
    assert_eq!(found(ElementInvariants::reorder(most), &swapped), []);
    // Those of two flows.
    let apart = [In(0, 1, 1), In(10, 12, 1), Out(50, 12), Out(60, 1)];
    assert_eq!(found(ElementInvariants::thin(most), &apart), []);
    assert_eq!(found(ElementInvariants::jitter(most), &apart).len(), 1);
    // No packet is held longer than that.
    assert_eq!(found(ElementInvariants::jitter(most), &[In(0, 1, 1), Out(100, 1)]), []);
    assert_eq!(
        found(ElementInvariants::jitter(most), &[In(0, 1, 1), Out(101, 1)]),
        [(1, late(100))]
    );
    let overdue = (1, ViolationKind::Overdue { hop_index: ELEMENT, due: at(100) });
    let forgotten = [In(0, 1, 1), In(10, 2, 1), Out(101, 2)];
    assert_eq!(found(ElementInvariants::reorder(most), &forgotten), [overdue]);
}

#[test]
fn a_gate_holds_until_the_outage_is_over() {
    let law = ElementInvariants::gate(Outage { from: at(10), until: at(20), period: None });
    let good = [
        In(9, 1, 1),
        Out(9, 1),
        In(10, 2, 1),
        In(19, 3, 1),
        In(20, 4, 1),
        Out(20, 2),
        Out(20, 3),
        Out(20, 4),
    ];
    assert_eq!(found(law, &good), []);
    assert_eq!(found(law, &[In(10, 1, 1), Out(19, 1)]), [(1, early(20))]);
    assert_eq!(found(law, &[In(9, 1, 1), Out(20, 1)]), [(1, late(9))]);
    assert_eq!(found(law, &[Lost(10, 1, 1)]), [(1, FOR_NOTHING)]);
}

const MS: u64 = 1_000_000;

fn managed(thinning: Thinning) -> ElementInvariants {
    ElementInvariants::managed(
        Line::Rate(rate(8_000_000_000)),
        QueueCapacity::Packets(2),
        thinning,
        false,
    )
}

#[test]
fn a_discipline_drops_only_at_its_drop_point() {
    use Thinning::{AtEntrance, AtHead, Full, PushOut};
    let comes = [In(0, 0, 1_000), In(0, 1, 1_000), Lost(0, 2, 1_000), Out(1_000, 0), Out(2_000, 1)];
    for (thinning, may) in [(Full, false), (AtEntrance, true), (AtHead, false), (PushOut, false)] {
        let expected = if may { vec![] } else { vec![(2, FOR_NOTHING)] };
        assert_eq!(found(managed(thinning), &comes), expected, "{thinning:?}");
    }
    // When the line takes its next packet, and at another time.
    for (at, heads) in [(1_000, true), (1_500, false)] {
        let head = [
            In(0, 0, 1_000),
            In(0, 1, 1_000),
            In(500, 2, 1_000),
            Out(1_000, 0),
            Thrown(at, 1, 1_000),
            Out(2_000, 2),
        ];
        for thinning in [Full, AtEntrance, AtHead, PushOut] {
            let may = heads && matches!(thinning, AtHead | PushOut);
            let expected = if may { vec![] } else { vec![(1, FOR_NOTHING)] };
            assert_eq!(found(managed(thinning), &head), expected, "{thinning:?} at {at}");
        }
    }
    // One packet too many has arrived.
    let pushed = [
        In(0, 0, 1_000),
        In(0, 10, 1_000),
        In(0, 11, 1_000),
        In(500, 20, 1_000),
        Thrown(500, 10, 1_000),
        Out(1_000, 0),
        Out(2_000, 20),
        Out(3_000, 11),
    ];
    assert_eq!(found(managed(PushOut), &pushed), []);
    let stays = [
        In(0, 0, 1_000),
        In(0, 10, 1_000),
        In(0, 11, 1_000),
        In(500, 20, 1_000),
        In(600, 21, 1_000),
    ];
    assert_eq!(found(managed(PushOut), &stays)[0], (21, NO_ROOM));
}

#[test]
fn a_line_of_any_order_is_work_conserving_and_takes_present_packets() {
    let law = managed(Thinning::PushOut);
    let good = [In(0, 0, 1_000), In(1, 10, 400), In(1, 20, 600), Out(1_000, 0), Out(1_600, 20)];
    assert_eq!(found(law, &good), []);
    let late = [In(0, 0, 1_000), In(1, 10, 400), Out(1_000, 0), Out(1_401, 10)];
    assert_eq!(found(law, &late), [(10, self::late(1_400))]);
    let early = [In(0, 0, 1_000), In(1, 10, 400), Out(1_000, 0), Out(1_399, 10)];
    assert_eq!(found(law, &early), [(10, self::early(1_400))]);
    // It arrived after the line had taken its packet.
    let cuts_in = [In(0, 0, 1_000), In(1, 10, 1_000), Out(1_000, 10)];
    assert_eq!(found(law, &cuts_in), [(10, self::early(u64::MAX))]);
    let nothing_to_send = [In(0, 0, 1_000), In(0, 10, 1_000), Out(1_000, 0), In(2_001, 11, 1)];
    assert!(matches!(found(law, &nothing_to_send)[..], [(10, ViolationKind::Overdue { .. })]));
}

#[test]
fn a_line_with_a_trace_follows_it() {
    // At 2, 2, 5; 7, 7, 10; ... ms.
    let law = ElementInvariants::managed(
        Line::Trace(0),
        QueueCapacity::Packets(100),
        Thinning::Full,
        false,
    );
    let four = (0..4).map(|n| In(0, n, 1_500));
    let out = |ms: [u64; 4]| (0..4).zip(ms).map(|(n, ms)| Out(ms * MS, n));
    let steps = |ms| -> Vec<Step> { four.clone().chain(out(ms)).collect() };
    assert_eq!(found(law, &steps([2, 2, 5, 7])), []);
    assert_eq!(found(law, &steps([2, 5, 7, 7])), [(1, late(2 * MS)), (2, late(5 * MS))]);
    assert_eq!(found(law, &steps([2, 2, 2, 7])), [(2, early(5 * MS))]);
    // Past unused opportunities are lost, those of this instant are not.
    let pause = [In(3 * MS, 0, 1_500), Out(5 * MS, 0), In(7 * MS, 1, 3_000), Out(7 * MS, 1)];
    assert_eq!(found(law, &pause), []);
    let at_end = [In(10 * MS, 0, 1_500), Out(10 * MS, 0), In(11 * MS, 1, 1), Out(12 * MS, 1)];
    assert_eq!(found(law, &at_end), []);
}

/// 800 Mbit/s, 10 ns a byte, until 15,000 ns; then 400 Mbit/s.
#[test]
fn a_packet_continues_at_the_new_rate() {
    let changes = || ElementChanges {
        rate: Some(Changes {
            steps: vec![(at(0), 800_000_000), (at(15_000), 400_000_000)],
            period: None,
        }),
        ..ElementChanges::default()
    };
    let line = Line::Rate(Rate::from_bits_per_second(800_000_000).unwrap());
    let law = ElementInvariants::managed(line, QueueCapacity::Packets(9), Thinning::Full, false);
    let law = ElementInvariants { changes: Some(0), ..law };
    let found = |out: u64| {
        found_with(law, changes(), &[In(0, 1, 1_000), In(0, 2, 1_000), Out(10_000, 1), Out(out, 2)])
    };
    // Half of the second packet takes 5,000 ns, the other half twice that.
    assert_eq!(found(25_000), []);
    assert!(matches!(found(20_000)[..], [(2, ViolationKind::LeftEarly { .. })]));
    assert!(matches!(found(25_001)[..], [(2, ViolationKind::LeftLate { .. }), ..]));
}

#[test]
fn a_changing_delay_is_that_of_the_arrival() {
    let changes = || ElementChanges {
        delay: Some(Changes {
            steps: vec![(at(0), Duration::from_nanos(50)), (at(10), Duration::from_nanos(20))],
            period: Some(Duration::from_nanos(1_000)),
        }),
        ..ElementChanges::default()
    };
    let law = ElementInvariants::changing_delay(0);
    // The second would overtake the first.
    assert_eq!(
        found_with(law, changes(), &[In(5, 1, 1), In(10, 2, 1), Out(55, 1), Out(55, 2)]),
        []
    );
    assert_eq!(found_with(law, changes(), &[In(1_005, 1, 1), Out(1_055, 1)]), []);
    let early = found_with(law, changes(), &[In(10, 1, 1), Out(29, 1)]);
    assert!(matches!(early[..], [(1, ViolationKind::LeftEarly { .. })]));
    let late = found_with(law, changes(), &[In(10, 1, 1), Out(60, 1)]);
    assert!(matches!(late[0], (1, ViolationKind::LeftLate { .. })));
}

#[test]
fn a_changing_loss_and_a_changing_buffer_hold_at_their_times() {
    let bounds = |from: u64| ElementChanges {
        selection: Some(Changes {
            steps: vec![(at(0), Selection::Nothing), (at(from), Selection::Everything)],
            period: None,
        }),
        ..ElementChanges::default()
    };
    let law = ElementInvariants { changes: Some(0), ..ElementInvariants::loss() };
    assert_eq!(found_with(law, bounds(10), &[Lost(10, 1, 1)]), []);
    assert!(matches!(
        found_with(law, bounds(10), &[Lost(9, 1, 1)])[..],
        [(1, ViolationKind::LostForNothing { .. })]
    ));
    let passed = found_with(law, bounds(10), &[In(10, 1, 1), Out(10, 1)]);
    assert!(matches!(passed[..], [(1, ViolationKind::PassedDuringOutage { .. })]));
    let room = ElementChanges {
        room: Some(Changes {
            steps: vec![(at(0), QueueCapacity::Packets(1)), (at(10), QueueCapacity::Packets(2))],
            period: None,
        }),
        ..ElementChanges::default()
    };
    let line = Line::Rate(Rate::from_bits_per_second(8).unwrap());
    let law = ElementInvariants::managed(line, QueueCapacity::Packets(1), Thinning::Full, false);
    let law = ElementInvariants { changes: Some(0), ..law };
    let full = |now: u64| found_with(law, room.clone(), &[In(0, 1, 9), In(0, 2, 9), In(now, 3, 9)]);
    assert_eq!(full(10), []);
    assert!(matches!(full(9)[..], [(3, ViolationKind::NoRoom { .. })]));
    let lost =
        |now: u64| found_with(law, room.clone(), &[In(0, 1, 9), In(0, 2, 9), Lost(now, 3, 9)]);
    assert_eq!(lost(9), []);
    assert!(matches!(lost(10)[..], [(3, ViolationKind::LostForNothing { .. })]));
}

#[test]
fn bursts_are_apart_and_end_with_their_packets() {
    let span = Duration::from_nanos;
    let law = ElementInvariants::slots(span(100), span(200), 2, 10_000);
    assert_eq!(
        found(law, &[In(5, 1, 1), In(6, 2, 1), In(7, 3, 1), Out(105, 1), Out(105, 2), Out(205, 3)]),
        []
    );
    let third =
        found(law, &[In(5, 1, 1), In(6, 2, 1), In(7, 3, 1), Out(105, 1), Out(105, 2), Out(105, 3)]);
    assert!(matches!(third[..], [(3, ViolationKind::LeftEarly { .. })]));
    let soon = found(law, &[In(5, 1, 1), Out(105, 1), In(106, 2, 1), Out(204, 2)]);
    assert!(matches!(soon[..], [(2, ViolationKind::LeftEarly { .. })]));
    let late = found(law, &[In(5, 1, 1), Out(206, 1)]);
    assert!(matches!(late[0], (1, ViolationKind::LeftLate { .. })));
}

#[test]
fn a_periodic_outage_returns() {
    let outage = Outage { from: at(10), until: at(20), period: Some(Duration::from_nanos(100)) };
    let law = ElementInvariants::gate(outage);
    assert_eq!(found(law, &[In(115, 1, 1), Out(120, 1), In(121, 2, 1), Out(121, 2)]), []);
    let early = found(law, &[In(115, 1, 1), Out(115, 1)]);
    assert!(matches!(early[..], [(1, ViolationKind::LeftEarly { .. })]));
}

/// A queue by time: delays within bounds, in any order; the limit counts all packets held.
#[test]
fn packets_of_a_time_queue_have_delays_of_their_own() {
    use crate::invariants::{TimeQueue, TimedLine};
    let span = Duration::from_nanos;
    let queue = TimeQueue {
        least: span(100),
        most: span(200),
        early: Duration::ZERO,
        line: None,
        at_once: false,
        room: 2,
    };
    let law = ElementInvariants::by_time(queue);
    assert_eq!(found(law, &[In(0, 0, 1_000), In(10, 1, 1_000), Out(120, 1), Out(200, 0)]), []);
    assert_eq!(found(law, &[In(0, 0, 1_000), Out(99, 0)]), [(0, early(100))]);
    assert_eq!(found(law, &[In(0, 0, 1_000), Out(201, 0)]), [(0, late(200))]);
    assert_eq!(
        found(law, &[In(0, 0, 1), In(0, 1, 1), Lost(0, 2, 1), Out(150, 0), Out(150, 1)]),
        []
    );
    let full = [In(0, 0, 1), In(0, 1, 1), In(0, 2, 1), Out(150, 0), Out(150, 1), Out(150, 2)];
    assert_eq!(found(law, &full), [(2, NO_ROOM)]);
    assert_eq!(found(law, &[Lost(0, 0, 1)]), [(0, FOR_NOTHING)]);
    let at_once = ElementInvariants::by_time(TimeQueue { at_once: true, ..queue });
    assert_eq!(found(at_once, &[In(0, 0, 1), In(5, 1, 1), Out(5, 1), Out(150, 0)]), []);
    assert_eq!(found(at_once, &[In(0, 0, 1), Out(1, 0)]), [(0, early(100))]);
    // 1000 bytes at 8 Gbit/s take 1000 ns.
    let line = TimedLine { rate: rate(8_000_000_000), overhead: 0, cell: 0, cell_overhead: 0 };
    let sends = ElementInvariants::by_time(TimeQueue { line: Some(line), ..queue });
    let ins = [In(0, 0, 1_000), In(0, 1, 1_000)];
    assert_eq!(found(sends, &[&ins[..], &[Out(1_100, 0), Out(2_100, 1)]].concat()), []);
    assert_eq!(
        found(sends, &[&ins[..], &[Out(1_100, 0), Out(2_099, 1)]].concat()),
        [(1, early(2_100))]
    );
    // A delay below zero shortens the transmission of a packet that finds the queue empty.
    let queue = TimeQueue { least: Duration::ZERO, early: span(50), line: Some(line), ..queue };
    let shortened = ElementInvariants::by_time(queue);
    assert_eq!(found(shortened, &[In(0, 0, 1_000), Out(950, 0)]), []);
    assert_eq!(found(shortened, &[In(0, 0, 1_000), Out(949, 0)]), [(0, early(950))]);
}
