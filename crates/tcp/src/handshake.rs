//! Opening a connection (RFC 9293 section 3.5, RFC 7323, RFC 2018).

use std::collections::VecDeque;

use cc::{ConnectionStart, Controller};
use machine::{Cx, Signal};
use packet::{Flags, Options, Segment, SynOptions, Timestamps};
use record::{Cause, Event, Purpose, Recorder, SentKind};
use units::{Bytes, Instant, Offset};

use crate::config::TcpConfig;
use crate::config::TcpSide;
use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::profile::{CrossedSyns, EcnRule};
use crate::receive_side::ReceiveSide;
use crate::receive_window::ReceiveWindow;
use crate::sender::Sender;
use crate::sent::DeliveredPackets;
use crate::stacks::freebsd_rack::syn::take_syn_rtt;
use crate::tcp_state::TcpState;

/// Capacity for the segments that FreeBSD sends during one ACK before `snd_una` advances.
const OUTBOX: usize = 16;

impl TcpEndpoint {
    /// Writes the pending SYN or SYN-ACK into `slot`.
    pub(crate) fn send_syn<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        let answers = self.conn.state == TcpState::SynReceived;
        if !answers && let Some(config) = &mut self.conn.handshake_cfg {
            config.opened.get_or_insert(cx.now);
        }
        let profile = &self.conn.cfg.profile;
        let offers = !answers || self.conn.offers_in_crossed_syn();
        let timestamps = if offers { profile.timestamps } else { self.conn.negotiated.timestamps };
        let sack = if offers { profile.sack } else { self.conn.negotiated.sack };
        let scale = self.rcv.window.offered_scale();
        let scale = scale.filter(|_| offers || self.conn.negotiated.snd_scale.is_some());
        let window = self.rcv.window.syn_field();
        let (fast_open, data) = self.snd.fast_open_syn(&self.conn);
        *slot = Segment {
            flow: self.conn.cfg.flow,
            dir: self.conn.dir(),
            ip: self.conn.cfg.ip,
            flags: if answers {
                Flags::SYN | Flags::ACK | self.snd.ecn.syn_ack_flags()
            } else {
                Flags::SYN | self.snd.syn_ecn_flags(&self.conn)
            },
            seq: self.conn.cfg.isn,
            ack: self.rcv.nxt.to_seq(self.rcv.irs),
            window,
            timestamps: timestamps.then(|| Timestamps {
                val: self.conn.clock.timestamp(cx.now),
                ecr: self.rcv.ts_recent,
            }),
            options: Options::Syn(SynOptions {
                mss: self.snd.own_mss(&self.conn) as u16,
                window_scale: scale,
                sack_permitted: sack,
                layout: self.conn.layout(),
                fast_open,
                ..SynOptions::default()
            }),
            payload: data,
            ..Segment::default()
        };
        if !answers {
            slot.ack = units::SeqNum(0);
        }
        // tcp_synack_rtt_meas: only a SYN-ACK that was sent once is timed, whatever caused the other.
        let again = answers
            && self.snd.max > Offset(0)
            && self.conn.cfg.side == TcpSide::Server
            && self.conn.cfg.profile.rules.opening.counts_syn_acks;
        if answers && let Some(config) = &mut self.conn.handshake_cfg {
            config.answered.get_or_insert(cx.now);
            config.syn_acks_again += u32::from(again);
        }
        // With Fast Open the SYN or what follows the SYN-ACK has data.
        self.snd.nxt = self.snd.nxt.max(Offset(1) + u64::from(data));
        self.snd.max = self.snd.max.max(self.snd.nxt);
        self.snd.last.sent = cx.now;
        self.snd.rtt.timing = (self.snd.rexmt.shift == 0 && !again).then_some((Offset(0), cx.now));
        self.rcv.adv = self.rcv.nxt + self.rcv.window.syn_window();
        self.rcv.acked = self.rcv.nxt;
        if !self.timers.runs(Purpose::Retransmit) {
            self.snd.arm_retransmit(&self.conn, &mut self.timers, cx.now);
        }
        cx.emit(|| Event::Sent { at: Offset(0), len: 0, kind: SentKind::Control });
    }

    /// Handles a SYN at a listener.
    pub(crate) fn on_syn<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let mtu = self.snd.path_mtu(&self.conn);
        self.rcv.take_syn(&mut self.conn, mtu, cx.now, segment);
        // With timestamps negotiated, Linux advertises whole segments of the remaining payload
        // size.
        let deduct = if self.conn.negotiated.timestamps { 12 } else { 0 };
        let profile = &self.conn.cfg.profile;
        self.rcv.window = ReceiveWindow::new(
            profile.receive_buffer,
            profile.window_scaling,
            self.snd.own_mss(&self.conn) - deduct,
        );
        // Linux takes an ECN-capable SYN for a broken one (tcp_ecn_create_request).
        if !self.conn.cfg.profile.rules.opening.ignores_ecn_capable_syn || segment.ecn == 0 {
            self.snd.ecn.on_syn(segment.flags);
        }
        self.conn.state = TcpState::SynReceived;
        self.snd.last.received = cx.now;
        self.snd.call_output();
        if self.conn.fast_open_listener().is_some() {
            self.on_fast_open_syn(cx, segment);
        }
    }

    /// Handles a simultaneous open (RFC 9293 section 3.5, figure 8): the peer's SYN instead of an
    /// answer to ours.
    pub(crate) fn on_simultaneous_syn<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
    ) {
        let mtu = self.snd.path_mtu(&self.conn);
        self.rcv.take_syn(&mut self.conn, mtu, cx.now, segment);
        match (self.conn.cfg.profile.rules.opening.crossed_syns, self.conn.cfg.profile.ecn) {
            (CrossedSyns::TakesRequest, _) => {
                // tcp_ecn_input_syn_sent: our own SYN need not have asked for ECN.
                self.snd.ecn.on_syn(segment.flags);
                // tcp_mss
                self.rcv.window.round_size(self.conn.negotiated.maxseg);
            }
            // tcp_ecn_rcv_syn: both SYNs ask for it.
            (CrossedSyns::RepeatsSyn, EcnRule::Active) => self.snd.ecn.on_syn(segment.flags),
            _ => {}
        }
        self.conn.state = TcpState::SynReceived;
        self.snd.last.received = cx.now;
        self.snd.call_output();
    }

    /// Handles the SYN-ACK to our SYN.
    pub(crate) fn on_syn_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let mtu = self.snd.path_mtu(&self.conn);
        self.rcv.take_syn(&mut self.conn, mtu, cx.now, segment);
        self.snd.ecn.on_syn_ack(segment.flags);
        let (fast, shift) = (self.conn.fast_open_client(), self.snd.rexmt.shift);
        self.on_simultaneous_syn_ack(cx, segment);
        if let Some(fast) = fast {
            self.end_fast_open(cx, segment, fast, shift);
        }
    }

    /// Handles the ACK of our SYN-ACK; its window is scaled.
    pub(crate) fn on_handshake_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let syn = take_syn_rtt(&mut self.snd, &self.conn, cx, segment);
        if syn.is_none() {
            self.snd.take_rtt(&self.conn, cx, segment, Offset(1), &DeliveredPackets::default());
        }
        self.snd.una = Offset(1);
        self.snd.peer.wnd = self.conn.scaled_window(segment);
        self.snd.peer.max_wnd = self.snd.peer.wnd;
        self.snd.peer.wl1 = Offset(1);
        self.snd.peer.wl2 = Offset(1);
        let sent = self.conn.syn_data();
        self.snd.undo_syn_timeout(&self.conn, segment);
        self.establish(cx);
        self.snd.take_syn(syn);
        self.snd.keep_syn_data(&self.conn, &mut self.timers, cx.now, sent);
    }

    /// Processes the acknowledgment in the peer's SYN-ACK; the only step left in a simultaneous
    /// open. A SYN's window is not scaled.
    pub(crate) fn on_simultaneous_syn_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
    ) {
        let syn = take_syn_rtt(&mut self.snd, &self.conn, cx, segment);
        if syn.is_none() {
            self.snd.take_rtt(&self.conn, cx, segment, Offset(1), &DeliveredPackets::default());
        }
        self.snd.una = Offset(1);
        self.snd.peer.wnd = u64::from(segment.window);
        self.snd.peer.max_wnd = self.snd.peer.wnd;
        self.snd.peer.wl2 = Offset(1);
        self.rcv.ack_now = true;
        self.snd.undo_syn_timeout(&self.conn, segment);
        self.establish(cx);
        self.snd.take_syn(syn);
    }

    /// The SYN-ACK after crossed SYNs, which acknowledges all of what was sent.
    pub(crate) fn on_crossed_syn_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
    ) {
        let sent = self.conn.syn_data();
        self.on_simultaneous_syn_ack(cx, segment);
        if self.conn.cfg.profile.rules.opening.crossed_syns == CrossedSyns::RepeatsSyn {
            // In TCP_SYN_RECV of tcp_rcv_state_process this window is scaled.
            self.snd.peer.wnd = self.conn.scaled_window(segment);
            if self.conn.negotiated.sack {
                // tcp_data_queue: the SYN is a byte that had arrived.
                self.rcv.duplicate.0 = Some((Offset(0), Offset(1)));
            }
        }
        if sent.is_some() {
            self.snd.keep_syn_data(&self.conn, &mut self.timers, cx.now, sent);
            let ack = self.snd.max;
            self.on_ack(cx, segment, Offset(0), ack);
        }
    }

    pub(crate) fn establish<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let scaling = self.conn.negotiated.snd_scale.is_some() || self.conn.offers_in_crossed_syn();
        self.conn.state =
            if self.snd.buffer.fin { TcpState::FinWait1 } else { TcpState::Established };
        self.snd.last.received = cx.now;
        self.rcv.policy.on_established(self.conn.clock.tick(cx.now));
        self.timers.stop(Purpose::Retransmit);
        // tcp_init_transfer: after a timeout, answers to repeated SYNs count too.
        let again = self.conn.handshake_cfg.as_ref().map_or(0, |config| config.syn_acks_again);
        let syn_retransmitted = self.snd.rexmt.shift > 0
            && self.snd.rexmt.shift.max(again) > self.conn.cfg.profile.forgiven_syns;
        self.snd.rexmt.shift = 0;
        self.snd.usage.end = self.snd.nxt;
        if self.conn.cfg.profile.mss_within_half_window {
            let mss = self.conn.negotiated.mss;
            let bound = self.snd.bound_to_half_window(u64::from(mss)) as u32;
            self.conn.negotiated.mss = bound.max(self.conn.cfg.profile.min_mss.min(mss));
        }
        let opened = self.conn.handshake_cfg.take().and_then(|config| config.opened);
        self.snd.begin_loss_detection(&self.conn.cfg.profile, self.conn.negotiated.sack);
        if self.snd.stack.sends_within_ack() {
            // Allocated before the transfer, so that the transfer itself allocates nothing.
            self.outbox = Some(Box::new(VecDeque::with_capacity(OUTBOX)));
        }
        self.snd.introduce_controller(&self.conn, cx.now);
        let change = self.snd.sender.cc.on_established(&ConnectionStart {
            now: cx.now,
            ticks: self.conn.clock.tick(cx.now),
            created_ticks: self.conn.clock.tick(opened.unwrap_or(cx.now)),
            una: Offset(1),
            mss: self.conn.negotiated.mss,
            maxseg: self.conn.negotiated.maxseg,
            snd_scale: self.conn.negotiated.snd_scale.unwrap_or(0),
            syn_retransmitted,
            rtt: self.snd.sender.rtt.sample,
            ssthresh: self.snd.sender.cached_ssthresh(&self.conn),
        });
        self.snd.keep_rates(&self.conn, cx.now);
        self.snd.note(&self.conn, cx, change, Cause::Start);
        self.snd.update_pacing_rate(&self.conn);
        let window = (self.snd.windows_buffered(), self.snd.cwnd() / self.conn.mss());
        self.snd.buffer.on_established(
            self.conn.negotiated.maxseg,
            self.conn.negotiated.mss,
            window,
        );
        let advmss = self.snd.advmss(&self.conn);
        self.rcv.window.on_established(cx.now, scaling, self.conn.negotiated.maxseg, advmss);
        cx.emit(|| Event::Connected);
        self.snd.emit_window(&self.conn, cx, Cause::Start);
        self.snd.rearm_keepalive(&self.conn, &mut self.timers, cx);
        self.signal(Signal::Connected);
        self.snd.call_output();
    }
}

