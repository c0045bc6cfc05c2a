//! The differences between FreeBSD versions, and the sysctls of NewReno.

use crate::hystart::HyStartMode;

/// Behaviour of NewReno as data. Start from a version and change fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct NewRenoParams {
    /// Segment size used for growth.
    pub growth_unit: SegmentUnit,
    /// Effect of a timeout on the threshold.
    pub timeout_rule: NewRenoTimeoutRule,
    /// Mode of HyStart++; `None` if not compiled in (before 14). It acts only where the stack
    /// drives it.
    pub hystart: Option<HyStartMode>,
    /// `net.inet.tcp.rfc3465`: appropriate byte counting.
    pub rfc3465: bool,
    /// `net.inet.tcp.abc_l_var`: maximum segments per counted ACK in slow start.
    pub abc_l_var: u32,
    /// `net.inet.tcp.initcwnd_segments`: segments of the initial window; 0 for the rule of RFC
    /// 3390.
    pub initcwnd_segments: u32,
    /// `net.inet.tcp.cc.newreno.beta`: percentage of the window kept at a loss.
    pub beta: u32,
    /// `net.inet.tcp.cc.newreno.beta_ecn`: percentage kept at an ECN echo; `None` while
    /// `net.inet.tcp.cc.abe` is 0, and `beta` applies.
    pub beta_ecn: Option<u32>,
    /// Byte counting of the stack.
    pub counting: AckCounting,
}

/// How the stack counts acknowledged bytes in congestion avoidance (`t_bytes_acked`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum AckCounting {
    /// All of them; the end of a recovery resets the count (cc_ack_received, cc_post_recovery).
    All,
    /// RACK: at most `lro_nsegs * L` segments per ACK, and the count continues after a recovery
    /// (rack_ack_received, rack_post_recovery).
    Limited,
}

/// A segment size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum SegmentUnit {
    /// `t_maxseg`: the payload of a segment without options, 12 bytes more than is sent with
    /// timestamps.
    MaxSeg,
    /// `tcp_fixed_maxseg`: the payload that is sent.
    Mss,
}

/// Effect of a timeout on the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum NewRenoTimeoutRule {
    /// Half the window, or the peer's if smaller, at each timeout in a row.
    HalfWindowEachTime,
    /// `beta` percent of the bytes in flight, at the first timeout in a row only.
    SharePipeOnce,
}

impl NewRenoParams {
    /// releng/13.0 (`__FreeBSD_version` 1300139).
    pub const FREEBSD_13_0: Self = Self {
        growth_unit: SegmentUnit::MaxSeg,
        timeout_rule: NewRenoTimeoutRule::HalfWindowEachTime,
        hystart: None,
        rfc3465: true,
        abc_l_var: 2,
        initcwnd_segments: 10,
        beta: 50,
        beta_ecn: None,
        counting: AckCounting::All,
    };

    /// releng/14.3 (5982521fe3dd).
    pub const FREEBSD_14_3: Self =
        Self { hystart: Some(HyStartMode::NotAllowed), ..Self::FREEBSD_13_0 };

    /// main of 2024-10-29 (f377a0c7dfa9).
    pub const FREEBSD_MAIN_2024_10: Self =
        Self { timeout_rule: NewRenoTimeoutRule::SharePipeOnce, ..Self::FREEBSD_14_3 };

    /// main of 2025, after `tcp_fixed_maxseg` replaced `t_maxseg`.
    pub const FREEBSD_MAIN_2025: Self =
        Self { growth_unit: SegmentUnit::Mss, ..Self::FREEBSD_MAIN_2024_10 };
}
