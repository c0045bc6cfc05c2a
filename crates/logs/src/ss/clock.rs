//! Parses the time line before a poll.

use units::Duration;

use crate::lines::decimal;
use trace::tcpdump::clock::{days, find};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The time in the line; since 1970 if it has a date or is a plain number.
pub(super) fn time(line: &str) -> Option<Duration> {
    let text = line.trim_start_matches(['#', ' ', '\t', '=', '-']).trim_end();
    if let Some(micros) = text.strip_prefix("t_us=") {
        return decimal(micros, 1_000).map(Duration::from_nanos);
    }
    if let Some(span) = decimal(text, 1_000_000_000) {
        return Some(Duration::from_nanos(span));
    }
    if let Some(span) = of_date(text) {
        return Some(span);
    }
    // `2026-11-22T07:35:07,5+00:00`, `...Z`
    let iso = text.replacen('T', " ", 1).replacen(',', ".", 1);
    let iso = iso.strip_suffix('Z').or_else(|| iso.strip_suffix("+00:00")).unwrap_or(&iso);
    let found = find(iso)?;
    iso[found.len..].trim().is_empty().then_some(found.at)
}

/// `Sun Nov 22 07:35:07 UTC 2026`, as `date` prints it.
fn of_date(text: &str) -> Option<Duration> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, month, day, time, "UTC" | "GMT", year] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let (day, year) = (day.parse().ok()?, year.parse().ok()?);
    if !(1..=31).contains(&day) {
        return None;
    }
    let time = find(time).filter(|found| found.len == time.len())?.at;
    let midnight = days(year, month, day)?.checked_mul(86_400 * 1_000_000_000)?;
    midnight.checked_add(time.as_nanos()).map(Duration::from_nanos)
}
