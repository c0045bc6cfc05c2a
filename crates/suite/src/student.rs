//! Quantiles of Student's t distribution for whole degrees of freedom.
//!
//! The probability within `-t..t` is a finite sum: Abramowitz and Stegun, Handbook of Mathematical
//! Functions, 26.7.3 and 26.7.4.

use core::f64::consts::PI;

/// The probability that a value lies within `-t..t`, with this number of degrees of freedom.
fn within(t: f64, degrees: u64) -> f64 {
    let angle = libm::atan(t / libm::sqrt(degrees as f64));
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let square = cosine * cosine;
    // Each term is the one before it times a fraction of the squared cosine.
    let (mut term, first) = if degrees % 2 == 1 { (cosine, 2_u64) } else { (1.0, 1) };
    let mut sum = if degrees > 1 { term } else { 0.0 };
    let mut factor = first;
    while factor + 2 < degrees {
        term *= square * factor as f64 / (factor + 1) as f64;
        sum += term;
        factor += 2;
    }
    if degrees % 2 == 1 { 2.0 / PI * (angle + sine * sum) } else { sine * sum }
}

/// The value that is exceeded on either side together with the probability `error`: 0.05 gives half of
/// the 95 % interval in standard errors. Infinite without a degree of freedom.
pub(crate) fn two_sided(error: f64, degrees: u64) -> f64 {
    if degrees == 0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while 1.0 - within(high, degrees) > error && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if 1.0 - within(middle, degrees) > error { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed tables: Abramowitz and Stegun, table 26.10.
    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (error, degrees, value) in [
            (0.05, 1, 12.706),
            (0.05, 2, 4.303),
            (0.05, 3, 3.182),
            (0.05, 4, 2.776),
            (0.05, 15, 2.131),
            (0.01, 1, 63.657),
            (0.01, 7, 3.499),
            (0.01, 30, 2.750),
            (0.001, 3, 12.924),
            (0.001, 10, 4.587),
        ] {
            let found = two_sided(error, degrees);
            assert!((found - value).abs() < 6e-4, "{error} {degrees}: {found}, not {value}");
        }
        assert!(two_sided(0.05, 0).is_infinite());
    }
}
