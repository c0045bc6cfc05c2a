//! The event loop: runs the events of the world and the guests in the order of time.
//!
//! At equal times the world runs first, then the guests by index. At most one guest runs at any
//! time.

use packet::Segment;
use record::EventSource;
use sim::Observer;
use sim::live::{ExternalDelivery, ExternalPacket, LiveSimulation};
use units::{FlowId, HostId, Instant};

use crate::flows::Flows;
use crate::guest::{Guest, GuestError, Outlet, Packet};

/// A guest with its host index in the world.
#[derive(Debug)]
pub struct Attached<G> {
    /// Index of the host.
    pub host: usize,
    /// The guest.
    pub guest: G,
}

/// The error of one guest.
#[derive(Debug)]
pub struct Failed {
    /// Index of the host.
    pub host: usize,
    /// Time of the error in the world.
    pub at: Instant,
    /// The error.
    pub error: GuestError,
}

/// Counters that determine the cost of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DriveCounters {
    /// Number of times a guest ran.
    pub turns: u64,
    /// Number of receive interrupts.
    pub deliveries: u64,
}

/// Runs a world with its guests until `end`, or until no event is left.
///
/// # Errors
/// [`Failed`] as soon as a guest cannot go on.
pub fn drive<O: Observer, G: Guest>(
    live: &mut LiveSimulation<'_, O>,
    guests: &mut [Attached<G>],
    flows: &mut Flows,
    end: Instant,
) -> Result<DriveCounters, Failed> {
    let mut leaving = Vec::new();
    let mut counters = DriveCounters::default();
    let after_end = Instant::from_nanos(end.as_nanos().saturating_add(1));
    loop {
        let event = live.next_at().unwrap_or(Instant::MAX);
        let mut deadlines = Vec::with_capacity(guests.len());
        for one in &mut *guests {
            let deadline = one.guest.next_deadline();
            deadlines.push(deadline.map_err(|error| one.failed(event, error))?);
        }
        let next = deadlines.iter().copied().zip(0..).min();
        let now = next.map_or(event, |(at, _)| at.min(event));
        let finished = guests.iter().all(|one| one.guest.is_finished());
        if now > end || (finished && (live.over() || event == Instant::MAX)) {
            if now > end {
                live.advance(end);
            }
            return Ok(counters);
        }
        match next {
            Some((at, number)) if at < event => {
                let others = deadlines.iter().zip(0..).filter(|&(_, other)| other != number);
                let others = others.map(|(&at, _)| at).min().unwrap_or(Instant::MAX);
                let limit = event.min(others).min(after_end);
                let one = &mut guests[number];
                let mut outlet = WorldOutlet { live, flows, leaving: &mut leaving, limit };
                counters.turns += 1;
                one.guest.run(at, limit, &mut outlet).map_err(|error| one.failed(at, error))?;
                record_samples(live, one);
            }
            _ => live.advance(event),
        }
        live.take_leaving(&mut leaving);
        counters.deliveries += deliver(guests, flows, &mut leaving)?;
    }
}

/// Records the states of senders that a guest has reported.
fn record_samples<O: Observer, G: Guest>(live: &mut LiveSimulation<'_, O>, one: &mut Attached<G>) {
    let host = HostId(one.host as u16);
    one.guest.take_samples(&mut |at, sample| {
        let source = EventSource { host, flow: FlowId(sample.flow as u32) };
        let (event, state) = sample.row();
        live.observer().record(at, source, event, Some(&state));
    });
}

impl<G> Attached<G> {
    const fn failed(&self, at: Instant, error: GuestError) -> Failed {
        Failed { host: self.host, at, error }
    }
}

/// Delivers packets to their guests: packets that reach a guest at the same time share one
/// interrupt.
fn deliver<G: Guest>(
    guests: &mut [Attached<G>],
    flows: &mut Flows,
    leaving: &mut Vec<ExternalDelivery>,
) -> Result<u64, Failed> {
    let mut deliveries = 0;
    // All that has left at one time is in the list, unless a guest sends to another without delay
    // while it runs on: order by time, then as they came.
    leaving.sort_by_key(|packet| packet.at);
    let mut rest = &leaving[..];
    while let Some(first) = rest.first() {
        let same_time = rest.iter().take_while(|packet| packet.at == first.at).count();
        let (batch, later) = rest.split_at(same_time);
        for one in &mut *guests {
            let mut packets = Vec::new();
            for packet in batch.iter().filter(|packet| packet.host == one.host) {
                let mut bytes = Vec::new();
                let (written, size) = match &packet.packet {
                    ExternalPacket::Tcp(segment) => {
                        (flows.packet(segment, &mut bytes), merged_size(segment))
                    }
                    ExternalPacket::TooBig(message) => (flows.too_big(message, &mut bytes), 0),
                };
                match written {
                    Ok(()) => packets.push((bytes, size)),
                    Err(_) => flows.counters.unsendable += 1,
                }
            }
            if packets.is_empty() {
                continue;
            }
            let packets: Vec<Packet<'_>> =
                packets.iter().map(|(bytes, size)| Packet { bytes, gso_size: *size }).collect();
            deliveries += 1;
            let received = one.guest.receive(first.at, &packets);
            received.map_err(|error| one.failed(first.at, error))?;
        }
        rest = later;
    }
    leaving.clear();
    Ok(deliveries)
}

/// Payload of each packet that a card merged into this one; 0 for a single packet.
fn merged_size(segment: &Segment) -> u16 {
    match u32::from(segment.nsegs) {
        0 | 1 => 0,
        packets => segment.payload.div_ceil(packets).min(u32::from(u16::MAX)) as u16,
    }
}

/// The sink through which packets of a guest enter the world.
struct WorldOutlet<'l, 'w, O: Observer> {
    live: &'l mut LiveSimulation<'w, O>,
    flows: &'l mut Flows,
    leaving: &'l mut Vec<ExternalDelivery>,
    limit: Instant,
}

impl<O: Observer> Outlet for WorldOutlet<'_, '_, O> {
    fn send(&mut self, at: Instant, packet: &Packet<'_>) -> Instant {
        if let Some(segment) = self.flows.segment(packet) {
            self.inject(at, &segment);
        }
        self.limit
    }
}

impl<O: Observer> WorldOutlet<'_, '_, O> {
    fn inject(&mut self, at: Instant, segment: &Segment) {
        if !self.live.inject(at, segment) {
            self.flows.counters.foreign += 1;
        }
        self.live.take_leaving(self.leaving);
        let next = self.live.next_at().unwrap_or(Instant::MAX);
        self.limit = self.limit.min(if self.leaving.is_empty() { next } else { at });
    }
}
