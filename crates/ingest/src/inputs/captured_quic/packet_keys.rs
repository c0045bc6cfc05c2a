//! Protection of QUIC packets with secrets of TLS 1.3: RFC 9001 section 5, RFC 9369 section 3.3.

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::aes::cipher::BlockCipherEncrypt;
use aes_gcm::aes::{Aes128, Aes256};
use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm, KeyInit};
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use chacha20poly1305::ChaCha20Poly1305;
use hkdf::Hkdf;
use packet::quic::QuicVersion;
use sha2::{Sha256, Sha384};

/// Bytes of the tag of an encrypted packet.
const TAG: usize = 16;
/// Longest packet number, after which the sample of header protection begins.
const LONGEST_NUMBER: usize = 4;
/// Bytes of a block of `ChaCha20`.
const CHACHA_BLOCK: u64 = 64;

/// A cipher suite of TLS 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CipherSuite {
    Aes128,
    Aes256,
    ChaCha20,
}

impl CipherSuite {
    /// The suites whose secrets have this length.
    pub(super) const fn of_secret(len: usize) -> &'static [Self] {
        match len {
            48 => &[Self::Aes256],
            _ => &[Self::Aes128, Self::ChaCha20],
        }
    }
}

enum PacketCipher {
    Aes128(Aes128Gcm),
    Aes256(Aes256Gcm),
    ChaCha20(ChaCha20Poly1305),
}

enum HeaderCipher {
    Aes128(Aes128),
    Aes256(Aes256),
    ChaCha20([u8; 32]),
}

/// Keys of the packets of one direction.
pub(super) struct PacketKeys {
    suite: CipherSuite,
    version: QuicVersion,
    secret: Vec<u8>,
    cipher: Box<PacketCipher>,
    header: Box<HeaderCipher>,
    iv: [u8; 12],
}

impl core::fmt::Debug for PacketKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PacketKeys").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// A header without its protection.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenHeader {
    first: u8,
    number_at: usize,
    number_len: usize,
    number: u32,
}

impl OpenHeader {
    /// The key phase of a short header.
    pub(super) const fn key_phase(&self) -> bool {
        self.first & 4 != 0
    }
}

impl PacketKeys {
    /// The keys of a secret; `None` if its length is not that of the suite.
    pub(super) fn new(suite: CipherSuite, version: QuicVersion, secret: &[u8]) -> Option<Self> {
        let derive = |label: &str, out: &mut [u8]| expand(suite, secret, (version, label), out);
        let mut iv = [0; 12];
        derive("iv", &mut iv)?;
        let (mut short, mut short_header) = ([0; 16], [0; 16]);
        let (mut long, mut long_header) = ([0; 32], [0; 32]);
        let (cipher, header) = match suite {
            CipherSuite::Aes128 => {
                derive("key", &mut short)?;
                derive("hp", &mut short_header)?;
                let cipher = PacketCipher::Aes128(Aes128Gcm::new(&short.into()));
                (cipher, HeaderCipher::Aes128(Aes128::new(&short_header.into())))
            }
            CipherSuite::Aes256 => {
                derive("key", &mut long)?;
                derive("hp", &mut long_header)?;
                let cipher = PacketCipher::Aes256(Aes256Gcm::new(&long.into()));
                (cipher, HeaderCipher::Aes256(Aes256::new(&long_header.into())))
            }
            CipherSuite::ChaCha20 => {
                derive("key", &mut long)?;
                derive("hp", &mut long_header)?;
                let cipher = PacketCipher::ChaCha20(ChaCha20Poly1305::new(&long.into()));
                (cipher, HeaderCipher::ChaCha20(long_header))
            }
        };
        let (cipher, header) = (Box::new(cipher), Box::new(header));
        Some(Self { suite, version, secret: secret.to_vec(), cipher, header, iv })
    }

    /// The keys after a key update (RFC 9001 section 6.1). Header protection stays as it is.
    pub(super) fn updated(&self) -> Option<Self> {
        let mut secret = vec![0; self.secret.len()];
        expand(self.suite, &self.secret, (self.version, "ku"), &mut secret)?;
        Self::new(self.suite, self.version, &secret)
    }

    pub(super) const fn suite(&self) -> CipherSuite {
        self.suite
    }

    /// The mask of a header; `None` of the last block of ChaCha20, which the cipher does not give.
    fn mask(&self, sample: &[u8; 16]) -> Option<[u8; 5]> {
        let mut block = (*sample).into();
        match &*self.header {
            HeaderCipher::Aes128(cipher) => cipher.encrypt_block(&mut block),
            HeaderCipher::Aes256(cipher) => cipher.encrypt_block(&mut block),
            HeaderCipher::ChaCha20(key) => {
                let [a, b, c, d, nonce @ ..] = *sample;
                let counter = u32::from_le_bytes([a, b, c, d]);
                let mut mask = [0; 5];
                let mut cipher = ChaCha20::new(&(*key).into(), &nonce.into());
                cipher.try_seek(u64::from(counter) * CHACHA_BLOCK).ok()?;
                cipher.try_apply_keystream(&mut mask).ok()?;
                return Some(mask);
            }
        }
        Some([block[0], block[1], block[2], block[3], block[4]])
    }

