//! What an acknowledgment tells of packets: how many it delivered, and when they had left.
//!
//! Linux counts its window, its flight and its deliveries in packets and takes round-trip samples
//! from send times (tcp_rate.c, tcp_clean_rtx_queue of tcp_input.c).

use recovery::sendmap::{Piece, Row, SendMap};
use units::{Instant, Offset};

/// What an acknowledgment took off the packets under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Delivered {
    /// Packets delivered whole that had not been reported before.
    pub(crate) packets: u64,
    /// When the oldest packet left.
    oldest: Option<Instant>,
    /// When the newest one left.
    newest: Option<Instant>,
    /// One of them had been sent twice.
    resent: bool,
    /// When the first one that had been sent once left, and when the last one of these did.
    once: Option<(Instant, Instant)>,
}

impl Delivered {
    /// A row of packets, none of them sent twice; its first and its last.
    #[inline]
    pub(crate) const fn row(row: &Row) -> Self {
        let (oldest, newest) = (Some(row.first.sent_at), Some(row.last.sent_at));
        let once = Some((row.first.sent_at, row.last.sent_at));
        Self { packets: row.packets, oldest, newest, resent: false, once }
    }

    /// Another packet was delivered.
    #[inline]
    pub(crate) fn add(&mut self, piece: &Piece) {
        if piece.sacked() {
            return;
        }
        self.packets += 1;
        if piece.transmissions() > 1 {
            self.resent = true;
        } else {
            let first = self.once.map_or(piece.sent_at(), |(first, _)| first);
            self.once = Some((first, piece.sent_at()));
        }
        self.oldest = self.oldest.or(Some(piece.sent_at()));
        self.newest = Some(piece.sent_at());
    }

    /// This, acknowledged, and what was reported with it, as Linux measures round trips: the
    /// smoothed one by what was acknowledged if that tells, that of controllers by what was reported
    /// (tcp_clean_rtx_queue, tcp_ack_update_rtt).
    pub(crate) fn with_reports(&self, reported: &Self) -> Self {
        // What was retransmitted hides nothing of other reports (tcp_sacktag_one).
        let (first, last) = reported.once.unzip();
        let oldest = self.oldest_sent().or(first);
        Self {
            packets: self.packets + reported.packets,
            oldest,
            newest: last.or(self.newest_sent()),
            resent: oldest.is_none(),
            once: reported.once,
        }
    }

    /// When the oldest packet left, if none of them had been sent twice.
    pub(crate) fn oldest_sent(&self) -> Option<Instant> {
        self.oldest.filter(|_| !self.resent)
    }

    /// When the first of those sent once left.
    pub(crate) fn oldest_sent_once(&self) -> Option<Instant> {
        self.once.map(|(first, _)| first)
    }

    /// When the newest one left, under the same condition.
    pub(crate) fn newest_sent(&self) -> Option<Instant> {
        self.newest.filter(|_| !self.resent)
    }
}

/// `[start, end)` left for the first time, in packets of `mss` bytes; the last byte may be a FIN,
/// which goes along with the last packet.
#[inline]
pub(crate) fn push(
    map: &mut SendMap,
    start: Offset,
    end: Offset,
    fin: bool,
    mss: u64,
    now: Instant,
) {
    let data_end = Offset(end.0 - u64::from(fin));
    let mut at = start;
    while data_end - at > mss {
        map.push(at, at + mss, now);
        at += mss;
    }
    map.push(at, end, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn acknowledge(map: &mut SendMap, una: u64) -> Delivered {
        let mut delivered = Delivered::default();
        map.acknowledge(Offset(una), |piece| delivered.add(piece));
        delivered
    }

    #[test]
    fn bursts_count_as_packets() {
        let mut map = SendMap::new();
        push(&mut map, Offset(1), Offset(2_501), false, 1_000, at(1));
        push(&mut map, Offset(2_501), Offset(4_502), true, 1_000, at(2));
        assert_eq!(map.sums().all.packets, 5);
        // Two whole ones and a half: that one is still under way.
        let part = acknowledge(&mut map, 2_401);
        assert_eq!((part.packets, part.newest_sent()), (2, Some(at(1))));
        assert_eq!(map.sums().all.packets, 3);
        let rest = acknowledge(&mut map, 4_502);
        assert_eq!(rest.packets, 3);
        assert_eq!((rest.oldest_sent(), rest.newest_sent()), (Some(at(1)), Some(at(2))));
        assert!(map.is_empty());
    }

    #[test]
    fn what_was_sent_twice_gives_no_round_trip() {
        let mut map = SendMap::new();
        push(&mut map, Offset(1), Offset(2_001), false, 1_000, at(1));
        map.resend(Offset(1), Offset(1_001), at(5), false);
        assert_eq!(acknowledge(&mut map, 1_001).oldest_sent(), None);
        assert_eq!(acknowledge(&mut map, 2_001).oldest_sent(), Some(at(1)));
    }
}
