//! Linux's BBR, version 1 (tcp_bbr.c, kernel 6.18; Cardwell, Cheng, Gunn, Yeganeh and Jacobson,
//! "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016), with the kernel's integers.
//!
//! Reading order: this file (the state, and what one acknowledgment does, `bbr_main`),
//! `bandwidth` (the windowed maximum and the rounds it counts in), `long_term` (a policer's rate),
//! `aggregation` (ACKs that come in lumps), `pacing` (rate and burst), `window` (the congestion
//! window); then the phases: `startup`, `drain`, `probe_bw`, `probe_rtt`.
//!
//! Rates are packets per microsecond times 2^24, gains are in 256ths, times whole microseconds.
//! What stays outside: delivery-rate samples are the stack's (tcp_rate.c), and so is the timer that
//! paces. The policer's sampling is not told of timeouts (`bbr_set_state` tells it of one loss).

mod aggregation;
mod bandwidth;
mod drain;
mod long_term;
mod pacing;
mod probe_bw;
mod probe_rtt;
mod startup;
mod window;

use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Instant, Offset, Rate, Stream};

use crate::contract::{
    Acked, Change, Congested, Control, Controller, Established, Growth, Idle, RateSample,
    Recovered, Signal,
};

use aggregation::Aggregation;
use bandwidth::MaxFilter;
use long_term::LongTerm;

/// 1 in units of bandwidth (`BW_UNIT`).
const BW_UNIT: u64 = 1 << 24;
/// 1 in units of gain (`BBR_UNIT`).
const UNIT: u32 = 256;
/// Twice the window of a doubling, 2/ln 2 (`bbr_high_gain`).
const HIGH_GAIN: u32 = UNIT * 2_885 / 1_000 + 1;
/// Its inverse (`bbr_drain_gain`).
const DRAIN_GAIN: u32 = UNIT * 1_000 / 2_885;
/// Gain of the window while bandwidth is probed (`bbr_cwnd_gain`).
const CWND_GAIN: u32 = 2 * UNIT;
/// The window while the round trip is probed (`bbr_cwnd_min_target`).
const MIN_CWND: u32 = 4;
/// `TCP_INIT_CWND`.
const INIT_CWND: u32 = 10;
const SSTHRESH_UNSET: u32 = 0x7fff_ffff;

/// Phase of the control loop (`bbr->mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Mode {
    /// The rate doubles with each round.
    Startup,
    /// The queue that this made is drained.
    Drain,
    /// The rate goes up and down around the bandwidth.
    ProbeBw,
    /// Next to nothing is under way, so that the queue is empty for once.
    ProbeRtt,
}

/// Congestion state, in the kernel's order (`icsk_ca_state`, `prev_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
enum State {
    Open,
    Cwr,
    Recovery,
    Loss,
}

/// BBR, one connection.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Bbr {
    /// Ticks of the kernel clock per second.
    hz: u64,
    draws: Stream,
    mss: u32,
    snd_cwnd: u32,
    snd_ssthresh: u32,
    high_seq: Offset,
    /// The stack's state, and that of the acknowledgment before.
    state: State,
    prev_state: State,
    mode: Mode,
    pacing_gain: u32,
    cwnd_gain: u32,
    /// In bytes per second (`sk_pacing_rate`).
    pacing_rate: u64,
    has_seen_rtt: bool,
    bw: MaxFilter,
    rtt_cnt: u32,
    next_rtt_delivered: u64,
    round_start: bool,
    /// In microseconds; `None` before the first.
    min_rtt: Option<u32>,
    min_rtt_stamp: u64,
    probe_rtt_done_stamp: Option<u64>,
    probe_rtt_round_done: bool,
    prior_cwnd: u32,
    packet_conservation: bool,
    idle_restart: bool,
    full_bw_reached: bool,
    full_bw_cnt: u32,
    full_bw: u64,
    cycle_idx: usize,
    cycle_stamp: Instant,
    long_term: LongTerm,
    aggregation: Aggregation,
}

