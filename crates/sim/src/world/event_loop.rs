//! Processing of events, and of packets at an endpoint.

use core::hint::cold_path;

use machine::{Cx, Endpoint as _, PacketId};
use packet::{Dir, PacketTooBig, Segment};
use record::{Event, Recorder, Shortcuts};
use tcp::TcpEndpoint;
use units::Offset;

use super::contents::TransportHeader;
use super::external::{ExternalDelivery, ExternalPacket};
use super::network::{Network, cx};
use super::packet_slots::StoredPacket;
use super::{CLIENT, SERVER, SimEvent, Simulation, end_of};
use crate::observer::Observer;
use crate::scenario::TapPoint;
use crate::transport::TransportEndpoint;

/// Passes a merged segment, or one with options, to an endpoint.
fn receive_cold<R: Recorder>(tcp: &mut TcpEndpoint, cx: &mut Cx<'_, R>, segment: &Segment) {
    if segment.is_aggregate() {
        let packets = segment.packets().max(u32::from(segment.nsegs)) as u16;
        cx.emit(|| Event::Aggregated { packets, bytes: segment.payload });
    }
    tcp.handle_segment(cx, segment);
}

/// Passes an ICMP error to an endpoint, unless it quotes no segment in flight.
#[cold]
fn receive_too_big<R: Recorder>(tcp: &mut TcpEndpoint, cx: &mut Cx<'_, R>, message: &PacketTooBig) {
    if tcp.quotes_in_flight(message.seq) {
        tcp.on_path_mtu(cx, message.mtu);
    }
}

