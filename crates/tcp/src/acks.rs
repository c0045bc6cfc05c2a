//! What an acknowledgment means to the sender (RFC 9293 3.10.7.4, RFC 5681, RFC 6582; the ACK
//! half of tcp_do_segment of FreeBSD and tcp_ack of Linux), and what its timers do.

use cc::{Acked, Congested, Controller, Recovered, Signal as Sign};
use machine::{Cx, Signal};
use packet::Segment;
use record::{Cause, Event, Purpose, Recorder};
use recovery::{Sample, Sampled};
use units::{Bytes, Duration, Offset};

use crate::endpoint::{Endpoint, State};

/// Duplicate acknowledgments that stand for a loss (RFC 5681 section 3.2).
const DUP_THRESHOLD: u32 = 3;
/// Timeouts in a row after which a connection is given up (`TCP_MAXRXTSHIFT`).
const MAX_SHIFT: u32 = 12;

impl Endpoint {
    /// An acceptable segment acknowledges up to `ack`.
    pub(crate) fn on_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        ack: Offset,
    ) {
        if ack > self.snd.max {
            // RFC 9293: it acknowledges what was never sent.
            self.ack_at_once();
            return;
        }
        let wnd = self.scaled_window(segment);
        if ack > self.snd.una {
            self.on_new_ack(cx, segment, ack, wnd);
        } else if ack == self.snd.una && self.is_duplicate(segment, wnd) {
            self.on_dup_ack(cx);
        }
        self.update_window(seq, ack, wnd);
        self.wake_writer(cx);
    }

    /// With SACK a duplicate is known by its blocks; without, by changing nothing at all.
    fn is_duplicate(&self, segment: &Segment, wnd: u64) -> bool {
        segment.payload == 0
            && self.snd.max > self.snd.una
            && if self.link.sack { !segment.sack_blocks().is_empty() } else { wnd == self.snd.wnd }
    }

    fn on_new_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: Offset,
        wnd: u64,
    ) {
        let bytes = ack - self.snd.una;
        self.undo_spurious_timeout(cx, segment);
        self.take_rtt(cx, segment, ack);
        let delivered = self.snd.sent.acknowledge(ack);
        self.snd.shift = 0;
        if ack == self.snd.max {
            self.timers.stop(Purpose::Retransmit);
        } else {
            self.arm_retransmit(cx.now);
        }
        // tcp_do_segment settles the recovery before it counts the acknowledgment.
        if self.cc.in_recovery() {
            self.on_ack_in_recovery(cx, ack, bytes);
        } else {
            self.snd.dup_acks = 0;
        }
        let nsegs = u32::from(segment.nsegs.max(1));
        let change = self.cc.on_acked(&Acked {
            now: cx.now,
            una: ack,
            bytes,
            packets: delivered.packets as u32,
            nsegs,
            resending: self.snd.nxt != self.snd.max,
            snd_wnd: self.snd.wnd,
            window_limited: self.snd.window_limited,
            max_packets_out: self.snd.max_packets_out as u32,
        });
        let data_end = self.data_end();
        let old_una = self.snd.una;
        self.snd.una = ack;
        self.snd.buffer.acknowledge(ack.min(data_end) - old_una.min(data_end));
        self.snd.nxt = self.snd.nxt.max(ack);
        self.snd.wnd = wnd;
        cx.emit_with(|| {
            let una = self.payload_offset(ack);
            let event = Event::Acked { una, bytes: bytes as u32, nsegs: nsegs as u16 };
            (event, self.sender_state())
        });
        self.note(cx, change, Cause::SlowStart);
        if self.snd.fin && ack > data_end {
            self.on_fin_acked(cx);
        }
        self.call_output();
    }

    /// RFC 6582 section 3.2: a full acknowledgment ends the recovery, a partial one shows the
    /// next loss.
    fn on_ack_in_recovery<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, ack: Offset, bytes: u64) {
        if ack >= self.cc.recovery_point() {
            self.snd.dup_acks = 0;
            let pipe = self.snd.max - ack;
            let change = self.cc.on_recovered(&Recovered { th_ack: ack, pipe });
            self.note(cx, change, Cause::Recovered);
            return;
        }
        self.snd.again = Some(Cause::PartialAck);
        // tcp_newreno_partial_ack: deflate by what left, add back one segment.
        let deflated = self.cwnd().saturating_sub(bytes) + self.maxseg();
        self.cc.set_window(Bytes(deflated));
        self.emit_window(cx, Cause::Recovering);
    }

    fn on_dup_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.snd.dup_acks += 1;
        let count = self.snd.dup_acks;
        cx.emit(|| Event::DupAck { count });
        if self.cc.in_recovery() {
            // Each one tells that a segment has left the network (RFC 5681 section 3.2, step 4).
            self.cc.set_window(Bytes(self.cwnd() + self.maxseg()));
            self.emit_window(cx, Cause::Recovering);
            self.call_output();
        } else if count == DUP_THRESHOLD && self.snd.una >= self.cc.recovery_point() {
            self.enter_recovery(cx);
        }
    }

    fn enter_recovery<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.totals.fast_recoveries += 1;
        let change = self.cc.on_congested(&self.congested(Sign::Loss));
        self.snd.again = Some(Cause::FastRetransmit);
        self.snd.timed = None;
        let ssthresh = self.cc.control().ssthresh.map_or(0, Bytes::get);
        self.cc.set_window(Bytes(ssthresh + u64::from(DUP_THRESHOLD) * self.maxseg()));
        self.note(cx, change, Cause::FastRetransmit);
        self.call_output();
    }

    fn congested(&self, signal: Sign) -> Congested {
        Congested {
            signal,
            th_ack: self.snd.una,
            snd_max: self.snd.max,
            pipe: self.snd.max - self.snd.una,
            snd_wnd: self.snd.wnd,
        }
    }

    /// RFC 9293 3.10.7.4: a window counts if its segment is not older than the last that did.
    fn update_window(&mut self, seq: Offset, ack: Offset, wnd: u64) {
        let newer = self.snd.wl1 < seq
            || (self.snd.wl1 == seq
                && (self.snd.wl2 < ack || (self.snd.wl2 == ack && wnd > self.snd.wnd)));
        if !newer {
            return;
        }
        if wnd > self.snd.wnd {
            self.call_output();
        }
        self.snd.wnd = wnd;
        self.snd.max_wnd = self.snd.max_wnd.max(wnd);
        self.snd.wl1 = seq;
        self.snd.wl2 = ack;
    }

    /// A writer that sleeps is woken once there is room.
    pub(crate) fn wake_writer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.snd.buffer.starved() {
            let packets = self.cwnd() / self.mss();
            let full = self.snd.sent.packets() >= packets;
            if let Some(size) = self.snd.buffer.expand(full, packets) {
                cx.emit(|| Event::SendBuffer { size: size as u32 });
            }
        }
        if self.snd.buffer.writable() {
            self.signal(Signal::Writable);
        }
    }

    /// A round trip: from the echoed timestamp, else from the byte being timed.
    pub(crate) fn take_rtt<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: Offset,
    ) {
        let echo = segment.timestamps.filter(|stamps| self.link.timestamps && stamps.ecr != 0);
        let timed = self.snd.timed.filter(|&(at, _)| ack > at);
        if timed.is_some() {
            self.snd.timed = None;
        }
        let by_echo = echo.map(|stamps| {
            let ms = self.clock.timestamp(cx.now).wrapping_sub(stamps.ecr);
            Sample::Echo { ms }
        });
        let by_time = timed.map(|(_, sent)| Sample::Timed { sent, acked: cx.now });
        // FreeBSD takes every echo; Linux prefers send times, which count microseconds.
        let sample = match self.rtt {
            recovery::RttEstimator::FreeBsd(_) => by_echo.or(by_time),
            recovery::RttEstimator::Linux(_) => by_time.or(by_echo),
        };
        let Some(sample) = sample else { return };
        let rtt = self.rtt.on_sample(&Sampled {
            sample,
            shift: self.snd.shift,
            snd_una: ack,
            snd_nxt: self.snd.nxt,
        });
        self.rcv.window.on_rtt(rtt);
        let least = self.totals.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.totals.min_rtt = Some(least);
        cx.emit(|| Event::RttSample { rtt });
    }

    /// A timer fired.
    pub(crate) fn on_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, purpose: Purpose) {
        cx.emit(|| Event::Timer(purpose));
        match purpose {
            Purpose::DelayedAck => {
                self.rcv.policy.on_timer();
                self.ack_at_once();
            }
            Purpose::Retransmit => self.on_retransmit_timer(cx),
            Purpose::Persist => self.call_output(),
            Purpose::TimeWait => self.state = State::Closed,
        }
    }

    /// tcp_timer_rexmt of FreeBSD; tcp_retransmit_timer of Linux.
    fn on_retransmit_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.snd.shift += 1;
        if self.snd.shift > MAX_SHIFT {
            self.abort(cx);
            return;
        }
        self.totals.timeouts += 1;
        self.rtt.on_timeout(self.snd.shift);
        self.snd.timed = None;
        self.snd.again = None;
        self.snd.dup_acks = 0;
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.arm_retransmit(cx.now);
            self.call_output();
            return;
        }
        if self.snd.shift == 1 && self.link.timestamps {
            self.snd.timeout_stamp = Some(self.clock.timestamp(cx.now));
        }
        let signal = Sign::Timeout { shift: self.snd.shift };
        let change = self.cc.on_congested(&self.congested(signal));
        self.note(cx, change, Cause::Timeout);
        self.snd.nxt = self.snd.una;
        self.arm_retransmit(cx.now);
        self.call_output();
    }

    /// The first ACK after a single timeout echoes a timestamp older than the retransmission:
    /// the original had arrived (tcp_do_segment's t_badrxtwin; RFC 3522).
    fn undo_spurious_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let Some(sent) = self.snd.timeout_stamp else { return };
        self.snd.timeout_stamp = None;
        let echo = segment.timestamps.map_or(0, |stamps| stamps.ecr);
        let older = echo != 0 && (echo.wrapping_sub(sent) as i32) < 0;
        if self.snd.shift != 1 || !older {
            return;
        }
        let change = self.cc.on_congested(&self.congested(Sign::SpuriousTimeout));
        self.totals.spurious += 1;
        self.snd.nxt = self.snd.max;
        self.note(cx, change, Cause::Undone);
    }
}

/// How long a flow has been idle, for the restart rules.
pub(crate) fn idle_for(endpoint: &Endpoint, now: units::Instant) -> Duration {
    now.since(endpoint.snd.last_heard.max(endpoint.snd.last_sent))
}
