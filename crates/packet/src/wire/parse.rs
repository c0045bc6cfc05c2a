//! The bytes of a packet as a segment.
//!
//! Lax where captures are lax: a packet may be cut off behind its TCP header (a snap length), and
//! an IP length of zero, which a capture above TSO may show, means all that is there.

use core::fmt;
use std::net::{IpAddr, SocketAddr};

use etherparse::err::{LenError, ip, tcp};
use etherparse::{IpNumber, LaxIpSlice, TcpHeaderSlice};
use units::SeqNum;

use super::{Endpoints, options};
use crate::{Flags, IpVersion, Segment};

/// What stands before the IP header, by the link types of pcap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// Nothing (`LINKTYPE_RAW`, `_IPV4`, `_IPV6`).
    Raw,
    /// Ethernet, with VLAN tags or without.
    Ethernet,
    /// Four bytes of address family (`LINKTYPE_NULL`, `_LOOP`).
    Loopback,
    /// Linux "cooked" capture.
    LinuxSll,
    /// Linux "cooked" capture, version 2.
    LinuxSll2,
}

impl Link {
    /// The one with this LINKTYPE number of pcap and pcapng.
    pub const fn from_linktype(number: u16) -> Option<Self> {
        match number {
            101 | 228 | 229 => Some(Self::Raw),
            1 => Some(Self::Ethernet),
            0 | 108 => Some(Self::Loopback),
            113 => Some(Self::LinuxSll),
            276 => Some(Self::LinuxSll2),
            _ => None,
        }
    }

    /// Bytes before the IP header, and where an EtherType stands among them.
    const fn header(self) -> (usize, Option<usize>) {
        match self {
            Self::Raw => (0, None),
            Self::Ethernet => (14, Some(12)),
            Self::Loopback => (4, None),
            Self::LinuxSll => (16, Some(14)),
            Self::LinuxSll2 => (20, Some(0)),
        }
    }
}

/// A packet read from a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// Addresses and ports.
    pub between: Endpoints,
    /// The segment. Its flow and direction are for the caller to set; it is one packet as far as
    /// the bytes can tell, so `gso_size` and `nsegs` are 0.
    pub segment: Segment,
    /// Identification of the IPv4 header; 0 in IPv6.
    pub id: u16,
    /// Captured bytes of the payload: fewer than `segment.payload` if the capture cut it off.
    pub payload: &'a [u8],
    /// Does the segment hold all its options? False if some are unknown or broken.
    pub options_whole: bool,
}

/// Reads one packet.
///
/// # Errors
///
/// [`WireError`] with the offset into `bytes` if there is no whole TCP header to be found.
pub fn parse(bytes: &[u8], link: Link) -> Result<Parsed<'_>, WireError> {
    let start = ip_start(bytes, link)?;
    let (ip, _) = LaxIpSlice::from_slice(&bytes[start..]).map_err(|err| match err {
        ip::LaxHeaderSliceError::Len(len) => WireError::cut(start, &len),
        ip::LaxHeaderSliceError::Content(_) => WireError::at(start, Problem::NotIp),
    })?;
    // Bytes of IP headers, what the length field says (0: nothing), ECN bits, identification.
    let (version, headers, told, ecn, id) = match &ip {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            let extensions = v4.extensions().auth.as_ref().map_or(0, |auth| auth.slice().len());
            (
                IpVersion::V4,
                header.slice().len() + extensions,
                usize::from(header.total_len()),
                header.ecn().value(),
                header.identification(),
            )
        }
        LaxIpSlice::Ipv6(v6) => {
            let header = v6.header();
            let told = match usize::from(header.payload_length()) {
                0 => 0,
                payload => header.slice().len() + payload,
            };
            let headers = header.slice().len() + v6.extensions().slice().len();
            (IpVersion::V6, headers, told, header.ecn().value(), 0)
        }
    };
    let tcp_start = start + headers;
    if ip.is_fragmenting_payload() {
        return Err(WireError::at(tcp_start, Problem::Fragment));
    }
    if ip.payload_ip_number() != IpNumber::TCP {
        return Err(WireError::at(tcp_start, Problem::NotTcp(ip.payload_ip_number().0)));
    }
    let captured = ip.payload().payload;
    let header = TcpHeaderSlice::from_slice(captured).map_err(|err| match err {
        tcp::HeaderSliceError::Len(len) => WireError::cut(tcp_start, &len),
        tcp::HeaderSliceError::Content(_) => WireError::at(tcp_start + 12, Problem::BadLength),
    })?;
    let tcp_len = if told > headers { told - headers } else { captured.len() };
    let payload = tcp_len
        .checked_sub(header.slice().len())
        .and_then(|len| u32::try_from(len).ok())
        .ok_or(WireError::at(tcp_start + 12, Problem::BadLength))?;

    let read = options::decode(header.options(), header.syn());
    Ok(Parsed {
        between: endpoints(ip.source_addr(), ip.destination_addr(), &header),
        segment: Segment {
            ip: version,
            ecn,
            flags: Flags(header.slice()[13]),
            seq: SeqNum(header.sequence_number()),
            ack: SeqNum(header.acknowledgment_number()),
            payload,
            window: header.window_size(),
            timestamps: read.timestamps,
            options: read.options,
            ..Segment::default()
        },
        id,
        payload: &captured[header.slice().len()..],
        options_whole: read.whole,
    })
}

