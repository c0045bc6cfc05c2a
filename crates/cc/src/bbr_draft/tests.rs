//! Named state, step by step: a path of 1 MB/s and 100 ms, so of 100,000 bytes.

use units::{Bytes, Duration, Instant, Offset, RandomStream};

use super::params::{PICOQUIC, QUICHE, S2N_QUIC};
use super::*;
use crate::contract::{
    CongestionEvent, CongestionSignal, ConnectionStart, Controller, DeliveryRate, LostSegment,
    PathSignals, RateController, RateSample, TxSample,
};

const MSS: u64 = 1_000;
const RATE: u64 = 1_000_000;
const BDP: u64 = 100_000;
const RTT: Duration = Duration::from_millis(100);

/// A controller and what its stack counts.
struct Driver {
    cc: BbrDraft,
    now: Instant,
    delivered: u64,
    lost: u64,
}

impl Driver {
    fn new(params: &'static BbrDraftParams) -> Self {
        let rng = RandomStream::named(1, "test", "bbr");
        let mut cc = BbrDraft::new(params, rng).counting_bytes(10 * MSS);
        let _ = cc.on_established(&ConnectionStart {
            now: Instant::ZERO,
            ticks: 0,
            created_ticks: 0,
            una: Offset(0),
            mss: MSS as u32,
            maxseg: MSS as u32,
            snd_scale: 14,
            syn_retransmitted: false,
            rtt: Some(RTT),
            ssthresh: None,
        });
        Self { cc, now: Instant::ZERO, delivered: 1, lost: 0 }
    }

    /// An acknowledgment a round trip later: the packet that it delivers was sent when the last one arrived.
    fn round(&mut self, rate: u64, inflight: u64) {
        self.round_with(rate, inflight, |_| {});
    }

    fn round_with(&mut self, rate: u64, inflight: u64, change: impl FnOnce(&mut RateSample)) {
        self.now += RTT;
        let newly = rate / 10;
        let prior = self.delivered;
        self.delivered += newly;
        let mut sample = RateSample {
            ticks: 0,
            rate: Some(DeliveryRate {
                delivered: newly as u32,
                interval_us: 100_000,
                prior_delivered: prior,
                app_limited: false,
            }),
            acked: newly as u32,
            losses: 0,
            delivered: self.delivered,
            lost: self.lost,
            delivered_at: self.now,
            delivered_clock: self.now.as_nanos(),
            rtt_us: Some(100_000),
            ack_delayed: false,
            srtt_us: 100_000,
            prior_in_flight: inflight as u32,
            in_flight: inflight as u32,
            until_next_departure: Duration::ZERO,
            signals: PathSignals {
                now: self.now,
                tx: TxSample {
                    in_flight: inflight as u32,
                    delivered: newly as u32,
                    ..TxSample::default()
                },
                ..PathSignals::NONE
            },
        };
        change(&mut sample);
        let _ = self.cc.on_rate_sample(&sample);
    }

    /// Packets of a segment are lost that were sent with this flight.
    fn lose(&mut self, packets: u64, in_flight: u64, app_limited: bool) {
        for number in 1..=packets {
            self.lost += MSS;
            self.cc.on_segment_lost(&LostSegment {
                now: self.now,
                packets: MSS as u32,
                in_flight: in_flight as u32,
                lost_since: (number * MSS) as u32,
                app_limited,
                sacked_before: false,
                delivered: self.delivered,
            });
        }
    }

    fn congested(&mut self, signal: CongestionSignal) {
        let _ = self.cc.on_congested(&CongestionEvent {
            now: self.now,
            ticks: 0,
            signal,
            th_ack: Offset(0),
            snd_max: Offset(self.delivered + BDP),
            pipe: BDP / 2,
            snd_wnd: u64::MAX,
            lost: self.lost,
        });
    }

    /// Until Drain: the rate has not grown for three rounds.
    fn run_to_drain(&mut self) {
        for _ in 0..4 {
            self.round(RATE, 2 * BDP);
        }
        assert_eq!(self.cc.state, BbrDraftPhase::Drain);
    }

    /// By time: with a small flight DOWN ends with the acknowledgment that ends Drain.
    fn run_to_down(&mut self) {
        self.run_to_drain();
        for _ in 0..4 {
            self.round(RATE, 2 * BDP);
        }
        assert_eq!(self.cc.state, BbrDraftPhase::Down);
    }

    /// To a probe that began after a round of Refill.
    fn run_to_up(&mut self) {
        self.run_to_drain();
        for _ in 0..100 {
            if self.cc.state == BbrDraftPhase::Up {
                return;
            }
            self.round(RATE, BDP);
        }
        panic!("no probe in 100 rounds, but in {:?}", self.cc.state);
    }
}

