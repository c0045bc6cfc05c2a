//! Single rules; `recordings.rs` replays whole transfers.

use super::*;
use crate::contract::DeliveryRate;

fn bbr() -> Bbr {
    let mut bbr = Bbr::new(250, RandomStream::named(1, "test", "bbr"));
    let _ = bbr.on_established(&ConnectionStart {
        now: Instant::ZERO,
        ticks: 0,
        created_ticks: 0,
        una: Offset(1),
        mss: 1_448,
        maxseg: 1_460,
        snd_scale: 0,
        syn_retransmitted: false,
        rtt: None,
        ssthresh: None,
    });
    bbr
}

/// A path of 100 packets in 100 ms on which each round delivers the window.
struct World {
    bbr: Bbr,
    delivered: u64,
    now: u64,
}

impl World {
    fn new() -> Self {
        Self { bbr: bbr(), delivered: 1, now: 0 }
    }

    /// An acknowledgment of `packets`, delivered at `per_ms` packets per millisecond.
    fn ack(&mut self, packets: u32, per_ms: u32, in_flight: u32) {
        let prior_delivered = self.delivered;
        self.delivered += u64::from(packets);
        self.now += 100;
        let interval_us = packets * 1_000 / per_ms.max(1);
        let rate =
            DeliveryRate { delivered: packets, interval_us, prior_delivered, app_limited: false };
        let _ = self.bbr.on_rate_sample(&RateSample {
            ticks: self.now / 4,
            rate: Some(rate),
            acked: packets,
            losses: 0,
            delivered: self.delivered,
            lost: 0,
            delivered_at: Instant::ZERO + Duration::from_millis(self.now),
            delivered_clock: self.now * 1_000_000,
            rtt_us: Some(100_000),
            ack_delayed: false,
            srtt_us: 100_000,
            prior_in_flight: in_flight,
            in_flight,
            until_next_departure: Duration::ZERO,
            signals: crate::PathSignals::NONE,
        });
    }
}

#[test]
fn gains_are_those_of_the_kernel() {
    assert_eq!((HIGH_GAIN, DRAIN_GAIN), (739, 88));
    assert_eq!(probe_bw::GAINS, [320, 192, 256, 256, 256, 256, 256, 256]);
}

#[test]
fn the_first_rate_assumes_an_rtt_of_a_millisecond() {
    // 0.99 * 739/256 * 10 packets of 1,448 bytes in 1 ms, less the bits lost in shifts: 41,381,794.
    assert_eq!(bbr().pacing_rate(), 41_381_651);
}

#[test]
fn three_rounds_without_growth_end_startup_and_the_queue_is_drained() {
    let mut world = World::new();
    // The rate grows for three rounds, then it is constant.
    for per_ms in [1, 2, 4] {
        world.ack(100, per_ms, 300);
        assert_eq!(world.bbr.mode(), BbrMode::Startup);
    }
    for left in [2, 1, 0] {
        world.ack(400, 4, 1_200);
        assert_eq!(world.bbr.mode() == BbrMode::Startup, left > 0, "{left}");
    }
    assert_eq!((world.bbr.mode(), world.bbr.gains()), (BbrMode::Drain, [88, 739]));
    world.ack(400, 4, 350);
    assert_eq!((world.bbr.mode(), world.bbr.gains()[1]), (BbrMode::ProbeBw, 512));
    // 4 packets per ms and 100 ms: the window is twice that, plus bursts at both ends.
    for _ in 0..40 {
        world.ack(400, 4, 400);
    }
    let (bdp, burst) = (400, world.bbr.burst());
    let cwnd = world.bbr.snd_cwnd();
    assert!((2 * bdp + 3 * burst..=2 * bdp + 3 * burst + 404).contains(&cwnd), "{cwnd}");
}

#[test]
fn probe_bw_phases_are_sequential_and_never_start_with_the_second() {
    for seed in 0..50 {
        let mut bbr = Bbr::new(250, RandomStream::named(seed, "test", "bbr"));
        bbr.reset_probe_bw(Instant::ZERO);
        assert_ne!(bbr.cycle_idx, 1, "seed {seed}");
    }
    let mut world = World::new();
    world.bbr.min_rtt = Some(100_000);
    world.bbr.full_bw_reached = true;
    world.bbr.reset_probe_bw(Instant::ZERO);
    let mut phases = Vec::new();
    for _ in 0..40 {
        world.now += 1;
        world.ack(400, 4, 600);
        phases.push(world.bbr.cycle_idx);
    }
    let steps: Vec<usize> =
        phases.windows(2).filter(|w| w[0] != w[1]).map(|w| (w[1] + 8 - w[0]) % 8).collect();
    assert!(steps.len() > 30 && steps.iter().all(|step| *step == 1), "{phases:?}");
}

#[test]
fn probe_rtt_after_ten_seconds_without_a_lower_rtt() {
    let mut world = World::new();
    let mut entered = None;
    for k in 0..140 {
        let in_flight = if world.bbr.mode() == BbrMode::ProbeRtt { 4 } else { 400 };
        world.ack(4, 4, in_flight);
        // A longer RTT than the first.
        if world.bbr.mode() == BbrMode::ProbeRtt {
            entered.get_or_insert(k);
            assert!(world.bbr.sends_little());
            assert_eq!(world.bbr.snd_cwnd(), 4);
        } else if entered.is_some() {
            break;
        }
    }
    // The stamp is that of the first sample, at 100 ms; more than 10 s later it has expired.
    assert_eq!(entered, Some(101));
    // What is measured then counts as application-limited, that of the last acknowledgment too.
    assert!(world.bbr.sends_little());
    assert_ne!(world.bbr.mode(), BbrMode::ProbeRtt);
}

#[test]
fn recovery_conserves_packets_for_a_round_and_then_restores_the_window() {
    let mut world = World::new();
    for per_ms in [1, 2, 4, 4, 4, 4] {
        world.ack(100, per_ms, 100);
    }
    let before = world.bbr.snd_cwnd();
    let congested = |signal| CongestionEvent {
        now: Instant::ZERO,
        ticks: 0,
        signal,
        th_ack: Offset(1),
        snd_max: Offset(1_000_000),
        pipe: 0,
        snd_wnd: 0,
        lost: 0,
    };
    assert_eq!(
        world.bbr.on_congested(&congested(CongestionSignal::Loss)),
        WindowChange::RecoveryBegan
    );
    world.ack(1, 4, 50);
    assert_eq!(world.bbr.snd_cwnd(), 51);
    let _ = world.bbr.on_recovered(&RecoveryEnd { th_ack: Offset(1), pipe: 0 });
    world.ack(1, 4, 50);
    assert!(world.bbr.snd_cwnd() >= before.min(world.bbr.inflight(world.bbr.max_bw(), 512)));
}

#[test]
fn probe_bw_begins_with_the_given_phase() {
    // Phase 0 is a quarter faster, 1 a quarter slower; no kernel begins with 1: that value draws it.
    let first = |phase| {
        let mut bbr = bbr().beginning_with(phase);
        bbr.reset_probe_bw(Instant::ZERO);
        bbr.cycle_idx
    };
    for phase in [0, 2, 3, 4, 5, 6, 7] {
        assert_eq!(first(phase), usize::from(phase));
    }
    assert_eq!(first(1), {
        let mut bbr = bbr();
        bbr.reset_probe_bw(Instant::ZERO);
        bbr.cycle_idx
    });
}
