//! What tells one version of FreeBSD's CUBIC from another.

use crate::newreno::Unit;

/// Behaviour of FreeBSD's CUBIC as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Params {
    /// What time is counted in.
    pub clock: ClockUnit,
    /// The window that a Reno sender would have.
    pub friendly: Friendly,
    /// How the window follows its curve.
    pub avoidance: Avoidance,
    /// Segment size that the curve and slow start count in.
    pub unit: Unit,
    /// What a timeout does.
    pub timeout_rule: TimeoutRule,
    /// Slow start is `newreno_ack_received` itself, as before HyStart++ came: without a round-trip
    /// time beyond the threshold it then grows as NewReno does, not as slow start does.
    pub borrowed_slow_start: bool,
}

/// What FreeBSD's CUBIC counts time in. Time since the epoch always advances by ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum ClockUnit {
    /// Whole ticks, the smoothed round trip too: below one tick it is one tick.
    Ticks,
    /// Microseconds.
    Micros,
}

/// The TCP-friendly window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Friendly {
    /// Modelled from the time since the epoch and the mean round trip (RFC 8312 equation 4).
    Modelled,
    /// What NewReno would make of the window now (D46546); while it leads, a loss halves the
    /// window as NewReno's does.
    NewReno,
}

/// How the window follows its curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Avoidance {
    /// It jumps onto the curve with every acknowledgment. The epoch begins at the loss.
    Jump,
    /// RFC 9438 follow-up (cc_cubic.h e4452d45ec5a): it moves by `(target - cwnd) / cwnd` segments
    /// an acknowledgment. The epoch begins at the first acknowledgment after the recovery.
    ///
    /// Quirks: an acknowledgment adds half a segment at most, whatever it covers, and nothing while
    /// the target is less than 1/256 above; the mark of the TCP-friendly region is never removed,
    /// so that after the first visit every loss halves; a slow start that ends without a loss
    /// leaves the plateau unset, and the time to reach it overflows.
    Steps,
}

/// What a timeout does to threshold and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum TimeoutRule {
    /// 0.7 of the window at each timeout in a row; the epoch stays.
    ShareWindowEachTime,
    /// 0.7 of the bytes under way, at the first timeout in a row only; the epoch stays (stable/14).
    SharePipeOnce,
    /// The same; a new epoch begins with congestion avoidance.
    SharePipeOnceNewEpoch,
}

impl Params {
    /// releng/13.0 (`__FreeBSD_version` 1300139).
    pub const FREEBSD_13_0: Self = Self {
        clock: ClockUnit::Ticks,
        friendly: Friendly::Modelled,
        avoidance: Avoidance::Jump,
        unit: Unit::MaxSeg,
        timeout_rule: TimeoutRule::ShareWindowEachTime,
        borrowed_slow_start: true,
    };

    /// main of 2022-07 (1400063), still in ticks, with HyStart++.
    pub const FREEBSD_MAIN_2022_07: Self =
        Self { borrowed_slow_start: false, ..Self::FREEBSD_13_0 };

    /// stable/14 (cc_cubic.c fcea1cc9711a), in microseconds.
    pub const FREEBSD_STABLE_14: Self = Self {
        clock: ClockUnit::Micros,
        timeout_rule: TimeoutRule::SharePipeOnce,
        ..Self::FREEBSD_MAIN_2022_07
    };

    /// main of September 2024, before D46546 (cc_cubic.c 00d3b74406db).
    pub const FREEBSD_BEFORE_D46546: Self =
        Self { timeout_rule: TimeoutRule::SharePipeOnceNewEpoch, ..Self::FREEBSD_STABLE_14 };

    /// D46546, "use newreno to emulate AIMD in TCP-friendly region"; in main by 2024-10-29.
    pub const FREEBSD_D46546: Self =
        Self { friendly: Friendly::NewReno, ..Self::FREEBSD_BEFORE_D46546 };

    /// The follow-up "update to RFC 9438" (cc_cubic.h e4452d45ec5a).
    pub const FREEBSD_RFC9438: Self =
        Self { avoidance: Avoidance::Steps, unit: Unit::Mss, ..Self::FREEBSD_D46546 };
}
