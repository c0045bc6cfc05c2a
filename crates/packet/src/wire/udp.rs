//! UDP datagrams (RFC 768) in captured packets.

use std::net::{IpAddr, SocketAddr};

use etherparse::LaxIpSlice;

use super::Endpoints;
use super::link::{Link, tunnelled};
use super::parse::{MAX_DEPTH, WireError, WireProblem, parse_ip};

const UDP: u8 = 17;
/// Bytes of the header.
const HEADER: usize = 8;

/// A UDP datagram of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// Addresses and ports.
    pub endpoints: Endpoints,
    /// Captured payload: fewer than `len` bytes if the capture truncated it.
    pub payload: &'a [u8],
    /// Length of the payload in bytes.
    pub len: usize,
    /// The two ECN bits of the IP header (RFC 3168).
    pub ecn: u8,
}

/// The UDP datagram in a packet that [`parse_cut`](super::parse_cut) refuses as
/// [`WireProblem::NotTcp`]; `None` for other packets, and if its headers are truncated or invalid.
pub fn udp_datagram(bytes: &[u8], original: usize, link: Link) -> Option<UdpDatagram<'_>> {
    let mut start = link.ip_offset(bytes).ok()?;
    for _ in 0..MAX_DEPTH {
        match parse_ip(bytes, original, start) {
            Err(WireError { offset, problem: WireProblem::NotTcp(number) }) => {
                match tunnelled(bytes, number, offset).filter(|inner| *inner < bytes.len()) {
                    Some(inner) => start = inner,
                    None if number == UDP => return of_ip(bytes.get(start..)?),
                    None => return None,
                }
            }
            _ => return None,
        }
    }
    None
}

fn of_ip(bytes: &[u8]) -> Option<UdpDatagram<'_>> {
    let (ip, _) = LaxIpSlice::from_slice(bytes).ok()?;
    let (ecn, src, dst): (u8, IpAddr, IpAddr) = match &ip {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            (header.ecn().value(), header.source_addr().into(), header.destination_addr().into())
        }
        LaxIpSlice::Ipv6(v6) => {
            let header = v6.header();
            (header.ecn().value(), header.source_addr().into(), header.destination_addr().into())
        }
    };
    let captured = ip.payload().payload;
    let header = captured.first_chunk::<HEADER>()?;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let len = usize::from(half(4)).checked_sub(HEADER)?;
    let payload = &captured[HEADER..];
    Some(UdpDatagram {
        endpoints: Endpoints {
            src: SocketAddr::new(src, half(0)),
            dst: SocketAddr::new(dst, half(2)),
        },
        payload: &payload[..payload.len().min(len)],
        len,
        ecn,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(payload: &[u8], len: u16) -> Vec<u8> {
        let total = 28 + payload.len() as u16;
        let mut out = vec![0x45, 3, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, UDP, 0, 0];
        out.extend([192, 0, 2, 1, 192, 0, 2, 2, 0x30, 0x39, 0x01, 0xbb]);
        out.extend(len.to_be_bytes());
        out.extend([0, 0]);
        out.extend_from_slice(payload);
        out
    }

    #[test]
    fn datagrams_are_read_and_truncated_ones_keep_their_length() {
        let bytes = packet(&[7; 40], 48);
        let whole = udp_datagram(&bytes, bytes.len(), Link::Raw).unwrap();
        assert_eq!((whole.payload, whole.len, whole.ecn), (&[7; 40][..], 40, 3));
        assert_eq!(whole.endpoints.dst, ([192, 0, 2, 2], 443).into());
        let cut = udp_datagram(&bytes[..38], bytes.len(), Link::Raw).unwrap();
        assert_eq!((cut.payload.len(), cut.len), (10, 40));
        for len in 0..28 {
            assert_eq!(udp_datagram(&bytes[..len], bytes.len(), Link::Raw), None);
        }
        // A length below that of the header.
        assert_eq!(udp_datagram(&packet(&[7; 40], 7), 68, Link::Raw), None);
    }
}
