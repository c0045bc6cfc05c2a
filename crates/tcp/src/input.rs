//! What an arriving segment means (RFC 9293 section 3.10.7; tcp_do_segment of FreeBSD,
//! tcp_rcv_established of Linux).

use machine::{Cx, Signal};
use packet::{Flags, Segment};
use record::{Event, Purpose, Recorder};
use units::{Duration, Offset};

use crate::ack_policy::{Arrival, Decision};
use crate::endpoint::{Endpoint, State};

/// How long the last state of a connection lasts: twice 30 s (FreeBSD `net.inet.tcp.msl`), near
/// Linux's 60 s (TCP_TIMEWAIT_LEN).
const TIME_WAIT: Duration = Duration::from_secs(60);

/// The payload of a segment that lies in the window, as offsets.
#[derive(Debug, Clone, Copy)]
struct Payload {
    left: Offset,
    right: Offset,
    pushed: bool,
    merged: bool,
}

impl Endpoint {
    pub(crate) fn input<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        match self.state {
            State::Closed => {}
            State::Listen => {
                if flags.has(Flags::SYN) && !flags.has(Flags::ACK) && !flags.has(Flags::RST) {
                    self.on_syn(cx, segment);
                }
            }
            State::SynSent => self.input_syn_sent(cx, segment),
            _ => self.input_synchronised(cx, segment),
        }
    }

    fn input_syn_sent<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        let acks_ours = flags.has(Flags::ACK) && segment.ack == Offset(1).to_seq(self.cfg.isn);
        if !acks_ours {
            return;
        }
        if flags.has(Flags::RST) {
            self.abort(cx);
        } else if flags.has(Flags::SYN) {
            self.on_syn_ack(cx, segment);
        }
    }

    fn input_synchronised<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        // The door: numbers become offsets. What lies before the stream is not ours.
        let Some(seq) = segment.seq.near(self.rcv.irs, self.rcv.nxt) else { return };
        let Some(ack) = segment.ack.near(self.cfg.isn, self.snd.una) else { return };
        if flags.has(Flags::RST) {
            // RFC 5961 section 3.2: only at exactly the next number.
            if seq == self.rcv.nxt {
                self.abort(cx);
            }
            return;
        }
        if flags.has(Flags::SYN) {
            // Our last ACK of the handshake was lost, or it is an old one: say where we stand.
            if self.state == State::SynReceived {
                self.call_output();
            } else {
                self.ack_at_once();
            }
            return;
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        if self.state == State::SynReceived {
            if ack != Offset(1) {
                return;
            }
            self.on_handshake_ack(cx, segment);
        }
        self.snd.last_heard = cx.now;
        let Some(payload) = self.trim(segment, seq) else {
            // Nothing new, or nothing that fits: RFC 9293 3.10.7.4 asks for an ACK.
            self.ack_at_once();
            self.on_ack(cx, segment, seq, ack);
            return;
        };
        self.take_timestamp(segment, seq);
        self.on_ack(cx, segment, seq, ack);
        if payload.right > payload.left {
            self.on_payload(cx, payload);
        }
        if flags.has(Flags::FIN) {
            self.rcv.fin = Some(seq + u64::from(segment.payload));
        }
        self.take_fin(cx);
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
        };
        if segment.payload == 0 && fin == 0 {
            let in_window = seq <= self.rcv.adv && seq >= self.rcv.nxt;
            // An old pure ACK is harmless; its acknowledgment is judged on its own.
            return (in_window || seq < self.rcv.nxt)
                .then_some(Payload { right: payload.left, ..payload });
        }
        let new = end + fin > self.rcv.nxt;
        let fits = seq < self.rcv.adv || (segment.payload == 0 && seq == self.rcv.adv);
        (new && fits).then_some(payload)
    }

    /// RFC 7323 section 4.3: echo the timestamp of the segment that filled the last ACK's place.
    fn take_timestamp(&mut self, segment: &Segment, seq: Offset) {
        if let Some(stamps) = segment.timestamps.filter(|_| self.link.timestamps)
            && seq <= self.rcv.acked
            && stamps.val.wrapping_sub(self.rcv.ts_recent) as i32 >= 0
        {
            self.rcv.ts_recent = stamps.val;
        }
    }

    fn on_payload<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, payload: Payload) {
        let receiving =
            matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        if !receiving {
            return;
        }
        if payload.left > self.rcv.nxt {
            self.rcv.reassembly.insert(payload.left, payload.right);
            self.ack_at_once();
            return;
        }
        let filled_a_gap = !self.rcv.reassembly.is_empty();
        let before = self.rcv.nxt;
        self.rcv.nxt = self.rcv.reassembly.advance(payload.right);
        self.rcv.pushed = payload.pushed;
        let len = self.rcv.nxt - before;
        let window_grew = self.rcv.window.on_data(len, payload.merged);
        if let Some(size) = self.rcv.window.autosize(cx.now, self.rtt.srtt()) {
            cx.emit(|| Event::ReceiveBuffer { size: size as u32 });
        }
        self.signal(Signal::Readable);
        let decision = self.rcv.policy.on_data(&Arrival {
            now: cx.now,
            len,
            unacked: self.rcv.nxt - self.rcv.acked,
            maxseg: self.maxseg(),
            mss: self.mss(),
            pending: self.timers.runs(Purpose::DelayedAck),
            window_was_zero: self.rcv.last_window_zero,
            window_grew,
            rcv_wnd: self.rcv.adv.since(before).get(),
            srtt: self.rtt.srtt(),
        });
        match decision {
            _ if filled_a_gap => self.ack_at_once(),
            Decision::Now => self.ack_at_once(),
            Decision::Within(span) => {
                if !self.timers.runs(Purpose::DelayedAck) {
                    self.timers.set(Purpose::DelayedAck, self.clock.deadline(cx.now, span));
                }
            }
        }
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
        self.timers.stop_all();
        self.timers.set(Purpose::TimeWait, cx.now + TIME_WAIT);
        cx.emit(|| Event::Closed);
        self.signal(Signal::Closed);
    }

    pub(crate) fn abort<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.state = State::Closed;
        self.timers.stop_all();
        cx.emit(|| Event::Aborted);
        self.signal(Signal::Aborted);
    }
}
