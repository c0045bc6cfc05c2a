//! Duplicate SACK blocks.
//!
//! Source: RFC 2883 section 4.

use units::{Offset, unlikely};

/// A range of sequence space: its first byte and the byte following its last.
pub type SackRange = (Offset, Offset);

/// The D-SACK of an acknowledgment of `th_ack`, if it has one: its first block is below `th_ack`
/// (section 4.1), or within the second one (section 4.2).
pub fn duplicate(th_ack: Offset, blocks: &[SackRange]) -> Option<SackRange> {
    let &(start, end) = blocks.first()?;
    if start >= end {
        return None;
    }
    let within = blocks.get(1).is_some_and(|&(from, to)| from <= start && end <= to);
    if unlikely(end <= th_ack || within) { Some((start, end)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, end: u64) -> SackRange {
        (Offset(start), Offset(end))
    }

    #[test]
    fn the_first_block_may_be_a_dsack() {
        // RFC 2883 section 4.1.1: a segment already acknowledged.
        let blocks = [block(3_000, 3_500)];
        assert_eq!(duplicate(Offset(4_000), &blocks), Some(blocks[0]));
        // Section 4.1.2: a duplicate within a block SACKed before.
        let blocks = [block(5_000, 5_500), block(4_500, 5_500)];
        assert_eq!(duplicate(Offset(4_000), &blocks), Some(blocks[0]));
        // Regular SACK blocks.
        assert_eq!(duplicate(Offset(4_000), &[block(5_000, 5_500), block(4_500, 5_000)]), None);
        assert_eq!(duplicate(Offset(4_000), &[block(3_500, 4_500)]), None);
        assert_eq!(duplicate(Offset(4_000), &[block(3_500, 3_500)]), None);
        assert_eq!(duplicate(Offset(4_000), &[]), None);
    }
}
