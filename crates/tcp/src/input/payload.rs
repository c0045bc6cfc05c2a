//! Processing of payload: in order, out of order, duplicate; and its acknowledgment.

use core::hint::cold_path;

use machine::{Cx, Signal};
use packet::{Flags, Segment};
use record::{Event, Purpose, Recorder};
use recovery::RttEstimator;
use units::{Duration, Instant, Offset, unlikely};

use super::SegmentPayload;
use crate::ack_policy::{AckDecision, InOrderArrival, LinuxArrival};
use crate::endpoint::{TcpEndpoint, TcpState};
use crate::profile::{FinBeyondGap, TimeWaitRule};
use crate::receive_window::ReceivedPayload;
use crate::sack_compression::BLOCKS_EXPECTED;

/// Memory that the smallest packet takes of a receive buffer: SKB_TRUESIZE of its header alone, in
/// slabs.
const LEAST_TRUESIZE: u64 = 768;
/// Timestamps with their padding (`TCPOLEN_TSTAMP_ALIGNED`).
const STAMPS_LEN: u64 = 12;

impl TcpEndpoint {
    /// Records duplicate data, in order or not, to be reported with the next ACK (RFC 2883;
    /// tcp_update_dsack_list of FreeBSD, tcp_dsack_set of Linux).
    pub(super) fn note_duplicate(&mut self, segment: &Segment, seq: Offset) {
        // A FIN alone is a byte of the queue (tcp_data_queue).
        let fin = segment.flags.has(Flags::FIN) && self.queues_fin();
        if (segment.payload == 0 && !fin) || !self.negotiated.sack {
            return;
        }
        let time_wait = self.cfg.profile.rules.closing.time_wait;
        if unlikely(self.state == TcpState::TimeWait) && time_wait == TimeWaitRule::SmallSocket {
            // The small socket of TIME-WAIT has no SACK (tcp_v4_timewait_ack).
            return;
        }
        let end = seq + u64::from(segment.payload) + u64::from(fin);
        if self.uses_sack_list() {
            if unlikely(seq < self.rcv.nxt) {
                let nxt = self.rcv.nxt;
                self.rcv.report.get_or_insert_default().on_old(seq, end.min(nxt), nxt);
                self.ack_at_once();
            }
            return;
        }
        if unlikely(seq < self.rcv.nxt) {
            self.note_old(segment, seq);
        } else if seq > self.rcv.nxt && !self.rcv.reassembly.is_empty() {
            let overlap = self.rcv.reassembly.overlap(seq, end);
            if let Some(overlap) = overlap {
                cold_path();
                self.rcv.duplicate.0 = Some(overlap);
            }
        }
    }

    /// Records the part of a segment before `rcv_nxt` as duplicate (tcp_dsack_set). The FIN counts.
    pub(super) fn note_old(&mut self, segment: &Segment, seq: Offset) {
        let fin = u64::from(segment.flags.has(Flags::FIN));
        let end = seq + u64::from(segment.payload) + fin;
        if self.negotiated.sack {
            self.rcv.duplicate.0 = Some((seq, end.min(self.rcv.nxt)));
        }
    }

    /// Records what of data in order, which ends at `right`, waited behind the gap already as duplicate (tcp_ofo_queue).
    #[inline(never)]
    fn note_overlap(&mut self, right: Offset) {
        let reports =
            self.negotiated.sack && !self.uses_sack_list() && self.rcv.duplicate.0.is_none();
        if let Some(overlap) = self.rcv.reassembly.overlap(self.rcv.nxt, right).filter(|_| reports)
        {
            self.rcv.duplicate.0 = Some(overlap);
        }
    }

    /// Does it report SACK blocks from FreeBSD's list (tcp_sack.c)?
    #[inline(always)]
    pub(crate) fn uses_sack_list(&self) -> bool {
        self.negotiated.sack && self.cfg.profile.rules.receiving.sack_list
    }

    /// `[left, right)` has arrived and was queued: updates the SACK blocks.
    pub(super) fn report_arrival(&mut self, left: Offset, right: Offset, advanced: bool) {
        if !self.uses_sack_list() {
            return;
        }
        let nxt = self.rcv.nxt;
        if self.rcv.report.is_none() && nxt >= right {
            return;
        }
        let report = self.rcv.report.get_or_insert_default();
        if !(advanced && report.keeps_overlap(left, nxt)) {
            report.on_arrival(left, right, nxt);
        }
    }

