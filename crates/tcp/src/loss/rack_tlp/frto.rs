//! Detection of spurious timeouts: F-RTO with SACK (RFC 5682 section 3.1) as in Linux. The timer
//! retransmits one packet; if data that was never retransmitted arrives, nothing was lost.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_enter_loss, tcp_process_loss, tcp_xmit_recovery).

use core::hint::cold_path;

use cc::CongestionSignal as Sign;
use machine::Cx;
use record::{Cause, Recorder};
use units::{Offset, unlikely};

use super::prr_state::PrrState;
use super::state::{AckAccounting, Frto};
use crate::endpoint::TcpEndpoint;
use crate::loss::{LossDetector, ReceivedAck};

impl TcpEndpoint {
    /// Starts F-RTO at a timeout, before the flight is marked lost: possible only outside of
    /// recovery, or at another timeout of the same packet.
    pub(super) fn begin_frto(&mut self) {
        let repeated = self.snd.rexmt.shift > 1;
        let in_cwr = self.snd.rexmt.cwr_end.is_some();
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        let fresh = (matches!(loss.episode.prr, PrrState::None) || in_cwr)
            && loss.episode.timeout_until.is_none();
        let open = loss.detector.supports_undo() && (fresh || repeated);
        loss.frto = Frto { open, new_data: false };
    }

    /// Evaluates an acknowledgment after a timeout, which echoes the timestamp `echo`; `snd_una` has not advanced yet
    /// (tcp_process_loss).
    pub(super) fn check_timeout<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        account: &AckAccounting,
        duplicates: u64,
        echo: Option<u32>,
    ) {
        let advances = received.th_ack > self.snd.una;
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        loss.frto.new_data = false;
        let repairs = loss.episode.timeout_until.is_some();
        if unlikely(repairs && advances && loss.detector.supports_undo())
            && loss.episode.undo.may(echo)
        {
            // tcp_try_undo_loss: the original had arrived, or D-SACKs cover every retransmission (RFC 3522, RFC 3708).
            let (until, frto, reno) = (loss.episode.timeout_until, loss.frto, loss.reno);
            self.undo_timeout(cx);
            if reno {
                // The state stays.
                let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
                (loss.episode.timeout_until, loss.frto) = (until, frto);
            }
            return;
        }
        self.check_frto(cx, received, account, duplicates);
    }

    /// F-RTO's part of it.
    fn check_frto<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        account: &AckAccounting,
        duplicates: u64,
    ) {
        let (max, end) = (self.snd.max, self.data_end());
        let advances = received.th_ack > self.snd.una;
        let window_end = received.th_ack + received.wnd;
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        let Some(high) = loss.episode.timeout_until.filter(|_| loss.frto.open) else { return };
        cold_path();
        let original = |first: Option<(Offset, Offset)>| first.is_some_and(|(_, end)| end <= high);
        if original(account.first_acked) || original(account.first_reported) {
            // Step 3.b: data that was never retransmitted arrived.
            self.undo_timeout(cx);
        } else if max > high {
            // Step 3.a: new data is SACKed, the data before it is not.
            loss.frto.open = account.newly_reported == 0 && duplicates == 0;
        } else if advances && received.th_ack < high {
            // Step 2.b: only the retransmission arrived. New data will decide.
            loss.episode.timeout_until = Some(max);
            loss.frto.new_data = end > max && window_end > max;
            loss.frto.open = loss.frto.new_data;
        }
    }

    /// Is this acknowledgment answered with new data only?
    pub(crate) const fn sends_new_data_only(&self) -> bool {
        matches!(&self.snd.loss_detector, LossDetector::RackTlp(loss) if loss.frto.sends_new_data())
    }

    /// Undoes a spurious timeout: restores window and threshold, and clears the loss marks
    /// (tcp_try_undo_loss).
    pub(super) fn undo_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let outstanding = self.any_retransmitted();
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        loss.episode.timeout_until = None;
        loss.frto = Frto::OFF;
        loss.episode.undo.forget(outstanding);
        self.snd.rexmt.timeout_stamp = None;
        let relists = !loss.detector.supports_undo();
        self.snd.scoreboard.unmark_lost(relists);
        let change = self.undo_reduction(cx.now, Sign::SpuriousTimeout);
        self.totals.spurious += 1;
        self.note(cx, change, Cause::Undone);
    }
}

#[cfg(test)]
mod tests {
    use cc::Controller;
    use packet::{Dir, Segment};
    use units::Duration;

    use crate::TcpSide;
    use crate::tests::pair::{TcpPair, config};

    fn pair(lose: fn(usize, &Segment) -> bool) -> TcpPair {
        let mut client = config("linux-6.18", TcpSide::Client);
        client.tso = false;
        client.profile.loss_probes = false;
        // Without timestamps only F-RTO can detect it.
        client.profile.timestamps = false;
        let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
        pair.to_write = 15 * 1_460;
        pair.lose = lose;
        pair
    }

    #[test]
    fn a_timeout_is_undone_when_data_never_retransmitted_arrives() {
        // All data arrives; the acknowledgments of the first flight do not.
        let mut pair = pair(|number, s| s.dir == Dir::Reverse && (3..23).contains(&number));
        pair.run(Duration::from_millis(600));
        assert_eq!((pair.client.totals().timeouts, pair.client.totals().spurious), (1, 1));
        assert!(pair.client.cwnd() >= 10 * 1_460, "{}", pair.client.cwnd());
        assert_eq!(pair.client.cc.control().ssthresh, None);
        pair.run(Duration::from_secs(3));
        assert_eq!(pair.client.totals().retransmitted_packets, 1);
    }

    #[test]
    fn a_lost_retransmission_after_a_timeout_begins_a_recovery() {
        // FLAG_LOST_RETRANS: the second packet of a lost flight is lost again, the third arrives.
        let mut pair = pair(|number, s| s.payload > 0 && number < 13);
        pair.run(Duration::from_millis(590));
        pair.lose = |_, s| s.payload > 0 && s.seq.0 == 1_001 + 1_460;
        pair.run(Duration::from_millis(650));
        assert_eq!((pair.client.totals().timeouts, pair.client.totals().fast_recoveries), (1, 0));
        pair.lose = |_, _| false;
        pair.run(Duration::from_secs(10));
        let totals = pair.client.totals();
        assert_eq!((totals.timeouts, totals.fast_recoveries), (1, 1), "{totals:?}");
        assert_eq!(pair.client.acknowledged().get(), 15 * 1_460);
    }

    #[test]
    fn new_data_is_sent_when_only_the_retransmission_arrives() {
        let mut pair = pair(|number, s| s.payload > 0 && number < 13);
        pair.run(Duration::from_secs(3));
        let order: Vec<_> =
            pair.data().map(|s| (s.seq.0 - 1_001) / 1_460).skip(10).take(4).collect();
        assert_eq!(order, [0, 10, 11, 1]);
        assert_eq!(pair.client.totals().spurious, 0);
        assert_eq!(pair.client.acknowledged().get(), 15 * 1_460);
    }
}
