//! Packets with impossible events.

mod common;

use ackclock_check as check;
use check::invariants::{ElementInvariants, Outage};
use check::world::WorldModel;
use check::{RecordItem, VerifiedSummary, ViolationKind, WorldError};
use common::{
    BACK, CLIENT, DELAY, LINE, SERVER, after, all_breaches, alter, first_breach, good, reported,
    sent, set_time, step, us, world,
};
use record::{
    ElementId, Event, EventSource, PacketEvent, PacketNumber, Purpose, SentKind, TcpBits,
};
use units::{Bytes, Duration, Ecn, FlowId, HostId, SeqNum};

const fn p(n: u64) -> PacketNumber {
    PacketNumber(n)
}

fn left(n: u64, hop_index: ElementId) -> PacketEvent {
    PacketEvent::Forwarded { hop_index, packet: p(n) }
}

fn entered(n: u64, hop_index: ElementId) -> PacketEvent {
    PacketEvent::Accepted { hop_index, packet: p(n) }
}

/// Moves the event `what` and the one after it to another time, in order.
fn shift(items: &mut Vec<RecordItem>, what: PacketEvent, to: units::Instant) {
    let from = step(items, what);
    let mut pair: Vec<_> = items.drain(from..from + 2).collect();
    pair.iter_mut().for_each(|item| set_time(item, to));
    let place = items.partition_point(|item| item.at() <= to);
    items.splice(place..place, pair);
}

fn replace(items: &mut [RecordItem], old: PacketEvent, new: PacketEvent) {
    let place = step(items, old);
    let RecordItem::PacketItem { movement, .. } = &mut items[place] else { unreachable!() };
    *movement = new;
}

fn remove(items: &mut Vec<RecordItem>, what: PacketEvent) {
    items.remove(step(items, what));
}

fn repeat(items: &mut Vec<RecordItem>, what: PacketEvent) {
    let place = step(items, what);
    items.insert(place, items[place]);
}

#[test]
fn the_handmade_record_has_no_violation() {
    let summary = check::verify(&world(), &good()).unwrap();
    let VerifiedSummary { departed, arrived, lost, in_transit, .. } = summary;
    assert_eq!((departed, arrived, lost, in_transit), (13, 12, 1, 0));
    let [client, server] = summary.flows[0];
    assert_eq!(
        (client.written, client.sent, client.acknowledged),
        (Bytes(4_000), Bytes(4_000), Bytes(4_000))
    );
    assert_eq!(
        (client.retransmitted, server.received, server.read),
        (Bytes(1_000), Bytes(4_000), Bytes(4_000))
    );
}

#[test]
fn a_record_may_end_at_any_item_of_an_instant() {
    // Up to the instant at which the first three segments have reached the server.
    let mut items = good();
    items.retain(|item| item.at() <= us(33_220));
    let summary = check::verify(&world(), &items).unwrap();
    assert_eq!((summary.departed, summary.in_transit), (8, 1));
}

#[test]
fn time_is_monotone() {
    let found = after(|items| {
        let place = step(items, left(3, LINE));
        set_time(&mut items[place], us(20_000));
    });
    assert_eq!(found, Some(ViolationKind::TimeRanBack { before: us(20_100) }));
}

#[test]
fn no_packet_leaves_a_line_early_or_late() {
    let due = us(22_180);
    let early = after(|items| shift(items, left(4, LINE), us(22_179)));
    assert_eq!(early, Some(ViolationKind::LeftEarly { hop_index: LINE, due }));
    let late = after(|items| shift(items, left(4, LINE), us(22_181)));
    assert_eq!(late, Some(ViolationKind::LeftLate { hop_index: LINE, due }));
}

#[test]
fn no_packet_leaves_a_delay_early_or_late() {
    let due = us(31_140);
    let early = after(|items| shift(items, left(3, DELAY), us(31_139)));
    assert_eq!(early, Some(ViolationKind::LeftEarly { hop_index: DELAY, due }));
    // The read then precedes the packet, and is reported first.
    let mut items = good();
    shift(&mut items, left(3, DELAY), us(31_141));
    let late = ViolationKind::LeftLate { hop_index: DELAY, due };
    assert!(all_breaches(&world(), &items).contains(&late));
}

