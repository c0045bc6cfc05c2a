//! From CLOSED to ESTABLISHED.

use super::*;

#[test]
fn closed_to_syn_sent_on_active_open() {
    for system in NAMES {
        let mut lone = SingleEndpoint::new(system, TcpSide::Client);
        lone.is(TcpState::Closed, system);
        let sent = lone.open();
        lone.is(TcpState::SynSent, system);
        assert_eq!(said(&lone, &sent), [(Flags::SYN, 0, 0)], "{system}");
    }
}

#[test]
fn closed_to_listen_on_passive_open() {
    for system in NAMES {
        // A server's endpoint is made by its passive open.
        let lone = SingleEndpoint::new(system, TcpSide::Server);
        lone.is(TcpState::Listen, system);
    }
}

#[test]
fn listen_to_closed_on_close() {
    for system in NAMES {
        let mut lone = SingleEndpoint::new(system, TcpSide::Server);
        assert!(lone.close().is_empty(), "{system}");
        lone.is(TcpState::Closed, system);
    }
}

#[test]
fn listen_to_syn_received_on_syn() {
    for system in NAMES {
        let mut lone = SingleEndpoint::new(system, TcpSide::Server);
        let sent = lone.hear(Flags::SYN, 0, 0);
        lone.is(TcpState::SynReceived, system);
        assert_eq!(said(&lone, &sent), [(SYN_ACK, 0, 1)], "{system}");
    }
}

#[test]
fn listen_to_syn_sent_on_open() {
    // RFC 9293 section 3.10.1. No kernel allows a listening socket to connect (tcp_usr_connect of
    // FreeBSD: EOPNOTSUPP; __inet_stream_connect of Linux: EISCONN); here all profiles allow it, so
    // that tests can make two servers open simultaneously.
    for system in NAMES {
        let mut lone = SingleEndpoint::new(system, TcpSide::Server);
        let sent = lone.open();
        lone.is(TcpState::SynSent, system);
        assert_eq!(said(&lone, &sent), [(Flags::SYN, 0, 0)], "{system}");
    }
}

#[test]
fn listen_to_syn_sent_on_send() {
    // RFC 9293 section 3.10.2. A kernel refuses to send on a listening socket (sosend of FreeBSD:
    // ENOTCONN; sk_stream_wait_connect of Linux: EPIPE).
    for system in NAMES {
        let mut lone = SingleEndpoint::new(system, TcpSide::Server);
        let sent = lone.act(|pair| {
            pair.with(TcpSide::Server, |cx, end| assert_eq!(end.write(cx, 100), 0, "{system}"));
        });
        if system != "rfc" {
            assert!(sent.is_empty(), "{system}");
            lone.is(TcpState::Listen, system);
            continue;
        }
        assert_eq!(said(&lone, &sent), [(Flags::SYN, 0, 0)]);
        lone.is(TcpState::SynSent, system);
        // The bytes are offered again once the connection is open.
        lone.hear(SYN_ACK, 0, 1);
        lone.is(TcpState::Established, system);
        let sent = lone.act(|pair| {
            pair.with(TcpSide::Server, |cx, end| assert_eq!(end.write(cx, 100), 100));
        });
        assert_eq!(sent[0].payload, 100);
    }
}

#[test]
fn syn_sent_to_closed_on_close() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_sent(system);
        assert!(lone.close().is_empty(), "{system}");
        lone.is(TcpState::Closed, system);
        assert!(lone.wait(Duration::from_secs(300)).is_empty(), "{system}: no other SYN");
    }
}

#[test]
fn syn_sent_to_syn_received_on_syn() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_sent(system);
        let sent = lone.hear(Flags::SYN, 0, 0);
        lone.is(TcpState::SynReceived, system);
        assert_eq!(said(&lone, &sent), [(SYN_ACK, 0, 1)], "{system}");
    }
}

#[test]
fn syn_sent_to_established_on_syn_ack() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_sent(system);
        let sent = lone.hear(SYN_ACK, 0, 1);
        lone.is(TcpState::Established, system);
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 1, 1)], "{system}");
        assert!(lone.signalled(Signal::Connected), "{system}");
    }
}

