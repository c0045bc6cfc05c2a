//! Single rules; `cargo xtask golden` compares whole transfers with a kernel.

use super::*;
use crate::contract::{
    CongestionEvent, CongestionSignal, ConnectionStart, Controller, LostSegment, PathSignals,
    RateController, TxSample, WindowChange,
};

fn bbr(rtt_us: u64) -> Bbr3 {
    let mut bbr = Bbr3::new(250, RandomStream::named(1, "test", "bbr3"));
    let _ = bbr.on_established(&ConnectionStart {
        now: Instant::ZERO,
        ticks: 0,
        created_ticks: 0,
        una: Offset(1),
        mss: 1_448,
        maxseg: 1_460,
        snd_scale: 0,
        syn_retransmitted: false,
        rtt: Some(Duration::from_micros(rtt_us)),
        ssthresh: None,
    });
    bbr
}

fn lost(packets: u32, in_flight: u32, lost_since: u32) -> LostSegment {
    LostSegment {
        now: Instant::ZERO,
        packets,
        in_flight,
        lost_since,
        app_limited: false,
        sacked_before: false,
        delivered: 500,
    }
}

#[test]
fn gains_are_those_of_the_kernel() {
    // 256 * 2.77, 256 / 2.885, 256 * 0.91, 0.30, 0.02 and 0.15, each rounded as C does.
    let params = Bbr3Params::KERNEL;
    assert_eq!((params.startup_pacing_gain, params.drain_gain), (710, 88));
    assert_eq!(params.pacing_gain, [320, 232, 256, 256]);
    assert_eq!((params.beta, params.loss_thresh, params.inflight_headroom), (76, 5, 38));
}

#[test]
fn the_first_rate_is_that_of_a_kernel() {
    // tcp_info of recorded kernels after the handshake: round trip in microseconds, bit/s.
    for (rtt, rate) in [(25_470, 12_487_624), (48_062, 6_616_336), (7_105, 44_765_488)] {
        assert_eq!(bbr(rtt).pacing_rate() * 8, rate);
    }
}

#[test]
fn a_probe_that_loses_too_much_sets_the_bound_where_the_losses_exceeded_two_percent() {
    let mut bbr = bbr(50_000);
    bbr.mode = BbrMode::ProbeBw;
    bbr.phase = ProbePhase::Up;
    bbr.bw_probe_samples = true;
    // 100 packets were in flight before it: of them 100 * 5/256, rounded up, may be lost: 2. The rest of the
    // budget, 2 packets, is 2 * 256/251 of the lost burst.
    bbr.on_segment_lost(&lost(4, 104, 4));
    assert_eq!(bbr.inflight_bounds(), [Some(102), None]);
    assert_eq!(bbr.mode(), (BbrMode::ProbeBw, ProbePhase::Down));
    assert_eq!(bbr.draw().1, 1);
    // It reacts once per probe.
    bbr.on_segment_lost(&lost(4, 50, 8));
    assert_eq!(bbr.inflight_bounds(), [Some(102), None]);
}

#[test]
fn losses_below_the_threshold_and_outside_of_a_probe_set_no_bound() {
    let mut bbr = bbr(50_000);
    bbr.bw_probe_samples = true;
    // 200 * 5/256 = 3.
    bbr.on_segment_lost(&lost(1, 200, 3));
    assert_eq!(bbr.inflight_bounds(), [None, None]);
    bbr.bw_probe_samples = false;
    bbr.on_segment_lost(&lost(1, 200, 100));
    assert_eq!(bbr.inflight_bounds(), [None, None]);
    assert!(bbr.loss_in_round && bbr.loss_in_cycle);
}

