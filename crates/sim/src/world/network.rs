//! The network: packets in transit from the card of one host, over the elements of a route, to the
//! card of another.

use std::collections::BTreeSet;

use machine::{Cx, PacketAction, PacketId, PacketVerdict};
use net::event_queue::EventQueue;
use packet::Segment;
use record::{ElementId, Event, EventSource, PacketEvent, PacketNumber};
use units::{Bytes, FlowId, HostId, Instant, unlikely};

use super::SimEvent;
use super::packet_slots::{PacketSlots, RouteCursor, StoredPacket};
use crate::nic::{Nic, NicBatch};
use crate::observer::{Observer, PROGRESS_EVERY};
use crate::routes::{AcceptOutcome, ElementNode, Hop, RouteTable};
use crate::run_error::{DuplicationLimit, InFlightLimit, MAX_PACKETS_IN_FLIGHT, RunError};
use crate::scenario::{TapPoint, TapSpec};

/// The network between the hosts, with the event queue and the observer.
pub(super) struct Network<'a, O: Observer> {
    pub(super) observer: &'a mut O,
    pub(super) now: Instant,
    /// Time at which the run ends.
    pub(super) end: Instant,
    pub(super) calendar: EventQueue<SimEvent>,
    pub(super) slots: PacketSlots,
    pub(super) taps: &'a [TapSpec],
    /// Packets that have left their hosts, and copies.
    pub(super) packets: u64,
    /// Copies that have left the element that made them and await forwarding.
    pub(super) copies: Vec<PacketId>,
    duplicates: DuplicateCounter,
    /// Flows that an element has reset: each end learns of it from a packet.
    pub(super) reset_flows: BTreeSet<FlowId>,
    /// Error that aborted the run.
    pub(super) given_up: Option<RunError>,
    /// [`PROGRESS_EVERY`] steps have passed.
    pub(super) progressed: bool,
    pub(super) hops: Vec<ElementNode>,
    pub(super) routes: RouteTable,
    pub(super) nics: Vec<Nic>,
    /// For each host, whether its card delivers packets unmerged on arrival, and no tap captures
    /// them.
    plain_hosts: Vec<bool>,
    /// Packets that wait in cards.
    in_cards: u32,
    /// The segment that an endpoint writes; template of the other packets of a burst.
    pub(super) model: Segment,
}

/// Counts the copies made.
#[derive(Debug, Default)]
struct DuplicateCounter {
    /// The latest instant at which copies were made, and their number.
    at: Option<Instant>,
    made: usize,
}

/// Context of one endpoint.
#[inline(always)]
pub(super) fn cx<O: Observer>(rec: &mut O, now: Instant, host: u16, flow: FlowId) -> Cx<'_, O> {
    Cx { now, source: EventSource { host: HostId(host), flow }, rec }
}

impl<'a, O: Observer> Network<'a, O> {
    pub(super) fn new(
        observer: &'a mut O,
        taps: &'a [TapSpec],
        (hops, routes): (Vec<ElementNode>, RouteTable),
        nics: Vec<Nic>,
    ) -> Self {
        Self {
            observer,
            now: Instant::ZERO,
            end: Instant::MAX,
            calendar: EventQueue::new(),
            slots: PacketSlots::new(),
            taps,
            packets: 0,
            copies: Vec::new(),
            duplicates: DuplicateCounter::default(),
            reset_flows: BTreeSet::new(),
            given_up: None,
            progressed: false,
            hops,
            routes,
            plain_hosts: plain_hosts(&nics, taps),
            nics,
            in_cards: 0,
            model: Segment::default(),
        }
    }

