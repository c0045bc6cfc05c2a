//! Rules checked by hand calculation. `cargo xtask golden` replays the kernel's rows.

use units::{Bytes, Duration, Instant, Offset};

use super::*;
use crate::contract::SmoothedRtt;
use crate::hystart::HyStartMode;

const MSS: u32 = 1_448;
const MAXSEG: u32 = 1_460;

fn established() -> ConnectionStart {
    ConnectionStart {
        now: Instant::ZERO,
        ticks: 0,
        created_ticks: 0,
        una: Offset(0),
        mss: MSS,
        maxseg: MAXSEG,
        snd_scale: 7,
        syn_retransmitted: false,
        rtt: None,
        ssthresh: None,
    }
}

fn open(params: NewRenoParams) -> NewReno {
    let mut cc = NewReno::new(params);
    let _ = cc.on_established(&established());
    cc
}

fn acked(bytes: u64, nsegs: u32) -> AckEvent {
    AckEvent {
        now: Instant::ZERO,
        ticks: 0,
        rtt: None,
        srtt: SmoothedRtt::default(),
        snd_nxt: Offset(0),
        una: Offset(bytes),
        bytes,
        packets: 0,
        nsegs,
        ends_recovery: false,
        retransmitting: false,
        snd_wnd: 4 << 20,
        window_limited: true,
        max_packets_out: 0,
    }
}

fn congested(signal: CongestionSignal) -> CongestionEvent {
    CongestionEvent {
        now: Instant::ZERO,
        ticks: 0,
        signal,
        th_ack: Offset(0),
        snd_max: Offset(100_000),
        pipe: 50_000,
        snd_wnd: 4 << 20,
        lost: 0,
    }
}

fn timeout(shift: u32) -> CongestionEvent {
    congested(CongestionSignal::Timeout { shift })
}

#[test]
fn the_initial_window_is_ten_segments_unless_they_are_large_or_the_syn_was_lost() {
    let window = |mss, syn_retransmitted| {
        let mut cc = NewReno::new(NewRenoParams::FREEBSD_14_3);
        let _ = cc.on_established(&ConnectionStart {
            mss,
            maxseg: mss,
            syn_retransmitted,
            ..established()
        });
        cc.control()
    };
    assert_eq!(window(1_448, false).window, Bytes(14_480));
    assert_eq!(window(1_448, false).ssthresh, None);
    assert_eq!(window(8_960, false).window, Bytes(17_920));
    assert_eq!(window(1_448, true).window, Bytes(1_448));
}

#[test]
fn acks_merged_by_the_hosts_lro_count_as_one() {
    // 45 segments acknowledged at once: L * t_maxseg for one counted ACK, all of it for 45.
    let grown = |params, nsegs| {
        let mut cc = open(params);
        assert_eq!(cc.on_acked(&acked(65_160, nsegs)), WindowChange::Grew(Growth::SlowStart));
        cc.snd_cwnd() - 14_480
    };
    assert_eq!(grown(NewRenoParams::FREEBSD_14_3, 1), 2 * MAXSEG);
    assert_eq!(grown(NewRenoParams::FREEBSD_MAIN_2025, 1), 2 * MSS);
    assert_eq!(grown(NewRenoParams::FREEBSD_14_3, 45), 65_160);
    assert_eq!(grown(NewRenoParams { abc_l_var: 8, ..NewRenoParams::FREEBSD_14_3 }, 1), 8 * MAXSEG);
    assert_eq!(grown(NewRenoParams { rfc3465: false, ..NewRenoParams::FREEBSD_14_3 }, 1), MAXSEG);
}

#[test]
fn growth_stops_beyond_the_peers_window_and_at_the_largest_window() {
    let mut cc = open(NewRenoParams::FREEBSD_14_3);
    let small = AckEvent { snd_wnd: 14_479, ..acked(2_896, 1) };
    assert_eq!(cc.on_acked(&small), WindowChange::None);
    assert_eq!(
        cc.on_acked(&AckEvent { snd_wnd: 14_480, ..small }),
        WindowChange::Grew(Growth::SlowStart)
    );
    cc.set_window(Bytes(65_535 << 7));
    assert_eq!(cc.on_acked(&AckEvent { snd_wnd: u64::MAX, ..small }), WindowChange::None);
}

