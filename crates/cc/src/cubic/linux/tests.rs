//! Tests of the single rules of the controller.

use units::{Bytes, Duration};

use super::*;
use crate::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, Controller, Growth, SmoothedRtt,
    WindowChange, WindowController,
};

const MSS: u64 = 1_448;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Established at time zero, in congestion avoidance with a window of `cwnd` packets.
fn avoiding(cwnd: u64) -> LinuxCubic {
    let mut cc = LinuxCubic::new(250);
    let _ = cc.on_established(&ConnectionStart {
        now: Instant::ZERO,
        ticks: 0,
        created_ticks: 0,
        una: Offset(0),
        mss: MSS as u32,
        maxseg: 1_460,
        snd_scale: 10,
        syn_retransmitted: false,
        rtt: None,
        ssthresh: None,
    });
    cc.set_window(Bytes(cwnd * MSS));
    cc.set_threshold(Some(Bytes(cwnd * MSS)));
    cc
}

fn acked(ms: u64, packets: u32) -> AckEvent {
    AckEvent {
        now: at(ms),
        ticks: ms / 4,
        rtt: None,
        srtt: SmoothedRtt::default(),
        snd_nxt: Offset(0),
        una: Offset(0),
        bytes: u64::from(packets) * MSS,
        packets,
        nsegs: 1,
        ends_recovery: false,
        retransmitting: false,
        snd_wnd: 1 << 20,
        window_limited: true,
        max_packets_out: 0,
    }
}

fn congested(ms: u64, signal: CongestionSignal) -> CongestionEvent {
    CongestionEvent {
        now: at(ms),
        ticks: ms / 4,
        signal,
        th_ack: Offset(0),
        snd_max: Offset(1_000_000),
        pipe: 0,
        snd_wnd: 1 << 20,
        lost: 0,
    }
}

fn sample(ms: u64, rtt_us: u64) -> AckSample {
    AckSample {
        now: at(ms),
        ticks: ms / 4,
        rtt: Duration::from_micros(rtt_us),
        una: Offset(0),
        snd_nxt: Offset(1),
        pacing_rate: 1_000_000,
    }
}

/// Jiffies from the start of the epoch to the last computation.
fn epoch_age(cc: &LinuxCubic) -> Option<u64> {
    let state = cc.operations().state();
    state.epoch_start.map(|start| state.last_time - start)
}

#[test]
fn a_loss_keeps_seven_tenths_and_saves_the_window() {
    let mut cc = avoiding(100);
    assert_eq!(cc.on_congested(&congested(0, CongestionSignal::Loss)), WindowChange::RecoveryBegan);
    // 100 * 717 / 1024 = 70.02
    assert_eq!((cc.snd_ssthresh(), cc.operations().state().last_max_cwnd), (70, 100));
    let _ = cc.on_recovered(&crate::RecoveryEnd { th_ack: Offset(1_000_000), pipe: 0 });
    // Below the last maximum: 70 * 1741 / 2048 = 59.5.
    let _ = cc.on_congested(&congested(0, CongestionSignal::Loss));
    assert_eq!((cc.snd_ssthresh(), cc.operations().state().last_max_cwnd), (49, 59));
}

#[test]
fn a_timeout_resets_the_curve() {
    let mut cc = avoiding(100);
    let _ = cc.on_ack_sample(&sample(1, 45_000));
    assert_eq!(cc.operations().state().delay_min, 45_000);
    assert_eq!(
        cc.on_congested(&congested(2, CongestionSignal::Timeout { shift: 1 })),
        WindowChange::Collapsed
    );
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (1, 70));
    assert_eq!(*cc.operations().state(), BicTcpState::default());
    assert_eq!(cc.operations().hystart().round_start(), at(2));
}

#[test]
fn without_a_loss_it_grows_by_a_twentieth() {
    // Recorded on Linux 6.18: after an exit without loss cnt <= 20.
    let mut cc = avoiding(100);
    let _ = cc.on_acked(&acked(1_000, 19));
    assert_eq!((cc.snd_cwnd(), cc.snd_cwnd_cnt(), cc.operations().state().cnt), (100, 19, 20));
    assert_eq!(cc.on_acked(&acked(1_000, 1)), WindowChange::Grew(Growth::Avoidance));
    assert_eq!((cc.snd_cwnd(), cc.snd_cwnd_cnt()), (101, 0));
}

