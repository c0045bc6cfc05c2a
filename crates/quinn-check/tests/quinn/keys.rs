//! Encrypted captures of quinn-proto with the secrets that rustls writes: what the capture shows with them is what the
//! stack itself counts, and the verdict is the fault of the path or of the application.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration as StdDuration;

use diagnose::AnalysisSettings;
use diagnose::quic::QuicDiagnosis;
use ingest::inputs::{InputFile, KeyLog as Secrets, QuicConnection, ReadMode, read_with};
use quinn_proto::{Dir as Streams, TransportConfig, VarInt};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, KeyLog};

use super::encrypted::{CLIENT, Clock, Flight, SERVER, Tap, peers_with};

/// The lines of a key log.
#[derive(Debug, Default)]
struct KeyLines(Mutex<String>);

impl KeyLog for KeyLines {
    fn log(&self, label: &str, random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| {
            bytes.iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        };
        let mut lines = self.0.lock().unwrap();
        let _ = writeln!(lines, "{label} {} {}", hex(random), hex(secret));
    }
}

/// A transfer from the server, 20 ms each way, at 10 Mbit/s.
struct Run {
    suite: CipherSuite,
    /// Bytes of each answer, and their number.
    answers: (usize, usize),
    /// The client waits before each request.
    pause: StdDuration,
    /// Every packet with data whose number is a multiple is lost.
    loses: Option<u64>,
    /// The client's window for a stream.
    window: Option<u32>,
    /// The server updates its keys after this number of datagrams.
    updates_after: Option<usize>,
    /// The client has another port from this answer on.
    moves: Option<usize>,
    /// The server asks for a token first.
    retries: bool,
    /// Captured at the server.
    at_server: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            suite: CipherSuite::TLS13_AES_128_GCM_SHA256,
            answers: (1_000_000, 1),
            pause: StdDuration::ZERO,
            loses: None,
            window: None,
            updates_after: None,
            moves: None,
            retries: false,
            at_server: true,
        }
    }
}

/// What was captured, and what the server counted.
struct Recorded {
    capture: Vec<u8>,
    keys: String,
    lost: u64,
    sent: u64,
}

const ONE_WAY: StdDuration = StdDuration::from_millis(20);
/// Time of a byte at 10 Mbit/s.
const BYTE: StdDuration = StdDuration::from_nanos(800);

