//! Mutations of a record, each of which the verifier must detect.

use check::RecordItem;
use record::{Cause, Event, PacketEvent, PacketNumber, SentKind};
use units::{Bytes, HostId, Instant};

/// A mutation of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mutation {
    /// A packet leaves an element earlier, and reaches the next hop then.
    Early,
    /// A packet leaves an element later, and reaches the next hop then.
    Late,
    /// A packet event, or an event that counts something, is recorded twice.
    Twice,
    /// An event is missing.
    Never,
    /// A packet is sent by no endpoint.
    Invented,
    /// A packet arrives that is elsewhere, or nowhere.
    OutOfThinAir,
    /// A packet is dropped despite free space, and the later record is consistent with that.
    LostForNothing,
    /// Two packets change places in an element and continue under each other's number.
    Swapped,
    /// A packet skips its next hop.
    Skipped,
    /// A packet is larger than it was.
    Larger,
    /// A packet carries other bytes.
    OtherBytes,
    /// A packet is sent by the other host, or arrives there.
    OtherHost,
    /// One more byte is sent, read or acknowledged.
    OneMore,
    /// Retransmitted bytes are recorded as new, new ones as retransmitted.
    OtherKind,
    /// The sender state differs.
    OtherState,
    /// The window during a recovery was smaller than the data sent in it.
    Narrow,
}

pub(crate) const LIES: [Mutation; 16] = [
    Mutation::Early,
    Mutation::Late,
    Mutation::Twice,
    Mutation::Never,
    Mutation::Invented,
    Mutation::OutOfThinAir,
    Mutation::LostForNothing,
    Mutation::Swapped,
    Mutation::Skipped,
    Mutation::Larger,
    Mutation::OtherBytes,
    Mutation::OtherHost,
    Mutation::OneMore,
    Mutation::OtherKind,
    Mutation::OtherState,
    Mutation::Narrow,
];

fn movement(item: &RecordItem) -> Option<PacketEvent> {
    match item {
        RecordItem::PacketItem { movement, .. } => Some(*movement),
        RecordItem::Event { .. } => None,
    }
}

fn packet_of(movement: &mut PacketEvent) -> &mut PacketNumber {
    match movement {
        PacketEvent::Sent { packet, .. }
        | PacketEvent::Accepted { packet, .. }
        | PacketEvent::Dropped { packet, .. }
        | PacketEvent::Duplicated { packet, .. }
        | PacketEvent::Corrupted { packet, .. }
        | PacketEvent::Forwarded { packet, .. }
        | PacketEvent::Marked { packet, .. }
        | PacketEvent::Rewritten { packet, .. }
        | PacketEvent::Injected { packet, .. }
        | PacketEvent::Received { packet, .. } => packet,
    }
}

fn number(item: &RecordItem) -> Option<PacketNumber> {
    movement(item).map(|mut movement| *packet_of(&mut movement))
}

fn set_time(item: &mut RecordItem, to: Instant) {
    match item {
        RecordItem::Event { at, .. } | RecordItem::PacketItem { at, .. } => *at = to,
    }
}

/// Events that count something, each followed by another of its kind and endpoint.
fn counts(items: &[RecordItem], place: usize) -> bool {
    let RecordItem::Event { event, who, .. } = &items[place] else { return false };
    let same_kind =
        |other: &Event| core::mem::discriminant(other) == core::mem::discriminant(event);
    let repeated = |item: &RecordItem| matches!(item, RecordItem::Event { event: e, who: w, .. } if w == who && same_kind(e));
    matches!(event, Event::Sent { .. } | Event::Acked { .. } | Event::AppRead { .. })
        && items[place + 1..].iter().any(repeated)
}

