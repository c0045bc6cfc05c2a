//! Reads the QUIC sessions of Chromium's NetLog (chrome://net-export, `--log-net-log`).
//!
//! A NetLog is one JSON object: `constants` with the numbers of event types, then `events`, of all
//! sources of the browser. Frames are logged before the packet that they are sent in, and after the
//! packet that they arrive in. It has no congestion window. Times are milliseconds. The file of a
//! browser that did not exit lacks its end; what precedes it is read. Tools that rewrite the file
//! may put `constants` last; events are held back until they are known.
//!
//! Google's own QUIC (versions up to Q050), also of its servers, differs: stream 1 carries the handshake
//! (CHLO, REJ, SHLO) instead of CRYPTO frames, headers do not show the encryption level, stream 0 of a
//! window update is the connection.
//!
//! Sources: `net/log/net_log_event_type_list.h`, `net/quic/quic_event_logger.cc` of Chromium;
//! "QUIC Crypto" (A. Langley, W.-T. Chang, 2016).

use core::fmt;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use diagnose::quic::QuicAnalyzer;
use diagnose::quic::record::{
    QuicFrame, QuicLossTrigger, QuicPacketKind, QuicPacketRecord, QuicRecord,
};
use logs::qlog::Vantage;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::quic::QuicConnection;
use super::{File, Reason};

const NANOS_PER_MS: u64 = 1_000_000;
const NANOS_PER_US: u64 = 1_000;
/// Most missing packets taken from an ACK frame.
const MAX_MISSING: usize = 1 << 16;
/// Most events held back until `constants`.
const MAX_HELD: usize = 1 << 18;
/// The stream of the handshake in Google's QUIC; in HTTP/3 it is never used (RFC 9114 section 6.1).
const GOOGLE_CRYPTO: u64 = 1;

#[derive(Deserialize)]
struct Constants {
    #[serde(rename = "logEventTypes")]
    types: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    params: Value,
    #[serde(default)]
    phase: u64,
    source: Source,
    time: Value,
    #[serde(rename = "type")]
    kind: u64,
}

#[derive(Deserialize)]
struct Source {
    id: u64,
}

/// A session of QUIC.
struct Session {
    analyzer: QuicAnalyzer,
    title: String,
    group: String,
    /// Frames and ACKs of the next packet to be sent.
    sent: Vec<QuicFrame>,
    sends_ack: bool,
    /// The packet that is being received.
    received: Option<Received>,
    /// Whether no packet was logged yet.
    is_new: bool,
    /// Of Google's QUIC: whether the SHLO was sent or received.
    google: Option<bool>,
    /// Largest packet acknowledged.
    acked: Option<u64>,
}

#[derive(Default)]
struct Received {
    at: u64,
    event: u64,
    kind: QuicPacketKind,
    number: Option<u64>,
    bytes: u64,
    frames: Vec<QuicFrame>,
    acked: Vec<(u64, u64)>,
    ack_delay: Option<u64>,
    has_ack: bool,
}

impl Session {
    fn new() -> Self {
        Self {
            analyzer: QuicAnalyzer::new(Some(true)),
            title: String::new(),
            group: String::new(),
            sent: Vec::new(),
            sends_ack: false,
            received: None,
            is_new: true,
            google: None,
            acked: None,
        }
    }

    /// Takes the host that logs for a server if the first packet is one received.
    fn packet(&mut self, is_received: bool) {
        if self.is_new && is_received {
            self.analyzer = QuicAnalyzer::new(Some(false));
        }
        self.is_new = false;
    }

    /// Takes the session for one of Google's QUIC, whose handshake is complete or not.
    const fn set_google(&mut self, done: bool) {
        self.analyzer.lift_amplification_limit();
        self.google = Some(done);
    }

    /// Processes a message of the handshake of Google's QUIC.
    fn google_handshake(&mut self, message: &str) {
        let done = message.starts_with("SHLO") || self.google == Some(true);
        self.set_google(done);
    }

