//! Protection of the client's Initial packets: RFC 9001 sections 5.2 to 5.4, RFC 9369 section 3.3.
//!
//! Initial packets are encrypted with keys that follow from the connection ID in them, so that anyone who
//! captures them can read them (RFC 9001 section 7). That protects from nothing but middleboxes.

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::BlockCipherEncrypt;
use aes_gcm::{AeadInOut, Aes128Gcm, KeyInit};
use hkdf::Hkdf;
use packet::quic::{ConnectionId, QuicVersion};
use sha2::Sha256;

/// RFC 9001 section 5.2; also of drafts 33 and 34.
const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
/// RFC 9369 section 3.3.1.
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];
/// draft-ietf-quic-tls-29 to -32.
const SALT_DRAFT_29: [u8; 20] = [
    0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0,
    0x43, 0x90, 0xa8, 0x99,
];
/// draft-ietf-quic-tls-23 to -28.
const SALT_DRAFT_23: [u8; 20] = [
    0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb, 0x5a, 0x11, 0xa7, 0xd2, 0x43, 0x2b, 0xb4, 0x63, 0x65,
    0xbe, 0xf9, 0xf5, 0x02,
];
/// Drafts have the versions 0xff000000 + their number.
const DRAFTS: u32 = 0xff00_0000;
/// Bytes of the tag of an encrypted packet.
const TAG: usize = 16;
/// Longest packet number, after which the sample of header protection begins (RFC 9001 section 5.4.2).
const LONGEST_NUMBER: usize = 4;

/// Keys of the client's Initial packets.
pub(super) struct InitialKeys {
    aead: Aes128Gcm,
    iv: [u8; 12],
    header: Aes128,
}

impl core::fmt::Debug for InitialKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("InitialKeys").field("iv", &self.iv).finish_non_exhaustive()
    }
}

impl InitialKeys {
    /// Keys of the packets whose first had this destination connection ID; `None` of a version whose salt is
    /// not known.
    pub(super) fn of_client(version: QuicVersion, first: ConnectionId) -> Option<Self> {
        let prefix = if version == QuicVersion::V2 { "quicv2" } else { "quic" };
        let secret = initial_secret(version, first, "client in")?;
        let secret = Hkdf::<Sha256>::from_prk(&secret).ok()?;
        let key: [u8; 16] = expand(&secret, prefix, " key")?;
        let header: [u8; 16] = expand(&secret, prefix, " hp")?;
        Some(Self {
            aead: Aes128Gcm::new(&key.into()),
            iv: expand(&secret, prefix, " iv")?,
            header: Aes128::new(&header.into()),
        })
    }

    /// The frames of an Initial packet; `None` if it does not decrypt. `number_at` is the offset of its packet
    /// number.
    pub(super) fn decrypt(&self, packet: &[u8], number_at: usize) -> Option<Vec<u8>> {
        let sample = packet.get(number_at + LONGEST_NUMBER..)?.first_chunk::<16>()?;
        let mut mask = (*sample).into();
        self.header.encrypt_block(&mut mask);
        let first = packet.first()? ^ mask[0] & 0x0f;
        let number_len = usize::from(first & 3) + 1;
        let body_at = number_at + number_len;
        let mut header = packet.get(..body_at)?.to_vec();
        header[0] = first;
        let mut nonce = self.iv;
        for index in 0..number_len {
            header[number_at + index] ^= mask[1 + index];
            // A truncated packet number: the first ones of a connection are whole.
            nonce[12 - number_len + index] ^= header[number_at + index];
        }
        let end = packet.len().checked_sub(TAG).filter(|&end| end >= body_at)?;
        let tag = packet[end..].first_chunk::<TAG>()?;
        let mut body = packet[body_at..end].to_vec();
        let inout = InOutBuf::from(&mut body[..]);
        self.aead.decrypt_inout_detached(&nonce.into(), &header, inout, &(*tag).into()).ok()?;
        Some(body)
    }
}

