//! One side of a connection: its state and its public interface.

use std::collections::VecDeque;

use cc::{Controller, Growth, WindowChange};
use machine::{Cx, Signal};
use packet::{Dir, Segment, SynLayout};
use record::{Cause, Event, Purpose, Recorder, SendLimit, Sender as _, SenderState};
use recovery::lazy::LazyBox;
use units::{Bytes, Instant, Offset, SeqNum, unlikely};

use crate::ack_policy::DelayedAckPolicy;
use crate::challenge::Challenge;
use crate::clock::KernelClock;
use crate::config::{ConnectionConfig, HandshakeConfig};
pub use crate::config::{TcpConfig, TcpSide};
use crate::connection::{Connection, NegotiatedOptions};
use crate::fast_open::state::FastOpenHandshake;
use crate::output::call::PacketBatch;
use crate::profile::AfterRead;
use crate::receive_side::ReceiveSide;
use crate::receive_window::ReceiveWindow;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::tcp_state::TcpState;
use crate::timers::Timers;
pub use crate::totals::TcpTotals;

/// One side of a TCP connection.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub struct TcpEndpoint {
    pub(crate) conn: Connection,
    pub(crate) timers: Timers,
    pub(crate) challenge: LazyBox<Challenge>,
    /// Pending RST: its sequence number and its acknowledgment number, if it has one.
    pub(crate) reset: Option<(SeqNum, Option<SeqNum>)>,
    pub(crate) snd: SendSide,
    pub(crate) rcv: ReceiveSide,
    /// Segments sent while an acknowledgment was being processed, not polled yet.
    #[serde(skip)]
    #[expect(
        clippy::box_collection,
        reason = "8 bytes of every endpoint in place of 32: seldom used"
    )]
    pub(crate) outbox: Option<Box<VecDeque<Segment>>>,
}

impl TcpEndpoint {
    /// Creates a closed client, to be opened with [`TcpEndpoint::open`], or a listening server.
    pub fn new(cfg: TcpConfig) -> Self {
        let profile = &cfg.profile;
        let mss = profile.mtu - cfg.ip.header_len() - 20;
        let clock = KernelClock::new(profile.hz, cfg.clock_phase, cfg.timestamp)
            .with_timestamps_by_ticks(profile.timestamps_by_ticks)
            .with_wheel(profile.rules.sending.timer_wheel)
            .with_step(profile.clock_step);
        let state = match cfg.side {
            TcpSide::Client => TcpState::Closed,
            TcpSide::Server => TcpState::Listen,
        };
        let window = ReceiveWindow::new(profile.receive_buffer, profile.window_scaling, mss);
        let mut timers = Timers::default();
        if let Some(device) = clock.device(profile.recorder) {
            timers.expire_by(device);
        }
        Self {
            timers,
            challenge: LazyBox::default(),
            reset: None,
            snd: SendSide::new(&cfg),
            rcv: ReceiveSide::new(window, DelayedAckPolicy::new(profile)),
            outbox: None,
            conn: Connection {
                clock,
                state,
                negotiated: NegotiatedOptions {
                    maxseg: mss,
                    mss,
                    timestamps: false,
                    sack: false,
                    snd_scale: None,
                },
                handshake_cfg: Some(Box::new(HandshakeConfig {
                    algorithm: cfg.algorithm,
                    timestamp: cfg.timestamp,
                    draws: cfg.draws,
                    opened: None,
                    answered: None,
                    syn_acks_again: 0,
                    fast_open: FastOpenHandshake::default(),
                })),
                cfg: ConnectionConfig {
                    profile: cfg.profile,
                    flow: cfg.flow,
                    isn: cfg.isn,
                    side: cfg.side,
                    ip: cfg.ip,
                    tso: cfg.tso,
                    nodelay: cfg.nodelay,
                    keepalive: cfg.keepalive.map(Box::new),
                },
            },
        }
    }

    /// Returns to the initial state; no effect once the connection has been established.
    pub(crate) fn begin_anew(&mut self) {
        if let Some(config) = self.conn.config() {
            let fast_open = self.conn.fast_open_listener();
            *self = Self::new(config);
            self.set_fast_open(fast_open);
        }
    }

    /// Sets the initial sequence number and timestamp; no effect once a SYN was sent or received.
    pub fn renumber(&mut self, isn: SeqNum, timestamp: u32) {
        if matches!(self.conn.state, TcpState::Closed | TcpState::Listen)
            && let Some(config) = self.conn.config()
        {
            *self = Self::new(TcpConfig { isn, timestamp, ..config });
        }
    }

    /// Which side of the connection it is.
    pub const fn side(&self) -> TcpSide {
        self.conn.cfg.side
    }

