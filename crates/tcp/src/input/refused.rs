//! Segments that are not of the stream: before a connection is synchronised, resets, late SYNs, and what
//! is answered with a challenge or not at all (RFC 9293 section 3.10.7, RFC 5961, RFC 7323).

use machine::Cx;
use packet::{Flags, Segment};
use record::Recorder;
use units::{Duration, Instant, Offset, SeqNum, unlikely};

use crate::endpoint::{Endpoint, Side, State};
use crate::loss::Repair;
use crate::profile::Family;

/// Timestamps older than this say nothing (RFC 7323 section 5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 24 * 3_600);

impl Endpoint {
    #[inline(never)]
    pub(super) fn input_unsynchronised<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
    ) {
        match self.state {
            State::Listen => self.input_listen(cx, segment),
            State::SynSent => self.input_syn_sent(cx, segment),
            _ => self.answer_with_reset(segment),
        }
    }

    /// RFC 9293 section 3.10.7.1: what belongs to no connection is answered with a reset.
    pub(super) fn answer_with_reset(&mut self, segment: &Segment) {
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
    pub(super) fn input_listen<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        if flags.has(Flags::ACK) {
            self.answer_with_reset(segment);
        } else if flags.has(Flags::SYN) && !flags.has(Flags::RST) {
            self.on_syn(cx, segment);
        }
    }

    /// RFC 9293 section 3.10.7.3.
    pub(super) fn input_syn_sent<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
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

    /// RFC 5961 section 3.2: a reset counts only at exactly the next number; elsewhere in the
    /// window it is questioned, outside it is nothing.
    pub(super) fn input_reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, seq: Offset) {
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
    pub(super) fn input_late_syn<R: Recorder>(
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
    pub(super) fn challenge<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
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
    pub(super) fn has_stale_timestamp<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
    ) -> bool {
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
    pub(super) fn may_answer(&mut self, now: Instant, segment: &Segment) -> bool {
        let bare = segment.payload == 0 && !segment.flags.has(Flags::FIN);
        let limited = self.cfg.profile.family == Family::Linux && bare;
        !limited || self.challenge.allow(now, self.cfg.profile.challenge)
    }
}
