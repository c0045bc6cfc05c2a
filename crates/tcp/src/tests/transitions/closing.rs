//! From ESTABLISHED to CLOSED.

use super::*;

#[test]
fn established_to_fin_wait_1_on_close() {
    for system in NAMES {
        let mut lone = Lone::established(system);
        let sent = lone.close();
        lone.is(State::FinWait1, system);
        assert_eq!(said(&lone, &sent), [(FIN, 1, 1)], "{system}");
        // Once.
        assert!(lone.close().is_empty(), "{system}");
    }
}

#[test]
fn established_to_close_wait_on_fin() {
    for system in NAMES {
        let mut lone = Lone::established(system);
        let sent = lone.hear(FIN, 1, 1);
        lone.is(State::CloseWait, system);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 1, 2)], "{system}");
        assert!(lone.signalled(Signal::Readable), "{system}: the application is to see the end");
    }
}

#[test]
fn established_stays_on_fin_behind_a_gap() {
    for system in NAMES {
        let mut lone = Lone::established(system);
        let sent = lone.hear(FIN, 2, 1);
        lone.is(State::Established, system);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 1, 1)], "{system}");
    }
}

#[test]
fn fin_wait_1_to_closing_on_fin() {
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::FinWait1);
        let sent = lone.hear(FIN, 1, 1);
        lone.is(State::Closing, system);
        // tcp_output of FreeBSD's base stack sends the FIN with every segment of this state.
        let base = system.starts_with("freebsd") && !system.contains("rack");
        let answer = if base { (Flags::ACK | Flags::FIN, 1, 2) } else { (Flags::ACK, 2, 2) };
        assert_eq!(said(&lone, &sent), [answer], "{system}");
    }
}

#[test]
fn fin_wait_1_to_fin_wait_2_on_ack_of_fin() {
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::FinWait1);
        assert!(lone.hear(Flags::ACK, 1, 2).is_empty(), "{system}");
        lone.is(State::FinWait2, system);
    }
}

#[test]
fn fin_wait_1_to_time_wait_on_fin_and_ack_of_fin() {
    // Note 2 below the figure.
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::FinWait1);
        let sent = lone.hear(FIN, 1, 2);
        lone.is(State::TimeWait, system);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 2, 2)], "{system}");
        assert!(lone.signalled(Signal::Closed), "{system}");
    }
}

#[test]
fn fin_wait_1_sends_its_fin_again() {
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::FinWait1);
        let sent = lone.wait(Duration::from_secs(4));
        assert_eq!(said(&lone, &sent), [(FIN, 1, 1)], "{system}");
        lone.is(State::FinWait1, system);
    }
}

#[test]
fn fin_wait_2_to_time_wait_on_fin() {
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::FinWait2);
        let sent = lone.hear(FIN, 1, 2);
        lone.is(State::TimeWait, system);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 2, 2)], "{system}");
    }
}

#[test]
fn closing_to_time_wait_on_ack_of_fin() {
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::Closing);
        assert!(lone.hear(Flags::ACK, 2, 2).is_empty(), "{system}");
        lone.is(State::TimeWait, system);
        assert!(lone.signalled(Signal::Closed), "{system}");
    }
}

#[test]
fn close_wait_to_last_ack_on_close() {
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::CloseWait);
        let sent = lone.close();
        lone.is(State::LastAck, system);
        assert_eq!(said(&lone, &sent), [(FIN, 1, 2)], "{system}");
    }
}

#[test]
fn last_ack_to_closed_on_ack_of_fin() {
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::LastAck);
        assert!(lone.hear(Flags::ACK, 2, 1).is_empty(), "{system}");
        lone.is(State::LastAck, system);
        assert!(lone.hear(Flags::ACK, 2, 2).is_empty(), "{system}");
        lone.is(State::Closed, system);
        assert!(lone.signalled(Signal::Closed), "{system}");
    }
}

/// Twice the maximum segment lifetime: `net.inet.tcp.msl` is 30 s, TCP_TIMEWAIT_LEN 60 s, and RFC
/// 9293 section 3.4.2 takes 2 minutes for one lifetime.
fn two_lifetimes(system: &str) -> Duration {
    Duration::from_secs(if system == "rfc" { 240 } else { 60 })
}

#[test]
fn time_wait_to_closed_on_timeout() {
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::TimeWait);
        let span = two_lifetimes(system);
        lone.wait(span.saturating_sub(Duration::from_millis(1)));
        lone.is(State::TimeWait, system);
        assert!(lone.wait(Duration::from_millis(1)).is_empty(), "{system}");
        lone.is(State::Closed, system);
    }
}

#[test]
fn time_wait_begins_anew_on_fin() {
    for system in NAMES {
        let mut lone = Lone::in_state(system, State::TimeWait);
        let span = two_lifetimes(system);
        lone.wait(span.saturating_sub(Duration::from_millis(1)));
        let sent = lone.hear(FIN, 1, 2);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 2, 2)], "{system}");
        lone.wait(span.saturating_sub(Duration::from_millis(1)));
        lone.is(State::TimeWait, system);
        lone.wait(Duration::from_millis(1));
        lone.is(State::Closed, system);
    }
}

#[test]
fn time_wait_answers_a_syn() {
    // RFC 9293 section 3.10.7.4 with RFC 5961 section 4: an ACK. Where a server listens, both
    // kernels hand a SYN with a newer number to it; an endpoint is one connection and has no
    // listener behind it. Then Linux sends the ACK (tcp_v4_timewait_ack), while FreeBSD
    // (tcp_twcheck) drops an old SYN; a new one ends the old connection and is reset.
    for system in NAMES {
        for (seq, newer) in [(0, false), (2, false), (0x9000_0000, false), (3, true)] {
            let mut lone = Lone::in_state(system, State::TimeWait);
            let sent = lone.hear(Flags::SYN, seq, 0);
            let sent = said(&lone, &sent);
            if !system.starts_with("freebsd") {
                assert_eq!(sent, [(Flags::ACK, 2, 2)], "{system} {seq}");
                lone.is(State::TimeWait, system);
            } else if newer {
                let zero = 0_u32.wrapping_sub(1_000);
                assert_eq!(sent, [(Flags::RST | Flags::ACK, zero, seq + 1)], "{system} {seq}");
                lone.is(State::Closed, system);
            } else {
                assert_eq!(sent, [], "{system} {seq}");
                lone.is(State::TimeWait, system);
            }
        }
    }
}

#[test]
fn every_other_state_answers_a_syn_with_an_ack() {
    // RFC 5961 section 4, whatever the number.
    let states = [
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::Closing,
        State::CloseWait,
        State::LastAck,
    ];
    for system in NAMES {
        for state in states {
            for seq in [0, 1, 2, 5_000, 0x9000_0000] {
                let mut lone = Lone::in_state(system, state);
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
        let mut lone = Lone::established(system);
        assert_eq!(lone.close().len(), 1, "{system}");
        assert_eq!(lone.hear(FIN, 1, 1).len(), 1, "{system}");
        lone.is(State::Closing, system);
        lone.hear(Flags::ACK, 2, 2);
        lone.is(State::TimeWait, system);
    }
}
