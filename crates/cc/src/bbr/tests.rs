//! Single rules; whole transfers are in tests/bbr_recordings.rs.

use super::*;
use crate::contract::DeliveryRate;

fn bbr() -> Bbr {
    let mut bbr = Bbr::new(250, Stream::named(1, "test", "bbr"));
    let _ = bbr.on_established(&Established {
        now: Instant::ZERO,
        ticks: 0,
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

/// A path of 100 packets in 100 ms on which each round brings what the window allows.
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
            rtt_us: Some(100_000),
            ack_delayed: false,
            srtt_us: 100_000,
            prior_in_flight: in_flight,
            in_flight,
            until_next_departure: Duration::ZERO,
            app_limited_now: false,
        });
    }
}

#[test]
fn gains_are_those_of_the_kernel() {
    assert_eq!((HIGH_GAIN, DRAIN_GAIN), (739, 88));
    assert_eq!(probe_bw::GAINS, [320, 192, 256, 256, 256, 256, 256, 256]);
}

#[test]
fn the_first_rate_assumes_a_round_trip_of_a_millisecond() {
    // 0.99 * 739/256 * 10 packets of 1,448 bytes in 1 ms, less what the shifts cut off: 41,381,794.
    assert_eq!(bbr().pacing_rate(), 41_381_651);
}

#[test]
fn three_rounds_without_growth_end_startup_and_the_queue_is_drained() {
    let mut world = World::new();
    // The rate grows for three rounds, then it stays.
    for per_ms in [1, 2, 4] {
        world.ack(100, per_ms, 300);
        assert_eq!(world.bbr.mode(), Mode::Startup);
    }
    for left in [2, 1, 0] {
        world.ack(400, 4, 1_200);
        assert_eq!(world.bbr.mode() == Mode::Startup, left > 0, "{left}");
    }
    assert_eq!((world.bbr.mode(), world.bbr.gains()), (Mode::Drain, [88, 739]));
    world.ack(400, 4, 350);
    assert_eq!((world.bbr.mode(), world.bbr.gains()[1]), (Mode::ProbeBw, 512));
    // 4 packets per ms and 100 ms: the window is twice that, and room for bursts at both ends.
    for _ in 0..40 {
        world.ack(400, 4, 400);
    }
    let (bdp, burst) = (400, world.bbr.burst());
    let cwnd = world.bbr.snd_cwnd();
    assert!((2 * bdp + 3 * burst..=2 * bdp + 3 * burst + 404).contains(&cwnd), "{cwnd}");
}

#[test]
fn phases_of_probe_bw_follow_one_another_and_never_begin_with_the_second() {
    for seed in 0..50 {
        let mut bbr = Bbr::new(250, Stream::named(seed, "test", "bbr"));
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
fn ten_seconds_without_a_shorter_round_trip_and_four_packets_are_under_way() {
    let mut world = World::new();
    let mut entered = None;
    for k in 0..140 {
        let in_flight = if world.bbr.mode() == Mode::ProbeRtt { 4 } else { 400 };
        world.ack(4, 4, in_flight);
        // A longer round trip than the first.
        if world.bbr.mode() == Mode::ProbeRtt {
            entered.get_or_insert(k);
            assert_eq!(world.bbr.snd_cwnd(), 4);
        } else if entered.is_some() {
            break;
        }
    }
    // The stamp is of the first sample, at 100 ms; more than 10 s later it has expired.
    assert_eq!(entered, Some(101));
    assert_ne!(world.bbr.mode(), Mode::ProbeRtt);
}

#[test]
fn the_first_round_of_a_recovery_conserves_packets_and_the_window_comes_back() {
    let mut world = World::new();
    for per_ms in [1, 2, 4, 4, 4, 4] {
        world.ack(100, per_ms, 100);
    }
    let before = world.bbr.snd_cwnd();
    let congested = |signal| Congested {
        now: Instant::ZERO,
        ticks: 0,
        signal,
        th_ack: Offset(1),
        snd_max: Offset(1_000_000),
        pipe: 0,
        snd_wnd: 0,
    };
    assert_eq!(world.bbr.on_congested(&congested(Signal::Loss)), Change::RecoveryBegan);
    world.ack(1, 4, 50);
    assert_eq!(world.bbr.snd_cwnd(), 51);
    let _ = world.bbr.on_recovered(&Recovered { th_ack: Offset(1), pipe: 0 });
    world.ack(1, 4, 50);
    assert!(world.bbr.snd_cwnd() >= before.min(world.bbr.inflight(world.bbr.max_bw(), 512)));
}
