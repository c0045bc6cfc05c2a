//! SACK reports of a FreeBSD receiver: the list of up to six blocks from which SACK options are
//! filled (tcp_update_sack_list, tcp_update_dsack_list, tcp_clean_dsack_blocks and
//! tcp_clean_sackreport of tcp_sack.c; the same in 13.0, 14.3 and main).
//!
//! A duplicate is an ordinary block, put first; one beyond `rcv_nxt` stays in the list and is
//! reported again.

use packet::{SackBlock, SackBlocks};
use units::{Offset, SeqNum};

/// `MAX_SACK_BLKS`.
const MOST: usize = 6;

type ReportedBlock = (Offset, Offset);

/// `sackblks`, in the order of reporting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct SackReport {
    blocks: [ReportedBlock; MOST],
    count: usize,
}

impl SackReport {
    fn list(&self) -> &[ReportedBlock] {
        &self.blocks[..self.count]
    }

    fn clear(&mut self) {
        self.count = 0;
    }

    /// Appends a block if it is not empty and fits.
    fn keep(&mut self, block: ReportedBlock) {
        if block.0 < block.1
            && let Some(place) = self.blocks.get_mut(self.count)
        {
            *place = block;
            self.count += 1;
        }
    }

    /// Clears the list: header prediction accepted data with nothing out of order.
    pub(crate) fn forget(&mut self) {
        self.clear();
    }

