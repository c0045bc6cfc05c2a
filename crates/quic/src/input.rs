//! Packet input: RFC 9000 sections 12.2, 13 and 17, RFC 9001 section 4.

use machine::{Cx, Signal};
use packet::ECN_CE;
use record::Recorder;
use units::Duration;

use crate::ack_policy::PacketArrival;
use crate::endpoint::{QuicEndpoint, QuicState};
use crate::packet::{Chunk, QuicPacket, Space};

impl QuicEndpoint {
    /// Processes the packets of a datagram.
    pub(crate) fn input<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, packet: &QuicPacket) {
        self.input_packet(cx, packet);
        if let Some(coalesced) = &packet.coalesced {
            self.input(cx, coalesced);
        }
    }

    fn input_packet<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, packet: &QuicPacket) {
        match self.state {
            QuicState::Draining => return,
            QuicState::Closing => {
                // Section 10.2.1: repeat CONNECTION_CLOSE, unless the peer has closed too.
                self.close_due |= !packet.close;
                self.due |= self.close_due;
                return;
            }
            QuicState::Idle if self.is_server() => self.accept(cx),
            QuicState::Idle | QuicState::Opening | QuicState::Open => {}
        }
        let space = packet.space;
        // Section 8.1: undecryptable packets count too.
        self.handshake.bytes_received += u64::from(packet.size);
        if !self.handshake.has_keys(space) {
            // Keys not yet installed or already discarded: the packet is dropped.
            self.due |= self.handshake.allowance(self.is_server()) > 0;
            return;
        }
        self.silent_timeouts = 0;
        if space == Space::Handshake && self.is_server() {
            // RFC 9001 section 4.9.1; RFC 9000 section 8.1.
            self.handshake.validated = true;
            self.discard(cx, Space::Initial);
        }
        let now = cx.now;
        let numbers = self.space_mut(space);
        if !numbers.received.insert(now, packet.number) {
            return;
        }
        numbers.received.count_ecn(packet.ecn);
        if packet.close {
            self.abort(cx, QuicState::Draining);
            return;
        }
        self.schedule_ack(cx, packet);
        if !packet.ack.ranges.is_empty() {
            self.on_ack(cx, space, &packet.ack);
        }
        if let Some(chunk) = &packet.crypto {
            self.on_crypto(cx, space, chunk);
        }
        if space == Space::Application {
            self.on_data(cx, packet);
        }
        self.due = true;
    }

    /// Starts a server's connection on the first packet.
    fn accept<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.state = QuicState::Opening;
        if self.handshake.flights.is_none() {
            self.establish(cx);
        }
    }

    /// Schedules the acknowledgment of a packet.
    fn schedule_ack<R: Recorder>(&mut self, cx: &Cx<'_, R>, packet: &QuicPacket) {
        let numbers = self.space_mut(packet.space);
        let eliciting = packet.is_ack_eliciting();
        let marks = numbers.policy.rule().marks_at_once && packet.ecn == ECN_CE;
        let at_once = marks || packet.immediate_ack;
        let expected = numbers.received.expected();
        if eliciting && packet.space == Space::Application {
            let reordering = numbers.policy.rule().reordering;
            let unreported =
                if reordering > 1 { numbers.received.unreported(reordering) } else { None };
            numbers.policy.on_eliciting(
                cx.now,
                &PacketArrival {
                    number: packet.number,
                    expected,
                    largest: numbers.received.largest_eliciting(),
                    unreported,
                },
            );
            if at_once {
                numbers.policy.ack_at_once();
            }
        } else if eliciting {
            numbers.policy.ack_immediately();
        }
        numbers.received.advance(packet.number, eliciting);
        let most = numbers.policy.rule().max_ranges;
        numbers.received.limit_ranges(most);
    }

    /// Processes a CRYPTO frame.
    fn on_crypto<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, space: Space, chunk: &Chunk) {
        let Some(flights) = self.handshake.flights else { return };
        let numbers = self.space_mut(space);
        numbers.crypto_in.on_chunk(chunk);
        let contiguous = numbers.crypto_in.in_order();
        let has = |flight: u32| contiguous >= u64::from(flight);
        match (self.is_server(), space) {
            (false, Space::Initial) if has(flights.server_hello) => {
                self.handshake.install(Space::Handshake);
            }
            (false, Space::Handshake) if has(flights.server_rest) && !self.handshake.complete => {
                let finished = u64::from(flights.client_finished);
                self.space_mut(Space::Handshake).crypto_out.write(finished);
                self.establish(cx);
            }
            (true, Space::Initial) if has(flights.client_hello) => {
                if self.handshake.has_keys(Space::Handshake) {
                    return;
                }
                let (hello, rest) = (flights.server_hello, flights.server_rest);
                self.space_mut(Space::Initial).crypto_out.write(u64::from(hello));
                self.handshake.install(Space::Handshake);
                self.space_mut(Space::Handshake).crypto_out.write(u64::from(rest));
            }
            (true, Space::Handshake)
                if has(flights.client_finished) && !self.handshake.complete =>
            {
                // RFC 9001 section 4.1.2: a server confirms the handshake when it completes.
                self.handshake.confirmed = true;
                self.handshake.done_due = true;
                self.establish(cx);
                self.discard(cx, Space::Handshake);
            }
            _ => {}
        }
    }

    /// Processes the frames of a 1-RTT packet.
    fn on_data<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, packet: &QuicPacket) {
        if packet.handshake_done && !self.handshake.confirmed {
            self.handshake.confirmed = true;
            self.handshake.validated = true;
            self.discard(cx, Space::Handshake);
        }
        if let Some(max) = packet.max_data {
            self.flow.on_max_data(max);
        }
        if let Some(max) = packet.max_stream_data {
            self.flow.on_max_stream_data(max);
        }
        if let Some(requested) = packet.ack_frequency {
            let delay = Duration::from_micros(requested.max_delay_us);
            let policy = &mut self.space_mut(Space::Application).policy;
            policy.on_frequency(requested.threshold, delay, requested.reordering);
        }
        if let Some(chunk) = &packet.stream {
            if chunk.len > 0 {
                self.totals.received_bytes += u64::from(packet.size);
            }
            if self.recv.on_chunk(chunk) {
                self.signal(Signal::Readable);
            }
            self.check_finished(cx);
        }
    }
}
