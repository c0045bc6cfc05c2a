//! Distributions of netem's delay: `tabledist` of Linux, with the tables that iproute2 computes
//! (netem/normal.c, pareto.c, paretonormal.c).

use std::sync::LazyLock;

use units::{Duration, maths};

/// Number of values of a table.
const TABLE: usize = 4_096;
/// A table's value for one jitter (`NETEM_DIST_SCALE`).
const SCALE: i128 = 8_192;

/// The distribution of a random delay around its mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Uniform, from the mean less the jitter to the mean plus it.
    #[default]
    Uniform,
    /// Normal; the jitter is the standard deviation.
    Normal,
    /// Pareto with the exponent 3.
    Pareto,
    /// A quarter normal, three quarters Pareto.
    ParetoNormal,
}

static NORMAL: LazyLock<Vec<i16>> = LazyLock::new(|| (0..TABLE).map(normal).map(clamp).collect());
static PARETO: LazyLock<Vec<i16>> = LazyLock::new(|| (0..TABLE).map(pareto).map(clamp).collect());
static PARETO_NORMAL: LazyLock<Vec<i16>> = LazyLock::new(|| {
    let mixed = |index| (normal(index) + 3 * pareto(index)) / 4;
    (0..TABLE).map(mixed).map(clamp).collect()
});

impl Distribution {
    fn table(self) -> Option<&'static [i16]> {
        match self {
            Self::Uniform => None,
            Self::Normal => Some(&NORMAL),
            Self::Pareto => Some(&PARETO),
            Self::ParetoNormal => Some(&PARETO_NORMAL),
        }
    }

    /// Returns the deviation from the mean, in nanoseconds, for a random number.
    pub(crate) fn deviation(self, jitter: Duration, random: u32) -> i128 {
        let jitter = i128::from(jitter.as_nanos());
        let Some(table) = self.table() else {
            return i128::from(random) % (2 * jitter) - jitter;
        };
        let value = i128::from(table[random as usize % TABLE]);
        let rest = jitter % SCALE * value;
        let rounded = if rest >= 0 { rest + SCALE / 2 } else { rest - SCALE / 2 };
        rounded / SCALE + jitter / SCALE * value
    }

    /// Returns the bounds of the deviation, in nanoseconds.
    pub fn bounds(self, jitter: Duration) -> (i128, i128) {
        if jitter.is_zero() {
            return (0, 0);
        }
        let jitter_ns = i128::from(jitter.as_nanos());
        let Some(table) = self.table() else { return (-jitter_ns, jitter_ns) };
        let index = |value: Option<&i16>| {
            table.iter().position(|entry| Some(entry) == value).unwrap_or_default() as u32
        };
        let (least, most) = (index(table.iter().min()), index(table.iter().max()));
        (self.deviation(jitter, least), self.deviation(jitter, most))
    }
}

fn clamp(value: i32) -> i16 {
    value.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}

/// Returns the quantile of a normal distribution, times the scale: the largest multiple of 0.00005
/// from -10 whose distribution function rounds to this entry of 16,384.
fn normal(index: usize) -> i32 {
    let entry = 4 * index as i64;
    let x = |step: i64| -10.0 + step as f64 * 0.000_05;
    let rounded = |step| {
        let probability = 0.5 + 0.5 * maths::erf(x(step) / core::f64::consts::SQRT_2);
        maths::rint(16_384.0 * probability) as i64
    };
    // The last step of this entry: the next has a later one.
    let (mut low, mut high) = (0, 400_000);
    while high - low > 1 {
        let middle = i64::midpoint(low, high);
        if rounded(middle) <= entry { low = middle } else { high = middle }
    }
    maths::rint(x(low) * SCALE as f64) as i32
}

/// Returns the quantile of Pareto's distribution, with mean 0, times the scale.
fn pareto(index: usize) -> i32 {
    let share = (65_536 - 16 * index) as f64 / 65_536.0;
    let value = (1.0 / maths::pow(share, 1.0 / 3.0) - 1.5) * (4.0 / 3.0) * SCALE as f64;
    maths::rint(value.min(32_767.0)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_quantiles() {
        // The median of a normal distribution, and its quantile of 1/4: -0.67449.
        assert!(NORMAL[TABLE / 2].abs() <= 1, "{}", NORMAL[TABLE / 2]);
        assert!((NORMAL[TABLE / 4] + 5_525).abs() <= 2, "{}", NORMAL[TABLE / 4]);
        assert!(NORMAL.is_sorted());
        // (1 - 1.5) * 4/3 at the start, (2^(1/3) - 1.5) * 4/3 in the middle.
        assert_eq!(PARETO[0], -5_461);
        assert_eq!(PARETO[TABLE / 2], -2_622);
        assert!(PARETO.is_sorted());
        assert_eq!(PARETO[TABLE - 1], 32_767);
        assert_eq!(PARETO_NORMAL[TABLE / 2], (i32::from(NORMAL[TABLE / 2]) - 3 * 2_622) as i16 / 4);
    }

    #[test]
    fn deviations_stay_within_the_bounds() {
        for distribution in [
            Distribution::Uniform,
            Distribution::Normal,
            Distribution::Pareto,
            Distribution::ParetoNormal,
        ] {
            let jitter = Duration::from_nanos(1_234_567);
            let (least, most) = distribution.bounds(jitter);
            assert!(least < 0 && most > 0);
            for random in (0..u32::MAX - 100_000).step_by(99_991) {
                let deviation = distribution.deviation(jitter, random);
                assert!((least..=most).contains(&deviation), "{distribution:?} {deviation}");
            }
        }
    }
}
