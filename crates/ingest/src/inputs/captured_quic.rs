//! Finds the QUIC connections of a capture and assigns its datagrams to them, without keys.
//!
//! UDP has other users, so a connection begins only with a long header of a known version whose fixed bit
//! is set, whose connection IDs, token and length fit the datagram, and which, if it is an Initial, is
//! in a datagram of at least 1,200 bytes (RFC 9000 section 14.1); or with a Version Negotiation that
//! answers a datagram of at least 1,200 bytes with the same connection IDs. RTP and RTCP have no fixed
//! bit, STUN, DTLS, TURN channels and WireGuard no long header (RFC 9443 section 3), and the second to
//! fifth byte of a DNS message are no version.
//!
//! Short headers show neither a version nor the length of the connection ID. They belong to the
//! connection between their addresses, or, at new addresses, to the one whose host chose the
//! connection ID in them.
//!
//! With a key log, all packets of a connection are decrypted (`decryption`). Those of a pcapng wait for their secrets.
//!
//! The client's Initial packets are decrypted for the names in its ClientHello (`client_hello`).
//!
//! Memory: at most 65,536 connections of 20 kB each, and 10 kB more until its ClientHello is read; later ones are
//! counted. Packets that wait for secrets take 32 MiB at most.

mod client_hello;
mod connection;
mod decrypted_packets;
mod decryption;
mod frames;
mod inference;
mod initial_keys;
mod key_log;
mod packet_keys;
mod tls_messages;
mod waiting;

use core::net::SocketAddr;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use diagnose::quic::captured::{
    CapturedQuicAnalyzer, CapturedQuicDatagram, ONE_RTT, PACKET_KINDS, kind_index,
};
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use packet::Dir;
use packet::quic::{
    ConnectionId, LongHeader, LongPacketType, QuicVersion, ShortHeader, long_header, short_header,
};
use packet::wire::{Endpoints, UdpDatagram};
use units::Duration;

use super::connection_key::{CaptureSource, ConnectionKey};
use super::quic::beside::SeenDatagram;
use client_hello::ClientHelloReader;
use decryption::QuicDecryption;
use waiting::{MAX_WAITING, WaitingPackets};

pub use client_hello::QuicClientHello;
pub use connection::{CapturedQuicConnection, QuicCounts, QuicMigration};
pub use decryption::DecryptedCounts;
pub use key_log::{KeyLog, KeyLogError};

/// Most connections of a file.
const MAX_CONNECTIONS: usize = 65_536;
/// Most connection IDs that are kept of each host of a connection.
const MAX_IDS: usize = 16;
/// Most addresses that are kept of a connection.
const MAX_ADDRESSES: usize = 8;
/// Most versions that are kept of a connection.
const MAX_VERSIONS: usize = 16;
/// Long headers of unknown versions that wait for a Version Negotiation.
const MAX_UNKNOWN: usize = 1_024;
/// Fewest bytes of a datagram with an Initial.
const MIN_INITIAL: usize = 1_200;
/// A shorter connection ID does not identify a connection at other addresses.
const MIN_ID: usize = 4;
/// Fewest bytes of the ID that a client chooses for the server (RFC 9000 section 7.2).
const MIN_SERVER_ID: usize = 8;
/// A timestamp this much later than the next one is wrong.
const WRONG: u64 = 1_000_000_000;

#[derive(Debug)]
struct OpenCapturedQuic {
    interface: u32,
    ends: Endpoints,
    has_opening: bool,
    versions: Vec<(Dir, QuicVersion)>,
    offered: Vec<QuicVersion>,
    /// Connection IDs that each host chose, and the length that it uses.
    ids: [Vec<ConnectionId>; 2],
    id_len: [Option<usize>; 2],
    /// The connection ID of the last short header, by direction.
    last_id: [Option<ConnectionId>; 2],
    id_changes: [u64; 2],
    migrations: Vec<QuicMigration>,
    hello: ClientHelloReader,
    /// With a key log.
    decryption: Option<Box<QuicDecryption>>,
    waiting: WaitingPackets,
    /// The server sent an Initial or Handshake packet.
    is_accepted: bool,
    analyzer: CapturedQuicAnalyzer,
    datagrams: Vec<SeenDatagram>,
}

/// A datagram whose version is unknown.
#[derive(Debug)]
struct UnknownVersion {
    key: ConnectionKey,
    version: QuicVersion,
    ids: (ConnectionId, ConnectionId),
    ends: Endpoints,
    datagram: CapturedQuicDatagram,
}

