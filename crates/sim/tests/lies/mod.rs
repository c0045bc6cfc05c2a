//! Ways to falsify a record, each of which the verifier must notice.

use check::Item;
use record::{Cause, Event, Movement, PacketNumber, SentKind};
use units::{Bytes, HostId, Instant};

/// A way to falsify a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lie {
    /// A packet leaves a station earlier, and comes to the next place then.
    Early,
    /// The same, later.
    Late,
    /// A step, or an event that counts something, is told twice.
    Twice,
    /// It is not told at all.
    Never,
    /// A packet departs that nobody sent.
    Invented,
    /// A packet arrives that is somewhere else, or nowhere.
    OutOfThinAir,
    /// A packet is lost where there was room, and all that follows knows of it.
    LostForNothing,
    /// Two packets change places in a station and go on under each other's number.
    Swapped,
    /// A packet skips the place where it was next.
    Skipped,
    /// A packet is larger than it was.
    Larger,
    /// A packet carries other bytes.
    OtherBytes,
    /// It departs from the other host, or arrives there.
    OtherHost,
    /// One byte more leaves, is read or is acknowledged.
    OneMore,
    /// Old bytes are told to be new, new ones to be old.
    OtherKind,
    /// The state says another thing.
    OtherState,
    /// The window of a recovery was narrower than what left in it.
    Narrow,
}

pub(crate) const LIES: [Lie; 16] = [
    Lie::Early,
    Lie::Late,
    Lie::Twice,
    Lie::Never,
    Lie::Invented,
    Lie::OutOfThinAir,
    Lie::LostForNothing,
    Lie::Swapped,
    Lie::Skipped,
    Lie::Larger,
    Lie::OtherBytes,
    Lie::OtherHost,
    Lie::OneMore,
    Lie::OtherKind,
    Lie::OtherState,
    Lie::Narrow,
];

fn movement(item: &Item) -> Option<Movement> {
    match item {
        Item::Moved { movement, .. } => Some(*movement),
        Item::Event { .. } => None,
    }
}

fn packet_of(movement: &mut Movement) -> &mut PacketNumber {
    match movement {
        Movement::Departed { packet, .. }
        | Movement::Entered { packet, .. }
        | Movement::Dropped { packet, .. }
        | Movement::Copied { packet, .. }
        | Movement::Damaged { packet, .. }
        | Movement::Left { packet, .. }
        | Movement::Marked { packet, .. }
        | Movement::Arrived { packet, .. } => packet,
    }
}

fn number(item: &Item) -> Option<PacketNumber> {
    movement(item).map(|mut movement| *packet_of(&mut movement))
}

fn set_time(item: &mut Item, to: Instant) {
    match item {
        Item::Event { at, .. } | Item::Moved { at, .. } => *at = to,
    }
}

/// Events that count something, each followed by another of its kind and end.
fn counts(items: &[Item], place: usize) -> bool {
    let Item::Event { event, who, .. } = &items[place] else { return false };
    let same_kind =
        |other: &Event| core::mem::discriminant(other) == core::mem::discriminant(event);
    let again = |item: &Item| matches!(item, Item::Event { event: e, who: w, .. } if w == who && same_kind(e));
    matches!(event, Event::Sent { .. } | Event::Acked { .. } | Event::Read { .. })
        && items[place + 1..].iter().any(again)
}

/// The places at which a lie can be told.
pub(crate) fn places(lie: Lie, items: &[Item]) -> Vec<usize> {
    let fits = |&place: &usize| {
        let item = &items[place];
        let step = movement(item);
        let kind = match item {
            Item::Event { event: Event::Sent { kind, .. }, .. } => Some(*kind),
            _ => None,
        };
        match lie {
            Lie::Early | Lie::Late => matches!(step, Some(Movement::Left { .. })),
            Lie::Twice | Lie::Never => step.is_some() || counts(items, place),
            Lie::Invented | Lie::OutOfThinAir => true,
            Lie::LostForNothing => matches!(step, Some(Movement::Entered { .. })),
            Lie::Swapped => swap_partner(items, place).is_some(),
            Lie::Skipped => {
                matches!(step, Some(Movement::Entered { .. } | Movement::Arrived { .. }))
            }
            Lie::Larger | Lie::OtherBytes => matches!(step, Some(Movement::Departed { .. })),
            Lie::OtherHost => {
                matches!(step, Some(Movement::Departed { .. } | Movement::Arrived { .. }))
            }
            Lie::OneMore => counts(items, place),
            Lie::OtherKind => matches!(kind, Some(SentKind::New | SentKind::Again(_))),
            Lie::OtherState => matches!(kind, Some(SentKind::New | SentKind::Again(_))),
            Lie::Narrow => is_in_recovery(items, place),
        }
    };
    (0..items.len()).filter(fits).collect()
}

