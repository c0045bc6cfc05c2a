//! The event loop: takes the next event from the queue and processes it.

mod answers;
mod contents;
mod departures;
mod event_loop;
pub(crate) mod external;
mod hibernation;
mod listen;
mod network;
mod packet_slots;
mod pages;
mod service;
mod setup;

use tcp::profile::SharedProfile;
use units::{Bytes, Duration, FlowId, Instant, RandomStream, unlikely};

use external::ExternalDelivery;
use hibernation::AwakeQueue;
use listen::{AcceptQueue, AcceptStage};
use network::Network;
use pages::PageLoads;
use setup::profiles;

use crate::app::Application;
use crate::nic::Nic;
use crate::observer::Observer;
use crate::outcome::{FlowOutcome, Latency, LatencyKind, RunOutcome};
use crate::routes;
use crate::run_error::{RunError, StackFailure};
use crate::scenario::{App, ElementSpec, FlowSpec, Scenario};
use crate::transport::{EndpointTotals, TransportEndpoint};
use crate::validity::{self, SetupError};

/// An event. Endpoints are numbered as in [`Simulation::ends`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SimEvent {
    Start(u32),
    ElementIndex(u32),
    NicInterrupt(u16),
    Timer(u32),
    App(u32),
    /// `App`, after all events queued for its instant.
    AppLast(u32),
    /// `Timer`, after all events queued for its instant.
    TimerLast(u32),
    /// `Nic`, after all events queued for its instant.
    NicLast(u16),
    /// The application of a host takes a connection from its accept queue.
    Accept(u16),
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Index of one end of a flow.
const fn end_of(flow: usize, side: usize) -> usize {
    2 * flow + side
}

/// One end of a flow.
#[derive(Debug)]
struct FlowEndpoint {
    stack: TransportEndpoint,
    app: Application,
    /// Payload bytes that the application has read.
    read: u64,
    flow: FlowId,
    host: u16,
    /// First hop of its outgoing route.
    route: u32,
    /// Time of its timer event in the event queue.
    armed: Option<Instant>,
    /// Time of its application event in the event queue.
    app_at: Option<Instant>,
    closed: bool,
    /// The connection was aborted or reset, so nothing reads the application's data.
    gone: bool,
    /// Its application has reset the connection.
    was_reset: bool,
    /// Its host delays the application.
    delays: bool,
    /// Number of times it was hibernated ([`hibernation`]).
    hibernations: u8,
    /// Whether its application has the connection.
    stage: AcceptStage,
}

#[derive(Debug)]
struct FlowProgress {
    /// The side that sends the counted bytes.
    sender: u8,
    /// A segment that arrives at the instant of a read is received before it.
    reads_last: bool,
    started: Instant,
    /// When the last counted byte was read.
    read_all_at: Option<Instant>,
}

pub(crate) struct Simulation<'a, O: Observer> {
    scenario: &'a Scenario,
    /// Profile of each TCP host.
    profiles: Vec<Option<SharedProfile>>,
    network: Network<'a, O>,
    /// Client and server of the first flow, then of the second, and so on.
    ends: Vec<FlowEndpoint>,
    awake_queue: AwakeQueue,
    accept_queues: Vec<Option<AcceptQueue>>,
    flows: Vec<FlowProgress>,
    /// The web pages, in the order of their first connections.
    pages: Vec<PageLoads>,
    open: usize,
    /// Events processed, plus application steps.
    turns: u64,
    /// Segments delivered to external stacks.
    outside: Vec<ExternalDelivery>,
    /// A host has a user-defined congestion controller or a real implementation of QUIC.
    may_fail: bool,
}

/// Runs a scenario until all flows finish or its duration ends.
///
/// # Errors
/// [`RunError`] if the scenario cannot be run to its end.
pub fn run<O: Observer>(scenario: &Scenario, observer: &mut O) -> Result<RunOutcome, RunError> {
    run_and(scenario, observer, |_| {})
}

/// Runs a scenario with every TCP endpoint that allows it hibernated after every event, for tests:
/// it must make no difference.
///
/// # Errors
/// [`RunError`] if the scenario cannot be run to its end.
#[doc(hidden)]
pub fn run_packing<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
) -> Result<RunOutcome, RunError> {
    run_and(scenario, observer, Simulation::hibernate_all)
}

fn run_and<'a, O: Observer>(
    scenario: &'a Scenario,
    observer: &'a mut O,
    after_each: impl Fn(&mut Simulation<'a, O>),
) -> Result<RunOutcome, RunError> {
    let mut world = Simulation::new(scenario, &[], observer)?;
    world.network.end = Instant::ZERO + scenario.duration;
    run_loop(&mut world, after_each);
    world.check_failures();
    match world.network.given_up.take() {
        Some(error) => Err(error),
        None => Ok(world.outcome()),
    }
}

