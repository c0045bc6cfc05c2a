//! How long Linux retransmits and probes before it gives a connection up (tcp_write_timeout, tcp_orphan_retries and
//! tcp_probe_timer of tcp_timer.c, Linux 6.12). The limit of retransmissions is a time, that of as many as
//! `tcp_retries2` timeouts which begin with the least one; `TCP_USER_TIMEOUT` replaces it.

use record::Purpose;
use units::{Duration, Instant};

use crate::ack_policy::RTO_MIN;
use crate::connection::Connection;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::syn_timer::TIMEOUT_MIN_TICKS;
use crate::tcp_state::TcpState;
use crate::timers::Timers;

/// `TCP_RTO_MAX`
const RTO_MAX: Duration = Duration::from_secs(120);
/// `TCP_TIMEOUT_INIT`
const SYN_RTO: Duration = Duration::from_secs(1);
/// Timeouts of a closed socket whose path seems alive (tcp_orphan_retries).
const ORPHAN_RETRIES: u32 = 8;

impl SendSide {
    /// Milliseconds since the first retransmission (`retrans_stamp`; in SYN-SENT, since the first SYN).
    fn retransmits_for(&self, conn: &Connection, now: Instant) -> u64 {
        let since = match (&self.stack, conn.state) {
            (_, TcpState::SynSent) => {
                let opened = conn.handshake_cfg.as_ref().and_then(|config| config.opened);
                opened.map(|at| conn.clock.timestamp(at))
            }
            (Stack::RackTlp(loss), _) => loss.retrans_stamp(),
            _ => None,
        };
        since.map_or(0, |since| u64::from(conn.clock.timestamp(now).wrapping_sub(since)))
    }

    /// Has Linux retransmitted for too long (tcp_write_timeout)? `snd.rexmt.shift` counts the timeout that has just expired.
    pub(crate) fn retransmits_timed_out(&self, conn: &Connection, now: Instant) -> bool {
        let syn = matches!(conn.state, TcpState::SynSent | TcpState::SynReceived);
        let by_time = conn.cfg.profile.rules.closing.gives_up_by_time;
        if !by_time || (syn && self.rexmt.shift > self.retries(conn)) {
            return self.rexmt.shift > self.retries(conn);
        }
        // tcp_fastopen_synack_timer has no other limit.
        if self.rexmt.shift <= 1 || conn.state == TcpState::SynReceived {
            return false;
        }
        let rare = &self.rare;
        let alive = self.rtt.estimator.rto() < RTO_MAX;
        let limit = match (rare.user_timeout, conn.state) {
            (0, TcpState::SynSent) => model_timeout(conn.cfg.profile.syn.retries, SYN_RTO),
            (0, _) if rare.orphaned => {
                model_timeout(if alive { ORPHAN_RETRIES } else { 0 }, RTO_MIN)
            }
            (0, _) => model_timeout(self.retries(conn), RTO_MIN),
            (millis, _) => u64::from(millis),
        };
        self.retransmits_for(conn, now) >= limit
    }

    /// [`Sender::arm_after_timeout`] with the time since the first retransmission.
    pub(crate) fn rearm_after_timeout(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) {
        let elapsed = self.retransmits_for(conn, now);
        self.arm_after_timeout(conn, timers, now, elapsed);
    }
}

impl Sender {
    /// Restarts the retransmission timer, after a timeout no later than `TCP_USER_TIMEOUT`
    /// (tcp_clamp_rto_to_user_timeout); `elapsed`: milliseconds since the first retransmission.
    pub(crate) fn arm_after_timeout(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        elapsed: u64,
    ) {
        timers.set_ticks(Purpose::Retransmit, &conn.clock, now, self.rtt.estimator.rto());
        let limit = u64::from(self.rare.user_timeout);
        if limit == 0 || self.rexmt.shift == 0 {
            return;
        }
        let left = limit.saturating_sub(elapsed);
        let ticks = conn.clock.ticks(Duration::from_millis(left)).max(1);
        if ticks < conn.clock.ticks(self.rtt.estimator.rto()) {
            timers.set(Purpose::Retransmit, conn.clock.timer_at(now, ticks));
        }
    }

    /// Has the window been probed for longer than `TCP_USER_TIMEOUT` (`icsk_probes_tstamp` of tcp_probe_timer)? Called
    /// when the timer expires; the first time starts the clock.
    pub(crate) fn probes_timed_out(&mut self, conn: &Connection, now: Instant) -> bool {
        let limit = u64::from(self.rare.user_timeout);
        if limit == 0 {
            return false;
        }
        let Some(since) = self.rare.probing_since else {
            self.rare.probing_since = Some(now);
            return false;
        };
        conn.clock.tick(now) - conn.clock.tick(since)
            >= conn.clock.ticks(Duration::from_millis(limit))
    }

    /// A probe's timer of `span` from now on, no later than `TCP_USER_TIMEOUT` (tcp_clamp_probe0_to_user_timeout).
    pub(crate) fn probe_deadline(
        &self,
        conn: &Connection,
        now: Instant,
        span: Duration,
    ) -> Instant {
        let limit = u64::from(self.rare.user_timeout);
        let at = conn.clock.deadline(now, span);
        let Some(since) = self.rare.probing_since.filter(|_| limit > 0) else { return at };
        let elapsed = conn.clock.tick(now) - conn.clock.tick(since);
        let left = conn.clock.ticks(Duration::from_millis(limit)).saturating_sub(elapsed);
        at.min(conn.clock.timer_at(now, left.max(TIMEOUT_MIN_TICKS)))
    }
}

/// tcp_model_timeout, in milliseconds.
fn model_timeout(boundary: u32, base: Duration) -> u64 {
    let [base, most] = [base, RTO_MAX].map(|span| span.as_micros() / 1_000);
    let doublings = (most / base).ilog2();
    let doubled = ((2 << boundary.min(doublings)) - 1) * base;
    doubled + u64::from(boundary.saturating_sub(doublings)) * most
}
