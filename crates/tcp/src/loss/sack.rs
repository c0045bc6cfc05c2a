//! Loss state of FreeBSD's base stack: the scoreboard, PRR's counters, and the rules in which
//! versions differ. `base` calls them in the kernel's order.

pub(crate) mod state;

use cc::Controller;
use machine::Cx;
use record::{Cause, Event, Recorder};
use recovery::holes::{PartialAckInput, PipeRule, RescueInput, SackInput, SackUpdate};
use recovery::prr::freebsd::{PrrFreeBsdInput, PrrRule, RecoveryCause};
use units::{Bytes, Offset};

use super::base::ProcessedAck;
use super::{LossDetector, ReceivedAck};
use crate::connection::Connection;
use crate::state::SendSide;

impl SendSide {
    /// tcp_sack_doack: before `snd_una` moves.
    pub(super) fn sack_update(&mut self, conn: &Connection, received: &ReceivedAck) -> SackUpdate {
        let (snd_una, snd_max) = (self.una, self.max);
        let (snd_recover, t_maxseg) = (self.cc.recovery_point(), conn.negotiated.maxseg);
        let Some(loss) = self.loss_detector.sack() else {
            return SackUpdate::default();
        };
        loss.holes.update(&SackInput {
            th_ack: received.th_ack,
            blocks: received.blocks(),
            snd_una,
            snd_max,
            snd_recover,
            t_maxseg,
        })
    }

    /// tcp_do_prr_ack: sets the window to what this acknowledgment allows.
    pub(super) fn sack_prr<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: &ProcessedAck<'_>,
    ) {
        let (una, nxt, max) = (self.una.0 as i64, self.nxt.0 as i64, self.max.0 as i64);
        let recover = self.cc.recovery_point().0 as i64;
        let control = self.cc.control();
        let ssthresh = control.ssthresh.unwrap_or(control.window).get();
        let (maxseg, pipe) = (conn.mss(), self.prr_pipe());
        let dup_acks = u64::from(self.rexmt.dup_acks);
        let Some(loss) = self.loss_detector.sack() else { return };
        // 13.0 checks whether SACK was negotiated, later versions whether there are blocks or
        // holes.
        let sack = ack.sack_recovery || loss.rule.prr == PrrRule::Rfc6937;
        let window = loss.prr.on_ack(
            loss.rule.prr,
            &PrrFreeBsdInput {
                recovery: if sack { RecoveryCause::Sack } else { RecoveryCause::Duplicates },
                changed: ack.update.changed,
                maxseg,
                ssthresh,
                delivered: loss.holes.delivered(),
                sack_bytes_rexmit: loss.holes.sack_bytes_rexmit(),
                nxt: nxt - una,
                outstanding: (max - una) as u64,
                recover: recover - una,
                pipe,
                dup_acks,
            },
        );
        self.cc.set_window(Bytes(window));
        self.emit_window(conn, cx, Cause::Recovering);
    }

    /// Bytes in flight as PRR counts them: in 13.0, without `rfc6675_pipe`, the bytes beyond the
    /// highest SACKed one and those retransmitted.
    fn prr_pipe(&self) -> i64 {
        let LossDetector::Sack(loss) = &self.loss_detector else { return 0 };
        match loss.rule.params.pipe {
            PipeRule::Outstanding => {
                let beyond = self.nxt.0 as i64 - loss.holes.snd_fack().0 as i64;
                beyond + loss.holes.sack_bytes_rexmit() as i64
            }
            PipeRule::Sacked | PipeRule::SackedAndLost => self.computed_pipe(),
        }
    }

    /// tcp_compute_pipe; all outstanding data where 13.0 does not call it.
    pub(super) fn computed_pipe(&self) -> i64 {
        let (una, max) = (self.una, self.max);
        match &self.loss_detector {
            LossDetector::Sack(loss) => loss.holes.pipe(una, max),
            _ => max.since(una).get() as i64,
        }
    }

    /// [`SendSide::computed_pipe`] as controllers use it, in 32 bits without a sign.
    pub(crate) fn sack_pipe(&self) -> u64 {
        u64::from(self.computed_pipe() as u32)
    }

    /// tcp_sack_partialack: an acknowledgment in recovery without blocks.
    pub(super) fn sack_partial_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        th_ack: Offset,
    ) {
        let snd_recover = self.cc.recovery_point();
        let control = self.cc.control();
        let partial = PartialAckInput {
            th_ack,
            snd_una: self.una,
            snd_nxt: self.nxt,
            snd_recover,
            maxseg: conn.negotiated.mss,
            ssthresh: control.ssthresh.unwrap_or(control.window).get(),
        };
        let open_rescue_hole = RescueInput {
            th_ack,
            high_data: self.max.min(self.data_end()),
            snd_recover,
            maxseg: conn.negotiated.mss,
        };
        let Some(loss) = self.loss_detector.sack() else { return };
        let window = loss.holes.partial_ack_window(&partial);
        if loss.rule.newsack && loss.holes.open_rescue_hole(&open_rescue_hole) {
            // The last segments may be lost too; no data beyond them can show it.
            cx.emit(|| Event::Lost { packets: 1 });
        }
        self.cc.set_window(Bytes(window));
        self.emit_window(conn, cx, Cause::Recovering);
    }

    /// Handles a retransmission timeout, before the controller is informed.
    pub(crate) fn sack_timeout(&mut self) {
        let shift = self.rexmt.shift;
        if let Some(loss) = self.loss_detector.sack() {
            loss.holes.on_timeout(shift);
        }
    }

    /// The part of a hole to retransmit now (tcp_output, `sack_rxmit`): where it begins, its
    /// length.
    pub(crate) fn next_hole(&mut self) -> Option<(Offset, u64)> {
        let point = self.cc.recovery_point();
        let window = self.peer.wnd.min(self.cwnd());
        let data_end = self.data_end();
        let loss = self.loss_detector.sack()?;
        let room = window.saturating_sub(loss.holes.sack_bytes_rexmit());
        let (start, end) = loss.holes.next_hole()?;
        // Not beyond the recovery point.
        let left = end.min(point).min(data_end).since(start).get();
        let len = room.min(left);
        (len > 0).then_some((start, len))
    }

    /// Advances `snd_nxt` past SACKed data after a timeout; returns the bytes by which that
    /// enlarges the window (tcp_sack_adjust).
    pub(crate) fn skip_sacked(&mut self, conn: &Connection) -> u64 {
        let LossDetector::Sack(loss) = &self.loss_detector else { return 0 };
        if !conn.negotiated.sack || self.nxt >= self.max {
            return 0;
        }
        let (nxt, reported) = loss.holes.adjust(self.nxt);
        let enlarges = loss.rule.sacked_enlarges_window;
        self.nxt = nxt.min(self.max);
        if enlarges { reported } else { 0 }
    }

    /// Records `len` bytes sent, from a hole or not.
    pub(crate) fn sack_sent(&mut self, len: u64, hole: bool) {
        let (point, recovering) = (self.cc.recovery_point(), self.in_fast_recovery());
        let congested = self.rexmt.cwr_end.is_some();
        let Some(loss) = self.loss_detector.sack() else { return };
        if recovering || congested {
            loss.prr.on_sent(len);
        }
        if hole {
            loss.holes.on_retransmit(len, point);
            // The next segment at `snd_nxt` is beyond the data just retransmitted.
            let retransmission = loss.holes.retransmitted_up_to();
            if loss.rule.holes_after_timeout {
                self.nxt = self.nxt.max(retransmission.unwrap_or(self.nxt));
            }
        }
    }
}
