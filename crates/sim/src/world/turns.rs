//! What the calendar asks for, and what packets do to an end.

use core::hint::cold_path;

use machine::{Cx, Endpoint as _, PacketId};
use packet::{Dir, Segment};
use record::{Event, Recorder};
use tcp::Endpoint;

use super::contents::Header;
use super::outside::Leaving;
use super::packet_slots::Packet;
use super::packets::{Network, cx};
use super::{CLIENT, SERVER, Wake, World, end_of};
use crate::card::Received;
use crate::observer::Observer;
use crate::scenario::TapPlace;
use crate::transport::Transport;

/// An endpoint receives a segment with options, or a merged one.
#[inline(never)]
fn receive_cold<R: Recorder>(tcp: &mut Endpoint, cx: &mut Cx<'_, R>, segment: &Segment) {
    if segment.merged() {
        let packets = segment.packets().max(u32::from(segment.nsegs)) as u16;
        cx.emit(|| Event::Merged { packets, bytes: segment.payload });
    }
    tcp.handle_segment(cx, segment);
}

impl<O: Observer> World<'_, O> {
    // What the calendar asks for.

    #[inline(always)]
    pub(super) fn happen(&mut self, wake: Wake) {
        match wake {
            Wake::Station(station) => self.run_station(station),
            other => self.happen_otherwise(other),
        }
    }

    /// What is seldom.
    #[inline(never)]
    fn happen_otherwise(&mut self, wake: Wake) {
        match wake {
            Wake::Start(flow) => self.open(flow),
            Wake::Station(_) => {}
            // The interrupt takes along what arrives at its very moment.
            Wake::Card(card)
                if self.network.cards[usize::from(card)].moderates()
                    && self.network.calendar.next_at() == Some(self.network.now) =>
            {
                self.network.calendar.push(self.network.now, Wake::CardLast(card));
            }
            Wake::Card(card) | Wake::CardLast(card) => self.run_card(card),
            Wake::Timer(index) => self.run_timer(index as usize),
            Wake::App(index)
                if self.ends[index as usize].reads_last
                    && self.network.calendar.next_at() == Some(self.network.now) =>
            {
                self.network.calendar.push(self.network.now, Wake::AppLast(index));
            }
            Wake::App(index) | Wake::AppLast(index) => self.run_app(index as usize),
        }
    }

    fn open(&mut self, flow: u32) {
        let index = end_of(flow as usize, CLIENT);
        self.rouse(index);
        let end = &mut self.ends[index];
        end.stack.open(&mut self.network.cx(end.host, end.flow));
        self.serve(index);
    }

    #[inline(always)]
    fn run_station(&mut self, index: u32) {
        let now = self.network.now;
        let mut station = &mut self.network.stations[index as usize];
        if !station.is_due(now) {
            return;
        }
        if !station.is_simple() {
            return if station.keeps_order() {
                self.run_shared_station(index);
            } else {
                self.run_other_station(index);
            };
        }
        while let Some((id, next)) = station.leave(now) {
            self.network.note_left(index, id);
            if let Some(host) = self.network.carry(id) {
                self.arrive(host, id);
            }
            if self.network.has_copies() {
                self.send_copies();
            }
            let Some(at) = next else { return };
            if at > now {
                return self.network.calendar.push(at, Wake::Station(index));
            }
            cold_path();
            station = &mut self.network.stations[index as usize];
        }
    }

    /// The same where what leaves it may bring about that more comes to it at once: until that has come
    /// to rest nothing stands for the station.
    #[inline(never)]
    fn run_shared_station(&mut self, index: u32) {
        let now = self.network.now;
        while let Some((id, _)) = self.network.stations[index as usize].leave(now) {
            self.network.stations[index as usize].armed = None;
            self.network.note_left(index, id);
            if let Some(host) = self.network.carry(id) {
                self.arrive(host, id);
            }
            if self.network.has_copies() {
                self.send_copies();
            }
            let station = &mut self.network.stations[index as usize];
            let Some(at) = station.next_wake() else { return };
            if at > now {
                // What leaves such a station first is there already: it may be armed for that.
                if station.armed.is_none() {
                    station.armed = Some(at);
                    self.network.calendar.push(at, Wake::Station(index));
                }
                return;
            }
        }
        self.network.arm_station(index);
    }

    /// The same where the element may do anything.
    #[inline(never)]
    fn run_other_station(&mut self, index: u32) {
        while let Some(id) = self.network.leaving(index) {
            if let Some(host) = self.network.carry(id) {
                self.arrive(host, id);
            }
            self.send_copies();
            if !self.network.more_leave(index) {
                return;
            }
        }
        self.network.arm_station(index);
    }

    /// Copies go on behind what they were made of.
    #[inline(never)]
    fn send_copies(&mut self) {
        while let Some(copy) = self.network.next_copy() {
            if let Some(host) = self.network.carry(copy) {
                self.arrive(host, copy);
            }
        }
    }

    fn run_card(&mut self, host: u16) {
        let up = self.network.interrupt(host);
        match &up {
            Received::Tcp(segments) => {
                for segment in segments {
                    let id = self.network.slots.put(segment);
                    self.deliver_within_pass(host, id);
                }
            }
            Received::Quic(packets) => {
                packets.iter().for_each(|&id| self.deliver_within_pass(host, id));
            }
        }
        self.network.cards[usize::from(host)].give_back(up);
    }

    /// The thread of an interrupt runs to its end before any process that it wakes.
    fn deliver_within_pass(&mut self, host: u16, id: PacketId) {
        let end = self.receiver(id);
        let delays = core::mem::replace(&mut self.ends[end].delays, true);
        self.deliver(host, id);
        self.ends[end].delays = delays;
    }

    fn run_timer(&mut self, index: usize) {
        let end = &mut self.ends[index];
        end.armed = end.armed.filter(|&at| at > self.network.now);
        if end.stack.sleeps() {
            self.rouse(index);
        }
        // The entry may be an old one: the deadline has moved on since.
        let end = &mut self.ends[index];
        end.stack.handle_timeout(&mut self.network.cx(end.host, end.flow));
        self.serve(index);
    }

    fn run_app(&mut self, index: usize) {
        let end = &mut self.ends[index];
        end.app_at = end.app_at.filter(|&at| at > self.network.now);
        if end.stack.sleeps() {
            self.rouse(index);
        }
        self.act(index);
        self.serve(index);
    }

    // What packets do to an end.

    /// A packet has come to a host.
    #[inline(always)]
    fn arrive(&mut self, host: u16, id: PacketId) {
        if self.network.goes_up_unseen(host) {
            self.take_up(host, id);
        } else {
            self.arrive_seen(host, id);
        }
    }

    /// The same where somebody may look, or the card has to do with it.
    #[inline(never)]
    fn arrive_seen(&mut self, host: u16, id: PacketId) {
        self.network.look(host, TapPlace::Wire, false, id);
        if self.network.goes_up_at_once(host) {
            self.deliver(host, id);
        } else {
            self.network.wait_in_card(host, id);
        }
    }

    /// A segment, perhaps merged, reaches the stack.
    fn deliver(&mut self, host: u16, id: PacketId) {
        self.network.look(host, TapPlace::Stack, false, id);
        self.take_up(host, id);
    }

    /// The end that a packet is for.
    #[inline(always)]
    fn receiver(&self, id: PacketId) -> usize {
        let (flow, dir) = self.network.slots.flow(id);
        end_of(flow.0 as usize, if dir == Dir::Forward { SERVER } else { CLIENT })
    }

    #[inline(never)]
    fn take_up(&mut self, host: u16, id: PacketId) {
        let index = self.receiver(id);
        let (flow, _) = self.network.slots.flow(id);
        let received = self.serve_after(index, |network, tcp| {
            let Network { slots, observer, now, .. } = network;
            let mut cx = cx(&mut **observer, *now, host, flow);
            let contents = slots.contents(id);
            // A flow that joins TCP and QUIC is refused.
            let Header::Tcp(header) = &contents.transport else { return };
            match header.cold() {
                Some(number) => receive_cold(tcp, &mut cx, slots.take_cold(id, number)),
                None => {
                    tcp.handle_made(&mut cx, || contents.segment(header));
                    slots.release_inline(id);
                }
            }
        });
        if !received {
            cold_path();
            self.deliver_other(index, id);
        }
    }

    /// The same for QUIC, for a stack outside, and for one that sleeps.
    #[inline(never)]
    fn deliver_other(&mut self, index: usize, id: PacketId) {
        let end = &mut self.ends[index];
        if end.stack.sleeps() {
            let host = end.host;
            self.rouse(index);
            return self.take_up(host, id);
        }
        let Network { slots, observer, now, .. } = &mut self.network;
        match (&mut end.stack, slots.packet(id)) {
            (Transport::Outside, Packet::Tcp(segment)) => {
                self.outside.push(Leaving { at: *now, host: usize::from(end.host), segment });
            }
            (Transport::Quic(quic), Packet::Quic(packet)) => {
                let mut cx = cx(&mut **observer, *now, end.host, end.flow);
                quic.handle_segment(&mut cx, packet);
            }
            _ => {}
        }
        slots.release(id);
        self.serve(index);
    }
}