/// The QUIC connections of a file.
#[derive(Debug)]
pub(super) struct CapturedQuicTable {
    /// Keeps the data of connections that are decrypted, for a fit.
    keeps_data: bool,
    open: Vec<OpenCapturedQuic>,
    /// The last connection between two addresses, and whether the client has the lower one.
    by_address: IndexMap<ConnectionKey, (u32, bool), FixedState>,
    /// By interface and a connection ID that a host chose; the direction of that host's packets.
    by_id: IndexMap<(u32, ConnectionId), (u32, Dir), FixedState>,
    /// Lengths of the connection IDs that a host at an address chose, as a set of bits.
    id_lens: IndexMap<(u32, SocketAddr), u32, FixedState>,
    unknown: VecDeque<UnknownVersion>,
    /// The last datagram, until the next one confirms its time.
    held: Option<(u32, CapturedQuicDatagram)>,
    /// Datagrams that may still be kept, to compare them with a log.
    datagrams_left: usize,
    keys: Arc<KeyLog>,
    expects_secrets: bool,
    /// Connections with packets that wait for secrets, and the bytes that may still wait.
    waiting: BTreeSet<u32>,
    waiting_room: usize,
    /// Time of the first datagram in ns.
    began: Option<u64>,
    before: u64,
    pub(super) counts: QuicCounts,
}

/// Where and when a datagram was captured.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatagramPosition {
    pub(super) time: Duration,
    pub(super) point: CaptureSource,
    pub(super) frame: u64,
}

impl CapturedQuicTable {
    /// `keeps_data`: the data of connections that are decrypted are kept, for a fit.
    pub(super) fn new(keeps_data: bool) -> Self {
        Self {
            keeps_data,
            open: Vec::new(),
            by_address: IndexMap::with_hasher(FixedState::with_seed(0)),
            by_id: IndexMap::with_hasher(FixedState::with_seed(0)),
            id_lens: IndexMap::with_hasher(FixedState::with_seed(0)),
            unknown: VecDeque::new(),
            held: None,
            datagrams_left: 0,
            keys: Arc::default(),
            expects_secrets: false,
            waiting: BTreeSet::new(),
            waiting_room: MAX_WAITING,
            began: None,
            before: 0,
            counts: QuicCounts::default(),
        }
    }

    /// Keeps at most this many datagrams, to compare them with a log.
    pub(super) const fn keep_datagrams(&mut self, most: usize) {
        self.datagrams_left = most;
    }

    /// Adds a datagram; false if it is not QUIC.
    pub(super) fn add(&mut self, position: DatagramPosition, udp: &UdpDatagram<'_>) -> bool {
        let Some(&first) = udp.payload.first() else { return false };
        let (key, src_is_low) = ConnectionKey::of(position.point, udp.endpoints);
        let is_quic = if first & 0x80 == 0 {
            self.short(position, udp, key, src_is_low)
        } else {
            self.long(position, udp, key, src_is_low)
        };
        self.counts.datagrams += u64::from(is_quic);
        is_quic
    }

    /// A datagram that begins with a short header.
    fn short(
        &mut self,
        position: DatagramPosition,
        udp: &UdpDatagram<'_>,
        key: ConnectionKey,
        src_is_low: bool,
    ) -> bool {
        let interface = position.point.interface;
        let Some(header) = short_header(udp.payload) else { return false };
        let found = match self.by_address.get(&key) {
            Some(&(index, client_is_low)) => {
                let dir = direction(src_is_low, client_is_low);
                let id = self.open[index as usize].id_len[dir.reversed() as usize]
                    .and_then(|len| ConnectionId::new(udp.payload.get(1..=len)?));
                match id.and_then(|id| self.by_id.get(&(interface, id)).copied()) {
                    // Several connections may share the addresses.
                    Some((index, chooser)) if chooser == dir.reversed() => Some((index, dir, id)),
                    // A greased bit is no sign (RFC 9287) where the packets can be decrypted.
                    _ if header.fixed_bit || self.open[index as usize].decryption.is_some() => {
                        Some((index, dir, id))
                    }
                    _ => None,
                }
            }
            None if self.open.is_empty() => None,
            None => self.migrated(position, udp, key, src_is_low),
        };
        let Some((index, dir, id)) = found else { return false };
        let open = &mut self.open[index as usize];
        if let Some(id) = id.filter(|id| !id.is_empty())
            && let Some(last) = open.last_id[dir as usize].replace(id)
            && last != id
        {
            open.id_changes[dir as usize] += 1;
        }
        if let Some(id) = id {
            self.learn(index, interface, dir.reversed(), id);
        }
        let mut datagram = datagram(position, udp, dir);
        datagram.packets[ONE_RTT] = 1;
        datagram.spin = Some(header.spin);
        self.decrypt_short(index, position, dir, udp.payload);
        self.push(index, datagram);
        true
    }

