//! Packets on their way: from the card of one host, over the stations of a road, to the card and
//! the stack of another.

use machine::{Cx, Endpoint as _, PacketId, Verdict};
use packet::{Dir, Segment};
use record::{Event, Movement, PacketNumber, StationId, Who};
use units::HostId;

use super::{CLIENT, SERVER, Wake, World};
use crate::observer::Observer;
use crate::scenario::TapPlace;

/// A packet on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parcel {
    segment: Segment,
    number: PacketNumber,
    /// The road it travels, by number.
    road: u32,
    /// Stations of that road it has come to, the present one included.
    hops: u16,
    /// Its checksum is wrong.
    damaged: bool,
}

impl<O: Observer> World<'_, O> {
    pub(super) fn run_station(&mut self, index: usize) {
        self.stations[index].armed = None;
        while let Some(id) = self.stations[index].wake(self.now) {
            let packet = self.pool.get(id).number;
            self.step(|| Movement::Left { station: StationId(index as u32), packet });
            self.advance(id);
        }
        self.arm_station(index);
    }

    /// Tells a step of a packet, if anybody wants to know.
    #[inline(always)]
    fn step(&mut self, movement: impl FnOnce() -> Movement) {
        if O::PACKETS {
            self.observer.moved(self.now, movement());
        }
    }

    /// A packet leaves its host.
    pub(super) fn depart(&mut self, host: u16, road: u32, packet: &Segment) {
        let number = PacketNumber(self.packets);
        self.packets += 1;
        self.look(usize::from(host), TapPlace::Wire, true, packet);
        self.step(|| Movement::Departed {
            host: HostId(host),
            flow: packet.flow,
            packet: number,
            seq: packet.seq,
            len: packet.payload,
            size: packet.wire_len().get() as u32,
        });
        let parcel = Parcel { segment: *packet, number, road, hops: 0, damaged: false };
        let id = self.pool.put(parcel);
        self.advance(id);
    }

    fn arm_station(&mut self, index: usize) {
        let station = &mut self.stations[index];
        let Some(at) = station.next_wake() else { return };
        if station.armed.is_none_or(|armed| at < armed) {
            station.armed = Some(at);
            self.calendar.push(at, Wake::Station(index as u32));
        }
    }

    /// A packet goes on its way, and so does every copy made of it.
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
            let parcel = self.pool.get_mut(id);
            let road = &self.roads[parcel.road as usize];
            let Some(&index) = road.stations.get(usize::from(parcel.hops)) else {
                let parcel = self.pool.take(id);
                return self.arrive(road.to, &parcel);
            };
            parcel.hops += 1;
            let (station, packet) = (StationId(index), parcel.number);
            match self.stations[index as usize].accept(self.now, id, &parcel.segment) {
                Verdict::Taken => {
                    self.step(|| Movement::Entered { station, packet });
                    return self.arm_station(index as usize);
                }
                Verdict::Replaced(old) => {
                    self.step(|| Movement::Entered { station, packet });
                    self.lose(station, old);
                    return self.arm_station(index as usize);
                }
                Verdict::Dropped => return self.lose(station, id),
                Verdict::Passed => self.step(|| Movement::Entered { station, packet }),
                Verdict::Damaged => {
                    parcel.damaged = true;
                    self.step(|| Movement::Entered { station, packet });
                    self.step(|| Movement::Damaged { station, packet });
                }
                Verdict::Doubled => {
                    let copy = PacketNumber(self.packets);
                    self.packets += 1;
                    let twin = Parcel { number: copy, ..*parcel };
                    self.step(|| Movement::Entered { station, packet });
                    self.step(|| Movement::Copied { station, packet, copy });
                    self.step(|| Movement::Entered { station, packet: copy });
                    self.step(|| Movement::Left { station, packet: copy });
                    let twin = self.pool.put(twin);
                    self.copies.push(twin);
                }
            }
            self.step(|| Movement::Left { station, packet });
            // It may have released another.
            self.arm_station(index as usize);
        }
    }

    /// A station loses a packet, one that just came or one that it had.
    fn lose(&mut self, station: StationId, id: PacketId) {
        let parcel = self.pool.take(id);
        self.step(|| Movement::Dropped { station, packet: parcel.number });
        self.note_loss(&parcel);
    }

    /// A packet reaches the network card at the end of its road, which drops what is damaged
    /// before any capture point sees it.
    fn arrive(&mut self, host: u16, parcel: &Parcel) {
        self.step(|| Movement::Arrived { host: HostId(host), packet: parcel.number });
        if parcel.damaged {
            return;
        }
        self.look(usize::from(host), TapPlace::Wire, false, &parcel.segment);
        let card = &mut self.cards[usize::from(host)];
        if card.passes_at_once() && parcel.hops > 0 {
            // Nothing to wait for and nothing to merge. (Over a road without stations two hosts
            // would answer each other within one call.)
            return self.deliver(usize::from(host), &parcel.segment);
        }
        if let Some(at) = card.arrive(self.now, &parcel.segment) {
            self.calendar.push(at, Wake::Card(host));
        }
    }

    /// Tells the flow's record that a packet to one of its ends was lost.
    fn note_loss(&mut self, parcel: &Parcel) {
        let packet = &parcel.segment;
        let element = parcel.hops - 1;
        let host = self.roads[parcel.road as usize].to;
        let who = Who { host: HostId(host), flow: packet.flow };
        let event = Event::Dropped { element, bytes: packet.wire_len().get() as u32 };
        self.observer.record(self.now, who, event, None);
    }

    pub(super) fn run_card(&mut self, host: usize) {
        if let Some(at) = self.cards[host].run(self.now) {
            self.calendar.push(at, Wake::Card(host as u16));
        }
        let up = self.cards[host].take_up();
        for segment in &up {
            self.deliver(host, segment);
        }
        self.cards[host].give_back(up);
    }

    /// A segment, perhaps merged, reaches the stack.
    fn deliver(&mut self, host: usize, segment: &Segment) {
        self.look(host, TapPlace::Stack, false, segment);
        let flow = segment.flow.0 as usize;
        let side = if segment.dir == Dir::Forward { SERVER } else { CLIENT };
        let who = Who { host: HostId(host as u16), flow: segment.flow };
        let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
        if segment.merged() {
            let packets = segment.packets().max(u32::from(segment.nsegs)) as u16;
            cx.emit(|| Event::Merged { packets, bytes: segment.payload });
        }
        self.flows[flow].ends[side].tcp.handle_segment(&mut cx, segment);
        self.serve(flow, side);
    }
}
