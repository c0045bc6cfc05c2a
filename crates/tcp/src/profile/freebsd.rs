//! FreeBSD's default stack.
//!
//! The source of 13.2 was not available; 13.0 and main of 2022-07 bracket it, and their values
//! agree in all that is used here. Its LRO is the rewritten one (13.1 and later), see
//! `net::offload`.

use cc::cubic::{self, CubicVariant};
use cc::newreno::{AckCounting, NewRenoParams};
use packet::SynLayout;
use recovery::RtoBounds;
use recovery::burst_rack::BurstLimit;
use recovery::holes::HolesParams;
use recovery::probe_rack::RackPto;
use recovery::prr::freebsd::PrrRule;
use recovery::rack_freebsd::ThreshParams;
use units::{Bytes, Duration};

use super::{
    BurstRule, DelayedAckRule, DuplicateRule, EchoRule, EcnRule, Family, IdleRule, Keepalive,
    LaxRules, LimitedTransmitRule, LossDetectionRule, ProbeRule, RackRule, ReceiveBufferRule,
    RtoRule, SackRule, SendBufferRule, SettleRule, StackRules, SynRule, TcpProfile,
};

/// Loss recovery of releng/13.0.
const HOLES_13_0: SackRule = SackRule {
    params: HolesParams::FREEBSD_13_0,
    newsack: false,
    duplicates: DuplicateRule::ChangesScoreboard,
    settle: SettleRule::BeforeCounting,
    prr: PrrRule::Rfc6937,
    recovers_to_nxt: true,
    limited: LimitedTransmitRule::Flight,
    limited_without_data: false,
    holes_after_timeout: false,
    sacked_enlarges_window: false,
    undoes_on_any_ack: true,
    undo_ends_backoff: false,
    output_ends_persist_backoff: true,
};

/// Loss recovery of releng/14.3.
const HOLES_14_3: SackRule = SackRule {
    params: HolesParams::FREEBSD_14_3,
    newsack: true,
    duplicates: DuplicateRule::AnyWhileEmpty,
    settle: SettleRule::AfterAdvancing,
    prr: PrrRule::Rfc6937bis,
    recovers_to_nxt: false,
    limited: LimitedTransmitRule::WindowWhileRetransmitting,
    limited_without_data: false,
    holes_after_timeout: true,
    sacked_enlarges_window: true,
    undoes_on_any_ack: false,
    undo_ends_backoff: true,
    output_ends_persist_backoff: false,
};

/// Loss recovery of main of October 2024.
const HOLES_MAIN: SackRule = SackRule {
    params: HolesParams::FREEBSD_MAIN,
    limited_without_data: true,
    undoes_on_any_ack: true,
    undo_ends_backoff: false,
    ..HOLES_14_3
};

/// releng/13.0 (1300139).
pub(super) fn v13_0() -> TcpProfile {
    TcpProfile {
        name: "freebsd-13.0",
        family: Family::FreeBsd,
        rules: StackRules::FREEBSD,
        default_cc: "newreno",
        newreno: NewRenoParams::FREEBSD_13_0,
        cubic: CubicVariant::FreeBsd(cubic::CubicParams::FREEBSD_13_0),
        after_idle: true,
        cached_ssthresh: Bytes::ZERO,
        idle: IdleRule::ReceivedOrSent,
        forgiven_syns: 0,
        mss_within_half_window: false,
        advertises_path_mtu: false,
        measures_rates: false,
        mtu: 1_500,
        timestamps: true,
        sack: true,
        window_scaling: true,
        // net.inet.tcp.ecn.enable = 2
        ecn: EcnRule::Passive,
        syn_layout: SynLayout::FreeBsd,
        hz: 1_000,
        rto: RtoRule::FreeBsd,
        acks: DelayedAckRule::FreeBsd { delayed: true, timeout: Duration::from_millis(40) },
        send_buffer: SendBufferRule::FreeBsd {
            space: Bytes(32_768),
            auto: true,
            inc: Bytes(8_192),
            max: Bytes(2 << 20),
        },
        receive_buffer: ReceiveBufferRule::FreeBsd {
            space: Bytes(65_536),
            auto: true,
            max: Bytes(2 << 20),
            maxsockbuf: Bytes(2 << 20),
        },
        reassembly: Some(100),
        // IP_MAXPACKET less link header room: 65535 - (14 + 3); 45 segments of 1448 fit.
        burst: BurstRule::FreeBsd { max: Bytes(65_518) },
        loss: LossDetectionRule::Sack(HOLES_13_0),
        loss_probes: true,
        limited_transmit: true,
        timestamps_by_ticks: true,
        echo: EchoRule::CoversLastAck,
        // net.inet.tcp.tolerate_missing_ts = 0
        strict_timestamps: true,
        lax: LaxRules::default(),
        // net.inet.tcp.ack_war_cnt within ack_war_timewindow
        challenge: (5, Duration::from_secs(1)),
        // net.inet.tcp.minmss
        min_mss: 216,
        // TCP_MAXRXTSHIFT
        retries: 12,
        bbr_phase: 1,
        bbr_phases: &[],
        bbr3_draws: &[],
        clock_step: 1,
        recorder: Duration::ZERO,
        initial_packets: 10,
        syn: SynRule { linear_timeouts: 0, retries: 12, answer_retries: 12 },
        probe: ProbeRule::Byte { min: Duration::from_secs(5), max: Duration::from_secs(60) },
        // net.inet.tcp.keepidle, keepintvl, keepcnt (TCPTV_KEEP_IDLE, TCPTV_KEEPINTVL,
        // TCPTV_KEEPCNT)
        keepalive: Keepalive {
            idle: Duration::from_secs(7_200),
            interval: Duration::from_secs(75),
            count: 8,
        },
        // Twice net.inet.tcp.msl.
        time_wait: Duration::from_secs(60),
    }
}

