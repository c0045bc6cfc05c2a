//! Queue disciplines: which of the packets that wait goes next, and which is marked or lost
//! before the queue is full (active queue management, RFC 7567).

pub mod codel;
pub mod fq_codel;
pub mod pie;
pub mod red;

use std::collections::VecDeque;

use machine::{Fate, PacketId, View};
use units::{Bytes, Duration, Instant};

use crate::choice::Luck;
use crate::link::Limit;

/// A discipline with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// First in, first out; what finds no room is lost.
    #[default]
    DropTail,
    /// RFC 8289.
    CoDel(codel::Params),
    /// RFC 8290.
    FqCoDel(fq_codel::Params),
    /// RFC 8033.
    Pie(pie::Params),
    /// Floyd and Jacobson 1993.
    Red(red::Params),
}

/// A packet that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Its number.
    pub packet: PacketId,
    /// IP bytes.
    pub size: Bytes,
    /// When it came.
    pub since: Instant,
    /// May it be marked (RFC 3168)?
    pub capable: bool,
}

/// What the discipline did to packets, oldest first.
pub(crate) type Fates = VecDeque<Fate>;

/// Packets in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fifo {
    packets: VecDeque<Waiting>,
    bytes: Bytes,
}

impl Fifo {
    pub(crate) const fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: Bytes::ZERO }
    }

    pub(crate) fn push(&mut self, packet: Waiting) {
        self.bytes += packet.size;
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.size;
        Some(packet)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// IP bytes of all.
    pub(crate) const fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Is there room for `size` more?
    fn has_room(&self, limit: Limit, size: Bytes) -> bool {
        match limit {
            Limit::Bytes(limit) => self.bytes + size <= limit,
            Limit::Packets(limit) => self.len() < limit as usize,
        }
    }
}

/// A discipline at work.
#[derive(Debug, Clone)]
pub(crate) enum Queue {
    DropTail(Fifo),
    CoDel(codel::Codel),
    FqCoDel(fq_codel::FqCodel),
    Pie(pie::Pie),
    Red(red::Red),
}

impl Queue {
    /// An empty one; its line sends a packet of 1,000 bytes in `slot`.
    pub(crate) fn new(policy: Policy, slot: Duration, luck: &Luck<'_>) -> Self {
        match policy {
            Policy::DropTail => Self::DropTail(Fifo::new()),
            Policy::CoDel(params) => Self::CoDel(codel::Codel::new(params)),
            Policy::FqCoDel(params) => Self::FqCoDel(fq_codel::FqCodel::new(params, luck)),
            Policy::Pie(params) => Self::Pie(pie::Pie::new(params, luck)),
            Policy::Red(params) => Self::Red(red::Red::new(params, slot, luck)),
        }
    }

    /// A packet comes; false if it is lost. To an idle line (`idle`) it goes at once, and needs no
    /// room.
    pub(crate) fn enqueue(
        &mut self,
        packet: Waiting,
        view: &View,
        limit: Limit,
        idle: bool,
        fates: &mut Fates,
    ) -> bool {
        let fits = |queue: &Fifo| idle || queue.has_room(limit, packet.size);
        match self {
            Self::DropTail(queue) => {
                let room = fits(queue);
                if room {
                    queue.push(packet);
                }
                room
            }
            Self::CoDel(codel) => {
                let room = fits(&codel.queue);
                if room {
                    codel.enqueue(packet);
                }
                room
            }
            Self::FqCoDel(fq) => {
                fq.enqueue(packet, view);
                if !idle {
                    fq.shrink_to(limit, fates);
                }
                true
            }
            Self::Pie(pie) => {
                let room = fits(&pie.queue);
                pie.enqueue(packet, room, fates)
            }
            Self::Red(red) => {
                let room = fits(&red.queue);
                red.enqueue(packet, room, fates)
            }
        }
    }

    /// The packet that goes at `now`.
    pub(crate) fn dequeue(&mut self, now: Instant, fates: &mut Fates) -> Option<Waiting> {
        match self {
            Self::DropTail(queue) => queue.pop(),
            Self::CoDel(codel) => codel.dequeue(now, fates),
            Self::FqCoDel(fq) => fq.dequeue(now, fates),
            Self::Pie(pie) => pie.dequeue(now),
            Self::Red(red) => red.dequeue(now),
        }
    }
}