    /// Current context of one endpoint.
    #[inline(always)]
    pub(super) fn cx(&mut self, host: u16, flow: FlowId) -> Cx<'_, O> {
        cx(&mut *self.observer, self.now, host, flow)
    }

    /// Counts an event-loop step.
    #[inline(always)]
    pub(super) fn count_turn(&mut self, turns: &mut u64) {
        *turns += 1;
        if unlikely(turns.is_multiple_of(PROGRESS_EVERY)) {
            self.report_progress();
        }
    }

    #[cold]
    fn report_progress(&mut self) {
        self.progressed = true;
        if self.observer.progress(self.now).is_break() {
            self.give_up(RunError::Stopped);
        }
        if self.slots.most() > MAX_PACKETS_IN_FLIGHT {
            let error = self.too_many_in_flight();
            self.give_up(RunError::InFlight(error));
        }
    }

    /// Returns the element that holds the most packets.
    fn too_many_in_flight(&self) -> InFlightLimit {
        let mut counts = vec![0; self.routes.len()];
        for cursor in self.slots.in_use() {
            if let Some(count) = counts.get_mut(cursor.next.saturating_sub(1) as usize) {
                *count += 1;
            }
        }
        // Of several the first.
        let most = counts.iter().enumerate().rev().max_by_key(|(_, held)| **held);
        let (stop, held) = most.map_or((0, 0), |(stop, held)| (stop as u32, *held));
        let (path, reverse) = self.routes.path(stop);
        let element = usize::from(self.routes.position(stop).0);
        InFlightLimit { path, reverse, element, held, at: self.now }
    }

    /// Aborts the run; the first error is kept.
    pub(super) fn give_up(&mut self, error: RunError) {
        self.given_up.get_or_insert(error);
        self.end = Instant::ZERO;
    }

    /// Records a packet event, if the observer wants them.
    #[inline(always)]
    pub(super) fn step(&mut self, movement: impl FnOnce(&Self) -> PacketEvent) {
        if O::PACKETS {
            let movement = movement(self);
            self.observer.record_packet(self.now, movement);
        }
    }

    /// Passes a packet to the taps at this capture point.
    #[inline(always)]
    pub(super) fn look(&mut self, host: u16, place: TapPoint, outbound: bool, id: PacketId) {
        if unlikely(!self.taps.is_empty()) {
            self.show(host, place, outbound, id);
        }
    }

    /// Returns whether any host has a tap.
    #[inline(always)]
    pub(super) fn has_taps(&self) -> bool {
        unlikely(!self.taps.is_empty())
    }

    fn show(&mut self, host: u16, place: TapPoint, outbound: bool, id: PacketId) {
        for (number, tap) in self.taps.iter().enumerate() {
            if tap.host == usize::from(host) && tap.place == place {
                match self.slots.packet(id) {
                    StoredPacket::Tcp(segment) => {
                        self.observer.tap(self.now, number, outbound, &segment);
                    }
                    StoredPacket::Quic(packet) => {
                        self.observer.datagram(self.now, number, outbound, packet);
                    }
                    StoredPacket::TooBig(message) => {
                        self.observer.icmp(self.now, number, outbound, &message);
                    }
                    // Captures have TCP and models of QUIC.
                    StoredPacket::Real { .. } | StoredPacket::Udp { .. } => {}
                }
            }
        }
    }

    // Forwarding.

    /// Records that a packet has left an element.
    #[inline(always)]
    pub(super) fn record_departure(&mut self, index: u32, id: PacketId) {
        self.step(|network| PacketEvent::Forwarded {
            hop_index: ElementId(index),
            packet: network.slots.way(id).number,
        });
    }

    /// Returns the next packet that leaves an element now.
    pub(super) fn leaving(&mut self, index: u32) -> Option<PacketId> {
        let id = self.hops[index as usize].wake(self.now)?;
        self.record_departure(index, id);
        self.apply_queue_actions(index);
        Some(id)
    }

    /// Returns whether another packet leaves an element now. If not, schedules the next departure.
    #[inline]
    pub(super) fn more_departures(&mut self, index: u32) -> bool {
        let hop_index = &mut self.hops[index as usize];
        let Some(at) = hop_index.next_wake() else { return false };
        if at > self.now {
            self.schedule_element_at(index, at);
        }
        at <= self.now
    }

    /// Returns whether copies await forwarding.
    #[inline(always)]
    pub(super) const fn has_copies(&self) -> bool {
        unlikely(!self.copies.is_empty())
    }

    /// Takes the next copy to forward.
    #[inline]
    pub(super) fn next_copy(&mut self) -> Option<PacketId> {
        self.copies.pop()
    }

    #[inline]
    pub(super) fn schedule_element(&mut self, index: u32) {
        let hop_index = &mut self.hops[index as usize];
        // The first departure of a FIFO element is already scheduled.
        if hop_index.armed.is_some() && hop_index.keeps_order() {
            return;
        }
        if let Some(at) = hop_index.next_wake() {
            self.schedule_element_at(index, at);
        }
    }

    #[inline(always)]
    pub(super) fn schedule_element_at(&mut self, index: u32, at: Instant) {
        let hop_index = &mut self.hops[index as usize];
        if at < hop_index.armed.unwrap_or(Instant::MAX) {
            hop_index.armed = Some(at);
            self.calendar.push(at, SimEvent::ElementIndex(index));
        }
    }

    /// Forwards a packet through its next elements until one queues it, or to the end of its route:
    /// then returns the host.
    #[inline(always)]
    pub(super) fn carry(&mut self, id: PacketId) -> Option<u16> {
        let way = *self.slots.way(id);
        self.forward_from::<true>(id, way)
    }

    /// Forwards a packet with this cursor, of which the slot has all but the next hop (`NOTED`) or
    /// nothing.
    #[inline(always)]
    pub(super) fn forward_from<const NOTED: bool>(
        &mut self,
        id: PacketId,
        mut way: RouteCursor,
    ) -> Option<u16> {
        loop {
            let index = match self.routes.stop(way.next) {
                Hop::Element(index) => index,
                Hop::Host(host) => return self.reach(host, id, &way),
            };
            way.next += 1;
            if NOTED {
                self.slots.cursor_mut(id).next = way.next;
            } else {
                *self.slots.cursor_mut(id) = way;
            }
            let (hop_index, packet) = (ElementId(index), way.number);
            let size = Bytes(u64::from(way.size()));
            let view = || self.slots.view(id, size);
            match self.hops[index as usize].accept(self.now, id, size, view) {
                AcceptOutcome::Enqueued => {
                    self.step(|_| PacketEvent::Accepted { hop_index, packet });
                    return None;
                }
                AcceptOutcome::Scheduled(at) => {
                    self.step(|_| PacketEvent::Accepted { hop_index, packet });
                    self.calendar.push(at, SimEvent::ElementIndex(index));
                    return None;
                }
                AcceptOutcome::ByVerdict(verdict) => {
                    way = self.apply_verdict_slow(verdict, hop_index, id)?;
                }
            }
        }
    }

    /// Applies the verdict of an element; returns the packet's cursor if it is forwarded.
    fn apply_verdict_slow(
        &mut self,
        verdict: PacketVerdict,
        hop_index: ElementId,
        id: PacketId,
    ) -> Option<RouteCursor> {
        let index = hop_index.0;
        // The common case at elements that select a fraction of the packets.
        if verdict == PacketVerdict::Forwarded
            && !O::PACKETS
            && self.hops[index as usize].never_holds()
        {
            return Some(*self.slots.way(id));
        }
        if verdict == PacketVerdict::Queued {
            let packet = self.slots.way(id).number;
            self.step(|_| PacketEvent::Accepted { hop_index, packet });
            self.apply_queue_actions(index);
            self.schedule_element(index);
            return None;
        }
        if self.settle(verdict, hop_index, id) {
            return None;
        }
        let packet = self.slots.way(id).number;
        self.step(|_| PacketEvent::Forwarded { hop_index, packet });
        // It may have released another packet.
        self.schedule_element(index);
        Some(*self.slots.way(id))
    }

    /// Applies a verdict other than a plain queueing. Returns true if the packet is not forwarded.
    fn settle(&mut self, verdict: PacketVerdict, hop_index: ElementId, id: PacketId) -> bool {
        let packet = self.slots.way(id).number;
        match verdict {
            PacketVerdict::Queued => return true,
            PacketVerdict::Replaced(old) => {
                self.step(|_| PacketEvent::Accepted { hop_index, packet });
                self.lose(hop_index, old);
                self.schedule_element(hop_index.0);
                return true;
            }
            PacketVerdict::Dropped => {
                self.lose(hop_index, id);
                return true;
            }
            PacketVerdict::Rejected(answer) => {
                self.reject(hop_index, id, answer);
                return true;
            }
            PacketVerdict::Stripped(offers) => {
                self.step(|_| PacketEvent::Accepted { hop_index, packet });
                let before = self.slots.way(id).size();
                let size = self.slots.strip(id, offers);
                if size != before {
                    self.step(|_| PacketEvent::Rewritten { hop_index, packet, size });
                }
            }
            PacketVerdict::Forwarded => self.step(|_| PacketEvent::Accepted { hop_index, packet }),
            PacketVerdict::Corrupted => {
                self.slots.cursor_mut(id).damage();
                self.step(|_| PacketEvent::Accepted { hop_index, packet });
                self.step(|_| PacketEvent::Corrupted { hop_index, packet });
            }
            PacketVerdict::Duplicated if self.exceeds_copy_limit(id) => {
                self.step(|_| PacketEvent::Accepted { hop_index, packet });
            }
            PacketVerdict::Duplicated => {
                let copy = PacketNumber(self.packets);
                self.packets += 1;
                self.step(|_| PacketEvent::Accepted { hop_index, packet });
                self.step(|_| PacketEvent::Duplicated { hop_index, packet, copy });
                self.step(|_| PacketEvent::Accepted { hop_index, packet: copy });
                self.step(|_| PacketEvent::Forwarded { hop_index, packet: copy });
                let copy = self.slots.copy(id, copy);
                self.copies.push(copy);
            }
        }
        false
    }

    /// Counts a copy of the packet and returns whether the limit is exceeded.
    fn exceeds_copy_limit(&mut self, id: PacketId) -> bool {
        let copies = &mut self.duplicates;
        if copies.at != Some(self.now) {
            (copies.at, copies.made) = (Some(self.now), 0);
        }
        copies.made += 1;
        if self.given_up.is_none() && copies.made.max(self.slots.most()) > MAX_PACKETS_IN_FLIGHT {
            let stop = self.slots.way(id).next - 1;
            let (path, reverse) = self.routes.path(stop);
            let element = usize::from(self.routes.position(stop).0);
            self.give_up(RunError::Duplicates(DuplicationLimit {
                path,
                reverse,
                element,
                at: self.now,
            }));
        }
        self.given_up.is_some()
    }

    /// Applies the drops and marks of a queue discipline.
    #[inline(always)]
    fn apply_queue_actions(&mut self, index: u32) {
        while let Some(fate) = self.hops[index as usize].next_fate() {
            let hop_index = ElementId(index);
            match fate {
                PacketAction::Dropped(id) => self.lose(hop_index, id),
                PacketAction::Marked(id) => {
                    self.slots.mark(id);
                    self.step(|network| PacketEvent::Marked {
                        hop_index,
                        packet: network.slots.way(id).number,
                    });
                }
            }
        }
    }

    /// Drops a packet at an element, on arrival or from its queue.
    pub(super) fn lose(&mut self, hop_index: ElementId, id: PacketId) {
        self.step(|network| PacketEvent::Dropped {
            hop_index,
            packet: network.slots.way(id).number,
        });
        self.record_drop(id);
        self.slots.release(id);
    }

    /// Records the drop in the packet's flow.
    fn record_drop(&mut self, id: PacketId) {
        if !O::ON {
            return;
        }
        let way = self.slots.way(id);
        let (element, host) = self.routes.position(way.next - 1);
        let event = Event::Dropped { element, bytes: way.size() };
        let (flow, _) = self.slots.flow(id);
        self.cx(host, flow).emit(|| event);
    }

    // Reception.

    /// Receives a packet in the network card at the end of its route, which drops corrupted packets
    /// before any capture point.
    #[inline(always)]
    fn reach(&mut self, host: u16, id: PacketId, way: &RouteCursor) -> Option<u16> {
        self.step(|network| PacketEvent::Received {
            host: HostId(host),
            packet: way.number,
            tcp: network.slots.tcp_bits(id),
        });
        if unlikely(way.damaged()) {
            self.slots.release(id);
            return None;
        }
        Some(host)
    }

    /// Returns whether a host receives packets directly: no interrupt delay, no merging, no tap.
    #[inline(always)]
    pub(super) fn delivers_directly(&self, host: u16) -> bool {
        self.plain_hosts[usize::from(host)] && self.in_cards == 0
    }

    /// Returns whether a host's card delivers packets on arrival; taps may exist.
    pub(super) fn delivers_on_arrival(&self, host: u16) -> bool {
        let card = &self.nics[usize::from(host)];
        card.is_plain() && card.waiting() == 0
    }

    /// Queues a packet in the card of a host until the interrupt.
    pub(super) fn queue_in_nic(&mut self, host: u16, id: PacketId) {
        self.in_cards += 1;
        let card = &mut self.nics[usize::from(host)];
        let wake = match self.slots.packet(id) {
            StoredPacket::Tcp(segment) => {
                self.slots.release(id);
                card.arrive(self.now, segment)
            }
            StoredPacket::Quic(_)
            | StoredPacket::Real { .. }
            | StoredPacket::Udp { .. }
            | StoredPacket::TooBig(_) => card.arrive_unmerged(self.now, id),
        };
        if let Some(at) = wake {
            self.calendar.push(at, SimEvent::NicInterrupt(host));
        }
    }

    /// Handles the interrupt: returns the packets for the stack. Return the list to the card.
    pub(super) fn interrupt(&mut self, host: u16) -> (NicBatch, Vec<PacketId>) {
        let card = &mut self.nics[usize::from(host)];
        self.in_cards -= card.waiting();
        if let Some(at) = card.run(self.now) {
            self.calendar.push(at, SimEvent::NicInterrupt(host));
        }
        self.in_cards += card.waiting();
        (card.take_up(), card.take_unmerged())
    }
}

/// For each host, whether its card delivers packets unmerged on arrival, and it has no tap.
fn plain_hosts(nics: &[Nic], taps: &[TapSpec]) -> Vec<bool> {
    let tapped = |host| taps.iter().any(|tap| tap.host == host);
    nics.iter().enumerate().map(|(host, card)| card.is_plain() && !tapped(host)).collect()
}
