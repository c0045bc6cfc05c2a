//! The stations of all paths, and what happens at them.

use machine::{Element as _, PacketId, Verdict};
use net::delay::Delay;
use net::link::Link;
use units::{Bytes, Instant};

use crate::scenario::Element;

/// A one-way road: the stations a packet meets, in order, and where it ends. Several roads may
/// lead through one station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Road {
    /// Numbers of stations.
    pub(crate) stations: Vec<u32>,
    /// Host whose network card it ends at.
    pub(crate) to: u16,
}

/// An element in its place.
#[derive(Debug)]
pub(crate) struct Station {
    stage: Stage,
    /// Time of the entry in the calendar that stands for this station.
    pub(crate) armed: Option<Instant>,
}

#[derive(Debug)]
enum Stage {
    Link(Link),
    Delay(Delay),
}

impl Station {
    fn new(element: &Element) -> Self {
        let stage = match *element {
            Element::Link { rate, limit } => Stage::Link(Link::new(rate, limit)),
            Element::Delay(span) => Stage::Delay(Delay::new(span)),
        };
        Self { stage, armed: None }
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

/// Adds a road with stations of its own that ends at host `to`.
pub(crate) fn build(stations: &mut Vec<Station>, elements: &[Element], to: u16) -> Road {
    let first = stations.len() as u32;
    stations.extend(elements.iter().map(Station::new));
    Road { stations: (first..stations.len() as u32).collect(), to }
}
