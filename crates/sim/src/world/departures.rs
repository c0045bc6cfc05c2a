//! Departures: what the end of a flow sends goes down from its stack to the card of its host and sets
//! out on its road.

use core::hint::cold_path;

use machine::{Endpoint as _, PacketId};
use net::offload::split;
use record::{Movement, PacketNumber};
use tcp::Endpoint;
use units::{Bytes, FlowId, HostId};

use super::contents::Contents;
use super::packet_slots::Way;
use super::packets::{Network, cx};
use crate::observer::Observer;
use crate::scenario::TapPlace;

impl<O: Observer> Network<'_, O> {
    /// Sends all that an endpoint of TCP wants to send.
    #[inline(always)]
    pub(super) fn send_all(&mut self, tcp: &mut Endpoint, host: u16, flow: FlowId, road: u32) {
        while tcp.wants_to_send() {
            let Self { observer, now, model, .. } = &mut *self;
            let mut cx = cx(&mut **observer, *now, host, flow);
            if tcp.poll_transmit(&mut cx, model).is_err() {
                return;
            }
            self.depart(host, road);
            if tcp.train() > 1 {
                self.send_train(tcp, host, flow, road);
            }
        }
    }

    /// Sends the rest of a burst: packets that leave the host at the same instant as the model and differ
    /// from it in their sequence number alone.
    #[inline(never)]
    fn send_train(&mut self, tcp: &mut Endpoint, host: u16, flow: FlowId, road: u32) {
        let size = self.model.packet_len();
        let template = Contents::inline(&self.model);
        for _ in 0..tcp.begin_train(self.now, &self.model) {
            let Self { slots, observer, now, model, .. } = &mut *self;
            tcp.next_of_train(&mut cx(&mut **observer, *now, host, flow), model);
            let id = match &template {
                Some(template) => slots.put_like(template, model.seq),
                None => slots.put(model),
            };
            self.look(host, TapPlace::Stack, true, id);
            self.set_out(host, road, id, size);
        }
    }

    /// The model, a segment that its stack has written, leaves the host, a burst as the packets that the
    /// card makes of it.
    #[inline(never)]
    pub(super) fn depart(&mut self, host: u16, road: u32) {
        if self.model.gso_size != 0 {
            return self.depart_split(host, road);
        }
        let id = self.slots.put(&self.model);
        self.look(host, TapPlace::Stack, true, id);
        let size = self.model.packet_len();
        self.set_out(host, road, id, size);
    }

    /// The card splits a burst.
    #[inline(never)]
    fn depart_split(&mut self, host: u16, road: u32) {
        let id = self.slots.put(&self.model);
        self.look(host, TapPlace::Stack, true, id);
        self.slots.release(id);
        let burst = self.model;
        for segment in split(&burst) {
            let id = self.slots.put(&segment);
            self.depart_one(host, road, id, segment.wire_len());
        }
    }

    /// A packet leaves the host.
    #[inline(never)]
    pub(super) fn depart_one(&mut self, host: u16, road: u32, id: PacketId, size: Bytes) {
        self.set_out(host, road, id, size);
    }

    #[inline(always)]
    fn set_out(&mut self, host: u16, road: u32, id: PacketId, size: Bytes) {
        let number = PacketNumber(self.packets);
        self.packets += 1;
        let way = Way::new(number, size, road);
        self.look(host, TapPlace::Wire, true, id);
        self.step(|network| {
            let packet = network.slots.contents(id);
            Movement::Departed {
                host: HostId(host),
                flow: packet.flow,
                packet: number,
                seq: packet.seq,
                len: packet.payload,
                size: size.get() as u32,
                capable: packet.ecn != 0,
            }
        });
        if let Some(host) = self.carry_on::<false>(id, way) {
            cold_path();
            // Over a road that takes no time: two hosts would answer each other within one call, in
            // the midst of a burst.
            self.look(host, TapPlace::Wire, false, id);
            self.wait_in_card(host, id);
        }
        if self.has_copies() {
            self.send_copies();
        }
    }

    #[cold]
    fn send_copies(&mut self) {
        while let Some(copy) = self.copies.pop() {
            if let Some(host) = self.carry(copy) {
                self.look(host, TapPlace::Wire, false, copy);
                self.wait_in_card(host, copy);
            }
        }
    }
}
