//! Detection of spurious timeouts: F-RTO with SACK (RFC 5682 section 3.1) as in Linux. The timer
//! retransmits one packet; if data that was never retransmitted arrives, nothing was lost.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_enter_loss, tcp_process_loss, tcp_xmit_recovery).

use core::hint::cold_path;

use cc::CongestionSignal as Sign;
use machine::Cx;
use record::{Cause, Recorder};
use recovery::sendmap::SendMap;
use units::{Offset, unlikely};

use super::prr_state::PrrState;
use super::recovery_state::any_retransmitted;
use super::state::{AckAccounting, Frto, RackTlpState};
use crate::connection::Connection;
use crate::received_ack::ReceivedAck;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;

/// The connection when an acknowledgment arrives after a timeout; `snd_una` has not advanced yet.
#[derive(Debug, Clone, Copy)]
struct FrtoInput {
    /// Cumulative acknowledgment, `snd_una` before it, and the end of the window it advertises.
    th_ack: Offset,
    una: Offset,
    window_end: Offset,
    /// `snd_max`, and the end of the data written.
    max: Offset,
    data_end: Offset,
    /// Duplicates without SACK.
    duplicates: u64,
}

impl RackTlpState {
    /// Starts F-RTO at a timeout, before the flight is marked lost: possible only outside of
    /// recovery, or at another timeout of the same packet (`repeated`).
    pub(super) fn begin_frto(&mut self, in_cwr: bool, repeated: bool) {
        let fresh = (matches!(self.episode.prr, PrrState::None) || in_cwr)
            && self.episode.timeout_until.is_none();
        let open = self.detector.supports_undo() && (fresh || repeated);
        self.frto = Frto { open, new_data: false };
    }

    /// Is the timeout spurious, since the original arrived, or D-SACKs cover every retransmission
    /// (tcp_try_undo_loss; RFC 3522, RFC 3708)? The acknowledgment echoes the timestamp `echo`.
    fn timeout_is_undone(&self, echo: Option<u32>) -> bool {
        unlikely(self.episode.timeout_until.is_some() && self.detector.supports_undo())
            && self.episode.undo.may(echo)
    }

    /// Evaluates an acknowledgment by F-RTO; returns whether the timeout was spurious.
    fn check_frto(&mut self, input: &FrtoInput, account: &AckAccounting) -> bool {
        let Some(high) = self.episode.timeout_until.filter(|_| self.frto.open) else {
            return false;
        };
        cold_path();
        let original = |first: Option<(Offset, Offset)>| first.is_some_and(|(_, end)| end <= high);
        if original(account.first_acked) || original(account.first_reported) {
            // Step 3.b: data that was never retransmitted arrived.
            return true;
        }
        if input.max > high {
            // Step 3.a: new data is SACKed, the data before it is not.
            self.frto.open = account.newly_reported == 0 && input.duplicates == 0;
        } else if input.th_ack > input.una && input.th_ack < high {
            // Step 2.b: only the retransmission arrived. New data will decide.
            self.episode.timeout_until = Some(input.max);
            self.frto.new_data = input.data_end > input.max && input.window_end > input.max;
            self.frto.open = self.frto.new_data;
        }
        false
    }

    /// Forgets a spurious timeout, and clears the loss marks; `outstanding`: something retransmitted
    /// is in flight.
    fn forget_timeout(&mut self, map: &mut SendMap, outstanding: bool) {
        self.episode.timeout_until = None;
        self.frto = Frto::OFF;
        self.episode.undo.forget(outstanding);
        map.unmark_lost(!self.detector.supports_undo());
    }
}

impl SendSide {
    /// Evaluates an acknowledgment after a timeout, which echoes the timestamp `echo`; `snd_una` has not advanced yet
    /// (tcp_process_loss).
    pub(super) fn check_timeout<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        account: &AckAccounting,
        duplicates: u64,
        echo: Option<u32>,
    ) {
        let input = FrtoInput {
            th_ack: received.th_ack,
            una: self.una,
            window_end: received.th_ack + received.wnd,
            max: self.max,
            data_end: self.data_end(),
            duplicates,
        };
        let Some(loss) = self.stack.rack_tlp() else { return };
        loss.frto.new_data = false;
        if unlikely(input.th_ack > input.una && loss.timeout_is_undone(echo)) {
            let (until, frto, reno) = (loss.episode.timeout_until, loss.frto, loss.reno);
            self.undo_timeout(conn, cx);
            if reno {
                // The state stays.
                let Some(loss) = self.stack.rack_tlp() else { return };
                (loss.episode.timeout_until, loss.frto) = (until, frto);
            }
        } else if loss.check_frto(&input, account) {
            self.undo_timeout(conn, cx);
        }
    }

    /// Is this acknowledgment answered with new data only?
    pub(crate) const fn sends_new_data_only(&self) -> bool {
        matches!(&self.stack, Stack::RackTlp(loss) if loss.frto.sends_new_data())
    }

    /// Undoes a spurious timeout: restores window and threshold, and clears the loss marks
    /// (tcp_try_undo_loss).
    pub(super) fn undo_timeout<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let outstanding = any_retransmitted(&self.scoreboard);
        let SendSide { stack, sender: Sender { scoreboard, rexmt, .. } } = self;
        let Some(loss) = stack.rack_tlp() else { return };
        loss.forget_timeout(scoreboard, outstanding);
        rexmt.timeout_stamp = None;
        let change = self.undo_reduction(conn, cx.now, Sign::SpuriousTimeout);
        self.totals.spurious += 1;
        self.note(conn, cx, change, Cause::Undone);
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
        assert!(pair.client.snd.cwnd() >= 10 * 1_460, "{}", pair.client.snd.cwnd());
        assert_eq!(pair.client.snd.cc.control().ssthresh, None);
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
