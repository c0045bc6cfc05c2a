//! Senders that violate the sending rules.

mod common;

use ackclock_check as check;
use check::violation::StateField;
use check::world::{OutputCalls, RecoveryLimit};
use check::{RecordItem, ViolationKind};
use common::*;
use record::{
    Cause, Event, EventSource, PacketEvent, PacketNumber, Purpose, SendLimit, SenderState,
    SentKind, TcpBits,
};
use units::{Bytes, Ecn, FlowId, Offset};

const TIMEOUT: SentKind = SentKind::Retransmission(Cause::Timeout);
const LOSS: SentKind = SentKind::Retransmission(Cause::FastRetransmit);

#[test]
fn new_bytes_follow_the_last_ones() {
    let found = after(|items| {
        let place = reported(items, CLIENT, sent(1_000, SentKind::New));
        let end = reported(items, CLIENT, sent(2_000, SentKind::New));
        items.drain(place..end);
    });
    assert_eq!(found, Some(ViolationKind::NotNext { at: Offset(2_000), snd_max: Offset(1_000) }));
    // Old bytes are not new ones.
    let renamed = after(|items| {
        alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
            *event = Event::Sent { at: Offset(3_000), len: 1_000, kind: SentKind::New };
        });
    });
    assert_eq!(renamed, Some(ViolationKind::NotNext { at: Offset(3_000), snd_max: Offset(4_000) }));
    // And new ones not old.
    let renamed = after(|items| {
        alter(items, CLIENT, sent(3_000, SentKind::New), |event, _| {
            *event = Event::Sent { at: Offset(3_000), len: 1_000, kind: TIMEOUT };
        });
    });
    let (at, snd_una, snd_max) = (Offset(3_000), Offset(0), Offset(3_000));
    assert_eq!(renamed, Some(ViolationKind::NotOutstanding { at, snd_una, snd_max }));
}

#[test]
fn retransmissions_may_have_other_causes() {
    let who = EventSource { host: CLIENT, flow: FlowId(0) };
    let repeated = |cause: Cause, reason: Option<(Event, SenderState)>| {
        after(|items| {
            let place = reported(items, CLIENT, sent(3_000, TIMEOUT));
            alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
                let kind = SentKind::Retransmission(cause);
                *event = Event::Sent { at: Offset(3_000), len: 1_000, kind };
            });
            let RecordItem::Event { at, state: Some(state), .. } = items[place] else {
                unreachable!()
            };
            if let Some((event, reported)) = reason {
                let state =
                    Some(SenderState { snd_wnd: reported.snd_wnd, cwnd: reported.cwnd, ..state });
                items.insert(place, RecordItem::Event { at, who, event, state });
            }
        })
    };
    let none = |cause| Some(ViolationKind::UnjustifiedRetransmission { at: Offset(3_000), cause });
    // The retransmission was lost as well.
    let lost = Cause::LostRetransmission;
    let window = Event::Window { cwnd: 1_000, ssthresh: 1_000, cause: lost };
    assert_eq!(repeated(Cause::FastRetransmit, None), none(Cause::FastRetransmit));
    assert_eq!(repeated(Cause::FastRetransmit, Some((window, state(0, 0, 1_000)))), None);
    // The peer has closed its window before it; a full window is no reason.
    let waiting = Event::SendLimited(SendLimit::PeerWindow);
    let closed = SenderState { snd_wnd: Bytes(0), ..state(0, 0, 1_000) };
    let full = SenderState { snd_wnd: Bytes(1), ..closed };
    assert_eq!(repeated(Cause::WindowProbe, None), none(Cause::WindowProbe));
    assert_eq!(repeated(Cause::WindowProbe, Some((waiting, full))), none(Cause::WindowProbe));
    assert_eq!(repeated(Cause::WindowProbe, Some((waiting, closed))), None);
    // So is a congestion window of zero (`sendwin == 0` of tcp_output).
    let no_window = SenderState { cwnd: Bytes(0), ..full };
    assert_eq!(repeated(Cause::WindowProbe, Some((waiting, no_window))), None);
}

