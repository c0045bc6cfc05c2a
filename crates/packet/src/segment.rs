//! The compact segment.

use core::fmt;
use core::hint::cold_path;
use core::ops::{BitOr, BitOrAssign};

use serde::{Deserialize, Serialize};
pub use units::Dir;
use units::{Bytes, FlowId, SeqNum};

/// Version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, Serialize)]
#[repr(u8)]
pub enum IpVersion {
    /// RFC 791: a header of 20 bytes.
    #[default]
    V4,
    /// RFC 8200: a header of 40 bytes.
    V6,
}

impl IpVersion {
    /// Bytes of the header, without options or extensions.
    #[inline]
    pub const fn header_len(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// ECN field of the IP header: congestion experienced (CE, RFC 3168 section 5).
pub const ECN_CE: u8 = 3;

/// Control bits of the TCP header, in their positions of RFC 9293 section 3.1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No bit set.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits without those of `other`.
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// In tcpdump's notation: `S`, `S.`, `.`, `P.`, `F.`, `R`; `none` without a bit.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("none");
        }
        // tcpdump's order (print-tcp.c, tcp_flag_values).
        let letters = [
            (Self::FIN, 'F'),
            (Self::SYN, 'S'),
            (Self::RST, 'R'),
            (Self::PSH, 'P'),
            (Self::ACK, '.'),
            (Self::URG, 'U'),
            (Self::ECE, 'E'),
            (Self::CWR, 'W'),
        ];
        for (flag, letter) in letters {
            if self.has(flag) {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Timestamps option (RFC 7323 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub val: u32,
    /// TSecr: the echoed clock of the peer.
    pub ecr: u32,
}

/// Order in which an operating system writes the options of a SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum SynLayout {
    /// `mss, nop, wscale, sackOK, TS` (FreeBSD, tcp_addoptions).
    #[default]
    FreeBsd,
    /// `mss, sackOK, TS, nop, wscale` (Linux, tcp_options_write).
    Linux,
    /// A captured SYN in an order that neither writes; written in FreeBSD's.
    Other,
}

/// Options that only a SYN carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SynOptions {
    /// Maximum segment size, options not included (RFC 9293 section 3.7.1); 0 if absent.
    pub mss: u16,
    /// Shift of the window field (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// Order on the wire.
    pub layout: SynLayout,
    /// TCP Fast Open (RFC 7413); written in Linux's order only.
    pub fast_open: Option<FastOpenOption>,
    /// Requests that are read from captures and never written.
    pub extras: SynExtras,
}

/// Requests of a captured SYN that no simulated host makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SynExtras {
    /// Multipath TCP (option 30, RFC 8684).
    pub multipath: bool,
    /// The AE bit of the header: with CWR and ECE accurate ECN (RFC 9768 section 3.1.1).
    pub accurate_ecn: bool,
    /// TCP Fast Open (option 34 or 254, RFC 7413): bytes of the cookie, 0 in the request for one.
    pub fast_open: Option<u8>,
}

impl SynExtras {
    /// No request.
    pub const NONE: Self = Self { multipath: false, accurate_ecn: false, fast_open: None };
}

/// The option of TCP Fast Open: a cookie, or without one the request for it (RFC 7413 section
/// 4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FastOpenOption {
    cookie: [u8; 16],
    len: u8,
    /// Experimental option 254 with the magic number 0xf989 in place of option 34.
    pub experimental: bool,
}

impl FastOpenOption {
    /// Creates an option; `None` if a cookie of that length is invalid: 4 to 16 bytes, an even
    /// number, or none (tcp_parse_fastopen_option).
    pub fn new(cookie: &[u8], experimental: bool) -> Option<Self> {
        let valid = cookie.is_empty() || (4..=16).contains(&cookie.len());
        if !valid || !cookie.len().is_multiple_of(2) {
            return None;
        }
        let mut option = Self { cookie: [0; 16], len: cookie.len() as u8, experimental };
        option.cookie[..cookie.len()].copy_from_slice(cookie);
        Some(option)
    }

    /// The cookie; empty in a request.
    pub fn cookie(&self) -> &[u8] {
        &self.cookie[..usize::from(self.len)]
    }

    /// Bytes on the wire, without padding.
    pub const fn wire_len(&self) -> u32 {
        self.len as u32 + if self.experimental { 4 } else { 2 }
    }

    /// Is it a request for a cookie?
    pub const fn is_request(&self) -> bool {
        self.len == 0
    }
}

/// One block of a SACK option: `[left, right)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: SeqNum,
    /// Sequence number following the block.
    pub right: SeqNum,
}

/// Up to four SACK blocks (RFC 2018 section 3), the first of which may be a D-SACK (RFC 2883).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    len: u8,
}

impl SackBlocks {
    /// No block.
    pub const EMPTY: Self =
        Self { blocks: [SackBlock { left: SeqNum(0), right: SeqNum(0) }; 4], len: 0 };

