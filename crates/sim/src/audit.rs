//! Runs a scenario under the eyes of the independent verifier.

use core::ops::ControlFlow;

use check::world::{Brake, Transport};
use check::{Law, Line, Outage, Rejection, Room, Summary, Thinning, Verifier, World};
use net::link::Limit;
use packet::{IpVersion, Segment};
use record::{Event, Movement, Recorder, SenderState, StationId, Who};
use tcp::profile::{LossRule, TimedRule};
use units::{Bytes, HostId, Instant};

use crate::observer::Observer;
use crate::outcome::Outcome;
use crate::run_error::RunError;
use crate::scenario::{Capacity, During, Element, Flow, Host, Policy, Scenario, reverse};
use crate::world::run;

/// Why a run under audit has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditError {
    /// It could not be brought to its end.
    Run(RunError),
    /// The run did what cannot be.
    Rejected(Rejection),
}

impl core::fmt::Display for AuditError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Run(error) => error.fmt(f),
            Self::Rejected(rejection) => rejection.fmt(f),
        }
    }
}

impl core::error::Error for AuditError {}

/// The world of a scenario in the words of the verifier: its stations and roads are numbered as in
/// the record of a run, elements of the paths first, shared ones behind them.
pub fn describe(scenario: &Scenario) -> World {
    let own = scenario.paths.iter().flat_map(|path| path.forward.iter().chain(&path.reverse));
    let mut traces = Vec::new();
    let mut stations: Vec<Law> = own.filter_map(|element| law(element, &mut traces)).collect();
    let first_shared = stations.len() as u32;
    let shared = scenario.shared.iter();
    stations.extend(shared.filter_map(|shared| law(&shared.element, &mut traces)));
    let mut next = 0;
    let mut number = |element: &Element| match element {
        Element::Shared(index) => StationId(first_shared + *index as u32),
        _ => {
            next += 1;
            StationId(next - 1)
        }
    };
    let mut roads = Vec::new();
    for path in &scenario.paths {
        let ways = [(path.from, path.to, &path.forward), (path.to, path.from, &path.reverse)];
        for (from, to, elements) in ways {
            roads.push(check::world::Road {
                from: HostId(from as u16),
                to: HostId(to as u16),
                stations: elements.iter().map(&mut number).collect(),
            });
        }
    }
    let host = |host: &Host| check::world::Host { mtu: Bytes(u64::from(host.stack.mtu())) };
    World {
        hosts: scenario.hosts.iter().map(host).collect(),
        stations,
        roads,
        flows: scenario.flows.iter().map(|flow| flow_of(scenario, flow)).collect(),
        traces,
    }
}

/// What an element may do; `None` for a reference to a shared one. The recording that it follows
/// goes to `traces`.
fn law(element: &Element, traces: &mut Vec<Vec<u32>>) -> Option<Law> {
    Some(match *element {
        Element::ManagedLink { ref capacity, limit, queue } => {
            let line = match capacity {
                Capacity::Rate(rate) => Line::Rate(*rate),
                Capacity::Trace(schedule) => {
                    traces.push(schedule.moments().to_vec());
                    Line::Trace(traces.len() - 1)
                }
            };
            let (thinning, marks) = match queue {
                Policy::DropTail => (Thinning::Full, false),
                Policy::CoDel(codel) => (Thinning::AtHead, codel.ecn),
                Policy::FqCoDel(fq) => (Thinning::PushOut, fq.codel.ecn),
                Policy::Pie(pie) => (Thinning::AtEntrance, pie.ecn),
                Policy::Red(red) => (Thinning::AtEntrance, red.ecn),
            };
            Law::managed(line, room(limit), thinning, marks)
        }
        Element::Link { rate, limit } => Law::link(rate, room(limit)),
        Element::Delay(span) => Law::delay(span),
        Element::Jitter { most } => Law::jitter(most),
        Element::Loss { .. } => Law::loss(),
        Element::Duplicate { .. } => Law::duplicate(),
        Element::Corrupt { .. } => Law::corrupt(),
        Element::Reverse(reverse::Params { group, gap, timeout, .. }) => {
            // The first of a group waits for all others, and then leaves behind them.
            let others = u64::from(group.get()) - 1;
            Law::reorder(timeout.saturating_mul(others) + gap.saturating_mul(others))
        }
        Element::Displace { timeout, .. } => Law::reorder(timeout),
        Element::Late { by, .. } => Law::reorder(by),
        Element::Thin { timeout, .. } => Law::thin(timeout),
        Element::Outage { from, until, during } => {
            let outage = Outage { from: Instant::ZERO + from, until: Instant::ZERO + until };
            match during {
                During::Lost => Law::outage(outage),
                During::Held => Law::gate(outage),
            }
        }
        Element::Policer { rate, burst } => Law::policer(rate, burst),
        Element::Shaper { rate, burst, limit } => Law::token_bucket(rate, burst, room(limit)),
        Element::Shared(_) => return None,
    })
}

