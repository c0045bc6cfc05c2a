//! The recorder: passes every connection event to its end and every packet event to the traffic
//! model.

use record::{Event, EventSource, PacketEvent, PacketNumber, Recorder, SenderState, TcpBits};
use units::{FlowId, HostId, Instant};

use crate::contents::PacketContents;
use crate::endpoint::{EndpointModel, PacketDeparture};
use crate::listen::AcceptQueues;
use crate::summary::VerifiedSummary;
use crate::traffic::{DeliveredPacket, DroppedPacket, Traffic};
use crate::violation::{Subject, Violation, ViolationKind, ViolationLog};
use crate::world::{FlowModel, WorldError, WorldModel};

/// Verifies a run while it is recorded. Its memory grows with the data in flight, not with the run.
#[derive(Debug, Clone)]
pub struct Verifier {
    log: ViolationLog,
    traffic: Traffic,
    flows: FlowIndex,
    accept_queues: AcceptQueues,
    /// The packet dropped last: the event of its drop must follow.
    lost: Option<DroppedPacket>,
}

impl Verifier {
    /// Creates a verifier for a run in `world`.
    ///
    /// # Errors
    /// The description is inconsistent.
    pub fn new(world: &WorldModel) -> Result<Self, WorldError> {
        world.check()?;
        let (log, traffic) = (ViolationLog::new(), Traffic::new(world));
        Ok(Self {
            log,
            traffic,
            flows: FlowIndex::new(world),
            accept_queues: AcceptQueues::new(world),
            lost: None,
        })
    }

    /// Ends the verification; the run ended at `at`.
    ///
    /// # Errors
    /// Violations in the order of detection; a long list is truncated.
    pub fn finish(mut self, at: Instant) -> Result<VerifiedSummary, Vec<Violation>> {
        self.pass(at);
        self.expect_loss(None);
        self.traffic.finish(&mut self.log);
        for end in self.flows.0.iter().flat_map(|flow| &flow.ends) {
            end.finish(&mut self.log);
        }
        if !self.log.found.is_empty() {
            return Err(self.log.found);
        }
        let counts = self.traffic.counts;
        let ends = |flow: &FlowEndpoints| flow.ends.each_ref().map(EndpointModel::summary);
        Ok(VerifiedSummary {
            departed: self.traffic.numbered() - counts.copies - counts.injected,
            injected: counts.injected,
            copies: counts.copies,
            damaged: counts.damaged,
            marked: counts.marked,
            arrived: counts.arrived,
            lost: counts.lost,
            in_transit: self.traffic.in_transit(),
            flows: self.flows.0.iter().map(ends).collect(),
        })
    }

    /// Returns the violations found so far.
    pub fn violations(&self) -> &[Violation] {
        &self.log.found
    }

    #[inline]
    fn pass(&mut self, at: Instant) {
        if at > self.log.now {
            self.traffic.check_in_transit(&mut self.log);
            self.log.now = at;
        } else if at < self.log.now {
            let before = self.log.now;
            self.log.note(Subject::Record, ViolationKind::TimeRanBack { before });
        }
    }

    fn depart(&mut self, who: EventSource, departure: &PacketDeparture) {
        let Some((side, ends)) = self.flows.find(&mut self.log, who) else { return };
        if let Some(payload) = ends[side].depart(&mut self.log, departure) {
            let sender = (who.flow.0, side as u8);
            let PacketDeparture { packet, size, ecn, tcp, .. } = *departure;
            let contents = PacketContents { payload, tcp };
            self.traffic.depart(&mut self.log, packet, sender, (size, ecn), contents);
        }
    }

    fn arrive(&mut self, packet: PacketNumber, host: HostId, tcp: TcpBits) {
        let delivery = self.traffic.arrive(&mut self.log, packet, (host, tcp));
        if let Some(DeliveredPacket { flow, from, ref contents }) = delivery {
            let ends = &mut self.flows.0[flow as usize].ends;
            ends[1 - usize::from(from)].arrive(contents);
        }
    }

