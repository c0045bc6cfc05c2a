//! Runs a scenario and checks its record with the independent verifier.

use core::ops::ControlFlow;

use check::world::{AcceptQueueModel, OutputCalls, RecoveryLimit, TransportKind};
use check::{
    BucketFrame, Changes, ElementChanges, ElementInvariants, Line, Outage, QueueCapacity,
    Rejection, ResetCondition, Selection, Thinning, TimeQueue, TimedLine, VerifiedSummary,
    Verifier, WorldModel,
};
use net::link::QueueLimit;
use net::wifi::longest_delay;
use packet::{IpVersion, PacketTooBig, Segment};
use quic::profile::{QuicCubicParams, QuicCubicRule};
use record::{ElementId, Event, EventSource, PacketEvent, Recorder, SenderState};
use tcp::profile::{BurstRule, LossDetectionRule, RackTlpRule};
use units::{Bytes, HostId, Instant, Ratio};

use crate::observer::Observer;
use crate::outcome::RunOutcome;
use crate::run_error::RunError;
use crate::scenario::{
    AcceptQueueSpec, App, ElementSpec, FlowSpec, Framing, HostSpec, LinkCapacity, NetemParams,
    OutageMode, PacketClass, QdiscConfig, ResetTrigger, Scenario, Schedule, SelectionRule,
    SynOffers, reverse,
};
use crate::world::run;

/// Reason why an audited run has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditError {
    /// The run could not be completed.
    Run(RunError),
    /// The record violates an invariant.
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

/// Describes the world of a scenario to the verifier: elements and routes are numbered as in the
/// record of a run, elements of the paths first, shared ones last.
pub fn describe(scenario: &Scenario) -> WorldModel {
    let own = scenario.paths.iter().flat_map(|path| path.forward.iter().chain(&path.reverse));
    let mut tables = ChangeTables::default();
    let mut hops: Vec<ElementInvariants> =
        own.filter_map(|element| law(element, &mut tables)).collect();
    let first_shared = hops.len() as u32;
    let shared = scenario.shared.iter();
    hops.extend(shared.filter_map(|shared| law(&shared.element, &mut tables)));
    let mut next = 0;
    let mut number = |element: &ElementSpec| match element {
        ElementSpec::Shared(index) => ElementId(first_shared + *index as u32),
        _ => {
            next += 1;
            ElementId(next - 1)
        }
    };
    let mut routes = Vec::new();
    for path in &scenario.paths {
        let ways = [(path.from, path.to, &path.forward), (path.to, path.from, &path.reverse)];
        for (from, to, elements) in ways {
            routes.push(check::world::RouteModel {
                from: HostId(from as u16),
                to: HostId(to as u16),
                hops: elements.iter().map(&mut number).collect(),
            });
        }
    }
    let queue = |spec: AcceptQueueSpec| AcceptQueueModel {
        room: u64::from(spec.backlog) + 1,
        accept: spec.accept,
    };
    let host = |host: &HostSpec| check::world::HostModel {
        mtu: Bytes(u64::from(host.stack.mtu())),
        listen: host.stack.tcp().and_then(|tcp| tcp.listen).map(queue),
    };
    WorldModel {
        hosts: scenario.hosts.iter().map(host).collect(),
        hops,
        routes,
        flows: scenario.flows.iter().map(|flow| flow_of(scenario, flow)).collect(),
        traces: tables.traces,
        changes: tables.changes,
    }
}

/// What elements refer to by index.
#[derive(Debug, Default)]
struct ChangeTables {
    traces: Vec<Vec<u32>>,
    changes: Vec<ElementChanges>,
}

impl ChangeTables {
    fn add(&mut self, changes: ElementChanges) -> usize {
        self.changes.push(changes);
        self.changes.len() - 1
    }

    /// Adds the instants at which the selection of an element changes.
    fn of_selection(&mut self, rule: &SelectionRule, only: PacketClass) -> Option<usize> {
        let SelectionRule::Changing(share) = rule else { return None };
        let bounds = |share: Ratio| match share.num() {
            0 => Selection::Nothing,
            num if num >= share.den() && only == PacketClass::All => Selection::Everything,
            _ => Selection::Any,
        };
        let selection = Some(changes_of(share, bounds));
        Some(self.add(ElementChanges { selection, ..ElementChanges::default() }))
    }
}