    /// Removes the protection of a header whose packet number begins at `number_at`; `None` of a packet that is too short.
    pub(super) fn open_header(&self, packet: &[u8], number_at: usize) -> Option<OpenHeader> {
        let sample = packet.get(number_at + LONGEST_NUMBER..)?.first_chunk::<16>()?;
        let mask = self.mask(sample)?;
        let &first = packet.first()?;
        let bits = if first & 0x80 == 0 { 0x1f } else { 0x0f };
        let first = first ^ mask[0] & bits;
        let number_len = usize::from(first & 3) + 1;
        let bytes = packet.get(number_at..number_at + number_len)?;
        let number = bytes
            .iter()
            .zip(&mask[1..])
            .fold(0, |sum, (byte, mask)| sum << 8 | u32::from(byte ^ mask));
        Some(OpenHeader { first, number_at, number_len, number })
    }

    /// The number and the frames of a packet; `None` if it does not decrypt. `largest`: the largest number so far.
    pub(super) fn open(
        &self,
        packet: &[u8],
        header: OpenHeader,
        largest: Option<u64>,
    ) -> Option<(u64, Vec<u8>)> {
        let OpenHeader { first, number_at, number_len, number } = header;
        let full = full_number(largest, number, number_len);
        let body_at = number_at + number_len;
        let mut head = packet.get(..body_at)?.to_vec();
        head[0] = first;
        head[number_at..].copy_from_slice(&number.to_be_bytes()[4 - number_len..]);
        let mut nonce = self.iv;
        for (byte, of_number) in nonce[4..].iter_mut().zip(full.to_be_bytes()) {
            *byte ^= of_number;
        }
        let end = packet.len().checked_sub(TAG).filter(|&end| end >= body_at)?;
        let tag = packet[end..].first_chunk::<TAG>()?;
        let mut body = packet[body_at..end].to_vec();
        let (inout, nonce, tag) = (InOutBuf::from(&mut body[..]), nonce.into(), (*tag).into());
        let opened = match &*self.cipher {
            PacketCipher::Aes128(one) => one.decrypt_inout_detached(&nonce, &head, inout, &tag),
            PacketCipher::Aes256(one) => one.decrypt_inout_detached(&nonce, &head, inout, &tag),
            PacketCipher::ChaCha20(one) => one.decrypt_inout_detached(&nonce, &head, inout, &tag),
        };
        opened.ok().map(|()| (full, body))
    }
}

/// The packet number of a truncated one (RFC 9000 appendix A.3).
fn full_number(largest: Option<u64>, truncated: u32, len: usize) -> u64 {
    let expected = largest.map_or(0, |largest| largest + 1);
    let window = 1_u64 << (8 * len);
    let candidate = expected & !(window - 1) | u64::from(truncated);
    if candidate + window / 2 <= expected && candidate + window < 1 << 62 {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// HKDF-Expand-Label of TLS 1.3 with an empty context (RFC 8446 section 7.1), for a label of QUIC.
fn expand(
    suite: CipherSuite,
    secret: &[u8],
    (version, label): (QuicVersion, &str),
    out: &mut [u8],
) -> Option<()> {
    let prefix = if version == QuicVersion::V2 { "quicv2 " } else { "quic " };
    let len = u8::try_from("tls13 ".len() + prefix.len() + label.len()).ok()?;
    let wanted = u16::try_from(out.len()).ok()?.to_be_bytes();
    let info: [&[u8]; 6] = [&wanted, &[len], b"tls13 ", prefix.as_bytes(), label.as_bytes(), &[0]];
    match suite {
        CipherSuite::Aes256 => {
            Hkdf::<Sha384>::from_prk(secret).ok()?.expand_multi_info(&info, out).ok()
        }
        CipherSuite::Aes128 | CipherSuite::ChaCha20 => {
            Hkdf::<Sha256>::from_prk(secret).ok()?.expand_multi_info(&info, out).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.bytes().filter_map(|b| char::from(b).to_digit(16)).map(|d| d as u8).collect();
        digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
    }

    /// The packet of RFC 9001 appendix A.5: a PING in a short header with ChaCha20-Poly1305.
    #[test]
    fn the_chacha_packet_of_rfc_9001() {
        let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        let keys = PacketKeys::new(CipherSuite::ChaCha20, QuicVersion::V1, &secret).unwrap();
        assert_eq!(keys.iv[..], hex("e0459b3474bdd0e44a41c144")[..]);
        let packet = hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
        let header = keys.open_header(&packet, 1).unwrap();
        let (number, frames) = keys.open(&packet, header, Some(654_360_563)).unwrap();
        assert_eq!((number, &frames[..]), (654_360_564, &[1][..]));
        // Any change is noticed.
        let mut damaged = packet;
        damaged[20] ^= 1;
        assert!(keys.open(&damaged, header, Some(654_360_563)).is_none());
        let updated = hex("1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9");
        assert_eq!(keys.updated().unwrap().secret, updated);
    }

    /// The sample begins with the block counter of ChaCha20.
    #[test]
    fn a_sample_at_the_end_of_the_key_stream_opens_nothing() {
        let keys = PacketKeys::new(CipherSuite::ChaCha20, QuicVersion::V1, &[7; 32]).unwrap();
        let mut packet = [0x41; 40];
        assert!(keys.open_header(&packet, 1).is_some());
        packet[5..9].fill(0xff);
        assert!(keys.open_header(&packet, 1).is_none());
    }

    #[test]
    fn packet_numbers_of_rfc_9000() {
        // Appendix A.3.
        assert_eq!(full_number(Some(0xa82f_30ea), 0x9b32, 2), 0xa82f_9b32);
        assert_eq!(full_number(None, 0, 1), 0);
        assert_eq!(full_number(Some(254), 1, 1), 257);
        assert_eq!(full_number(Some(260), 250, 1), 250);
    }
}