/// Returns the positions where the mutation applies.
pub(crate) fn places(lie: Mutation, items: &[RecordItem]) -> Vec<usize> {
    let fits = |&place: &usize| {
        let item = &items[place];
        let step = movement(item);
        let kind = match item {
            RecordItem::Event { event: Event::Sent { kind, .. }, .. } => Some(*kind),
            _ => None,
        };
        match lie {
            Mutation::Early | Mutation::Late => matches!(step, Some(PacketEvent::Forwarded { .. })),
            Mutation::Twice | Mutation::Never => step.is_some() || counts(items, place),
            Mutation::Invented | Mutation::OutOfThinAir => true,
            Mutation::LostForNothing => matches!(step, Some(PacketEvent::Accepted { .. })),
            Mutation::Swapped => swap_partner(items, place).is_some(),
            Mutation::Skipped => {
                matches!(step, Some(PacketEvent::Accepted { .. } | PacketEvent::Received { .. }))
            }
            Mutation::Larger | Mutation::OtherBytes => {
                matches!(step, Some(PacketEvent::Sent { .. }))
            }
            Mutation::OtherHost => {
                matches!(step, Some(PacketEvent::Sent { .. } | PacketEvent::Received { .. }))
            }
            Mutation::OneMore => counts(items, place),
            Mutation::OtherKind => {
                matches!(kind, Some(SentKind::New | SentKind::Retransmission(_)))
            }
            Mutation::OtherState => {
                matches!(kind, Some(SentKind::New | SentKind::Retransmission(_)))
            }
            Mutation::Narrow => is_in_recovery(items, place),
        }
    };
    (0..items.len()).filter(fits).collect()
}

const REPAIR: SentKind = SentKind::Retransmission(Cause::FastRetransmit);

