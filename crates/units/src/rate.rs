//! Decimal bit rates.

use core::fmt;
use core::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Duration};

/// A rate in bits per second, decimal (1 Mbit/s is 1,000,000 bits a second). Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub struct Rate(u64);

/// Nanoseconds per second times bits per byte.
const BIT_NANOS: u64 = 8 * 1_000_000_000;

impl Rate {
    /// A rate of `bits` per second; `None` for zero.
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Bits per second.
    #[inline]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Serialization time of `size`, in whole nanoseconds.
    ///
    /// The remainder below a nanosecond stays in `carry` (in units of 1/rate ns, initially 0), so a
    /// long run is exact: 64 bytes at 100 Gbit/s take 5.12 ns on average.
    #[inline]
    pub fn time_to_send(self, size: Bytes, carry: &mut u64) -> Duration {
        let small = size.0.checked_mul(BIT_NANOS).and_then(|bits| bits.checked_add(*carry));
        let (span, rest) = match small {
            Some(bits) => (bits / self.0, bits % self.0),
            // No overflow: sizes are far below 2^64 bytes and the carry is below the rate.
            None => {
                let bits = u128::from(size.0) * u128::from(BIT_NANOS) + u128::from(*carry);
                let rate = u128::from(self.0);
                ((bits / rate) as u64, (bits % rate) as u64)
            }
        };
        *carry = rest;
        Duration::from_nanos(span)
    }

    /// Nanoseconds per byte, if that is a whole number.
    pub const fn nanos_per_byte(self) -> Option<NonZeroU64> {
        let whole = BIT_NANOS.is_multiple_of(self.0);
        if whole { NonZeroU64::new(BIT_NANOS / self.0) } else { None }
    }

    /// Bytes sent in `span` at this rate, rounded down: the bandwidth-delay product.
    pub fn bytes_in(self, span: Duration) -> Bytes {
        let bits = u128::from(self.0) * u128::from(span.as_nanos()) / 1_000_000_000;
        Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n % 1_000_000_000 == 0 => write!(f, "{} Gbit/s", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => write!(f, "{} Mbit/s", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{} kbit/s", n / 1_000),
            n => write!(f, "{n} bit/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remainder_is_carried_over() {
        let rate = Rate::from_bits_per_second(100_000_000_000).unwrap();
        let mut carry = 0;
        let total: u64 =
            (0..100).map(|_| rate.time_to_send(Bytes(64), &mut carry).as_nanos()).sum();
        assert_eq!(total, 512);
        assert_eq!(carry, 0);
    }

    #[test]
    fn sizes_beyond_64_bit_products_do_not_wrap() {
        let rate = Rate::from_bits_per_second(1_000_000_000).unwrap();
        let span = rate.time_to_send(Bytes(10_000_000_000), &mut 0);
        assert_eq!(span, Duration::from_secs(80));
    }

    #[test]
    fn bandwidth_delay_product() {
        let rate = Rate::from_bits_per_second(100_000_000).unwrap();
        assert_eq!(rate.bytes_in(Duration::from_millis(100)), Bytes(1_250_000));
    }
}
