//! ICMP errors about TCP packets (RFC 792, RFC 4443).

use std::net::{IpAddr, SocketAddr};

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{
    Icmpv4Header, Icmpv4Slice, Icmpv4Type, Icmpv6Header, Icmpv6Slice, Icmpv6Type, IpNumber,
    Ipv4Header, Ipv6Header, LaxIpSlice,
};
use units::SeqNum;

use super::Endpoints;
use super::emit::{EmitError, HOPS};
use super::link::{Link, tunnelled};
use super::parse::{MAX_DEPTH, WireError, WireProblem, parse_ip};
use crate::{IpVersion, PacketTooBig};

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// What an ICMP error reports about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpProblem {
    /// The packet is longer than the next link carries, and must not be fragmented.
    TooBig {
        /// MTU of that link in bytes; 0 if the router does not report it.
        mtu: u32,
    },
    /// No route to its network.
    NetworkUnreachable,
    /// Its host does not answer on its link.
    HostUnreachable,
    /// Nothing receives at its port, or for its protocol.
    PortUnreachable,
    /// A filter forbids it.
    Prohibited,
    /// Its time to live ran out on the path.
    TtlExceeded,
}

/// An ICMP error about a TCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpError {
    /// The host that sent the error.
    pub reporter: IpAddr,
    /// The error.
    pub problem: IcmpProblem,
    /// Endpoints of the packet that it is about.
    pub packet: Endpoints,
    /// Sequence number of that packet.
    pub seq: SeqNum,
}

/// The ICMP error in a packet that [`parse_cut`](super::parse_cut) refuses as
/// [`WireProblem::NotTcp`]; `None` for other packets, and for errors about other protocols.
pub fn icmp_error(bytes: &[u8], original: usize, link: Link) -> Option<IcmpError> {
    let mut start = link.ip_offset(bytes).ok()?;
    for _ in 0..MAX_DEPTH {
        match parse_ip(bytes, original, start) {
            Err(WireError { problem: WireProblem::NotTcp(ICMP | ICMP_V6), .. }) => {
                return of_ip(bytes.get(start..)?);
            }
            Err(WireError { offset, problem: WireProblem::NotTcp(number) }) => {
                start = tunnelled(bytes, number, offset)?;
            }
            _ => return None,
        }
    }
    None
}

/// Appends an ICMP error to `out` as one IP packet; `between` are the endpoints of the segment that
/// it is about. It has the address of that segment's receiver.
///
/// # Errors
///
/// [`EmitError::Family`] if the endpoints are not of the message's IP version.
pub fn emit_too_big(
    message: &PacketTooBig,
    between: &Endpoints,
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let size = message.size as u16;
    let ports = [between.src.port().to_be_bytes(), between.dst.port().to_be_bytes()];
    let quoted = |header: &[u8]| [header, &ports.concat(), &message.seq.0.to_be_bytes()].concat();
    match (message.ip, between.src.ip(), between.dst.ip()) {
        (IpVersion::V4, IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut about = Ipv4Header {
                total_len: size,
                dont_fragment: true,
                time_to_live: HOPS,
                protocol: IpNumber::TCP,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv4Header::default()
            };
            about.header_checksum = about.calc_header_checksum();
            let mut ip = Ipv4Header {
                total_len: message.packet_len() as u16,
                protocol: IpNumber::ICMP,
                source: dst.octets(),
                destination: src.octets(),
                ..about.clone()
            };
            ip.header_checksum = ip.calc_header_checksum();
            let payload = quoted(&about.to_bytes());
            let next_hop_mtu = message.mtu as u16;
            let kind =
                Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::FragmentationNeeded {
                    next_hop_mtu,
                });
            out.extend_from_slice(&ip.to_bytes());
            out.extend_from_slice(&Icmpv4Header::with_checksum(kind, &payload).to_bytes());
            out.extend_from_slice(&payload);
        }
        (IpVersion::V6, IpAddr::V6(src), IpAddr::V6(dst)) => {
            let about = Ipv6Header {
                payload_length: size.saturating_sub(Ipv6Header::LEN as u16),
                next_header: IpNumber::TCP,
                hop_limit: HOPS,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv6Header::default()
            };
            let ip = Ipv6Header {
                payload_length: message.packet_len() as u16 - Ipv6Header::LEN as u16,
                next_header: IpNumber::IPV6_ICMP,
                source: dst.octets(),
                destination: src.octets(),
                ..about
            };
            let payload = quoted(&about.to_bytes());
            let kind = Icmpv6Type::PacketTooBig { mtu: message.mtu };
            let icmp = Icmpv6Header::with_checksum(kind, ip.source, ip.destination, &payload);
            let too_long = |_| EmitError::TooLong { bytes: payload.len() as u64 };
            let icmp = icmp.map_err(too_long)?;
            out.extend_from_slice(&ip.to_bytes());
            out.extend_from_slice(&icmp.to_bytes());
            out.extend_from_slice(&payload);
        }
        _ => return Err(EmitError::Family { segment: message.ip, between: *between }),
    }
    Ok(())
}

