//! One connection with a controller in C: Linux's stack around its operations.

mod hooks;

use core::fmt::{self, Debug};

use units::{Bytes, Duration, Instant, Offset, RandomStream};

use super::{
    ACK_ECE, ACK_SLOWPATH, ACK_WIN_UPDATE, AckApplied, CaState, CwndEvent, DRAWS, ECN_OK,
    ENTER_CWR, GUARD, KernelAckSample, KernelLibrary, KernelOp, KernelSock, KernelTraits,
    SSTHRESH_UNSET, StackView,
};
use crate::contract::{CongestionEvent, Growth, WindowChange};
use crate::external::ControllerError;

/// Ticks and time of the kernel when a run starts: not 0, which controllers take for "never".
const TICKS_AT_START: u64 = 1_000_000;
/// See [`TICKS_AT_START`].
const NANOS_AT_START: u64 = 1_000_000_000_000;

/// A connection whose window a library decides, by Linux's rules for the rest.
pub struct KernelController {
    library: &'static dyn KernelLibrary,
    traits: KernelTraits,
    sock: Box<KernelSock>,
    hz: u32,
    /// `tcp_init_cwnd`: packets of the initial window.
    initial: u32,
    draws: RandomStream,
    /// `tp->high_seq`.
    high_seq: Offset,
    /// `snd_una`, as an offset.
    una: Offset,
    now: Instant,
    /// By how many ns the host's clock is ahead of the simulation's, as of the last rate sample.
    clock_ahead: u64,
    /// RTT of the acknowledgment in progress.
    rtt: Option<Duration>,
    /// The last `cong_control` set `tp->app_limited`.
    sends_little: bool,
    /// Error of the library, which is not called after it.
    failure: Option<ControllerError>,
}

impl KernelController {
    /// A controller of `library` on a host with `hz` ticks a second; `draws` is its random stream.
    pub fn new(library: &'static dyn KernelLibrary, hz: u32, draws: RandomStream) -> Self {
        let mut sock = Box::new(KernelSock::empty());
        sock.hz = hz;
        Self {
            library,
            traits: library.traits(),
            sock,
            hz,
            initial: 10,
            draws,
            high_seq: Offset(0),
            una: Offset(0),
            now: Instant::ZERO,
            clock_ahead: 0,
            rtt: None,
            sends_little: false,
            failure: None,
        }
    }

    /// The same with an initial window of this many packets.
    #[must_use]
    pub const fn beginning_at(mut self, packets: u32) -> Self {
        self.initial = packets;
        self
    }

    /// The connection as the library sees it.
    pub const fn sock(&self) -> &KernelSock {
        &self.sock
    }

    /// True if the library sets window and rate itself (`cong_control`).
    #[inline]
    pub const fn sets_rate(&self) -> bool {
        self.traits.has(KernelOp::CongControl)
    }

    /// True if the library needs the stack's delivery rates.
    pub const fn needs_rates(&self) -> bool {
        self.traits.needs_rates
    }

    /// Error of the library, if it failed.
    pub(crate) const fn failure(&self) -> Option<&ControllerError> {
        self.failure.as_ref()
    }

    /// The library has reduced the window by itself since the last call (tcp_enter_cwr).
    #[inline]
    pub(crate) const fn take_cwr_request(&mut self) -> bool {
        let asked = self.sock.requests & ENTER_CWR != 0;
        self.sock.requests = 0;
        asked
    }

    /// Minimum packets of a burst, where the library sets it.
    #[inline]
    pub(crate) fn min_tso_segs(&self) -> Option<u32> {
        self.traits.has(KernelOp::MinTsoSegs).then_some(self.sock.min_tso_segs)
    }

    /// Size of the send buffer in windows, where the library sets it.
    pub(crate) fn sndbuf_expand(&self) -> Option<u64> {
        let sets = self.traits.has(KernelOp::SndbufExpand);
        sets.then_some(u64::from(self.sock.sndbuf_expand))
    }

    /// ECN was negotiated.
    pub(crate) fn set_ecn(&mut self, agreed: bool) {
        self.sock.ecn_flags = if agreed { ECN_OK } else { 0 };
    }

