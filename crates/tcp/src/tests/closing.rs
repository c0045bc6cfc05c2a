//! Closing: RFC 9293 section 3.6.

use machine::Signal;
use packet::{Dir, Flags};
use units::{Duration, SeqNum};

use super::pair::TcpPair;
use crate::{TcpSide, TcpState};

const SECONDS: Duration = Duration::from_secs(20);

#[test]
fn both_sides_close_after_the_last_byte() {
    for system in crate::profile::NAMES {
        let mut pair = TcpPair::of(system, "linux-6.18");
        pair.to_write = 50_000;
        pair.close_after = true;
        pair.run(SECONDS);
        assert_eq!(pair.read, 50_000, "{system}");
        assert_eq!(pair.client.state(), TcpState::TimeWait, "{system}");
        assert_eq!(pair.server.state(), TcpState::Closed, "{system}");
        let fins =
            |dir| pair.log.iter().filter(|s| s.dir == dir && s.flags.has(Flags::FIN)).count();
        assert_eq!((fins(Dir::Forward), fins(Dir::Reverse)), (1, 1), "{system}");
        assert!(pair.signals.contains(&(TcpSide::Server, Signal::Closed)), "{system}");
    }
}

#[test]
fn a_lost_fin_is_retransmitted() {
    for system in ["freebsd-13.2", "linux-6.18"] {
        for dir in [Dir::Forward, Dir::Reverse] {
            let mut pair = TcpPair::of(system, system);
            pair.to_write = 5_000;
            pair.close_after = true;
            pair.lose = match dir {
                Dir::Forward => |_, s| {
                    s.dir == Dir::Forward
                        && s.flags.has(Flags::FIN)
                        && s.timestamps.is_some_and(|t| t.val < 300)
                },
                Dir::Reverse => |_, s| {
                    s.dir == Dir::Reverse
                        && s.flags.has(Flags::FIN)
                        && s.timestamps.is_some_and(|t| t.val < 400)
                },
            };
            pair.run(SECONDS);
            assert_eq!(pair.read, 5_000, "{system} {dir:?}");
            assert_eq!(pair.server.state(), TcpState::Closed, "{system} {dir:?}");
        }
    }
}

#[test]
fn a_reset_counts_only_at_the_next_number() {
    let mut pair = TcpPair::of("freebsd-13.2", "freebsd-13.2");
    pair.run(SECONDS);
    let mut reset = pair.log[1];
    reset.options = packet::Options::default();
    reset.flags = Flags::RST;
    reset.seq = SeqNum(2_000_000_002);
    pair.arrive(&reset);
    assert_eq!(pair.client.state(), TcpState::Established);
    reset.seq = SeqNum(2_000_000_001);
    pair.arrive(&reset);
    assert_eq!(pair.client.state(), TcpState::Closed);
}

#[test]
fn both_sides_may_close_at_once() {
    // RFC 9293 section 3.6, figure 13: FIN-WAIT-1, CLOSING, TIME-WAIT on both sides.
    for system in crate::profile::NAMES {
        let mut pair = TcpPair::of(system, system);
        pair.run(Duration::from_secs(1));
        pair.client.close();
        pair.server.close();
        pair.serve();
        assert_eq!(pair.client.state(), TcpState::FinWait1, "{system}");
        pair.run(Duration::from_secs(20));
        assert_eq!(pair.client.state(), TcpState::TimeWait, "{system}");
        assert_eq!(pair.server.state(), TcpState::TimeWait, "{system}");
    }
}

#[test]
fn a_side_that_has_closed_continues_to_receive() {
    // Half-close: the client has closed, the server continues to write.
    let mut pair = TcpPair::of("freebsd-13.2", "freebsd-13.2");
    pair.reads = false;
    pair.run(Duration::from_secs(1));
    pair.client.close();
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.client.state(), TcpState::FinWait2);
    assert_eq!(pair.server.state(), TcpState::CloseWait);
    pair.with(TcpSide::Server, |cx, end| assert_eq!(end.write(cx, 5_000), 5_000));
    pair.run(Duration::from_secs(3));
    assert_eq!(pair.with(TcpSide::Client, |cx, end| end.read(cx)), 5_000);
    pair.server.close();
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.client.state(), TcpState::TimeWait);
    assert_eq!(pair.server.state(), TcpState::Closed);
}

#[test]
fn no_data_is_accepted_after_the_close() {
    let mut pair = TcpPair::of("linux-6.18", "linux-6.18");
    pair.run(Duration::from_secs(1));
    pair.client.close();
    pair.with(TcpSide::Client, |cx, end| assert_eq!(end.write(cx, 100), 0));
}

#[test]
fn time_wait_answers_a_late_fin_and_ends() {
    let mut pair = TcpPair::of("freebsd-13.2", "freebsd-13.2");
    pair.close_after = true;
    pair.to_write = 1;
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.client.state(), TcpState::TimeWait);
    let fin = *pair.log.iter().rfind(|s| s.dir == Dir::Reverse && s.flags.has(Flags::FIN)).unwrap();
    let answer = pair.hear(&fin);
    assert_eq!(answer.len(), 1);
    assert_eq!(answer[0].flags, Flags::ACK);
    pair.now += Duration::from_secs(61);
    pair.with(TcpSide::Client, |cx, end| machine::Endpoint::handle_timeout(end, cx));
    assert_eq!(pair.client.state(), TcpState::Closed);
}

#[test]
fn a_linger_of_zero_resets() {
    for system in crate::profile::NAMES {
        let mut pair = TcpPair::of(system, "linux-6.18");
        pair.to_write = 100_000;
        pair.run(Duration::from_millis(180));
        pair.with(TcpSide::Client, |cx, end| end.reset(cx));
        pair.to_write = 0;
        pair.run(Duration::from_secs(5));
        let last = pair.log.iter().rfind(|s| s.dir == Dir::Forward).unwrap();
        assert!(last.flags.has(Flags::RST), "{system}: nothing is sent after the reset");
        assert_eq!(pair.client.state(), TcpState::Closed, "{system}");
        assert_eq!(pair.server.state(), TcpState::Closed, "{system}");
        assert!(pair.signals.contains(&(TcpSide::Server, Signal::Aborted)), "{system}");
        assert!(pair.read < 100_000, "{system}: unsent data is lost");
    }
}
