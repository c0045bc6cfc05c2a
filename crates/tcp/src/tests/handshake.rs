//! Opening: RFC 9293 section 3.5, RFC 7323, RFC 2018.

use machine::Signal;
use packet::{Dir, Flags, IpVersion, Segment, SynLayout};
use units::{Duration, SeqNum};

use super::pair::{TcpPair, config};
use crate::{TcpSide, TcpState};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn three_segments_open_both_sides() {
    let mut pair = TcpPair::of("freebsd-13.2", "linux-6.18");
    pair.run(SECOND);
    let flags: Vec<_> = pair.log.iter().map(|s| s.flags.to_string()).collect();
    assert_eq!(flags, ["S", "S.", "."]);
    assert_eq!(pair.client.state(), TcpState::Established);
    assert_eq!(pair.server.state(), TcpState::Established);
    assert!(pair.signals.contains(&(TcpSide::Client, Signal::Connected)));
    assert!(pair.signals.contains(&(TcpSide::Server, Signal::Connected)));
    let numbers: Vec<_> = pair.log.iter().map(|s| (s.seq.0, s.ack.0)).collect();
    assert_eq!(numbers, [(1_000, 0), (2_000_000_000, 1_001), (1_001, 2_000_000_001)]);
}

#[test]
fn each_system_offers_its_options_in_its_order() {
    let mut pair = TcpPair::of("freebsd-13.2", "linux-6.18");
    pair.run(SECOND);
    let syn = pair.log[0].syn_options().unwrap();
    assert_eq!((syn.mss, syn.sack_permitted, syn.layout), (1_460, true, SynLayout::FreeBsd));
    // kern.ipc.maxsockbuf of 2 MiB: 65535 << 6 is the first to reach it.
    assert_eq!(syn.window_scale, Some(6));
    let answer = pair.log[1].syn_options().unwrap();
    assert_eq!((answer.layout, answer.window_scale), (SynLayout::Linux, Some(10)));
    assert_eq!((pair.log[0].window, pair.log[1].window), (65_535, 65_160));
}

#[test]
fn an_option_that_one_side_lacks_is_not_used() {
    let mut server = config("linux-6.18", TcpSide::Server);
    server.profile.timestamps = false;
    server.profile.sack = false;
    server.profile.window_scaling = false;
    let mut pair = TcpPair::new(config("freebsd-13.2", TcpSide::Client), server);
    pair.to_write = 20_000;
    pair.run(SECOND);
    let answer = pair.log[1];
    assert!(answer.timestamps.is_none());
    assert_eq!(answer.syn_options().unwrap().window_scale, None);
    assert!(!answer.syn_options().unwrap().sack_permitted);
    let data = pair.data().next().unwrap();
    assert!(data.timestamps.is_none());
    // Ten segments of 1460: no option bytes to deduct. The window is not scaled.
    assert_eq!(data.payload, 14_600);
    assert_eq!(data.window, 65_535);
    assert_eq!(pair.read, 20_000);
}

#[test]
fn the_smaller_mss_counts_and_ipv6_leaves_less() {
    let mut client = config("freebsd-13.2", TcpSide::Client);
    let mut server = config("freebsd-13.2", TcpSide::Server);
    client.ip = IpVersion::V6;
    server.ip = IpVersion::V6;
    server.profile.mtu = 1_280;
    let mut pair = TcpPair::new(client, server);
    pair.to_write = 100_000;
    pair.run(SECOND);
    assert_eq!(pair.log[0].syn_options().unwrap().mss, 1_440);
    assert_eq!(pair.log[1].syn_options().unwrap().mss, 1_220);
    assert_eq!(pair.data().next().unwrap().gso_size, 1_208);
}

#[test]
fn a_lost_syn_is_retransmitted_after_one_second_then_two() {
    let mut pair = TcpPair::of("freebsd-13.2", "freebsd-13.2");
    pair.lose = |number, _| number < 2;
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.client.state(), TcpState::Established);
    let syns = pair.log.iter().filter(|s| s.flags == Flags::SYN).count();
    assert_eq!(syns, 3);
    // RFC 6298 section 5.7 and cc_conn_init: after a lost SYN the window is one segment.
    assert_eq!(pair.client.sender_state().cwnd.get(), 1_448);
}

