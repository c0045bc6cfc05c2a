//! Probabilities and gains as fractions of integers.

/// `num / den`, with `den` never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    num: u64,
    den: u64,
}

impl Ratio {
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
        let product = u128::from(n) * u128::from(self.num) / u128::from(self.den);
        u64::try_from(product).unwrap_or(u64::MAX)
    }

    /// As a number, for reports only.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
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
}