const fn room(limit: Limit) -> Room {
    match limit {
        Limit::Bytes(bytes) => Room::Bytes(bytes),
        Limit::Packets(packets) => Room::Packets(packets),
    }
}

fn flow_of(scenario: &Scenario, flow: &Flow) -> check::world::Flow {
    let [forward, reverse] = [2 * flow.path, 2 * flow.path + 1];
    let along = scenario.paths.get(flow.path).is_some_and(|path| path.from == flow.from);
    let header = match flow.ip {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    check::world::Flow {
        roads: if along { [forward, reverse] } else { [reverse, forward] },
        ip_header: Bytes(header),
        transport: match scenario.hosts.get(flow.from).and_then(|host| host.stack.quic()) {
            Some(quic) => Transport::Quic { handshake: quic.profile.handshake.is_some() },
            None => Transport::Tcp,
        },
        brakes: [(flow.from, flow.to), (flow.to, flow.from)].map(|ends| brake(scenario, ends)),
    }
}

/// The limit of a TCP sender in a fast recovery, by its stack and by whether SACK is agreed.
fn brake(scenario: &Scenario, (host, peer): (usize, usize)) -> Brake {
    let [own, peer] = [host, peer].map(|host| scenario.hosts.get(host)?.stack.tcp());
    let Some((own, peer)) = own.zip(peer) else { return Brake::Unseen };
    if !(own.profile.sack && peer.profile.sack) {
        return Brake::Flight;
    }
    match own.profile.loss {
        LossRule::Duplicates => Brake::Flight,
        LossRule::Holes(_) => Brake::Since,
        LossRule::Timed(TimedRule::Rfc | TimedRule::Linux) => Brake::Pipe,
        LossRule::Rack(_) => Brake::Credit,
    }
}

/// Runs a scenario as [`run`] does, with `observer` watching, and verifies its record on the way.
///
/// # Errors
/// The scenario could not be set up, or the run broke a law of physics.
pub fn run_audited<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
) -> Result<(Outcome, Summary), AuditError> {
    run_against(scenario, &describe(scenario), observer)
}

/// The same against the laws of another world: how a test sees that they are kept.
///
/// # Errors
/// The scenario could not be set up, or the run broke a law of `world`.
pub fn run_against<O: Observer>(
    scenario: &Scenario,
    world: &World,
    observer: &mut O,
) -> Result<(Outcome, Summary), AuditError> {
    let refused = |error| AuditError::Rejected(Rejection::World(error));
    let verifier = Verifier::new(world).map_err(refused)?;
    let mut audited = Audited { verifier, observer };
    let outcome = run(scenario, &mut audited).map_err(AuditError::Run)?;
    match audited.verifier.finish(outcome.ended) {
        Ok(summary) => Ok((outcome, summary)),
        Err(found) => Err(AuditError::Rejected(Rejection::Record(found))),
    }
}

/// An observer with the verifier beside it.
struct Audited<'a, O> {
    verifier: Verifier,
    observer: &'a mut O,
}

impl<O: Observer> Recorder for Audited<'_, O> {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.verifier.record(at, who, event, state);
        self.observer.record(at, who, event, state);
    }

    fn moved(&mut self, at: Instant, movement: Movement) {
        self.verifier.moved(at, movement);
        self.observer.moved(at, movement);
    }
}

impl<O: Observer> Observer for Audited<'_, O> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.observer.tap(at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::Packet) {
        self.observer.datagram(at, tap, outbound, packet);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.observer.progress(now)
    }
}

impl Observer for check::Tape {}