#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let mut driver = Driver::new(&DRAFT);
    assert_eq!((driver.cc.pacing_gain, driver.cc.cwnd_gain), (2_770, 2_000));
    driver.round(RATE / 2, BDP);
    // 25 % more.
    driver.round(RATE / 2 * 5 / 4, BDP);
    assert_eq!(driver.cc.full_bw_count, 0);
    for count in 1..=3 {
        assert_eq!(driver.cc.state, BbrDraftPhase::Startup);
        driver.round(RATE / 2 * 5 / 4, BDP);
        assert_eq!(driver.cc.full_bw_count, count);
    }
    assert!(driver.cc.full_bw_now && driver.cc.full_bw_reached);
    assert_eq!((driver.cc.state, driver.cc.pacing_gain), (BbrDraftPhase::Drain, 500));
}

#[test]
fn application_limited_rounds_do_not_end_startup() {
    let mut driver = Driver::new(&DRAFT);
    for _ in 0..20 {
        driver.round_with(RATE, BDP / 4, |sample| sample.signals.tx.app_limited = true);
    }
    assert_eq!((driver.cc.state, driver.cc.full_bw_count), (BbrDraftPhase::Startup, 0));
}

/// More than 2 % lost, six acknowledgments with losses, and a round in recovery.
#[test]
fn startup_ends_by_losses_of_a_whole_round_in_recovery() {
    let mut driver = Driver::new(&DRAFT);
    driver.round(RATE / 4, BDP / 4);
    driver.lose(3, BDP / 4, true);
    driver.congested(CongestionSignal::Loss);
    let limited = |sample: &mut RateSample| {
        sample.signals.tx.app_limited = true;
        sample.losses = MSS as u32;
        sample.signals.tx.lost = 3 * MSS as u32;
    };
    for _ in 0..6 {
        driver.lose(1, BDP / 4, true);
        driver.round_with(RATE / 4, BDP / 4, limited);
    }
    // Each round is a loss round here: one acknowledgment with losses is too few.
    assert_eq!(driver.cc.state, BbrDraftPhase::Startup);
    driver.cc.loss_events_in_round = 5;
    driver.lose(1, BDP / 4, true);
    driver.round_with(RATE / 4, BDP / 4, limited);
    // The limited flight is below the target of Drain, but above the headroom.
    assert_eq!((driver.cc.state, driver.cc.full_bw_reached), (BbrDraftPhase::Down, true));
    assert_eq!(driver.cc.undo_state, Some(BbrDraftPhase::Startup));
    // max(BBR.bdp, BBR.inflight_latest): 25,000 bytes each.
    assert_eq!(driver.cc.inflight_longterm, 25_000);
}

#[test]
fn drain_ends_by_the_flight_or_after_three_rounds() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_drain();
    for _ in 0..3 {
        driver.round(RATE, 2 * BDP);
        assert_eq!(driver.cc.state, BbrDraftPhase::Drain);
    }
    driver.round(RATE, 2 * BDP);
    assert_eq!(driver.cc.state, BbrDraftPhase::Down);
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_drain();
    driver.round(RATE, BDP);
    // DOWN ends with the same acknowledgment.
    assert_eq!((driver.cc.state, driver.cc.pacing_gain), (BbrDraftPhase::Cruise, 1_000));
}

#[test]
fn a_cycle_goes_down_cruise_refill_up() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_down();
    driver.round(RATE, BDP / 2);
    assert_eq!((driver.cc.state, driver.cc.pacing_gain), (BbrDraftPhase::Cruise, 1_000));
    let begin = driver.cc.cycle_stamp;
    while driver.cc.state == BbrDraftPhase::Cruise {
        driver.round(RATE, BDP);
    }
    assert_eq!(
        (driver.cc.state, driver.cc.ack_phase),
        (BbrDraftPhase::Refill, BbrAckPhase::Refilling)
    );
    // 2 to 3 s, and a round at most.
    let waited = driver.now.since(begin);
    assert!(waited >= Duration::from_secs(2) && waited <= Duration::from_millis(3_200), "{waited}");
    driver.round(RATE, BDP);
    assert_eq!((driver.cc.state, driver.cc.cwnd_gain), (BbrDraftPhase::Up, 2_250));
    assert!(driver.cc.is_bw_probe_sample);
    for _ in 0..3 {
        driver.round(RATE, BDP);
    }
    assert_eq!((driver.cc.state, driver.cc.prev_probe_too_high), (BbrDraftPhase::Down, false));
}