impl Sender {
    /// ECN flags of the SYN: later retransmissions do not ask for it (RFC 3168 section 6.1.1.1;
    /// `net.inet.tcp.ecn.maxretries` of FreeBSD, `net.ipv4.tcp_ecn_fallback`, tcp_ecn_clear_syn).
    fn syn_ecn_flags(&self, conn: &Connection) -> Flags {
        let retries = conn.cfg.profile.rules.opening.ecn_retries;
        if self.rexmt.shift > retries { Flags::NONE } else { self.ecn.syn_flags() }
    }

    /// Payload of our largest segment without options.
    fn own_mss(&self, conn: &Connection) -> u32 {
        let mtu = self.rare.syn_mtu.unwrap_or(conn.cfg.profile.mtu);
        mtu - conn.cfg.ip.header_len() - 20
    }

    /// Payload of the largest segment that the peer may send (`advmss`).
    pub(crate) fn advmss(&self, conn: &Connection) -> u32 {
        self.own_mss(conn) - if conn.negotiated.timestamps { 12 } else { 0 }
    }

    /// Linux: forgets the timeouts of the handshake if the answer echoes the timestamp of the first SYN
    /// or SYN-ACK, so that none was right (tcp_try_undo_spurious_syn).
    fn undo_syn_timeout(&mut self, conn: &Connection, segment: &Segment) {
        let first =
            conn.handshake_cfg.as_ref().and_then(|config| config.opened.or(config.answered));
        let echo = segment.timestamps.map(|stamps| stamps.ecr);
        if conn.cfg.profile.rules.opening.undoes_timeouts
            && conn.negotiated.timestamps
            && first.is_some_and(|at| echo == Some(conn.clock.timestamp(at)))
        {
            self.rexmt.shift = 0;
        }
    }

