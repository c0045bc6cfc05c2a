//! The events of the contract, in the order in which Linux's stack calls the operations.

use units::{Bytes, Instant, Offset, Rate};

use super::super::{CaState, CwndEvent, KernelOp, KernelRateSample, PACING_NEEDED, SSTHRESH_UNSET};
use super::{KernelController, NANOS_AT_START, TICKS_AT_START, packets};
use crate::contract::{
    AckEvent, AckSample, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, IdleEvent, RateController, RateSample, RecoveryEnd,
    WindowChange, WindowController,
};

impl DeclaredInputs for KernelController {
    const INPUTS: ControllerInputs = ControllerInputs { ack_samples: true, srtt: true, view: true };
}

impl Controller for KernelController {
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        if self.traits.hz != 0 && self.traits.hz != self.hz {
            let (built, host) = (self.traits.hz, self.hz);
            self.now = event.now;
            self.fail(&format!(
                "it is compiled for HZ = {built}, the host has {host}; `ackclock cc build --hz {host}` compiles it anew"
            ));
        }
        self.at(event.now, event.ticks);
        self.sock.random = core::array::from_fn(|_| self.draws.next_u64());
        self.sock.random_used = 0;
        self.una = event.una;
        self.set_high_seq(event.una);
        let sock = &mut *self.sock;
        sock.mss_cache = event.mss.max(1);
        sock.snd_cwnd = if event.syn_retransmitted { 1 } else { self.initial };
        if let Some(remembered) = event.ssthresh {
            sock.snd_ssthresh = packets(remembered, sock.mss_cache).max(2);
        }
        // The SYN counts as delivered.
        sock.delivered = 1;
        sock.delivered_mstamp = sock.tcp_mstamp;
        sock.tcp_wstamp_ns = sock.now_ns;
        self.call(KernelOp::Init, 0, 0);
        WindowChange::None
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        self.una = event.una;
        self.leave_loss();
        if self.is_reducing() || self.sets_rate() {
            return WindowChange::None;
        }
        let before = self.sock.snd_cwnd;
        self.call(KernelOp::CongAvoid, event.una.0 as u32, event.packets);
        self.change_since(before)
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        self.at(event.now, event.ticks);
        match event.signal {
            CongestionSignal::Loss => self.enter_reduction(event, CaState::Recovery),
            CongestionSignal::Ecn => self.enter_reduction(event, CaState::Cwr),
            CongestionSignal::Timeout { shift } => self.enter_loss(event, shift.max(1)),
            CongestionSignal::SpuriousTimeout | CongestionSignal::SpuriousRecovery => {
                self.undo(event)
            }
            CongestionSignal::PathMtu => self.enter_mtu_loss(event),
        }
    }

    fn on_recovered(&mut self, _event: &RecoveryEnd) -> WindowChange {
        // tcp_try_undo_recovery sets the state of a recovery before the reduction ends, CWR after it.
        let in_cwr = self.is(CaState::Cwr);
        if !in_cwr {
            self.set_state(CaState::Open);
        }
        self.end_reduction(false);
        if in_cwr {
            self.set_state(CaState::Open);
        }
        WindowChange::RecoveryEnded
    }

    /// `tcp_cwnd_restart`: halved for each timeout that has elapsed, not below the initial window.
    fn on_idle(&mut self, event: &IdleEvent) -> WindowChange {
        if self.sets_rate() {
            return WindowChange::None;
        }
        self.event(CwndEvent::CwndRestart);
        self.sock.snd_ssthresh = self.current_ssthresh();
        let before = self.sock.snd_cwnd;
        let floor = before.min(self.initial);
        let (mut left, mut cwnd) = (event.idle, before);
        while left > event.rto && cwnd > floor {
            left = left.saturating_sub(event.rto);
            cwnd >>= 1;
        }
        self.sock.snd_cwnd = cwnd.max(floor);
        self.sock.snd_cwnd_stamp = self.sock.jiffies as u32;
        self.change_since(before)
    }

    fn on_mss(&mut self, mss: u32, _maxseg: u32) {
        self.sock.mss_cache = mss.max(1);
    }

    fn control(&self) -> Control {
        let sock = &self.sock;
        let bytes = |packets: u32| Bytes(u64::from(packets) * u64::from(sock.mss_cache));
        let paces = self.sets_rate()
            && sock.sk_pacing_status == PACING_NEEDED
            && sock.sk_pacing_rate != u64::MAX;
        Control {
            window: bytes(sock.snd_cwnd),
            ssthresh: (sock.snd_ssthresh < SSTHRESH_UNSET).then_some(bytes(sock.snd_ssthresh)),
            pacing: paces
                .then(|| Rate::from_bits_per_second(sock.sk_pacing_rate.saturating_mul(8)))
                .flatten(),
        }
    }

    fn set_window(&mut self, window: Bytes) {
        self.sock.snd_cwnd = packets(window, self.sock.mss_cache).max(1);
    }

    fn leave_recovery(&mut self) {
        self.set_state(CaState::Open);
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        let mss = self.sock.mss_cache;
        self.sock.snd_ssthresh = ssthresh.map_or(SSTHRESH_UNSET, |bytes| packets(bytes, mss));
    }

    fn in_recovery(&self) -> bool {
        self.is_reducing()
    }

    fn in_slow_start(&self) -> bool {
        self.sock.snd_cwnd < self.sock.snd_ssthresh
    }

    fn recovery_point(&self) -> Offset {
        self.high_seq
    }
}

