//! A host's network card: interrupt passes and receive offload.
//!
//! Packets that arrive wait for the interrupt, which comes a declared delay after the first of
//! them (that of the host and that of interrupt moderation); the driver then takes all that wait in one pass through LRO or GRO.

use core::num::NonZeroU32;

use net::offload::{Gro, HashField, Lro, Merger};
use packet::Segment;
use units::{Duration, Instant, Stream};

use crate::datagrams::number_of;
use crate::scenario::{Offload, Receive};

/// A network card with its driver.
#[derive(Debug)]
pub(crate) struct Card {
    merger: Merger,
    rss: HashField,
    delay: Duration,
    moderates: bool,
    flush: Duration,
    /// Packets of one pass at most.
    budget: Option<u32>,
    waiting: Vec<Segment>,
    /// The interrupt that will take what waits.
    pass_at: Option<Instant>,
    /// When held aggregates go up, where they may outlast a pass.
    flush_at: Option<Instant>,
    /// What goes up, in order.
    up: Vec<Segment>,
}

impl Card {
    /// A card; `luck` is for hashes that are random garbage.
    pub(crate) fn new(offload: &Offload, delay: Duration, luck: Stream) -> Self {
        let merger = match offload.receive {
            Receive::Off => Merger::Off,
            Receive::Lro(params) => Merger::FreeBsd(Lro::new(params)),
            Receive::Gro(params) => Merger::Linux(Gro::new(params)),
        };
        Self {
            merger,
            rss: HashField::new(offload.rss_hash, luck),
            delay: delay + offload.moderation,
            moderates: !offload.moderation.is_zero(),
            flush: offload.flush,
            budget: offload.budget.map(NonZeroU32::get),
            waiting: Vec::new(),
            pass_at: None,
            flush_at: None,
            up: Vec::new(),
        }
    }

    /// Does each packet go up alone, the moment it arrives, if none waits that came before?
    pub(crate) const fn is_plain(&self) -> bool {
        self.delay.is_zero() && matches!(self.merger, Merger::Off)
    }

    /// Is the interrupt held back for more packets to come?
    pub(crate) const fn moderates(&self) -> bool {
        self.moderates
    }

    /// Packets that wait for the interrupt.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// A packet arrives. Returns when the card wants to run, if that is news.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, packet: Segment) -> Option<Instant> {
        self.waiting.push(packet);
        if self.pass_at.is_some() {
            return None;
        }
        let at = now + self.delay;
        self.pass_at = Some(at);
        Some(at)
    }

    /// The interrupt, or the end of an aggregate's time. Returns when the card wants to run
    /// again, if that is news; [`Card::take_up`] then gives what goes up.
    pub(crate) fn run(&mut self, now: Instant) -> Option<Instant> {
        if self.pass_at.is_some_and(|at| at <= now) {
            self.pass_at = None;
            let budget = self.budget.unwrap_or(u32::MAX);
            let mut left = budget;
            for packet in self.waiting.drain(..) {
                if left == 0 {
                    self.merger.flush(&mut self.up);
                    self.rss.end_pass();
                    left = budget;
                }
                let hash = self.rss.next(packet.flow);
                if number_of(&packet).is_some() {
                    // Receive offloads merge TCP alone.
                    self.up.push(packet);
                } else {
                    self.merger.push(&packet, hash, &mut self.up);
                }
                left -= 1;
            }
            if self.flush.is_zero() {
                self.end_pass();
            } else if self.flush_at.is_none() {
                let at = now + self.flush;
                self.flush_at = Some(at);
                return Some(at);
            }
        }
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_at = None;
            self.end_pass();
        }
        None
    }

    fn end_pass(&mut self) {
        self.merger.flush(&mut self.up);
        self.rss.end_pass();
    }

    /// Takes the buffer of what goes up; give it back with [`Card::give_back`].
    pub(crate) fn take_up(&mut self) -> Vec<Segment> {
        core::mem::take(&mut self.up)
    }

    /// Gives the buffer back, to be filled again.
    pub(crate) fn give_back(&mut self, mut up: Vec<Segment>) {
        up.clear();
        self.up = up;
    }
}