#[test]
fn no_packet_is_in_two_places() {
    assert_eq!(
        after(|items| repeat(items, entered(3, LINE))),
        Some(ViolationKind::IsElsewhere { hop_index: LINE })
    );
    assert_eq!(
        after(|items| repeat(items, left(3, LINE))),
        Some(ViolationKind::IsElsewhere { hop_index: LINE })
    );
    let arrived = PacketEvent::Received { host: SERVER, packet: p(3), tcp: TcpBits::default() };
    assert_eq!(after(|items| repeat(items, arrived)), Some(ViolationKind::AlreadyGone));
    let departed = |items: &mut Vec<RecordItem>| {
        let place = step(items, entered(3, LINE)) - 1;
        items.insert(place, items[place]);
    };
    assert_eq!(after(departed), Some(ViolationKind::NeverSent));
    let dropped = PacketEvent::Dropped { hop_index: LINE, packet: p(6) };
    // Of the two violations, the first is not detected at once.
    assert_eq!(after(|items| repeat(items, dropped)), Some(ViolationKind::DropMismatch));
    let mut items = good();
    repeat(&mut items, dropped);
    assert!(all_breaches(&world(), &items).contains(&ViolationKind::AlreadyGone));
}

#[test]
fn no_packet_appears_without_being_sent() {
    let at = |items: &mut Vec<RecordItem>, movement| {
        let place = step(items, left(9, LINE));
        items.insert(place, RecordItem::PacketItem { at: us(301_040), movement });
    };
    let departed = PacketEvent::Sent {
        host: CLIENT,
        flow: FlowId(0),
        packet: p(10),
        seq: SeqNum(3_101),
        len: 1_000,
        size: 1_040,
        ecn: Ecn::NotEct,
        tcp: TcpBits::default(),
    };
    assert_eq!(after(|items| at(items, departed)), Some(ViolationKind::NeverSent));
    assert_eq!(after(|items| at(items, entered(10, LINE))), Some(ViolationKind::UnknownPacket));
    assert_eq!(after(|items| at(items, left(10, LINE))), Some(ViolationKind::UnknownPacket));
    let arrived = PacketEvent::Received { host: SERVER, packet: p(10), tcp: TcpBits::default() };
    assert_eq!(after(|items| at(items, arrived)), Some(ViolationKind::UnknownPacket));
    let elsewhere = PacketEvent::Accepted { hop_index: ElementId(3), packet: p(9) };
    assert_eq!(
        after(|items| at(items, elsewhere)),
        Some(ViolationKind::NoSuchElement { hop_index: ElementId(3) })
    );
}

#[test]
fn packets_are_numbered_without_gaps() {
    let found = after(|items| {
        for item in items {
            let RecordItem::PacketItem { movement, .. } = item else { continue };
            match movement {
                PacketEvent::Sent { packet, .. }
                | PacketEvent::Accepted { packet, .. }
                | PacketEvent::Forwarded { packet, .. }
                | PacketEvent::Received { packet, .. }
                    if packet.0 >= 9 =>
                {
                    packet.0 += 1;
                }
                _ => {}
            }
        }
    });
    assert_eq!(found, Some(ViolationKind::WrongNumber { expected: p(9) }));
}

#[test]
fn no_packet_vanishes_between_elements() {
    assert_eq!(after(|items| remove(items, entered(3, DELAY))), Some(ViolationKind::Vanished));
    let mut items = good();
    remove(
        &mut items,
        PacketEvent::Received { host: SERVER, packet: p(3), tcp: TcpBits::default() },
    );
    assert!(all_breaches(&world(), &items).contains(&ViolationKind::Vanished));
    let dropped = PacketEvent::Dropped { hop_index: LINE, packet: p(6) };
    // The event of the drop precedes the next instant.
    assert_eq!(after(|items| remove(items, dropped)), Some(ViolationKind::DropMismatch));
}

#[test]
fn an_overdue_packet_is_found_even_if_it_never_leaves() {
    let found = after(|items| {
        let place = step(items, left(9, LINE));
        items.truncate(place);
        let mut last = items[place - 1];
        set_time(&mut last, us(400_000));
        let RecordItem::PacketItem { .. } = last else { unreachable!() };
        let event = Event::Timer(Purpose::DelayedAck);
        let who = EventSource { host: SERVER, flow: FlowId(0) };
        items.push(RecordItem::Event { at: us(400_000), who, event, state: None });
    });
    assert_eq!(found, Some(ViolationKind::Overdue { hop_index: LINE, due: us(301_040) }));
}