impl WindowController for KernelController {
    fn on_ack_sample(&mut self, sample: &AckSample) -> WindowChange {
        self.rtt = Some(sample.rtt);
        WindowChange::None
    }

    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        self.sock.jiffies = ticks + TICKS_AT_START;
        self.sock.lsndtime = last_sent.wrapping_add(TICKS_AT_START) as u32;
        if !self.sets_rate() {
            self.event(CwndEvent::TxStart);
        }
    }
}

impl RateController for KernelController {
    fn on_rate_sample(&mut self, sample: &RateSample) -> WindowChange {
        let before = self.sock.snd_cwnd;
        self.clock_ahead = sample.delivered_clock.saturating_sub(sample.delivered_at.as_nanos());
        let sock = &mut *self.sock;
        sock.delivered = sample.delivered as u32;
        sock.delivered_ce = sample.signals.delivered_ce as u32;
        sock.lost = sample.lost as u32;
        sock.delivered_mstamp = (sample.delivered_clock + NANOS_AT_START) / 1_000;
        sock.tcp_wstamp_ns = sock.now_ns + sample.until_next_departure.as_nanos();
        sock.app_limited = 0;
        let rate = sample.rate.as_ref();
        sock.rate_sample = KernelRateSample {
            interval_us: rate.map_or(-1, |rate| i64::from(rate.interval_us)),
            rtt_us: sample.rtt_us.map_or(-1, i64::from),
            prior_delivered: rate.map_or(0, |rate| rate.prior_delivered as u32),
            delivered: rate.map_or(-1, |rate| i32::try_from(rate.delivered).unwrap_or(i32::MAX)),
            losses: i32::try_from(sample.losses).unwrap_or(i32::MAX),
            acked_sacked: sample.acked,
            prior_in_flight: sample.prior_in_flight,
            is_app_limited: u8::from(rate.is_some_and(|rate| rate.app_limited)),
            is_ack_delayed: u8::from(sample.ack_delayed),
            reserved: [0; 2],
        };
        let una = self.sock.snd_una;
        self.call(KernelOp::CongControl, una, 0);
        self.sends_little = self.sock.app_limited != 0;
        self.change_since(before)
    }

    fn on_restart(&mut self, now: Instant, ticks: u64, app_limited: bool) {
        self.at(now, ticks);
        self.sock.app_limited = u32::from(app_limited);
        self.event(CwndEvent::TxStart);
    }

    fn sends_little(&self) -> bool {
        self.sends_little
    }

    fn min_burst(&self) -> u32 {
        self.min_tso_segs().unwrap_or(2)
    }

    fn windows_buffered(&self) -> u64 {
        self.sndbuf_expand().unwrap_or(2)
    }
}
