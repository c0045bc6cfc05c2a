//! Long and short headers.

use super::{ConnectionId, QuicVersion};

/// The type of a packet with a long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LongPacketType {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// Retry.
    Retry,
    /// Version Negotiation.
    VersionNegotiation,
    /// Of a version that numbers its types otherwise.
    Unknown,
}

/// A long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader<'a> {
    /// Type of the packet.
    pub kind: LongPacketType,
    /// Version.
    pub version: QuicVersion,
    /// Destination connection ID.
    pub destination: ConnectionId,
    /// Source connection ID.
    pub source: ConnectionId,
    /// Whether the fixed bit is set.
    pub fixed_bit: bool,
    /// An Initial packet has an address validation token.
    pub has_token: bool,
    /// Bytes of the datagram that belong to the packet; all of them if it has no length.
    pub len: usize,
    /// The capture truncated the packet before its length.
    pub is_cut: bool,
    /// Offset of the protected packet number; `None` if the packet has none, or it was not read.
    pub number_at: Option<usize>,
    /// The versions that a Version Negotiation packet offers, four bytes each; possibly truncated.
    versions: &'a [u8],
}

impl LongHeader<'_> {
    /// The versions that a Version Negotiation packet offers.
    pub fn versions(&self) -> impl Iterator<Item = QuicVersion> {
        let (whole, _) = self.versions.as_chunks::<4>();
        whole.iter().map(|bytes| QuicVersion(u32::from_be_bytes(*bytes)))
    }
}

/// The first bytes of a short header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortHeader {
    /// Whether the fixed bit is set.
    pub fixed_bit: bool,
    /// The latency spin bit (RFC 9000 section 17.4).
    pub spin: bool,
}

/// Fewest bytes after the length field: a packet number and the sample of header protection (RFC 9001
/// section 5.4.2).
const LEAST: u64 = 20;
/// Bytes of the integrity tag that ends a Retry packet (RFC 9001 section 5.8).
const RETRY_TAG: usize = 16;

/// The long header at the beginning of `bytes`, the captured part of `len` bytes of a datagram.
///
/// `None` if the first bit is not that of a long header, a connection ID is longer than
/// [`MAX_CONNECTION_ID`](super::MAX_CONNECTION_ID) or exceeds the captured bytes, or, in a version
/// whose header is known, if its token or its length exceeds the datagram, or is too short for a packet.
/// Of an unknown version only what RFC 8999 has is read.
pub fn long_header(bytes: &[u8], len: usize) -> Option<LongHeader<'_>> {
    let &first = bytes.first()?;
    if first & 0x80 == 0 {
        return None;
    }
    let version = QuicVersion(u32::from_be_bytes(*bytes.get(1..)?.first_chunk()?));
    let (destination, at) = connection_id(bytes, 5)?;
    let (source, at) = connection_id(bytes, at)?;
    let mut header = LongHeader {
        kind: LongPacketType::Unknown,
        version,
        destination,
        source,
        fixed_bit: first & 0x40 != 0,
        has_token: false,
        len,
        is_cut: false,
        number_at: None,
        versions: &[],
    };
    if version == QuicVersion::NEGOTIATION {
        header.kind = LongPacketType::VersionNegotiation;
        header.versions = bytes.get(at..)?;
        let listed = len.checked_sub(at)?;
        return (listed > 0 && listed.is_multiple_of(4)).then_some(header);
    }
    if !version.is_known() {
        return Some(header);
    }
    let number = first >> 4 & 3;
    header.kind = match if version.has_types_of_v2() { (number + 3) & 3 } else { number } {
        0 => LongPacketType::Initial,
        1 => LongPacketType::ZeroRtt,
        2 => LongPacketType::Handshake,
        _ => LongPacketType::Retry,
    };
    if header.kind == LongPacketType::Retry {
        // A token of at least a byte.
        return (len > at + RETRY_TAG).then_some(header);
    }
    let mut at = at;
    if header.kind == LongPacketType::Initial {
        let Some((token, after)) = varint(bytes, at) else { return header.cut(bytes, len) };
        let token = usize::try_from(token).ok()?;
        header.has_token = token > 0;
        at = after.checked_add(token).filter(|&end| end < len)?;
    }
    let Some((rest, after)) = varint(bytes, at) else { return header.cut(bytes, len) };
    if rest < LEAST || rest > (len - after) as u64 {
        return None;
    }
    header.len = after + rest as usize;
    header.number_at = Some(after);
    Some(header)
}

