//! A host's network card: interrupt passes and receive offload.
//!
//! Packets that arrive wait for the interrupt, which follows a configured delay after the first of
//! them (the host's delay plus interrupt moderation); the driver then passes all waiting packets
//! through LRO or GRO in one pass.

use core::num::NonZeroU32;

use machine::PacketId;
use net::offload::{Gro, HashField, Lro, RxOffload};
use packet::Segment;
use units::{Duration, Instant, RandomStream};

use crate::scenario::{HostSpec, ReceiveOffloadSpec, StackSpec};

/// A network card with its driver.
#[derive(Debug)]
pub(crate) struct Nic {
    queue: NicQueue,
    /// Whether a receive offload is enabled.
    merges: bool,
    delay: Duration,
    moderates: bool,
    flush: Duration,
    /// Maximum number of packets in one pass.
    budget: Option<u32>,
    /// Time of the pending interrupt.
    pass_at: Option<Instant>,
    /// When held aggregates are delivered, if they may outlast a pass.
    flush_at: Option<Instant>,
}

/// The packets that wait for the interrupt, and those that an interrupt delivers to the stack.
#[derive(Debug)]
enum NicQueue {
    Tcp(Box<TcpReceiveQueue>),
    /// Receive offloads merge TCP only: the packets keep their slots.
    Quic {
        waiting: Vec<PacketId>,
        up: Vec<PacketId>,
    },
}

#[derive(Debug)]
struct TcpReceiveQueue {
    merger: RxOffload,
    rss: HashField,
    waiting: Vec<Segment>,
    up: Vec<Segment>,
}

/// The packets that an interrupt delivers to the stack, in order.
#[derive(Debug)]
pub(crate) enum NicBatch {
    Tcp(Vec<Segment>),
    Quic(Vec<PacketId>),
}

impl TcpReceiveQueue {
    /// Merges all waiting packets, in passes of at most `budget` packets.
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

impl Nic {
    /// Creates the card of `host`; `random_source` generates random hashes.
    pub(crate) fn new(host: &HostSpec, random_source: RandomStream) -> Self {
        let offload = &host.offload;
        let merger = match offload.receive {
            ReceiveOffloadSpec::Off => RxOffload::Off,
            ReceiveOffloadSpec::Lro(params) => RxOffload::FreeBsd(Lro::new(params)),
            ReceiveOffloadSpec::Gro(params) => RxOffload::Linux(Gro::new(params)),
        };
        let queue = match host.stack {
            StackSpec::Tcp(_) => NicQueue::Tcp(Box::new(TcpReceiveQueue {
                merger,
                rss: HashField::new(offload.rss_hash, random_source),
                waiting: Vec::new(),
                up: Vec::new(),
            })),
            StackSpec::Quic(_) => NicQueue::Quic { waiting: Vec::new(), up: Vec::new() },
        };
        Self {
            queue,
            merges: offload.receive != ReceiveOffloadSpec::Off,
            delay: host.delay + offload.moderation,
            moderates: !offload.moderation.is_zero(),
            flush: offload.flush,
            budget: offload.budget.map(NonZeroU32::get),
            pass_at: None,
            flush_at: None,
        }
    }

    /// Returns whether each packet is delivered unmerged on arrival, if no earlier one waits.
    pub(crate) const fn is_plain(&self) -> bool {
        self.delay.is_zero() && !self.merges
    }

    /// Returns whether the interrupt is delayed to batch packets.
    pub(crate) const fn moderates(&self) -> bool {
        self.moderates
    }

    /// Number of packets that wait for the interrupt.
    pub(crate) fn waiting(&self) -> u32 {
        let waiting = match &self.queue {
            NicQueue::Tcp(segments) => segments.waiting.len(),
            NicQueue::Quic { waiting, .. } => waiting.len(),
        };
        waiting as u32
    }

    /// Receives a segment. Returns the time of a newly scheduled interrupt.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, segment: Segment) -> Option<Instant> {
        if let NicQueue::Tcp(segments) = &mut self.queue {
            segments.waiting.push(segment);
        }
        self.arm(now)
    }

    /// Receives a QUIC packet in its slot; see [`Nic::arrive`].
    pub(crate) fn arrive_quic(&mut self, now: Instant, packet: PacketId) -> Option<Instant> {
        if let NicQueue::Quic { waiting, .. } = &mut self.queue {
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

    /// Handles the interrupt or the timeout of an aggregate. Returns the time of a newly scheduled
    /// wake-up; [`Nic::take_up`] then returns the packets to deliver.
    pub(crate) fn run(&mut self, now: Instant) -> Option<Instant> {
        if self.pass_at.is_some_and(|at| at <= now) {
            self.pass_at = None;
            match &mut self.queue {
                NicQueue::Tcp(segments) => segments.merge(self.budget.unwrap_or(u32::MAX)),
                NicQueue::Quic { waiting, up } => up.append(waiting),
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
        if let NicQueue::Tcp(segments) = &mut self.queue {
            segments.end_pass();
        }
    }

    /// Takes the list of packets for the stack; return it with [`Nic::recycle`].
    pub(crate) fn take_up(&mut self) -> NicBatch {
        match &mut self.queue {
            NicQueue::Tcp(segments) => NicBatch::Tcp(core::mem::take(&mut segments.up)),
            NicQueue::Quic { up, .. } => NicBatch::Quic(core::mem::take(up)),
        }
    }

    /// Returns the list for reuse.
    pub(crate) fn recycle(&mut self, list: NicBatch) {
        match (&mut self.queue, list) {
            (NicQueue::Tcp(segments), NicBatch::Tcp(mut up)) => {
                up.clear();
                segments.up = up;
            }
            (NicQueue::Quic { up, .. }, NicBatch::Quic(mut list)) => {
                list.clear();
                *up = list;
            }
            _ => {}
        }
    }
}
