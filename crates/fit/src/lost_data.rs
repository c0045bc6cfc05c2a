//! Lost packets by the data that they carried.
//!
//! A sender that sends one packet more or less than the recorded one loses other data from then on, if packets are lost by
//! their numbers. By their data, it loses the same data at as many transmissions.

use scenario::document::{ElementTable, PacketRule, RuleTable, given};
use units::Bytes;

use crate::LossEstimate;

/// Most ranges of data that are lost: each is an element of the path.
const MOST_RANGES: usize = 400;

/// Data that are lost at their first transmissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LostRange {
    from: u64,
    until: u64,
    /// The number of transmissions that are lost.
    times: u64,
}

impl LossEstimate {
    /// Whether the data of all lost packets are known, and few enough.
    pub(crate) fn has_data(&self) -> bool {
        self.ranges(1).is_some()
    }

    /// Elements of a path that lose the data of the lost packets, in segments of `mss`, at as many transmissions; `None` if
    /// they are not known.
    pub(crate) fn by_data(&self, mss: u64) -> Option<Vec<ElementTable>> {
        let element = |range: LostRange| {
            let LostRange { from, until, times } = range;
            let rule = RuleTable {
                bytes: given((Bytes(from), Bytes(until))),
                times: (times > 1).then(|| given(times)).flatten(),
                ..RuleTable::default()
            };
            ElementTable { loss: given(PacketRule::Rule(rule.into())), ..ElementTable::default() }
        };
        Some(self.ranges(mss)?.into_iter().map(element).collect())
    }

    /// The ranges of the lost data, in their order.
    fn ranges(&self, mss: u64) -> Option<Vec<LostRange>> {
        let is_lost = |number: u64| self.packets.binary_search_by_key(&number, |one| one.0).is_ok();
        let lost: Vec<u64> =
            self.starts.iter().filter(|one| is_lost(one.1)).map(|one| one.0).collect();
        if lost.is_empty() || lost.len() != self.packets.len() {
            return None;
        }
        let mut ranges: Vec<LostRange> = Vec::new();
        for same in lost.chunk_by(|one, other| one == other) {
            let (from, times) = (same[0], same.len() as u64);
            match ranges.last_mut().filter(|last| last.until == from && last.times == times) {
                Some(last) => last.until = from + mss.max(1),
                None => ranges.push(LostRange { from, until: from + mss.max(1), times }),
            }
        }
        (ranges.len() <= MOST_RANGES).then_some(ranges)
    }
}

#[cfg(test)]
mod tests {
    use packet::Dir;

    use super::*;
    use crate::test_packets::packet;

    #[test]
    fn data_are_lost_as_often_as_they_were_retransmitted() {
        // Segments of 1,000 B: the second and the third are retransmitted, the third twice.
        let sent =
            [(0, 1), (0, 1_001), (0, 2_001), (0, 3_001), (50, 1_001), (50, 2_001), (300, 2_001)];
        let packets: Vec<_> = sent
            .into_iter()
            .map(|(ms, seq)| packet(ms * 1_000, Dir::Forward, seq, 0, 1_000))
            .collect();
        let losses = LossEstimate::at_sender(&packets, Dir::Forward, 1_000, 40_000_000);
        let numbers: Vec<u64> = losses.packets.iter().map(|one| one.0).collect();
        assert_eq!(numbers, [2, 3, 6]);
        let range = |from, until, times| LostRange { from, until, times };
        let found = losses.ranges(1_000).unwrap();
        assert_eq!(found, [range(1_000, 2_000, 1), range(2_000, 3_000, 2)]);
        assert!(losses.has_data());
        assert_eq!(losses.by_data(1_000).unwrap().len(), 2);
    }

    #[test]
    fn packets_of_which_the_data_are_not_known_are_lost_by_their_numbers() {
        let losses = LossEstimate { packets: vec![(2, 0)], sent: 4, ..LossEstimate::default() };
        assert!(!losses.has_data());
        assert_eq!(losses.by_data(1_000), None);
    }
}
