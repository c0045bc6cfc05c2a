//! The headers before the IP header of a TCP segment: those of links and of tunnels.
//!
//! Sources: draft-ietf-opsawg-pcaplinktype (link types), IEEE 802.2 and RFC 1042 (LLC, SNAP), IEEE
//! 802.11 and radiotap.org, RFC 1661 and 1662 (PPP), RFC 2516 (PPPoE), RFC 3032 (MPLS), RFC 2784 and
//! 2890 (GRE), RFC 2637 (PPTP), draft-foschiano-erspan (ERSPAN), RFC 7348 (VXLAN), RFC 8926 (Geneve),
//! 3GPP TS 29.281 section 5.1 (GTP-U), RFC 2003 and 4213 (IP in IP), RFC 8086 (GRE in UDP), draft-ietf-nvo3-vxlan-gpe, RFC 4391 (InfiniBand),
//! IEEE 802.1ah, draft-wilson-wrec-wccp-v2 (WCCP), RFC 1051 and 1201 (ARCNET),
//! draft-massar-v6ops-ayiya-02 (AYIYA), tcpdump's print-juniper.c (Juniper's captures).

use super::parse::{WireError, WireProblem};

/// The header before the IP header, by the link types of pcap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// None (`LINKTYPE_RAW`, `_IPV4`, `_IPV6`).
    Raw,
    /// Ethernet, with or without VLAN tags (also several, as in QinQ), MPLS, PPPoE, LLC and SNAP.
    Ethernet,
    /// Four bytes of address family (`LINKTYPE_NULL`, `_LOOP`).
    Loopback,
    /// Linux "cooked" capture.
    LinuxSll,
    /// Linux "cooked" capture, version 2.
    LinuxSll2,
    /// PPP, with or without HDLC framing.
    Ppp,
    /// A PPPoE session without the Ethernet header.
    PppEther,
    /// Cisco HDLC.
    CiscoHdlc,
    /// IEEE 802.11 without encryption.
    Wlan,
    /// IEEE 802.11 after a radiotap header.
    Radiotap,
    /// Linux' netfilter log.
    Nflog,
    /// FDDI with LLC.
    Fddi,
    /// IP over InfiniBand.
    Ipoib,
    /// ARCNET as BSD captures it.
    Arcnet,
    /// ARCNET as Linux captures it.
    ArcnetLinux,
    /// Ethernet captured by a Juniper router.
    JuniperEthernet,
}

impl Link {
    /// The link type with this LINKTYPE number of pcap and pcapng.
    pub const fn from_linktype(number: u16) -> Option<Self> {
        match number {
            // BSD systems use 12 and 14 for raw IP.
            12 | 14 | 101 | 228 | 229 => Some(Self::Raw),
            1 => Some(Self::Ethernet),
            0 | 108 => Some(Self::Loopback),
            113 => Some(Self::LinuxSll),
            276 => Some(Self::LinuxSll2),
            9 | 50 => Some(Self::Ppp),
            51 => Some(Self::PppEther),
            104 => Some(Self::CiscoHdlc),
            105 => Some(Self::Wlan),
            127 => Some(Self::Radiotap),
            239 => Some(Self::Nflog),
            10 => Some(Self::Fddi),
            242 => Some(Self::Ipoib),
            7 => Some(Self::Arcnet),
            129 => Some(Self::ArcnetLinux),
            178 => Some(Self::JuniperEthernet),
            _ => None,
        }
    }

    /// Offset of the IP header.
    pub(super) fn ip_offset(self, bytes: &[u8]) -> Result<usize, WireError> {
        match self {
            Self::Raw => Ok(0),
            Self::Loopback => within(bytes, 4),
            Self::Ethernet => ethernet(bytes, 0),
            Self::LinuxSll => by_type(bytes, half(bytes, 14)?, 16),
            Self::LinuxSll2 => by_type(bytes, half(bytes, 0)?, 20),
            Self::Ppp => ppp(bytes, 0),
            Self::PppEther => ppp(bytes, 6),
            Self::CiscoHdlc => by_type(bytes, half(bytes, 2)?, 4),
            Self::Wlan => wlan(bytes, 0, false),
            Self::Radiotap => radiotap(bytes),
            Self::Nflog => nflog(bytes),
            // Frame control and two addresses.
            Self::Fddi => llc(bytes, 13),
            // Two global addresses of 20 bytes each, EtherType, two reserved bytes (RFC 4391).
            Self::Ipoib => by_type(bytes, half(bytes, 40)?, 44),
            // Two addresses of a byte; Linux adds the offset in the buffer.
            Self::Arcnet => arcnet(bytes, 2),
            Self::ArcnetLinux => arcnet(bytes, 4),
            Self::JuniperEthernet => juniper(bytes),
        }
    }
}