#[test]
fn no_element_is_skipped() {
    // From the line to the server without the delay.
    let skips = after(|items| {
        let place = step(items, entered(3, DELAY));
        items.truncate(place);
        let movement =
            PacketEvent::Received { host: SERVER, packet: p(3), tcp: TcpBits::default() };
        items.push(RecordItem::PacketItem { at: us(21_140), movement });
    });
    assert_eq!(skips, Some(ViolationKind::NotAtTheEnd { host: SERVER }));
    // Into the delay first.
    let swaps = after(|items| replace(items, entered(3, LINE), entered(3, DELAY)));
    assert_eq!(swaps, Some(ViolationKind::IsElsewhere { hop_index: DELAY }));
    // On the reverse route.
    let strays = after(|items| replace(items, entered(3, LINE), entered(3, BACK)));
    assert_eq!(strays, Some(ViolationKind::IsElsewhere { hop_index: BACK }));
}

#[test]
fn packets_arrive_at_the_end_of_their_route() {
    let arrived =
        |host: HostId| PacketEvent::Received { host, packet: p(3), tcp: TcpBits::default() };
    let found = after(|items| replace(items, arrived(SERVER), arrived(CLIENT)));
    assert_eq!(found, Some(ViolationKind::NotAtTheEnd { host: CLIENT }));
}

#[test]
fn no_packet_overtakes_another() {
    let found = after(|items| {
        let (a, b) = (left(3, DELAY), left(4, DELAY));
        replace(items, a, left(99, DELAY));
        replace(items, b, a);
        replace(items, left(99, DELAY), b);
    });
    assert_eq!(found, Some(ViolationKind::Overtook { hop_index: DELAY, before: p(3) }));
}

#[test]
fn a_queue_does_not_exceed_its_capacity() {
    let found = after(|items| {
        let dropped = PacketEvent::Dropped { hop_index: LINE, packet: p(6) };
        replace(items, dropped, entered(6, LINE));
    });
    assert_eq!(found, Some(ViolationKind::NoRoom { hop_index: LINE }));
}

#[test]
fn no_packet_is_dropped_without_a_reason() {
    let lost = |n, hop_index| PacketEvent::Dropped { hop_index, packet: p(n) };
    // The second segment fits.
    let at_the_line = after(|items| replace(items, entered(4, LINE), lost(4, LINE)));
    assert_eq!(at_the_line, Some(ViolationKind::LostForNothing { hop_index: LINE }));
    let at_the_delay = after(|items| replace(items, entered(4, DELAY), lost(4, DELAY)));
    assert_eq!(at_the_delay, Some(ViolationKind::LostForNothing { hop_index: DELAY }));
    let inside = after(|items| replace(items, left(4, DELAY), lost(4, DELAY)));
    assert_eq!(inside, Some(ViolationKind::LostForNothing { hop_index: DELAY }));
}

#[test]
fn a_faster_line_than_declared_is_found() {
    // The record is one of 8 Mbit/s.
    let mut slower = world();
    let rate = units::Rate::from_bits_per_second(7_999_999).unwrap();
    slower.hops[0] = ElementInvariants::link(rate, check::QueueCapacity::Packets(3));
    // Whole nanoseconds cannot distinguish them: 480 bits take 60,000.0075 ns, and the 25,280 bits
    // of the longest busy period 3,160,000.395 ns.
    assert_eq!(first_breach(&slower, &good()), None);
    let rate = units::Rate::from_bits_per_second(7_999_000).unwrap();
    slower.hops[0] = ElementInvariants::link(rate, check::QueueCapacity::Packets(3));
    // 60 bytes take 60,007.5 ns.
    let due = units::Instant::from_nanos(60_007);
    assert_eq!(
        first_breach(&slower, &good()),
        Some(ViolationKind::LeftEarly { hop_index: LINE, due })
    );
}