/// Processes events until the run ends.
fn run_loop<'a, O: Observer>(
    world: &mut Simulation<'a, O>,
    after_each: impl Fn(&mut Simulation<'a, O>),
) {
    while world.open > 0 {
        // With the queue empty the rest of the duration passes without events.
        let end = world.network.end;
        let Some(&(at, wake)) = world.network.calendar.due_until(end) else {
            world.network.now = end;
            break;
        };
        world.network.calendar.take(at);
        world.network.now = at;
        world.count_turn();
        world.happen(wake);
        after_each(world);
        if unlikely(world.network.progressed) {
            world.network.progressed = false;
            world.check_failures();
        }
    }
}

impl<'a, O: Observer> Simulation<'a, O> {
    /// Creates a world at time zero; the stacks of the hosts in `external` are external.
    pub(crate) fn new(
        scenario: &'a Scenario,
        outside: &[usize],
        observer: &'a mut O,
    ) -> Result<Self, SetupError> {
        let elements_and_routes = routes::build(scenario)?;
        validity::check(scenario, outside)?;
        let nics = scenario.hosts.iter().map(|host| {
            let random_source =
                RandomStream::named(scenario.seed, &format!("host {}", host.name), "rss hash");
            Nic::new(host, random_source)
        });
        let nics = nics.collect();
        let mut world = Self {
            scenario,
            profiles: profiles(scenario),
            network: Network::new(observer, &scenario.taps, elements_and_routes, nics),
            ends: Vec::with_capacity(2 * scenario.flows.len()),
            awake_queue: AwakeQueue::default(),
            accept_queues: listen::queues(scenario),
            flows: Vec::with_capacity(scenario.flows.len()),
            pages: Vec::new(),
            open: scenario.flows.len(),
            turns: 0,
            outside: Vec::new(),
            may_fail: scenario.hosts.iter().any(|host| host.stack.may_fail()),
        };
        for (index, flow) in scenario.flows.iter().enumerate() {
            let [forward, reverse] = world.network.routes.of_path(flow.path).unwrap_or_default();
            let is_turned = scenario.paths[flow.path].from != flow.from;
            let (out, back) = if is_turned { (reverse, forward) } else { (forward, reverse) };
            world.add_flow(index, flow, [out, back]);
        }
        for end in &mut world.ends {
            if outside.contains(&usize::from(end.host)) {
                end.stack = TransportEndpoint::Outside;
                // The state of an external end is unknown: a flow finishes with its simulated end.
                end.closed = true;
            }
        }
        world.create_external_controllers();
        Ok(world)
    }

    fn add_flow(&mut self, index: usize, flow: &FlowSpec, [out, back]: [u32; 2]) {
        let started = Instant::ZERO + flow.start;
        let end = |host: usize, route: u32, app: Application| FlowEndpoint {
            stack: TransportEndpoint::Uncreated,
            app,
            read: 0,
            flow: FlowId(index as u32),
            host: host as u16,
            route,
            armed: None,
            app_at: None,
            closed: false,
            gone: false,
            was_reset: false,
            delays: !self.scenario.hosts[host].delay.is_zero(),
            hibernations: 0,
            stage: AcceptStage::Accepted,
        };
        let seed = self.scenario.seed;
        let draws = || RandomStream::named(seed, &format!("flow {}", flow.name), "pause");
        let is_opened_later = self.add_page(index, flow);
        let page = self.pages.len().saturating_sub(1) as u32;
        let client = Application::client(flow, page, draws);
        let server = Application::server(&flow.app, flow.reads);
        let stage = match flow.app {
            App::Datagrams(_) => AcceptStage::Accepted,
            _ => self.first_stage(flow.to, SERVER),
        };
        let (client, server) = (end(flow.from, out, client), end(flow.to, back, server));
        self.ends.push(client);
        self.ends.push(FlowEndpoint { stage, ..server });
        self.flows.push(FlowProgress {
            sender: if flow.app.is_answered() { SERVER as u8 } else { CLIENT as u8 },
            reads_last: self.arrival_is_scheduled_first(flow),
            started,
            read_all_at: None,
        });
        if !is_opened_later {
            self.network.calendar.push(started, SimEvent::Start(index as u32));
        }
    }

    /// Returns whether an arrival precedes a read at the same instant. The event scheduled first is
    /// processed first: the arrival is scheduled on entry to its last delay, the read at the
    /// previous read.
    fn arrival_is_scheduled_first(&self, flow: &FlowSpec) -> bool {
        let last = self.scenario.paths[flow.path].forward.last();
        matches!((last, flow.reads), (Some(ElementSpec::Delay(delay)), Some(reads)) if *delay > reads.every)
    }

