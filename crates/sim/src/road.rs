//! The stations of all paths, and what happens at them.

use machine::{Element as _, PacketId, Verdict};
use net::delay::Delay;
use net::link::Link;
use units::{Bytes, Instant};

use crate::scenario::Element;

/// Where a packet goes when it leaves a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// To another station, by number.
    Station(u32),
    /// To the network card of a host.
    Card(u16),
}

/// An element in its place.
#[derive(Debug)]
pub(crate) struct Station {
    stage: Stage,
    /// Where packets go from here.
    pub(crate) next: Next,
    /// Number of the element on its road, from 0.
    pub(crate) place: u16,
    /// Time of the entry in the calendar that stands for this station.
    pub(crate) armed: Option<Instant>,
}

#[derive(Debug)]
enum Stage {
    Link(Link),
    Delay(Delay),
}

impl Station {
    fn new(element: &Element, place: u16) -> Self {
        let stage = match *element {
            Element::Link { rate, limit } => Stage::Link(Link::new(rate, limit)),
            Element::Delay(span) => Stage::Delay(Delay::new(span)),
        };
        Self { stage, next: Next::Card(0), place, armed: None }
    }

    #[inline]
    pub(crate) fn accept(&mut self, now: Instant, packet: PacketId, size: Bytes) -> Verdict {
        match &mut self.stage {
            Stage::Link(link) => link.accept(now, packet, size),
            Stage::Delay(delay) => delay.accept(now, packet, size),
        }
    }

    #[inline]
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Link(link) => link.next_wake(),
            Stage::Delay(delay) => delay.next_wake(),
        }
    }

    #[inline]
    pub(crate) fn wake(&mut self, now: Instant) -> Option<PacketId> {
        match &mut self.stage {
            Stage::Link(link) => link.wake(now),
            Stage::Delay(delay) => delay.wake(now),
        }
    }
}

/// Adds the stations of one road that ends at host `to`; returns its entrance.
pub(crate) fn build(stations: &mut Vec<Station>, elements: &[Element], to: u16) -> Next {
    let first = stations.len();
    for (place, element) in elements.iter().enumerate() {
        let mut station = Station::new(element, place as u16);
        let behind = first + place + 1;
        let last = place + 1 == elements.len();
        station.next = if last { Next::Card(to) } else { Next::Station(behind as u32) };
        stations.push(station);
    }
    if elements.is_empty() { Next::Card(to) } else { Next::Station(first as u32) }
}
