//! SACK compression of Linux: merges ACKs for packets after the same gap, so that a burst after a
//! loss causes fewer ACKs.
//!
//! Source: tcp_input.c of Linux 6.18 (__tcp_ack_snd_check, tcp_sack_compress_send_ack,
//! tcp_sack_new_ofo_skb), tcp_timer.c (tcp_compressed_ack_kick). The delayed-ACK timer serves here
//! too, since only one of the two waits at a time. A packet for a third block ends the waiting: the
//! ACK held back is sent without it, and it gets none of its own.

use record::Purpose;
use recovery::RttEstimator;
use units::{Duration, Instant};

use crate::connection::Connection;
use crate::profile::DelayedAckRule;
use crate::receive_side::ReceiveSide;
use crate::timers::Timers;

/// Duplicate ACKs sent at once for each value of `rcv_nxt` (`TCP_FASTRETRANS_THRESH`).
const AT_ONCE: u8 = 3;
/// Blocks that a SACK option is expected to have (`TCP_SACK_BLOCKS_EXPECTED`).
pub(crate) const BLOCKS_EXPECTED: usize = 2;

impl ReceiveSide {
    /// Acknowledges data after a gap that needs no immediate ACK: the first duplicate ACKs are sent
    /// at once (the result), others delayed by a twentieth of the round trip.
    pub(crate) fn compress_ack(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rtt: &RttEstimator,
        now: Instant,
    ) -> bool {
        let DelayedAckRule::Linux { compression, .. } = conn.cfg.profile.acks else {
            return true;
        };
        let nxt = self.nxt;
        let compressed = &mut self.compressed;
        if !conn.negotiated.sack || compressed.waiting >= compression.nr {
            return true;
        }
        if compressed.place != nxt {
            (compressed.place, compressed.gone) = (nxt, 0);
        }
        if compressed.gone < AT_ONCE {
            compressed.gone += 1;
            return true;
        }
        compressed.waiting += 1;
        if timers.runs(Purpose::DelayedAck) {
            return false;
        }
        let own = self.window.rtt();
        let rtt = rtt.srtt().map_or(own, |srtt| srtt.min(own));
        let twentieth = rtt.as_nanos() / 20;
        let delay =
            twentieth.min(u64::from(compression.delay_ns)) + u64::from(compression.slack_ns);
        let due = now + Duration::from_nanos(delay);
        let leftover = compressed.leftover.filter(|&leftover| leftover > now);
        timers.start_compression(leftover.map_or(due, |leftover| leftover.min(due)));
        false
    }
}

#[cfg(test)]
mod tests {
    use packet::{Flags, Segment};
    use units::{Duration, SeqNum};

    use crate::TcpSide;
    use crate::tests::pair::{TcpPair, config};

    /// 40 packets in order, one missing, and `packets` after it; returns the number of ACKs before
    /// those.
    fn acks_of(packets: u64, set: fn(&mut TcpPair)) -> (usize, TcpPair) {
        acks_of_these((0..40).chain(41..41 + packets), set)
    }

    /// Like [`acks_of`], with the packets of these numbers; the first 40 are in order.
    fn acks_of_these(
        packets: impl Iterator<Item = u64>,
        set: fn(&mut TcpPair),
    ) -> (usize, TcpPair) {
        let client = config("linux-6.18", TcpSide::Client);
        let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
        set(&mut pair);
        pair.run(Duration::from_millis(200));
        let segment =
            |seq: u64| Segment {
                seq: SeqNum(1_001 + seq as u32 * 1_448),
                ack: SeqNum(2_000_000_001),
                payload: 1_448,
                flags: Flags::ACK,
                window: 1_000,
                // They echo a timestamp one round trip old.
                timestamps: pair.log.last().and_then(|s| s.timestamps).map(|stamps| {
                    packet::Timestamps { ecr: stamps.ecr.wrapping_sub(100), ..stamps }
                }),
                ..*pair.log.last().unwrap()
            };
        let segments: Vec<Segment> =
            packets.map(|seq| Segment { dir: packet::Dir::Forward, ..segment(seq) }).collect();
        let mut before = 0;
        for (number, segment) in segments.iter().enumerate() {
            if number == 40 {
                before = pair.acks().count();
            }
            pair.arrive(segment);
            pair.serve();
        }
        (before, pair)
    }