fn endpoints(src: IpAddr, dst: IpAddr, header: &TcpHeaderSlice<'_>) -> Endpoints {
    Endpoints {
        src: SocketAddr::new(src, header.source_port()),
        dst: SocketAddr::new(dst, header.destination_port()),
    }
}

/// Where the IP header begins.
fn ip_start(bytes: &[u8], link: Link) -> Result<usize, WireError> {
    let (mut start, ether_type) = link.header();
    if let Some(mut at) = ether_type {
        loop {
            let Some(&[high, low]) = bytes.get(at..at + 2) else {
                return Err(WireError::at(at, Problem::Cut { needed: at + 2 - bytes.len() }));
            };
            match u16::from_be_bytes([high, low]) {
                0x0800 | 0x86dd => break,
                // A VLAN tag (802.1Q, 802.1ad, or the older QinQ): the next type follows it.
                0x8100 | 0x88a8 | 0x9100 if link == Link::Ethernet => {
                    at += 4;
                    start += 4;
                }
                _ => return Err(WireError::at(at, Problem::NotIp)),
            }
        }
    }
    if start > bytes.len() {
        return Err(WireError::at(bytes.len(), Problem::Cut { needed: start - bytes.len() }));
    }
    Ok(start)
}

/// Why bytes are not a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireError {
    /// Byte of the packet, counted from 0, where the trouble begins.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The bytes end within a header.
    Cut {
        /// Bytes missing.
        needed: usize,
    },
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// Another protocol, by its IP number.
    NotTcp(u8),
    /// Part of a fragmented packet.
    Fragment,
    /// The TCP header is shorter than 20 bytes or longer than the packet.
    BadLength,
}

impl WireError {
    const fn at(offset: usize, problem: Problem) -> Self {
        Self { offset, problem }
    }

    fn cut(layer: usize, err: &LenError) -> Self {
        let needed = err.required_len.saturating_sub(err.len);
        Self::at(layer + err.layer_start_offset, Problem::Cut { needed })
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.offset)?;
        match self.problem {
            Problem::Cut { needed } => {
                write!(f, "the packet ends {needed} bytes short of a header")
            }
            Problem::NotIp => f.write_str("expected an IPv4 or IPv6 header"),
            Problem::NotTcp(number) => write!(f, "expected TCP (6), found protocol {number}"),
            Problem::Fragment => f.write_str("expected a whole packet, found a fragment"),
            Problem::BadLength => {
                f.write_str("the length of the TCP header is below 20 bytes or beyond the packet")
            }
        }
    }
}

impl core::error::Error for WireError {}
