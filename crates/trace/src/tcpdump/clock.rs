//! Timestamps at the beginning of a line.

use std::io::{self, Write};

use units::Duration;

const DAY: u64 = 86_400;

/// Format and epoch of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimestampKind {
    /// A plain number of seconds: from the first packet in a mail, from 1970 with `-tt`.
    Seconds,
    /// Hours, minutes and seconds: since midnight, or since the first packet with `-ttttt`.
    TimeOfDay,
    /// Date and time (`-tttt`), taken for UTC: since 1970.
    Date,
}

/// `07:46:01.101000`: the time of day of `micros` microseconds.
pub(super) fn write_time_of_day(to: &mut Vec<u8>, micros: u64) -> io::Result<()> {
    let seconds = micros / 1_000_000 % DAY;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    write!(to, "{hours:02}:{minutes:02}:{seconds:02}.{:06}", micros % 1_000_000)
}

/// `2023-05-02`: the date of `micros` microseconds since 1970.
pub(super) fn write_date(to: &mut Vec<u8>, micros: u64) -> io::Result<()> {
    let (year, month, day) = civil(micros / 1_000_000 / DAY);
    write!(to, "{year:04}-{month:02}-{day:02}")
}

/// A timestamp at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundTimestamp {
    /// Its format.
    pub clock: TimestampKind,
    /// The time as printed.
    pub at: Duration,
    /// Its length in bytes.
    pub len: usize,
}

/// Parses the timestamp at the beginning of `text`, if a blank or the end follows it.
pub fn find(text: &str) -> Option<FoundTimestamp> {
    let found =
        find_date(text).or_else(|| find_time_of_day(text)).or_else(|| find_seconds(text))?;
    let ends = text[found.len..].chars().next().is_none_or(char::is_whitespace);
    ends.then_some(found)
}

fn find_date(text: &str) -> Option<FoundTimestamp> {
    let (date, after) = text.split_once([' ', '\t'])?;
    let mut parts = date.split('-');
    let mut part = |digits| number(parts.next()?, digits);
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    if part(2).is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let time = find_time_of_day(after.trim_start_matches([' ', '\t']))?;
    let skipped = text.len() - after.trim_start_matches([' ', '\t']).len();
    // Nanoseconds in 64 bits reach to the year 2554.
    let midnight = days(year, month, day)?.checked_mul(DAY * 1_000_000_000)?;
    let at = Duration::from_nanos(midnight) + time.at;
    Some(FoundTimestamp { clock: TimestampKind::Date, at, len: skipped + time.len })
}

fn find_time_of_day(text: &str) -> Option<FoundTimestamp> {
    let (hours, after) = text.split_once(':')?;
    let (minutes, after) = after.split_once(':')?;
    let seconds = find_number(after)?;
    let whole = after.split(|c: char| !c.is_ascii_digit()).next()?;
    let (h, m, s) = (number(hours, 2)?, number(minutes, 2)?, number(whole, 2)?);
    if m > 59 || s > 60 {
        return None;
    }
    let at = Duration::from_secs(h * 3_600 + m * 60) + seconds.at;
    let len = hours.len() + minutes.len() + 2 + seconds.len;
    Some(FoundTimestamp { clock: TimestampKind::TimeOfDay, at, len })
}

/// Parses seconds with a fraction; a whole number could be any number in prose.
fn find_seconds(text: &str) -> Option<FoundTimestamp> {
    let found = find_number(text)?;
    text[..found.len].contains('.').then_some(found)
}

/// `12`, `0.101`, `1683013561.123456789`: seconds to the nanosecond.
fn find_number(text: &str) -> Option<FoundTimestamp> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let seconds: u64 = text[..whole].parse().ok()?;
    // 2^64 ns are 584 years; a larger number is not the time of a packet.
    let mut nanos = seconds.checked_mul(1_000_000_000)?;
    let mut len = whole;
    if let Some(fraction) = text[whole..].strip_prefix('.') {
        let count = digits(fraction);
        let value: u64 = fraction[..count].parse().ok()?;
        let scale = 10_u64.checked_pow(9_u32.checked_sub(count as u32)?)?;
        nanos = nanos.checked_add(value * scale)?;
        len += 1 + count;
    }
    Some(FoundTimestamp { clock: TimestampKind::Seconds, at: Duration::from_nanos(nanos), len })
}

/// Parses `text` if it consists of exactly `digits` digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let all = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` before 1970.
///
/// Counted in years that begin on the first of March, so that the leap day comes last.
pub fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let march_year = if month <= 2 { year.checked_sub(1)? } else { year };
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let leap_days = march_year / 4 - march_year / 100 + march_year / 400;
    (march_year * 365 + leap_days + day_of_year).checked_sub(DAYS_BEFORE_1970)
}

/// From the first of March of the year 0 to the first of January 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

/// Year, month and day of a number of days since 1970: the inverse of [`days`].
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (year_of_era * 365 + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12 + 1;
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(clock: TimestampKind, at: u64, len: usize) -> Option<FoundTimestamp> {
        Some(FoundTimestamp { clock, at: Duration::from_nanos(at), len })
    }

    #[test]
    fn timestamps_of_every_format_are_found() {
        assert_eq!(find("0.101 IP"), nanos(TimestampKind::Seconds, 101_000_000, 5));
        assert_eq!(
            find("1683013561.123456 IP"),
            nanos(TimestampKind::Seconds, 1_683_013_561_123_456_000, 17)
        );
        assert_eq!(find("00:01:02.000003 IP"), nanos(TimestampKind::TimeOfDay, 62_000_003_000, 15));
        assert_eq!(find("07:46:01"), nanos(TimestampKind::TimeOfDay, 27_961_000_000_000, 8));
        // `date -u -d '2023-05-02 07:46:01' +%s` says 1683013561.
        assert_eq!(
            find("2023-05-02 07:46:01.5 IP"),
            nanos(TimestampKind::Date, 1_683_013_561_500_000_000, 21)
        );
    }

    #[test]
    fn other_texts_are_not_timestamps() {
        for text in [
            "",
            "12 IP",
            "0. IP",
            ".5 IP",
            "0.1x IP",
            "1:02:03.0",
            "07:46",
            "07:66:01.0",
            "2023-13-02 07:46:01.1",
            "2023-05-02",
            "1969-12-31 00:00:00.0",
            "0.1234567890 IP",
            "99999999999999.0 IP",
            "9999-01-01 00:00:00.0",
            "2 * MSS",
            "0.101,",
            "10.0.0.1 IP",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d <date> +%s`, divided by 86,400.
        for (date, since) in [
            ((1970, 1, 1), 0),
            ((1972, 2, 29), 789),
            ((1999, 12, 31), 10_956),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((2023, 5, 2), 19_479),
            ((2100, 3, 1), 47_541),
        ] {
            assert_eq!(days(date.0, date.1, date.2), Some(since), "{date:?}");
            assert_eq!(civil(since), date);
        }
    }

    #[test]
    fn every_day_has_its_own_date() {
        for day in 0..200_000 {
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), Some(day));
        }
    }
}