/// Offset of the IP header within a packet of IP protocol `number` whose payload begins at `at`;
/// `None` if it carries none.
pub(super) fn tunnelled(bytes: &[u8], number: u8, at: usize) -> Option<usize> {
    match number {
        4 | 41 => Some(at),
        47 => gre(bytes, at).ok(),
        17 => match half(bytes, at + 2).ok()? {
            4_789 | 8_472 => ethernet(bytes, at + 16).ok(),
            // VXLAN-GPE: the next protocol is IPv4, IPv6 or Ethernet.
            4_790 => match byte(bytes, at + 11).ok()? {
                1 | 2 => Some(at + 16),
                3 => ethernet(bytes, at + 16).ok(),
                _ => None,
            },
            4_754 => gre(bytes, at + 8).ok(),
            6_081 => {
                let options = usize::from(byte(bytes, at + 8).ok()? & 0x3f) * 4;
                by_type(bytes, half(bytes, at + 10).ok()?, at + 16 + options).ok()
            }
            2_152 => gtp(bytes, at + 8).ok(),
            5_072 => ayiya(bytes, at + 8).ok(),
            // The answers of the tunnel's server.
            _ if half(bytes, at).ok()? == 5_072 => ayiya(bytes, at + 8).ok(),
            _ => None,
        },
        _ => None,
    }
}

fn byte(bytes: &[u8], at: usize) -> Result<u8, WireError> {
    bytes.get(at).copied().ok_or_else(|| cut(bytes, at + 1))
}

fn half(bytes: &[u8], at: usize) -> Result<u16, WireError> {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(cut(bytes, at + 2)),
    }
}

fn within(bytes: &[u8], at: usize) -> Result<usize, WireError> {
    if at > bytes.len() { Err(cut(bytes, at)) } else { Ok(at) }
}

fn cut(bytes: &[u8], needed_until: usize) -> WireError {
    let needed = needed_until.saturating_sub(bytes.len());
    WireError { offset: bytes.len(), problem: WireProblem::Cut { needed } }
}

const fn not_ip(at: usize) -> WireError {
    WireError { offset: at, problem: WireProblem::NotIp }
}

fn ethernet(bytes: &[u8], at: usize) -> Result<usize, WireError> {
    by_type(bytes, half(bytes, at + 12)?, at + 14)
}

/// Follows an EtherType whose payload begins at `at`.
fn by_type(bytes: &[u8], ether_type: u16, at: usize) -> Result<usize, WireError> {
    let (mut ether_type, mut at) = (ether_type, at);
    loop {
        match ether_type {
            0x0800 | 0x86dd => return within(bytes, at),
            // A VLAN tag (802.1Q, 802.1ad, or the older QinQ), followed by the next type.
            0x8100 | 0x88a8 | 0x9100 => {
                ether_type = half(bytes, at + 2)?;
                at += 4;
            }
            // A VN-tag; a service instance tag of 802.1ah, followed by the customer's addresses.
            0x8926 => {
                ether_type = half(bytes, at + 4)?;
                at += 6;
            }
            0x88e7 => {
                ether_type = half(bytes, at + 16)?;
                at += 18;
            }
            0x8864 => return ppp(bytes, at + 6),
            0x8847 | 0x8848 => {
                while byte(bytes, at + 2)? & 1 == 0 {
                    at += 4;
                }
                at += 4;
                return match byte(bytes, at)? >> 4 {
                    4 | 6 => Ok(at),
                    // A control word, then Ethernet (RFC 4448 section 4.6).
                    0 => ethernet(bytes, at + 4),
                    _ => Err(not_ip(at)),
                };
            }
            // Transparent Ethernet bridging; PPP of PPTP.
            0x6558 => {
                ether_type = half(bytes, at + 12)?;
                at += 14;
            }
            0x880b => return ppp(bytes, at),
            // A length: LLC.
            0..=0x05dc => return llc(bytes, at),
            // The type precedes its payload.
            _ => return Err(not_ip(at - 2)),
        }
    }
}

