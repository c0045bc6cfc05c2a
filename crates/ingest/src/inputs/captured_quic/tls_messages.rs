//! Messages of TLS in CRYPTO frames, as far as they concern QUIC: the random of a ClientHello, and transport parameters.

use diagnose::quic::record::QuicLimits;

use super::client_hello::Fields;

/// Most bytes of a host's messages that are kept.
const MAX_BYTES: usize = 65_536;
/// Most pieces that are apart.
const MAX_PIECES: usize = 256;
const CLIENT_HELLO: u8 = 1;
const ENCRYPTED_EXTENSIONS: u8 = 8;
/// Extensions with transport parameters: RFC 9001 section 8.2, and that of the drafts.
const PARAMETERS: [u16; 2] = [0x39, 0xffa5];
/// `ack_delay_exponent` by default (RFC 9000 section 18.2).
const DEFAULT_EXPONENT: u32 = 3;
const MAX_EXPONENT: u64 = 20;
const NANOS_PER_MS: u64 = 1_000_000;

/// The bytes of a CRYPTO stream, in order.
#[derive(Debug, Default)]
pub(super) struct CryptoStream {
    bytes: Vec<u8>,
    /// Ranges that are known, in order and apart.
    known: Vec<(usize, usize)>,
    read: bool,
}

impl CryptoStream {
    /// Adds the data of a frame; what exceeds the limits is ignored.
    pub(super) fn add(&mut self, offset: u64, data: &[u8]) {
        let Ok(offset) = usize::try_from(offset) else { return };
        let Some(end) = offset.checked_add(data.len()).filter(|&end| end <= MAX_BYTES) else {
            return;
        };
        if self.read || self.known.len() >= MAX_PIECES {
            return;
        }
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
    }

    fn contiguous(&self) -> &[u8] {
        match self.known.first() {
            Some(&(0, end)) => &self.bytes[..end],
            _ => &[],
        }
    }

    /// The random of a ClientHello.
    pub(super) fn random(&self) -> Option<[u8; 32]> {
        let mut fields = Fields(self.contiguous());
        (fields.byte()? == CLIENT_HELLO).then_some(())?;
        fields.take(3 + 2)?;
        fields.take(32)?.try_into().ok()
    }

    /// The transport parameters, once the message with them is known.
    pub(super) fn parameters(&mut self) -> Option<TransportParameters> {
        let found = self.find_parameters()?;
        // The rest of the stream is not needed.
        *self = Self { read: true, ..Self::default() };
        Some(found)
    }

    fn find_parameters(&self) -> Option<TransportParameters> {
        let mut rest = Fields(self.contiguous());
        loop {
            let kind = rest.byte()?;
            let high = usize::from(rest.byte()?);
            let len = high << 16 | usize::from(rest.word()?);
            let mut message = Fields(rest.take(len)?);
            match kind {
                CLIENT_HELLO => {
                    message.take(2 + 32)?;
                    message.vector8()?;
                    message.vector16()?;
                    message.vector8()?;
                }
                ENCRYPTED_EXTENSIONS => {}
                _ => continue,
            }
            let mut extensions = message.vector16()?;
            while !extensions.0.is_empty() {
                let kind = extensions.word()?;
                let content = extensions.vector16()?;
                if PARAMETERS.contains(&kind) {
                    return TransportParameters::read(content);
                }
            }
            return None;
        }
    }
}

/// Transport parameters of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TransportParameters {
    pub(super) limits: QuicLimits,
    pub(super) ack_delay_exponent: u32,
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self { limits: QuicLimits::default(), ack_delay_exponent: DEFAULT_EXPONENT }
    }
}

impl TransportParameters {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let mut read = Self::default();
        // What is absent is 0.
        let limits = &mut read.limits;
        (limits.max_data, limits.bidi_local, limits.bidi_remote, limits.uni) =
            (Some(0), Some(0), Some(0), Some(0));
        while !fields.0.is_empty() {
            let (id, len) = (fields.varint()?, fields.varint()?);
            let content = fields.take(usize::try_from(len).ok()?)?;
            let value = Fields(content).varint();
            let limits = &mut read.limits;
            match id {
                4 => limits.max_data = value,
                5 => limits.bidi_local = value,
                6 => limits.bidi_remote = value,
                7 => limits.uni = value,
                0x0a => {
                    let exponent = value.filter(|&exponent| exponent <= MAX_EXPONENT)?;
                    read.ack_delay_exponent = exponent as u32;
                }
                0x0b => limits.max_ack_delay = value.map(|ms| ms.saturating_mul(NANOS_PER_MS)),
                _ => {}
            }
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// EncryptedExtensions with an ALPN and transport parameters.
    fn message() -> Vec<u8> {
        let parameters = [4, 2, 0x44, 0, 5, 1, 9, 0x0a, 1, 5, 0x0b, 1, 20, 0x40, 0x7f, 1, 0];
        let len = parameters.len() as u8;
        let extensions = [&[0, 16, 0, 1, 0, 0, 0x39, 0, len][..], &parameters].concat();
        let inner = extensions.len() as u8;
        [&[8, 0, 0, inner + 2, 0, inner][..], &extensions].concat()
    }

    #[test]
    fn parameters_of_a_message_in_pieces() {
        let message = message();
        let mut stream = CryptoStream::default();
        stream.add(7, &message[7..]);
        assert_eq!(stream.parameters(), None);
        stream.add(0, &message[..9]);
        let read = stream.parameters().unwrap();
        assert_eq!((read.limits.max_data, read.limits.bidi_local), (Some(1_024), Some(9)));
        assert_eq!((read.limits.uni, read.ack_delay_exponent), (Some(0), 5));
        assert_eq!(read.limits.max_ack_delay, Some(20 * NANOS_PER_MS));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(pieces in proptest::collection::vec((0..200_u64, proptest::collection::vec(any::<u8>(), 0..60)), 0..12)) {
            let mut stream = CryptoStream::default();
            for (offset, data) in &pieces {
                stream.add(*offset, data);
                let _ = stream.random();
                let _ = stream.parameters();
            }
        }
    }
}
