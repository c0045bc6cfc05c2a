//! Linux's `reno`.
//!
//! Sources: tcp_cong.c (tcp_slow_start, tcp_cong_avoid_ai, tcp_reno_cong_avoid,
//! tcp_reno_ssthresh, tcp_reno_undo_cwnd), tcp.h (tcp_is_cwnd_limited, tcp_current_ssthresh),
//! tcp_output.c (tcp_cwnd_restart), tcp_input.c (tcp_enter_loss, tcp_init_cwnd_reduction,
//! tcp_end_cwnd_reduction, tcp_undo_cwnd_reduction). Kernel 6.18.
//!
//! Windows count packets here, and bytes at the door. There is no L limit: an ACK for 45 packets
//! adds 45 in slow start. The kernel's own rule that acknowledgments which do not advance
//! `snd_una` grow nothing while no reordering was seen is the stack's (`tcp_may_raise_cwnd`): it
//! does not tell the controller of them.

use units::{Bytes, Offset};

use crate::contract::{
    Acked, Change, Congested, Control, Controller, Established, Growth, Idle, Recovered, Signal,
};

/// `TCP_INFINITE_SSTHRESH`: the threshold while unset.
const SSTHRESH_UNSET: u32 = 0x7fff_ffff;
/// `TCP_INIT_CWND`.
const INIT_CWND: u32 = 10;

/// Linux reno, one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinuxReno {
    mss: u32,
    snd_cwnd: u32,
    snd_cwnd_cnt: u32,
    snd_ssthresh: u32,
    /// `snd_nxt` when the last episode began.
    high_seq: Offset,
    phase: Phase,
    prior_cwnd: u32,
    prior_ssthresh: u32,
}

/// Congestion state as far as the window needs it (`icsk_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Open or Disorder: the window grows.
    Open,
    /// Recovery or CWR: PRR holds the window.
    Reducing,
    /// After a timeout: the window grows.
    Loss,
}

impl LinuxReno {
    /// A controller that opens with [`on_established`](Controller::on_established).
    pub fn new() -> Self {
        Self {
            mss: 1,
            snd_cwnd: INIT_CWND,
            snd_cwnd_cnt: 0,
            snd_ssthresh: SSTHRESH_UNSET,
            high_seq: Offset(0),
            phase: Phase::Open,
            prior_cwnd: 0,
            prior_ssthresh: 0,
        }
    }

    /// `snd_cwnd` in packets.
    pub fn snd_cwnd(&self) -> u32 {
        self.snd_cwnd
    }

    /// `snd_cwnd_cnt`: packets on the way to the next one of growth in congestion avoidance.
    pub fn snd_cwnd_cnt(&self) -> u32 {
        self.snd_cwnd_cnt
    }

    /// `snd_ssthresh` in packets; 2,147,483,647 while unset.
    pub fn snd_ssthresh(&self) -> u32 {
        self.snd_ssthresh
    }

    /// `tcp_is_cwnd_limited`: has the flight come near enough to the window for it to grow?
    fn is_cwnd_limited(&self, event: &Acked) -> bool {
        event.window_limited
            || (self.in_slow_start()
                && u64::from(self.snd_cwnd) < 2 * u64::from(event.max_packets_out))
    }

