//! The loop: take the next entry of the calendar, let it happen, note what follows.

mod contents;
mod departures;
pub(crate) mod outside;
mod packet_slots;
mod packets;
mod rest;
mod service;
mod setup;
mod turns;

use tcp::profile::SharedProfile;
use units::{Bytes, FlowId, Instant, Stream, unlikely};

use outside::Leaving;
use packets::Network;
use rest::Awake;
use setup::profiles;

use crate::app::Application;
use crate::card::Card;
use crate::observer::Observer;
use crate::outcome::{FlowOutcome, Outcome};
use crate::road;
use crate::run_error::RunError;
use crate::scenario::{App, Element, Flow, Scenario};
use crate::transport::{Counted, Transport};
use crate::validity::{self, SetupError};

/// An entry of the calendar: who wants to run. Ends are numbered as in [`World::ends`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    Start(u32),
    Station(u32),
    Card(u16),
    Timer(u32),
    App(u32),
    /// The same behind all that was due at its moment when it was taken.
    AppLast(u32),
    /// See `AppLast`.
    CardLast(u16),
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Number of one end of a flow.
const fn end_of(flow: usize, side: usize) -> usize {
    2 * flow + side
}

/// One end of a flow.
#[derive(Debug)]
struct End {
    stack: Transport,
    app: Application,
    /// Payload bytes that the application has read.
    read: u64,
    flow: FlowId,
    host: u16,
    /// Where on the network's roads its segments begin their way.
    road: u32,
    /// Time of the entry in the calendar that stands for its timers.
    armed: Option<Instant>,
    /// Time of the entry in the calendar that wakes its application.
    app_at: Option<Instant>,
    closed: bool,
    /// Its connection was given up or reset: nobody takes what its application writes.
    gone: bool,
    /// Its application has reset the connection.
    gave_up: bool,
    /// Its host takes time before an application acts.
    delays: bool,
    /// What arrives at the very moment of a read is received before it.
    reads_last: bool,
    /// How often it was packed ([`rest`]).
    naps: u8,
}

#[derive(Debug)]
struct Connection {
    /// The side that sends the bytes that count.
    sender: usize,
    started: Instant,
    /// When the last byte that counts was read.
    read_all_at: Option<Instant>,
}

pub(crate) struct World<'a, O: Observer> {
    scenario: &'a Scenario,
    /// Of each host with TCP.
    profiles: Vec<Option<SharedProfile>>,
    network: Network<'a, O>,
    /// Client and server of the first flow, then of the second, and so on.
    ends: Vec<End>,
    awake: Awake,
    flows: Vec<Connection>,
    open: usize,
    /// Entries of the calendar that were taken, and turns of applications.
    turns: u64,
    /// Segments that have come to a stack outside.
    outside: Vec<Leaving>,
}

/// Runs a scenario to its end, or to the end of its time.
///
/// # Errors
/// [`RunError`] if the scenario cannot be run to its end.
pub fn run<O: Observer>(scenario: &Scenario, observer: &mut O) -> Result<Outcome, RunError> {
    run_and(scenario, observer, |_| {})
}

/// The same, with every end of TCP packed after every event, if it can be: for tests, since it must make
/// no difference.
///
/// # Errors
/// [`RunError`] if the scenario cannot be run to its end.
#[doc(hidden)]
pub fn run_packing<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
) -> Result<Outcome, RunError> {
    run_and(scenario, observer, World::pack_all)
}

fn run_and<'a, O: Observer>(
    scenario: &'a Scenario,
    observer: &'a mut O,
    after_each: impl Fn(&mut World<'a, O>),
) -> Result<Outcome, RunError> {
    let mut world = World::new(scenario, &[], observer)?;
    world.network.end = Instant::ZERO + scenario.duration;
    turn_until(&mut world, after_each);
    world.check_controllers();
    match world.network.given_up.take() {
        Some(error) => Err(error),
        None => Ok(world.outcome()),
    }
}

/// Alone, so that the making of the world takes no register away from what is done for every packet.
#[inline(never)]
fn turn_until<'a, O: Observer>(world: &mut World<'a, O>, after_each: impl Fn(&mut World<'a, O>)) {
    while world.open > 0 {
        // Without an entry nothing will ever happen: the rest of the time passes.
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
            world.check_controllers();
        }
    }
}

