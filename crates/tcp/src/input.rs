//! What an arriving segment means (RFC 9293 section 3.10.7; tcp_do_segment of FreeBSD,
//! tcp_rcv_established of Linux).

use core::hint::cold_path;

use machine::{Cx, Signal};
use packet::{Flags, Options, Segment};
use record::{Event, Purpose, Recorder};
use recovery::RttEstimator;
use units::{Duration, Instant, Offset, SeqNum, unlikely};

use crate::ack_policy::{Arrival, Decision, PlainArrival};
use crate::endpoint::{Endpoint, Side, State};
use crate::loss::Repair;
use crate::output::Train;
use crate::profile::{AckRule, EchoRule, Family};
use crate::receive_window::Arrived;
use crate::sack_compression::BLOCKS_EXPECTED;

/// Timestamps older than this say nothing (RFC 7323 section 5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 24 * 3_600);

/// What the smallest packet takes of a receive buffer: SKB_TRUESIZE of its header alone, in slabs.
const LEAST_TRUESIZE: u64 = 768;

/// The payload of a segment that lies in the window, as offsets.
#[derive(Debug, Clone, Copy)]
struct Payload {
    left: Offset,
    right: Offset,
    pushed: bool,
    merged: bool,
    /// Header prediction takes it (tcp_do_segment of FreeBSD).
    predicted: bool,
}