#[test]
fn with_a_constant_window_cnt_is_kept_for_a_32nd_of_a_second() {
    // HZ / 32 = 7 jiffies of 4 ms. A loss at 10 leaves 7, and the curve starts at
    // 10 - (410 * 2003^3 >> 40) = 8.
    let mut cc = avoiding(10);
    let _ = cc.on_congested(&congested(0, CongestionSignal::Loss));
    let _ = cc.on_recovered(&crate::RecoveryEnd { th_ack: Offset(1_000_000), pipe: 0 });
    let _ = cc.on_acked(&acked(400, 3));
    let _ = cc.on_acked(&acked(400, 4));
    assert_eq!((cc.snd_cwnd(), cc.operations().state().cnt), (8, 7));
    // The curve is not above 8.
    let _ = cc.on_acked(&acked(404, 1));
    assert_eq!(cc.operations().state().cnt, 800);
    // After 39 packets Reno would have grown twice (per 8 * 15 / 8 = 15 each), but cnt is not
    // recomputed.
    let _ = cc.on_acked(&acked(435, 30));
    assert_eq!((cc.operations().state().cnt, cc.operations().state().tcp_cwnd), (800, 7));
    let _ = cc.on_acked(&acked(436, 1));
    assert_eq!((cc.operations().state().tcp_cwnd, cc.operations().state().ack_cnt), (9, 9));
    assert_eq!(cc.operations().state().cnt, 8);
}

#[test]
fn the_curve_is_computed_once_per_jiffy() {
    let mut cc = avoiding(100);
    let _ = cc.on_acked(&acked(1_000, 20));
    assert_eq!((cc.snd_cwnd(), epoch_age(&cc)), (101, Some(0)));
    let cnt = cc.operations().state().cnt;
    // The window changed, the jiffy did not.
    let _ = cc.on_acked(&acked(1_003, 1));
    assert_eq!((cc.operations().state().cnt, epoch_age(&cc)), (cnt, Some(0)));
    let _ = cc.on_acked(&acked(1_004, 1));
    assert_eq!(epoch_age(&cc), Some(1));
}

#[test]
fn it_grows_by_at_most_half_per_rtt() {
    // Far beyond the inflection point of the curve.
    let mut cc = avoiding(10);
    let _ = cc.on_acked(&acked(1_000, 1));
    let _ = cc.on_acked(&acked(60_000, 1));
    assert_eq!(cc.operations().state().cnt, 2);
}

#[test]
fn a_pause_does_not_count_on_the_curve() {
    let mut cc = avoiding(100);
    let _ = cc.on_acked(&acked(1_000, 1));
    cc.on_tx_start(750, 250);
    let _ = cc.on_acked(&acked(3_040, 1));
    assert_eq!(epoch_age(&cc), Some(10));
}

#[test]
fn delays_of_the_first_second_of_an_epoch_do_not_count() {
    let mut cc = avoiding(100);
    let _ = cc.on_acked(&acked(1_000, 1));
    let _ = cc.on_ack_sample(&sample(1_996, 10_000));
    assert_eq!(cc.operations().state().delay_min, 0);
    let _ = cc.on_ack_sample(&sample(2_000, 10_000));
    assert_eq!(cc.operations().state().delay_min, 10_000);
    let _ = cc.on_ack_sample(&sample(2_004, 10_001));
    assert_eq!(cc.operations().state().delay_min, 10_000);
}

#[test]
fn hystart_sets_the_threshold_to_the_window() {
    let mut cc = avoiding(20);
    cc.set_threshold(None);
    assert_eq!(cc.on_ack_sample(&sample(1, 1_000)), WindowChange::None);
    assert_eq!(cc.on_ack_sample(&sample(2, 1_000)), WindowChange::SlowStartEnded);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (20, 20));
    assert!(!cc.in_slow_start());
}