    /// Appends a block; false if there are four already.
    pub fn push(&mut self, block: SackBlock) -> bool {
        match self.blocks.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = block;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// The blocks in wire order.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// Options other than timestamps: SYN options, or SACK blocks on any other segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Options {
    /// No other option.
    #[default]
    None,
    /// On a SYN.
    Syn(SynOptions),
    /// SACK blocks, at least one: construct it from them with `into()`, which gives
    /// [`Options::None`] for an empty list.
    Sack(SackBlocks),
}

impl From<SackBlocks> for Options {
    fn from(blocks: SackBlocks) -> Self {
        if blocks.as_slice().is_empty() { Self::None } else { Self::Sack(blocks) }
    }
}

/// A TCP segment, or a burst of segments that an offload handles as one.
///
/// The layout is fixed so that a struct with the same leading fields is copied in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Segment {
    /// Connection that the segment belongs to (represented by addresses and ports on the wire).
    pub flow: FlowId,
    /// Sequence number of the first byte, or of the SYN if there is one.
    pub seq: SeqNum,
    /// Bytes of payload.
    pub payload: u32,
    /// Direction.
    pub dir: Dir,
    /// IP version.
    pub ip: IpVersion,
    /// ECN field of the IP header (RFC 3168 section 5): 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// Control bits.
    pub flags: Flags,
    /// Acknowledgment number field; see [`acknowledgment`](Self::acknowledgment).
    pub ack: SeqNum,
    /// Window field as in the header, unscaled.
    pub window: u16,
    /// Payload of each packet of a burst except perhaps the last; 0 for a single packet.
    pub gso_size: u16,
    /// Data packets that LRO merged into it (`lro_nsegs`, FreeBSD); 0 if none.
    pub nsegs: u16,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// Other options.
    pub options: Options,
}

const _: () = assert!(size_of::<Segment>() <= 80);

impl Segment {
    /// Sequence space occupied: payload, SYN and FIN.
    #[inline]
    pub const fn seq_len(&self) -> u32 {
        self.payload + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
    }

    /// The acknowledgment number; `None` without the ACK flag, where the field has no meaning
    /// (RFC 9293 section 3.1).
    #[inline]
    pub const fn acknowledgment(&self) -> Option<SeqNum> {
        if self.flags.has(Flags::ACK) { Some(self.ack) } else { None }
    }

    /// The SACK blocks; empty on a SYN.
    #[inline]
    pub fn sack_blocks(&self) -> &[SackBlock] {
        match &self.options {
            Options::Sack(blocks) => blocks.as_slice(),
            Options::None | Options::Syn(_) => &[],
        }
    }

    /// The options of a SYN.
    #[inline]
    pub const fn syn_options(&self) -> Option<&SynOptions> {
        match &self.options {
            Options::Syn(syn) => Some(syn),
            Options::None | Options::Sack(_) => None,
        }
    }

    /// Bytes of TCP options on the wire, padding included (a multiple of four).
    #[inline]
    pub fn options_len(&self) -> u32 {
        let timestamps = self.timestamps.is_some();
        match &self.options {
            Options::None => 12 * u32::from(timestamps),
            Options::Sack(blocks) => {
                let sack = blocks.as_slice().len() as u32;
                12 * u32::from(timestamps) + if sack == 0 { 0 } else { 4 + 8 * sack }
            }
            Options::Syn(syn) => {
                cold_path();
                let bare = 4 * u32::from(syn.mss != 0)
                    + 4 * u32::from(syn.window_scale.is_some())
                    + 2 * u32::from(syn.sack_permitted)
                    + 10 * u32::from(timestamps);
                let fast_open = syn.fast_open.filter(|_| syn.layout == SynLayout::Linux);
                bare.next_multiple_of(4)
                    + fast_open.map_or(0, |option| option.wire_len().next_multiple_of(4))
            }
        }
    }

    /// Bytes of IP and TCP headers of each packet.
    #[inline]
    pub fn header_len(&self) -> u32 {
        self.ip.header_len() + 20 + self.options_len()
    }

    /// Number of packets on the wire.
    #[inline]
    pub const fn packets(&self) -> u32 {
        if self.gso_size == 0 || self.payload == 0 {
            1
        } else {
            self.payload.div_ceil(self.gso_size as u32)
        }
    }

    /// True for several data packets merged by an offload.
    #[inline]
    pub const fn is_aggregate(&self) -> bool {
        self.nsegs > 1 || self.packets() > 1
    }

    /// IP bytes, if the segment is one packet.
    #[inline]
    pub fn packet_len(&self) -> Bytes {
        Bytes(u64::from(self.header_len()) + u64::from(self.payload))
    }

    /// IP bytes of all its packets.
    #[inline]
    pub fn wire_len(&self) -> Bytes {
        Bytes(u64::from(self.packets()) * u64::from(self.header_len()) + u64::from(self.payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_print_as_tcpdump_prints_them() {
        assert_eq!((Flags::SYN | Flags::ACK).to_string(), "S.");
        assert_eq!((Flags::PSH | Flags::ACK | Flags::FIN).to_string(), "FP.");
        assert_eq!(Flags::NONE.to_string(), "none");
    }

    #[test]
    fn lengths_on_the_wire() {
        let data = Segment {
            payload: 14_480,
            gso_size: 1_448,
            timestamps: Some(Timestamps::default()),
            ..Segment::default()
        };
        assert_eq!(data.packets(), 10);
        assert_eq!(data.wire_len(), Bytes(15_000));
        let syn = Segment {
            flags: Flags::SYN,
            timestamps: Some(Timestamps::default()),
            options: Options::Syn(SynOptions {
                mss: 1_460,
                window_scale: Some(10),
                sack_permitted: true,
                layout: SynLayout::FreeBsd,
                ..SynOptions::default()
            }),
            ..Segment::default()
        };
        assert_eq!(syn.wire_len(), Bytes(60));
        assert_eq!(syn.seq_len(), 1);
    }

    #[test]
    fn four_sack_blocks_fit_and_no_more() {
        let mut blocks = SackBlocks::EMPTY;
        for n in 0..4 {
            assert!(blocks.push(SackBlock { left: SeqNum(n), right: SeqNum(n + 1) }));
        }
        assert!(!blocks.push(SackBlock::default()));
        assert_eq!(blocks.as_slice().len(), 4);
    }
}
