//! Linux's `reno`: tcp_reno_cong_avoid and tcp_reno_ssthresh of tcp_cong.c, kernel 6.18.

use crate::contract::ControllerInputs;
use crate::linux::{LinuxCongestionOps, LinuxController};

/// A connection with `reno`.
pub type LinuxReno = LinuxController<Reno>;

/// `reno` has no state of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct Reno;

impl LinuxReno {
    /// A controller that opens with [`on_established`](crate::Controller::on_established).
    pub const fn new() -> Self {
        Self::with(Reno)
    }
}

impl Default for LinuxReno {
    fn default() -> Self {
        Self::new()
    }
}

impl LinuxCongestionOps for Reno {
    const INPUTS: ControllerInputs = ControllerInputs::NONE;

    fn ssthresh(&mut self, snd_cwnd: u32) -> u32 {
        (snd_cwnd >> 1).max(2)
    }

    fn packets_per_growth(&mut self, _ticks: u64, snd_cwnd: u32, _acked: u32) -> u32 {
        snd_cwnd
    }
}

#[cfg(test)]
mod tests {
    use units::{Bytes, Duration, Instant, Offset};

    use super::*;
    use crate::contract::{
        AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, Controller, Growth,
        IdleEvent, RecoveryEnd, SmoothedRtt, WindowChange,
    };

    fn open() -> LinuxReno {
        let mut cc = LinuxReno::new();
        let _ = cc.on_established(&ConnectionStart {
            now: Instant::ZERO,
            ticks: 0,
            created_ticks: 0,
            una: Offset(0),
            mss: 1_448,
            maxseg: 1_460,
            snd_scale: 10,
            syn_retransmitted: false,
            rtt: None,
            ssthresh: None,
        });
        cc
    }

    fn acked(packets: u32) -> AckEvent {
        AckEvent {
            now: Instant::ZERO,
            ticks: 0,
            rtt: None,
            srtt: SmoothedRtt::default(),
            snd_nxt: Offset(0),
            una: Offset(0),
            bytes: u64::from(packets) * 1_448,
            packets,
            nsegs: 1,
            ends_recovery: false,
            retransmitting: false,
            snd_wnd: 1 << 20,
            window_limited: true,
            max_packets_out: 0,
        }
    }

    fn congested(signal: CongestionSignal, th_ack: u64) -> CongestionEvent {
        CongestionEvent {
            now: Instant::ZERO,
            ticks: 0,
            signal,
            th_ack: Offset(th_ack),
            snd_max: Offset(1_000),
            pipe: 0,
            snd_wnd: 1 << 20,
            lost: 0,
        }
    }

    #[test]
    fn slow_start_adds_every_packet_of_an_aggregate() {
        let mut cc = open();
        assert_eq!(cc.on_acked(&acked(10)), WindowChange::Grew(Growth::SlowStart));
        assert_eq!(cc.on_acked(&acked(45)), WindowChange::Grew(Growth::SlowStart));
        assert_eq!(cc.snd_cwnd(), 65);
        assert_eq!(cc.control().window, Bytes(65 * 1_448));
        assert_eq!(cc.control().ssthresh, None);
    }

    #[test]
    fn an_application_limited_window_stops_at_twice_the_flight() {
        // Recorded on Linux 6.18: a flight of 28 packets leaves the window at 56.
        let mut cc = open();
        let short = AckEvent { window_limited: false, max_packets_out: 28, ..acked(1) };
        for _ in 0..100 {
            let _ = cc.on_acked(&short);
        }
        assert_eq!(cc.snd_cwnd(), 56);
    }

    #[test]
    fn packets_beyond_the_threshold_count_for_avoidance() {
        let mut cc = open();
        cc.set_threshold(Some(Bytes(12 * 1_448)));
        // 2 of 5 reach the threshold, 3 are counted.
        assert_eq!(cc.on_acked(&acked(5)), WindowChange::Grew(Growth::SlowStart));
        assert_eq!((cc.snd_cwnd(), cc.snd_cwnd_cnt()), (12, 3));
        // 3 + 21 = 24 packets are two windows of 12.
        assert_eq!(cc.on_acked(&acked(21)), WindowChange::Grew(Growth::Avoidance));
        assert_eq!((cc.snd_cwnd(), cc.snd_cwnd_cnt()), (14, 0));
        let unlimited = AckEvent { window_limited: false, max_packets_out: 100, ..acked(21) };
        assert_eq!(cc.on_acked(&unlimited), WindowChange::None);
    }

    #[test]
    fn a_loss_halves_the_threshold_which_is_the_window_after_recovery() {
        let mut cc = open();
        cc.set_window(Bytes(909 * 1_448));
        assert_eq!(
            cc.on_congested(&congested(CongestionSignal::Loss, 0)),
            WindowChange::RecoveryBegan
        );
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (909, 454));
        assert_eq!(cc.on_congested(&congested(CongestionSignal::Loss, 0)), WindowChange::None);
        assert_eq!(cc.on_acked(&acked(2)), WindowChange::None);
        cc.set_window(Bytes(3 * 1_448));
        let ended = RecoveryEnd { th_ack: Offset(1_000), pipe: 0 };
        assert_eq!(cc.on_recovered(&ended), WindowChange::RecoveryEnded);
        assert_eq!(cc.snd_cwnd(), 454);
    }

    #[test]
    fn further_timeouts_of_a_flight_keep_the_threshold() {
        let mut cc = open();
        cc.set_window(Bytes(100 * 1_448));
        let timeout = |shift| congested(CongestionSignal::Timeout { shift }, 0);
        assert_eq!(cc.on_congested(&timeout(1)), WindowChange::Collapsed);
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (1, 50));
        assert_eq!(cc.on_congested(&timeout(2)), WindowChange::Collapsed);
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (1, 50));
        // The window grows at once.
        assert_eq!(cc.on_acked(&acked(1)), WindowChange::Grew(Growth::SlowStart));
    }

    #[test]
    fn a_spurious_timeout_is_undone() {
        // Recorded on Linux 6.18: 145 packets, 3/4 of the window kept: 108.
        let mut cc = open();
        cc.set_window(Bytes(145 * 1_448));
        cc.set_threshold(Some(Bytes(100 * 1_448)));
        let _ = cc.on_congested(&congested(CongestionSignal::Timeout { shift: 1 }, 0));
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (1, 72));
        let undo = congested(CongestionSignal::SpuriousTimeout, 0);
        assert_eq!(cc.on_congested(&undo), WindowChange::Undone);
        assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (145, 108));
    }

    #[test]
    fn idle_time_halves_the_window_per_timeout_down_to_ten() {
        let idle = |packets: u64, ms| {
            let mut cc = open();
            cc.set_window(Bytes(packets * 1_448));
            let rto = Duration::from_millis(250);
            let _ = cc.on_idle(&IdleEvent { ticks: 0, idle: Duration::from_millis(ms), rto });
            cc.snd_cwnd()
        };
        // More than three timeouts in 800 ms.
        assert_eq!(idle(144, 800), 18);
        assert_eq!(idle(144, 1_300), 10);
        assert_eq!(idle(144, 250), 144);
        assert_eq!(idle(4, 10_000), 4);
    }
}