    /// Passes on the packet that was being received.
    fn flush(&mut self) {
        let Some(packet) = self.received.take() else { return };
        let record = QuicPacketRecord {
            kind: packet.kind,
            number: packet.number,
            bytes: Some(packet.bytes),
            frames: &packet.frames,
            has_ack: packet.has_ack,
            acked: &packet.acked,
            ack_delay: packet.ack_delay,
            ce: None,
            close: None,
        };
        self.analyzer.push(packet.at, packet.event, &QuicRecord::Received(record));
    }

    fn event(&mut self, name: &str, at: u64, index: u64, params: &Map<String, Value>) {
        let number = |name: &str| params.get(name).and_then(whole);
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
        if name == "QUIC_SESSION" {
            if let Some(host) = params.get("host").and_then(Value::as_str) {
                host.clone_into(&mut self.title);
                text("connection_id").clone_into(&mut self.group);
            }
            return;
        }
        let Some(name) = name.strip_prefix("QUIC_SESSION_") else { return };
        if let Some(kind) = name.strip_suffix("_FRAME_SENT") {
            match frame(kind, params, self.google.is_some()) {
                Some(frame) => self.sent.push(frame),
                None => self.sends_ack |= kind == "ACK",
            }
            return;
        }
        if let Some(kind) = name.strip_suffix("_FRAME_RECEIVED") {
            let Some(packet) = &mut self.received else { return };
            match frame(kind, params, self.google.is_some()) {
                Some(frame) => packet.frames.push(frame),
                None if kind == "ACK" => {
                    packet.has_ack = true;
                    let delay = number("delta_time_largest_observed_us");
                    packet.ack_delay = delay.and_then(|us| us.checked_mul(NANOS_PER_US));
                    acked(params, &mut self.acked, &mut packet.acked);
                }
                None => {}
            }
            return;
        }
        match name {
            "PACKET_SENT" => {
                self.packet(false);
                self.flush();
                let packet = QuicPacketRecord {
                    kind: level(text("encryption_level")),
                    number: number("packet_number"),
                    bytes: number("size"),
                    frames: &self.sent,
                    has_ack: self.sends_ack,
                    ..QuicPacketRecord::default()
                };
                self.analyzer.push(at, index, &QuicRecord::Sent(packet));
                self.sent.clear();
                self.sends_ack = false;
            }
            "PACKET_RECEIVED" => {
                self.packet(true);
                self.flush();
                let bytes = number("size").unwrap_or(0);
                self.received = Some(Received { at, event: index, bytes, ..Received::default() });
            }
            "UNAUTHENTICATED_PACKET_HEADER_RECEIVED" => {
                let mut kind = level(text("long_header_type"));
                if text("header_format").starts_with("GOOGLE_QUIC") {
                    let done = self.google == Some(true);
                    self.set_google(done);
                    kind = if done { QuicPacketKind::OneRtt } else { QuicPacketKind::Initial };
                }
                if let Some(packet) = &mut self.received {
                    packet.number = number("packet_number").or(packet.number);
                    packet.kind = kind;
                }
            }
            "CRYPTO_HANDSHAKE_MESSAGE_SENT" | "CRYPTO_HANDSHAKE_MESSAGE_RECEIVED" => {
                self.google_handshake(text("quic_crypto_handshake_message"));
            }
            "PACKET_LOST" => {
                self.flush();
                let trigger = match text("transmission_type") {
                    "PTO_RETRANSMISSION" | "RTO_RETRANSMISSION" => QuicLossTrigger::Timeout,
                    _ => QuicLossTrigger::Unknown,
                };
                let kind = QuicPacketKind::OneRtt;
                let lost = QuicRecord::Lost { kind, number: number("packet_number"), trigger };
                self.analyzer.push(at, index, &lost);
            }
            "CLOSED" | "CLOSE_ON_ERROR" => {
                self.flush();
                let error = number("quic_error").or_else(|| number("net_error")).unwrap_or(0);
                // QUIC_NETWORK_IDLE_TIMEOUT is 25, QUIC_NO_ERROR 0 in quic_error_codes.h.
                let code = error.to_string();
                let closed = QuicRecord::Closed {
                    by_peer: params.get("from_peer").and_then(Value::as_bool),
                    code: &code,
                    reason: text("details"),
                    idle_timeout: name == "CLOSED" && error == 25,
                    is_error: error != 0 && error != 25,
                };
                self.analyzer.push(at, index, &closed);
            }
            _ => {}
        }
    }
}

