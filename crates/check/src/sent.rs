//! Rules for what a stack may send, and when.
//!
//! New bytes follow the last one sent and stay within both windows. FreeBSD's tcp_output sends
//! `min(cwnd, snd_wnd) - (snd_nxt - snd_una)` bytes; Linux's tcp_write_xmit sends as many packets
//! as `cwnd` exceeds those in flight (tcp_cwnd_test), none larger than the segment size that
//! converts its window to bytes. So for both the bytes from `snd_una` to the last one sent are at
//! most `cwnd`. While a loss is suspected this is no limit: limited transmit (RFC 3042) exceeds it,
//! and SACK counts the bytes believed to be in the network instead (RFC 6675 `pipe`,
//! `tcp_packets_in_flight`). In a fast recovery the rules of `recovery` then apply, otherwise only
//! the peer's window. QUIC reports its bytes in flight, so its window always applies, except for
//! probes and one packet on entering recovery.
//!
//! Old bytes are retransmitted only for a reason that arose after their transmission: the
//! retransmission timer for a timeout, a duplicate acknowledgment for a loss, a smaller segment for
//! a smaller path MTU, a closed window for a probe. Each reason allows one retransmission: a second
//! one requires input from the peer or a timer in between.

use record::{Cause, SenderState, SentKind};
use units::{Bytes, Offset};

use crate::arrivals::Arrivals;
use crate::endpoint::{EndpointModel, PendingBurst, SenderModel, SentData};
use crate::violation::{StateField, ViolationKind, ViolationLog};
use crate::world::{OutputCalls, RecoveryLimit, TransportKind};

impl EndpointModel {
    /// Processes a transmission of the stack, with the state after it.
    pub(crate) fn on_sent(
        &mut self,
        log: &mut ViolationLog,
        sent: &SentData,
        state: Option<&SenderState>,
        peer: &Arrivals,
    ) -> PendingBurst {
        let &SentData { at, len, kind } = sent;
        if !self.may_speak(kind) {
            self.note(log, ViolationKind::NotConnected);
        }
        let empty_probe = kind == SentKind::Probe && len == 0;
        let bare = kind == SentKind::Ack || empty_probe;
        // An ACK has the number after the SYN, whether that is acknowledged or not.
        let handshake = !self.connected && kind != SentKind::Ack;
        let before_the_first = handshake || (empty_probe && self.sender.una == 0);
        if kind == SentKind::Reset {
            // A reset may carry any number that the peer accepts.
            if len > 0 {
                self.note(log, ViolationKind::BadKind { kind });
            }
            return PendingBurst {
                at,
                len: 0,
                place: None,
                sent_at: log.now,
                bare: false,
                fin: false,
            };
        }
        if self.connected {
            self.check_sent(log, sent, state, peer);
        } else if (at, len) != (0, 0) {
            self.note(log, ViolationKind::BadKind { kind });
        }
        let last = self.sender.fin && at.saturating_add(len) == self.sender.max;
        PendingBurst {
            at,
            len,
            place: (self.transport == TransportKind::Tcp)
                .then(|| Offset(at.saturating_add(u64::from(!before_the_first)))),
            sent_at: log.now,
            bare,
            fin: last && kind != SentKind::Probe,
        }
    }