/// Returns whether recovery sends bytes here after others of it, with more bytes in flight than
/// these.
fn is_in_recovery(items: &[RecordItem], place: usize) -> bool {
    let RecordItem::Event { who, event: Event::Sent { len, kind, .. }, state: Some(state), .. } =
        &items[place]
    else {
        return false;
    };
    let before = items[..place].iter().rev().filter_map(|item| match item {
        RecordItem::Event { who: other, event, .. } if other == who => Some(event),
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

/// The next packet that leaves the same element, if it is already in there.
fn swap_partner(items: &[RecordItem], place: usize) -> Option<PacketNumber> {
    let Some(PacketEvent::Forwarded { hop_index, .. }) = movement(&items[place]) else {
        return None;
    };
    let leaves = |item: &RecordItem| match movement(item) {
        Some(PacketEvent::Forwarded { hop_index: s, packet }) if s == hop_index => Some(packet),
        _ => None,
    };
    let partner = items[place + 1..].iter().find_map(leaves)?;
    let entered = PacketEvent::Accepted { hop_index, packet: partner };
    items[..place].iter().any(|item| movement(item) == Some(entered)).then_some(partner)
}

/// Applies the mutation at `place`; `amount` is not zero.
pub(crate) fn falsify(lie: Mutation, items: &mut Vec<RecordItem>, place: usize, amount: u64) {
    let at = items[place].at();
    match lie {
        Mutation::Early | Mutation::Late => {
            // The event, and all later ones of the packet at the same instant.
            let mine = number(&items[place]);
            let now = |item: &RecordItem| item.at() == at && number(item) == mine;
            let count = items[place..].iter().take_while(|item| now(item)).count();
            let mut steps: Vec<_> = items.drain(place..place + count).collect();
            let ns = at.as_nanos();
            let ns = if matches!(lie, Mutation::Early) { ns - amount.min(ns) } else { ns + amount };
            let to = Instant::from_nanos(ns);
            steps.iter_mut().for_each(|step| set_time(step, to));
            let place = items.partition_point(|item| item.at() <= to);
            items.splice(place..place, steps);
        }
        Mutation::Twice => items.insert(place, items[place]),
        Mutation::Never => {
            items.remove(place);
        }
        Mutation::Invented => {
            let departs =
                |item: &&RecordItem| matches!(movement(item), Some(PacketEvent::Sent { .. }));
            let mut invented = *items.iter().filter(departs).nth(5).unwrap();
            let next = items[..place].iter().filter(departs).count() as u64;
            if let RecordItem::PacketItem { movement, .. } = &mut invented {
                *packet_of(movement) = PacketNumber(next);
            }
            set_time(&mut invented, at);
            items.insert(place, invented);
        }
        Mutation::OutOfThinAir => {
            let (host, packet) = (HostId(amount as u16 % 2), PacketNumber(amount % 200));
            items.insert(
                place,
                RecordItem::PacketItem {
                    at,
                    movement: PacketEvent::Received {
                        host,
                        packet,
                        tcp: record::TcpBits::default(),
                    },
                },
            );
        }
        Mutation::LostForNothing => lose(items, place),
        Mutation::Swapped => {
            let (a, b) = (number(&items[place]).unwrap(), swap_partner(items, place).unwrap());
            for item in &mut items[place..] {
                let RecordItem::PacketItem { movement, .. } = item else { continue };
                let packet = packet_of(movement);
                *packet = match *packet {
                    p if p == a => b,
                    p if p == b => a,
                    p => p,
                };
            }
        }
        Mutation::Skipped => {
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
        Mutation::Narrow => narrow(items, place, amount),
        _ => alter(lie, &mut items[place], amount),
    }
}

/// Makes the window recorded at this transmission too small for it.
fn narrow(items: &mut [RecordItem], place: usize, amount: u64) {
    let RecordItem::Event { who, event: Event::Sent { len, .. }, .. } = items[place] else {
        return;
    };
    let small = len - 1 - amount as u32 % len;
    for item in items[..=place].iter_mut().rev() {
        let RecordItem::Event { who: other, event, state, .. } = item else { continue };
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

/// The packet that enters an element there is dropped instead.
fn lose(items: &mut Vec<RecordItem>, place: usize) {
    let Some(PacketEvent::Accepted { hop_index, packet }) = movement(&items[place]) else { return };
    let departed = |m: PacketEvent| match m {
        PacketEvent::Sent { packet: p, host, flow, size, .. } if p == packet => {
            Some((host, flow, size))
        }
        _ => None,
    };
    let (from, flow, size) = items.iter().filter_map(movement).find_map(departed).unwrap();
    // Two elements each way: the forward line and delay, and those of the reverse route.
    let (host, element) = (HostId(1 - from.0), (hop_index.0 % 2) as u16);
    let mut rest = items.split_off(place);
    rest.retain(|item| number(item) != Some(packet));
    let at = if let Some(last) = items.last() { last.at() } else { Instant::ZERO };
    items.push(RecordItem::PacketItem { at, movement: PacketEvent::Dropped { hop_index, packet } });
    let who = record::EventSource { host, flow };
    let event = Event::Dropped { element, bytes: size };
    items.push(RecordItem::Event { at, who, event, state: None });
    items.append(&mut rest);
}

/// Changes one item.
fn alter(lie: Mutation, item: &mut RecordItem, amount: u64) {
    match (lie, item) {
        (
            Mutation::Larger,
            RecordItem::PacketItem { movement: PacketEvent::Sent { size, .. }, .. },
        ) => {
            *size += 4 * (1 + amount as u32 % 3);
        }
        (
            Mutation::OtherBytes,
            RecordItem::PacketItem { movement: PacketEvent::Sent { seq, .. }, .. },
        ) => {
            seq.0 = seq.0.wrapping_add(amount as u32 | 1);
        }
        (
            Mutation::OtherHost,
            RecordItem::PacketItem {
                movement: PacketEvent::Sent { host, .. } | PacketEvent::Received { host, .. },
                ..
            },
        ) => host.0 = 1 - host.0,
        (Mutation::OneMore, RecordItem::Event { event, state, .. }) => match event {
            Event::Sent { len, .. } => *len += 1,
            Event::AppRead { bytes, total: upto } => {
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
        (Mutation::OtherKind, RecordItem::Event { event: Event::Sent { kind, .. }, .. }) => {
            *kind = match *kind {
                SentKind::New => SentKind::Retransmission(Cause::Timeout),
                _ => SentKind::New,
            };
        }
        (Mutation::OtherState, RecordItem::Event { state: Some(state), .. }) => match amount % 4 {
            0 => state.snd_una += 1,
            1 => state.snd_max += 2,
            2 => state.buffered += Bytes(1),
            _ => state.snd_nxt = state.snd_max + 1,
        },
        _ => unreachable!(),
    }
}
