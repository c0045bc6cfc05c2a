//! The differences between versions of FreeBSD's CUBIC.

use crate::newreno::SegmentUnit;

/// Behaviour of FreeBSD's CUBIC as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct CubicParams {
    /// Unit of time.
    pub clock: ClockUnit,
    /// The TCP-friendly window.
    pub friendly: FriendlyWindow,
    /// How the window follows its curve.
    pub avoidance: CubicGrowth,
    /// Segment size that the curve and slow start count in.
    pub unit: SegmentUnit,
    /// Effect of a timeout.
    pub timeout_rule: CubicTimeoutRule,
    /// Slow start is `newreno_ack_received` itself, as before HyStart++: above the threshold
    /// without an RTT sample it then grows as NewReno does, not as in slow start.
    pub borrowed_slow_start: bool,
}

/// The unit of time. Time since the epoch always advances by ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum ClockUnit {
    /// Whole ticks, also for the smoothed RTT, which is at least one tick.
    Ticks,
    /// Microseconds.
    Micros,
}

/// The TCP-friendly window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum FriendlyWindow {
    /// Modelled from the time since the epoch and the mean RTT (RFC 8312 equation 4).
    Modelled,
    /// The window that NewReno would set now (D46546); while it is the larger one, a loss halves
    /// the window as in NewReno.
    NewReno,
}

/// How the window follows its curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum CubicGrowth {
    /// It jumps to the curve with every acknowledgment. The epoch begins at the loss.
    Jump,
    /// RFC 9438 follow-up (cc_cubic.h e4452d45ec5a): it moves by `(target - cwnd) / cwnd` segments
    /// per acknowledgment. The epoch begins at the first acknowledgment after the recovery.
    ///
    /// Quirks: an acknowledgment adds at most half a segment, independent of its size, and nothing
    /// while the target is less than 1/256 above; the flag of the TCP-friendly region is never
    /// cleared, so after the first visit every loss halves the window; a slow start that ends
    /// without a loss leaves the plateau unset, and the time to reach it overflows.
    Steps,
}

/// Effect of a timeout on threshold and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum CubicTimeoutRule {
    /// 0.7 of the window at each timeout in a row; the epoch is kept.
    ShareWindowEachTime,
    /// 0.7 of the bytes in flight, at the first timeout in a row only; the epoch is kept
    /// (stable/14).
    SharePipeOnce,
    /// Like [`CubicTimeoutRule::SharePipeOnce`]; congestion avoidance begins a new epoch.
    SharePipeOnceNewEpoch,
}

impl CubicParams {
    /// releng/13.0 (`__FreeBSD_version` 1300139).
    pub const FREEBSD_13_0: Self = Self {
        clock: ClockUnit::Ticks,
        friendly: FriendlyWindow::Modelled,
        avoidance: CubicGrowth::Jump,
        unit: SegmentUnit::MaxSeg,
        timeout_rule: CubicTimeoutRule::ShareWindowEachTime,
        borrowed_slow_start: true,
    };

    /// main of 2022-07 (1400063), still in ticks, with HyStart++.
    pub const FREEBSD_MAIN_2022_07: Self =
        Self { borrowed_slow_start: false, ..Self::FREEBSD_13_0 };

    /// stable/14 (cc_cubic.c fcea1cc9711a), in microseconds.
    pub const FREEBSD_STABLE_14: Self = Self {
        clock: ClockUnit::Micros,
        timeout_rule: CubicTimeoutRule::SharePipeOnce,
        ..Self::FREEBSD_MAIN_2022_07
    };

    /// main of September 2024, before D46546 (cc_cubic.c 00d3b74406db).
    pub const FREEBSD_BEFORE_D46546: Self =
        Self { timeout_rule: CubicTimeoutRule::SharePipeOnceNewEpoch, ..Self::FREEBSD_STABLE_14 };

    /// D46546, "use newreno to emulate AIMD in TCP-friendly region"; in main by 2024-10-29.
    pub const FREEBSD_D46546: Self =
        Self { friendly: FriendlyWindow::NewReno, ..Self::FREEBSD_BEFORE_D46546 };

    /// The follow-up "update to RFC 9438" (cc_cubic.h e4452d45ec5a).
    pub const FREEBSD_RFC9438: Self =
        Self { avoidance: CubicGrowth::Steps, unit: SegmentUnit::Mss, ..Self::FREEBSD_D46546 };
}
