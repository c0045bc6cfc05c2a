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
