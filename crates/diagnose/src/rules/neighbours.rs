//! The other connections of a capture, as far as a diagnosis refers to them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use units::{Duration, Instant};

use super::slow_server::SlowServers;
use crate::Analysis;
use crate::connection_events::ConnectionEvents;

/// Longest wait for the answer to a SYN: the first retransmission timeout (RFC 6298 section 2).
const HANDSHAKE: Duration = Duration::from_secs(1);

/// Most connections beside an unanswered one that are looked at.
const MOST_BESIDE: usize = 256;

/// Summary of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TransferSummary {
    /// Stream index.
    pub(super) stream: u32,
    /// Sender and receiver of the data.
    pub(super) hosts: (IpAddr, IpAddr),
    /// First data and last delivery.
    pub(super) span: (Instant, Instant),
    /// Bytes.
    pub(super) bytes: u64,
}

impl TransferSummary {
    /// Summarises the main direction of a connection.
    pub(super) fn of(analysis: &Analysis) -> Option<Self> {
        let flow = analysis.main()?;
        let (src, dst) = (analysis.ends.src.ip(), analysis.ends.dst.ip());
        let hosts = if flow.dir == packet::Dir::Forward { (src, dst) } else { (dst, src) };
        let span = (flow.first_data.0, flow.last_delivery);
        Some(Self { stream: analysis.stream, hosts, span, bytes: flow.bytes })
    }
}

/// A connection whose server answered the SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnsweredOpening {
    /// Stream index.
    pub(super) stream: u32,
    client: IpAddr,
    /// Address and port that answered.
    pub(super) server: SocketAddr,
    /// When the answer was captured.
    pub(super) answered: Instant,
    /// None of its SYNs asked for ECN.
    pub(super) is_plain: bool,
    /// Index of the next one of this client and port at another address; the number of all without one.
    next_address: usize,
}

impl AnsweredOpening {
    fn of(analysis: &Analysis) -> Option<Self> {
        let ConnectionEvents { syns, ecn_syns, syn_acks, others, .. } = &analysis.events;
        let answer = if syn_acks.count > 0 { syn_acks } else { &others[1] };
        (syns.count > 0 && answer.count > 0).then(|| Self {
            stream: analysis.stream,
            client: analysis.ends.src.ip(),
            server: analysis.ends.dst,
            answered: answer.first.0,
            is_plain: ecn_syns.count == 0,
            next_address: 0,
        })
    }

    const fn by_client(&self) -> (IpAddr, u16, Instant) {
        (self.client, self.server.port(), self.answered)
    }

    const fn by_port(&self) -> (bool, u16, Instant) {
        (self.server.is_ipv6(), self.server.port(), self.answered)
    }
}

/// The connections of a capture point, for the rules that compare a connection with others.
///
/// A rule finds those that concern it by binary search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbours {
    /// By hosts and stream index.
    transfers: Vec<TransferSummary>,
    /// By client, port and time.
    openings: Vec<AnsweredOpening>,
    /// Indices of `openings` by family of addresses, port and time.
    by_port: Vec<u32>,
    /// The client of each family of addresses and port; `None` if there are several.
    sole_clients: BTreeMap<(bool, u16), Option<IpAddr>>,
    pub(super) slow_servers: SlowServers,
}

impl Neighbours {
    /// No connections.
    pub const fn new() -> Self {
        Self {
            transfers: Vec::new(),
            openings: Vec::new(),
            by_port: Vec::new(),
            sole_clients: BTreeMap::new(),
            slow_servers: SlowServers::new(),
        }
    }

    /// Adds a connection; [`sort`](Self::sort) follows the last one.
    pub fn add(&mut self, analysis: &Analysis) {
        self.transfers.extend(TransferSummary::of(analysis));
        self.openings.extend(AnsweredOpening::of(analysis));
        self.slow_servers.add(analysis);
        if analysis.events.syns.count > 0 {
            let (client, server) = (analysis.ends.src.ip(), analysis.ends.dst);
            let sole =
                self.sole_clients.entry((server.is_ipv6(), server.port())).or_insert(Some(client));
            *sole = sole.filter(|sole| *sole == client);
        }
    }