#[test]
fn no_retransmission_without_a_reason() {
    let at = Offset(3_000);
    let timer = |event: &Event| *event == Event::Timer(Purpose::Retransmit);
    let silent = after(|items| {
        items.remove(reported(items, CLIENT, timer));
    });
    assert_eq!(
        silent,
        Some(ViolationKind::UnjustifiedRetransmission { at, cause: Cause::Timeout })
    );
    let as_loss = |items: &mut Vec<RecordItem>| {
        alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
            *event = Event::Sent { at: Offset(3_000), len: 1_000, kind: LOSS };
        });
    };
    assert_eq!(
        after(as_loss),
        Some(ViolationKind::UnjustifiedRetransmission { at, cause: Cause::FastRetransmit })
    );
    // A duplicate ACK is a reason; but not if it arrived before the bytes were sent.
    let with_duplicate = |place: fn(&[RecordItem]) -> usize| {
        after(|items| {
            as_loss(items);
            let place = place(items);
            let who = EventSource { host: CLIENT, flow: FlowId(0) };
            let event = Event::DupAck { count: 3 };
            items.insert(
                place,
                RecordItem::Event { at: items[place].at(), who, event, state: None },
            );
        })
    };
    assert_eq!(with_duplicate(|items| reported(items, CLIENT, sent(3_000, LOSS))), None);
    let early = with_duplicate(|items| reported(items, CLIENT, sent(3_000, SentKind::New)));
    assert_eq!(
        early,
        Some(ViolationKind::UnjustifiedRetransmission { at, cause: Cause::FastRetransmit })
    );
    // Growth of the window is no reason.
    let odd = after(|items| {
        alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
            let kind = SentKind::Retransmission(Cause::SlowStart);
            *event = Event::Sent { at: Offset(3_000), len: 1_000, kind };
        });
    });
    assert_eq!(odd, Some(ViolationKind::UnjustifiedRetransmission { at, cause: Cause::SlowStart }));
}

#[test]
fn a_reason_allows_one_retransmission() {
    let twice = |between: Option<Event>| {
        after(|items| {
            let place = reported(items, CLIENT, sent(3_000, TIMEOUT));
            // After the departure of its packet.
            let repeated = items[place];
            let (at, RecordItem::Event { who, .. }) = (repeated.at(), &repeated) else {
                unreachable!()
            };
            let between =
                between.map(|event| RecordItem::Event { at, who: *who, event, state: None });
            items.splice(place + 2..place + 2, between.into_iter().chain([repeated]));
        })
    };
    let at = Offset(3_000);
    assert_eq!(twice(None), Some(ViolationKind::RepeatedRetransmission { at }));
    let wrote = Event::AppWrote { bytes: 0 };
    assert_eq!(twice(Some(wrote)), Some(ViolationKind::RepeatedRetransmission { at }));
    // With a reason of its own, only its departure is missing.
    let timer = Event::Timer(Purpose::Retransmit);
    assert!(matches!(twice(Some(timer)), Some(ViolationKind::Kept { .. })));
}

#[test]
fn a_loss_and_the_timer_of_a_probe_are_two_reasons_for_rack() {
    let found = |brake, probes: usize| {
        let mut items = good();
        let place = reported(&items, CLIENT, sent(3_000, TIMEOUT));
        let (at, RecordItem::Event { who, .. }) = (items[place].at(), &items[place]) else {
            unreachable!()
        };
        let report = |event| RecordItem::Event { at, who: *who, event, state: None };
        let repeated = |cause| {
            let mut item = items[place];
            let RecordItem::Event { event, .. } = &mut item else { unreachable!() };
            let kind = SentKind::Retransmission(cause);
            *event = Event::Sent { at: Offset(3_000), len: 1_000, kind };
            item
        };
        let timer = report(Event::Timer(Purpose::LossProbe));
        let mut added = vec![timer, report(Event::DupAck { count: 3 })];
        added.push(repeated(Cause::FastRetransmit));
        let departure = items[place + 1];
        let probe = repeated(Cause::LossProbe);
        items.splice(place..=place, added);
        assert_eq!(items[place + 3], departure);
        items.splice(place + 4..place + 4, vec![probe; probes]);
        let mut world = world();
        world.flows[0].recovery_limits = [brake; 2];
        // The departures of the probes are missing too.
        let repeated = ViolationKind::RepeatedRetransmission { at: Offset(3_000) };
        all_breaches(&world, &items).contains(&repeated)
    };
    assert!(found(RecoveryLimit::Pipe, 1));
    assert!(!found(RecoveryLimit::Credit, 1));
    assert!(found(RecoveryLimit::Credit, 2));
}

