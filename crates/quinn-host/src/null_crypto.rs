//! A handshake without authentication and keys without encryption: an implementation of quinn's
//! interface for cryptography (`quinn_proto::crypto`) with only the sizes of TLS. Messages have the
//! sizes of our handshake (`quic::handshake::Flights::TYPICAL`), packets a tag of 16 bytes. Nothing
//! is random, so every run is the same.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quic::handshake::Flights;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

const FLIGHTS: Flights = Flights::TYPICAL;
/// Bytes of the authentication tag of a packet (RFC 9001 section 5.3).
pub const TAG: usize = 16;

/// The null cryptography.
#[derive(Debug, Clone, Copy)]
pub struct NullCrypto;

fn pair<T>(key: impl Fn() -> T) -> KeyPair<T> {
    KeyPair { local: key(), remote: key() }
}

fn keys() -> Keys {
    Keys { header: pair(|| Box::new(NullCrypto) as _), packet: pair(|| Box::new(NullCrypto) as _) }
}

impl PacketKey for NullCrypto {
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let plain = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(plain);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NullCrypto {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl HmacKey for NullCrypto {
    /// A checksum instead of a signature.
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        for (place, byte) in signature.iter_mut().enumerate() {
            *byte = data.get(place % data.len().max(1)).copied().unwrap_or(0);
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for NullCrypto {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NullCrypto {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.extend([0; TAG]);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let plain = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..plain])
    }
}

impl ClientConfig for NullCrypto {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(NullHandshake::new(Side::Client, params)))
    }
}

impl ServerConfig for NullCrypto {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(NullHandshake::new(Side::Server, params))
    }
}

/// The handshake state of an endpoint: the message it awaits or sends next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandshakeStage {
    SaysClientHello,
    AwaitsServerHello,
    HasServerHello,
    AwaitsRest,
    SaysClientFinished,
    AwaitsClientHello,
    SaysServerHello,
    SaysRest,
    AwaitsClientFinished,
    Done,
}

/// The messages of RFC 9001 section 4.1 with their usual sizes. The ClientHello and the message
/// after the ServerHello begin with the transport parameters.
struct NullHandshake {
    side: Side,
    stage: HandshakeStage,
    own: Vec<u8>,
    received: Vec<u8>,
    peer: Option<Vec<u8>>,
}

impl NullHandshake {
    fn new(side: Side, params: &TransportParameters) -> Self {
        let mut own = Vec::new();
        params.write(&mut own);
        let stage = match side {
            Side::Client => HandshakeStage::SaysClientHello,
            Side::Server => HandshakeStage::AwaitsClientHello,
        };
        Self { side, stage, own, received: Vec::new(), peer: None }
    }

    /// A message of `size` bytes with the parameters.
    fn with_parameters(&self, size: u32) -> Vec<u8> {
        let mut message = (self.own.len() as u16).to_be_bytes().to_vec();
        message.extend(&self.own);
        assert!(message.len() <= size as usize, "{} bytes of parameters", self.own.len());
        message.resize(size as usize, 0);
        message
    }

    fn take(&mut self, size: u32) -> Option<Vec<u8>> {
        let size = size as usize;
        (self.received.len() >= size).then(|| self.received.drain(..size).collect())
    }
}

fn parameters(message: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = message.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length))).map(<[u8]>::to_vec)
}

impl Session for NullHandshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(false)
    }

    fn is_handshaking(&self) -> bool {
        !matches!(self.stage, HandshakeStage::SaysClientFinished | HandshakeStage::Done)
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend(buf);
        let (size, next) = match self.stage {
            HandshakeStage::AwaitsServerHello => {
                (FLIGHTS.server_hello, HandshakeStage::HasServerHello)
            }
            HandshakeStage::AwaitsRest => (FLIGHTS.server_rest, HandshakeStage::SaysClientFinished),
            HandshakeStage::AwaitsClientHello => {
                (FLIGHTS.client_hello, HandshakeStage::SaysServerHello)
            }
            HandshakeStage::AwaitsClientFinished => (FLIGHTS.client_finished, HandshakeStage::Done),
            _ => return Ok(false),
        };
        if let Some(message) = self.take(size) {
            if matches!(self.stage, HandshakeStage::AwaitsRest | HandshakeStage::AwaitsClientHello)
            {
                self.peer = parameters(&message);
            }
            self.stage = next;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(peer) = &self.peer else { return Ok(None) };
        Ok(Some(TransportParameters::read(self.side, &mut peer.as_slice())?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let (next, keys) = match self.stage {
            HandshakeStage::SaysClientHello => {
                buf.extend(self.with_parameters(FLIGHTS.client_hello));
                (HandshakeStage::AwaitsServerHello, None)
            }
            HandshakeStage::HasServerHello => (HandshakeStage::AwaitsRest, Some(keys())),
            HandshakeStage::SaysClientFinished => {
                buf.resize(buf.len() + FLIGHTS.client_finished as usize, 0);
                (HandshakeStage::Done, Some(keys()))
            }
            HandshakeStage::SaysServerHello => {
                buf.resize(buf.len() + FLIGHTS.server_hello as usize, 0);
                (HandshakeStage::SaysRest, Some(keys()))
            }
            HandshakeStage::SaysRest => {
                buf.extend(self.with_parameters(FLIGHTS.server_rest));
                (HandshakeStage::AwaitsClientFinished, Some(keys()))
            }
            waits => (waits, None),
        };
        self.stage = next;
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(pair(|| Box::new(NullCrypto) as _))
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
