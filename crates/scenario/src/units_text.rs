//! Quantities as people write them: `100ms`, `1Gbit/s`, `64KiB`, `2%`, `1bdp`, `45mss`.
//!
//! A number without a unit is refused: 100 what? Numbers are decimal and exact, `1.5ms` is
//! 1,500,000 ns without a detour over floating point, and what is finer than the smallest step
//! (a nanosecond, a byte, a bit per second) is refused rather than rounded.
//!
//! Spellings follow the tools of the trade: `kB` is 1000 bytes and `KiB` 1024, `Mbit/s`, `Mbit`,
//! `mbit` and `Mbps` are bits, `MB/s` and `MBps` bytes. `bps` means bits, as in iperf and ns-3;
//! in `tc` it means bytes.

mod dimension;
mod measure;
mod names;
mod written;

use dimension::guess;
pub use measure::{Measure, Quantity};
use names::{BDP, PACKETS, RATE, ROOM, SHARE, SIZE, TIME};
use units::{Bytes, Duration, Rate, Ratio};
pub use written::{byte_range_text, duration_text, rate_text, room_text, share_text, size_text};

/// Longest duration taken.
pub const MAX_DURATION: Duration = Duration::from_secs(1_000_000);
/// Highest rate taken, in bits per second.
pub const MAX_RATE: u64 = 100_000_000_000_000;
/// Largest size taken.
pub const MAX_SIZE: Bytes = Bytes(1_000_000_000_000_000_000);
/// Longest queue taken, in packets.
pub const MAX_PACKETS: u64 = 1_000_000_000;
/// Deepest queue taken, in bandwidth-delay products.
pub const MAX_BDP: u64 = 10_000;

/// What a number without a unit probably means where `usual` is the unit; `None` if it has one, or
/// cannot be guessed.
pub(crate) fn bare(number: &str, usual: &str) -> Option<String> {
    let number = number.strip_prefix(['-', '\u{2212}']).unwrap_or(number);
    let is_decimal = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_decimal.then(|| guess(number, usual)).flatten()
}

/// Why a text is not the quantity that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    /// What is wrong, as a clause about the text: `has no unit`.
    pub message: String,
    /// What would be right: `a duration such as "100ms"`.
    pub expected: String,
    /// A guess at what was meant, as a question or an advice.
    pub hint: Option<String>,
}

impl core::fmt::Display for Misread {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} (expected {})", self.message, self.expected)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl core::error::Error for Misread {}

/// Room of a queue, before rate and delay of its path are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Bytes.
    Size(Bytes),
    /// Packets of any size.
    Packets(u32),
    /// This many times the rate of the link times the round-trip delay of the path.
    Bdp(Ratio),
}

/// Reads a duration: `500us`, `1.5ms`, `60s`, `2min`.
///
/// # Errors
/// What is wrong with the text, and a guess at what was meant.
pub fn duration(text: &str) -> Result<Duration, Misread> {
    TIME.read(text).map(Duration::from_nanos)
}

/// Reads a size: `1500B`, `64KiB`, `1MB`.
///
/// # Errors
/// What is wrong with the text, and a guess at what was meant.
pub fn size(text: &str) -> Result<Bytes, Misread> {
    SIZE.read(text).map(Bytes)
}

/// Reads a range of bytes, the second not part of it: `434400B..435848B`, `48KiB..1MiB`.
///
/// # Errors
/// What is wrong with the text, and a guess at what was meant.
pub fn byte_range(text: &str) -> Result<(Bytes, Bytes), Misread> {
    let expected = || r#"a range of bytes such as "434400B..435848B""#.to_owned();
    let Some((from, until)) = text.split_once("..") else {
        let hint = size(text).ok().map(|_| format!("did you mean \"0B..{}\"?", text.trim()));
        return Err(Misread { message: "is no range".into(), expected: expected(), hint });
    };
    let end = |which: &str, text: &str| {
        size(text).map_err(|misread| Misread {
            message: format!("{which} with a size that {}", misread.message),
            expected: expected(),
            hint: misread.hint,
        })
    };
    let (from, until) = (end("begins", from)?, end("ends", until)?);
    if until <= from {
        let message = "holds no byte".into();
        return Err(Misread { message, expected: format!("an end beyond {from}"), hint: None });
    }
    Ok((from, until))
}