fn llc(bytes: &[u8], at: usize) -> Result<usize, WireError> {
    match bytes.get(at..at + 8) {
        Some(&[0xaa, 0xaa, 3, _, _, _, high, low]) => {
            let ether_type = u16::from_be_bytes([high, low]);
            // A nested length would be LLC in LLC.
            if ether_type <= 0x05dc { Err(not_ip(at)) } else { by_type(bytes, ether_type, at + 8) }
        }
        Some(_) => Err(not_ip(at)),
        None => Err(cut(bytes, at + 8)),
    }
}

fn ppp(bytes: &[u8], at: usize) -> Result<usize, WireError> {
    let mut at = at;
    // Address and control field, which may be compressed away, and so may the first byte of the
    // protocol (RFC 1661 section 6.5 and 6.6).
    if matches!(bytes.get(at..at + 2), Some([0xff | 0x0f, 0x03 | 0x00])) {
        at += 2;
    }
    let protocol = if byte(bytes, at)? & 1 == 1 {
        at += 1;
        u16::from(bytes[at - 1])
    } else {
        at += 2;
        half(bytes, at - 2)?
    };
    match protocol {
        0x21 | 0x57 => within(bytes, at),
        // Cisco HDLC in a capture of PPP with HDLC framing.
        0x0800 | 0x86dd => within(bytes, at),
        0x281 => by_type(bytes, 0x8847, at),
        _ => Err(not_ip(at)),
    }
}

fn gre(bytes: &[u8], at: usize) -> Result<usize, WireError> {
    let (flags, ether_type) = (half(bytes, at)?, half(bytes, at + 2)?);
    // Checksum and routing share a word; key, sequence number, and in version 1 an ACK.
    let words = [0x8000, 0x2000, 0x1000, 0x0080].iter().filter(|&bit| flags & bit != 0).count();
    let inner = at + 4 + 4 * words;
    match ether_type {
        // ERSPAN type I has no header of its own and no sequence number, type II one of 8 bytes.
        0x88be if flags & 0x1000 == 0 => ethernet(bytes, inner),
        0x88be => ethernet(bytes, inner + 8),
        0x22eb => {
            let subheader = if byte(bytes, inner + 11)? & 1 == 1 { 8 } else { 0 };
            ethernet(bytes, inner + 12 + subheader)
        }
        // WCCP: a redirect header of 4 bytes in version 2, IP at once in version 1.
        0x883e if byte(bytes, inner)? >> 4 == 4 => Ok(inner),
        0x883e => within(bytes, inner + 4),
        // Aruba: a frame of 802.11, by priority and access point (Wireshark's list: 0x8200 to 0x8370,
        // 0x9000 to 0x9180, in steps of 16).
        0x8200..=0x837f | 0x9000..=0x91ff => wlan(bytes, inner, false),
        _ => by_type(bytes, ether_type, inner),
    }
}

fn gtp(bytes: &[u8], at: usize) -> Result<usize, WireError> {
    const USER_DATA: u8 = 0xff;
    let flags = byte(bytes, at)?;
    // Version 1, GTP.
    if flags >> 4 != 3 || byte(bytes, at + 1)? != USER_DATA {
        return Err(not_ip(at));
    }
    let mut inner = at + 8;
    if flags & 7 != 0 {
        inner += 4;
        // Extension headers: a length in words, and the type of the next one as the last byte.
        while flags & 4 != 0 && byte(bytes, inner - 1)? != 0 {
            let words = byte(bytes, inner)?;
            if words == 0 {
                return Err(not_ip(inner));
            }
            inner += usize::from(words) * 4;
        }
    }
    match byte(bytes, inner)? >> 4 {
        4 | 6 => Ok(inner),
        _ => Err(not_ip(inner)),
    }
}

