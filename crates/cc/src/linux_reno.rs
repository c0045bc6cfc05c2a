//! Linux's `reno`: tcp_reno_cong_avoid and tcp_reno_ssthresh of tcp_cong.c, kernel 6.18.

use crate::linux::{Linux, Operations};

/// The connection with `reno`.
pub type LinuxReno = Linux<Reno>;

/// `reno` keeps nothing of its own.
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

impl Operations for Reno {
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
        Acked, Change, Congested, Controller, Established, Growth, Idle, Recovered, Signal,
        Smoothed,
    };

    fn open() -> LinuxReno {
        let mut cc = LinuxReno::new();
        let _ = cc.on_established(&Established {
            now: Instant::ZERO,
            ticks: 0,
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
            ends_recovery: false,
            resending: false,
            snd_wnd: 1 << 20,
            window_limited: true,
            max_packets_out: 0,
        }
    }

    fn congested(signal: Signal, th_ack: u64) -> Congested {
        Congested {
            now: Instant::ZERO,
            ticks: 0,
            signal,
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
        // recorded on Linux 6.18: a flight of 28 packets leaves the window at 56.
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
        cc.set_threshold(Some(Bytes(12 * 1_448)));
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
        // recorded on Linux 6.18: 145 packets, 3/4 of the window proven: 108.
        let mut cc = open();
        cc.set_window(Bytes(145 * 1_448));
        cc.set_threshold(Some(Bytes(100 * 1_448)));
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
