//! How long Linux retransmits and probes before it gives a connection up (tcp_write_timeout, tcp_orphan_retries and
//! tcp_probe_timer of tcp_timer.c, Linux 6.12). The limit of retransmissions is a time, that of as many as
//! `tcp_retries2` timeouts which begin with the least one; `TCP_USER_TIMEOUT` replaces it.

use record::Purpose;
use units::{Duration, Instant};

use crate::ack_policy::RTO_MIN;
use crate::endpoint::{TcpEndpoint, TcpState};
use crate::loss::LossDetector;
use crate::syn_timer::TIMEOUT_MIN_TICKS;

/// `TCP_RTO_MAX`
const RTO_MAX: Duration = Duration::from_secs(120);
/// `TCP_TIMEOUT_INIT`
const SYN_RTO: Duration = Duration::from_secs(1);
/// Timeouts of a closed socket whose path seems alive (tcp_orphan_retries).
const ORPHAN_RETRIES: u32 = 8;

impl TcpEndpoint {
    /// `TCP_USER_TIMEOUT` of Linux: how long data may stay unacknowledged, or a window shut; zero for the system's
    /// limits.
    pub fn set_user_timeout(&mut self, millis: u32) {
        // Most connections have no rare state, and this would allocate it.
        if self.snd.rare.user_timeout != millis {
            self.snd.rare.user_timeout = millis;
        }
    }

    /// tcp_model_timeout, in milliseconds.
    fn model_timeout(boundary: u32, base: Duration) -> u64 {
        let [base, most] = [base, RTO_MAX].map(|span| span.as_micros() / 1_000);
        let doublings = (most / base).ilog2();
        let doubled = ((2 << boundary.min(doublings)) - 1) * base;
        doubled + u64::from(boundary.saturating_sub(doublings)) * most
    }

    /// Milliseconds since the first retransmission (`retrans_stamp`; in SYN-SENT, since the first SYN).
    fn retransmits_for(&self, now: Instant) -> u64 {
        let since = match (&self.snd.loss_detector, self.state) {
            (_, TcpState::SynSent) => {
                let opened = self.handshake_cfg.as_ref().and_then(|config| config.opened);
                opened.map(|at| self.clock.timestamp(at))
            }
            (LossDetector::RackTlp(loss), _) => loss.retrans_stamp(),
            _ => None,
        };
        since.map_or(0, |since| u64::from(self.clock.timestamp(now).wrapping_sub(since)))
    }

    /// Has Linux retransmitted for too long (tcp_write_timeout)? `snd.rexmt.shift` counts the timeout that has just expired.
    pub(crate) fn retransmits_timed_out(&self, now: Instant) -> bool {
        let syn = matches!(self.state, TcpState::SynSent | TcpState::SynReceived);
        let by_time = self.cfg.profile.rules.closing.gives_up_by_time;
        if !by_time || (syn && self.snd.rexmt.shift > self.retries()) {
            return self.snd.rexmt.shift > self.retries();
        }
        // tcp_fastopen_synack_timer has no other limit.
        if self.snd.rexmt.shift <= 1 || self.state == TcpState::SynReceived {
            return false;
        }
        let rare = &self.snd.rare;
        let alive = self.rtt.rto() < RTO_MAX;
        let limit = match (rare.user_timeout, self.state) {
            (0, TcpState::SynSent) => Self::model_timeout(self.cfg.profile.syn.retries, SYN_RTO),
            (0, _) if rare.orphaned => {
                Self::model_timeout(if alive { ORPHAN_RETRIES } else { 0 }, RTO_MIN)
            }
            (0, _) => Self::model_timeout(self.retries(), RTO_MIN),
            (millis, _) => u64::from(millis),
        };
        self.retransmits_for(now) >= limit
    }

    /// Restarts the retransmission timer, after a timeout no later than `TCP_USER_TIMEOUT`
    /// (tcp_clamp_rto_to_user_timeout).
    pub(crate) fn arm_after_timeout(&mut self, now: Instant) {
        self.timers.set_ticks(Purpose::Retransmit, &self.clock, now, self.rtt.rto());
        let limit = u64::from(self.snd.rare.user_timeout);
        if limit == 0 || self.snd.rexmt.shift == 0 {
            return;
        }
        let left = limit.saturating_sub(self.retransmits_for(now));
        let ticks = self.clock.ticks(Duration::from_millis(left)).max(1);
        if ticks < self.clock.ticks(self.rtt.rto()) {
            self.timers.set(Purpose::Retransmit, self.clock.timer_at(now, ticks));
        }
    }

    /// Has the window been probed for longer than `TCP_USER_TIMEOUT` (`icsk_probes_tstamp` of tcp_probe_timer)? Called
    /// when the timer expires; the first time starts the clock.
    pub(crate) fn probes_timed_out(&mut self, now: Instant) -> bool {
        let limit = u64::from(self.snd.rare.user_timeout);
        if limit == 0 {
            return false;
        }
        let Some(since) = self.snd.rare.probing_since else {
            self.snd.rare.probing_since = Some(now);
            return false;
        };
        self.clock.tick(now) - self.clock.tick(since)
            >= self.clock.ticks(Duration::from_millis(limit))
    }

    /// A probe's timer of `span` from now on, no later than `TCP_USER_TIMEOUT` (tcp_clamp_probe0_to_user_timeout).
    pub(crate) fn probe_deadline(&self, now: Instant, span: Duration) -> Instant {
        let limit = u64::from(self.snd.rare.user_timeout);
        let at = self.clock.deadline(now, span);
        let Some(since) = self.snd.rare.probing_since.filter(|_| limit > 0) else { return at };
        let elapsed = self.clock.tick(now) - self.clock.tick(since);
        let left = self.clock.ticks(Duration::from_millis(limit)).saturating_sub(elapsed);
        at.min(self.clock.timer_at(now, left.max(TIMEOUT_MIN_TICKS)))
    }
}
