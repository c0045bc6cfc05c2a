//! One side of a connection: its state and the doors through which the world reaches it.

use core::hint::cold_path;
use std::collections::VecDeque;

use cc::{AnyController, Change, Controller, Growth};
use machine::{Cx, Signal};
use packet::{Dir, Segment, SynLayout};
use record::{Cause, Event, Purpose, Recorder, Sender as _, SenderState, Waiting};
use recovery::apart::Apart;
use recovery::{RttEstimator, RttFreeBsd, RttLinux, RttRack, RttRfc};
use units::{Bytes, Duration, Instant, Offset, SeqNum, unlikely};

use crate::ack_policy::AckPolicy;
use crate::challenge::Challenge;
use crate::clock::KernelClock;
pub use crate::config::{Config, Side};
use crate::config::{Kept, Origin};
use crate::ecn::Ecn;
use crate::loss::Repair;
use crate::output::Train;
use crate::profile::{BurstRule, Family, RtoRule};
use crate::receive_window::ReceiveWindow;
use crate::state::{Agreed, Receive, Send};
use crate::timers::Timers;

/// States of RFC 9293 section 3.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum State {
    /// No connection.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has answered a SYN.
    SynReceived,
    /// Open both ways.
    Established,
    /// Has closed; the FIN is not acknowledged.
    FinWait1,
    /// Has closed; the peer has not.
    FinWait2,
    /// Both closed at once; the FIN is not acknowledged.
    Closing,
    /// Both have closed; old segments may still come.
    TimeWait,
    /// The peer has closed.
    CloseWait,
    /// The peer had closed, then this side; the FIN is not acknowledged.
    LastAck,
}

/// What a connection has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct Totals {
    /// Data packets sent, those sent again included.
    pub data_packets: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// Fast recoveries entered.
    pub fast_recoveries: u64,
    /// Times the retransmission timer fired.
    pub timeouts: u64,
    /// Recoveries and timeouts that proved spurious and were undone.
    pub spurious: u64,
    /// Largest congestion window.
    pub max_cwnd: Bytes,
    /// Least round trip measured, in the granularity of the stack.
    pub min_rtt: Option<Duration>,
}

/// One side of a TCP connection.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub struct Endpoint {
    pub(crate) cfg: Kept,
    /// Until it is established.
    #[serde(skip)]
    pub(crate) origin: Option<Box<Origin>>,
    pub(crate) clock: KernelClock,
    pub(crate) state: State,
    pub(crate) cc: AnyController,
    pub(crate) rtt: RttEstimator,
    pub(crate) timers: Timers,
    pub(crate) signals: u8,
    pub(crate) totals: Totals,
    pub(crate) link: Agreed,
    pub(crate) ecn: Ecn,
    pub(crate) challenge: Apart<Challenge>,
    /// A reset that is due: its sequence number and what it acknowledges, if anything.
    pub(crate) reset: Option<(SeqNum, Option<SeqNum>)>,
    pub(crate) snd: Send,
    pub(crate) rcv: Receive,
    /// Segments that were sent while an acknowledgment was being processed.
    #[serde(skip)]
    #[expect(
        clippy::box_collection,
        reason = "8 bytes of every endpoint in place of 32: seldom used"
    )]
    pub(crate) outbox: Option<Box<VecDeque<Segment>>>,
}

impl Endpoint {
    /// An endpoint that has not begun: a client opens with [`Endpoint::open`], a server listens.
    pub fn new(cfg: Config) -> Self {
        let profile = &cfg.profile;
        let mss = profile.mtu - cfg.ip.header_len() - 20;
        let clock = KernelClock::new(profile.hz, cfg.clock_phase, cfg.timestamp)
            .with_timestamps_by_ticks(profile.timestamps_by_ticks);
        let rtt = match profile.rto {
            RtoRule::FreeBsd => RttFreeBsd::new(profile.hz).into(),
            RtoRule::Rack(bounds) => RttRack::new(bounds).into(),
            RtoRule::Linux => RttLinux::new(profile.hz).into(),
            RtoRule::Rfc => RttRfc::new().into(),
        };
        let cc = profile.build(cfg.algorithm, &cfg.draws);
        let state = match cfg.side {
            Side::Client => State::Closed,
            Side::Server => State::Listen,
        };
        let window = ReceiveWindow::new(profile.receive_buffer, profile.window_scaling, mss);
        Self {
            clock,
            state,
            cc,
            rtt,
            timers: Timers::default(),
            signals: 0,
            totals: Totals::default(),
            link: Agreed { maxseg: mss, mss, timestamps: false, sack: false, snd_scale: None },
            ecn: Ecn::new(profile.ecn),
            challenge: Apart::default(),
            reset: None,
            snd: Send::new(&cfg),
            rcv: Receive::new(window, AckPolicy::new(profile)),
            outbox: None,
            cfg: Kept {
                profile: cfg.profile,
                flow: cfg.flow,
                isn: cfg.isn,
                side: cfg.side,
                ip: cfg.ip,
                tso: cfg.tso,
                nodelay: cfg.nodelay,
                keepalive: cfg.keepalive.map(Box::new),
            },
            origin: Some(Box::new(Origin {
                algorithm: cfg.algorithm,
                timestamp: cfg.timestamp,
                draws: cfg.draws,
            })),
        }
    }

