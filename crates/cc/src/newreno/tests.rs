//! Rules by hand arithmetic. The rows of the kernel are replayed by `cargo xtask golden`.

use units::{Bytes, Duration, Instant, Offset};

use super::*;
use crate::contract::Smoothed;
use crate::hystart::HyStartMode;

const MSS: u32 = 1_448;
const MAXSEG: u32 = 1_460;

fn established() -> Established {
    Established {
        now: Instant::ZERO,
        ticks: 0,
        una: Offset(0),
        mss: MSS,
        maxseg: MAXSEG,
        snd_scale: 7,
        syn_retransmitted: false,
        rtt: None,
        ssthresh: None,
    }
}

fn open(params: Params) -> NewReno {
    let mut cc = NewReno::new(params);
    let _ = cc.on_established(&established());
    cc
}

fn acked(bytes: u64, nsegs: u32) -> Acked {
    Acked {
        now: Instant::ZERO,
        ticks: 0,
        rtt: None,
        srtt: Smoothed::default(),
        snd_nxt: Offset(0),
        una: Offset(bytes),
        bytes,
        packets: 0,
        nsegs,
        ends_recovery: false,
        resending: false,
        snd_wnd: 4 << 20,
        window_limited: true,
        max_packets_out: 0,
    }
}

fn congested(signal: Signal) -> Congested {
    Congested {
        now: Instant::ZERO,
        ticks: 0,
        signal,
        th_ack: Offset(0),
        snd_max: Offset(100_000),
        pipe: 50_000,
        snd_wnd: 4 << 20,
    }
}

fn timeout(shift: u32) -> Congested {
    congested(Signal::Timeout { shift })
}

