//! The packets of a connection, decrypted with its secrets, as the log that each of its hosts would have written.
//!
//! Whose log it is, is decided at the end: that of the host which the capture point is nearer to. Until then both are
//! analysed. What a host does not put on the wire is inferred (`inference`).
//!
//! Secrets may come after the packets that need them: these wait (`waiting`).

use diagnose::quic::record::{QuicCloseFrame, QuicPacketKind, QuicPacketRecord, QuicRecord};
use diagnose::quic::{QuicAnalysis, QuicAnalyzer};
use packet::Dir;
use packet::quic::{ConnectionId, LongPacketType, QuicVersion};

use super::frames::PacketFrames;
use super::inference::SenderInference;
use super::initial_keys::initial_secret;
use super::key_log::{ConnectionSecrets, KeyLog};
use super::packet_keys::{CipherSuite, PacketKeys};
use super::tls_messages::{CryptoStream, TransportParameters};

/// Packets with which the secrets of other connections are tried, if the ClientHello was not captured.
const MAX_TRIALS: u32 = 8;
/// Spaces of packet numbers.
const SPACES: usize = 3;

/// A packet of a captured datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProtectedPacket<'a> {
    /// Time in ns and frame.
    pub(super) at: (u64, u64),
    pub(super) dir: Dir,
    /// Type of a long header; `None` of a short one.
    pub(super) kind: Option<LongPacketType>,
    /// Its bytes, and the offset of its number.
    pub(super) bytes: &'a [u8],
    pub(super) number_at: usize,
}

/// Keys of 1-RTT packets of a direction, which change.
#[derive(Debug)]
struct OneRttKeys {
    /// With the header protection of all.
    first: PacketKeys,
    current: Option<PacketKeys>,
    previous: Option<PacketKeys>,
    next: Option<PacketKeys>,
    phase: bool,
    /// The number of key updates.
    updates: u64,
}

impl OneRttKeys {
    fn new(first: PacketKeys) -> Self {
        let next = first.updated();
        Self { first, current: None, previous: None, next, phase: false, updates: 0 }
    }

    fn open(
        &mut self,
        packet: &ProtectedPacket<'_>,
        largest: Option<u64>,
    ) -> Option<(u64, Vec<u8>)> {
        let header = self.first.open_header(packet.bytes, packet.number_at)?;
        let current = self.current.as_ref().unwrap_or(&self.first);
        if header.key_phase() == self.phase {
            return current.open(packet.bytes, header, largest);
        }
        // A key update, or a late packet from before one.
        if let Some(opened) =
            self.next.as_ref().and_then(|next| next.open(packet.bytes, header, largest))
        {
            let following = self.next.as_ref().and_then(PacketKeys::updated);
            let before = core::mem::replace(&mut self.current, self.next.take());
            (self.previous, self.next) = (before, following);
            self.phase = !self.phase;
            self.updates += 1;
            return Some(opened);
        }
        let previous = match self.updates {
            0 => return None,
            1 => &self.first,
            _ => self.previous.as_ref()?,
        };
        previous.open(packet.bytes, header, largest)
    }
}

/// The analysis of one host's view.
#[derive(Debug)]
struct HostView {
    analyzer: QuicAnalyzer,
    inference: SenderInference,
}

impl HostView {
    fn new(is_client: bool) -> Self {
        let mut analyzer = QuicAnalyzer::new(Some(is_client));
        analyzer.infer_window();
        Self { analyzer, inference: SenderInference::default() }
    }
}

/// Decrypts a connection.
#[derive(Debug)]
pub(super) struct QuicDecryption {
    version: QuicVersion,
    /// Secrets of Initial packets, by direction.
    initial: [Option<PacketKeys>; 2],
    /// The random of its ClientHello, or that of the secrets that open its packets.
    random: Option<[u8; 32]>,
    secrets: Option<ConnectionSecrets>,
    handshake: [Option<PacketKeys>; 2],
    early: Option<PacketKeys>,
    one_rtt: [Option<OneRttKeys>; 2],
    suite: Option<CipherSuite>,
    largest: [[Option<u64>; SPACES]; 2],
    /// The client's Initial messages, and the server's Handshake messages.
    crypto: [CryptoStream; 2],
    parameters: [TransportParameters; 2],
    views: [HostView; 2],
    frames: PacketFrames,
    trials: u32,
    counts: DecryptedCounts,
}