/// releng/13.2, inferred: its source was not available. 13.0 and main of July 2022 bracket it. PRR
/// is main's of that time; the other rules of loss recovery are taken to be 13.0's, though 13.2 may
/// already have those of 14.3 (duplicates while the scoreboard is empty, recoveries settled after
/// `snd_una` advances).
pub(super) fn v13_2() -> TcpProfile {
    let rule = SackRule { prr: PrrRule::Rfc6937bis, ..HOLES_13_0 };
    TcpProfile { name: "freebsd-13.2", loss: LossDetectionRule::Sack(rule), ..v13_0() }
}

/// releng/14.3: CUBIC by default; NewReno with HyStart++ compiled in (inactive in this stack).
pub(super) fn v14_3() -> TcpProfile {
    let mut profile = v13_2();
    profile.name = "freebsd-14.3";
    profile.default_cc = "cubic";
    profile.newreno = NewRenoParams::FREEBSD_14_3;
    profile.cubic = CubicVariant::FreeBsd(cubic::CubicParams::FREEBSD_STABLE_14);
    profile.loss = LossDetectionRule::Sack(HOLES_14_3);
    profile
}

/// main of 2024-10-29 (f377a0c7dfa9): a timeout takes ssthresh from the pipe.
pub(super) fn main() -> TcpProfile {
    let mut profile = v14_3();
    profile.name = "freebsd-main";
    profile.newreno = NewRenoParams::FREEBSD_MAIN_2024_10;
    profile.cubic = CubicVariant::FreeBsd(cubic::CubicParams::FREEBSD_D46546);
    profile.loss = LossDetectionRule::Sack(HOLES_MAIN);
    profile
}

/// releng/14.3 with its RACK stack (tcp_stacks/rack.c): before D53832, with the two older undo
/// rules. Verified against whole transfers of rack.c of July 2022, changed in the two places in
/// which 14.x behaves differently (golden/freebsd-rack-closed).
pub(super) fn rack_14_3() -> TcpProfile {
    with_rack(v14_3(), "freebsd-rack-14.3", false)
}

/// main with D53832 ("Improve rack to better handle reordering", November 2025).
///
/// It shares everything with 14.3 (the order of calls, timers, pauses, probes, timeouts, PRR, the
/// older undo rules) except D53832's undo (`rtt_divisor`) and that segments marked lost by the
/// reordering timer do not count as outstanding (`discounts_lost`). Those two were taken from the
/// source and from recordings of single functions (golden/freebsd/recovery.csv.gz). No whole
/// transfer was recorded, so their effect in closed loop is unverified, as is whether main's rack.c
/// departs from 14.3's elsewhere.
pub(super) fn rack_main() -> TcpProfile {
    with_rack(main(), "freebsd-rack-main", true)
}

fn with_rack(mut profile: TcpProfile, name: &'static str, d53832: bool) -> TcpProfile {
    let rule = RackRule {
        thresh: ThreshParams::DEFAULT,
        pto: RackPto::DEFAULT,
        probes: 2,
        addback: 2,
        rtt_divisor: if d53832 { 2 } else { 0 },
        revert_unsent: true,
        revert_duplicates: true,
        discounts_lost: d53832,
        burst: BurstLimit::DEFAULT,
        send_buffer_share: 20,
    };
    profile.name = name;
    // t_idle_reduce: nothing sets it.
    profile.after_idle = false;
    profile.newreno.counting = AckCounting::Limited;
    profile.rto = RtoRule::Rack(RtoBounds::DEFAULT);
    profile.loss = LossDetectionRule::FreeBsdRack(rule);
    profile
}
