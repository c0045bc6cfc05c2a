//! Packets on their roads: each is in one place, and moves only to the next one.

use std::collections::BTreeMap;

use record::{PacketNumber, StationId};
use units::HostId;

use crate::station::Station;
use crate::violation::{Breach, Log, Subject};
use crate::world::{Road, World};

/// What a packet carries, in offsets of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Freight {
    /// First payload byte.
    pub(crate) at: u64,
    /// Payload bytes.
    pub(crate) len: u64,
    /// Nothing but an acknowledgment.
    pub(crate) bare: bool,
    /// It may carry the FIN.
    pub(crate) fin: bool,
    /// What its sender had received without a gap when it left: it can tell no more.
    pub(crate) had: u64,
}

/// A packet on the road.
#[derive(Debug, Clone, Copy)]
struct Packet {
    flow: u32,
    /// End of the flow that sent it, 0 or 1.
    from: u8,
    road: u32,
    /// Stations behind it.
    hop: u32,
    place: Place,
    /// It is the copy that its present station made.
    copied_here: bool,
    /// Its checksum is wrong: the card at the end drops it in silence.
    damaged: bool,
    size: u32,
    /// It may be marked.
    capable: bool,
    freight: Freight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It has left a place and must come to the next one at this very moment.
    Between,
    /// In the station with number `hop` of its road.
    Inside,
}

/// A packet that reached its host whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    pub(crate) flow: u32,
    pub(crate) from: u8,
    pub(crate) freight: Freight,
}

/// A packet that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) flow: u32,
    pub(crate) to: HostId,
    /// Number of the station on its road whose doing it was.
    pub(crate) hop: u32,
    pub(crate) size: u32,
}

/// What became of all packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) copies: u64,
    pub(crate) damaged: u64,
    pub(crate) marked: u64,
    pub(crate) arrived: u64,
    pub(crate) lost: u64,
}

/// All packets on the road, and all stations.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    stations: Vec<Station>,
    roads: Vec<Road>,
    /// Road of each end of each flow.
    routes: Vec<[usize; 2]>,
    packets: BTreeMap<u64, Packet>,
    /// The next number.
    next: u64,
    /// Packets in no place.
    between: usize,
    pub(crate) counts: Counts,
}

impl Traffic {
    pub(crate) fn new(world: &World) -> Self {
        let laws = world.stations.iter().enumerate();
        Self {
            stations: laws
                .map(|(n, &law)| Station::new(StationId(n as u32), law, &world.traces))
                .collect(),
            roads: world.roads.clone(),
            routes: world.flows.iter().map(|flow| flow.roads).collect(),
            packets: BTreeMap::new(),
            next: 0,
            between: 0,
            counts: Counts::default(),
        }
    }

    /// Packets and copies so far.
    pub(crate) const fn numbered(&self) -> u64 {
        self.next
    }