/// 2,000 bytes were lost before this packet: 2 % of 100,000 are crossed at once, at what was in flight before it.
#[test]
fn excess_loss_lowers_the_long_term_bound_and_ends_the_probe() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_up();
    // Within the tolerance: 2 of 101 packets.
    driver.lose(2, 101 * MSS, false);
    assert_eq!((driver.cc.state, driver.cc.inflight_longterm), (BbrDraftPhase::Up, INFINITY));
    driver.lose(3, 101 * MSS, false);
    assert_eq!(driver.cc.state, BbrDraftPhase::Down);
    // (0.02 x 100,000 - 2,000) / 0.98 = 0 bytes of the third packet fit.
    assert_eq!(driver.cc.inflight_longterm, 100 * MSS);
    assert!(driver.cc.prev_probe_too_high && !driver.cc.is_bw_probe_sample);
    assert_eq!(driver.cc.undo_state, Some(BbrDraftPhase::Up));
    assert_eq!(driver.cc.inflight_with_headroom(), 85 * MSS);
}

#[test]
fn an_application_limited_probe_goes_down_without_a_bound() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_up();
    driver.lose(3, 50 * MSS, true);
    assert_eq!((driver.cc.state, driver.cc.inflight_longterm), (BbrDraftPhase::Down, INFINITY));
}

#[test]
fn a_probe_after_excess_loss_is_precautionary() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_up();
    driver.lose(3, 101 * MSS, false);
    let mut rounds = 0;
    while driver.cc.state != BbrDraftPhase::Up {
        driver.round(RATE, BDP / 2);
        rounds += 1;
        assert!(rounds < 100, "{:?}", driver.cc.state);
    }
    // The flight reaches the risky level: down at once, and up again after a round without loss.
    driver.round(RATE, 100 * MSS);
    assert_eq!((driver.cc.state, driver.cc.prev_probe_precautionary), (BbrDraftPhase::Down, true));
    driver.round(RATE, BDP / 2);
    assert_eq!((driver.cc.state, driver.cc.prev_probe_too_high), (BbrDraftPhase::Refill, false));
    // A dialect without precaution stays.
    let mut driver = Driver::new(&PICOQUIC);
    driver.run_to_up();
    (driver.cc.prev_probe_too_high, driver.cc.inflight_longterm) = (true, BDP);
    driver.round(RATE, BDP);
    assert_eq!(driver.cc.state, BbrDraftPhase::Up);
}

#[test]
fn a_bound_that_limits_the_flight_grows_twice_as_fast_each_round() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_up();
    (driver.cc.inflight_longterm, driver.cc.cwnd) = (BDP, BDP);
    (driver.cc.probe_up_acked_per_inc, driver.cc.bw_probe_up_acked) = (BDP, 0);
    let mut grown = Vec::new();
    for _ in 0..3 {
        let before = driver.cc.inflight_longterm;
        driver.round_with(RATE, BDP, |sample| sample.signals.window_limited = true);
        grown.push((driver.cc.inflight_longterm - before) / MSS);
        driver.cc.cwnd = driver.cc.inflight_longterm;
    }
    // Each step covers the round before: 1, 2, 4 segments, or one less where the window has grown.
    assert_eq!(grown[0], 1);
    assert!(grown.windows(2).all(|pair| pair[1] + 1 >= 2 * pair[0]), "{grown:?}");
}

#[test]
fn losses_outside_of_probes_lower_the_short_term_bounds() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_down();
    driver.round(RATE, BDP / 2);
    driver.cc.cwnd = 200 * MSS;
    driver.lose(1, BDP, false);
    // The round ends, with half of the rate.
    driver.round(RATE / 2, BDP);
    driver.lose(1, BDP, false);
    driver.round(RATE / 2, BDP);
    assert_eq!(driver.cc.bw_shortterm, (RATE * 7 / 10).max(RATE) * 7 / 10);
    assert_eq!(driver.cc.bw, driver.cc.bw_shortterm);
    while driver.cc.state != BbrDraftPhase::Refill {
        driver.round(RATE, BDP);
    }
    assert_eq!([driver.cc.bw_shortterm, driver.cc.inflight_shortterm], [INFINITY; 2]);
}

#[test]
fn a_spurious_recovery_is_undone() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_up();
    let cwnd = driver.cc.cwnd;
    driver.lose(3, 50 * MSS, false);
    driver.congested(CongestionSignal::Loss);
    assert_eq!(driver.cc.state, BbrDraftPhase::Down);
    assert!(driver.cc.inflight_longterm < INFINITY);
    driver.congested(CongestionSignal::SpuriousRecovery);
    assert_eq!((driver.cc.state, driver.cc.undone), (BbrDraftPhase::Refill, 1));
    assert_eq!([driver.cc.inflight_longterm, driver.cc.bw_shortterm], [INFINITY; 2]);
    assert!(driver.cc.cwnd >= cwnd);
    // A dialect without an undo keeps the bound.
    let mut driver = Driver::new(&S2N_QUIC);
    driver.run_to_up();
    driver.lose(3, 50 * MSS, false);
    driver.congested(CongestionSignal::SpuriousRecovery);
    assert_eq!((driver.cc.state, driver.cc.undone), (BbrDraftPhase::Down, 0));
}

