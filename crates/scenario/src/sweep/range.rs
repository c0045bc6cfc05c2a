//! Ranges of values: `"10ms..100ms step 10ms"`, `"0.01%..10% log 4"`, `"1..9 in 5"`.

use super::super::source::{SpannedError, TextSpan};
use super::super::tree::{TomlNode, TomlValue};
use crate::units_text::{Measure, Quantity};

/// Maximum values of a range.
const MOST: u64 = 1_000_000;

/// Returns the values of a range; `None` if the text is not a range.
///
/// # Errors
/// The range is malformed or too long.
pub(super) fn read(text: &str, place: TextSpan) -> Result<Option<Vec<TomlNode>>, SpannedError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    // `434400B..435848B` alone is a range of bytes, one value.
    let Some(at) = words.iter().position(|word| ["step", "log", "in"].contains(word)) else {
        return Ok(None);
    };
    let ends = words[..at].concat();
    let Some((low, high)) = ends.split_once("..") else { return Ok(None) };
    let wrong = |message: String| {
        let examples = "`10ms..100ms step 10ms`, `1Mbit/s..1Gbit/s log 4` or `1..9 in 5`";
        SpannedError::new(place, message).found(format!("{text:?}")).expected(examples)
    };
    let read =
        |end: &str| Measure::read(end).ok_or_else(|| wrong(format!("`{end}` is not a quantity")));
    let (low, high) = (read(low)?, read(high)?);
    if low.quantity != high.quantity {
        return Err(wrong("the limits have different units".into()));
    }
    if low.steps > high.steps {
        return Err(wrong("the range ends before it begins".into()));
    }
    let amount = words[at + 1..].concat();
    let measures = match words[at] {
        "step" => {
            let step = read(&amount)?;
            if step.quantity != low.quantity {
                return Err(wrong("the step has another unit than the limits".into()));
            }
            if step.steps == 0 || (high.steps - low.steps) / step.steps >= MOST {
                return Err(wrong(format!("a range has at most {MOST} values")));
            }
            (low.steps..=high.steps).step_by(step.steps as usize).collect()
        }
        how => {
            let count = amount.parse::<u64>().ok().filter(|count| (2..=MOST).contains(count));
            let Some(count) = count else {
                return Err(wrong(format!(
                    "`{amount}` is not a number of values from 2 to {MOST}"
                )));
            };
            if how == "log" && low.steps == 0 {
                return Err(wrong("a logarithmic range cannot begin at 0".into()));
            }
            match how {
                "log" => logarithmic(low, high, count),
                _ => linear(low, high, count),
            }
        }
    };
    let node = |steps| node(low.with(steps), place);
    Ok(Some(measures.into_iter().map(node).collect()))
}

/// Returns `count` equidistant values including both limits, rounded to the nearest step.
fn linear(low: Measure, high: Measure, count: u64) -> Vec<u64> {
    let (span, last) = (u128::from(high.steps - low.steps), u128::from(count - 1));
    (0..u128::from(count)).map(|i| low.steps + ((span * i + last / 2) / last) as u64).collect()
}

/// Returns `count` values at equal ratios including both limits; intermediate values are rounded to
/// three digits.
fn logarithmic(low: Measure, high: Measure, count: u64) -> Vec<u64> {
    let ratio = high.steps as f64 / low.steps as f64;
    let last = count - 1;
    (0..count)
        .map(|i| match i {
            0 => low.steps,
            _ if i == last => high.steps,
            _ => three_digits(low.steps as f64 * libm::pow(ratio, i as f64 / last as f64)),
        })
        .collect()
}

fn three_digits(value: f64) -> u64 {
    let mut unit = 1_u64;
    while value / unit as f64 >= 1_000.0 {
        unit *= 10;
    }
    libm::round(value / unit as f64) as u64 * unit
}

/// Converts a measure to a value of the scenario.
fn node(measure: Measure, place: TextSpan) -> TomlNode {
    let text = measure.text();
    let value = match measure.quantity {
        Quantity::Number if text.contains('.') => TomlValue::Float(text),
        Quantity::Number => TomlValue::Integer(text),
        _ => TomlValue::Text(text),
    };
    TomlNode { span: place, value }
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Sources;
    use super::super::axis::label;
    use super::*;

    fn values(text: &str) -> Vec<String> {
        let place = Sources::new("", text).1.span(0..text.len());
        read(text, place).unwrap().unwrap().iter().map(label).collect()
    }

    #[test]
    fn steps_end_at_or_below_the_upper_limit() {
        assert_eq!(values("10ms..30ms step 10ms"), ["10ms", "20ms", "30ms"]);
        assert_eq!(values("10ms .. 39ms step 10 ms"), ["10ms", "20ms", "30ms"]);
        assert_eq!(values("0%..1% step 0.5%"), ["0%", "0.5%", "1%"]);
        assert_eq!(values("2..8 step 2"), ["2", "4", "6", "8"]);
        assert_eq!(values("500us..2ms step 500us"), ["500us", "1ms", "1.5ms", "2ms"]);
    }

    #[test]
    fn counted_values_include_both_limits() {
        assert_eq!(values("1..9 in 5"), ["1", "3", "5", "7", "9"]);
        assert_eq!(
            values("1Mbit/s..1Gbit/s log 4"),
            ["1Mbit/s", "10Mbit/s", "100Mbit/s", "1Gbit/s"]
        );
        // 0.01 * 10^(3/4), 10^(6/4), 10^(9/4): 0.0562, 0.316, 1.78.
        assert_eq!(values("0.01%..10% log 5"), ["0.01%", "0.0562%", "0.316%", "1.78%", "10%"]);
    }

    #[test]
    fn other_text_is_one_value() {
        let place = Sources::new("", "").1.span(0..0);
        for text in ["cubic", "434400B..435848B", "step", "a step b"] {
            assert_eq!(read(text, place), Ok(None), "{text}");
        }
    }

    #[test]
    fn malformed_ranges_are_reported() {
        let place = Sources::new("", "").1.span(0..0);
        let error = |text| {
            let (sources, _) = Sources::new("f", "x");
            sources.errors(vec![read(text, place).unwrap_err()])[0].message.clone()
        };
        assert_eq!(error("10ms..1MB step 1ms"), "the limits have different units");
        assert_eq!(error("10ms..5ms step 1ms"), "the range ends before it begins");
        assert_eq!(error("1ms..5ms step 0ms"), "a range has at most 1000000 values");
        assert_eq!(error("1ms..5ms step 1"), "the step has another unit than the limits");
        assert_eq!(error("1..5 log x"), "`x` is not a number of values from 2 to 1000000");
        assert_eq!(error("0..5 log 3"), "a logarithmic range cannot begin at 0");
        assert_eq!(error("a..5 log 3"), "`a` is not a quantity");
    }
}
