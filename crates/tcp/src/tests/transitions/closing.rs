//! From ESTABLISHED to CLOSED.

use super::*;

#[test]
fn established_to_fin_wait_1_on_close() {
    for system in NAMES {
        let mut lone = SingleEndpoint::established(system);
        let sent = lone.close();
        lone.is(TcpState::FinWait1, system);
        assert_eq!(said(&lone, &sent), [(FIN, 1, 1)], "{system}");
        // Once.
        assert!(lone.close().is_empty(), "{system}");
    }
}

#[test]
fn established_to_close_wait_on_fin() {
    for system in NAMES {
        let mut lone = SingleEndpoint::established(system);
        let mut sent = lone.hear(FIN, 1, 1);
        lone.is(TcpState::CloseWait, system);
        if system.starts_with("linux") {
            // tcp_fin: the application is expected to close soon. Without data before it the delay
            // is zero (`icsk_ack.ato`): at most two ticks.
            assert!(sent.is_empty(), "{system}");
            sent = lone.wait(Duration::from_millis(8));
        }
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 1, 2)], "{system}");
        assert!(
            lone.signalled(Signal::Readable),
            "{system}: the application sees the end of the stream"
        );
    }
}

#[test]
fn established_stays_on_fin_after_a_gap() {
    for system in NAMES {
        let mut lone = SingleEndpoint::established(system);
        let sent = lone.hear(FIN, 2, 1);
        lone.is(TcpState::Established, system);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 1, 1)], "{system}");
    }
}

#[test]
fn fin_wait_1_to_closing_on_fin() {
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::FinWait1);
        let sent = lone.hear(FIN, 1, 1);
        lone.is(TcpState::Closing, system);
        // tcp_output of FreeBSD's base stack sends the FIN with every segment of this state.
        let base = system.starts_with("freebsd") && !system.contains("rack");
        let answer = if base { (Flags::ACK | Flags::FIN, 1, 2) } else { (Flags::ACK, 2, 2) };
        assert_eq!(said(&lone, &sent), [answer], "{system}");
    }
}

#[test]
fn fin_wait_1_to_fin_wait_2_on_ack_of_fin() {
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::FinWait1);
        assert!(lone.hear(Flags::ACK, 1, 2).is_empty(), "{system}");
        lone.is(TcpState::FinWait2, system);
    }
}

#[test]
fn fin_wait_1_to_time_wait_on_fin_and_ack_of_fin() {
    // Note 2 below the figure.
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::FinWait1);
        let sent = lone.hear(FIN, 1, 2);
        lone.is(TcpState::TimeWait, system);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 2, 2)], "{system}");
        assert!(lone.signalled(Signal::Closed), "{system}");
    }
}

#[test]
fn fin_wait_1_retransmits_its_fin() {
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::FinWait1);
        let sent = lone.wait(Duration::from_secs(4));
        assert_eq!(said(&lone, &sent), [(FIN, 1, 1)], "{system}");
        lone.is(TcpState::FinWait1, system);
    }
}

#[test]
fn fin_wait_2_to_time_wait_on_fin() {
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::FinWait2);
        let sent = lone.hear(FIN, 1, 2);
        lone.is(TcpState::TimeWait, system);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 2, 2)], "{system}");
    }
}

#[test]
fn linux_reports_a_fin_that_arrives_again() {
    // tcp_data_queue; world 55 of seed 1 against a kernel 6.12. TIME-WAIT has no SACK (golden/packetdrill,
    // time-wait-fin-retransmit.pkt).
    let blocks = |state| {
        let mut lone = SingleEndpoint::in_state("linux-6.12", state);
        lone.pair.client.conn.negotiated.sack = true;
        let sent = lone.hear(FIN, 1, 1);
        let [ack] = sent.as_slice() else { panic!("{sent:?}") };
        let blocks = ack.sack_blocks();
        blocks.iter().map(|block| block.right.0.wrapping_sub(block.left.0)).collect::<Vec<_>>()
    };
    assert_eq!(blocks(TcpState::CloseWait), [1]);
    assert_eq!(blocks(TcpState::TimeWait), []);
}

#[test]
fn closing_to_time_wait_on_ack_of_fin() {
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::Closing);
        assert!(lone.hear(Flags::ACK, 2, 2).is_empty(), "{system}");
        lone.is(TcpState::TimeWait, system);
        assert!(lone.signalled(Signal::Closed), "{system}");
    }
}

#[test]
fn close_wait_to_last_ack_on_close() {
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::CloseWait);
        let sent = lone.close();
        lone.is(TcpState::LastAck, system);
        assert_eq!(said(&lone, &sent), [(FIN, 1, 2)], "{system}");
    }
}

#[test]
fn last_ack_to_closed_on_ack_of_fin() {
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::LastAck);
        assert!(lone.hear(Flags::ACK, 2, 1).is_empty(), "{system}");
        lone.is(TcpState::LastAck, system);
        assert!(lone.hear(Flags::ACK, 2, 2).is_empty(), "{system}");
        lone.is(TcpState::Closed, system);
        assert!(lone.signalled(Signal::Closed), "{system}");
    }
}

