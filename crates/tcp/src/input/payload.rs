//! What becomes of payload: in order, after a gap, received before; and when it is acknowledged.

use core::hint::cold_path;

use machine::{Cx, Signal};
use packet::Segment;
use record::{Event, Purpose, Recorder};
use recovery::RttEstimator;
use units::{Instant, Offset, unlikely};

use super::Payload;
use crate::ack_policy::{Arrival, Decision, PlainArrival};
use crate::endpoint::{Endpoint, State};
use crate::profile::AckRule;
use crate::receive_window::Arrived;
use crate::sack_compression::BLOCKS_EXPECTED;

/// What the smallest packet takes of a receive buffer: SKB_TRUESIZE of its header alone, in slabs.
const LEAST_TRUESIZE: u64 = 768;

impl Endpoint {
    /// Bytes that had arrived before, in order or not, are reported with the next ACK (RFC 2883;
    /// tcp_update_dsack_list of FreeBSD, tcp_dsack_set of Linux).
    pub(super) fn note_duplicate(&mut self, segment: &Segment, seq: Offset) {
        if segment.payload == 0 || !self.link.sack {
            return;
        }
        let end = seq + u64::from(segment.payload);
        if self.lists_blocks() {
            if unlikely(seq < self.rcv.nxt) {
                let nxt = self.rcv.nxt;
                self.rcv.report.get_or_insert_default().on_old(seq, end.min(nxt), nxt);
                self.rcv.ack_now = true;
            }
            return;
        }
        if unlikely(seq < self.rcv.nxt) {
            self.rcv.duplicate.0 = Some((seq, end.min(self.rcv.nxt)));
        } else if seq > self.rcv.nxt && !self.rcv.reassembly.is_empty() {
            let overlap = self.rcv.reassembly.overlap(seq, end);
            if let Some(overlap) = overlap {
                cold_path();
                self.rcv.duplicate.0 = Some(overlap);
            }
        }
    }

    /// Does it report from the list of FreeBSD (tcp_sack.c)?
    #[inline(always)]
    pub(crate) fn lists_blocks(&self) -> bool {
        self.link.sack && matches!(self.cfg.profile.acks, AckRule::FreeBsd { .. })
    }

    /// `[left, right)` has arrived and was kept: notes what is to be reported of it.
    pub(super) fn report_arrival(&mut self, left: Offset, right: Offset, advanced: bool) {
        if !self.lists_blocks() {
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

    pub(super) fn on_payload<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, payload: Payload) {
        let receiving =
            matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        if unlikely(!receiving) {
            return;
        }
        if payload.left > self.rcv.nxt {
            self.keep_behind_gap(cx, payload);
        } else {
            self.on_next_payload(cx, payload);
        }
    }

    /// It lies behind a gap.
    pub(super) fn keep_behind_gap<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, payload: Payload) {
        let size = self.rcv.window.size();
        let most = match self.cfg.profile.reassembly {
            Some(most) => (size / self.maxseg() + 1).min(u64::from(most)),
            // Linux charges the buffer with what a packet takes of memory, however little it carries
            // (tcp_try_rmem_schedule); the textbook has no rule, and takes this one.
            None => size / LEAST_TRUESIZE + 1,
        } as usize;
        let interrupts = self.rcv.compressed.waiting > 0
            && !self.rcv.reassembly.touches(payload.left, payload.right, BLOCKS_EXPECTED);
        if self.rcv.reassembly.insert(payload.left, payload.right, most) {
            self.report_arrival(payload.left, payload.right, false);
        }
        let (arrived, reach) =
            (self.arrived(cx.now, &payload, 0), self.rcv.reassembly.reach(self.rcv.nxt));
        let window_grew = self.rcv.window.on_gap(&arrived, reach, self.link.sack);
        let grown = self.rcv.window.size();
        if grown > size {
            cx.emit(|| Event::ReceiveBuffer { size: grown as u32 });
        }
        let arrival = self.arrival(cx.now, window_grew);
        match self.rcv.policy.on_gap(&arrival) {
            Decision::Compress if !interrupts => self.compress_ack(cx.now),
            _ => self.ack_at_once(),
        }
    }