#[test]
fn a_timeout_leaves_the_flight_and_a_segment() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_down();
    driver.congested(CongestionSignal::Timeout { shift: 1 });
    assert_eq!(driver.cc.control().window, Bytes(BDP / 2 + MSS));
    driver.congested(CongestionSignal::SpuriousTimeout);
    assert!(driver.cc.control().window > Bytes(BDP));
}

#[test]
fn probe_rtt_begins_after_five_seconds_and_lasts_200_ms_and_a_round() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_down();
    while driver.cc.state != BbrDraftPhase::ProbeRtt {
        driver.round(RATE, BDP);
        assert!(driver.now <= Instant::ZERO + Duration::from_millis(5_200));
    }
    assert!(driver.now > Instant::ZERO + Duration::from_secs(5));
    assert_eq!((driver.cc.pacing_gain, driver.cc.cwnd_gain), (1_000, 500));
    assert_eq!(driver.cc.cwnd, BDP / 2);
    assert!(driver.cc.sends_little());
    driver.round(RATE, BDP / 2);
    let begin = driver.now;
    while driver.cc.state == BbrDraftPhase::ProbeRtt {
        driver.round(RATE / 2, BDP / 2);
    }
    assert_eq!(driver.now.since(begin), Duration::from_millis(300));
    assert_eq!(driver.cc.state, BbrDraftPhase::Cruise);
}

#[test]
fn a_pause_of_the_application_replaces_probe_rtt() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_down();
    driver.now += Duration::from_secs(6);
    driver.cc.on_restart(driver.now, 0, true);
    assert!(driver.cc.idle_restart);
    driver.round(RATE, BDP / 4);
    assert_ne!(driver.cc.state, BbrDraftPhase::ProbeRtt);
    assert!(!driver.cc.idle_restart);
    driver.round(RATE, BDP / 4);
    assert_ne!(driver.cc.state, BbrDraftPhase::ProbeRtt);
}

#[test]
fn the_window_is_at_least_four_segments() {
    let mut driver = Driver::new(&DRAFT);
    for _ in 0..40 {
        driver.round(MSS, 500);
    }
    assert!(driver.cc.full_bw_reached);
    assert!(driver.cc.cwnd >= 4 * MSS, "{}", driver.cc.cwnd);
}

#[test]
fn ce_marks_count_as_losses() {
    let mut driver = Driver::new(&DRAFT);
    driver.run_to_up();
    let marked = |sample: &mut RateSample| {
        sample.signals.ece = true;
        sample.signals.tx.delivered_ce = 3 * MSS as u32;
    };
    driver.round_with(RATE, BDP, marked);
    assert_eq!((driver.cc.state, driver.cc.prev_probe_too_high), (BbrDraftPhase::Down, true));
    // quiche ignores them.
    let mut driver = Driver::new(&QUICHE);
    driver.run_to_up();
    driver.round_with(RATE, BDP, marked);
    assert!(!driver.cc.prev_probe_too_high);
}

#[test]
fn dialects_are_other_values_of_one_machine() {
    let quiche = Driver::new(&QUICHE);
    assert_eq!(quiche.cc.pacing_gain, 2_773);
    let gains =
        DIALECTS.map(|dialect| (dialect.name, dialect.startup_pacing_gain, dialect.loss_thresh));
    assert_eq!(
        gains,
        [
            ("bbr-draft", 2_770, 20),
            ("bbr-picoquic", 2_770, 20),
            ("bbr-quiche", 2_773, 15),
            ("bbr-s2n", 2_770, 20)
        ]
    );
    // quiche's ProbeRTT waits for the end of DOWN.
    let mut driver = Driver::new(&QUICHE);
    driver.run_to_drain();
    driver.round(RATE, BDP / 2);
    assert_eq!(driver.cc.state, BbrDraftPhase::Cruise);
    driver.now += Duration::from_secs(11);
    driver.round(RATE, BDP);
    assert_eq!(driver.cc.state, BbrDraftPhase::Refill);
    let mut states = Vec::new();
    while driver.cc.state != BbrDraftPhase::ProbeRtt {
        driver.round(RATE, 2 * BDP);
        states.push(driver.cc.state);
        assert!(states.len() < 30, "{states:?}");
    }
    assert_eq!(states[states.len() - 2], BbrDraftPhase::Down);
}
