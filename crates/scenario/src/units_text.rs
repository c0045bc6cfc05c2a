//! Parses quantities with units: `100ms`, `1Gbit/s`, `64KiB`, `2%`, `1bdp`, `45mss`.
//!
//! A number without a unit is rejected. Numbers are decimal and exact: `1.5ms` is 1,500,000 ns
//! without floating point, and a value finer than the smallest step (a nanosecond, a byte, a bit
//! per second) is rejected rather than rounded.
//!
//! Spellings follow common tools: `kB` is 1000 bytes and `KiB` 1024; `Mbit/s`, `Mbit`,
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
pub use written::{
    buffer_size_text, byte_range_text, duration_text, fraction_text, rate_text, size_text,
};

/// Maximum duration.
pub const MAX_DURATION: Duration = Duration::from_secs(1_000_000);
/// Maximum rate, in bits per second.
pub const MAX_RATE: u64 = 100_000_000_000_000;
/// Maximum size.
pub const MAX_SIZE: Bytes = Bytes(1_000_000_000_000_000_000);
/// Maximum queue length, in packets.
pub const MAX_PACKETS: u64 = 1_000_000_000;
/// Maximum queue capacity, in bandwidth-delay products.
pub const MAX_BDP: u64 = 10_000;

/// Suggests a quantity for a number without a unit, in the unit `usual`; `None` if it has a unit or
/// there is no suggestion.
pub(crate) fn bare(number: &str, usual: &str) -> Option<String> {
    let number = number.strip_prefix(['-', '\u{2212}']).unwrap_or(number);
    let is_decimal = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_decimal.then(|| guess(number, usual)).flatten()
}

/// Error of a text that is not a quantity of the requested dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantityError {
    /// The error, as a predicate of the key: `has no unit`.
    pub message: String,
    /// The expected form: `a duration such as "100ms"`.
    pub expected: String,
    /// A suggestion or advice.
    pub hint: Option<String>,
}

impl core::fmt::Display for QuantityError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} (expected {})", self.message, self.expected)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl core::error::Error for QuantityError {}

/// Capacity of a queue whose rate and path delay are not resolved yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferSize {
    /// Bytes.
    Size(Bytes),
    /// Packets of any size.
    Packets(u32),
    /// Multiple of the bandwidth-delay product: link rate times round-trip delay of the path.
    Bdp(Ratio),
}

/// Reads a duration: `500us`, `1.5ms`, `60s`, `2min`.
///
/// # Errors
/// The error and a suggestion.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    TIME.read(text).map(Duration::from_nanos)
}

/// Reads a size: `1500B`, `64KiB`, `1MB`.
///
/// # Errors
/// The error and a suggestion.
pub fn size(text: &str) -> Result<Bytes, QuantityError> {
    SIZE.read(text).map(Bytes)
}

/// Reads a half-open range of bytes: `434400B..435848B`, `48KiB..1MiB`.
///
/// # Errors
/// The error and a suggestion.
pub fn byte_range(text: &str) -> Result<(Bytes, Bytes), QuantityError> {
    let expected = || r#"a range of bytes such as "434400B..435848B""#.to_owned();
    let Some((from, until)) = text.split_once("..") else {
        let hint = size(text).ok().map(|_| format!("did you mean \"0B..{}\"?", text.trim()));
        return Err(QuantityError { message: "is not a range".into(), expected: expected(), hint });
    };
    let end = |which: &str, text: &str| {
        size(text).map_err(|misread| QuantityError {
            message: format!("{which} with a size that {}", misread.message),
            expected: expected(),
            hint: misread.hint,
        })
    };
    let (from, until) = (end("begins", from)?, end("ends", until)?);
    if until <= from {
        let message = "holds no byte".into();
        return Err(QuantityError {
            message,
            expected: format!("an end beyond {from}"),
            hint: None,
        });
    }
    Ok((from, until))
}

/// Reads a rate: `100Mbit/s`, `10Gbps`, `12.5MB/s`.
///
/// # Errors
/// The error and a suggestion.
pub fn rate(text: &str) -> Result<Rate, QuantityError> {
    let bits = RATE.read(text)?;
    Rate::from_bits_per_second(bits).ok_or_else(|| RATE.misread("is zero", None))
}

/// Reads a fraction: `2%`, `0.01%`, at most `100%`.
///
/// # Errors
/// The error and a suggestion.
pub fn share(text: &str) -> Result<Ratio, QuantityError> {
    let (number, unit) = SHARE.split(text)?;
    if unit != "%" {
        return Err(SHARE.unknown_unit(number, unit));
    }
    SHARE.ratio(number, 100)
}

