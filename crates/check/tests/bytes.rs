//! Stacks and applications that report impossible bytes.

mod common;

use ackclock_check as check;
use check::violation::StateField;
use check::{RecordItem, ViolationKind};
use common::*;
use record::{Cause, Event, EventSource, PacketEvent, PacketNumber, Purpose, SentKind, TcpBits};
use units::{Bytes, Ecn, FlowId, HostId, Offset};

const TIMEOUT: SentKind = SentKind::Retransmission(Cause::Timeout);

#[test]
fn no_byte_is_read_twice_or_left_out() {
    let reads = |bytes, upto: u64| {
        after(|items| {
            alter(items, SERVER, read_upto(2_000), |event, _| {
                *event = Event::AppRead { bytes, total: Offset(upto) };
            });
        })
    };
    let bad = |bytes, upto| {
        let (upto, before, bytes) = (Offset(upto), Offset(1_000), Bytes(bytes));
        Some(ViolationKind::BadRead { upto, before, bytes })
    };
    assert_eq!(reads(1_001, 2_000), bad(1_001, 2_000));
    assert_eq!(reads(1_000, 1_999), bad(1_000, 1_999));
    assert_eq!(reads(0, 1_000), bad(0, 1_000));
    // The same read twice.
    let twice = after(|items| {
        let place = reported(items, SERVER, read_upto(2_000));
        items.insert(place, items[place]);
    });
    let (upto, before) = (Offset(2_000), Offset(2_000));
    assert_eq!(twice, Some(ViolationKind::BadRead { upto, before, bytes: Bytes(1_000) }));
}

#[test]
fn no_byte_is_read_before_it_arrives() {
    let one_more = after(|items| {
        alter(items, SERVER, read_upto(2_000), |event, _| {
            *event = Event::AppRead { bytes: 1_001, total: Offset(2_001) };
        });
    });
    let (upto, arrived) = (Offset(2_001), Offset(2_000));
    assert_eq!(one_more, Some(ViolationKind::ReadTooSoon { upto, arrived }));
    // The fourth segment was lost: bytes after a gap do not count.
    let too_early = after(|items| {
        let place = reported(items, SERVER, read_upto(4_000));
        let read = items.remove(place);
        let place = reported(items, CLIENT, |event| *event == Event::Timer(Purpose::Retransmit));
        items.insert(place, read);
        set_time(&mut items[place], us(300_000));
    });
    let (upto, arrived) = (Offset(4_000), Offset(3_000));
    assert_eq!(too_early, Some(ViolationKind::ReadTooSoon { upto, arrived }));
}

#[test]
fn no_byte_is_sent_that_was_not_written() {
    let found = after(|items| {
        alter(
            items,
            CLIENT,
            |e| matches!(e, Event::AppWrote { .. }),
            |event, _| {
                *event = Event::AppWrote { bytes: 500 };
            },
        );
    });
    let (upto, written) = (Offset(1_000), Offset(500));
    assert_eq!(found, Some(ViolationKind::NeverWritten { upto, written }));
    // The buffer then lacks one byte more.
    let found = after(|items| {
        alter(
            items,
            CLIENT,
            |e| matches!(e, Event::AppWrote { .. }),
            |event, _| {
                *event = Event::AppWrote { bytes: 4_001 };
            },
        );
    });
    let (field, said, known) = (StateField::Buffered, 4_000, 4_001);
    assert_eq!(found, Some(ViolationKind::StateDiffers { field, said, known }));
}

