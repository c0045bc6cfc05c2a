//! Packets delivered by an acknowledgment: their number and their transmission times.
//!
//! Linux counts its window, its flight and its deliveries in packets and takes round-trip samples
//! from send times (tcp_rate.c, tcp_clean_rtx_queue of tcp_input.c).

use recovery::sendmap::{DeliveredRun, SendMap, SentSegment};
use units::{Instant, Offset};

/// Packets that an acknowledgment delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DeliveredPackets {
    /// Packets delivered completely that were not SACKed before.
    pub(crate) packets: u64,
    /// When the oldest packet was sent.
    oldest: Option<Instant>,
    /// When the newest packet was sent.
    newest: Option<Instant>,
    /// One of them was a retransmission.
    retransmitted: bool,
    /// Transmission times of the first and the last packet that were sent only once.
    once: Option<(Instant, Instant)>,
}

impl DeliveredPackets {
    /// Counts a batch of packets, none of them retransmitted.
    #[inline]
    pub(crate) const fn row(row: &DeliveredRun) -> Self {
        let (oldest, newest) = (Some(row.first.sent_at), Some(row.last.sent_at));
        let once = Some((row.first.sent_at, row.last.sent_at));
        Self { packets: row.packets, oldest, newest, retransmitted: false, once }
    }

    /// Counts a delivered packet.
    #[inline]
    pub(crate) fn add(&mut self, sent_segment: &SentSegment) {
        if sent_segment.sacked() {
            return;
        }
        self.packets += 1;
        if sent_segment.transmissions() > 1 {
            self.retransmitted = true;
        } else {
            let first = self.once.map_or(sent_segment.sent_at(), |(first, _)| first);
            self.once = Some((first, sent_segment.sent_at()));
        }
        self.oldest = self.oldest.or(Some(sent_segment.sent_at()));
        self.newest = Some(sent_segment.sent_at());
    }

    /// Combines packets acknowledged (`self`) with those SACKed by the same acknowledgment, as
    /// Linux measures round trips: the smoothed one by the packets acknowledged if these give a
    /// sample, that of controllers by the packets SACKed (tcp_clean_rtx_queue, tcp_ack_update_rtt).
    pub(crate) fn with_sacked(&self, reported: &Self) -> Self {
        // A retransmission does not invalidate the samples of other SACKed packets
        // (tcp_sacktag_one).
        let (first, last) = reported.once.unzip();
        let oldest = self.oldest_sent().or(first);
        Self {
            packets: self.packets + reported.packets,
            oldest,
            newest: last.or(self.newest_sent()),
            retransmitted: oldest.is_none(),
            once: reported.once,
        }
    }

    /// When the oldest packet was sent, if none of them was retransmitted.
    pub(crate) fn oldest_sent(&self) -> Option<Instant> {
        self.oldest.filter(|_| !self.retransmitted)
    }

    /// When the first packet that was sent only once was sent.
    pub(crate) fn oldest_sent_once(&self) -> Option<Instant> {
        self.once.map(|(first, _)| first)
    }

    /// When the newest packet was sent, under the same condition.
    pub(crate) fn newest_sent(&self) -> Option<Instant> {
        self.newest.filter(|_| !self.retransmitted)
    }
}

/// Records the first transmission of `[start, end)`, in packets of `mss` bytes; the last byte may
/// be a FIN, which belongs to the last packet.
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

    fn acknowledge(map: &mut SendMap, una: u64) -> DeliveredPackets {
        let mut delivered = DeliveredPackets::default();
        map.acknowledge(Offset(una), |sent_segment| delivered.add(sent_segment));
        delivered
    }

    #[test]
    fn bursts_count_as_packets() {
        let mut map = SendMap::new();
        push(&mut map, Offset(1), Offset(2_501), false, 1_000, at(1));
        push(&mut map, Offset(2_501), Offset(4_502), true, 1_000, at(2));
        assert_eq!(map.sums().all.packets, 5);
        // Two whole packets and a part of the third, which stays in flight.
        let part = acknowledge(&mut map, 2_401);
        assert_eq!((part.packets, part.newest_sent()), (2, Some(at(1))));
        assert_eq!(map.sums().all.packets, 3);
        let rest = acknowledge(&mut map, 4_502);
        assert_eq!(rest.packets, 3);
        assert_eq!((rest.oldest_sent(), rest.newest_sent()), (Some(at(1)), Some(at(2))));
        assert!(map.is_empty());
    }

    #[test]
    fn retransmitted_packets_give_no_rtt_sample() {
        let mut map = SendMap::new();
        push(&mut map, Offset(1), Offset(2_001), false, 1_000, at(1));
        map.retransmit(Offset(1), Offset(1_001), at(5), false);
        assert_eq!(acknowledge(&mut map, 1_001).oldest_sent(), None);
        assert_eq!(acknowledge(&mut map, 2_001).oldest_sent(), Some(at(1)));
    }
}
