//! Tests of the messages of conversations.

use packet::Segment;
use units::{Instant, SeqNum};

use super::*;

const MSS: u64 = 1_000;
/// At the client, 40 ms from the server.
const AT_CLIENT: Distances = [0, 40_000_000];

/// A packet of this host, of which `next` counts the bytes, at a time in ms.
fn packet(ms: u64, dir: Dir, next: &mut [u32; 2], payload: u32) -> CapturedPacket {
    let (own, peer) = (dir as usize, dir.reversed() as usize);
    let segment = Segment {
        flags: Flags::ACK | Flags::PSH,
        dir,
        seq: SeqNum(next[own]),
        ack: SeqNum(next[peer]),
        payload,
        ..Segment::default()
    };
    next[own] += payload;
    let at = Instant::from_nanos(ms * 1_000_000);
    CapturedPacket { at, frame: 1, segment, captured: payload, id: 0, ttl: 0, options_cut: false }
}

fn message(by_client: bool, bytes: u64, ms: u64) -> Message {
    Message { by_client, bytes, after: ms * 1_000_000 }
}

#[test]
fn waits_of_both_hosts_are_found() {
    let mut next = [0; 2];
    let mut packets = Vec::new();
    for request in 0..3 {
        // 100 ms for each: a round trip, 50 ms of the server, 10 ms of the client.
        let at = 100 * request;
        packets.push(packet(at, Dir::Forward, &mut next, 200));
        packets.push(packet(at + 90, Dir::Reverse, &mut next, 1_000));
    }
    let found =
        Conversation::of(&packets, Dir::Reverse, MSS, AT_CLIENT, SenderLimits::default()).unwrap();
    let one = [message(true, 200, 10), message(false, 1_000, 50)];
    let mut all = one.repeat(3);
    all[0].after = 0;
    assert_eq!(found, Conversation { messages: all, held: 0, window: None, longest_wait: None });
    let quick = found.with_waits(false, 0);
    assert_eq!(quick.messages[1], message(false, 1_000, 0));
    // Together, they wait as long as before: what the round trips cost.
    let of_waits = found.batched_with_waits();
    assert_eq!(of_waits.messages, [message(true, 600, 20), message(false, 3_000, 150)]);
    assert_eq!(of_waits.served_together(), None);
    // A client with all its requests at hand waits for no answer; whether the server works at all of them together is open.
    let batch = found.batched();
    assert_eq!(batch.messages, [message(true, 600, 0), message(false, 3_000, 150)]);
    let together = batch.served_together().unwrap();
    assert_eq!(together.messages, [message(true, 600, 0), message(false, 3_000, 50)]);
}

/// As after a handshake of TLS: the client ends it and asks in one message, which the server answers as it does all others.
#[test]
fn the_first_request_of_a_batch_may_end_the_opening() {
    let mut messages = vec![message(true, 517, 0), message(false, 3_500, 1), message(true, 280, 0)];
    for _ in 0..4 {
        messages.extend([message(false, 100, 0), message(true, 200, 0)]);
    }
    messages.push(message(false, 100, 0));
    let all = Conversation { messages, held: 0, window: None, longest_wait: None };
    let batch = [message(true, 1_080, 0), message(false, 500, 0)];
    assert_eq!(all.batched().messages, [&all.messages[..2], &batch].concat());
    assert_eq!((all.answer(true), all.answer(false)), (Some(4_000), None));
}

/// A client that writes 30 ms after its connection is there, and a server that greets it 20 ms after that.
#[test]
fn the_wait_before_the_first_message_is_that_since_the_opening() {
    for (greets, first) in [(false, message(true, 200, 30)), (true, message(false, 200, 20))] {
        let mut next = [0; 2];
        let mut packets = Vec::new();
        for (ms, dir, flags) in [
            (0, Dir::Forward, Flags::SYN),
            (40, Dir::Reverse, Flags::SYN | Flags::ACK),
            (40, Dir::Forward, Flags::ACK),
        ] {
            let mut one = packet(ms, dir, &mut next, 0);
            one.segment.flags = flags;
            packets.push(one);
        }
        let (dir, ms) = if greets { (Dir::Reverse, 100) } else { (Dir::Forward, 70) };
        packets.push(packet(ms, dir, &mut next, 200));
        let limits = SenderLimits::default();
        let found = Conversation::of(&packets, dir, MSS, AT_CLIENT, limits).unwrap();
        assert_eq!(found.messages, [first]);
        // Without the opening it is not known.
        let found = Conversation::of(&packets[3..], dir, MSS, AT_CLIENT, limits).unwrap();
        assert_eq!(found.messages[0].after, 0);
    }
}