#[test]
fn what_the_stack_sends_is_what_the_card_sends() {
    // The event of the second segment is missing, or reports more or fewer bytes.
    let unsaid = after(|items| {
        items.remove(reported(items, CLIENT, sent(1_000, SentKind::New)));
    });
    assert_eq!(unsaid, Some(ViolationKind::NeverSent));
    let with_len = |len| {
        after(|items| {
            alter(items, CLIENT, sent(3_000, SentKind::New), |event, _| {
                *event = Event::Sent { at: Offset(3_000), len, kind: SentKind::New };
            });
        })
    };
    let (field, said, known) = (StateField::SndMax, 4_000, 3_998);
    assert_eq!(with_len(998), Some(ViolationKind::StateDiffers { field, said, known }));
    // With one byte less a FIN could follow; but the card sends that byte.
    assert_eq!(with_len(999), Some(ViolationKind::NeverSent));
    let (upto, written) = (Offset(4_001), Offset(4_000));
    assert_eq!(with_len(1_001), Some(ViolationKind::NeverWritten { upto, written }));
    // The segment that the card withheld.
    let kept = after(|items| {
        let place = reported(items, CLIENT, sent(1_000, SentKind::New));
        items.drain(place + 1..place + 3);
    });
    assert_eq!(kept, Some(ViolationKind::Kept { at: Offset(1_000), bytes: Bytes(1_000) }));
    // Another byte than the stack reported.
    let other = after(|items| {
        let place = reported(items, CLIENT, sent(1_000, SentKind::New)) + 1;
        let RecordItem::PacketItem { movement: PacketEvent::Sent { seq, .. }, .. } =
            &mut items[place]
        else {
            unreachable!()
        };
        seq.0 += 1;
    });
    assert_eq!(other, Some(ViolationKind::NeverSent));
}

#[test]
fn a_burst_may_leave_in_packets_but_completely() {
    let placeholders = |lens: &[u32]| {
        let mut items = good();
        let place = reported(&items, CLIENT, sent(3_000, TIMEOUT)) + 1;
        items.truncate(place);
        let mut seq = units::SeqNum(3_101);
        for (n, &len) in lens.iter().enumerate() {
            let packet = PacketNumber(9 + n as u64);
            let (host, flow, size) = (CLIENT, FlowId(0), len + 40);
            let departed = PacketEvent::Sent {
                host,
                flow,
                packet,
                seq,
                len,
                size,
                ecn: Ecn::NotEct,
                tcp: TcpBits::default(),
            };
            for movement in [departed, PacketEvent::Accepted { hop_index: LINE, packet }] {
                items.push(RecordItem::PacketItem { at: us(300_000), movement });
            }
            seq.0 += len;
        }
        first_breach(&world(), &items)
    };
    assert_eq!(placeholders(&[400, 600]), None);
    assert_eq!(
        placeholders(&[400, 500]),
        Some(ViolationKind::Kept { at: Offset(3_900), bytes: Bytes(100) })
    );
    assert_eq!(placeholders(&[400, 601]), Some(ViolationKind::NeverSent));
    assert_eq!(placeholders(&[400, 0, 600]), Some(ViolationKind::NeverSent));
    assert_eq!(placeholders(&[400, 600, 0]), Some(ViolationKind::NeverSent));
}

#[test]
fn no_ack_covers_unsent_or_missing_data() {
    let acked = |from: u64, una: u64, bytes| {
        after(|items| {
            alter(items, CLIENT, acked_upto(from), |event, _| {
                *event = Event::Acked { una: Offset(una), bytes, nsegs: 1 };
            });
        })
    };
    let (una, snd_max) = (Offset(4_001), Offset(4_000));
    assert_eq!(acked(2_000, 4_001, 4_001), Some(ViolationKind::AckOfUnsent { una, snd_max }));
    // The third segment had arrived by then, but not when the ACK was sent.
    let (una, reported) = (Offset(3_000), Offset(2_000));
    assert_eq!(acked(2_000, 3_000, 3_000), Some(ViolationKind::AckTooSoon { una, reported }));
    let bad = |before, una, bytes| {
        let (before, una, bytes) = (Offset(before), Offset(una), Bytes(bytes));
        Some(ViolationKind::BadAdvance { before, una, bytes })
    };
    assert_eq!(acked(3_000, 2_000, 0), bad(2_000, 2_000, 0));
    assert_eq!(acked(3_000, 1_000, 1_000), bad(2_000, 1_000, 1_000));
    assert_eq!(acked(3_000, 3_000, 999), bad(2_000, 3_000, 999));
}

#[test]
fn no_data_precedes_the_handshake() {
    let unconnected = after(|items| {
        items.remove(reported(items, CLIENT, |event| *event == Event::Connected));
    });
    assert_eq!(unconnected, Some(ViolationKind::NotConnected));
    let server_first = after(|items| {
        let place = reported(items, SERVER, |event| *event == Event::Connected);
        let event = items.remove(place);
        items.insert(0, event);
        set_time(&mut items[0], us(0));
    });
    assert_eq!(server_first, Some(ViolationKind::NotConnected));
    let answer = after(|items| {
        let place = reported(items, SERVER, sent(0, SentKind::Control));
        let event = items[place];
        items.insert(0, event);
        set_time(&mut items[0], us(0));
    });
    assert_eq!(answer, Some(ViolationKind::NotConnected));
}