    /// Sorts the connections that were added.
    pub fn sort(&mut self) {
        self.transfers.sort_by_key(|one| (one.hosts, one.stream));
        let all = &mut self.openings;
        all.sort_by_key(|one| (one.by_client(), one.stream));
        let mut next = all.len();
        for index in (0..all.len()).rev() {
            if let Some(after) = all.get(index + 1)
                && after.server != all[index].server
            {
                next = index + 1;
            }
            all[index].next_address = next;
        }
        self.by_port = (0..all.len() as u32).collect();
        self.by_port.sort_by_key(|&index| all[index as usize].by_port());
    }

    /// The transfers from a host to another.
    pub(super) fn between(
        &self,
        hosts: (IpAddr, IpAddr),
    ) -> impl Iterator<Item = &TransferSummary> {
        let from = self.transfers.partition_point(|one| one.hosts < hosts);
        self.transfers[from..].iter().take_while(move |one| one.hosts == hosts)
    }

    /// The connection that served the client of a refused one instead: it was answered within a
    /// handshake at the same address and port, or at the same port of another address, since a
    /// client tries the addresses of a name one after the other or at once (RFC 8305).
    pub(super) fn answered_instead(
        &self,
        (client, server): (IpAddr, SocketAddr),
        first_syn: Instant,
        refused: Instant,
    ) -> Option<&AnsweredOpening> {
        let port = server.port();
        let until = refused + HANDSHAKE;
        let is_near = |one: &&AnsweredOpening| {
            (one.client, one.server.port()) == (client, port)
                && (first_syn..=until).contains(&one.answered)
        };
        let index_from =
            |at: Instant| self.openings.partition_point(|one| one.by_client() < (client, port, at));
        let repeated = self.openings.get(index_from(refused)).filter(is_near);
        let beside = || {
            let first = self.openings.get(index_from(first_syn)).filter(is_near)?;
            if first.server != server {
                return Some(first);
            }
            self.openings.get(first.next_address).filter(is_near)
        };
        repeated.or_else(beside).or_else(|| {
            self.answered_in_other_family((client, server), first_syn)
                .filter(|one| one.answered <= until)
        })
    }

    /// Connections other than `stream` to a server that were answered in this time; of the first [`MOST_BESIDE`] to its
    /// port.
    pub(super) fn answered_meanwhile(
        &self,
        (server, stream): (SocketAddr, u32),
        (from, until): (Instant, Instant),
    ) -> impl Iterator<Item = &AnsweredOpening> {
        let opening = |index: &u32| &self.openings[*index as usize];
        let key = (server.is_ipv6(), server.port(), from);
        let first = self.by_port.partition_point(|index| opening(index).by_port() < key);
        let of_port = self.by_port[first..].iter().map(opening).take(MOST_BESIDE);
        let last = (server.is_ipv6(), server.port(), until);
        of_port
            .take_while(move |one| one.by_port() <= last)
            .filter(move |one| one.server == server && one.stream != stream)
    }

    /// The first connection to this port at an address of the other family that was answered after
    /// `from`, if the port has one client in each family: that is one host with two addresses.
    fn answered_in_other_family(
        &self,
        (client, server): (IpAddr, SocketAddr),
        from: Instant,
    ) -> Option<&AnsweredOpening> {
        let (family, port) = (server.is_ipv6(), server.port());
        let sole = |family| self.sole_clients.get(&(family, port)).copied().flatten();
        if sole(family) != Some(client) {
            return None;
        }
        let other = sole(!family)?;
        let opening = |index: &u32| &self.openings[*index as usize];
        let key = (!family, port, from);
        let first = self.by_port.partition_point(|index| opening(index).by_port() < key);
        self.by_port.get(first).map(opening).filter(|one| {
            one.client == other && (one.server.is_ipv6(), one.server.port()) == (!family, port)
        })
    }
}
