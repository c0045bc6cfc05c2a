//! The network: packets on their way from the card of one host, over the stations of a road, to
//! the card of another.

use machine::{Cx, Fate, PacketId, Verdict};
use net::calendar::Calendar;
use packet::Segment;
use record::{Event, Movement, PacketNumber, StationId, Who};
use units::{Bytes, FlowId, HostId, Instant, unlikely};

use super::Wake;
use super::packet_slots::{Packet, PacketSlots, Way};
use crate::card::{Card, Received};
use crate::observer::{Observer, PROGRESS_EVERY};
use crate::road::{Accepted, Roads, Station, Stop};
use crate::run_error::{Duplicates, MOST_PACKETS, RunError};
use crate::scenario::{Tap, TapPlace};

/// All that lies between the hosts, with the calendar and the one who watches.
pub(super) struct Network<'a, O: Observer> {
    pub(super) observer: &'a mut O,
    pub(super) now: Instant,
    /// When the run ends.
    pub(super) end: Instant,
    pub(super) calendar: Calendar<Wake>,
    pub(super) slots: PacketSlots,
    pub(super) taps: &'a [Tap],
    /// Packets that have left their hosts, and copies.
    pub(super) packets: u64,
    /// Copies that have left the station where they were made, but gone no further yet.
    pub(super) copies: Vec<PacketId>,
    duplicates: Copies,
    /// Why the run does not go on to its end.
    pub(super) given_up: Option<RunError>,
    /// [`PROGRESS_EVERY`] turns have passed.
    pub(super) progressed: bool,
    pub(super) stations: Vec<Station>,
    pub(super) roads: Roads,
    pub(super) cards: Vec<Card>,
    /// For each host whether its card lets packets go up alone and at once, and nobody looks.
    plain_hosts: Vec<bool>,
    /// Packets that wait in cards.
    in_cards: u32,
    /// The segment that an endpoint writes; the other packets of a burst are made of it.
    pub(super) model: Segment,
}

/// How many copies were made.
#[derive(Debug, Default)]
struct Copies {
    /// The latest instant at which there were any, and their number.
    at: Option<Instant>,
    made: usize,
}

/// A moment of one end of a flow.
#[inline(always)]
pub(super) fn cx<O: Observer>(rec: &mut O, now: Instant, host: u16, flow: FlowId) -> Cx<'_, O> {
    Cx { now, who: Who { host: HostId(host), flow }, rec }
}

impl<'a, O: Observer> Network<'a, O> {
    pub(super) fn new(
        observer: &'a mut O,
        taps: &'a [Tap],
        (stations, roads): (Vec<Station>, Roads),
        cards: Vec<Card>,
    ) -> Self {
        Self {
            observer,
            now: Instant::ZERO,
            end: Instant::MAX,
            calendar: Calendar::new(),
            slots: PacketSlots::new(),
            taps,
            packets: 0,
            copies: Vec::new(),
            duplicates: Copies::default(),
            given_up: None,
            progressed: false,
            stations,
            roads,
            plain_hosts: plain_hosts(&cards, taps),
            cards,
            in_cards: 0,
            model: Segment::default(),
        }
    }