const REPAIR: SentKind = SentKind::Again(Cause::FastRetransmit);

/// Do bytes leave in a recovery of which others left before, and are more under way than these?
fn is_in_recovery(items: &[Item], place: usize) -> bool {
    let Item::Event { who, event: Event::Sent { len, kind, .. }, state: Some(state), .. } =
        &items[place]
    else {
        return false;
    };
    let before = items[..place].iter().rev().filter_map(|item| match item {
        Item::Event { who: other, event, .. } if other == who => Some(event),
        _ => None,
    });
    let mut begun = before.filter_map(|event| match event {
        Event::Sent { kind: REPAIR, .. } => Some(true),
        Event::Window { cause: Cause::FastRetransmit | Cause::LostRetransmission, .. } => {
            Some(false)
        }
        _ => None,
    });
    matches!(*kind, SentKind::New | REPAIR)
        && state.in_recovery
        && state.pipe.get() > u64::from(*len)
        && begun.next() == Some(true)
}

/// The next packet that leaves the same station, if it is in there already.
fn swap_partner(items: &[Item], place: usize) -> Option<PacketNumber> {
    let Some(Movement::Left { station, .. }) = movement(&items[place]) else { return None };
    let leaves = |item: &Item| match movement(item) {
        Some(Movement::Left { station: s, packet }) if s == station => Some(packet),
        _ => None,
    };
    let partner = items[place + 1..].iter().find_map(leaves)?;
    let entered = Movement::Entered { station, packet: partner };
    items[..place].iter().any(|item| movement(item) == Some(entered)).then_some(partner)
}

/// Tells the lie at `place`; `amount` is not zero.
pub(crate) fn falsify(lie: Lie, items: &mut Vec<Item>, place: usize, amount: u64) {
    let at = items[place].at();
    match lie {
        Lie::Early | Lie::Late => {
            // The step, and all that the packet does at that moment.
            let mine = number(&items[place]);
            let now = |item: &Item| item.at() == at && number(item) == mine;
            let count = items[place..].iter().take_while(|item| now(item)).count();
            let mut steps: Vec<_> = items.drain(place..place + count).collect();
            let ns = at.as_nanos();
            let ns = if matches!(lie, Lie::Early) { ns - amount.min(ns) } else { ns + amount };
            let to = Instant::from_nanos(ns);
            steps.iter_mut().for_each(|step| set_time(step, to));
            let place = items.partition_point(|item| item.at() <= to);
            items.splice(place..place, steps);
        }
        Lie::Twice => items.insert(place, items[place]),
        Lie::Never => {
            items.remove(place);
        }
        Lie::Invented => {
            let departs = |item: &&Item| matches!(movement(item), Some(Movement::Departed { .. }));
            let mut invented = *items.iter().filter(departs).nth(5).unwrap();
            let next = items[..place].iter().filter(departs).count() as u64;
            if let Item::Moved { movement, .. } = &mut invented {
                *packet_of(movement) = PacketNumber(next);
            }
            set_time(&mut invented, at);
            items.insert(place, invented);
        }
        Lie::OutOfThinAir => {
            let (host, packet) = (HostId(amount as u16 % 2), PacketNumber(amount % 200));
            items.insert(place, Item::Moved { at, movement: Movement::Arrived { host, packet } });
        }
        Lie::LostForNothing => lose(items, place),
        Lie::Swapped => {
            let (a, b) = (number(&items[place]).unwrap(), swap_partner(items, place).unwrap());
            for item in &mut items[place..] {
                let Item::Moved { movement, .. } = item else { continue };
                let packet = packet_of(movement);
                *packet = match *packet {
                    p if p == a => b,
                    p if p == b => a,
                    p => p,
                };
            }
        }
        Lie::Skipped => {
            let mine = number(&items[place]);
            let mut first = 0;
            items.retain({
                let mut index = 0;
                move |item| {
                    let here = index >= place && number(item) == mine && first < 2;
                    first += usize::from(here);
                    index += 1;
                    !here
                }
            });
        }
        Lie::Narrow => narrow(items, place, amount),
        _ => alter(lie, &mut items[place], amount),
    }
}