#[test]
fn a_host_that_sends_on_after_a_rest_waited() {
    let mut next = [0; 2];
    let packets = [
        packet(0, Dir::Forward, &mut next, 300),
        packet(41, Dir::Reverse, &mut next, 0),
        packet(500, Dir::Forward, &mut next, 1_000),
    ];
    let found =
        Conversation::of(&packets, Dir::Forward, MSS, AT_CLIENT, SenderLimits::default()).unwrap();
    assert_eq!(found.messages, [message(true, 300, 0), message(true, 1_000, 500)]);
    // Limited by a window, it waits for that.
    let windowed = SenderLimits { is_window_limited: true, timeouts: &[] };
    let found = Conversation::of(&packets, Dir::Forward, MSS, AT_CLIENT, windowed).unwrap();
    assert_eq!(found.messages, [message(true, 1_300, 0)]);
    // Released by a timer, they waited for that.
    let at = packets.iter().map(|packet| packet.at.as_nanos()).collect::<Vec<_>>();
    let timed = SenderLimits { is_window_limited: false, timeouts: &at };
    let found = Conversation::of(&packets, Dir::Forward, MSS, AT_CLIENT, timed).unwrap();
    assert_eq!(found.messages, [message(true, 1_300, 0)]);
}

/// A buffer of two segments and a half over a link that takes 4 ms for each: what an ACK releases comes 4 ms later.
#[test]
fn what_acks_release_over_a_slow_link_are_no_messages() {
    let mut next = [0; 2];
    let mut packets = Vec::new();
    for round in 0..20_u64 {
        let at = round * 60;
        for (ms, payload) in [(4, 1_000), (8, 1_000), (10, 500)] {
            packets.push(packet(at + ms, Dir::Forward, &mut next, payload));
        }
        packets.push(packet(at + 50, Dir::Reverse, &mut next, 0));
    }
    // 10 ms from the client.
    let distances = [10_000_000, 40_000_000];
    let limits = SenderLimits::default();
    let found = Conversation::of(&packets, Dir::Forward, MSS, distances, limits);
    assert_eq!(found, None);
}

/// A window of two segments and a half, captured in the middle of a long way: all data are acknowledged there before
/// the first ACK has come to the sender.
#[test]
fn what_acks_release_a_long_way_from_here_are_no_messages() {
    let mut next = [0; 2];
    let mut packets = Vec::new();
    for round in 0..20_u64 {
        let at = round * 100;
        for (ms, payload) in [(0, 1_000), (1, 1_000), (2, 500)] {
            packets.push(packet(at + ms, Dir::Forward, &mut next, payload));
        }
        let mut acked = next;
        acked[0] -= 1_500;
        packets.push(packet(at + 50, Dir::Reverse, &mut acked, 0));
        packets.push(packet(at + 52, Dir::Reverse, &mut next, 0));
    }
    // 50 ms from both hosts.
    let distances = [50_000_000, 50_000_000];
    let limits = SenderLimits::default();
    let found = Conversation::of(&packets, Dir::Forward, MSS, distances, limits).unwrap();
    assert_eq!(found.messages, [message(true, 50_000, 0)]);
}

#[test]
fn what_is_sent_at_once_with_the_peer_is_no_conversation() {
    let mut next = [0; 2];
    let mut packets = Vec::new();
    for n in 0..20_u64 {
        let mut own = next;
        packets.push(packet(n, Dir::Forward, &mut own, 1_000));
        packets.push(packet(n, Dir::Reverse, &mut next, 1_000));
        next[0] = own[0];
    }
    // Neither host has acknowledged what the other sent.
    for one in &mut packets {
        one.segment.ack = SeqNum(0);
    }
    assert_eq!(
        Conversation::of(&packets, Dir::Forward, MSS, AT_CLIENT, SenderLimits::default()),
        None
    );
}
