//! A packet came: RFC 9000 sections 12.2, 13 and 17, RFC 9001 section 4.

use machine::{Cx, Signal};
use record::Recorder;
use units::Duration;

use crate::ack_policy::Arrived;
use crate::endpoint::{Endpoint, State};
use crate::packet::{Chunk, Packet, Space};

impl Endpoint {
    pub(crate) fn input<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, packet: &Packet) {
        match self.state {
            State::Draining => return,
            State::Closing => {
                // Section 10.2.1: whoever still speaks is told again, if it has not closed too.
                self.close_due |= !packet.close;
                self.due |= self.close_due;
                return;
            }
            State::Idle if self.is_server() => self.begin(cx),
            State::Idle | State::Opening | State::Open => {}
        }
        let space = packet.space;
        // Section 8.1: what can be read or not counts alike.
        self.handshake.came += u64::from(packet.size);
        if !self.handshake.has_keys(space) {
            // Too early to be read, or the keys are gone: it is lost.
            self.due |= self.handshake.allowance(self.is_server()) > 0;
            return;
        }
        if space == Space::Handshake && self.is_server() {
            // RFC 9001 section 4.9.1; RFC 9000 section 8.1.
            self.handshake.validated = true;
            self.discard(cx, Space::Initial);
        }
        let now = cx.now;
        let numbers = self.numbers(space);
        if !numbers.received.insert(now, packet.number) {
            return;
        }
        if packet.close {
            self.abort(cx, State::Draining);
            return;
        }
        self.acknowledge(cx, packet);
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

    /// A server hears of a connection.
    fn begin<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.state = State::Opening;
        if self.handshake.flights.is_none() {
            self.establish(cx);
        }
    }

    /// Sees to it that a packet is acknowledged in time.
    fn acknowledge<R: Recorder>(&mut self, cx: &Cx<'_, R>, packet: &Packet) {
        let numbers = self.numbers(packet.space);
        let eliciting = packet.is_ack_eliciting();
        let expected = numbers.received.expected();
        if eliciting && packet.space == Space::Application {
            let reordering = numbers.policy.rule().reordering;
            let unreported =
                if reordering > 1 { numbers.received.unreported(reordering) } else { None };
            numbers.policy.on_eliciting(
                cx.now,
                &Arrived {
                    number: packet.number,
                    expected,
                    largest: numbers.received.largest_eliciting(),
                    unreported,
                },
            );
        } else if eliciting {
            numbers.policy.at_once();
        }
        numbers.received.pass(packet.number, eliciting);
        let most = numbers.policy.rule().max_ranges;
        numbers.received.bound(most);
    }

    /// Messages of the handshake came.
    fn on_crypto<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, space: Space, chunk: &Chunk) {
        let Some(flights) = self.handshake.flights else { return };
        let numbers = self.numbers(space);
        numbers.crypto_in.on_chunk(chunk);
        let come = numbers.crypto_in.in_order();
        let has = |flight: u32| come >= u64::from(flight);
        match (self.is_server(), space) {
            (false, Space::Initial) if has(flights.server_hello) => {
                self.handshake.install(Space::Handshake);
            }
            (false, Space::Handshake) if has(flights.server_rest) && !self.handshake.complete => {
                let finished = u64::from(flights.client_finished);
                self.numbers(Space::Handshake).crypto_out.write(finished);
                self.establish(cx);
            }
            (true, Space::Initial) if has(flights.client_hello) => {
                if self.handshake.has_keys(Space::Handshake) {
                    return;
                }
                let (hello, rest) = (flights.server_hello, flights.server_rest);
                self.numbers(Space::Initial).crypto_out.write(u64::from(hello));
                self.handshake.install(Space::Handshake);
                self.numbers(Space::Handshake).crypto_out.write(u64::from(rest));
            }
            (true, Space::Handshake)
                if has(flights.client_finished) && !self.handshake.complete =>
            {
                // RFC 9001 section 4.1.2: at a server complete is confirmed.
                self.handshake.confirmed = true;
                self.handshake.done_due = true;
                self.establish(cx);
                self.discard(cx, Space::Handshake);
            }
            _ => {}
        }
    }

    /// The frames of a 1-RTT packet.
    fn on_data<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, packet: &Packet) {
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
        if let Some(asked) = packet.ack_frequency {
            let delay = Duration::from_micros(asked.max_delay_us);
            let policy = &mut self.numbers(Space::Application).policy;
            policy.on_frequency(asked.threshold, delay, asked.reordering);
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
