//! The listener: hands every event to its end and every step of a packet to the roads.

use record::{Event, Movement, PacketNumber, Recorder, SenderState, Who};
use units::{FlowId, HostId, Instant};

use crate::end::{Departure, End};
use crate::summary::Summary;
use crate::traffic::{Delivery, Lost, Traffic};
use crate::violation::{Breach, Log, Subject, Violation};
use crate::world::{Flow, World, WorldError};

/// Follows a run while it happens. What it keeps grows with what is under way, not with the run.
#[derive(Debug, Clone)]
pub struct Verifier {
    log: Log,
    traffic: Traffic,
    flows: Flows,
    /// The packet lost just now: the event of its loss is next.
    lost: Option<Lost>,
}

impl Verifier {
    /// Before a run in `world`.
    ///
    /// # Errors
    /// The description makes no sense.
    pub fn new(world: &World) -> Result<Self, WorldError> {
        world.check()?;
        let (log, traffic) = (Log::new(), Traffic::new(world));
        Ok(Self { log, traffic, flows: Flows::new(world), lost: None })
    }

    /// The run ended at `at`: was it all right?
    ///
    /// # Errors
    /// What was wrong, in the order in which it was found; the rest of a long list is left out.
    pub fn finish(mut self, at: Instant) -> Result<Summary, Vec<Violation>> {
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
        let ends = |flow: &Connection| flow.ends.each_ref().map(End::summary);
        Ok(Summary {
            departed: self.traffic.numbered() - counts.copies,
            copies: counts.copies,
            damaged: counts.damaged,
            marked: counts.marked,
            arrived: counts.arrived,
            lost: counts.lost,
            on_the_road: self.traffic.on_the_road(),
            flows: self.flows.0.iter().map(ends).collect(),
        })
    }

    /// What was found so far.
    pub fn violations(&self) -> &[Violation] {
        &self.log.found
    }

    #[inline]
    fn pass(&mut self, at: Instant) {
        if at > self.log.now {
            self.traffic.settle(&mut self.log);
            self.log.now = at;
        } else if at < self.log.now {
            let before = self.log.now;
            self.log.note(Subject::Record, Breach::TimeRanBack { before });
        }
    }

    fn depart(&mut self, who: Who, departure: &Departure) {
        let Some((side, ends)) = self.flows.find(&mut self.log, who) else { return };
        if let Some(freight) = ends[side].depart(&mut self.log, departure) {
            let sender = (who.flow.0, side as u8);
            let Departure { packet, size, capable, .. } = *departure;
            self.traffic.depart(&mut self.log, packet, sender, (size, capable), freight);
        }
    }

    fn arrive(&mut self, packet: PacketNumber, host: HostId) {
        let delivery = self.traffic.arrive(&mut self.log, packet, host);
        if let Some(Delivery { flow, from, ref freight }) = delivery {
            let ends = &mut self.flows.0[flow as usize].ends;
            ends[1 - usize::from(from)].arrive(freight);
        }
    }

    /// Each loss is followed by its event, and no such event comes without one.
    #[inline]
    fn expect_loss(&mut self, told: Option<Lost>) {
        if self.lost != told {
            let lost = self.lost.or(told);
            let who = lost.map(|lost| Who { host: lost.to, flow: FlowId(lost.flow) });
            self.log.note(who.map_or(Subject::Record, Subject::End), Breach::UntrueLoss);
        }
        self.lost = None;
    }
}

impl Recorder for Verifier {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.pass(at);
        if let Event::Dropped { element, bytes } = event {
            let (flow, hop) = (who.flow.0, u32::from(element));
            return self.expect_loss(Some(Lost { flow, to: who.host, hop, size: bytes }));
        }
        self.expect_loss(None);
        if let Some((side, ends)) = self.flows.find(&mut self.log, who) {
            let [one, other] = ends;
            let (end, peer) = if side == 0 { (one, other) } else { (other, one) };
            end.on_event(&mut self.log, event, state, peer.arrivals());
        }
    }

    fn moved(&mut self, at: Instant, movement: Movement) {
        self.pass(at);
        self.expect_loss(None);
        let log = &mut self.log;
        match movement {
            Movement::Departed { host, flow, packet, seq, len, size, capable } => {
                self.depart(Who { host, flow }, &Departure { packet, seq, len, size, capable });
            }
            Movement::Entered { station, packet } => self.traffic.enter(log, packet, station),
            Movement::Dropped { station, packet } => {
                self.lost = self.traffic.lose(log, packet, station);
            }
            Movement::Copied { station, packet, copy } => {
                self.traffic.copy(log, packet, station, copy);
            }
            Movement::Damaged { station, packet } => self.traffic.damage(log, packet, station),
            Movement::Marked { station, packet } => self.traffic.mark(log, packet, station),
            Movement::Left { station, packet } => self.traffic.leave(log, packet, station),
            Movement::Arrived { host, packet } => self.arrive(packet, host),
        }
    }
}

/// All connections.
#[derive(Debug, Clone)]
struct Flows(Vec<Connection>);

#[derive(Debug, Clone)]
struct Connection {
    hosts: [HostId; 2],
    ends: [End; 2],
}

impl Flows {
    fn new(world: &World) -> Self {
        let connection = |(number, flow): (usize, &Flow)| {
            let out = &world.roads[flow.roads[0]];
            let end = |host: HostId, opens| {
                let who = Who { host, flow: FlowId(number as u32) };
                End::new(who, opens, flow, world.hosts[usize::from(host.0)].mtu)
            };
            Connection {
                hosts: [out.from, out.to],
                ends: [end(out.from, true), end(out.to, false)],
            }
        };
        Self(world.flows.iter().enumerate().map(connection).collect())
    }

    /// Both ends of a connection, and which of them somebody is.
    fn find(&mut self, log: &mut Log, who: Who) -> Option<(usize, &mut [End; 2])> {
        let found = self.0.get_mut(who.flow.0 as usize).and_then(|flow| {
            let side = flow.hosts.iter().position(|&host| host == who.host)?;
            Some((side, &mut flow.ends))
        });
        if found.is_none() {
            log.note(Subject::End(who), Breach::NoSuchEnd);
        }
        found
    }
}
