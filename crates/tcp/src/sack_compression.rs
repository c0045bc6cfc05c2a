//! Linux puts ACKs together that report packets behind the same gap, so that a burst behind a loss
//! does not make as many ACKs.
//!
//! Source: tcp_input.c of Linux 6.18 (__tcp_ack_snd_check, tcp_sack_compress_send_ack,
//! tcp_sack_new_ofo_skb), tcp_timer.c (tcp_compressed_ack_kick). The timer is the one of delayed ACKs
//! here, since one of the two waits at a time; a report of a third block that interrupts the waiting
//! takes the new packet along.

use units::{Duration, Instant, Offset};

use crate::endpoint::Endpoint;
use crate::profile::AckRule;
use record::Purpose;

/// Duplicates that go at once for each place where the stream stops (`TCP_FASTRETRANS_THRESH`).
const AT_ONCE: u8 = 3;
/// Blocks that a report is expected to have (`TCP_SACK_BLOCKS_EXPECTED`).
pub(crate) const BLOCKS_EXPECTED: usize = 2;

/// ACKs that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Compressed {
    /// How many (`compressed_ack`).
    pub(crate) waiting: u32,
    /// Where the stream stops (`compressed_ack_rcv_nxt`), and ACKs that went at once for it
    /// (`dup_ack_counter`).
    place: Offset,
    gone: u8,
}

impl Endpoint {
    /// Something lies behind a gap and nothing asks for an ACK at once: the first ones go, others wait
    /// for a twentieth of the round trip.
    pub(crate) fn compress_ack(&mut self, now: Instant) {
        let AckRule::Linux { compression, .. } = self.cfg.profile.acks else {
            return self.ack_at_once();
        };
        let nxt = self.rcv.nxt;
        let compressed = &mut self.rcv.compressed;
        if !self.link.sack || compressed.waiting >= compression.nr {
            return self.ack_at_once();
        }
        if compressed.place != nxt {
            (compressed.place, compressed.gone) = (nxt, 0);
        }
        if compressed.gone < AT_ONCE {
            compressed.gone += 1;
            return self.ack_at_once();
        }
        compressed.waiting += 1;
        if self.timers.runs(Purpose::DelayedAck) {
            return;
        }
        let own = self.rcv.window.rtt();
        let rtt = self.rtt.srtt().map_or(own, |srtt| srtt.min(own));
        let twentieth = rtt.as_nanos() / 20;
        let delay =
            twentieth.min(u64::from(compression.delay_ns)) + u64::from(compression.slack_ns);
        self.timers.set(Purpose::DelayedAck, now + Duration::from_nanos(delay));
    }
}

#[cfg(test)]
mod tests {
    use packet::{Flags, Segment};
    use units::{Duration, SeqNum};

    use crate::Side;
    use crate::tests::pair::{Pair, config};

    /// 40 packets in order, one that is missing, and `packets` behind it: how many ACKs had left before
    /// those.
    fn acks_of(packets: u64, set: fn(&mut Pair)) -> (usize, Pair) {
        let client = config("linux-6.18", Side::Client);
        let mut pair = Pair::new(client, config("linux-6.18", Side::Server));
        set(&mut pair);
        pair.run(Duration::from_millis(200));
        let segment =
            |seq: u64| Segment {
                seq: SeqNum(1_001 + seq as u32 * 1_448),
                ack: SeqNum(2_000_000_001),
                payload: 1_448,
                flags: Flags::ACK,
                window: 1_000,
                // What they echo left a round trip ago.
                timestamps: pair.log.last().and_then(|s| s.timestamps).map(|stamps| {
                    packet::Timestamps { ecr: stamps.ecr.wrapping_sub(100), ..stamps }
                }),
                ..*pair.log.last().unwrap()
            };
        let segments: Vec<Segment> = (0..40)
            .chain(41..41 + packets)
            .map(|seq| Segment { dir: packet::Dir::Forward, ..segment(seq) })
            .collect();
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
    fn three_reports_go_at_once_and_the_others_together() {
        let (before, mut pair) = acks_of(20, |_| ());
        let at_once = pair.acks().count() - before;
        // The window may grow with some of them, and each growth is answered.
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
    }

    #[test]
    fn none_are_put_together_where_that_is_off() {
        let (before, pair) = acks_of(20, |pair| {
            let crate::profile::AckRule::Linux { compression, .. } =
                &mut pair.server.cfg.profile.acks
            else {
                unreachable!()
            };
            compression.nr = 0;
        });
        assert_eq!(pair.acks().count() - before, 20);
    }
}