    /// Forgets all that it has heard; without effect once it was established.
    pub(crate) fn begin_anew(&mut self) {
        if let Some(config) = self.config() {
            *self = Self::new(config);
        }
    }

    /// Takes other first numbers; without effect once it has begun.
    pub fn renumber(&mut self, isn: SeqNum, timestamp: u32) {
        if matches!(self.state, State::Closed | State::Listen)
            && let Some(config) = self.config()
        {
            *self = Self::new(Config { isn, timestamp, ..config });
        }
    }

    /// Opens the connection actively; a listener may too (RFC 9293 section 3.10.1).
    pub fn open(&mut self) {
        if matches!(self.state, State::Closed | State::Listen) {
            self.state = State::SynSent;
            self.call_output();
        }
    }

    /// Hands over up to `bytes`; returns how many were taken. What was not taken is offered again
    /// after [`Signal::Writable`].
    pub fn write<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, bytes: u64) -> u64 {
        if bytes > 0 && self.state == State::Listen && self.cfg.profile.family == Family::Rfc {
            // RFC 9293 section 3.10.2; the kernels refuse it.
            self.open();
        }
        if self.snd.fin || !matches!(self.state, State::Established | State::CloseWait) {
            return 0;
        }
        if self.is_whole() {
            self.ask_application();
        }
        let taken = match self.cfg.profile.burst {
            BurstRule::Linux { min_segments, rtt_log, .. } => {
                let queue = self.write_queue(min_segments, rtt_log);
                self.snd.buffer.write_packets(bytes, queue)
            }
            BurstRule::FreeBsd { .. } | BurstRule::Rfc => self.snd.buffer.write(bytes),
        };
        if taken > 0 {
            cx.emit(|| Event::Wrote { bytes: taken as u32 });
            // sosend_generic looks for room again after tcp_output, which may have enlarged the buffer.
            self.snd.check_space |= matches!(self.snd.repair, Repair::Holes(_));
            self.call_output();
        }
        taken
    }

    /// Takes all bytes that lie ready; returns how many.
    pub fn read<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) -> u64 {
        self.read_up_to(cx, u64::MAX)
    }

    /// Takes what lies ready, but no more than `most` bytes; returns how many.
    #[inline(always)]
    pub fn read_up_to<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, most: u64) -> u64 {
        let bytes = self.rcv.window.unread().min(most);
        if bytes == 0 {
            return 0;
        }
        let reach = || self.rcv.reassembly.reach(self.rcv.nxt);
        if let Some(size) = self.rcv.window.on_read(self.snd.last_heard, bytes, reach) {
            cold_path();
            cx.emit(|| Event::ReceiveBuffer { size: size as u32 });
        }
        let end = self.rcv.fin.map_or(self.rcv.nxt, |fin| self.rcv.nxt.min(fin));
        let upto = Offset(self.payload_offset(end).0 - self.rcv.window.unread());
        cx.emit(|| Event::Read { bytes: bytes as u32, upto });
        let unacked = self.rcv.nxt - self.rcv.acked;
        if unacked > 0 && self.rcv.policy.on_read(self.rcv.pushed, unacked, self.mss()) {
            self.rcv.ack_now = true;
        }
        // FreeBSD calls tcp_output after every read (tcp_usr_rcvd); elsewhere only what is due
        // would come of it.
        self.rcv.delays_ack = false;
        let always = self.cfg.profile.family == Family::FreeBsd;
        if always || self.rcv.ack_now || self.window_update_due() {
            self.call_output();
        }
        bytes
    }

    /// No more bytes follow: a FIN goes out behind the last one.
    pub fn close(&mut self) {
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            // The FIN waits for the acknowledgment of the SYN (TF_NEEDFIN of tcp_usrclosed; Linux
            // since 6.9; RFC 9293 section 3.10.4 would not wait if nothing was written).
            State::SynReceived => {
                self.snd.fin = true;
                return;
            }
            State::Closed | State::Listen | State::SynSent => {
                self.state = State::Closed;
                self.timers.stop_all();
                return;
            }
            _ => return,
        }
        self.snd.fin = true;
        self.call_output();
    }

    /// Gives the connection up at once: unsent bytes are lost and the peer is told with a reset
    /// (a close with `SO_LINGER` of zero).
    pub fn reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let tells = match self.state {
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => true,
            // Nothing is left to be lost (RFC 9293 section 3.10.5, tcp_need_reset of Linux); tcp_drop
            // of FreeBSD tells the peer nevertheless.
            State::Closing | State::LastAck => self.cfg.profile.family == Family::FreeBsd,
            State::Closed | State::Listen | State::SynSent | State::TimeWait => false,
        };
        self.snd.train = Train::NONE;
        if tells {
            self.reset = Some((self.snd.nxt.to_seq(self.cfg.isn), Some(self.rcv_nxt_seq())));
        }
        self.abort(cx);
    }

    /// The path takes IP packets of at most `mtu` bytes (an ICMP "fragmentation needed" for a
    /// segment that is under way): segments become smaller, and what was sent goes again
    /// (RFC 1191 section 6.5; tcp_mtudisc of FreeBSD, tcp_simple_retransmit of Linux).
    pub fn on_path_mtu<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, mtu: u32) {
        let headers = self.cfg.ip.header_len() + 20;
        // RFC 879's least, so that a forged message cannot stop the transfer.
        let maxseg = mtu.max(576).saturating_sub(headers);
        if maxseg >= self.link.maxseg || !self.synchronised() {
            return;
        }
        let options = if self.link.timestamps { 12 } else { 0 };
        self.link.mss = self.link.mss.min(maxseg - options);
        self.link.maxseg = maxseg;
        self.cc.on_mss(self.link.mss, self.link.maxseg);
        if self.snd.max > self.snd.una {
            self.snd.nxt = self.snd.una;
            self.snd.resend_cause = Cause::PathMtu;
            self.call_output();
        }
        self.emit_window(cx, Cause::PathMtu);
    }

    /// When the next deadline is, [`Instant::MAX`] if there is none: less to ask than
    /// [`poll_timeout`](machine::Endpoint::poll_timeout).
    #[inline]
    pub fn next_deadline(&self) -> Instant {
        self.timers.next_at()
    }

    /// The next deadline if it lies before `known`, before which none lay when this was last asked; less
    /// to ask than [`Endpoint::next_deadline`].
    #[inline(always)]
    pub fn deadline_before(&mut self, known: Option<Instant>) -> Option<Instant> {
        self.timers.next_before(known)
    }

    /// State of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Has the peer closed, and has all it sent been read?
    pub fn at_end(&self) -> bool {
        self.rcv.window.unread() == 0 && self.rcv.fin.is_some_and(|fin| self.rcv.nxt > fin)
    }

    /// Counters so far.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Payload bytes acknowledged by the peer.
    pub fn acknowledged(&self) -> Bytes {
        let end = self.data_end();
        Bytes(self.snd.una.min(end).0.saturating_sub(1))
    }

    /// The sender's state as a row.
    pub fn sender_state(&self) -> SenderState {
        self.row()
    }

    /// Has the stack been asked to send, so that polling it may give a segment?
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        self.snd.due || self.reset.is_some() || self.has_sent()
    }

    /// Does anything wait in the outbox?
    #[inline(always)]
    pub(crate) fn has_sent(&self) -> bool {
        self.outbox.as_ref().is_some_and(|sent| !sent.is_empty())
    }

    /// Takes all there is to tell the application, if that is nothing or but [`Signal::Readable`]
    /// and [`Signal::Writable`]: is it anything? `None`: ask
    /// [`poll_signal`](machine::Endpoint::poll_signal).
    #[inline]
    pub fn poll_data_signals(&mut self) -> Option<bool> {
        const DATA: u8 = 1 << Signal::Readable as u8 | 1 << Signal::Writable as u8;
        if self.signals & !DATA != 0 {
            return None;
        }
        Some(core::mem::take(&mut self.signals) != 0)
    }

    /// Asks the stack to send what it may (a call of tcp_output).
    pub(crate) fn call_output(&mut self) {
        self.snd.due = true;
        self.snd.fresh = true;
        self.snd.train = Train::NONE;
    }

    /// Is a FIN to follow the last byte (`tcp_outflags`)?
    pub(crate) const fn fin_wanted(&self) -> bool {
        matches!(self.state, State::FinWait1 | State::Closing | State::LastAck)
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.signals |= 1 << signal as u8;
    }

    /// Are both sides' sequence numbers known?
    pub(crate) const fn synchronised(&self) -> bool {
        !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    /// What we acknowledge, as a header says it.
    pub(crate) fn rcv_nxt_seq(&self) -> SeqNum {
        self.rcv.nxt.to_seq(self.rcv.irs)
    }

    pub(crate) const fn dir(&self) -> Dir {
        match self.cfg.side {
            Side::Client => Dir::Forward,
            Side::Server => Dir::Reverse,
        }
    }

    pub(crate) fn layout(&self) -> SynLayout {
        self.cfg.profile.syn_layout
    }

    /// Payload of a full segment.
    pub(crate) fn mss(&self) -> u64 {
        u64::from(self.link.mss)
    }

    /// Payload of a full segment without options (`t_maxseg`).
    pub(crate) fn maxseg(&self) -> u64 {
        u64::from(self.link.maxseg)
    }

    pub(crate) fn cwnd(&self) -> u64 {
        self.cc.control().window.get()
    }

    /// Behind the last byte the application has handed over.
    pub(crate) fn data_end(&self) -> Offset {
        self.snd.una.max(Offset(1)) + self.snd.buffer.used()
    }

    /// A place in sequence space as an offset of payload.
    pub(crate) const fn payload_offset(&self, at: Offset) -> Offset {
        Offset(at.0.saturating_sub(1))
    }

    /// Sets the retransmission timer anew.
    #[inline(never)]
    pub(crate) fn arm_retransmit(&mut self, now: Instant) {
        self.arm_retransmit_here(now);
    }

    /// The same within what is done with an ordinary acknowledgment.
    #[inline(always)]
    pub(crate) fn arm_retransmit_here(&mut self, now: Instant) {
        self.timers.set_ticks(Purpose::Retransmit, &self.clock, now, self.rtt.rto());
    }

    /// Records what an event did to the window.
    pub(crate) fn note<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, change: Change, cause: Cause) {
        let control = self.cc.control();
        self.totals.max_cwnd = self.totals.max_cwnd.max(control.window);
        let cause = match change {
            Change::None => return,
            Change::Grew(Growth::SlowStart) => Cause::SlowStart,
            Change::Grew(Growth::Avoidance) => Cause::Avoidance,
            Change::SlowStartEnded => Cause::SlowStartExit,
            Change::Undone => Cause::Undone,
            Change::RecoveryEnded => Cause::Recovered,
            Change::Shrank | Change::Collapsed | Change::RecoveryBegan => cause,
        };
        self.emit_window(cx, cause);
    }

    pub(crate) fn emit_window<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, cause: Cause) {
        cx.emit_of(self, || {
            let control = self.cc.control();
            let cwnd = control.window.get().min(u64::from(u32::MAX)) as u32;
            let ssthresh = control.ssthresh.map_or(u32::MAX, |bytes| bytes.get() as u32);
            Event::Window { cwnd, ssthresh, cause }
        });
    }
}

impl machine::Endpoint for Endpoint {
    type Segment = Segment;

    fn handle_segment<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        self.handle_made(cx, || *segment);
    }

    #[inline]
    fn handle_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        while let Some(purpose) = self.timers.take_due(cx.now) {
            self.on_timer(cx, purpose);
        }
    }

    #[inline]
    fn poll_transmit<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), Waiting> {
        if unlikely(self.has_sent())
            && let Some(sent) = self.outbox.as_mut().and_then(|sent| sent.pop_front())
        {
            *slot = sent;
            return Ok(());
        }
        if self.wants_to_send() { self.output(cx, slot) } else { Err(self.snd.waiting) }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<(Instant, Purpose)> {
        self.timers.next()
    }

    #[inline]
    fn poll_signal(&mut self) -> Option<Signal> {
        const ALL: [Signal; 5] = [
            Signal::Connected,
            Signal::Writable,
            Signal::Readable,
            Signal::Closed,
            Signal::Aborted,
        ];
        let signal = *ALL.get(self.signals.trailing_zeros() as usize)?;
        self.signals &= self.signals - 1;
        Some(signal)
    }
}