/// Twice the maximum segment lifetime: `net.inet.tcp.msl` is 30 s, TCP_TIMEWAIT_LEN 60 s, and RFC
/// 9293 section 3.4.2 specifies 2 minutes for one lifetime.
fn two_lifetimes(system: &str) -> Duration {
    Duration::from_secs(if system == "rfc" { 240 } else { 60 })
}

#[test]
fn time_wait_to_closed_on_timeout() {
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::TimeWait);
        let span = two_lifetimes(system);
        lone.wait(span.saturating_sub(Duration::from_millis(1)));
        lone.is(TcpState::TimeWait, system);
        assert!(lone.wait(bucket(system)).is_empty(), "{system}");
        lone.is(TcpState::Closed, system);
    }
}

/// Time by which the timer of TIME-WAIT may be late: Linux's has a bucket of 512 ticks.
fn bucket(system: &str) -> Duration {
    Duration::from_millis(if system.starts_with("linux") { 2_048 } else { 1 })
}

#[test]
fn time_wait_restarts_on_fin() {
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::TimeWait);
        let span = two_lifetimes(system);
        lone.wait(span.saturating_sub(Duration::from_millis(1)));
        let sent = lone.hear(FIN, 1, 2);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 2, 2)], "{system}");
        lone.wait(span.saturating_sub(Duration::from_millis(1)));
        lone.is(TcpState::TimeWait, system);
        lone.wait(bucket(system));
        lone.is(TcpState::Closed, system);
    }
}

#[test]
fn time_wait_of_linux_counts_its_answers_anew() {
    // tcp_time_wait; worlds 213, 352 and 505 of seed 1 against a kernel 6.12: late ACKs of the peer.
    let mut lone = SingleEndpoint::in_state("linux-6.12", TcpState::FinWait2);
    // An ACK of before the stream uses the answer of this half second up.
    assert_eq!(lone.hear(Flags::ACK, 0, 2).len(), 1);
    assert_eq!(lone.hear(Flags::ACK, 0, 2).len(), 0);
    assert_eq!(lone.hear(FIN, 1, 2).len(), 1);
    lone.is(TcpState::TimeWait, "linux-6.12");
    assert_eq!(lone.hear(Flags::ACK, 1, 1).len(), 1);
    assert_eq!(lone.hear(Flags::ACK, 1, 1).len(), 0);
}

#[test]
fn time_wait_answers_a_syn() {
    // RFC 9293 section 3.10.7.4 with RFC 5961 section 4: an ACK. If a server listens, both kernels
    // pass a SYN with a newer number to it; an endpoint is one connection without a listener. In
    // that case Linux sends the ACK (tcp_v4_timewait_ack), while FreeBSD (tcp_twcheck) drops an old
    // SYN; a new one ends the old connection and is reset.
    for system in NAMES {
        for (seq, newer) in [(0, false), (2, false), (0x9000_0000, false), (3, true)] {
            let mut lone = SingleEndpoint::in_state(system, TcpState::TimeWait);
            let sent = lone.hear(Flags::SYN, seq, 0);
            let sent = said(&lone, &sent);
            if !system.starts_with("freebsd") {
                assert_eq!(sent, [(Flags::ACK, 2, 2)], "{system} {seq}");
                lone.is(TcpState::TimeWait, system);
            } else if newer {
                let zero = 0_u32.wrapping_sub(1_000);
                assert_eq!(sent, [(Flags::RST | Flags::ACK, zero, seq + 1)], "{system} {seq}");
                lone.is(TcpState::Closed, system);
            } else {
                assert_eq!(sent, [], "{system} {seq}");
                lone.is(TcpState::TimeWait, system);
            }
        }
    }
}

#[test]
fn every_other_state_answers_a_syn_with_an_ack() {
    // RFC 5961 section 4, whatever the number.
    let states = [
        TcpState::Established,
        TcpState::FinWait1,
        TcpState::FinWait2,
        TcpState::Closing,
        TcpState::CloseWait,
        TcpState::LastAck,
    ];
    for system in NAMES {
        for state in states {
            for seq in [0, 1, 2, 5_000, 0x9000_0000] {
                let mut lone = SingleEndpoint::in_state(system, state);
                let sent = lone.hear(Flags::SYN, seq, 0);
                assert_eq!(sent.len(), 1, "{system} {state:?} {seq}");
                assert_eq!(sent[0].flags, Flags::ACK, "{system} {state:?} {seq}");
                lone.is(state, system);
            }
        }
    }
}

#[test]
fn both_close_at_once() {
    // RFC 9293 section 3.6, figure 13, seen from one side.
    for system in NAMES {
        let mut lone = SingleEndpoint::established(system);
        assert_eq!(lone.close().len(), 1, "{system}");
        assert_eq!(lone.hear(FIN, 1, 1).len(), 1, "{system}");
        lone.is(TcpState::Closing, system);
        lone.hear(Flags::ACK, 2, 2);
        lone.is(TcpState::TimeWait, system);
    }
}
