//! Segments as they are made and noted.

use core::hint::cold_path;

use cc::Controller;
use machine::Cx;
use packet::{Flags, Options, Segment, Timestamps};
use record::{Cause, Event, Purpose, Recorder, SentKind};
use recovery::sendmap::Resent;
use units::{Duration, Instant, Offset, unlikely};

use super::Plan;
use crate::endpoint::Endpoint;
use crate::loss::Repair;
use crate::sent;

impl Endpoint {
    /// Writes what every segment has, and notes what it tells the peer.
    #[inline(always)]
    pub(super) fn write_header(
        &mut self,
        now: Instant,
        at: Offset,
        len: u64,
        flags: Flags,
        slot: &mut Segment,
    ) {
        let promised = self.rcv.adv.since(self.rcv.nxt).get();
        let window = self.rcv.window.window(promised, self.rcv.reassembly.bytes());
        let field = self.rcv.window.field(window);
        self.write_fields(now, at, len, flags, field, slot);
        self.rcv.adv =
            self.rcv.adv.max(self.rcv.nxt + (u64::from(field) << self.rcv.window.scale()));
        self.rcv.acked = self.rcv.nxt;
        self.rcv.window.on_sent(|| self.clock.timestamp(now));
        self.rcv.ack_now = false;
        self.rcv.delays_ack = false;
        self.rcv.last_window_zero = field == 0;
        self.timers.stop(Purpose::DelayedAck);
        self.rcv.policy.on_ack_sent();
        self.rcv.compressed.waiting = 0;
    }

    /// The same out of the way of those who seldom write one.
    #[inline(never)]
    pub(super) fn write_header_apart(
        &mut self,
        now: Instant,
        at: Offset,
        len: u64,
        flags: Flags,
        slot: &mut Segment,
    ) {
        self.write_header(now, at, len, flags, slot);
    }

    #[inline(always)]
    pub(super) fn write_fields(
        &mut self,
        now: Instant,
        at: Offset,
        len: u64,
        flags: Flags,
        field: u16,
        slot: &mut Segment,
    ) {
        let (marks, ecn) = self.ecn.mark(len > 0 && at >= self.snd.max);
        *slot = Segment {
            flow: self.cfg.flow,
            dir: self.dir(),
            ip: self.cfg.ip,
            ecn,
            flags: flags | marks,
            seq: at.to_seq(self.cfg.isn),
            ack: self.rcv.nxt.to_seq(self.rcv.irs),
            payload: len as u32,
            window: field,
            gso_size: 0,
            nsegs: 0,
            timestamps: self
                .link
                .timestamps
                .then(|| Timestamps { val: self.clock.timestamp(now), ecr: self.rcv.ts_recent }),
            options: Options::None,
        };
    }