#[test]
fn after_two_lost_syns_the_fin_waits_for_the_window_of_one_packet() {
    // tcp_cwnd_test makes no exception for a FIN.
    let mut pair = TcpPair::of("linux-6.18", "linux-6.18");
    pair.lose = |number, _| number < 2;
    pair.to_write = 1_000;
    pair.close_after = true;
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.read, 1_000);
    let place = |is: fn(&Segment) -> bool| pair.log.iter().position(is).unwrap();
    let acked = place(|s| s.dir == Dir::Reverse && s.ack == SeqNum(2_001));
    let fin = place(|s| s.dir == Dir::Forward && s.flags.has(Flags::FIN));
    assert!(fin > acked, "{fin} {acked}");
}

#[test]
fn linux_undoes_the_timeout_of_a_syn_that_arrived() {
    // tcp_try_undo_spurious_syn: the SYN-ACK echoes the first SYN, though two more were sent.
    let mut pair = TcpPair::of("linux-6.18", "linux-6.18");
    pair.lose = |_, s| s.flags == Flags::SYN | Flags::ACK;
    pair.run(Duration::from_millis(2_500));
    let syns = pair.log.iter().filter(|s| s.flags == Flags::SYN).count();
    assert!(syns >= 3, "{syns}");
    pair.lose = |_, _| false;
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.client.state(), TcpState::Established);
    assert_eq!(pair.client.sender_state().cwnd.get(), 10 * 1_448);
}

#[test]
fn a_lost_syn_ack_is_retransmitted() {
    let mut pair = TcpPair::of("linux-6.18", "linux-6.18");
    pair.lose = |number, _| number == 1;
    pair.to_write = 1_000;
    pair.run(Duration::from_secs(5));
    assert_eq!((pair.client.state(), pair.read), (TcpState::Established, 1_000));
}

#[test]
fn the_first_data_replaces_a_lost_handshake_ack() {
    let mut pair = TcpPair::of("freebsd-13.2", "linux-6.18");
    pair.lose = |number, _| number == 2;
    pair.to_write = 1_000;
    pair.run(Duration::from_secs(5));
    assert_eq!((pair.server.state(), pair.read), (TcpState::Established, 1_000));
}

#[test]
fn a_reset_in_answer_to_the_syn_refuses_the_connection() {
    let mut pair = TcpPair::of("freebsd-13.2", "freebsd-13.2");
    pair.lose = |_, _| true;
    pair.run(Duration::from_millis(10));
    let mut reset = pair.log[0];
    reset.dir = Dir::Reverse;
    reset.flags = Flags::RST | Flags::ACK;
    reset.seq = SeqNum(0);
    // A reset that acknowledges something else is not for this SYN.
    reset.ack = SeqNum(1_002);
    pair.arrive(&reset);
    assert_eq!(pair.client.state(), TcpState::SynSent);
    reset.ack = SeqNum(1_001);
    pair.arrive(&reset);
    pair.serve();
    assert_eq!(pair.client.state(), TcpState::Closed);
    assert!(pair.signals.contains(&(TcpSide::Client, Signal::Aborted)));
}

#[test]
fn both_sides_may_open_at_once() {
    // RFC 9293 section 3.5, figure 8.
    for system in crate::profile::NAMES {
        let mut pair = TcpPair::of(system, system);
        pair.server.open();
        pair.to_write = 10_000;
        pair.run(SECOND);
        let syns = pair.log.iter().filter(|s| s.flags == Flags::SYN).count();
        let answers = pair.log.iter().filter(|s| s.flags == Flags::SYN | Flags::ACK).count();
        assert_eq!((syns, answers), (2, 2), "{system}");
        assert_eq!(pair.client.state(), TcpState::Established, "{system}");
        assert_eq!(pair.server.state(), TcpState::Established, "{system}");
        assert_eq!(pair.read, 10_000, "{system}");
    }
}

#[test]
fn a_tiny_mss_is_raised_to_the_minimum() {
    for system in crate::profile::NAMES {
        let mut pair = TcpPair::of(system, system);
        pair.run(Duration::from_millis(10));
        let mut answer = pair.forge(Flags::SYN | Flags::ACK, 0, 1);
        answer.options = packet::Options::Syn(packet::SynOptions {
            mss: 1,
            sack_permitted: true,
            ..packet::SynOptions::default()
        });
        pair.hear(&answer);
        assert_eq!(pair.client.state(), TcpState::Established, "{system}");
        assert!(pair.client.sender_state().mss.get() >= 48, "{system}");
    }
}

