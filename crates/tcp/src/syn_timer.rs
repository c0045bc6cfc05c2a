//! How often a SYN and other segments go again (RFC 9293 section 3.8.3, RFC 6298 section 5;
//! tcp_retransmit_timer and tcp_write_timeout of Linux 6.18).
//!
//! Linux repeats a SYN at one distance at first (`tcp_syn_linear_timeouts`), then at doubled ones.

use record::Purpose;
use units::Instant;

use crate::endpoint::{Endpoint, State};
use crate::profile::Family;

/// Ticks a Linux timer runs at least (`TCP_TIMEOUT_MIN`).
const TIMEOUT_MIN_TICKS: u64 = 2;

impl Endpoint {
    /// Timeouts in a row that the connection survives in its state.
    pub(crate) fn retries(&self) -> u32 {
        let profile = &self.cfg.profile;
        match self.state {
            // tcp_write_timeout grants the linear timeouts beside the others.
            State::SynSent => profile.syn.retries + profile.syn.linear_timeouts,
            State::SynReceived => profile.syn.answer_retries,
            _ => profile.retries,
        }
    }

    /// Something of an older connection answered our SYN; the reset that follows may clear the way,
    /// so Linux tries again at once (tcp_rcv_synsent_state_process).
    pub(crate) fn hasten_syn(&mut self, now: Instant) {
        if self.cfg.profile.family == Family::Linux && self.snd.shift == 0 {
            let at = self.clock.after_ticks(now, TIMEOUT_MIN_TICKS);
            self.timers.set(Purpose::Retransmit, at);
        }
    }

    /// Does the timeout that was just counted leave the time to the next one as it is?
    pub(crate) fn syn_times_out_linearly(&self) -> bool {
        matches!(self.state, State::SynSent)
            && self.snd.shift <= self.cfg.profile.syn.linear_timeouts
    }
}

#[cfg(test)]
mod tests {
    use packet::{Dir, Flags, Segment};
    use units::{Duration, Instant, SeqNum};

    use crate::Side;
    use crate::tests::pair::{Pair, config};

    /// When SYNs leave that nobody answers, in seconds.
    fn syns(linear: u32, retries: u32) -> Vec<u64> {
        let mut client = config("linux-6.18", Side::Client);
        client.profile.syn.linear_timeouts = linear;
        client.profile.syn.retries = retries;
        let mut pair = Pair::new(client, config("linux-6.18", Side::Server));
        pair.lose = |_, _| true;
        let mut times = Vec::new();
        for second in 0..300 {
            pair.run(Duration::from_millis(1_000 * second + 500));
            pair.now = Instant::ZERO + Duration::from_millis(1_000 * second + 500);
            let sent = pair.log.iter().filter(|s| s.flags.has(Flags::SYN)).count();
            times.resize(sent, second);
        }
        times
    }

    #[test]
    fn a_syn_is_repeated_every_second_at_first() {
        // Linux (golden/packetdrill, rto-syn-linear.pkt): 1 s five times, then 2 s, 4 s.
        assert_eq!(syns(4, 2), [0, 1, 2, 3, 4, 5, 7]);
        assert_eq!(syns(0, 3), [0, 1, 3, 7]);
    }

    #[test]
    fn a_wrong_answer_to_a_syn_makes_linux_try_again_at_once() {
        let again = |system: &str| {
            let mut pair = Pair::new(config(system, Side::Client), config(system, Side::Server));
            pair.lose = |_, _| true;
            pair.run(Duration::from_millis(10));
            pair.now = Instant::ZERO + Duration::from_millis(10);
            let wrong = Segment {
                dir: Dir::Reverse,
                flags: Flags::SYN | Flags::ACK,
                ack: SeqNum(500),
                ..Segment::default()
            };
            let answer = pair.hear(&wrong);
            assert_eq!((answer[0].flags, answer[0].seq), (Flags::RST, SeqNum(500)));
            pair.run(Duration::from_millis(30));
            pair.log.iter().filter(|s| s.flags.has(Flags::SYN)).count()
        };
        assert_eq!((again("linux-6.18"), again("freebsd-13.2")), (2, 1));
    }
}
