//! Quantities in the units of tc and ipfw, exact: a digit that cannot be kept is an error.

use super::tokens::{ImportError, ScriptToken};

/// Maximum number of digits of a number.
const MAX_DIGITS: usize = 18;

/// A decimal number: `mantissa` divided by 10 to the power of `scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    mantissa: u128,
    scale: u32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = whole.len() + fraction.len();
        if !(1..=MAX_DIGITS).contains(&digits) {
            return None;
        }
        let mut mantissa = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            if !digit.is_ascii_digit() {
                return None;
            }
            mantissa = mantissa * 10 + u128::from(digit - b'0');
        }
        Some(Self { mantissa, scale: fraction.len() as u32 })
    }

    fn unit(self) -> u128 {
        10_u128.pow(self.scale)
    }

    /// Multiplies by the fraction `numerator / denominator`; `None` if the product is not a whole
    /// number of 64 bits.
    fn scaled(self, numerator: u64, denominator: u64) -> Option<u64> {
        let product = self.mantissa.checked_mul(u128::from(numerator))?;
        let divisor = self.unit().checked_mul(u128::from(denominator))?;
        if product % divisor != 0 {
            return None;
        }
        u64::try_from(product / divisor).ok()
    }

    /// Multiplies by the fraction `numerator / denominator`, rounded down.
    fn scaled_down(self, numerator: u64, denominator: u64) -> Option<u64> {
        let product = self.mantissa.checked_mul(u128::from(numerator))?;
        let divisor = self.unit().checked_mul(u128::from(denominator))?;
        u64::try_from(product / divisor).ok()
    }

    /// Returns `whole` less this number; `None` if that is below zero.
    fn less_than(self, whole: u128) -> Option<Self> {
        let mantissa = (whole * self.unit()).checked_sub(self.mantissa)?;
        Some(Self { mantissa, scale: self.scale })
    }
}

impl core::fmt::Display for Decimal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (whole, fraction) = (self.mantissa / self.unit(), self.mantissa % self.unit());
        write!(f, "{whole}")?;
        if fraction == 0 {
            return Ok(());
        }
        let digits = format!("{fraction:0width$}", width = self.scale as usize);
        write!(f, ".{}", digits.trim_end_matches('0'))
    }
}

/// A percentage from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Percent(Decimal);

impl Percent {
    pub(super) const ZERO: Self = Self(Decimal { mantissa: 0, scale: 0 });
    pub(super) const ALL: Self = Self(Decimal { mantissa: 100, scale: 0 });

    /// Returns 100 % less this.
    pub(super) fn complement(self) -> Self {
        Self(self.0.less_than(100).unwrap_or(Self::ZERO.0))
    }

    pub(super) fn is_zero(self) -> bool {
        self.0.mantissa == 0
    }
}

impl core::fmt::Display for Percent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// Returns whether a word begins as a number does.
pub(super) fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// Splits a word into its number and its unit in lower case.
fn split(token: ScriptToken<'_>, expected: &str) -> Result<(Decimal, String), ImportError> {
    let word = token.text;
    let end = word.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(word.len());
    let number = Decimal::parse(&word[..end]);
    let number = number.ok_or_else(|| token.error(format!("`{word}`: expected {expected}")))?;
    Ok((number, word[end..].to_ascii_lowercase()))
}

/// Reads a whole number.
pub(super) fn count(token: ScriptToken<'_>, expected: &str) -> Result<u64, ImportError> {
    let word = token.text;
    let is_digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|_| is_digits);
    number.ok_or_else(|| token.error(format!("`{word}`: expected {expected}")))
}

/// Converts to a unit; the product must be whole.
fn convert(
    token: ScriptToken<'_>,
    number: Decimal,
    (numerator, denominator): (u64, u64),
    unit: &str,
) -> Result<u64, ImportError> {
    number.scaled(numerator, denominator).ok_or_else(|| {
        token.error(format!("`{}` is out of range or no whole number of {unit}", token.text))
    })
}

