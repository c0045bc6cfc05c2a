//! How a quantity is taken apart: number, unit, limit; in whole numbers, exactly.

use units::Ratio;

use super::Misread;
use super::names::SHARE;

/// A dimension: its units and the words for its errors.
#[derive(Clone, Copy)]
pub(super) struct Dimension {
    /// `a duration`.
    pub(super) noun: &'static str,
    /// What its units measure: `time`.
    pub(super) of: &'static str,
    /// Examples, quoted.
    pub(super) examples: &'static str,
    /// Unit supposed where none is written.
    pub(super) usual: &'static str,
    /// Units in words.
    pub(super) units: &'static str,
    /// What one of a unit is in the smallest step; `None` if there is no such unit.
    pub(super) factor: fn(&str) -> Option<u64>,
    /// The unit probably meant by a wrong one.
    pub(super) meant: fn(&str) -> Option<&'static str>,
    /// Smallest step in words.
    pub(super) step: &'static str,
    /// Limit in steps.
    pub(super) most: u64,
    /// Limit in words.
    pub(super) most_text: &'static str,
}

impl Dimension {
    /// The quantity in its smallest steps.
    pub(super) fn read(&self, text: &str) -> Result<u64, Misread> {
        let (number, unit) = self.split(text)?;
        match (self.factor)(unit) {
            Some(factor) => self.scaled(number, factor),
            None => Err(self.unknown_unit(number, unit)),
        }
    }

    /// Number and unit, neither checked but for being there.
    pub(super) fn split<'t>(&self, text: &'t str) -> Result<(&'t str, &'t str), Misread> {
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

    /// `number` of a unit that is `factor` steps.
    pub(super) fn scaled(&self, number: &str, factor: u64) -> Result<u64, Misread> {
        let (digits, scale) = self.decimal(number)?;
        let product = u128::from(digits) * u128::from(factor);
        let scale = u128::from(scale);
        if product > u128::from(self.most) * scale {
            return Err(self.above_limit());
        }
        if product % scale != 0 {
            return Err(self.misread(&format!("is finer than {}", self.step), None));
        }
        // Not above `most`, which has 64 bits.
        Ok((product / scale) as u64)
    }

    /// `number` divided by `parts`, as a fraction.
    pub(super) fn ratio(&self, number: &str, parts: u64) -> Result<Ratio, Misread> {
        let (digits, scale) = self.decimal(number)?;
        if u128::from(digits) > u128::from(self.most) * u128::from(scale) {
            return Err(self.above_limit());
        }
        let whole = scale.checked_mul(parts).and_then(|den| Ratio::new(digits, den));
        whole.ok_or_else(|| self.too_many_digits())
    }

    /// A unit that is none of this dimension's.
    pub(super) fn unknown_unit(&self, number: &str, unit: &str) -> Misread {
        let hint = match (self.meant)(unit) {
            // Upper and lower case tell bits from bytes: say which was guessed.
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

    /// Something is wrong with a text of this dimension.
    pub(super) fn misread(&self, message: &str, hint: Option<String>) -> Misread {
        Misread {
            message: message.to_owned(),
            expected: format!("{} such as {}", self.noun, self.examples),
            hint,
        }
    }

    /// `number` as whole digits and the power of ten they are to be divided by.
    fn decimal(&self, number: &str) -> Result<(u64, u64), Misread> {
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
        // 19 digits fit 64 bits, and no quantity within the limits needs more.
        if digits.len() > 19 || fraction.len() > 19 {
            return Err(self.too_many_digits());
        }
        let value = digits.bytes().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        Ok((value, 10_u64.pow(fraction.len() as u32)))
    }

    fn above_limit(&self) -> Misread {
        self.misread(&format!("is more than {}, the limit", self.most_text), None)
    }

    fn too_many_digits(&self) -> Misread {
        self.misread("has too many digits", None)
    }
}

fn did_you_mean(text: &str) -> String {
    format!("did you mean \"{text}\"?")
}

/// The quantity that a bare decimal number probably is, as a question: with the `usual` unit. As a
/// share, a number below one is the probability: 0.01 is 1 %. None for a share above 100 %.
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
