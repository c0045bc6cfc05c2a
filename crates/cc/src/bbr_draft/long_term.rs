//! The long-term bound `BBR.inflight_longterm`: raised by probes, lowered by excess loss (sections "ProbeBW Algorithm
//! Details", "Probing for Bandwidth In ProbeBW").

use units::Instant;

use super::params::{MarkRule, UNIT};
use super::sample::DraftSample;
use super::{BbrAckPhase, BbrDraft, BbrDraftPhase, INFINITY, times};
use crate::contract::LostSegment;

impl BbrDraft {
    /// `AdaptLongTermModel`: returns whether it decided a transition.
    pub(super) fn adapt_long_term_model(&mut self, rs: &DraftSample) -> bool {
        if self.ack_phase == BbrAckPhase::ProbeStarting && self.round_start {
            self.ack_phase = BbrAckPhase::ProbeFeedback;
        }
        if self.ack_phase == BbrAckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = BbrAckPhase::Init;
            if self.state.is_probe_bw() {
                if !rs.is_app_limited {
                    self.advance_max_bw_filter();
                }
                if self.prev_probe_precautionary && !self.prev_probe_too_high {
                    self.start_refill(rs.now);
                    return true;
                }
            }
        }
        if self.is_inflight_too_high(rs) {
            // CE marks have no event of their own.
            if rs.is_marked && self.is_bw_probe_sample {
                self.handle_inflight_too_high(rs.now, rs.tx_in_flight, rs.is_app_limited);
            }
            return false;
        }
        if self.inflight_longterm == INFINITY {
            return false;
        }
        self.inflight_longterm = self.inflight_longterm.max(rs.tx_in_flight);
        if self.state == BbrDraftPhase::Up {
            self.probe_inflight_longterm_upward(rs);
        }
        false
    }

    /// `RaiseInflightLongtermSlope`.
    pub(super) fn raise_inflight_longterm_slope(&mut self) {
        let growth = 1_u64 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth).max(self.mss);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_inflight_longterm_upward(&mut self, rs: &DraftSample) {
        if !rs.is_cwnd_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += rs.newly_acked;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = self.bw_probe_up_acked / self.probe_up_acked_per_inc;
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm = self.inflight_longterm.saturating_add(delta * self.mss);
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// `IsInflightTooHigh`, with the marks that count.
    pub(super) fn is_inflight_too_high(&self, rs: &DraftSample) -> bool {
        let params = self.params();
        let marks_too_many = match params.marks {
            MarkRule::Share(share) => rs.marked * UNIT > rs.delivered * share,
            MarkRule::AsLosses | MarkRule::Ignored => false,
        };
        let marked = if params.marks == MarkRule::AsLosses { rs.marked } else { 0 };
        marks_too_many || self.is_too_much(rs.lost + marked, rs.tx_in_flight)
    }

    fn is_too_much(&self, lost: u64, tx_in_flight: u64) -> bool {
        lost > times(tx_in_flight, self.params().loss_thresh)
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(&mut self, now: Instant, tx_in_flight: u64, app_limited: bool) {
        let params = self.params();
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !app_limited {
            self.inflight_longterm = tx_in_flight.max(times(self.target_inflight(), params.beta));
        }
        if self.state == BbrDraftPhase::Up {
            self.undo_state = Some(BbrDraftPhase::Up);
            self.start_down(now);
        }
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_lost_packet(&mut self, packet: &LostSegment) {
        let unit = self.unit_bytes();
        self.delivered = self.delivered.max(packet.delivered * unit);
        self.note_loss();
        self.lost_in_probe += 1;
        if !self.is_bw_probe_sample || self.lost_in_probe < self.params().probe_full_losses {
            return;
        }
        let size = u64::from(packet.packets) * unit;
        let tx_in_flight = u64::from(packet.in_flight) * unit;
        let lost = u64::from(packet.lost_since) * unit;
        if !self.is_too_much(lost, tx_in_flight) {
            return;
        }
        let at_loss = self.inflight_at_loss(size, tx_in_flight, lost);
        self.handle_inflight_too_high(packet.now, at_loss, packet.app_limited);
    }

    /// `InflightAtLoss`: the flight at which losses crossed the threshold, within this packet.
    fn inflight_at_loss(&self, size: u64, tx_in_flight: u64, lost: u64) -> u64 {
        let thresh = self.params().loss_thresh;
        let inflight_prev = tx_in_flight.saturating_sub(size);
        let lost_prev = lost.saturating_sub(size);
        let spare = times(inflight_prev, thresh).saturating_sub(lost_prev);
        inflight_prev + spare * UNIT / (UNIT - thresh)
    }
}