#[test]
fn acknowledged_data_is_not_retransmitted() {
    let found = after(|items| {
        alter(items, CLIENT, sent(3_000, TIMEOUT), |event, _| {
            *event = Event::Sent { at: Offset(2_000), len: 1_000, kind: TIMEOUT };
        });
    });
    let (at, snd_una, snd_max) = (Offset(2_000), Offset(3_000), Offset(4_000));
    assert_eq!(found, Some(ViolationKind::NotOutstanding { at, snd_una, snd_max }));
}

#[test]
fn new_bytes_stay_within_both_windows() {
    let with = |change: fn(&mut SenderState)| {
        let mut items = good();
        for item in &mut items {
            let RecordItem::Event { state: Some(state), .. } = item else { continue };
            change(state);
        }
        let reported = |item: &mut RecordItem| {
            if let RecordItem::Event {
                event: Event::Window { cwnd, .. }, state: Some(state), ..
            } = item
            {
                *cwnd = state.cwnd.get() as u32;
            }
        };
        items.iter_mut().for_each(reported);
        first_breach(&world(), &items)
    };
    let narrow = with(|state| state.cwnd = Bytes(state.cwnd.get() - 1));
    let (flight, cwnd) = (Bytes(4_000), Bytes(3_999));
    assert_eq!(narrow, Some(ViolationKind::BeyondCwnd { flight, cwnd }));
    let closed = with(|state| state.snd_wnd = Bytes(3_999));
    let window = Bytes(3_999);
    assert_eq!(closed, Some(ViolationKind::BeyondPeerWindow { flight, window }));
    assert_eq!(with(|state| state.snd_wnd = Bytes(4_000)), None);
}

#[test]
fn the_window_changes_only_with_an_event() {
    let found = after(|items| {
        alter(items, CLIENT, sent(2_000, SentKind::New), |_, state| {
            state.as_mut().unwrap().cwnd = Bytes(5_000);
        });
    });
    let (field, said, known) = (StateField::Cwnd, 5_000, 4_000);
    assert_eq!(found, Some(ViolationKind::StateDiffers { field, said, known }));
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
    let differs = |field, said, known| Some(ViolationKind::StateDiffers { field, said, known });
    assert_eq!(with(|s| s.snd_una = Offset(1)), differs(StateField::SndUna, 1, 0));
    assert_eq!(with(|s| s.snd_max = Offset(3_002)), differs(StateField::SndMax, 3_002, 3_000));
    assert_eq!(with(|s| s.snd_nxt = Offset(3_001)), differs(StateField::SndNxt, 3_001, 3_000));
    assert_eq!(with(|s| s.buffered = Bytes(3_999)), differs(StateField::Buffered, 3_999, 4_000));
    let silent = after(|items| {
        alter(items, CLIENT, sent(2_000, SentKind::New), |_, state| *state = None);
    });
    assert_eq!(silent, Some(ViolationKind::NoState));
}

#[test]
fn each_kind_carries_only_its_data() {
    let grown = |at, kind| {
        after(|items| {
            alter(items, CLIENT, sent(at, kind), |event, _| {
                *event = Event::Sent { at: Offset(at), len: 7, kind };
            });
        })
    };
    for (at, kind) in [(0, SentKind::Ack), (4_000, SentKind::Control)] {
        assert_eq!(grown(at, kind), Some(ViolationKind::BadKind { kind }));
    }
    let all_acked_at = after(|items| {
        alter(items, CLIENT, sent(0, SentKind::New), |event, _| {
            *event = Event::Sent { at: Offset(0), len: 0, kind: SentKind::New };
        });
    });
    assert_eq!(all_acked_at, Some(ViolationKind::BadKind { kind: SentKind::New }));
}

#[test]
fn an_ack_has_a_number_between_snd_una_and_snd_max() {
    let found = after(|items| {
        alter(items, CLIENT, sent(0, SentKind::Ack), |event, _| {
            *event = Event::Sent { at: Offset(1), len: 0, kind: SentKind::Ack };
        });
    });
    let (at, snd_una, snd_max) = (Offset(1), Offset(0), Offset(0));
    assert_eq!(found, Some(ViolationKind::NotOutstanding { at, snd_una, snd_max }));
}

