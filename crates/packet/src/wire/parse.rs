//! The bytes of a packet as a segment.
//!
//! The parser is as lax as captures require: a packet may be truncated after the 20 bytes of a TCP
//! header (snap length), and an IP length of zero, which a capture above TSO may show (and always
//! does with BIG TCP over IPv4), means the whole capture. BIG TCP over IPv6 has its length in a
//! jumbo payload option (RFC 2675).

use core::fmt;
use std::net::SocketAddr;

use etherparse::err::{LenError, ip};
use etherparse::{IpNumber, Ipv6RawExtHeaderSlice, LaxIpSlice, LaxIpv6Slice};
use units::SeqNum;

use super::link::{Link, tunnelled};
use super::{Endpoints, options};
use crate::{Flags, IpVersion, Options, Segment};

/// The AE bit in the byte of the header length (RFC 9768 section 3.1).
const ACCURATE_ECN: u8 = 1;

/// Bytes of a TCP header without options.
const TCP_HEADER: usize = 20;

/// Maximum bytes of a packet that segmentation offload passes (Linux `GSO_MAX_SIZE`, 8 times 65,535):
/// none is longer, whatever the record of a capture claims.
const MAX_PACKET: usize = 8 * 65_535;

/// Most headers of IP in a packet: tunnels within tunnels.
pub(super) const MAX_DEPTH: usize = 8;

/// A packet read from a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedPacket<'a> {
    /// Addresses and ports.
    pub endpoints: Endpoints,
    /// The segment. The caller sets its flow and direction; `gso_size` and `nsegs` are 0, since the
    /// bytes show one packet.
    pub segment: Segment,
    /// Identification of the IPv4 header; 0 in IPv6.
    pub id: u16,
    /// Time to live of the IPv4 header, or hop limit of the IPv6 header.
    pub ttl: u8,
    /// Captured payload bytes: fewer than `segment.payload` if the capture truncated the packet.
    pub payload: &'a [u8],
    /// True if the segment has all options. False if some are unknown, malformed or truncated.
    pub options_complete: bool,
    /// The capture truncated the packet within its options.
    pub options_cut: bool,
}

/// Parses one packet that was not truncated.
///
/// # Errors
///
/// [`WireError`] with the offset into `bytes` if there is no TCP header.
pub fn parse(bytes: &[u8], link: Link) -> Result<ParsedPacket<'_>, WireError> {
    parse_cut(bytes, bytes.len(), link)
}

/// Parses one packet that had `original` bytes before the capture truncated it.
///
/// # Errors
///
/// [`WireError`] with the offset into `bytes` if there is no TCP header.
pub fn parse_cut(bytes: &[u8], original: usize, link: Link) -> Result<ParsedPacket<'_>, WireError> {
    let mut start = link.ip_offset(bytes)?;
    for _ in 1..MAX_DEPTH {
        match parse_ip(bytes, original, start) {
            Err(WireError { offset, problem: WireProblem::NotTcp(number) }) => {
                match tunnelled(bytes, number, offset) {
                    Some(inner) if inner < bytes.len() => start = inner,
                    _ => return Err(WireError::at(offset, WireProblem::NotTcp(number))),
                }
            }
            parsed => return parsed,
        }
    }
    parse_ip(bytes, original, start)
}

