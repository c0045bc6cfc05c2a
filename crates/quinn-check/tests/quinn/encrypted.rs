//! Encrypted packets of quinn-proto as a capture, the golden file of the reader of QUIC without keys.
//!
//! The client asks for 60 kB, three times, over 20 ms each way and 10 Mbit/s from the server. After the second
//! answer a NAT gives the client another port. Captured at the client. TLS draws random numbers, so each run
//! writes other bytes, and the file is written only when asked for:
//!
//!     cargo test -p ackclock-quinn-check -- --ignored golden_capture

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use bytes::BytesMut;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir as Streams, Endpoint,
    EndpointConfig, Event, ServerConfig, StreamId, TransportConfig, VarInt,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{KeyLog, NoKeyLog, RootCertStore};
use trace::pcapng::{
    InterfaceId, PacketDirection, PacketMeta, PcapngInterface, PcapngSection, PcapngWriter,
};
use units::{Duration, Instant};

pub(super) type Clock = std::time::Instant;

pub(super) const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 2), 443);
pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Ports of the client before and after the NAT's change.
const PORTS: [u16; 2] = [50_000, 50_123];
const ONE_WAY: StdDuration = StdDuration::from_millis(20);
/// Time of a byte at 10 Mbit/s.
const BYTE: StdDuration = StdDuration::from_nanos(800);
const ANSWER: usize = 60_000;
const ANSWERS: usize = 3;
/// Pause of the client between its requests.
const PAUSE: StdDuration = StdDuration::from_millis(500);

pub(super) struct Peer {
    endpoint: Endpoint,
    pub(super) connection: Option<(ConnectionHandle, Connection)>,
    /// It asks clients for a token, with a Retry.
    pub(super) retries: bool,
    /// Datagrams that belong to no connection.
    pub(super) answers: Vec<Vec<u8>>,
}

/// A datagram on its way: arrival, sender, bytes.
pub(super) type Flight = (Clock, SocketAddr, Vec<u8>);

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.enable_segmentation_offload(false).allow_spin(true);
    config.max_idle_timeout(Some(VarInt::from_u32(5_000).into()));
    Arc::new(config)
}

fn peers(now: Clock) -> [Peer; 2] {
    peers_with(now, ring::default_provider(), Arc::new(NoKeyLog), [transport(), transport()])
}

/// A client and a server with this cryptography, the client's key log, and the settings of both.
pub(super) fn peers_with(
    now: Clock,
    provider: CryptoProvider,
    keys: Arc<dyn KeyLog>,
    [of_client, of_server]: [Arc<TransportConfig>; 2],
) -> [Peer; 2] {
    let made = rcgen::generate_simple_self_signed(["server".to_owned()]).unwrap();
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(provider);
    let versions = [&rustls::version::TLS13];
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let mut client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.key_log = keys;
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let server = QuicServerConfig::try_from(server).unwrap();
    let mut server = ServerConfig::with_crypto(Arc::new(server));
    server.transport_config(of_server).migration(true);
    let client = QuicClientConfig::try_from(client).unwrap();
    let mut config = ClientConfig::new(Arc::new(client));
    config.transport_config(of_client);
    let endpoint = |server| {
        // Identifiers and the length of a key phase are drawn.
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([7; 32]));
        Endpoint::new(Arc::new(config), server, true, None)
    };
    let peer =
        |endpoint, connection| Peer { endpoint, connection, retries: false, answers: Vec::new() };
    let mut opener = endpoint(None);
    let opened = opener.connect(now, config, SERVER.into(), "server").unwrap();
    let accepts = endpoint(Some(Arc::new(server)));
    [peer(opener, Some(opened)), peer(accepts, None)]
}

impl Peer {
    pub(super) fn receive(&mut self, now: Clock, from: SocketAddr, datagram: &[u8]) {
        let mut answer = Vec::new();
        let event =
            self.endpoint.handle(now, from, None, None, BytesMut::from(datagram), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming))
                if self.retries && !incoming.remote_address_validated() =>
            {
                let _ = self.endpoint.retry(incoming, &mut answer).expect("it has no token");
                self.answers.push(answer);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, now, &mut answer, None).ok();
            }
            _ => {}
        }
    }

    /// Processes timers and events.
    pub(super) fn act(&mut self, now: Clock) -> Option<&mut Connection> {
        let (handle, connection) = self.connection.as_mut()?;
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            if let Event::ConnectionLost { reason } = event {
                panic!("the connection was lost: {reason}");
            }
        }
        (!connection.is_handshaking()).then_some(connection)
    }
}

/// The client: a request on a stream of its own, the next one a pause after its answer.
struct Requests {
    stream: Option<StreamId>,
    next: Clock,
    answered: usize,
}