    /// The connection of a datagram at new addresses, by its connection ID.
    fn migrated(
        &mut self,
        position: DatagramPosition,
        udp: &UdpDatagram<'_>,
        key: ConnectionKey,
        src_is_low: bool,
    ) -> Option<(u32, Dir, Option<ConnectionId>)> {
        let interface = position.point.interface;
        let &lens = self.id_lens.get(&(interface, udp.endpoints.dst))?;
        let ids = (MIN_ID..=packet::quic::MAX_CONNECTION_ID).filter(|len| lens & 1 << len != 0);
        let mut found = ids.filter_map(|len| {
            let id = ConnectionId::new(udp.payload.get(1..=len)?)?;
            let &(index, chooser) = self.by_id.get(&(interface, id))?;
            Some((index, chooser, id))
        });
        let (index, chooser, id) = found.next()?;
        let dir = chooser.reversed();
        self.moved(index, position, udp, (key, src_is_low), dir);
        Some((index, dir, Some(id)))
    }

    /// The addresses of a connection changed with a datagram in direction `dir`.
    fn moved(
        &mut self,
        index: u32,
        position: DatagramPosition,
        udp: &UdpDatagram<'_>,
        (key, src_is_low): (ConnectionKey, bool),
        dir: Dir,
    ) {
        let ends = match dir {
            Dir::Forward => udp.endpoints,
            Dir::Reverse => udp.endpoints.reversed(),
        };
        let at = position.time.as_nanos();
        let open = &mut self.open[index as usize];
        if open.migrations.len() < MAX_ADDRESSES {
            open.migrations.push(QuicMigration { at, frame: position.frame, ends });
        }
        self.by_address.insert(key, (index, src_is_low == (dir == Dir::Forward)));
    }

    /// A datagram that begins with a long header.
    fn long(
        &mut self,
        position: DatagramPosition,
        udp: &UdpDatagram<'_>,
        key: ConnectionKey,
        src_is_low: bool,
    ) -> bool {
        let Some(header) = long_header(udp.payload, udp.len) else { return false };
        let interface = position.point.interface;
        let known = self.known(interface, &header, key, src_is_low);
        let (index, dir) = match known {
            Some((index, dir)) => {
                if !self.by_address.contains_key(&key) {
                    self.moved(index, position, udp, (key, src_is_low), dir);
                }
                (index, dir)
            }
            None if header.kind == LongPacketType::VersionNegotiation => {
                match self.negotiated(position, udp, &header, key) {
                    Some(index) => (index, Dir::Reverse),
                    None => return false,
                }
            }
            None if header.kind == LongPacketType::Unknown => {
                self.remember(position, udp, &header, key);
                return false;
            }
            None => match self.begin(position, udp, &header, key, src_is_low) {
                Some(begun) => begun,
                None => return false,
            },
        };
        let mut datagram = datagram(position, udp, dir);
        let (mut at, mut next) = (0, Some(header));
        while let Some(header) = next {
            self.header(index, interface, dir, &header);
            self.hello(index, dir, &header, &udp.payload[at..]);
            self.decrypt_long(index, position, dir, &header, &udp.payload[at..]);
            datagram.packets[kind_index(header.kind)] += 1;
            at += header.len;
            let rest = udp.payload.get(at..).filter(|_| !header.is_cut).unwrap_or_default();
            next = long_header(rest, udp.len.saturating_sub(at));
            // Packets of a datagram have the same destination (RFC 9000 section 12.2); zeros are padding.
            let to = header.destination.as_bytes();
            let is_short = |short: &ShortHeader| match to {
                [] => short.fixed_bit,
                to => rest[1..].starts_with(to),
            };
            if next.is_none()
                && let Some(short) = short_header(rest).filter(is_short)
            {
                datagram.packets[ONE_RTT] = 1;
                datagram.spin = Some(short.spin);
                self.decrypt_short(index, position, dir, rest);
            }
        }
        self.push(index, datagram);
        true
    }

