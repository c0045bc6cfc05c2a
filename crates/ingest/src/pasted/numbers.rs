//! Numbers and units of tools that print for people.

/// Parses a number that is not negative.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches([',', '%', ';', ')']).replace(',', "");
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
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

/// Parses a rate in bit/s: `9.43 Mbits/sec`, `1.2 MBytes/sec`.
pub(super) fn bits_per_second(value: &str, unit: &str) -> Option<f64> {
    let (amount, _) = unit.split_once("/s")?;
    if amount.ends_with("bits") || amount.ends_with("bit") {
        let prefix = amount.trim_end_matches("bits").trim_end_matches("bit");
        return Some(number(value)? * scale(prefix, 1_000.0).unwrap_or(1.0));
    }
    Some(bytes(value, amount)? * 8.0)
}

/// Parses a rate of ss: `4311788bps`, `941Mbps`.
pub(super) fn bps(text: &str) -> Option<f64> {
    let text = text.strip_suffix("bps")?;
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    Some(number(&text[..end])? * scale(&text[end..], 1_000.0).unwrap_or(1.0))
}
