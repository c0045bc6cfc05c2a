//! Resets, in each state: those received (note 3 below the figure; RFC 9293 section 3.10.7), and
//! those sent by the user (ABORT, section 3.10.5).

use super::*;

/// Open in at least one direction.
const OPEN: [TcpState; 4] =
    [TcpState::Established, TcpState::FinWait1, TcpState::FinWait2, TcpState::CloseWait];
/// Both sides have closed, and this side's FIN is not acknowledged.
const ENDING: [TcpState; 2] = [TcpState::Closing, TcpState::LastAck];

/// The sequence number that `state` expects next.
fn next(state: TcpState) -> u32 {
    match state {
        TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2 => 1,
        _ => 2,
    }
}

#[test]
fn closed_stays_on_reset() {
    for system in NAMES {
        let mut lone = SingleEndpoint::new(system, TcpSide::Client);
        assert!(lone.hear(Flags::RST, 0, 0).is_empty(), "{system}");
        lone.is(TcpState::Closed, system);
    }
}

#[test]
fn listen_stays_on_reset() {
    for system in NAMES {
        let mut lone = SingleEndpoint::new(system, TcpSide::Server);
        for flags in [Flags::RST, Flags::RST | Flags::SYN] {
            assert!(lone.hear(flags, 0, 0).is_empty(), "{system}");
            lone.is(TcpState::Listen, system);
        }
    }
}

#[test]
fn syn_sent_to_closed_on_reset_that_acknowledges_the_syn() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_sent(system);
        assert!(lone.hear(Flags::RST, 0, 0).is_empty(), "{system}: it acknowledges nothing");
        lone.is(TcpState::SynSent, system);
        assert!(lone.hear(Flags::RST | Flags::ACK, 0, 1).is_empty(), "{system}");
        lone.is(TcpState::Closed, system);
        assert!(lone.signalled(Signal::Aborted), "{system}: refused");
    }
}

#[test]
fn syn_sent_stays_on_reset_that_acknowledges_something_else() {
    // RFC 9293 section 3.10.7.3: a reset is never answered with one.
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_sent(system);
        assert!(lone.hear(Flags::RST | Flags::ACK, 0, 2).is_empty(), "{system}");
        lone.is(TcpState::SynSent, system);
    }
}

#[test]
fn syn_received_to_listen_on_reset_after_passive_open() {
    // Note 1 below the figure.
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_received(system);
        assert!(lone.hear(Flags::RST, 1, 0).is_empty(), "{system}");
        lone.is(TcpState::Listen, system);
        assert!(!lone.signalled(Signal::Aborted), "{system}: the user is not informed");
        // The next client is served.
        lone.hear(Flags::SYN, 0, 0);
        lone.hear(Flags::ACK, 1, 1);
        lone.is(TcpState::Established, system);
    }
}

#[test]
fn syn_received_to_closed_on_reset_after_active_open() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_sent(system);
        lone.hear(Flags::SYN, 0, 0);
        assert!(lone.hear(Flags::RST, 1, 0).is_empty(), "{system}");
        lone.is(TcpState::Closed, system);
        assert!(lone.signalled(Signal::Aborted), "{system}");
    }
}

#[test]
fn open_states_to_closed_on_reset() {
    for system in NAMES {
        for state in OPEN.into_iter().chain(ENDING) {
            let mut lone = SingleEndpoint::in_state(system, state);
            assert!(lone.hear(Flags::RST, next(state), 0).is_empty(), "{system} {state:?}");
            lone.is(TcpState::Closed, system);
            assert!(lone.signalled(Signal::Aborted), "{system} {state:?}");
            assert!(lone.wait(Duration::from_secs(300)).is_empty(), "{system} {state:?}: timers");
        }
    }
}

#[test]
fn time_wait_to_closed_on_reset_except_on_freebsd() {
    // FreeBSD drops it (tcp_twcheck, after RFC 1337); Linux accepts it (tcp_timewait_state_process,
    // net.ipv4.tcp_rfc1337 = 0), as does RFC 9293.
    for system in NAMES {
        let mut lone = SingleEndpoint::in_state(system, TcpState::TimeWait);
        assert!(lone.hear(Flags::RST, 2, 0).is_empty(), "{system}");
        let stays = system.starts_with("freebsd");
        lone.is(if stays { TcpState::TimeWait } else { TcpState::Closed }, system);
    }
}

#[test]
fn listen_and_syn_sent_to_closed_on_abort_without_a_segment() {
    for system in NAMES {
        for mut lone in
            [SingleEndpoint::new(system, TcpSide::Server), SingleEndpoint::syn_sent(system)]
        {
            assert!(lone.abort().is_empty(), "{system}");
            lone.is(TcpState::Closed, system);
        }
    }
}

#[test]
fn open_states_to_closed_on_abort_with_a_reset() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_received(system);
        let sent = lone.abort();
        assert_eq!(said(&lone, &sent), [(Flags::RST | Flags::ACK, 1, 1)], "{system}");
        lone.is(TcpState::Closed, system);
        for state in OPEN {
            let mut lone = SingleEndpoint::in_state(system, state);
            let closed = matches!(state, TcpState::FinWait1 | TcpState::FinWait2);
            let sent = lone.abort();
            let reset = (Flags::RST | Flags::ACK, 1 + u32::from(closed), next(state));
            assert_eq!(said(&lone, &sent), [reset], "{system} {state:?}");
            lone.is(TcpState::Closed, system);
            assert!(lone.signalled(Signal::Aborted), "{system} {state:?}");
        }
    }
}

#[test]
fn ending_states_to_closed_on_abort_with_a_reset_of_freebsd_only() {
    // RFC 9293 section 3.10.5 and tcp_need_reset of Linux: no data can be lost any more. FreeBSD
    // sends a RST in any state that has received a SYN (tcp_drop).
    for system in NAMES {
        for state in ENDING {
            let mut lone = SingleEndpoint::in_state(system, state);
            let sent = lone.abort().len();
            assert_eq!(sent, usize::from(system.starts_with("freebsd")), "{system} {state:?}");
            lone.is(TcpState::Closed, system);
        }
        let mut lone = SingleEndpoint::in_state(system, TcpState::TimeWait);
        assert!(lone.abort().is_empty(), "{system}");
        lone.is(TcpState::Closed, system);
    }
}