    /// The connection of a long header, and the direction.
    fn known(
        &self,
        interface: u32,
        header: &LongHeader<'_>,
        key: ConnectionKey,
        src_is_low: bool,
    ) -> Option<(u32, Dir)> {
        let at_addresses = self.by_address.get(&key).copied();
        let same_addresses = |index: u32| at_addresses.is_some_and(|(other, _)| other == index);
        let by_id = |id: ConnectionId| {
            let id = Some(id).filter(|id| !id.is_empty())?;
            self.by_id.get(&(interface, id)).copied()
        };
        // At other addresses only the ID of a server identifies a connection: clients may reuse theirs.
        if let Some((index, chooser)) = by_id(header.destination)
            && (same_addresses(index)
                || chooser == Dir::Reverse && header.destination.len() >= MIN_SERVER_ID)
        {
            return Some((index, chooser.reversed()));
        }
        if let Some((index, chooser)) = by_id(header.source)
            && same_addresses(index)
        {
            return Some((index, chooser));
        }
        let (index, client_is_low) = at_addresses?;
        let dir = direction(src_is_low, client_is_low);
        let open = &self.open[index as usize];
        // The server chooses its ID in its first packet. The client chooses others for each connection, but
        // may begin anew after a version negotiation.
        let belongs = dir == Dir::Reverse
            || !open.is_accepted && !open.offered.is_empty()
            // The client's first choice for the server is longer: this one is the server's.
            || header.destination.len() < MIN_SERVER_ID
            || header.kind != LongPacketType::Initial;
        belongs.then_some((index, dir))
    }

    /// Begins a connection with a long header, if that is certainly QUIC.
    fn begin(
        &mut self,
        position: DatagramPosition,
        udp: &UdpDatagram<'_>,
        header: &LongHeader<'_>,
        key: ConnectionKey,
        src_is_low: bool,
    ) -> Option<(u32, Dir)> {
        let is_initial = header.kind == LongPacketType::Initial;
        if !header.fixed_bit || is_initial && udp.len < MIN_INITIAL {
            return None;
        }
        // A Retry has no length that could be checked.
        if header.kind == LongPacketType::Retry {
            return None;
        }
        let (src, dst) = (udp.endpoints.src.port(), udp.endpoints.dst.port());
        let from_server = match header.kind {
            LongPacketType::ZeroRtt => false,
            _ => src < 1_024 && dst >= 1_024,
        };
        // A client that is captured in the middle is taken for one by its port only.
        let from_server = from_server || header.kind == LongPacketType::Handshake && src < dst;
        let dir = if from_server { Dir::Reverse } else { Dir::Forward };
        let ends = if from_server { udp.endpoints.reversed() } else { udp.endpoints };
        let has_opening = dir == Dir::Forward && header.kind != LongPacketType::Handshake;
        let index = self.open(position, key, ends, src_is_low != from_server, has_opening)?;
        Some((index, dir))
    }

    fn open(
        &mut self,
        position: DatagramPosition,
        key: ConnectionKey,
        ends: Endpoints,
        client_is_low: bool,
        has_opening: bool,
    ) -> Option<u32> {
        if self.open.len() >= MAX_CONNECTIONS {
            self.counts.left_out += 1;
            return None;
        }
        let index = self.open.len() as u32;
        self.open.push(OpenCapturedQuic {
            interface: position.point.interface,
            ends,
            has_opening,
            versions: Vec::new(),
            offered: Vec::new(),
            ids: [Vec::new(), Vec::new()],
            id_len: [None, None],
            last_id: [None, None],
            id_changes: [0, 0],
            migrations: Vec::new(),
            hello: ClientHelloReader::default(),
            decryption: (!self.keys.is_empty()).then(|| QuicDecryption::keeping(self.keeps_data)),
            waiting: WaitingPackets::default(),
            is_accepted: false,
            analyzer: CapturedQuicAnalyzer::new(),
            datagrams: Vec::new(),
        });
        self.by_address.insert(key, (index, client_is_low));
        Some(index)
    }

    /// Keeps a datagram of an unknown version, which a Version Negotiation may answer.
    fn remember(
        &mut self,
        position: DatagramPosition,
        udp: &UdpDatagram<'_>,
        header: &LongHeader<'_>,
        key: ConnectionKey,
    ) {
        if udp.len < MIN_INITIAL || !header.fixed_bit {
            return;
        }
        if self.unknown.len() == MAX_UNKNOWN {
            self.unknown.pop_front();
        }
        let mut datagram = datagram(position, udp, Dir::Forward);
        datagram.packets[kind_index(LongPacketType::Unknown)] = 1;
        let ids = (header.destination, header.source);
        let version = header.version;
        self.unknown.push_back(UnknownVersion { key, version, ids, ends: udp.endpoints, datagram });
    }