impl Bbr {
    /// BBR on a kernel with `hz` ticks per second, whose phases are drawn from `draws`.
    pub fn new(hz: u32, draws: Stream) -> Self {
        Self {
            hz: u64::from(hz),
            draws,
            mss: 1,
            snd_cwnd: INIT_CWND,
            snd_ssthresh: SSTHRESH_UNSET,
            high_seq: Offset(0),
            state: State::Open,
            prev_state: State::Open,
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: 0,
            has_seen_rtt: false,
            bw: MaxFilter::new(0),
            rtt_cnt: 0,
            next_rtt_delivered: 0,
            round_start: false,
            min_rtt: None,
            min_rtt_stamp: 0,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0,
            packet_conservation: false,
            idle_restart: false,
            full_bw_reached: false,
            full_bw_cnt: 0,
            full_bw: 0,
            cycle_idx: 0,
            cycle_stamp: Instant::ZERO,
            long_term: LongTerm::new(),
            aggregation: Aggregation::new(Instant::ZERO),
        }
    }

    /// The phase.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Window in packets.
    pub const fn snd_cwnd(&self) -> u32 {
        self.snd_cwnd
    }

    /// `sk_pacing_rate`, in bytes per second.
    pub const fn pacing_rate(&self) -> u64 {
        self.pacing_rate
    }

    /// Largest bandwidth of the last ten rounds, in packets per microsecond times 2^24
    /// (`bbr_max_bw`).
    pub fn max_bw(&self) -> u64 {
        self.bw.get()
    }

    /// Least round trip in microseconds; `None` before the first.
    pub const fn min_rtt_us(&self) -> Option<u32> {
        self.min_rtt
    }

    /// Gains of rate and window, in 256ths.
    pub const fn gains(&self) -> [u32; 2] {
        [self.pacing_gain, self.cwnd_gain]
    }

    /// Rounds so far; whether the bandwidth was found full, and for how many rounds it has not
    /// grown.
    pub const fn rounds(&self) -> (u32, bool, u32) {
        (self.rtt_cnt, self.full_bw_reached, self.full_bw_cnt)
    }

    /// The bandwidth to work with (`bbr_bw`).
    fn bandwidth(&self) -> u64 {
        self.long_term.bw().unwrap_or_else(|| self.max_bw())
    }

    /// `bbr_update_model`.
    fn update_model(&mut self, sample: &RateSample) {
        self.update_bandwidth(sample);
        self.update_aggregation(sample);
        self.update_cycle_phase(sample);
        self.check_full_bandwidth(sample);
        self.check_drain(sample);
        self.update_min_rtt(sample);
        self.update_gains();
    }

    /// The rest of `bbr_main`: what the model makes of rate and window.
    fn apply(&mut self, sample: &RateSample) {
        let bw = self.bandwidth();
        self.set_pacing_rate(sample.srtt_us, bw, self.pacing_gain);
        self.set_cwnd(sample, bw, self.cwnd_gain);
    }

    /// `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.bw().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (probe_bw::GAINS[self.cycle_idx], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// `bbr_save_cwnd`.
    fn save_cwnd(&mut self) {
        self.prior_cwnd = if self.prev_state < State::Recovery && self.mode != Mode::ProbeRtt {
            self.snd_cwnd
        } else {
            self.prior_cwnd.max(self.snd_cwnd)
        };
    }

    /// `tcp_enter_loss`, and `bbr_set_state` with TCP_CA_Loss.
    fn enter_loss(&mut self, event: &Congested, shift: u32) -> Change {
        let lowered = self.state != State::Open && event.th_ack < self.high_seq;
        if !lowered || (self.state == State::Loss && shift == 1) {
            self.save_cwnd();
        }
        self.high_seq = event.snd_max;
        // All that was under way is taken for lost.
        self.snd_cwnd = 1;
        self.state = State::Loss;
        self.prev_state = State::Loss;
        self.full_bw = 0;
        self.round_start = true;
        Change::Collapsed
    }
}

