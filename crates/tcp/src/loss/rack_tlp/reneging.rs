//! Reneging: a receiver drops data it had SACKed (RFC 2018 section 8). The acknowledgment then
//! stops at SACKed data.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_check_sack_reneging): the timeout is shortened, and marks
//! the whole flight lost (tcp_timeout_mark_lost).

use record::Purpose;
use units::{Duration, Instant};

use crate::connection::Connection;
use crate::send_side::SendSide;
use crate::stacks::Stack;
use crate::timers::Timers;

/// Minimum of the shortened timeout, in case the acknowledgments were merely reordered.
const LEAST: Duration = Duration::from_millis(10);

impl SendSide {
    /// Checks whether an acknowledgment that `advances` stops at SACKed data; if so, shortens the
    /// timeout.
    pub(super) fn check_reneging(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        advances: bool,
    ) -> bool {
        let linux = matches!(&self.stack, Stack::RackTlp(loss) if loss.detector.supports_undo());
        let reneged = linux && advances && self.scoreboard.reneged();
        if reneged {
            let srtt = self.rtt.estimator.srtt().unwrap_or(Duration::ZERO);
            let half = Duration::from_micros(srtt.as_micros() / 2);
            timers.set(Purpose::Retransmit, conn.clock.deadline(now, half.max(LEAST)));
        }
        reneged
    }
}

#[cfg(test)]
mod tests {
    use packet::{Flags, SackBlock, SackBlocks, Segment};
    use record::Purpose;
    use units::{Duration, SeqNum};

    use crate::TcpSide;
    use crate::info::CaState;
    use crate::tests::pair::{TcpPair, config};

    #[test]
    fn an_acknowledgment_that_stops_at_sacked_data_shortens_the_timeout() {
        let mut client = config("linux-6.18", TcpSide::Client);
        client.profile.timestamps = false;
        let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
        pair.lose = |_, segment| segment.payload > 0;
        pair.to_write = 10 * 1_460;
        pair.run(Duration::from_millis(200));
        let mut blocks = SackBlocks::EMPTY;
        let place = |packets: u32| SeqNum(1_001 + packets * 1_460);
        blocks.push(SackBlock { left: place(1), right: place(4) });
        let report = pair.forge(Flags::ACK, 1, 1);
        pair.hear(&Segment { options: blocks.into(), ..report });
        assert_eq!(pair.client.info().ca_state, CaState::Recovery);
        // The first packet is acknowledged, but not the SACKed data after it.
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