#[test]
fn losses_of_a_round_outside_of_a_probe_cut_the_short_term_bounds() {
    let mut bbr = bbr(100_000);
    bbr.mode = BbrMode::ProbeBw;
    bbr.phase = ProbePhase::Cruise;
    bbr.full_bw_reached = true;
    bbr.bw_hi = [0, 10_000];
    bbr.snd_cwnd = 100;
    bbr.loss_in_round = true;
    let signals =
        PathSignals { tx: TxSample { delivered: 40, ..TxSample::default() }, ..PathSignals::NONE };
    let rate = crate::DeliveryRate {
        delivered: 40,
        interval_us: 200_000,
        prior_delivered: 10,
        app_limited: false,
    };
    let sample = RateSample {
        ticks: 1,
        rate: Some(rate),
        acked: 1,
        losses: 0,
        delivered: 50,
        lost: 1,
        delivered_at: Instant::ZERO,
        delivered_clock: 0,
        rtt_us: Some(100_000),
        ack_delayed: false,
        srtt_us: 100_000,
        prior_in_flight: 60,
        in_flight: 60,
        until_next_departure: Duration::ZERO,
        signals,
    };
    let _ = bbr.on_rate_sample(&sample);
    // 180/256 of each, since less was delivered: 40 * 2^24 / 200,000 = 3,356, and 40 packets.
    assert_eq!(bbr.bandwidths(), (10_000, Some(7_031)));
    assert_eq!(bbr.inflight_bounds(), [None, Some(70)]);
}

#[test]
fn given_draws_come_before_random_ones() {
    static GIVEN: [ProbeDraw; 1] = [ProbeDraw { rounds: 1, wait_us: 2_345_678 }];
    let mut bbr = bbr(50_000).drawing(&GIVEN);
    bbr.start_down(Instant::ZERO, 1);
    assert_eq!(bbr.draw(), (GIVEN[0], 1));
    for made in 2..50 {
        bbr.start_down(Instant::ZERO, 1);
        let (draw, count) = bbr.draw();
        assert_eq!(count, made);
        assert!(draw.rounds < 2 && (2_000_000..3_000_000).contains(&draw.wait_us));
    }
}

#[test]
fn an_undone_recovery_restores_the_bounds() {
    let mut bbr = bbr(50_000);
    bbr.snd_cwnd = 80;
    let event = |signal| CongestionEvent {
        now: Instant::ZERO,
        ticks: 0,
        signal,
        th_ack: Offset(1),
        snd_max: Offset(100_000),
        pipe: 80 * 1_448,
        snd_wnd: 0,
        lost: 1,
    };
    assert_eq!(bbr.on_congested(&event(CongestionSignal::Loss)), WindowChange::RecoveryBegan);
    (bbr.inflight_hi, bbr.inflight_lo, bbr.bw_lo, bbr.snd_cwnd) = (40, 30, 20, 30);
    assert_eq!(bbr.on_congested(&event(CongestionSignal::SpuriousRecovery)), WindowChange::Undone);
    assert_eq!((bbr.inflight_bounds(), bbr.snd_cwnd()), ([None, None], 80));
}

#[test]
fn the_end_of_the_repair_of_a_timeout_restores_and_reports_the_window() {
    let mut bbr = bbr(50_000);
    bbr.snd_cwnd = 80;
    let timeout = CongestionEvent {
        now: Instant::ZERO,
        ticks: 0,
        signal: CongestionSignal::Timeout { shift: 1 },
        th_ack: Offset(1),
        snd_max: Offset(100_000),
        pipe: 0,
        snd_wnd: 0,
        lost: 80,
    };
    assert_eq!(bbr.on_congested(&timeout), WindowChange::Collapsed);
    // Packets in flight, none, and one more.
    assert_eq!(bbr.snd_cwnd(), 1);
    let acked = |una| crate::AckEvent {
        now: Instant::ZERO,
        ticks: 1,
        rtt: None,
        srtt: crate::SmoothedRtt::default(),
        snd_nxt: Offset(100_000),
        una: Offset(una),
        bytes: 1_448,
        packets: 1,
        nsegs: 1,
        ends_recovery: false,
        retransmitting: true,
        snd_wnd: 0,
        window_limited: true,
        max_packets_out: 1,
    };
    assert_eq!(bbr.on_acked(&acked(50_000)), WindowChange::None);
    assert_eq!(bbr.on_acked(&acked(100_000)), WindowChange::Grew(crate::Growth::Avoidance));
    assert_eq!(bbr.snd_cwnd(), 80);
}