/// A packet of ARCNET with its protocol at `at`. The parts of a packet longer than a frame (RFC 1201)
/// are not reassembled.
fn arcnet(bytes: &[u8], at: usize) -> Result<usize, WireError> {
    // A longer frame has padding and a second flag in between (RFC 1201 section 2).
    const EXCEPTION: u8 = 0xff;
    match byte(bytes, at)? {
        // RFC 1051.
        240 => within(bytes, at + 1),
        // RFC 1201: a flag of parts and a sequence number of two bytes.
        212 | 196 => {
            let flag = match byte(bytes, at + 1)? {
                EXCEPTION => at + 4,
                _ => at + 1,
            };
            if byte(bytes, flag)? == 0 { within(bytes, flag + 3) } else { Err(not_ip(at)) }
        }
        _ => Err(not_ip(at)),
    }
}

/// Ethernet after the header of Juniper's captures: a magic number, flags, and fields of a total
/// length.
fn juniper(bytes: &[u8]) -> Result<usize, WireError> {
    const NO_LINK_HEADER: u8 = 2;
    const HAS_FIELDS: u8 = 0x80;
    let flags = byte(bytes, 3)?;
    if !bytes.starts_with(b"MGC") || flags & NO_LINK_HEADER != 0 {
        return Err(not_ip(0));
    }
    let fields = if flags & HAS_FIELDS == 0 { 0 } else { 2 + usize::from(half(bytes, 4)?) };
    ethernet(bytes, 4 + fields)
}

/// IPv6 in AYIYA: a header of 8 bytes, an identity of 2^n bytes, a signature of 4n bytes.
fn ayiya(bytes: &[u8], at: usize) -> Result<usize, WireError> {
    const FORWARD: u8 = 1;
    const IPV6: u8 = 41;
    let (identity, signature) = (byte(bytes, at)? >> 4, byte(bytes, at + 1)? >> 4);
    if byte(bytes, at + 2)? & 0xf != FORWARD || byte(bytes, at + 3)? != IPV6 {
        return Err(not_ip(at));
    }
    within(bytes, at + 8 + (1 << identity) + 4 * usize::from(signature))
}

fn radiotap(bytes: &[u8]) -> Result<usize, WireError> {
    let little = |at: usize| half(bytes, at).map(u16::swap_bytes);
    let header = usize::from(little(2)?);
    // Bitmaps of the fields; bit 31 announces another one.
    let mut fields = 8;
    while byte(bytes, fields - 1)? & 0x80 != 0 {
        fields += 4;
    }
    let present = byte(bytes, 4)?;
    if present & 1 != 0 {
        // The time, at a multiple of eight.
        fields = fields.next_multiple_of(8) + 8;
    }
    let padded = present & 2 != 0 && byte(bytes, fields)? & 0x20 != 0;
    wlan(bytes, header, padded)
}

/// A data frame of 802.11; `padded`: its header is padded to a multiple of four.
fn wlan(bytes: &[u8], at: usize, padded: bool) -> Result<usize, WireError> {
    const DATA: u8 = 2;
    let (control, flags) = (byte(bytes, at)?, byte(bytes, at + 1)?);
    let subtype = control >> 4;
    let (no_data, encrypted) = (subtype & 4 != 0, flags & 0x40 != 0);
    if (control >> 2) & 3 != DATA || no_data || encrypted {
        return Err(not_ip(at));
    }
    let mut header = 24;
    if flags & 3 == 3 {
        header += 6;
    }
    if subtype & 8 != 0 {
        let aggregated = byte(bytes, at + header)? & 0x80 != 0;
        header += 2;
        if flags & 0x80 != 0 {
            header += 4;
        }
        if aggregated {
            // The first of several: two addresses and a length (802.11 section 9.3.2.2).
            header += 14;
        }
    }
    if padded {
        header = header.next_multiple_of(4);
    }
    llc(bytes, at + header)
}

