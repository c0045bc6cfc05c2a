//! Fields of the IP header that are no part of a segment.

use packet::{Flags, IpVersion, Segment};
use tcp::TcpState;
use tcp::profile::Family;

use super::sockets::{SocketOptions, SocketRole};
use super::{Result, Runner};
use crate::ast::{IpFields, ScriptPacket, ScriptSegment};

/// Time to live and hop limit of both systems (`net.ipv4.ip_default_ttl`, `net.inet.ip.ttl`).
pub(super) const HOPS: u8 = 64;
/// Those of a packet that arrives, as in packetdrill.
const HOPS_OF_PEER: u8 = 255;
/// The ECN field within the byte of differentiated services.
pub(super) const ECN: u8 = 3;

/// The fields of a sent packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentHeader {
    /// Time to live, or hop limit.
    pub(super) hops: u8,
    /// Differentiated services; the ECN field is that of the segment.
    pub(super) tos: u8,
    /// The AE flag of the TCP header (RFC 9768).
    pub(super) ae: bool,
}

impl Default for SentHeader {
    fn default() -> Self {
        Self { hops: HOPS, tos: 0, ae: false }
    }
}

/// A packet that is being answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnsweredPacket {
    /// Its differentiated services and ECN field.
    tos: u8,
    /// The state of the connection before.
    state: TcpState,
    /// The application has closed the socket.
    orphan: bool,
    /// A socket has the port, whether or not it is connected.
    bound: bool,
}

impl SentHeader {
    /// Returns the fields of a packet of the model; `None` if they are not modelled. `self` are those of the socket.
    ///
    /// Verified on Linux 6.18.44: a RST that answers a packet has the default TTL and the differentiated services of
    /// that packet (tcp_v4_send_reset), an ACK of TIME-WAIT the default TTL and those of its socket.
    pub(super) fn of(
        self,
        family: Family,
        answered: Option<AnsweredPacket>,
        segment: &Segment,
    ) -> Option<Self> {
        let Some(AnsweredPacket { tos, state, orphan, bound }) = answered else {
            return Some(self);
        };
        let resets = segment.flags.has(Flags::RST);
        if family == Family::Linux {
            // Of a closed socket in FIN-WAIT-2 a `struct tcp_timewait_sock` is left.
            let left = state == TcpState::TimeWait || state == TcpState::FinWait2 && orphan;
            return Some(match (resets, left) {
                (true, _) => Self { hops: HOPS, tos: tos & !ECN, ae: false },
                (false, true) => Self { hops: HOPS, ..self },
                (false, false) => self,
            });
        }
        // tcp_respond, syncache_respond: those of the socket, if there is one.
        (bound || state != TcpState::Closed || !resets).then_some(self)
    }
}

impl SocketOptions {
    /// Returns the fields of what this socket sends.
    pub(super) fn header(&self, ip: IpVersion) -> SentHeader {
        let (hops, tos) = match ip {
            IpVersion::V4 => (self.ttl, self.tos),
            IpVersion::V6 => (self.hop_limit, self.class),
        };
        SentHeader { hops: hops.unwrap_or(HOPS), tos, ae: false }
    }

    /// Returns the least number of hops that a packet must have left.
    fn least_hops(&self, ip: IpVersion) -> u8 {
        match ip {
            IpVersion::V4 => self.least_ttl,
            IpVersion::V6 => self.least_hop_count,
        }
    }
}

