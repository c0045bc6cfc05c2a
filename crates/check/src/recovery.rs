//! What may leave a TCP sender while it repairs losses.
//!
//! From the first duplicate on the bytes behind `snd_una` are no measure of what is under way. What
//! holds a sender back then differs from system to system ([`Brake`]), and is checked from the event
//! that begins a fast recovery to the first state that is in none. What a state says of `pipe` is taken
//! at its word, but for this: new bytes are under way once they are sent.
//!
//! The first packet sent again goes whatever the window (RFC 6675 section 5 step 4.3, RFC 9937 section
//! 5), so does one with nothing else under way, and so does a loss probe.

use record::{Cause, SenderState, SentKind};
use units::Bytes;

use crate::arrivals::Arrivals;
use crate::end::{End, Sent};
use crate::violation::{Breach, Field, Log};
use crate::world::{Brake, Transport};

/// A fast recovery.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recovery {
    /// What had been acknowledged and sent when it began.
    una: u64,
    point: u64,
    /// Bytes sent since, new or again.
    out: u64,
    /// What lies before this and has not gone again may count as lost (rack_mark_lost).
    expired: u64,
    /// Has any of it gone again?
    begun: bool,
    /// All that has.
    again: Vec<(u64, u64)>,
    /// What was under way and sent after the last packet, if nothing has come or changed since.
    before: Option<(Bytes, u64)>,
}

impl End {
    /// The window changed, or a recovery began or ended with it.
    pub(crate) fn on_recovery(&mut self, cause: Cause) {
        if self.transport != Transport::Tcp {
            // Its window binds always.
            return;
        }
        match cause {
            Cause::FastRetransmit | Cause::LostRetransmission => {
                let (una, point) = (self.sender.una, self.sender.end());
                let expired = if self.sender.reordered { point } else { una };
                let begins = Recovery { una, point, expired, ..Recovery::default() };
                self.sender.recovery = Some(begins);
            }
            Cause::Recovered | Cause::Undone | Cause::Timeout | Cause::PathMtu => {
                self.sender.recovery = None;
            }
            _ => {}
        }
    }

    /// The reordering timer fired: what had been passed may count as lost.
    pub(crate) fn on_reorder_timer(&mut self) {
        self.sender.reordered = true;
        let end = self.sender.end();
        if let Some(recovery) = &mut self.sender.recovery {
            recovery.expired = end;
            recovery.again.clear();
        }
    }

    /// Anything else than a packet that left: what is under way may be another thing now.
    pub(crate) fn forget_pipe(&mut self) {
        if let Some(recovery) = &mut self.sender.recovery {
            recovery.before = None;
        }
    }

    /// A packet left, `fresh` if it ends behind all that was ever sent.
    pub(crate) fn check_recovery(
        &mut self,
        log: &mut Log,
        (sent, fresh): (&Sent, bool),
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
        let repairs = matches!(sent.kind, SentKind::Again(Cause::FastRetransmit));
        if repairs {
            recovery.again.push((at, stop));
        }
        let first = repairs && !recovery.begun;
        recovery.begun = true;
        recovery.out += sent.len;
        if let Some((held, ssthresh)) = self.beyond_credit(&recovery, state, peer)
            && fresh
            && !probes
        {
            self.note(log, Breach::BeyondInRecovery { held, cwnd: ssthresh });
        }
        let before = recovery.before.replace((state.pipe, state.snd_max.0));
        if let Some((pipe, max)) = before
            && fresh
            && self.brake == Brake::Pipe
        {
            let known = pipe.get() + state.snd_max.0.saturating_sub(max);
            self.compare(log, Field::Pipe, state.pipe.get(), known);
        }
        let held = match self.brake {
            Brake::Pipe if fresh || repairs => {
                let alone = state.pipe.get() <= sent.len;
                // A FIN that was sent counts as a byte, and needs no window.
                let fin = u64::from(self.sender.fin);
                (!alone).then(|| state.pipe.saturating_sub(Bytes(fin)))
            }
            Brake::Flight if fresh => Some(Bytes(stop.saturating_sub(self.sender.una))),
            Brake::Since if fresh || repairs => {
                // What has not arrived cannot have been reported, and is counted.
                recovery.again.retain(|&(left, right)| peer.missing(left, right) > 0);
                let missing: u64 = recovery.again.iter().map(|&(l, r)| peer.missing(l, r)).sum();
                // What goes again is not held back by new bytes.
                let since = if fresh { stop.saturating_sub(recovery.point) } else { 0 };
                Some(Bytes(since + missing))
            }
            _ => None,
        };
        if let Some(held) = held
            && held > state.cwnd
            && !first
            && !(probes && fresh)
        {
            self.note(log, Breach::BeyondInRecovery { held, cwnd: state.cwnd });
        }
        self.sender.recovery = Some(recovery);
    }

    /// More is under way than the threshold, and more has left than PRR's share of what was delivered
    /// (RFC 6937; the kernel rounds down and adds a byte): tells what is under way, and the threshold.
    /// Both are taken at the bound that suits the sender: all that has arrived was reported in this
    /// recovery, and what is acknowledged counts once more (`changed` of rack_log_ack).
    fn beyond_credit(
        &self,
        recovery: &Recovery,
        state: &SenderState,
        peer: &Arrivals,
    ) -> Option<(Bytes, Bytes)> {
        let ssthresh = state.ssthresh.filter(|_| self.brake == Brake::Credit)?;
        let (max, una) = (self.sender.max, self.sender.una);
        let arrived = max.saturating_sub(recovery.una) - peer.missing(recovery.una, max);
        let delivered = u128::from(arrived + una.saturating_sub(recovery.una));
        let flight = u128::from(recovery.point.saturating_sub(recovery.una).max(1));
        let share = delivered * u128::from(ssthresh.get()) / flight + 1;
        // One segment may go when it begins.
        let due = share.max(u128::from(state.mss.get()));
        let known = recovery.expired.max(una);
        let again = recovery.again.iter().map(|&(l, r)| peer.missing(l, r.min(known)));
        let held = Bytes(peer.missing(known, max) + again.sum::<u64>());
        (u128::from(recovery.out) > due && held > ssthresh).then_some((held, ssthresh))
    }
}
