//! Recovery: entered when losses are detected, limited by PRR, and ended or undone.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_fastretrans_alert).

use core::hint::cold_path;

use cc::{CongestionSignal as Sign, Controller, RecoveryEnd};
use machine::Cx;
use record::{Cause, Event, Recorder};
use recovery::rack::RackLosses;
use recovery::sendmap::SendMap;
use units::{Bytes, Offset, unlikely};

use super::detector::RackDetector;
use super::prr_state::{self, PrrState};
use super::state::{AckAccounting, Frto, RackTlpState};
use crate::connection::Connection;
use crate::received_ack::ReceivedAck;
use crate::send_side::SendSide;
use crate::sender::Sender;

/// An acknowledgment and the recovery that it arrives in; `snd_una` has not advanced yet.
#[derive(Debug, Clone, Copy)]
struct SettleInput {
    th_ack: Offset,
    una: Offset,
    /// A fast recovery is in progress, and its recovery point (`high_seq`).
    in_recovery: bool,
    point: Offset,
    /// Timestamp echoed.
    echo: Option<u32>,
    mss: u64,
}

/// What an acknowledgment ends.
#[derive(Debug, Clone, Copy, Default)]
struct Settled {
    /// The flight of a timeout is repaired.
    repaired: bool,
    /// The recovery was spurious: the reduction is to be undone.
    undone: bool,
    /// The recovery is over.
    ended: bool,
    /// The acknowledgment marks nothing lost and retransmits nothing.
    holds_back: bool,
}

/// Losses found, and the state of the connection.
#[derive(Debug, Clone, Copy)]
struct LossInput {
    /// `snd_una` after the acknowledgment.
    una: Offset,
    /// Packets found lost.
    packets: u64,
    /// A recovery is in progress, and for an ECN echo (CWR).
    in_recovery: bool,
    in_cwr: bool,
    /// The recovery may end the repair of a timeout.
    leaves_timeout: bool,
    /// The recovery is the rest of CWR's reduction.
    continues: bool,
    /// The controller sets the window itself.
    rate_based: bool,
    window: Bytes,
    mss: u64,
}

impl RackTlpState {
    /// Ends a recovery, or the retransmissions after a timeout, at the recovery point; finds whether
    /// it is to be undone where the system does so.
    fn settle(&mut self, map: &mut SendMap, input: &SettleInput) -> Settled {
        let mut settled = Settled::default();
        if !input.in_recovery && self.episode.timeout_until.is_none() && !self.episode.held {
            if unlikely(self.episode.undo.all_duplicates()) && self.detector.supports_undo() {
                // tcp_try_undo_dsack after a recovery: D-SACKs cover all that it retransmitted.
                self.episode.undo.forget(any_retransmitted(map));
                self.on_dsack_undo();
                settled.undone = true;
            }
            return settled;
        }
        let nothing_retransmitted = map.sums().retransmission.packets == 0;
        let outstanding = any_retransmitted(map);
        if let Some(end) = self.episode.timeout_until
            && unlikely(self.reno && input.th_ack == end)
        {
            return Settled { holds_back: true, ..settled };
        }
        if unlikely(self.episode.held) {
            self.episode.held = input.th_ack == input.point;
            return Settled { holds_back: self.episode.held, ..settled };
        }
        if unlikely(self.episode.timeout_until.is_some_and(|end| input.th_ack >= end)) {
            self.episode.timeout_until = None;
            self.episode.undo.end(outstanding);
            self.detector.on_recovered();
            settled.repaired = true;
        }
        if !input.in_recovery {
            return settled;
        }
        let advances = input.th_ack > input.una;
        // tcp_is_non_sack_preventing_reopen
        let holds = self.reno && input.th_ack == input.point;
        // tcp_try_undo_recovery, tcp_try_undo_partial: while a retransmission is in flight, its own
        // acknowledgment is awaited.
        let complete = input.th_ack >= input.point || nothing_retransmitted;
        let delayed = self.episode.undo.was_delayed(input.echo);
        let repeats = input.th_ack >= input.point && self.episode.undo.all_duplicates();
        let original_arrived = advances && complete && (delayed || repeats);
        // While one is in flight nothing more is marked or retransmitted.
        let awaits = self.detector.supports_undo() && advances && !complete && delayed;
        if unlikely(awaits) {
            self.note_partial_delay(map, input);
        }
        let was_spurious = original_arrived || self.episode.undo.all_duplicates();
        if self.detector.supports_undo() && unlikely(was_spurious) {
            self.episode.undo.forget(outstanding);
            self.episode.held = holds;
            if !holds {
                self.episode.prr = PrrState::None;
            }
            if !original_arrived {
                self.on_dsack_undo();
            } else if input.th_ack < input.point {
                self.note_partial_delay(map, input);
                map.unmark_lost(false);
            }
            settled.undone = true;
        } else if input.th_ack >= input.point && !holds {
            cold_path();
            self.episode.prr = PrrState::None;
            self.episode.undo.end(outstanding);
            self.detector.on_recovered();
            settled.ended = true;
        }
        settled.holds_back = holds || awaits;
        settled
    }

    fn on_dsack_undo(&mut self) {
        if let RackDetector::Linux(rack) = &mut self.detector {
            rack.on_dsack_undo();
        }
    }

    /// tcp_try_undo_partial: a delayed packet filled the hole.
    fn note_partial_delay(&mut self, map: &SendMap, input: &SettleInput) {
        let highest = map.highest_sacked().unwrap_or(input.th_ack);
        if let RackDetector::Linux(rack) = &mut self.detector {
            rack.on_reordering();
        }
        self.reordering.on_reordered(input.una, highest, input.mss);
    }