    #[test]
    fn three_duplicate_acks_are_sent_at_once_and_the_others_compressed() {
        let (before, mut pair) = acks_of(20, |_| ());
        let at_once = pair.acks().count() - before;
        // The window may grow with some of them, and each growth causes an ACK.
        assert!((3..20).contains(&at_once), "{at_once}");
        let waiting = pair.server.rcv.compressed.waiting;
        assert!(waiting > 0);
        // A twentieth of 100 ms is more than a millisecond.
        let due = pair.server.deadline(record::Purpose::DelayedAck).unwrap().since(pair.now);
        assert_eq!(due, Duration::from_micros(1_100));
        let until = pair.now.since(units::Instant::ZERO) + Duration::from_millis(2);
        pair.run(until);
        assert_eq!(pair.acks().count() - before, at_once + 1);
        assert_eq!(pair.server.rcv.compressed.waiting, 0);
        // World 228 of seed 1 against a kernel 6.12: its timestamp is that of the last packet.
        let [.., before, last] = &*pair.acks().collect::<Vec<_>>() else { unreachable!() };
        assert_eq!(last.timestamps.unwrap().val, before.timestamps.unwrap().val);
    }

    #[test]
    fn a_third_block_sends_the_ack_held_back_without_it_and_its_packet_gets_none() {
        // tcp_sack_new_ofo_skb; world 71 of seed 1 against a kernel 6.12.
        let blocks = |packets: &[u64]| {
            let all = (0..40).chain(41..50).chain(packets.iter().copied());
            let (_, pair) = acks_of_these(all, |_| ());
            let newest = pair.acks().last().unwrap().sack_blocks();
            let first = |block: &packet::SackBlock| (block.left.0 - 1_001) / 1_448;
            let lefts: Vec<u32> = newest.iter().map(first).collect();
            let waiting = pair.server.rcv.compressed.waiting;
            (lefts, waiting, pair.server.deadline(record::Purpose::DelayedAck).is_some())
        };
        assert_eq!(blocks(&[60, 61]).1, 7);
        assert_eq!(blocks(&[60, 61, 70]), (vec![60, 41], 0, false));
        assert_eq!(blocks(&[60, 61, 70, 71]), (vec![60, 41], 1, true));
        // An old third block is extended where it is.
        assert_eq!(blocks(&[60, 61, 70, 71, 50]), (vec![70, 60, 41], 0, false));
    }

    #[test]
    fn the_timer_of_a_delayed_ack_sent_before_sends_what_is_held_back() {
        // tcp_delack_timer_handler; wide world 36 of seed 9001 against a kernel 6.12.
        let (_, mut pair) = acks_of(4, |_| ());
        let leftover = pair.server.rcv.compressed.leftover.unwrap();
        let before = leftover.since(units::Instant::ZERO) - Duration::from_micros(500);
        pair.run(before);
        pair.now = units::Instant::ZERO + before;
        assert_eq!(pair.server.rcv.compressed.waiting, 0);
        let acks = pair.acks().count();
        let segment = Segment {
            dir: packet::Dir::Forward,
            seq: SeqNum(1_001 + 45 * 1_448),
            ack: SeqNum(2_000_000_001),
            payload: 1_448,
            flags: Flags::ACK,
            window: 1_000,
            ..*pair.log.last().unwrap()
        };
        pair.arrive(&segment);
        pair.serve();
        assert_eq!((pair.server.rcv.compressed.waiting, pair.acks().count()), (1, acks));
        assert_eq!(pair.server.deadline(record::Purpose::DelayedAck), Some(leftover));
        pair.run(before + Duration::from_micros(500));
        assert_eq!((pair.server.rcv.compressed.waiting, pair.acks().count()), (0, acks + 1));
    }

    #[test]
    fn no_acks_are_compressed_if_it_is_off() {
        let (before, pair) = acks_of(20, |pair| {
            let crate::profile::DelayedAckRule::Linux { compression, .. } =
                &mut pair.server.conn.cfg.profile.acks
            else {
                unreachable!()
            };
            compression.nr = 0;
        });
        assert_eq!(pair.acks().count() - before, 20);
    }
}