    /// The present moment of one end of a flow.
    #[inline(always)]
    pub(super) fn cx(&mut self, host: u16, flow: FlowId) -> Cx<'_, O> {
        cx(&mut *self.observer, self.now, host, flow)
    }

    /// Another turn of a run.
    #[inline(always)]
    pub(super) fn count_turn(&mut self, turns: &mut u64) {
        *turns += 1;
        if unlikely(turns.is_multiple_of(PROGRESS_EVERY)) {
            self.report_progress();
        }
    }

    #[cold]
    #[inline(never)]
    fn report_progress(&mut self) {
        self.progressed = true;
        if self.observer.progress(self.now).is_break() {
            self.give_up(RunError::Stopped);
        }
    }

    /// Nothing more happens; the first reason counts.
    pub(super) fn give_up(&mut self, error: RunError) {
        self.given_up.get_or_insert(error);
        self.end = Instant::ZERO;
    }

    /// Tells a step of a packet, if anybody wants to know.
    #[inline(always)]
    pub(super) fn step(&mut self, movement: impl FnOnce(&Self) -> Movement) {
        if O::PACKETS {
            let movement = movement(self);
            self.observer.moved(self.now, movement);
        }
    }

    /// Shows a packet to the taps at this place.
    #[inline(always)]
    pub(super) fn look(&mut self, host: u16, place: TapPlace, outbound: bool, id: PacketId) {
        if unlikely(!self.taps.is_empty()) {
            self.show(host, place, outbound, id);
        }
    }

    #[inline(never)]
    fn show(&mut self, host: u16, place: TapPlace, outbound: bool, id: PacketId) {
        for (number, tap) in self.taps.iter().enumerate() {
            if tap.host == usize::from(host) && tap.place == place {
                match self.slots.packet(id) {
                    Packet::Tcp(segment) => {
                        self.observer.tap(self.now, number, outbound, &segment);
                    }
                    Packet::Quic(packet) => {
                        self.observer.datagram(self.now, number, outbound, packet);
                    }
                }
            }
        }
    }

    // On the way.

    /// A packet has left a station.
    #[inline(always)]
    pub(super) fn note_left(&mut self, index: u32, id: PacketId) {
        self.step(|network| Movement::Left {
            station: StationId(index),
            packet: network.slots.way(id).number,
        });
    }

    /// The next packet that leaves a station now.
    pub(super) fn leaving(&mut self, index: u32) -> Option<PacketId> {
        let id = self.stations[index as usize].wake(self.now)?;
        self.note_left(index, id);
        self.settle_fates(index);
        Some(id)
    }

    /// Does another packet leave a station now? If not, its entry is set for when one does.
    #[inline]
    pub(super) fn more_leave(&mut self, index: u32) -> bool {
        let station = &mut self.stations[index as usize];
        let Some(at) = station.next_wake() else { return false };
        if at > self.now {
            self.arm_station_at(index, at);
        }
        at <= self.now
    }

    /// Are there copies that have gone no further yet?
    #[inline(always)]
    pub(super) const fn has_copies(&self) -> bool {
        unlikely(!self.copies.is_empty())
    }

    /// The next copy that goes on its way.
    #[inline]
    pub(super) fn next_copy(&mut self) -> Option<PacketId> {
        self.copies.pop()
    }

    #[inline]
    pub(super) fn arm_station(&mut self, index: u32) {
        let station = &mut self.stations[index as usize];
        // What leaves such a station first is there already.
        if station.armed.is_some() && station.keeps_order() {
            return;
        }
        if let Some(at) = station.next_wake() {
            self.arm_station_at(index, at);
        }
    }

    #[inline(always)]
    pub(super) fn arm_station_at(&mut self, index: u32, at: Instant) {
        let station = &mut self.stations[index as usize];
        if at < station.armed.unwrap_or(Instant::MAX) {
            station.armed = Some(at);
            self.calendar.push(at, Wake::Station(index));
        }
    }

    /// A packet comes to the next station and passes those that let it, or comes to the end of
    /// its road: then the host is told.
    #[inline(always)]
    pub(super) fn carry(&mut self, id: PacketId) -> Option<u16> {
        let way = *self.slots.way(id);
        self.carry_on::<true>(id, way)
    }

    /// The same for a packet whose way is that one, `NOTED` but for its next stop or not at all.
    #[inline(always)]
    pub(super) fn carry_on<const NOTED: bool>(
        &mut self,
        id: PacketId,
        mut way: Way,
    ) -> Option<u16> {
        loop {
            let index = match self.roads.stop(way.next) {
                Stop::Station(index) => index,
                Stop::Host(host) => return self.reach(host, id, &way),
            };
            way.next += 1;
            if NOTED {
                self.slots.way_mut(id).next = way.next;
            } else {
                *self.slots.way_mut(id) = way;
            }
            let (station, packet) = (StationId(index), way.number);
            let size = Bytes(u64::from(way.size()));
            let view = || self.slots.view(id, size);
            match self.stations[index as usize].accept(self.now, id, size, view) {
                Accepted::Waits => {
                    self.step(|_| Movement::Entered { station, packet });
                    return None;
                }
                Accepted::Wakes(at) => {
                    self.step(|_| Movement::Entered { station, packet });
                    self.calendar.push(at, Wake::Station(index));
                    return None;
                }
                Accepted::Judged(verdict) => way = self.judged(verdict, station, id)?,
            }
        }
    }

    /// Does what the element of a station said of a packet; its way if it goes on.
    #[inline(never)]
    fn judged(&mut self, verdict: Verdict, station: StationId, id: PacketId) -> Option<Way> {
        let index = station.0;
        // Most packets at what picks a few of them.
        if verdict == Verdict::Passed && !O::PACKETS && self.stations[index as usize].lets_pass() {
            return Some(*self.slots.way(id));
        }
        if verdict == Verdict::Taken {
            let packet = self.slots.way(id).number;
            self.step(|_| Movement::Entered { station, packet });
            self.settle_fates(index);
            self.arm_station(index);
            return None;
        }
        if self.settle(verdict, station, id) {
            return None;
        }
        let packet = self.slots.way(id).number;
        self.step(|_| Movement::Left { station, packet });
        // It may have released another.
        self.arm_station(index);
        Some(*self.slots.way(id))
    }

    /// What became of a packet that a station did not simply take. Returns true if it goes no
    /// further.
    fn settle(&mut self, verdict: Verdict, station: StationId, id: PacketId) -> bool {
        let packet = self.slots.way(id).number;
        match verdict {
            Verdict::Taken => return true,
            Verdict::Replaced(old) => {
                self.step(|_| Movement::Entered { station, packet });
                self.lose(station, old);
                self.arm_station(station.0);
                return true;
            }
            Verdict::Dropped => {
                self.lose(station, id);
                return true;
            }
            Verdict::Passed => self.step(|_| Movement::Entered { station, packet }),
            Verdict::Damaged => {
                self.slots.way_mut(id).damage();
                self.step(|_| Movement::Entered { station, packet });
                self.step(|_| Movement::Damaged { station, packet });
            }
            Verdict::Doubled if self.is_crowded(id) => {
                self.step(|_| Movement::Entered { station, packet });
            }
            Verdict::Doubled => {
                let copy = PacketNumber(self.packets);
                self.packets += 1;
                self.step(|_| Movement::Entered { station, packet });
                self.step(|_| Movement::Copied { station, packet, copy });
                self.step(|_| Movement::Entered { station, packet: copy });
                self.step(|_| Movement::Left { station, packet: copy });
                let copy = self.slots.copy(id, copy);
                self.copies.push(copy);
            }
        }
        false
    }

    /// Must no more copies be made? Asked for each, with the packet that is to be copied.
    fn is_crowded(&mut self, id: PacketId) -> bool {
        let copies = &mut self.duplicates;
        if copies.at != Some(self.now) {
            (copies.at, copies.made) = (Some(self.now), 0);
        }
        copies.made += 1;
        if self.given_up.is_none() && copies.made.max(self.slots.most()) > MOST_PACKETS {
            let stop = self.slots.way(id).next - 1;
            let (path, reverse) = self.roads.path(stop);
            let element = usize::from(self.roads.place(stop).0);
            self.give_up(RunError::Duplicates(Duplicates { path, reverse, element, at: self.now }));
        }
        self.given_up.is_some()
    }

    /// A queue that thins itself out marks and loses packets that it has.
    #[inline(always)]
    fn settle_fates(&mut self, index: u32) {
        while let Some(fate) = self.stations[index as usize].next_fate() {
            let station = StationId(index);
            match fate {
                Fate::Lost(id) => self.lose(station, id),
                Fate::Marked(id) => {
                    self.slots.mark(id);
                    self.step(|network| Movement::Marked {
                        station,
                        packet: network.slots.way(id).number,
                    });
                }
            }
        }
    }

    /// A station loses a packet, one that just came or one that it had.
    fn lose(&mut self, station: StationId, id: PacketId) {
        self.step(|network| Movement::Dropped { station, packet: network.slots.way(id).number });
        self.note_loss(id);
        self.slots.release(id);
    }

    /// Tells the flow's record that a packet to one of its ends was lost.
    fn note_loss(&mut self, id: PacketId) {
        if !O::ON {
            return;
        }
        let way = self.slots.way(id);
        let (element, host) = self.roads.place(way.next - 1);
        let event = Event::Dropped { element, bytes: way.size() };
        let (flow, _) = self.slots.flow(id);
        self.cx(host, flow).emit(|| event);
    }

    // In.

    /// A packet reaches the network card at the end of its road, which drops what is damaged
    /// before any capture point sees it.
    #[inline(always)]
    fn reach(&mut self, host: u16, id: PacketId, way: &Way) -> Option<u16> {
        self.step(|_| Movement::Arrived { host: HostId(host), packet: way.number });
        if unlikely(way.damaged()) {
            self.slots.release(id);
            return None;
        }
        Some(host)
    }

    /// Is there nothing to wait for and nothing to merge with at a host, and nobody who looks?
    #[inline(always)]
    pub(super) fn goes_up_unseen(&self, host: u16) -> bool {
        self.plain_hosts[usize::from(host)] && self.in_cards == 0
    }

    /// The same, perhaps under the eyes of somebody.
    pub(super) fn goes_up_at_once(&self, host: u16) -> bool {
        let card = &self.cards[usize::from(host)];
        card.is_plain() && card.waiting() == 0
    }

    /// A packet waits in the card of a host for the interrupt.
    pub(super) fn wait_in_card(&mut self, host: u16, id: PacketId) {
        self.in_cards += 1;
        let card = &mut self.cards[usize::from(host)];
        let wake = match self.slots.packet(id) {
            Packet::Tcp(segment) => {
                self.slots.release(id);
                card.arrive(self.now, segment)
            }
            Packet::Quic(_) => card.arrive_quic(self.now, id),
        };
        if let Some(at) = wake {
            self.calendar.push(at, Wake::Card(host));
        }
    }

    /// The interrupt: returns the packets for the stack. Give the list back to the card.
    pub(super) fn interrupt(&mut self, host: u16) -> Received {
        let card = &mut self.cards[usize::from(host)];
        self.in_cards -= card.waiting();
        if let Some(at) = card.run(self.now) {
            self.calendar.push(at, Wake::Card(host));
        }
        self.in_cards += card.waiting();
        card.take_up()
    }
}

/// For each host: does its card let packets go up alone and at once, and is no tap there?
fn plain_hosts(cards: &[Card], taps: &[Tap]) -> Vec<bool> {
    let tapped = |host| taps.iter().any(|tap| tap.host == host);
    cards.iter().enumerate().map(|(host, card)| card.is_plain() && !tapped(host)).collect()
}
