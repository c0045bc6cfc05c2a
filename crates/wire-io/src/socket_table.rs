//! The TCP sockets of this machine with their `struct tcp_info`, by netlink (`sock_diag(7)`, include/uapi/linux/inet_diag.h).
//!
//! Every user may read all sockets of the network namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;

use diagnose::socket::SocketSample;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_sys::{Socket, protocols::NETLINK_SOCK_DIAG};
use units::{Duration, Instant};

/// Bytes that are received at a time: the kernel fills at most 32 kB.
const BUFFER: usize = 64 * 1_024;

/// A TCP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSocket {
    /// Local address and port.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// State, as `ss` prints it.
    pub state: &'static str,
    /// The congestion control; empty if the kernel does not report it.
    pub cc: String,
    /// Its values; [`SocketSample::at`] is the time that [`SocketTable::read`] was given.
    pub sample: SocketSample,
}

/// The sockets at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketSnapshot {
    /// Connected sockets.
    pub sockets: BTreeMap<SocketCookie, KernelSocket>,
    /// Local and remote addresses of connections in TIME-WAIT: this host has closed them first.
    pub time_wait: BTreeSet<(SocketAddr, SocketAddr)>,
}

/// A connection to the kernel's table of sockets.
#[derive(Debug)]
pub struct SocketTable {
    netlink: Socket,
}

/// A socket's identity: the kernel's cookie, which no other socket gets.
pub type SocketCookie = u64;

impl SocketTable {
    /// Opens the table.
    ///
    /// # Errors
    /// Those of the system: no permission for netlink, or a kernel without `sock_diag`.
    pub fn open() -> io::Result<Self> {
        let mut netlink = Socket::new(NETLINK_SOCK_DIAG)?;
        netlink.bind_auto()?;
        netlink.connect(&netlink_sys::SocketAddr::new(0, 0))?;
        Ok(Self { netlink })
    }

    /// Reads all connected sockets at `at`.
    ///
    /// # Errors
    /// Those of the system, and messages that are none of `sock_diag`.
    pub fn read(&self, at: Instant) -> io::Result<SocketSnapshot> {
        let mut found = SocketSnapshot::default();
        for (family, any) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
            self.request(family, any)?;
            self.answers(&mut |response| {
                let (cookie, socket) = socket(response, at);
                if socket.state == "TIME-WAIT" {
                    found.time_wait.insert((socket.local, socket.remote));
                } else if socket.sample.at.is_some() {
                    found.sockets.insert(cookie, socket);
                }
            })?;
        }
        Ok(found)
    }

    fn request(&self, family: u8, socket_id: SocketId) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let states = StateFlags::all() & !StateFlags::LISTEN;
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO | ExtensionFlags::CONG,
            states,
            socket_id,
        };
        let request = SockDiagMessage::InetRequest(request);
        let mut message = NetlinkMessage::new(header, request.into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.netlink.send(&bytes, 0).map(|_| ())
    }

    fn answers(&self, each: &mut dyn FnMut(InetResponse)) -> io::Result<()> {
        let damaged = |error: &dyn core::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidData, format!("answer of sock_diag: {error}"))
        };
        let mut buffer = Vec::with_capacity(BUFFER);
        loop {
            buffer.clear();
            let received = self.netlink.recv(&mut buffer, 0)?;
            let mut rest = &buffer[..received];
            while !rest.is_empty() {
                let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
                    .map_err(|error| damaged(&error))?;
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                        each(*response);
                    }
                    _ => {}
                }
                // Messages are aligned to four bytes (NLMSG_ALIGN).
                let length = (message.header.length as usize).next_multiple_of(4);
                if length == 0 {
                    return Err(damaged(&"a message of no length"));
                }
                rest = rest.get(length..).unwrap_or_default();
            }
        }
    }
}

/// Names of the states of include/net/tcp_states.h, from 1 on, as `ss` prints them.
const STATES: [&str; 12] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "SYN-RECV",
];