impl Endpoint {
    /// A segment arrived: the same as [`handle_segment`](machine::Endpoint::handle_segment) with one
    /// that is put together wherever it is looked at, so that what nobody asks for is not.
    #[inline(always)]
    pub fn handle_made<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: impl Fn() -> Segment) {
        self.snd.train = Train::NONE;
        if self.is_ordinary(&segment()) {
            self.input_ordinary(cx, segment);
        } else {
            self.input_other(cx, &segment());
        }
    }

    #[inline(never)]
    fn input_other<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        match self.state {
            State::Closed | State::Listen | State::SynSent => {
                cold_path();
                self.input_unsynchronised(cx, segment);
            }
            _ => self.input_synchronised(cx, segment),
        }
    }

    #[inline(never)]
    fn input_unsynchronised<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        match self.state {
            State::Listen => self.input_listen(cx, segment),
            State::SynSent => self.input_syn_sent(cx, segment),
            _ => self.answer_with_reset(segment),
        }
    }

    /// RFC 9293 section 3.10.7.1: what belongs to no connection is answered with a reset.
    fn answer_with_reset(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        self.reset = Some(if segment.flags.has(Flags::ACK) {
            (segment.ack, None)
        } else {
            let behind = segment.seq.0.wrapping_add(segment.seq_len());
            (SeqNum(0), Some(SeqNum(behind)))
        });
    }

    /// RFC 9293 section 3.10.7.2.
    fn input_listen<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        if flags.has(Flags::ACK) {
            self.answer_with_reset(segment);
        } else if flags.has(Flags::SYN) && !flags.has(Flags::RST) {
            self.on_syn(cx, segment);
        }
    }

    /// RFC 9293 section 3.10.7.3.
    fn input_syn_sent<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        if flags.has(Flags::ACK) && segment.ack != Offset(1).to_seq(self.cfg.isn) {
            self.hasten_syn(cx.now);
            self.answer_with_reset(segment);
            return;
        }
        match (flags.has(Flags::RST), flags.has(Flags::SYN), flags.has(Flags::ACK)) {
            (true, _, true) => self.abort(cx),
            (false, true, true) => self.on_syn_ack(cx, segment),
            (false, true, false) => self.on_crossing_syn(cx, segment),
            _ => {}
        }
    }

    /// RFC 9293 section 3.10.7.4, with RFC 5961 and RFC 7323.
    fn input_synchronised<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        // The door: numbers become offsets. What lies before the stream is not ours.
        let seq = segment.seq.near(self.rcv.irs, self.rcv.nxt);
        if unlikely(flags.has(Flags::SYN)) && !flags.has(Flags::RST) {
            self.input_late_syn(cx, segment, seq);
            return;
        }
        let Some(seq) = seq else { return };
        if unlikely(flags.has(Flags::RST)) {
            self.input_reset(cx, seq);
            return;
        }
        let Some(ack) = segment.ack.near(self.cfg.isn, self.snd.una) else { return };
        if !flags.has(Flags::ACK) || self.has_stale_timestamp(cx, segment) {
            return;
        }
        // RFC 5961 section 5: neither what was never sent nor what is long gone.
        if ack > self.snd.max || ack + self.snd.max_wnd.max(1) < self.snd.una {
            cold_path();
            if self.state == State::SynReceived {
                self.answer_with_reset(segment);
            } else {
                self.challenge(cx);
            }
            return;
        }
        if self.state == State::SynReceived {
            cold_path();
            if ack != Offset(1) || seq < self.rcv.nxt || seq > self.rcv.adv {
                return;
            }
            self.on_handshake_ack(cx, segment);
        }
        self.snd.last_heard = cx.now;
        self.rearm_keepalive(cx);
        self.ecn.on_segment(flags, segment.ecn, segment.payload);
        let Some(payload) = self.trim(segment, seq) else {
            cold_path();
            // Nothing new, or nothing that fits: RFC 9293 3.10.7.4 asks for an ACK.
            let answers = self.may_answer(cx.now, segment);
            if self.state == State::TimeWait && flags.has(Flags::FIN) {
                self.enter_time_wait(cx);
            }
            if self.cfg.profile.echo == EchoRule::CoversLastAck {
                // Of a segment that is old as a whole nothing is left but its end.
                let end = seq + u64::from(segment.payload);
                self.take_timestamp(cx.now, segment, end, end);
            }
            self.note_duplicate(segment, seq);
            if segment.payload > 0 {
                let window = self.rcv.adv.since(self.rcv.nxt).get();
                self.rcv.policy.on_old_data(window, self.mss());
            }
            if answers {
                self.ack_at_once();
            }
            if seq <= self.rcv.nxt {
                // Old data, or any where our window is closed, may bring a good acknowledgment.
                self.on_ack(cx, segment, seq, ack);
            }
            return;
        };
        let fin = u64::from(flags.has(Flags::FIN));
        self.take_timestamp(cx.now, segment, seq.max(self.rcv.nxt), payload.right + fin);
        self.note_duplicate(segment, seq);
        self.on_ack(cx, segment, seq, ack);
        if self.state == State::Established {
            self.measure_echo(cx.now, segment);
        }
        if payload.right > payload.left {
            self.on_payload(cx, payload);
        }
        if unlikely(flags.has(Flags::FIN)) {
            let place = *self.rcv.fin.get_or_insert(seq + u64::from(segment.payload));
            if place > self.rcv.nxt {
                // Out of order, even without data (RFC 5681 section 4.2).
                self.ack_at_once();
            }
        }
        self.take_fin(cx);
    }

    /// Is it what most segments of a transfer are: the next bytes or nothing but an acknowledgment,
    /// in its place, with a good timestamp, on a connection where nothing else goes on (header
    /// prediction: tcp_do_segment of FreeBSD, tcp_rcv_established of Linux)?
    #[inline(always)]
    fn is_ordinary(&self, segment: &Segment) -> bool {
        let ahead = segment.ack.0.wrapping_sub(self.snd.una.to_seq(self.cfg.isn).0);
        let fresh = match segment.timestamps {
            Some(stamps) => stamps.val.wrapping_sub(self.rcv.ts_recent) as i32 >= 0,
            None => !self.link.timestamps,
        };
        self.state == State::Established
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && segment.seq == self.rcv_nxt_seq()
            && u64::from(ahead) <= self.snd.max - self.snd.una
            && fresh
            && u64::from(segment.payload) <= self.rcv.adv.since(self.rcv.nxt).get()
            && self.rcv.fin.is_none()
            && self.cfg.keepalive.is_none()
            && !self.ecn.agreed()
    }

    /// The same as [`Endpoint::input_synchronised`], less what cannot be.
    #[inline(always)]
    fn input_ordinary<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, made: impl Fn() -> Segment) {
        let segment = &made();
        let predicted = segment.payload > 0 && self.predicts_data(segment);
        let seq = self.rcv.nxt;
        let ahead = segment.ack.0.wrapping_sub(self.snd.una.to_seq(self.cfg.isn).0);
        let ack = self.snd.una + u64::from(ahead);
        self.snd.last_heard = cx.now;
        self.take_timestamp(cx.now, segment, seq, Offset(u64::MAX));
        // Data that comes while none goes the other way says nothing to the sender.
        let idle = segment.payload > 0
            && self.snd.max == self.snd.una
            && matches!(self.snd.repair, Repair::Timed(_))
            && matches!(segment.options, Options::None)
            && !self.snd.buffer.starved();
        if idle {
            self.update_window(seq, ack, self.scaled_window(segment));
        } else {
            self.on_ack(cx, &made(), seq, ack);
        }
        self.measure_echo(cx.now, segment);
        if segment.payload > 0 {
            self.on_next_payload(
                cx,
                Payload {
                    left: seq,
                    right: seq + u64::from(segment.payload),
                    pushed: segment.flags.has(Flags::PSH),
                    merged: segment.merged(),
                    predicted,
                },
            );
        }
    }

    /// Does header prediction of FreeBSD take it, which is the next data: no acknowledgment, the same
    /// window, nothing being resent, nothing out of order, and room for it?
    #[inline(always)]
    fn predicts_data(&self, segment: &Segment) -> bool {
        let wnd = self.scaled_window(segment);
        self.rcv.window.measures_arrivals()
            && segment.ack == self.snd.una.to_seq(self.cfg.isn)
            && self.snd.nxt == self.snd.max
            && wnd != 0
            && wnd == self.snd.wnd
            && self.rcv.reassembly.is_empty()
            && u64::from(segment.payload) <= self.rcv.window.space()
    }

    /// RFC 5961 section 3.2: a reset counts only at exactly the next number; elsewhere in the
    /// window it is questioned, outside it is nothing.
    fn input_reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, seq: Offset) {
        if seq == self.rcv.nxt {
            match (self.state, self.cfg.side) {
                // A listener that was only knocked at goes on listening.
                (State::SynReceived, Side::Server) => self.begin_anew(),
                // tcp_twcheck drops it, after RFC 1337.
                (State::TimeWait, _) if self.cfg.profile.family == Family::FreeBsd => {}
                (State::TimeWait, _) => {
                    self.state = State::Closed;
                    self.timers.stop_all();
                }
                _ => self.abort(cx),
            }
        } else if seq > self.rcv.nxt && seq < self.rcv.adv {
            self.challenge(cx);
        }
    }

    /// A SYN on a connection that has one: the handshake's own, again or crossing, or a stranger
    /// (RFC 5961 section 4). `seq` is `None` for a number before the stream.
    fn input_late_syn<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Option<Offset>,
    ) {
        let acks = segment.flags.has(Flags::ACK);
        let same_syn = self.state == State::SynReceived && seq == Some(Offset(0));
        if same_syn && acks && segment.ack == Offset(1).to_seq(self.cfg.isn) {
            // The answer to our SYN-ACK where both sides opened at once.
            self.on_crossing_syn_ack(cx, segment);
        } else if same_syn {
            if self.may_answer(cx.now, segment) {
                self.call_output();
            }
        } else if self.state == State::TimeWait
            && self.cfg.profile.family == Family::FreeBsd
            && !acks
        {
            // tcp_twcheck: an old one is dropped. A newer one ends the old connection; it would go
            // to a listener, and here there is none.
            if seq.is_some_and(|seq| seq > self.rcv.nxt) {
                self.state = State::Closed;
                self.timers.stop_all();
                self.answer_with_reset(segment);
            }
        } else {
            self.challenge(cx);
        }
    }

    /// Says where we stand, so that a confused peer resets and a forger learns nothing.
    fn challenge<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if !self.challenge.allow(cx.now, self.cfg.profile.challenge) {
            return;
        }
        match self.snd.repair {
            // tcp_respond, not tcp_output: a bare ACK, whatever else could be sent.
            Repair::Holes(_) => self.respond(cx),
            Repair::Duplicates | Repair::Timed(_) | Repair::Rack(_) => self.ack_at_once(),
        }
    }

    /// RFC 7323 section 5: a segment older than the last one heard is answered and dropped, and
    /// so is one that lacks the timestamps that were agreed.
    fn has_stale_timestamp<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) -> bool {
        if !self.link.timestamps {
            return false;
        }
        let Some(stamps) = segment.timestamps else { return self.cfg.profile.strict_timestamps };
        let older = (stamps.val.wrapping_sub(self.rcv.ts_recent) as i32) < 0;
        let stale = older && cx.now.since(self.rcv.ts_recent_at) < PAWS_IDLE;
        if unlikely(stale) && self.may_answer(cx.now, segment) {
            self.ack_at_once();
        }
        stale
    }

    /// Linux answers bare ACKs that are not acceptable, and SYNs it has answered, once in half a second,
    /// so that two ends that misunderstand each other do not answer for ever
    /// (tcp_oow_rate_limited, `net.ipv4.tcp_invalid_ratelimit`). Data is no part of such a loop.
    fn may_answer(&mut self, now: Instant, segment: &Segment) -> bool {
        let bare = segment.payload == 0 && !segment.flags.has(Flags::FIN);
        let limited = self.cfg.profile.family == Family::Linux && bare;
        !limited || self.challenge.allow(now, self.cfg.profile.challenge)
    }

    /// Cuts what was received already or lies beyond the window. `None` if nothing acceptable is
    /// left of a segment that occupied sequence space, or if it lies outside the window.
    fn trim(&self, segment: &Segment, seq: Offset) -> Option<Payload> {
        let end = seq + u64::from(segment.payload);
        let fin = u64::from(segment.flags.has(Flags::FIN));
        let payload = Payload {
            left: seq.max(self.rcv.nxt),
            right: end.min(self.rcv.adv).max(self.rcv.nxt),
            pushed: segment.flags.has(Flags::PSH),
            merged: segment.merged(),
            predicted: false,
        };
        if segment.payload == 0 && fin == 0 {
            let in_window = seq >= self.rcv.nxt && seq <= self.rcv.adv;
            return in_window.then_some(Payload { right: payload.left, ..payload });
        }
        let new = end + fin > self.rcv.nxt;
        let fits = seq < self.rcv.adv || (segment.payload == 0 && seq == self.rcv.adv);
        (new && fits).then_some(payload)
    }

    /// RFC 7323 section 4.3: echo the timestamp of the segment that filled the last ACK's place.
    /// `seq` and `end` are those of what is not old of it.
    #[inline(always)]
    fn take_timestamp(&mut self, now: Instant, segment: &Segment, seq: Offset, end: Offset) {
        let covers = self.cfg.profile.echo == EchoRule::UpToLastAck || end >= self.rcv.acked;
        if let Some(stamps) = segment.timestamps.filter(|_| self.link.timestamps)
            && seq <= self.rcv.acked
            && covers
            && stamps.val.wrapping_sub(self.rcv.ts_recent) as i32 >= 0
        {
            self.rcv.ts_recent = stamps.val;
            self.rcv.ts_recent_at = now;
        }
    }

    /// Bytes that had arrived before, in order or not, are told of with the next ACK (RFC 2883;
    /// tcp_update_dsack_list of FreeBSD, tcp_dsack_set of Linux).
    fn note_duplicate(&mut self, segment: &Segment, seq: Offset) {
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
    fn report_arrival(&mut self, left: Offset, right: Offset, advanced: bool) {
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

    fn on_payload<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, payload: Payload) {
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
    fn keep_behind_gap<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, payload: Payload) {
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
    fn arrived(&self, now: Instant, payload: &Payload, in_order: u64) -> Arrived {
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
    fn measure_echo(&mut self, now: Instant, segment: &Segment) {
        if let Some(stamps) = segment.timestamps.filter(|_| self.link.timestamps) {
            let age = || self.clock.timestamp(now).wrapping_sub(stamps.ecr);
            self.rcv.window.on_echo(stamps.ecr, u64::from(segment.payload), age);
        }
    }

    /// What Linux's policy is asked about; `rcv_nxt` has moved if it was in order.
    fn arrival(&self, now: Instant, window_grew: bool) -> Arrival {
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
    fn on_next_payload<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, payload: Payload) {
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
    fn autosize<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, len: u64) {
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
    fn ask_linux(
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

    pub(crate) fn ack_at_once(&mut self) {
        self.rcv.ack_now = true;
        self.call_output();
    }

    /// The peer's FIN counts once all before it has arrived.
    fn take_fin<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.rcv.fin != Some(self.rcv.nxt) {
            return;
        }
        cold_path();
        self.rcv.nxt += 1;
        self.state = match self.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => {
                self.enter_time_wait(cx);
                State::TimeWait
            }
            other => other,
        };
        self.signal(Signal::Readable);
        self.ack_at_once();
    }

    /// Our FIN has been acknowledged.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_fin_acked<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => {
                self.state = State::TimeWait;
                self.enter_time_wait(cx);
            }
            State::LastAck => {
                self.state = State::Closed;
                self.timers.stop_all();
                cx.emit(|| Event::Closed);
                self.signal(Signal::Closed);
            }
            _ => {}
        }
    }

    fn enter_time_wait<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let first = !self.timers.runs(Purpose::TimeWait);
        self.timers.stop_all();
        self.timers.set(Purpose::TimeWait, cx.now + self.cfg.profile.time_wait);
        if first {
            cx.emit(|| Event::Closed);
            self.signal(Signal::Closed);
        }
    }

    pub(crate) fn abort<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.state = State::Closed;
        self.timers.stop_all();
        cx.emit(|| Event::Aborted);
        self.signal(Signal::Aborted);
    }
}