    /// Sets what the stack owns.
    pub(crate) fn view(&mut self, view: &StackView) {
        self.at(view.now, view.ticks);
        self.una = view.una;
        let sock = &mut *self.sock;
        // Sequence numbers and counters wrap, as in the kernel.
        sock.snd_una = view.una.0 as u32;
        sock.snd_nxt = view.snd_nxt.0 as u32;
        sock.snd_wnd = narrow(view.snd_wnd);
        sock.mss_cache = view.mss.max(1);
        sock.packets_out = narrow(view.packets_out);
        sock.sacked_out = narrow(view.sacked_out);
        sock.lost_out = narrow(view.lost_out);
        sock.retrans_out = narrow(view.retrans_out);
        sock.lost = view.lost as u32;
        sock.srtt_us = view.srtt_eighths;
        sock.min_rtt_us =
            view.min_rtt.map_or(u32::MAX, |rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX));
        sock.is_cwnd_limited = u32::from(view.window_limited);
        sock.max_packets_out = narrow(view.max_packets_out);
        sock.lsndtime = view.last_sent.wrapping_add(TICKS_AT_START) as u32;
        if !self.traits.has(KernelOp::CongControl) {
            self.sock.sk_pacing_rate =
                if view.pacing_rate == 0 { u64::MAX } else { view.pacing_rate };
        }
    }

    fn at(&mut self, now: Instant, ticks: u64) {
        self.now = now;
        self.sock.now_ns = now.as_nanos() + NANOS_AT_START;
        self.sock.tcp_mstamp = self.sock.now_ns / 1_000;
        self.sock.tcp_clock_cache = self.sock.now_ns;
        self.sock.jiffies = ticks + TICKS_AT_START;
    }

    fn fail(&mut self, what: &str) {
        let (name, seconds) = (self.library.name(), self.now.as_secs_f64());
        self.failure = Some(ControllerError(format!("{name}: {what} at {seconds:.6} s")));
        self.sock.snd_cwnd = self.sock.snd_cwnd.max(1);
        self.sock.guard = GUARD;
    }

    /// Calls an operation, if the library has it and has not failed.
    fn call(&mut self, op: KernelOp, first: u32, second: u32) -> u32 {
        if !self.traits.has(op) || self.failure.is_some() {
            return 0;
        }
        self.sock.arg = [first, second];
        let owned = |sock: &KernelSock| (sock.abi, sock.size, sock.hz, sock.mss_cache, sock.guard);
        let before = owned(&self.sock);
        let result = match self.library.call(op, &mut self.sock) {
            Ok(result) => result,
            Err(ControllerError(what)) => {
                self.fail(&what);
                return 0;
            }
        };
        if self.sock.random_used > 0 {
            self.draw();
        }
        let cwnd = self.sock.snd_cwnd;
        if cwnd == 0 || cwnd >= SSTHRESH_UNSET {
            self.sock.snd_cwnd = 0;
            self.fail(&format!("{} set the window to {cwnd} packets", op.name()));
        } else if owned(&self.sock) != before {
            self.sock.mss_cache = before.3;
            self.fail(&format!("{} wrote into memory that is not its own", op.name()));
        }
        result
    }

    /// Replaces the random numbers that an operation took.
    fn draw(&mut self) {
        let used = (self.sock.random_used as usize).min(DRAWS);
        self.sock.random.rotate_left(used);
        for number in &mut self.sock.random[DRAWS - used..] {
            *number = self.draws.next_u64();
        }
        self.sock.random_used = 0;
    }

    fn event(&mut self, event: CwndEvent) {
        self.call(KernelOp::CwndEvent, event as u32, 0);
    }

    /// `tcp_set_ca_state`.
    fn set_state(&mut self, state: CaState) {
        self.call(KernelOp::SetState, state as u32, 0);
        self.sock.icsk_ca_state = state as u32;
    }

    fn is(&self, state: CaState) -> bool {
        self.sock.icsk_ca_state == state as u32
    }

    fn is_reducing(&self) -> bool {
        self.is(CaState::Cwr) || self.is(CaState::Recovery)
    }

    /// `ssthresh` of the library.
    fn reduce(&mut self) {
        let threshold = self.call(KernelOp::Ssthresh, 0, 0);
        if self.failure.is_some() {
            return;
        }
        if threshold == 0 {
            self.fail("ssthresh returned 0 packets");
            return;
        }
        self.sock.snd_ssthresh = threshold;
    }

    /// `tcp_current_ssthresh`: three quarters of the window are kept, outside a reduction.
    fn current_ssthresh(&self) -> u32 {
        let cwnd = self.sock.snd_cwnd;
        match self.is_reducing() {
            true => self.sock.snd_ssthresh,
            false => self.sock.snd_ssthresh.max((cwnd >> 1) + (cwnd >> 2)),
        }
    }

    fn set_high_seq(&mut self, at: Offset) {
        self.high_seq = at;
        self.sock.high_seq = at.0 as u32;
    }

    /// `tcp_init_cwnd_reduction`.
    fn begin_reduction(&mut self, snd_max: Offset) {
        self.set_high_seq(snd_max);
        self.sock.prior_cwnd = self.sock.snd_cwnd;
        self.sock.snd_cwnd_cnt = 0;
        self.reduce();
    }

    /// `tcp_end_cwnd_reduction`; the window is left at the threshold unless `undone`.
    fn end_reduction(&mut self, undone: bool) {
        if self.sets_rate() {
            return;
        }
        if !undone && self.sock.snd_ssthresh < SSTHRESH_UNSET {
            self.sock.snd_cwnd = self.sock.snd_ssthresh.max(1);
            self.sock.snd_cwnd_stamp = self.sock.jiffies as u32;
        }
        self.event(CwndEvent::CompleteCwr);
    }

    /// Loss or an ECN echo (tcp_enter_recovery, tcp_enter_cwr).
    fn enter_reduction(&mut self, event: &CongestionEvent, state: CaState) -> WindowChange {
        if self.is(CaState::Cwr) && state == CaState::Recovery {
            // The rest of the reduction, with nothing to undo.
            self.sock.prior_ssthresh = 0;
            self.set_state(state);
            return WindowChange::None;
        }
        if self.is_reducing() {
            return WindowChange::None;
        }
        self.sock.prior_ssthresh =
            if state == CaState::Recovery { self.current_ssthresh() } else { 0 };
        self.begin_reduction(event.snd_max);
        self.set_state(state);
        WindowChange::RecoveryBegan
    }

    /// `tcp_enter_loss`. A flight reduces the threshold once, until `snd_una` reaches `high_seq`.
    fn enter_loss(&mut self, event: &CongestionEvent, shift: u32) -> WindowChange {
        self.sock.icsk_retransmits = shift - 1;
        let first = self.sock.icsk_ca_state <= CaState::Disorder as u32
            || event.th_ack >= self.high_seq
            || (self.is(CaState::Loss) && shift == 1);
        if first {
            self.sock.prior_ssthresh = self.current_ssthresh();
            self.sock.prior_cwnd = self.sock.snd_cwnd;
            self.reduce();
            self.event(CwndEvent::Loss);
        }
        self.sock.snd_cwnd = self.sock.packets_in_flight() + 1;
        self.sock.snd_cwnd_cnt = 0;
        self.sock.snd_cwnd_stamp = self.sock.jiffies as u32;
        self.set_state(CaState::Loss);
        self.set_high_seq(event.snd_max);
        self.sock.icsk_retransmits = shift;
        WindowChange::Collapsed
    }

    /// `tcp_non_congestion_loss_retransmit`: the state without the reduction, and nothing to undo.
    fn enter_mtu_loss(&mut self, event: &CongestionEvent) -> WindowChange {
        if !self.is(CaState::Loss) {
            self.sock.snd_ssthresh = self.current_ssthresh();
            self.sock.prior_ssthresh = 0;
            self.set_high_seq(event.snd_max);
            self.set_state(CaState::Loss);
        }
        WindowChange::None
    }

    /// `tcp_undo_cwnd_reduction`, and the state after it.
    fn undo(&mut self, event: &CongestionEvent) -> WindowChange {
        if self.sock.prior_ssthresh != 0 {
            let window = match self.traits.has(KernelOp::UndoCwnd) {
                true => self.call(KernelOp::UndoCwnd, 0, 0),
                false => self.sock.snd_cwnd.max(self.sock.prior_cwnd),
            };
            if window == 0 && self.failure.is_none() {
                self.fail("undo_cwnd returned 0 packets");
            }
            self.sock.snd_cwnd = window.max(1);
            self.sock.snd_ssthresh = self.sock.snd_ssthresh.max(self.sock.prior_ssthresh);
        }
        self.sock.snd_cwnd_stamp = self.sock.jiffies as u32;
        let (recovering, complete) =
            (self.is(CaState::Recovery), self.una.max(event.th_ack) >= self.high_seq);
        if self.sock.icsk_ca_state > CaState::Disorder as u32 {
            self.set_state(CaState::Open);
        }
        if recovering && complete {
            self.end_reduction(true);
        }
        WindowChange::Undone
    }

    /// The state outside of recoveries: does the queue have SACKed, lost or retransmitted packets
    /// (tcp_try_keep_open)?
    pub(crate) fn on_order(&mut self) {
        self.leave_loss();
        let sock = &self.sock;
        let disorder = sock.sacked_out + sock.lost_out + sock.retrans_out > 0;
        let state = if disorder { CaState::Disorder } else { CaState::Open };
        if sock.icsk_ca_state <= CaState::Disorder as u32 && !self.is(state) {
            self.set_state(state);
            self.sock.high_seq = self.sock.snd_nxt;
        }
    }

    /// The flight of a timeout is repaired.
    fn leave_loss(&mut self) {
        if self.is(CaState::Loss) && self.una >= self.high_seq {
            self.set_state(CaState::Open);
        }
    }

    /// The end of tcp_clean_rtx_queue.
    pub(crate) fn on_ack_applied(&mut self, ack: &AckApplied) -> WindowChange {
        let rtt = self.rtt.take();
        let sock = &mut *self.sock;
        sock.delivered = sock.delivered.wrapping_add(ack.delivered);
        if ack.ece {
            sock.delivered_ce = sock.delivered_ce.wrapping_add(ack.delivered);
        }
        if ack.delivered > 0 {
            sock.delivered_mstamp = (sock.now_ns + self.clock_ahead) / 1_000;
        }
        if let Some((value, echo)) = ack.timestamps {
            (sock.rcv_tsval, sock.rcv_tsecr, sock.saw_tstamp) = (value, echo, 1);
        }
        let was_in_slow_start = sock.snd_cwnd < sock.snd_ssthresh;
        if self.traits.has(KernelOp::PktsAcked) {
            let micros = |rtt: Duration| i32::try_from(rtt.as_micros()).unwrap_or(i32::MAX);
            let flight =
                ack.prior_delivered.map_or(0, |prior| sock.delivered.wrapping_sub(prior as u32));
            sock.ack_sample = KernelAckSample {
                pkts_acked: ack.acked,
                rtt_us: rtt.map_or(-1, micros),
                in_flight: flight.wrapping_mul(sock.mss_cache),
                reserved: 0,
            };
            self.call(KernelOp::PktsAcked, 0, 0);
        }
        if self.traits.has(KernelOp::InAckEvent) {
            let flag = |set: bool, flag: u32| if set { flag } else { 0 };
            let flags = flag(ack.updates_window, ACK_WIN_UPDATE)
                | flag(ack.slow_path, ACK_SLOWPATH)
                | flag(ack.ece, ACK_ECE);
            self.call(KernelOp::InAckEvent, flags, 0);
        }
        if was_in_slow_start && self.sock.snd_cwnd >= self.sock.snd_ssthresh {
            WindowChange::SlowStartEnded
        } else {
            WindowChange::None
        }
    }

    fn change_since(&self, before: u32) -> WindowChange {
        match self.sock.snd_cwnd {
            cwnd if cwnd > before && before < self.sock.snd_ssthresh => {
                WindowChange::Grew(Growth::SlowStart)
            }
            cwnd if cwnd > before => WindowChange::Grew(Growth::Avoidance),
            cwnd if cwnd < before => WindowChange::Shrank,
            _ => WindowChange::None,
        }
    }
}