    /// The next sequence number expected from the peer.
    pub fn next_expected(&self) -> SeqNum {
        self.rcv.rcv_nxt_seq()
    }

    /// Is pacing all that is due, with a timer that expires after the packets of its instant have arrived?
    pub fn only_paces(&self, now: Instant) -> bool {
        let next = self.timers.next().filter(|_| self.conn.clock.is_exact());
        self.conn.cfg.profile.rules.sending.paces_after_arrivals
            && next.is_some_and(|(at, purpose)| at <= now && purpose == Purpose::Pacing)
    }

    /// When a process of the recorder next reads the state of the connection, where the machine's timers are modelled.
    pub fn recorded_at(&self) -> Option<Instant> {
        self.timers.recorded_at()
    }

    /// The next deadline, [`Instant::MAX`] if there is none; cheaper than
    /// [`poll_timeout`](machine::Endpoint::poll_timeout).
    #[inline]
    pub fn next_deadline(&self) -> Instant {
        self.timers.next_at()
    }

    /// The next deadline if it is before `known`, the earliest deadline at the last call; cheaper
    /// than [`TcpEndpoint::next_deadline`].
    #[inline(always)]
    pub fn deadline_before(&mut self, known: Option<Instant>) -> Option<Instant> {
        self.timers.next_before(known)
    }

    /// State of the connection.
    pub const fn state(&self) -> TcpState {
        self.conn.state
    }

    /// Has the peer closed, and has the application read all data?
    pub fn at_end(&self) -> bool {
        self.rcv.window.unread() == 0 && self.rcv.fin.is_some_and(|fin| self.rcv.nxt > fin)
    }

    /// Has the peer closed, whether or not the application has read everything
    /// (`RCV_SHUTDOWN`)?
    pub fn peer_has_closed(&self) -> bool {
        self.rcv.fin.is_some_and(|fin| self.rcv.nxt > fin)
    }

    /// Is an acknowledgment that a read causes sent before the read returns, as in Linux
    /// (tcp_cleanup_rbuf)? Whatever the application writes next then follows it.
    pub fn acknowledges_in_read(&self) -> bool {
        self.conn.cfg.profile.rules.receiving.after_read == AfterRead::Cleanup
    }

    /// Counters so far.
    pub fn totals(&self) -> &TcpTotals {
        &self.snd.totals
    }

    /// Payload bytes acknowledged by the peer.
    pub fn acknowledged(&self) -> Bytes {
        let end = self.snd.data_end();
        Bytes(self.snd.una.min(end).0.saturating_sub(1))
    }

    /// A snapshot of the sender's state.
    pub fn sender_state(&self) -> SenderState {
        self.snd.with(&self.conn).snapshot()
    }

    /// Is an output pass pending, so that polling may return a segment?
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        self.snd.call.due || self.reset.is_some() || self.has_outbox()
    }

    /// Does the outbox hold segments?
    #[inline(always)]
    pub(crate) fn has_outbox(&self) -> bool {
        self.outbox.as_ref().is_some_and(|sent| !sent.is_empty())
    }

    /// Takes the pending signals if they are at most [`Signal::Readable`] and [`Signal::Writable`],
    /// and returns whether there were any; `None` if others are pending: use
    /// [`poll_signal`](machine::Endpoint::poll_signal).
    #[inline]
    pub fn poll_data_signals(&mut self) -> Option<bool> {
        const DATA: u8 = 1 << Signal::Readable as u8 | 1 << Signal::Writable as u8;
        if self.snd.call.signals & !DATA != 0 {
            return None;
        }
        Some(core::mem::take(&mut self.snd.call.signals) != 0)
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.snd.call.signal(signal);
    }
}

impl Sender {
    /// Requests an output pass (a call of tcp_output).
    pub(crate) fn call_output(&mut self) {
        self.call.due = true;
        self.call.first_pass = true;
        self.call.write = None;
        self.call.nagle_off = false;
        self.call.batch = PacketBatch::NONE;
    }

    pub(crate) fn cwnd(&self) -> u64 {
        self.cc.control().window.get()
    }

    /// The offset after the last byte that the application has written.
    pub(crate) fn data_end(&self) -> Offset {
        self.una.max(Offset(1)) + self.buffer.used()
    }

    /// Restarts the retransmission timer.
    pub(crate) fn arm_retransmit(&mut self, conn: &Connection, timers: &mut Timers, now: Instant) {
        self.arm_retransmit_inline(conn, timers, now);
    }

