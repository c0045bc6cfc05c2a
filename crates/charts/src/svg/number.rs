//! Numbers as text, without floating point.

use std::fmt;

/// Hundredths of a pixel, the resolution of all coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Px(pub(super) i64);

impl Px {
    pub(super) const fn whole(pixels: i64) -> Self {
        Self(pixels * 100)
    }
}

/// Formats as `12.5`, without trailing zeros.
impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, rest) = (self.0.unsigned_abs() / 100, self.0.unsigned_abs() % 100);
        match (rest / 10, rest % 10) {
            (0, 0) => write!(f, "{sign}{whole}"),
            (tenths, 0) => write!(f, "{sign}{whole}.{tenths}"),
            _ => write!(f, "{sign}{whole}.{rest:02}"),
        }
    }
}

/// A value with `decimals` decimals, of which `shown` are written.
pub(super) struct Decimal {
    pub(super) value: i128,
    pub(super) decimals: u32,
    pub(super) shown: u32,
}

/// Formats as `-1,250,000.5`: with thousands separators from five digits on.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_u128.pow(self.decimals);
        let (whole, rest) = (self.value.unsigned_abs() / unit, self.value.unsigned_abs() % unit);
        if self.value < 0 {
            f.write_str("-")?;
        }
        let digits = whole.to_string();
        for (position, digit) in digits.char_indices() {
            let left = digits.len() - position;
            if digits.len() >= 5 && position > 0 && left % 3 == 0 {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        if self.shown > 0 {
            let rest = rest / 10_u128.pow(self.decimals.saturating_sub(self.shown));
            write!(f, ".{rest:0width$}", width = self.shown as usize)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_have_no_more_digits_than_they_need() {
        for (hundredths, text) in
            [(0, "0"), (1_250, "12.5"), (1_205, "12.05"), (-7, "-0.07"), (-1_200, "-12")]
        {
            assert_eq!(Px(hundredths).to_string(), text);
        }
    }

    #[test]
    fn values_keep_their_point() {
        let text = |value, decimals, shown| Decimal { value, decimals, shown }.to_string();
        assert_eq!(text(1_500_000_000, 9, 1), "1.5");
        assert_eq!(text(1_500, 3, 0), "1");
        assert_eq!(text(-2_050, 3, 2), "-2.05");
        assert_eq!(text(9_999, 0, 0), "9999");
        assert_eq!(text(10_000, 0, 0), "10,000");
        assert_eq!(text(1_234_567_250, 2, 1), "12,345,672.5");
    }
}
