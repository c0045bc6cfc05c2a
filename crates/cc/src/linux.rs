//! Common state of Linux's controllers: the congestion fields of `struct tcp_sock`.
//!
//! Sources: tcp_cong.c (tcp_slow_start, tcp_cong_avoid_ai, tcp_reno_undo_cwnd), tcp.h
//! (tcp_is_cwnd_limited, tcp_current_ssthresh, struct tcp_congestion_ops), tcp_output.c
//! (tcp_cwnd_restart), tcp_input.c (tcp_enter_loss, tcp_init_cwnd_reduction,
//! tcp_end_cwnd_reduction, tcp_undo_cwnd_reduction). Kernel 6.18.
//!
//! Windows are counted in packets internally and in bytes at the interface. There is no L limit: an
//! ACK for 45 packets adds 45 in slow start. The kernel's rule that acknowledgments which do not
//! advance `snd_una` grow no window while no reordering was seen (`tcp_may_raise_cwnd`) is applied
//! by the stack, which does not pass them to the controller.

use core::fmt::Debug;

use units::{Bytes, Instant, Offset};

use crate::contract::{
    AckEvent, AckSample, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, Growth, IdleEvent, RecoveryEnd, WindowChange,
    WindowController,
};

/// `TCP_INFINITE_SSTHRESH`: the threshold while unset.
pub(crate) const SSTHRESH_UNSET: u32 = 0x7fff_ffff;
/// `TCP_INIT_CWND`.
const INIT_CWND: u32 = 10;

/// The operations in which Linux's controllers differ (`struct tcp_congestion_ops`).
pub trait LinuxCongestionOps: Clone + Debug {
    /// The inputs that they use ([`DeclaredInputs`]).
    const INPUTS: ControllerInputs;

    /// The connection is established (`init`); the first byte to be sent is `snd_nxt`.
    fn init(&mut self, now: Instant, snd_nxt: Offset) {
        let _ = (now, snd_nxt);
    }

    /// The new threshold, in packets, after a congestion signal (`ssthresh`).
    fn ssthresh(&mut self, snd_cwnd: u32) -> u32;

    /// `acked` packets were delivered in congestion avoidance (`cong_avoid`): returns the number of
    /// packets per increment of the window.
    fn packets_per_growth(&mut self, ticks: u64, snd_cwnd: u32, acked: u32) -> u32;

    /// The retransmission timer fired (`set_state` with TCP_CA_Loss).
    fn on_loss_state(&mut self, now: Instant, snd_nxt: Offset) {
        let _ = (now, snd_nxt);
    }

    /// The first packet is sent after nothing was in flight (`cwnd_event`, CA_EVENT_TX_START).
    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        let _ = (ticks, last_sent);
    }

    /// An RTT was sampled (`pkts_acked`). Returns true if slow start ends with this window.
    fn ends_slow_start(&mut self, sample: &AckSample, snd_cwnd: u32, in_slow_start: bool) -> bool {
        let _ = (sample, snd_cwnd, in_slow_start);
        false
    }
}

/// One of Linux's controllers on one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct LinuxController<O> {
    operations: O,
    mss: u32,
    /// `tcp_init_cwnd`: packets of the initial window.
    initial: u32,
    snd_cwnd: u32,
    snd_cwnd_cnt: u32,
    snd_ssthresh: u32,
    /// `snd_nxt` when the last reduction began.
    high_seq: Offset,
    phase: LinuxCaState,
    prior_cwnd: u32,
    prior_ssthresh: u32,
}

/// Congestion state, as far as it affects the window (`icsk_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
enum LinuxCaState {
    /// Open or Disorder: the window grows.
    Open,
    /// Recovery or CWR: PRR sets the window.
    Reducing,
    /// After a timeout: the window grows.
    Loss,
}

impl<O: LinuxCongestionOps> LinuxController<O> {
    /// A controller that opens with [`on_established`](Controller::on_established).
    pub const fn with(operations: O) -> Self {
        Self {
            operations,
            mss: 1,
            initial: INIT_CWND,
            snd_cwnd: INIT_CWND,
            snd_cwnd_cnt: 0,
            snd_ssthresh: SSTHRESH_UNSET,
            high_seq: Offset(0),
            phase: LinuxCaState::Open,
            prior_cwnd: 0,
            prior_ssthresh: 0,
        }
    }

    /// The same with an initial window of this many packets (`RTAX_INITCWND` of the route).
    #[must_use]
    pub const fn beginning_at(mut self, packets: u32) -> Self {
        self.initial = packets;
        self.snd_cwnd = packets;
        self
    }

    /// The algorithm's own state.
    pub const fn operations(&self) -> &O {
        &self.operations
    }

    /// `snd_cwnd` in packets.
    pub const fn snd_cwnd(&self) -> u32 {
        self.snd_cwnd
    }