#[test]
fn beyond_slow_start_a_windows_worth_of_bytes_adds_one_segment() {
    let mut cc = NewReno::new(NewRenoParams::FREEBSD_14_3);
    let _ = cc.on_established(&ConnectionStart { ssthresh: Some(Bytes(10_000)), ..established() });
    // 14,480 in steps of 2,896: the fifth completes the window.
    for _ in 0..4 {
        assert_eq!(cc.on_acked(&acked(2_896, 1)), WindowChange::None);
    }
    assert_eq!(cc.on_acked(&acked(2_896, 1)), WindowChange::Grew(Growth::Avoidance));
    assert_eq!((cc.snd_cwnd(), cc.bytes_acked()), (14_480 + MAXSEG, 0));
}

#[test]
fn rack_counts_two_segments_of_an_ack_beyond_slow_start() {
    // rack_ack_received: an ACK of four segments counts as two, so a window of ten takes five ACKs,
    // of twenty segments; with two merged by LRO (nsegs 2) it counts entirely.
    let acks = |counting, nsegs| {
        let mut cc = NewReno::new(NewRenoParams { counting, ..NewRenoParams::FREEBSD_14_3 });
        let _ =
            cc.on_established(&ConnectionStart { ssthresh: Some(Bytes(10_000)), ..established() });
        (1..9).find(|_| cc.on_acked(&acked(4 * 1_448, nsegs)) != WindowChange::None)
    };
    assert_eq!(acks(AckCounting::All, 1), Some(3));
    assert_eq!(acks(AckCounting::Limited, 1), Some(5));
    assert_eq!(acks(AckCounting::Limited, 2), Some(3));
}

#[test]
fn rack_keeps_bytes_counted_in_recovery() {
    // rack_post_recovery keeps t_bytes_acked, which cc_post_recovery clears.
    let kept = |counting| {
        let mut cc = open(NewRenoParams { counting, ..NewRenoParams::FREEBSD_14_3 });
        let _ = cc.on_congested(&congested(CongestionSignal::Loss));
        let _ = cc.on_acked(&acked(2_896, 1));
        let _ = cc.on_recovered(&RecoveryEnd { th_ack: Offset(100_000), pipe: 50_000 });
        cc.bytes_acked()
    };
    assert_eq!((kept(AckCounting::All), kept(AckCounting::Limited)), (0, 2_896));
}

#[test]
fn a_loss_halves_the_threshold_once_and_the_window_after_recovery() {
    let mut cc = open(NewRenoParams::FREEBSD_14_3);
    cc.set_window(Bytes(30 * 1_448));
    assert_eq!(cc.on_congested(&congested(CongestionSignal::Loss)), WindowChange::RecoveryBegan);
    assert!(cc.in_recovery());
    assert_eq!(cc.recovery_point(), Offset(100_000));
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (30 * MSS, 15 * MSS));
    assert_eq!(cc.on_congested(&congested(CongestionSignal::Loss)), WindowChange::None);
    assert_eq!(cc.on_acked(&acked(2_896, 1)), WindowChange::None);
    // Many bytes in flight: the threshold. Few: these plus a segment, to avoid a burst.
    let ended = |pipe| {
        let mut cc = cc.clone();
        let event = RecoveryEnd { th_ack: Offset(100_000), pipe };
        assert_eq!(cc.on_recovered(&event), WindowChange::RecoveryEnded);
        assert!(!cc.in_recovery());
        cc.snd_cwnd()
    };
    assert_eq!(ended(15 * 1_448), 15 * MSS);
    assert_eq!(ended(10_000), 10_000 + MAXSEG);
    assert_eq!(ended(0), 2 * MAXSEG);
}

