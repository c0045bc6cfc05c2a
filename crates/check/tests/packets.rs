//! Packets that do what packets cannot.

mod common;

use ackclock_check as check;
use check::law::{Law, Outage};
use check::world::World;
use check::{Breach, Item, Summary, WorldError};
use common::{
    BACK, CLIENT, DELAY, LINE, SERVER, after, all_breaches, alter, first_breach, good, sent,
    set_time, step, told, us, world,
};
use record::{Event, Movement, PacketNumber, Purpose, SentKind, StationId, Who};
use units::{Bytes, Duration, FlowId, HostId, SeqNum};

const fn p(n: u64) -> PacketNumber {
    PacketNumber(n)
}

fn left(n: u64, station: StationId) -> Movement {
    Movement::Left { station, packet: p(n) }
}

fn entered(n: u64, station: StationId) -> Movement {
    Movement::Entered { station, packet: p(n) }
}

/// Moves the step `what` and the one behind it to another moment, and to their place in time.
fn shift(items: &mut Vec<Item>, what: Movement, to: units::Instant) {
    let from = step(items, what);
    let mut pair: Vec<_> = items.drain(from..from + 2).collect();
    pair.iter_mut().for_each(|item| set_time(item, to));
    let place = items.partition_point(|item| item.at() <= to);
    items.splice(place..place, pair);
}

fn replace(items: &mut [Item], old: Movement, new: Movement) {
    let place = step(items, old);
    let Item::Moved { movement, .. } = &mut items[place] else { unreachable!() };
    *movement = new;
}

fn remove(items: &mut Vec<Item>, what: Movement) {
    items.remove(step(items, what));
}

fn repeat(items: &mut Vec<Item>, what: Movement) {
    let place = step(items, what);
    items.insert(place, items[place]);
}

#[test]
fn nothing_is_wrong_with_the_record_made_by_hand() {
    let summary = check::verify(&world(), &good()).unwrap();
    let Summary { departed, arrived, lost, on_the_road, .. } = summary;
    assert_eq!((departed, arrived, lost, on_the_road), (13, 12, 1, 0));
    let [client, server] = summary.flows[0];
    assert_eq!(
        (client.written, client.sent, client.acknowledged),
        (Bytes(4_000), Bytes(4_000), Bytes(4_000))
    );
    assert_eq!(
        (client.sent_again, server.received, server.read),
        (Bytes(1_000), Bytes(4_000), Bytes(4_000))
    );
}

#[test]
fn a_record_may_end_at_any_item_of_the_same_moment() {
    // Up to the moment at which the first three segments have reached the server.
    let mut items = good();
    items.retain(|item| item.at() <= us(33_220));
    let summary = check::verify(&world(), &items).unwrap();
    assert_eq!((summary.departed, summary.on_the_road), (8, 1));
}

#[test]
fn time_does_not_run_back() {
    let found = after(|items| {
        let place = step(items, left(3, LINE));
        set_time(&mut items[place], us(20_000));
    });
    assert_eq!(found, Some(Breach::TimeRanBack { before: us(20_100) }));
}

#[test]
fn no_packet_leaves_a_line_early_or_late() {
    let due = us(22_180);
    let early = after(|items| shift(items, left(4, LINE), us(22_179)));
    assert_eq!(early, Some(Breach::LeftEarly { station: LINE, due }));
    let late = after(|items| shift(items, left(4, LINE), us(22_181)));
    assert_eq!(late, Some(Breach::LeftLate { station: LINE, due }));
}

#[test]
fn no_packet_leaves_a_delay_early_or_late() {
    let due = us(31_140);
    let early = after(|items| shift(items, left(3, DELAY), us(31_139)));
    assert_eq!(early, Some(Breach::LeftEarly { station: DELAY, due }));
    // The read comes before the packet then, which is found first.
    let mut items = good();
    shift(&mut items, left(3, DELAY), us(31_141));
    let late = Breach::LeftLate { station: DELAY, due };
    assert!(all_breaches(&world(), &items).contains(&late));
}

