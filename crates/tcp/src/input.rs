//! What an arriving segment means (RFC 9293 section 3.10.7; tcp_do_segment of FreeBSD,
//! tcp_rcv_established of Linux).

mod closing;
mod payload;
mod refused;

use core::hint::cold_path;

use machine::Cx;
use packet::{Flags, Options, Segment};
use record::Recorder;
use units::{Instant, Offset, unlikely};

use crate::endpoint::{Endpoint, State};
use crate::loss::Repair;
use crate::output::Train;
use crate::profile::EchoRule;

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

    pub(crate) fn ack_at_once(&mut self) {
        self.rcv.ack_now = true;
        self.call_output();
    }
}