#[test]
fn syn_sent_stays_on_an_ack_of_something_else() {
    // RFC 9293 section 3.10.7.3: a reset with the number acknowledged answers it.
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_sent(system);
        for (flags, ack) in [(SYN_ACK, 2), (SYN_ACK, 0), (Flags::ACK, 77)] {
            let sent = lone.hear(flags, 0, ack);
            assert_eq!(said(&lone, &sent), [(Flags::RST, ack, 0)], "{system}");
        }
        // A valid acknowledgment without a SYN is ignored.
        assert!(lone.hear(Flags::ACK, 0, 1).is_empty(), "{system}");
        lone.is(TcpState::SynSent, system);
    }
}

#[test]
fn syn_received_to_established_on_ack_of_syn() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_received(system);
        lone.hear(Flags::ACK, 1, 1);
        lone.is(TcpState::Established, system);
        assert!(lone.signalled(Signal::Connected), "{system}");
    }
}

#[test]
fn syn_received_to_established_on_syn_ack() {
    // Simultaneous open: RFC 9293 section 3.5, figure 7.
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_sent(system);
        lone.hear(Flags::SYN, 0, 0);
        lone.hear(SYN_ACK, 0, 1);
        lone.is(TcpState::Established, system);
    }
}

#[test]
fn syn_received_stays_on_an_ack_of_something_else() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_received(system);
        let sent = lone.hear(Flags::ACK, 1, 9);
        assert_eq!(said(&lone, &sent), [(Flags::RST, 9, 0)], "{system}");
        lone.is(TcpState::SynReceived, system);
    }
}

#[test]
fn syn_received_answers_a_repeated_syn() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_received(system);
        let sent = lone.hear(Flags::SYN, 0, 0);
        assert_eq!(said(&lone, &sent), [(SYN_ACK, 0, 1)], "{system}");
        lone.is(TcpState::SynReceived, system);
    }
}

#[test]
fn a_repeated_syn_restarts_the_timer_of_linux_syn_acks() {
    // tcp_check_req; world 29 of seed 1 against a kernel 6.12.
    for (system, timed) in [("linux-6.12", 0), ("freebsd-14.3", 1)] {
        let mut lone = SingleEndpoint::syn_received(system);
        lone.wait(Duration::from_millis(600));
        assert_eq!(lone.hear(Flags::SYN, 0, 0).len(), 1, "{system}");
        assert_eq!(lone.wait(Duration::from_millis(700)).len(), timed, "{system}");
        assert_eq!(lone.wait(Duration::from_millis(500)).len(), 1 - timed, "{system}");
    }
}

#[test]
fn syn_received_to_close_wait_on_ack_of_syn_and_fin() {
    for system in NAMES {
        let mut lone = SingleEndpoint::syn_received(system);
        let mut sent = lone.hear(FIN, 1, 1);
        lone.is(TcpState::CloseWait, system);
        if system.starts_with("linux") {
            assert!(sent.is_empty(), "{system}");
            sent = lone.wait(Duration::from_millis(8));
        }
        assert_eq!(said(&lone, &sent), [(Flags::ACK, 1, 2)], "{system}");
    }
}

#[test]
fn syn_received_to_fin_wait_1_on_close() {
    // RFC 9293 section 3.10.4 sends the FIN at once if nothing was written. FreeBSD keeps it until
    // the SYN is acknowledged (TF_NEEDFIN of tcp_usrclosed), and so does Linux (SEND_SHUTDOWN in
    // tcp_rcv_state_process, since 6.9); all profiles do.
    for system in NAMES {
        for mut lone in [SingleEndpoint::syn_received(system), {
            let mut lone = SingleEndpoint::syn_sent(system);
            lone.hear(Flags::SYN, 0, 0);
            lone
        }] {
            assert!(lone.close().is_empty(), "{system}");
            lone.is(TcpState::SynReceived, system);
            let sent = lone.hear(Flags::ACK, 1, 1);
            lone.is(TcpState::FinWait1, system);
            assert_eq!(said(&lone, &sent), [(FIN, 1, 1)], "{system}");
            // No more data is accepted.
            let side = lone.side;
            lone.pair.with(side, |cx, end| assert_eq!(end.write(cx, 1), 0, "{system}"));
            lone.hear(Flags::ACK, 1, 2);
            lone.is(TcpState::FinWait2, system);
        }
    }
}
