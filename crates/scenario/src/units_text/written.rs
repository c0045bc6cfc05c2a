//! Formats quantities for a scenario file, in customary units; the readers of [`super`] return the
//! same quantity.

use units::{Bytes, Duration, Rate, Ratio};

use super::BufferSize;

/// Maximum digits that the readers accept; a percentage uses two of them.
const MOST_DIGITS: usize = 19;
/// Sizes below this are written in bytes, not kB, as packet sizes are.
const PLAIN: u64 = 10_000;

/// Formats a duration for [`super::duration`].
pub fn duration_text(span: Duration) -> String {
    span.to_string()
}

/// Formats a size for [`super::size`]: `1MB`, `64KiB`, `1448B`.
pub fn size_text(size: Bytes) -> String {
    const UNITS: [(u64, &str); 6] = [
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
        (1_000, "kB"),
    ];
    let n = size.get();
    let divides = |&&(factor, _): &&(u64, &str)| {
        n > 0 && n.is_multiple_of(factor) && (factor != 1_000 || n >= PLAIN)
    };
    match UNITS.iter().find(divides) {
        Some((factor, unit)) => format!("{}{unit}", n / factor),
        None => format!("{n}B"),
    }
}

/// Formats a rate for [`super::rate`]: `1Gbit/s`, `31.6Mbit/s`.
pub fn rate_text(rate: Rate) -> String {
    const UNITS: [(u64, &str); 3] =
        [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
    let n = rate.bits_per_second();
    match UNITS.iter().find(|(factor, _)| n >= *factor) {
        Some((factor, unit)) => decimal(n.into(), (*factor).into(), MOST_DIGITS) + unit,
        None => format!("{n}bit/s"),
    }
}

/// Formats a fraction for [`super::share`]: `0.1%`.
pub fn fraction_text(share: Ratio) -> String {
    decimal(u128::from(share.num()) * 100, share.den().into(), MOST_DIGITS - 2) + "%"
}

/// Formats a capacity for [`super::room`]: `64KiB`, `100p`, `0.5bdp`.
pub fn buffer_size_text(room: BufferSize) -> String {
    match room {
        BufferSize::Size(size) => size_text(size),
        BufferSize::Packets(packets) => format!("{packets}p"),
        BufferSize::Bdp(times) => {
            decimal(times.num().into(), times.den().into(), MOST_DIGITS) + "bdp"
        }
    }
}

/// Formats a byte range for [`super::byte_range`]: `434400B..435848B`.
pub fn byte_range_text((from, until): (Bytes, Bytes)) -> String {
    format!("{}..{}", size_text(from), size_text(until))
}

/// Formats `num` divided by `den` as a decimal number, truncated to `places` decimal places and
/// [`MOST_DIGITS`].
fn decimal(num: u128, den: u128, places: usize) -> String {
    let (mut text, mut rest) = ((num / den).to_string(), num % den);
    let leading = if num < den { 0 } else { text.len() };
    for place in 0..places.min(MOST_DIGITS.saturating_sub(leading)) {
        if rest == 0 {
            break;
        }
        if place == 0 {
            text.push('.');
        }
        text.push(char::from(b'0' + (rest * 10 / den) as u8));
        rest = rest * 10 % den;
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{MAX_SIZE, byte_range, rate, room as read_room, share, size};
    use super::*;

    #[test]
    fn quantities_have_customary_units() {
        let sizes = [0, 576, 1_448, 9_000, 4_096, 65_536, 100_000, 1_000_000, 1_500_000, 6 << 20];
        let texts = sizes.map(|n| size_text(Bytes(n)));
        let expected =
            ["0B", "576B", "1448B", "9000B", "4KiB", "64KiB", "100kB", "1MB", "1500kB", "6MiB"];
        assert_eq!(texts, expected);
        let rates = [64, 1_500, 31_600_000, 94_123_456, 1_000_000_000];
        let texts = rates.map(|n| rate_text(Rate::from_bits_per_second(n).unwrap()));
        assert_eq!(texts, ["64bit/s", "1.5kbit/s", "31.6Mbit/s", "94.123456Mbit/s", "1Gbit/s"]);
        let shares = [(2, 100), (1, 10_000), (1, 1), (0, 1)];
        let texts = shares.map(|(num, den)| fraction_text(Ratio::new(num, den).unwrap()));
        assert_eq!(texts, ["2%", "0.01%", "100%", "0%"]);
    }

    #[test]
    fn a_repeating_decimal_is_truncated() {
        let third = Ratio::new(1, 3).unwrap();
        assert!(share(&fraction_text(third)).is_ok());
        assert_eq!(fraction_text(third), "33.33333333333333333%");
    }

    proptest! {
        #[test]
        fn quantities_read_back(n in 0..=MAX_SIZE.get(), parts in 0..=1_000_000_000_u64) {
            prop_assert_eq!(size(&size_text(Bytes(n))), Ok(Bytes(n)));
            let range = (Bytes(n / 2), Bytes(n / 2 + 1));
            prop_assert_eq!(byte_range(&byte_range_text(range)), Ok(range));
            let bits = Rate::from_bits_per_second(n % 100_000_000_000_000 + 1).unwrap();
            prop_assert_eq!(rate(&rate_text(bits)), Ok(bits));
            for room in [BufferSize::Size(Bytes(n)), BufferSize::Packets(parts as u32)] {
                prop_assert_eq!(read_room(&buffer_size_text(room)), Ok(room));
            }
        }

        #[test]
        fn fractions_read_back(whole in 0..100_u32, fraction in "[0-9]{0,6}[1-9]") {
            let of = share(&format!("{whole}.{fraction}%")).unwrap();
            prop_assert_eq!(share(&fraction_text(of)), Ok(of));
            let times = read_room(&format!("{whole}.{fraction}bdp")).unwrap();
            prop_assert_eq!(read_room(&buffer_size_text(times)), Ok(times));
        }
    }
}