#[test]
fn a_packet_is_doubled_nowhere() {
    assert_eq!(
        after(|items| repeat(items, entered(3, LINE))),
        Some(Breach::IsElsewhere { station: LINE })
    );
    assert_eq!(
        after(|items| repeat(items, left(3, LINE))),
        Some(Breach::IsElsewhere { station: LINE })
    );
    let arrived = Movement::Arrived { host: SERVER, packet: p(3) };
    assert_eq!(after(|items| repeat(items, arrived)), Some(Breach::IsGone));
    let departed = |items: &mut Vec<Item>| {
        let place = step(items, entered(3, LINE)) - 1;
        items.insert(place, items[place]);
    };
    assert_eq!(after(departed), Some(Breach::NeverSent));
    let dropped = Movement::Dropped { station: LINE, packet: p(6) };
    // Of the two, the first is not told at once.
    assert_eq!(after(|items| repeat(items, dropped)), Some(Breach::UntrueLoss));
    let mut items = good();
    repeat(&mut items, dropped);
    assert!(all_breaches(&world(), &items).contains(&Breach::IsGone));
}

#[test]
fn a_packet_is_invented_nowhere() {
    let at = |items: &mut Vec<Item>, movement| {
        let place = step(items, left(9, LINE));
        items.insert(place, Item::Moved { at: us(301_040), movement });
    };
    let departed = Movement::Departed {
        host: CLIENT,
        flow: FlowId(0),
        packet: p(10),
        seq: SeqNum(3_101),
        len: 1_000,
        size: 1_040,
        capable: false,
    };
    assert_eq!(after(|items| at(items, departed)), Some(Breach::NeverSent));
    assert_eq!(after(|items| at(items, entered(10, LINE))), Some(Breach::NeverDeparted));
    assert_eq!(after(|items| at(items, left(10, LINE))), Some(Breach::NeverDeparted));
    let arrived = Movement::Arrived { host: SERVER, packet: p(10) };
    assert_eq!(after(|items| at(items, arrived)), Some(Breach::NeverDeparted));
    let elsewhere = Movement::Entered { station: StationId(3), packet: p(9) };
    assert_eq!(
        after(|items| at(items, elsewhere)),
        Some(Breach::NoSuchStation { station: StationId(3) })
    );
}

#[test]
fn packets_are_counted_without_a_gap() {
    let found = after(|items| {
        for item in items {
            let Item::Moved { movement, .. } = item else { continue };
            match movement {
                Movement::Departed { packet, .. }
                | Movement::Entered { packet, .. }
                | Movement::Left { packet, .. }
                | Movement::Arrived { packet, .. }
                    if packet.0 >= 9 =>
                {
                    packet.0 += 1;
                }
                _ => {}
            }
        }
    });
    assert_eq!(found, Some(Breach::WrongNumber { expected: p(9) }));
}

#[test]
fn nothing_vanishes_between_two_places() {
    assert_eq!(after(|items| remove(items, entered(3, DELAY))), Some(Breach::Vanished));
    let mut items = good();
    remove(&mut items, Movement::Arrived { host: SERVER, packet: p(3) });
    assert!(all_breaches(&world(), &items).contains(&Breach::Vanished));
    let dropped = Movement::Dropped { station: LINE, packet: p(6) };
    // The event of the loss comes before time moves on.
    assert_eq!(after(|items| remove(items, dropped)), Some(Breach::UntrueLoss));
}

#[test]
fn what_is_held_too_long_is_found_even_if_it_never_leaves() {
    let found = after(|items| {
        let place = step(items, left(9, LINE));
        items.truncate(place);
        let mut last = items[place - 1];
        set_time(&mut last, us(400_000));
        let Item::Moved { .. } = last else { unreachable!() };
        let event = Event::Timer(Purpose::DelayedAck);
        let who = Who { host: SERVER, flow: FlowId(0) };
        items.push(Item::Event { at: us(400_000), who, event, state: None });
    });
    assert_eq!(found, Some(Breach::Overdue { station: LINE, due: us(301_040) }));
}

