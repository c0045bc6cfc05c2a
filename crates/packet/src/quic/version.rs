//! Versions of QUIC.

use core::fmt;

/// A version number of a long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct QuicVersion(pub u32);

impl QuicVersion {
    /// That of a Version Negotiation packet.
    pub const NEGOTIATION: Self = Self(0);
    /// RFC 9000.
    pub const V1: Self = Self(1);
    /// RFC 9369.
    pub const V2: Self = Self(0x6b33_43cf);
    /// Version 2 before the RFC: draft-ietf-quic-v2-01 and -00.
    const V2_DRAFTS: [u32; 2] = [0x709a_50c4, 0xff02_0000];
    /// Google's versions with the header of RFC 8999: Q050, T050, T051.
    const GOOGLE: [u32; 3] = [0x5130_3530, 0x5430_3530, 0x5430_3531];
    const FIRST_DRAFT: u32 = 0xff00_0016;
    const LAST_DRAFT: u32 = 0xff00_0022;
    /// mvfst's own numbers for drafts and experiments.
    const MVFST: u32 = 0xface_b000;

    /// Whether the long header of this version is known: RFC 9000, RFC 9369, the drafts from 22 on,
    /// mvfst's and Google's of that time.
    pub fn is_known(self) -> bool {
        matches!(self, Self::V1 | Self::V2)
            || (Self::FIRST_DRAFT..=Self::LAST_DRAFT).contains(&self.0)
            || self.0 & 0xffff_ff00 == Self::MVFST
            || Self::V2_DRAFTS.contains(&self.0)
            || Self::GOOGLE.contains(&self.0)
    }

    /// Whether it is of those reserved to exercise version negotiation, 0x?a?a?a?a (RFC 9000 section
    /// 15).
    pub const fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }

    /// Whether the packet types have the numbers of version 2.
    pub(super) fn has_types_of_v2(self) -> bool {
        self == Self::V2 || Self::V2_DRAFTS.contains(&self.0)
    }
}

impl fmt::Display for QuicVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0;
        match *self {
            Self::NEGOTIATION => f.write_str("version negotiation"),
            Self::V1 => f.write_str("v1"),
            Self::V2 => f.write_str("v2"),
            _ if (Self::FIRST_DRAFT..=Self::LAST_DRAFT).contains(&number) => {
                write!(f, "draft-{}", number & 0xff)
            }
            _ if Self::V2_DRAFTS.contains(&number) => write!(f, "v2 draft {number:#010x}"),
            _ if number & 0xffff_ff00 == Self::MVFST => write!(f, "mvfst {number:#010x}"),
            _ if Self::GOOGLE.contains(&number) => {
                number.to_be_bytes().iter().try_for_each(|&byte| write!(f, "{}", byte as char))
            }
            _ if self.is_reserved() => write!(f, "{number:#010x} (reserved, greasing)"),
            _ => write!(f, "{number:#010x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_names_of_their_documents() {
        let name = |number| QuicVersion(number).to_string();
        assert_eq!(name(1), "v1");
        assert_eq!(name(0x6b33_43cf), "v2");
        assert_eq!(name(0xff00_001d), "draft-29");
        assert_eq!(name(0xface_b002), "mvfst 0xfaceb002");
        assert_eq!(name(0x5430_3531), "T051");
        assert_eq!(name(0x1a2a_3a4a), "0x1a2a3a4a (reserved, greasing)");
        assert!(!QuicVersion(0x1a2a_3a4a).is_known() && !QuicVersion(0xff00_0015).is_known());
    }
}
