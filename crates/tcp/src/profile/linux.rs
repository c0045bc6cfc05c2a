//! Linux.

use cc::cubic::CubicVariant;
use cc::newreno::NewRenoParams;
use packet::SynLayout;
use units::{Bytes, Duration};

use super::{
    BufferGrowth, BurstRule, DelayedAckRule, EchoRule, EcnRule, Family, IdleRule, Keepalive,
    LaxRules, LinuxBursts, LossDetectionRule, ProbeRule, RackTlpRule, ReceiveBufferRule, RtoRule,
    SackCompression, SendBufferRule, StackRules, SynRule, TcpProfile,
};

/// Linux 6.18, default sysctls, HZ = 250, as recorded in the project's Linux traces.
pub(super) fn v6_18() -> TcpProfile {
    TcpProfile {
        name: "linux-6.18",
        family: Family::Linux,
        rules: StackRules::LINUX,
        default_cc: "cubic",
        cubic: CubicVariant::Linux,
        newreno: NewRenoParams::FREEBSD_13_0,
        after_idle: true,
        cached_ssthresh: Bytes::ZERO,
        idle: IdleRule::SentTicks,
        // tcp_init_transfer forgives one; tcp_bound_to_half_wnd.
        forgiven_syns: 1,
        mss_within_half_window: true,
        // ipv4_default_advmss, measured on 6.18.44.
        advertises_path_mtu: true,
        measures_rates: false,
        mtu: 1_500,
        timestamps: true,
        sack: true,
        window_scaling: true,
        // net.ipv4.tcp_ecn = 2
        ecn: EcnRule::Passive,
        syn_layout: SynLayout::Linux,
        hz: 250,
        rto: RtoRule::Linux,
        acks: DelayedAckRule::Linux {
            quick_acks: 16,
            always_quick: false,
            min: Duration::from_millis(40),
            max: Duration::from_millis(200),
            below_rto_min: true,
            compression: SackCompression { delay_ns: 1_000_000, slack_ns: 100_000, nr: 44 },
        },
        send_buffer: SendBufferRule::Linux {
            wmem: [Bytes(4_096), Bytes(16_384), Bytes(4 << 20)],
            notsent_lowat: u32::MAX,
            // `sk_wmem_queued` less payload was a multiple of this in readings of SO_MEMINFO.
            overhead: 832,
        },
        // tcp_rmem[2] is 32 MB since 6.16, 6 MB before.
        receive_buffer: ReceiveBufferRule::Linux {
            rmem: [Bytes(4_096), Bytes(131_072), Bytes(32 << 20)],
            auto: true,
            rmem_max: Bytes(212_992),
            growth: BufferGrowth::RcvbufGrow,
            truesize: Bytes::ZERO,
        },
        reassembly: None,
        burst: BurstRule::Linux(LinuxBursts {
            min_segments: 2,
            rtt_log: 9,
            win_divisor: 3,
            device_holds: false,
            splits: false,
            grows: true,
            free_fin: false,
        }),
        loss: LossDetectionRule::RackTlp(RackTlpRule::Linux),
        loss_probes: true,
        limited_transmit: true,
        timestamps_by_ticks: false,
        echo: EchoRule::UpToLastAck,
        strict_timestamps: false,
        lax: LaxRules::default(),
        // tcp_invalid_ratelimit: one within half a second
        challenge: (1, Duration::from_millis(500)),
        // TCP_MIN_SND_MSS and 12 bytes of timestamps.
        min_mss: 60,
        // net.ipv4.tcp_retries2
        retries: 15,
        bbr_phase: 1,
        bbr_phases: &[],
        bbr3_draws: &[],
        clock_step: 1,
        recorder: Duration::ZERO,
        // TCP_INIT_CWND
        initial_packets: 10,
        // net.ipv4.tcp_syn_linear_timeouts, tcp_syn_retries, tcp_synack_retries
        syn: SynRule { linear_timeouts: 4, retries: 6, answer_retries: 5 },
        probe: ProbeRule::Empty { max: Duration::from_secs(120) },
        // net.ipv4.tcp_keepalive_time, _intvl, _probes
        keepalive: Keepalive {
            idle: Duration::from_secs(7_200),
            interval: Duration::from_secs(75),
            count: 9,
        },
        // TCP_TIMEWAIT_LEN
        time_wait: Duration::from_secs(60),
    }
}

/// Linux 6.12, default sysctls, HZ = 250: what is known to differ from 6.18, by its source (Debian's
/// linux-source-6.12, 6.12.117).
pub(super) fn v6_12() -> TcpProfile {
    TcpProfile {
        name: "linux-6.12",
        receive_buffer: ReceiveBufferRule::Linux {
            // "tcp: increase tcp_rmem[2] to 32 MB" is of 6.16.
            rmem: [Bytes(4_096), Bytes(131_072), Bytes(6 << 20)],
            auto: true,
            rmem_max: Bytes(212_992),
            // "tcp: fix sk_rcvbuf overshoot", "tcp: add receive queue awareness in
            // tcp_rcv_space_adjust()" and "tcp: adjust rcvbuf in presence of reorders" are of 6.16.
            growth: BufferGrowth::SpaceAdjust,
            truesize: Bytes::ZERO,
        },
        // "net: advertise TCP MSS from the configured MTU, not the learned PMTU", which this one has, and
        // 6.18.44 and 6.1.192 have not.
        advertises_path_mtu: false,
        ..v6_18()
    }
}

/// Linux 6.1, default sysctls, HZ = 250: what is known to differ from 6.12, by its source (Debian's
/// linux-source-6.1, 6.1.192).
pub(super) fn v6_1() -> TcpProfile {
    let mut profile = v6_12();
    profile.name = "linux-6.1";
    if let ReceiveBufferRule::Linux { growth, .. } = &mut profile.receive_buffer {
        // "tcp: get rid of sysctl_tcp_adv_win_scale" is of 6.6.
        *growth = BufferGrowth::AdvWinScale;
    }
    if let SendBufferRule::Linux { overhead, .. } = &mut profile.send_buffer {
        // "net: add dedicated kmem_cache for typical/small skb->head" is of 6.3: kmalloc-512 and
        // an sk_buff before.
        *overhead = 768;
    }
    if let BurstRule::Linux(LinuxBursts { grows, free_fin, .. }) = &mut profile.burst {
        // "tcp: try to send bigger TSO packets", "tcp: remove dubious FIN exception from
        // tcp_cwnd_test()" are of 6.10.
        (*grows, *free_fin) = (false, true);
    }
    if let DelayedAckRule::Linux { below_rto_min, .. } = &mut profile.acks {
        // "tcp: derive delack_max from rto_min" is of 6.7.
        *below_rto_min = false;
    }
    profile.advertises_path_mtu = true;
    // "tcp: make the first N SYN RTO backoffs linear" is of 6.5.
    profile.syn.linear_timeouts = 0;
    profile
}
