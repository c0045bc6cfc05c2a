//! Transmission: segments pass from an endpoint's stack to its host's card and onto their route.

use core::hint::cold_path;

use machine::{Endpoint as _, PacketId};
use net::offload::split;
use packet::Flags;
use record::{PacketEvent, PacketNumber, Shortcuts};
use tcp::TcpEndpoint;
use units::{Bytes, Ecn, FlowId, HostId, SeqNum};

use super::contents::PacketContents;
use super::network::{Network, cx};
use super::packet_slots::RouteCursor;
use crate::observer::Observer;
use crate::scenario::TapPoint;

impl<O: Observer> Network<'_, O> {
    /// Sends all segments that a TCP endpoint has ready.
    #[inline(always)]
    pub(super) fn send_all(&mut self, tcp: &mut TcpEndpoint, host: u16, flow: FlowId, route: u32) {
        while tcp.wants_to_send() {
            let Self { observer, now, model, .. } = &mut *self;
            let mut cx = cx(&mut **observer, *now, host, flow);
            if tcp.poll_transmit(&mut cx, model).is_err() {
                return;
            }
            self.depart(host, route);
            let copies = O::SHORTCUTS.has(Shortcuts::BURST) && O::SHORTCUTS.has(Shortcuts::TRAIN);
            if copies && tcp.batch_packets() > 1 {
                self.send_burst(tcp, host, flow, route);
            }
        }
    }

    /// Sends the rest of a burst: packets that leave the host at the same instant as the template
    /// and differ from it only in their sequence number.
    fn send_burst(&mut self, tcp: &mut TcpEndpoint, host: u16, flow: FlowId, route: u32) {
        let size = self.model.packet_len();
        let template = PacketContents::inline(&self.model);
        for _ in 0..tcp.begin_batch(self.now, &self.model) {
            let Self { slots, observer, now, model, .. } = &mut *self;
            tcp.next_in_batch(&mut cx(&mut **observer, *now, host, flow), model);
            let id = match &template {
                Some(template) => slots.put_like(template, model.seq),
                None => slots.put(model),
            };
            self.look(host, TapPoint::Stack, true, id);
            self.enter_route(host, route, id, size);
        }
    }

    /// Transmits the template, a segment that its stack has written; the card splits a burst into
    /// packets.
    pub(super) fn depart(&mut self, host: u16, route: u32) {
        if self.model.gso_size != 0 {
            return self.transmit_split(host, route);
        }
        let id = self.slots.put(&self.model);
        self.look(host, TapPoint::Stack, true, id);
        let size = self.model.packet_len();
        self.enter_route(host, route, id, size);
    }

    /// Splits a burst in the card, or ahead of one that has no segmentation offload.
    fn transmit_split(&mut self, host: u16, route: u32) {
        let in_card = self.nics[usize::from(host)].splits();
        if in_card && self.has_taps() {
            let id = self.slots.put(&self.model);
            self.look(host, TapPoint::Stack, true, id);
            self.slots.release(id);
        }
        let size = core::mem::take(&mut self.model.gso_size);
        let burst = PacketContents::inline(&self.model);
        self.model.gso_size = size;
        match burst {
            Some(burst) => self.transmit_alike(host, route, &burst, size.into(), in_card),
            None => self.transmit_with_options(host, route, in_card),
        }
    }

    /// Transmits the packets of a burst without other options than timestamps: they differ from it in
    /// sequence number, length and control bits.
    fn transmit_alike(
        &mut self,
        host: u16,
        route: u32,
        burst: &PacketContents,
        size: u32,
        in_card: bool,
    ) {
        let headers = u64::from(self.model.header_len());
        let mut packet = *burst;
        let mut left = burst.payload;
        loop {
            let is_last = left <= size;
            packet.payload = left.min(size);
            packet.flags = if is_last {
                packet.flags | burst.flags.without(Flags::CWR)
            } else {
                packet.flags.without(Flags::PSH | Flags::FIN)
            };
            let id = self.slots.put_like(&packet, packet.seq);
            if !in_card {
                self.look(host, TapPoint::Stack, true, id);
            }
            let len = Bytes(headers + u64::from(packet.payload));
            self.enter_route(host, route, id, len);
            if is_last {
                return;
            }
            left -= size;
            packet.seq = SeqNum(packet.seq.0.wrapping_add(size));
            packet.flags = packet.flags.without(Flags::CWR);
        }
    }

    /// Transmits the packets of a burst with SACK blocks.
    #[cold]
    fn transmit_with_options(&mut self, host: u16, route: u32, in_card: bool) {
        let burst = self.model;
        for segment in split(&burst) {
            let id = self.slots.put(&segment);
            if !in_card {
                self.look(host, TapPoint::Stack, true, id);
            }
            self.transmit_packet(host, route, id, segment.wire_len());
        }
    }

    /// Transmits one packet.
    pub(super) fn transmit_packet(&mut self, host: u16, route: u32, id: PacketId, size: Bytes) {
        self.enter_route(host, route, id, size);
    }

    #[inline(always)]
    fn enter_route(&mut self, host: u16, route: u32, id: PacketId, size: Bytes) {
        let number = PacketNumber(self.packets);
        self.packets += 1;
        let way = RouteCursor::new(number, size, route);
        self.look(host, TapPoint::Wire, true, id);
        self.step(|network| {
            let packet = network.slots.contents(id);
            PacketEvent::Sent {
                host: HostId(host),
                flow: packet.flow,
                packet: number,
                seq: packet.seq,
                len: packet.payload,
                size: size.get() as u32,
                ecn: Ecn::from_bits(packet.ecn),
                tcp: network.slots.tcp_bits(id),
            }
        });
        if let Some(host) = self.forward_from::<false>(id, way) {
            cold_path();
            // The route has zero delay: immediate delivery would let two hosts answer each other
            // recursively, in the middle of a burst.
            self.look(host, TapPoint::Wire, false, id);
            self.queue_in_nic(host, id);
        }
        if self.has_copies() {
            self.send_copies();
        }
    }

    #[cold]
    fn send_copies(&mut self) {
        while let Some(copy) = self.copies.pop() {
            if let Some(host) = self.carry(copy) {
                self.look(host, TapPoint::Wire, false, copy);
                self.queue_in_nic(host, copy);
            }
        }
    }
}
