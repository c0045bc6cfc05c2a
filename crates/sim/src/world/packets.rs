//! Packets on their way: from the card of one host, over the stations of a road, to the card and
//! the stack of another.

use machine::{Cx, Endpoint as _, Fate, PacketId, Verdict};
use net::offload::split;
use packet::Dir;
use record::{Event, Movement, PacketNumber, StationId, Who};
use units::{Bytes, FlowId, HostId, SeqNum};

use super::parcels::Way;
use super::{CLIENT, SERVER, Wake, World, end_of};
use crate::datagrams::number_of;
use crate::observer::Observer;
use crate::road::Stop;
use crate::scenario::TapPlace;
use crate::transport::Transport;

impl<O: Observer> World<'_, O> {
    pub(super) fn run_station(&mut self, index: usize) {
        // An entry that was overtaken by an earlier one: the station has armed itself anew since.
        let station = &mut self.stations[index];
        if station.armed != Some(self.now) {
            return;
        }
        station.armed = None;
        while let Some(id) = self.stations[index].wake(self.now) {
            self.step(|world| Movement::Left {
                station: StationId(index as u32),
                packet: world.parcels.way(id).number,
            });
            self.settle_fates(index);
            self.advance(id);
        }
        self.arm_station(index);
    }

    /// Tells a step of a packet, if anybody wants to know.
    #[inline(always)]
    fn step(&mut self, movement: impl FnOnce(&Self) -> Movement) {
        if O::PACKETS {
            let movement = movement(self);
            self.observer.moved(self.now, movement);
        }
    }

    /// A segment that its stack has written leaves the host, a burst as the packets that the card
    /// makes of it.
    #[inline]
    pub(super) fn depart(&mut self, host: u16, road: u32, id: PacketId) {
        self.look(host, TapPlace::Stack, true, id);
        let segment = self.parcels.segment(id);
        if segment.gso_size == 0 {
            return self.depart_one(host, road, id);
        }
        let burst = *segment;
        self.parcels.release(id);
        for segment in split(&burst) {
            let id = self.parcels.put(segment);
            self.depart_one(host, road, id);
        }
    }

    /// Sends all that a QUIC endpoint wants to send.
    pub(super) fn drain_quic(&mut self, index: usize) {
        loop {
            let end = &mut self.ends[index];
            let (host, road) = (end.host, end.road);
            let Transport::Quic(quic) = &mut end.stack else { return };
            if !quic.wants_to_send() {
                return;
            }
            let who = Who { host: HostId(host), flow: FlowId((index / 2) as u32) };
            let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
            let number = self.datagrams.reserve();
            if quic.poll_transmit(&mut cx, self.datagrams.get_mut(number)).is_err() {
                self.datagrams.release(number);
                return;
            }
            let segment = self.datagrams.stand_in(number);
            let size = self.datagrams.get(number).wire_len();
            let id = self.parcels.put(segment);
            self.depart_sized(host, road, id, size);
        }
    }

    #[inline]
    fn depart_one(&mut self, host: u16, road: u32, id: PacketId) {
        let size = self.parcels.segment(id).wire_len();
        self.depart_sized(host, road, id, size);
    }

    fn depart_sized(&mut self, host: u16, road: u32, id: PacketId, size: Bytes) {
        let number = PacketNumber(self.packets);
        self.packets += 1;
        *self.parcels.way_mut(id) = Way::new(number, size, road);
        self.look(host, TapPlace::Wire, true, id);
        self.step(|world| {
            let packet = world.parcels.segment(id);
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
        self.departing = true;
        self.advance(id);
        self.departing = false;
    }

    #[inline]
    fn arm_station(&mut self, index: usize) {
        let station = &mut self.stations[index];
        // What leaves such a station first is there already.
        if station.armed.is_some() && station.keeps_order() {
            return;
        }
        let Some(at) = station.next_wake() else { return };
        if station.armed.is_none_or(|armed| at < armed) {
            station.armed = Some(at);
            self.calendar.push(at, Wake::Station(index as u32));
        }
    }

    /// A packet goes on its way, and so does every copy made of it.
    #[inline]
    fn advance(&mut self, id: PacketId) {
        self.carry(id);
        while let Some(copy) = self.copies.pop() {
            self.carry(copy);
        }
    }

    /// A packet comes to the next station and passes those that let it, or comes to the end of
    /// its road.
    fn carry(&mut self, id: PacketId) {
        loop {
            let way = self.parcels.way_mut(id);
            let index = match self.roads.stop(way.next) {
                Stop::Station(index) => index,
                Stop::Host(host) => return self.arrive(host, id),
            };
            way.next += 1;
            let (station, packet) = (StationId(index), way.number);
            let size = Bytes(u64::from(way.size()));
            let segment = || self.parcels.segment(id);
            match self.stations[index as usize].accept(self.now, id, size, segment) {
                Verdict::Taken => {
                    self.step(|_| Movement::Entered { station, packet });
                    self.settle_fates(index as usize);
                    return self.arm_station(index as usize);
                }
                Verdict::Replaced(old) => {
                    self.step(|_| Movement::Entered { station, packet });
                    self.lose(station, old);
                    return self.arm_station(index as usize);
                }
                Verdict::Dropped => return self.lose(station, id),
                Verdict::Passed => self.step(|_| Movement::Entered { station, packet }),
                Verdict::Damaged => {
                    self.parcels.way_mut(id).damage();
                    self.step(|_| Movement::Entered { station, packet });
                    self.step(|_| Movement::Damaged { station, packet });
                }
                Verdict::Doubled => {
                    let copy = PacketNumber(self.packets);
                    self.packets += 1;
                    self.step(|_| Movement::Entered { station, packet });
                    self.step(|_| Movement::Copied { station, packet, copy });
                    self.step(|_| Movement::Entered { station, packet: copy });
                    self.step(|_| Movement::Left { station, packet: copy });
                    let twin = self.parcels.copy(id, copy);
                    if let Some(number) = number_of(self.parcels.segment(twin)) {
                        let datagram = self.datagrams.copy(number);
                        self.parcels.segment_mut(twin).ack = SeqNum(datagram);
                    }
                    self.copies.push(twin);
                }
            }
            self.step(|_| Movement::Left { station, packet });
            // It may have released another.
            self.arm_station(index as usize);
        }
    }

    /// A queue that thins itself out marks and loses packets that it has.
    #[inline(always)]
    fn settle_fates(&mut self, index: usize) {
        while let Some(fate) = self.stations[index].next_fate() {
            let station = StationId(index as u32);
            match fate {
                Fate::Lost(id) => self.lose(station, id),
                Fate::Marked(id) => {
                    self.parcels.segment_mut(id).ecn = packet::ECN_CE;
                    self.step(|world| Movement::Marked {
                        station,
                        packet: world.parcels.way(id).number,
                    });
                }
            }
        }
    }

    /// A station loses a packet, one that just came or one that it had.
    fn lose(&mut self, station: StationId, id: PacketId) {
        self.step(|world| Movement::Dropped { station, packet: world.parcels.way(id).number });
        self.note_loss(id);
        self.forget(id);
    }

    /// A packet is no more.
    fn forget(&mut self, id: PacketId) {
        if let Some(number) = number_of(self.parcels.segment(id)) {
            self.datagrams.release(number);
        }
        self.parcels.release(id);
    }

    /// A packet reaches the network card at the end of its road, which drops what is damaged
    /// before any capture point sees it.
    fn arrive(&mut self, host: u16, id: PacketId) {
        self.step(|world| Movement::Arrived {
            host: HostId(host),
            packet: world.parcels.way(id).number,
        });
        if self.parcels.way(id).damaged() {
            return self.forget(id);
        }
        self.look(host, TapPlace::Wire, false, id);
        let plain = self.plain_cards[usize::from(host)] && !self.departing;
        if plain && (self.in_cards == 0 || self.cards[usize::from(host)].waiting() == 0) {
            // Nothing to wait for and nothing to merge. (Over roads that take no time two hosts
            // would answer each other within one call, in the midst of a burst.)
            return self.deliver(host, id);
        }
        self.in_cards += 1;
        let wake = self.cards[usize::from(host)].arrive(self.now, self.parcels.segment(id));
        self.parcels.release(id);
        if let Some(at) = wake {
            self.calendar.push(at, Wake::Card(host));
        }
    }

    /// Tells the flow's record that a packet to one of its ends was lost.
    fn note_loss(&mut self, id: PacketId) {
        if !O::ON {
            return;
        }
        let way = self.parcels.way(id);
        let (element, host) = self.roads.place(way.next - 1);
        let who = Who { host: HostId(host), flow: self.parcels.segment(id).flow };
        let event = Event::Dropped { element, bytes: way.size() };
        self.observer.record(self.now, who, event, None);
    }

    pub(super) fn run_card(&mut self, host: usize) {
        self.in_cards -= self.cards[host].waiting();
        if let Some(at) = self.cards[host].run(self.now) {
            self.calendar.push(at, Wake::Card(host as u16));
        }
        self.in_cards += self.cards[host].waiting();
        let up = self.cards[host].take_up();
        for &segment in &up {
            let id = self.parcels.put(segment);
            self.deliver(host as u16, id);
        }
        self.cards[host].give_back(up);
    }

    /// A segment, perhaps merged, reaches the stack.
    fn deliver(&mut self, host: u16, id: PacketId) {
        self.look(host, TapPlace::Stack, false, id);
        let segment = self.parcels.segment(id);
        if let Some(number) = number_of(segment) {
            return self.deliver_quic(host, id, number);
        }
        let side = if segment.dir == Dir::Forward { SERVER } else { CLIENT };
        let index = end_of(segment.flow.0 as usize, side);
        let who = Who { host: HostId(host), flow: segment.flow };
        let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
        if segment.merged() {
            let packets = segment.packets().max(u32::from(segment.nsegs)) as u16;
            cx.emit(|| Event::Merged { packets, bytes: segment.payload });
        }
        if let Transport::Tcp(tcp) = &mut self.ends[index].stack {
            tcp.handle_segment(&mut cx, segment);
        }
        self.parcels.release(id);
        self.serve(index);
    }

    /// A QUIC packet reaches its endpoint.
    fn deliver_quic(&mut self, host: u16, id: PacketId, number: u32) {
        let packet = self.datagrams.get(number);
        let side = if packet.dir == Dir::Forward { SERVER } else { CLIENT };
        let index = end_of(packet.flow.0 as usize, side);
        let who = Who { host: HostId(host), flow: packet.flow };
        let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
        if let Transport::Quic(quic) = &mut self.ends[index].stack {
            quic.handle_segment(&mut cx, packet);
        }
        self.forget(id);
        self.serve(index);
    }
}