/// A frame other than ACK, of Google's QUIC or of RFC 9000.
fn frame(kind: &str, params: &Map<String, Value>, google: bool) -> Option<QuicFrame> {
    let number = |name: &str| params.get(name).and_then(whole).unwrap_or(0);
    let stream = params.get("stream_id").and_then(whole).filter(|&id| !google || id != 0);
    Some(match kind {
        "ACK" => return None,
        "PADDING" => QuicFrame::Padding,
        "STREAM" if google && number("stream_id") == GOOGLE_CRYPTO => {
            QuicFrame::Crypto { offset: number("offset"), length: number("length") }
        }
        "STREAM" => QuicFrame::Stream {
            id: number("stream_id"),
            offset: number("offset"),
            length: number("length"),
            fin: params.get("fin").and_then(Value::as_bool).unwrap_or(false),
        },
        "CRYPTO" => QuicFrame::Crypto { offset: number("offset"), length: number("data_length") },
        // The connection has the stream ID -1.
        "WINDOW_UPDATE" => match stream {
            Some(id) => QuicFrame::MaxStreamData { id, limit: number("byte_offset") },
            None => QuicFrame::MaxData(number("byte_offset")),
        },
        "BLOCKED" => match stream {
            Some(id) => QuicFrame::StreamDataBlocked { id },
            None => QuicFrame::DataBlocked,
        },
        "STREAMS_BLOCKED" => QuicFrame::StreamsBlocked,
        "MAX_STREAMS" => QuicFrame::MaxStreams,
        "PATH_CHALLENGE" => QuicFrame::PathChallenge,
        "HANDSHAKE_DONE" => QuicFrame::HandshakeDone,
        "CONNECTION_CLOSE" => QuicFrame::ConnectionClose,
        _ => QuicFrame::Other,
    })
}

/// The ranges of an ACK frame: its bounds less the missing packets.
///
/// Before `smallest_observed` was logged, packets below the first missing one are either acknowledged or
/// no longer listed, so only those after the largest one acknowledged `before` count.
fn acked(params: &Map<String, Value>, before: &mut Option<u64>, ranges: &mut Vec<(u64, u64)>) {
    let Some(largest) = params.get("largest_observed").and_then(whole) else { return };
    let missing = params.get("missing_packets").and_then(Value::as_array);
    let mut missing: Vec<u64> =
        missing.into_iter().flatten().filter_map(whole).take(MAX_MISSING).collect();
    missing.sort_unstable();
    let next = before.map_or(0, |largest| largest.saturating_add(1));
    let unlisted = missing.first().map_or(next, |&first| next.min(first));
    let mut from = params.get("smallest_observed").and_then(whole).unwrap_or(unlisted);
    *before = (*before).max(Some(largest));
    for number in missing {
        if number > from {
            ranges.push((from, number - 1));
        }
        from = from.max(number.saturating_add(1));
    }
    if from <= largest {
        ranges.push((from, largest));
    }
}