impl Requests {
    fn act(&mut self, now: Clock, connection: &mut Connection) {
        if let Some(stream) = self.stream {
            let mut reading = connection.recv_stream(stream);
            let Ok(mut chunks) = reading.read(true) else { return };
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        self.stream = None;
                        self.answered += 1;
                        self.next = now + PAUSE;
                        break;
                    }
                    Err(_) => break,
                }
            }
            let _ = chunks.finalize();
        } else if self.answered < ANSWERS && now >= self.next {
            let stream = connection.streams().open(Streams::Bi).unwrap();
            let mut writing = connection.send_stream(stream);
            writing.write(b"send it").unwrap();
            writing.finish().unwrap();
            self.stream = Some(stream);
        }
    }
}

/// The server: answers each stream.
#[derive(Default)]
struct Answers(Vec<(StreamId, usize)>);

impl Answers {
    fn act(&mut self, connection: &mut Connection) {
        while let Some(stream) = connection.streams().accept(Streams::Bi) {
            self.0.push((stream, ANSWER));
        }
        for (stream, left) in &mut self.0 {
            let mut writing = connection.send_stream(*stream);
            while *left > 0
                && let Ok(taken) = writing.write(&[0; 4_096][..(*left).min(4_096)])
            {
                *left -= taken;
                if *left == 0 {
                    writing.finish().unwrap();
                }
            }
        }
    }
}

/// The capture at the client.
pub(super) struct Tap {
    pub(super) writer: PcapngWriter<Vec<u8>>,
    tap: InterfaceId,
    begin: Clock,
}

impl Tap {
    pub(super) fn new(begin: Clock) -> Self {
        let section =
            PcapngSection { epoch: Duration::from_secs(1_795_000_000), ..PcapngSection::default() };
        let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
        let interface = PcapngInterface { name: "client", ..PcapngInterface::default() };
        let tap = writer.add_interface(&interface).unwrap();
        Self { writer, tap, begin }
    }

    pub(super) fn see(&mut self, at: Clock, src: SocketAddr, dst: SocketAddr, payload: &[u8]) {
        let at = Instant::from_nanos(at.duration_since(self.begin).as_nanos() as u64);
        let builder = etherparse::PacketBuilder::ipv4(v4(src).octets(), v4(dst).octets(), 64)
            .udp(src.port(), dst.port());
        let mut packet = Vec::new();
        builder.write(&mut packet, payload).unwrap();
        let way = if v4(src) == CLIENT { PacketDirection::Out } else { PacketDirection::In };
        self.writer.packet(PacketMeta { tap: self.tap, at, way }, &packet).unwrap();
    }
}

fn v4(address: SocketAddr) -> Ipv4Addr {
    match address {
        SocketAddr::V4(address) => *address.ip(),
        SocketAddr::V6(_) => panic!("only IPv4 is used"),
    }
}

#[test]
#[ignore = "writes golden/quic/quinn-rebinding.pcapng"]
#[expect(clippy::disallowed_methods, reason = "an origin, and a file that is asked for")]
fn golden_capture() {
    let begin = Clock::now();
    let [mut client, mut server] = peers(begin);
    let mut tap = Tap::new(begin);
    let mut requests = Requests { stream: None, next: begin, answered: 0 };
    let mut answers = Answers::default();
    let (mut to_server, mut to_client) = (VecDeque::<Flight>::new(), VecDeque::<Flight>::new());
    let mut link_free = begin;
    let mut now = begin;
    while requests.answered < ANSWERS {
        let port = PORTS[usize::from(requests.answered >= 2)];
        let here = SocketAddr::from((CLIENT, port));
        while let Some((_, from, datagram)) = to_server.pop_front_if(|(at, ..)| *at <= now) {
            server.receive(now, from, &datagram);
        }
        while let Some((_, from, datagram)) = to_client.pop_front_if(|(at, ..)| *at <= now) {
            tap.see(now, from, here, &datagram);
            client.receive(now, from, &datagram);
        }
        if let Some(connection) = client.act(now) {
            requests.act(now, connection);
        }
        if let Some(connection) = server.act(now) {
            answers.act(connection);
        }
        let mut buffer = Vec::new();
        while let Some((_, connection)) = &mut client.connection
            && connection.poll_transmit(now, 1, &mut buffer).is_some()
        {
            let datagram = core::mem::take(&mut buffer);
            tap.see(now, here, SERVER.into(), &datagram);
            to_server.push_back((now + ONE_WAY, here, datagram));
        }
        while let Some((_, connection)) = &mut server.connection
            && connection.poll_transmit(now, 1, &mut buffer).is_some()
        {
            let datagram = core::mem::take(&mut buffer);
            link_free = link_free.max(now) + BYTE * (datagram.len() as u32 + 28);
            to_client.push_back((link_free + ONE_WAY, SERVER.into(), datagram));
        }
        let timers = [&mut client, &mut server].into_iter().filter_map(|peer| {
            peer.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout())
        });
        let flights = [to_server.front(), to_client.front()].into_iter().flatten();
        let pause = (requests.stream.is_none() && requests.answered > 0).then_some(requests.next);
        let next = timers.chain(flights.map(|(at, ..)| *at)).chain(pause.filter(|at| *at > now));
        now = now.max(next.min().expect("something is due"));
    }
    let file = tap.writer.finish().unwrap();
    let to = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/quic/quinn-rebinding.pcapng");
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::write(to, file).unwrap();
}
