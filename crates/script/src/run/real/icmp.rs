//! ICMP messages as a real host receives them.

use core::net::IpAddr;

use super::super::icmp::IcmpKind;

/// Protocol numbers (RFC 792, RFC 4443).
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Bytes of the TCP header that a message quotes.
const QUOTED: usize = 8;

/// The IP packet of a message from the first of two addresses to the second, about the packet `quote`; `mtu`: that of
/// the next link in bytes.
pub(super) fn message(
    (source, destination): (IpAddr, IpAddr),
    kind: IcmpKind,
    mtu: u32,
    quote: &[u8],
) -> Vec<u8> {
    let mut icmp = vec![kind.number, kind.code, 0, 0];
    // Of IPv4 only the lower half is the MTU; the upper half is zero.
    icmp.extend_from_slice(&mtu.to_be_bytes());
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            icmp.extend_from_slice(&quote[..20 + QUOTED]);
            let sum = checksum(&icmp);
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
            let mut packet = vec![0x45, 0, 0, 20 + icmp.len() as u8, 0, 0, 0x40, 0, 64, ICMP, 0, 0];
            packet.extend_from_slice(&source.octets());
            packet.extend_from_slice(&destination.octets());
            let sum = checksum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet.extend_from_slice(&icmp);
            packet
        }
        (source, destination) => {
            icmp.extend_from_slice(&quote[..40 + QUOTED]);
            let mut addresses = octets(source).to_vec();
            addresses.extend_from_slice(&octets(destination));
            // The sum counts the addresses, the length and the protocol, too (RFC 8200 section 8.1).
            let mut summed = addresses.clone();
            summed.extend_from_slice(&[0, 0, 0, icmp.len() as u8, 0, 0, 0, ICMPV6]);
            summed.extend_from_slice(&icmp);
            let sum = checksum(&summed);
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
            let mut packet = vec![0x60, 0, 0, 0, 0, icmp.len() as u8, ICMPV6, 64];
            packet.extend_from_slice(&addresses);
            packet.extend_from_slice(&icmp);
            packet
        }
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