    pub(crate) fn on_the_road(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Before time moves on: whoever left a place must have come to another.
    #[inline]
    pub(crate) fn settle(&mut self, log: &mut Log) {
        if self.between == 0 {
            return;
        }
        self.between = 0;
        self.packets.retain(|&number, packet| {
            let lost = packet.place == Place::Between;
            if lost {
                log.note(Subject::Packet(PacketNumber(number)), Breach::Vanished);
            }
            !lost
        });
    }

    /// The end of the record.
    pub(crate) fn finish(&mut self, log: &mut Log) {
        self.settle(log);
        for station in &mut self.stations {
            station.overdue(log);
        }
    }

    /// A packet of end `from` of a flow leaves its host.
    pub(crate) fn depart(
        &mut self,
        log: &mut Log,
        number: PacketNumber,
        (flow, from): (u32, u8),
        (size, capable): (u32, bool),
        freight: Freight,
    ) {
        let road = self.routes[flow as usize][usize::from(from)] as u32;
        let packet = Packet {
            flow,
            from,
            road,
            hop: 0,
            place: Place::Between,
            copied_here: false,
            damaged: false,
            size,
            capable,
            freight,
        };
        self.add(log, number, packet);
    }

    fn add(&mut self, log: &mut Log, number: PacketNumber, packet: Packet) {
        if number.0 != self.next {
            let expected = PacketNumber(self.next);
            log.note(Subject::Packet(number), Breach::WrongNumber { expected });
            if number.0 < self.next {
                return;
            }
        }
        self.next = number.0.saturating_add(1);
        self.between += 1;
        self.packets.insert(number.0, packet);
    }

    /// It comes to a station, which takes it.
    pub(crate) fn enter(&mut self, log: &mut Log, number: PacketNumber, id: StationId) {
        let Some((packet, station)) = self.near(log, number, id) else { return };
        if packet.place == Place::Inside {
            log.note(Subject::Packet(number), Breach::IsElsewhere { station: id });
            return;
        }
        packet.place = Place::Inside;
        let way = (packet.flow, packet.from);
        station.enter(log, number, way, u64::from(packet.size));
        self.between -= 1;
    }

    /// It comes to a station and is lost, or is lost in it.
    pub(crate) fn lose(
        &mut self,
        log: &mut Log,
        number: PacketNumber,
        id: StationId,
    ) -> Option<Lost> {
        let (&mut packet, station) = self.near(log, number, id)?;
        let inside = packet.place == Place::Inside;
        let size = u64::from(packet.size);
        station.lose(log, (number, size), packet.freight.bare, inside);
        self.packets.remove(&number.0);
        self.between -= usize::from(!inside);
        self.counts.lost += 1;
        let to = self.roads[packet.road as usize].to;
        Some(Lost { flow: packet.flow, to, hop: packet.hop, size: packet.size })
    }

    /// A station makes a second one of it.
    pub(crate) fn copy(
        &mut self,
        log: &mut Log,
        number: PacketNumber,
        id: StationId,
        copy: PacketNumber,
    ) {
        let Some((packet, station)) = self.near(log, number, id) else { return };
        if !station.law().copies || packet.copied_here {
            log.note(Subject::Packet(number), Breach::MayNotCopy { station: id });
        }
        let packet = Packet { place: Place::Between, copied_here: true, ..*packet };
        self.counts.copies += 1;
        self.add(log, copy, packet);
    }

    /// A station damages it.
    pub(crate) fn damage(&mut self, log: &mut Log, number: PacketNumber, id: StationId) {
        let Some((packet, station)) = self.near(log, number, id) else { return };
        if !station.law().damages {
            log.note(Subject::Packet(number), Breach::MayNotDamage { station: id });
        }
        packet.damaged = true;
        self.counts.damaged += 1;
    }

    /// A station that has it marks it.
    pub(crate) fn mark(&mut self, log: &mut Log, number: PacketNumber, id: StationId) {
        let Some((packet, station)) = self.near(log, number, id) else { return };
        if !station.law().marks || !packet.capable || packet.place != Place::Inside {
            log.note(Subject::Packet(number), Breach::MayNotMark { station: id });
        }
        self.counts.marked += 1;
    }

    /// It leaves a station.
    pub(crate) fn leave(&mut self, log: &mut Log, number: PacketNumber, id: StationId) {
        let Some((packet, station)) = self.near(log, number, id) else { return };
        if packet.place != Place::Inside {
            log.note(Subject::Packet(number), Breach::IsElsewhere { station: id });
            return;
        }
        packet.place = Place::Between;
        packet.hop += 1;
        packet.copied_here = false;
        station.leave(log, number);
        self.between += 1;
    }

    /// It reaches a host; `None` if it cannot be there, or is damaged.
    pub(crate) fn arrive(
        &mut self,
        log: &mut Log,
        number: PacketNumber,
        host: HostId,
    ) -> Option<Delivery> {
        let Some(packet) = self.packets.get(&number.0) else {
            log.note(Subject::Packet(number), unknown(number, self.next));
            return None;
        };
        let road = &self.roads[packet.road as usize];
        let there = packet.place == Place::Between
            && packet.hop as usize == road.stations.len()
            && host == road.to;
        if !there {
            log.note(Subject::Packet(number), Breach::NotAtTheEnd { host });
            return None;
        }
        let &Packet { flow, from, freight, damaged, .. } = packet;
        self.packets.remove(&number.0);
        self.between -= 1;
        self.counts.arrived += 1;
        (!damaged).then_some(Delivery { flow, from, freight })
    }

    /// A packet at the entrance of a station or in it, and the station.
    fn near(
        &mut self,
        log: &mut Log,
        number: PacketNumber,
        id: StationId,
    ) -> Option<(&mut Packet, &mut Station)> {
        let about = Subject::Packet(number);
        let Some(packet) = self.packets.get_mut(&number.0) else {
            log.note(about, unknown(number, self.next));
            return None;
        };
        let Some(station) = self.stations.get_mut(id.0 as usize) else {
            log.note(about, Breach::NoSuchStation { station: id });
            return None;
        };
        let road = &self.roads[packet.road as usize];
        if road.stations.get(packet.hop as usize) != Some(&id) {
            log.note(about, Breach::IsElsewhere { station: id });
            return None;
        }
        Some((packet, station))
    }
}

/// A packet that is not on the road.
fn unknown(number: PacketNumber, next: u64) -> Breach {
    if number.0 < next { Breach::IsGone } else { Breach::NeverDeparted }
}