    /// Makes a full segment of new data, not the last there is, and notes that it left: what `build`
    /// does, less what cannot be.
    #[inline(never)]
    pub(super) fn build_new<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        if self.packets_in_flight() == 0 {
            self.begin_flight(cx);
        }
        let at = self.snd.max;
        self.write_header(cx.now, at, self.mss(), Flags::ACK, slot);
        self.note_full(cx.now);
        if self.cc.in_recovery() {
            let mss = self.mss();
            self.timed_sent(mss, 1, false);
        }
        self.note_flight(cx.now, at);
        self.tell_full(cx, at);
    }

    #[inline(always)]
    pub(super) fn note_full(&mut self, now: Instant) {
        self.totals.data_packets += 1;
        self.move_full(now, self.snd.max);
        self.snd.last_sent = now;
    }

    /// A full packet has left that begins at `at`: moves the places.
    #[inline(always)]
    pub(super) fn move_full(&mut self, now: Instant, at: Offset) {
        self.snd.max = at + self.mss();
        self.snd.nxt = self.snd.max;
        let sent_at = self.stamp_of_new(now);
        self.snd.map.push(at, self.snd.max, sent_at);
    }

    #[inline(always)]
    pub(super) fn tell_full<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, at: Offset) {
        cx.emit_of(self, || {
            let (at, len) = (self.payload_offset(at), self.link.mss);
            Event::Sent { at, len, kind: SentKind::New }
        });
    }

    /// Makes the segment and notes that it left.
    pub(super) fn build<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        plan: &Plan,
        slot: &mut Segment,
    ) {
        let mut flags = Flags::ACK;
        if plan.push {
            flags |= Flags::PSH;
        }
        if unlikely(plan.fin) {
            flags |= Flags::FIN;
        }
        self.write_header_apart(cx.now, plan.at, plan.len, flags, slot);
        if plan.len > self.mss() {
            slot.gso_size = self.link.mss as u16;
        }
        if self.has_blocks() {
            self.write_blocks(plan.len, slot);
        }
        match plan.kind {
            SentKind::Probe => {
                cold_path();
                self.note_probe(plan.at + plan.len, cx.now);
            }
            _ if plan.len > 0 || plan.fin => self.note_sent(cx, plan),
            _ => {}
        }
        cx.emit_of(self, || {
            let at = self.payload_offset(plan.at);
            Event::Sent { at, len: plan.len as u32, kind: plan.kind }
        });
    }

    /// A probe of a closed window left; it may have taken a new byte along.
    fn note_probe(&mut self, end: Offset, now: Instant) {
        if end > self.snd.max {
            let sent_at = self.stamp_of_new(now);
            self.snd.map.push(self.snd.max, end, sent_at);
            self.snd.max = end;
        }
    }

    /// Bytes or a FIN left: moves the places, starts the timers, counts.
    fn note_sent<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, plan: &Plan) {
        let end = plan.at + plan.len + u64::from(plan.fin);
        let mss = self.mss();
        if plan.len > 0 && self.packets_in_flight() == 0 {
            self.begin_flight(cx);
        }
        let packets = if plan.len <= mss { 1 } else { plan.len.div_ceil(mss) };
        if plan.len > 0 {
            self.totals.data_packets += packets;
        }
        let again = plan.at < self.snd.max;
        let mut resent = Resent::default();
        if again {
            if plan.len > 0 {
                self.totals.retransmitted_packets += packets;
            }
            let probe = plan.kind == SentKind::Again(Cause::LossProbe);
            // After all that was sent at this very instant, so that none of it, arriving first, seems to
            // have been sent later: in a kernel no two calls share an instant.
            let newest = self.snd.map.last().map_or(cx.now, |last| last.sent_at().max(cx.now));
            let at = newest + Duration::from_nanos(1);
            self.snd.resent_at = at;
            resent = self.snd.map.resend(plan.at, end.min(self.snd.max), at, probe);
        }
        if end > self.snd.max {
            let (at, sent_at) = (plan.at.max(self.snd.max), self.stamp_of_new(cx.now));
            sent::push(&mut self.snd.map, at, end, plan.fin, mss, sent_at);
            if plan.push && (end >= self.data_end() || plan.len < mss) {
                // The PSH of a mere burst is in its clone only (__tcp_transmit_skb).
                self.snd.map.mark_pushed();
            }
        }
        // A segment sent out of turn does not move snd_nxt, unless it is all there is.
        let timed = matches!(self.snd.repair, Repair::Timed(_) | Repair::Rack(_));
        let out_of_turn = match plan.kind {
            SentKind::Again(Cause::FastRetransmit | Cause::PartialAck) => true,
            // What is lost goes from where it lies; what a closed window cut off from `snd_nxt` on.
            SentKind::Again(_) => timed && plan.at != self.snd.nxt,
            _ => false,
        };
        if !out_of_turn {
            self.snd.nxt = end;
        }
        self.snd.max = self.snd.max.max(end);
        self.snd.nxt = self.snd.nxt.max(self.snd.una).min(self.snd.max);
        self.snd.last_sent = cx.now;
        if self.is_whole() {
            self.rates_sent(cx.now, plan.at, end, again);
        }
        if timed {
            self.timed_sent(plan.len, packets, again);
            self.rack_noted(plan.at, end, again, &resent);
        }
        if again {
            self.head_resent(cx.now, plan.at);
            self.watch_flight(cx.now);
        } else {
            self.note_flight(cx.now, plan.at);
        }
    }

    /// When new data that leaves now was sent: not before what was retransmitted at this very instant.
    #[inline(always)]
    fn stamp_of_new(&self, now: Instant) -> Instant {
        now.max(self.snd.resent_at)
    }

    /// Data leaves while nothing is under way.
    #[cold]
    fn begin_flight<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let last = self.clock.tick(self.snd.last_sent);
        self.cc.on_tx_start(self.clock.tick(cx.now), last);
        self.restart_rates(cx);
    }

    /// What begins at `at` has left for the first time: it is timed, unless something else is.
    #[inline]
    fn note_flight(&mut self, now: Instant, at: Offset) {
        if self.snd.timed.is_none() {
            self.snd.timed = Some((at, now));
        }
        self.watch_flight(now);
    }

    /// Something is under way: the timers that watch over it run.
    #[inline(always)]
    pub(super) fn watch_flight(&mut self, now: Instant) {
        if self.is_rack() {
            // The wheel has its timer.
            return;
        }
        self.plan_probe_timer(now);
        // A timer that waits for reordering is followed by one for the timeout.
        if !self.timers.runs(Purpose::Retransmit) && !self.timers.runs(Purpose::Reorder) {
            self.arm_retransmit(now);
        }
    }
}
