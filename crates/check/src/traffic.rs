//! Packets on their routes: each has one position, and moves only to the next hop.

use std::collections::BTreeMap;

use record::{ElementId, PacketNumber, SynOffers, TcpBits};
use units::{Ecn, HostId};

use crate::contents::{PacketContents, PayloadRange};
use crate::element::{ElementModel, FlowDirection};
use crate::invariants::Answers;
use crate::violation::{Subject, ViolationKind, ViolationLog};
use crate::world::{RouteModel, WorldModel};

/// A packet in flight.
#[derive(Debug, Clone, Copy)]
struct TrackedPacket {
    flow: u32,
    /// End of the flow that sent it, 0 or 1.
    from: u8,
    route: u32,
    /// Elements passed.
    hop: u32,
    place: PacketPosition,
    /// Whether its present element made it as a copy.
    copied_here: bool,
    /// Whether its checksum is wrong: the destination card drops it silently.
    damaged: bool,
    size: u32,
    ecn: Ecn,
    contents: PacketContents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketPosition {
    /// It has left an element and must reach the next one at the same instant.
    Between,
    /// In the element with index `hop` on its route.
    AtElement,
}

/// A packet that reached its host intact.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveredPacket {
    pub(crate) flow: u32,
    pub(crate) from: u8,
    pub(crate) contents: PayloadRange,
}

/// A dropped packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DroppedPacket {
    pub(crate) flow: u32,
    pub(crate) to: HostId,
    /// Index of the dropping element on its route.
    pub(crate) hop: u32,
    pub(crate) size: u32,
}

/// Packet counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PacketCounts {
    pub(crate) copies: u64,
    pub(crate) injected: u64,
    pub(crate) damaged: u64,
    pub(crate) marked: u64,
    pub(crate) arrived: u64,
    pub(crate) lost: u64,
}

/// All packets in flight, and all elements.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    hops: Vec<ElementModel>,
    routes: Vec<RouteModel>,
    /// Route of each end of each flow, and the bytes of its IP header.
    flow_routes: Vec<([usize; 2], u32)>,
    packets: BTreeMap<u64, TrackedPacket>,
    /// Number of the next packet.
    next: u64,
    /// Packets between elements.
    between: usize,
    pub(crate) counts: PacketCounts,
}

impl Traffic {
    pub(crate) fn new(world: &WorldModel) -> Self {
        let laws = world.hops.iter().enumerate();
        Self {
            hops: laws
                .map(|(n, &law)| ElementModel::new(ElementId(n as u32), law, world))
                .collect(),
            routes: world.routes.clone(),
            flow_routes: world
                .flows
                .iter()
                .map(|flow| (flow.routes, flow.ip_header.get() as u32))
                .collect(),
            packets: BTreeMap::new(),
            next: 0,
            between: 0,
            counts: PacketCounts::default(),
        }
    }

    /// Number of packets and copies so far.
    pub(crate) const fn numbered(&self) -> u64 {
        self.next
    }