#[test]
fn no_station_is_skipped() {
    // From the line to the server without the delay.
    let skips = after(|items| {
        let place = step(items, entered(3, DELAY));
        items.truncate(place);
        let movement = Movement::Arrived { host: SERVER, packet: p(3) };
        items.push(Item::Moved { at: us(21_140), movement });
    });
    assert_eq!(skips, Some(Breach::NotAtTheEnd { host: SERVER }));
    // Into the delay first.
    let swaps = after(|items| replace(items, entered(3, LINE), entered(3, DELAY)));
    assert_eq!(swaps, Some(Breach::IsElsewhere { station: DELAY }));
    // On the road of the other way.
    let strays = after(|items| replace(items, entered(3, LINE), entered(3, BACK)));
    assert_eq!(strays, Some(Breach::IsElsewhere { station: BACK }));
}

#[test]
fn packets_arrive_where_their_road_ends() {
    let arrived = |host: HostId| Movement::Arrived { host, packet: p(3) };
    let found = after(|items| replace(items, arrived(SERVER), arrived(CLIENT)));
    assert_eq!(found, Some(Breach::NotAtTheEnd { host: CLIENT }));
}

#[test]
fn no_packet_overtakes_another() {
    let found = after(|items| {
        let (a, b) = (left(3, DELAY), left(4, DELAY));
        replace(items, a, left(99, DELAY));
        replace(items, b, a);
        replace(items, left(99, DELAY), b);
    });
    assert_eq!(found, Some(Breach::Overtook { station: DELAY, before: p(3) }));
}

#[test]
fn a_queue_takes_no_more_than_it_has_room_for() {
    let found = after(|items| {
        let dropped = Movement::Dropped { station: LINE, packet: p(6) };
        replace(items, dropped, entered(6, LINE));
    });
    assert_eq!(found, Some(Breach::NoRoom { station: LINE }));
}

#[test]
fn nothing_is_lost_without_a_reason() {
    let lost = |n, station| Movement::Dropped { station, packet: p(n) };
    // The second segment finds room.
    let at_the_line = after(|items| replace(items, entered(4, LINE), lost(4, LINE)));
    assert_eq!(at_the_line, Some(Breach::LostForNothing { station: LINE }));
    let at_the_delay = after(|items| replace(items, entered(4, DELAY), lost(4, DELAY)));
    assert_eq!(at_the_delay, Some(Breach::LostForNothing { station: DELAY }));
    let inside = after(|items| replace(items, left(4, DELAY), lost(4, DELAY)));
    assert_eq!(inside, Some(Breach::LostForNothing { station: DELAY }));
}

#[test]
fn a_faster_line_than_declared_is_found() {
    // The record is one of 8 Mbit/s.
    let mut slower = world();
    let rate = units::Rate::from_bits_per_second(7_999_999).unwrap();
    slower.stations[0] = Law::link(rate, check::Room::Packets(3));
    // Whole nanoseconds are not enough to tell: 480 bits take 60,000.0075 ns, and the 25,280 bits of
    // the longest busy period 3,160,000.395 ns.
    assert_eq!(first_breach(&slower, &good()), None);
    let rate = units::Rate::from_bits_per_second(7_999_000).unwrap();
    slower.stations[0] = Law::link(rate, check::Room::Packets(3));
    // 60 bytes take 60,007.5 ns.
    let due = units::Instant::from_nanos(60_007);
    assert_eq!(first_breach(&slower, &good()), Some(Breach::LeftEarly { station: LINE, due }));
}