    /// `tcp_slow_start`: grows by `acked` up to the threshold; what lies beyond is left over.
    fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.snd_cwnd.saturating_add(acked).min(self.snd_ssthresh);
        let left = acked - (cwnd - self.snd_cwnd);
        self.snd_cwnd = cwnd;
        left
    }

    /// `tcp_cong_avoid_ai`: one packet for each window of packets delivered.
    fn avoidance(&mut self, acked: u32) {
        let w = self.snd_cwnd.max(1);
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

    /// `tcp_current_ssthresh`: three quarters of the window count as proven, outside an episode.
    fn current_ssthresh(&self) -> u32 {
        match self.phase {
            Phase::Reducing => self.snd_ssthresh,
            Phase::Open | Phase::Loss => {
                self.snd_ssthresh.max((self.snd_cwnd >> 1) + (self.snd_cwnd >> 2))
            }
        }
    }

    fn remember(&mut self, high_seq: Offset) {
        self.high_seq = high_seq;
        self.prior_cwnd = self.snd_cwnd;
        self.prior_ssthresh = self.current_ssthresh();
    }

    /// `tcp_reno_ssthresh`.
    fn halved(&self) -> u32 {
        (self.snd_cwnd >> 1).max(2)
    }

    /// Loss or an ECN echo: the threshold is lowered, the window is left to the stack's PRR.
    fn enter_reduction(&mut self, event: &Congested) -> Change {
        if self.phase == Phase::Reducing {
            return Change::None;
        }
        self.remember(event.snd_max);
        self.snd_cwnd_cnt = 0;
        self.snd_ssthresh = self.halved();
        self.phase = Phase::Reducing;
        Change::RecoveryBegan
    }

    /// `tcp_enter_loss`. A flight lowers the threshold once, unless it has moved on meanwhile.
    fn enter_loss(&mut self, event: &Congested, shift: u32) -> Change {
        let lowered = self.phase != Phase::Open && event.th_ack < self.high_seq;
        if !lowered || (self.phase == Phase::Loss && shift == 1) {
            self.remember(event.snd_max);
            self.snd_ssthresh = self.halved();
        }
        self.high_seq = event.snd_max;
        self.snd_cwnd = 1;
        self.snd_cwnd_cnt = 0;
        self.phase = Phase::Loss;
        Change::Collapsed
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo(&mut self) -> Change {
        self.snd_cwnd = self.snd_cwnd.max(self.prior_cwnd);
        self.snd_ssthresh = self.snd_ssthresh.max(self.prior_ssthresh);
        self.phase = Phase::Open;
        Change::Undone
    }
}

impl Default for LinuxReno {
    fn default() -> Self {
        Self::new()
    }
}

impl Controller for LinuxReno {
    fn on_established(&mut self, event: &Established) -> Change {
        *self = Self::new();
        self.mss = event.mss.max(1);
        self.high_seq = event.una;
        if event.syn_retransmitted {
            self.snd_cwnd = 1;
        }
        if let Some(remembered) = event.ssthresh {
            self.snd_ssthresh = packets(remembered, self.mss).max(2);
        }
        Change::None
    }

    fn on_acked(&mut self, event: &Acked) -> Change {
        if self.phase == Phase::Loss && event.una >= self.high_seq {
            self.phase = Phase::Open;
        }
        if self.phase == Phase::Reducing || !self.is_cwnd_limited(event) {
            return Change::None;
        }
        let before = self.snd_cwnd;
        let mut growth = Growth::Avoidance;
        let mut acked = event.packets;
        if self.in_slow_start() {
            growth = Growth::SlowStart;
            acked = self.slow_start(acked);
            if acked == 0 {
                return if self.snd_cwnd > before { Change::Grew(growth) } else { Change::None };
            }
        }
        self.avoidance(acked);
        if self.snd_cwnd > before { Change::Grew(growth) } else { Change::None }
    }

    fn on_congested(&mut self, event: &Congested) -> Change {
        match event.signal {
            Signal::Loss | Signal::Ecn => self.enter_reduction(event),
            Signal::Timeout { shift } => self.enter_loss(event, shift),
            Signal::SpuriousTimeout | Signal::SpuriousRecovery => self.undo(),
        }
    }

    fn on_recovered(&mut self, _event: &Recovered) -> Change {
        if self.phase == Phase::Reducing {
            self.snd_cwnd = self.snd_ssthresh;
        }
        self.phase = Phase::Open;
        Change::RecoveryEnded
    }

    /// `tcp_cwnd_restart`: halved for each timeout that would have passed, not below the start.
    fn on_idle(&mut self, event: &Idle) -> Change {
        self.snd_ssthresh = self.current_ssthresh();
        let floor = self.snd_cwnd.min(INIT_CWND);
        let before = self.snd_cwnd;
        let mut left = event.idle;
        while left > event.rto && self.snd_cwnd > floor {
            left = left.saturating_sub(event.rto);
            self.snd_cwnd >>= 1;
        }
        self.snd_cwnd = self.snd_cwnd.max(floor);
        if self.snd_cwnd < before { Change::Shrank } else { Change::None }
    }

    fn on_mss(&mut self, mss: u32, _maxseg: u32) {
        // The window counts packets, which become smaller.
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
        self.phase = Phase::Open;
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        self.snd_ssthresh = ssthresh.map_or(SSTHRESH_UNSET, |bytes| packets(bytes, self.mss));
    }

    fn in_recovery(&self) -> bool {
        self.phase == Phase::Reducing
    }

    fn in_slow_start(&self) -> bool {
        self.snd_cwnd < self.snd_ssthresh
    }

    fn recovery_point(&self) -> Offset {
        self.high_seq
    }
}

/// Whole packets in `window`.
fn packets(window: Bytes, mss: u32) -> u32 {
    u32::try_from(window.get() / u64::from(mss)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use units::{Duration, Instant};

    use super::*;
    use crate::contract::Smoothed;

    fn open() -> LinuxReno {
        let mut cc = LinuxReno::new();
        let _ = cc.on_established(&Established {
            ticks: 0,
            una: Offset(0),
            mss: 1_448,
            maxseg: 1_460,
            snd_scale: 10,
            syn_retransmitted: false,
            ssthresh: None,
        });
        cc
    }

    fn acked(packets: u32) -> Acked {
        Acked {
            now: Instant::ZERO,
            ticks: 0,
            rtt: None,
            srtt: Smoothed::default(),
            snd_nxt: Offset(0),
            una: Offset(0),
            bytes: u64::from(packets) * 1_448,
            packets,
            nsegs: 1,
            resending: false,
            snd_wnd: 1 << 20,
            window_limited: true,
            max_packets_out: 0,
        }
    }

    fn congested(signal: Signal, th_ack: u64) -> Congested {
        Congested {
            signal,
            ticks: 0,
            th_ack: Offset(th_ack),
            snd_max: Offset(1_000),
            pipe: 0,
            snd_wnd: 1 << 20,
        }
    }

    #[test]
    fn slow_start_adds_every_packet_of_an_aggregate() {
        let mut cc = open();
        assert_eq!(cc.on_acked(&acked(10)), Change::Grew(Growth::SlowStart));
        assert_eq!(cc.on_acked(&acked(45)), Change::Grew(Growth::SlowStart));
        assert_eq!(cc.snd_cwnd(), 65);
        assert_eq!(cc.control().window, Bytes(65 * 1_448));
        assert_eq!(cc.control().ssthresh, None);
    }

    #[test]
    fn a_sender_short_of_data_stops_at_twice_its_flight() {
        // reference/linux.md 2: a flight of 28 packets leaves the window at 56.
        let mut cc = open();
        let short = Acked { window_limited: false, max_packets_out: 28, ..acked(1) };
        for _ in 0..100 {
            let _ = cc.on_acked(&short);
        }
        assert_eq!(cc.snd_cwnd(), 56);
    }

    #[test]
    fn what_lies_beyond_the_threshold_goes_to_avoidance() {
        let mut cc = open();
        cc.snd_ssthresh = 12;
        // 2 of 5 reach the threshold, 3 are counted.
        assert_eq!(cc.on_acked(&acked(5)), Change::Grew(Growth::SlowStart));
        assert_eq!((cc.snd_cwnd(), cc.snd_cwnd_cnt()), (12, 3));
        // 3 + 21 = 24 packets are two windows of 12.
        assert_eq!(cc.on_acked(&acked(21)), Change::Grew(Growth::Avoidance));
        assert_eq!((cc.snd_cwnd(), cc.snd_cwnd_cnt()), (14, 0));
        let unlimited = Acked { window_limited: false, max_packets_out: 100, ..acked(21) };
        assert_eq!(cc.on_acked(&unlimited), Change::None);
    }

    #[test]
    fn a_loss_halves_the_threshold_and_the_recovery_takes_it_as_window() {
        let mut cc = open();
        cc.set_window(Bytes(909 * 1_448));
        assert_eq!(cc.on_congested(&congested(Signal::Loss, 0)), Change::RecoveryBegan);
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (909, 454));
        assert_eq!(cc.on_congested(&congested(Signal::Loss, 0)), Change::None);
        assert_eq!(cc.on_acked(&acked(2)), Change::None);
        cc.set_window(Bytes(3 * 1_448));
        let ended = Recovered { th_ack: Offset(1_000), pipe: 0 };
        assert_eq!(cc.on_recovered(&ended), Change::RecoveryEnded);
        assert_eq!(cc.snd_cwnd(), 454);
    }

    #[test]
    fn further_timeouts_of_a_flight_leave_the_threshold() {
        let mut cc = open();
        cc.set_window(Bytes(100 * 1_448));
        let timeout = |shift| congested(Signal::Timeout { shift }, 0);
        assert_eq!(cc.on_congested(&timeout(1)), Change::Collapsed);
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (1, 50));
        assert_eq!(cc.on_congested(&timeout(2)), Change::Collapsed);
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (1, 50));
        // The window grows again at once.
        assert_eq!(cc.on_acked(&acked(1)), Change::Grew(Growth::SlowStart));
    }

    #[test]
    fn a_spurious_timeout_is_undone() {
        // reference/linux.md 8: 145 packets, 3/4 of the window proven: 108.
        let mut cc = open();
        cc.set_window(Bytes(145 * 1_448));
        cc.snd_ssthresh = 100;
        let _ = cc.on_congested(&congested(Signal::Timeout { shift: 1 }, 0));
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (1, 72));
        let undo = congested(Signal::SpuriousTimeout, 0);
        assert_eq!(cc.on_congested(&undo), Change::Undone);
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (145, 108));
    }

    #[test]
    fn idling_halves_the_window_for_each_timeout_down_to_ten() {
        let idle = |packets: u64, ms| {
            let mut cc = open();
            cc.set_window(Bytes(packets * 1_448));
            let rto = Duration::from_millis(250);
            let _ = cc.on_idle(&Idle { ticks: 0, idle: Duration::from_millis(ms), rto });
            cc.snd_cwnd()
        };
        // Three whole timeouts and more in 800 ms.
        assert_eq!(idle(144, 800), 18);
        assert_eq!(idle(144, 1_300), 10);
        assert_eq!(idle(144, 250), 144);
        assert_eq!(idle(4, 10_000), 4);
    }
}
