//! The data in flight: what was sent, what was acknowledged or reported by SACK.

use units::{Instant, Offset};

use super::ORIGIN;
use crate::outstanding::{Outstanding, SentRange};
use crate::ranges::StreamRanges;

/// Data in flight at the sender.
#[derive(Debug, Clone)]
pub(crate) struct Scoreboard {
    /// All data before this offset were acknowledged.
    pub(super) una: Offset,
    /// The first byte not yet sent.
    pub(super) nxt: Offset,
    /// Highest byte delivered (cumulative ACK or SACK).
    fack: Offset,
    out: Outstanding,
    sacked: StreamRanges,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            una: ORIGIN,
            nxt: ORIGIN,
            fack: ORIGIN,
            out: Outstanding::default(),
            sacked: StreamRanges::default(),
        }
    }
}

impl Scoreboard {
    /// Begins the stream at `start`.
    pub(super) const fn begin_at(&mut self, start: Offset) {
        (self.una, self.nxt, self.fack) = (start, start, start);
    }

    /// Drops all data in flight: the stream goes on with other numbers.
    pub(super) fn restart(&mut self) {
        self.out.pop_below(self.nxt, |_| {});
        self.sacked.drop_below(self.nxt);
        (self.una, self.fack) = (self.nxt, self.nxt);
    }

    /// Bytes in flight as the sender counts them: without those reported by SACK.
    pub(super) fn flight(&self) -> u64 {
        (self.nxt - self.una).saturating_sub(self.sacked.bytes())
    }

    /// Whether all data are acknowledged.
    pub(super) fn is_all_acked(&self) -> bool {
        self.una == self.nxt
    }

    /// Whether SACK has reported no data above the cumulative ACK.
    pub(super) fn is_in_order(&self) -> bool {
        self.sacked.is_empty()
    }

    /// The oldest data in flight.
    pub(super) fn first_outstanding(&self) -> Option<&SentRange> {
        self.out.first()
    }

    /// Whether data at `start` cannot belong to this stream as it was: so far from it that no window
    /// reaches (RFC 7323 section 2.3: 1 GiB at most), or farther than `limit` beyond all that was sent.
    pub(super) fn is_jump(&self, start: Offset, limit: u64) -> bool {
        let limit = limit.min(1 << 30);
        start.since(self.nxt).get() > limit || self.una.since(start).get() > limit
    }

    /// Adds data above all others; a gap below them counts as sent, though it was not captured: it was
    /// lost or delayed before this point, or the capture missed it. Returns the bytes by which the
    /// stream grew.
    pub(super) fn push(&mut self, sent: SentRange) -> u64 {
        let nxt = core::mem::replace(&mut self.nxt, sent.end);
        if sent.start > nxt {
            self.out.push(SentRange { start: nxt, end: sent.start, copies: 0, ..sent });
        }
        self.out.push(sent);
        sent.end - nxt
    }

    /// Visits the data of `[start, end)` in flight.
    pub(super) fn visit(
        &mut self,
        (start, end): (Offset, Offset),
        each: impl FnMut(&mut SentRange),
    ) {
        self.out.visit(start, end, each);
    }

    /// What an ACK has delivered; empty at first.
    pub(super) fn newly_delivered(&self) -> NewlyDelivered {
        NewlyDelivered { fack: self.fack, ..NewlyDelivered::default() }
    }

    /// Applies a SACK block.
    pub(super) fn sack(&mut self, left: Offset, right: Offset, news: &mut NewlyDelivered) {
        let out = &mut self.out;
        self.sacked.add(left, right, |l, r| {
            out.visit(l, r, |sent| {
                sent.sacked = true;
                news.add(sent);
            });
        });
        self.fack = self.fack.max(right);
    }

    /// Applies a cumulative ACK beyond the last one; returns the acknowledged data that were not
    /// captured.
    pub(super) fn acknowledge(
        &mut self,
        offset: Offset,
        news: &mut NewlyDelivered,
    ) -> Vec<(Offset, Offset)> {
        let mut uncaptured = Vec::new();
        self.out.pop_below(offset, |sent| {
            if sent.copies == 0 {
                uncaptured.push((sent.start, sent.end));
            }
            if !sent.sacked {
                news.add(sent);
            }
        });
        self.sacked.drop_below(offset);
        self.una = offset;
        self.fack = self.fack.max(offset);
        uncaptured
    }
}

/// A retransmitted range that an ACK reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepeatedRange {
    pub(super) start: Offset,
    pub(super) end: Offset,
    /// Time and timestamp of its last copy.
    pub(super) sent_at: Instant,
    pub(super) stamp: u32,
}

/// Data that one ACK reports as delivered for the first time.
#[derive(Debug, Default)]
pub(super) struct NewlyDelivered {
    /// Highest byte delivered before this ACK.
    fack: Offset,
    pub(super) bytes: u64,
    /// Transmission time of the newest data that were sent once.
    pub(super) newest: Option<Instant>,
    newest_end: Offset,
    /// Data sent once that were delivered after later data.
    pub(super) reordered_bytes: u64,
    pub(super) reordering_extent: u64,
    pub(super) reordered_sent_at: Option<Instant>,
    /// The lowest retransmitted range.
    pub(super) repeated: Option<RepeatedRange>,
}

impl NewlyDelivered {
    /// Transmission time of the newest data that were sent once, unless the ACK covers a retransmission, too: without
    /// SACK they may have waited for that at the receiver (Karn's algorithm, RFC 6298 section 3; `tcp_clean_rtx_queue` of
    /// Linux).
    pub(super) fn newest_alone(&self) -> Option<Instant> {
        self.newest.filter(|_| self.repeated.is_none())
    }

    fn add(&mut self, sent: &SentRange) {
        let (start, end) = (sent.start, sent.end);
        self.bytes += end - start;
        match sent.copies {
            0 => {}
            1 => {
                if end >= self.newest_end {
                    self.newest_end = end;
                    self.newest = Some(sent.first_at);
                }
                if end <= self.fack {
                    self.reordered_bytes += end - start;
                    self.reordering_extent = self.reordering_extent.max(self.fack - start);
                    self.reordered_sent_at = Some(sent.first_at);
                }
            }
            _ => {
                let (sent_at, stamp) = (sent.last_at, sent.stamp);
                self.repeated.get_or_insert(RepeatedRange { start, end, sent_at, stamp });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(place: u64, millis: u64) -> SentRange {
        let at = Instant::from_nanos(millis * 1_000_000);
        let (start, end) = (ORIGIN + place, ORIGIN + place + 1_000);
        SentRange { start, end, first_at: at, last_at: at, copies: 1, sacked: false, stamp: 0 }
    }

    /// Without SACK, what arrived behind a hole is acknowledged with the repair of that: it shows no round trip.
    #[test]
    fn an_ack_of_a_repair_times_no_other_data() {
        let mut board = Scoreboard::default();
        board.push(sent(0, 0));
        board.push(sent(1_000, 1));
        board.visit((ORIGIN, ORIGIN + 1_000), |first| first.copies = 2);
        let mut news = board.newly_delivered();
        board.acknowledge(ORIGIN + 2_000, &mut news);
        assert_eq!(news.newest, Some(Instant::from_nanos(1_000_000)));
        assert_eq!(news.newest_alone(), None);
    }
}
