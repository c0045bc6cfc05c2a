//! What may leave a stack, and when.
//!
//! New bytes follow the last one sent and stay within both windows. FreeBSD's tcp_output sends
//! `min(cwnd, snd_wnd) - (snd_nxt - snd_una)` bytes; Linux' tcp_write_xmit sends as many packets as
//! `cwnd` exceeds those under way (tcp_cwnd_test), none of them larger than the segment that turns
//! its window into bytes. So the bytes from `snd_una` to the last one sent are `cwnd` at most for
//! both. While some of them are in doubt, that is no limit: limited transmit (RFC 3042) goes
//! beyond it, and SACK counts what is thought to be still in the network instead (RFC 6675 `pipe`,
//! `tcp_packets_in_flight`). In a fast recovery the rules of `recovery` hold then, else only the peer's
//! window binds. QUIC tells its flight, so its window binds always, but for probes and one packet on
//! entering recovery.
//!
//! Old bytes go again only for a reason that came after they had left: the retransmission timer
//! for a timeout, a duplicate acknowledgment for a loss, a smaller segment for a smaller path, a
//! window closed over them for a probe. And they go once for it: not twice unless the peer or a
//! timer has spoken in between.

use record::{Cause, SenderState, SentKind};
use units::{Bytes, Offset};

use crate::arrivals::Arrivals;
use crate::end::{Burst, End, Sent};
use crate::violation::{Breach, Field, Log};
use crate::world::Transport;

impl End {
    /// The stack sent something, with the state after it.
    pub(crate) fn on_sent(
        &mut self,
        log: &mut Log,
        sent: &Sent,
        state: Option<&SenderState>,
        peer: &Arrivals,
    ) -> Burst {
        let &Sent { at, len, kind } = sent;
        if !self.may_speak(kind) {
            self.note(log, Breach::NotConnected);
        }
        let empty_probe = kind == SentKind::Probe && len == 0;
        let bare = kind == SentKind::Ack || empty_probe;
        let before_the_first = !self.connected || (empty_probe && self.sender.una == 0);
        if kind == SentKind::Reset {
            // It answers with whatever number the peer will believe.
            if len > 0 {
                self.note(log, Breach::BadKind { kind });
            }
            return Burst { at, len: 0, place: None, sent_at: log.now, bare: false, fin: false };
        }
        if self.connected {
            self.check_sent(log, sent, state, peer);
        } else if (at, len) != (0, 0) {
            self.note(log, Breach::BadKind { kind });
        }
        let last = self.sender.fin && at.saturating_add(len) == self.sender.max;
        Burst {
            at,
            len,
            place: (self.transport == Transport::Tcp)
                .then(|| Offset(at.saturating_add(u64::from(!before_the_first)))),
            sent_at: log.now,
            bare,
            // FreeBSD repeats an unacknowledged FIN in the ACKs it sends meanwhile.
            fin: last && kind != SentKind::Probe,
        }
    }

    fn check_sent(
        &mut self,
        log: &mut Log,
        sent: &Sent,
        state: Option<&SenderState>,
        peer: &Arrivals,
    ) {
        let &Sent { at, len, kind } = sent;
        match kind {
            // Frames without stream data, or the end of the stream alone.
            SentKind::Control if self.transport != Transport::Tcp => {
                if len > 0 {
                    self.note(log, Breach::BadKind { kind });
                }
            }
            SentKind::Control => self.check_fin(log, at, len),
            SentKind::Ack => self.check_bare_ack(log, at, len),
            SentKind::New => self.check_new(log, at, len),
            SentKind::Again(cause) => self.check_again(log, at, len, cause),
            SentKind::Probe => self.check_probe(log, at, len),
            SentKind::Reset => {}
        }
        let stop = at.saturating_add(len);
        let fresh = len > 0 && stop > self.sender.max;
        if fresh {
            self.sender.max = stop;
            if stop > self.sender.written {
                let (upto, written) = (Offset(stop), Offset(self.sender.written));
                self.note(log, Breach::NeverWritten { upto, written });
            }
        }
        let Some(state) = state else {
            self.note(log, Breach::NoState);
            return;
        };
        // That a FIN went along with bytes is told by the state alone.
        let sender = &mut self.sender;
        let alone = kind == SentKind::Control && self.transport != Transport::Tcp;
        sender.fin |= (len > 0 || alone)
            && stop == sender.max
            && state.snd_max.0.checked_sub(1) == Some(stop);
        self.check_state(log, state);
        if fresh {
            self.check_windows(log, stop, kind, state);
        }
        self.check_recovery(log, (sent, fresh), state, peer);
    }

    fn check_fin(&mut self, log: &mut Log, at: u64, len: u64) {
        if len > 0 || self.sender.fin {
            self.note(log, Breach::BadKind { kind: SentKind::Control });
        }
        self.expect_next(log, at);
        self.sender.fin = true;
    }

    fn check_bare_ack(&self, log: &mut Log, at: u64, len: u64) {
        if len > 0 {
            self.note(log, Breach::BadKind { kind: SentKind::Ack });
        }
        if at < self.sender.una || at > self.sender.end() {
            self.note(log, self.not_outstanding(at));
        }
    }

