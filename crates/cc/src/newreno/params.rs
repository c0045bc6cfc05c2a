//! What tells one FreeBSD version from another, and the sysctls that steer NewReno.

use crate::hystart::HyStartMode;

/// Behaviour of NewReno as data. Start from a version and change fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Params {
    /// Segment size that growth counts in.
    pub growth_unit: Unit,
    /// What a timeout does to the threshold.
    pub timeout_rule: TimeoutRule,
    /// Is HyStart++ compiled in? (`None` before 14.) It acts only where the stack drives it.
    pub hystart: Option<HyStartMode>,
    /// `net.inet.tcp.rfc3465`: appropriate byte counting.
    pub rfc3465: bool,
    /// `net.inet.tcp.abc_l_var`: segments that one counted ACK may add in slow start.
    pub abc_l_var: u32,
    /// `net.inet.tcp.initcwnd_segments`: segments of the initial window; 0 for RFC 3390's rule.
    pub initcwnd_segments: u32,
    /// `net.inet.tcp.cc.newreno.beta`: percent of the window kept at a loss.
    pub beta: u32,
    /// `net.inet.tcp.cc.newreno.beta_ecn`: percent kept at an ECN echo; `None` while
    /// `net.inet.tcp.cc.abe` is 0, and `beta` serves.
    pub beta_ecn: Option<u32>,
    /// Which stack counts the bytes for it.
    pub counting: Counting,
}

/// How the stack counts acknowledged bytes beyond slow start (`t_bytes_acked`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Counting {
    /// All of them; the end of a recovery begins anew (cc_ack_received, cc_post_recovery).
    All,
    /// RACK: `lro_nsegs * L` segments of an ACK at most, and on through the end of a recovery
    /// (rack_ack_received, rack_post_recovery).
    Limited,
}

/// A segment size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Unit {
    /// `t_maxseg`: the payload of a segment without options, 12 bytes above what is sent where
    /// timestamps are on.
    MaxSeg,
    /// `tcp_fixed_maxseg`: the payload that is sent.
    Mss,
}

/// How a timeout sets the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum TimeoutRule {
    /// Half the window, the peer's where that is smaller, at each timeout in a row.
    HalfWindowEachTime,
    /// `beta` percent of the bytes under way, at the first timeout in a row only.
    SharePipeOnce,
}

impl Params {
    /// releng/13.0 (`__FreeBSD_version` 1300139).
    pub const FREEBSD_13_0: Self = Self {
        growth_unit: Unit::MaxSeg,
        timeout_rule: TimeoutRule::HalfWindowEachTime,
        hystart: None,
        rfc3465: true,
        abc_l_var: 2,
        initcwnd_segments: 10,
        beta: 50,
        beta_ecn: None,
        counting: Counting::All,
    };

    /// releng/14.3 (5982521fe3dd).
    pub const FREEBSD_14_3: Self =
        Self { hystart: Some(HyStartMode::NotAllowed), ..Self::FREEBSD_13_0 };

    /// main of 2024-10-29 (f377a0c7dfa9).
    pub const FREEBSD_MAIN_2024_10: Self =
        Self { timeout_rule: TimeoutRule::SharePipeOnce, ..Self::FREEBSD_14_3 };

    /// main of 2025, after `t_maxseg` gave way to `tcp_fixed_maxseg`.
    pub const FREEBSD_MAIN_2025: Self =
        Self { growth_unit: Unit::Mss, ..Self::FREEBSD_MAIN_2024_10 };
}
