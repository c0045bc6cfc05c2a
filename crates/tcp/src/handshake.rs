//! Opening a connection (RFC 9293 section 3.5, RFC 7323, RFC 2018).

use std::collections::VecDeque;

use cc::{Controller, Established};
use machine::{Cx, Signal};
use packet::{Flags, Options, Segment, SynOptions, Timestamps};
use record::{Cause, Event, Purpose, Recorder, SentKind};
use units::{Bytes, Instant, Offset};

use crate::endpoint::{Endpoint, State};
use crate::loss::Repair;
use crate::receive_window::ReceiveWindow;
use crate::sent::Delivered;

/// Segments that one ACK makes FreeBSD send before `snd_una` advances, with room to spare.
const OUTBOX: usize = 16;

impl Endpoint {
    /// Puts the SYN or SYN-ACK that is due into `slot`.
    pub(crate) fn send_syn<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        let answers = self.state == State::SynReceived;
        let profile = &self.cfg.profile;
        let timestamps = if answers { self.link.timestamps } else { profile.timestamps };
        let sack = if answers { self.link.sack } else { profile.sack };
        let scale = self.rcv.window.offered_scale();
        let scale = if answers { scale.filter(|_| self.link.snd_scale.is_some()) } else { scale };
        let window = self.rcv.window.syn_field();
        *slot = Segment {
            flow: self.cfg.flow,
            dir: self.dir(),
            ip: self.cfg.ip,
            flags: if answers {
                Flags::SYN | Flags::ACK | self.ecn.syn_ack_flags()
            } else {
                Flags::SYN | self.ecn.syn_flags()
            },
            seq: self.cfg.isn,
            ack: self.rcv.nxt.to_seq(self.rcv.irs),
            window,
            timestamps: timestamps
                .then(|| Timestamps { val: self.clock.timestamp(cx.now), ecr: self.rcv.ts_recent }),
            options: Options::Syn(SynOptions {
                mss: self.own_mss() as u16,
                window_scale: scale,
                sack_permitted: sack,
                layout: self.layout(),
            }),
            ..Segment::default()
        };
        if !answers {
            slot.ack = units::SeqNum(0);
        }
        self.snd.nxt = Offset(1);
        self.snd.max = Offset(1);
        self.snd.last_sent = cx.now;
        self.snd.timed = (self.snd.shift == 0).then_some((Offset(0), cx.now));
        self.rcv.adv = self.rcv.nxt + u64::from(window);
        self.rcv.acked = self.rcv.nxt;
        if !self.timers.runs(Purpose::Retransmit) {
            self.arm_retransmit(cx.now);
        }
        cx.emit(|| Event::Sent { at: Offset(0), len: 0, kind: SentKind::Control });
    }

    /// Payload of our largest segment without options.
    fn own_mss(&self) -> u32 {
        self.cfg.profile.mtu - self.cfg.ip.header_len() - 20
    }

    /// A SYN came to a listener.
    pub(crate) fn on_syn<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        self.take_syn(cx.now, segment);
        // With timestamps agreed Linux offers whole segments of what is left for payload.
        let deduct = if self.link.timestamps { 12 } else { 0 };
        let profile = &self.cfg.profile;
        self.rcv.window = ReceiveWindow::new(
            profile.receive_buffer,
            profile.window_scaling,
            self.own_mss() - deduct,
        );
        self.ecn.on_syn(segment.flags);
        self.state = State::SynReceived;
        self.snd.last_heard = cx.now;
        self.call_output();
    }

    /// Both sides have opened at once (RFC 9293 section 3.5, figure 8): the peer's SYN came
    /// instead of an answer to ours.
    pub(crate) fn on_crossing_syn<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        self.take_syn(cx.now, segment);
        self.state = State::SynReceived;
        self.snd.last_heard = cx.now;
        self.call_output();
    }

    /// A SYN-ACK answers our SYN.
    pub(crate) fn on_syn_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        self.take_syn(cx.now, segment);
        self.ecn.on_syn_ack(segment.flags);
        self.on_crossing_syn_ack(cx, segment);
    }

    /// The ACK of our SYN-ACK; its window is scaled.
    pub(crate) fn on_handshake_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let syn = self.take_syn_rtt(cx, segment);
        if syn.is_none() {
            self.take_rtt(cx, segment, Offset(1), &Delivered::default());
        }
        self.snd.una = Offset(1);
        self.snd.wnd = self.scaled_window(segment);
        self.snd.max_wnd = self.snd.wnd;
        self.snd.wl1 = Offset(1);
        self.snd.wl2 = Offset(1);
        self.establish(cx);
        self.begin_rack(syn);
    }

    /// The peer's SYN-ACK acknowledges our SYN; all that is left to do where both sides had opened
    /// at once. Its window is that of a SYN, not scaled.
    pub(crate) fn on_crossing_syn_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
    ) {
        let syn = self.take_syn_rtt(cx, segment);
        if syn.is_none() {
            self.take_rtt(cx, segment, Offset(1), &Delivered::default());
        }
        self.snd.una = Offset(1);
        self.snd.wnd = u64::from(segment.window);
        self.snd.max_wnd = self.snd.wnd;
        self.snd.wl2 = Offset(1);
        self.rcv.ack_now = true;
        self.establish(cx);
        self.begin_rack(syn);
    }

    /// Window of a segment that is no SYN, in bytes.
    pub(crate) fn scaled_window(&self, segment: &Segment) -> u64 {
        u64::from(segment.window) << self.link.snd_scale.unwrap_or(0)
    }

    /// Takes what a SYN says: where its stream begins and which options both sides have.
    fn take_syn(&mut self, now: Instant, segment: &Segment) {
        let theirs = segment.syn_options().copied().unwrap_or_default();
        let profile = &self.cfg.profile;
        self.rcv.irs = segment.seq;
        self.rcv.nxt = Offset(1);
        self.rcv.acked = Offset(1);
        // RFC 9293 section 3.7.1: 536 where the peer says nothing; a tiny one would make a flood
        // of segments, or none once options are deducted.
        let least = profile.min_mss;
        let their_mss = if theirs.mss == 0 { 536 } else { u32::from(theirs.mss).max(least) };
        self.link.maxseg = self.own_mss().min(their_mss);
        self.link.timestamps = profile.timestamps && segment.timestamps.is_some();
        let deduct = if self.link.timestamps { 12 } else { 0 };
        self.link.mss = self.link.maxseg - deduct;
        self.link.sack = profile.sack && theirs.sack_permitted;
        self.link.snd_scale =
            theirs.window_scale.filter(|_| profile.window_scaling).map(|scale| scale.min(14));
        self.rcv.ts_recent = segment.timestamps.map_or(0, |stamps| stamps.val);
        self.rcv.ts_recent_at = now;
    }

    /// cc_conn_init: the threshold of the host cache, not below two segments. The RACK stack raises
    /// it to the peer's window, so that a connection begins in slow start (rack_cc_conn_init).
    fn cached_ssthresh(&self) -> Option<Bytes> {
        let profile = &self.cfg.profile;
        let cached = Some(profile.cached_ssthresh.get()).filter(|&cached| cached > 0)?;
        let floor = if profile.has_rack() { self.snd.wnd } else { 0 };
        Some(Bytes(cached.max(2 * self.mss()).max(floor)))
    }

    fn establish<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.state = if self.snd.fin { State::FinWait1 } else { State::Established };
        self.snd.last_heard = cx.now;
        self.timers.stop(Purpose::Retransmit);
        let syn_retransmitted = self.snd.shift > self.cfg.profile.forgiven_syns;
        self.snd.shift = 0;
        self.snd.usage_end = self.snd.nxt;
        if self.cfg.profile.mss_within_half_window {
            let bound = (self.snd.max_wnd / 2).max(u64::from(self.cfg.profile.min_mss));
            self.link.mss = self.link.mss.min(u32::try_from(bound).unwrap_or(u32::MAX));
        }
        self.origin = None;
        self.snd.repair = Repair::new(&self.cfg.profile, self.link.sack);
        if matches!(self.snd.repair, Repair::Holes(_)) {
            // Before the transfer: nothing is allocated while it goes on.
            self.outbox = Some(Box::new(VecDeque::with_capacity(OUTBOX)));
        }
        let change = self.cc.on_established(&Established {
            now: cx.now,
            ticks: self.clock.tick(cx.now),
            una: Offset(1),
            mss: self.link.mss,
            maxseg: self.link.maxseg,
            snd_scale: self.link.snd_scale.unwrap_or(0),
            syn_retransmitted,
            rtt: self.snd.rtt_sample,
            ssthresh: self.cached_ssthresh(),
        });
        self.keep_rates(cx.now);
        self.note(cx, change, Cause::Start);
        self.update_pacing_rate();
        let window = (self.cc.windows_buffered(), self.cwnd() / self.mss());
        self.snd.buffer.on_established(self.link.maxseg, self.link.mss, window);
        let scaling = self.link.snd_scale.is_some();
        self.rcv.window.on_established(cx.now, scaling, self.link.maxseg, self.link.mss);
        cx.emit(|| Event::Connected);
        self.emit_window(cx, Cause::Start);
        self.rearm_keepalive(cx);
        self.signal(Signal::Connected);
        self.call_output();
    }
}
