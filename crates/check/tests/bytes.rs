//! Stacks and applications that tell of bytes what cannot be.

mod common;

use ackclock_check as check;
use check::violation::Field;
use check::{Breach, Item};
use common::*;
use record::{Cause, Event, Movement, PacketNumber, Purpose, SentKind, Who};
use units::{Bytes, FlowId, HostId, Offset};

const TIMEOUT: SentKind = SentKind::Again(Cause::Timeout);

#[test]
fn no_byte_is_read_twice_or_left_out() {
    let reads = |bytes, upto: u64| {
        after(|items| {
            alter(items, SERVER, read_upto(2_000), |event, _| {
                *event = Event::Read { bytes, upto: Offset(upto) };
            });
        })
    };
    let bad = |bytes, upto| {
        let (upto, before, bytes) = (Offset(upto), Offset(1_000), Bytes(bytes));
        Some(Breach::BadRead { upto, before, bytes })
    };
    assert_eq!(reads(1_001, 2_000), bad(1_001, 2_000));
    assert_eq!(reads(1_000, 1_999), bad(1_000, 1_999));
    assert_eq!(reads(0, 1_000), bad(0, 1_000));
    // The same read a second time.
    let twice = after(|items| {
        let place = told(items, SERVER, read_upto(2_000));
        items.insert(place, items[place]);
    });
    let (upto, before) = (Offset(2_000), Offset(2_000));
    assert_eq!(twice, Some(Breach::BadRead { upto, before, bytes: Bytes(1_000) }));
}

#[test]
fn no_byte_is_read_before_it_arrives() {
    let one_more = after(|items| {
        alter(items, SERVER, read_upto(2_000), |event, _| {
            *event = Event::Read { bytes: 1_001, upto: Offset(2_001) };
        });
    });
    let (upto, arrived) = (Offset(2_001), Offset(2_000));
    assert_eq!(one_more, Some(Breach::ReadTooSoon { upto, arrived }));
    // The fourth segment was lost: bytes behind a gap do not count.
    let too_early = after(|items| {
        let place = told(items, SERVER, read_upto(4_000));
        let read = items.remove(place);
        let place = told(items, CLIENT, |event| *event == Event::Timer(Purpose::Retransmit));
        items.insert(place, read);
        set_time(&mut items[place], us(300_000));
    });
    let (upto, arrived) = (Offset(4_000), Offset(3_000));
    assert_eq!(too_early, Some(Breach::ReadTooSoon { upto, arrived }));
}

#[test]
fn no_byte_is_sent_that_was_not_written() {
    let found = after(|items| {
        alter(
            items,
            CLIENT,
            |e| matches!(e, Event::Wrote { .. }),
            |event, _| {
                *event = Event::Wrote { bytes: 500 };
            },
        );
    });
    let (upto, written) = (Offset(1_000), Offset(500));
    assert_eq!(found, Some(Breach::NeverWritten { upto, written }));
    // One more is found missing in the buffer.
    let found = after(|items| {
        alter(
            items,
            CLIENT,
            |e| matches!(e, Event::Wrote { .. }),
            |event, _| {
                *event = Event::Wrote { bytes: 4_001 };
            },
        );
    });
    let (field, said, known) = (Field::Buffered, 4_000, 4_001);
    assert_eq!(found, Some(Breach::StateDiffers { field, said, known }));
}