fn changes_of<T: Copy, U>(schedule: &Schedule<T>, value: impl Fn(T) -> U) -> Changes<U> {
    let steps = schedule.steps().iter().map(|&(at, given)| (Instant::ZERO + at, value(given)));
    Changes { steps: steps.collect(), period: schedule.period() }
}

/// Returns the invariants of an element; `None` for a reference to a shared one. Its trace and its
/// changes are added to `tables`.
fn law(element: &ElementSpec, tables: &mut ChangeTables) -> Option<ElementInvariants> {
    Some(match *element {
        ElementSpec::LinkWithQdisc { ref capacity, limit, ref limits, queue } => {
            let mut changes = ElementChanges::default();
            let line = match capacity {
                LinkCapacity::Rate(rate) => Line::Rate(*rate),
                LinkCapacity::Trace(schedule) => {
                    tables.traces.push(schedule.opportunities_ms().to_vec());
                    Line::Trace(tables.traces.len() - 1)
                }
                LinkCapacity::Changing(rate) => {
                    changes.rate = Some(changes_of(rate, |rate| rate));
                    Line::Rate(capacity.mean())
                }
            };
            changes.room = limits.as_ref().map(|limits| changes_of(limits, room));
            let changing = changes.rate.is_some() || changes.room.is_some();
            let (thinning, marks) = match queue {
                QdiscConfig::DropTail => (Thinning::Full, false),
                QdiscConfig::CoDel(codel) => (Thinning::AtHead, codel.ecn),
                QdiscConfig::FqCoDel(fq) => (Thinning::PushOut, fq.codel.ecn),
                QdiscConfig::Pie(pie) => (Thinning::AtEntrance, pie.ecn),
                QdiscConfig::Red(red) => (Thinning::AtEntrance, red.ecn),
            };
            let law = ElementInvariants::managed(line, room(limit), thinning, marks);
            ElementInvariants { changes: changing.then(|| tables.add(changes)), ..law }
        }
        ElementSpec::Link { rate, limit } => ElementInvariants::link(rate, room(limit)),
        ElementSpec::Delay(span) => ElementInvariants::delay(span),
        ElementSpec::ChangingDelay(ref span) => {
            let delay = Some(changes_of(span, |span| span));
            let changes = tables.add(ElementChanges { delay, ..ElementChanges::default() });
            ElementInvariants::changing_delay(changes)
        }
        ElementSpec::Jitter { most } => ElementInvariants::jitter(most),
        ElementSpec::Netem(params) => netem(&params),
        ElementSpec::WifiJitter(ref average) => {
            let longest = average.steps().iter().map(|&(_, average)| average).max();
            ElementInvariants::jitter(longest_delay(longest.unwrap_or_default()))
        }
        ElementSpec::Slot(params) => {
            let (least, most) = params.bounds();
            let packets = params.packets.map_or(u64::MAX, u64::from);
            let bytes = params.bytes.map_or(u64::MAX, Bytes::get);
            ElementInvariants::slots(least, most, packets, bytes)
        }
        ElementSpec::Loss { ref rule, only } => {
            let changes = tables.of_selection(rule, only);
            ElementInvariants { changes, only: class(only), ..ElementInvariants::loss() }
        }
        ElementSpec::Duplicate { ref rule, only } => {
            let changes = tables.of_selection(rule, only);
            ElementInvariants { changes, only: class(only), ..ElementInvariants::duplicate() }
        }
        ElementSpec::Corrupt { ref rule, only } => {
            let changes = tables.of_selection(rule, only);
            ElementInvariants { changes, only: class(only), ..ElementInvariants::corrupt() }
        }
        ElementSpec::Reverse(reverse::ReverseParams { group, gap, timeout, .. }) => {
            // The first of a group waits for all others, and then leaves after them.
            let others = u64::from(group.get()) - 1;
            ElementInvariants::reorder(timeout.saturating_mul(others) + gap.saturating_mul(others))
        }
        ElementSpec::Displace { timeout, .. } => ElementInvariants::reorder(timeout),
        ElementSpec::Late { by, .. } => ElementInvariants::reorder(by),
        ElementSpec::Thin { timeout, .. } => ElementInvariants::thin(timeout),
        ElementSpec::Outage { from, until, period, during } => {
            let [from, until] = [from, until].map(|at| Instant::ZERO + at);
            let outage = Outage { from, until, period };
            match during {
                OutageMode::Drop => ElementInvariants::outage(outage),
                OutageMode::Hold => ElementInvariants::gate(outage),
            }
        }
        ElementSpec::Policer { rate, burst } => ElementInvariants::policer(rate, burst),
        ElementSpec::Shaper { rate, burst, limit, framing } => {
            let Framing { header, overhead, least, cell, cell_overhead } = framing;
            let frame = BucketFrame { header, overhead, least, cell, cell_overhead };
            ElementInvariants::token_bucket(rate, burst, room(limit)).framed(frame)
        }
        ElementSpec::Mtu { size, from, icmp } => {
            ElementInvariants::mtu(size, Instant::ZERO + from, icmp)
        }
        ElementSpec::Strip(offers) => ElementInvariants::strip(offers),
        ElementSpec::Forget { idle, resets } => ElementInvariants::forget(idle, resets),
        ElementSpec::Reset(trigger) => ElementInvariants::reset(match trigger {
            ResetTrigger::Bytes(bytes) => ResetCondition::After(bytes),
            ResetTrigger::At(at) => ResetCondition::From(at),
        }),
        ElementSpec::Shared(_) => return None,
    })
}