    /// The same for the receive window; `in_order` bytes are new to the stream.
    #[inline(always)]
    pub(super) fn arrived(&self, now: Instant, payload: &Payload, in_order: u64) -> Arrived {
        Arrived {
            now,
            len: payload.right - payload.left,
            end: payload.right,
            merged: payload.merged,
            pushed: payload.pushed,
            window: self.rcv.adv.since(self.rcv.acked).get(),
            in_order,
            waiting: self.rcv.reassembly.bytes(),
        }
    }

    /// A timestamp comes back, perhaps with data (tcp_rcv_rtt_measure_ts).
    #[inline(always)]
    pub(super) fn measure_echo(&mut self, now: Instant, segment: &Segment) {
        if let Some(stamps) = segment.timestamps.filter(|_| self.link.timestamps) {
            let age = || self.clock.timestamp(now).wrapping_sub(stamps.ecr);
            self.rcv.window.on_echo(stamps.ecr, u64::from(segment.payload), age);
        }
    }

    /// What Linux's policy is asked about; `rcv_nxt` has moved if it was in order.
    pub(super) fn arrival(&self, now: Instant, window_grew: bool) -> Arrival {
        Arrival {
            now,
            unacked: self.rcv.nxt - self.rcv.acked,
            mss: self.mss(),
            window_grew,
            window_holds: self.rcv.window.selected(self.rcv.reassembly.bytes())
                >= self.rcv.adv.since(self.rcv.acked).get(),
            rcv_wnd: self.rcv.adv.since(self.rcv.nxt).get(),
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
            gap_left: !self.rcv.reassembly.is_empty(),
            filled: false,
        }
    }

    /// The next bytes of the stream have come.
    #[inline(always)]
    pub(super) fn on_next_payload<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, payload: Payload) {
        // FreeBSD keeps a FIN that came too early among what is out of order (tcp_reass).
        let fin_waits =
            self.rcv.fin.is_some() && matches!(self.cfg.profile.acks, AckRule::FreeBsd { .. });
        let filled_a_gap = !self.rcv.reassembly.is_empty() || fin_waits;
        let before = self.rcv.nxt;
        self.rcv.nxt = self.rcv.reassembly.advance(payload.right);
        self.rcv.pushed = payload.pushed;
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
        let plain = PlainArrival {
            now: cx.now,
            len,
            unacked: self.rcv.nxt - self.rcv.acked,
            maxseg: self.maxseg(),
            mss: self.mss(),
            pending: self.timers.runs(Purpose::DelayedAck),
            window_was_zero: self.rcv.last_window_zero,
            filled: filled_a_gap,
        };
        let decision = match self.rcv.policy.on_plain_data(&plain) {
            Some(decision) => decision,
            None => self.ask_linux(cx.now, before, window_grew, filled_a_gap),
        };
        match decision {
            Decision::Now => self.ack_at_once(),
            Decision::Compress => self.compress_ack(cx.now),
            Decision::Within(span) => {
                self.rcv.delays_ack = true;
                if !self.timers.runs(Purpose::DelayedAck) {
                    self.timers.set_ticks(Purpose::DelayedAck, &self.clock, cx.now, span);
                }
            }
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

    /// What Linux does about the next bytes of the stream, which began at `before`.
    #[inline(never)]
    pub(super) fn ask_linux(
        &mut self,
        now: Instant,
        before: Offset,
        window_grew: bool,
        filled: bool,
    ) -> Decision {
        let rcv_wnd = self.rcv.adv.since(before).get();
        let arrival = Arrival { rcv_wnd, filled, ..self.arrival(now, window_grew) };
        self.rcv.policy.on_data(&arrival)
    }
}
