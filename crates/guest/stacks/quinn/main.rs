//! quinn-proto as a host of Ackclock in virtual time.
//!
//! quinn-proto has neither sockets nor a clock: each call has the time of the message. Datagrams are taken as quinn's
//! driver does on Linux, up to ten at once (`MAX_TRANSMIT_SEGMENTS`). docs/guests.md has the messages.

mod counted_crypto;
mod frames;
mod host;
mod stream_frames;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Event, QlogConfig, ServerConfig, StreamEvent, StreamId, TimeSource, TransportConfig,
    VarInt,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, KeyLog, SignatureScheme};

use counted_crypto::{CountedClient, CountedServer};
use frames::Counts;
use host::{Config, Datagram, Events, Stack, State, fail};

/// Datagrams that quinn's driver takes at once.
const SEGMENTS: usize = 10;
/// Bytes of a connection ID.
const ID: usize = 8;

/// Connection IDs of the seed: quinn's generators draw them from the operating system.
struct SeededIds {
    seed: [u8; 4],
    generated: u32,
}

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.generated += 1;
        let mut id = [0; ID];
        id[..4].copy_from_slice(&self.seed);
        id[4..].copy_from_slice(&self.generated.to_be_bytes());
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        ID
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The date of tokens.
struct FixedDate;

impl TimeSource for FixedDate {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Accepts any certificate: the peer is the simulator's.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Secrets as lines of a key log (RFC 9850).
#[derive(Debug)]
struct SecretLog(Mutex<File>);

impl KeyLog for SecretLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        let written = self.0.lock().map(|mut file| file.write_all(line.as_bytes()));
        or_fail("the key log", or_fail("the key log", written));
    }
}

fn secret_log(config: &Config) -> Option<Arc<SecretLog>> {
    let file = or_fail("the key log", File::create(config.keys.as_ref()?));
    Some(Arc::new(SecretLog(Mutex::new(file))))
}

struct Quinn {
    origin: Instant,
    endpoint: Endpoint,
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    server: bool,
    peer: SocketAddr,
    /// Largest UDP payload of the interface.
    payload: usize,
    /// Datagrams that belong to no connection.
    answers: VecDeque<Vec<u8>>,
    counts: Arc<Mutex<Counts>>,
    handshaken: bool,
    events: Events,
}

fn or_fail<T, E: std::fmt::Debug>(what: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| fail(&format!("{what}: {error:?}")))
}

fn transport(config: &Config, origin: Instant) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    match config.cc.as_str() {
        "newreno" => transport.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        _ => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
    };
    if let Some(path) = &config.log {
        let mut log = QlogConfig::default();
        let file = or_fail("the log", File::create(path));
        let side = if config.server { "server" } else { "client" };
        log.writer(Box::new(BufWriter::new(file))).start_time(origin).title(Some(format!("quinn {side}")));
        transport.qlog_stream(log.into_stream());
    }
    Arc::new(transport)
}

impl Quinn {
    fn new(config: &Config) -> Self {
        // An origin: only differences of instants are looked at.
        let origin = Instant::now();
        let provider = Arc::new(ring::default_provider());
        let versions = [&rustls::version::TLS13];
        let counts = Arc::new(Mutex::new(Counts::default()));
        let mut endpoint = EndpointConfig::default();
        endpoint.rng_seed(Some(config.seed));
        let [a, b, c, d, first @ .., _, _, _, _] = config.seed;
        endpoint.cid_generator(move || Box::new(SeededIds { seed: [a, b, c, d], generated: 0 }));
        let (mut client, mut server) = (None, None);
        if config.server {
            let certificate = or_fail("the certificate", CertificateDer::from_pem_slice(host::CERTIFICATE.as_bytes()));
            let key = or_fail("the key", PrivateKeyDer::from_pem_slice(host::KEY.as_bytes()));
            let tls = rustls::ServerConfig::builder_with_provider(provider);
            let tls = or_fail("TLS 1.3", tls.with_protocol_versions(&versions)).with_no_client_auth();
            let mut tls = or_fail("the certificate", tls.with_single_cert(vec![certificate], key));
            tls.alpn_protocols = vec![host::PROTOCOL.to_vec()];
            if let Some(log) = secret_log(config) {
                tls.key_log = log;
            }
            let crypto = or_fail("TLS 1.3", QuicServerConfig::try_from(tls));
            let crypto = CountedServer::new(Arc::new(crypto), Arc::clone(&counts));
            let mut made = ServerConfig::with_crypto(Arc::new(crypto));
            made.transport_config(transport(config, origin)).time_source(Arc::new(FixedDate));
            server = Some(Arc::new(made));
        } else {
            let tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider));
            let tls = or_fail("TLS 1.3", tls.with_protocol_versions(&versions));
            let tls = tls.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)));
            let mut tls = tls.with_no_client_auth();
            tls.alpn_protocols = vec![host::PROTOCOL.to_vec()];
            if let Some(log) = secret_log(config) {
                tls.key_log = log;
            }
            let crypto = or_fail("TLS 1.3", QuicClientConfig::try_from(tls));
            let crypto = CountedClient::new(Arc::new(crypto), Arc::clone(&counts));
            let mut made = ClientConfig::new(Arc::new(crypto));
            made.transport_config(transport(config, origin));
            let first = ConnectionId::new(&first[..ID]);
            made.initial_dst_cid_provider(Arc::new(move || first));
            client = Some(made);
        }
        Self {
            origin,
            endpoint: Endpoint::new(Arc::new(endpoint), server, true, None),
            client,
            connection: None,
            stream: None,
            server: config.server,
            peer: config.addresses()[1],
            payload: config.payload,
            answers: VecDeque::new(),
            counts,
            handshaken: false,
            events: Events::default(),
        }
    }

    fn at(&self, now: u64) -> Instant {
        self.origin + Duration::from_nanos(now)
    }

    /// Passes events between endpoint and connection.
    fn process_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.handshaken = true,
                Event::ConnectionLost { .. } => self.events.over = true,
                Event::Stream(StreamEvent::Finished { .. }) => self.events.finished = true,
                _ => {}
            }
        }
        if self.handshaken && self.stream.is_none() {
            let mut streams = connection.streams();
            self.stream = if self.server { streams.accept(Dir::Bi) } else { streams.open(Dir::Bi) };
        }
        self.events.connected = self.handshaken;
    }
}