fn of_ip(bytes: &[u8]) -> Option<IcmpError> {
    let (ip, _) = LaxIpSlice::from_slice(bytes).ok()?;
    let payload = ip.payload().payload;
    let (problem, about) = match &ip {
        LaxIpSlice::Ipv4(_) => {
            let icmp = Icmpv4Slice::from_slice(payload).ok()?;
            (problem_v4(&icmp.icmp_type())?, icmp.payload())
        }
        LaxIpSlice::Ipv6(_) => {
            let icmp = Icmpv6Slice::from_slice(payload).ok()?;
            (problem_v6(&icmp.icmp_type())?, icmp.payload())
        }
    };
    // The error contains the header of the packet and at least 8 bytes of its payload.
    let (quoted, _) = LaxIpSlice::from_slice(about).ok()?;
    if quoted.payload_ip_number() != IpNumber::TCP {
        return None;
    }
    let &[s1, s0, d1, d0, a, b, c, d, ..] = quoted.payload().payload else { return None };
    let end = |ip: IpAddr, port: [u8; 2]| SocketAddr::new(ip, u16::from_be_bytes(port));
    let (src, dst) = addresses(&quoted);
    Some(IcmpError {
        reporter: addresses(&ip).0,
        problem,
        packet: Endpoints { src: end(src, [s1, s0]), dst: end(dst, [d1, d0]) },
        seq: SeqNum(u32::from_be_bytes([a, b, c, d])),
    })
}

fn addresses(ip: &LaxIpSlice<'_>) -> (IpAddr, IpAddr) {
    (ip.source_addr(), ip.destination_addr())
}

const fn problem_v4(kind: &Icmpv4Type) -> Option<IcmpProblem> {
    use DestUnreachableHeader as Code;
    Some(match kind {
        Icmpv4Type::TimeExceeded(_) => IcmpProblem::TtlExceeded,
        Icmpv4Type::DestinationUnreachable(code) => match code {
            Code::FragmentationNeeded { next_hop_mtu } => {
                IcmpProblem::TooBig { mtu: *next_hop_mtu as u32 }
            }
            Code::Host | Code::HostUnknown | Code::Isolated | Code::TosHost => {
                IcmpProblem::HostUnreachable
            }
            Code::Port | Code::Protocol => IcmpProblem::PortUnreachable,
            Code::NetworkProhibited | Code::HostProhibited | Code::FilterProhibited => {
                IcmpProblem::Prohibited
            }
            _ => IcmpProblem::NetworkUnreachable,
        },
        _ => return None,
    })
}