    /// Is the list empty?
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Reports the part of a segment before `rcv_nxt` as a duplicate (tcp_update_sack_list as
    /// tcp_do_segment calls it on trimming).
    pub(crate) fn on_old(&mut self, start: Offset, end: Offset, rcv_nxt: Offset) {
        self.update(start, end, rcv_nxt);
    }

    /// tcp_update_sack_list: puts `[start, end)` first, merged with the blocks it touches.
    fn update(&mut self, start: Offset, end: Offset, rcv_nxt: Offset) {
        let before = *self;
        let mut head = (start, end);
        if start == end && before.list().first().is_some_and(|first| first.1 == end) {
            head = before.blocks[0];
        }
        let mut saved = Self::default();
        for &(left, right) in before.list() {
            if left >= right || left <= rcv_nxt {
                continue;
            }
            if head.0 > right || head.1 < left {
                saved.supersede((left, right));
            } else if head.0 == right {
                head.0 = left;
            } else if head.1 == left {
                head.1 = right;
            } else {
                let outer = (left.min(head.0), right.max(head.1));
                head = (left.max(head.0), right.min(head.1));
                if head != outer {
                    saved.supersede(outer);
                }
            }
        }
        self.clear();
        if start < end {
            self.keep(head);
        } else if before.blocks[0].1 == start && before.count > 0 {
            self.keep(before.blocks[0]);
        }
        saved.list().iter().for_each(|&block| self.keep(block));
    }

    /// Appends a block, replacing the last one if that is within it.
    fn supersede(&mut self, block: ReportedBlock) {
        let within = |last: &ReportedBlock| last.0 >= block.0 && last.1 <= block.1;
        self.count -= usize::from(self.list().last().is_some_and(within));
        self.keep(block);
    }

    /// tcp_update_dsack_list: `[start, end)` has arrived, in order or not; the part already in a
    /// block is reported first, as a duplicate.
    pub(crate) fn on_arrival(&mut self, start: Offset, end: Offset, rcv_nxt: Offset) {
        let before = *self;
        let none = (Offset(0), Offset(0));
        let first_ends = before.list().first().is_some_and(|first| first.1 == rcv_nxt);
        let mut first =
            if end < rcv_nxt || (end == rcv_nxt && first_ends) { (start, end) } else { none };
        let mut head = none;
        let mut middle = (start, end);
        let mut identical = false;
        for &(left, right) in before.list() {
            if end < left || start > right {
                continue;
            }
            let common = (start.max(left), end.min(right));
            if rcv_nxt > right {
                if common.0 != common.1 && (head.0 > common.0 || head.0 == head.1) {
                    head = common;
                }
                continue;
            }
            if (head.0 == head.1 || left < head.0) && right > start && left <= end {
                head = (left, right);
            }
            middle = (middle.0.min(left), middle.1.max(right));
            identical |= middle == (left, right);
        }
        if head.0 < head.1 {
            first = (start.max(head.0), end.min(head.1));
        }
        self.clear();
        self.keep(first);
        let shows_middle = (rcv_nxt < middle.1 && middle != first) || identical;
        // The first slot counts even if it stays empty.
        let mut taken = 1;
        if shows_middle {
            self.keep(middle);
            taken += 1;
        }
        for &(left, right) in before.list() {
            if taken < MOST && (right < middle.0 || left > middle.1) && left > rcv_nxt {
                self.keep((left, right));
                taken += 1;
            }
        }
    }

    /// Puts the first block first again if it ends where a trimmed segment begins: a partial
    /// overlap is already recorded and stays first. Returns whether it does.
    pub(crate) fn keeps_overlap(&mut self, start: Offset, rcv_nxt: Offset) -> bool {
        let Some(&(left, right)) = self.list().first().filter(|first| first.1 == start) else {
            return false;
        };
        self.update(left, right, rcv_nxt);
        true
    }

    /// After a segment was sent, drops the blocks that `rcv_nxt` has reached
    /// (tcp_clean_dsack_blocks).
    pub(crate) fn on_sent(&mut self, rcv_nxt: Offset) {
        let before = *self;
        self.clear();
        before.list().iter().filter(|block| block.0 > rcv_nxt).for_each(|&block| self.keep(block));
    }

    /// The first blocks as an option.
    pub(crate) fn blocks(&self, isn: SeqNum, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        for &(left, right) in self.list().iter().take(most) {
            blocks.push(SackBlock { left: left.to_seq(isn), right: right.to_seq(isn) });
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(report: &SackReport) -> Vec<(u64, u64)> {
        report.list().iter().map(|block| (block.0.0, block.1.0)).collect()
    }

    fn arrive(report: &mut SackReport, start: u64, end: u64, rcv_nxt: u64) {
        report.on_arrival(Offset(start), Offset(end), Offset(rcv_nxt));
    }

    #[test]
    fn the_newest_block_comes_first_and_touching_ones_are_one() {
        // golden/freebsd-closed, reorder-0 of 13.0: the sink's ACKs from 180376 to 384376 ns.
        let mut report = SackReport::default();
        arrive(&mut report, 4_345, 5_793, 1);
        arrive(&mut report, 10_137, 11_585, 1);
        assert_eq!(list(&report), [(10_137, 11_585), (4_345, 5_793)]);
        arrive(&mut report, 2_897, 4_345, 1);
        assert_eq!(list(&report), [(2_897, 5_793), (10_137, 11_585)]);
        arrive(&mut report, 8_689, 10_137, 1);
        arrive(&mut report, 15_929, 17_377, 1);
        assert_eq!(list(&report), [(15_929, 17_377), (8_689, 11_585), (2_897, 5_793)]);
    }

    #[test]
    fn a_duplicate_beyond_rcv_nxt_is_reported_until_that_has_passed_it() {
        // The same transfer at 461592 and 484376 ns: `s7241:8689 s7241:11585 s14481:17377` twice,
        // then without.
        let mut report = SackReport::default();
        arrive(&mut report, 14_481, 17_377, 1);
        arrive(&mut report, 7_241, 11_585, 1);
        report.on_sent(Offset(1));
        arrive(&mut report, 7_241, 8_689, 1);
        let reported = [(7_241, 8_689), (7_241, 11_585), (14_481, 17_377)];
        assert_eq!(list(&report), reported);
        report.on_sent(Offset(1));
        arrive(&mut report, 1, 1_449, 5_793);
        assert_eq!(list(&report)[1..], reported);
        report.on_sent(Offset(5_793));
        assert_eq!(list(&report), reported);
        report.on_sent(Offset(11_585));
        assert_eq!(list(&report), [(14_481, 17_377)]);
    }

    #[test]
    fn old_data_is_reported_once() {
        let mut report = SackReport::default();
        report.on_old(Offset(1), Offset(1_449), Offset(5_793));
        assert_eq!(list(&report), [(1, 1_449)]);
        report.on_sent(Offset(5_793));
        assert!(report.is_empty());
    }
}