#[test]
fn the_window_opens_at_ten_segments_unless_they_are_large_or_the_syn_was_lost() {
    let window = |mss, syn_retransmitted| {
        let mut cc = NewReno::new(Params::FREEBSD_14_3);
        let _ = cc.on_established(&Established {
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
        assert_eq!(cc.on_acked(&acked(65_160, nsegs)), Change::Grew(Growth::SlowStart));
        cc.snd_cwnd() - 14_480
    };
    assert_eq!(grown(Params::FREEBSD_14_3, 1), 2 * MAXSEG);
    assert_eq!(grown(Params::FREEBSD_MAIN_2025, 1), 2 * MSS);
    assert_eq!(grown(Params::FREEBSD_14_3, 45), 65_160);
    assert_eq!(grown(Params { abc_l_var: 8, ..Params::FREEBSD_14_3 }, 1), 8 * MAXSEG);
    assert_eq!(grown(Params { rfc3465: false, ..Params::FREEBSD_14_3 }, 1), MAXSEG);
}

#[test]
fn growth_stops_beyond_the_peers_window_and_at_the_largest_window() {
    let mut cc = open(Params::FREEBSD_14_3);
    let small = Acked { snd_wnd: 14_479, ..acked(2_896, 1) };
    assert_eq!(cc.on_acked(&small), Change::None);
    assert_eq!(cc.on_acked(&Acked { snd_wnd: 14_480, ..small }), Change::Grew(Growth::SlowStart));
    cc.set_window(Bytes(65_535 << 7));
    assert_eq!(cc.on_acked(&Acked { snd_wnd: u64::MAX, ..small }), Change::None);
}

#[test]
fn beyond_slow_start_a_windows_worth_of_bytes_adds_one_segment() {
    let mut cc = NewReno::new(Params::FREEBSD_14_3);
    let _ = cc.on_established(&Established { ssthresh: Some(Bytes(10_000)), ..established() });
    // 14,480 in steps of 2,896: the fifth completes the window.
    for _ in 0..4 {
        assert_eq!(cc.on_acked(&acked(2_896, 1)), Change::None);
    }
    assert_eq!(cc.on_acked(&acked(2_896, 1)), Change::Grew(Growth::Avoidance));
    assert_eq!((cc.snd_cwnd(), cc.bytes_acked()), (14_480 + MAXSEG, 0));
}

#[test]
fn rack_counts_two_segments_of_an_ack_beyond_slow_start() {
    // rack_ack_received: an ACK of four segments counts for two, so that a window of ten takes five
    // ACKs, of twenty segments; with two merged by LRO (nsegs 2) it counts whole.
    let acks = |counting, nsegs| {
        let mut cc = NewReno::new(Params { counting, ..Params::FREEBSD_14_3 });
        let _ = cc.on_established(&Established { ssthresh: Some(Bytes(10_000)), ..established() });
        (1..9).find(|_| cc.on_acked(&acked(4 * 1_448, nsegs)) != Change::None)
    };
    assert_eq!(acks(Counting::All, 1), Some(3));
    assert_eq!(acks(Counting::Limited, 1), Some(5));
    assert_eq!(acks(Counting::Limited, 2), Some(3));
}

#[test]
fn rack_keeps_what_was_counted_in_a_recovery() {
    // rack_post_recovery leaves t_bytes_acked, which cc_post_recovery clears.
    let kept = |counting| {
        let mut cc = open(Params { counting, ..Params::FREEBSD_14_3 });
        let _ = cc.on_congested(&congested(Signal::Loss));
        let _ = cc.on_acked(&acked(2_896, 1));
        let _ = cc.on_recovered(&Recovered { th_ack: Offset(100_000), pipe: 50_000 });
        cc.bytes_acked()
    };
    assert_eq!((kept(Counting::All), kept(Counting::Limited)), (0, 2_896));
}

#[test]
fn a_loss_halves_the_threshold_once_and_the_recovery_settles_the_window() {
    let mut cc = open(Params::FREEBSD_14_3);
    cc.set_window(Bytes(30 * 1_448));
    assert_eq!(cc.on_congested(&congested(Signal::Loss)), Change::RecoveryBegan);
    assert!(cc.in_recovery());
    assert_eq!(cc.recovery_point(), Offset(100_000));
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (30 * MSS, 15 * MSS));
    assert_eq!(cc.on_congested(&congested(Signal::Loss)), Change::None);
    assert_eq!(cc.on_acked(&acked(2_896, 1)), Change::None);
    // Much is under way: the threshold. Little: that and a segment, so as not to burst.
    let ended = |pipe| {
        let mut cc = cc.clone();
        let event = Recovered { th_ack: Offset(100_000), pipe };
        assert_eq!(cc.on_recovered(&event), Change::RecoveryEnded);
        assert!(!cc.in_recovery());
        cc.snd_cwnd()
    };
    assert_eq!(ended(15 * 1_448), 15 * MSS);
    assert_eq!(ended(10_000), 10_000 + MAXSEG);
    assert_eq!(ended(0), 2 * MAXSEG);
}

#[test]
fn a_timeout_lowers_the_threshold_by_the_rule_of_its_version() {
    // 13.0: half of 30 segments, then half of the one that is left, at least two.
    let mut cc = open(Params::FREEBSD_13_0);
    cc.set_window(Bytes(30 * 1_448));
    assert_eq!(cc.on_congested(&timeout(1)), Change::Collapsed);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (MSS, 15 * MSS));
    let _ = cc.on_congested(&timeout(2));
    assert_eq!(cc.snd_ssthresh(), 2 * MSS);
    // Later: half of the 50,000 bytes under way, 17.26 segments, once.
    let mut cc = open(Params::FREEBSD_MAIN_2024_10);
    cc.set_window(Bytes(30 * 1_448));
    let _ = cc.on_congested(&timeout(1));
    let _ = cc.on_congested(&timeout(2));
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (MSS, 17 * MSS));
    // Slow start after it: one segment an ACK, whatever it covers.
    let resent = Acked { resending: true, ..acked(2_896, 1) };
    assert_eq!(cc.on_acked(&resent), Change::Grew(Growth::SlowStart));
    assert_eq!(cc.snd_cwnd(), MSS + MAXSEG);
}

#[test]
fn a_spurious_timeout_gives_back_what_the_first_one_took() {
    let mut cc = open(Params::FREEBSD_14_3);
    cc.set_window(Bytes(30 * 1_448));
    let _ = cc.on_congested(&congested(Signal::Loss));
    let before = cc.clone();
    let _ = cc.on_congested(&timeout(1));
    let _ = cc.on_congested(&timeout(2));
    assert!(!cc.in_recovery());
    assert_eq!(cc.on_congested(&congested(Signal::SpuriousTimeout)), Change::Undone);
    assert_eq!(cc.control(), before.control());
    assert!(cc.in_recovery() && cc.in_congrecovery());
}

#[test]
fn an_ecn_echo_counts_once_per_flight() {
    let mut cc = open(Params::FREEBSD_14_3);
    let echo = |th_ack, snd_max| Congested {
        th_ack: Offset(th_ack),
        snd_max: Offset(snd_max),
        ..congested(Signal::Ecn)
    };
    assert_eq!(cc.on_congested(&echo(0, 14_480)), Change::RecoveryBegan);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (5 * MSS, 5 * MSS));
    assert!(!cc.in_recovery());
    assert_eq!(cc.on_congested(&echo(14_480, 20_000)), Change::None);
    assert_eq!(cc.on_congested(&echo(14_481, 20_000)), Change::RecoveryBegan);
    assert_eq!(cc.snd_cwnd(), 2 * MSS);
    // With ABE 80 percent are kept: 8 of 10 segments.
    let mut cc = open(Params { beta_ecn: Some(80), ..Params::FREEBSD_14_3 });
    let _ = cc.on_congested(&echo(0, 14_480));
    assert_eq!(cc.snd_cwnd(), 8 * MSS);
}

