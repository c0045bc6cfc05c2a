//! Parses number and unit of a quantity exactly, in integers, and checks its limit.

use units::Ratio;

use super::QuantityError;
use super::names::SHARE;

/// A dimension: its units, limit and error texts.
#[derive(Clone, Copy)]
pub(super) struct Dimension {
    /// Noun for messages: `a duration`.
    pub(super) noun: &'static str,
    /// Measured quantity: `time`.
    pub(super) of: &'static str,
    /// Examples, quoted.
    pub(super) examples: &'static str,
    /// Unit suggested for a number without one.
    pub(super) usual: &'static str,
    /// List of the units, for messages.
    pub(super) units: &'static str,
    /// Returns the smallest steps per unit; `None` for an unknown unit.
    pub(super) factor: fn(&str) -> Option<u64>,
    /// Suggests a unit for an unknown one.
    pub(super) meant: fn(&str) -> Option<&'static str>,
    /// Smallest step, for messages.
    pub(super) step: &'static str,
    /// Limit in steps.
    pub(super) most: u64,
    /// Limit, for messages.
    pub(super) most_text: &'static str,
}

impl Dimension {
    /// Reads a quantity in its smallest steps.
    pub(super) fn read(&self, text: &str) -> Result<u64, QuantityError> {
        let (number, unit) = self.split(text)?;
        match (self.factor)(unit) {
            Some(factor) => self.scaled(number, factor),
            None => Err(self.unknown_unit(number, unit)),
        }
    }

    /// Splits number and unit; both must be present.
    pub(super) fn split<'t>(&self, text: &'t str) -> Result<(&'t str, &'t str), QuantityError> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix(['-', '\u{2212}']) {
            let number = rest.starts_with(|c: char| c.is_ascii_digit());
            return Err(self.misread("is negative", number.then(|| did_you_mean(rest))));
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim_start());
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.misread("does not begin with a number", None));
        }
        if unit.is_empty() {
            return Err(self.misread("has no unit", guess(number, self.usual)));
        }
        Ok((number, unit))
    }

    /// Converts `number` of a unit of `factor` steps.
    pub(super) fn scaled(&self, number: &str, factor: u64) -> Result<u64, QuantityError> {
        let (digits, scale) = self.decimal(number)?;
        let product = u128::from(digits) * u128::from(factor);
        let scale = u128::from(scale);
        if product > u128::from(self.most) * scale {
            return Err(self.above_limit());
        }
        if product % scale != 0 {
            return Err(self.misread(&format!("is finer than {}", self.step), None));
        }
        // At most `most`, which has 64 bits.
        Ok((product / scale) as u64)
    }

    /// Returns `number` divided by `parts`, as a fraction.
    pub(super) fn ratio(&self, number: &str, parts: u64) -> Result<Ratio, QuantityError> {
        let (digits, scale) = self.decimal(number)?;
        if u128::from(digits) > u128::from(self.most) * u128::from(scale) {
            return Err(self.above_limit());
        }
        let whole = scale.checked_mul(parts).and_then(|den| Ratio::new(digits, den));
        whole.ok_or_else(|| self.too_many_digits())
    }

    /// Returns the error for an unknown unit.
    pub(super) fn unknown_unit(&self, number: &str, unit: &str) -> QuantityError {
        let hint = match (self.meant)(unit) {
            // Case distinguishes bits from bytes: name the suggestion.
            Some(name) if name.ends_with("bit/s") => {
                format!("did you mean \"{number}{name}\" (bits)?")
            }
            Some(name) if name.contains('B') => {
                format!("did you mean \"{number}{name}\" (bytes)?")
            }
            Some(name) => did_you_mean(&format!("{number}{name}")),
            None => format!("units are {}", self.units),
        };
        let message = format!("has the unit `{unit}`, not a unit of {}", self.of);
        self.misread(&message, Some(hint))
    }

    /// Returns an error about a text of this dimension.
    pub(super) fn misread(&self, message: &str, hint: Option<String>) -> QuantityError {
        QuantityError {
            message: message.to_owned(),
            expected: format!("{} such as {}", self.noun, self.examples),
            hint,
        }
    }

    /// Parses a decimal number into its digits and the power of ten to divide them by.
    fn decimal(&self, number: &str) -> Result<(u64, u64), QuantityError> {
        let (whole, fraction) = match number.split_once('.') {
            Some((_, "")) => return Err(self.misread("ends its number with a point", None)),
            Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
            None => (number, ""),
        };
        if fraction.contains('.') {
            return Err(self.misread("has two decimal points", None));
        }
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        // 19 digits fit 64 bits; no quantity within the limits has more.
        if digits.len() > 19 || fraction.len() > 19 {
            return Err(self.too_many_digits());
        }
        let value = digits.bytes().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        Ok((value, 10_u64.pow(fraction.len() as u32)))
    }

    fn above_limit(&self) -> QuantityError {
        self.misread(&format!("is more than {}, the limit", self.most_text), None)
    }

    fn too_many_digits(&self) -> QuantityError {
        self.misread("has too many digits", None)
    }
}

fn did_you_mean(text: &str) -> String {
    format!("did you mean \"{text}\"?")
}

/// Suggests the quantity for a bare decimal number, in the `usual` unit. A fraction below one is
/// read as a probability (0.01 is 1 %); there is no suggestion for a fraction above 100 %.
pub(super) fn guess(number: &str, usual: &str) -> Option<String> {
    let text = match number.split_once('.') {
        _ if usual != "%" => number.to_owned(),
        Some((whole, fraction)) if whole.bytes().all(|digit| digit == b'0') => {
            let fraction = format!("{fraction:0<2}");
            let (percent, rest) = fraction.split_at(2);
            let percent = match percent.trim_start_matches('0') {
                "" => "0",
                percent => percent,
            };
            match rest.trim_end_matches('0') {
                "" => percent.to_owned(),
                rest => format!("{percent}.{rest}"),
            }
        }
        _ => SHARE.ratio(number, 100).ok().map(|_| number.to_owned())?,
    };
    Some(did_you_mean(&format!("{text}{usual}")))
}
