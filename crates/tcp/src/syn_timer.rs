//! Limits of retransmissions of SYNs and other segments (RFC 9293 section 3.8.3, RFC 6298 section
//! 5; tcp_retransmit_timer and tcp_write_timeout of Linux 6.18).
//!
//! Linux retransmits a SYN at a constant interval first (`tcp_syn_linear_timeouts`), then with
//! exponential backoff.

use record::Purpose;
use units::Instant;

use crate::connection::Connection;
use crate::sender::Sender;
use crate::tcp_state::TcpState;
use crate::timers::Timers;

/// Minimum ticks of a Linux timer (`TCP_TIMEOUT_MIN`).
pub(crate) const TIMEOUT_MIN_TICKS: u64 = 2;

impl Sender {
    /// Maximum of consecutive timeouts in the connection's state.
    pub(crate) fn retries(&self, conn: &Connection) -> u32 {
        let profile = &conn.cfg.profile;
        match conn.state {
            // tcp_write_timeout adds the linear timeouts to the others.
            TcpState::SynSent => profile.syn.retries + profile.syn.linear_timeouts,
            // tcp_fastopen_synack_timer: one more with Fast Open.
            TcpState::SynReceived => {
                profile.syn.answer_retries + u32::from(self.is_fast_open_child(conn))
            }
            _ => profile.retries,
        }
    }

    /// Shortens the SYN timeout after a wrong answer, from an older connection of the peer: the RST
    /// that we send may clear it, so Linux tries again at once (tcp_rcv_synsent_state_process).
    pub(crate) fn retry_syn_soon(&mut self, conn: &Connection, timers: &mut Timers, now: Instant) {
        if conn.cfg.profile.rules.opening.retries_soon && self.rexmt.shift == 0 {
            let at = conn.clock.timer_at(now, TIMEOUT_MIN_TICKS);
            timers.set(Purpose::Retransmit, at);
        }
    }

    /// The peer has retransmitted its SYN, and the SYN-ACK too is retransmitted: Linux restarts its timer (tcp_check_req).
    pub(crate) fn restart_syn_ack_timer(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) {
        let restarts = conn.cfg.profile.rules.opening.restarts_syn_ack_timer;
        if restarts && timers.runs(Purpose::Retransmit) {
            self.arm_retransmit(conn, timers, now);
        }
    }

    /// Does the timeout just counted not double the next one?
    pub(crate) fn syn_times_out_linearly(&self, conn: &Connection) -> bool {
        matches!(conn.state, TcpState::SynSent)
            && self.rexmt.shift <= conn.cfg.profile.syn.linear_timeouts
    }
}

#[cfg(test)]
mod tests {
    use packet::{Dir, Flags, Segment};
    use units::{Duration, Instant, SeqNum};

    use crate::TcpSide;
    use crate::tests::pair::{TcpPair, config};

    /// Transmission times of SYNs without an answer, in seconds.
    fn syns(linear: u32, retries: u32) -> Vec<u64> {
        let mut client = config("linux-6.18", TcpSide::Client);
        client.profile.syn.linear_timeouts = linear;
        client.profile.syn.retries = retries;
        let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
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
    fn a_syn_is_retransmitted_every_second_at_first() {
        // Linux (golden/packetdrill, rto-syn-linear.pkt): 1 s five times, then 2 s, 4 s.
        assert_eq!(syns(4, 3), [0, 1, 2, 3, 4, 5, 7, 11]);
        // The time of two doubled timeouts, 7 s, is over before as many have expired (tcp_write_timeout; 6.12 guest).
        assert_eq!(syns(4, 2), [0, 1, 2, 3, 4, 5]);
        assert_eq!(syns(0, 3), [0, 1, 3, 7]);
    }

    #[test]
    fn a_wrong_answer_to_a_syn_makes_linux_try_again_at_once() {
        let repeated = |system: &str| {
            let mut pair =
                TcpPair::new(config(system, TcpSide::Client), config(system, TcpSide::Server));
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
        assert_eq!((repeated("linux-6.18"), repeated("freebsd-13.2")), (2, 1));
    }
}