#[test]
fn headers_and_packets_have_a_possible_size() {
    let resized = |by: i64| {
        after(|items| {
            let place = step(items, entered(3, LINE)) - 1;
            let RecordItem::PacketItem { movement: PacketEvent::Sent { size, .. }, .. } =
                &mut items[place]
            else {
                unreachable!()
            };
            *size = size.checked_add_signed(by as i32).unwrap();
        })
    };
    let bad = |size| Some(ViolationKind::BadSize { size: Bytes(size), payload: Bytes(1_000) });
    // 20 bytes of IP; TCP has 20 to 60 in words of four.
    assert_eq!(resized(-4), bad(1_036));
    assert_eq!(resized(2), bad(1_042));
    assert_eq!(resized(44), bad(1_084));
    // Possible, but then it takes 4 us longer.
    let due = us(21_144);
    assert_eq!(resized(4), Some(ViolationKind::LeftEarly { hop_index: LINE, due }));
    let mut narrow = world();
    narrow.hosts[0].mtu = Bytes(1_039);
    assert_eq!(first_breach(&narrow, &good()), bad(1_040));
}

/// The event of a drop on the route to `to`.
fn loss_reported(at: units::Instant, to: HostId, element: u16, bytes: u32) -> RecordItem {
    let who = EventSource { host: to, flow: FlowId(0) };
    RecordItem::Event { at, who, event: Event::Dropped { element, bytes }, state: None }
}

/// The world with other invariants for the delay of the reverse route.
fn back_by(law: ElementInvariants) -> WorldModel {
    let mut world = world();
    world.hops[2] = law;
    world
}

/// The record up to the time when the ACK with number 7 leaves the server.
fn until_the_first_ack() -> Vec<RecordItem> {
    let mut items = good();
    items.truncate(step(&items, entered(7, BACK)));
    items
}

#[test]
fn packets_are_duplicated_only_where_allowed_and_once() {
    let doubles =
        ElementInvariants { copies: true, ..ElementInvariants::delay(Duration::from_millis(10)) };
    let copied = |packet, copy| RecordItem::PacketItem {
        at: us(32_180),
        movement: PacketEvent::Duplicated { hop_index: BACK, packet: p(packet), copy: p(copy) },
    };
    let at = |movement| RecordItem::PacketItem { at: us(32_180), movement };
    let mut items = until_the_first_ack();
    items.extend([at(entered(7, BACK)), copied(7, 8), at(entered(8, BACK))]);
    assert_eq!(first_breach(&back_by(doubles), &items), None);
    assert_eq!(
        first_breach(&world(), &items),
        Some(ViolationKind::UnexpectedDuplicate { hop_index: BACK })
    );
    let mut twice = items.clone();
    twice.extend([copied(8, 9), at(entered(9, BACK))]);
    assert_eq!(
        first_breach(&back_by(doubles), &twice),
        Some(ViolationKind::UnexpectedDuplicate { hop_index: BACK })
    );
    let mut misnamed = until_the_first_ack();
    misnamed.extend([at(entered(7, BACK)), copied(7, 9), at(entered(9, BACK))]);
    let expected = Some(ViolationKind::WrongNumber { expected: p(8) });
    assert_eq!(first_breach(&back_by(doubles), &misnamed), expected);
    // A copy must have a position as well.
    let mut lost = items[..items.len() - 1].to_vec();
    let event = Event::Timer(Purpose::DelayedAck);
    let who = EventSource { host: SERVER, flow: FlowId(0) };
    lost.push(RecordItem::Event { at: us(32_181), who, event, state: None });
    assert_eq!(first_breach(&back_by(doubles), &lost), Some(ViolationKind::Vanished));
}

#[test]
fn a_corrupted_packet_does_not_reach_the_stack() {
    let corrupts =
        ElementInvariants { damages: true, ..ElementInvariants::delay(Duration::from_millis(10)) };
    let mut items = good();
    let place = step(&items, entered(7, BACK)) + 1;
    let movement = PacketEvent::Corrupted { hop_index: BACK, packet: p(7) };
    items.insert(place, RecordItem::PacketItem { at: us(32_180), movement });
    assert_eq!(
        first_breach(&world(), &items),
        Some(ViolationKind::UnexpectedCorruption { hop_index: BACK })
    );
    // The ACK is corrupted, and yet its number is accepted.
    let found = first_breach(&back_by(corrupts), &items);
    assert_eq!(
        found,
        Some(ViolationKind::AckTooSoon { una: units::Offset(2_000), reported: units::Offset(0) })
    );
    // Corrupted payload cannot be read.
    let mut items = good();
    let place = step(&items, entered(3, DELAY)) + 1;
    let movement = PacketEvent::Corrupted { hop_index: DELAY, packet: p(3) };
    items.insert(place, RecordItem::PacketItem { at: us(21_140), movement });
    let mut world = world();
    world.hops[1] = corrupts;
    let found = first_breach(&world, &items);
    let expected =
        ViolationKind::ReadTooSoon { upto: units::Offset(1_000), arrived: units::Offset(0) };
    assert_eq!(found, Some(expected));
}