    pub(super) fn on_payload<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, payload: SegmentPayload) {
        let receiving =
            matches!(self.state, TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2);
        if unlikely(!receiving) {
            return;
        }
        if payload.left > self.rcv.nxt {
            self.queue_out_of_order(cx, payload);
        } else {
            self.on_next_payload(cx, payload);
        }
    }

    /// Queues data after a gap.
    pub(super) fn queue_out_of_order<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        payload: SegmentPayload,
    ) {
        let size = self.rcv.window.size();
        let most = match self.cfg.profile.reassembly {
            Some(most) => (size / self.maxseg() + 1).min(u64::from(most)),
            // Linux charges the buffer with the packet's memory, however small its payload
            // (tcp_try_rmem_schedule); the RFCs have no rule, and their profile uses this one.
            None => size / LEAST_TRUESIZE + 1,
        } as usize;
        // A FIN occupies sequence space in Linux's queue (tcp_data_queue_ofo), and is SACKed.
        let right = payload.right + u64::from(payload.fin && self.queues_fin());
        let interrupts = self.rcv.compressed.waiting > 0
            && !self.rcv.reassembly.touches(payload.left, right, BLOCKS_EXPECTED);
        if unlikely(interrupts) {
            self.rcv.policy.schedule();
            self.rcv.reassembly.extend_block(payload.left, right);
            self.respond(cx);
        }
        // A FIN alone that is merged with the data before it.
        let merged_fin = payload.right == payload.left
            && right > payload.left
            && self.rcv.reassembly.ends_at(payload.left);
        if self.rcv.reassembly.insert(payload.left, right, most) {
            self.report_arrival(payload.left, payload.right, false);
        }
        let (arrived, reach) =
            (self.arrived(cx.now, &payload, 0), self.rcv.reassembly.reach(self.rcv.nxt));
        let window_grew = match merged_fin {
            true => self.rcv.window.on_merged_fin(&arrived, self.negotiated.sack),
            false => self.rcv.window.on_gap(&arrived, reach, self.negotiated.sack),
        };
        let grown = self.rcv.window.size();
        if grown > size {
            cx.emit(|| Event::ReceiveBuffer { size: grown as u32 });
        }
        if unlikely(interrupts) {
            // That ACK was the one scheduled, and its packet gets none of its own (tcp_ack_snd_check).
            return;
        }
        let arrival = self.arrival(cx.now, window_grew);
        match self.rcv.policy.on_gap(&arrival) {
            AckDecision::Compress => self.compress_ack(cx.now),
            _ => self.ack_at_once(),
        }
    }

    /// Does a FIN after a gap wait in the same queue as data, as one byte? FreeBSD's is queued
    /// without (tcp_reass).
    pub(super) fn queues_fin(&self) -> bool {
        self.cfg.profile.rules.receiving.fin_beyond_gap == FinBeyondGap::QueuedAsByte
    }

    /// Describes the payload to the receive window; `in_order` bytes extend the stream.
    #[inline(always)]
    pub(super) fn arrived(
        &self,
        now: Instant,
        payload: &SegmentPayload,
        in_order: u64,
    ) -> ReceivedPayload {
        ReceivedPayload {
            now,
            len: payload.right - payload.left,
            end: payload.right,
            merged: payload.merged,
            pushed: payload.pushed,
            options: (
                u64::from(payload.options),
                if self.negotiated.timestamps { STAMPS_LEN } else { 0 },
            ),
            window: self.rcv_wnd(),
            in_order,
            waiting: self.rcv.reassembly.bytes(),
        }
    }

    /// Takes a receiver round-trip sample from a timestamp echo (tcp_rcv_rtt_measure_ts).
    #[inline(always)]
    pub(super) fn measure_echo(&mut self, now: Instant, segment: &Segment) {
        if let Some(stamps) = segment.timestamps.filter(|_| self.negotiated.timestamps) {
            let age = || self.clock.timestamp(now).wrapping_sub(stamps.ecr);
            self.rcv.window.on_echo(stamps.ecr, u64::from(segment.payload), age);
        }
    }

    /// Input of Linux's ACK policy; `rcv_nxt` has advanced if the data was in order.
    pub(super) fn arrival(&self, now: Instant, window_grew: bool) -> LinuxArrival {
        LinuxArrival {
            now,
            tick: self.clock.tick(now),
            unacked: self.rcv.nxt - self.rcv.acked,
            mss: self.rcv_mss(),
            push: self.rcv.window.push(),
            window_grew,
            window_holds: self.rcv.window.selected(self.rcv.reassembly.bytes())
                >= self.rcv.adv.since(self.rcv.acked).get(),
            tight: self.rcv.window.is_tight(self.rcv.reassembly.bytes()),
            rcv_wnd: self.rcv_wnd(),
            srtt: self.rtt.srtt().map(|srtt| self.clock.ticks(srtt)),
            rto: self.clock.ticks(self.rtt.rto()),
            gap_left: !self.rcv.reassembly.is_empty(),
            filled: false,
            ecn: self.ecn.arrival(),
        }
    }

    /// Processes data that continues the stream.
    #[inline(always)]
    pub(super) fn on_next_payload<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        payload: SegmentPayload,
    ) {
        let fin_waits = self.rcv.fin.is_some()
            && self.cfg.profile.rules.receiving.fin_beyond_gap == FinBeyondGap::Queued;
        let filled_a_gap = !self.rcv.reassembly.is_empty() || fin_waits;
        let before = self.rcv.nxt;
        if filled_a_gap {
            self.note_overlap(payload.right);
        }
        let reached = self.rcv.reassembly.advance(payload.right);
        // The FIN itself is taken afterwards; a hostile peer's may be before data already taken.
        let fin = self.rcv.fin.filter(|&fin| fin >= before);
        self.rcv.nxt = fin.map_or(reached, |fin| fin.min(reached));
        let len = self.rcv.nxt - before;
        let arrived = self.arrived(cx.now, &payload, len);
        let window_grew = self.rcv.window.on_data(&arrived);
        if payload.predicted {
            if let Some(report) = &mut self.rcv.report {
                report.forget();
            }
            self.autosize(cx, len);
        } else {
            self.report_arrival(payload.left, payload.right, true);
        }
        self.signal(Signal::Readable);
        let plain = InOrderArrival {
            now: cx.now,
            len,
            unacked: self.rcv.nxt - self.rcv.acked,
            maxseg: self.maxseg(),
            mss: self.mss(),
            pending: self.timers.runs(Purpose::DelayedAck),
            window_was_zero: self.rcv.last_window_zero,
            filled: filled_a_gap,
        };
        let decision = match self.rcv.policy.on_in_order_data(&plain) {
            Some(decision) => decision,
            None => self.linux_ack_decision(cx.now, window_grew, filled_a_gap),
        };
        match decision {
            AckDecision::Now => self.ack_at_once(),
            AckDecision::Compress => self.compress_ack(cx.now),
            AckDecision::Within(span) => self.delay_ack(cx.now, span),
        }
    }

    /// Sets the timer of a delayed ACK unless it runs.
    #[inline(always)]
    pub(super) fn delay_ack(&mut self, now: Instant, span: Duration) {
        self.rcv.delays_ack = true;
        match self.timers.at(Purpose::DelayedAck) {
            None if unlikely(span == Duration::ZERO) => {
                // Before any data has arrived (`icsk_ack.ato`): at the next tick.
                self.timers.set(Purpose::DelayedAck, self.clock.timer_at(now, 0));
            }
            None => self.timers.set_ticks(Purpose::DelayedAck, &self.clock, now, span),
            Some(at) => self.delay_longer(now, at, span),
        }
    }

    /// tcp_send_delayed_ack while the timer runs: it may only become shorter, and the ACK is sent
    /// if it is about to expire.
    #[inline(never)]
    fn delay_longer(&mut self, now: Instant, at: Instant, span: Duration) {
        if !self.cfg.profile.rules.receiving.shortens_delayed_ack {
            return;
        }
        let (tick, delay) = (self.clock.tick(now), self.clock.ticks(span));
        let timeout = self.clock.timeout_of(at);
        if timeout <= tick + delay / 4 {
            self.ack_at_once();
        } else if tick + delay < timeout {
            self.timers.set_ticks(Purpose::DelayedAck, &self.clock, now, span);
        }
    }

    /// tcp_autorcvbuf.
    #[inline]
    pub(super) fn autosize<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, len: u64) {
        let (clock, rtt) = (&self.clock, &self.rtt);
        let half = || match rtt {
            RttEstimator::FreeBsd(rtt) => {
                Some(rtt).filter(|rtt| rtt.t_srtt() != 0).map(|rtt| u64::from(rtt.srtt_ticks() / 2))
            }
            other => other.srtt().map(|srtt| clock.ticks(srtt) / 2),
        };
        let passed = |since: u32| {
            let ms = clock.timestamp(cx.now).wrapping_sub(since);
            (clock.ticks_of_millis(ms), half())
        };
        if let Some(size) = self.rcv.window.autosize(len, passed) {
            cold_path();
            cx.emit(|| Event::ReceiveBuffer { size: size as u32 });
        }
    }

    /// Window last advertised, whatever of it has been used (`rcv_wnd`).
    pub(super) fn rcv_wnd(&self) -> u64 {
        self.rcv.adv.since(self.rcv.acked).get()
    }

    /// Estimated payload of the peer's full segments.
    pub(crate) fn rcv_mss(&self) -> u64 {
        self.rcv.window.rcv_mss().unwrap_or_else(|| self.mss())
    }

    /// Linux's decision about data that continues the stream.
    #[inline(never)]
    pub(super) fn linux_ack_decision(
        &mut self,
        now: Instant,
        window_grew: bool,
        filled: bool,
    ) -> AckDecision {
        let arrival = LinuxArrival { filled, ..self.arrival(now, window_grew) };
        self.rcv.policy.on_data(&arrival)
    }
}