#[test]
fn only_arrived_packets_are_merged() {
    let merged = |packets, bytes| {
        after(|items| {
            let place = reported(items, SERVER, read_upto(1_000));
            let who = EventSource { host: SERVER, flow: FlowId(0) };
            let event = Event::Aggregated { packets, bytes };
            items.insert(place, RecordItem::Event { at: us(31_140), who, event, state: None });
        })
    };
    // The SYN, the ACK of the handshake and the first segment.
    assert_eq!(merged(3, 1_000), None);
    assert_eq!(merged(4, 1_000), Some(ViolationKind::MergedFromNothing));
    assert_eq!(merged(2, 1_001), Some(ViolationKind::MergedFromNothing));
}

#[test]
fn drop_events_match_the_drops() {
    let with = |new: Event| {
        after(|items| {
            alter(items, SERVER, |e| matches!(e, Event::Dropped { .. }), |event, _| *event = new);
        })
    };
    assert_eq!(
        with(Event::Dropped { element: 0, bytes: 1_041 }),
        Some(ViolationKind::DropMismatch)
    );
    assert_eq!(
        with(Event::Dropped { element: 1, bytes: 1_040 }),
        Some(ViolationKind::DropMismatch)
    );
    let twice = after(|items| {
        let place = reported(items, SERVER, |e| matches!(e, Event::Dropped { .. }));
        items.insert(place, items[place]);
    });
    assert_eq!(twice, Some(ViolationKind::DropMismatch));
}

#[test]
fn unknown_endpoints_are_rejected() {
    for (host, flow) in [(2, 0), (0, 1)] {
        let found = after(|items| {
            let who = EventSource { host: HostId(host), flow: FlowId(flow) };
            let event = Event::Connected;
            items.insert(0, RecordItem::Event { at: us(0), who, event, state: None });
        });
        assert_eq!(found, Some(ViolationKind::NoSuchEndpoint));
    }
}

#[test]
fn violations_read_as_sentences() {
    let mut items = good();
    items.remove(reported(&items, CLIENT, |event| *event == Event::Timer(Purpose::Retransmit)));
    let refused = check::verify(&world(), &items).unwrap_err().to_string();
    let first = "@300ms flow 0 at host 0 retransmitted 3000 for timeout without a preceding event";
    assert_eq!(refused.lines().next(), Some(first));
    let mut items = good();
    let lost = PacketEvent::Dropped { hop_index: LINE, packet: PacketNumber(4) };
    let place = step(&items, PacketEvent::Accepted { hop_index: LINE, packet: PacketNumber(4) });
    items[place] = RecordItem::PacketItem { at: us(20_060), movement: lost };
    let refused = check::verify(&world(), &items).unwrap_err().to_string();
    assert_eq!(
        refused.lines().next(),
        Some("@20.06ms packet 4 was dropped at element 0 without a reason")
    );
}

#[test]
fn numbers_at_the_end_of_their_range_do_no_harm() {
    for item in 0..good().len() {
        let mut items = good();
        match &mut items[item] {
            RecordItem::Event { event, state, .. } => {
                match event {
                    Event::Sent { at, len, .. } => (*at, *len) = (Offset(u64::MAX), u32::MAX),
                    Event::Acked { una, .. } => *una = Offset(u64::MAX),
                    Event::AppRead { total: upto, .. } => *upto = Offset(u64::MAX),
                    _ => continue,
                }
                if let Some(state) = state {
                    state.snd_max = Offset(u64::MAX);
                }
            }
            RecordItem::PacketItem { movement, .. } => match movement {
                PacketEvent::Sent { packet, len, size, .. } => {
                    (*packet, *len, *size) = (PacketNumber(u64::MAX), u32::MAX, u32::MAX);
                }
                PacketEvent::Received { host, .. } => *host = HostId(u16::MAX),
                _ => continue,
            },
        }
        assert!(!all_breaches(&world(), &items).is_empty());
    }
}