/// Parses the packet whose IP header is at `start`.
pub(super) fn parse_ip(
    bytes: &[u8],
    original: usize,
    start: usize,
) -> Result<ParsedPacket<'_>, WireError> {
    let (ip, _) = LaxIpSlice::from_slice(&bytes[start..]).map_err(|err| match err {
        ip::LaxHeaderSliceError::Len(len) => WireError::cut(start, &len),
        ip::LaxHeaderSliceError::Content(_) => WireError::at(start, WireProblem::NotIp),
    })?;
    // Bytes of IP headers, the length field (0: none), ECN bits, identification.
    let (version, headers, reported, ecn, id, ttl) = match &ip {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            let extensions = v4.extensions().auth.as_ref().map_or(0, |auth| auth.slice().len());
            (
                IpVersion::V4,
                header.slice().len() + extensions,
                usize::from(header.total_len()),
                header.ecn().value(),
                header.identification(),
                header.ttl(),
            )
        }
        LaxIpSlice::Ipv6(v6) => {
            let header = v6.header();
            let reported = match usize::from(header.payload_length()) {
                0 => jumbo(v6).map_or(0, |payload| header.slice().len() + payload),
                payload => header.slice().len() + payload,
            };
            let headers = header.slice().len() + v6.extensions().slice().len();
            (IpVersion::V6, headers, reported, header.ecn().value(), 0, header.hop_limit())
        }
    };
    let tcp_start = start + headers;
    if ip.is_fragmenting_payload() {
        return Err(WireError::at(tcp_start, WireProblem::Fragment));
    }
    if ip.payload_ip_number() != IpNumber::TCP {
        return Err(WireError::at(tcp_start, WireProblem::NotTcp(ip.payload_ip_number().0)));
    }
    let captured = ip.payload().payload;
    let Some(header) = captured.first_chunk::<TCP_HEADER>() else {
        let needed = TCP_HEADER - captured.len();
        return Err(WireError::at(tcp_start, WireProblem::Cut { needed }));
    };
    let header_len = usize::from(header[12] >> 4) * 4;
    // Truncated bytes count towards the length.
    let there = captured.len().max(original.saturating_sub(tcp_start));
    let tcp_len = if reported > headers { reported - headers } else { there };
    if tcp_len > MAX_PACKET {
        return Err(WireError::at(tcp_start, WireProblem::TooLong));
    }
    let payload = tcp_len
        .checked_sub(header_len.max(TCP_HEADER))
        .filter(|_| header_len >= TCP_HEADER)
        .and_then(|len| u32::try_from(len).ok())
        .ok_or(WireError::at(tcp_start + 12, WireProblem::BadLength))?;

    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let flags = Flags(header[13]);
    let captured_header = header_len.min(captured.len());
    let mut read = options::decode(&captured[TCP_HEADER..captured_header], flags.has(Flags::SYN));
    if let Options::Syn(syn) = &mut read.options {
        syn.extras.accurate_ecn = header[12] & ACCURATE_ECN != 0;
    }
    Ok(ParsedPacket {
        endpoints: Endpoints {
            src: SocketAddr::new(ip.source_addr(), half(0)),
            dst: SocketAddr::new(ip.destination_addr(), half(2)),
        },
        segment: Segment {
            ip: version,
            ecn,
            flags,
            seq: SeqNum(word(4)),
            ack: SeqNum(word(8)),
            payload,
            window: half(14),
            timestamps: read.timestamps,
            options: read.options,
            ..Segment::default()
        },
        id,
        ttl,
        payload: &captured[captured_header..],
        options_complete: read.complete && captured_header == header_len,
        options_cut: captured_header < header_len,
    })
}

/// Length following the IPv6 header from a jumbo payload option (RFC 2675 section 2), if any.
fn jumbo(v6: &LaxIpv6Slice<'_>) -> Option<usize> {
    const JUMBO: u8 = 0xc2;
    // It comes first or not at all (RFC 8200 section 4.1). The iterator of etherparse 0.21 is not
    // used: it reads on after a chain that ends with a misplaced header.
    if v6.header().next_header() != IpNumber::IPV6_HEADER_HOP_BY_HOP {
        return None;
    }
    let hop_by_hop = Ipv6RawExtHeaderSlice::from_slice(v6.extensions().slice()).ok()?;
    let mut rest = hop_by_hop.payload();
    loop {
        rest = match rest {
            [JUMBO, 4, a, b, c, d, ..] => {
                return usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).ok();
            }
            // One byte of padding.
            [0, tail @ ..] => tail,
            [_, len, tail @ ..] => tail.get(usize::from(*len)..)?,
            _ => return None,
        };
    }
}

/// Why bytes are not a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireError {
    /// Offset of the problem in the packet, from 0.
    pub offset: usize,
    /// The problem.
    pub problem: WireProblem,
}

/// A defect of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireProblem {
    /// The packet ends within a header.
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
    /// The packet claims to be longer than any that segmentation offload passes.
    TooLong,
}

impl WireError {
    const fn at(offset: usize, problem: WireProblem) -> Self {
        Self { offset, problem }
    }

    fn cut(layer: usize, err: &LenError) -> Self {
        let needed = err.required_len.saturating_sub(err.len);
        Self::at(layer + err.layer_start_offset, WireProblem::Cut { needed })
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.offset)?;
        match self.problem {
            WireProblem::Cut { needed } => {
                write!(f, "the packet ends {needed} bytes short of a header")
            }
            WireProblem::NotIp => f.write_str("expected an IPv4 or IPv6 header"),
            WireProblem::NotTcp(number) => write!(f, "expected TCP (6), found protocol {number}"),
            WireProblem::Fragment => f.write_str("expected a whole packet, found a fragment"),
            WireProblem::BadLength => {
                f.write_str("the length of the TCP header is below 20 bytes or beyond the packet")
            }
            WireProblem::TooLong => {
                write!(f, "the packet claims more than {MAX_PACKET} bytes, the limit of offloads")
            }
        }
    }
}

impl core::error::Error for WireError {}