/// Reads a rate: `100Mbit/s`, `10Gbps`, `12.5MB/s`.
///
/// # Errors
/// What is wrong with the text, and a guess at what was meant.
pub fn rate(text: &str) -> Result<Rate, Misread> {
    let bits = RATE.read(text)?;
    Rate::from_bits_per_second(bits).ok_or_else(|| RATE.misread("is nothing at all", None))
}

/// Reads a share: `2%`, `0.01%`, at most `100%`.
///
/// # Errors
/// What is wrong with the text, and a guess at what was meant.
pub fn share(text: &str) -> Result<Ratio, Misread> {
    let (number, unit) = SHARE.split(text)?;
    if unit != "%" {
        return Err(SHARE.unknown_unit(number, unit));
    }
    SHARE.ratio(number, 100)
}

/// Reads the room of a queue: a size, packets (`100p`, `100packets`, `45mss`) or
/// bandwidth-delay products (`1bdp`).
///
/// # Errors
/// What is wrong with the text, and a guess at what was meant.
pub fn room(text: &str) -> Result<Room, Misread> {
    let (number, unit) = ROOM.split(text)?;
    match unit {
        "p" | "packets" | "mss" => PACKETS.scaled(number, 1).map(|n| Room::Packets(n as u32)),
        "bdp" => BDP.ratio(number, 1).map(Room::Bdp),
        _ => match (ROOM.factor)(unit) {
            Some(factor) => ROOM.scaled(number, factor).map(|n| Room::Size(Bytes(n))),
            None => Err(ROOM.unknown_unit(number, unit)),
        },
    }
}

