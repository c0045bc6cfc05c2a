//! Mean and spread of repeated runs.

/// Running statistics of the values of a cell (Welford's method).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SampleStatistics {
    /// Number of values.
    pub count: u64,
    /// Mean; 0 if empty.
    pub mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    /// Minimum; 0 if empty.
    pub min: f64,
    /// Maximum; 0 if empty.
    pub max: f64,
}

impl SampleStatistics {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        let first = self.count == 0;
        self.count += 1;
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
        self.min = if first { value } else { self.min.min(value) };
        self.max = if first { value } else { self.max.max(value) };
    }

    /// Sample standard deviation; `None` for fewer than two values.
    pub fn deviation(&self) -> Option<f64> {
        let free = self.count.checked_sub(1).filter(|free| *free > 0)?;
        Some(libm::sqrt(self.squares / free as f64))
    }

    /// Half the width of the 95 % confidence interval of the mean for normally distributed values
    /// (Student's t); `None` for fewer than two.
    pub fn confidence(&self) -> Option<f64> {
        let deviation = self.deviation()?;
        Some(quantile(self.count - 1) * deviation / libm::sqrt(self.count as f64))
    }
}

/// The 97.5 % quantile of Student's t distribution from tables; between their entries, the value of
/// fewer degrees of freedom, which is conservative.
fn quantile(degrees: u64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees as usize - 1],
        31..=39 => 2.042,
        40..=59 => 2.021,
        60..=119 => 2.000,
        120..=999 => 1.980,
        _ => 1.962,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> SampleStatistics {
        let mut summary = SampleStatistics::default();
        values.iter().for_each(|value| summary.add(*value));
        summary
    }

    #[test]
    fn statistics_of_a_sample() {
        // Mean 5, squares 9+1+1+1+0+0+4+16 = 32 over 7 degrees of freedom.
        let summary = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((summary.count, summary.min, summary.max), (8, 2.0, 9.0));
        assert!((summary.mean - 5.0).abs() < 1e-12);
        let deviation = summary.deviation().unwrap();
        assert!((deviation - libm::sqrt(32.0 / 7.0)).abs() < 1e-12);
        let half = summary.confidence().unwrap();
        assert!((half - 2.365 * deviation / libm::sqrt(8.0)).abs() < 1e-12);
    }

    #[test]
    fn one_value_has_no_spread() {
        assert_eq!(of(&[3.0]).confidence(), None);
        assert_eq!(of(&[]).deviation(), None);
        assert_eq!(of(&[3.0, 3.0]).confidence(), Some(0.0));
    }
}