    /// Begins a connection with the Version Negotiation that answers a datagram of an unknown version: it
    /// has the same connection IDs, exchanged (RFC 8999 section 6).
    fn negotiated(
        &mut self,
        position: DatagramPosition,
        udp: &UdpDatagram<'_>,
        header: &LongHeader<'_>,
        key: ConnectionKey,
    ) -> Option<u32> {
        let answered = |one: &UnknownVersion| {
            one.key == key
                && one.ids == (header.source, header.destination)
                && one.ends == udp.endpoints.reversed()
        };
        let at = self.unknown.iter().position(answered)?;
        let one = self.unknown.remove(at)?;
        let (_, src_is_low) = ConnectionKey::of(position.point, one.ends);
        let index = self.open(position, key, one.ends, src_is_low, true)?;
        self.open[index as usize].versions.push((Dir::Forward, one.version));
        self.learn(index, position.point.interface, Dir::Reverse, one.ids.0);
        self.learn(index, position.point.interface, Dir::Forward, one.ids.1);
        self.counts.datagrams += 1;
        self.counts.recovered += 1;
        self.push(index, one.datagram);
        Some(index)
    }

    /// Takes what a long header shows: versions and connection IDs.
    fn header(&mut self, index: u32, interface: u32, dir: Dir, header: &LongHeader<'_>) {
        let open = &mut self.open[index as usize];
        if header.kind == LongPacketType::VersionNegotiation {
            for version in header.versions() {
                if open.offered.len() < MAX_VERSIONS && !open.offered.contains(&version) {
                    open.offered.push(version);
                }
            }
            return;
        }
        let seen = (dir, header.version);
        if open.versions.len() < MAX_VERSIONS && !open.versions.contains(&seen) {
            open.versions.push(seen);
        }
        open.is_accepted |= dir == Dir::Reverse
            && matches!(header.kind, LongPacketType::Initial | LongPacketType::Handshake);
        open.id_len[dir as usize] = Some(header.source.len());
        if header.kind == LongPacketType::Handshake {
            open.id_len[dir.reversed() as usize] = Some(header.destination.len());
        }
        self.learn(index, interface, dir, header.source);
        self.learn(index, interface, dir.reversed(), header.destination);
    }

    /// `host` (the sender of packets in this direction) is addressed by `id`.
    fn learn(&mut self, index: u32, interface: u32, host: Dir, id: ConnectionId) {
        let open = &mut self.open[index as usize];
        let known = &mut open.ids[host as usize];
        if id.is_empty() || known.len() >= MAX_IDS || known.contains(&id) {
            return;
        }
        known.push(id);
        let address = if host == Dir::Forward { open.ends.src } else { open.ends.dst };
        *self.id_lens.entry((interface, address)).or_default() |= 1 << id.len();
        self.by_id.entry((interface, id)).or_insert((index, host));
    }

    /// Passes the datagram before on, with its time checked against that of this one.
    fn push(&mut self, index: u32, datagram: CapturedQuicDatagram) {
        let next = datagram.at;
        if let Some((index, mut held)) = self.held.replace((index, datagram)) {
            // As for packets of TCP: one damaged time must not move all later ones.
            if held.at > next.saturating_add(WRONG) && self.before <= next {
                held.at = next;
            }
            self.before = held.at;
            self.analyse(index, &held);
        }
    }

    fn analyse(&mut self, index: u32, datagram: &CapturedQuicDatagram) {
        let open = &mut self.open[index as usize];
        open.analyzer.push(datagram);
        if self.datagrams_left > 0 {
            self.datagrams_left -= 1;
            let CapturedQuicDatagram { at, len, dir, packets, .. } = *datagram;
            let is_short = packets.iter().sum::<u16>() == packets[ONE_RTT] && packets[ONE_RTT] > 0;
            open.datagrams.push(SeenDatagram { at, len, dir, is_short });
        }
    }
}

const fn direction(src_is_low: bool, client_is_low: bool) -> Dir {
    if src_is_low == client_is_low { Dir::Forward } else { Dir::Reverse }
}

fn datagram(position: DatagramPosition, udp: &UdpDatagram<'_>, dir: Dir) -> CapturedQuicDatagram {
    CapturedQuicDatagram {
        at: position.time.as_nanos(),
        frame: position.frame,
        dir,
        len: udp.len as u32,
        ecn: udp.ecn,
        packets: [0; PACKET_KINDS],
        spin: None,
    }
}