/// Reads a percentage such as `1%`; a number alone is one, too (iproute2, `parse_percent`).
pub(super) fn percent(token: ScriptToken<'_>) -> Result<Percent, ImportError> {
    let expected = "a percentage such as 1%";
    let (number, unit) = split(token, expected)?;
    let word = token.text;
    match unit.as_str() {
        "%" | "" if number.less_than(100).is_some() => Ok(Percent(number)),
        "%" | "" => Err(token.error(format!("`{word}` is more than 100 %"))),
        _ => Err(token.error(format!("`{word}`: expected {expected}"))),
    }
}

/// Reads a probability from 0 to 1 (dummynet's `plr`).
pub(super) fn probability(token: ScriptToken<'_>) -> Result<Percent, ImportError> {
    let refuse = || token.error(format!("plr `{}`: expected 0 to 1", token.text));
    let (number, unit) = split(token, "").map_err(|_| refuse())?;
    if !unit.is_empty() || number.less_than(1).is_none() {
        return Err(refuse());
    }
    Ok(Percent(Decimal { mantissa: number.mantissa * 100, ..number }))
}

/// Reads a time in nanoseconds; `bare` is the unit of a number alone: `us` for tc, `ms` for ipfw.
pub(super) fn time(token: ScriptToken<'_>, bare: &str) -> Result<u64, ImportError> {
    let expected = "a time such as 10ms";
    let (number, unit) = split(token, expected)?;
    let scale = match if unit.is_empty() { bare } else { &unit } {
        "ns" | "nsec" | "nsecs" => 1,
        "us" | "usec" | "usecs" => 1_000,
        "ms" | "msec" | "msecs" => 1_000_000,
        "s" | "sec" | "secs" => 1_000_000_000,
        _ => return Err(token.error(format!("`{}`: expected {expected}", token.text))),
    };
    convert(token, number, (scale, 1), "nanoseconds")
}

