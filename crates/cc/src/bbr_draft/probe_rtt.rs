//! ProbeRTT (section "ProbeRTT").

use units::Instant;

use super::sample::DraftSample;
use super::{BbrAckPhase, BbrDraft, BbrDraftPhase};

impl BbrDraft {
    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, rs: &DraftSample) {
        if !self.params().probe_rtt_after_down {
            self.begin_due_probe_rtt(rs);
        }
        if self.state == BbrDraftPhase::ProbeRtt {
            self.handle_probe_rtt(rs);
        }
        if rs.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// `EnterProbeRTT`, if the minimum delay has expired.
    pub(super) fn begin_due_probe_rtt(&mut self, rs: &DraftSample) {
        if self.state == BbrDraftPhase::ProbeRtt || !self.probe_rtt_expired || self.idle_restart {
            return;
        }
        if self.params().probe_rtt_after_down {
            // quiche's `maybe_expire_min_rtt`.
            (self.min_rtt, self.min_rtt_stamp) = (rs.rtt.or(self.min_rtt), rs.now);
            (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (self.min_rtt, rs.now);
        }
        self.save_cwnd();
        self.enter(BbrDraftPhase::ProbeRtt, rs.now);
        self.probe_rtt_done_stamp = None;
        self.ack_phase = BbrAckPhase::ProbeStopping;
        self.start_round();
    }

    /// `HandleProbeRTT`.
    fn handle_probe_rtt(&mut self, rs: &DraftSample) {
        if self.probe_rtt_done_stamp.is_none() {
            if rs.inflight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_stamp = Some(rs.now + self.params().probe_rtt_duration);
                self.probe_rtt_round_done = false;
                self.start_round();
            }
            return;
        }
        self.probe_rtt_round_done |= self.round_start;
        if self.probe_rtt_round_done {
            self.check_probe_rtt_done(rs.now);
        }
    }

    /// `CheckProbeRTTDone`, with `ExitProbeRTT`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt_done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_stamp = now;
        self.restore_cwnd();
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_down(now);
            self.start_cruise(now);
        } else {
            self.enter(BbrDraftPhase::Startup, now);
        }
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp(self.bw, self.params().probe_rtt_cwnd_gain).max(self.least_cwnd())
    }
}