    /// `snd_cwnd_cnt`: packets counted towards the next increment in congestion avoidance.
    pub const fn snd_cwnd_cnt(&self) -> u32 {
        self.snd_cwnd_cnt
    }

    /// `snd_ssthresh` in packets; 2,147,483,647 while unset.
    pub const fn snd_ssthresh(&self) -> u32 {
        self.snd_ssthresh
    }

    /// `tcp_is_cwnd_limited`: true if the flight came close enough to the window for it to grow.
    #[inline]
    fn is_cwnd_limited(&self, window_limited: bool, max_packets_out: u32) -> bool {
        window_limited
            || (self.in_slow_start() && u64::from(self.snd_cwnd) < 2 * u64::from(max_packets_out))
    }

    /// `tcp_slow_start`: grows by `acked` up to the threshold; returns the rest.
    fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.snd_cwnd.saturating_add(acked).min(self.snd_ssthresh);
        let left = acked - (cwnd - self.snd_cwnd);
        self.snd_cwnd = cwnd;
        left
    }

    /// `tcp_cong_avoid_ai`: one packet for each `w` packets delivered.
    fn avoidance(&mut self, w: u32, acked: u32) {
        let w = w.max(1);
        if self.snd_cwnd_cnt >= w {
            self.snd_cwnd_cnt = 0;
            self.snd_cwnd = self.snd_cwnd.saturating_add(1);
        }
        self.snd_cwnd_cnt = self.snd_cwnd_cnt.saturating_add(acked);
        if self.snd_cwnd_cnt >= w {
            self.snd_cwnd = self.snd_cwnd.saturating_add(self.snd_cwnd_cnt / w);
            self.snd_cwnd_cnt %= w;
        }
    }

    /// `tcp_current_ssthresh`: three quarters of the window are kept, outside a reduction.
    fn current_ssthresh(&self) -> u32 {
        match self.phase {
            LinuxCaState::Reducing => self.snd_ssthresh,
            LinuxCaState::Open | LinuxCaState::Loss => {
                self.snd_ssthresh.max((self.snd_cwnd >> 1) + (self.snd_cwnd >> 2))
            }
        }
    }

    fn remember(&mut self, high_seq: Offset) {
        self.high_seq = high_seq;
        self.prior_cwnd = self.snd_cwnd;
        self.prior_ssthresh = self.current_ssthresh();
    }

    /// Loss or an ECN echo: reduces the threshold; the stack's PRR sets the window.
    fn enter_reduction(&mut self, event: &CongestionEvent) -> WindowChange {
        if self.phase == LinuxCaState::Reducing {
            return WindowChange::None;
        }
        self.remember(event.snd_max);
        self.snd_cwnd_cnt = 0;
        self.snd_ssthresh = self.operations.ssthresh(self.snd_cwnd);
        self.phase = LinuxCaState::Reducing;
        WindowChange::RecoveryBegan
    }

    /// `tcp_enter_loss`. A flight reduces the threshold once, until `snd_una` reaches
    /// `high_seq`.
    fn enter_loss(&mut self, event: &CongestionEvent, shift: u32) -> WindowChange {
        let already_reduced = self.phase != LinuxCaState::Open && event.th_ack < self.high_seq;
        if !already_reduced || (self.phase == LinuxCaState::Loss && shift == 1) {
            self.remember(event.snd_max);
            self.snd_ssthresh = self.operations.ssthresh(self.snd_cwnd);
        }
        self.high_seq = event.snd_max;
        self.snd_cwnd = 1;
        self.snd_cwnd_cnt = 0;
        self.phase = LinuxCaState::Loss;
        self.operations.on_loss_state(event.now, event.snd_max);
        WindowChange::Collapsed
    }

    /// `tcp_non_congestion_loss_retransmit`: the state without the reduction, and nothing to undo.
    fn enter_mtu_loss(&mut self, event: &CongestionEvent) -> WindowChange {
        self.snd_ssthresh = self.current_ssthresh();
        (self.prior_cwnd, self.prior_ssthresh) = (0, 0);
        self.high_seq = event.snd_max;
        self.phase = LinuxCaState::Loss;
        self.operations.on_loss_state(event.now, event.snd_max);
        WindowChange::None
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo(&mut self) -> WindowChange {
        self.snd_cwnd = self.snd_cwnd.max(self.prior_cwnd);
        self.snd_ssthresh = self.snd_ssthresh.max(self.prior_ssthresh);
        self.phase = LinuxCaState::Open;
        WindowChange::Undone
    }
}

impl<O: LinuxCongestionOps> DeclaredInputs for LinuxController<O> {
    const INPUTS: ControllerInputs = O::INPUTS;
}

