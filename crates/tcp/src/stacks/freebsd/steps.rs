//! The steps of FreeBSD's base stack that change its loss state: each gets the sequence variables to read, and the
//! controller if it changes the window.

use cc::{AnyController, CongestionEvent, Controller, RecoveryEnd, WindowChange};
use recovery::holes::{PartialAckInput, PipeRule, RescueInput, SackInput, SackUpdate};
use recovery::prr::freebsd::{PrrFreeBsdInput, PrrRule, RecoveryCause};
use units::{Bytes, Offset};

use super::do_segment::ProcessedAck;
use super::state::FreeBsdState;
use crate::profile::SettleRule;
use crate::received_ack::ReceivedAck;

/// The sequence variables that the steps read, and the segment sizes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SackSequence {
    pub(super) una: Offset,
    pub(super) nxt: Offset,
    pub(super) max: Offset,
    /// The offset after the last byte written.
    pub(super) data_end: Offset,
    /// Payload of a full segment, and the same without options (`t_maxseg`).
    pub(super) mss: u32,
    pub(super) maxseg: u32,
}

/// The threshold, or the window without one.
fn ssthresh(cc: &AnyController) -> u64 {
    let control = cc.control();
    control.ssthresh.unwrap_or(control.window).get()
}

impl FreeBsdState {
    /// tcp_sack_doack: before `snd_una` moves.
    pub(super) fn on_sack(
        &mut self,
        received: &ReceivedAck,
        snd: &SackSequence,
        snd_recover: Offset,
    ) -> SackUpdate {
        self.holes.update(&SackInput {
            th_ack: received.th_ack,
            blocks: received.blocks(),
            snd_una: snd.una,
            snd_max: snd.max,
            snd_recover,
            t_maxseg: snd.maxseg,
        })
    }

    /// tcp_do_prr_ack: sets the window to what this acknowledgment allows; `dup_acks`: duplicates so far.
    pub(super) fn on_prr_ack(
        &mut self,
        ack: &ProcessedAck,
        snd: &SackSequence,
        dup_acks: u32,
        cc: &mut AnyController,
    ) {
        let una = snd.una.0 as i64;
        // 13.0 checks whether SACK was negotiated, later versions whether there are blocks or
        // holes.
        let sack = ack.sack_recovery || self.rule.prr == PrrRule::Rfc6937;
        let pipe = self.prr_pipe(snd);
        let window = self.prr.on_ack(
            self.rule.prr,
            &PrrFreeBsdInput {
                recovery: if sack { RecoveryCause::Sack } else { RecoveryCause::Duplicates },
                changed: ack.update.changed,
                maxseg: u64::from(snd.mss),
                ssthresh: ssthresh(cc),
                delivered: self.holes.delivered(),
                sack_bytes_rexmit: self.holes.sack_bytes_rexmit(),
                nxt: snd.nxt.0 as i64 - una,
                outstanding: (snd.max.0 as i64 - una) as u64,
                recover: cc.recovery_point().0 as i64 - una,
                pipe,
                dup_acks: u64::from(dup_acks),
            },
        );
        cc.set_window(Bytes(window));
    }

    /// Bytes in flight as PRR counts them: in 13.0, without `rfc6675_pipe`, the bytes beyond the
    /// highest SACKed one and those retransmitted.
    fn prr_pipe(&self, snd: &SackSequence) -> i64 {
        match self.rule.params.pipe {
            PipeRule::Outstanding => {
                let beyond = snd.nxt.0 as i64 - self.holes.snd_fack().0 as i64;
                beyond + self.holes.sack_bytes_rexmit() as i64
            }
            PipeRule::Sacked | PipeRule::SackedAndLost => self.holes.pipe(snd.una, snd.max),
        }
    }

    /// tcp_sack_partialack: an acknowledgment in recovery without blocks. Returns whether a hole for the last segments
    /// was opened, which may be lost too: no data beyond them can show it.
    pub(super) fn on_partial_ack(
        &mut self,
        th_ack: Offset,
        snd: &SackSequence,
        cc: &mut AnyController,
    ) -> bool {
        let snd_recover = cc.recovery_point();
        let window = self.holes.partial_ack_window(&PartialAckInput {
            th_ack,
            snd_una: snd.una,
            snd_nxt: snd.nxt,
            snd_recover,
            maxseg: snd.mss,
            ssthresh: ssthresh(cc),
        });
        let rescue = RescueInput {
            th_ack,
            high_data: snd.max.min(snd.data_end),
            snd_recover,
            maxseg: snd.mss,
        };
        let opened = self.rule.newsack && self.holes.open_rescue_hole(&rescue);
        cc.set_window(Bytes(window));
        opened
    }

    /// tcp_sack_lost_retransmission: a retransmission sent before data beyond the recovery point,
    /// and still missing when such data is SACKed, is lost again. That is a new congestion signal,
    /// `loss`. `None` if there is none.
    pub(super) fn on_lost_retransmission(
        &mut self,
        snd: &SackSequence,
        loss: CongestionEvent,
        cc: &mut AnyController,
    ) -> Option<WindowChange> {
        if !self.holes.lost_retransmission(cc.recovery_point()) {
            return None;
        }
        self.prr.restart(snd.max - snd.una);
        cc.set_window(Bytes(ssthresh(cc)));
        cc.leave_recovery();
        // Bytes in flight without the retransmission just found lost.
        let pipe = u64::from(self.holes.pipe(snd.una, snd.max) as u32);
        let change = cc.on_congested(&CongestionEvent { pipe, ..loss });
        cc.set_window(Bytes(u64::from(snd.mss)));
        Some(change)
    }

    /// cc_post_recovery; `pipe`: bytes in flight.
    pub(super) fn on_recovered(
        &mut self,
        th_ack: Offset,
        max: Offset,
        pipe: i64,
        cc: &mut AnyController,
    ) -> WindowChange {
        self.holes.clamp_fack(th_ack, max);
        // The kernel compares an `int` with a `uint32_t`: a negative pipe becomes large.
        let pipe = u64::from(pipe as u32);
        let change = cc.on_recovered(&RecoveryEnd { th_ack, pipe });
        self.prr.prr_out = 0;
        if self.rule.settle == SettleRule::AfterAdvancing {
            self.prr.prr_delivered = 0;
            self.holes.forget_delivered();
        }
        change
    }

    /// Counts `len` bytes sent, from a hole or not; `reduced`: the window is that of a recovery or of an echo. Returns
    /// where `snd_nxt` must be at least: beyond the data just retransmitted.
    pub(super) fn on_sent(
        &mut self,
        len: u64,
        hole: bool,
        reduced: bool,
        snd_recover: Offset,
    ) -> Option<Offset> {
        if reduced {
            self.prr.on_sent(len);
        }
        if !hole {
            return None;
        }
        self.holes.on_retransmit(len, snd_recover);
        self.holes.retransmitted_up_to().filter(|_| self.rule.holes_after_timeout)
    }
}
