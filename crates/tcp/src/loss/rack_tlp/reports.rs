//! Counters of Linux: D-SACKs and the degree of reordering.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_dsack_seen, tcp_sacktag_one, tcp_may_raise_cwnd).

use recovery::reordering::ReorderingMetric;

use crate::send_side::SendSide;
use crate::stacks::Stack;

impl SendSide {
    /// Does the window grow on SACKs alone, since reordering was seen (tcp_may_raise_cwnd)?
    pub(super) const fn grows_on_reports(&self) -> bool {
        match &self.stack {
            Stack::RackTlp(loss) => {
                loss.detector.supports_undo() && loss.reordering.grows_on_reports()
            }
            _ => false,
        }
    }

    /// The degree of reordering, where it is measured.
    pub(crate) const fn reordering(&self) -> ReorderingMetric {
        match &self.stack {
            Stack::RackTlp(loss) => loss.reordering,
            _ => ReorderingMetric::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cc::Controller as _;
    use packet::{Flags, SackBlock, SackBlocks, Segment};
    use units::{Duration, SeqNum};

    use crate::TcpSide;
    use crate::info::CaState;
    use crate::tests::pair::{TcpPair, config};

    fn place(packets: u32) -> SeqNum {
        SeqNum(1_001 + packets * 1_460)
    }

    /// Ten packets in flight, and the ACKs for them: packets acknowledged, range of packets SACKed.
    fn received(reports: &[(u32, u32, u32)]) -> TcpPair {
        let mut client = config("linux-6.18", TcpSide::Client);
        client.profile.timestamps = false;
        let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
        pair.lose = |_, segment| segment.payload > 0;
        pair.to_write = 10 * 1_460;
        pair.run(Duration::from_millis(200));
        for &(ack, from, to) in reports {
            let mut blocks = SackBlocks::EMPTY;
            blocks.push(SackBlock { left: place(from), right: place(to) });
            let report = pair.forge(Flags::ACK, 1, 1 + i64::from(ack) * 1_460);
            pair.hear(&Segment { options: blocks.into(), ..report });
        }
        pair
    }

    #[test]
    fn the_send_buffer_has_room_for_what_reordering_holds_back() {
        // tcp_sndbuf_expand: `nr_segs = max_t(u32, nr_segs, tp->reordering + 1)`.
        let mut pair = received(&[(0, 9, 10), (0, 1, 2)]);
        assert_eq!(pair.client.snd.reordering().metric(), 9);
        pair.client.snd.cc.set_window(units::Bytes(4 * 1_460));
        assert_eq!(pair.client.snd.window_buffered(&pair.client.conn), 10);
        pair.client.snd.cc.set_window(units::Bytes(12 * 1_460));
        assert_eq!(pair.client.snd.window_buffered(&pair.client.conn), 12);
    }

    #[test]
    fn reordering_is_measured_in_packets_that_overtook() {
        // golden/packetdrill/rack-reordering-metric: 8, then 10 packets.
        let pair = received(&[(0, 9, 10), (0, 2, 3)]);
        assert_eq!((pair.client.info().reordering, pair.client.info().reord_seen), (8, 1));
        let pair = received(&[(0, 9, 10), (10, 9, 10)]);
        assert_eq!((pair.client.info().reordering, pair.client.info().reord_seen), (10, 1));
    }

    #[test]
    fn the_window_grows_on_sacks_once_strong_reordering_was_seen() {
        let pair = received(&[(0, 6, 7), (0, 1, 2)]);
        assert_eq!((pair.client.info().reordering, pair.client.info().snd_cwnd), (6, 11));
        let pair = received(&[(0, 3, 4), (0, 1, 2)]);
        assert_eq!((pair.client.info().reordering, pair.client.info().snd_cwnd), (3, 10));
    }

    #[test]
    fn a_dsack_for_the_only_retransmission_undoes_the_recovery() {
        // golden/packetdrill/undo-dsack-fast-recovery: 10, and 8 delivered: 18.
        let pair = received(&[(0, 1, 4), (10, 0, 1)]);
        let info = pair.client.info();
        assert_eq!((info.ca_state, info.snd_cwnd, info.snd_ssthresh), (CaState::Open, 18, None));
        assert_eq!((info.dsack_dups, pair.client.totals().spurious), (1, 1));
    }

    #[test]
    fn a_dsack_beyond_the_retransmissions_undoes_nothing() {
        // tcp_dsack_seen: with one D-SACK before anything was retransmitted the second is dubious too,
        // of what is acknowledged already or with the acknowledgment. The range 6..6 is none.
        for (others, spurious) in [(&[(2, 0, 1)][..], 0), (&[], 1)] {
            for duplicate in [&[(6, 6, 6), (6, 2, 3)][..], &[(10, 2, 3)]] {
                let pair = received(&[others, &[(2, 3, 6)], duplicate].concat());
                assert_eq!(pair.client.totals().retransmitted_packets, 1);
                assert_eq!(pair.client.info().dsack_dups as usize, 1 + others.len());
                assert_eq!(pair.client.totals().spurious, spurious, "{duplicate:?}");
            }
        }
    }
}