impl<O: Observer> Simulation<'_, O> {
    // Events.

    #[inline(always)]
    pub(super) fn happen(&mut self, wake: SimEvent) {
        match wake {
            SimEvent::ElementIndex(hop_index) => self.run_element(hop_index),
            other => self.process_slow(other),
        }
    }

    /// The less frequent events.
    fn process_slow(&mut self, wake: SimEvent) {
        match wake {
            SimEvent::Start(flow) => self.open(flow),
            SimEvent::ElementIndex(_) => {}
            SimEvent::Accept(host) => self.accept(host),
            // The interrupt includes the packets that arrive at the same instant.
            SimEvent::NicInterrupt(card)
                if self.network.nics[usize::from(card)].interrupts_last()
                    && self.network.calendar.next_at() == Some(self.network.now) =>
            {
                self.network.calendar.push(self.network.now, SimEvent::NicLast(card));
            }
            SimEvent::NicInterrupt(card) | SimEvent::NicLast(card) => self.run_card(card),
            SimEvent::Timer(index)
                if self.network.calendar.next_at() == Some(self.network.now)
                    && self.only_paces(index as usize) =>
            {
                self.network.calendar.push(self.network.now, SimEvent::TimerLast(index));
            }
            SimEvent::Timer(index) | SimEvent::TimerLast(index) => self.run_timer(index as usize),
            SimEvent::App(index)
                if self.flows[index as usize / 2].reads_last
                    && self.network.calendar.next_at() == Some(self.network.now) =>
            {
                self.network.calendar.push(self.network.now, SimEvent::AppLast(index));
            }
            SimEvent::App(index) | SimEvent::AppLast(index) => self.run_app(index as usize),
        }
    }

    fn open(&mut self, flow: u32) {
        let index = end_of(flow as usize, CLIENT);
        self.wake_endpoint(index);
        let end = &mut self.ends[index];
        end.stack.open(&mut self.network.cx(end.host, end.flow));
        self.serve(index);
    }

    #[inline(always)]
    fn run_element(&mut self, index: u32) {
        let now = self.network.now;
        let mut hop_index = &mut self.network.hops[index as usize];
        if !hop_index.is_due(now) {
            return;
        }
        if !(O::SHORTCUTS.has(Shortcuts::ELEMENT) && hop_index.is_simple()) {
            return if hop_index.keeps_order() {
                self.run_shared_element(index);
            } else {
                self.run_element_slow(index);
            };
        }
        while let Some((id, next)) = hop_index.leave(now) {
            self.network.record_departure(index, id);
            if let Some(host) = self.network.carry(id) {
                self.arrive(host, id);
            }
            if self.network.has_copies() {
                self.send_copies();
            }
            let Some((at, first)) = next else { return };
            if at > now {
                self.network.slots.prefetch(first);
                return self.network.calendar.push(at, SimEvent::ElementIndex(index));
            }
            cold_path();
            hop_index = &mut self.network.hops[index as usize];
        }
    }

    /// Runs an element whose departures may cause new arrivals at it at the same instant: it is not
    /// scheduled until those are processed.
    fn run_shared_element(&mut self, index: u32) {
        let now = self.network.now;
        while let Some((id, _)) = self.network.hops[index as usize].leave(now) {
            self.network.hops[index as usize].armed = None;
            self.network.record_departure(index, id);
            if let Some(host) = self.network.carry(id) {
                self.arrive(host, id);
            }
            if self.network.has_copies() {
                self.send_copies();
            }
            let hop_index = &mut self.network.hops[index as usize];
            let Some((at, first)) = hop_index.first() else { return };
            if at > now {
                self.network.slots.prefetch(first);
                // The first departure of a FIFO element may be scheduled already.
                if hop_index.armed.is_none() {
                    hop_index.armed = Some(at);
                    self.network.calendar.push(at, SimEvent::ElementIndex(index));
                }
                return;
            }
        }
        self.network.schedule_element(index);
    }

    /// Runs an element of any other kind.
    fn run_element_slow(&mut self, index: u32) {
        while let Some(id) = self.network.leaving(index) {
            if let Some(host) = self.network.carry(id) {
                self.arrive(host, id);
            }
            self.send_copies();
            if !self.network.more_departures(index) {
                return;
            }
        }
        self.network.schedule_element(index);
    }

    /// Forwards copies, after their originals.
    fn send_copies(&mut self) {
        while let Some(copy) = self.network.next_copy() {
            if let Some(host) = self.network.carry(copy) {
                self.arrive(host, copy);
            }
        }
    }

    fn run_card(&mut self, host: u16) {
        let (segments, unmerged) = self.network.interrupt(host);
        for segment in &segments {
            let id = self.network.slots.put(segment);
            self.deliver_within_pass(host, id);
        }
        unmerged.iter().for_each(|&id| self.deliver_within_pass(host, id));
        self.network.nics[usize::from(host)].recycle(segments, unmerged);
    }

    /// Delivers within an interrupt: its thread completes before any process that it wakes.
    fn deliver_within_pass(&mut self, host: u16, id: PacketId) {
        let end = self.receiver(id);
        let delays = core::mem::replace(&mut self.ends[end].delays, true);
        self.deliver(host, id);
        self.ends[end].delays = delays;
    }

    /// Is pacing by a high-resolution timer all that is due at an endpoint?
    fn only_paces(&mut self, index: usize) -> bool {
        if self.ends[index].stack.sleeps() {
            self.wake_endpoint(index);
        }
        self.ends[index].stack.only_paces(self.network.now)
    }

    fn run_timer(&mut self, index: usize) {
        let end = &mut self.ends[index];
        end.armed = end.armed.filter(|&at| at > self.network.now);
        if end.stack.sleeps() {
            self.wake_endpoint(index);
        }
        // The event may be stale: the deadline has moved on.
        let end = &mut self.ends[index];
        end.stack.handle_timeout(&mut self.network.cx(end.host, end.flow));
        self.serve(index);
    }

    fn run_app(&mut self, index: usize) {
        let end = &mut self.ends[index];
        end.app_at = end.app_at.filter(|&at| at > self.network.now);
        if end.stack.sleeps() {
            self.wake_endpoint(index);
        }
        self.act(index);
        self.serve(index);
    }

    // Packets at an endpoint.

    /// Delivers a packet to its host.
    #[inline(always)]
    fn arrive(&mut self, host: u16, id: PacketId) {
        if O::SHORTCUTS.has(Shortcuts::HOST) && self.network.delivers_directly(host) {
            self.take_up(host, id);
        } else {
            self.arrive_slow(host, id);
        }
    }

    /// Delivers a packet to a host with a tap or a batching card.
    fn arrive_slow(&mut self, host: u16, id: PacketId) {
        self.network.look(host, TapPoint::Wire, false, id);
        if self.network.delivers_on_arrival(host) {
            self.deliver(host, id);
        } else {
            self.network.queue_in_nic(host, id);
        }
    }

    /// Passes a segment, possibly merged, to the stack.
    fn deliver(&mut self, host: u16, id: PacketId) {
        self.network.look(host, TapPoint::Stack, false, id);
        self.take_up(host, id);
    }

    /// Returns the endpoint that a packet is addressed to.
    #[inline(always)]
    fn receiver(&self, id: PacketId) -> usize {
        let (flow, dir) = self.network.slots.flow(id);
        end_of(flow.0 as usize, if dir == Dir::Forward { SERVER } else { CLIENT })
    }

    fn take_up(&mut self, host: u16, id: PacketId) {
        let index = self.receiver(id);
        let waits = self.waits(index);
        if waits && self.refuses(index, id) {
            return self.network.slots.release(id);
        }
        let (flow, _) = self.network.slots.flow(id);
        let received = self.serve_after(index, |network, tcp| {
            let Network { slots, observer, now, .. } = network;
            let mut cx = cx(&mut **observer, *now, host, flow);
            let contents = slots.contents(id);
            // Setup rejects a flow that connects TCP and QUIC.
            let TransportHeader::Tcp(header) = &contents.transport else {
                if let StoredPacket::TooBig(message) = slots.packet(id) {
                    receive_too_big(tcp, &mut cx, &message);
                }
                return slots.release(id);
            };
            match header.cold() {
                Some(number) => receive_cold(tcp, &mut cx, slots.take_cold(id, number)),
                None => {
                    tcp.handle_segment_with(&mut cx, || contents.segment(header));
                    slots.release_inline(id);
                }
            }
        });
        if !received {
            cold_path();
            self.receive_slow(index, id);
        }
        if waits {
            self.queue_if_established(index);
        }
    }

    /// Delivers a UDP datagram, and counts it as read.
    fn receive_datagram(&mut self, index: usize, id: PacketId, number: u32) {
        let now = self.network.now;
        self.network.slots.release(id);
        let sent = match &self.ends[index ^ 1].stack {
            TransportEndpoint::Udp(peer) => peer.sent_at(number),
            _ => None,
        };
        let end = &mut self.ends[index];
        let TransportEndpoint::Udp(udp) = &mut end.stack else { return };
        if udp.receive(now, number, sent) {
            let bytes = udp.size;
            end.read += u64::from(bytes);
            let total = Offset(end.read);
            let mut cx = self.network.cx(end.host, end.flow);
            cx.emit(|| Event::AppRead { bytes, total });
            self.note_all_datagrams(index / 2);
        }
        self.serve(index);
    }

    /// A flow of datagrams is complete when all have arrived, or all replies.
    fn note_all_datagrams(&mut self, flow: usize) {
        let ends = [CLIENT, SERVER].map(|side| &self.ends[end_of(flow, side)].stack);
        if let [TransportEndpoint::Udp(source), TransportEndpoint::Udp(sink)] = ends
            && source.sent_all()
            && source.outcome(sink).is_some_and(|counts| counts.received == counts.sent)
        {
            self.flows[flow].read_all_at.get_or_insert(self.network.now);
        }
    }

    /// Delivers to QUIC, to an external stack, or to a hibernated endpoint.
    fn receive_slow(&mut self, index: usize, id: PacketId) {
        let end = &mut self.ends[index];
        if end.stack.sleeps() {
            let host = end.host;
            self.wake_endpoint(index);
            return self.take_up(host, id);
        }
        if let StoredPacket::Udp { number } = self.network.slots.packet(id) {
            return self.receive_datagram(index, id, number);
        }
        let Network { slots, observer, now, .. } = &mut self.network;
        match (&mut end.stack, slots.packet(id)) {
            (TransportEndpoint::Outside, StoredPacket::Tcp(segment)) => {
                self.outside.push(ExternalDelivery {
                    at: *now,
                    host: usize::from(end.host),
                    packet: ExternalPacket::Tcp(segment),
                });
            }
            (TransportEndpoint::Outside, StoredPacket::TooBig(message)) => {
                self.outside.push(ExternalDelivery {
                    at: *now,
                    host: usize::from(end.host),
                    packet: ExternalPacket::TooBig(message),
                });
            }
            (TransportEndpoint::Quic(quic), StoredPacket::Quic(packet)) => {
                let mut cx = cx(&mut **observer, *now, end.host, end.flow);
                quic.handle_segment(&mut cx, packet);
            }
            (TransportEndpoint::Real(real), StoredPacket::Real { bytes, ecn }) => {
                let mut cx = cx(&mut **observer, *now, end.host, end.flow);
                real.receive(&mut cx, bytes, ecn);
            }
            _ => {}
        }
        slots.release(id);
        self.serve(index);
    }
}
