//! Counts frames that are not TCP segments, by kind.

use std::collections::BTreeMap;

use packet::wire::{WireError, WireProblem};

use super::fragments::FragmentCounts;

/// Protocol numbers that carry packets in packets: IPv4, IPv6, GRE.
const CARRIERS: [u8; 3] = [4, 41, 47];
const UDP: u8 = 17;
/// UDP ports of tunnels: VXLAN (RFC 7348) and Linux' older one, Geneve (RFC 8926).
const CARRIER_PORTS: [u16; 3] = [4_789, 8_472, 6_081];

/// Counts of frames that are not TCP segments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtherFrames {
    /// Neither IPv4 nor IPv6: ARP and the like.
    pub not_ip: u64,
    /// Other IP protocols, by number.
    pub protocols: BTreeMap<u8, u64>,
    /// Fragments of IP packets that were not reassembled.
    pub fragments: u64,
    /// What became of all fragments with valid headers.
    pub fragmented: FragmentCounts,
    /// Tunnelled packets: GRE, VXLAN, Geneve, IP in IP. Their contents are not read.
    pub tunnelled: u64,
    /// Truncated within a header by the snap length.
    pub cut: u64,
    /// Invalid TCP headers.
    pub broken: u64,
    /// Frames with an unknown link header, by LINKTYPE number.
    pub links: BTreeMap<u16, u64>,
    /// Packets without a time; they have that of the previous packet.
    pub untimed: u64,
}

impl OtherFrames {
    pub(super) fn count(&mut self, error: &WireError, frame: &[u8]) {
        match error.problem {
            WireProblem::NotIp => self.not_ip += 1,
            WireProblem::Fragment => self.fragments += 1,
            WireProblem::Cut { .. } => self.cut += 1,
            WireProblem::BadLength | WireProblem::TooLong => self.broken += 1,
            WireProblem::NotTcp(protocol) => {
                let port = |at: usize| match frame.get(error.offset + at..error.offset + at + 2) {
                    Some(&[high, low]) => u16::from_be_bytes([high, low]),
                    _ => 0,
                };
                let carries = CARRIERS.contains(&protocol)
                    || protocol == UDP && CARRIER_PORTS.contains(&port(2));
                if carries {
                    self.tunnelled += 1;
                } else {
                    *self.protocols.entry(protocol).or_default() += 1;
                }
            }
        }
    }

    /// The sum of all but `untimed`.
    pub fn total(&self) -> u64 {
        let maps = self.protocols.values().sum::<u64>() + self.links.values().sum::<u64>();
        // Of a reassembled packet one fragment counts as the packet.
        let parts = self.fragmented.used - self.fragmented.reassembled;
        maps + parts + self.not_ip + self.fragments + self.tunnelled + self.cut + self.broken
    }
}
