//! The textbook: what the RFCs recommend, and nothing that one system does for itself.

use cc::cubic::Variant;
use cc::newreno::{Params, Unit};
use packet::SynLayout;
use units::{Bytes, Duration};

use crate::probes::Keepalive;

use super::{
    AckRule, BurstRule, EchoRule, EcnRule, Family, IdleRule, LossRule, ProbeRule, Profile,
    ReceiveBufferRule, RtoRule, SendBufferRule, SynRule, TimedRule,
};

/// RFC 9293 with 5681, 6582, 6298, 6928, 7323, 2018, 3042, 3465 (L = 2), 3168 and 5961.
pub(super) fn textbook() -> Profile {
    Profile {
        name: "rfc",
        family: Family::Rfc,
        default_cc: "newreno",
        cubic: Variant::Rfc,
        newreno: Params { growth_unit: Unit::Mss, ..Params::FREEBSD_13_0 },
        after_idle: true,
        cached_ssthresh: Bytes::ZERO,
        idle: IdleRule::Sent,
        forgiven_syns: 0,
        mss_within_half_window: false,
        mtu: 1_500,
        timestamps: true,
        sack: true,
        window_scaling: true,
        ecn: EcnRule::Passive,
        syn_layout: SynLayout::Linux,
        hz: 1_000,
        rto: RtoRule::Rfc,
        acks: AckRule::Rfc { timeout: Duration::from_millis(200) },
        send_buffer: SendBufferRule::Fixed { space: Bytes(64 << 20) },
        receive_buffer: ReceiveBufferRule::Fixed { space: Bytes(64 << 20) },
        reassembly: None,
        burst: BurstRule::Rfc,
        loss: LossRule::Timed(TimedRule::Rfc),
        loss_probes: true,
        limited_transmit: true,
        timestamps_by_ticks: false,
        echo: EchoRule::UpToLastAck,
        strict_timestamps: true,
        // RFC 5961 section 7.
        challenge: (10, Duration::from_secs(5)),
        min_mss: 64,
        retries: 12,
        syn: SynRule { linear_timeouts: 0, retries: 12, answer_retries: 12 },
        // RFC 9293 section 3.8.6.1 asks for a byte of new data; RFC 1122 bounds nothing.
        probe: ProbeRule::Byte { min: Duration::from_secs(1), max: Duration::from_secs(60) },
        // RFC 9293 section 3.8.4 asks for two hours at least, and names nothing else.
        keepalive: Keepalive {
            idle: Duration::from_secs(7_200),
            interval: Duration::from_secs(75),
            count: 8,
        },
        // Twice the MSL of RFC 9293.
        time_wait: Duration::from_secs(240),
    }
}