    /// Enters recovery for detected losses, unless one is in progress or the flight of a timeout is
    /// being retransmitted. Linux also does so if one has ended and lost packets are still outstanding
    /// (tcp_time_to_recover), and, with `leaves_timeout`, while it retransmits the flight of a
    /// timeout. Returns whether it was entered.
    fn enter_recovery(&mut self, map: &SendMap, input: &LossInput) -> bool {
        let (enters, leaves_timeout) = match self.detector {
            RackDetector::Linux(_) => (map.any_lost(), input.leaves_timeout && input.packets > 0),
            RackDetector::Rfc(_) | RackDetector::External(_) => (input.packets > 0, false),
        };
        let repairing = self.episode.timeout_until.is_some();
        if !enters || (input.in_recovery && !input.in_cwr) || (repairing && !leaves_timeout) {
            return false;
        }
        cold_path();
        self.episode.timeout_until = None;
        self.frto = Frto::OFF;
        let flight = map.sums();
        let retransmitted = flight.retransmission.packets + u64::from(self.tlp.repeated());
        self.tlp.forget();
        self.episode.undo.begin_again(input.una, retransmitted, any_retransmitted(map));
        if !input.continues {
            self.episode.proven = false;
            self.episode.prr = match input.rate_based {
                true => PrrState::Controller,
                false => self.detector.new_prr(&flight, input.window.get(), input.mss),
            };
        }
        true
    }
}

impl SendSide {
    /// Ends a recovery, or the retransmissions after a timeout, at the recovery point; undoes it
    /// where the system does and the conditions hold. Returns true if the acknowledgment marks
    /// nothing lost and retransmits nothing.
    pub(super) fn settle_recovery<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        echo: Option<u32>,
    ) -> bool {
        if let Some(end) = self.rexmt.cwr_end {
            cold_path();
            if received.th_ack > end {
                self.sender.end_cwr(conn, cx, received.th_ack, !self.has_one_timer());
            }
            return false;
        }
        let input = SettleInput {
            th_ack: received.th_ack,
            una: self.una,
            in_recovery: self.cc.in_recovery(),
            point: self.cc.recovery_point(),
            echo,
            mss: conn.mss(),
        };
        let SendSide { stack, sender: Sender { scoreboard, rates, .. } } = self;
        let Some(loss) = stack.rack_tlp() else { return false };
        let settled = loss.settle(scoreboard, &input);
        if settled.repaired
            && let Some(rates) = rates
        {
            rates.reneged = false;
        }
        if settled.undone {
            self.totals.spurious += 1;
            let change = self.undo_reduction(conn, cx.now, Sign::SpuriousRecovery);
            self.note(conn, cx, change, Cause::Undone);
        } else if settled.ended {
            let pipe = self.scoreboard.sums().pipe();
            let change = self.cc.on_recovered(&RecoveryEnd { th_ack: received.th_ack, pipe });
            self.note(conn, cx, change, Cause::Recovered);
        }
        settled.holds_back
    }

    /// Enters recovery for detected losses where the detector does; `una` is `snd_una` after the
    /// acknowledgment.
    pub(super) fn act_on_losses<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        found: &RackLosses,
        una: Offset,
        leaves_timeout: bool,
    ) {
        if found.packets > 0 {
            let packets = found.packets.min(u64::from(u32::MAX)) as u32;
            cx.emit(|| Event::Lost { packets });
        }
        let in_cwr = self.rexmt.cwr_end.is_some();
        let input = LossInput {
            una,
            packets: found.packets,
            in_recovery: self.cc.in_recovery(),
            in_cwr,
            leaves_timeout,
            // tcp_enter_recovery
            continues: in_cwr && self.has_one_timer(),
            rate_based: self.is_rate_based(),
            window: self.cc.control().window,
            mss: conn.mss(),
        };
        let Some(loss) = self.stack.rack_tlp() else { return };
        if !loss.enter_recovery(&self.sender.scoreboard, &input) {
            return;
        }
        if !input.continues && loss.detector.supports_undo() {
            // tcp_init_cwnd_reduction
            self.ecn.on_reduced();
        }
        self.totals.fast_recoveries += 1;
        self.rtt.timing = None;
        self.abandon_cwr();
        self.show_controller(conn, cx.now, una);
        let change = self.sender.cc.on_congested(&self.sender.congested(conn, cx.now, Sign::Loss));
        self.note(conn, cx, change, Cause::FastRetransmit);
    }

    /// Applies proportional rate reduction to an acknowledgment in recovery.
    pub(super) fn apply_prr<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        account: &AckAccounting,
        advances: bool,
        newly_lost: bool,
    ) {
        let sums = self.scoreboard.sums();
        let control = self.cc.control();
        let ssthresh = control.ssthresh.unwrap_or(control.window).get();
        let mss = conn.mss();
        let ack = prr_state::PrrInput {
            bytes: account.bytes,
            packets: account.packets,
            advances,
            newly_lost,
            ssthresh,
            mss,
        };
        let Some(loss) = self.stack.rack_tlp() else { return };
        if let Some(window) = loss.episode.prr.on_ack(&ack, &sums) {
            self.cc.override_window(Bytes(window));
            self.emit_window(conn, cx, Cause::Recovering);
        }
    }
}

/// Is anything in flight that was retransmitted (tcp_any_retrans_done)?
pub(super) fn any_retransmitted(map: &SendMap) -> bool {
    map.sums().retransmission.packets > 0
        || map.first().is_some_and(|head| head.transmissions() > 1)
}
