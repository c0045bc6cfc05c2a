//! Senders that do what senders must not.

mod common;

use ackclock_check as check;
use check::violation::Field;
use check::{Breach, Item};
use common::*;
use record::{Cause, Event, Movement, PacketNumber, Purpose, SenderState, SentKind, Waiting, Who};
use units::{Bytes, FlowId, Offset};

const TIMEOUT: SentKind = SentKind::Again(Cause::Timeout);
const LOSS: SentKind = SentKind::Again(Cause::FastRetransmit);

#[test]
fn new_bytes_follow_the_last_ones() {
    let found = after(|items| {
        let place = told(items, CLIENT, sent(1_000, SentKind::New));
        let end = told(items, CLIENT, sent(2_000, SentKind::New));
        items.drain(place..end);
    });
    assert_eq!(found, Some(Breach::NotNext { at: Offset(2_000), snd_max: Offset(1_000) }));
    // Old bytes are not new ones.
    let renamed = after(|items| {
        alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
            *event = Event::Sent { at: Offset(3_000), len: 1_000, kind: SentKind::New };
        });
    });
    assert_eq!(renamed, Some(Breach::NotNext { at: Offset(3_000), snd_max: Offset(4_000) }));
    // And new ones not old.
    let renamed = after(|items| {
        alter(items, CLIENT, sent(3_000, SentKind::New), |event, _| {
            *event = Event::Sent { at: Offset(3_000), len: 1_000, kind: TIMEOUT };
        });
    });
    let (at, snd_una, snd_max) = (Offset(3_000), Offset(0), Offset(3_000));
    assert_eq!(renamed, Some(Breach::NotOutstanding { at, snd_una, snd_max }));
}

#[test]
fn what_goes_again_may_have_other_reasons() {
    let who = Who { host: CLIENT, flow: FlowId(0) };
    let again = |cause: Cause, reason: Option<(Event, SenderState)>| {
        after(|items| {
            let place = told(items, CLIENT, sent(3_000, TIMEOUT));
            alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
                let kind = SentKind::Again(cause);
                *event = Event::Sent { at: Offset(3_000), len: 1_000, kind };
            });
            let Item::Event { at, state: Some(state), .. } = items[place] else { unreachable!() };
            if let Some((event, told)) = reason {
                let state = Some(SenderState { snd_wnd: told.snd_wnd, cwnd: told.cwnd, ..state });
                items.insert(place, Item::Event { at, who, event, state });
            }
        })
    };
    let none = |cause| Some(Breach::NoReason { at: Offset(3_000), cause });
    // What went again was lost again.
    let lost = Cause::LostRetransmission;
    let window = Event::Window { cwnd: 1_000, ssthresh: 1_000, cause: lost };
    assert_eq!(again(Cause::FastRetransmit, None), none(Cause::FastRetransmit));
    assert_eq!(again(Cause::FastRetransmit, Some((window, state(0, 0, 1_000)))), None);
    // The peer has closed its window over it; that it is full is no reason.
    let waiting = Event::Waiting(Waiting::PeerWindow);
    let closed = SenderState { snd_wnd: Bytes(0), ..state(0, 0, 1_000) };
    let full = SenderState { snd_wnd: Bytes(1), ..closed };
    assert_eq!(again(Cause::WindowProbe, None), none(Cause::WindowProbe));
    assert_eq!(again(Cause::WindowProbe, Some((waiting, full))), none(Cause::WindowProbe));
    assert_eq!(again(Cause::WindowProbe, Some((waiting, closed))), None);
}

