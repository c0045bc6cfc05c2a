//! The handshake (RFC 9000 sections 7, 8 and 14.1, RFC 9001 section 4).

use machine::Signal;
use record::Purpose;
use units::Duration;

use super::pair::{CLIENT, QuicPair, SERVER};
use crate::handshake::Flights;
use crate::packet::Space;
use crate::profile::{AmplificationRule, INET_2025_02, QuicProfile, RFC9002};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn sent_spaces(pair: &QuicPair, side: usize) -> Vec<(u64, Space, u32)> {
    let of_side = pair.sent.iter().filter(|sent| sent.from == side);
    of_side
        .map(|sent| (sent.at.as_nanos() / 1_000_000, sent.packet.space, sent.packet.size))
        .collect()
}

#[test]
fn the_handshake_takes_one_round_trip_and_address_validation_two() {
    let mut pair = QuicPair::new(RFC9002, RFC9002, ms(10));
    pair.open();
    pair.run_for(ms(100));
    assert_eq!(pair.signals[CLIENT], [Signal::Connected]);
    assert_eq!(pair.signals[SERVER], [Signal::Connected]);
    let client = sent_spaces(&pair, CLIENT);
    assert_eq!(client[0], (0, Space::Initial, 1_200));
    // ServerHello, then certificates of 1,800 bytes in two packets.
    let server = sent_spaces(&pair, SERVER);
    assert_eq!(server[0], (10, Space::Initial, 1_200));
    assert_eq!(
        [server[1], server[2]].map(|(ms, space, _)| (ms, space)),
        [(10, Space::Handshake); 2]
    );
    assert!(server[..3].iter().map(|&(_, _, size)| size).sum::<u32>() <= 3_600);
    // HANDSHAKE_DONE ends the handshake; every space has its own numbers.
    let done = pair.sent.iter().find(|sent| sent.packet.handshake_done).unwrap();
    assert_eq!((done.packet.space, done.packet.number), (Space::Application, 0));
    for space in [Space::Initial, Space::Handshake] {
        assert!(pair.ends.iter().all(|end| end.handshake.is_discarded(space)));
    }
    assert!(pair.ends.iter().all(|end| end.bytes_in_flight == 0 && end.loss_timer.is_none()));
}

#[test]
fn a_lost_client_hello_is_retransmitted_after_three_initial_round_trips_section_6_2_2() {
    let mut first = true;
    let mut pair = QuicPair::new(RFC9002, RFC9002, ms(10))
        .losing(move |side, _| side == CLIENT && core::mem::take(&mut first));
    pair.open();
    pair.run_for(ms(2_000));
    // 333 + 4 * 166.5 ms; two probes.
    let client = sent_spaces(&pair, CLIENT);
    assert_eq!([client[1], client[2]], [(999, Space::Initial, 1_200); 2]);
    assert!(pair.ends.iter().all(|end| end.is_open()));
}

#[test]
fn any_lost_handshake_packet_is_recovered() {
    for side in [CLIENT, SERVER] {
        for lost in 1..=5 {
            let mut count = 0;
            let mut pair = QuicPair::new(RFC9002, RFC9002, ms(10)).losing(move |from, _| {
                count += u32::from(from == side);
                from == side && count == lost
            });
            pair.open();
            pair.run_for(ms(10_000));
            assert!(pair.ends.iter().all(|end| end.is_open()), "{side} {lost}");
            assert!(pair.ends.iter().all(|end| end.handshake.confirmed), "{side} {lost}");
            assert!(pair.ends.iter().all(|end| end.bytes_in_flight == 0), "{side} {lost}");
        }
    }
}

#[test]
fn a_server_sends_three_times_the_bytes_received_before_validation_section_8_1() {
    let long = Flights { server_rest: 9_000, ..Flights::TYPICAL };
    let long = QuicProfile { handshake: Some(long), ..RFC9002 };
    let mut pair = QuicPair::new(long, long, ms(50));
    pair.open();
    pair.run_for(ms(90));
    let left: u32 = sent_spaces(&pair, SERVER).iter().map(|&(_, _, size)| size).sum();
    assert!((2_400..=3_600).contains(&left), "{left}");
    pair.run_for(ms(5_000));
    assert!(pair.ends.iter().all(|end| end.is_open()));
}

/// The packets that a server of each rule sends before the client's address is validated.
#[test]
fn the_last_packet_before_validation_fits_waits_or_exceeds() {
    let sizes = |amplification| {
        let long = Flights { server_rest: 4_000, ..Flights::TYPICAL };
        let long = QuicProfile { handshake: Some(long), amplification, ..RFC9002 };
        let mut pair = QuicPair::new(long, long, ms(50));
        pair.open();
        pair.run_for(ms(90));
        sent_spaces(&pair, SERVER).iter().map(|&(_, _, size)| size).collect::<Vec<_>>()
    };
    assert_eq!(sizes(AmplificationRule::FullDatagrams), [1_200, 1_471]);
    assert_eq!(sizes(AmplificationRule::Remainder), [1_200, 1_471, 929]);
    assert_eq!(sizes(AmplificationRule::Exceeding), [1_200, 1_471, 1_472]);
}

#[test]
fn a_client_probes_though_nothing_is_in_flight_section_6_2_2_1() {
    // The server's first Handshake packets are lost: the client has nothing more to send.
    let long = QuicProfile {
        handshake: Some(Flights { server_rest: 4_000, ..Flights::TYPICAL }),
        ..RFC9002
    };
    let mut lost = 0;
    let mut pair = QuicPair::new(long, long, ms(50)).losing(move |side, packet| {
        let hit = side == SERVER && packet.space == Space::Handshake && lost < 8;
        lost += u32::from(hit);
        hit
    });
    pair.open();
    pair.run_for(ms(20_000));
    let timers = pair
        .events(CLIENT)
        .filter(|event| matches!(event, record::Event::Timer(Purpose::LossProbe)));
    assert!(timers.count() >= 1);
    assert!(pair.ends.iter().all(|end| end.is_open()));
}

#[test]
fn without_a_handshake_data_flows_at_once() {
    let mut pair = QuicPair::new(INET_2025_02, INET_2025_02, ms(10));
    pair.open();
    assert_eq!(pair.write(CLIENT, 100), 100);
    pair.run_for(ms(10));
    assert_eq!(pair.signals[SERVER], [Signal::Connected, Signal::Readable]);
}

/// The ServerHello is queued after probes of the Handshake space, which the peer cannot decrypt
/// before it: a timeout probes other spaces too, whatever the window (section 6.2.4).
#[test]
fn a_lost_server_hello_gets_past_a_full_window() {
    for profile in [RFC9002, crate::profile::INET_2025_03] {
        let mut profile = profile;
        profile.newreno.initial_window = 2;
        for losses in 0..5 {
            let mut left = losses;
            let mut pair = QuicPair::new(profile, profile, Duration::from_millis(20)).losing(
                move |side, packet| {
                    let hello = side == SERVER
                        && packet.space == Space::Initial
                        && packet.crypto.is_some()
                        && left > 0;
                    left -= u32::from(hello);
                    hello
                },
            );
            pair.open();
            pair.run_for(Duration::from_secs(60));
            assert!(
                pair.ends.iter().all(crate::QuicEndpoint::is_open),
                "{} {losses}",
                profile.name
            );
        }
    }
}
