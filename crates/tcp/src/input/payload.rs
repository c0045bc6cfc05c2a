//! Processing of payload: in order, out of order, duplicate; and its acknowledgment.

use core::hint::cold_path;

use machine::{Cx, Signal};
use packet::{Flags, Segment};
use record::{Event, Purpose, Recorder};
use recovery::RttEstimator;
use units::{Duration, Instant, Offset, unlikely};

use super::SegmentPayload;
use crate::ack_policy::{AckDecision, InOrderArrival, LinuxArrival};
use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::profile::{FinBeyondGap, TimeWaitRule};
use crate::receive_side::ReceiveSide;
use crate::receive_window::ReceivedPayload;
use crate::sack_compression::BLOCKS_EXPECTED;
use crate::tcp_state::TcpState;
use crate::timers::Timers;

/// Memory that the smallest packet takes of a receive buffer: SKB_TRUESIZE of its header alone, in
/// slabs.
const LEAST_TRUESIZE: u64 = 768;
/// Timestamps with their padding (`TCPOLEN_TSTAMP_ALIGNED`).
const STAMPS_LEN: u64 = 12;

impl TcpEndpoint {
    pub(super) fn on_payload<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, payload: SegmentPayload) {
        let receiving = matches!(
            self.conn.state,
            TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2
        );
        if unlikely(!receiving) {
            return;
        }
        if payload.left > self.rcv.nxt {
            self.queue_out_of_order(cx, payload);
        } else {
            self.take_next_payload(cx, payload);
        }
    }

    /// Processes data that continues the stream.
    #[inline(always)]
    pub(super) fn take_next_payload<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        payload: SegmentPayload,
    ) {
        let rtt = &self.snd.rtt.estimator;
        let due = self.rcv.on_next_payload(&self.conn, &mut self.timers, rtt, cx, payload);
        self.signal(Signal::Readable);
        if due {
            self.ack_at_once();
        }
    }

    /// Queues data after a gap.
    pub(super) fn queue_out_of_order<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        payload: SegmentPayload,
    ) {
        // A FIN occupies sequence space in Linux's queue (tcp_data_queue_ofo), and is SACKed.
        let right = payload.right + u64::from(payload.fin && self.conn.queues_fin());
        let interrupts = self.rcv.compressed.waiting > 0
            && !self.rcv.reassembly.touches(payload.left, right, BLOCKS_EXPECTED);
        if unlikely(interrupts) {
            self.rcv.policy.schedule();
            self.rcv.reassembly.extend_block(payload.left, right);
            self.respond(cx);
        }
        let rtt = &self.snd.rtt.estimator;
        let due = self.rcv.queue(&self.conn, &mut self.timers, rtt, cx, &payload, interrupts);
        if due {
            self.ack_at_once();
        }
    }
}

impl ReceiveSide {
    /// Records duplicate data, in order or not, to be reported with the next ACK (RFC 2883;
    /// tcp_update_dsack_list of FreeBSD, tcp_dsack_set of Linux).
    ///
    /// Returns whether it is acknowledged at once.
    pub(super) fn note_duplicate(
        &mut self,
        conn: &Connection,
        segment: &Segment,
        seq: Offset,
    ) -> bool {
        // A FIN alone is a byte of the queue (tcp_data_queue).
        let fin = segment.flags.has(Flags::FIN) && conn.queues_fin();
        if (segment.payload == 0 && !fin) || !conn.negotiated.sack {
            return false;
        }
        let time_wait = conn.cfg.profile.rules.closing.time_wait;
        if unlikely(conn.state == TcpState::TimeWait) && time_wait == TimeWaitRule::SmallSocket {
            // The small socket of TIME-WAIT has no SACK (tcp_v4_timewait_ack).
            return false;
        }
        let end = seq + u64::from(segment.payload) + u64::from(fin);
        if conn.uses_sack_list() {
            if unlikely(seq < self.nxt) {
                let nxt = self.nxt;
                self.report.get_or_insert_default().on_old(seq, end.min(nxt), nxt);
                return true;
            }
            return false;
        }
        if unlikely(seq < self.nxt) {
            self.note_old(conn, segment, seq);
        } else if seq > self.nxt && !self.reassembly.is_empty() {
            let overlap = self.reassembly.overlap(seq, end);
            if let Some(overlap) = overlap {
                cold_path();
                self.duplicate.0 = Some(overlap);
            }
        }
        false
    }

