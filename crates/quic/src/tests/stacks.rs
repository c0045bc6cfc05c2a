//! The first packets of the profiles that are compared with the stacks themselves, and their reaction to marks.

use record::{Cause, Event};
use units::Duration;

use super::pair::{CLIENT, QuicPair, SERVER};
use crate::packet::{QuicPacket, Space};
use crate::profile::{QUINN_0_11, QuicProfile, stacks::QUIC_GO_0_65};

/// All packets of a datagram.
fn packets(first: &QuicPacket) -> Vec<&QuicPacket> {
    core::iter::successors(Some(first), |packet| packet.coalesced.as_deref()).collect()
}

fn transfer(profile: QuicProfile, bytes: u64) -> QuicPair {
    let mut pair =
        QuicPair::with_cc(profile, profile, Duration::from_millis(10), profile.controller())
            .rate(20_000_000);
    pair.open();
    pair.run_for(Duration::from_millis(25));
    pair.write(CLIENT, bytes);
    pair
}

/// UDP payloads of the datagrams of one side.
fn sizes(pair: &QuicPair, side: usize) -> Vec<u64> {
    let of_side = pair.sent.iter().filter(|sent| sent.from == side);
    of_side.map(|sent| sent.packet.wire_len().get() - 28).collect()
}

/// Two padded Initial packets with the ClientHello, the padded acknowledgment of the ServerHello, the Finished with the
/// connection IDs, then data.
#[test]
fn the_first_flights_of_quic_go_have_the_sizes_of_the_stack() {
    let mut pair = transfer(QUIC_GO_0_65, 100_000);
    pair.run_for(Duration::from_millis(100));
    let sent = sizes(&pair, CLIENT);
    assert_eq!(sent[..3], [1_280; 3]);
    assert!(sent[3].abs_diff(181) < 10, "{}", sent[3]);
    assert_eq!(sent[4..12], [1_280; 8]);
    let last = pair.sent.iter().find(|sent| sent.packet.coalesced.is_some()).unwrap();
    let spaces: Vec<Space> = packets(&last.packet).iter().map(|packet| packet.space).collect();
    assert_eq!(spaces, [Space::Handshake, Space::Application]);
    // The server acknowledges the connection IDs with HANDSHAKE_DONE.
    let done = pair.sent.iter().find(|sent| sent.packet.handshake_done).unwrap();
    assert_eq!((done.from, done.packet.ack.ranges.as_slice()), (SERVER, &[(0, 0)][..]));
}

/// One datagram of 1,200 bytes ends the handshake; a probe of 1,326 bytes, acknowledged at once, follows it.
#[test]
fn the_client_of_quinn_coalesces_and_probes_at_once() {
    let mut pair = transfer(QUINN_0_11, 100_000);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(sizes(&pair, CLIENT)[..4], [1_200, 1_200, 1_326, 1_200]);
    let second = pair.sent.iter().filter(|sent| sent.from == CLIENT).nth(1).unwrap();
    assert_eq!(packets(&second.packet).len(), 3);
    let probe = pair.sent.iter().find(|sent| sent.packet.immediate_ack).unwrap();
    let arrival = probe.at + Duration::from_millis(10);
    let answered = pair.sent.iter().any(|sent| {
        let acked = sent.packet.ack.largest() == Some(probe.packet.number);
        sent.from == SERVER && acked && sent.at.since(arrival) < Duration::from_millis(2)
    });
    assert!(answered);
}

/// A marked packet is acknowledged at once, and the window is reduced once for the marks of a round trip.
#[test]
fn marks_reduce_the_window_of_quic_go_and_quinn() {
    for profile in [QUIC_GO_0_65, QUINN_0_11] {
        let mut pair = transfer(profile, 300_000);
        pair.marks = Some(60..=63);
        pair.run_for(Duration::from_secs(1));
        let marked = |event: &Event| matches!(event, Event::Window { cause: Cause::Ecn, .. });
        assert_eq!(pair.events(CLIENT).filter(marked).count(), 1, "{}", profile.name);
        assert_eq!(pair.ends[CLIENT].totals().lost_packets, 0);
        let counts = |sent: &&super::pair::TracedPacket| sent.packet.ack.ecn.ce;
        let server = pair.sent.iter().filter(|sent| sent.from == SERVER);
        assert_eq!(server.map(|sent| counts(&sent)).max(), Some(4));
    }
}

/// A profile without ECN sends no capable packet.
#[test]
fn other_profiles_send_no_ecn() {
    let mut pair = transfer(crate::profile::RFC9002, 100_000);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.sent.iter().all(|sent| sent.packet.ecn == 0 && sent.packet.coalesced.is_none()));
}
