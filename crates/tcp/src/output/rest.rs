//! Passes that find nothing to send, and bare acknowledgments.

use cc::Controller;
use machine::Cx;
use packet::{Flags, Segment};
use record::{Event, Recorder, SentKind, Waiting};
use units::unlikely;

use crate::endpoint::{Endpoint, State};
use crate::loss::Repair;
use crate::profile::BurstRule;

impl Endpoint {
    /// Is all sent that there is, and nothing else to be done but perhaps to acknowledge? So it is with
    /// most passes of a receiver, and of a sender whose application or send buffer holds it back.
    #[inline(always)]
    pub(super) fn rests(&self) -> bool {
        let snd = &self.snd;
        let quiet = match &snd.repair {
            Repair::Timed(loss) => !loss.probe_is_due() && !snd.map.any_lost(),
            Repair::Rack(rack) => !rack.is_entered(),
            Repair::Holes(_) | Repair::Duplicates => true,
        };
        self.state == State::Established
            && snd.nxt == snd.max
            && snd.nxt == self.data_end()
            && (snd.buffer.used() == 0 || matches!(self.cfg.profile.burst, BurstRule::Linux { .. }))
            && quiet
            && self.reset.is_none()
            && snd.again.is_none()
            && snd.probe.is_none()
            && snd.rates.is_none()
            && !self.cc.in_recovery()
    }

    /// A pass that finds nothing to send: what [`Endpoint::pass`] does, less what cannot be.
    #[inline(always)]
    pub(super) fn rest<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), Waiting> {
        if core::mem::take(&mut self.snd.fresh) {
            self.snd.idle = self.snd.max == self.snd.una;
            self.snd.asked_at = self.snd.nxt;
        }
        if self.snd.buffer.used() > 0 {
            // Is the window full of whole packets? Asked without a division.
            let full = (self.packets_in_flight() + 1) * self.mss() > self.send_window();
            self.validate_window(full);
        }
        let why = if unlikely(self.snd.fin) { Waiting::Done } else { Waiting::Application };
        self.end_pass(cx, why);
        if self.rcv.ack_now || self.window_update_due() {
            self.build_ack(cx, slot);
            return Ok(());
        }
        Err(why)
    }

    /// A pass behind a packet that has filled the congestion window: what [`Endpoint::pass`] does, less
    /// what cannot be.
    #[inline(never)]
    pub(super) fn end_full<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), Waiting> {
        self.validate_window(true);
        self.end_pass(cx, Waiting::CongestionWindow);
        if self.rcv.ack_now || self.window_update_due() {
            self.build_ack_apart(cx, slot);
            return Ok(());
        }
        Err(Waiting::CongestionWindow)
    }

    /// A pass has found nothing to send.
    #[inline(always)]
    pub(super) fn end_pass<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, why: Waiting) {
        self.snd.due = false;
        self.validate_bytes(Some(why));
        if why != self.snd.waiting {
            cx.emit(|| Event::Waiting(why));
        }
        self.snd.waiting = why;
        if core::mem::take(&mut self.snd.check_space) {
            self.wake_writer(cx);
        }
    }

    /// Makes a bare acknowledgment.
    #[inline(always)]
    pub(super) fn build_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        // A probe for attention carries the number of the next new byte (FreeBSD uses snd_max, but
        // snd_nxt where a closed window is probed).
        let probes = self.snd.persisting && matches!(self.snd.repair, Repair::Holes(_));
        let at = if unlikely(probes) { self.snd.nxt } else { self.snd.max };
        self.write_header(cx.now, at, 0, Flags::ACK, slot);
        if self.has_blocks() {
            self.write_blocks(0, slot);
        }
        cx.emit_of(self, || {
            let at = self.payload_offset(at);
            Event::Sent { at, len: 0, kind: SentKind::Ack }
        });
    }

    #[inline(never)]
    pub(super) fn build_ack_apart<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        self.build_ack(cx, slot);
    }

    /// Is there anything that SACK blocks would tell?
    #[inline(always)]
    pub(super) fn has_blocks(&self) -> bool {
        if let Some(report) = &self.rcv.report {
            return self.link.sack && !report.is_empty();
        }
        self.link.sack && (self.rcv.duplicate.0.is_some() || !self.rcv.reassembly.is_empty())
    }

    /// Writes SACK blocks into a segment with `len` bytes of payload.
    #[inline(never)]
    pub(super) fn write_blocks(&mut self, len: u64, slot: &mut Segment) {
        let most_blocks = if self.link.timestamps { 3 } else { 4 };
        // Data leaves no room for blocks, unless it is little.
        let fits = len == 0 || len + 4 + 8 * most_blocks as u64 <= self.mss();
        if let Some(report) = &mut self.rcv.report {
            if fits {
                slot.options = report.blocks(self.rcv.irs, most_blocks).into();
            }
            report.on_sent(self.rcv.nxt);
            return;
        }
        if fits {
            let duplicate = self.rcv.duplicate.0;
            if duplicate.is_some() {
                self.rcv.duplicate.0 = None;
            }
            let blocks = self.rcv.reassembly.sack_blocks(self.rcv.irs, most_blocks, duplicate);
            slot.options = blocks.into();
        }
    }
}