#[test]
fn a_listener_continues_to_listen_after_a_reset() {
    let mut pair = TcpPair::of("freebsd-13.2", "freebsd-13.2");
    // The client's answer to the SYN-ACK is lost, then it resets.
    pair.lose = |number, _| number == 2;
    pair.run(Duration::from_millis(150));
    assert_eq!(pair.server.state(), TcpState::SynReceived);
    let reset = Segment { flags: Flags::RST, seq: SeqNum(1_001), ..pair.log[0] };
    pair.arrive(&reset);
    assert_eq!(pair.server.state(), TcpState::Listen);
}

#[test]
fn an_ack_to_a_listener_is_answered_with_a_reset() {
    let mut pair = TcpPair::of("freebsd-13.2", "freebsd-13.2");
    let stray = Segment { flags: Flags::ACK, ack: SeqNum(77), ..Segment::default() };
    pair.arrive(&stray);
    pair.serve();
    let reset = pair.log[0];
    assert_eq!((reset.flags, reset.seq), (Flags::RST, SeqNum(77)));
    assert_eq!(pair.server.state(), TcpState::Listen);
}

#[test]
fn the_last_ack_of_a_handshake_must_be_in_the_window() {
    // syncache_expand of FreeBSD: not beyond sc_irs + sc_wnd; RFC 9293 section 3.10.7.4, first.
    for system in crate::profile::NAMES {
        let mut pair = TcpPair::of(system, system);
        pair.lose = |number, _| number > 1;
        pair.run(Duration::from_millis(120));
        assert_eq!(pair.server.state(), TcpState::SynReceived, "{system}");
        let ack = *pair.log.iter().rfind(|s| s.dir == Dir::Forward).unwrap();
        let mut heavy_faults = ack;
        heavy_faults.seq.0 += 1 << 20;
        pair.arrive(&heavy_faults);
        assert_eq!(pair.server.state(), TcpState::SynReceived, "{system}");
        pair.arrive(&ack);
        assert_eq!(pair.server.state(), TcpState::Established, "{system}");
    }
}

#[test]
fn freebsd_takes_the_payload_of_a_syn_ack_and_linux_drops_it() {
    for (system, bytes) in [("freebsd-14.3", 3), ("linux-6.18", 0)] {
        let mut pair = TcpPair::of(system, system);
        pair.client.open();
        pair.serve();
        let answer = pair.forge(Flags::SYN | Flags::ACK, 0, 1);
        let answer = Segment { payload: 3, ..answer };
        let sent = pair.hear(&answer);
        assert_eq!(pair.client.state(), TcpState::Established);
        assert_eq!(sent[0].ack, SeqNum(2_000_000_001 + bytes), "{system}");
        assert_eq!(pair.client.info().unread, u64::from(bytes), "{system}");
    }
}

#[test]
fn freebsd_agrees_to_ecn_in_a_simultaneous_open() {
    // tcp_ecn_input_syn_sent: although its own SYN did not ask for it.
    let mut pair = TcpPair::of("freebsd-14.3", "freebsd-14.3");
    pair.client.open();
    pair.serve();
    let syn = pair.forge(Flags::SYN | Flags::ECE | Flags::CWR, 0, 0);
    let answer = pair.hear(&syn);
    assert_eq!(answer[0].flags, Flags::SYN | Flags::ACK | Flags::ECE);
}

#[test]
fn later_retransmissions_of_a_syn_do_not_ask_for_ecn() {
    // RFC 3168 section 6.1.1.1: FreeBSD after one retransmission, Linux with the first.
    for (system, asking) in [("freebsd-14.3", 2), ("linux-6.18", 1)] {
        let mut client = config(system, TcpSide::Client);
        client.profile.ecn = crate::profile::EcnRule::Active;
        let mut pair = TcpPair::new(client, config(system, TcpSide::Server));
        pair.lose = |_, _| true;
        pair.run(Duration::from_secs(8));
        let asks: Vec<_> = pair.log.iter().map(|syn| syn.flags.has(Flags::ECE)).collect();
        assert!(asks.len() > 3, "{system}");
        assert_eq!(asks.iter().filter(|asks| **asks).count(), asking, "{system}");
        assert!(asks[..asking].iter().all(|asks| *asks), "{system}");
    }
}