fn level(name: &str) -> QuicPacketKind {
    match name {
        "ENCRYPTION_INITIAL" | "INITIAL" => QuicPacketKind::Initial,
        "ENCRYPTION_HANDSHAKE" | "HANDSHAKE" => QuicPacketKind::Handshake,
        "ENCRYPTION_ZERO_RTT" | "ZERO_RTT_PROTECTED" => QuicPacketKind::ZeroRtt,
        "RETRY" => QuicPacketKind::Retry,
        "VERSION_NEGOTIATION" => QuicPacketKind::VersionNegotiation,
        _ => QuicPacketKind::OneRtt,
    }
}

fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Reads the sessions of a file.
pub(super) fn read(
    input: impl Read,
    number: usize,
    file: &mut File,
) -> Result<Vec<QuicConnection>, Reason> {
    let mut sessions = SessionTable::default();
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, input));
    if let Err(error) = (&mut sessions).deserialize(&mut json) {
        if error.is_io() {
            return Err(Reason::Read(error.into()));
        }
        file.problems.push(&format_args!("event {}: {error}", sessions.events + 1));
    }
    file.frames = sessions.events;
    if sessions.forgotten > 0 {
        let left_out = sessions.forgotten;
        file.problems.push(&format_args!(
            "event {}: `constants` follows more than {MAX_HELD} events; {left_out} events left out",
            MAX_HELD + 1
        ));
    }
    let mut connections = Vec::new();
    for (_, mut session) in sessions.open {
        session.flush();
        if let Some(analysis) = session.analyzer.finish() {
            connections.push(QuicConnection {
                file: number,
                number: connections.len() as u32,
                title: session.title,
                group: session.group,
                vantage: match analysis.client {
                    Some(false) => Vantage::Server,
                    _ => Vantage::Client,
                },
                sender: None,
                analysis,
                decrypted: None,
            });
        }
    }
    if connections.is_empty() {
        let problem = file.problems.first.first().cloned();
        let problem = problem.or_else(|| Some("it has no QUIC session".to_owned()));
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    Ok(connections)
}

/// The sessions by their source, and the names of the event types of QUIC.
#[derive(Default)]
struct SessionTable {
    names: Option<BTreeMap<u64, String>>,
    /// Events before `constants`, with their indices.
    held: Vec<(u64, Event)>,
    forgotten: u64,
    open: BTreeMap<u64, Session>,
    events: u64,
}

impl SessionTable {
    fn event(&mut self, event: Event) {
        self.events += 1;
        if self.names.is_some() {
            self.process(self.events, &event);
        } else if self.held.len() < MAX_HELD {
            self.held.push((self.events, event));
        } else {
            self.forgotten += 1;
        }
    }

    /// Sets the names of the event types, and processes the events before them.
    fn set_names(&mut self, types: BTreeMap<String, u64>) {
        let quic = types.into_iter().filter(|(name, _)| name.starts_with("QUIC_"));
        self.names = Some(quic.map(|(name, number)| (number, name)).collect());
        for (index, event) in core::mem::take(&mut self.held) {
            self.process(index, &event);
        }
    }

    fn process(&mut self, index: u64, event: &Event) {
        let Some(name) = self.names.as_ref().and_then(|names| names.get(&event.kind)) else {
            return;
        };
        let time = whole(&event.time).and_then(|ms| ms.checked_mul(NANOS_PER_MS));
        let (Some(at), Value::Object(params)) = (time, &event.params) else { return };
        // The end of a session has no parameters of interest.
        if name == "QUIC_SESSION" && event.phase == 2 {
            return;
        }
        let session = self.open.entry(event.source.id).or_insert_with(Session::new);
        session.event(name, at, index, params);
    }
}

impl<'de> DeserializeSeed<'de> for &mut SessionTable {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut SessionTable {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a NetLog")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "constants" => self.set_names(map.next_value::<Constants>()?.types),
                "events" => map.next_value_seed(EventList(self))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The list of events.
struct EventList<'a>(&'a mut SessionTable);

impl<'de> DeserializeSeed<'de> for EventList<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EventList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("events of a NetLog")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(event) = list.next_element::<Event>()? {
            self.0.event(event);
        }
        Ok(())
    }
}
