//! What the card's descriptor says of a packet's flow, rightly or wrongly.
//!
//! FreeBSD's LRO sorts a pass by it (tcp_lro_queue_mbuf and tcp_lro_flush_all of tcp_lro.c). A card
//! whose queues are off computes no hash; a driver that still marks the field as valid gives LRO
//! whatever stands there (R. Stewart, "Improving TCP's Responses to Reordering", FreeBSD Journal).

use core::num::NonZeroU32;

use units::{FlowId, Stream};

/// What the card's descriptor says of a packet's flow (receive-side scaling).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RssHash {
    /// Kind of hash (`M_HASHTYPE`); 0 where there is none.
    pub hashtype: u8,
    /// The hash (`flowid`).
    pub flowid: u32,
}

/// Kind of hash that a driver claims: `M_HASHTYPE_RSS_TCP_IPV4`.
const CLAIMED: u8 = 2;

impl RssHash {
    /// No hash: all packets of the host look like one flow to a sort.
    pub const NONE: Self = Self { hashtype: 0, flowid: 0 };

    /// A good hash: one value for each flow (`M_HASHTYPE_RSS_TCP_IPV4`).
    #[inline]
    pub const fn of_flow(flow: FlowId) -> Self {
        // Any mapping that gives each flow its own value; the golden ratio spreads them.
        Self::claimed(flow.0.wrapping_mul(0x9e37_79b9))
    }

    const fn claimed(flowid: u32) -> Self {
        Self { hashtype: CLAIMED, flowid }
    }
}

/// What stands in the field of the hash, always marked as valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashRule {
    /// The hash of the flow, as it should be.
    #[default]
    Flow,
    /// The same value for every packet of every flow.
    Constant(u32),
    /// A random number for each packet.
    Random,
    /// It counts down over so many packets, counted from the first of a pass, and goes on above all
    /// before: a sort by it turns each such group around and leaves the groups in order.
    Decreasing(NonZeroU32),
}

/// The field of the hash, packet by packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashField {
    rule: HashRule,
    luck: Stream,
    /// Packets of the pass so far.
    arrived: u32,
}

impl HashField {
    /// A field before the first packet; `luck` is for [`HashRule::Random`].
    pub const fn new(rule: HashRule, luck: Stream) -> Self {
        Self { rule, luck, arrived: 0 }
    }

    /// What the descriptor of the next packet says.
    #[inline]
    pub fn next(&mut self, flow: FlowId) -> RssHash {
        match self.rule {
            HashRule::Flow => RssHash::of_flow(flow),
            HashRule::Constant(value) => RssHash::claimed(value),
            HashRule::Random => RssHash::claimed(self.luck.next_u32()),
            HashRule::Decreasing(group) => {
                let place = self.arrived % group;
                let first = self.arrived - place;
                self.arrived = self.arrived.wrapping_add(1);
                RssHash::claimed(first.wrapping_add(group.get() - 1 - place))
            }
        }
    }

    /// The pass is over.
    #[inline]
    pub const fn end_pass(&mut self) {
        self.arrived = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(rule: HashRule) -> HashField {
        HashField::new(rule, Stream::named(1, "host sink", "rss hash"))
    }

    fn ids(field: &mut HashField, packets: u32) -> Vec<u32> {
        (0..packets).map(|number| field.next(FlowId(number % 2)).flowid).collect()
    }

    #[test]
    fn only_a_good_hash_tells_flows_apart() {
        let good = ids(&mut field(HashRule::Flow), 4);
        assert_eq!((good[0], good[1]), (good[2], good[3]));
        assert_ne!(good[0], good[1]);
        assert_eq!(ids(&mut field(HashRule::Constant(9)), 3), [9; 3]);
        let mut random = ids(&mut field(HashRule::Random), 100);
        random.sort_unstable();
        random.dedup();
        // Two equal ones among a hundred of 2^32 are next to impossible.
        assert_eq!(random.len(), 100);
    }

    #[test]
    fn decreasing_values_begin_anew_with_each_pass() {
        let mut field = field(HashRule::Decreasing(NonZeroU32::new(4).unwrap()));
        assert_eq!(ids(&mut field, 10), [3, 2, 1, 0, 7, 6, 5, 4, 11, 10]);
        field.end_pass();
        assert_eq!(ids(&mut field, 2), [3, 2]);
    }
}