#[test]
fn headers_and_packets_have_a_possible_size() {
    let resized = |by: i64| {
        after(|items| {
            let place = step(items, entered(3, LINE)) - 1;
            let Item::Moved { movement: Movement::Departed { size, .. }, .. } = &mut items[place]
            else {
                unreachable!()
            };
            *size = size.checked_add_signed(by as i32).unwrap();
        })
    };
    let bad = |size| Some(Breach::BadSize { size: Bytes(size), payload: Bytes(1_000) });
    // 20 bytes of IP; TCP has 20 to 60 in words of four.
    assert_eq!(resized(-4), bad(1_036));
    assert_eq!(resized(2), bad(1_042));
    assert_eq!(resized(44), bad(1_084));
    // Possible, but then it takes 4 us longer.
    let due = us(21_144);
    assert_eq!(resized(4), Some(Breach::LeftEarly { station: LINE, due }));
    let mut narrow = world();
    narrow.hosts[0].mtu = Bytes(1_039);
    assert_eq!(first_breach(&narrow, &good()), bad(1_040));
}

/// The event of a loss on the way to `to`.
fn loss_told(at: units::Instant, to: HostId, element: u16, bytes: u32) -> Item {
    let who = Who { host: to, flow: FlowId(0) };
    Item::Event { at, who, event: Event::Dropped { element, bytes }, state: None }
}

/// The world with another law in the place of the delay of the way back.
fn back_by(law: Law) -> World {
    let mut world = world();
    world.stations[2] = law;
    world
}

/// The record up to the moment when the ACK with number 7 leaves the server.
fn until_the_first_ack() -> Vec<Item> {
    let mut items = good();
    items.truncate(step(&items, entered(7, BACK)));
    items
}

#[test]
fn copies_are_made_only_where_they_may_and_once() {
    let doubles = Law { copies: true, ..Law::delay(Duration::from_millis(10)) };
    let copied = |packet, copy| Item::Moved {
        at: us(32_180),
        movement: Movement::Copied { station: BACK, packet: p(packet), copy: p(copy) },
    };
    let at = |movement| Item::Moved { at: us(32_180), movement };
    let mut items = until_the_first_ack();
    items.extend([at(entered(7, BACK)), copied(7, 8), at(entered(8, BACK))]);
    assert_eq!(first_breach(&back_by(doubles), &items), None);
    assert_eq!(first_breach(&world(), &items), Some(Breach::MayNotCopy { station: BACK }));
    let mut twice = items.clone();
    twice.extend([copied(8, 9), at(entered(9, BACK))]);
    assert_eq!(first_breach(&back_by(doubles), &twice), Some(Breach::MayNotCopy { station: BACK }));
    let mut misnamed = until_the_first_ack();
    misnamed.extend([at(entered(7, BACK)), copied(7, 9), at(entered(9, BACK))]);
    let expected = Some(Breach::WrongNumber { expected: p(8) });
    assert_eq!(first_breach(&back_by(doubles), &misnamed), expected);
    // A copy must be somewhere as well.
    let mut lost = items[..items.len() - 1].to_vec();
    let event = Event::Timer(Purpose::DelayedAck);
    let who = Who { host: SERVER, flow: FlowId(0) };
    lost.push(Item::Event { at: us(32_181), who, event, state: None });
    assert_eq!(first_breach(&back_by(doubles), &lost), Some(Breach::Vanished));
}

#[test]
fn what_is_damaged_is_no_news_to_the_stack() {
    let corrupts = Law { damages: true, ..Law::delay(Duration::from_millis(10)) };
    let mut items = good();
    let place = step(&items, entered(7, BACK)) + 1;
    let movement = Movement::Damaged { station: BACK, packet: p(7) };
    items.insert(place, Item::Moved { at: us(32_180), movement });
    assert_eq!(first_breach(&world(), &items), Some(Breach::MayNotDamage { station: BACK }));
    // The ACK is damaged, and yet its number is believed.
    let found = first_breach(&back_by(corrupts), &items);
    assert_eq!(
        found,
        Some(Breach::AckTooSoon { una: units::Offset(2_000), told: units::Offset(0) })
    );
    // Damaged payload cannot be read.
    let mut items = good();
    let place = step(&items, entered(3, DELAY)) + 1;
    let movement = Movement::Damaged { station: DELAY, packet: p(3) };
    items.insert(place, Item::Moved { at: us(21_140), movement });
    let mut world = world();
    world.stations[1] = corrupts;
    let found = first_breach(&world, &items);
    let expected = Breach::ReadTooSoon { upto: units::Offset(1_000), arrived: units::Offset(0) };
    assert_eq!(found, Some(expected));
}

