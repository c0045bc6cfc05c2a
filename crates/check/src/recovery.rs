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
    /// End of what had been sent when it began.
    point: u64,
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
                let point = self.sender.end();
                self.sender.recovery = Some(Recovery { point, ..Recovery::default() });
            }
            Cause::Recovered | Cause::Undone | Cause::Timeout | Cause::PathMtu => {
                self.sender.recovery = None;
            }
            _ => {}
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
}