impl<'a, O: Observer> World<'a, O> {
    /// A world before its first moment; the stacks of the hosts in `outside` are not of this program.
    pub(crate) fn new(
        scenario: &'a Scenario,
        outside: &[usize],
        observer: &'a mut O,
    ) -> Result<Self, SetupError> {
        let stations_and_roads = road::build(scenario)?;
        validity::check(scenario, outside)?;
        let cards = scenario.hosts.iter().map(|host| {
            let luck = Stream::named(scenario.seed, &format!("host {}", host.name), "rss hash");
            Card::new(host, luck)
        });
        let cards = cards.collect();
        let mut world = Self {
            scenario,
            profiles: profiles(scenario),
            network: Network::new(observer, &scenario.taps, stations_and_roads, cards),
            ends: Vec::with_capacity(2 * scenario.flows.len()),
            awake: Awake::default(),
            flows: Vec::with_capacity(scenario.flows.len()),
            open: scenario.flows.len(),
            turns: 0,
            outside: Vec::new(),
        };
        for (index, flow) in scenario.flows.iter().enumerate() {
            let [forward, reverse] = world.network.roads.of_path(flow.path).unwrap_or_default();
            let is_turned = scenario.paths[flow.path].from != flow.from;
            let (out, back) = if is_turned { (reverse, forward) } else { (forward, reverse) };
            world.add_flow(index, flow, [out, back]);
        }
        for end in &mut world.ends {
            if outside.contains(&usize::from(end.host)) {
                end.stack = Transport::Outside;
                // Its own end is nobody's business here: a flow is over once ours is.
                end.closed = true;
            }
        }
        world.make_those_with_guests();
        Ok(world)
    }

    fn add_flow(&mut self, index: usize, flow: &Flow, [out, back]: [u32; 2]) {
        let started = Instant::ZERO + flow.start;
        let reads_last = self.plans_arrivals_first(flow);
        let end = |host: usize, road: u32, app: Application| End {
            stack: Transport::NotYet,
            app,
            read: 0,
            flow: FlowId(index as u32),
            host: host as u16,
            road,
            armed: None,
            app_at: None,
            closed: false,
            gone: false,
            gave_up: false,
            delays: !self.scenario.hosts[host].delay.is_zero(),
            reads_last,
            naps: 0,
        };
        let seed = self.scenario.seed;
        let draws = || Stream::named(seed, &format!("flow {}", flow.name), "pause");
        let client = Application::client(&flow.app, draws);
        let server = Application::server(&flow.app, flow.reads);
        self.ends.push(end(flow.from, out, client));
        self.ends.push(end(flow.to, back, server));
        self.flows.push(Connection {
            sender: if matches!(flow.app, App::Requests { .. }) { SERVER } else { CLIENT },
            started,
            read_all_at: None,
        });
        self.network.calendar.push(started, Wake::Start(index as u32));
    }

    /// Of a read and an arrival at one moment the one planned earlier happens first: the arrival when it
    /// entered its last delay, the read at the read before.
    fn plans_arrivals_first(&self, flow: &Flow) -> bool {
        let last = self.scenario.paths[flow.path].forward.last();
        matches!((last, flow.reads), (Some(Element::Delay(delay)), Some(reads)) if *delay > reads.every)
    }

    #[inline]
    fn count_turn(&mut self) {
        self.network.count_turn(&mut self.turns);
    }

    /// Gives up once a user-defined congestion controller has failed.
    #[cold]
    #[inline(never)]
    fn check_controllers(&mut self) {
        if !self.scenario.hosts.iter().any(|host| host.stack.has_external_cc()) {
            return;
        }
        let failed = self.ends.iter().find_map(|end| end.stack.controller_failure()).cloned();
        if let Some(gone) = failed {
            self.network.give_up(RunError::Controller(gone));
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let mut segments = 0;
        let of_flow = |flow| {
            let counted = [CLIENT, SERVER].map(|side| self.counted(end_of(flow, side)));
            segments += counted.iter().map(|end| end.data_packets).sum::<u64>();
            self.flow_outcome(flow, &counted)
        };
        let flows = (0..self.flows.len()).map(of_flow).collect();
        Outcome { segments, flows, ended: self.network.now }
    }

    fn flow_outcome(&self, flow: usize, counted: &[Counted; 2]) -> FlowOutcome {
        let connection = &self.flows[flow];
        let sending = &self.ends[end_of(flow, connection.sender)];
        let reading = &self.ends[end_of(flow, 1 - connection.sender)];
        let host = &self.scenario.hosts[usize::from(sending.host)];
        let totals = &counted[connection.sender];
        FlowOutcome {
            name: self.scenario.flows[flow].name.clone(),
            profile: host.stack.profile_name(),
            cc: host.stack.cc_name(),
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
            latency: self.ends[end_of(flow, CLIENT)].app.latency(),
            received_packet_bytes: counted[1 - connection.sender].received_packet_bytes,
        }
    }
}
