//! How long Linux retransmits and probes before it gives a connection up, and what it does once the application has
//! closed its socket (tcp_write_timeout, tcp_orphan_retries, tcp_probe_timer and tcp_keepalive_timer of tcp_timer.c,
//! tcp_rcv_state_process of tcp_input.c; Linux 6.12). The limit of retransmissions is a time, that of as many as
//! `tcp_retries2` timeouts which begin with the least one; `TCP_USER_TIMEOUT` replaces it.

use machine::Cx;
use packet::Segment;
use record::{Purpose, Recorder};
use units::{Duration, Instant, Offset};

use crate::endpoint::{TcpEndpoint, TcpState};
use crate::loss::LossDetector;
use crate::profile::Family;

/// `TCP_RTO_MIN` and `TCP_RTO_MAX`, in milliseconds.
const RTO_MIN: u64 = 200;
const RTO_MAX: u64 = 120_000;
/// `TCP_TIMEOUT_INIT`, in milliseconds.
const SYN_RTO: u64 = 1_000;
/// Timeouts of a closed socket whose path seems alive (tcp_orphan_retries).
const ORPHAN_RETRIES: u32 = 8;
/// `TCP_TIMEOUT_MIN`, in ticks.
const TIMEOUT_MIN_TICKS: u64 = 2;

impl TcpEndpoint {
    /// `TCP_USER_TIMEOUT` of Linux: how long data may stay unacknowledged, or a window shut; zero for the system's
    /// limits.
    pub fn set_user_timeout(&mut self, millis: u32) {
        if self.snd.rare.user_timeout != millis {
            self.snd.rare.user_timeout = millis;
        }
    }

    /// The application has closed the socket (`SOCK_DEAD`), or shut it down for reading (`RCV_SHUTDOWN`): data that
    /// arrives after our FIN is answered with a RST.
    pub fn stop_reading(&mut self, closed: bool) {
        self.snd.rare.receive_shut = true;
        self.snd.rare.orphaned |= closed;
    }

    /// tcp_model_timeout, in milliseconds.
    fn model_timeout(boundary: u32, base: u64) -> u64 {
        let doublings = (RTO_MAX / base).ilog2();
        let doubled = ((2 << boundary.min(doublings)) - 1) * base;
        doubled + u64::from(boundary.saturating_sub(doublings)) * RTO_MAX
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

    /// Has Linux retransmitted for too long (tcp_write_timeout)? `snd.shift` counts the timeout that has just expired.
    pub(crate) fn retransmits_timed_out(&self, now: Instant) -> bool {
        let syn = matches!(self.state, TcpState::SynSent | TcpState::SynReceived);
        if self.cfg.profile.family != Family::Linux || (syn && self.snd.shift > self.retries()) {
            return self.snd.shift > self.retries();
        }
        // tcp_fastopen_synack_timer has no other limit.
        if self.snd.shift <= 1 || self.state == TcpState::SynReceived {
            return false;
        }
        let rare = &self.snd.rare;
        let alive = self.rtt.rto() < Duration::from_millis(RTO_MAX);
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
        self.arm_retransmit(now);
        let limit = u64::from(self.snd.rare.user_timeout);
        if limit == 0 || self.snd.shift == 0 {
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

    /// Ends the connection with a RST if `segment` brings data that can no longer be read, after our FIN
    /// (`TCPABORTONDATA`); `seq` is its sequence number.
    pub(crate) fn refuses_data<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
    ) -> bool {
        let awaits = matches!(self.state, TcpState::FinWait1 | TcpState::FinWait2);
        let new = seq + u64::from(segment.payload) > self.rcv.nxt;
        if !awaits || !new || !self.snd.rare.receive_shut {
            return false;
        }
        self.abort(cx);
        self.answer_with_reset(segment);
        true
    }
}