#[expect(clippy::disallowed_methods, reason = "an origin: only differences matter")]
fn record(run: &Run) -> Recorded {
    let begin = Clock::now();
    let mut provider: CryptoProvider = ring::default_provider();
    provider.cipher_suites.retain(|suite| {
        // Initial packets need the first one (RFC 9001 section 5.2).
        let suite = suite.suite();
        suite == run.suite || suite == CipherSuite::TLS13_AES_128_GCM_SHA256
    });
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != run.suite);
    let keys = Arc::new(KeyLines::default());
    let mut of_client = TransportConfig::default();
    of_client.enable_segmentation_offload(false);
    if let Some(window) = run.window {
        of_client.stream_receive_window(VarInt::from_u32(window));
    }
    let mut of_server = TransportConfig::default();
    of_server.enable_segmentation_offload(false);
    let settings = [Arc::new(of_client), Arc::new(of_server)];
    let log: Arc<dyn KeyLog> = Arc::<KeyLines>::clone(&keys);
    let [mut client, mut server] = peers_with(begin, provider, log, settings);
    server.retries = run.retries;
    let mut tap = Tap::new(begin);
    let (mut to_server, mut to_client) = (VecDeque::<Flight>::new(), VecDeque::<Flight>::new());
    let (mut link_free, mut now) = (begin, begin);
    let (mut asked, mut answered, mut next_request) = (None, 0, begin);
    let mut answers = Vec::new();
    let (mut datagrams, mut updated) = (0, false);
    while answered < run.answers.1 {
        let port = if run.moves.is_some_and(|from| answered >= from) { 50_123 } else { 50_000 };
        let here = SocketAddr::from((CLIENT, port));
        while let Some((_, from, datagram)) = to_server.pop_front_if(|(at, ..)| *at <= now) {
            if run.at_server {
                tap.see(now, from, SERVER.into(), &datagram);
            }
            server.receive(now, from, &datagram);
            for answer in server.answers.drain(..) {
                if run.at_server {
                    tap.see(now, SERVER.into(), from, &answer);
                }
                to_client.push_back((now + ONE_WAY, SERVER.into(), answer));
            }
        }
        while let Some((_, from, datagram)) = to_client.pop_front_if(|(at, ..)| *at <= now) {
            if !run.at_server {
                tap.see(now, from, here, &datagram);
            }
            client.receive(now, from, &datagram);
        }
        if let Some(connection) = client.act(now) {
            match asked {
                None if now >= next_request => {
                    let stream = connection.streams().open(Streams::Bi).unwrap();
                    let mut writing = connection.send_stream(stream);
                    writing.write(b"send it").unwrap();
                    writing.finish().unwrap();
                    asked = Some(stream);
                }
                None => {}
                Some(stream) => {
                    let mut reading = connection.recv_stream(stream);
                    let mut chunks = reading.read(true).unwrap();
                    while let Ok(chunk) = chunks.next(usize::MAX) {
                        if chunk.is_none() {
                            (asked, next_request) = (None, now + run.pause);
                            answered += 1;
                            break;
                        }
                    }
                    let _ = chunks.finalize();
                }
            }
        }
        if let Some(connection) = server.act(now) {
            while let Some(stream) = connection.streams().accept(Streams::Bi) {
                answers.push((stream, run.answers.0));
            }
            for (stream, left) in &mut answers {
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
            if run.updates_after.is_some_and(|after| datagrams > after) && !updated {
                connection.force_key_update();
                updated = true;
            }
        }
        let mut buffer = Vec::new();
        while let Some((_, connection)) = &mut client.connection
            && connection.poll_transmit(now, 1, &mut buffer).is_some()
        {
            let datagram = core::mem::take(&mut buffer);
            if !run.at_server {
                tap.see(now, here, SERVER.into(), &datagram);
            }
            to_server.push_back((now + ONE_WAY, here, datagram));
        }
        while let Some((_, connection)) = &mut server.connection
            && connection.poll_transmit(now, 1, &mut buffer).is_some()
        {
            let datagram = core::mem::take(&mut buffer);
            if run.at_server {
                tap.see(now, SERVER.into(), here, &datagram);
            }
            datagrams += 1;
            if datagram.len() > 1_000
                && run.loses.is_some_and(|every| (datagrams as u64).is_multiple_of(every))
            {
                continue;
            }
            link_free = link_free.max(now) + BYTE * (datagram.len() as u32 + 28);
            to_client.push_back((link_free + ONE_WAY, SERVER.into(), datagram));
        }
        let timers = [&mut client, &mut server].into_iter().filter_map(|peer| {
            peer.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout())
        });
        let flights = [to_server.front(), to_client.front()].into_iter().flatten();
        let pause = asked.is_none().then_some(next_request).filter(|at| *at > now);
        let next = timers.chain(flights.map(|(at, ..)| *at)).chain(pause);
        if let Some(next) = next.min() {
            now = now.max(next);
        }
    }
    let stats = server.connection.as_ref().unwrap().1.stats();
    let keys = keys.0.lock().unwrap().clone();
    let capture = tap.writer.finish().unwrap();
    Recorded { capture, keys, lost: stats.path.lost_packets, sent: stats.path.sent_packets }
}

/// The connection of a capture with its secrets.
fn read(recorded: &Recorded) -> QuicConnection {
    let source = InputFile { name: "capture".to_owned(), bytes: Box::new(&recorded.capture[..]) };
    let keys = Secrets::parse(recorded.keys.as_bytes()).unwrap();
    let mode = ReadMode { keys, ..ReadMode::default() };
    let reading = read_with(vec![source], AnalysisSettings::default(), mode).unwrap();
    assert_eq!(reading.captured_quic.len(), 1);
    let [connection] = &reading.quic[..] else { panic!("{:?}", reading.quic.len()) };
    assert_eq!(connection.decrypted.unwrap().failed, 0);
    connection.clone()
}

#[test]
fn losses_are_those_that_the_stack_counts_with_every_suite_and_a_key_update() {
    for suite in [
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    ] {
        let run = Run { suite, loses: Some(60), updates_after: Some(300), ..Run::default() };
        let recorded = record(&run);
        let connection = read(&recorded);
        let analysis = &connection.analysis;
        // One is forced; the stack makes its first after 10 to 999 packets, as it draws.
        let updates = connection.decrypted.unwrap().key_updates;
        assert!((1..=2).contains(&updates), "{suite:?}: {updates}");
        assert_eq!((analysis.client, analysis.is_sender()), (Some(false), true));
        assert_eq!((analysis.bytes(), analysis.sent), (1_000_000, recorded.sent), "{suite:?}");
        let lost = analysis.all_lost();
        assert!(
            recorded.lost > 10 && lost.abs_diff(recorded.lost) <= 1,
            "{lost}, {}",
            recorded.lost
        );
        assert_eq!(QuicDiagnosis::of(analysis).primary, Some("CC811"), "{suite:?}");
    }
}

