//! quinn's TLS, with keys that count the STREAM frames of the packets they encrypt.

use std::any::Any;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

use crate::frames::Counts;
use crate::stream_frames::stream_frames;

type Shared = Arc<Mutex<Counts>>;

struct CountedKey(Box<dyn PacketKey>, Shared);

impl PacketKey for CountedKey {
    fn encrypt(&self, packet: u64, buffer: &mut [u8], header: usize) {
        if let Ok(mut counts) = self.1.lock() {
            let end = buffer.len().saturating_sub(self.0.tag_len());
            let payload = buffer.get(header..end).unwrap_or_default();
            counts.packet(buffer.len(), stream_frames(payload));
        }
        self.0.encrypt(packet, buffer, header);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.0.decrypt(packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

fn counted_pair(keys: KeyPair<Box<dyn PacketKey>>, counts: &Shared) -> KeyPair<Box<dyn PacketKey>> {
    let local: Box<dyn PacketKey> = Box::new(CountedKey(keys.local, Arc::clone(counts)));
    KeyPair { local, remote: keys.remote }
}

fn counted(keys: Keys, counts: &Shared) -> Keys {
    Keys { header: keys.header, packet: counted_pair(keys.packet, counts) }
}

struct CountedSession(Box<dyn Session>, Shared);

impl Session for CountedSession {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        counted(self.0.initial_keys(id, side), &self.1)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.0.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.0.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, packet) = self.0.early_crypto()?;
        Some((header, Box::new(CountedKey(packet, Arc::clone(&self.1)))))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.0.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.0.read_handshake(bytes)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.0.transport_parameters()
    }

    fn write_handshake(&mut self, bytes: &mut Vec<u8>) -> Option<Keys> {
        self.0.write_handshake(bytes).map(|keys| counted(keys, &self.1))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.0.next_1rtt_keys().map(|keys| counted_pair(keys, &self.1))
    }

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.0.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.0.export_keying_material(output, label, context)
    }
}

/// The configuration of a client.
pub struct CountedClient(Arc<dyn ClientConfig>, Shared);

impl CountedClient {
    pub fn new(config: Arc<dyn ClientConfig>, counts: Shared) -> Self {
        Self(config, counts)
    }
}

impl ClientConfig for CountedClient {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let session = Arc::clone(&self.0).start_session(version, name, parameters)?;
        Ok(Box::new(CountedSession(session, Arc::clone(&self.1))))
    }
}

/// The configuration of a server.
pub struct CountedServer(Arc<dyn ServerConfig>, Shared);

impl CountedServer {
    pub fn new(config: Arc<dyn ServerConfig>, counts: Shared) -> Self {
        Self(config, counts)
    }
}

impl ServerConfig for CountedServer {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.0.initial_keys(version, id).map(|keys| counted(keys, &self.1))
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.0.retry_tag(version, id, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let session = Arc::clone(&self.0).start_session(version, parameters);
        Box::new(CountedSession(session, Arc::clone(&self.1)))
    }
}