    /// Queues `payload` after a gap; returns whether it is acknowledged at once. `acknowledged`: it has
    /// been, with the data before it.
    fn queue<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rtt: &RttEstimator,
        cx: &mut Cx<'_, R>,
        payload: &SegmentPayload,
        acknowledged: bool,
    ) -> bool {
        let size = self.window.size();
        let most = match conn.cfg.profile.reassembly {
            Some(most) => (size / conn.maxseg() + 1).min(u64::from(most)),
            // Linux charges the buffer with the packet's memory, however small its payload
            // (tcp_try_rmem_schedule); the RFCs have no rule, and their profile uses this one.
            None => size / LEAST_TRUESIZE + 1,
        } as usize;
        let right = payload.right + u64::from(payload.fin && conn.queues_fin());
        // A FIN alone that is merged with the data before it.
        let merged_fin = payload.right == payload.left
            && right > payload.left
            && self.reassembly.ends_at(payload.left);
        if self.reassembly.insert(payload.left, right, most) {
            self.report_arrival(conn, payload.left, payload.right, false);
        }
        let (arrived, reach) =
            (self.arrived(conn, cx.now, payload, 0), self.reassembly.reach(self.nxt));
        let window_grew = match merged_fin {
            true => self.window.on_merged_fin(&arrived, conn.negotiated.sack),
            false => self.window.on_gap(&arrived, reach, conn.negotiated.sack),
        };
        let grown = self.window.size();
        if grown > size {
            cx.emit(|| Event::ReceiveBuffer { size: grown as u32 });
        }
        if unlikely(acknowledged) {
            // That ACK was the one scheduled, and its packet gets none of its own (tcp_ack_snd_check).
            return false;
        }
        let arrival = self.arrival(conn, rtt, cx.now, window_grew);
        match self.policy.on_gap(&arrival) {
            AckDecision::Compress => self.compress_ack(conn, timers, rtt, cx.now),
            _ => true,
        }
    }

    /// Processes data that continues the stream; returns whether it is acknowledged at once.
    #[inline(always)]
    pub(super) fn on_next_payload<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rtt: &RttEstimator,
        cx: &mut Cx<'_, R>,
        payload: SegmentPayload,
    ) -> bool {
        let fin_waits = self.fin.is_some()
            && conn.cfg.profile.rules.receiving.fin_beyond_gap == FinBeyondGap::Queued;
        let filled_a_gap = !self.reassembly.is_empty() || fin_waits;
        let before = self.nxt;
        if filled_a_gap {
            self.note_overlap(conn, payload.right);
        }
        let reached = self.reassembly.advance(payload.right);
        // The FIN itself is taken afterwards; a hostile peer's may be before data already taken.
        let fin = self.fin.filter(|&fin| fin >= before);
        self.nxt = fin.map_or(reached, |fin| fin.min(reached));
        let len = self.nxt - before;
        let arrived = self.arrived(conn, cx.now, &payload, len);
        let window_grew = self.window.on_data(&arrived);
        if payload.predicted {
            if let Some(report) = &mut self.report {
                report.forget();
            }
            self.autosize(conn, rtt, cx, len);
        } else {
            self.report_arrival(conn, payload.left, payload.right, true);
        }
        let plain = InOrderArrival {
            now: cx.now,
            len,
            unacked: self.nxt - self.acked,
            maxseg: conn.maxseg(),
            mss: conn.mss(),
            pending: timers.runs(Purpose::DelayedAck),
            window_was_zero: self.last_window_zero,
            filled: filled_a_gap,
        };
        let decision = match self.policy.on_in_order_data(&plain) {
            Some(decision) => decision,
            None => self.linux_ack_decision(conn, rtt, cx.now, window_grew, filled_a_gap),
        };
        match decision {
            AckDecision::Now => true,
            AckDecision::Compress => self.compress_ack(conn, timers, rtt, cx.now),
            AckDecision::Within(span) => self.delay_ack(conn, timers, cx.now, span),
        }
    }

    /// Input of Linux's ACK policy; `rcv_nxt` has advanced if the data was in order.
    fn arrival(
        &self,
        conn: &Connection,
        rtt: &RttEstimator,
        now: Instant,
        window_grew: bool,
    ) -> LinuxArrival {
        LinuxArrival {
            now,
            tick: conn.clock.tick(now),
            unacked: self.nxt - self.acked,
            mss: self.rcv_mss(conn),
            push: self.window.push(),
            window_grew,
            window_holds: self.window.selected(self.reassembly.bytes())
                >= self.adv.since(self.acked).get(),
            tight: self.window.is_tight(self.reassembly.bytes()),
            rcv_wnd: self.rcv_wnd(),
            srtt: rtt.srtt().map(|srtt| conn.clock.ticks(srtt)),
            rto: conn.clock.ticks(rtt.rto()),
            gap_left: !self.reassembly.is_empty(),
            filled: false,
            ecn: self.ecn.arrival(),
        }
    }

    /// Linux's decision about a FIN in order.
    pub(super) fn on_fin(
        &mut self,
        conn: &Connection,
        rtt: &RttEstimator,
        now: Instant,
    ) -> Option<AckDecision> {
        let arrival = self.arrival(conn, rtt, now, false);
        self.policy.on_fin(&arrival)
    }

    /// Linux's decision about data that continues the stream.
    fn linux_ack_decision(
        &mut self,
        conn: &Connection,
        rtt: &RttEstimator,
        now: Instant,
        window_grew: bool,
        filled: bool,
    ) -> AckDecision {
        let arrival = LinuxArrival { filled, ..self.arrival(conn, rtt, now, window_grew) };
        self.policy.on_data(&arrival)
    }

    /// Sets the timer of a delayed ACK unless it runs; returns whether the ACK is due at once instead.
    #[inline(always)]
    pub(super) fn delay_ack(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        span: Duration,
    ) -> bool {
        self.delays_ack = true;
        match timers.at(Purpose::DelayedAck) {
            None if unlikely(span == Duration::ZERO) => {
                // Before any data has arrived (`icsk_ack.ato`): at the next tick.
                timers.set(Purpose::DelayedAck, conn.clock.timer_at(now, 0));
            }
            None => timers.set_ticks(Purpose::DelayedAck, &conn.clock, now, span),
            Some(at) => {
                if conn.shortens_delay(timers, now, at, span) {
                    return true;
                }
            }
        }
        self.compressed.leftover = timers.at(Purpose::DelayedAck);
        false
    }

    /// tcp_autorcvbuf.
    #[inline]
    fn autosize<R: Recorder>(
        &mut self,
        conn: &Connection,
        rtt: &RttEstimator,
        cx: &mut Cx<'_, R>,
        len: u64,
    ) {
        let clock = &conn.clock;
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
        if let Some(size) = self.window.autosize(len, passed) {
            cold_path();
            cx.emit(|| Event::ReceiveBuffer { size: size as u32 });
        }
    }

    /// Records the part of a segment before `rcv_nxt` as duplicate (tcp_dsack_set). The FIN counts.
    pub(super) fn note_old(&mut self, conn: &Connection, segment: &Segment, seq: Offset) {
        let fin = u64::from(segment.flags.has(Flags::FIN));
        let end = seq + u64::from(segment.payload) + fin;
        if conn.negotiated.sack {
            self.duplicate.0 = Some((seq, end.min(self.nxt)));
        }
    }

    /// Records what of data in order, which ends at `right`, waited behind the gap already as duplicate (tcp_ofo_queue).
    fn note_overlap(&mut self, conn: &Connection, right: Offset) {
        let reports = conn.negotiated.sack && !conn.uses_sack_list() && self.duplicate.0.is_none();
        if let Some(overlap) = self.reassembly.overlap(self.nxt, right).filter(|_| reports) {
            self.duplicate.0 = Some(overlap);
        }
    }

    /// `[left, right)` has arrived and was queued: updates the SACK blocks.
    pub(super) fn report_arrival(
        &mut self,
        conn: &Connection,
        left: Offset,
        right: Offset,
        advanced: bool,
    ) {
        if !conn.uses_sack_list() {
            return;
        }
        let nxt = self.nxt;
        if self.report.is_none() && nxt >= right {
            return;
        }
        let report = self.report.get_or_insert_default();
        if !(advanced && report.keeps_overlap(left, nxt)) {
            report.on_arrival(left, right, nxt);
        }
    }

    /// Describes the payload to the receive window; `in_order` bytes extend the stream.
    #[inline(always)]
    pub(super) fn arrived(
        &self,
        conn: &Connection,
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
                if conn.negotiated.timestamps { STAMPS_LEN } else { 0 },
            ),
            window: self.rcv_wnd(),
            in_order,
            waiting: self.reassembly.bytes(),
        }
    }

    /// Takes a receiver round-trip sample from a timestamp echo (tcp_rcv_rtt_measure_ts).
    #[inline(always)]
    pub(super) fn measure_echo(&mut self, conn: &Connection, now: Instant, segment: &Segment) {
        if let Some(stamps) = segment.timestamps.filter(|_| conn.negotiated.timestamps) {
            let age = || conn.clock.timestamp(now).wrapping_sub(stamps.ecr);
            self.window.on_echo(stamps.ecr, u64::from(segment.payload), age);
        }
    }

    /// Window last advertised, whatever of it has been used (`rcv_wnd`).
    pub(super) fn rcv_wnd(&self) -> u64 {
        self.adv.since(self.acked).get()
    }

    /// Estimated payload of the peer's full segments.
    pub(crate) fn rcv_mss(&self, conn: &Connection) -> u64 {
        self.window.rcv_mss().unwrap_or_else(|| conn.mss())
    }
}