/// A socket; without a `struct tcp_info` its sample has no time.
fn socket(response: InetResponse, at: Instant) -> (SocketCookie, KernelSocket) {
    let header = response.header;
    let id = header.socket_id;
    let state = usize::from(header.state).checked_sub(1).and_then(|n| STATES.get(n));
    let mut socket = KernelSocket {
        local: SocketAddr::new(id.source_address.to_canonical(), id.source_port),
        remote: SocketAddr::new(id.destination_address.to_canonical(), id.destination_port),
        state: state.copied().unwrap_or("UNKNOWN"),
        cc: String::new(),
        sample: SocketSample::default(),
    };
    for nla in response.nlas {
        match nla {
            Nla::TcpInfo(bytes) => {
                let unread = Some(u64::from(header.recv_queue));
                socket.sample = SocketSample { at: Some(at), unread, ..tcp_info(&bytes) };
            }
            Nla::Congestion(name) => socket.cc = name,
            _ => {}
        }
    }
    (u64::from_ne_bytes(id.cookie), socket)
}

/// Values of a `struct tcp_info`, which older kernels end earlier.
fn tcp_info(bytes: &[u8]) -> SocketSample {
    let word = |offset: usize| {
        let bytes = bytes.get(offset..offset + 4)?.first_chunk()?;
        Some(u64::from(u32::from_ne_bytes(*bytes)))
    };
    let long = |offset: usize| {
        bytes.get(offset..offset + 8)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
    };
    let micros =
        |value: Option<u64>| value.map(|us| Duration::from_nanos(us.saturating_mul(1_000)));
    // A bit field: its first bit is the lowest or the highest one.
    let app_limited_bit = if cfg!(target_endian = "little") { 1 } else { 1 << 7 };
    SocketSample {
        at: None,
        mss: word(16),
        unacked: word(24),
        srtt: micros(word(68)).filter(|srtt| !srtt.is_zero()),
        cwnd: word(80),
        retransmitted: word(100),
        acked: long(120),
        received: long(128),
        unsent: word(144),
        // Without a sample it has the largest value.
        min_rtt: micros(word(148).filter(|&us| us != u64::from(u32::MAX) && us > 0)),
        sent_packets: word(156),
        dsacks: word(216),
        reordered: word(220),
        reordering: word(88),
        busy: micros(long(168)),
        rwnd_limited: micros(long(176)),
        sndbuf_limited: micros(long(184)),
        peer_window: word(228),
        unread: None,
        app_limited: bytes.get(7).is_some_and(|bits| bits & app_limited_bit != 0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Both sockets of a connection within this machine are found, with what they sent and received.
    #[test]
    fn own_sockets_are_read_without_privileges() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 1_000]).unwrap();
        server.read_exact(&mut [0; 1_000]).unwrap();
        let all = SocketTable::open().unwrap().read(Instant::from_nanos(5)).unwrap().sockets;
        let of = |local: SocketAddr| all.values().find(|one| one.local == local).unwrap();
        let sender = of(client.local_addr().unwrap());
        assert_eq!((sender.state, sender.sample.at), ("ESTAB", Some(Instant::from_nanos(5))));
        assert_eq!(sender.remote, listener.local_addr().unwrap());
        assert_eq!(of(server.peer_addr().unwrap()), sender);
        assert_eq!(sender.sample.acked, Some(1_001));
        assert!(sender.sample.srtt.is_some() && sender.sample.cwnd >= Some(10));
        assert!(sender.sample.busy.is_some() && !sender.cc.is_empty());
        let receiver = all.values().find(|one| one.remote == client.local_addr().unwrap()).unwrap();
        assert_eq!((receiver.sample.received, receiver.sample.unread), (Some(1_000), Some(0)));
    }

    #[test]
    fn a_short_structure_has_fewer_values() {
        let sample = tcp_info(&[0; 104]);
        assert_eq!((sample.cwnd, sample.acked, sample.busy), (Some(0), None, None));
    }
}