impl Runner<'_> {
    /// Takes the fields of the socket whose packets are sent from now on.
    pub(super) fn take_header(&mut self) {
        let state = self.world.state();
        let role = if self.sockets.connected() {
            SocketRole::Connection
        } else if matches!(state, TcpState::Listen | TcpState::SynReceived) {
            SocketRole::Listener
        } else {
            // That of a closed socket remains.
            return;
        };
        if let Some(socket) = self.sockets.with_role(role) {
            self.world.header = socket.wishes.header(self.world.ip);
            self.world.least_hops = socket.wishes.least_hops(self.world.ip);
        }
    }

    /// Does Linux drop a packet because it has too few hops left (`IP_MINTTL`)? Only a socket looks, not a request
    /// that waits for the end of its handshake (tcp_v4_rcv; verified on 6.18.44).
    pub(super) fn drops_for_hops(&self, packet: &ScriptPacket) -> bool {
        let hops = packet.ip.hops.map_or(HOPS_OF_PEER, |hops| hops.value);
        let request = self.world.state() == TcpState::SynReceived && !self.sockets.connected();
        hops < self.world.least_hops && !request && self.world.state() != TcpState::Closed
    }

    /// Notes the fields of a packet that arrives.
    pub(super) fn answers(&mut self, packet: &ScriptPacket, segment: &Segment) {
        let tos = packet.ip.tos.map_or(segment.ecn, |tos| tos.value);
        let (state, orphan) = (self.world.state(), !self.sockets.connected());
        let socket = self.sockets.with_role(SocketRole::Unconnected);
        let bound = socket.filter(|_| state == TcpState::Closed && orphan);
        if let Some(socket) = bound {
            self.world.header = socket.wishes.header(self.world.ip);
        }
        let bound = bound.is_some();
        self.world.answered = Some(AnsweredPacket { tos, state, orphan, bound });
    }

    /// Refuses `!` where numbers of the wire are not those of the script: the model's streams begin at 0.
    pub(super) fn check_absolute(&self, tcp: &ScriptSegment, same: bool) -> Result<()> {
        match tcp.absolute.filter(|_| !same) {
            Some(span) => {
                self.unsupported(span, "an absolute sequence number is not supported here")
            }
            None => Ok(()),
        }
    }

    /// Refuses fields of a sent packet that are not modelled.
    pub(super) fn check_header(&self, fields: &IpFields, sent: Option<SentHeader>) -> Result<()> {
        if let Some(label) = fields.label {
            return self.unsupported(label.span, "flow labels of sent packets are not modelled");
        }
        match fields.tos.map(|tos| tos.span).or(fields.hops.map(|hops| hops.span)) {
            Some(span) if sent.is_none() => self.unsupported(
                span,
                "the IP header of a RST that no socket sends is not modelled for FreeBSD",
            ),
            _ => Ok(()),
        }
    }

    /// Refuses a SYN-ACK after which Linux 6.18 uses accurate ECN, although its SYN asked for ECN of RFC 3168: the
    /// field ACE is 2, 3, 4 or 6 (tcp_ecn_rcv_synack).
    pub(super) fn check_accurate_ecn(&self, tcp: &ScriptSegment) -> Result<()> {
        let flags = tcp.flags.value;
        let reply = flags.has(Flags::SYN | Flags::ACK) && self.world.state() == TcpState::SynSent;
        if !reply || self.world.real.is_some() || !self.world.host.answers_accurate_ecn() {
            return Ok(());
        }
        let (cwr, ece) = (flags.has(Flags::CWR), flags.has(Flags::ECE));
        match (tcp.ae, cwr, ece) {
            (false, false, _) | (true, false, true) | (true, true, true) => Ok(()),
            _ => self.unsupported(
                tcp.flags.span,
                "this SYN-ACK makes Linux 6.18 use accurate ECN, which is not modelled",
            ),
        }
    }
}

/// Sets the fields of an IP packet with a TCP segment, and the checksums.
pub(super) fn patch(bytes: &mut [u8], fields: &IpFields, ae: bool) {
    let four = bytes.first().is_some_and(|byte| byte >> 4 == 4);
    let tcp = if four { 20 } else { 40 };
    if bytes.len() < tcp + 20 {
        return;
    }
    if let Some(tos) = fields.tos {
        if four {
            add(bytes, 10, u16::from_be_bytes([0, bytes[1]]), u16::from(tos.value));
            bytes[1] = tos.value;
        } else {
            bytes[0] = 0x60 | tos.value >> 4;
            bytes[1] = tos.value << 4 | bytes[1] & 15;
        }
    }
    let hops = fields.hops.map_or(HOPS_OF_PEER, |hops| hops.value);
    if four {
        let low = bytes[9];
        let word = |hops| u16::from_be_bytes([hops, low]);
        add(bytes, 10, word(bytes[8]), word(hops));
        bytes[8] = hops;
    } else {
        bytes[7] = hops;
    }
    if let Some(label) = fields.label.filter(|_| !four) {
        let [_, high, middle, low] = label.value.to_be_bytes();
        bytes[1] = bytes[1] & 0xf0 | high;
        (bytes[2], bytes[3]) = (middle, low);
    }
    if ae {
        let at = tcp + 12;
        let word = |high| u16::from_be_bytes([high, bytes[at + 1]]);
        let (old, new) = (word(bytes[at]), word(bytes[at] | 1));
        add(bytes, tcp + 16, old, new);
        bytes[at] |= 1;
    }
}

