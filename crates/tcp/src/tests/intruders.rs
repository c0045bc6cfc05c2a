//! Invalid segments: RFC 5961, and segments without a connection (RFC 9293 3.10.7).

use packet::Flags;
use units::{Duration, SeqNum};

use super::pair::TcpPair;
use crate::TcpState;

fn established(system: &str) -> TcpPair {
    let mut pair = TcpPair::of(system, system);
    pair.run(Duration::from_secs(1));
    pair
}

#[test]
fn a_reset_within_the_window_is_challenged() {
    for system in crate::profile::NAMES {
        let mut pair = established(system);
        let inside = pair.forge(Flags::RST, 2, 0);
        let answer = pair.hear(&inside);
        assert_eq!(answer.len(), 1, "{system}");
        assert_eq!((answer[0].flags, answer[0].ack), (Flags::ACK, SeqNum(2_000_000_001)));
        let outside = pair.forge(Flags::RST, 100_000_000, 0);
        assert!(pair.hear(&outside).is_empty(), "{system}");
        assert_eq!(pair.client.state(), TcpState::Established, "{system}");
        let exact = pair.forge(Flags::RST, 1, 0);
        pair.hear(&exact);
        assert_eq!(pair.client.state(), TcpState::Closed, "{system}");
    }
}

#[test]
fn a_syn_on_an_open_connection_is_challenged() {
    let mut pair = established("freebsd-13.2");
    let syn = pair.forge(Flags::SYN, 12_345, 0);
    let answer = pair.hear(&syn);
    assert_eq!(answer.len(), 1);
    assert_eq!(answer[0].flags, Flags::ACK);
    assert_eq!(pair.client.state(), TcpState::Established);
}

#[test]
fn an_acknowledgment_of_unsent_or_too_old_data_is_challenged() {
    let mut pair = TcpPair::of("freebsd-13.2", "freebsd-13.2");
    pair.to_write = 500_000;
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.read, 500_000);
    // The peer's largest window was far below 400 kB at that time.
    for ack in [500_002, 1_000_000, 10] {
        let segment = pair.forge(Flags::ACK, 1, ack);
        assert_eq!(pair.hear(&segment).len(), 1, "{ack}");
    }
    // An ACK within the last window is merely old.
    let old = pair.forge(Flags::ACK, 1, 499_000);
    assert!(pair.hear(&old).is_empty());
}

#[test]
fn challenges_are_limited() {
    // FreeBSD: five a second (net.inet.tcp.ack_war_cnt); Linux: one in half a second.
    for (system, most) in [("freebsd-13.2", 5), ("linux-6.18", 1), ("rfc", 10)] {
        let mut pair = established(system);
        let flood = pair.forge(Flags::RST, 2, 0);
        let answers = (0..100).map(|_| pair.hear(&flood).len()).sum::<usize>();
        assert_eq!(answers, most, "{system}");
        pair.now += Duration::from_secs(5);
        assert_eq!(pair.hear(&flood).len(), 1, "{system}: a new window");
    }
}

#[test]
fn linux_limits_answers_to_out_of_window_acks() {
    // tcp_oow_rate_limited: one in half a second, but each segment with data.
    for (system, bare, data) in [("linux-6.18", 1, 10), ("freebsd-14.3", 10, 10)] {
        let mut pair = established(system);
        pair.hear(&packet::Segment { payload: 100, ..pair.forge(Flags::ACK, 1, 1) });
        let mut answers = |payload| {
            let old = packet::Segment { payload, ..pair.forge(Flags::ACK, 50, 1) };
            (0..10).map(|_| pair.hear(&old).len()).sum::<usize>()
        };
        assert_eq!((answers(0), answers(10)), (bare, data), "{system}");
        pair.now += Duration::from_secs(1);
        let old = pair.forge(Flags::ACK, 50, 1);
        assert_eq!(pair.hear(&old).len(), 1, "{system}");
    }
}

#[test]
fn linux_limits_syn_acks_in_a_syn_flood() {
    for (system, most) in [("linux-6.18", 2), ("freebsd-14.3", 21)] {
        let mut pair = TcpPair::of("rfc", system);
        // The last ACK of the handshake never arrives.
        pair.lose = |_, segment| segment.dir == packet::Dir::Reverse;
        pair.run(Duration::from_millis(60));
        let syn = pair.log[0];
        assert!(syn.flags == Flags::SYN);
        for _ in 0..20 {
            pair.arrive(&syn);
            pair.serve();
        }
        let answers = pair.log.iter().filter(|s| s.flags == Flags::SYN | Flags::ACK).count();
        assert_eq!(answers, most, "{system}");
    }
}

