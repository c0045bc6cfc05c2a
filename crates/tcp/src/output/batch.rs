//! Batches: full packets of new data sent at the same instant as the last one.

use machine::Cx;
use packet::{Flags, Segment};
use record::{Purpose, Recorder};
use units::{Instant, SeqNum};

use super::call::PacketBatch;
use crate::connection::Connection;
use crate::receive_side::ReceiveSide;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::timers::Timers;

impl SendSide {
    /// Begins a batch of packets like `model`, the last one sent; returns their number, 0 if they would differ
    /// otherwise than in their sequence numbers.
    #[inline]
    pub(super) fn begin_batch(
        &mut self,
        conn: &Connection,
        timers: &Timers,
        rcv: &ReceiveSide,
        now: Instant,
        model: &Segment,
    ) -> u64 {
        let alike = model.flags == Flags::ACK
            && u64::from(model.payload) == conn.mss()
            && !self.ecn.agreed()
            && self.rtt.timing.is_some()
            && self.is_watched(timers, now)
            && rcv.last_field() == Some(model.window);
        if !alike {
            return 0;
        }
        let packets = self.call.batch.packets();
        self.call.batch = PacketBatch::new(0, self.call.batch.fills_window());
        self.totals.data_packets += packets;
        self.last.sent = now;
        packets
    }

    /// Records the transmission of a full packet after another at the same instant and outside of
    /// recovery: the timers of the flight run already.
    #[inline(always)]
    pub(super) fn note_next<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        let at = self.max;
        self.note_full(conn, cx.now);
        if self.rtt.timing.is_none() {
            self.rtt.timing = Some((at, cx.now));
        }
        if !self.is_watched(timers, cx.now) {
            self.watch_flight(conn, timers, cx.now);
        }
        self.emit_full_sent(conn, cx, at);
    }

    /// Are the timers of the flight set as of now?
    #[inline(always)]
    fn is_watched(&self, timers: &Timers, now: Instant) -> bool {
        let planned = match &self.stack {
            Stack::RackTlp(loss) => loss.planned_at(now),
            Stack::FreeBsd(_) | Stack::NewReno | Stack::FreeBsdRack(_) => true,
        };
        planned && timers.runs(Purpose::Retransmit)
    }
}

impl Sender {
    /// Records the transmission of the batch's next packet; returns its sequence number.
    #[inline(always)]
    pub(super) fn next_in_batch<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
    ) -> SeqNum {
        let at = self.max;
        self.move_full(conn, cx.now, at);
        self.emit_full_sent(conn, cx, at);
        at.to_seq(conn.cfg.isn)
    }
}