#[test]
fn nothing_goes_again_without_a_reason() {
    let at = Offset(3_000);
    let timer = |event: &Event| *event == Event::Timer(Purpose::Retransmit);
    let silent = after(|items| {
        items.remove(told(items, CLIENT, timer));
    });
    assert_eq!(silent, Some(Breach::NoReason { at, cause: Cause::Timeout }));
    let as_loss = |items: &mut Vec<Item>| {
        alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
            *event = Event::Sent { at: Offset(3_000), len: 1_000, kind: LOSS };
        });
    };
    assert_eq!(after(as_loss), Some(Breach::NoReason { at, cause: Cause::FastRetransmit }));
    // With a duplicate ACK it is one; but not if that came before the bytes left.
    let with_duplicate = |place: fn(&[Item]) -> usize| {
        after(|items| {
            as_loss(items);
            let place = place(items);
            let who = Who { host: CLIENT, flow: FlowId(0) };
            let event = Event::DupAck { count: 3 };
            items.insert(place, Item::Event { at: items[place].at(), who, event, state: None });
        })
    };
    assert_eq!(with_duplicate(|items| told(items, CLIENT, sent(3_000, LOSS))), None);
    let early = with_duplicate(|items| told(items, CLIENT, sent(3_000, SentKind::New)));
    assert_eq!(early, Some(Breach::NoReason { at, cause: Cause::FastRetransmit }));
    // Growth of the window is no reason.
    let odd = after(|items| {
        alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
            let kind = SentKind::Again(Cause::SlowStart);
            *event = Event::Sent { at: Offset(3_000), len: 1_000, kind };
        });
    });
    assert_eq!(odd, Some(Breach::NoReason { at, cause: Cause::SlowStart }));
}

#[test]
fn a_reason_counts_once() {
    let twice = |between: Option<Event>| {
        after(|items| {
            let place = told(items, CLIENT, sent(3_000, TIMEOUT));
            // Behind the departure of its packet.
            let again = items[place];
            let (at, Item::Event { who, .. }) = (again.at(), &again) else { unreachable!() };
            let between = between.map(|event| Item::Event { at, who: *who, event, state: None });
            items.splice(place + 2..place + 2, between.into_iter().chain([again]));
        })
    };
    let at = Offset(3_000);
    assert_eq!(twice(None), Some(Breach::TwiceForOneReason { at }));
    let wrote = Event::Wrote { bytes: 0 };
    assert_eq!(twice(Some(wrote)), Some(Breach::TwiceForOneReason { at }));
    // With a reason of its own it is its departure that is missing.
    let timer = Event::Timer(Purpose::Retransmit);
    assert!(matches!(twice(Some(timer)), Some(Breach::Kept { .. })));
}

#[test]
fn what_is_acknowledged_does_not_go_again() {
    let found = after(|items| {
        alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
            *event = Event::Sent { at: Offset(2_000), len: 1_000, kind: TIMEOUT };
        });
    });
    let (at, snd_una, snd_max) = (Offset(2_000), Offset(3_000), Offset(4_000));
    assert_eq!(found, Some(Breach::NotOutstanding { at, snd_una, snd_max }));
}

#[test]
fn new_bytes_stay_within_both_windows() {
    let with = |change: fn(&mut SenderState)| {
        let mut items = good();
        for item in &mut items {
            let Item::Event { state: Some(state), .. } = item else { continue };
            change(state);
        }
        let told = |item: &mut Item| {
            if let Item::Event { event: Event::Window { cwnd, .. }, state: Some(state), .. } = item
            {
                *cwnd = state.cwnd.get() as u32;
            }
        };
        items.iter_mut().for_each(told);
        first_breach(&world(), &items)
    };
    let narrow = with(|state| state.cwnd = Bytes(state.cwnd.get() - 1));
    let (flight, cwnd) = (Bytes(4_000), Bytes(3_999));
    assert_eq!(narrow, Some(Breach::BeyondCwnd { flight, cwnd }));
    let closed = with(|state| state.snd_wnd = Bytes(3_999));
    let window = Bytes(3_999);
    assert_eq!(closed, Some(Breach::BeyondPeerWindow { flight, window }));
    assert_eq!(with(|state| state.snd_wnd = Bytes(4_000)), None);
}

#[test]
fn the_window_changes_only_with_a_word_about_it() {
    let found = after(|items| {
        alter(items, CLIENT, sent(2_000, SentKind::New), |_, state| {
            state.as_mut().unwrap().cwnd = Bytes(5_000);
        });
    });
    let (field, said, known) = (Field::Cwnd, 5_000, 4_000);
    assert_eq!(found, Some(Breach::StateDiffers { field, said, known }));
}