/// The record without its FIN, followed by a window probe.
fn probe(timer: bool, at: u64, len: u32, seq: u32) -> Option<ViolationKind> {
    let mut items = good();
    items.truncate(reported(&items, CLIENT, sent(4_000, SentKind::Control)));
    let who = EventSource { host: CLIENT, flow: FlowId(0) };
    let mut report = |event, state| {
        items.push(RecordItem::Event { at: us(400_000), who, event, state });
    };
    report(Event::AppWrote { bytes: 10 }, None);
    if timer {
        report(Event::Timer(Purpose::Persist), None);
    }
    let end = 4_000 + u64::from(len);
    let state = SenderState { buffered: Bytes(10), snd_wnd: Bytes(0), ..state(4_000, end, 1_000) };
    let event = Event::Sent { at: Offset(at), len, kind: SentKind::Probe };
    report(event, Some(SenderState { snd_nxt: Offset(4_000), ..state }));
    let (host, flow, packet, size) = (CLIENT, FlowId(0), PacketNumber(11), len + 40);
    let seq = units::SeqNum(seq);
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
        items.push(RecordItem::PacketItem { at: us(400_000), movement });
    }
    first_breach(&world(), &items)
}

#[test]
fn a_closed_window_is_probed_by_the_timer() {
    // Sequence number 101 is the first byte.
    assert_eq!(probe(true, 4_000, 1, 4_101), None);
    assert_eq!(probe(true, 3_999, 0, 4_100), None);
    assert_eq!(probe(false, 4_000, 1, 4_101), Some(ViolationKind::NoProbeDue));
    let kind = SentKind::Probe;
    assert_eq!(probe(true, 4_000, 2, 4_101), Some(ViolationKind::BadKind { kind }));
    let (at, snd_una, snd_max) = (Offset(3_999), Offset(4_000), Offset(4_000));
    assert_eq!(
        probe(true, 3_999, 1, 4_100),
        Some(ViolationKind::NotOutstanding { at, snd_una, snd_max })
    );
}

#[test]
fn only_a_stack_that_sends_within_its_input_sends_before_the_card_does() {
    let departure = |number| {
        move |item: &RecordItem| {
            matches!(item, RecordItem::PacketItem { movement: PacketEvent::Sent { packet, .. }, .. }
                if *packet == PacketNumber(number))
        }
    };
    let found = |calls, after: &[(u64, u64)]| {
        let mut items = good();
        for &(at, number) in after {
            let sent = items.remove(reported(&items, CLIENT, sent(at, SentKind::New)));
            items.insert(place(&items, departure(number)), sent);
        }
        let mut world = world();
        world.flows[0].output_calls = [calls; 2];
        first_breach(&world, &items)
    };
    // The second segment is sent before the first departs, or the third before the second does.
    let kept = |at| Some(ViolationKind::Kept { at: Offset(at), bytes: Bytes(1_000) });
    assert_eq!(found(OutputCalls::WithinInput, &[(1_000, 3)]), None);
    assert_eq!(found(OutputCalls::AfterInput, &[(1_000, 3)]), kept(0));
    assert_eq!(found(OutputCalls::WithinInput, &[(1_000, 3), (2_000, 3)]), None);
    assert_eq!(found(OutputCalls::WithinInput, &[(1_000, 3), (2_000, 4)]), kept(1_000));
}

#[test]
fn only_freebsds_base_stack_repeats_a_fin_in_an_ack() {
    // After the FIN at 4,000, an ACK with that number or the next one.
    let found = |calls, at: u64| {
        let mut items = good();
        items.truncate(place(&items, |item| item.at() == us(331_080)));
        let mut story = RecordBuilder::new();
        let closed = state(4_000, 4_001, 1_000);
        story.at(325_000).send((12, CLIENT), (at, 0, SentKind::Ack), Some(closed));
        story.enter(12, LINE).at(325_040).leave(12, LINE).enter(12, DELAY);
        story.at(331_080).leave(11, DELAY).arrive(11, SERVER);
        items.extend(story.items);
        let mut world = world();
        world.flows[0].output_calls = [calls; 2];
        first_breach(&world, &items)
    };
    for calls in [OutputCalls::AfterInput, OutputCalls::WithinInput] {
        assert_eq!(found(calls, 4_001), None, "{calls:?}");
    }
    assert_eq!(found(OutputCalls::WithinInput, 4_000), None);
    let (at, snd_max) = (Offset(4_000), Offset(4_001));
    assert_eq!(found(OutputCalls::AfterInput, 4_000), Some(ViolationKind::NotNext { at, snd_max }));
}