#[test]
fn what_the_stack_sends_is_what_the_card_sends() {
    // The event of the second segment is missing, or tells of more or of less.
    let unsaid = after(|items| {
        items.remove(told(items, CLIENT, sent(1_000, SentKind::New)));
    });
    assert_eq!(unsaid, Some(Breach::NeverSent));
    let with_len = |len| {
        after(|items| {
            alter(items, CLIENT, sent(3_000, SentKind::New), |event, _| {
                *event = Event::Sent { at: Offset(3_000), len, kind: SentKind::New };
            });
        })
    };
    let (field, said, known) = (Field::SndMax, 4_000, 3_998);
    assert_eq!(with_len(998), Some(Breach::StateDiffers { field, said, known }));
    // One byte less might have a FIN behind it; but the card sends that byte.
    assert_eq!(with_len(999), Some(Breach::NeverSent));
    let (upto, written) = (Offset(4_001), Offset(4_000));
    assert_eq!(with_len(1_001), Some(Breach::NeverWritten { upto, written }));
    // The segment that the card kept.
    let kept = after(|items| {
        let place = told(items, CLIENT, sent(1_000, SentKind::New));
        items.drain(place + 1..place + 3);
    });
    assert_eq!(kept, Some(Breach::Kept { at: Offset(1_000), bytes: Bytes(1_000) }));
    // Another byte than the stack said.
    let other = after(|items| {
        let place = told(items, CLIENT, sent(1_000, SentKind::New)) + 1;
        let Item::Moved { movement: Movement::Departed { seq, .. }, .. } = &mut items[place] else {
            unreachable!()
        };
        seq.0 += 1;
    });
    assert_eq!(other, Some(Breach::NeverSent));
}

#[test]
fn a_burst_may_leave_in_pieces_but_whole() {
    let pieces = |lens: &[u32]| {
        let mut items = good();
        let place = told(&items, CLIENT, sent(3_000, TIMEOUT)) + 1;
        items.truncate(place);
        let mut seq = units::SeqNum(3_101);
        for (n, &len) in lens.iter().enumerate() {
            let packet = PacketNumber(9 + n as u64);
            let (host, flow, size) = (CLIENT, FlowId(0), len + 40);
            let departed =
                Movement::Departed { host, flow, packet, seq, len, size, capable: false };
            for movement in [departed, Movement::Entered { station: LINE, packet }] {
                items.push(Item::Moved { at: us(300_000), movement });
            }
            seq.0 += len;
        }
        first_breach(&world(), &items)
    };
    assert_eq!(pieces(&[400, 600]), None);
    assert_eq!(pieces(&[400, 500]), Some(Breach::Kept { at: Offset(3_900), bytes: Bytes(100) }));
    assert_eq!(pieces(&[400, 601]), Some(Breach::NeverSent));
    assert_eq!(pieces(&[400, 0, 600]), Some(Breach::NeverSent));
    assert_eq!(pieces(&[400, 600, 0]), Some(Breach::NeverSent));
}

#[test]
fn no_ack_of_what_was_never_sent_or_has_not_arrived() {
    let acked = |from: u64, una: u64, bytes| {
        after(|items| {
            alter(items, CLIENT, acked_upto(from), |event, _| {
                *event = Event::Acked { una: Offset(una), bytes, nsegs: 1 };
            });
        })
    };
    let (una, snd_max) = (Offset(4_001), Offset(4_000));
    assert_eq!(acked(2_000, 4_001, 4_001), Some(Breach::AckOfUnsent { una, snd_max }));
    // The third segment had arrived by then, but not when the ACK left.
    let (una, told) = (Offset(3_000), Offset(2_000));
    assert_eq!(acked(2_000, 3_000, 3_000), Some(Breach::AckTooSoon { una, told }));
    let bad = |before, una, bytes| {
        let (before, una, bytes) = (Offset(before), Offset(una), Bytes(bytes));
        Some(Breach::BadAdvance { before, una, bytes })
    };
    assert_eq!(acked(3_000, 2_000, 0), bad(2_000, 2_000, 0));
    assert_eq!(acked(3_000, 1_000, 1_000), bad(2_000, 1_000, 1_000));
    assert_eq!(acked(3_000, 3_000, 999), bad(2_000, 3_000, 999));
}

#[test]
fn nobody_speaks_before_the_handshake() {
    let unconnected = after(|items| {
        items.remove(told(items, CLIENT, |event| *event == Event::Connected));
    });
    assert_eq!(unconnected, Some(Breach::NotConnected));
    let server_first = after(|items| {
        let place = told(items, SERVER, |event| *event == Event::Connected);
        let event = items.remove(place);
        items.insert(0, event);
        set_time(&mut items[0], us(0));
    });
    assert_eq!(server_first, Some(Breach::NotConnected));
    let answer = after(|items| {
        let place = told(items, SERVER, sent(0, SentKind::Control));
        let event = items[place];
        items.insert(0, event);
        set_time(&mut items[0], us(0));
    });
    assert_eq!(answer, Some(Breach::NotConnected));
}