impl Stack for Quinn {
    fn open(&mut self, now: u64) {
        let at = self.at(now);
        if let Some(config) = self.client.take() {
            self.connection = Some(or_fail("connect", self.endpoint.connect(at, config, self.peer, "server")));
        }
        self.process_events();
    }

    fn receive(&mut self, now: u64, ecn: u8, bytes: &mut [u8]) {
        let at = self.at(now);
        let mut answer = Vec::new();
        let event = self.endpoint.handle(at, self.peer, None, EcnCodepoint::from_bits(ecn), (&*bytes).into(), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, at, &mut answer, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => {
                        self.answers.extend(error.response.map(|_| answer));
                        self.events.over = true;
                    }
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) => self.answers.push_back(answer),
            None => {}
        }
        self.process_events();
    }

    fn handle_timeout(&mut self, now: u64) {
        let at = self.at(now);
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|due| due <= at)
        {
            connection.handle_timeout(at);
        }
        self.process_events();
    }

    fn reset(&mut self, now: u64) {
        let at = self.at(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.close(at, VarInt::from_u32(0), Bytes::new());
        }
    }

    fn write(&mut self, bytes: usize) -> usize {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else { return 0 };
        let chunk = &host::ZEROS[..bytes.min(host::ZEROS.len())];
        let written = connection.send_stream(stream).write_chunks(&mut [Bytes::from_static(chunk)]);
        written.map_or(0, |written| written.bytes)
    }

    fn finish(&mut self) -> bool {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else { return false };
        // An error means that the stream is finished or stopped already.
        let _ = connection.send_stream(stream).finish();
        true
    }

    fn read(&mut self, most: usize) -> (usize, bool) {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else { return (0, false) };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return (0, false) };
        let (mut read, mut ended) = (0, false);
        while read < most {
            match chunks.next(most - read) {
                Ok(Some(chunk)) => read += chunk.bytes.len(),
                Ok(None) => {
                    ended = true;
                    break;
                }
                Err(_) => break,
            }
        }
        // MAX_DATA that is due leaves with the next datagrams.
        let _ = chunks.finalize();
        (read, ended)
    }

    fn transmit(&mut self, now: u64, into: &mut Vec<Datagram>) {
        let at = self.at(now);
        for bytes in self.answers.drain(..) {
            into.push(Datagram { ecn: 0, stream: 0, bytes });
        }
        while let Some((_, connection)) = &mut self.connection {
            let mut buffer = Vec::new();
            let Some(sent) = connection.poll_transmit(at, SEGMENTS, &mut buffer) else { break };
            for bytes in buffer[..sent.size].chunks(sent.segment_size.unwrap_or(sent.size).max(1)) {
                let stream = self.counts.lock().map_or(0, |mut counts| counts.datagram(bytes.len()));
                // A probe of the path MTU above the interface's: the socket refuses it.
                if bytes.len() <= self.payload {
                    let ecn = sent.ecn.map_or(0, |ecn| ecn as u8);
                    into.push(Datagram { ecn, stream, bytes: bytes.to_vec() });
                }
            }
        }
        self.process_events();
    }

    fn events(&mut self) -> Events {
        self.events
    }

    fn deadline(&mut self) -> Option<u64> {
        let at = self.connection.as_mut()?.1.poll_timeout()?;
        Some(at.saturating_duration_since(self.origin).as_nanos() as u64)
    }

    fn state(&mut self) -> State {
        let (data, retransmitted) = self.counts.lock().map_or((0, 0), |counts| (counts.data, counts.retransmitted));
        let counted = State { data, retransmitted, ..State::default() };
        let Some((_, connection)) = &self.connection else { return counted };
        let path = connection.stats().path;
        // Before the first sample quinn has its initial value.
        let of = |span: Duration| if self.handshaken { span.as_nanos() as u64 } else { 0 };
        State {
            cwnd: path.cwnd,
            datagram: path.current_mtu.into(),
            srtt_ns: of(path.rtt),
            min_rtt_ns: of(path.min_rtt),
            lost: path.lost_packets,
            ..counted
        }
    }

    fn end(&mut self, now: u64) {
        self.reset(now);
        self.transmit(now, &mut Vec::new());
    }
}

fn main() {
    host::run(|_| {}, Quinn::new);
}