#[test]
fn a_timeout_reduces_the_threshold_by_the_rule_of_its_version() {
    // 13.0: half of 30 segments, then half of the one that is left, at least two.
    let mut cc = open(NewRenoParams::FREEBSD_13_0);
    cc.set_window(Bytes(30 * 1_448));
    assert_eq!(cc.on_congested(&timeout(1)), WindowChange::Collapsed);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (MSS, 15 * MSS));
    let _ = cc.on_congested(&timeout(2));
    assert_eq!(cc.snd_ssthresh(), 2 * MSS);
    // Later: half of the 50,000 bytes in flight, 17.26 segments, once.
    let mut cc = open(NewRenoParams::FREEBSD_MAIN_2024_10);
    cc.set_window(Bytes(30 * 1_448));
    let _ = cc.on_congested(&timeout(1));
    let _ = cc.on_congested(&timeout(2));
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (MSS, 17 * MSS));
    // Slow start after it: one segment per ACK, independent of the bytes covered.
    let retransmission = AckEvent { retransmitting: true, ..acked(2_896, 1) };
    assert_eq!(cc.on_acked(&retransmission), WindowChange::Grew(Growth::SlowStart));
    assert_eq!(cc.snd_cwnd(), MSS + MAXSEG);
}

#[test]
fn a_spurious_timeout_restores_the_state_before_the_first() {
    let mut cc = open(NewRenoParams::FREEBSD_14_3);
    cc.set_window(Bytes(30 * 1_448));
    let _ = cc.on_congested(&congested(CongestionSignal::Loss));
    let before = cc.clone();
    let _ = cc.on_congested(&timeout(1));
    let _ = cc.on_congested(&timeout(2));
    assert!(!cc.in_recovery());
    assert_eq!(
        cc.on_congested(&congested(CongestionSignal::SpuriousTimeout)),
        WindowChange::Undone
    );
    assert_eq!(cc.control(), before.control());
    assert!(cc.in_recovery() && cc.in_congrecovery());
}

#[test]
fn an_ecn_echo_counts_once_per_flight() {
    let mut cc = open(NewRenoParams::FREEBSD_14_3);
    let echo = |th_ack, snd_max| CongestionEvent {
        th_ack: Offset(th_ack),
        snd_max: Offset(snd_max),
        ..congested(CongestionSignal::Ecn)
    };
    assert_eq!(cc.on_congested(&echo(0, 14_480)), WindowChange::RecoveryBegan);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (5 * MSS, 5 * MSS));
    assert!(!cc.in_recovery());
    assert_eq!(cc.on_congested(&echo(14_480, 20_000)), WindowChange::None);
    assert_eq!(cc.on_congested(&echo(14_481, 20_000)), WindowChange::RecoveryBegan);
    assert_eq!(cc.snd_cwnd(), 2 * MSS);
    // With ABE 80 percent are kept: 8 of 10 segments.
    let mut cc = open(NewRenoParams { beta_ecn: Some(80), ..NewRenoParams::FREEBSD_14_3 });
    let _ = cc.on_congested(&echo(0, 14_480));
    assert_eq!(cc.snd_cwnd(), 8 * MSS);
}

#[test]
fn idle_restarts_at_the_initial_window_and_keeps_three_quarters_as_threshold() {
    let mut cc = open(NewRenoParams::FREEBSD_14_3);
    cc.set_window(Bytes(1_000_000));
    let _ = cc.on_congested(&congested(CongestionSignal::Loss));
    let _ = cc.on_recovered(&RecoveryEnd { th_ack: Offset(100_000), pipe: u64::MAX });
    cc.set_window(Bytes(1_000_000));
    let idle =
        IdleEvent { ticks: 0, idle: Duration::from_secs(1), rto: Duration::from_millis(230) };
    assert_eq!(cc.on_idle(&idle), WindowChange::Shrank);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (14_480, 750_000));
    assert_eq!(cc.on_idle(&idle), WindowChange::None);
    // A quarter, rounded down, is lost: 17,170 - 4,292 (a row of cubic.csv.gz, 13.0, mix_idle).
    let mut cc = open(NewRenoParams::FREEBSD_13_0);
    cc.set_threshold(Some(Bytes(2_896)));
    cc.set_window(Bytes(17_170));
    let _ = cc.on_idle(&idle);
    assert_eq!(cc.snd_ssthresh(), 12_878);
}

