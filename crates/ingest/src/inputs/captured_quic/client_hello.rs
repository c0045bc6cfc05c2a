//! What the ClientHello of a QUIC connection offers: server name and application protocols.
//!
//! It is in the CRYPTO frames of the client's Initial packets, which may be several and out of order (RFC 9000
//! section 19.6, RFC 8446 section 4.1.2). Its names are encrypted only with Encrypted Client Hello.

use packet::quic::{LongHeader, QuicVersion};

use super::initial_keys::InitialKeys;

/// Most bytes of a ClientHello that are kept of a connection.
const MAX_HELLO: usize = 8_192;
/// Most protocols that are kept of a connection.
const MAX_PROTOCOLS: usize = 64;
/// Bytes of a handshake message before its content: type and length.
const MESSAGE_HEADER: usize = 4;
const CLIENT_HELLO: u8 = 1;
/// Extensions of TLS (IANA's registry of ExtensionType values).
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// What a client offers in its ClientHello.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuicClientHello {
    /// Server name (RFC 6066 section 3). Bytes that are not ASCII are escaped.
    pub server_name: Option<String>,
    /// Application protocols in the client's order of preference (RFC 7301). Which one the server chose is
    /// encrypted.
    pub protocols: Vec<String>,
    /// It has Encrypted Client Hello (RFC 9849) or greases it: the server name may be that of the provider only.
    pub has_encrypted_hello: bool,
}

/// Reads the ClientHello of a connection.
#[derive(Debug, Default)]
pub(super) struct ClientHelloReader {
    /// Boxed: a connection whose message is read has none.
    keys: Option<Box<(QuicVersion, InitialKeys)>>,
    /// Bytes of the message so far, and the ranges of them that are known, in order and apart.
    bytes: Vec<u8>,
    known: Vec<(usize, usize)>,
    hello: Option<QuicClientHello>,
    failed: bool,
}

impl ClientHelloReader {
    /// Adds an Initial packet of the client, whose header is `header`.
    pub(super) fn push(&mut self, packet: &[u8], header: &LongHeader<'_>) {
        if self.hello.is_some() || self.failed {
            return;
        }
        let (Some(number_at), Some(packet)) = (header.number_at, packet.get(..header.len)) else {
            return;
        };
        // The client's next packets have the ID that the server chose, and the same keys.
        if self.keys.as_ref().is_none_or(|keys| keys.0 != header.version) {
            let keys = InitialKeys::of_client(header.version, header.destination);
            self.keys = keys.map(|keys| Box::new((header.version, keys)));
        }
        let Some(keys) = &self.keys else { return };
        let Some(frames) = keys.1.decrypt(packet, number_at) else { return };
        if self.frames(&frames).is_none() {
            self.fail();
        }
        self.parse();
    }

    /// A Retry: the next Initial has other keys (RFC 9001 section 5.2). A version negotiation: the client begins
    /// anew.
    pub(super) fn restart(&mut self) {
        if self.hello.is_none() {
            *self = Self::default();
        }
    }

    /// The ClientHello, if it was captured whole.
    pub(super) fn finish(self) -> Option<QuicClientHello> {
        self.hello
    }

    fn fail(&mut self) {
        *self = Self { failed: true, ..Self::default() };
    }

    /// Takes the CRYPTO frames of a packet; `None` if a frame is not one of Initial packets.
    fn frames(&mut self, frames: &[u8]) -> Option<()> {
        let mut rest = Fields(frames);
        while let Some(kind) = rest.byte() {
            match kind {
                // PADDING, PING.
                0 | 1 => {}
                // ACK, with the counts of ECN.
                2 | 3 => {
                    let _largest = rest.varint()?;
                    let _delay = rest.varint()?;
                    let ranges = rest.varint()?;
                    let after = if kind == 3 { 3 } else { 0 };
                    for _ in 0..1_u64.checked_add(ranges.checked_mul(2)?)?.checked_add(after)? {
                        rest.varint()?;
                    }
                }
                6 => {
                    let offset = rest.varint()?;
                    let len = rest.varint()?;
                    let data = rest.take(usize::try_from(len).ok()?)?;
                    self.crypto(usize::try_from(offset).ok()?, data)?;
                }
                // CONNECTION_CLOSE.
                0x1c => return Some(()),
                _ => return None,
            }
        }
        Some(())
    }

