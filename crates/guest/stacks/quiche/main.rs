//! quiche as a host of Ackclock in virtual time.
//!
//! quiche has no sockets, and takes the time from the operating system: `clock_gettime` of this process returns the time
//! of the message. Packets that quiche wants to be sent later wait here, as in a queue with SO_TXTIME. Windows of flow
//! control are those of its own client and server. docs/guests.md has the messages.

mod frames;
mod host;
mod virtual_time;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod, SslSignatureAlgorithm};
use boring::x509::X509;

use frames::Counts;
use host::{Config, Datagram, Events, Stack, State, fail};

/// The one stream.
const STREAM: u64 = 0;
/// Bytes of a connection ID.
const ID: usize = 16;
/// Bytes of the largest datagram.
const LARGEST: usize = 1 << 16;

/// quiche's log: each record is read for its stream frames, and written to a file if the simulator asks for one.
struct Log {
    record: Vec<u8>,
    counts: Arc<Mutex<Counts>>,
    file: Option<BufWriter<File>>,
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.record.push(byte);
            if byte == b'\n' {
                self.read_record();
                self.record.clear();
            }
        }
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Returns the number after a name.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(name)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

impl Log {
    fn read_record(&mut self) {
        let text = String::from_utf8_lossy(&self.record);
        if !text.contains("packet_sent\"") {
            return;
        }
        let length = number_after(&text, "\"raw\":{\"length\":").unwrap_or(1) as usize;
        let streams = text.split("\"frame_type\":\"stream\"").skip(1).filter_map(|frame| {
            let frame = frame.split("\"frame_type\"").next().unwrap_or(frame);
            let bytes = number_after(frame, "\"payload_length\":").or_else(|| number_after(frame, "\"length\":"))?;
            Some((number_after(frame, "\"offset\":").unwrap_or(0), bytes))
        });
        if let Ok(mut counts) = self.counts.lock() {
            counts.packet(length, streams);
        }
    }
}

struct Quiche {
    config: quiche::Config,
    host: Config,
    own: SocketAddr,
    peer: SocketAddr,
    connection: Option<quiche::Connection>,
    counts: Arc<Mutex<Counts>>,
    /// Datagrams by the time and order in which they leave.
    waiting: BTreeMap<(u64, u64), Datagram>,
    made: u64,
    /// The stream exists.
    opened: bool,
    events: Events,
}

fn or_fail<T, E: std::fmt::Debug>(what: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| fail(&format!("{what}: {error:?}")))
}

impl Quiche {
    fn new(host: &Config) -> Self {
        virtual_time::seed(host.seed);
        let mut tls = or_fail("TLS", SslContextBuilder::new(SslMethod::tls()));
        if host.server {
            let certificate = or_fail("the certificate", X509::from_pem(host::CERTIFICATE.as_bytes()));
            let key = or_fail("the key", PKey::private_key_from_pem(host::KEY.as_bytes()));
            or_fail("the certificate", tls.set_certificate(&certificate));
            or_fail("the key", tls.set_private_key(&key));
        } else {
            let accepted = [SslSignatureAlgorithm::ED25519, SslSignatureAlgorithm::ECDSA_SECP256R1_SHA256];
            or_fail("signatures", tls.set_verify_algorithm_prefs(&accepted));
        }
        let mut config = or_fail("config", quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls));
        config.verify_peer(false);
        or_fail("ALPN", config.set_application_protos(&[host::PROTOCOL]));
        or_fail("congestion control", config.set_cc_algorithm_name(&host.cc));
        // `args.rs` of quiche's apps.
        config.set_max_idle_timeout(30_000);
        config.set_initial_max_data(10_000_000);
        config.set_max_connection_window(25_165_824);
        config.set_initial_max_stream_data_bidi_local(1_000_000);
        config.set_initial_max_stream_data_bidi_remote(1_000_000);
        config.set_max_stream_window(16_777_216);
        config.set_initial_max_streams_bidi(100);
        let [own, peer] = host.addresses();
        Self {
            config,
            host: Config { cc: host.cc.clone(), log: host.log.clone(), keys: host.keys.clone(), ..*host },
            own,
            peer,
            connection: None,
            counts: Arc::new(Mutex::new(Counts::default())),
            waiting: BTreeMap::new(),
            made: 0,
            opened: false,
            events: Events::default(),
        }
    }

    fn begin(&mut self, mut connection: quiche::Connection) {
        let file = self.host.log.as_ref().map(|path| BufWriter::new(or_fail("the log", File::create(path))));
        let log = Log { record: Vec::new(), counts: Arc::clone(&self.counts), file };
        let side = if self.host.server { "server" } else { "client" };
        connection.set_qlog(Box::new(log), format!("quiche {side}"), side.to_owned());
        self.connection = Some(connection);
    }

    fn id(&self) -> quiche::ConnectionId<'static> {
        quiche::ConnectionId::from_vec(self.host.seed[..ID].to_vec())
    }
}