/// Updates the checksum at `at` for a word that changes from `old` to `new` (RFC 1624, equation 3).
fn add(bytes: &mut [u8], at: usize, old: u16, new: u16) {
    let sum = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut total = u32::from(!sum) + u32::from(!old) + u32::from(new);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    bytes[at..at + 2].copy_from_slice(&(!(total as u16)).to_be_bytes());
}

/// Reads the fields of an IP packet with a TCP segment.
pub(super) fn read(bytes: &[u8]) -> SentHeader {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    if byte(0) >> 4 == 4 {
        let tcp = usize::from(byte(0) & 15) * 4;
        SentHeader { hops: byte(8), tos: byte(1) & !ECN, ae: byte(tcp + 12) & 1 != 0 }
    } else {
        let tos = byte(0) << 4 | byte(1) >> 4;
        SentHeader { hops: byte(7), tos: tos & !ECN, ae: byte(52) & 1 != 0 }
    }
}

#[cfg(test)]
mod tests {
    use packet::Dir;
    use packet::wire::{Endpoints, Link, emit, parse};
    use units::Offset;

    use super::*;
    use crate::ast::{ScriptSpan, Spanned};

    #[test]
    fn patched_fields_are_read_back_and_the_checksums_hold() {
        let spanned = |value| Some(Spanned { value, span: ScriptSpan { start: 0, end: 0 } });
        for (ip, addresses) in [
            (IpVersion::V4, ["192.0.2.1:1", "192.168.0.1:2"]),
            (IpVersion::V6, ["[2001:db8::1]:1", "[2001:db8::2]:2"]),
        ] {
            let [src, dst] = addresses.map(|address| address.parse().unwrap());
            let segment =
                Segment { ip, dir: Dir::Forward, flags: Flags::ACK, ..Segment::default() };
            let mut bytes = Vec::new();
            emit(&segment, &Endpoints { src, dst }, 0, Offset(0), &mut bytes).unwrap();
            let fields = IpFields {
                hops: Some(Spanned { value: 7, span: ScriptSpan { start: 0, end: 0 } }),
                tos: spanned(0x4b),
                label: None,
            };
            patch(&mut bytes, &fields, true);
            assert_eq!(read(&bytes), SentHeader { hops: 7, tos: 0x48, ae: true });
            assert_eq!(parse(&bytes, Link::Raw).unwrap().segment.ecn, packet::ECN_CE);
            if ip == IpVersion::V4 {
                assert_eq!(sum(&bytes[..20]), 0xffff);
            }
            // The pseudo-header of TCP: addresses, length and protocol.
            let start = ip.header_len() as usize;
            let from = if ip == IpVersion::V4 { 12 } else { 8 };
            let pseudo = [&bytes[from..start], &[0, 20, 0, 6]].concat();
            assert_eq!(sum(&[&pseudo, &bytes[start..]].concat()), 0xffff);
        }
    }

    /// Sum in one's complement, 0xffff with a valid checksum (RFC 1071).
    fn sum(bytes: &[u8]) -> u16 {
        let words = bytes.as_chunks::<2>().0;
        let total: u32 = words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum();
        let folded = (total & 0xffff) + (total >> 16);
        ((folded & 0xffff) + (folded >> 16)) as u16
    }
}
