//! Explicit congestion notification: RFC 3168 section 6.1.

use packet::{Dir, Flags, Segment};
use units::Duration;

use super::pair::{TcpPair, config};
use crate::TcpSide;
use crate::profile::EcnRule;

fn asking(system: &str) -> TcpPair {
    let mut client = config(system, TcpSide::Client);
    client.profile.ecn = EcnRule::Active;
    client.tso = false;
    TcpPair::new(client, config(system, TcpSide::Server))
}

#[test]
fn the_handshake_negotiates_it_and_new_data_is_ecn_capable() {
    for system in crate::profile::NAMES {
        let mut pair = asking(system);
        pair.to_write = 20_000;
        pair.run(Duration::from_secs(2));
        assert_eq!(pair.log[0].flags, Flags::SYN | Flags::ECE | Flags::CWR, "{system}");
        assert_eq!(pair.log[1].flags, Flags::SYN | Flags::ACK | Flags::ECE, "{system}");
        assert!(pair.log[..2].iter().all(|s| s.ecn == 0), "{system}: a SYN is not ECN-capable");
        assert!(pair.data().all(|s| s.ecn == 2), "{system}");
        assert!(pair.acks().all(|s| s.ecn == 0), "{system}: a pure ACK is not ECN-capable");
    }
}

#[test]
fn no_profile_requests_it_by_default() {
    let mut pair = TcpPair::of("freebsd-13.2", "linux-6.18");
    pair.to_write = 20_000;
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.log[0].flags, Flags::SYN);
    assert!(pair.log.iter().all(|s| s.ecn == 0));
}

/// Runs a transfer in which segment number `marked` of the log is marked CE.
fn with_mark(system: &str, marked: usize) -> TcpPair {
    let mut pair = asking(system);
    pair.to_write = 300_000;
    pair.mark = Some(marked);
    pair.run(Duration::from_secs(30));
    assert_eq!(pair.read, 300_000, "{system}");
    pair
}

#[test]
fn a_mark_halves_the_window_once_without_retransmissions() {
    for system in crate::profile::NAMES {
        let pair = with_mark(system, 20);
        let echoes = |s: &&Segment| s.dir == Dir::Reverse && s.flags.has(Flags::ECE);
        let acks_with_echo =
            pair.log.iter().skip(2).filter(echoes).filter(|s| s.syn_options().is_none()).count();
        assert!(acks_with_echo > 0, "{system}");
        let reported = pair.data().filter(|s| s.flags.has(Flags::CWR)).count();
        assert_eq!(reported, 1, "{system}: the sender sets CWR once");
        assert_eq!(pair.client.totals().retransmitted_packets, 0, "{system}");
        let state = pair.client.sender_state();
        let ssthresh = state.ssthresh.expect(system).get();
        assert!(ssthresh < pair.client.totals().max_cwnd.get(), "{system}");
        assert!(!state.in_recovery, "{system}");
    }
}

#[test]
fn the_echo_stops_when_the_sender_has_reacted() {
    let pair = with_mark("freebsd-13.2", 20);
    let last = pair.acks().last().unwrap();
    assert!(!last.flags.has(Flags::ECE));
}

#[test]
fn the_window_stays_where_the_echo_left_it() {
    // newreno_post_recovery of FreeBSD reduces the window to the data in flight only after a fast
    // recovery; RFC 3168 section 6.1.2 requires one reduction.
    let mut pair = asking("freebsd-13.2");
    pair.to_write = 14_480;
    pair.mark = Some(0);
    pair.run(Duration::from_secs(2));
    let ssthresh = pair.client.sender_state().ssthresh.unwrap();
    // Data sent afterwards is acknowledged: nothing else is in flight.
    pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 100), 100));
    pair.serve();
    pair.run(Duration::from_millis(2_300));
    assert_eq!(pair.read, 14_580);
    assert!(pair.client.sender_state().cwnd >= ssthresh);
}

#[test]
fn a_loss_after_an_echo_is_retransmitted_and_the_rest_is_sent() {
    // cc_cong_signal of FreeBSD: a loss turns the CWR state of an echo into a fast recovery, with
    // its own recovery point. The data sent before the echo may be all there is except for a byte
    // that Nagle holds back.
    for system in crate::profile::NAMES {
        for packets in 24..29 {
            for marked in 14..18 {
                let mut pair = asking(system);
                pair.to_write = packets * 1_448 + 1;
                pair.mark = Some(marked);
                pair.lose = |number, s| s.payload > 0 && (30..33).contains(&number);
                pair.run(Duration::from_secs(60));
                assert_eq!(pair.read, packets * 1_448 + 1, "{system}, {packets}, mark {marked}");
            }
        }
    }
}

#[test]
fn an_echo_begins_no_fast_recovery_whatever_the_controller() {
    // IN_CONGRECOVERY of FreeBSD, not IN_FASTRECOVERY: nothing is retransmitted. Linux's controllers
    // are in one state for both (TCP_CA_CWR and TCP_CA_Recovery).
    for system in crate::profile::NAMES.into_iter().filter(|name| name.starts_with("freebsd")) {
        for sack in [true, false] {
            let mut client = config(system, TcpSide::Client);
            client.algorithm = cc::Algorithm::Reno;
            client.profile.ecn = EcnRule::Active;
            client.profile.sack = sack;
            client.tso = false;
            let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
            pair.to_write = 300_000;
            pair.mark = Some(20);
            pair.run(Duration::from_secs(30));
            assert_eq!(pair.read, 300_000, "{system}, SACK {sack}");
            assert!(pair.client.sender_state().ssthresh.is_some(), "{system}, SACK {sack}");
            let totals = pair.client.totals();
            assert_eq!(totals.retransmitted_packets, 0, "{system}, SACK {sack}");
        }
    }
}

#[test]
fn linux_reports_every_reduction_with_cwr() {
    // tcp_init_cwnd_reduction and tcp_enter_loss queue CWR for a loss, too.
    let mut pair = asking("linux-6.12");
    pair.to_write = 300_000;
    pair.lose = |number, s| s.payload > 0 && number == 30;
    pair.run(Duration::from_secs(30));
    assert_eq!(pair.read, 300_000);
    assert_eq!(pair.data().filter(|s| s.flags.has(Flags::CWR)).count(), 1);
}