/// Rounds of eight RTT samples each, with 20,000 bytes in flight, then ten thousand more in each
/// round; one ACK of a segment between the samples and the next round.
fn rounds(cc: &mut NewReno, rtts_ms: &[u64]) -> WindowChange {
    let mut change = WindowChange::None;
    for (round, &ms) in rtts_ms.iter().enumerate() {
        let began = cc.on_round(round as u32 + 1);
        change = if began == WindowChange::None { change } else { began };
        for _ in 0..8 {
            let _ = cc.on_rtt_sample(&RttSample {
                rtt: Duration::from_millis(ms),
                transmissions: 1,
                flight: 20_000 + 10_000 * round as u64,
            });
        }
        let _ = cc.on_acked(&acked(1_448, 1));
    }
    change
}

#[test]
fn hystart_slows_growth_when_delay_increases_and_exits_five_rounds_later() {
    // 40 ms, then 45: at least 40 + 40/8. The window grows by a whole segment, by a quarter from
    // the second round on; the exit is at the start of round 7.
    let delays = [40, 45, 45, 45, 45, 45, 45];
    let with = |mode| {
        let mut cc = open(NewRenoParams { hystart: Some(mode), ..NewRenoParams::FREEBSD_14_3 });
        let change = rounds(&mut cc, &delays);
        (cc, change)
    };
    let at_exit = 14_480 + 1_448 + 5 * 362;
    let (cc, change) = with(HyStartMode::Plain);
    assert_eq!(change, WindowChange::SlowStartEnded);
    assert_eq!(cc.snd_ssthresh(), at_exit);
    assert!(!cc.hystart().enabled && !cc.hystart().in_css);
    // Entered in round 2 with 30,000 bytes in flight; the minimum of round 6 had 70,000.
    let (cc, change) = with(HyStartMode::ShrinkWindow);
    assert_eq!(change, WindowChange::SlowStartEnded);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (30_000 + 362, 70_000));
    assert!(cc.hystart().in_css);
    let (cc, _) = with(HyStartMode::ShrinkWindowMean);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (30_000 + 362, 50_000));
    let (cc, change) = with(HyStartMode::NotAllowed);
    assert_eq!(change, WindowChange::None);
    assert_eq!(cc.snd_cwnd(), 14_480 + 7 * 1_448);
}

#[test]
fn hystart_resumes_full_growth_when_delay_falls() {
    let mode = Some(HyStartMode::Plain);
    let mut cc = open(NewRenoParams { hystart: mode, ..NewRenoParams::FREEBSD_14_3 });
    let mut slowed = cc.clone();
    let _ = rounds(&mut slowed, &[40, 45]);
    assert!(slowed.hystart().in_css);
    let _ = rounds(&mut cc, &[40, 45, 44]);
    assert!(!cc.hystart().in_css && cc.hystart().enabled);
    // A loss disables it, idle time enables it.
    let _ = cc.on_congested(&congested(CongestionSignal::Loss));
    assert!(!cc.hystart().enabled);
    let _ = cc.on_idle(&IdleEvent {
        ticks: 0,
        idle: Duration::from_secs(1),
        rto: Duration::from_secs(1),
    });
    assert!(cc.hystart().enabled);
}

#[test]
fn the_ack_that_ends_a_recovery_grows_nothing_but_the_next_one_does() {
    let mut cc = open(NewRenoParams::FREEBSD_14_3);
    cc.set_window(Bytes(30 * 1_448));
    let _ = cc.on_congested(&congested(CongestionSignal::Loss));
    let _ = cc.on_recovered(&RecoveryEnd { th_ack: Offset(100_000), pipe: u64::MAX });
    let last = AckEvent { ends_recovery: true, ..acked(2_896, 1) };
    assert_eq!(cc.on_acked(&last), WindowChange::None);
    // At the threshold it is still in slow start.
    assert_eq!(cc.on_acked(&acked(2_896, 1)), WindowChange::Grew(Growth::SlowStart));
}
