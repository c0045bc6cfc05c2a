//! Linux without SACK: duplicate acknowledgments count as packets that have arrived
//! (`tcp_is_reno`), in the same states as with SACK, under PRR. One packet is marked lost at a time.
//!
//! Source: tcp_input.c of Linux 6.12 (tcp_ack, tcp_fastretrans_alert, tcp_process_loss,
//! tcp_add_reno_sack, tcp_remove_reno_sacks, tcp_limit_reno_sacked, tcp_reset_reno_sack,
//! tcp_newreno_mark_lost, tcp_is_non_sack_preventing_reopen).

use cc::Controller;
use recovery::rack::RackLosses;
use recovery::sendmap::SendMap;
use units::Offset;

use super::state::RackTlpState;
use crate::received_ack::ReceivedAck;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;

impl SendSide {
    /// Is this Linux without SACK?
    #[inline]
    pub(super) const fn is_reno(&self) -> bool {
        matches!(&self.stack, Stack::RackTlp(loss) if loss.reno)
    }

    /// Forgets what duplicates stood for, and returns the losses that the end of a timeout's repair shows; `before`: the
    /// recovery in which the acknowledgment has arrived. An undo before its recovery point leaves duplicates as they are
    /// (tcp_try_undo_partial).
    #[cold]
    pub(super) fn settle_without_sack(
        &mut self,
        received: &ReceivedAck,
        before: &RenoInput,
        repaired: bool,
    ) -> RackLosses {
        let now = RenoInput::of(self, received);
        let SendSide { stack, sender: Sender { scoreboard, .. } } = self;
        match stack.rack_tlp() {
            Some(loss) => loss.settle_reno(scoreboard, [before, &now], repaired),
            None => RackLosses::default(),
        }
    }

    /// Does the recovery stay although all that was lost has arrived (`snd_una` is at its recovery
    /// point), and was it undone?
    #[inline]
    pub(super) fn holds_recovery(&self) -> bool {
        matches!(&self.stack, Stack::RackTlp(loss) if loss.episode.held)
    }
}

/// Detects losses without SACK.
#[cold]
pub(super) fn detect_without_sack(side: &mut SendSide, received: &ReceivedAck) -> RackLosses {
    let input = RenoInput::of(side, received);
    let SendSide { stack, sender: Sender { scoreboard, .. } } = side;
    match stack.rack_tlp() {
        Some(loss) => loss.detect_reno(scoreboard, &input),
        None => RackLosses::default(),
    }
}

impl Sender {
    /// Number of duplicates merged into the acknowledgment (`num_dupack`): it advances nothing,
    /// and carries neither data nor a window.
    #[cold]
    pub(super) fn reno_duplicates(&self, received: &ReceivedAck) -> u64 {
        let duplicate = self.changes_nothing(received) && !self.scoreboard.is_empty();
        if duplicate { u64::from(received.nsegs) } else { 0 }
    }

    /// Does an acknowledgment neither advance nor carry data nor change the window (`FLAG_NOT_DUP`)?
    pub(super) fn changes_nothing(&self, received: &ReceivedAck) -> bool {
        let (seq, wnd) = (received.seq, received.wnd);
        let opens = seq == self.peer.wl1 && (wnd > self.peer.wnd || wnd == 0);
        let updates = seq > self.peer.wl1 || opens;
        received.th_ack == self.una && !received.data && !updates
    }
}

/// An acknowledgment and the recovery that it arrives in.
#[derive(Debug, Clone, Copy)]
pub(super) struct RenoInput {
    /// Cumulative acknowledgment; `advances`: beyond `snd_una`.
    th_ack: Offset,
    advances: bool,
    /// A fast recovery is in progress.
    recovering: bool,
    /// Its recovery point (`high_seq`).
    recovery_point: Offset,
}

impl RenoInput {
    /// The acknowledgment, and the recovery that is in progress now.
    pub(super) fn of(side: &SendSide, received: &ReceivedAck) -> Self {
        Self {
            th_ack: received.th_ack,
            advances: received.th_ack > side.una,
            recovering: side.in_fast_recovery(),
            recovery_point: side.cc.recovery_point(),
        }
    }
}