#[test]
fn losses_of_acks_are_for_bare_acks() {
    let thins = Law::thin(Duration::from_millis(10));
    let lost =
        |n, at| Item::Moved { at, movement: Movement::Dropped { station: BACK, packet: p(n) } };
    let mut items = until_the_first_ack();
    items.extend([lost(7, us(32_180)), loss_told(us(32_180), CLIENT, 0, 40)]);
    assert_eq!(first_breach(&back_by(thins), &items), None);
    // Nobody on the way can tell an empty probe from an ACK but by a number that is out of date.
    let probe = SentKind::Probe;
    alter(&mut items, SERVER, sent(0, SentKind::Ack), |event, _| {
        *event = Event::Sent { at: units::Offset(0), len: 0, kind: probe };
    });
    let place = told(&items, SERVER, sent(0, probe));
    if let Item::Moved { movement: Movement::Departed { seq, .. }, .. } = &mut items[place + 1] {
        *seq = SeqNum(5_000);
    }
    let mut due = items[place];
    if let Item::Event { event, state, .. } = &mut due {
        (*event, *state) = (Event::Timer(Purpose::Keepalive), None);
    }
    items.insert(place, due);
    assert_eq!(first_breach(&back_by(thins), &items), None);
    let mut items = good();
    items.truncate(step(&items, entered(1, BACK)));
    items.extend([lost(1, us(10_060)), loss_told(us(10_060), CLIENT, 0, 60)]);
    // A SYN-ACK is more than an ACK.
    let expected = Some(Breach::LostForNothing { station: BACK });
    assert_eq!(first_breach(&back_by(thins), &items), expected);
    assert_eq!(first_breach(&back_by(Law::loss()), &items), None);
}

#[test]
fn nothing_passes_an_outage_and_nothing_else_is_lost() {
    let outage = |from, until| Law::outage(Outage { from: us(from), until: us(until) });
    let mut items = until_the_first_ack();
    let kept = items.len();
    items.push(Item::Moved {
        at: us(32_180),
        movement: Movement::Dropped { station: BACK, packet: p(7) },
    });
    items.push(loss_told(us(32_180), CLIENT, 0, 40));
    // The SYN-ACK passed at once; it is not part of this story.
    let hold = Law::delay(Duration::from_millis(10));
    let law = |from, until| back_by(Law { hold: hold.hold, ..outage(from, until) });
    assert_eq!(first_breach(&law(32_180, 32_181), &items), None);
    let expected = Some(Breach::LostForNothing { station: BACK });
    assert_eq!(first_breach(&law(32_181, 32_182), &items), expected);
    assert_eq!(first_breach(&law(32_000, 32_180), &items), expected);
    items.truncate(kept);
    items.push(Item::Moved { at: us(32_180), movement: entered(7, BACK) });
    let expected = Some(Breach::PassedAnOutage { station: BACK });
    assert_eq!(first_breach(&law(32_180, 32_181), &items), expected);
}

#[test]
fn a_world_that_makes_no_sense_is_refused() {
    let refused = |change: fn(&mut World)| {
        let mut world = world();
        change(&mut world);
        check::Verifier::new(&world).err()
    };
    assert_eq!(refused(|_| {}), None);
    let road = |road| Some(WorldError::Road { road });
    assert_eq!(refused(|world| world.roads[1].to = HostId(2)), road(1));
    assert_eq!(refused(|world| world.roads[0].stations[1] = StationId(3)), road(0));
    let flow = Some(WorldError::Flow { flow: 0 });
    assert_eq!(refused(|world| world.flows[0].roads = [0, 0]), flow);
    assert_eq!(refused(|world| world.flows[0].roads = [0, 2]), flow);
    assert_eq!(refused(|world| world.roads.iter_mut().for_each(|road| road.to = road.from)), flow);
}