/// Numbers of packets of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecryptedCounts {
    /// Decrypted, without Initial packets, which need no secret.
    pub decrypted: u64,
    /// Not decrypted: without a secret, truncated by the capture, or damaged.
    pub failed: u64,
    /// Key updates.
    pub key_updates: u64,
}

impl Default for QuicDecryption {
    fn default() -> Self {
        Self {
            version: QuicVersion::V1,
            initial: [None, None],
            random: None,
            secrets: None,
            handshake: [None, None],
            early: None,
            one_rtt: [None, None],
            suite: None,
            largest: [[None; SPACES]; 2],
            crypto: [CryptoStream::default(), CryptoStream::default()],
            parameters: [TransportParameters::default(); 2],
            views: [HostView::new(true), HostView::new(false)],
            frames: PacketFrames::default(),
            trials: 0,
            counts: DecryptedCounts::default(),
        }
    }
}

impl QuicDecryption {
    /// A decryption that keeps the data of both hosts for a fit, if they are wanted.
    pub(super) fn keeping(keeps_data: bool) -> Box<Self> {
        let mut new = Box::<Self>::default();
        if keeps_data {
            new.views.iter_mut().for_each(|view| view.analyzer.keep_transfer());
        }
        new
    }

    /// The version and the connection ID in the client's first Initial, or in its first after a Retry.
    pub(super) fn begin(&mut self, version: QuicVersion, first: ConnectionId) {
        if self.initial[0].is_some() && self.version == version {
            return;
        }
        self.version = version;
        self.initial = ["client in", "server in"].map(|host| {
            let secret = initial_secret(version, first, host)?;
            PacketKeys::new(CipherSuite::Aes128, version, &secret)
        });
    }

    /// A Retry or a Version Negotiation: the client begins anew.
    pub(super) fn restart(&mut self) {
        self.initial = [None, None];
        self.random = None;
        self.crypto[0] = CryptoStream::default();
    }

    /// A packet without a number: Retry or Version Negotiation.
    pub(super) fn bare(&mut self, at: (u64, u64), dir: Dir, kind: QuicPacketKind, bytes: usize) {
        let record =
            QuicPacketRecord { kind, bytes: Some(bytes as u64), ..QuicPacketRecord::default() };
        self.push(at, dir, &record);
    }

    /// Decrypts a packet.
    pub(super) fn packet(&mut self, packet: &ProtectedPacket<'_>, keys: &KeyLog) {
        if packet.kind == Some(LongPacketType::Initial) {
            self.find_random(packet);
        } else if !self.has_secret(packet) {
            self.find_secrets(packet, keys);
        }
        let opened = self.open(packet);
        let is_initial = packet.kind == Some(LongPacketType::Initial);
        let Some((kind, number, body)) = opened else {
            self.frames.new_ids.clear();
            self.counts.failed += u64::from(!is_initial);
            return;
        };
        self.counts.decrypted += u64::from(!is_initial);
        let space = kind.space().unwrap_or(2);
        let largest = &mut self.largest[packet.dir as usize][space];
        *largest = (*largest).max(Some(number));
        let mut frames = core::mem::take(&mut self.frames);
        frames.read(&body);
        self.messages(packet, kind, &frames, &body);
        let peer = packet.dir as usize;
        let exponent = self.parameters[peer].ack_delay_exponent;
        let scaled = |delay: u64| delay.saturating_mul(1 << exponent).saturating_mul(1_000);
        let record = QuicPacketRecord {
            kind,
            number: Some(number),
            bytes: Some(packet.bytes.len() as u64),
            frames: &frames.frames,
            has_ack: frames.has_ack,
            acked: &frames.acked,
            ack_delay: frames.ack_delay.filter(|_| kind == QuicPacketKind::OneRtt).map(scaled),
            ce: frames.ce,
            close: frames.close.as_ref().map(|(code, of_application, reason)| QuicCloseFrame {
                code: *code,
                of_application: *of_application,
                reason,
            }),
        };
        self.push(packet.at, packet.dir, &record);
        self.frames = frames;
    }

