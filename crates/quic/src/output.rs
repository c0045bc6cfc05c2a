//! Packet output: RFC 9000 sections 12.2 and 13.2.1, RFC 9002 section 7.

use cc::WindowChange;
use machine::Cx;
use record::{Cause, Event, Recorder, SendLimit, Sender as _, SentKind};
use units::Offset;

use crate::endpoint::{QuicEndpoint, QuicState};
use crate::handshake::MIN_INITIAL;
use crate::mtu::MtuSearch;
use crate::packet::{QuicPacket, Space};
use crate::profile::{AmplificationRule, SendRule};
use crate::rate_based::DeliveryStamp;
use crate::sent::{SentFrames, SentQuicPacket};
use crate::sizes;

/// Fewest bytes of a packet that fills the rest of the anti-amplification limit. Declared here.
const MIN_REMAINDER: u32 = 200;

/// Fewest bytes left in a datagram for a packet of a later space: `MIN_PACKET_SPACE` of quinn-proto 0.11.19 and a tag.
const MIN_PACKET_SPACE: u32 = 103;

impl QuicEndpoint {
    /// Builds the next packet in `slot`, or returns why there is none.
    pub(crate) fn output<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut QuicPacket,
    ) -> Result<(), SendLimit> {
        slot.reset(self.cfg.flow, self.dir(), self.cfg.ip);
        let waiting = match self.state {
            QuicState::Closing if self.close_due => {
                self.write_close(cx, slot);
                return Ok(());
            }
            QuicState::Closing | QuicState::Draining => SendLimit::Done,
            QuicState::Idle => SendLimit::Handshake,
            QuicState::Opening | QuicState::Open => {
                if self.write_crypto(cx, slot, Space::Initial, 0)
                    || self.write_crypto(cx, slot, Space::Handshake, 0)
                {
                    return Ok(());
                }
                match self.write_data(cx, slot) {
                    Ok(()) => return Ok(()),
                    Err(waiting) => waiting,
                }
            }
        };
        self.pacer.finish_batch();
        let probe = match &mut self.mtu {
            Some(mtu) if self.state == QuicState::Open => mtu.due_at_once(cx.now),
            _ => None,
        };
        self.due = false;
        self.underused = !matches!(waiting, SendLimit::CongestionWindow | SendLimit::Pacing);
        if let Some(size) = probe {
            self.due = true;
            slot.space = Space::Application;
            self.write_mtu_probe(cx, slot, size);
            return Ok(());
        }
        if matches!(waiting, SendLimit::Application | SendLimit::Done) {
            self.cc.on_app_limited(self.bytes_in_flight);
        }
        if core::mem::replace(&mut self.waiting, waiting) != waiting {
            cx.emit_with_state(self, || Event::SendLimited(waiting));
        }
        Err(waiting)
    }

    /// Builds an Initial or Handshake packet, if one is due, after `used` bytes of an Initial packet in the datagram.
    fn write_crypto<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut QuicPacket,
        space: Space,
        used: u32,
    ) -> bool {
        if !self.handshake.has_keys(space) {
            return false;
        }
        let full = u64::from(self.datagram - used);
        let allowance = self.handshake.allowance(self.is_server());
        let room = match self.cfg.profile.amplification {
            AmplificationRule::FullDatagrams if allowance < full => return false,
            AmplificationRule::Exceeding if allowance == 0 => return false,
            AmplificationRule::FullDatagrams | AmplificationRule::Exceeding => full as u32,
            // Initial packets are padded, and a packet of a few bytes is not worth its header.
            AmplificationRule::Remainder => {
                let least = if space == Space::Initial { MIN_INITIAL } else { MIN_REMAINDER };
                if allowance < u64::from(least) {
                    return false;
                }
                allowance.min(full) as u32
            }
        };
        let fits = self.bytes_in_flight + full <= self.cc.control().window.get();
        let probe = self.space_mut(space).probes > 0;
        let may = fits || probe;
        let mut wants = self.space_mut(space).crypto_out.has_pending(u64::MAX);
        if probe && !wants {
            self.queue_probe(space);
            wants = self.space_mut(space).crypto_out.has_pending(u64::MAX);
        }
        let ping = probe && !wants;
        let due = self.space_mut(space).policy.is_due();
        if !(may && (wants || ping) || due) {
            return false;
        }
        slot.space = space;
        self.add_ack(cx, slot, room / 2);
        slot.ping = ping;
        if may && wants {
            // Handshake offsets take two bytes at most.
            let room = room.saturating_sub(self.overhead(slot) + sizes::crypto_header(0x3fff));
            let send_chunk = self.space_mut(space).crypto_out.take(room, u64::MAX);
            slot.crypto = send_chunk.map(|send_chunk| send_chunk.chunk);
        }
        let eliciting = slot.is_ack_eliciting();
        slot.size = self.overhead(slot);
        let least = self.cfg.profile.least_initial.min(self.datagram);
        let end = used + slot.size;
        let follows = self.cfg.profile.coalesces && self.follows(space, end);
        if (space == Space::Initial || used > 0) && (eliciting || !self.is_server()) && !follows {
            slot.size = slot.size.max(least.saturating_sub(used));
        }
        let kind = if eliciting { SentKind::Control } else { SentKind::Ack };
        self.send_packet(cx, slot, kind);
        if space == Space::Handshake && !self.is_server() {
            // RFC 9001 section 4.9.1.
            self.discard(cx, Space::Initial);
        }
        if follows || space == Space::Handshake && self.follows(space, end) {
            let mut packet = Box::<QuicPacket>::default();
            packet.reset(self.cfg.flow, self.dir(), self.cfg.ip);
            let used = used + slot.size;
            let before = core::mem::replace(&mut self.coalescing, true);
            if space == Space::Initial {
                if self.write_crypto(cx, &mut packet, Space::Handshake, used) {
                    slot.coalesced = Some(packet);
                }
            } else {
                let least =
                    if follows && used > slot.size { least.saturating_sub(used) } else { 0 };
                self.write_connection_ids(cx, &mut packet, least);
                slot.coalesced = Some(packet);
            }
            self.coalescing = before;
        }
        true
    }

    /// Does a packet of a later space follow that of this one, which ends at `end`, in the datagram?
    fn follows(&self, space: Space, end: u32) -> bool {
        let room = self.datagram.saturating_sub(end);
        let handshake = &self.spaces[Space::Handshake.index()];
        match space {
            Space::Initial => {
                room >= MIN_PACKET_SPACE
                    && self.handshake.has_keys(Space::Handshake)
                    && (handshake.crypto_out.has_pending(u64::MAX) || handshake.policy.is_due())
            }
            Space::Handshake => {
                !self.is_server()
                    && self.connection_ids_due
                    && room >= self.cfg.profile.connection_ids + MIN_PACKET_SPACE
            }
            Space::Application => false,
        }
    }

    /// Builds a 1-RTT packet of NEW_CONNECTION_ID frames, padded to `least` bytes.
    fn write_connection_ids<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut QuicPacket,
        least: u32,
    ) {
        slot.space = Space::Application;
        slot.connection_ids = self.cfg.profile.connection_ids;
        slot.size = self.overhead(slot).max(least);
        self.connection_ids_due = false;
        self.send_packet(cx, slot, SentKind::Control);
    }

    /// Builds a 1-RTT packet with data, or an ACK-only packet.
    fn write_data<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut QuicPacket,
    ) -> Result<(), SendLimit> {
        if !self.handshake.has_keys(Space::Application) {
            return Err(SendLimit::Handshake);
        }
        slot.space = Space::Application;
        let probe = self.space_mut(Space::Application).probes > 0;
        // Application data waits for the end of the handshake: its loss could not be detected, as
        // its space has no probe timeout yet (RFC 9002 section 6.2.1).
        let overtakes = self.has_handshake_data();
        let mut content = self.has_content() && !overtakes;
        if probe && !content {
            self.queue_probe(Space::Application);
            content = self.has_content();
        }
        let waiting = if overtakes && !probe {
            SendLimit::CongestionWindow
        } else if !(content || probe) {
            self.idle_reason()
        } else if probe {
            return self.write_eliciting(cx, slot, !content);
        } else if !self.window_allows(slot) {
            SendLimit::CongestionWindow
        } else if self.must_pace(cx) {
            SendLimit::Pacing
        } else {
            if self.handshake.confirmed
                && let Some(mtu) = &mut self.mtu
                && let Some(size) = mtu.due(cx.now, self.rtt.smoothed())
            {
                self.write_mtu_probe(cx, slot, size);
                return Ok(());
            }
            return self.write_eliciting(cx, slot, false);
        };
        if self.space_mut(Space::Application).policy.is_due() {
            let room = self.datagram - self.overhead(slot);
            if self.add_ack(cx, slot, room) {
                // A peer that only receives would never learn which of its ACKs arrived.
                let most = self.cfg.profile.acks.elicits_after;
                slot.ping = most.is_some_and(|most| self.unanswered >= most);
                let kind = if slot.ping { SentKind::Control } else { SentKind::Ack };
                slot.size = self.overhead(slot);
                self.send_packet(cx, slot, kind);
                return Ok(());
            }
        }
        Err(waiting)
    }

    /// Are retransmittable frames waiting to be sent?
    fn has_content(&self) -> bool {
        self.send.has_pending(self.flow.limit())
            || self.flow.due()
            || self.handshake.done_due
            || self.ack_frequency_due
            || self.connection_ids_due
    }

    /// Is CRYPTO data waiting? It has been tried and did not fit into the window.
    fn has_handshake_data(&self) -> bool {
        [Space::Initial, Space::Handshake].into_iter().any(|space| {
            let wants = self.spaces[space.index()].crypto_out.has_pending(u64::MAX);
            wants && self.handshake.has_keys(space)
        })
    }

    fn idle_reason(&self) -> SendLimit {
        if self.send.blocked(self.flow.limit()) {
            SendLimit::PeerWindow
        } else if self.send.is_finished() {
            SendLimit::Done
        } else {
            SendLimit::Application
        }
    }

    /// Does the congestion window allow the next packet?
    fn window_allows(&mut self, slot: &QuicPacket) -> bool {
        if self.cc.take_extra_packet() {
            return true;
        }
        let left = self.window_left();
        let full = u64::from(self.datagram);
        match self.cfg.profile.send {
            SendRule::FullPackets => left >= full,
            SendRule::Overshoot => left > 0,
            SendRule::Below => left > full,
            SendRule::Partial => {
                let used = self.overhead(slot) + self.stream_header();
                left > u64::from(used)
            }
            SendRule::Fits => {
                let room = self.datagram - self.overhead(slot);
                let room = room.saturating_sub(self.stream_header());
                let short = room - self.send.peek(room, self.flow.limit()).min(room);
                left >= full - u64::from(short)
            }
        }
    }

    /// Bytes that congestion control allows to be sent now.
    fn window_left(&self) -> u64 {
        let window = self.cc.control().window.get();
        window.saturating_sub(self.bytes_in_flight) + self.cc.beside_window()
    }

    /// Largest size of the next packet with data.
    fn room(&self) -> u32 {
        let is_probe = self.spaces[Space::Application.index()].probes > 0;
        match self.cfg.profile.send {
            SendRule::Partial if !is_probe => {
                self.window_left().min(u64::from(self.datagram)) as u32
            }
            _ => self.datagram,
        }
    }

    /// Does the pacer delay the next packet?
    fn must_pace<R: Recorder>(&mut self, cx: &Cx<'_, R>) -> bool {
        let profile = &self.cfg.profile;
        if let Some(burst) = self.cc.paced_burst() {
            let rate = self.cc.control().pacing;
            let at = rate.and_then(|rate| {
                self.pacer.release_at(cx.now, u64::from(self.datagram), rate, burst)
            });
            self.paced_until = at;
            return at.is_some();
        }
        if !profile.pacing
            || self.rtt.first_sample().is_none()
            || self.rtt.smoothed() < profile.pacing_gain.from_rtt
        {
            return false;
        }
        let basis = self.pacing_basis();
        self.paced_until = self.pacer.release(cx.now, u64::from(self.datagram), basis);
        self.paced_until.is_some()
    }

    /// Builds an ack-eliciting packet, filled with stream data.
    fn write_eliciting<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut QuicPacket,
        ping: bool,
    ) -> Result<(), SendLimit> {
        let numbers = self.space_mut(Space::Application);
        let news = numbers.policy.rule().bundle_all && numbers.received.has_ack_pending();
        if numbers.policy.has_unacked() || news {
            self.add_ack(cx, slot, self.datagram / 2);
        }
        slot.ping = ping;
        slot.handshake_done = core::mem::take(&mut self.handshake.done_due);
        if self.connection_ids_due {
            self.write_connection_ids(cx, slot, 0);
            return Ok(());
        }
        (slot.max_data, slot.max_stream_data) = self.flow.take();
        if core::mem::take(&mut self.ack_frequency_due) {
            slot.ack_frequency = self.cfg.profile.ack_frequency;
        }
        let used = self.overhead(slot) + self.stream_header();
        let send_chunk = self.send.take(self.room().saturating_sub(used), self.flow.limit());
        slot.stream = send_chunk.map(|send_chunk| send_chunk.chunk);
        slot.size = self.overhead(slot);
        let retransmitted = send_chunk.is_some_and(|send_chunk| send_chunk.retransmitted);
        let cause = if self.space_mut(Space::Application).probes > 0 {
            Cause::LossProbe
        } else {
            Cause::FastRetransmit
        };
        let kind = match send_chunk {
            Some(_) if retransmitted => SentKind::Retransmission(cause),
            Some(send_chunk) if send_chunk.chunk.len > 0 => SentKind::New,
            None if ping => SentKind::Probe,
            _ => SentKind::Control,
        };
        self.totals.data_packets += u64::from(slot.payload() > 0);
        self.totals.retransmitted_packets += u64::from(retransmitted);
        self.send_packet(cx, slot, kind);
        Ok(())
    }

    /// Builds a probe of the path MTU: a PING and padding.
    fn write_mtu_probe<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut QuicPacket,
        size: u32,
    ) {
        slot.ping = true;
        slot.immediate_ack = self.mtu.as_ref().is_some_and(MtuSearch::wants_immediate_ack);
        slot.size = size;
        self.send_packet(cx, slot, SentKind::Control);
        if let Some(mtu) = &mut self.mtu {
            mtu.on_sent(cx.now, slot.number, size);
        }
    }

    /// Builds a CONNECTION_CLOSE packet in the highest space that has keys.
    fn write_close<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut QuicPacket) {
        let has = |space: &&Space| self.handshake.has_keys(**space);
        slot.space = Space::ALL.iter().rev().find(has).copied().unwrap_or_default();
        slot.close = true;
        slot.size = self.overhead(slot);
        self.close_due = false;
        self.send_packet(cx, slot, SentKind::Reset);
    }

    /// Adds an ACK frame of at most `room` bytes, if there is anything to acknowledge.
    fn add_ack<R: Recorder>(&mut self, cx: &Cx<'_, R>, slot: &mut QuicPacket, room: u32) -> bool {
        let numbers = self.space_mut(slot.space);
        let rule = *numbers.policy.rule();
        let bounds = (rule.max_ranges, room);
        let written = numbers.received.write(cx.now, rule.exponent, bounds, &mut slot.ack);
        if written {
            numbers.policy.on_sent();
        }
        written
    }

    /// Current size of a packet, header and tag included.
    fn overhead(&self, slot: &QuicPacket) -> u32 {
        let numbers = &self.spaces[slot.space.index()];
        let header = self.cfg.profile.overhead.of(slot.space, numbers.next, numbers.largest_acked);
        header + sizes::frames(slot, &self.cfg.profile.overhead)
    }

    /// Header bytes of the next STREAM frame.
    fn stream_header(&self) -> u32 {
        self.cfg.profile.overhead.stream_header(self.send.peek_offset())
    }

    /// Numbers a finished packet and puts it in flight (`OnPacketSent`).
    fn send_packet<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut QuicPacket,
        kind: SentKind,
    ) {
        let eliciting = slot.is_ack_eliciting();
        let size = u64::from(slot.size);
        // After a pause, which replaces that of PROBE_RTT, the window may grow (bbr_cwnd_event).
        let restarted_from =
            (eliciting && self.bytes_in_flight == 0).then(|| self.cc.control().window);
        let delivery = match eliciting {
            true => self.cc.on_sent(cx.now, size, self.bytes_in_flight),
            false => DeliveryStamp::NONE,
        };
        if restarted_from.is_some_and(|before| before != self.cc.control().window) {
            self.record_window(cx, WindowChange::None, Some(Cause::Idle));
        }
        slot.ecn = self.ecn.mark(slot.space);
        let numbers = &mut self.spaces[slot.space.index()];
        slot.number = numbers.next;
        numbers.next += 1;
        self.order += 1;
        numbers.packets.push(SentQuicPacket {
            number: slot.number,
            order: self.order,
            at: cx.now,
            size: slot.size,
            ack_eliciting: eliciting,
            is_ect: slot.ecn != 0,
            frames: SentFrames {
                stream: slot.stream,
                crypto: slot.crypto,
                max_data: slot.max_data.is_some(),
                max_stream_data: slot.max_stream_data.is_some(),
                ack_frequency: slot.ack_frequency.is_some(),
                handshake_done: slot.handshake_done,
                connection_ids: slot.connection_ids > 0,
                acked: slot.ack.largest(),
            },
            delivery,
            settled: false,
        });
        self.handshake.bytes_sent += size;
        self.unanswered = if eliciting { 0 } else { self.unanswered.saturating_add(1) };
        if eliciting {
            self.latest = self.order;
            numbers.last_eliciting = cx.now;
            numbers.probes = numbers.probes.saturating_sub(1);
            self.bytes_in_flight += size;
        }
        if eliciting || self.pacer.counts_all_packets() {
            let basis = self.pacing_basis();
            self.pacer.on_sent(cx.now, size, basis);
        }
        if eliciting {
            self.set_loss_timer(cx.now);
        }
        if self.coalescing {
            return;
        }
        cx.emit_with_state(self, || {
            let at = slot.stream.map_or_else(|| self.snd_max(), |chunk| Offset(chunk.offset));
            Event::Sent { at, len: slot.payload(), kind }
        });
    }
}