impl RackTlpState {
    /// Forgets what duplicates stood for; an acknowledgment that ends the repair of a timeout (`repaired` before)
    /// first looks whether they show another loss (tcp_fastretrans_alert, after tcp_process_loss). `before` and `now`: when
    /// it arrived, and after it has ended or undone a recovery.
    pub(super) fn settle_reno(
        &mut self,
        map: &mut SendMap,
        [before, now]: [&RenoInput; 2],
        repaired: bool,
    ) -> RackLosses {
        let ends = repaired && !self.repairs_timeout();
        let lost = if ends { self.detect_reno(map, now) } else { RackLosses::default() };
        self.reset_reno(map, before);
        lost
    }

    /// Forgets what duplicates stood for: outside of recovery with every advance, in it at its end
    /// (tcp_reset_reno_sack).
    fn reset_reno(&mut self, map: &mut SendMap, input: &RenoInput) {
        let ends = match input.recovering || self.episode.held {
            true => input.th_ack >= input.recovery_point,
            // tcp_process_loss returns at its recovery point.
            false => input.advances && self.timeout_point() != Some(input.th_ack),
        };
        if ends {
            self.forget_reno(map);
        }
    }

    /// tcp_reset_reno_sack
    pub(super) fn forget_reno(&mut self, map: &mut SendMap) {
        self.forgotten += map.sums().sacked.packets as u32;
        map.set_reno_sacked(0, 1);
    }

    /// Marks the first packet lost after enough duplicates, or if a recovery has advanced to it.
    pub(super) fn detect_reno(&self, map: &mut SendMap, input: &RenoInput) -> RackLosses {
        let enough = map.sums().sacked.packets >= u64::from(self.reordering.metric());
        let repairing = self.repairs_timeout();
        let is_lost = if input.recovering { input.advances } else { enough && !repairing };
        let head = map.first().filter(|head| is_lost && !head.lost()).map(|head| head.start());
        match head {
            Some(start) if map.lose(start) => RackLosses { packets: 1, reo_timeout: None },
            _ => RackLosses::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cc::Controller;
    use packet::Flags;
    use units::Duration;

    use crate::TcpSide;
    use crate::tests::pair::{TcpPair, config};

    #[test]
    fn linux_stays_in_recovery_until_data_beyond_the_recovery_point_is_acknowledged() {
        let recover_or_restore = |system: &str| {
            let mut client = config(system, TcpSide::Client);
            client.profile.sack = false;
            client.tso = false;
            let mut pair = TcpPair::new(client, config(system, TcpSide::Server));
            pair.to_write = 8 * 1_448;
            // The first data segment is lost once.
            pair.lose = |number, segment| segment.payload > 0 && number == 3;
            pair.run(Duration::from_millis(450));
            assert_eq!(pair.client.acknowledged().get(), 8 * 1_448);
            let before = pair.client.snd.cc.in_recovery();
            pair.to_write = 1_448;
            pair.with(TcpSide::Client, |cx, end| end.write(cx, 1_448));
            pair.serve();
            pair.run(Duration::from_millis(1_500));
            (before, pair.client.snd.cc.in_recovery(), pair.client.totals().fast_recoveries)
        };
        assert_eq!(recover_or_restore("linux-6.18"), (true, false, 1));
        assert_eq!(recover_or_restore("freebsd-13.2"), (false, false, 1));
    }

    /// tcp_try_undo_partial does not forget duplicates: those that remain show the next packet lost
    /// (tcp_newreno_mark_lost in tcp_fastretrans_alert), as in a 6.12 that was compared.
    #[test]
    fn duplicates_remain_after_a_partial_undo_and_begin_another_recovery() {
        let mut client = config("linux-6.12", TcpSide::Client);
        client.profile.sack = false;
        let mut pair = TcpPair::new(client, config("linux-6.12", TcpSide::Server));
        pair.to_write = 10 * 1_448;
        pair.lose = |_, segment| segment.payload > 0;
        pair.run(Duration::from_millis(110));
        let first = pair.data().next().unwrap().timestamps.unwrap().val;
        pair.now += Duration::from_millis(20);
        let ack = |pair: &TcpPair, ack| {
            let mut ack = pair.forge(Flags::ACK, 1, ack);
            // The server has the originals, the retransmission is in flight.
            ack.timestamps.as_mut().unwrap().ecr = first;
            ack
        };
        let sent: Vec<u32> = [1, 1, 1, 1, 1, 1_449, 2_897]
            .into_iter()
            .flat_map(|number| {
                let ack = ack(&pair, number);
                pair.hear(&ack).iter().map(|sent| sent.seq.0 - 1_000).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(sent, [1, 1_449, 2_897]);
        assert_eq!(pair.client.totals().fast_recoveries, 3);
    }
}
