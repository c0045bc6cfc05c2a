//! Was a timeout needless? F-RTO with SACK (RFC 5682 section 3.1), as Linux has it: the timer repeats
//! one packet; if what never went again arrives, nothing had been lost.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_enter_loss, tcp_process_loss, tcp_xmit_recovery).

use core::hint::cold_path;

use cc::{Controller, Signal as Sign};
use machine::Cx;
use record::{Cause, Recorder};
use units::Offset;

use super::{Account, Budget, timed_of};
use crate::endpoint::Endpoint;
use crate::loss::{Heard, Repair};

/// What is being found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) struct Frto {
    /// Nothing is known yet (`tp->frto`).
    open: bool,
    /// This acknowledgment is answered with new data, not with what seems lost (`REXMIT_NEW`).
    new_data: bool,
}

impl Frto {
    /// Nothing is to be found out.
    pub(super) const OFF: Self = Self { open: false, new_data: false };

    /// Is this acknowledgment answered with new data alone?
    pub(super) const fn sends_new_data(&self) -> bool {
        self.new_data
    }
}

impl Endpoint {
    /// The timer fires, before the flight is taken for lost: only where no recovery runs, or again
    /// for the same packet, can it be found out.
    pub(super) fn begin_frto(&mut self) {
        let again = self.snd.shift > 1;
        let loss = timed_of!(self);
        let fresh =
            matches!(loss.episode.budget, Budget::None) && loss.episode.timeout_until.is_none();
        let open = loss.judge.takes_back() && (fresh || again);
        loss.frto = Frto { open, new_data: false };
    }

    /// An acknowledgment after a timeout; `snd_una` has not moved yet.
    pub(super) fn judge_timeout<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        heard: &Heard,
        account: &Account,
    ) {
        let (max, end) = (self.snd.max, self.data_end());
        let advances = heard.th_ack > self.snd.una;
        let window_end = heard.th_ack + heard.wnd;
        let loss = timed_of!(self);
        loss.frto.new_data = false;
        let Some(high) = loss.episode.timeout_until.filter(|_| loss.frto.open) else { return };
        cold_path();
        let original = |first: Option<(Offset, Offset)>| first.is_some_and(|(_, end)| end <= high);
        if original(account.first_acked) || original(account.first_reported) {
            // Step 3.b: what never went again arrived.
            self.undo_timeout(cx);
        } else if max > high {
            // Step 3.a: new data is reported, what lies before it is not.
            loss.frto.open = account.newly_reported == 0;
        } else if advances && heard.th_ack < high {
            // Step 2.b: only the retransmission arrived. New data tells.
            loss.episode.timeout_until = Some(max);
            loss.frto.new_data = end > max && window_end > max;
            loss.frto.open = loss.frto.new_data;
        }
    }

    /// Is this acknowledgment answered with new data alone?
    pub(crate) const fn sends_new_data_only(&self) -> bool {
        matches!(&self.snd.repair, Repair::Timed(loss) if loss.frto.sends_new_data())
    }

    /// The timeout was needless: window and threshold as before, nothing is lost
    /// (tcp_try_undo_loss).
    pub(super) fn undo_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let loss = timed_of!(self);
        loss.episode.timeout_until = None;
        loss.frto = Frto::OFF;
        loss.episode.undo.forget();
        self.snd.timeout_stamp = None;
        self.snd.map.unmark_lost();
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::SpuriousTimeout));
        self.totals.spurious += 1;
        self.note(cx, change, Cause::Undone);
    }
}

#[cfg(test)]
mod tests {
    use cc::Controller;
    use packet::{Dir, Segment};
    use units::Duration;

    use crate::Side;
    use crate::tests::pair::{Pair, config};

    fn pair(lose: fn(usize, &Segment) -> bool) -> Pair {
        let mut client = config("linux-6.18", Side::Client);
        client.tso = false;
        client.profile.loss_probes = false;
        // Without timestamps only F-RTO can tell.
        client.profile.timestamps = false;
        let mut pair = Pair::new(client, config("linux-6.18", Side::Server));
        pair.to_write = 15 * 1_460;
        pair.lose = lose;
        pair
    }

    #[test]
    fn what_never_went_again_arrives_and_the_timeout_is_undone() {
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
    fn only_the_retransmission_arrives_and_new_data_is_sent_to_know_more() {
        let mut pair = pair(|number, s| s.payload > 0 && number < 13);
        pair.run(Duration::from_secs(3));
        let order: Vec<_> =
            pair.data().map(|s| (s.seq.0 - 1_001) / 1_460).skip(10).take(4).collect();
        assert_eq!(order, [0, 10, 11, 1]);
        assert_eq!(pair.client.totals().spurious, 0);
        assert_eq!(pair.client.acknowledged().get(), 15 * 1_460);
    }
}
