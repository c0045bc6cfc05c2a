//! The sockets of the application, by file descriptor.

use std::collections::{BTreeMap, BTreeSet};

use cc::Algorithm;
use packet::IpVersion;
use tcp::profile::{ReceiveBufferRule, TcpProfile};
use tcp::{Keepalive, TcpConfig, TcpSide};
use units::{Bytes, Duration, FlowId, RandomStream, SeqNum};

use crate::settings::ScriptHost;

/// Start value of the host's timestamp clock; scripts cannot know it.
const TIMESTAMP: u32 = 100_000;

/// Role of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SocketRole {
    /// Neither connected nor listening.
    Unconnected,
    /// Listens for connections.
    Listener,
    /// Has or had the connection.
    Connection,
    /// Had a connection whose TIME-WAIT a new SYN has ended.
    Replaced,
}

/// A socket of the application.
#[derive(Debug, Clone)]
pub(super) struct ScriptSocket {
    pub(super) role: SocketRole,
    pub(super) nonblocking: bool,
    /// A connect that has not returned success yet (`SS_CONNECTING`).
    pub(super) connecting: bool,
    /// `TCP_FASTOPEN_CONNECT`: connected in the application's view, the SYN goes with the first
    /// write.
    pub(super) deferred: bool,
    /// The application has shut down writing.
    pub(super) shut: bool,
    /// The application has shut down reading.
    pub(super) shut_read: bool,
    pub(super) wishes: SocketOptions,
}

/// Socket options.
#[derive(Debug, Clone, Default)]
pub(super) struct SocketOptions {
    pub(super) nodelay: bool,
    pub(super) cork: bool,
    /// `TCP_NOTSENT_LOWAT`; 0 for the system's value.
    pub(super) notsent_lowat: u32,
    /// `TCP_USER_TIMEOUT`, in milliseconds; 0 for the system's limits.
    pub(super) user_timeout: u32,
    pub(super) send_buffer: Option<u64>,
    pub(super) receive_buffer: Option<u64>,
    pub(super) maxseg: Option<u32>,
    pub(super) algorithm: Option<Algorithm>,
    /// `TCP_INQ`: recvmsg reports the bytes left.
    pub(super) inq: bool,
    pub(super) keepalive: bool,
    pub(super) keep_idle: Option<Duration>,
    pub(super) keep_interval: Option<Duration>,
    pub(super) keep_count: Option<u32>,
    /// `TCP_FASTOPEN` of a listener: the length of its queue.
    pub(super) fast_open_queue: Option<u64>,
    pub(super) fast_open_key: Option<[u8; 16]>,
    /// `TCP_FASTOPEN_CONNECT`
    pub(super) fast_open_connect: bool,
    /// `TCP_SYNCNT`
    pub(super) syn_count: Option<u32>,
    /// `SO_LINGER` with a timeout of 0: a close resets.
    pub(super) no_linger: bool,
    /// `IP_TTL`
    pub(super) ttl: Option<u8>,
    /// `IPV6_UNICAST_HOPS`
    pub(super) hop_limit: Option<u8>,
    /// `IP_MINTTL`
    pub(super) least_ttl: u8,
    /// `IPV6_MINHOPCOUNT`
    pub(super) least_hop_count: u8,
    /// `IP_TOS`
    pub(super) tos: u8,
    /// `IPV6_TCLASS`
    pub(super) class: u8,
}

impl SocketOptions {
    /// Returns the keepalive timers, with the system's values as defaults.
    pub(super) fn keepalive(&self, profile: &TcpProfile) -> Option<Keepalive> {
        self.keepalive.then(|| self.keepalive_timers(profile))
    }

    /// Returns the keepalive timers, whether or not keepalive is on.
    pub(super) fn keepalive_timers(&self, profile: &TcpProfile) -> Keepalive {
        Keepalive {
            idle: self.keep_idle.unwrap_or(profile.keepalive.idle),
            interval: self.keep_interval.unwrap_or(profile.keepalive.interval),
            count: self.keep_count.unwrap_or(profile.keepalive.count),
        }
    }

