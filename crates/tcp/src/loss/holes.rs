//! What FreeBSD's base stack knows of losses: the scoreboard, PRR's counters, and what versions differ
//! in. When which of them acts is in `base`.

use cc::Controller;
use machine::Cx;
use record::{Cause, Event, Recorder};
use recovery::holes::{Holes, PartialAck, PipeRule, Rescue, SackInput, Update};
use recovery::prr::freebsd::{Prr, PrrAck, PrrRule, Recovery};
use units::{Bytes, Offset};

use super::base::Ack;
use super::duplicates::DUP_THRESHOLD;
use super::{Heard, Repair};
use crate::endpoint::Endpoint;
use crate::profile::HolesRule;

/// Loss state of FreeBSD's base stack; without SACK the scoreboard stays empty.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct HolesLoss {
    pub(super) rule: HolesRule,
    pub(super) holes: Holes,
    pub(super) prr: Prr,
}

impl HolesLoss {
    pub(crate) const fn new(rule: HolesRule) -> Self {
        Self {
            rule,
            holes: Holes::new(rule.params),
            prr: Prr { prr_delivered: 0, prr_out: 0, recover_fs: 0 },
        }
    }

    pub(crate) const fn rule(&self) -> &HolesRule {
        &self.rule
    }

    pub(crate) const fn sack_bytes_rexmit(&self) -> u64 {
        self.holes.sack_bytes_rexmit()
    }

    /// Reports the scoreboard and PRR's counters under the names of recordings.
    pub(crate) fn inspect(&self, see: &mut impl FnMut(&'static str, u64)) {
        see("rexb", self.holes.sack_bytes_rexmit());
        see("sackb", self.holes.sacked_bytes());
        see("del", self.holes.delivered());
        see("rfs", self.prr.recover_fs);
        see("prrd", self.prr.prr_delivered);
        see("prro", self.prr.prr_out);
        see("nh", self.holes.len() as u64);
        if self.rule.params.pipe == PipeRule::SackedAndLost {
            see("lostb", self.holes.lost_bytes());
        }
    }

    /// More was reported than two segments: enough without a third duplicate.
    pub(super) fn much_reported(&self, maxseg: u64) -> bool {
        self.rule.newsack && self.holes.sacked_bytes() > u64::from(DUP_THRESHOLD - 1) * maxseg
    }
}

/// The loss state of the base stack; returns a default on another stack.
macro_rules! holes_of {
    ($endpoint:expr) => {
        match &mut $endpoint.snd.repair {
            $crate::loss::Repair::Holes(loss) => loss,
            _ => return Default::default(),
        }
    };
}
pub(super) use holes_of;

impl Endpoint {
    /// tcp_sack_doack: before `snd_una` moves.
    pub(super) fn holes_update(&mut self, heard: &Heard) -> Update {
        let (snd_una, snd_max) = (self.snd.una, self.snd.max);
        let (snd_recover, t_maxseg) = (self.cc.recovery_point(), self.link.maxseg);
        let loss = holes_of!(self);
        loss.holes.update(&SackInput {
            th_ack: heard.th_ack,
            blocks: heard.blocks(),
            snd_una,
            snd_max,
            snd_recover,
            t_maxseg,
        })
    }

