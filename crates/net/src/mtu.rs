//! A link that carries no packets above a size.

use machine::{BoxAnswer, Element, PacketId, PacketVerdict, PacketView};
use units::{Bytes, Instant};

/// Drops packets larger than an MTU from a time on. It answers them with an ICMP error (RFC 1191,
/// RFC 8201), or is a black hole.
#[derive(Debug, Clone, Copy)]
pub struct MtuLimit {
    size: Bytes,
    from: Instant,
    icmp: bool,
}

impl MtuLimit {
    /// Creates a link that passes packets of at most `size` IP bytes from `from` on; `icmp`: it
    /// reports the others.
    pub const fn new(size: Bytes, from: Instant, icmp: bool) -> Self {
        Self { size, from, icmp }
    }
}

impl Element for MtuLimit {
    fn accept(&mut self, now: Instant, _: PacketId, view: &PacketView) -> PacketVerdict {
        if view.size <= self.size || now < self.from {
            return PacketVerdict::Forwarded;
        }
        match self.icmp {
            true => PacketVerdict::Rejected(BoxAnswer::TooBig { mtu: self.size.get() as u32 }),
            false => PacketVerdict::Dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    #[test]
    fn larger_packets_do_not_pass_from_its_time_on() {
        let from = Instant::from_nanos(10);
        let verdicts = |icmp| {
            let mut limit = MtuLimit::new(Bytes(1_300), from, icmp);
            [(9, 1_500), (10, 1_300), (10, 1_301)]
                .map(|(ns, size)| limit.accept(Instant::from_nanos(ns), PacketId(1), &data(size)))
        };
        let passed = PacketVerdict::Forwarded;
        assert_eq!(verdicts(false), [passed, passed, PacketVerdict::Dropped]);
        let answered = PacketVerdict::Rejected(BoxAnswer::TooBig { mtu: 1_300 });
        assert_eq!(verdicts(true), [passed, passed, answered]);
    }
}