/// Reads the capacity of a queue: a size, packets (`100p`, `100packets`, `45mss`) or
/// bandwidth-delay products (`1bdp`).
///
/// # Errors
/// The error and a suggestion.
pub fn room(text: &str) -> Result<BufferSize, QuantityError> {
    let (number, unit) = ROOM.split(text)?;
    match unit {
        "p" | "packets" | "mss" => PACKETS.scaled(number, 1).map(|n| BufferSize::Packets(n as u32)),
        "bdp" => BDP.ratio(number, 1).map(BufferSize::Bdp),
        _ => match (ROOM.factor)(unit) {
            Some(factor) => ROOM.scaled(number, factor).map(|n| BufferSize::Size(Bytes(n))),
            None => Err(ROOM.unknown_unit(number, unit)),
        },
    }
}

/// JSON schema patterns (ECMA 262) that accept the texts that the readers here accept, except for
/// limits.
pub mod pattern {
    /// Pattern of [`super::duration`].
    pub const DURATION: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*(ns|us|µs|μs|ms|s|min|h)\s*$";
    /// Pattern of [`super::size`].
    pub const SIZE: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*([kKMGTPE]|[KMGTPE]i)?B\s*$";
    /// Pattern of [`super::byte_range`].
    pub const BYTE_RANGE: &str = concat!(
        r"^\s*[0-9]+(\.[0-9]+)?\s*([kKMGTPE]|[KMGTPE]i)?B\s*",
        r"\.\.\s*[0-9]+(\.[0-9]+)?\s*([kKMGTPE]|[KMGTPE]i)?B\s*$"
    );
    /// Pattern of [`super::rate`].
    pub const RATE: &str = concat!(
        r"^\s*[0-9]+(\.[0-9]+)?\s*([kKmMgGtT]i?)?",
        r"(bit|bit/s|bits/s|bps|b/s|B/s|Bps)\s*$"
    );
    /// Pattern of [`super::share`].
    pub const SHARE: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$";
    /// Pattern of [`super::room`].
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
        assert_eq!(message("5kB"), "is not a range");
        assert_eq!(message("0..5kB"), "begins with a size that has no unit");
        assert_eq!(message("0B..5"), "ends with a size that has no unit");
        assert_eq!(message("5kB..5kB"), "holds no byte");
        assert_eq!(hint(byte_range("5kB").unwrap_err()), r#"did you mean "0B..5kB"?"#);
        assert_eq!(hint(byte_range("0..5kB").unwrap_err()), r#"did you mean "0B"?"#);
    }

    #[test]
    fn bits_and_bytes_are_distinguished() {
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
        assert_eq!(room("64KiB"), Ok(BufferSize::Size(Bytes(65_536))));
        assert_eq!(room("100p"), Ok(BufferSize::Packets(100)));
        assert_eq!(room("45mss"), Ok(BufferSize::Packets(45)));
        assert_eq!(room("1bdp").unwrap(), BufferSize::Bdp(Ratio::new(1, 1).unwrap()));
        assert_eq!(room("0.25bdp").unwrap(), BufferSize::Bdp(Ratio::new(25, 100).unwrap()));
    }

    #[test]
    fn a_percentage_is_a_fraction() {
        assert_eq!(share("2%"), Ok(Ratio::new(2, 100).unwrap()));
        assert_eq!(share("0.01%"), Ok(Ratio::new(1, 10_000).unwrap()));
        assert_eq!(share("100.0%"), Ok(Ratio::new(100, 100).unwrap()));
        assert_eq!(share("101%").unwrap_err().message, "is more than 100%, the limit");
    }

    fn hint(misread: QuantityError) -> String {
        misread.hint.unwrap_or_default()
    }

    #[test]
    fn bare_numbers_are_rejected_with_a_suggestion() {
        let error = duration("100").unwrap_err();
        assert_eq!(error.message, "has no unit");
        assert_eq!(error.expected, r#"a duration such as "100ms""#);
        assert_eq!(hint(error), r#"did you mean "100ms"?"#);
        assert_eq!(hint(rate("100").unwrap_err()), r#"did you mean "100Mbit/s"?"#);
        assert_eq!(hint(size("1500").unwrap_err()), r#"did you mean "1500B"?"#);
        assert_eq!(hint(room("100").unwrap_err()), r#"did you mean "100p"?"#);
    }

    /// A fraction without a unit is read as a percentage from 1 on, as a probability below.
    #[test]
    fn a_bare_fraction_below_one_is_a_probability() {
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
    fn wrong_units_are_rejected_with_a_suggestion() {
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
    fn out_of_range_quantities_are_rejected() {
        let message = |misread: QuantityError| misread.message;
        assert_eq!(message(duration("-5ms").unwrap_err()), "is negative");
        assert_eq!(message(duration("1.5ns").unwrap_err()), "is finer than a nanosecond");
        assert_eq!(message(duration("300h").unwrap_err()), "is more than 1000000s, the limit");
        assert_eq!(message(rate("101Tbit/s").unwrap_err()), "is more than 100Tbit/s, the limit");
        assert_eq!(message(rate("0bit/s").unwrap_err()), "is zero");
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
        fn readers_never_panic(text in "[-0-9.]{0,25}[ a-zA-Zµ/%]{0,8}|\\PC{0,20}") {
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
