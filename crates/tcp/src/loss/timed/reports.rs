//! What Linux counts of reports: duplicates, and how far apart packets arrive.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_dsack_seen, tcp_sacktag_one, tcp_may_raise_cwnd).

use core::hint::cold_path;

use recovery::dsack;
use recovery::reordering::Reordering;

use super::timed_of;
use crate::endpoint::Endpoint;
use crate::loss::{Heard, Repair};

impl Endpoint {
    /// Counts the duplicate that an acknowledgment reports, before it is taken in; returns the
    /// packets of it that count as delivered, which a needless retransmission is.
    pub(super) fn count_duplicates(&mut self, heard: &Heard) -> u64 {
        let (mss, max_wnd) = (self.mss(), self.snd.max_wnd);
        let resent = self.totals.retransmitted_packets;
        let loss = timed_of!(self);
        if !loss.judge.takes_back() {
            return 0;
        }
        let Some((start, end)) = dsack::duplicate(heard.th_ack, heard.blocks()) else { return 0 };
        cold_path();
        let bytes = end - start;
        if bytes > max_wnd {
            return 0;
        }
        let packets = bytes.div_ceil(mss).max(1);
        loss.reordering.on_duplicate(packets);
        if u64::from(loss.reordering.dsack_dups()) > resent {
            // More than was ever sent again: the network doubled them.
            return 0;
        }
        // Packets of it that are still held: their retransmissions were needless. What is held no
        // more is counted where the acknowledgment is judged.
        let mut at = start;
        while let Some(piece) = self.snd.map.get(at).filter(|piece| piece.end() <= end) {
            if piece.transmissions() > 1 {
                loss.episode.undo.on_held_duplicate(piece.end());
            }
            at = piece.end();
        }
        packets
    }

    /// Does the window grow on reports alone, since packets were seen to change places
    /// (tcp_may_raise_cwnd)?
    pub(super) const fn grows_on_reports(&self) -> bool {
        match &self.snd.repair {
            Repair::Timed(loss) => loss.judge.takes_back() && loss.reordering.grows_on_reports(),
            _ => false,
        }
    }

    /// How far apart packets arrive, where that is counted.
    pub(crate) const fn reordering(&self) -> Reordering {
        match &self.snd.repair {
            Repair::Timed(loss) => loss.reordering,
            _ => Reordering::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use packet::{Flags, SackBlock, SackBlocks, Segment};
    use units::{Duration, SeqNum};

    use crate::Side;
    use crate::info::CaState;
    use crate::tests::pair::{Pair, config};

    fn place(packets: u32) -> SeqNum {
        SeqNum(1_001 + packets * 1_460)
    }

    /// Ten packets are under way, and what is heard of them: packets acknowledged, packets reported.
    fn heard(reports: &[(u32, u32, u32)]) -> Pair {
        let mut client = config("linux-6.18", Side::Client);
        client.profile.timestamps = false;
        let mut pair = Pair::new(client, config("linux-6.18", Side::Server));
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
    fn late_packets_are_measured_by_what_overtook_them() {
        // golden/packetdrill/rack-reordering-metric: 8, then 10 packets.
        let pair = heard(&[(0, 9, 10), (0, 2, 3)]);
        assert_eq!((pair.client.info().reordering, pair.client.info().reord_seen), (8, 1));
        let pair = heard(&[(0, 9, 10), (10, 9, 10)]);
        assert_eq!((pair.client.info().reordering, pair.client.info().reord_seen), (10, 1));
    }

    #[test]
    fn the_window_grows_on_reports_once_packets_were_seen_far_apart() {
        let pair = heard(&[(0, 5, 6), (0, 0, 1)]);
        assert_eq!((pair.client.info().reordering, pair.client.info().snd_cwnd), (6, 11));
        let pair = heard(&[(0, 2, 3), (0, 0, 1)]);
        assert_eq!((pair.client.info().reordering, pair.client.info().snd_cwnd), (3, 10));
    }

    #[test]
    fn a_duplicate_of_the_only_retransmission_takes_the_recovery_back() {
        // golden/packetdrill/undo-dsack-fast-recovery: 10, and 8 delivered: 18.
        let pair = heard(&[(0, 1, 4), (10, 0, 1)]);
        let info = pair.client.info();
        assert_eq!((info.ca_state, info.snd_cwnd, info.snd_ssthresh), (CaState::Open, 18, None));
        assert_eq!((info.dsack_dups, pair.client.totals().spurious), (1, 1));
    }
}