    fn check_sent(
        &mut self,
        log: &mut ViolationLog,
        sent: &SentData,
        state: Option<&SenderState>,
        peer: &Arrivals,
    ) {
        let &SentData { at, len, kind } = sent;
        if self.transport != TransportKind::Tcp
            && kind != SentKind::Ack
            && self.sender.probe_packets > 0
        {
            self.sender.probe_packets -= 1;
            self.sender.in_doubt = self.sender.end();
        }
        match kind {
            // Frames without stream data, or the end of the stream alone.
            SentKind::Control if self.transport != TransportKind::Tcp => {
                if len > 0 {
                    self.note(log, ViolationKind::BadKind { kind });
                }
            }
            SentKind::Control => self.check_fin(log, at, len),
            SentKind::Ack => self.check_bare_ack(log, at, len),
            SentKind::New => self.check_new(log, at, len),
            SentKind::Retransmission(cause) => self.check_retransmission(log, at, len, cause),
            SentKind::Probe => self.check_probe(log, at, len),
            SentKind::Reset => {}
        }
        let stop = at.saturating_add(len);
        let fresh = len > 0 && stop > self.sender.max;
        if fresh {
            self.sender.max = stop;
            if stop > self.sender.written {
                let (upto, written) = (Offset(stop), Offset(self.sender.written));
                self.note(log, ViolationKind::NeverWritten { upto, written });
            }
        }
        let Some(state) = state else {
            self.note(log, ViolationKind::NoState);
            return;
        };
        // A FIN sent with data is visible in the state only.
        let sender = &mut self.sender;
        let single_packet = kind == SentKind::Control && self.transport != TransportKind::Tcp;
        sender.fin |= (len > 0 || single_packet)
            && stop == sender.max
            && state.snd_max.0.checked_sub(1) == Some(stop);
        self.check_state(log, state);
        if fresh {
            self.check_windows(log, (sent, stop), kind, state);
        }
        self.check_recovery(log, (sent, fresh), state, peer);
    }

    fn check_fin(&mut self, log: &mut ViolationLog, at: u64, len: u64) {
        if len > 0 || self.sender.fin {
            self.note(log, ViolationKind::BadKind { kind: SentKind::Control });
        }
        self.expect_next(log, at);
        self.sender.fin = true;
    }

    fn check_bare_ack(&self, log: &mut ViolationLog, at: u64, len: u64) {
        if len > 0 {
            self.note(log, ViolationKind::BadKind { kind: SentKind::Ack });
        }
        if at < self.sender.una || at > self.sender.end() {
            self.note(log, self.not_outstanding(at));
        } else if at < self.sender.end()
            && self.calls == OutputCalls::AfterInput
            && self.transport == TransportKind::Tcp
        {
            let (at, snd_max) = (Offset(at), Offset(self.sender.end()));
            self.note(log, ViolationKind::NotNext { at, snd_max });
        }
    }

    fn check_new(&self, log: &mut ViolationLog, at: u64, len: u64) {
        if len == 0 || self.sender.fin {
            self.note(log, ViolationKind::BadKind { kind: SentKind::New });
        }
        self.expect_next(log, at);
    }

    fn check_retransmission(&mut self, log: &mut ViolationLog, at: u64, len: u64, cause: Cause) {
        let sender = &mut self.sender;
        let fits = if len > 0 { at < sender.max } else { sender.fin && at == sender.max };
        if !fits || at < sender.una {
            self.note(log, self.not_outstanding(at));
            return;
        }
        sender.retransmitted += at.saturating_add(len).min(sender.max) - at;
        let until = match cause {
            // Linux retransmits what was too large as after a timeout (tcp_simple_retransmit).
            Cause::Timeout => sender.timed_out.max(sender.too_large),
            Cause::FastRetransmit | Cause::PartialAck | Cause::LossProbe | Cause::Recovering => {
                sender.in_doubt
            }
            Cause::PathMtu => sender.too_large,
            Cause::WindowProbe => sender.probed.max(sender.closed),
            _ => 0,
        };
        if at >= until {
            self.note(log, ViolationKind::UnjustifiedRetransmission { at: Offset(at), cause });
        }
        // A FIN alone occupies an offset of its own.
        let stop = at.saturating_add(len.max(1));
        // QUIC may send two probes with the same data (RFC 9002 section 6.2.4).
        if cause == Cause::LossProbe && self.transport != TransportKind::Tcp {
            return;
        }
        // If a segment is lost when the timer of a probe fires, rack_output retransmits the lost one
        // first. The probe stays pending (`rc_tlpsend`) for the next call, whichever segment it is.
        let probe = cause == Cause::LossProbe
            && core::mem::take(&mut self.sender.loss_probe_unsent)
            && self.brake == RecoveryLimit::Credit;
        let before = &mut self.sender.retransmitted_since_input;
        if probe {
            before.insert(at, stop);
            return;
        }
        if before.range(..stop).next_back().is_some_and(|(_, &end)| end > at) {
            self.note(log, ViolationKind::RepeatedRetransmission { at: Offset(at) });
        } else {
            before.insert(at, stop);
        }
    }

