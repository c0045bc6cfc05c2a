//! The RFCs: their recommendations, without the peculiarities of any system.

use cc::cubic::CubicVariant;
use cc::newreno::{NewRenoParams, SegmentUnit};
use packet::SynLayout;
use units::{Bytes, Duration};

use super::{
    BurstRule, DelayedAckRule, EchoRule, EcnRule, Family, IdleRule, Keepalive, LaxRules,
    LossDetectionRule, ProbeRule, RackTlpRule, ReceiveBufferRule, RtoRule, SendBufferRule,
    StackRules, SynRule, TcpProfile,
};

/// RFC 9293 with 5681, 6582, 6298, 6928, 7323, 2018, 3042, 3465 (L = 2), 3168 and 5961.
pub(super) fn textbook() -> TcpProfile {
    TcpProfile {
        name: "rfc",
        family: Family::Rfc,
        rules: StackRules::RFC,
        default_cc: "newreno",
        cubic: CubicVariant::Rfc,
        newreno: NewRenoParams { growth_unit: SegmentUnit::Mss, ..NewRenoParams::FREEBSD_13_0 },
        after_idle: true,
        cached_ssthresh: Bytes::ZERO,
        idle: IdleRule::Sent,
        forgiven_syns: 0,
        mss_within_half_window: false,
        advertises_path_mtu: false,
        measures_rates: false,
        mtu: 1_500,
        timestamps: true,
        sack: true,
        window_scaling: true,
        ecn: EcnRule::Passive,
        syn_layout: SynLayout::Linux,
        hz: 1_000,
        rto: RtoRule::Rfc,
        acks: DelayedAckRule::Rfc { timeout: Duration::from_millis(200) },
        send_buffer: SendBufferRule::Fixed { space: Bytes(64 << 20) },
        receive_buffer: ReceiveBufferRule::Fixed { space: Bytes(64 << 20) },
        reassembly: None,
        burst: BurstRule::Rfc,
        loss: LossDetectionRule::RackTlp(RackTlpRule::Rfc),
        loss_probes: true,
        limited_transmit: true,
        timestamps_by_ticks: false,
        echo: EchoRule::UpToLastAck,
        strict_timestamps: true,
        lax: LaxRules::default(),
        // RFC 5961 section 7.
        challenge: (10, Duration::from_secs(5)),
        min_mss: 64,
        retries: 12,
        bbr_phase: 1,
        bbr_phases: &[],
        bbr3_draws: &[],
        clock_step: 1,
        recorder: Duration::ZERO,
        initial_packets: 10,
        syn: SynRule { linear_timeouts: 0, retries: 12, answer_retries: 12 },
        // RFC 9293 section 3.8.6.1 requires a byte of new data; RFC 1122 sets no bounds.
        probe: ProbeRule::Byte { min: Duration::from_secs(1), max: Duration::from_secs(60) },
        // RFC 9293 section 3.8.4 requires at least two hours, and specifies nothing else.
        keepalive: Keepalive {
            idle: Duration::from_secs(7_200),
            interval: Duration::from_secs(75),
            count: 8,
        },
        // Twice the MSL of RFC 9293.
        time_wait: Duration::from_secs(240),
    }
}