    pub(crate) fn in_transit(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Checks, before time advances, that every packet that left an element has reached another.
    #[inline]
    pub(crate) fn check_in_transit(&mut self, log: &mut ViolationLog) {
        if self.between == 0 {
            return;
        }
        self.between = 0;
        self.packets.retain(|&number, packet| {
            let lost = packet.place == PacketPosition::Between;
            if lost {
                log.note(Subject::Packet(PacketNumber(number)), ViolationKind::Vanished);
            }
            !lost
        });
    }

    /// Processes the end of the record.
    pub(crate) fn finish(&mut self, log: &mut ViolationLog) {
        self.check_in_transit(log);
        for element in &mut self.hops {
            element.overdue(log);
        }
    }

    /// A packet of end `from` of a flow leaves its host.
    pub(crate) fn depart(
        &mut self,
        log: &mut ViolationLog,
        number: PacketNumber,
        (flow, from): (u32, u8),
        (size, ecn): (u32, Ecn),
        contents: PacketContents,
    ) {
        let route = self.flow_routes[flow as usize].0[usize::from(from)] as u32;
        let packet = TrackedPacket {
            flow,
            from,
            route,
            hop: 0,
            place: PacketPosition::Between,
            copied_here: false,
            damaged: false,
            size,
            ecn,
            contents,
        };
        self.add(log, number, packet);
    }

    fn add(&mut self, log: &mut ViolationLog, number: PacketNumber, packet: TrackedPacket) {
        if number.0 != self.next {
            let expected = PacketNumber(self.next);
            log.note(Subject::Packet(number), ViolationKind::WrongNumber { expected });
            if number.0 < self.next {
                return;
            }
        }
        self.next = number.0.saturating_add(1);
        self.between += 1;
        self.packets.insert(number.0, packet);
    }

    /// An element accepts the packet.
    pub(crate) fn enter(&mut self, log: &mut ViolationLog, number: PacketNumber, id: ElementId) {
        let Some((packet, element)) = self.locate(log, number, id) else { return };
        if packet.place == PacketPosition::AtElement {
            log.note(Subject::Packet(number), ViolationKind::IsElsewhere { hop_index: id });
            return;
        }
        packet.place = PacketPosition::AtElement;
        let way = (packet.flow, packet.from);
        element.enter(log, number, way, (u64::from(packet.size), &packet.contents));
        self.between -= 1;
    }

    /// An element drops the packet, on arrival or from its queue.
    pub(crate) fn lose(
        &mut self,
        log: &mut ViolationLog,
        number: PacketNumber,
        id: ElementId,
    ) -> Option<DroppedPacket> {
        let (&mut packet, element) = self.locate(log, number, id)?;
        let inside = packet.place == PacketPosition::AtElement;
        let size = u64::from(packet.size);
        let way = ((packet.flow, packet.from), packet.hop);
        element.lose(log, (number, size), way, &packet.contents, inside);
        self.packets.remove(&number.0);
        self.between -= usize::from(!inside);
        self.counts.lost += 1;
        let to = self.routes[packet.route as usize].to;
        Some(DroppedPacket { flow: packet.flow, to, hop: packet.hop, size: packet.size })
    }

    /// An element duplicates the packet.
    pub(crate) fn copy(
        &mut self,
        log: &mut ViolationLog,
        number: PacketNumber,
        id: ElementId,
        copy: PacketNumber,
    ) {
        let Some((packet, element)) = self.locate(log, number, id) else { return };
        let may = element.law().copies && element.may_select(log.now, &packet.contents);
        if !may || packet.copied_here {
            log.note(Subject::Packet(number), ViolationKind::UnexpectedDuplicate { hop_index: id });
        }
        let packet = TrackedPacket { place: PacketPosition::Between, copied_here: true, ..*packet };
        self.counts.copies += 1;
        self.add(log, copy, packet);
    }

    /// An element corrupts the packet.
    pub(crate) fn damage(&mut self, log: &mut ViolationLog, number: PacketNumber, id: ElementId) {
        let Some((packet, element)) = self.locate(log, number, id) else { return };
        if !element.law().damages || !element.may_select(log.now, &packet.contents) {
            log.note(
                Subject::Packet(number),
                ViolationKind::UnexpectedCorruption { hop_index: id },
            );
        }
        packet.damaged = true;
        self.counts.damaged += 1;
    }

    /// An element marks a packet in its queue.
    pub(crate) fn mark(&mut self, log: &mut ViolationLog, number: PacketNumber, id: ElementId) {
        let Some((packet, element)) = self.locate(log, number, id) else { return };
        if !element.law().marks
            || !packet.ecn.is_capable()
            || packet.place != PacketPosition::AtElement
        {
            log.note(Subject::Packet(number), ViolationKind::UnexpectedMark { hop_index: id });
        }
        self.counts.marked += 1;
    }

    /// An element removes options from the packet, whose size is `size` from now on.
    pub(crate) fn rewrite(
        &mut self,
        log: &mut ViolationLog,
        number: PacketNumber,
        id: ElementId,
        size: u32,
    ) {
        let Some((packet, element)) = self.locate(log, number, id) else { return };
        let before = packet.contents.tcp;
        let after = before.stripped(element.law().strips);
        // Each option with its padding.
        let bytes =
            [(SynOffers::WINDOW_SCALE, 4), (SynOffers::SACK, 4), (SynOffers::TIMESTAMPS, 12)];
        let removed = bytes
            .iter()
            .filter(|(offer, _)| before.offers.has(*offer) && !after.offers.has(*offer));
        let most: u32 = removed.map(|(_, bytes)| bytes).sum();
        let saved = packet.size.checked_sub(size);
        let fits = saved.is_some_and(|saved| saved > 0 && saved <= most);
        if !fits || packet.place != PacketPosition::AtElement {
            log.note(Subject::Packet(number), ViolationKind::UnexpectedRewrite { hop_index: id });
        }
        packet.size = size;
    }

    /// An element sends a packet of its own.
    pub(crate) fn inject(
        &mut self,
        log: &mut ViolationLog,
        number: PacketNumber,
        id: ElementId,
        (flow, from): FlowDirection,
        (size, tcp): (u32, TcpBits),
    ) {
        let unexpected = ViolationKind::UnexpectedInjection { hop_index: id };
        let (Some(element), Some(&(routes, ip_header))) =
            (self.hops.get_mut(id.0 as usize), self.flow_routes.get(flow as usize))
        else {
            return log.note(Subject::Packet(number), unexpected);
        };
        let due = element.take_answer(log.now, (flow, from));
        let fits = match element.law().answers {
            Answers::None => false,
            Answers::Icmp => tcp == TcpBits::default() && size == 2 * ip_header + 16,
            Answers::Reset | Answers::ResetBoth => tcp.is_rst() && size == ip_header + 20,
        };
        if due.is_none() || !fits {
            log.note(Subject::Packet(number), unexpected);
        }
        let route = routes[usize::from(from)];
        // On the way of the dropped packet it takes its place; on the way back it begins after the
        // element, or if that is elsewhere, at the start.
        let hop = match due {
            Some(due) if due.way.1 == from => due.hop + 1,
            _ => {
                let hops = &self.routes[route].hops;
                hops.iter().position(|hop| *hop == id).map_or(0, |place| place as u32 + 1)
            }
        };
        let contents = PacketContents { payload: PayloadRange::default(), tcp };
        let packet = TrackedPacket {
            flow,
            from,
            route: route as u32,
            hop,
            place: PacketPosition::Between,
            copied_here: false,
            damaged: false,
            size,
            ecn: Ecn::NotEct,
            contents,
        };
        self.counts.injected += 1;
        self.add(log, number, packet);
    }

    /// The packet leaves an element.
    pub(crate) fn leave(&mut self, log: &mut ViolationLog, number: PacketNumber, id: ElementId) {
        let Some((packet, element)) = self.locate(log, number, id) else { return };
        if packet.place != PacketPosition::AtElement {
            log.note(Subject::Packet(number), ViolationKind::IsElsewhere { hop_index: id });
            return;
        }
        packet.place = PacketPosition::Between;
        packet.hop += 1;
        packet.copied_here = false;
        packet.contents.tcp = packet.contents.tcp.stripped(element.law().strips);
        element.leave(log, number);
        self.between += 1;
    }

    /// The packet reaches a host; `None` if it cannot be there, or is corrupted.
    pub(crate) fn arrive(
        &mut self,
        log: &mut ViolationLog,
        number: PacketNumber,
        (host, tcp): (HostId, TcpBits),
    ) -> Option<DeliveredPacket> {
        let Some(packet) = self.packets.get(&number.0) else {
            log.note(Subject::Packet(number), unknown(number, self.next));
            return None;
        };
        let route = &self.routes[packet.route as usize];
        let there = packet.place == PacketPosition::Between
            && packet.hop as usize == route.hops.len()
            && host == route.to;
        if !there {
            log.note(Subject::Packet(number), ViolationKind::NotAtTheEnd { host });
            return None;
        }
        let &TrackedPacket { flow, from, contents, damaged, .. } = packet;
        if contents.tcp != tcp {
            log.note(Subject::Packet(number), ViolationKind::HeaderChanged);
        }
        self.packets.remove(&number.0);
        self.between -= 1;
        self.counts.arrived += 1;
        (!damaged).then_some(DeliveredPacket { flow, from, contents: contents.payload })
    }

    /// Returns a packet that arrives at an element or is inside it, and the element.
    fn locate(
        &mut self,
        log: &mut ViolationLog,
        number: PacketNumber,
        id: ElementId,
    ) -> Option<(&mut TrackedPacket, &mut ElementModel)> {
        let about = Subject::Packet(number);
        let Some(packet) = self.packets.get_mut(&number.0) else {
            log.note(about, unknown(number, self.next));
            return None;
        };
        let Some(element) = self.hops.get_mut(id.0 as usize) else {
            log.note(about, ViolationKind::NoSuchElement { hop_index: id });
            return None;
        };
        let route = &self.routes[packet.route as usize];
        if route.hops.get(packet.hop as usize) != Some(&id) {
            log.note(about, ViolationKind::IsElsewhere { hop_index: id });
            return None;
        }
        Some((packet, element))
    }
}

/// The violation of an event of a packet that is not in flight.
fn unknown(number: PacketNumber, next: u64) -> ViolationKind {
    if number.0 < next { ViolationKind::AlreadyGone } else { ViolationKind::UnknownPacket }
}