    /// Checks a probe: at most one byte beyond any window (RFC 9293 section 3.8.6.1), or an empty
    /// segment with the number before `snd_una` (section 3.8.4), once a timer for it has fired.
    fn check_probe(&mut self, log: &mut ViolationLog, at: u64, len: u64) {
        if len > 1 {
            self.note(log, ViolationKind::BadKind { kind: SentKind::Probe });
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
            self.note(log, ViolationKind::NoProbeDue);
        }
    }

    fn expect_next(&self, log: &mut ViolationLog, at: u64) {
        if at != self.sender.max {
            let (at, snd_max) = (Offset(at), Offset(self.sender.max));
            self.note(log, ViolationKind::NotNext { at, snd_max });
        }
    }

    const fn not_outstanding(&self, at: u64) -> ViolationKind {
        let (snd_una, snd_max) = (Offset(self.sender.una), Offset(self.sender.end()));
        ViolationKind::NotOutstanding { at: Offset(at), snd_una, snd_max }
    }

    /// Does the data need no room in the congestion window, since it is the last segment with the FIN?
    pub(crate) fn has_free_fin(&self, sent: &SentData, state: &SenderState) -> bool {
        self.free_fin && self.sender.fin && sent.len <= state.mss.get()
    }

    /// Checks the windows for new bytes up to `stop`.
    fn check_windows(
        &mut self,
        log: &mut ViolationLog,
        (sent, stop): (&SentData, u64),
        kind: SentKind,
        state: &SenderState,
    ) {
        let una = self.sender.una;
        let flight = Bytes(stop.saturating_sub(una));
        let window = state.snd_wnd;
        if kind != SentKind::Probe && flight > window {
            self.note(log, ViolationKind::BeyondPeerWindow { flight, window });
        }
        let (flight, beyond) = match self.transport {
            TransportKind::Tcp => {
                let SenderModel { timed_out, in_doubt, too_large, .. } = self.sender;
                let doubted = una < timed_out.max(in_doubt).max(too_large);
                let planned = stop <= self.sender.planned;
                (flight, !doubted && !planned && flight > state.cwnd)
            }
            // QUIC compares packets including their headers with the window, even during loss
            // recovery; a knob lets the last packet exceed it.
            TransportKind::Quic { .. } | TransportKind::RealQuic | TransportKind::Udp => {
                let flight = state.in_flight;
                let limit = match self.brake {
                    RecoveryLimit::Proportional => {
                        state.cwnd.max(Bytes(self.sender.largest_cwnd.into()))
                    }
                    _ => state.cwnd,
                };
                let beyond = flight > limit + state.mss - Bytes(1);
                let allowed = &mut self.sender.beyond_window;
                let may = beyond && *allowed > 0;
                *allowed -= u32::from(may);
                (flight, beyond && !may)
            }
        };
        if beyond && !self.has_free_fin(sent, state) {
            self.note(log, ViolationKind::BeyondCwnd { flight, cwnd: state.cwnd });
        }
        let reported = self.sender.cwnd.map_or(0, u64::from);
        self.compare(log, StateField::Cwnd, state.cwnd.get().min(u64::from(u32::MAX)), reported);
    }

    /// Checks that a state is consistent with the events.
    pub(crate) fn check_state(&self, log: &mut ViolationLog, state: &SenderState) {
        let sender = &self.sender;
        let held = sender.written.saturating_sub(sender.una);
        self.compare(log, StateField::SndUna, state.snd_una.0, sender.una);
        self.compare(log, StateField::SndMax, state.snd_max.0, sender.end());
        self.compare(log, StateField::Buffered, state.buffered.get(), held);
        let nxt = state.snd_nxt.0;
        self.compare(
            log,
            StateField::SndNxt,
            nxt,
            nxt.clamp(sender.una, sender.end().max(sender.una)),
        );
    }

    pub(crate) fn compare(&self, log: &mut ViolationLog, field: StateField, said: u64, known: u64) {
        if said != known {
            self.note(log, ViolationKind::StateDiffers { field, said, known });
        }
    }
}