impl LongHeader<'_> {
    /// The header of a packet that ends within it: that of a truncated one, if the capture truncated it.
    fn cut(self, bytes: &[u8], len: usize) -> Option<Self> {
        (bytes.len() < len).then_some(Self { is_cut: true, ..self })
    }
}

/// The short header at the beginning of `bytes`; `None` if it is a long one or there is none.
pub fn short_header(bytes: &[u8]) -> Option<ShortHeader> {
    let &first = bytes.first()?;
    (first & 0x80 == 0)
        .then_some(ShortHeader { fixed_bit: first & 0x40 != 0, spin: first & 0x20 != 0 })
}

/// A connection ID after its length, and the offset after it.
fn connection_id(bytes: &[u8], at: usize) -> Option<(ConnectionId, usize)> {
    let end = at + 1 + usize::from(*bytes.get(at)?);
    Some((ConnectionId::new(bytes.get(at + 1..end)?)?, end))
}

/// A variable-length integer (RFC 9000 section 16), and the offset after it.
fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let &first = bytes.get(at)?;
    let end = at + (1 << (first >> 6));
    let rest = bytes.get(at + 1..end)?;
    let begin = u64::from(first & 0x3f);
    Some((rest.iter().fold(begin, |sum, &byte| sum << 8 | u64::from(byte)), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client's Initial of RFC 9001 appendix A.2: its protected header, and zeros.
    fn initial() -> Vec<u8> {
        let mut bytes = vec![0xc0, 0, 0, 0, 1, 8];
        bytes.extend([0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0, 0, 0x44, 0x9e]);
        bytes.resize(1_200, 0);
        bytes
    }

    #[test]
    fn the_initial_of_rfc_9001() {
        let bytes = initial();
        let header = long_header(&bytes, 1_200).unwrap();
        assert_eq!((header.kind, header.version), (LongPacketType::Initial, QuicVersion::V1));
        assert_eq!(header.destination.to_string(), "8394c8f03e515708");
        assert!(header.source.is_empty() && header.fixed_bit && !header.has_token);
        assert_eq!((header.len, header.number_at), (1_200, Some(18)));
    }

    #[test]
    fn the_retry_and_the_types_of_version_2() {
        // RFC 9001 appendix A.4 and RFC 9369 appendix A.4.
        let retry = |first: u8, version: [u8; 4], tag: &[u8]| {
            let ids = [0, 8, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5];
            [&[first][..], &version, &ids, b"token", tag].concat()
        };
        for (first, version) in [(0xff, [0, 0, 0, 1]), (0xcf, [0x6b, 0x33, 0x43, 0xcf])] {
            let bytes = retry(first, version, &[1; 16]);
            let header = long_header(&bytes, bytes.len()).unwrap();
            assert_eq!(header.kind, LongPacketType::Retry);
            assert_eq!(header.source.to_string(), "f067a5502a4262b5");
        }
        // The first bytes of RFC 9369 appendix A.2 are those of an Initial of version 2.
        let mut bytes = initial();
        bytes[0] = 0xd3;
        bytes[1..5].copy_from_slice(&[0x6b, 0x33, 0x43, 0xcf]);
        assert_eq!(long_header(&bytes, 1_200).unwrap().kind, LongPacketType::Initial);
    }

    #[test]
    fn a_version_negotiation_has_a_list() {
        let mut bytes = vec![0x80, 0, 0, 0, 0, 1, 5, 1, 6];
        assert_eq!(long_header(&bytes, bytes.len()), None);
        bytes.extend([0, 0, 0, 1, 0x1a, 0x2a, 0x3a, 0x4a]);
        let header = long_header(&bytes, bytes.len()).unwrap();
        let versions: Vec<_> = header.versions().collect();
        assert_eq!(versions, [QuicVersion::V1, QuicVersion(0x1a2a_3a4a)]);
        assert_eq!(long_header(&bytes[..15], 15), None);
    }

    #[test]
    fn lengths_beyond_the_datagram_are_refused() {
        let bytes = initial();
        assert_eq!(long_header(&bytes, 1_199), None);
        // Truncated by the capture: the header is there from its last byte on.
        for kept in 0..18 {
            let cut = long_header(&bytes[..kept], 1_200);
            assert_eq!(cut.is_some(), kept >= 15, "{kept}");
            assert!(cut.is_none_or(|header| header.is_cut));
        }
        assert_eq!(long_header(&bytes[..18], 1_200).unwrap().len, 1_200);
        let mut short = initial();
        short[16..18].copy_from_slice(&[0x40, 19]);
        assert_eq!(long_header(&short, 1_200), None);
    }
}