/// The window that held when this left is told to have been smaller than it.
fn narrow(items: &mut [Item], place: usize, amount: u64) {
    let Item::Event { who, event: Event::Sent { len, .. }, .. } = items[place] else { return };
    let small = len - 1 - amount as u32 % len;
    for item in items[..=place].iter_mut().rev() {
        let Item::Event { who: other, event, state, .. } = item else { continue };
        if *other != who {
            continue;
        }
        if let Some(state) = state {
            state.cwnd = Bytes(u64::from(small));
        }
        if let Event::Window { cwnd, .. } = event {
            *cwnd = small;
            break;
        }
    }
}

/// The packet that enters a station there is lost instead.
fn lose(items: &mut Vec<Item>, place: usize) {
    let Some(Movement::Entered { station, packet }) = movement(&items[place]) else { return };
    let departed = |m: Movement| match m {
        Movement::Departed { packet: p, host, flow, size, .. } if p == packet => {
            Some((host, flow, size))
        }
        _ => None,
    };
    let (from, flow, size) = items.iter().filter_map(movement).find_map(departed).unwrap();
    // Two stations each way: the forward line and delay, and those of the way back.
    let (host, element) = (HostId(1 - from.0), (station.0 % 2) as u16);
    let mut rest = items.split_off(place);
    rest.retain(|item| number(item) != Some(packet));
    let at = if let Some(last) = items.last() { last.at() } else { Instant::ZERO };
    items.push(Item::Moved { at, movement: Movement::Dropped { station, packet } });
    let who = record::Who { host, flow };
    let event = Event::Dropped { element, bytes: size };
    items.push(Item::Event { at, who, event, state: None });
    items.append(&mut rest);
}

/// Changes one item.
fn alter(lie: Lie, item: &mut Item, amount: u64) {
    match (lie, item) {
        (Lie::Larger, Item::Moved { movement: Movement::Departed { size, .. }, .. }) => {
            *size += 4 * (1 + amount as u32 % 3);
        }
        (Lie::OtherBytes, Item::Moved { movement: Movement::Departed { seq, .. }, .. }) => {
            seq.0 = seq.0.wrapping_add(amount as u32 | 1);
        }
        (
            Lie::OtherHost,
            Item::Moved {
                movement: Movement::Departed { host, .. } | Movement::Arrived { host, .. },
                ..
            },
        ) => host.0 = 1 - host.0,
        (Lie::OneMore, Item::Event { event, state, .. }) => match event {
            Event::Sent { len, .. } => *len += 1,
            Event::Read { bytes, upto } => {
                *bytes += 1;
                *upto += 1;
            }
            Event::Acked { una, bytes, .. } => {
                *bytes += 1;
                *una += 1;
                if let Some(state) = state {
                    state.snd_una = *una;
                    state.snd_nxt = state.snd_nxt.max(*una);
                    state.buffered = state.buffered.saturating_sub(Bytes(1));
                }
            }
            _ => unreachable!(),
        },
        (Lie::OtherKind, Item::Event { event: Event::Sent { kind, .. }, .. }) => {
            *kind = match *kind {
                SentKind::New => SentKind::Again(Cause::Timeout),
                _ => SentKind::New,
            };
        }
        (Lie::OtherState, Item::Event { state: Some(state), .. }) => match amount % 4 {
            0 => state.snd_una += 1,
            1 => state.snd_max += 2,
            2 => state.buffered += Bytes(1),
            _ => state.snd_nxt = state.snd_max + 1,
        },
        _ => unreachable!(),
    }
}