/// The patterns of JSON schema (ECMA 262) that accept what the readers here accept, save for
/// the limits.
pub mod pattern {
    /// Of [`super::duration`].
    pub const DURATION: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*(ns|us|µs|μs|ms|s|min|h)\s*$";
    /// Of [`super::size`].
    pub const SIZE: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*([kKMGTPE]|[KMGTPE]i)?B\s*$";
    /// Of [`super::byte_range`].
    pub const BYTE_RANGE: &str = concat!(
        r"^\s*[0-9]+(\.[0-9]+)?\s*([kKMGTPE]|[KMGTPE]i)?B\s*",
        r"\.\.\s*[0-9]+(\.[0-9]+)?\s*([kKMGTPE]|[KMGTPE]i)?B\s*$"
    );
    /// Of [`super::rate`].
    pub const RATE: &str = concat!(
        r"^\s*[0-9]+(\.[0-9]+)?\s*([kKmMgGtT]i?)?",
        r"(bit|bit/s|bits/s|bps|b/s|B/s|Bps)\s*$"
    );
    /// Of [`super::share`].
    pub const SHARE: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$";
    /// Of [`super::room`].
    pub const ROOM: &str =
        concat!(r"^\s*[0-9]+(\.[0-9]+)?\s*", r"(p|packets|mss|bdp|([kKMGTPE]|[KMGTPE]i)?B)\s*$");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_exact() {
        assert_eq!(duration("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(duration("1.5ms"), Ok(Duration::from_micros(1_500)));
        assert_eq!(duration("0.1s"), Ok(Duration::from_millis(100)));
        assert_eq!(duration("0.000000001s"), Ok(Duration::from_nanos(1)));
        assert_eq!(duration("700 µs"), Ok(Duration::from_micros(700)));
        assert_eq!(duration("700μs"), Ok(Duration::from_micros(700)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert_eq!(duration("1000000s"), Ok(MAX_DURATION));
    }

    #[test]
    fn kilo_is_decimal_and_kibi_binary() {
        assert_eq!(size("1kB"), Ok(Bytes(1_000)));
        assert_eq!(size("1KB"), Ok(Bytes(1_000)));
        assert_eq!(size("64KiB"), Ok(Bytes(65_536)));
        assert_eq!(size("1.5MiB"), Ok(Bytes(1_572_864)));
        assert_eq!(size("6 MiB"), Ok(Bytes(6_291_456)));
        assert_eq!(size("1EB"), Ok(MAX_SIZE));
    }

    #[test]
    fn a_range_has_two_sizes() {
        assert_eq!(byte_range("434400B..435848B"), Ok((Bytes(434_400), Bytes(435_848))));
        assert_eq!(byte_range("0B .. 1KiB"), Ok((Bytes(0), Bytes(1_024))));
        let message = |text| byte_range(text).unwrap_err().message;
        assert_eq!(message("5kB"), "is no range");
        assert_eq!(message("0..5kB"), "begins with a size that has no unit");
        assert_eq!(message("0B..5"), "ends with a size that has no unit");
        assert_eq!(message("5kB..5kB"), "holds no byte");
        assert_eq!(hint(byte_range("5kB").unwrap_err()), r#"did you mean "0B..5kB"?"#);
        assert_eq!(hint(byte_range("0..5kB").unwrap_err()), r#"did you mean "0B"?"#);
    }

    #[test]
    fn bits_and_bytes_are_told_apart() {
        let bits = |text| rate(text).map(Rate::bits_per_second);
        for text in ["100Mbit/s", "100Mbit", "100mbit", "100Mbps", "100mbps", "100 Mb/s"] {
            assert_eq!(bits(text), Ok(100_000_000), "{text}");
        }
        for text in ["12.5MB/s", "12.5MBps", "12500kB/s"] {
            assert_eq!(bits(text), Ok(100_000_000), "{text}");
        }
        assert_eq!(bits("1Kibit"), Ok(1_024));
        assert_eq!(bits("64bps"), Ok(64));
    }

    #[test]
    fn a_queue_is_measured_in_bytes_packets_or_round_trips() {
        assert_eq!(room("64KiB"), Ok(Room::Size(Bytes(65_536))));
        assert_eq!(room("100p"), Ok(Room::Packets(100)));
        assert_eq!(room("45mss"), Ok(Room::Packets(45)));
        assert_eq!(room("1bdp").unwrap(), Room::Bdp(Ratio::new(1, 1).unwrap()));
        assert_eq!(room("0.25bdp").unwrap(), Room::Bdp(Ratio::new(25, 100).unwrap()));
    }

    #[test]
    fn a_share_is_a_fraction() {
        assert_eq!(share("2%"), Ok(Ratio::new(2, 100).unwrap()));
        assert_eq!(share("0.01%"), Ok(Ratio::new(1, 10_000).unwrap()));
        assert_eq!(share("100.0%"), Ok(Ratio::new(100, 100).unwrap()));
        assert_eq!(share("101%").unwrap_err().message, "is more than 100%, the limit");
    }

    fn hint(misread: Misread) -> String {
        misread.hint.unwrap_or_default()
    }

    #[test]
    fn bare_numbers_are_refused_with_a_guess() {
        let error = duration("100").unwrap_err();
        assert_eq!(error.message, "has no unit");
        assert_eq!(error.expected, r#"a duration such as "100ms""#);
        assert_eq!(hint(error), r#"did you mean "100ms"?"#);
        assert_eq!(hint(rate("100").unwrap_err()), r#"did you mean "100Mbit/s"?"#);
        assert_eq!(hint(size("1500").unwrap_err()), r#"did you mean "1500B"?"#);
        assert_eq!(hint(room("100").unwrap_err()), r#"did you mean "100p"?"#);
    }

    /// A share without a unit is a percentage if it is at least one, and a probability below.
    #[test]
    fn a_bare_share_below_one_is_a_probability() {
        for (bare, meant) in [
            ("2", "2%"),
            ("0", "0%"),
            ("0.01", "1%"),
            ("0.5", "50%"),
            ("0.015", "1.5%"),
            ("0.0001", "0.01%"),
            ("0.000", "0%"),
            ("1.5", "1.5%"),
        ] {
            assert_eq!(hint(share(bare).unwrap_err()), format!("did you mean \"{meant}\"?"));
        }
        assert_eq!(hint(share("200").unwrap_err()), "");
        assert_eq!(hint(share("1e-3").unwrap_err()), "units are %");
        assert_eq!(hint(share("2 percent").unwrap_err()), r#"did you mean "2%"?"#);
    }

    #[test]
    fn wrong_units_are_refused_with_a_guess() {
        assert_eq!(hint(duration("5sec").unwrap_err()), r#"did you mean "5s"?"#);
        assert_eq!(hint(duration("5m").unwrap_err()), r#"did you mean "5min"?"#);
        assert_eq!(hint(rate("100M").unwrap_err()), r#"did you mean "100Mbit/s" (bits)?"#);
        assert_eq!(hint(rate("10MBit").unwrap_err()), r#"did you mean "10Mbit/s" (bits)?"#);
        assert_eq!(hint(rate("10MBYTE").unwrap_err()), r#"did you mean "10MB/s" (bytes)?"#);
        assert_eq!(hint(size("64k").unwrap_err()), r#"did you mean "64kB" (bytes)?"#);
        assert_eq!(hint(size("64kb").unwrap_err()), r#"did you mean "64kB" (bytes)?"#);
        assert_eq!(hint(room("5pkts").unwrap_err()), r#"did you mean "5p"?"#);
        let error = duration("5MB").unwrap_err();
        assert_eq!(error.message, "has the unit `MB`, not a unit of time");
        assert_eq!(hint(error), "units are ns, us, ms, s, min and h");
    }

    #[test]
    fn absurd_quantities_are_refused() {
        let message = |misread: Misread| misread.message;
        assert_eq!(message(duration("-5ms").unwrap_err()), "is negative");
        assert_eq!(message(duration("1.5ns").unwrap_err()), "is finer than a nanosecond");
        assert_eq!(message(duration("300h").unwrap_err()), "is more than 1000000s, the limit");
        assert_eq!(message(rate("101Tbit/s").unwrap_err()), "is more than 100Tbit/s, the limit");
        assert_eq!(message(rate("0bit/s").unwrap_err()), "is nothing at all");
        assert_eq!(message(size("1.1EB").unwrap_err()), "is more than 1EB, the limit");
        assert_eq!(message(size("0.5B").unwrap_err()), "is finer than a byte");
        assert_eq!(
            message(room("2000000000p").unwrap_err()),
            "is more than 1000000000p, the limit"
        );
        assert_eq!(message(room("20000bdp").unwrap_err()), "is more than 10000bdp, the limit");
        assert_eq!(message(duration("ms").unwrap_err()), "does not begin with a number");
        assert_eq!(message(duration("").unwrap_err()), "does not begin with a number");
        assert_eq!(message(duration("1.2.3s").unwrap_err()), "has two decimal points");
        assert_eq!(message(duration("1.s").unwrap_err()), "ends its number with a point");
        assert_eq!(message(size("18446744073709551616B").unwrap_err()), "has too many digits");
    }

    proptest! {
        #[test]
        fn no_text_makes_a_reader_panic(text in "[-0-9.]{0,25}[ a-zA-Zµ/%]{0,8}|\\PC{0,20}") {
            let _ = (duration(&text), size(&text), rate(&text), share(&text), room(&text));
        }

        #[test]
        fn a_duration_reads_back_as_it_prints(ns in 0..=MAX_DURATION.as_nanos()) {
            let span = Duration::from_nanos(ns);
            prop_assert_eq!(duration(&span.to_string()), Ok(span));
        }

        #[test]
        fn thousandths_are_thousandths(n in 0_u64..1_000_000_000) {
            let text = format!("{}.{:03}ms", n / 1_000, n % 1_000);
            prop_assert_eq!(duration(&text), Ok(Duration::from_micros(n)));
            let text = format!("{}.{:03}kB", n / 1_000, n % 1_000);
            prop_assert_eq!(size(&text), Ok(Bytes(n)));
        }
    }
}
