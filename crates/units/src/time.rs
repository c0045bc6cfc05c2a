//! Virtual time in whole nanoseconds.

use core::cmp::Ordering;
use core::fmt;
use core::iter::Sum;
use core::num::NonZeroU64;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A point in virtual time, in nanoseconds since the start of the run.
///
/// Stored biased by one so that `Option<Instant>` has the size of an `Instant`.
///
/// Serialized as nanoseconds since the start plus two, [`Instant::MAX`] as 0: "never" is then short
/// in a variable-length encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(from = "Written", into = "Written")]
pub struct Instant(NonZeroU64);

/// The serialized form of an [`Instant`].
#[derive(Deserialize, Serialize)]
struct Written(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize)]
pub struct Duration(u64);

impl Instant {
    /// The start of a run.
    pub const ZERO: Self = Self(NonZeroU64::MIN);

    /// The latest representable time.
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// The time `ns` nanoseconds after the start.
    #[inline]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(ns))
    }

    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Time elapsed since `earlier`; zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// The time `span` before this one, not before the start.
    #[inline]
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(span.0))
    }

    /// Seconds since the start, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        Duration(self.as_nanos()).as_secs_f64()
    }
}

impl Duration {
    /// Zero duration.
    pub const ZERO: Self = Self(0);
    /// The longest representable duration.
    pub const MAX: Self = Self(u64::MAX);

    /// `ns` nanoseconds.
    #[inline]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// `us` microseconds.
    #[inline]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// `ms` milliseconds.
    #[inline]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// `s` seconds.
    #[inline]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Whole nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds, rounded down.
    #[inline]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// True for a zero duration.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, not below zero.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * n`, saturating at [`Duration::MAX`].
    #[inline]
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl From<Instant> for Written {
    fn from(at: Instant) -> Self {
        Self(at.0.get().wrapping_add(1))
    }
}

impl From<Written> for Instant {
    fn from(written: Written) -> Self {
        // No instant is serialized as 1.
        Self(NonZeroU64::new(written.0.wrapping_sub(1)).unwrap_or(NonZeroU64::MIN))
    }
}

impl PartialOrd for Instant {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Instant {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }

    /// Not by comparison of the stored values: LLVM (of rustc 1.95, at optimization levels 1 and s)
    /// merges that into `Option::map` as an unsigned minimum, 0 for `None`, and keeps the promise that
    /// the result is not 0, so that `None` becomes an instant.
    #[inline]
    fn min(self, other: Self) -> Self {
        Self::from_nanos(self.as_nanos().min(other.as_nanos()))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Add for Duration {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    /// Panics in debug builds if the result would be negative.
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Duration {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    /// Saturates at [`Duration::MAX`].
    #[inline]
    fn mul(self, n: u64) -> Self {
        self.saturating_mul(n)
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    /// Rounds down; panics if `n` is zero.
    #[inline]
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{:?}", Duration(self.as_nanos()))
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Printed in the largest of s, ms, us, ns without losing digits: `1.5ms`, `250us`, `2s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            1_000_000_000.. => (1_000_000_000, "s"),
            1_000_000.. => (1_000_000, "ms"),
            1_000.. => (1_000, "us"),
            _ => (1, "ns"),
        };
        let (whole, rest) = (self.0 / unit, self.0 % unit);
        if rest == 0 {
            return write!(f, "{whole}{name}");
        }
        let digits = unit.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        write!(f, "{whole}.{}{name}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_instant_is_as_small_as_an_instant() {
        assert_eq!(size_of::<Option<Instant>>(), 8);
    }

    #[test]
    fn instants_count_from_zero() {
        let t = Instant::ZERO + Duration::from_millis(100);
        assert_eq!(t.as_nanos(), 100_000_000);
        assert_eq!(t.since(Instant::ZERO), Duration::from_millis(100));
        assert_eq!(Instant::ZERO.since(t), Duration::ZERO);
        assert_eq!(t.saturating_sub(Duration::from_millis(99)).as_nanos(), 1_000_000);
        assert_eq!(t.saturating_sub(Duration::from_secs(1)), Instant::ZERO);
    }

    #[test]
    fn instants_survive_serialization() {
        let latest = Instant::from_nanos(u64::MAX - 3);
        for at in [Instant::ZERO, Instant::from_nanos(1), latest, Instant::MAX] {
            assert_eq!(Instant::from(Written::from(at)), at);
        }
        assert_eq!(Written::from(Instant::MAX).0, 0);
    }

    /// An optional time that is limited by another; `MAX` without one.
    #[inline(never)]
    fn limited(limit: Instant, (_, at): (Instant, Option<Instant>)) -> Instant {
        let Some(at) = at.map(|at| at.min(limit)) else { return Instant::MAX };
        at
    }

    #[test]
    fn no_instant_is_not_the_earliest_one() {
        let now = Instant::from_nanos(core::hint::black_box(100));
        assert_eq!(limited(now, (now, core::hint::black_box(None))), Instant::MAX);
        assert_eq!(limited(now, (now, Some(Instant::ZERO))), Instant::ZERO);
    }

    #[test]
    fn addition_saturates() {
        let end = Instant::from_nanos(u64::MAX);
        assert_eq!(end + Duration::from_secs(1), end);
    }

    #[test]
    fn durations_scale() {
        let trip = Duration::from_millis(3);
        assert_eq!(trip * 5 / 2, Duration::from_micros(7_500));
        assert_eq!(Duration::MAX * 2, Duration::MAX);
        assert_eq!([trip, trip].into_iter().sum::<Duration>(), Duration::from_millis(6));
    }

    #[test]
    fn durations_print_with_their_unit() {
        let text = |ns| Duration::from_nanos(ns).to_string();
        assert_eq!(text(0), "0ns");
        assert_eq!(text(1_500_000), "1.5ms");
        assert_eq!(text(250_000), "250us");
        assert_eq!(text(2_000_000_000), "2s");
        assert_eq!(text(100_600_001), "100.600001ms");
    }
}