    fn check_new(&self, log: &mut Log, at: u64, len: u64) {
        if len == 0 || self.sender.fin {
            self.note(log, Breach::BadKind { kind: SentKind::New });
        }
        self.expect_next(log, at);
    }

    fn check_again(&mut self, log: &mut Log, at: u64, len: u64, cause: Cause) {
        let sender = &mut self.sender;
        let fits = if len > 0 { at < sender.max } else { sender.fin && at == sender.max };
        if !fits || at < sender.una {
            self.note(log, self.not_outstanding(at));
            return;
        }
        sender.sent_again += at.saturating_add(len).min(sender.max) - at;
        let until = match cause {
            Cause::Timeout => sender.timed_out,
            Cause::FastRetransmit | Cause::PartialAck | Cause::LossProbe | Cause::Recovering => {
                sender.in_doubt
            }
            Cause::PathMtu => sender.too_large,
            Cause::WindowProbe => sender.probed.max(sender.closed),
            _ => 0,
        };
        if at >= until {
            self.note(log, Breach::NoReason { at: Offset(at), cause });
        }
        // A FIN alone takes a place of its own.
        let stop = at.saturating_add(len.max(1));
        // QUIC may send two probes, and both may hold the same (RFC 9002 section 6.2.4).
        if cause == Cause::LossProbe && self.transport != Transport::Tcp {
            return;
        }
        let before = &mut self.sender.for_one_reason;
        if before.range(..stop).next_back().is_some_and(|(_, &end)| end > at) {
            self.note(log, Breach::TwiceForOneReason { at: Offset(at) });
        } else {
            before.insert(at, stop);
        }
    }

    /// A byte at most beyond any window (RFC 9293 section 3.8.6.1), or an empty segment with the
    /// number before `snd_una` (section 3.8.4), once a timer for it has fired.
    fn check_probe(&mut self, log: &mut Log, at: u64, len: u64) {
        if len > 1 {
            self.note(log, Breach::BadKind { kind: SentKind::Probe });
        }
        let sender = &mut self.sender;
        let due = sender.probes_due > 0;
        sender.probes_due = sender.probes_due.saturating_sub(1);
        let least = if len == 0 { sender.una.saturating_sub(1) } else { sender.una };
        if len > 0 {
            sender.probed = sender.probed.max(at.saturating_add(len));
        }
        if at < least || at > sender.end() {
            self.note(log, self.not_outstanding(at));
        }
        if !due {
            self.note(log, Breach::NoProbeDue);
        }
    }

    fn expect_next(&self, log: &mut Log, at: u64) {
        if at != self.sender.max {
            let (at, snd_max) = (Offset(at), Offset(self.sender.max));
            self.note(log, Breach::NotNext { at, snd_max });
        }
    }

    const fn not_outstanding(&self, at: u64) -> Breach {
        let (snd_una, snd_max) = (Offset(self.sender.una), Offset(self.sender.end()));
        Breach::NotOutstanding { at: Offset(at), snd_una, snd_max }
    }

    /// Bytes never sent before, up to `stop`.
    fn check_windows(&mut self, log: &mut Log, stop: u64, kind: SentKind, state: &SenderState) {
        let una = self.sender.una;
        let flight = Bytes(stop.saturating_sub(una));
        let window = state.snd_wnd;
        if kind != SentKind::Probe && flight > window {
            self.note(log, Breach::BeyondPeerWindow { flight, window });
        }
        let (flight, beyond) = match self.transport {
            Transport::Tcp => {
                let doubted = una < self.sender.timed_out.max(self.sender.in_doubt);
                (flight, !doubted && flight > state.cwnd)
            }
            // QUIC holds packets with their headers against the window, whatever is in doubt; a
            // knob lets the last go beyond.
            Transport::Quic { .. } => {
                let flight = state.in_flight;
                let beyond = flight > state.cwnd + state.mss - Bytes(1);
                let allowed = &mut self.sender.beyond_window;
                let may = beyond && *allowed > 0;
                *allowed -= u32::from(may);
                (flight, beyond && !may)
            }
        };
        if beyond {
            self.note(log, Breach::BeyondCwnd { flight, cwnd: state.cwnd });
        }
        let told = self.sender.cwnd.map_or(0, u64::from);
        self.compare(log, Field::Cwnd, state.cwnd.get().min(u64::from(u32::MAX)), told);
    }

    /// What a state says must follow from the events.
    pub(crate) fn check_state(&self, log: &mut Log, state: &SenderState) {
        let sender = &self.sender;
        let held = sender.written.saturating_sub(sender.una);
        self.compare(log, Field::SndUna, state.snd_una.0, sender.una);
        self.compare(log, Field::SndMax, state.snd_max.0, sender.end());
        self.compare(log, Field::Buffered, state.buffered.get(), held);
        let nxt = state.snd_nxt.0;
        self.compare(log, Field::SndNxt, nxt, nxt.clamp(sender.una, sender.end().max(sender.una)));
    }

    pub(crate) fn compare(&self, log: &mut Log, field: Field, said: u64, known: u64) {
        if said != known {
            self.note(log, Breach::StateDiffers { field, said, known });
        }
    }
}