    /// cc_conn_init: the threshold of the host cache, not below two segments. The RACK stack raises
    /// it to the peer's window, so that a connection begins in slow start (rack_cc_conn_init).
    fn cached_ssthresh(&self, conn: &Connection) -> Option<Bytes> {
        let profile = &conn.cfg.profile;
        let cached = Some(profile.cached_ssthresh.get()).filter(|&cached| cached > 0)?;
        let floor = if profile.has_rack() { self.peer.wnd } else { 0 };
        Some(Bytes(cached.max(2 * conn.mss()).max(floor)))
    }
}

impl ReceiveSide {
    /// Takes the initial sequence number and the options from a SYN; `mtu` is that of the path.
    fn take_syn(&mut self, conn: &mut Connection, mtu: u32, now: Instant, segment: &Segment) {
        self.irs = segment.seq;
        self.nxt = Offset(1);
        self.acked = Offset(1);
        if conn.cfg.profile.rules.opening.syn_moves_edge && conn.state == TcpState::SynSent {
            // tcp_rcv_synsent_state_process: `rcv_wup` moves, `rcv_wnd` stays.
            self.adv += 1;
        }
        conn.negotiate(segment, mtu);
        self.ts_recent = segment.timestamps.map_or(0, |stamps| stamps.val);
        self.ts_recent_at = now;
    }
}