/// Writes a time in nanoseconds in the largest unit that has no fraction.
pub(super) fn time_text(ns: u64) -> String {
    match ns {
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

/// Reads a rate of tc in bit/s (iproute2, lib/utils_math.c); `bps` is bytes per second.
pub(super) fn tc_rate(token: ScriptToken<'_>) -> Result<u64, ImportError> {
    let expected = "a rate such as 10mbit";
    let (number, unit) = split(token, expected)?;
    let scale = rate_scale(&unit, "bit", "bps");
    let scale = scale.or((unit.is_empty()).then_some(1));
    let scale =
        scale.ok_or_else(|| token.error(format!("`{}`: expected {expected}", token.text)))?;
    nonzero(token, convert(token, number, (scale, 1), "bits per second")?)
}

/// Reads a rate of ipfw in bit/s.
pub(super) fn ipfw_rate(token: ScriptToken<'_>) -> Result<u64, ImportError> {
    let expected = "a rate such as 10Mbit/s";
    let (number, unit) = split(token, expected)?;
    let scale = rate_scale(&unit, "bit/s", "byte/s").or_else(|| rate_scale(&unit, "bit", "byte"));
    let scale =
        scale.ok_or_else(|| token.error(format!("`{}`: expected {expected}", token.text)))?;
    nonzero(token, convert(token, number, (scale, 1), "bits per second")?)
}

fn nonzero(token: ScriptToken<'_>, rate: u64) -> Result<u64, ImportError> {
    if rate == 0 {
        return Err(token.error(format!("`{}`: the rate is zero", token.text)));
    }
    Ok(rate)
}

/// Returns the bit/s of a unit such as `kbit` or `KiBps`, in lower case.
fn rate_scale(unit: &str, bits: &str, bytes: &str) -> Option<u64> {
    let (prefix, each) = match (unit.strip_suffix(bits), unit.strip_suffix(bytes)) {
        (Some(prefix), _) => (prefix, 1),
        (None, Some(prefix)) => (prefix, 8),
        (None, None) => return None,
    };
    let factor: u64 = match prefix {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return None,
    };
    Some(factor * each)
}

/// Reads a size of tc in bytes (iproute2, lib/utils.c, `get_size`): `k` is 1024, `kbit` 1024 bits.
pub(super) fn tc_size(token: ScriptToken<'_>) -> Result<u64, ImportError> {
    let expected = "a size such as 32kb";
    let (number, unit) = split(token, expected)?;
    let ratio = match unit.as_str() {
        "" | "b" => (1, 1),
        "k" | "kb" => (1 << 10, 1),
        "m" | "mb" => (1 << 20, 1),
        "g" | "gb" => (1 << 30, 1),
        "kbit" => (1 << 10, 8),
        "mbit" => (1 << 20, 8),
        "gbit" => (1 << 30, 8),
        _ => return Err(token.error(format!("`{}`: expected {expected}", token.text))),
    };
    // tc rounds down.
    number
        .scaled_down(ratio.0, ratio.1)
        .ok_or_else(|| token.error(format!("`{}` is out of range", token.text)))
}

/// Reads dummynet's `queue`: slots, or a size in bytes; the result is a size of a scenario.
pub(super) fn ipfw_queue(token: ScriptToken<'_>) -> Result<String, ImportError> {
    let (number, unit) = split(token, "a size, such as 50 or 64KBytes")?;
    let (scale, suffix) = match unit.as_str() {
        "" | "slots" => (1, "p"),
        "b" | "bytes" => (1, "B"),
        "kb" | "kbytes" => (1 << 10, "B"),
        "mb" | "mbytes" => (1 << 20, "B"),
        unit => return Err(token.error(format!("queue: unit `{unit}` is not known"))),
    };
    let size = number.scaled(scale, 1).filter(|&size| size > 0);
    let size =
        size.ok_or_else(|| token.error(format!("queue `{}` is out of range", token.text)))?;
    Ok(format!("{size}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::import::tokens::TokenPosition;

    fn token(text: &str) -> ScriptToken<'_> {
        ScriptToken { text, position: TokenPosition { line: 1, column: 1, width: text.len() } }
    }

    #[test]
    fn units_are_those_of_tc() {
        let rate = |text| tc_rate(token(text)).unwrap();
        assert_eq!([rate("64"), rate("1.5Kbit"), rate("1kibit")], [64, 1_500, 1_024]);
        assert_eq!([rate("10Mbit"), rate("1mbps"), rate("1KiBps")], [10_000_000, 8_000_000, 8_192]);
        let size = |text| tc_size(token(text)).unwrap();
        assert_eq!(
            [size("1540"), size("32kbit"), size("5Kb"), size("1m")],
            [1_540, 4_096, 5_120, 1 << 20]
        );
        let time = |text| time(token(text), "us").unwrap();
        assert_eq!([time("100"), time("1.5ms"), time("2s")], [100_000, 1_500_000, 2_000_000_000]);
    }

    #[test]
    fn percentages_are_exact() {
        let percent = |text| percent(token(text)).unwrap();
        assert_eq!(percent("90.1%").complement().to_string(), "9.9%");
        assert_eq!(percent("0.000001%").to_string(), "0.000001%");
        assert_eq!(percent("1.50%").to_string(), "1.5%");
        assert_eq!(probability(token("0.015")).unwrap().to_string(), "1.5%");
        assert!(percent("0.0%").is_zero());
    }

    #[test]
    fn a_digit_that_cannot_be_kept_is_an_error() {
        for text in ["0.1ns", "1.0000000001s", "99999999999s", "-1ms", "1e3ms", "ms", "1 ms"] {
            assert!(time(token(text), "us").is_err(), "{text}");
        }
        for text in ["0", "0bit", "0.5bit", "10mbit/s", "50%", "9999999999999999999999"] {
            assert!(tc_rate(token(text)).is_err(), "{text}");
        }
        assert_eq!(percent(token("1")).unwrap().to_string(), "1%");
        for text in ["100.1%", "101", "1%%", "%", "1ms"] {
            assert!(percent(token(text)).is_err(), "{text}");
        }
        assert!(tc_size(token("1bit")).is_err());
    }
}