#[test]
fn segments_without_a_connection_are_answered_with_a_reset() {
    let mut pair = established("freebsd-13.2");
    let exact = pair.forge(Flags::RST, 1, 0);
    pair.hear(&exact);
    assert_eq!(pair.client.state(), TcpState::Closed);
    let data = packet::Segment { payload: 10, ..pair.forge(Flags::ACK, 1, 5) };
    let answer = pair.hear(&data);
    assert_eq!((answer[0].flags, answer[0].seq), (Flags::RST, SeqNum(1_005)));
    let bare = packet::Segment { payload: 10, ..pair.forge(Flags::NONE, 1, 0) };
    let answer = pair.hear(&bare);
    assert_eq!(answer[0].flags, Flags::RST | Flags::ACK);
    assert_eq!((answer[0].seq, answer[0].ack), (SeqNum(0), SeqNum(2_000_000_011)));
    // A reset is never answered.
    assert!(pair.hear(&exact).is_empty());
}

#[test]
fn urgent_data_is_delivered_in_line() {
    for system in crate::profile::NAMES {
        let mut pair = established(system);
        for (seq, payload) in [(1, 100), (101, 0), (101, 1)] {
            let flags = Flags::ACK | Flags::URG;
            let urgent = packet::Segment { payload, ..pair.forge(flags, seq, 1) };
            pair.hear(&urgent);
        }
        let read = pair.with(crate::TcpSide::Client, |cx, end| end.read(cx));
        assert_eq!(read, 101, "{system}");
        assert_eq!(pair.client.state(), TcpState::Established, "{system}");
    }
}

/// A client of FreeBSD with rules that its administrator has relaxed.
fn lax(rules: crate::profile::LaxRules) -> TcpPair {
    let mut client = super::pair::config("freebsd-14.3", crate::TcpSide::Client);
    client.profile.lax = rules;
    let server = super::pair::config("freebsd-14.3", crate::TcpSide::Server);
    let mut pair = TcpPair::new(client, server);
    pair.run(Duration::from_secs(1));
    pair
}

#[test]
fn insecure_rst_accepts_a_reset_anywhere_in_the_window() {
    use crate::profile::LaxRules;
    let rules = LaxRules { insecure_rst: true, ..LaxRules::default() };
    let mut pair = lax(rules);
    let outside = pair.forge(Flags::RST, 100_000_000, 0);
    assert!(pair.hear(&outside).is_empty());
    assert_eq!(pair.client.state(), TcpState::Established);
    let inside = pair.forge(Flags::RST, 2, 0);
    assert!(pair.hear(&inside).is_empty());
    assert_eq!(pair.client.state(), TcpState::Closed);
}

#[test]
fn insecure_syn_resets_the_connection_for_a_syn_in_the_window() {
    use crate::profile::LaxRules;
    let rules = LaxRules { insecure_syn: true, ..LaxRules::default() };
    let mut pair = lax(rules);
    let outside = pair.forge(Flags::SYN, 100_000_000, 0);
    assert_eq!(pair.hear(&outside)[0].flags, Flags::ACK);
    let inside = pair.forge(Flags::SYN, 1, 0);
    let answer = pair.hear(&inside);
    assert_eq!(answer[0].flags, Flags::RST | Flags::ACK);
    assert_eq!(pair.client.state(), TcpState::Closed);
}

#[test]
fn drop_synfin_drops_segments_with_both_flags() {
    use crate::profile::LaxRules;
    let both = Flags::SYN | Flags::FIN;
    for (drop_synfin, answers) in [(false, 1), (true, 0)] {
        let mut pair = lax(LaxRules { drop_synfin, ..LaxRules::default() });
        let segment = pair.forge(both, 1, 0);
        assert_eq!(pair.hear(&segment).len(), answers);
    }
}

#[test]
fn a_reset_within_the_window_of_a_syn_ack_is_answered_with_a_pure_ack() {
    // syncache_chkrst of FreeBSD: the SYN-ACK is not retransmitted.
    let mut pair = TcpPair::of("freebsd-14.3", "freebsd-14.3");
    let dir = packet::Dir::Forward;
    let syn = packet::Segment { dir, flags: Flags::SYN, seq: SeqNum(77), ..Default::default() };
    pair.arrive(&syn);
    pair.serve();
    assert_eq!(pair.server.state(), TcpState::SynReceived);
    let before = pair.log.len();
    pair.arrive(&packet::Segment { flags: Flags::RST, seq: SeqNum(79), ..syn });
    pair.serve();
    let answer: Vec<_> = pair.log[before..].iter().map(|s| (s.flags, s.ack)).collect();
    assert_eq!(answer, [(Flags::ACK, SeqNum(78))]);
}
