//! The ECN field of the IP header.

use core::hash::{Hash, Hasher};

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// The transport is not ECN-capable.
    #[default]
    NotEct = 0b00,
    /// ECT(1): capable, by RFC 9331 of low latency.
    Ect1 = 0b01,
    /// ECT(0): capable.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// The field with these two bits; higher bits are those of the DSCP.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Its two bits.
    #[inline]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// May a queue mark the packet instead of dropping it?
    #[inline]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Digests of runs have whether a packet was ECN-capable.
impl Hash for Ecn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_capable().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_rfc_3168() {
        for (bits, ecn) in [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)] {
            assert_eq!((Ecn::from_bits(bits), ecn.bits()), (ecn, bits));
            assert_eq!(Ecn::from_bits(0b1011_1000 | bits), ecn, "with a DSCP");
            assert_eq!(ecn.is_capable(), bits != 0);
        }
    }
}