    /// Connection IDs in the last packet that its sender chose for itself.
    pub(super) fn take_new_ids(&mut self) -> Vec<ConnectionId> {
        core::mem::take(&mut self.frames.new_ids)
    }

    /// Passes a packet on, as sent by one host and received by the other.
    fn push(&mut self, (at, frame): (u64, u64), dir: Dir, record: &QuicPacketRecord<'_>) {
        for (host, view) in self.views.iter_mut().enumerate() {
            let HostView { analyzer, inference } = view;
            if host == dir as usize {
                analyzer.push(at, frame, &QuicRecord::Sent(*record));
                inference.sent((at, frame), record, analyzer);
            } else {
                analyzer.push(at, frame, &QuicRecord::Received(*record));
                inference.received((at, frame), record, analyzer);
            }
        }
    }

    /// Reads messages of TLS: whose secrets they are, and the transport parameters.
    fn messages(
        &mut self,
        packet: &ProtectedPacket<'_>,
        kind: QuicPacketKind,
        frames: &PacketFrames,
        body: &[u8],
    ) {
        let dir = packet.dir as usize;
        let is_wanted = match packet.dir {
            Dir::Forward => kind == QuicPacketKind::Initial,
            Dir::Reverse => kind == QuicPacketKind::Handshake,
        };
        if !is_wanted {
            return;
        }
        for (offset, range) in &frames.crypto {
            self.crypto[dir].add(*offset, &body[range.clone()]);
        }
        if let Some(found) = self.crypto[dir].parameters() {
            self.parameters[dir] = found;
            for (host, view) in self.views.iter_mut().enumerate() {
                let (at, frame) = packet.at;
                let record = QuicRecord::Parameters { remote: host != dir, limits: found.limits };
                view.analyzer.push(at, frame, &record);
            }
        }
    }

    /// Whether the secret of a packet is not known yet.
    pub(super) fn lacks_secret(&mut self, packet: &ProtectedPacket<'_>, keys: &KeyLog) -> bool {
        if packet.kind == Some(LongPacketType::Initial) || self.has_secret(packet) {
            return false;
        }
        self.find_secrets(packet, keys);
        !self.has_secret(packet)
    }

    /// All secrets are known now: those of other connections are tried once more.
    pub(super) fn try_again(&mut self) {
        self.trials = 0;
    }

    fn has_secret(&self, packet: &ProtectedPacket<'_>) -> bool {
        self.secrets.as_ref().is_some_and(|secrets| secret_of(secrets, packet).is_some())
    }

    /// The random is known once the packet is read, before the first packet that needs a secret.
    fn find_random(&mut self, packet: &ProtectedPacket<'_>) {
        if self.random.is_some() || packet.dir != Dir::Forward {
            return;
        }
        let Some((_, body)) = self.open_initial(packet) else { return };
        let mut frames = core::mem::take(&mut self.frames);
        frames.read(&body);
        for (offset, range) in &frames.crypto {
            self.crypto[0].add(*offset, &body[range.clone()]);
        }
        self.frames = frames;
        self.random = self.crypto[0].random();
    }

    /// Finds the secrets of the connection by the random of its ClientHello, or by trial.
    fn find_secrets(&mut self, packet: &ProtectedPacket<'_>, keys: &KeyLog) {
        if let Some(random) = self.random {
            let found = keys.of(&random).filter(|found| secret_of(found, packet).is_some());
            self.secrets = found.cloned().or(self.secrets.take());
            return;
        }
        if self.trials >= MAX_TRIALS {
            return;
        }
        self.trials += 1;
        for (random, secrets) in keys.all() {
            self.secrets = Some(secrets.clone());
            if self.open(packet).is_some() {
                self.random = Some(*random);
                return;
            }
            (self.secrets, self.handshake, self.early) = (None, [None, None], None);
            self.one_rtt = [None, None];
        }
    }

