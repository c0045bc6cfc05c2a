//! Positions in a stream: 64-bit offsets internally, 32-bit sequence numbers on the wire.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// A position in a stream that never wraps.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize,
)]
pub struct Offset(pub u64);

/// A sequence number as in a TCP header (RFC 9293 section 3.4).
///
/// It has no ordering because it wraps; [`SeqNum::near`] converts it to an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, Serialize)]
pub struct SeqNum(pub u32);

impl Offset {
    /// Bytes from `earlier` to this offset; zero if `earlier` is greater.
    #[inline]
    pub const fn since(self, earlier: Self) -> Bytes {
        Bytes(self.0.saturating_sub(earlier.0))
    }

    /// The sequence number of this offset in a stream with initial sequence number `isn`.
    #[inline]
    pub const fn to_seq(self, isn: SeqNum) -> SeqNum {
        SeqNum(isn.0.wrapping_add(self.0 as u32))
    }
}

impl SeqNum {
    /// The offset nearest to `anchor` that has this sequence number in a stream with initial
    /// sequence number `isn`.
    ///
    /// `None` if that offset would be negative.
    #[inline]
    pub const fn near(self, isn: Self, anchor: Offset) -> Option<Offset> {
        let ahead = self.0.wrapping_sub(isn.0).wrapping_sub(anchor.0 as u32) as i32;
        match anchor.0.checked_add_signed(ahead as i64) {
            Some(place) => Some(Offset(place)),
            None => None,
        }
    }
}

impl Add<u64> for Offset {
    type Output = Self;
    #[inline]
    fn add(self, n: u64) -> Self {
        Self(self.0 + n)
    }
}

impl AddAssign<u64> for Offset {
    #[inline]
    fn add_assign(&mut self, n: u64) {
        self.0 += n;
    }
}

impl Sub for Offset {
    type Output = u64;
    /// Panics in debug builds if `other` is greater.
    #[inline]
    fn sub(self, other: Self) -> u64 {
        self.0 - other.0
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_unwrap_around_the_anchor() {
        let isn = SeqNum(0xffff_fff0);
        for place in [0_u64, 15, 16, 1 << 31, (1 << 32) - 1, 1 << 32, (5 << 32) + 77] {
            let seq = Offset(place).to_seq(isn);
            for near in [place, place.saturating_sub(1 << 30), place + (1 << 30)] {
                assert_eq!(seq.near(isn, Offset(near)), Some(Offset(place)));
            }
        }
    }

    #[test]
    fn a_number_before_the_stream_has_no_offset() {
        assert_eq!(SeqNum(99).near(SeqNum(100), Offset(0)), None);
    }
}
