//! Limits on a TCP sender during loss recovery.
//!
//! From the first duplicate on the bytes after `snd_una` no longer measure the data in flight. The
//! limit on a sender then differs between systems ([`RecoveryLimit`]), and is checked from the
//! event that starts a fast recovery to the first state outside it. The `pipe` of a state is
//! trusted, with one exception: new bytes are in flight once they are sent.
//!
//! The first retransmission is exempt from the window (RFC 6675 section 5 step 4.3, RFC 9937
//! section 5), and so are one with nothing else in flight, and a loss probe.

use record::{Cause, SenderState, SentKind};
use units::Bytes;

use crate::arrivals::Arrivals;
use crate::endpoint::{EndpointModel, SentData};
use crate::violation::{StateField, ViolationKind, ViolationLog};
use crate::world::{RecoveryLimit, TransportKind};

/// A fast recovery.
#[derive(Debug, Clone, Default)]
pub(crate) struct FastRecovery {
    /// `snd_una` and the end of the sent data when it started.
    una: u64,
    point: u64,
    /// Bytes sent since, new or retransmitted.
    out: u64,
    /// Bytes before this offset that were not retransmitted may count as lost (rack_mark_lost).
    expired: u64,
    /// Whether anything has been retransmitted.
    begun: bool,
    /// All retransmitted ranges.
    repeated: Vec<(u64, u64)>,
    /// `pipe` and `snd_max` after the last packet, if nothing has arrived or changed since.
    before: Option<(Bytes, u64)>,
}

impl EndpointModel {
    /// Processes a window change, which may start or end a recovery.
    pub(crate) fn on_recovery(&mut self, cause: Cause) {
        if self.transport != TransportKind::Tcp {
            // The window of QUIC always applies.
            return;
        }
        match cause {
            Cause::FastRetransmit | Cause::LostRetransmission => {
                let (una, point) = (self.sender.una, self.sender.end());
                let expired = if self.sender.reordered { point } else { una };
                let begins = FastRecovery { una, point, expired, ..FastRecovery::default() };
                self.sender.recovery = Some(begins);
            }
            Cause::Recovered | Cause::Undone | Cause::Timeout | Cause::PathMtu => {
                self.sender.recovery = None;
            }
            _ => {}
        }
    }

    /// Processes the reordering timer: earlier data may count as lost.
    pub(crate) fn on_reorder_timer(&mut self) {
        self.sender.reordered = true;
        let end = self.sender.end();
        if let Some(recovery) = &mut self.sender.recovery {
            recovery.expired = end;
            recovery.repeated.clear();
        }
    }

    /// Invalidates the last `pipe`, since any event other than a transmission may change it.
    pub(crate) fn forget_pipe(&mut self) {
        if let Some(recovery) = &mut self.sender.recovery {
            recovery.before = None;
        }
    }

    /// Checks a transmission; `fresh` if it ends after everything ever sent.
    pub(crate) fn check_recovery(
        &mut self,
        log: &mut ViolationLog,
        (sent, fresh): (&SentData, bool),
        state: &SenderState,
        peer: &Arrivals,
    ) {
        if sent.len == 0 {
            // An ACK or a FIN alone needs no window.
            return;
        }
        let probes = core::mem::take(&mut self.sender.loss_probe_due);
        let Some(mut recovery) = self.sender.recovery.take() else { return };
        let (at, stop) = (sent.at, sent.at.saturating_add(sent.len));
        let repairs = matches!(sent.kind, SentKind::Retransmission(Cause::FastRetransmit));
        if repairs {
            recovery.repeated.push((at, stop));
        }
        let first = repairs && !recovery.begun;
        recovery.begun = true;
        recovery.out += sent.len;
        if let Some((held, ssthresh)) = self.beyond_credit(&recovery, state, peer)
            && fresh
            && !probes
        {
            self.note(log, ViolationKind::BeyondRecoveryLimit { held, cwnd: ssthresh });
        }
        let before = recovery.before.replace((state.pipe, state.snd_max.0));
        if let Some((pipe, max)) = before
            && fresh
            && self.brake == RecoveryLimit::Pipe
        {
            let known = pipe.get() + state.snd_max.0.saturating_sub(max);
            self.compare(log, StateField::Pipe, state.pipe.get(), known);
        }
        let held = match self.brake {
            RecoveryLimit::Pipe if fresh || repairs => {
                let single_packet = state.pipe.get() <= sent.len;
                // The FIN in flight counts as a byte, and needs no window.
                let fin = u64::from(self.sender.fin);
                (!single_packet).then(|| state.pipe.saturating_sub(Bytes(fin)))
            }
            RecoveryLimit::Flight if fresh => Some(Bytes(stop.saturating_sub(self.sender.una))),
            // After a timeout the window counts from `snd_una` and is enlarged by `sacked_bytes`, which
            // may stay too high (tcp_sack_adjust; `recovery::holes`): also for a segment that ends
            // beyond what was sent before.
            RecoveryLimit::Since
                if matches!(sent.kind, SentKind::Retransmission(Cause::Timeout)) =>
            {
                None
            }
            RecoveryLimit::Since if fresh || repairs => {
                // Bytes that have not arrived cannot have been SACKed, and are counted.
                recovery.repeated.retain(|&(left, right)| peer.missing(left, right) > 0);
                let missing: u64 = recovery.repeated.iter().map(|&(l, r)| peer.missing(l, r)).sum();
                // New bytes do not limit retransmissions.
                let since = if fresh { stop.saturating_sub(recovery.point) } else { 0 };
                Some(Bytes(since + missing))
            }
            _ => None,
        };
        if let Some(held) = held
            && held > state.cwnd
            && !first
            && !(probes && fresh)
            && !self.has_free_fin(sent, state)
        {
            self.note(log, ViolationKind::BeyondRecoveryLimit { held, cwnd: state.cwnd });
        }
        self.sender.recovery = Some(recovery);
    }

    /// Returns the bytes in flight and the threshold, if the former exceed it and more was sent
    /// than PRR's share of the delivered data (RFC 6937; the kernel rounds down and adds a byte).
    /// Both are bounds in the sender's favour: all arrived data counts as SACKed in this recovery,
    /// and acknowledged data counts once more (`changed` of rack_log_ack).
    fn beyond_credit(
        &self,
        recovery: &FastRecovery,
        state: &SenderState,
        peer: &Arrivals,
    ) -> Option<(Bytes, Bytes)> {
        let ssthresh = state.ssthresh.filter(|_| self.brake == RecoveryLimit::Credit)?;
        let (max, una) = (self.sender.max, self.sender.una);
        let arrived = max.saturating_sub(recovery.una) - peer.missing(recovery.una, max);
        let delivered = u128::from(arrived + una.saturating_sub(recovery.una));
        let flight = u128::from(recovery.point.saturating_sub(recovery.una).max(1));
        let share = delivered * u128::from(ssthresh.get()) / flight + 1;
        // One segment is allowed at the start.
        let due = share.max(u128::from(state.mss.get()));
        let known = recovery.expired.max(una);
        let repeated = recovery.repeated.iter().map(|&(l, r)| peer.missing(l, r.min(known)));
        let held = Bytes(peer.missing(known, max) + repeated.sum::<u64>());
        (u128::from(recovery.out) > due && held > ssthresh).then_some((held, ssthresh))
    }
}