#[cfg(test)]
impl KernelController {
    /// Lets the private state point to a word of the arena.
    pub(super) fn point_into_arena(&mut self, word: usize) {
        self.sock.icsk_ca_priv[0] = core::ptr::from_ref(&self.sock.arena[word]).addr() as u64;
    }

    /// The word that the private state points to.
    pub(super) fn arena_word_pointed_to(&self) -> Option<usize> {
        let at = self.sock.icsk_ca_priv[0];
        self.sock.arena.iter().position(|word| core::ptr::from_ref(word).addr() as u64 == at)
    }
}

/// A copy has memory of its own: pointers into the arena follow it.
impl Clone for KernelController {
    fn clone(&self) -> Self {
        let mut sock = self.sock.clone();
        let from = core::ptr::from_ref(&self.sock.arena).addr() as u64;
        let to = core::ptr::from_ref(&sock.arena).addr() as u64;
        let end = from + size_of_val(&sock.arena) as u64;
        let KernelSock { icsk_ca_priv, arena, .. } = &mut *sock;
        for word in icsk_ca_priv.iter_mut().chain(arena) {
            if (from..end).contains(word) {
                *word = *word - from + to;
            }
        }
        Self { sock, draws: self.draws.clone(), failure: self.failure.clone(), ..*self }
    }
}

impl Drop for KernelController {
    fn drop(&mut self) {
        self.call(KernelOp::Release, 0, 0);
    }
}

impl Debug for KernelController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cwnd = self.sock.snd_cwnd;
        f.debug_struct("Kernel").field("by", &self.library.name()).field("cwnd", &cwnd).finish()
    }
}

/// Compares the library and the state.
impl PartialEq for KernelController {
    fn eq(&self, other: &Self) -> bool {
        self.library.name() == other.library.name() && self.sock == other.sock
    }
}

impl Eq for KernelController {}

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Whole packets in `window`.
fn packets(window: Bytes, mss: u32) -> u32 {
    narrow(window.get() / u64::from(mss))
}