/// The secret of Initial packets of a host, `client in` or `server in`; `None` of a version whose salt is not known.
pub(super) fn initial_secret(
    version: QuicVersion,
    first: ConnectionId,
    host: &str,
) -> Option<[u8; 32]> {
    let salt = match version {
        QuicVersion::V1 => &SALT_V1,
        QuicVersion::V2 => &SALT_V2,
        QuicVersion(number) => match number.checked_sub(DRAFTS)? {
            23..=28 => &SALT_DRAFT_23,
            29..=32 => &SALT_DRAFT_29,
            33..=34 => &SALT_V1,
            _ => return None,
        },
    };
    expand(&Hkdf::new(Some(salt), first.as_bytes()), host, "")
}

/// HKDF-Expand-Label of TLS 1.3 with an empty context (RFC 8446 section 7.1).
fn expand<const N: usize>(secret: &Hkdf<Sha256>, prefix: &str, label: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    let len = u8::try_from("tls13 ".len() + prefix.len() + label.len()).ok()?;
    let info: [&[u8]; 6] =
        [&[0, N as u8], &[len], b"tls13 ", prefix.as_bytes(), label.as_bytes(), &[0]];
    secret.expand_multi_info(&info, &mut out).ok()?;
    Some(out)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The client's first connection ID for the server in the appendices of RFC 9001 and 9369.
    pub(in super::super) const FIRST: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

    fn keys(version: QuicVersion) -> InitialKeys {
        InitialKeys::of_client(version, ConnectionId::new(&FIRST).unwrap()).unwrap()
    }

    /// Encrypts an Initial packet: header up to the packet number, number, frames.
    pub(in super::super) fn protect(
        version: QuicVersion,
        first: &[u8],
        header: &[u8],
        number: u32,
        frames: &[u8],
    ) -> Vec<u8> {
        let keys = InitialKeys::of_client(version, ConnectionId::new(first).unwrap()).unwrap();
        let number = number.to_be_bytes();
        let mut packet = [header, &number].concat();
        let mut nonce = keys.iv;
        (0..4).for_each(|index| nonce[8 + index] ^= number[index]);
        let mut body = frames.to_vec();
        let inout = InOutBuf::from(&mut body[..]);
        let tag = keys.aead.encrypt_inout_detached(&nonce.into(), &packet, inout).unwrap();
        packet.extend(&body);
        packet.extend(&tag[..]);
        let mut mask = (*packet[header.len() + 4..].first_chunk::<16>().unwrap()).into();
        keys.header.encrypt_block(&mut mask);
        packet[0] ^= mask[0] & 0x0f;
        (0..4).for_each(|index| packet[header.len() + index] ^= mask[1 + index]);
        packet
    }

    #[test]
    fn the_initialisation_vectors_of_the_rfcs() {
        // RFC 9001 appendix A.1 and RFC 9369 appendix A.1.
        let v1 = [0xfa, 0x04, 0x4b, 0x2f, 0x42, 0xa3, 0xfd, 0x3b, 0x46, 0xfb, 0x25, 0x5c];
        let v2 = [0x91, 0xf7, 0x3e, 0x23, 0x51, 0xd8, 0xfa, 0x91, 0x66, 0x0e, 0x90, 0x9f];
        assert_eq!(keys(QuicVersion::V1).iv, v1);
        assert_eq!(keys(QuicVersion::V2).iv, v2);
        let first = ConnectionId::new(&FIRST).unwrap();
        assert!(InitialKeys::of_client(QuicVersion(0xff00_0016), first).is_none());
        assert!(InitialKeys::of_client(QuicVersion(0x1a2a_3a4a), first).is_none());
    }

    #[test]
    fn a_changed_packet_does_not_decrypt() {
        let header = [&[0xc3, 0, 0, 0, 1, 8][..], &FIRST, &[0, 0, 0x40, 60]].concat();
        let packet = protect(QuicVersion::V1, &FIRST, &header, 7, &[1; 40]);
        let keys = keys(QuicVersion::V1);
        assert_eq!(keys.decrypt(&packet, header.len()), Some(vec![1; 40]));
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 1;
            assert_eq!(keys.decrypt(&changed, header.len()), None, "{at}");
            assert_eq!(keys.decrypt(&packet[..at], header.len()), None, "{at}");
        }
    }
}