#[test]
fn a_small_window_of_a_stream_is_the_receivers_limit_at_either_end() {
    for at_server in [true, false] {
        let run = Run { window: Some(16_000), answers: (400_000, 1), at_server, ..Run::default() };
        let connection = read(&record(&run));
        assert_eq!(connection.analysis.client, Some(!at_server));
        let diagnosis = QuicDiagnosis::of(&connection.analysis);
        if at_server {
            assert_eq!(diagnosis.primary, Some("CC822"), "{:?}", diagnosis.findings);
        }
    }
}

#[test]
fn a_client_that_waits_is_named_at_either_end_also_when_its_port_changes() {
    for at_server in [true, false] {
        let run = Run {
            answers: (40_000, 8),
            pause: StdDuration::from_millis(400),
            moves: Some(4),
            at_server,
            ..Run::default()
        };
        let connection = read(&record(&run));
        assert_eq!(connection.analysis.bytes(), 320_000);
        let diagnosis = QuicDiagnosis::of(&connection.analysis);
        let first = &diagnosis.findings[0];
        assert_eq!((first.code, first.kind), ("CC831", "think-client"), "{:?}", diagnosis.findings);
    }
}

/// After a Retry the Initial packets have other keys and the server another connection ID (RFC 9001 section 5.2).
#[test]
fn a_retry_is_seen_and_all_after_it_is_decrypted() {
    for at_server in [true, false] {
        let run = Run { answers: (100_000, 1), retries: true, at_server, ..Run::default() };
        let recorded = record(&run);
        let connection = read(&recorded);
        let analysis = &connection.analysis;
        assert_eq!((analysis.client, analysis.bytes()), (Some(!at_server), 100_000));
        if at_server {
            // The Retry is none of the connection's.
            assert_eq!(analysis.sent, recorded.sent + 1);
        } else {
            assert_eq!(analysis.handshake.retries, 1);
            let diagnosis = QuicDiagnosis::of(analysis);
            let found = diagnosis.findings.iter().find(|found| found.code == "CC801").unwrap();
            assert!(found.title.contains("1 Retry"), "{}", found.title);
        }
    }
}

#[test]
fn secrets_inside_the_capture_are_used() {
    let recorded = record(&Run { answers: (100_000, 1), ..Run::default() });
    // A block of decryption secrets after the section header and the interface (draft-ietf-opsawg-pcapng section 4.7).
    let word = |at: usize| u32::from_le_bytes(recorded.capture[at..at + 4].try_into().unwrap());
    let after_section = word(4) as usize;
    let at = after_section + word(after_section + 4) as usize;
    let mut secrets = recorded.keys.clone().into_bytes();
    let len = secrets.len() as u32;
    secrets.resize(secrets.len().next_multiple_of(4), 0);
    let total = (20 + secrets.len()) as u32;
    let words = [10, total, 0x544c_534b, len].map(u32::to_le_bytes).concat();
    let block = [&words[..], &secrets, &total.to_le_bytes()].concat();
    let capture = [&recorded.capture[..at], &block, &recorded.capture[at..]].concat();
    let source = InputFile { name: "capture".to_owned(), bytes: Box::new(&capture[..]) };
    let reading =
        read_with(vec![source], AnalysisSettings::default(), ReadMode::default()).unwrap();
    assert_eq!(reading.quic[0].analysis.bytes(), 100_000);
    // Other secrets read nothing.
    let other = record(&Run { answers: (1_000, 1), ..Run::default() });
    let mixed = Recorded { keys: other.keys, ..recorded };
    let source = InputFile { name: "capture".to_owned(), bytes: Box::new(&mixed.capture[..]) };
    let mode =
        ReadMode { keys: Secrets::parse(mixed.keys.as_bytes()).unwrap(), ..ReadMode::default() };
    let reading = read_with(vec![source], AnalysisSettings::default(), mode).unwrap();
    assert!(reading.quic.is_empty() && reading.captured_quic.len() == 1);
}

/// TLS draws random numbers, so each run writes other bytes, and the files are written only when asked for:
///
///     cargo test -p ackclock-quinn-check -- --ignored golden_keys
#[test]
#[ignore = "writes golden/quic/quinn-keys.pcapng and its key log"]
fn golden_keys() {
    let run = Run { answers: (150_000, 1), loses: Some(25), ..Run::default() };
    let recorded = record(&run);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/quic");
    std::fs::write(folder.join("quinn-keys.pcapng"), &recorded.capture).unwrap();
    std::fs::write(folder.join("quinn-keys.keys"), &recorded.keys).unwrap();
}