#[test]
fn states_follow_from_the_events() {
    let with = |change: fn(&mut SenderState)| {
        after(|items| {
            alter(items, CLIENT, sent(2_000, SentKind::New), |_, state| {
                change(state.as_mut().unwrap());
            });
        })
    };
    let differs = |field, said, known| Some(Breach::StateDiffers { field, said, known });
    assert_eq!(with(|s| s.snd_una = Offset(1)), differs(Field::SndUna, 1, 0));
    assert_eq!(with(|s| s.snd_max = Offset(3_002)), differs(Field::SndMax, 3_002, 3_000));
    assert_eq!(with(|s| s.snd_nxt = Offset(3_001)), differs(Field::SndNxt, 3_001, 3_000));
    assert_eq!(with(|s| s.buffered = Bytes(3_999)), differs(Field::Buffered, 3_999, 4_000));
    let silent = after(|items| {
        alter(items, CLIENT, sent(2_000, SentKind::New), |_, state| *state = None);
    });
    assert_eq!(silent, Some(Breach::NoState));
}

#[test]
fn each_kind_carries_what_it_is() {
    let grown = |at, kind| {
        after(|items| {
            alter(items, CLIENT, sent(at, kind), |event, _| {
                *event = Event::Sent { at: Offset(at), len: 7, kind };
            });
        })
    };
    for (at, kind) in [(0, SentKind::Ack), (4_000, SentKind::Control)] {
        assert_eq!(grown(at, kind), Some(Breach::BadKind { kind }));
    }
    let emptied = after(|items| {
        alter(items, CLIENT, sent(0, SentKind::New), |event, _| {
            *event = Event::Sent { at: Offset(0), len: 0, kind: SentKind::New };
        });
    });
    assert_eq!(emptied, Some(Breach::BadKind { kind: SentKind::New }));
}

#[test]
fn an_ack_bears_a_number_between_snd_una_and_snd_max() {
    let found = after(|items| {
        alter(items, CLIENT, sent(0, SentKind::Ack), |event, _| {
            *event = Event::Sent { at: Offset(1), len: 0, kind: SentKind::Ack };
        });
    });
    let (at, snd_una, snd_max) = (Offset(1), Offset(0), Offset(0));
    assert_eq!(found, Some(Breach::NotOutstanding { at, snd_una, snd_max }));
}

/// The record without its FIN, and then a probe of the window.
fn probe(timer: bool, at: u64, len: u32, seq: u32) -> Option<Breach> {
    let mut items = good();
    items.truncate(told(&items, CLIENT, sent(4_000, SentKind::Control)));
    let who = Who { host: CLIENT, flow: FlowId(0) };
    let mut tell = |event, state| {
        items.push(Item::Event { at: us(400_000), who, event, state });
    };
    tell(Event::Wrote { bytes: 10 }, None);
    if timer {
        tell(Event::Timer(Purpose::Persist), None);
    }
    let end = 4_000 + u64::from(len);
    let state = SenderState { buffered: Bytes(10), snd_wnd: Bytes(0), ..state(4_000, end, 1_000) };
    let event = Event::Sent { at: Offset(at), len, kind: SentKind::Probe };
    tell(event, Some(SenderState { snd_nxt: Offset(4_000), ..state }));
    let (host, flow, packet, size) = (CLIENT, FlowId(0), PacketNumber(11), len + 40);
    let seq = units::SeqNum(seq);
    let departed = Movement::Departed { host, flow, packet, seq, len, size, capable: false };
    for movement in [departed, Movement::Entered { station: LINE, packet }] {
        items.push(Item::Moved { at: us(400_000), movement });
    }
    first_breach(&world(), &items)
}

#[test]
fn a_closed_window_is_probed_when_the_timer_says_so() {
    // Sequence number 101 is the first byte.
    assert_eq!(probe(true, 4_000, 1, 4_101), None);
    assert_eq!(probe(true, 3_999, 0, 4_100), None);
    assert_eq!(probe(false, 4_000, 1, 4_101), Some(Breach::NoProbeDue));
    let kind = SentKind::Probe;
    assert_eq!(probe(true, 4_000, 2, 4_101), Some(Breach::BadKind { kind }));
    let (at, snd_una, snd_max) = (Offset(3_999), Offset(4_000), Offset(4_000));
    assert_eq!(probe(true, 3_999, 1, 4_100), Some(Breach::NotOutstanding { at, snd_una, snd_max }));
}