#[test]
fn merged_is_only_what_arrived() {
    let merged = |packets, bytes| {
        after(|items| {
            let place = told(items, SERVER, read_upto(1_000));
            let who = Who { host: SERVER, flow: FlowId(0) };
            let event = Event::Merged { packets, bytes };
            items.insert(place, Item::Event { at: us(31_140), who, event, state: None });
        })
    };
    // The SYN, the ACK of the handshake and the first segment.
    assert_eq!(merged(3, 1_000), None);
    assert_eq!(merged(4, 1_000), Some(Breach::MergedFromNothing));
    assert_eq!(merged(2, 1_001), Some(Breach::MergedFromNothing));
}

#[test]
fn events_of_loss_tell_what_was_lost() {
    let with = |new: Event| {
        after(|items| {
            alter(items, SERVER, |e| matches!(e, Event::Dropped { .. }), |event, _| *event = new);
        })
    };
    assert_eq!(with(Event::Dropped { element: 0, bytes: 1_041 }), Some(Breach::UntrueLoss));
    assert_eq!(with(Event::Dropped { element: 1, bytes: 1_040 }), Some(Breach::UntrueLoss));
    let twice = after(|items| {
        let place = told(items, SERVER, |e| matches!(e, Event::Dropped { .. }));
        items.insert(place, items[place]);
    });
    assert_eq!(twice, Some(Breach::UntrueLoss));
}

#[test]
fn strangers_are_not_in_the_world() {
    for (host, flow) in [(2, 0), (0, 1)] {
        let found = after(|items| {
            let who = Who { host: HostId(host), flow: FlowId(flow) };
            let event = Event::Connected;
            items.insert(0, Item::Event { at: us(0), who, event, state: None });
        });
        assert_eq!(found, Some(Breach::NoSuchEnd));
    }
}

#[test]
fn violations_read_as_sentences() {
    let mut items = good();
    items.remove(told(&items, CLIENT, |event| *event == Event::Timer(Purpose::Retransmit)));
    let refused = check::verify(&world(), &items).unwrap_err().to_string();
    let first =
        "@300ms flow 0 at host 0 sent 3000 again for timeout, of which nothing was seen since";
    assert_eq!(refused.lines().next(), Some(first));
    let mut items = good();
    let lost = Movement::Dropped { station: LINE, packet: PacketNumber(4) };
    let place = step(&items, Movement::Entered { station: LINE, packet: PacketNumber(4) });
    items[place] = Item::Moved { at: us(20_060), movement: lost };
    let refused = check::verify(&world(), &items).unwrap_err().to_string();
    assert_eq!(
        refused.lines().next(),
        Some("@20.06ms packet 4 was lost at station 0 without a reason")
    );
}

#[test]
fn numbers_at_the_end_of_their_range_do_no_harm() {
    for item in 0..good().len() {
        let mut items = good();
        match &mut items[item] {
            Item::Event { event, state, .. } => {
                match event {
                    Event::Sent { at, len, .. } => (*at, *len) = (Offset(u64::MAX), u32::MAX),
                    Event::Acked { una, .. } => *una = Offset(u64::MAX),
                    Event::Read { upto, .. } => *upto = Offset(u64::MAX),
                    _ => continue,
                }
                if let Some(state) = state {
                    state.snd_max = Offset(u64::MAX);
                }
            }
            Item::Moved { movement, .. } => match movement {
                Movement::Departed { packet, len, size, .. } => {
                    (*packet, *len, *size) = (PacketNumber(u64::MAX), u32::MAX, u32::MAX);
                }
                Movement::Arrived { host, .. } => *host = HostId(u16::MAX),
                _ => continue,
            },
        }
        assert!(!all_breaches(&world(), &items).is_empty());
    }
}
