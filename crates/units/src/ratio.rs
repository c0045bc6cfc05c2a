//! Probabilities and gains as fractions of integers.

/// `num / den`, with `den` never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    num: u64,
    den: u64,
}

impl Ratio {
    /// Zero.
    pub const ZERO: Self = Self { num: 0, den: 1 };

    /// `num / den`; `None` if `den` is zero.
    pub const fn new(num: u64, den: u64) -> Option<Self> {
        if den == 0 { None } else { Some(Self { num, den }) }
    }

    /// Numerator.
    pub const fn num(self) -> u64 {
        self.num
    }

    /// Denominator, at least 1.
    pub const fn den(self) -> u64 {
        self.den
    }

    /// `n` times the ratio, rounded down.
    pub fn of(self, n: u64) -> u64 {
        scaled(n, self.num, self.den)
    }

    /// The ratio as a floating-point number, for reports only.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

/// `n * num / den`, rounded down, at most [`u64::MAX`]. Uses 64 bits where the product fits: a
/// 128-bit division is many times slower.
///
/// # Panics
/// If `den` is zero.
#[inline]
pub fn scaled(n: u64, num: u64, den: u64) -> u64 {
    match n.checked_mul(num) {
        Some(product) => product / den,
        None => {
            let product = u128::from(n) * u128::from(num) / u128::from(den);
            u64::try_from(product).unwrap_or(u64::MAX)
        }
    }
}

/// `n * num / den`, rounded up, at most [`u64::MAX`].
///
/// # Panics
/// If `den` is zero.
#[inline]
pub fn scaled_up(n: u64, num: u64, den: u64) -> u64 {
    match n.checked_mul(num) {
        Some(product) => product.div_ceil(den),
        None => {
            let product = (u128::from(n) * u128::from(num)).div_ceil(u128::from(den));
            u64::try_from(product).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_down_and_does_not_overflow() {
        assert_eq!(Ratio::new(3, 4).unwrap().of(7), 5);
        assert_eq!(Ratio::new(2, 1).unwrap().of(u64::MAX), u64::MAX);
        assert!(Ratio::new(1, 0).is_none());
    }

    #[test]
    fn both_widths_agree_where_they_meet() {
        // The products are just below and just above 2^64.
        let n = u64::MAX / 1_000;
        for n in [n - 1, n, n + 1, n + 2] {
            let exact = u128::from(n) * 1_000;
            assert_eq!(u128::from(scaled(n, 1_000, 7)), exact / 7);
            assert_eq!(u128::from(scaled_up(n, 1_000, 7)), exact.div_ceil(7));
        }
        assert_eq!(scaled_up(1, 1, 2), 1);
    }
}
