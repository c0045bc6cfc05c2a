//! What leaves, and why nothing more does: RFC 9000 sections 12.2 and 13.2.1, RFC 9002 section 7.

use machine::Cx;
use record::{Cause, Event, Recorder, Sender as _, SentKind, Waiting};
use units::Offset;

use crate::endpoint::{Endpoint, State};
use crate::handshake::MIN_INITIAL;
use crate::packet::{Packet, Space};
use crate::profile::SendRule;
use crate::sent::{Cargo, Sent};
use crate::sizes;

impl Endpoint {
    /// Writes the next packet.
    pub(crate) fn output<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Packet,
    ) -> Result<(), Waiting> {
        slot.reset(self.cfg.flow, self.dir(), self.cfg.ip);
        let waiting = match self.state {
            State::Closing if self.close_due => {
                self.write_close(cx, slot);
                return Ok(());
            }
            State::Closing | State::Draining => Waiting::Done,
            State::Idle => Waiting::Handshake,
            State::Opening | State::Open => {
                if self.write_crypto(cx, slot, Space::Initial)
                    || self.write_crypto(cx, slot, Space::Handshake)
                {
                    return Ok(());
                }
                match self.write_data(cx, slot) {
                    Ok(()) => return Ok(()),
                    Err(waiting) => waiting,
                }
            }
        };
        self.due = false;
        self.underused = !matches!(waiting, Waiting::CongestionWindow | Waiting::Pacing);
        if core::mem::replace(&mut self.waiting, waiting) != waiting {
            cx.emit_of(self, || Event::Waiting(waiting));
        }
        Err(waiting)
    }

    /// A packet of the handshake, if one is due.
    fn write_crypto<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Packet,
        space: Space,
    ) -> bool {
        if !self.handshake.has_keys(space) {
            return false;
        }
        let full = u64::from(self.datagram);
        if self.handshake.allowance(self.is_server()) < full {
            return false;
        }
        let fits = self.bytes_in_flight + full <= self.cc.control().window.get();
        let probe = self.numbers(space).probes > 0;
        let may = fits || probe;
        let mut wants = self.numbers(space).crypto_out.wants(u64::MAX);
        if probe && !wants {
            self.probe_with_old(space);
            wants = self.numbers(space).crypto_out.wants(u64::MAX);
        }
        let ping = probe && !wants;
        let due = self.numbers(space).policy.is_due();
        if !(may && (wants || ping) || due) {
            return false;
        }
        slot.space = space;
        self.add_ack(cx, slot, self.datagram / 2);
        slot.ping = ping;
        if may && wants {
            // The offset of a handshake takes two bytes at most.
            let room = self.datagram - self.overhead(slot) - sizes::crypto_header(0x3fff);
            let piece = self.numbers(space).crypto_out.take(room, u64::MAX);
            slot.crypto = piece.map(|piece| piece.chunk);
        }
        let eliciting = slot.is_ack_eliciting();
        slot.size = self.overhead(slot);
        if space == Space::Initial && (eliciting || !self.is_server()) {
            slot.size = slot.size.max(MIN_INITIAL.min(self.datagram));
        }
        let kind = if eliciting { SentKind::Control } else { SentKind::Ack };
        self.leave(cx, slot, kind);
        if space == Space::Handshake && !self.is_server() {
            // RFC 9001 section 4.9.1.
            self.discard(cx, Space::Initial);
        }
        true
    }

    /// A packet of application data, or an acknowledgment alone.
    fn write_data<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Packet,
    ) -> Result<(), Waiting> {
        if !self.handshake.has_keys(Space::Application) {
            return Err(Waiting::Handshake);
        }
        slot.space = Space::Application;
        let probe = self.numbers(Space::Application).probes > 0;
        // Data does not overtake the end of the handshake: nothing would tell of its loss, as there is no
        // probe timeout for it yet (RFC 9002 section 6.2.1).
        let overtakes = self.has_handshake_data();
        let mut content = self.has_content() && !overtakes;
        if probe && !content {
            self.probe_with_old(Space::Application);
            content = self.has_content();
        }
        let waiting = if overtakes && !probe {
            Waiting::CongestionWindow
        } else if !(content || probe) {
            self.why_idle()
        } else if probe {
            return self.write_eliciting(cx, slot, !content);
        } else if !self.window_allows(slot) {
            Waiting::CongestionWindow
        } else if self.must_pace(cx) {
            Waiting::Pacing
        } else {
            return self.write_eliciting(cx, slot, false);
        };
        if self.numbers(Space::Application).policy.is_due() {
            let room = self.datagram - self.overhead(slot);
            if self.add_ack(cx, slot, room) {
                slot.size = self.overhead(slot);
                self.leave(cx, slot, SentKind::Ack);
                return Ok(());
            }
        }
        Err(waiting)
    }

    /// Is there anything to send that must arrive?
    fn has_content(&self) -> bool {
        self.send.wants(self.flow.limit())
            || self.flow.due()
            || self.handshake.done_due
            || self.ack_frequency_due
    }

    /// Is there anything of the handshake to send? It was tried before: there was no room for it.
    fn has_handshake_data(&self) -> bool {
        [Space::Initial, Space::Handshake].into_iter().any(|space| {
            let wants = self.spaces[space.index()].crypto_out.wants(u64::MAX);
            wants && self.handshake.has_keys(space)
        })
    }

    fn why_idle(&self) -> Waiting {
        if self.send.blocked(self.flow.limit()) {
            Waiting::PeerWindow
        } else if self.send.is_finished() {
            Waiting::Done
        } else {
            Waiting::Application
        }
    }

    /// Does the congestion window let the next packet go?
    fn window_allows(&mut self, slot: &Packet) -> bool {
        if self.cc.take_extra_packet() {
            return true;
        }
        let window = self.cc.control().window.get();
        let left = window.saturating_sub(self.bytes_in_flight);
        let full = u64::from(self.datagram);
        match self.cfg.profile.send {
            SendRule::FullPackets => left >= full,
            SendRule::Overshoot => left > 0,
            SendRule::Below => left > full,
            SendRule::Fits => {
                let room = self.datagram - self.overhead(slot);
                let room = room.saturating_sub(sizes::stream_header(self.send.peek_offset()));
                let short = room - self.send.peek(room, self.flow.limit()).min(room);
                left >= full - u64::from(short)
            }
        }
    }

    /// Does pacing hold the next packet back?
    fn must_pace<R: Recorder>(&mut self, cx: &Cx<'_, R>) -> bool {
        if !self.cfg.profile.pacing || self.rtt.first_sample().is_none() {
            return false;
        }
        let (window, smoothed) = (self.cc.control().window, self.rtt.smoothed());
        self.paced_until = self.pacer.release(cx.now, u64::from(self.datagram), window, smoothed);
        self.paced_until.is_some()
    }

    /// A packet that draws an acknowledgment, filled up with stream data.
    fn write_eliciting<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Packet,
        ping: bool,
    ) -> Result<(), Waiting> {
        let numbers = self.numbers(Space::Application);
        let news = numbers.policy.rule().bundle_all && numbers.received.has_news();
        if numbers.policy.owes() || news {
            self.add_ack(cx, slot, self.datagram / 2);
        }
        slot.ping = ping;
        slot.handshake_done = core::mem::take(&mut self.handshake.done_due);
        (slot.max_data, slot.max_stream_data) = self.flow.take();
        if core::mem::take(&mut self.ack_frequency_due) {
            slot.ack_frequency = self.cfg.profile.ack_frequency;
        }
        let used = self.overhead(slot) + sizes::stream_header(self.send.peek_offset());
        let piece = self.send.take(self.datagram.saturating_sub(used), self.flow.limit());
        slot.stream = piece.map(|piece| piece.chunk);
        slot.size = self.overhead(slot);
        let again = piece.is_some_and(|piece| piece.again);
        let cause = if self.numbers(Space::Application).probes > 0 {
            Cause::LossProbe
        } else {
            Cause::FastRetransmit
        };
        let kind = match piece {
            Some(_) if again => SentKind::Again(cause),
            Some(piece) if piece.chunk.len > 0 => SentKind::New,
            None if ping => SentKind::Probe,
            _ => SentKind::Control,
        };
        self.totals.data_packets += u64::from(slot.payload() > 0);
        self.totals.retransmitted_packets += u64::from(again);
        self.leave(cx, slot, kind);
        Ok(())
    }

    /// CONNECTION_CLOSE, in the highest space there are keys for.
    fn write_close<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Packet) {
        let has = |space: &&Space| self.handshake.has_keys(**space);
        slot.space = Space::ALL.iter().rev().find(has).copied().unwrap_or_default();
        slot.close = true;
        slot.size = self.overhead(slot);
        self.close_due = false;
        self.leave(cx, slot, SentKind::Reset);
    }

    /// Adds an ACK frame of at most `room` bytes, if there is anything to acknowledge.
    fn add_ack<R: Recorder>(&mut self, cx: &Cx<'_, R>, slot: &mut Packet, room: u32) -> bool {
        let numbers = self.numbers(slot.space);
        let rule = *numbers.policy.rule();
        let bounds = (rule.max_ranges, room);
        let written = numbers.received.write(cx.now, rule.exponent, bounds, &mut slot.ack);
        if written {
            numbers.policy.on_sent();
        }
        written
    }

    /// Bytes of a packet as it stands, header and tag included.
    fn overhead(&self, slot: &Packet) -> u32 {
        let numbers = &self.spaces[slot.space.index()];
        let header = self.cfg.profile.overhead.of(slot.space, numbers.next, numbers.largest_acked);
        header + sizes::frames(slot)
    }

    /// A packet is whole: it gets its number and is under way (`OnPacketSent`).
    fn leave<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Packet, kind: SentKind) {
        let eliciting = slot.is_ack_eliciting();
        let size = u64::from(slot.size);
        let numbers = &mut self.spaces[slot.space.index()];
        slot.number = numbers.next;
        numbers.next += 1;
        numbers.packets.push(Sent {
            number: slot.number,
            at: cx.now,
            size: slot.size,
            eliciting,
            cargo: Cargo {
                stream: slot.stream,
                crypto: slot.crypto,
                max_data: slot.max_data.is_some(),
                max_stream_data: slot.max_stream_data.is_some(),
                ack_frequency: slot.ack_frequency.is_some(),
                handshake_done: slot.handshake_done,
                acked: slot.ack.largest(),
            },
            settled: false,
        });
        self.handshake.left += size;
        if eliciting {
            numbers.last_eliciting = cx.now;
            numbers.probes = numbers.probes.saturating_sub(1);
            self.bytes_in_flight += size;
            self.cc.on_sent(size);
            self.pacer.on_sent(size);
            self.set_loss_timer(cx.now);
        }
        cx.emit_of(self, || {
            let at = slot.stream.map_or_else(|| self.snd_max(), |chunk| Offset(chunk.offset));
            Event::Sent { at, len: slot.payload(), kind }
        });
    }
}