    /// tcp_do_prr_ack: the window for what this acknowledgment allows.
    pub(super) fn holes_prr<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, ack: &Ack<'_>) {
        let snd = &self.snd;
        let (una, nxt, max) = (snd.una.0 as i64, snd.nxt.0 as i64, snd.max.0 as i64);
        let recover = self.cc.recovery_point().0 as i64;
        let control = self.cc.control();
        let ssthresh = control.ssthresh.unwrap_or(control.window).get();
        let (maxseg, pipe) = (self.mss(), self.prr_pipe());
        let dup_acks = u64::from(self.snd.dup_acks);
        let loss = holes_of!(self);
        // 13.0 asks whether SACK was agreed, later versions whether it says anything.
        let sack = ack.sack_recovery || loss.rule.prr == PrrRule::Rfc6937;
        let window = loss.prr.on_ack(
            loss.rule.prr,
            &PrrAck {
                recovery: if sack { Recovery::Sack } else { Recovery::Duplicates },
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
        self.emit_window(cx, Cause::Recovering);
    }

    /// Bytes in flight as PRR counts them: in 13.0, without `rfc6675_pipe`, what lies beyond the
    /// highest report and what was resent.
    fn prr_pipe(&self) -> i64 {
        let Repair::Holes(loss) = &self.snd.repair else { return 0 };
        match loss.rule.params.pipe {
            PipeRule::Outstanding => {
                let beyond = self.snd.nxt.0 as i64 - loss.holes.snd_fack().0 as i64;
                beyond + loss.holes.sack_bytes_rexmit() as i64
            }
            PipeRule::Sacked | PipeRule::SackedAndLost => self.computed_pipe(),
        }
    }

    /// tcp_compute_pipe; all that is outstanding where 13.0 does not call it.
    pub(super) fn computed_pipe(&self) -> i64 {
        let (una, max) = (self.snd.una, self.snd.max);
        match &self.snd.repair {
            Repair::Holes(loss) => loss.holes.pipe(una, max),
            _ => max.since(una).get() as i64,
        }
    }

    /// The same as the controllers take it, in 32 bits without a sign.
    pub(crate) fn holes_pipe(&self) -> u64 {
        u64::from(self.computed_pipe() as u32)
    }

    /// tcp_sack_partialack: an acknowledgment in recovery that reports nothing.
    pub(super) fn holes_partial_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, th_ack: Offset) {
        let snd_recover = self.cc.recovery_point();
        let control = self.cc.control();
        let partial = PartialAck {
            th_ack,
            snd_una: self.snd.una,
            snd_nxt: self.snd.nxt,
            snd_recover,
            maxseg: self.link.mss,
            ssthresh: control.ssthresh.unwrap_or(control.window).get(),
        };
        let rescue = Rescue {
            th_ack,
            high_data: self.snd.max.min(self.data_end()),
            snd_recover,
            maxseg: self.link.mss,
        };
        let loss = holes_of!(self);
        let window = loss.holes.partial_ack_window(&partial);
        if loss.rule.newsack && loss.holes.rescue(&rescue) {
            // The last segments may be missing too, though nothing beyond them tells.
            cx.emit(|| Event::Lost { packets: 1 });
        }
        self.cc.set_window(Bytes(window));
        self.emit_window(cx, Cause::Recovering);
    }

    /// The retransmission timer fired: before the controller is told.
    pub(crate) fn holes_timeout(&mut self) {
        let shift = self.snd.shift;
        holes_of!(self).holes.on_timeout(shift);
    }

    /// The part of a hole to retransmit now (tcp_output, `sack_rxmit`): where it begins, its length.
    pub(crate) fn next_hole(&mut self) -> Option<(Offset, u64)> {
        let point = self.cc.recovery_point();
        let window = self.snd.wnd.min(self.cwnd());
        let data_end = self.data_end();
        let loss = holes_of!(self);
        let room = window.saturating_sub(loss.holes.sack_bytes_rexmit());
        let (start, end) = loss.holes.next_hole()?;
        // Not beyond what this recovery is about.
        let left = end.min(point).min(data_end).since(start).get();
        let len = room.min(left);
        (len > 0).then_some((start, len))
    }

    /// `snd_nxt` after a timeout, moved over what was reported; bytes by which that enlarges the
    /// window (tcp_sack_adjust).
    pub(crate) fn skip_reported(&mut self) -> u64 {
        let Repair::Holes(loss) = &self.snd.repair else { return 0 };
        if !self.link.sack || self.snd.nxt >= self.snd.max {
            return 0;
        }
        let (nxt, reported) = loss.holes.adjust(self.snd.nxt);
        let enlarges = loss.rule.sacked_enlarges_window;
        self.snd.nxt = nxt.min(self.snd.max);
        if enlarges { reported } else { 0 }
    }

    /// `len` bytes were sent, from a hole or not.
    pub(crate) fn holes_sent(&mut self, len: u64, hole: bool) {
        let (point, recovering) = (self.cc.recovery_point(), self.cc.in_recovery());
        let congested = self.snd.ecn_episode.is_some();
        let loss = holes_of!(self);
        if recovering || congested {
            loss.prr.on_sent(len);
        }
        if hole {
            loss.holes.resent(len, point);
            // The next segment from `snd_nxt` on lies beyond what was just resent.
            let resent = loss.holes.resent_up_to();
            if loss.rule.holes_after_timeout {
                self.snd.nxt = self.snd.nxt.max(resent.unwrap_or(self.snd.nxt));
            }
        }
    }
}
