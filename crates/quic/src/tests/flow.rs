//! Flow control and acknowledgments over whole transfers (RFC 9000 sections 4 and 13.2).

use record::{Event, SendLimit};
use units::{Bytes, Duration};

use super::pair::{CLIENT, QuicPair, SERVER};
use crate::flow_control::Windows;
use crate::packet::AckFrequency;
use crate::profile::{INET_2025_02, QuicProfile, RFC9002};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_sender_stops_at_the_peers_limit_until_it_is_raised_section_4_1() {
    let small = QuicProfile { windows: Windows { connection: 20_000, stream: 15_000 }, ..RFC9002 };
    let mut pair = QuicPair::new(RFC9002, small, ms(10));
    pair.connected();
    pair.reads = false;
    pair.write(CLIENT, 50_000);
    pair.run_for(ms(500));
    assert_eq!(pair.ends[CLIENT].send.next(), 15_000);
    assert!(pair.events(CLIENT).any(|event| event == Event::SendLimited(SendLimit::PeerWindow)));
    pair.act(SERVER, |server, cx| server.read_up_to(cx, 7_000));
    pair.run_for(ms(500));
    assert_eq!(pair.ends[CLIENT].send.next(), 15_000);
    pair.act(SERVER, |server, cx| server.read_up_to(cx, 500));
    pair.run_for(ms(500));
    // The stream's limit moved to 22,500; the connection's is still 20,000.
    assert_eq!(pair.ends[CLIENT].send.next(), 20_000);
    pair.act(SERVER, |server, cx| server.read_up_to(cx, u64::MAX));
    pair.reads = true;
    pair.run_for(ms(2_000));
    assert_eq!(pair.ends[SERVER].recv.taken(), 50_000);
}

#[test]
fn a_lost_limit_is_retransmitted_section_13_3() {
    let small = QuicProfile { windows: Windows { connection: 20_000, stream: 20_000 }, ..RFC9002 };
    let mut lost = 0;
    let mut pair = QuicPair::new(RFC9002, small, ms(10)).losing(move |side, packet| {
        let hit = side == SERVER && packet.max_data.is_some() && lost < 2;
        lost += u32::from(hit);
        hit
    });
    pair.connected();
    pair.write(CLIENT, 100_000);
    pair.run_for(ms(20_000));
    assert_eq!(pair.ends[SERVER].recv.taken(), 100_000);
}

/// With PING probes alone, only their acknowledgment would reveal that the limit was lost; on a
/// link that loses every third packet the retransmitted limit would be lost too, forever.
#[test]
fn a_probe_carries_the_limits_in_flight_section_6_2_4() {
    let small = QuicProfile { windows: Windows { connection: 20_000, stream: 20_000 }, ..RFC9002 };
    let mut lost = 0;
    let mut pair = QuicPair::new(RFC9002, small, ms(10)).losing(move |side, packet| {
        let hit = side == SERVER && packet.max_data.is_some() && lost < 1;
        lost += u32::from(hit);
        hit
    });
    pair.connected();
    // The whole window, after which the client sends nothing.
    pair.write(CLIENT, 100_000);
    pair.run_for(ms(20_000));
    let mut sent = pair.sent.iter().filter(|sent| sent.from == SERVER);
    let first = sent.by_ref().find(|sent| sent.lost).unwrap();
    assert!(first.packet.max_data.is_some());
    let probe = sent.find(|sent| sent.packet.is_ack_eliciting()).unwrap();
    assert_eq!((probe.packet.ping, probe.packet.max_data), (false, first.packet.max_data));
}

#[test]
fn the_ack_of_an_odd_last_packet_is_delayed() {
    let mut pair = QuicPair::new(INET_2025_02, INET_2025_02, ms(10));
    pair.open();
    pair.write(CLIENT, 100);
    pair.run_for(ms(100));
    let since = pair.now;
    pair.write(CLIENT, 100);
    pair.run_for(ms(100));
    let answer = pair.sent.iter().find(|sent| sent.from == SERVER && sent.at > since).unwrap();
    assert_eq!(answer.at.since(since), ms(35));
    // 25 ms in units of 8 us.
    assert_eq!(answer.packet.ack.delay, 3_125);
    // The delay is subtracted from the sample.
    assert_eq!(pair.ends[CLIENT].rtt.smoothed(), ms(20));
}

#[test]
fn ack_frequency_asks_the_receiver_for_fewer() {
    let asks = AckFrequency { threshold: 9, max_delay_us: 100_000, reordering: 1 };
    let asking = QuicProfile { ack_frequency: Some(asks), pacing: false, ..RFC9002 };
    let mut pair = QuicPair::new(asking, RFC9002, ms(10));
    pair.connected();
    let before = pair.sent.len();
    pair.write(CLIENT, 1_000_000);
    pair.run_for(ms(3_000));
    let after = &pair.sent[before..];
    let (data, acks) = (
        after.iter().filter(|sent| sent.from == CLIENT).count(),
        after.iter().filter(|sent| sent.from == SERVER).count(),
    );
    assert!((9..=11).contains(&(data / acks)), "{data} {acks}");
}

#[test]
fn a_data_packet_carries_the_pending_acknowledgment() {
    let mut pair = QuicPair::new(RFC9002, RFC9002, ms(10));
    pair.connected();
    let before = pair.sent.len();
    pair.write(CLIENT, 100);
    pair.run_for(ms(10));
    pair.write(SERVER, 100);
    pair.run_for(ms(5));
    let server: Vec<_> = pair.sent[before..].iter().filter(|sent| sent.from == SERVER).collect();
    assert_eq!(server.len(), 1);
    assert!(server[0].packet.payload() == 100 && server[0].packet.ack.largest().is_some());
}

#[test]
fn acknowledgments_of_acknowledgments_are_a_knob() {
    for all in [false, true] {
        let mut client = INET_2025_02;
        client.acks.bundle_all = all;
        let mut pair = QuicPair::new(client, INET_2025_02, ms(10));
        pair.open();
        pair.write(CLIENT, 300_000);
        pair.run_for(ms(1_000));
        let with = pair.sent.iter().filter(|sent| {
            sent.from == CLIENT && sent.packet.payload() > 0 && sent.packet.ack.largest().is_some()
        });
        assert_eq!(with.count() > 0, all);
    }
}

#[test]
fn the_application_is_signalled_when_the_send_buffer_has_space() {
    let short = QuicProfile { send_buffer: Bytes(10_000), ..INET_2025_02 };
    let mut pair = QuicPair::new(short, INET_2025_02, ms(10));
    pair.open();
    assert_eq!(pair.write(CLIENT, 30_000), 10_000);
    pair.run_for(ms(30));
    assert!(pair.signals[CLIENT].contains(&machine::Signal::Writable));
    assert!(pair.write(CLIENT, 30_000) > 0);
}
