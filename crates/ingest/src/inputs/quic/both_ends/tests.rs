//! Logs made by hand, of a path whose delays and losses are known.

use diagnose::quic::record::{QuicFrame, QuicLossTrigger, QuicPacketKind};

use super::*;

const MS: u64 = 1_000_000;
const STREAM: [QuicFrame; 1] = [QuicFrame::Stream { id: 0, offset: 0, length: 1_000, fin: false }];

fn packet(number: u64, bytes: u64, acked: &[(u64, u64)]) -> QuicPacketRecord<'_> {
    QuicPacketRecord {
        kind: QuicPacketKind::OneRtt,
        number: Some(number),
        bytes: Some(bytes),
        frames: if acked.is_empty() { &STREAM } else { &[] },
        has_ack: !acked.is_empty(),
        acked,
        ..QuicPacketRecord::default()
    }
}

/// Logs of the client and the server: a packet every 10 ms from the client, 20 ms to the server, which
/// sends an ACK 5 ms after each, 30 ms to the client. Every tenth packet is lost and declared lost after
/// 100 ms; packet 55 is declared lost after 10 ms. The server's clock is 5 s ahead and gains `gains` ns per
/// second.
fn traces(count: u64, gains: u64) -> [PacketTrace; 2] {
    let server = |at: u64| at + 5_000 * MS + at * gains / 1_000_000_000;
    let (mut one, mut two) = (PacketTrace::default(), PacketTrace::default());
    let mut left = usize::MAX;
    for number in 0..count {
        let at = (number + 1) * 10 * MS;
        one.push(at, &QuicRecord::Sent(packet(number, 1_200, &[])), &mut left);
        let lost = QuicRecord::Lost {
            kind: QuicPacketKind::OneRtt,
            number: Some(number),
            trigger: QuicLossTrigger::Packets,
        };
        if number % 10 == 9 {
            one.push(at + 100 * MS, &lost, &mut left);
            continue;
        }
        if number == 55 {
            one.push(at + 10 * MS, &lost, &mut left);
        }
        let arrived = at + 20 * MS;
        two.push(server(arrived), &QuicRecord::Received(packet(number, 1_200, &[])), &mut left);
        let acked = [(number, number)];
        let answered = arrived + 5 * MS;
        two.push(server(answered), &QuicRecord::Sent(packet(number, 40, &acked)), &mut left);
        let back = answered + 30 * MS;
        one.push(back, &QuicRecord::Received(packet(number, 40, &acked)), &mut left);
    }
    [one, two]
}

#[test]
fn delays_losses_and_false_losses_are_those_of_the_path() {
    let [client, server] = traces(200, 0);
    let pair = compare([0, 1], [&client, &server], true).unwrap();
    let clock = pair.clock.unwrap();
    // Half of the difference of 20 and 30 ms does not show in the clocks.
    assert_eq!(clock.ahead, (5_000 * MS - 5 * MS) as i64);
    assert_eq!((clock.round_trip, clock.drift), (50 * MS as i64, None));
    let [up, down] = pair.transits;
    // The last one was on its way when the server's log ended.
    assert_eq!((up.packets, up.lost, up.open), (199, 19, 1));
    assert_eq!((up.declared_lost, up.falsely_declared, up.arrived_before), (19, 1, 0));
    assert_eq!(up.delays, Some([25 * MS as i64; 4]));
    assert_eq!(up.ack_delays, Some([5 * MS as i64; 4]));
    assert_eq!((down.packets, down.lost, down.delays), (180, 0, Some([25 * MS as i64; 4])));
    // Nothing that the client sent is an ACK.
    assert_eq!((down.ack_delays, up.queue()), (None, Some(0)));
}

#[test]
fn packets_before_the_other_log_begins_have_their_delays() {
    // The server's times begin with its log, 25 ms after the client's: no time is below 0.
    let [client, mut server] = traces(200, 0);
    let begin = 5_025 * MS;
    for packet in server.received.values_mut() {
        packet.at -= begin;
    }
    for packet in server.sent.values_mut() {
        packet.at -= begin;
    }
    for ack in &mut server.acks {
        ack.1 -= begin;
    }
    server.last -= begin;
    let pair = compare([0, 1], [&client, &server], true).unwrap();
    assert_eq!(pair.transits[0].delays, Some([25 * MS as i64; 4]));
    assert_eq!(pair.transits[0].queue(), Some(0));
}

#[test]
fn the_time_of_day_gives_the_clock_unless_a_packet_contradicts_it() {
    let [mut client, mut server] = traces(200, 0);
    client.begins_at(Some(2 * NO_DAY), 0);
    // The clock of the server's log is 5 s ahead, and its time 0 as much earlier.
    server.begins_at(Some(2 * NO_DAY - 5_000 * MS), 0);
    let pair = compare([0, 1], [&client, &server], true).unwrap();
    assert_eq!((pair.origin, pair.clock.unwrap().ahead), (ClockOrigin::TimeOfDay, 0));
    // 20 and 30 ms, which least delays alone cannot distinguish.
    assert_eq!(pair.transits.map(|transit| transit.delays.unwrap()[1] / MS as i64), [20, 30]);
    // The server's day is 1 s ahead.
    server.begins_at(Some(2 * NO_DAY - 4_000 * MS), 0);
    let pair = compare([0, 1], [&client, &server], true).unwrap();
    assert_eq!(pair.origin, ClockOrigin::OtherTimeOfDay);
    assert_eq!(pair.clock.unwrap().ahead, (1_000 * MS - 5 * MS) as i64);
    // A counter of a host is no time of day.
    client.begins_at(Some(0), 10 * MS);
    let pair = compare([0, 1], [&client, &server], true).unwrap();
    assert_eq!(pair.origin, ClockOrigin::LogStart);
}

#[test]
fn a_drift_is_taken_out_of_the_delays() {
    // 100 parts in a million over 20 s: 2 ms.
    let [client, server] = traces(2_000, 100_000);
    let pair = compare([0, 1], [&client, &server], true).unwrap();
    let drift = pair.clock.unwrap().drift.unwrap();
    assert!((drift - 100_000.0).abs() < 1_000.0, "{drift}");
    let [least, _, _, most] = pair.transits[0].delays.unwrap();
    assert!(most - least < 50_000, "{least} {most}");
}

#[test]
fn logs_of_other_connections_do_not_agree_in_lengths() {
    let [client, _] = traces(200, 0);
    let [_, mut server] = traces(200, 0);
    for (number, received) in server.received.values_mut().enumerate() {
        received.bytes -= (number % 5) as u32;
    }
    assert_eq!(compare([0, 1], [&client, &server], true), None);
}

#[test]
fn packets_beyond_the_limit_are_left_out() {
    let mut trace = PacketTrace::default();
    let mut left = 3;
    for number in 0..5 {
        trace.push(number, &QuicRecord::Sent(packet(number, 1_200, &[])), &mut left);
    }
    assert_eq!((trace.sent.len(), trace.is_partial, left), (3, true, 0));
}

/// Of 199 packets 19 are lost; one arrives 10 ms after it was declared lost, 15 ms by the clocks as they are aligned.
#[test]
fn the_view_of_the_peer_has_what_arrived_of_the_packets_declared_lost() {
    let [client, server] = traces(200, 0);
    let pair = compare([3, 1], [&client, &server], true).unwrap();
    let view = QuicPeerView { declared_lost: 20, arrived: 1, late: 15 * MS };
    assert_eq!(pair.views(), [(3, view), (1, QuicPeerView::default())]);
}