    fn crypto(&mut self, offset: usize, data: &[u8]) -> Option<()> {
        let end = offset.checked_add(data.len()).filter(|&end| end <= MAX_HELLO)?;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(data);
        self.known.push((offset, end));
        self.known.sort_unstable();
        let mut joined: Vec<(usize, usize)> = Vec::new();
        for &(start, end) in &self.known {
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        self.known = joined;
        Some(())
    }

    /// Parses the message once all of it is known.
    fn parse(&mut self) {
        let Some(&(0, known)) = self.known.first() else { return };
        let Some(&[kind, high, middle, low]) = self.bytes[..known].first_chunk() else { return };
        let len = MESSAGE_HEADER + u32::from_be_bytes([0, high, middle, low]) as usize;
        if kind != CLIENT_HELLO || len > MAX_HELLO {
            self.fail();
        } else if let Some(message) = self.bytes[..known].get(MESSAGE_HEADER..len) {
            let hello = client_hello(message);
            self.fail();
            self.hello = hello;
        }
    }
}

/// The content of a ClientHello; `None` if it is malformed.
fn client_hello(message: &[u8]) -> Option<QuicClientHello> {
    let mut rest = Fields(message);
    // Version and random, session ID, cipher suites, compression methods.
    let _ = rest.take(2 + 32)?;
    let _ = rest.vector8()?;
    let _ = rest.vector16()?;
    let _ = rest.vector8()?;
    let mut extensions = rest.vector16()?;
    let mut hello = QuicClientHello::default();
    while !extensions.0.is_empty() {
        let kind = extensions.word()?;
        let mut content = extensions.vector16()?;
        match kind {
            SERVER_NAME => {
                let mut names = content.vector16()?;
                // Names of hosts only are defined.
                if names.byte()? == 0 {
                    hello.server_name = Some(names.vector16()?.text());
                }
            }
            ALPN => {
                let mut protocols = content.vector16()?;
                while !protocols.0.is_empty() {
                    let protocol = protocols.vector8()?;
                    if hello.protocols.len() < MAX_PROTOCOLS {
                        hello.protocols.push(protocol.text());
                    }
                }
            }
            ENCRYPTED_CLIENT_HELLO => hello.has_encrypted_hello = true,
            _ => {}
        }
    }
    Some(hello)
}

/// Bytes that are read from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    pub(super) fn word(&mut self) -> Option<u16> {
        let taken = self.take(2)?;
        Some(u16::from_be_bytes([taken[0], taken[1]]))
    }

    /// A variable-length integer (RFC 9000 section 16).
    pub(super) fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let rest = self.take((1 << (first >> 6)) - 1)?;
        let begin = u64::from(first & 0x3f);
        Some(rest.iter().fold(begin, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    pub(super) fn vector8(&mut self) -> Option<Self> {
        let len = self.byte()?;
        self.take(len.into()).map(Self)
    }

    pub(super) fn vector16(&mut self) -> Option<Self> {
        let len = self.word()?;
        self.take(len.into()).map(Self)
    }

    fn text(self) -> String {
        self.0.escape_ascii().to_string()
    }
}

#[cfg(test)]
mod tests {
    use packet::quic::long_header;
    use proptest::prelude::*;

    use super::super::initial_keys::tests::{FIRST, protect};
    use super::*;

    /// A ClientHello with these extensions.
    fn hello(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let extensions: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, content)| {
                let len = content.len() as u16;
                [&kind.to_be_bytes()[..], &len.to_be_bytes(), content].concat()
            })
            .collect();
        let len = extensions.len() as u16;
        let content =
            [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &len.to_be_bytes(), &extensions];
        let content = content.concat();
        [&[1, 0][..], &(content.len() as u16).to_be_bytes(), &content].concat()
    }

    fn named() -> Vec<u8> {
        hello(&[
            (SERVER_NAME, b"\0\x0e\0\0\x0bexample.com".to_vec()),
            (43, vec![2, 3, 4]),
            (ALPN, b"\0\x09\x02h3\x05hq-\xff9".to_vec()),
        ])
    }

    fn expected() -> QuicClientHello {
        QuicClientHello {
            server_name: Some("example.com".to_owned()),
            protocols: vec!["h3".to_owned(), "hq-\\xff9".to_owned()],
            has_encrypted_hello: false,
        }
    }

    fn crypto(offset: usize, data: &[u8]) -> Vec<u8> {
        let word = |number: usize| (0x4000 | number as u16).to_be_bytes();
        [&[6][..], &word(offset), &word(data.len()), data].concat()
    }

    fn initial(
        version: QuicVersion,
        to: &[u8],
        keys: &[u8],
        number: u32,
        frames: &[u8],
    ) -> Vec<u8> {
        let mut frames = frames.to_vec();
        frames.resize(frames.len().max(1_130), 0);
        let first = if version == QuicVersion::V2 { 0xd3 } else { 0xc3 };
        let len = 0x4000 | (4 + frames.len() + 16) as u16;
        let header = [
            &[first][..],
            &version.0.to_be_bytes(),
            &[to.len() as u8],
            to,
            &[0, 0],
            &len.to_be_bytes(),
        ]
        .concat();
        protect(version, keys, &header, number, &frames)
    }

    fn push(reader: &mut ClientHelloReader, packet: &[u8]) {
        reader.push(packet, &long_header(packet, packet.len()).unwrap());
    }

    #[test]
    fn a_hello_in_one_packet_of_both_versions() {
        for version in [QuicVersion::V1, QuicVersion::V2, QuicVersion(0xff00_001d)] {
            let mut reader = ClientHelloReader::default();
            push(&mut reader, &initial(version, &FIRST, &FIRST, 0, &crypto(0, &named())));
            assert_eq!(reader.finish(), Some(expected()), "{version}");
        }
    }

    #[test]
    fn a_hello_in_pieces_out_of_order_with_other_frames() {
        let hello = named();
        let mut reader = ClientHelloReader::default();
        let second = [crypto(60, &hello[60..]), vec![1], crypto(20, &hello[20..45])].concat();
        push(&mut reader, &initial(QuicVersion::V1, &FIRST, &FIRST, 1, &second));
        assert_eq!(reader.hello, None);
        // An ACK of one range more, with ECN; the server's ID, and the keys of the first.
        let third = [vec![3, 9, 0, 1, 1, 1, 1, 4, 0, 0], crypto(0, &hello[..70])].concat();
        push(&mut reader, &initial(QuicVersion::V1, &[9; 8], &FIRST, 2, &third));
        assert_eq!(reader.finish(), Some(expected()));
    }

    #[test]
    fn a_retry_changes_the_keys() {
        let mut reader = ClientHelloReader::default();
        let hello = named();
        push(&mut reader, &initial(QuicVersion::V1, &FIRST, &FIRST, 0, &crypto(0, &hello[..50])));
        reader.restart();
        let to = [5; 12];
        push(&mut reader, &initial(QuicVersion::V1, &to, &to, 1, &crypto(0, &hello)));
        assert_eq!(reader.finish(), Some(expected()));
    }

    #[test]
    fn an_encrypted_hello_and_no_names() {
        let mut reader = ClientHelloReader::default();
        let encrypted = hello(&[(ENCRYPTED_CLIENT_HELLO, vec![0; 200])]);
        push(&mut reader, &initial(QuicVersion::V1, &FIRST, &FIRST, 0, &crypto(0, &encrypted)));
        let hello = reader.finish().unwrap();
        assert!(hello.has_encrypted_hello && hello.server_name.is_none());
        assert!(hello.protocols.is_empty());
    }

    #[test]
    fn malformed_messages_have_no_hello() {
        let mut long_list = named();
        // The length of the extensions, one too large.
        let at = MESSAGE_HEADER + 2 + 32 + 7 + 1;
        long_list[at] += 1;
        for bad in [vec![2, 0, 0, 0], vec![1, 0xff, 0, 0], long_list] {
            let mut reader = ClientHelloReader::default();
            push(&mut reader, &initial(QuicVersion::V1, &FIRST, &FIRST, 0, &crypto(0, &bad)));
            assert!(reader.failed && reader.hello.is_none());
        }
        // A frame that Initial packets do not have.
        let mut reader = ClientHelloReader::default();
        push(&mut reader, &initial(QuicVersion::V1, &FIRST, &FIRST, 0, &[8, 0]));
        assert!(reader.failed);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            frames in prop::collection::vec(any::<u8>(), 0..300),
            at in 0..200_usize,
            with in any::<u8>(),
        ) {
            let mut reader = ClientHelloReader::default();
            push(&mut reader, &initial(QuicVersion::V1, &FIRST, &FIRST, 0, &frames));
            let mut changed = named();
            let at = at % changed.len();
            changed[at] = with;
            let mut reader = ClientHelloReader::default();
            push(&mut reader, &initial(QuicVersion::V1, &FIRST, &FIRST, 0, &crypto(0, &changed)));
            let _ = reader.finish();
        }
    }
}