#[test]
fn an_ack_filter_drops_pure_acks_only() {
    let thins = ElementInvariants::thin(Duration::from_millis(10));
    let lost = |n, at| RecordItem::PacketItem {
        at,
        movement: PacketEvent::Dropped { hop_index: BACK, packet: p(n) },
    };
    let mut items = until_the_first_ack();
    items.extend([lost(7, us(32_180)), loss_reported(us(32_180), CLIENT, 0, 40)]);
    assert_eq!(first_breach(&back_by(thins), &items), None);
    // The network can distinguish an empty probe from an ACK only by its old sequence number.
    let probe = SentKind::Probe;
    alter(&mut items, SERVER, sent(0, SentKind::Ack), |event, _| {
        *event = Event::Sent { at: units::Offset(0), len: 0, kind: probe };
    });
    let place = reported(&items, SERVER, sent(0, probe));
    if let RecordItem::PacketItem { movement: PacketEvent::Sent { seq, .. }, .. } =
        &mut items[place + 1]
    {
        *seq = SeqNum(5_000);
    }
    let mut due = items[place];
    if let RecordItem::Event { event, state, .. } = &mut due {
        (*event, *state) = (Event::Timer(Purpose::Keepalive), None);
    }
    items.insert(place, due);
    assert_eq!(first_breach(&back_by(thins), &items), None);
    let mut items = good();
    items.truncate(step(&items, entered(1, BACK)));
    items.extend([lost(1, us(10_060)), loss_reported(us(10_060), CLIENT, 0, 60)]);
    // A SYN-ACK is no pure ACK.
    let expected = Some(ViolationKind::LostForNothing { hop_index: BACK });
    assert_eq!(first_breach(&back_by(thins), &items), expected);
    assert_eq!(first_breach(&back_by(ElementInvariants::loss()), &items), None);
}

#[test]
fn an_outage_drops_all_packets_and_no_others_are_dropped() {
    let outage = |from, until| {
        ElementInvariants::outage(Outage { from: us(from), until: us(until), period: None })
    };
    let mut items = until_the_first_ack();
    let kept = items.len();
    items.push(RecordItem::PacketItem {
        at: us(32_180),
        movement: PacketEvent::Dropped { hop_index: BACK, packet: p(7) },
    });
    items.push(loss_reported(us(32_180), CLIENT, 0, 40));
    // The SYN-ACK passed before the outage and is irrelevant here.
    let hold = ElementInvariants::delay(Duration::from_millis(10));
    let law = |from, until| back_by(ElementInvariants { hold: hold.hold, ..outage(from, until) });
    assert_eq!(first_breach(&law(32_180, 32_181), &items), None);
    let expected = Some(ViolationKind::LostForNothing { hop_index: BACK });
    assert_eq!(first_breach(&law(32_181, 32_182), &items), expected);
    assert_eq!(first_breach(&law(32_000, 32_180), &items), expected);
    items.truncate(kept);
    items.push(RecordItem::PacketItem { at: us(32_180), movement: entered(7, BACK) });
    let expected = Some(ViolationKind::PassedDuringOutage { hop_index: BACK });
    assert_eq!(first_breach(&law(32_180, 32_181), &items), expected);
}

#[test]
fn an_inconsistent_world_is_rejected() {
    let refused = |change: fn(&mut WorldModel)| {
        let mut world = world();
        change(&mut world);
        check::Verifier::new(&world).err()
    };
    assert_eq!(refused(|_| {}), None);
    let route = |route| Some(WorldError::Direction { route });
    assert_eq!(refused(|world| world.routes[1].to = HostId(2)), route(1));
    assert_eq!(refused(|world| world.routes[0].hops[1] = ElementId(3)), route(0));
    let flow = Some(WorldError::Flow { flow: 0 });
    assert_eq!(refused(|world| world.flows[0].routes = [0, 0]), flow);
    assert_eq!(refused(|world| world.flows[0].routes = [0, 2]), flow);
    assert_eq!(
        refused(|world| world.routes.iter_mut().for_each(|route| route.to = route.from)),
        flow
    );
}
