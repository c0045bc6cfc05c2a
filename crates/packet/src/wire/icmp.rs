//! ICMP errors about TCP packets (RFC 792, RFC 4443).

use std::net::{IpAddr, SocketAddr};

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type, IpNumber, LaxIpSlice};
use units::SeqNum;

use super::Endpoints;
use super::link::{Link, tunnelled};
use super::parse::{MAX_DEPTH, WireError, WireProblem, parse_ip};

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
        let ip = if v6 { crate::IpVersion::V6 } else { crate::IpVersion::V4 };
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
