//! A receiver that drops what it had reported (RFC 2018 section 8): the acknowledgment moves up to
//! data it reported and stops there.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_check_sack_reneging): the timeout comes soon, and takes
//! all for lost (tcp_timeout_mark_lost).

use record::Purpose;
use units::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::loss::Repair;

/// The receiver gets at least this long to prove that the acknowledgments merely overtook each other.
const LEAST: Duration = Duration::from_millis(10);

impl Endpoint {
    /// An acknowledgment came, and `advances` or not: does it stop at data that was reported? Then the
    /// timeout is near.
    pub(super) fn heed_reneging(&mut self, now: Instant, advances: bool) -> bool {
        let linux = matches!(&self.snd.repair, Repair::Timed(loss) if loss.judge.takes_back());
        let reneged = linux && advances && self.snd.map.reneged();
        if reneged {
            let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
            let half = Duration::from_micros(srtt.as_micros() / 2);
            self.timers.set(Purpose::Retransmit, self.clock.deadline(now, half.max(LEAST)));
        }
        reneged
    }
}

#[cfg(test)]
mod tests {
    use packet::{Flags, SackBlock, SackBlocks, Segment};
    use record::Purpose;
    use units::{Duration, SeqNum};

    use crate::Side;
    use crate::info::CaState;
    use crate::tests::pair::{Pair, config};

    #[test]
    fn what_was_reported_and_stops_the_acknowledgment_is_sent_again_soon() {
        let mut client = config("linux-6.18", Side::Client);
        client.profile.timestamps = false;
        let mut pair = Pair::new(client, config("linux-6.18", Side::Server));
        pair.lose = |_, segment| segment.payload > 0;
        pair.to_write = 10 * 1_460;
        pair.run(Duration::from_millis(200));
        let mut blocks = SackBlocks::EMPTY;
        let place = |packets: u32| SeqNum(1_001 + packets * 1_460);
        blocks.push(SackBlock { left: place(1), right: place(4) });
        let report = pair.forge(Flags::ACK, 1, 1);
        pair.hear(&Segment { options: blocks.into(), ..report });
        assert_eq!(pair.client.info().ca_state, CaState::Recovery);
        // The first packet is acknowledged, and what was reported behind it is not.
        let stops = pair.forge(Flags::ACK, 1, 1 + 1_460);
        pair.hear(&stops);
        let wait = pair.client.deadline(Purpose::Retransmit).unwrap().since(pair.now);
        // Half a round trip of 100 ms, in jiffies of 4 ms.
        assert!(wait <= Duration::from_millis(52) && wait >= Duration::from_millis(44), "{wait}");
        let before = pair.log.len();
        pair.run(Duration::from_millis(260));
        assert_eq!(pair.log[before].seq, place(1));
        let info = pair.client.info();
        assert_eq!((info.ca_state, info.sacked), (CaState::Loss, 0));
    }
}
