//! A quantity of any dimension as an integer number of steps, for ranges and comparisons.

use units::Duration;

use super::names::{BDP, PACKETS, RATE, SIZE, TIME};

/// Dimension of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Dimensionless number, in millionths.
    Number,
    /// Time, in nanoseconds.
    Time,
    /// Data, in bytes.
    Size,
    /// Data per time, in bits per second.
    Rate,
    /// A fraction, in parts of 10^12.
    Share,
    /// Packets.
    Packets,
    /// Bandwidth-delay products, in millionths.
    Bdp,
}

/// A quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Its dimension.
    pub quantity: Quantity,
    /// Its amount, in steps of the dimension.
    pub steps: u64,
}

/// Millionths in a whole.
const MILLION: u64 = 1_000_000;
/// Steps of [`Quantity::Share`] in a percent.
const PERCENT: u64 = 10_000_000_000;
/// Largest bare number.
const MOST: u64 = u64::MAX / MILLION;

impl Measure {
    /// Reads a quantity with its unit, or a dimensionless number.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim_start());
        let of = |quantity, steps| Self { quantity, steps };
        match unit {
            "" => exact(number, MILLION, MOST).map(|steps| of(Quantity::Number, steps)),
            "%" => exact(number, PERCENT, 100 * PERCENT).map(|n| of(Quantity::Share, n)),
            "p" | "packets" | "mss" => {
                PACKETS.scaled(number, 1).ok().map(|n| of(Quantity::Packets, n))
            }
            "bdp" => exact(number, MILLION, BDP.most * MILLION).map(|n| of(Quantity::Bdp, n)),
            _ => [(Quantity::Time, &TIME), (Quantity::Size, &SIZE), (Quantity::Rate, &RATE)]
                .into_iter()
                .find_map(|(quantity, how)| how.read(text).ok().map(|n| of(quantity, n))),
        }
    }

    /// Formats the quantity for a scenario file; [`Measure::read`] returns the same value.
    pub fn text(self) -> String {
        let n = self.steps;
        match self.quantity {
            Quantity::Number => decimal(n, MILLION),
            Quantity::Time => Duration::from_nanos(n).to_string(),
            Quantity::Share => decimal(n, PERCENT) + "%",
            Quantity::Packets => format!("{n}p"),
            Quantity::Bdp => decimal(n, MILLION) + "bdp",
            Quantity::Size => in_units(
                n,
                &[
                    (1_000_000_000, "GB"),
                    (1_000_000, "MB"),
                    (1_048_576, "MiB"),
                    (1_000, "kB"),
                    (1_024, "KiB"),
                ],
                "B",
            ),
            Quantity::Rate => in_units(
                n,
                &[(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")],
                "bit/s",
            ),
        }
    }

    /// Returns another amount of the same dimension.
    pub const fn with(self, steps: u64) -> Self {
        Self { quantity: self.quantity, steps }
    }
}

/// Returns `number` times `scale`, if that is an integer and at most `most`.
fn exact(number: &str, scale: u64, most: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || whole.len() + fraction.len() > 19 {
        return None;
    }
    let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
    let product = u128::from(digits) * u128::from(scale);
    let parts = 10_u128.pow(fraction.len() as u32);
    let steps = u64::try_from(product / parts).ok()?;
    (product % parts == 0 && steps <= most).then_some(steps)
}

/// Formats `n` parts of `scale` as a decimal number without trailing zeros.
fn decimal(n: u64, scale: u64) -> String {
    let digits = scale.ilog10() as usize;
    let fraction = format!("{:0digits$}", n % scale);
    match fraction.trim_end_matches('0') {
        "" => (n / scale).to_string(),
        fraction => format!("{}.{fraction}", n / scale),
    }
}

/// Formats `n` in the first unit that divides it, or else in thousandths of a unit.
fn in_units(n: u64, units: &[(u64, &str)], plain: &str) -> String {
    let whole = units.iter().find(|(factor, _)| n > 0 && n.is_multiple_of(*factor));
    let parts = || {
        let fits = |factor: u64| n >= factor && n.is_multiple_of(factor / 1_000);
        units.iter().find(|(factor, _)| factor.is_multiple_of(1_000) && fits(*factor))
    };
    match whole.filter(|(factor, _)| n / factor < 10_000).or_else(parts).or(whole) {
        Some((factor, unit)) if n.is_multiple_of(*factor) => format!("{}{unit}", n / factor),
        Some((factor, unit)) => decimal(n / (factor / 1_000), 1_000) + unit,
        None => format!("{n}{plain}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_unit_determines_the_dimension() {
        let read = |text| Measure::read(text).map(|m| (m.quantity, m.steps));
        assert_eq!(read("10ms"), Some((Quantity::Time, 10_000_000)));
        assert_eq!(read("64KiB"), Some((Quantity::Size, 65_536)));
        assert_eq!(read("1.5Gbit/s"), Some((Quantity::Rate, 1_500_000_000)));
        assert_eq!(read("0.1%"), Some((Quantity::Share, 1_000_000_000)));
        assert_eq!(read("0.25bdp"), Some((Quantity::Bdp, 250_000)));
        assert_eq!(read("45mss"), Some((Quantity::Packets, 45)));
        assert_eq!(read("1.25"), Some((Quantity::Number, 1_250_000)));
        for wrong in ["", "cubic", "10 apples", "101%", "1.", ".5", "1e3", "-4ms"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_text_is_short() {
        let rewritten = |text: &str| Measure::read(text).unwrap().text();
        assert_eq!(rewritten("0.0100s"), "10ms");
        assert_eq!(rewritten("1000kB"), "1MB");
        assert_eq!(rewritten("65536B"), "64KiB");
        assert_eq!(rewritten("0.10%"), "0.1%");
        assert_eq!(rewritten("2.50"), "2.5");
        assert_eq!(rewritten("1000Mbit"), "1Gbit/s");
        assert_eq!(rewritten("31600kbit/s"), "31.6Mbit/s");
        assert_eq!(rewritten("1500kB"), "1500kB");
        assert_eq!(rewritten("1501B"), "1.501kB");
    }

    proptest! {
        #[test]
        fn written_quantities_read_back(steps in 1..1_000_000_000_000_u64, kind in 0..7_usize) {
            use Quantity::{Bdp, Number, Packets, Rate, Share, Size, Time};
            let quantity = [Number, Time, Size, Rate, Share, Packets, Bdp][kind];
            let steps = match quantity {
                Packets => steps % 1_000_000_000,
                Bdp => steps % 10_000_000_000,
                _ => steps,
            };
            let measure = Measure { quantity, steps };
            prop_assert_eq!(Measure::read(&measure.text()), Some(measure));
        }
    }
}
