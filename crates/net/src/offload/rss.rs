//! The flow hash in the card's receive descriptor, valid or not.
//!
//! FreeBSD's LRO sorts a pass by it (tcp_lro_queue_mbuf and tcp_lro_flush_all of tcp_lro.c). A card
//! whose queues are off computes no hash; a driver that still marks the field as valid passes its
//! content to LRO (R. Stewart, "Improving TCP's Responses to Reordering", FreeBSD Journal).

use core::num::NonZeroU32;

use units::{FlowId, RandomStream};

/// The flow hash in a receive descriptor (receive-side scaling).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RssHash {
    /// Kind of hash (`M_HASHTYPE`); 0 where there is none.
    pub hashtype: u8,
    /// The hash (`flowid`).
    pub flowid: u32,
}

/// Kind of hash that the driver claims: `M_HASHTYPE_RSS_TCP_IPV4`.
const CLAIMED: u8 = 2;

impl RssHash {
    /// No hash: to a sort, all packets of the host are one flow.
    pub const NONE: Self = Self { hashtype: 0, flowid: 0 };

    /// A good hash: one value per flow (`M_HASHTYPE_RSS_TCP_IPV4`).
    #[inline]
    pub const fn of_flow(flow: FlowId) -> Self {
        // Any mapping that gives each flow its own value; the golden ratio spreads them.
        Self::claimed(flow.0.wrapping_mul(0x9e37_79b9))
    }

    const fn claimed(flowid: u32) -> Self {
        Self { hashtype: CLAIMED, flowid }
    }
}

/// Content of the hash field, always marked as valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashRule {
    /// The correct hash of the flow.
    #[default]
    Flow,
    /// One value for every packet of every flow.
    Constant(u32),
    /// A random number per packet.
    Random,
    /// Counts down over groups of this size, from the first packet of a pass, each group above all
    /// earlier values: a sort by it reverses each group and keeps the order of the groups.
    Decreasing(NonZeroU32),
}

/// Generator of the hash field, packet by packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashField {
    rule: HashRule,
    random_source: RandomStream,
    /// Packets of the pass so far.
    arrived: u32,
}

impl HashField {
    /// Creates the generator; `random_source` is for [`HashRule::Random`].
    pub const fn new(rule: HashRule, random_source: RandomStream) -> Self {
        Self { rule, random_source, arrived: 0 }
    }

    /// Returns the hash of the next packet's descriptor.
    #[inline]
    pub fn next(&mut self, flow: FlowId) -> RssHash {
        match self.rule {
            HashRule::Flow => RssHash::of_flow(flow),
            HashRule::Constant(value) => RssHash::claimed(value),
            HashRule::Random => RssHash::claimed(self.random_source.next_u32()),
            HashRule::Decreasing(group) => {
                let place = self.arrived % group;
                let first = self.arrived - place;
                self.arrived = self.arrived.wrapping_add(1);
                RssHash::claimed(first.wrapping_add(group.get() - 1 - place))
            }
        }
    }

    /// Ends the pass.
    #[inline]
    pub const fn end_pass(&mut self) {
        self.arrived = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(rule: HashRule) -> HashField {
        HashField::new(rule, RandomStream::named(1, "host sink", "rss hash"))
    }

    fn ids(field: &mut HashField, packets: u32) -> Vec<u32> {
        (0..packets).map(|number| field.next(FlowId(number % 2)).flowid).collect()
    }

    #[test]
    fn only_a_good_hash_distinguishes_flows() {
        let good = ids(&mut field(HashRule::Flow), 4);
        assert_eq!((good[0], good[1]), (good[2], good[3]));
        assert_ne!(good[0], good[1]);
        assert_eq!(ids(&mut field(HashRule::Constant(9)), 3), [9; 3]);
        let mut random = ids(&mut field(HashRule::Random), 100);
        random.sort_unstable();
        random.dedup();
        // Two equal values among a hundred of 2^32 are next to impossible.
        assert_eq!(random.len(), 100);
    }

    #[test]
    fn decreasing_values_restart_with_each_pass() {
        let mut field = field(HashRule::Decreasing(NonZeroU32::new(4).unwrap()));
        assert_eq!(ids(&mut field, 10), [3, 2, 1, 0, 7, 6, 5, 4, 11, 10]);
        field.end_pass();
        assert_eq!(ids(&mut field, 2), [3, 2]);
    }
}