impl Connection {
    /// tcp_send_delayed_ack while the timer runs: it may only become shorter, and the ACK is due
    /// at once (the result) if it is about to expire.
    fn shortens_delay(
        &self,
        timers: &mut Timers,
        now: Instant,
        at: Instant,
        span: Duration,
    ) -> bool {
        if !self.cfg.profile.rules.receiving.shortens_delayed_ack {
            return false;
        }
        let (tick, delay) = (self.clock.tick(now), self.clock.ticks(span));
        let timeout = self.clock.timeout_of(at);
        if timeout <= tick + delay / 4 {
            return true;
        }
        if tick + delay < timeout {
            timers.set_ticks(Purpose::DelayedAck, &self.clock, now, span);
        }
        false
    }

    /// Does it report SACK blocks from FreeBSD's list (tcp_sack.c)?
    #[inline(always)]
    pub(crate) fn uses_sack_list(&self) -> bool {
        self.negotiated.sack && self.cfg.profile.rules.receiving.sack_list
    }

    /// Does a FIN after a gap wait in the same queue as data, as one byte? FreeBSD's is queued
    /// without (tcp_reass).
    pub(super) fn queues_fin(&self) -> bool {
        self.cfg.profile.rules.receiving.fin_beyond_gap == FinBeyondGap::QueuedAsByte
    }
}