fn netem(params: &NetemParams) -> ElementInvariants {
    let (least, most) = params.delay_bounds();
    let line = params.rate.map(|rate| TimedLine {
        rate: rate.rate,
        overhead: rate.overhead,
        cell: rate.cell,
        cell_overhead: rate.cell_overhead,
    });
    let at_once = params.reorder.is_some();
    let (early, room) = (params.earliest_transmission(), params.limit);
    ElementInvariants::by_time(TimeQueue { least, most, early, line, at_once, room })
}

const fn class(only: PacketClass) -> check::PacketClass {
    match only {
        PacketClass::All => check::PacketClass::All,
        PacketClass::Data => check::PacketClass::Data,
        PacketClass::Acks => check::PacketClass::Acks,
        PacketClass::Syns => check::PacketClass::Syns,
        PacketClass::SynAcks => check::PacketClass::SynAcks,
        PacketClass::EcnSyns => check::PacketClass::EcnSyns,
    }
}

const fn room(limit: QueueLimit) -> QueueCapacity {
    match limit {
        QueueLimit::Bytes(bytes) => QueueCapacity::Bytes(bytes),
        QueueLimit::Packets(packets) => QueueCapacity::Packets(packets),
    }
}

fn flow_of(scenario: &Scenario, flow: &FlowSpec) -> check::world::FlowModel {
    let [forward, reverse] = [2 * flow.path, 2 * flow.path + 1];
    let along = scenario.paths.get(flow.path).is_some_and(|path| path.from == flow.from);
    let header = match flow.ip {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    check::world::FlowModel {
        routes: if along { [forward, reverse] } else { [reverse, forward] },
        ip_header: Bytes(header),
        transport: match scenario.hosts.get(flow.from).and_then(|host| host.stack.quic()) {
            _ if matches!(flow.app, App::Datagrams(_)) => TransportKind::Udp,
            Some(quic) => TransportKind::Quic { handshake: quic.profile.handshake.is_some() },
            None if is_real(scenario, flow) => TransportKind::RealQuic,
            None => TransportKind::Tcp,
        },
        recovery_limits: [(flow.from, flow.to), (flow.to, flow.from)]
            .map(|ends| brake(scenario, flow, ends)),
        output_calls: [flow.from, flow.to].map(|host| output_calls(scenario, host)),
        free_fins: [flow.from, flow.to].map(|host| has_free_fin(scenario, host)),
    }
}

fn is_real(scenario: &Scenario, flow: &FlowSpec) -> bool {
    scenario.hosts.get(flow.from).is_some_and(|host| host.stack.real().is_some())
}

/// Does the last segment of a host need no room in the congestion window if it carries the FIN?
fn has_free_fin(scenario: &Scenario, host: usize) -> bool {
    let tcp = scenario.hosts.get(host).and_then(|host| host.stack.tcp());
    tcp.is_some_and(|tcp| matches!(tcp.profile.burst, BurstRule::Linux(rule) if rule.free_fin))
}

/// When the stack of a host sends.
fn output_calls(scenario: &Scenario, host: usize) -> OutputCalls {
    let tcp = scenario.hosts.get(host).and_then(|host| host.stack.tcp());
    match tcp.map(|tcp| tcp.profile.loss) {
        Some(LossDetectionRule::Sack(_)) => OutputCalls::WithinInput,
        _ => OutputCalls::AfterInput,
    }
}

/// The limit of a sender in fast recovery, by its stack and, of TCP, by whether SACK is negotiated.
fn brake(scenario: &Scenario, flow: &FlowSpec, (host, peer): (usize, usize)) -> RecoveryLimit {
    let quic = scenario.hosts.get(host).and_then(|host| host.stack.quic());
    if let Some(QuicCubicRule::Packets(QuicCubicParams { rate_reduction: true, .. })) =
        quic.map(|quic| quic.profile.cubic)
    {
        return RecoveryLimit::Proportional;
    }
    let offered = sees_offer(scenario, flow, host, SynOffers::SACK);
    let [own, peer] = [host, peer].map(|host| scenario.hosts.get(host)?.stack.tcp());
    let Some((own, peer)) = own.zip(peer) else { return RecoveryLimit::Unseen };
    let sack = own.profile.sack && peer.profile.sack && offered;
    match own.profile.loss {
        // Without SACK it counts duplicates as packets that have arrived.
        LossDetectionRule::RackTlp(RackTlpRule::Linux) => RecoveryLimit::Pipe,
        _ if !sack => RecoveryLimit::Flight,
        LossDetectionRule::NewReno => RecoveryLimit::Flight,
        LossDetectionRule::Sack(_) => RecoveryLimit::Since,
        LossDetectionRule::RackTlp(RackTlpRule::Rfc | RackTlpRule::External(_)) => {
            RecoveryLimit::Pipe
        }
        LossDetectionRule::FreeBsdRack(_) => RecoveryLimit::Credit,
    }
}

/// Returns whether a host of a flow gets to see what the other offers: a SYN-ACK answers only what
/// the SYN offers.
fn sees_offer(scenario: &Scenario, flow: &FlowSpec, host: usize, offer: SynOffers) -> bool {
    let Some(path) = scenario.paths.get(flow.path) else { return true };
    let passes = |route: &[ElementSpec]| {
        !route.iter().any(|element| {
            let own = match element {
                ElementSpec::Shared(index) => scenario.shared.get(*index).map(|own| &own.element),
                own => Some(own),
            };
            matches!(own, Some(ElementSpec::Strip(strips)) if strips.has(offer))
        })
    };
    let along = path.from == flow.from;
    let (syn, syn_ack) =
        if along { (&path.forward, &path.reverse) } else { (&path.reverse, &path.forward) };
    passes(syn) && (host == flow.to || passes(syn_ack))
}

/// Runs a scenario as [`run`] does, with `observer` attached, and verifies the record.
///
/// # Errors
/// The scenario could not be set up, or the run violated an invariant.
pub fn run_audited<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
) -> Result<(RunOutcome, VerifiedSummary), AuditError> {
    run_against(scenario, &describe(scenario), observer)
}