    fn open_initial(&self, packet: &ProtectedPacket<'_>) -> Option<(u64, Vec<u8>)> {
        let dir = packet.dir as usize;
        let keys = self.initial[dir].as_ref()?;
        let header = keys.open_header(packet.bytes, packet.number_at)?;
        keys.open(packet.bytes, header, self.largest[dir][0])
    }

    fn open(&mut self, packet: &ProtectedPacket<'_>) -> Option<(QuicPacketKind, u64, Vec<u8>)> {
        let dir = packet.dir as usize;
        let kind = match packet.kind {
            Some(LongPacketType::Initial) => {
                let (number, body) = self.open_initial(packet)?;
                return Some((QuicPacketKind::Initial, number, body));
            }
            Some(LongPacketType::Handshake) => QuicPacketKind::Handshake,
            Some(LongPacketType::ZeroRtt) => QuicPacketKind::ZeroRtt,
            None => QuicPacketKind::OneRtt,
            Some(_) => return None,
        };
        let largest = self.largest[dir][kind.space()?];
        let secret = secret_of(self.secrets.as_ref()?, packet)?;
        if let (QuicPacketKind::OneRtt, Some(keys)) = (kind, &mut self.one_rtt[dir]) {
            let (number, body) = keys.open(packet, largest)?;
            return Some((kind, number, body));
        }
        let known = match kind {
            QuicPacketKind::Handshake => self.handshake[dir].as_ref(),
            QuicPacketKind::ZeroRtt => self.early.as_ref(),
            _ => None,
        };
        if let Some(keys) = known {
            let header = keys.open_header(packet.bytes, packet.number_at)?;
            let (number, body) = keys.open(packet.bytes, header, largest)?;
            return Some((kind, number, body));
        }
        // The first packet of its kind shows which suite of that length it is.
        let suites = match self.suite {
            Some(ref suite) => core::slice::from_ref(suite),
            None => CipherSuite::of_secret(secret.len()),
        };
        for &suite in suites {
            let Some(keys) = PacketKeys::new(suite, self.version, secret) else { continue };
            let Some(header) = keys.open_header(packet.bytes, packet.number_at) else { continue };
            let Some((number, body)) = keys.open(packet.bytes, header, largest) else { continue };
            self.suite = Some(keys.suite());
            match kind {
                QuicPacketKind::Handshake => self.handshake[dir] = Some(keys),
                QuicPacketKind::ZeroRtt => self.early = Some(keys),
                _ => self.one_rtt[dir] = Some(OneRttKeys::new(keys)),
            }
            return Some((kind, number, body));
        }
        None
    }

    /// The analysis of the view of a host, if its packets were decrypted: that of the client, or of the server.
    pub(super) fn finish(self, is_client: bool) -> Option<(QuicAnalysis, DecryptedCounts)> {
        let mut counts = self.counts;
        counts.key_updates =
            self.one_rtt.iter().flatten().map(|keys| keys.updates).max().unwrap_or(0);
        if counts.decrypted == 0 {
            return None;
        }
        let [client, server] = self.views;
        let view = if is_client { client } else { server };
        Some((view.analyzer.finish()?, counts))
    }
}

/// The secret that a packet needs.
fn secret_of<'a>(secrets: &'a ConnectionSecrets, packet: &ProtectedPacket<'_>) -> Option<&'a [u8]> {
    let dir = packet.dir as usize;
    let secret = match packet.kind {
        Some(LongPacketType::Handshake) => &secrets.handshake[dir],
        Some(LongPacketType::ZeroRtt) => &secrets.early,
        None => &secrets.application[dir],
        Some(_) => &None,
    };
    secret.as_deref()
}
