//! Mapping of values to pixels, and ticks.

use super::number::{Decimal, Px};

/// A linear map from a range of values to a range of pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: i128,
    high: i128,
    from: Px,
    to: Px,
    step: i128,
    decimals: u32,
}

impl Scale {
    /// A scale of exactly this range, with ticks at least `apart` pixels apart.
    pub(super) fn exact(range: (i64, i64), pixels: (Px, Px), apart: i64, decimals: u32) -> Self {
        let decimals = decimals.min(18);
        let (low, mut high) = (i128::from(range.0), i128::from(range.1));
        if high <= low {
            high = low + 10_i128.pow(decimals);
        }
        let (from, to) = pixels;
        let most = (i128::from(from.0.abs_diff(to.0)) / (100 * i128::from(apart))).max(1);
        Self { low, high, from, to, step: nice_step(high - low, most), decimals }
    }

    /// A scale widened so that both ends are ticks.
    pub(super) fn rounded(range: (i64, i64), pixels: (Px, Px), apart: i64, decimals: u32) -> Self {
        let scale = Self::exact(range, pixels, apart, decimals);
        let low = scale.low.div_euclid(scale.step) * scale.step;
        let high = -(-scale.high).div_euclid(scale.step) * scale.step;
        Self { low, high, ..scale }
    }

    /// The position of `value`, to the nearest hundredth of a pixel.
    pub(super) fn position(&self, value: i64) -> Px {
        self.place_of(i128::from(value))
    }

    fn place_of(&self, value: i128) -> Px {
        let span = self.high - self.low;
        let pixels = i128::from(self.to.0 - self.from.0);
        let twice = 2 * (value - self.low) * pixels + span;
        Px(self.from.0 + twice.div_euclid(2 * span) as i64)
    }

    /// Positions and labels of the ticks in ascending order.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (Px, Decimal)> + '_ {
        let first = -(-self.low).div_euclid(self.step);
        let last = self.high.div_euclid(self.step);
        let zeros = (0..self.decimals).take_while(|&n| self.step % 10_i128.pow(n + 1) == 0);
        let shown = self.decimals - zeros.count() as u32;
        (first..=last).map(move |number| {
            let value = number * self.step;
            (self.place_of(value), Decimal { value, decimals: self.decimals, shown })
        })
    }
}

/// The smallest of 1, 2, 5, 10, 20, ... that divides `span` into at most `most` steps.
fn nice_step(span: i128, most: i128) -> i128 {
    let mut decade = 1;
    loop {
        for digit in [1, 2, 5] {
            if span <= digit * decade * most {
                return digit * decade;
            }
        }
        decade *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: (Px, Px) = (Px::whole(100), Px::whole(600));

    fn labels(scale: &Scale) -> Vec<String> {
        scale.ticks().map(|(position, label)| format!("{label}@{position}")).collect()
    }

    #[test]
    fn ticks_are_round_values_within_the_range() {
        // 0 to 2.3 s on 500 pixels, 100 apart: every 0.5 s, 500 / 2.3 * 0.5 = 108.70 pixels.
        let scale = Scale::exact((0, 2_300_000_000), WIDE, 100, 9);
        assert_eq!(
            labels(&scale),
            ["0.0@100", "0.5@208.7", "1.0@317.39", "1.5@426.09", "2.0@534.78"]
        );
    }

    #[test]
    fn a_rounded_scale_begins_and_ends_with_a_tick() {
        let upright = (Px::whole(300), Px::whole(0));
        let scale = Scale::rounded((-3, 20_272), upright, 50, 0);
        assert_eq!(
            labels(&scale),
            ["-5000@300", "0@250", "5000@200", "10,000@150", "15,000@100", "20,000@50", "25,000@0"]
        );
    }

    #[test]
    fn one_value_or_none_still_has_a_scale() {
        let scale = Scale::rounded((0, 0), WIDE, 100, 3);
        assert_eq!(
            labels(&scale),
            ["0.0@100", "0.2@200", "0.4@300", "0.6@400", "0.8@500", "1.0@600"]
        );
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let scale = Scale::rounded((i64::MIN, i64::MAX), WIDE, 100, 18);
        assert_eq!(scale.position(0), Px::whole(350));
        assert_eq!(scale.ticks().count(), 5);
    }

    #[test]
    fn steps_are_one_two_and_five() {
        for (span, most, step) in
            [(1, 5, 1), (6, 5, 2), (10, 5, 2), (11, 5, 5), (26, 5, 10), (101, 1, 200)]
        {
            assert_eq!(nice_step(span, most), step, "{span}");
        }
    }
}
