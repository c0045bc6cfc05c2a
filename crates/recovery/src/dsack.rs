//! Blocks that report what had arrived before.
//!
//! Source: RFC 2883 section 4.

use units::{Offset, unlikely};

/// A reported range: its first byte, and behind its last one.
pub type Block = (Offset, Offset);

/// The duplicate that an acknowledgment of `th_ack` reports, if it does: its first block lies below
/// `th_ack` (section 4.1), or within the second one (section 4.2).
pub fn duplicate(th_ack: Offset, blocks: &[Block]) -> Option<Block> {
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

    fn block(start: u64, end: u64) -> Block {
        (Offset(start), Offset(end))
    }

    #[test]
    fn the_first_block_tells_of_a_duplicate() {
        // RFC 2883 section 4.1.1: a segment already acknowledged.
        let blocks = [block(3_000, 3_500)];
        assert_eq!(duplicate(Offset(4_000), &blocks), Some(blocks[0]));
        // Section 4.1.2: one within a block reported before.
        let blocks = [block(5_000, 5_500), block(4_500, 5_500)];
        assert_eq!(duplicate(Offset(4_000), &blocks), Some(blocks[0]));
        // An ordinary report.
        assert_eq!(duplicate(Offset(4_000), &[block(5_000, 5_500), block(4_500, 5_000)]), None);
        assert_eq!(duplicate(Offset(4_000), &[block(3_500, 4_500)]), None);
        assert_eq!(duplicate(Offset(4_000), &[block(3_500, 3_500)]), None);
        assert_eq!(duplicate(Offset(4_000), &[]), None);
    }
}
