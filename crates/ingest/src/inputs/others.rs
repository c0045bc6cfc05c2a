//! Frames that are no TCP segments, counted by what they are.

use std::collections::BTreeMap;

use packet::wire::{WireError, WireProblem};

/// Protocol numbers that carry packets in packets: IPv4, IPv6, GRE.
const CARRIERS: [u8; 3] = [4, 41, 47];
const UDP: u8 = 17;
/// UDP ports that do: VXLAN (RFC 7348) and Linux' older one, Geneve (RFC 8926).
const CARRIER_PORTS: [u16; 3] = [4_789, 8_472, 6_081];

/// Frames that are no TCP segments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Others {
    /// Neither IPv4 nor IPv6: ARP and the like.
    pub not_ip: u64,
    /// Other protocols of IP, by number.
    pub protocols: BTreeMap<u8, u64>,
    /// Parts of fragmented packets.
    pub fragments: u64,
    /// Packets with packets inside: GRE, VXLAN, Geneve, IP in IP. What is inside is not read.
    pub tunnelled: u64,
    /// Cut off within a header by the snap length.
    pub cut: u64,
    /// TCP headers that make no sense.
    pub broken: u64,
    /// Frames with a link header that is not known, by LINKTYPE number.
    pub links: BTreeMap<u16, u64>,
    /// Packets without a time: that of the packet before was taken.
    pub untimed: u64,
}

impl Others {
    pub(super) fn count(&mut self, error: &WireError, frame: &[u8]) {
        match error.problem {
            WireProblem::NotIp => self.not_ip += 1,
            WireProblem::Fragment => self.fragments += 1,
            WireProblem::Cut { .. } => self.cut += 1,
            WireProblem::BadLength => self.broken += 1,
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

    /// How many there are, but for those without a time.
    pub fn total(&self) -> u64 {
        let maps = self.protocols.values().sum::<u64>() + self.links.values().sum::<u64>();
        maps + self.not_ip + self.fragments + self.tunnelled + self.cut + self.broken
    }
}
