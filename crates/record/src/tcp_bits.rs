//! Bits of a TCP header that elements of a path read.

use core::ops::{BitOr, BitOrAssign};

/// The control bits of a TCP header, and what a SYN offers; all zero for other protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpBits {
    /// Control bits, in their positions of RFC 9293 section 3.1.
    pub flags: u8,
    /// Options of a SYN; [`SynOffers::ECN`] is not set here, since `flags` have it.
    pub offers: SynOffers,
}

impl TcpBits {
    const SYN: u8 = 0x02;
    const ACK: u8 = 0x10;
    const ECE_CWR: u8 = 0xc0;

    /// A SYN without ACK: the first packet of a connection.
    pub const fn is_syn(self) -> bool {
        self.flags & (Self::SYN | Self::ACK) == Self::SYN
    }

    /// A SYN with ACK.
    pub const fn is_syn_ack(self) -> bool {
        self.flags & (Self::SYN | Self::ACK) == Self::SYN | Self::ACK
    }

    /// It has an acknowledgment number.
    pub const fn is_ack(self) -> bool {
        self.flags & Self::ACK != 0
    }

    /// A RST.
    pub const fn is_rst(self) -> bool {
        self.flags & 0x04 != 0
    }

    /// Returns the bits of a SYN or SYN-ACK without some of what it offers.
    #[must_use]
    pub const fn stripped(self, offers: SynOffers) -> Self {
        if self.flags & Self::SYN == 0 {
            return self;
        }
        let ecn = if offers.has(SynOffers::ECN) { Self::ECE_CWR } else { 0 };
        Self { flags: self.flags & !ecn, offers: self.offers.without(offers) }
    }

    /// A SYN without ACK that asks for ECN (RFC 3168 section 6.1.1).
    pub const fn is_ecn_syn(self) -> bool {
        self.is_syn() && self.flags & Self::ECE_CWR == Self::ECE_CWR
    }
}

/// A set of what a SYN and a SYN-ACK offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SynOffers(u8);

impl SynOffers {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Window scaling (RFC 7323 section 2).
    pub const WINDOW_SCALE: Self = Self(1);
    /// Selective acknowledgments (RFC 2018 section 2).
    pub const SACK: Self = Self(2);
    /// Timestamps (RFC 7323 section 3).
    pub const TIMESTAMPS: Self = Self(4);
    /// ECN: the control bits ECE and CWR (RFC 3168 section 6.1.1).
    pub const ECN: Self = Self(8);

    /// Returns whether it has all of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns what is left without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for SynOffers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for SynOffers {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
