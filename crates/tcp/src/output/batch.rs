//! Batches: full packets of new data sent at the same instant as the last one.

use machine::Cx;
use packet::{Flags, Segment};
use record::{Purpose, Recorder};
use units::{Instant, Offset};

use super::call::PacketBatch;
use crate::endpoint::TcpEndpoint;
use crate::loss::LossDetector;
use crate::state::{ReceiveSide, SendSide};
use crate::timers::Timers;

impl TcpEndpoint {
    /// Full packets that may follow the last one without another decision.
    #[inline(always)]
    pub const fn batch_packets(&self) -> u64 {
        self.snd.call.batch.packets()
    }

    /// Begins a batch of packets that differ from `model`, the last one sent, only in their
    /// sequence numbers; returns their number: the whole batch, or 0 if they would differ
    /// otherwise. The caller must send them at once, one call of [`TcpEndpoint::next_in_batch`] for
    /// each.
    #[inline]
    pub fn begin_batch(&mut self, now: Instant, model: &Segment) -> u64 {
        let alike = model.flags == Flags::ACK
            && u64::from(model.payload) == self.conn.mss()
            && !self.snd.ecn.agreed()
            && self.snd.rtt.timing.is_some()
            && self.snd.is_watched(&self.timers, now)
            && self.rcv.last_field() == Some(model.window);
        if !alike {
            return 0;
        }
        let packets = self.snd.call.batch.packets();
        self.snd.call.batch = PacketBatch::new(0, self.snd.call.batch.fills_window());
        self.snd.totals.data_packets += packets;
        self.snd.last.sent = now;
        packets
    }

    /// Records the transmission of the batch's next packet, and sets the sequence number in a copy
    /// of the template.
    #[inline(always)]
    pub fn next_in_batch<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &mut Segment) {
        let at = self.snd.max;
        segment.seq = at.to_seq(self.conn.cfg.isn);
        self.snd.move_full(&self.conn, cx.now, at);
        self.snd.emit_full_sent(&self.conn, cx, at);
    }

    /// Builds a full packet as `build_new` does, after another at the same instant and outside of
    /// recovery: the timers of the flight run already.
    pub(super) fn build_next<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        let at = self.snd.max;
        self.write_next_header(cx.now, at, self.conn.mss(), slot);
        self.snd.note_full(&self.conn, cx.now);
        if self.snd.rtt.timing.is_none() {
            self.snd.rtt.timing = Some((at, cx.now));
        }
        if !self.snd.is_watched(&self.timers, cx.now) {
            self.snd.watch_flight(&self.conn, &mut self.timers, cx.now);
        }
        self.snd.emit_full_sent(&self.conn, cx, at);
    }

    /// Writes the header after another segment sent at the same instant: the ACK and the window are
    /// the same unless the window has to be recomputed.
    #[inline(always)]
    fn write_next_header(&mut self, now: Instant, at: Offset, len: u64, slot: &mut Segment) {
        let Some(field) = self.rcv.last_field() else {
            return self.write_header_cold(now, at, len, Flags::ACK, slot);
        };
        self.write_fields(now, at, len, Flags::ACK, field, slot);
        self.rcv.policy.on_ack_sent();
    }
}

impl SendSide {
    /// Are the timers of the flight set as of now?
    #[inline(always)]
    fn is_watched(&self, timers: &Timers, now: Instant) -> bool {
        let planned = match &self.loss_detector {
            LossDetector::RackTlp(loss) => loss.planned_at(now),
            LossDetector::Sack(_) | LossDetector::NewReno | LossDetector::FreeBsdRack(_) => true,
        };
        planned && timers.runs(Purpose::Retransmit)
    }
}

impl ReceiveSide {
    /// The window field of the next header, unless it must be recomputed.
    #[inline(always)]
    fn last_field(&self) -> Option<u16> {
        let promised = self.adv.since(self.nxt).get();
        let window = self.window.last_window(promised, self.reassembly.bytes());
        window.map(|window| self.window.field(window))
    }
}