fn nflog(bytes: &[u8]) -> Result<usize, WireError> {
    const PAYLOAD: u16 = 9;
    let mut at = 4;
    loop {
        // In the byte order of the host that captured; all in use are little-endian.
        let (len, kind) = (half(bytes, at)?.swap_bytes(), half(bytes, at + 2)?.swap_bytes());
        if kind == PAYLOAD {
            return Ok(at + 4);
        }
        if len < 4 {
            return Err(not_ip(at));
        }
        at += usize::from(len).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Endpoints, emit, parse};
    use crate::{Flags, Segment};
    use units::Offset;

    fn ip_packet() -> Vec<u8> {
        let between =
            Endpoints { src: ([10, 0, 0, 1], 40_000).into(), dst: ([10, 0, 0, 2], 80).into() };
        let segment = Segment { flags: Flags::ACK, payload: 40, ..Segment::default() };
        let mut bytes = Vec::new();
        emit(&segment, &between, 7, Offset(0), &mut bytes).unwrap();
        bytes
    }

    fn eth(ether_type: u16) -> Vec<u8> {
        [&[2; 12][..], &ether_type.to_be_bytes()].concat()
    }

    /// An IPv4 header of `protocol` before `payload`.
    fn ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let len = (20 + payload.len()) as u16;
        let mut out = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
        out.extend([172, 16, 0, 1, 172, 16, 0, 2]);
        out.extend_from_slice(payload);
        out
    }

    fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
        let len = (8 + payload.len()) as u16;
        let mut out = vec![0xc0, 0, (port >> 8) as u8, port as u8, (len >> 8) as u8, len as u8];
        out.extend([0, 0]);
        out.extend_from_slice(payload);
        out
    }

    fn reads(link: Link, headers: &[&[u8]]) {
        let bytes = headers.concat();
        let whole = [&bytes[..], &ip_packet()].concat();
        let parsed = parse(&whole, link).unwrap_or_else(|error| panic!("{link:?}: {error}"));
        assert_eq!((parsed.segment.payload, parsed.endpoints.dst.port()), (40, 80));
        // Any cut is an error, no panic.
        for len in 0..bytes.len() {
            assert!(parse(&bytes[..len], link).is_err());
        }
    }

    const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

    #[test]
    fn links_before_ip() {
        reads(Link::Ppp, &[&[0xff, 3, 0, 0x21]]);
        reads(Link::Ppp, &[&[0x21]]);
        reads(Link::Ppp, &[&[0x0f, 0, 8, 0]]);
        reads(Link::PppEther, &[&[0x11, 0, 0, 1, 0, 82, 0, 0x21]]);
        reads(Link::CiscoHdlc, &[&[0x0f, 0, 8, 0]]);
        reads(Link::Ethernet, &[&eth(0x8847), &[0, 1, 0, 64, 0, 2, 1, 64]]);
        reads(Link::Ethernet, &[&eth(0x8847), &[0, 1, 1, 64, 0, 0, 0, 0], &eth(0x0800)]);
        reads(Link::Ethernet, &[&eth(0x8100), &[0, 5, 0x88, 0x64, 0x11, 0, 0, 1, 0, 82, 0, 0x21]]);
        reads(Link::Ethernet, &[&eth(88), &SNAP]);
        reads(Link::Wlan, &[&[0x08, 1], &[0; 22], &SNAP]);
        reads(Link::Wlan, &[&[0x88, 3], &[0; 28], &[0, 0], &SNAP]);
        // Radiotap with time and flags: the 802.11 header of 26 bytes is padded to 28.
        let radiotap = [0, 0, 17, 0, 3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x20];
        reads(Link::Radiotap, &[&radiotap, &[0x88, 1], &[0; 22], &[0, 0], &[0, 0], &SNAP]);
        reads(Link::Fddi, &[&[0x50], &[2; 12], &SNAP]);
        reads(Link::Ipoib, &[&[1; 40], &[8, 0, 0, 0]]);
        reads(Link::Ethernet, &[&eth(0x8926), &[0; 4], &[8, 0]]);
        reads(Link::Ethernet, &[&eth(0x88e7), &[0; 16], &[8, 0]]);
        reads(Link::Arcnet, &[&[0xbe, 0x50, 240]]);
        reads(Link::Arcnet, &[&[0xbe, 0x50, 212, 0, 1, 0x66]]);
        reads(Link::Arcnet, &[&[0xbe, 0x50, 212, 0xff, 0xff, 0xff, 0, 1, 0x66]]);
        reads(Link::ArcnetLinux, &[&[0xbe, 0x50, 0xc3, 0, 240]]);
        reads(Link::ArcnetLinux, &[&[0xbe, 0x50, 0xa8, 8, 212, 0, 1, 0x66]]);
        reads(Link::JuniperEthernet, &[b"MGC\x80", &[0, 4, 3, 1, 1, 6], &eth(0x0800)]);
        reads(Link::JuniperEthernet, &[b"MGC\x01", &eth(0x0800)]);
        reads(Link::Nflog, &[&[2, 0, 0, 1], &[5, 0, 10, 0, 0, 0, 0, 0], &[84, 0, 9, 0]]);
    }

    #[test]
    fn tunnels_in_ip() {
        let inner = ip_packet();
        let in_eth = [&eth(0x0800)[..], &inner].concat();
        let erspan = [&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1][..], &[0; 8], &in_eth].concat();
        let erspan_3 =
            [&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1][..], &[0; 11], &[1], &[0; 8], &in_eth].concat();
        let gtp = [&[0x34, 0xff, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0][..], &inner];
        let ayiya = [&[0x41, 0x52, 0x11, 41][..], &[9; 40], &inner].concat();
        for packet in [
            ip(4, &inner),
            ip(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 9][..], &inner].concat()),
            ip(47, &[&[0, 0, 0x65, 0x58][..], &in_eth].concat()),
            ip(47, &[&[0x30, 0x81, 0x88, 0x0b][..], &[0; 12], &[0x21], &inner].concat()),
            ip(47, &erspan),
            ip(47, &erspan_3),
            ip(17, &udp(4_789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &in_eth].concat())),
            ip(17, &udp(6_081, &[&[1, 0, 0x65, 0x58, 0, 0, 1, 0][..], &[0; 4], &in_eth].concat())),
            ip(17, &udp(2_152, &gtp.concat())),
            ip(17, &udp(4_790, &[&[12, 0, 0, 3, 0, 0, 1, 0][..], &in_eth].concat())),
            ip(17, &udp(4_790, &[&[12, 0, 0, 1, 0, 0, 1, 0][..], &inner].concat())),
            ip(17, &udp(4_754, &[&[0, 0, 8, 0][..], &inner].concat())),
            ip(47, &[&[0, 0, 0x88, 0x3e][..], &inner].concat()),
            ip(47, &[&[0, 0, 0x88, 0x3e, 0, 9, 1, 2][..], &inner].concat()),
            ip(47, &[&[0, 0, 0x90, 0, 8, 1][..], &[0; 22], &SNAP, &inner].concat()),
            // The first of several frames in one (A-MSDU).
            ip(
                47,
                &[&[0, 0, 0x82, 0x40, 0x88, 2][..], &[0; 22], &[0x80, 0], &[1; 14], &SNAP, &inner]
                    .concat(),
            ),
            ip(4, &ip(4, &inner)),
            ip(17, &udp(5_072, &ayiya)),
            ip(17, &[&[0x13, 0xd0, 0xd2, 0x63, 0, 0, 0, 0][..], &ayiya].concat()),
        ] {
            let parsed = parse(&packet, Link::Raw).unwrap_or_else(|e| panic!("{packet:02x?}: {e}"));
            assert_eq!((parsed.segment.payload, parsed.endpoints.dst.port()), (40, 80));
        }
        // What is no tunnel stays what it is.
        let dns = parse(&ip(17, &udp(53, &[0; 20])), Link::Raw).unwrap_err();
        assert_eq!(dns.problem, WireProblem::NotTcp(17));
        let encrypted = [&[0x08, 0x41][..], &[0; 40]].concat();
        assert_eq!(parse(&encrypted, Link::Wlan).unwrap_err().problem, WireProblem::NotIp);
    }
}