#[test]
fn idling_returns_to_the_initial_window_and_remembers_three_quarters() {
    let mut cc = open(Params::FREEBSD_14_3);
    cc.set_window(Bytes(1_000_000));
    let _ = cc.on_congested(&congested(Signal::Loss));
    let _ = cc.on_recovered(&Recovered { th_ack: Offset(100_000), pipe: u64::MAX });
    cc.set_window(Bytes(1_000_000));
    let idle = Idle { ticks: 0, idle: Duration::from_secs(1), rto: Duration::from_millis(230) };
    assert_eq!(cc.on_idle(&idle), Change::Shrank);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (14_480, 750_000));
    assert_eq!(cc.on_idle(&idle), Change::None);
    // A quarter, rounded down, is given up: 17,170 - 4,292 (a row of cubic.csv.gz, 13.0, mix_idle).
    let mut cc = open(Params::FREEBSD_13_0);
    cc.set_threshold(Some(Bytes(2_896)));
    cc.set_window(Bytes(17_170));
    let _ = cc.on_idle(&idle);
    assert_eq!(cc.snd_ssthresh(), 12_878);
}

/// Rounds of eight samples of the round trips given, with 20,000 bytes in flight, then ten
/// thousand more in each round; one ACK of a segment between samples and the next round.
fn rounds(cc: &mut NewReno, rtts_ms: &[u64]) -> Change {
    let mut change = Change::None;
    for (round, &ms) in rtts_ms.iter().enumerate() {
        let began = cc.on_round(round as u32 + 1);
        change = if began == Change::None { change } else { began };
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
fn hystart_slows_down_when_delay_grows_and_leaves_slow_start_five_rounds_later() {
    // 40 ms, then 45: at least 40 + 40/8. The window grows by a whole segment, by a quarter from
    // the second round on; the exit comes at the begin of round 7.
    let delays = [40, 45, 45, 45, 45, 45, 45];
    let with = |mode| {
        let mut cc = open(Params { hystart: Some(mode), ..Params::FREEBSD_14_3 });
        let change = rounds(&mut cc, &delays);
        (cc, change)
    };
    let at_exit = 14_480 + 1_448 + 5 * 362;
    let (cc, change) = with(HyStartMode::Plain);
    assert_eq!(change, Change::SlowStartEnded);
    assert_eq!(cc.snd_ssthresh(), at_exit);
    assert!(!cc.hystart().enabled && !cc.hystart().in_css);
    // Entered in round 2 with 30,000 bytes in flight; the lowest of round 6 had 70,000.
    let (cc, change) = with(HyStartMode::ShrinkWindow);
    assert_eq!(change, Change::SlowStartEnded);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (30_000 + 362, 70_000));
    assert!(cc.hystart().in_css);
    let (cc, _) = with(HyStartMode::ShrinkWindowMean);
    assert_eq!((cc.snd_cwnd(), cc.snd_ssthresh()), (30_000 + 362, 50_000));
    let (cc, change) = with(HyStartMode::NotAllowed);
    assert_eq!(change, Change::None);
    assert_eq!(cc.snd_cwnd(), 14_480 + 7 * 1_448);
}

#[test]
fn hystart_goes_back_to_full_speed_when_delay_falls_again() {
    let mode = Some(HyStartMode::Plain);
    let mut cc = open(Params { hystart: mode, ..Params::FREEBSD_14_3 });
    let mut slowed = cc.clone();
    let _ = rounds(&mut slowed, &[40, 45]);
    assert!(slowed.hystart().in_css);
    let _ = rounds(&mut cc, &[40, 45, 44]);
    assert!(!cc.hystart().in_css && cc.hystart().enabled);
    // A loss turns it off, idling on.
    let _ = cc.on_congested(&congested(Signal::Loss));
    assert!(!cc.hystart().enabled);
    let _ =
        cc.on_idle(&Idle { ticks: 0, idle: Duration::from_secs(1), rto: Duration::from_secs(1) });
    assert!(cc.hystart().enabled);
}

#[test]
fn the_ack_that_ends_a_recovery_grows_nothing_the_next_one_does() {
    let mut cc = open(Params::FREEBSD_14_3);
    cc.set_window(Bytes(30 * 1_448));
    let _ = cc.on_congested(&congested(Signal::Loss));
    let _ = cc.on_recovered(&Recovered { th_ack: Offset(100_000), pipe: u64::MAX });
    let last = Acked { ends_recovery: true, ..acked(2_896, 1) };
    assert_eq!(cc.on_acked(&last), Change::None);
    // At the threshold it is still slow start.
    assert_eq!(cc.on_acked(&acked(2_896, 1)), Change::Grew(Growth::SlowStart));
}