impl Connection {
    /// Agrees to the options of the peer's SYN.
    fn negotiate(&mut self, segment: &Segment, mtu: u32) {
        let theirs = segment.syn_options().copied().unwrap_or_default();
        let profile = &self.cfg.profile;
        // RFC 9293 section 3.7.1: 536 without the option; a tiny MSS would make a flood of
        // segments, or none once options are deducted.
        let least = profile.min_mss;
        let their_mss = if theirs.mss == 0 { 536 } else { u32::from(theirs.mss).max(least) };
        self.negotiated.maxseg = (mtu - self.cfg.ip.header_len() - 20).min(their_mss);
        self.negotiated.timestamps = profile.timestamps && segment.timestamps.is_some();
        let deduct = if self.negotiated.timestamps { 12 } else { 0 };
        self.negotiated.mss = self.negotiated.maxseg - deduct;
        self.negotiated.sack = profile.sack && theirs.sack_permitted;
        self.negotiated.snd_scale =
            theirs.window_scale.filter(|_| profile.window_scaling).map(|scale| scale.min(14));
    }

    /// The configuration with its later changes; `None` once the connection is established.
    pub(crate) fn config(&self) -> Option<TcpConfig> {
        let (cfg, origin) = (&self.cfg, self.handshake_cfg.as_ref()?);
        Some(TcpConfig {
            profile: cfg.profile.clone(),
            algorithm: origin.algorithm,
            side: cfg.side,
            flow: cfg.flow,
            ip: cfg.ip,
            isn: cfg.isn,
            timestamp: origin.timestamp,
            clock_phase: self.clock.phase(),
            tso: cfg.tso,
            nodelay: cfg.nodelay,
            keepalive: cfg.keepalive.as_deref().copied(),
            draws: origin.draws.clone(),
        })
    }

    /// Linux: the SYN-ACK after crossed SYNs is the SYN once more (tcp_send_synack), with all its options, and
    /// our windows are scaled whatever the peer offers.
    pub(crate) fn offers_in_crossed_syn(&self) -> bool {
        self.state == TcpState::SynReceived
            && self.cfg.side == TcpSide::Client
            && self.cfg.profile.rules.opening.crossed_syns == CrossedSyns::RepeatsSyn
    }

    /// Is the timestamp that an answer echoes that of a SYN of ours, if it echoes any? Linux answers another with a RST
    /// (`PAWSActiveRejected` of tcp_rcv_synsent_state_process).
    pub(crate) fn echoes_any_syn(&self, now: Instant, segment: &Segment) -> bool {
        let profile = &self.cfg.profile;
        if !profile.rules.opening.checks_echo || !profile.timestamps {
            return true;
        }
        let echo = segment.timestamps.map_or(0, |stamps| stamps.ecr);
        let opened = self.handshake_cfg.as_ref().and_then(|config| config.opened);
        opened.filter(|_| echo != 0).is_none_or(|opened| {
            let first = self.clock.timestamp(opened);
            echo.wrapping_sub(first) <= self.clock.timestamp(now).wrapping_sub(first)
        })
    }

    /// Window of a segment other than a SYN, in bytes.
    pub(crate) fn scaled_window(&self, segment: &Segment) -> u64 {
        u64::from(segment.window) << self.negotiated.snd_scale.unwrap_or(0)
    }
}
