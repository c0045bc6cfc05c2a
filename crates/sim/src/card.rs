//! A host's network card: interrupt passes and receive offload.
//!
//! Packets that arrive wait for the interrupt, which comes a declared delay after the first of
//! them (that of the host and that of interrupt moderation); the driver then takes all that wait in one pass through LRO or GRO.

use core::num::NonZeroU32;

use machine::PacketId;
use net::offload::{Gro, HashField, Lro, Merger};
use packet::Segment;
use units::{Duration, Instant, Stream};

use crate::scenario::{Host, Receive, Stack};

/// A network card with its driver.
#[derive(Debug)]
pub(crate) struct Card {
    queue: Queue,
    /// A receive offload is on.
    merges: bool,
    delay: Duration,
    moderates: bool,
    flush: Duration,
    /// Packets of one pass at most.
    budget: Option<u32>,
    /// The interrupt that will take what waits.
    pass_at: Option<Instant>,
    /// When held aggregates go up, where they may outlast a pass.
    flush_at: Option<Instant>,
}

/// The packets that wait for the interrupt, and those that an interrupt hands to the stack.
#[derive(Debug)]
enum Queue {
    Tcp(Box<Segments>),
    /// Receive offloads merge TCP alone: the packets keep their slots.
    Quic {
        waiting: Vec<PacketId>,
        up: Vec<PacketId>,
    },
}

#[derive(Debug)]
struct Segments {
    merger: Merger,
    rss: HashField,
    waiting: Vec<Segment>,
    up: Vec<Segment>,
}

/// The packets that an interrupt hands to the stack, in order.
#[derive(Debug)]
pub(crate) enum Received {
    Tcp(Vec<Segment>),
    Quic(Vec<PacketId>),
}

impl Segments {
    /// Merges all that waits, in passes of at most `budget` packets.
    fn merge(&mut self, budget: u32) {
        let mut left = budget;
        for packet in self.waiting.drain(..) {
            if left == 0 {
                self.merger.flush(&mut self.up);
                self.rss.end_pass();
                left = budget;
            }
            let hash = self.rss.next(packet.flow);
            self.merger.push(&packet, hash, &mut self.up);
            left -= 1;
        }
    }

    fn end_pass(&mut self) {
        self.merger.flush(&mut self.up);
        self.rss.end_pass();
    }
}

impl Card {
    /// The card of `host`; `luck` is for hashes that are random garbage.
    pub(crate) fn new(host: &Host, luck: Stream) -> Self {
        let offload = &host.offload;
        let merger = match offload.receive {
            Receive::Off => Merger::Off,
            Receive::Lro(params) => Merger::FreeBsd(Lro::new(params)),
            Receive::Gro(params) => Merger::Linux(Gro::new(params)),
        };
        let queue = match host.stack {
            Stack::Tcp(_) => Queue::Tcp(Box::new(Segments {
                merger,
                rss: HashField::new(offload.rss_hash, luck),
                waiting: Vec::new(),
                up: Vec::new(),
            })),
            Stack::Quic(_) => Queue::Quic { waiting: Vec::new(), up: Vec::new() },
        };
        Self {
            queue,
            merges: offload.receive != Receive::Off,
            delay: host.delay + offload.moderation,
            moderates: !offload.moderation.is_zero(),
            flush: offload.flush,
            budget: offload.budget.map(NonZeroU32::get),
            pass_at: None,
            flush_at: None,
        }
    }

    /// Does each packet go up alone, the moment it arrives, if none waits that came before?
    pub(crate) const fn is_plain(&self) -> bool {
        self.delay.is_zero() && !self.merges
    }

    /// Is the interrupt held back for more packets to come?
    pub(crate) const fn moderates(&self) -> bool {
        self.moderates
    }

    /// Packets that wait for the interrupt.
    pub(crate) fn waiting(&self) -> u32 {
        let waiting = match &self.queue {
            Queue::Tcp(segments) => segments.waiting.len(),
            Queue::Quic { waiting, .. } => waiting.len(),
        };
        waiting as u32
    }

    /// A segment arrives. Returns when the card wants to run, if that is news.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, segment: Segment) -> Option<Instant> {
        if let Queue::Tcp(segments) = &mut self.queue {
            segments.waiting.push(segment);
        }
        self.arm(now)
    }

    /// As [`Card::arrive`], for a QUIC packet in its slot.
    pub(crate) fn arrive_quic(&mut self, now: Instant, packet: PacketId) -> Option<Instant> {
        if let Queue::Quic { waiting, .. } = &mut self.queue {
            waiting.push(packet);
        }
        self.arm(now)
    }

    #[inline]
    fn arm(&mut self, now: Instant) -> Option<Instant> {
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
            match &mut self.queue {
                Queue::Tcp(segments) => segments.merge(self.budget.unwrap_or(u32::MAX)),
                Queue::Quic { waiting, up } => up.append(waiting),
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
        if let Queue::Tcp(segments) = &mut self.queue {
            segments.end_pass();
        }
    }

    /// Takes the list of packets for the stack; give it back with [`Card::give_back`].
    pub(crate) fn take_up(&mut self) -> Received {
        match &mut self.queue {
            Queue::Tcp(segments) => Received::Tcp(core::mem::take(&mut segments.up)),
            Queue::Quic { up, .. } => Received::Quic(core::mem::take(up)),
        }
    }

    /// Gives the list back, to be filled again.
    pub(crate) fn give_back(&mut self, list: Received) {
        match (&mut self.queue, list) {
            (Queue::Tcp(segments), Received::Tcp(mut up)) => {
                up.clear();
                segments.up = up;
            }
            (Queue::Quic { up, .. }, Received::Quic(mut list)) => {
                list.clear();
                *up = list;
            }
            _ => {}
        }
    }
}
