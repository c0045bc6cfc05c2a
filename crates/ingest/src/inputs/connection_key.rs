//! The key of a connection: its addresses at a capture point.

use core::hash::{Hash, Hasher};
use std::net::IpAddr;

use packet::wire::Endpoints;

/// A capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CaptureSource {
    /// Index of the file.
    pub(super) file: u32,
    /// Index of the capture point in it.
    pub(super) interface: u32,
}

/// The addresses of a connection at a capture point, the lower one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionKey {
    /// Halves of the addresses: a `u128` would be aligned to 16 bytes.
    addresses: [[u64; 2]; 2],
    /// Ports (two bytes each), interface, and whether it is IPv6.
    rest: u64,
    file: u32,
}

impl Hash for ConnectionKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Folding an address to 64 bits distributes well enough and is faster.
        let fold = |[high, low]: [u64; 2]| high ^ low;
        state.write_u64(fold(self.addresses[0]));
        state.write_u64(fold(self.addresses[1]));
        state.write_u64(self.rest ^ u64::from(self.file) << 56);
    }
}

fn number(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), false),
        IpAddr::V6(v6) => (v6.to_bits(), true),
    }
}

const fn halves(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}

impl ConnectionKey {
    /// The same addresses at any capture point of the file.
    pub(super) const fn anywhere(self) -> Self {
        Self { rest: self.rest & !(0x7fff_ffff << 1), ..self }
    }

    /// The key of a packet, and whether its sender has the lower address.
    pub(super) fn of(point: CaptureSource, ends: Endpoints) -> (Self, bool) {
        let (src, v6) = number(ends.src.ip());
        let (dst, _) = number(ends.dst.ip());
        let (src, dst) = ((src, ends.src.port()), (dst, ends.dst.port()));
        let src_is_low = src <= dst;
        let (low, high) = if src_is_low { (src, dst) } else { (dst, src) };
        let ports = u64::from(low.1) << 16 | u64::from(high.1);
        let key = Self {
            addresses: [low.0, high.0].map(halves),
            rest: ports << 32 | u64::from(point.interface) << 1 | u64::from(v6),
            file: point.file,
        };
        (key, src_is_low)
    }
}