impl<O: LinuxCongestionOps> Controller for LinuxController<O> {
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        let mut operations = self.operations.clone();
        operations.init(event.now, event.una);
        *self = Self::with(operations).beginning_at(self.initial);
        self.mss = event.mss.max(1);
        self.high_seq = event.una;
        if event.syn_retransmitted {
            self.snd_cwnd = 1;
        }
        if let Some(remembered) = event.ssthresh {
            self.snd_ssthresh = packets(remembered, self.mss).max(2);
        }
        WindowChange::None
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        if self.phase == LinuxCaState::Loss && event.una >= self.high_seq {
            self.phase = LinuxCaState::Open;
        }
        let limited = self.is_cwnd_limited(event.window_limited, event.max_packets_out);
        if self.phase == LinuxCaState::Reducing || !limited {
            return WindowChange::None;
        }
        let before = self.snd_cwnd;
        let mut growth = Growth::Avoidance;
        let mut acked = event.packets;
        if self.in_slow_start() {
            growth = Growth::SlowStart;
            acked = self.slow_start(acked);
            if acked == 0 {
                return if self.snd_cwnd > before {
                    WindowChange::Grew(growth)
                } else {
                    WindowChange::None
                };
            }
        }
        let w = self.operations.packets_per_growth(event.ticks, self.snd_cwnd, acked);
        self.avoidance(w, acked);
        if self.snd_cwnd > before { WindowChange::Grew(growth) } else { WindowChange::None }
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        match event.signal {
            CongestionSignal::Loss | CongestionSignal::Ecn => self.enter_reduction(event),
            CongestionSignal::Timeout { shift } => self.enter_loss(event, shift),
            CongestionSignal::SpuriousTimeout | CongestionSignal::SpuriousRecovery => self.undo(),
            CongestionSignal::PathMtu => self.enter_mtu_loss(event),
        }
    }

    fn on_recovered(&mut self, _event: &RecoveryEnd) -> WindowChange {
        if self.phase == LinuxCaState::Reducing {
            self.snd_cwnd = self.snd_ssthresh;
        }
        self.phase = LinuxCaState::Open;
        WindowChange::RecoveryEnded
    }

    /// `tcp_cwnd_restart`: halved for each timeout that has elapsed, not below the initial window.
    fn on_idle(&mut self, event: &IdleEvent) -> WindowChange {
        self.snd_ssthresh = self.current_ssthresh();
        let floor = self.snd_cwnd.min(self.initial);
        let before = self.snd_cwnd;
        let mut left = event.idle;
        while left > event.rto && self.snd_cwnd > floor {
            left = left.saturating_sub(event.rto);
            self.snd_cwnd >>= 1;
        }
        self.snd_cwnd = self.snd_cwnd.max(floor);
        if self.snd_cwnd < before { WindowChange::Shrank } else { WindowChange::None }
    }

    fn on_mss(&mut self, mss: u32, _maxseg: u32) {
        // The window is in packets, which become smaller.
        self.mss = mss.max(1);
    }

    fn control(&self) -> Control {
        let bytes = |packets: u32| Bytes(u64::from(packets) * u64::from(self.mss));
        Control {
            window: bytes(self.snd_cwnd),
            ssthresh: (self.snd_ssthresh != SSTHRESH_UNSET).then_some(bytes(self.snd_ssthresh)),
            pacing: None,
        }
    }

    fn set_window(&mut self, window: Bytes) {
        self.snd_cwnd = packets(window, self.mss);
    }

    fn leave_recovery(&mut self) {
        self.phase = LinuxCaState::Open;
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        self.snd_ssthresh = ssthresh.map_or(SSTHRESH_UNSET, |bytes| packets(bytes, self.mss));
    }

    fn in_recovery(&self) -> bool {
        self.phase == LinuxCaState::Reducing
    }

    #[inline]
    fn in_slow_start(&self) -> bool {
        self.snd_cwnd < self.snd_ssthresh
    }

    fn recovery_point(&self) -> Offset {
        self.high_seq
    }

    #[inline]
    fn ignores_ack(&self, window_limited: bool, max_packets_out: u32) -> bool {
        self.phase == LinuxCaState::Open && !self.is_cwnd_limited(window_limited, max_packets_out)
    }
}

impl<O: LinuxCongestionOps> WindowController for LinuxController<O> {
    fn on_ack_sample(&mut self, sample: &AckSample) -> WindowChange {
        let slow_start = self.in_slow_start();
        if self.operations.ends_slow_start(sample, self.snd_cwnd, slow_start) {
            self.snd_ssthresh = self.snd_cwnd;
            WindowChange::SlowStartEnded
        } else {
            WindowChange::None
        }
    }

    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        self.operations.on_tx_start(ticks, last_sent);
    }
}

/// Whole packets in `window`.
fn packets(window: Bytes, mss: u32) -> u32 {
    u32::try_from(window.get() / u64::from(mss)).unwrap_or(u32::MAX)
}
