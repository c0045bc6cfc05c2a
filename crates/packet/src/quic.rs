//! Headers of QUIC packets, as far as they are not encrypted.
//!
//! Sources: RFC 8999 (what all versions have in common), RFC 9000 section 17, RFC 9369 section 3.2
//! (version 2 numbers the packet types differently), RFC 9287 (the fixed bit may be random), the
//! registry of versions of IANA and the quicwg/base-drafts wiki (versions before the RFC). Drafts before 22
//! and Google's versions before Q050 have another long header, which is not read.

mod header;
mod version;

pub use header::{LongHeader, LongPacketType, ShortHeader, long_header, short_header};
pub use version::QuicVersion;

use core::fmt;

/// Longest connection ID of the versions read, in bytes (RFC 9000 section 17.2).
pub const MAX_CONNECTION_ID: usize = 20;

/// A connection ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; MAX_CONNECTION_ID],
}

impl ConnectionId {
    /// The ID with these bytes; `None` if they are more than [`MAX_CONNECTION_ID`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut all = [0; MAX_CONNECTION_ID];
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { len: bytes.len() as u8, bytes: all })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Its length in bytes.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it has no bytes: the host distinguishes its connections by address.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
