//! Numbers and units of tools that print for people.

/// Parses a number that is not negative. A comma before three digits groups them; another one is the
/// decimal comma of many languages.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches([',', '%', ';', ')']);
    // Words such as `inf` and `nan` are no figures.
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let groups = |text: &str| {
        let whole = text.split('.').next().unwrap_or_default();
        whole.split(',').skip(1).all(|group| group.len() == 3)
    };
    let text = match text.contains(',') {
        false => text.to_owned(),
        true if groups(text) => text.replace(',', ""),
        true => text.replace(',', "."),
    };
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

/// Rounds to a thousandth, which tools print.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Parses a number of which the unit follows at once: `14ms`, `1.21MB/s`.
pub(super) fn leading(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
    let (value, unit) = text.split_at(end.unwrap_or(text.len()));
    Some((number(value)?, unit))
}

fn scale(unit: &str, thousand: f64) -> Option<f64> {
    Some(match unit.chars().next()? {
        'K' | 'k' => thousand,
        'M' | 'm' => thousand * thousand,
        'G' | 'g' => thousand * thousand * thousand,
        'T' | 't' => thousand * thousand * thousand * thousand,
        _ => 1.0,
    })
}

/// Parses bytes: iperf counts 1024 to a kilobyte.
pub(super) fn bytes(value: &str, unit: &str) -> Option<f64> {
    if !unit.ends_with("Bytes") && !unit.ends_with("Byte") {
        return None;
    }
    Some(number(value)? * scale(unit.trim_start_matches("Byte"), 1_024.0).unwrap_or(1.0))
}

/// Parses a number with a letter of 1024: `412k`, `100M`, as curl and iperf 2 write them.
pub(super) fn binary(text: &str) -> Option<f64> {
    let (value, unit) = leading(text)?;
    match unit {
        "" => Some(value),
        "k" | "K" | "M" | "G" | "T" => Some(value * scale(unit, 1_024.0)?),
        _ => None,
    }
}

/// Parses a rate in bit/s: `9.43 Mbits/sec`, `1.2 MBytes/sec`.
pub(super) fn bits_per_second(value: &str, unit: &str) -> Option<f64> {
    let (amount, _) = unit.split_once("/s")?;
    if amount.ends_with("bits") || amount.ends_with("bit") {
        let prefix = amount.trim_end_matches("bits").trim_end_matches("bit");
        return Some(number(value)? * scale(prefix, 1_000.0).unwrap_or(1.0));
    }
    Some(bytes(value, amount)? * 8.0)
}

/// Parses a rate of ss and of speed tests: `4311788bps`, `941Mbps`.
pub(super) fn bps(text: &str) -> Option<f64> {
    let text = text.strip_suffix("bps")?;
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    Some(number(&text[..end])? * scale(&text[end..], 1_000.0).unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_groups_three_digits_or_is_a_decimal_point() {
        assert_eq!([number("1,234,567"), number("12,345.5")], [Some(1_234_567.0), Some(12_345.5)]);
        assert_eq!([number("1,21"), number("0,5")], [Some(1.21), Some(0.5)]);
        assert_eq!([number("-0"), number("inf"), number("/0"), number("")], [None; 4]);
        assert_eq!(binary("63K"), Some(64_512.0));
        assert_eq!(leading("1,21MB/s"), Some((1.21, "MB/s")));
    }
}
