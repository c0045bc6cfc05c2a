//! The sockets of the application, by the numbers the script gives them.

use std::collections::BTreeMap;

use cc::Algorithm;
use packet::IpVersion;
use tcp::profile::{Profile, ReceiveBufferRule};
use tcp::{Config, Keepalive, Side};
use units::{Bytes, Duration, FlowId, SeqNum, Stream};

use crate::settings::Host;

/// Value of the host's timestamp clock when a script begins: scripts may not know it.
const TIMESTAMP: u32 = 100_000;

/// What a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Neither opened nor listening.
    Fresh,
    /// Waits for connections.
    Listener,
    /// Has the connection, or had it.
    Connection,
}

/// A socket of the application.
#[derive(Debug, Clone)]
pub(super) struct Socket {
    pub(super) role: Role,
    pub(super) nonblocking: bool,
    /// The application has said that it will not write any more.
    pub(super) shut: bool,
    pub(super) wishes: Wishes,
}

/// What an application has asked of a socket.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    pub(super) nodelay: bool,
    pub(super) send_buffer: Option<u64>,
    pub(super) receive_buffer: Option<u64>,
    pub(super) maxseg: Option<u32>,
    pub(super) algorithm: Option<Algorithm>,
    pub(super) keepalive: bool,
    pub(super) keep_idle: Option<Duration>,
    pub(super) keep_interval: Option<Duration>,
    pub(super) keep_count: Option<u32>,
    /// `SO_LINGER` with no time: a close resets.
    pub(super) no_linger: bool,
}

impl Wishes {
    /// Keepalive as it is wished for, the rest as the system has it.
    pub(super) fn keepalive(&self, profile: &Profile) -> Option<Keepalive> {
        self.keepalive.then(|| Keepalive {
            idle: self.keep_idle.unwrap_or(profile.keepalive.idle),
            interval: self.keep_interval.unwrap_or(profile.keepalive.interval),
            count: self.keep_count.unwrap_or(profile.keepalive.count),
        })
    }

    /// A connection of this socket.
    pub(super) fn config(&self, host: &Host, ip: IpVersion, side: Side) -> Config {
        let mut profile = host.profile.clone();
        if let Some(maxseg) = self.maxseg {
            profile.mtu = profile.mtu.min(maxseg + ip.header_len() + 20);
        }
        if let Some(size) = self.receive_buffer {
            match &mut profile.receive_buffer {
                ReceiveBufferRule::FreeBsd { space, auto, .. } => {
                    *space = Bytes(size);
                    *auto = false;
                }
                // SOCK_RCVBUF_LOCK; sock_setsockopt doubles what is asked for, up to the limit.
                ReceiveBufferRule::Linux { rmem, auto, rmem_max } => {
                    rmem[1] = Bytes(2 * size.min(rmem_max.get()));
                    *auto = false;
                }
                ReceiveBufferRule::Fixed { space } => *space = Bytes(size),
            }
        }
        Config {
            algorithm: self.algorithm.unwrap_or(host.algorithm),
            side,
            flow: FlowId(0),
            ip,
            draws: Stream::named(1, "socket", "controller"),
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
    by_number: BTreeMap<i64, Socket>,
}

impl Sockets {
    pub(super) fn open(&mut self, number: i64, socket: Socket) {
        self.by_number.insert(number, socket);
    }

    pub(super) fn close(&mut self, number: i64) -> Option<Socket> {
        self.by_number.remove(&number)
    }

    pub(super) fn get(&self, number: i64) -> Option<&Socket> {
        self.by_number.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: i64) -> Option<&mut Socket> {
        self.by_number.get_mut(&number)
    }

    /// The socket that listens.
    pub(super) fn listener(&self) -> Option<&Socket> {
        self.by_number.values().find(|socket| socket.role == Role::Listener)
    }

    /// Does a socket have the connection?
    pub(super) fn connected(&self) -> bool {
        self.by_number.values().any(|socket| socket.role == Role::Connection)
    }
}