    /// Checks that each drop is followed by its event, and each such event preceded by a drop.
    #[inline]
    fn expect_loss(&mut self, reported: Option<DroppedPacket>) {
        if self.lost != reported {
            let lost = self.lost.or(reported);
            let who = lost.map(|lost| EventSource { host: lost.to, flow: FlowId(lost.flow) });
            self.log.note(who.map_or(Subject::Record, Subject::End), ViolationKind::DropMismatch);
        }
        self.lost = None;
    }
}

impl Recorder for Verifier {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.pass(at);
        if let Event::Dropped { element, bytes } = event {
            let (flow, hop) = (who.flow.0, u32::from(element));
            return self.expect_loss(Some(DroppedPacket { flow, to: who.host, hop, size: bytes }));
        }
        self.expect_loss(None);
        if let Some((side, ends)) = self.flows.find(&mut self.log, who) {
            let [one, other] = ends;
            let (end, peer) = if side == 0 { (one, other) } else { (other, one) };
            if side == 1 {
                self.accept_queues.on_event(&mut self.log, who, &event);
            }
            end.on_event(&mut self.log, event, state, peer.arrivals());
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.pass(at);
        self.expect_loss(None);
        let log = &mut self.log;
        match movement {
            PacketEvent::Sent { host, flow, packet, seq, len, size, ecn, tcp } => {
                self.depart(
                    EventSource { host, flow },
                    &PacketDeparture { packet, seq, len, size, ecn, tcp },
                );
            }
            PacketEvent::Accepted { hop_index, packet } => {
                self.traffic.enter(log, packet, hop_index);
            }
            PacketEvent::Dropped { hop_index, packet } => {
                self.lost = self.traffic.lose(log, packet, hop_index);
            }
            PacketEvent::Duplicated { hop_index, packet, copy } => {
                self.traffic.copy(log, packet, hop_index, copy);
            }
            PacketEvent::Corrupted { hop_index, packet } => {
                self.traffic.damage(log, packet, hop_index);
            }
            PacketEvent::Marked { hop_index, packet } => self.traffic.mark(log, packet, hop_index),
            PacketEvent::Rewritten { hop_index, packet, size } => {
                self.traffic.rewrite(log, packet, hop_index, size);
            }
            PacketEvent::Injected { hop_index, packet, flow, dir, size, tcp } => {
                let way = (flow.0, dir as u8);
                self.traffic.inject(log, packet, hop_index, way, (size, tcp));
            }
            PacketEvent::Forwarded { hop_index, packet } => {
                self.traffic.leave(log, packet, hop_index);
            }
            PacketEvent::Received { host, packet, tcp } => self.arrive(packet, host, tcp),
        }
    }
}

/// All connections.
#[derive(Debug, Clone)]
struct FlowIndex(Vec<FlowEndpoints>);

#[derive(Debug, Clone)]
struct FlowEndpoints {
    hosts: [HostId; 2],
    ends: [EndpointModel; 2],
}

impl FlowIndex {
    fn new(world: &WorldModel) -> Self {
        let connection = |(number, flow): (usize, &FlowModel)| {
            let out = &world.routes[flow.routes[0]];
            let end = |host: HostId, opens| {
                let who = EventSource { host, flow: FlowId(number as u32) };
                EndpointModel::new(who, opens, flow, world.hosts[usize::from(host.0)].mtu)
            };
            FlowEndpoints {
                hosts: [out.from, out.to],
                ends: [end(out.from, true), end(out.to, false)],
            }
        };
        Self(world.flows.iter().enumerate().map(connection).collect())
    }

    /// Returns both ends of a connection, and the index of `who` among them.
    fn find(
        &mut self,
        log: &mut ViolationLog,
        who: EventSource,
    ) -> Option<(usize, &mut [EndpointModel; 2])> {
        let found = self.0.get_mut(who.flow.0 as usize).and_then(|flow| {
            let side = flow.hosts.iter().position(|&host| host == who.host)?;
            Some((side, &mut flow.ends))
        });
        if found.is_none() {
            log.note(Subject::End(who), ViolationKind::NoSuchEndpoint);
        }
        found
    }
}