/// Runs a scenario against the invariants of another world, for tests of the verifier.
///
/// # Errors
/// The scenario could not be set up, or the run violated an invariant of `world`.
pub fn run_against<O: Observer>(
    scenario: &Scenario,
    world: &WorldModel,
    observer: &mut O,
) -> Result<(RunOutcome, VerifiedSummary), AuditError> {
    let refused = |error| AuditError::Rejected(Rejection::World(error));
    let verifier = Verifier::new(world).map_err(refused)?;
    let mut audited = AuditingObserver { verifier, observer };
    let outcome = run(scenario, &mut audited).map_err(AuditError::Run)?;
    match audited.verifier.finish(outcome.ended) {
        Ok(summary) => Ok((outcome, summary)),
        Err(found) => Err(AuditError::Rejected(Rejection::Record(found))),
    }
}

/// Forwards a run to the verifier and an observer.
struct AuditingObserver<'a, O> {
    verifier: Verifier,
    observer: &'a mut O,
}

impl<O: Observer> Recorder for AuditingObserver<'_, O> {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.verifier.record(at, who, event, state);
        self.observer.record(at, who, event, state);
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.verifier.record_packet(at, movement);
        self.observer.record_packet(at, movement);
    }
}

impl<O: Observer> Observer for AuditingObserver<'_, O> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.observer.tap(at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        self.observer.datagram(at, tap, outbound, packet);
    }

    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        self.observer.icmp(at, tap, outbound, message);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.observer.progress(now)
    }
}

impl Observer for check::RecordedRun {}
