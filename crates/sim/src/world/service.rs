//! The service of an endpoint after any input: transmission, application, timer.

use machine::{Endpoint as _, Signal};
use packet::Dir;
use record::Shortcuts;
use tcp::TcpEndpoint;
use units::{Bytes, Instant, unlikely};

use super::contents::PacketContents;
use super::listen::AcceptStage;
use super::network::{Network, cx};
use super::{CLIENT, SimEvent, Simulation};
use crate::app::Application;
use crate::observer::Observer;
use crate::scenario::{Close, TapPoint};
use crate::transport::TransportEndpoint;
use crate::udp::UDP_HEADER;

impl<O: Observer> Simulation<'_, O> {
    /// Services an endpoint after input: sends what is ready, runs the application or schedules it,
    /// sets the timer.
    pub(super) fn serve(&mut self, index: usize) {
        if !self.serve_after(index, |_, _| {}) {
            self.serve_slow(index, false);
        }
    }

    /// Passes input (`say`) to an awake TCP endpoint and services it, with one lookup for both;
    /// returns false, with no effect, for any other endpoint.
    #[inline(always)]
    pub(super) fn serve_after(
        &mut self,
        index: usize,
        say: impl FnOnce(&mut Network<'_, O>, &mut TcpEndpoint),
    ) -> bool {
        let Self { ends, network, turns, .. } = self;
        let end = &mut ends[index];
        let TransportEndpoint::Tcp(tcp) = &mut end.stack else { return false };
        say(network, tcp);
        if end.delays || !O::SHORTCUTS.has(Shortcuts::HOST) {
            self.serve_slow(index, false);
            return true;
        }
        // Fast path: TCP on a host without a delay, whose application reads all available data.
        let acts = loop {
            network.send_all(tcp, end.host, end.flow, end.route);
            match tcp.poll_data_signals() {
                Some(false) => {
                    if let Some(at) = tcp.deadline_before(end.armed) {
                        end.armed = Some(at);
                        network.calendar.push(at, SimEvent::Timer(index as u32));
                    }
                    return true;
                }
                Some(true)
                    if matches!(end.app, Application::Sink)
                        && end.stage == AcceptStage::Accepted => {}
                Some(true) => break true,
                None => break false,
            }
            network.count_turn(turns);
            end.read += tcp.read_up_to(&mut network.cx(end.host, end.flow), u64::MAX);
            if unlikely(tcp.at_end()) {
                if tcp.acknowledges_in_read() {
                    network.send_all(tcp, end.host, end.flow, end.route);
                }
                self.finish(index);
                break false;
            }
        };
        self.serve_slow(index, acts);
        true
    }

    /// Services any endpoint; `acts`: all ready segments are sent, and the application runs next.
    fn serve_slow(&mut self, index: usize, mut acts: bool) {
        loop {
            if !acts {
                self.drain(index);
                while let Some(signal) = self.next_signal(index) {
                    acts |= self.on_signal(index, signal);
                }
            }
            if !core::mem::take(&mut acts) {
                break;
            }
            self.count_turn();
            self.act(index);
        }
        let end = &mut self.ends[index];
        let at = end.stack.next_deadline();
        if at < end.armed.unwrap_or(Instant::MAX) {
            end.armed = Some(at);
            self.network.calendar.push(at, SimEvent::Timer(index as u32));
        }
    }

    #[inline(always)]
    fn next_signal(&mut self, index: usize) -> Option<Signal> {
        let end = &mut self.ends[index];
        end.stack.poll_signal(&mut self.network.cx(end.host, end.flow))
    }

    /// Sends all packets that an endpoint has ready.
    #[inline(always)]
    fn drain(&mut self, index: usize) {
        let Self { ends, network, .. } = self;
        let end = &mut ends[index];
        match &mut end.stack {
            TransportEndpoint::Tcp(tcp) => network.send_all(tcp, end.host, end.flow, end.route),
            TransportEndpoint::Quic(quic) if quic.wants_to_send() => self.send_quic(index),
            TransportEndpoint::Real(_) => self.send_real(index),
            TransportEndpoint::Udp(_) => self.send_datagrams(index),
            _ => {}
        }
    }

    /// Sends the datagrams that are due; ends the flow when its time is over.
    #[cold]
    fn send_datagrams(&mut self, index: usize) {
        let now = self.network.now;
        loop {
            let end = &mut self.ends[index];
            let TransportEndpoint::Udp(udp) = &mut end.stack else { return };
            let Some(number) = udp.poll(now) else { break };
            let ip = self.scenario.flows[index / 2].ip;
            let size = udp.packet_len(ip.header_len());
            let dir = if index % 2 == CLIENT { Dir::Forward } else { Dir::Reverse };
            let contents = PacketContents::udp(end.flow, dir, ip, number, udp.size);
            let (host, route) = (end.host, end.route);
            let id = self.network.slots.put_contents(contents);
            self.network.transmit_packet(host, route, id, size);
        }
        let TransportEndpoint::Udp(udp) = &mut self.ends[index].stack else { return };
        if udp.end(now) {
            self.ends[index].closed = true;
            self.ends[index ^ 1].closed = true;
            self.open -= 1;
        }
    }

    fn send_quic(&mut self, index: usize) {
        let network = &mut self.network;
        let end = &mut self.ends[index];
        let TransportEndpoint::Quic(quic) = &mut end.stack else { return };
        while quic.wants_to_send() {
            let Network { slots, observer, now, .. } = &mut *network;
            let mut cx = cx(&mut **observer, *now, end.host, end.flow);
            let datagram = slots.datagrams.reserve();
            let packet = slots.datagrams.get_mut(datagram);
            if quic.poll_transmit(&mut cx, packet).is_err() {
                slots.datagrams.release(datagram);
                return;
            }
            let size = packet.wire_len();
            let contents = PacketContents::quic(packet, datagram);
            let id = slots.put_contents(contents);
            network.look(end.host, TapPoint::Stack, true, id);
            network.transmit_packet(end.host, end.route, id, size);
        }
    }

    /// Sends all datagrams that a real implementation has ready.
    fn send_real(&mut self, index: usize) {
        let network = &mut self.network;
        let end = &mut self.ends[index];
        let TransportEndpoint::Real(real) = &mut end.stack else { return };
        let ip = self.scenario.flows[index / 2].ip;
        let dir = if index % 2 == CLIENT { Dir::Forward } else { Dir::Reverse };
        loop {
            let id = network.slots.real.reserve();
            let datagram = network.slots.real.get_mut(id);
            if !real.poll_transmit(network.now, datagram) {
                network.slots.real.release(id);
                return;
            }
            let headers = UDP_HEADER + u64::from(ip.header_len());
            let size = Bytes(datagram.bytes.len() as u64 + headers);
            let contents =
                PacketContents::real((end.flow, dir, ip), real.next_number(), datagram, id);
            let packet = network.slots.put_contents(contents);
            network.transmit_packet(end.host, end.route, packet, size);
        }
    }

    /// Returns true if the application runs at once.
    fn on_signal(&mut self, index: usize, signal: Signal) -> bool {
        let delay = self.scenario.hosts[usize::from(self.ends[index].host)].delay;
        match signal {
            Signal::Closed | Signal::Aborted => {
                self.on_closed(index, signal == Signal::Aborted);
                return false;
            }
            // Its application begins when it takes the connection.
            Signal::Connected if self.waits(index) => {}
            Signal::Connected => self.ends[index].app.begin(self.network.now + delay),
            Signal::Writable | Signal::Readable => {}
        }
        let delays = self.ends[index].delays;
        if delays {
            self.schedule_app(index, self.network.now + delay);
        }
        !delays
    }

    #[cold]
    fn on_closed(&mut self, index: usize, aborted: bool) {
        if aborted {
            self.check_failures();
        }
        let (one, other) = (index, index ^ 1);
        let was_over = self.ends[one].closed && self.ends[other].closed;
        self.ends[one].closed = true;
        self.ends[one].gone |= aborted;
        // The peer of a reset learns of it from the segment.
        let is_reset =
            self.ends[one].was_reset || self.network.reset_flows.contains(&self.ends[one].flow);
        self.ends[other].closed |= aborted && !is_reset;
        if !was_over && self.ends[other].closed {
            self.open -= 1;
            self.retire(index / 2);
        }
        if aborted {
            self.abandon_page(index / 2);
        }
    }

    pub(super) fn schedule_app(&mut self, index: usize, at: Instant) {
        let end = &mut self.ends[index];
        if end.app_at.is_none_or(|set| at < set) {
            end.app_at = Some(at);
            self.network.calendar.push(at, SimEvent::App(index as u32));
        }
    }

    /// Runs the application: it reads, writes and closes; the endpoint is serviced afterwards.
    pub(super) fn act(&mut self, index: usize) {
        if self.waits(index) {
            return;
        }
        let end = &mut self.ends[index];
        if end.app.only_reads() {
            let read = end.stack.read_up_to(&mut self.network.cx(end.host, end.flow), u64::MAX);
            end.read += read;
            end.app.read(self.network.now, read);
            if end.stack.at_end() {
                if end.stack.acknowledges_in_read() {
                    self.drain(index);
                }
                self.finish(index);
            }
            return;
        }
        let now = self.network.now;
        loop {
            let end = &mut self.ends[index];
            let mut cx = self.network.cx(end.host, end.flow);
            let read = end.stack.read_up_to(&mut cx, end.app.most(now));
            end.read += read;
            end.app.read(now, read);
            if read > 0 && end.stack.acknowledges_in_read() {
                self.drain(index);
            }
            if unlikely(self.ends[index].app.fetches()) {
                self.fetch(index);
            }
            let end = &mut self.ends[index];
            let mut cx = self.network.cx(end.host, end.flow);
            let offered = end.app.offer(now);
            let taken = if offered == 0 { 0 } else { end.stack.write(&mut cx, offered) };
            if taken == 0 {
                break;
            }
            end.app.taken(now, taken);
            // Every write calls the stack's output routine, which may free buffer space.
            self.drain(index);
        }
        let end = &mut self.ends[index];
        if end.app.done(now, end.stack.at_end()) {
            self.finish(index);
        } else if end.stack.at_end() && matches!(end.app, Application::Reader(_)) {
            self.note_end_of_data(index);
        }
        let end = &self.ends[index];
        if let Some(at) = end.app.next_act(now).filter(|&at| at > now) {
            let writes_in_vain = end.gone && index % 2 == CLIENT;
            if !writes_in_vain {
                self.schedule_app(index, at);
            }
        }
    }

    /// Closes after the application has written and read all its data.
    #[cold]
    fn finish(&mut self, index: usize) {
        let end = &mut self.ends[index];
        if index % 2 == CLIENT && self.scenario.flows[index / 2].close == Close::Reset {
            if !core::mem::replace(&mut end.was_reset, true) {
                end.stack.reset(&mut self.network.cx(end.host, end.flow));
            }
        } else {
            end.stack.close(self.network.now);
        }
        self.note_end_of_data(index);
    }

    /// The transfer completes when all of the counted bytes are read.
    fn note_end_of_data(&mut self, index: usize) {
        let connection = &mut self.flows[index / 2];
        if index % 2 != usize::from(connection.sender) {
            connection.read_all_at.get_or_insert(self.network.now);
        }
    }
}