    #[inline]
    fn count_turn(&mut self) {
        self.network.count_turn(&mut self.turns);
    }

    /// Aborts the run once a user-defined congestion controller or a real implementation of QUIC has failed.
    #[cold]
    fn check_failures(&mut self) {
        if !self.may_fail {
            return;
        }
        let stacks =
            self.ends.iter().filter_map(|end| Some((end.host, end.stack.stack_failure()?)));
        if let Some((host, failure)) = stacks.min_by_key(|(_, failure)| failure.at) {
            let host = &self.scenario.hosts[usize::from(host)];
            let (host, stack) = (host.name.clone(), host.stack.profile_name());
            let failure = failure.clone();
            self.network.give_up(RunError::Stack(StackFailure { host, stack, failure }));
        }
        let failed = self.ends.iter().find_map(|end| end.stack.controller_failure()).cloned();
        if let Some(gone) = failed {
            self.network.give_up(RunError::Controller(gone));
        }
    }

    pub(crate) fn outcome(&self) -> RunOutcome {
        let mut segments = 0;
        let of_flow = |flow| {
            let counted = [CLIENT, SERVER].map(|side| self.counted(end_of(flow, side)));
            segments += counted.iter().map(|end| end.data_packets).sum::<u64>();
            self.flow_outcome(flow, &counted)
        };
        let flows = (0..self.flows.len()).map(of_flow).collect();
        let groups = self.scenario.groups.iter();
        let group_latencies = groups.map(|group| self.latency(group.flows.clone())).collect();
        RunOutcome { segments, flows, group_latencies, ended: self.network.now }
    }

    /// The latencies of these flows, which have the same application.
    fn latency(&self, flows: core::ops::Range<usize>) -> Option<Latency> {
        let mut times = Vec::new();
        let mut kind = None;
        for flow in flows {
            kind = self.latencies(flow, &mut times).or(kind);
        }
        Latency::of(times, kind?)
    }

    /// Appends the latencies of a flow; returns what they are.
    fn latencies(&self, flow: usize, times: &mut Vec<Duration>) -> Option<LatencyKind> {
        let [client, server] = [CLIENT, SERVER].map(|side| &self.ends[end_of(flow, side)]);
        match (&client.stack, &server.stack, &client.app) {
            (TransportEndpoint::Udp(source), TransportEndpoint::Udp(sink), _) => {
                source.latencies(sink, times)
            }
            (.., Application::Fetcher(fetcher)) => {
                if fetcher.connection == 0 {
                    times.extend_from_slice(self.pages.get(fetcher.page as usize)?.times());
                }
                Some(LatencyKind::Pages)
            }
            _ => client.app.latencies(&server.app, times),
        }
    }

    fn flow_outcome(&self, flow: usize, counted: &[EndpointTotals; 2]) -> FlowOutcome {
        let connection = &self.flows[flow];
        let sender = usize::from(connection.sender);
        let sending = &self.ends[end_of(flow, sender)];
        let reading = &self.ends[end_of(flow, 1 - sender)];
        let host = &self.scenario.hosts[usize::from(sending.host)];
        let totals = &counted[sender];
        let [client, server] = [CLIENT, SERVER].map(|side| &self.ends[end_of(flow, side)]);
        let datagrams = match (&client.stack, &server.stack) {
            (TransportEndpoint::Udp(source), TransportEndpoint::Udp(sink)) => Some((source, sink)),
            _ => None,
        };
        let is_udp = matches!(self.scenario.flows[flow].app, App::Datagrams(_));
        let (profile, cc) = match is_udp {
            true => ("udp", "none"),
            false => (host.stack.profile_name(), host.stack.cc_name()),
        };
        FlowOutcome {
            name: self.scenario.flows[flow].name.clone(),
            profile,
            cc: cc.into(),
            bytes: Bytes(reading.read),
            finished: connection.read_all_at.is_some(),
            duration: connection.read_all_at.unwrap_or(self.network.now).since(connection.started),
            retransmitted_segments: totals.retransmitted_packets,
            fast_recoveries: totals.recoveries,
            rtos: totals.timeouts,
            spurious_recoveries: totals.spurious,
            max_cwnd: totals.max_cwnd,
            mss: totals.mss,
            min_rtt: totals.min_rtt,
            latency: self.latency(flow..flow + 1),
            video: match &client.app {
                Application::Player(player) => Some(Box::new(player.outcome(self.network.now))),
                _ => None,
            },
            datagrams: datagrams.and_then(|(source, sink)| source.outcome(sink)),
            group: None,
            received_packet_bytes: counted[1 - sender].received_packet_bytes,
        }
    }
}