    /// Returns the configuration of a connection of this socket.
    pub(super) fn config(&self, host: &ScriptHost, ip: IpVersion, side: TcpSide) -> TcpConfig {
        let mut profile = host.profile.clone();
        if let Some(maxseg) = self.maxseg {
            profile.mtu = profile.mtu.min(maxseg + ip.header_len() + 20);
        }
        profile.syn.retries = self.syn_count.unwrap_or(profile.syn.retries);
        if let Some(size) = self.receive_buffer {
            match &mut profile.receive_buffer {
                ReceiveBufferRule::FreeBsd { space, auto, .. } => {
                    *space = Bytes(size);
                    *auto = false;
                }
                // SOCK_RCVBUF_LOCK; sock_setsockopt doubles the value, up to the limit.
                ReceiveBufferRule::Linux { rmem, auto, rmem_max, .. } => {
                    rmem[1] = Bytes(2 * size.min(rmem_max.get()));
                    *auto = false;
                }
                ReceiveBufferRule::Fixed { space } => *space = Bytes(size),
            }
        }
        TcpConfig {
            algorithm: self.algorithm.unwrap_or(host.algorithm),
            side,
            flow: FlowId(0),
            ip,
            draws: RandomStream::named(1, "socket", "controller"),
            isn: SeqNum(0),
            timestamp: TIMESTAMP,
            clock_phase: Duration::ZERO,
            tso: host.tso,
            nodelay: self.nodelay,
            keepalive: self.keepalive(&profile),
            profile: profile.into(),
        }
    }
}

/// All sockets.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    by_number: BTreeMap<i64, ScriptSocket>,
    by_role: BTreeSet<(SocketRole, i64)>,
    /// The epoll instances.
    pub(super) epolls: BTreeMap<i64, Vec<Watch>>,
}

/// What an epoll instance watches.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    pub(super) fd: i64,
    /// Events, and flags such as `EPOLLET`.
    pub(super) events: Vec<String>,
    /// Signals of the connection when it was last reported; `None` before that.
    pub(super) seen: Option<u64>,
}

impl Sockets {
    pub(super) fn open(&mut self, number: i64, socket: ScriptSocket) {
        self.close(number);
        self.by_role.insert((socket.role, number));
        self.by_number.insert(number, socket);
    }

    pub(super) fn close(&mut self, number: i64) -> Option<ScriptSocket> {
        let closed = self.by_number.remove(&number)?;
        self.by_role.remove(&(closed.role, number));
        Some(closed)
    }

    /// Closes an epoll instance; returns whether there was one.
    pub(super) fn close_epoll(&mut self, number: i64) -> bool {
        self.epolls.remove(&number).is_some()
    }

    pub(super) fn get(&self, number: i64) -> Option<&ScriptSocket> {
        self.by_number.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: i64) -> Option<&mut ScriptSocket> {
        self.by_number.get_mut(&number)
    }

    /// Gives a socket another role.
    pub(super) fn set_role(&mut self, number: i64, role: SocketRole) {
        if let Some(socket) = self.by_number.get_mut(&number) {
            self.by_role.remove(&(socket.role, number));
            socket.role = role;
            self.by_role.insert((role, number));
        }
    }

    fn first(&self, role: SocketRole) -> Option<i64> {
        self.by_role.range((role, i64::MIN)..=(role, i64::MAX)).next().map(|&(_, number)| number)
    }

    /// Returns the first socket of that role.
    pub(super) fn with_role(&self, role: SocketRole) -> Option<&ScriptSocket> {
        self.by_number.get(&self.first(role)?)
    }

    /// Returns the listening socket.
    pub(super) fn listener(&self) -> Option<&ScriptSocket> {
        self.with_role(SocketRole::Listener)
    }

    /// Detaches the socket of a connection that a new SYN replaces.
    pub(super) fn replace_connection(&mut self) {
        while let Some(number) = self.first(SocketRole::Connection) {
            self.set_role(number, SocketRole::Replaced);
        }
    }

    /// Returns whether a socket has the connection.
    pub(super) fn connected(&self) -> bool {
        self.first(SocketRole::Connection).is_some()
    }
}