const fn problem_v6(kind: &Icmpv6Type) -> Option<IcmpProblem> {
    use DestUnreachableCode as Code;
    Some(match kind {
        Icmpv6Type::PacketTooBig { mtu } => IcmpProblem::TooBig { mtu: *mtu },
        Icmpv6Type::TimeExceeded(_) => IcmpProblem::TtlExceeded,
        Icmpv6Type::DestinationUnreachable(code) => match code {
            Code::Address => IcmpProblem::HostUnreachable,
            Code::Port => IcmpProblem::PortUnreachable,
            Code::Prohibited | Code::SourceAddressFailedPolicy | Code::RejectRoute => {
                IcmpProblem::Prohibited
            }
            Code::NoRoute | Code::BeyondScope => IcmpProblem::NetworkUnreachable,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Segment};

    fn error_about(v6: bool, kind: u8, code: u8, word: u32) -> Vec<u8> {
        let end = |last: u8, port| match v6 {
            true => SocketAddr::from(([0xfe80, 0, 0, 0, 0, 0, 0, u16::from(last)], port)),
            false => SocketAddr::from(([192, 0, 2, last], port)),
        };
        let about = Endpoints { src: end(1, 40_000), dst: end(2, 443) };
        let ip = if v6 { IpVersion::V6 } else { IpVersion::V4 };
        let segment = Segment { ip, flags: Flags::SYN, seq: SeqNum(77), ..Segment::default() };
        let mut quoted = Vec::new();
        super::super::emit(&segment, &about, 0, units::Offset(0), &mut quoted).unwrap();
        // Eight bytes of the TCP header are all that an old router returns.
        let header = if v6 { 40 } else { 20 };
        quoted.truncate(header + 8);
        let mut packet = quoted[..header].to_vec();
        let length = (8 + quoted.len()) as u16;
        if v6 {
            packet[4..6].copy_from_slice(&length.to_be_bytes());
            (packet[6], packet[23], packet[39]) = (ICMP_V6, 9, 1);
        } else {
            packet[2..4].copy_from_slice(&(20 + length).to_be_bytes());
            (packet[9], packet[15], packet[19]) = (ICMP, 9, 1);
        }
        packet.extend([kind, code, 0, 0]);
        packet.extend(word.to_be_bytes());
        packet.extend(quoted);
        packet
    }

    #[test]
    fn a_message_is_written_and_read() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            let address = |last| match ip {
                IpVersion::V4 => IpAddr::from([192, 0, 2, last]),
                IpVersion::V6 => IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, u16::from(last)]),
            };
            let src = SocketAddr::new(address(1), 40_000);
            let between = Endpoints { src, dst: SocketAddr::new(address(2), 443) };
            let message = PacketTooBig {
                flow: units::FlowId(0),
                dir: crate::Dir::Reverse,
                ip,
                seq: SeqNum(77),
                size: 1_500,
                mtu: 1_300,
            };
            let mut bytes = Vec::new();
            emit_too_big(&message, &between, &mut bytes).unwrap();
            assert_eq!(bytes.len(), message.packet_len() as usize);
            let read = icmp_error(&bytes, bytes.len(), Link::Raw).unwrap();
            let problem = IcmpProblem::TooBig { mtu: 1_300 };
            let expected =
                IcmpError { reporter: address(2), problem, packet: between, seq: SeqNum(77) };
            assert_eq!(read, expected);
        }
    }

    /// Types and codes of RFC 792, RFC 1191 and RFC 4443.
    #[test]
    fn errors_name_their_packet() {
        let table = [
            (false, 3, 0, IcmpProblem::NetworkUnreachable),
            (false, 3, 1, IcmpProblem::HostUnreachable),
            (false, 3, 3, IcmpProblem::PortUnreachable),
            (false, 3, 4, IcmpProblem::TooBig { mtu: 1_300 }),
            (false, 3, 13, IcmpProblem::Prohibited),
            (false, 11, 0, IcmpProblem::TtlExceeded),
            (true, 1, 0, IcmpProblem::NetworkUnreachable),
            (true, 1, 1, IcmpProblem::Prohibited),
            (true, 1, 3, IcmpProblem::HostUnreachable),
            (true, 2, 0, IcmpProblem::TooBig { mtu: 1_300 }),
            (true, 3, 0, IcmpProblem::TtlExceeded),
        ];
        for (v6, kind, code, problem) in table {
            let bytes = error_about(v6, kind, code, 1_300);
            let found = icmp_error(&bytes, bytes.len(), Link::Raw).unwrap();
            assert_eq!((found.problem, found.seq), (problem, SeqNum(77)), "{kind} {code}");
            assert_eq!((found.packet.src.port(), found.packet.dst.port()), (40_000, 443));
            let reporter = if v6 { "fe80::9" } else { "192.0.2.9" };
            assert_eq!(found.reporter, reporter.parse::<IpAddr>().unwrap());
            // Truncated before the ports.
            for len in 0..bytes.len() - 8 {
                assert_eq!(icmp_error(&bytes[..len], bytes.len(), Link::Raw), None, "{len}");
            }
        }
        let echo = error_about(false, 8, 0, 0);
        assert_eq!(icmp_error(&echo, echo.len(), Link::Raw), None);
    }
}
