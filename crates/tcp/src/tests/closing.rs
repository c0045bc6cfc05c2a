//! Closing: RFC 9293 section 3.6.

use machine::Signal;
use packet::{Dir, Flags};
use units::{Duration, SeqNum};

use super::pair::Pair;
use crate::{Side, State};

const SECONDS: Duration = Duration::from_secs(20);

#[test]
fn both_sides_close_after_the_last_byte() {
    for system in crate::profile::NAMES {
        let mut pair = Pair::of(system, "linux-6.18");
        pair.to_write = 50_000;
        pair.close_after = true;
        pair.run(SECONDS);
        assert_eq!(pair.read, 50_000, "{system}");
        assert_eq!(pair.client.state(), State::TimeWait, "{system}");
        assert_eq!(pair.server.state(), State::Closed, "{system}");
        let fins =
            |dir| pair.log.iter().filter(|s| s.dir == dir && s.flags.has(Flags::FIN)).count();
        assert_eq!((fins(Dir::Forward), fins(Dir::Reverse)), (1, 1), "{system}");
        assert!(pair.signals.contains(&(Side::Server, Signal::Closed)), "{system}");
    }
}

#[test]
fn a_lost_fin_comes_again() {
    for system in ["freebsd-13.2", "linux-6.18"] {
        for way in [Dir::Forward, Dir::Reverse] {
            let mut pair = Pair::of(system, system);
            pair.to_write = 5_000;
            pair.close_after = true;
            pair.lose = match way {
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
            assert_eq!(pair.read, 5_000, "{system} {way:?}");
            assert_eq!(pair.server.state(), State::Closed, "{system} {way:?}");
        }
    }
}

#[test]
fn a_reset_counts_only_at_the_next_number() {
    let mut pair = Pair::of("freebsd-13.2", "freebsd-13.2");
    pair.run(SECONDS);
    let mut reset = pair.log[1];
    reset.options = packet::Options::default();
    reset.flags = Flags::RST;
    reset.seq = SeqNum(2_000_000_002);
    pair.arrive(&reset);
    assert_eq!(pair.client.state(), State::Established);
    reset.seq = SeqNum(2_000_000_001);
    pair.arrive(&reset);
    assert_eq!(pair.client.state(), State::Closed);
}

#[test]
fn both_sides_may_close_at_once() {
    // RFC 9293 section 3.6, figure 13: FIN-WAIT-1, CLOSING, TIME-WAIT on both sides.
    for system in crate::profile::NAMES {
        let mut pair = Pair::of(system, system);
        pair.run(Duration::from_secs(1));
        pair.client.close();
        pair.server.close();
        pair.serve();
        assert_eq!(pair.client.state(), State::FinWait1, "{system}");
        pair.run(Duration::from_secs(20));
        assert_eq!(pair.client.state(), State::TimeWait, "{system}");
        assert_eq!(pair.server.state(), State::TimeWait, "{system}");
    }
}

#[test]
fn a_side_that_has_closed_goes_on_receiving() {
    // Half-close: the client has nothing more to say, the server writes on.
    let mut pair = Pair::of("freebsd-13.2", "freebsd-13.2");
    pair.reads = false;
    pair.run(Duration::from_secs(1));
    pair.client.close();
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.client.state(), State::FinWait2);
    assert_eq!(pair.server.state(), State::CloseWait);
    pair.with(Side::Server, |cx, end| assert_eq!(end.write(cx, 5_000), 5_000));
    pair.run(Duration::from_secs(3));
    assert_eq!(pair.with(Side::Client, |cx, end| end.read(cx)), 5_000);
    pair.server.close();
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.client.state(), State::TimeWait);
    assert_eq!(pair.server.state(), State::Closed);
}

#[test]
fn nothing_is_taken_after_the_close() {
    let mut pair = Pair::of("linux-6.18", "linux-6.18");
    pair.run(Duration::from_secs(1));
    pair.client.close();
    pair.with(Side::Client, |cx, end| assert_eq!(end.write(cx, 100), 0));
}

#[test]
fn time_wait_answers_a_late_fin_and_ends() {
    let mut pair = Pair::of("freebsd-13.2", "freebsd-13.2");
    pair.close_after = true;
    pair.to_write = 1;
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.client.state(), State::TimeWait);
    let fin = *pair.log.iter().rfind(|s| s.dir == Dir::Reverse && s.flags.has(Flags::FIN)).unwrap();
    let answer = pair.hear(&fin);
    assert_eq!(answer.len(), 1);
    assert_eq!(answer[0].flags, Flags::ACK);
    pair.now += Duration::from_secs(61);
    pair.with(Side::Client, |cx, end| machine::Endpoint::handle_timeout(end, cx));
    assert_eq!(pair.client.state(), State::Closed);
}

#[test]
fn a_linger_of_zero_resets() {
    for system in crate::profile::NAMES {
        let mut pair = Pair::of(system, "linux-6.18");
        pair.to_write = 100_000;
        pair.run(Duration::from_millis(180));
        pair.with(Side::Client, |cx, end| end.reset(cx));
        pair.to_write = 0;
        pair.run(Duration::from_secs(5));
        let last = pair.log.iter().rfind(|s| s.dir == Dir::Forward).unwrap();
        assert!(last.flags.has(Flags::RST), "{system}: nothing follows the reset");
        assert_eq!(pair.client.state(), State::Closed, "{system}");
        assert_eq!(pair.server.state(), State::Closed, "{system}");
        assert!(pair.signals.contains(&(Side::Server, Signal::Aborted)), "{system}");
        assert!(pair.read < 100_000, "{system}: what was not sent is lost");
    }
}
