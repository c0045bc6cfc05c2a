//! Fragments of IP packets (RFC 791 section 3.2, RFC 8200 section 4.5).

use std::net::IpAddr;

use etherparse::LaxIpSlice;

use super::link::{Link, tunnelled};
use super::parse::{MAX_DEPTH, WireError, WireProblem, parse_ip};

/// Header lengths of IPv6 and of its fragment header.
const V6_HEADER: usize = 40;
const V6_FRAGMENT: usize = 8;
/// Extension headers that may precede a fragment header: hop-by-hop, routing, destination options.
const BEFORE_FRAGMENT: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;

/// What the fragments of one packet have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentKey {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Identification.
    pub id: u32,
    /// Protocol of the packet.
    pub protocol: u8,
}

/// One fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpFragment<'a> {
    /// Its packet.
    pub key: FragmentKey,
    /// Offset of its payload in that of the packet, in bytes.
    pub offset: u32,
    /// More fragments follow.
    pub more: bool,
    /// Payload length, in bytes.
    pub len: u32,
    /// Captured part of the payload.
    pub payload: &'a [u8],
    /// The IP header; of IPv6 without extension headers.
    header: &'a [u8],
}

impl IpFragment<'_> {
    /// The IP header of the packet. Its length field is 0: the length is that of the bytes that
    /// [`parse_cut`](super::parse_cut) receives.
    pub fn whole_header(&self) -> Vec<u8> {
        let mut header = self.header.to_vec();
        if self.key.src.is_ipv4() {
            header[2..4].fill(0);
            header[6..8].fill(0);
        } else {
            header[4..6].fill(0);
            header[6] = self.key.protocol;
        }
        header
    }
}

/// The fragment in a packet that [`parse_cut`](super::parse_cut) refuses as
/// [`WireProblem::Fragment`]; `None` if its headers are truncated or invalid.
pub fn fragment(bytes: &[u8], original: usize, link: Link) -> Option<IpFragment<'_>> {
    let mut start = link.ip_offset(bytes).ok()?;
    for _ in 0..MAX_DEPTH {
        match parse_ip(bytes, original, start) {
            Err(WireError { problem: WireProblem::Fragment, .. }) => {
                return of_ip(bytes.get(start..)?, original.saturating_sub(start));
            }
            Err(WireError { offset, problem: WireProblem::NotTcp(number) }) => {
                start = tunnelled(bytes, number, offset)?;
            }
            _ => return None,
        }
    }
    None
}

fn of_ip(bytes: &[u8], original: usize) -> Option<IpFragment<'_>> {
    let (ip, _) = LaxIpSlice::from_slice(bytes).ok()?;
    let half = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let (payload_at, whole, field, id, protocol, header_len) = match &ip {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            let len = header.slice().len();
            let id = u32::from(header.identification());
            let total = usize::from(header.total_len());
            // Flags and offset in words of eight bytes: three bits, then thirteen.
            let field = (u32::from(half(6)? & 0x1fff) * 8, half(6)? & 0x2000 != 0);
            (len, total, field, id, header.protocol().0, len)
        }
        LaxIpSlice::Ipv6(_) => {
            let (mut next, mut at) = (*bytes.get(6)?, V6_HEADER);
            while BEFORE_FRAGMENT.contains(&next) {
                next = *bytes.get(at)?;
                at += (usize::from(*bytes.get(at + 1)?) + 1) * 8;
            }
            if next != FRAGMENT {
                return None;
            }
            let id = u32::from(half(at + 4)?) << 16 | u32::from(half(at + 6)?);
            let field = (u32::from(half(at + 2)? & 0xfff8), half(at + 2)? & 1 != 0);
            let total = V6_HEADER + usize::from(half(4)?);
            (at + V6_FRAGMENT, total, field, id, *bytes.get(at)?, V6_HEADER)
        }
    };
    let whole = if whole == 0 { original } else { whole };
    let len = whole.checked_sub(payload_at)?;
    let captured = bytes.get(payload_at..)?;
    let (src, dst) = match &ip {
        LaxIpSlice::Ipv4(v4) => {
            (v4.header().source_addr().into(), v4.header().destination_addr().into())
        }
        LaxIpSlice::Ipv6(v6) => {
            (v6.header().source_addr().into(), v6.header().destination_addr().into())
        }
    };
    Some(IpFragment {
        key: FragmentKey { src, dst, id, protocol },
        offset: field.0,
        more: field.1,
        len: u32::try_from(len).ok()?,
        payload: &captured[..captured.len().min(len)],
        header: bytes.get(..header_len)?,
    })
}
