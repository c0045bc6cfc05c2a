//! Floating point that gives the same bits on every machine: for formulas and reports only.
//!
//! IEEE 754 rounds `+`, `-`, `*`, `/` and `f64::sqrt` exactly, so they are used directly. The other
//! functions of the standard library come from the platform and differ between machines; these
//! come from the crate `libm`, built without its machine-dependent parts.

/// The cube root of `x`.
pub fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}

/// `x` to the power of `y`.
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The logarithm of `x` to base 2.
pub fn log2(x: f64) -> f64 {
    libm::log2(x)
}

/// The error function.
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// `x` rounded to the nearest integer, halves to the even one.
pub fn rint(x: f64) -> f64 {
    libm::rint(x)
}

/// `x` to the power of 3/4, computed with exactly rounded operations; `x` must not be negative.
pub fn three_quarters(x: f64) -> f64 {
    let root = x.sqrt();
    root * root.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_bit_exact() {
        // From a calculation with 50 decimal digits, rounded to the nearest `f64`.
        assert_eq!(cbrt(2.0).to_bits(), 1.259_921_049_894_873_2_f64.to_bits());
        assert_eq!(pow(0.98, 6.5).to_bits(), 0.876_939_216_399_918_9_f64.to_bits());
        assert_eq!(log2(10.0).to_bits(), core::f64::consts::LOG2_10.to_bits());
        assert_eq!(three_quarters(16.0).to_bits(), 8.0_f64.to_bits());
        assert_eq!(erf(0.5).to_bits(), 0.520_499_877_813_046_5_f64.to_bits());
        assert_eq!([rint(2.5), rint(-3.5), rint(2.6)].map(|x| x as i32), [2, -4, 3]);
        assert_eq!(cbrt(-27.0).to_bits(), (-3.0_f64).to_bits());
    }
}