    /// [`SendSide::arm_retransmit`], inlined into the fast path of acknowledgments.
    #[inline(always)]
    pub(crate) fn arm_retransmit_inline(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) {
        let span = self.rtt.estimator.rto() + self.pacing_delay(conn, now);
        timers.set_ticks(Purpose::Retransmit, &conn.clock, now, span);
    }

    /// Records a change of the congestion window.
    pub(crate) fn note<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        change: WindowChange,
        cause: Cause,
    ) {
        let control = self.cc.control();
        self.totals.max_cwnd = self.totals.max_cwnd.max(control.window);
        let cause = match change {
            WindowChange::None => return,
            WindowChange::Grew(Growth::SlowStart) => Cause::SlowStart,
            WindowChange::Grew(Growth::Avoidance) => Cause::Avoidance,
            WindowChange::SlowStartEnded => Cause::SlowStartExit,
            WindowChange::Undone => Cause::Undone,
            WindowChange::RecoveryEnded => Cause::Recovered,
            WindowChange::Shrank | WindowChange::Collapsed | WindowChange::RecoveryBegan => cause,
        };
        self.emit_window(conn, cx, cause);
    }

    pub(crate) fn emit_window<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        cause: Cause,
    ) {
        cx.emit_with_state(&self.with(conn), || {
            let control = self.cc.control();
            let cwnd = control.window.get().min(u64::from(u32::MAX)) as u32;
            let ssthresh = control.ssthresh.map_or(u32::MAX, |bytes| bytes.get() as u32);
            Event::Window { cwnd, ssthresh, cause }
        });
    }
}

impl ReceiveSide {
    /// Acknowledgment number of the next segment.
    pub(crate) fn rcv_nxt_seq(&self) -> SeqNum {
        self.nxt.to_seq(self.irs)
    }
}

impl Connection {
    /// Is a FIN to follow the last byte (`tcp_outflags`)?
    pub(crate) const fn fin_wanted(&self) -> bool {
        matches!(self.state, TcpState::FinWait1 | TcpState::Closing | TcpState::LastAck)
    }

    /// Are both sides' sequence numbers synchronised?
    pub(crate) const fn synchronised(&self) -> bool {
        !matches!(
            self.state,
            TcpState::Closed | TcpState::Listen | TcpState::SynSent | TcpState::SynReceived
        )
    }

    pub(crate) const fn dir(&self) -> Dir {
        match self.cfg.side {
            TcpSide::Client => Dir::Forward,
            TcpSide::Server => Dir::Reverse,
        }
    }

    pub(crate) fn layout(&self) -> SynLayout {
        self.cfg.profile.syn_layout
    }

    /// Payload of a full segment.
    pub(crate) fn mss(&self) -> u64 {
        u64::from(self.negotiated.mss)
    }

    /// Payload of a full segment without options (`t_maxseg`).
    pub(crate) fn maxseg(&self) -> u64 {
        u64::from(self.negotiated.maxseg)
    }

    /// Converts an offset in sequence space to a payload offset.
    pub(crate) const fn payload_offset(&self, at: Offset) -> Offset {
        Offset(at.0.saturating_sub(1))
    }
}

impl machine::Endpoint for TcpEndpoint {
    type Segment = Segment;

    fn handle_segment<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        self.handle_segment_with(cx, || *segment);
    }

    #[inline]
    fn handle_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if unlikely(!self.conn.clock.is_exact()) {
            self.timers.begin_event(cx.now, false);
        }
        while let Some(purpose) = self.timers.take_due(cx.now) {
            if !matches!(purpose, Purpose::Pacing | Purpose::TimeWait) {
                self.conn.clock.note_fired(cx.now);
            }
            let exact = cx.now;
            cx.now = self.conn.clock.read(exact);
            self.on_timer(cx, purpose);
            cx.now = exact;
        }
    }

    #[inline]
    fn poll_transmit<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        if unlikely(self.has_outbox())
            && let Some(sent) = self.outbox.as_mut().and_then(|sent| sent.pop_front())
        {
            *slot = sent;
            if unlikely(!self.conn.clock.is_exact()) {
                self.timers.note_sent(cx.now);
            }
            return Ok(());
        }
        if !self.wants_to_send() {
            return Err(self.snd.call.waiting);
        }
        let exact = cx.now;
        cx.now = self.conn.clock.read(exact);
        let sent = self.output(cx, slot);
        cx.now = exact;
        if unlikely(!self.conn.clock.is_exact()) && sent.is_ok() {
            self.timers.note_sent(exact);
        }
        sent
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
        let signal = *ALL.get(self.snd.call.signals.trailing_zeros() as usize)?;
        self.snd.call.signals &= self.snd.call.signals - 1;
        Some(signal)
    }
}