impl Controller for Bbr {
    /// `bbr_init`.
    fn on_established(&mut self, event: &Established) -> Change {
        *self = Self::new(self.hz as u32, self.draws.clone());
        self.mss = event.mss.max(1);
        self.high_seq = event.una;
        if event.syn_retransmitted {
            self.snd_cwnd = 1;
        }
        let rtt = event.rtt.map(|rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX));
        self.min_rtt = rtt;
        self.min_rtt_stamp = event.ticks;
        // The SYN counts as delivered.
        self.next_rtt_delivered = 1;
        self.aggregation = Aggregation::new(event.now);
        self.init_pacing_rate(rtt.unwrap_or(0));
        Change::None
    }

    fn on_acked(&mut self, event: &Acked) -> Change {
        if self.state == State::Loss && event.una >= self.high_seq {
            self.state = State::Open;
        }
        Change::None
    }

    fn on_rate_sample(&mut self, sample: &RateSample) -> Change {
        let before = (self.snd_cwnd, self.mode);
        self.update_model(sample);
        self.apply(sample);
        if before.1 == Mode::Startup && self.mode != Mode::Startup {
            return Change::SlowStartEnded;
        }
        match self.snd_cwnd.cmp(&before.0) {
            core::cmp::Ordering::Greater if self.mode == Mode::Startup => {
                Change::Grew(Growth::SlowStart)
            }
            core::cmp::Ordering::Greater => Change::Grew(Growth::Avoidance),
            core::cmp::Ordering::Less => Change::Shrank,
            core::cmp::Ordering::Equal => Change::None,
        }
    }

    fn on_congested(&mut self, event: &Congested) -> Change {
        match event.signal {
            Signal::Loss | Signal::Ecn if self.state == State::Recovery => Change::None,
            Signal::Loss | Signal::Ecn => {
                // bbr_ssthresh: the window is kept for later, the threshold does not matter. An
                // ECN echo makes no recovery (TCP_CA_CWR), and version 1 does not heed it.
                self.save_cwnd();
                self.high_seq = event.snd_max;
                let loss = event.signal == Signal::Loss;
                self.state = if loss { State::Recovery } else { State::Cwr };
                Change::RecoveryBegan
            }
            Signal::Timeout { shift } => self.enter_loss(event, shift),
            Signal::SpuriousTimeout | Signal::SpuriousRecovery => {
                // bbr_undo_cwnd; the window comes back with the next sample.
                self.full_bw = 0;
                self.full_bw_cnt = 0;
                self.long_term.reset_sampling();
                self.state = State::Open;
                Change::Undone
            }
        }
    }

    fn on_recovered(&mut self, _event: &Recovered) -> Change {
        self.state = State::Open;
        Change::RecoveryEnded
    }

    fn on_idle(&mut self, _event: &Idle) -> Change {
        // tcp_slow_start_after_idle_check leaves those alone that have a cong_control.
        Change::None
    }

    fn on_mss(&mut self, mss: u32, _maxseg: u32) {
        self.mss = mss.max(1);
    }

    fn on_restart(&mut self, now: Instant, ticks: u64, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation = self.aggregation.restarted(now);
        match self.mode {
            // Not faster than the bandwidth: nothing is known of a queue.
            Mode::ProbeBw => {
                let bw = self.bandwidth();
                self.set_pacing_rate(0, bw, UNIT);
            }
            Mode::ProbeRtt => self.check_probe_rtt_done(ticks, now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn control(&self) -> Control {
        let bytes = |packets: u32| Bytes(u64::from(packets) * u64::from(self.mss));
        Control {
            window: bytes(self.snd_cwnd),
            ssthresh: (self.snd_ssthresh != SSTHRESH_UNSET).then_some(bytes(self.snd_ssthresh)),
            pacing: Rate::from_bits_per_second(self.pacing_rate.saturating_mul(8)),
        }
    }

    fn is_whole(&self) -> bool {
        true
    }

    fn min_burst(&self) -> Option<u32> {
        Some(self.min_tso_segs())
    }

    /// `bbr_sndbuf_expand`.
    fn windows_buffered(&self) -> u64 {
        3
    }

    fn set_window(&mut self, window: Bytes) {
        let packets = window.get() / u64::from(self.mss);
        self.snd_cwnd = u32::try_from(packets).unwrap_or(u32::MAX);
    }

    fn leave_recovery(&mut self) {
        self.state = State::Open;
    }

    fn set_threshold(&mut self, _ssthresh: Option<Bytes>) {}

    fn in_recovery(&self) -> bool {
        self.state == State::Recovery
    }

    fn in_slow_start(&self) -> bool {
        self.mode == Mode::Startup
    }

    fn recovery_point(&self) -> Offset {
        self.high_seq
    }
}

/// Microseconds between two moments.
fn micros(from: Instant, to: Instant) -> u64 {
    if to > from { to.since(from).as_nanos() / 1_000 } else { 0 }
}

/// A span in ticks of the kernel's clock, rounded up (`msecs_to_jiffies`).
fn ticks(span: Duration, hz: u64) -> u64 {
    (span.as_millis() * hz).div_ceil(1_000)
}

#[cfg(test)]
mod recordings;
#[cfg(test)]
mod tests;