impl Stack for Quiche {
    fn open(&mut self, _: u64) {
        let id = self.id();
        let made = quiche::connect(Some("server"), &id, self.own, self.peer, &mut self.config);
        self.begin(or_fail("connect", made));
    }

    fn receive(&mut self, _: u64, ecn: u8, bytes: &mut [u8]) {
        let _ = ecn;
        if self.connection.is_none() {
            let id = self.id();
            let made = quiche::accept(&id, None, self.own, self.peer, &mut self.config);
            self.begin(or_fail("accept", made));
        }
        if let Some(connection) = &mut self.connection {
            // A datagram that it cannot process changes nothing that is not in its state.
            let _ = connection.recv(bytes, quiche::RecvInfo { from: self.peer, to: self.own });
        }
    }

    fn handle_timeout(&mut self, _: u64) {
        if let Some(connection) = &mut self.connection
            && connection.timeout_instant().is_some_and(|due| due <= Instant::now())
        {
            connection.on_timeout();
        }
    }

    fn reset(&mut self, _: u64) {
        if let Some(connection) = &mut self.connection {
            let _ = connection.close(true, 0, b"");
        }
    }

    fn write(&mut self, bytes: usize) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        let written = connection.stream_send(STREAM, &host::ZEROS[..bytes.min(host::ZEROS.len())], false);
        self.opened |= written.is_ok();
        written.unwrap_or(0)
    }

    fn finish(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        let finished = connection.stream_send(STREAM, b"", true).is_ok();
        self.opened |= finished;
        finished
    }

    fn read(&mut self, most: usize) -> (usize, bool) {
        let Some(connection) = &mut self.connection else { return (0, false) };
        let mut buffer = [0; 32 << 10];
        let (mut read, mut ended) = (0, false);
        while read < most && !ended {
            match connection.stream_recv(STREAM, &mut buffer[..most.min(32 << 10) - read]) {
                Ok((bytes, end)) => (read, ended) = (read + bytes, end),
                Err(_) => break,
            }
        }
        self.opened |= read > 0;
        (read, ended)
    }

    fn transmit(&mut self, now: u64, into: &mut Vec<Datagram>) {
        let mut buffer = vec![0; LARGEST];
        if let Some(connection) = &mut self.connection {
            while let Ok((length, info)) = connection.send(&mut buffer) {
                let stream = self.counts.lock().map_or(0, |mut counts| counts.datagram(length));
                let at = virtual_time::nanos_of(info.at).max(now);
                self.made += 1;
                if length <= self.host.payload {
                    let datagram = Datagram { ecn: 0, stream, bytes: buffer[..length].to_vec() };
                    self.waiting.insert((at, self.made), datagram);
                }
            }
        }
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            into.push(first.remove());
        }
    }

    fn events(&mut self) -> Events {
        if let Some(connection) = &mut self.connection {
            self.events.connected = connection.is_established();
            self.events.over = connection.is_closed();
            // A stream is forgotten when both of its sides are complete.
            let state = connection.stream_capacity(STREAM);
            self.events.finished = self.opened && matches!(state, Err(quiche::Error::InvalidStreamState(_)));
        }
        self.events
    }

    fn deadline(&mut self) -> Option<u64> {
        let timer = self.connection.as_ref().and_then(quiche::Connection::timeout_instant);
        let timer = timer.map(virtual_time::nanos_of);
        let waiting = self.waiting.first_key_value().map(|(key, _)| key.0);
        timer.into_iter().chain(waiting).min()
    }

    fn state(&mut self) -> State {
        let (data, retransmitted) = self.counts.lock().map_or((0, 0), |counts| (counts.data, counts.retransmitted));
        let counted = State { data, retransmitted, ..State::default() };
        let Some(path) = self.connection.as_ref().and_then(|one| one.path_stats().next()) else { return counted };
        let measured = path.min_rtt.is_some();
        State {
            cwnd: path.cwnd as u64,
            datagram: path.pmtu as u64,
            srtt_ns: if measured { path.rtt.as_nanos() as u64 } else { 0 },
            min_rtt_ns: path.min_rtt.map_or(0, |rtt| rtt.as_nanos() as u64),
            lost: path.lost as u64,
            ..counted
        }
    }

    fn end(&mut self, now: u64) {
        self.reset(now);
        self.transmit(now, &mut Vec::new());
    }
}

fn main() {
    host::run(virtual_time::set, Quiche::new);
}
