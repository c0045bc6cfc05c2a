//! The loop: take the next entry of the calendar, let it happen, note what follows.

mod packets;

use cc::Algorithm;
use machine::{Cx, Endpoint as _, PacketId, Signal};
use net::calendar::Calendar;
use net::offload::split;
use net::pool::Pool;
use packet::Segment;
use record::Who;
use tcp::{Config, Endpoint, Side};
use units::{Bytes, Duration, FlowId, HostId, Instant, SeqNum, Stream};

use packets::Parcel;

use crate::app::Application;
use crate::card::Card;
use crate::observer::Observer;
use crate::outcome::{FlowOutcome, Outcome};
use crate::road::{self, Road, Station};
use crate::scenario::{App, Burst, Element, Flow, Host, Pause, Scenario, TapPlace};

/// Why a scenario could not be set up. The text form refuses these with a better message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupError {
    /// Flow number `flow` names a host or path that is not there, or that does not fit.
    Route {
        /// Index of the flow.
        flow: usize,
    },
    /// Path number `path` names a host or a shared element that is not there, or one of its roads
    /// has more than 65,534 elements.
    Path {
        /// Index of the path.
        path: usize,
    },
    /// Shared element number `shared` refers to another.
    Shared {
        /// Index of the shared element.
        shared: usize,
    },
    /// Flow number `flow` would never let time pass: it writes without end over a path and hosts
    /// that delay nothing, or at intervals of no time.
    Endless {
        /// Index of the flow.
        flow: usize,
    },
    /// Tap number `tap` names a host that is not there.
    Tap {
        /// Index of the tap.
        tap: usize,
    },
}

/// An entry of the calendar: who wants to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    Start(u32),
    Station(u32),
    Card(u16),
    Timer { flow: u32, side: u8 },
    App { flow: u32, side: u8 },
}

const CLIENT: usize = 0;
const SERVER: usize = 1;
/// Entries of the calendar between two calls of [`Observer::progress`].
const PROGRESS_EVERY: u64 = 1 << 16;

/// One end of a flow.
#[derive(Debug)]
struct End {
    tcp: Endpoint,
    app: Application,
    /// Payload bytes that the application has read.
    read: u64,
    host: u16,
    /// The road that its segments take, by number.
    road: u32,
    /// Time of the entry in the calendar that stands for its timers.
    armed: Option<Instant>,
    /// Time of the entry in the calendar that wakes its application.
    app_at: Option<Instant>,
    closed: bool,
}

#[derive(Debug)]
struct Connection {
    ends: [End; 2],
    /// The end that sends the bytes that count.
    sender: usize,
    started: Instant,
    /// When the last byte that counts was read.
    read_all_at: Option<Instant>,
}

impl Connection {
    fn over(&self) -> bool {
        self.ends.iter().all(|end| end.closed)
    }
}

struct World<'a, O: Observer> {
    scenario: &'a Scenario,
    observer: &'a mut O,
    now: Instant,
    calendar: Calendar<Wake>,
    pool: Pool<Parcel>,
    /// Packets that have left their hosts, and copies.
    packets: u64,
    /// Copies that have left the station where they were made, but gone no further yet.
    copies: Vec<PacketId>,
    stations: Vec<Station>,
    /// Forward and reverse road of the first path, then of the second, and so on.
    roads: Vec<Road>,
    cards: Vec<Card>,
    flows: Vec<Connection>,
    open: usize,
}

/// Runs a scenario to its end, or to the end of its time.
///
/// # Errors
/// [`SetupError`] if the scenario refers to what is not there.
pub fn run<O: Observer>(scenario: &Scenario, observer: &mut O) -> Result<Outcome, SetupError> {
    let mut world = World::new(scenario, observer)?;
    let end = Instant::ZERO + scenario.duration;
    let mut entries = 0_u64;
    while world.open > 0 {
        // Without an entry nothing will ever happen: the rest of the time passes.
        let Some((at, wake)) = world.calendar.pop().filter(|&(at, _)| at <= end) else {
            world.now = end;
            break;
        };
        world.now = at;
        world.happen(wake);
        entries += 1;
        if entries.is_multiple_of(PROGRESS_EVERY) {
            world.observer.progress(at);
        }
    }
    Ok(world.outcome())
}

impl<'a, O: Observer> World<'a, O> {
    fn new(scenario: &'a Scenario, observer: &'a mut O) -> Result<Self, SetupError> {
        let hosts = scenario.hosts.len();
        let (stations, roads) = road::build(scenario)?;
        if let Some(tap) = scenario.taps.iter().position(|tap| tap.host >= hosts) {
            return Err(SetupError::Tap { tap });
        }
        let cards = scenario.hosts.iter().map(|host| Card::new(&host.offload, host.delay));
        let mut world = Self {
            scenario,
            observer,
            now: Instant::ZERO,
            calendar: Calendar::new(),
            pool: Pool::new(),
            packets: 0,
            copies: Vec::new(),
            stations,
            roads,
            cards: cards.collect(),
            flows: Vec::with_capacity(scenario.flows.len()),
            open: scenario.flows.len(),
        };
        for (index, flow) in scenario.flows.iter().enumerate() {
            let (forward, reverse) = (2 * flow.path as u32, 2 * flow.path as u32 + 1);
            let ends = (flow.from, flow.to);
            let (out, back) = match scenario.paths.get(flow.path) {
                Some(path) if (path.from, path.to) == ends => (forward, reverse),
                Some(path) if (path.to, path.from) == ends => (reverse, forward),
                _ => return Err(SetupError::Route { flow: index }),
            };
            if stands_still(scenario, flow) {
                return Err(SetupError::Endless { flow: index });
            }
            world.add_flow(index, flow, out, back);
        }
        Ok(world)
    }

    fn add_flow(&mut self, index: usize, flow: &Flow, out: u32, back: u32) {
        let started = Instant::ZERO + flow.start;
        let end = |side: Side, host: usize, road: u32, app: Application| End {
            tcp: Endpoint::new(config(self.scenario, index, flow, side, host)),
            app,
            read: 0,
            host: host as u16,
            road,
            armed: None,
            app_at: None,
            closed: false,
        };
        let draws = Stream::named(self.scenario.seed, &format!("flow {}", flow.name), "pause");
        let client = Application::client(&flow.app, draws);
        let server = Application::server(&flow.app);
        self.flows.push(Connection {
            ends: [
                end(Side::Client, flow.from, out, client),
                end(Side::Server, flow.to, back, server),
            ],
            sender: if matches!(flow.app, App::Requests { .. }) { SERVER } else { CLIENT },
            started,
            read_all_at: None,
        });
        self.calendar.push(started, Wake::Start(index as u32));
    }

    fn happen(&mut self, wake: Wake) {
        match wake {
            Wake::Start(flow) => {
                self.flows[flow as usize].ends[CLIENT].tcp.open();
                self.serve(flow as usize, CLIENT);
            }
            Wake::Station(station) => self.run_station(station as usize),
            Wake::Card(card) => self.run_card(card as usize),
            Wake::Timer { flow, side } => self.run_timer(flow as usize, usize::from(side)),
            Wake::App { flow, side } => self.run_app(flow as usize, usize::from(side)),
        }
    }

    /// After anything was said to an endpoint: sends what it wants to send, lets the application
    /// act or calls it for later, sets its alarm.
    fn serve(&mut self, flow: usize, side: usize) {
        loop {
            self.drain(flow, side);
            let mut acts = false;
            while let Some(signal) = self.flows[flow].ends[side].tcp.poll_signal() {
                acts |= self.on_signal(flow, side, signal);
            }
            if !acts {
                break;
            }
            self.act(flow, side);
        }
        let end = &mut self.flows[flow].ends[side];
        if let Some((at, _)) = end.tcp.poll_timeout()
            && end.armed.is_none_or(|armed| at < armed)
        {
            end.armed = Some(at);
            self.calendar.push(at, Wake::Timer { flow: flow as u32, side: side as u8 });
        }
    }

    fn drain(&mut self, flow: usize, side: usize) {
        let mut slot = Segment::default();
        loop {
            let end = &mut self.flows[flow].ends[side];
            let (host, road) = (end.host, end.road);
            let who = Who { host: HostId(host), flow: FlowId(flow as u32) };
            let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
            if end.tcp.poll_transmit(&mut cx, &mut slot).is_err() {
                return;
            }
            self.look(usize::from(host), TapPlace::Stack, true, &slot);
            for packet in split(&slot) {
                self.depart(host, road, &packet);
            }
        }
    }

    /// Returns true if the application is to act at once.
    fn on_signal(&mut self, flow: usize, side: usize, signal: Signal) -> bool {
        match signal {
            Signal::Closed | Signal::Aborted => {
                let was_over = self.flows[flow].over();
                if signal == Signal::Aborted {
                    self.flows[flow].ends.iter_mut().for_each(|end| end.closed = true);
                } else {
                    self.flows[flow].ends[side].closed = true;
                }
                if !was_over && self.flows[flow].over() {
                    self.open -= 1;
                }
                return false;
            }
            Signal::Connected => {
                let delay = self.host_of(flow, side).delay;
                self.flows[flow].ends[side].app.begin(self.now + delay);
            }
            Signal::Writable | Signal::Readable => {}
        }
        let delay = self.host_of(flow, side).delay;
        if !delay.is_zero() {
            self.call_app(flow, side, self.now + delay);
        }
        delay.is_zero()
    }

    fn host_of(&self, flow: usize, side: usize) -> &'a Host {
        &self.scenario.hosts[usize::from(self.flows[flow].ends[side].host)]
    }

    fn call_app(&mut self, flow: usize, side: usize, at: Instant) {
        let end = &mut self.flows[flow].ends[side];
        if end.app_at.is_none_or(|set| at < set) {
            end.app_at = Some(at);
            self.calendar.push(at, Wake::App { flow: flow as u32, side: side as u8 });
        }
    }

    fn run_app(&mut self, flow: usize, side: usize) {
        let end = &mut self.flows[flow].ends[side];
        end.app_at = end.app_at.filter(|&at| at > self.now);
        self.act(flow, side);
        self.serve(flow, side);
    }

    /// The application reads, writes and closes as it wants; the endpoint is served afterwards.
    fn act(&mut self, flow: usize, side: usize) {
        loop {
            let end = &mut self.flows[flow].ends[side];
            let who = Who { host: HostId(end.host), flow: FlowId(flow as u32) };
            let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
            let read = end.tcp.read(&mut cx);
            end.read += read;
            end.app.read(self.now, read);
            let offered = end.app.offer(self.now);
            let taken = if offered == 0 { 0 } else { end.tcp.write(&mut cx, offered) };
            if taken == 0 {
                break;
            }
            end.app.taken(self.now, taken);
            // Every write calls the stack's output routine, which may make more room.
            self.drain(flow, side);
        }
        let connection = &mut self.flows[flow];
        let end = &mut connection.ends[side];
        let at_end = end.tcp.at_end();
        if end.app.done(at_end) {
            end.tcp.close();
            // Bytes that count have come to their end where their reader has.
            if side != connection.sender {
                connection.read_all_at.get_or_insert(self.now);
            }
        }
        if let Some(at) = end.app.next_write(self.now).filter(|&at| at > self.now) {
            self.call_app(flow, side, at);
        }
    }

    fn run_timer(&mut self, flow: usize, side: usize) {
        let end = &mut self.flows[flow].ends[side];
        end.armed = end.armed.filter(|&at| at > self.now);
        let who = Who { host: HostId(end.host), flow: FlowId(flow as u32) };
        let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
        // The entry may be an old one: the deadline has moved on since.
        end.tcp.handle_timeout(&mut cx);
        self.serve(flow, side);
    }

    // Watching and counting.

    #[inline]
    fn look(&mut self, host: usize, place: TapPlace, outbound: bool, segment: &Segment) {
        for (number, tap) in self.scenario.taps.iter().enumerate() {
            if tap.host == host && tap.place == place {
                self.observer.tap(self.now, number, outbound, segment);
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let flows: Vec<_> = self
            .flows
            .iter()
            .zip(&self.scenario.flows)
            .map(|(connection, flow)| self.flow_outcome(connection, flow))
            .collect();
        let packets = |end: &End| end.tcp.totals().data_packets;
        let segments = self.flows.iter().flat_map(|flow| &flow.ends).map(packets).sum();
        Outcome { segments, flows, ended: self.now }
    }

    fn flow_outcome(&self, connection: &Connection, flow: &Flow) -> FlowOutcome {
        let [sending, reading] = [connection.sender, 1 - connection.sender];
        let host = &self.scenario.hosts[usize::from(connection.ends[sending].host)];
        let sender = &connection.ends[sending].tcp;
        let totals = sender.totals();
        FlowOutcome {
            name: flow.name.clone(),
            profile: host.profile.name,
            cc: match host.cc {
                Algorithm::NewReno => "newreno",
                Algorithm::Reno => "reno",
            },
            bytes: Bytes(connection.ends[reading].read),
            finished: connection.read_all_at.is_some(),
            duration: connection.read_all_at.unwrap_or(self.now).since(connection.started),
            retransmitted_segments: totals.retransmitted_packets,
            fast_recoveries: totals.fast_recoveries,
            rtos: totals.timeouts,
            spurious_recoveries: totals.spurious,
            max_cwnd: totals.max_cwnd,
            mss: sender.sender_state().mss,
            min_rtt: totals.min_rtt,
            latency: connection.ends[CLIENT].app.latency(),
        }
    }
}

/// Could a flow go on for ever in one instant?
fn stands_still(scenario: &Scenario, flow: &Flow) -> bool {
    let Some(path) = scenario.paths.get(flow.path) else { return false };
    let takes_time = |element: &Element| match element {
        Element::Link { .. } => true,
        Element::Delay(span) => !span.is_zero(),
        _ => false,
    };
    let shared = |element: &&Element| match **element {
        Element::Shared(index) => scenario.shared.get(index).map(|shared| &shared.element),
        _ => None,
    };
    let elements = || path.forward.iter().chain(&path.reverse);
    let idle = elements().all(|element| !takes_time(shared(&element).unwrap_or(element)))
        && [flow.from, flow.to].iter().all(|&host| scenario.hosts[host].delay.is_zero());
    match flow.app {
        App::Bulk { bytes: None } => idle,
        App::Paced { every, bytes, .. } => every.is_zero() && bytes.is_none(),
        App::OnOff { on, off, bytes } => {
            let no_pause = matches!(off, Pause::Fixed(Duration::ZERO));
            let no_burst = on == Burst::For(Duration::ZERO);
            bytes.is_none() && (idle || (no_burst && no_pause))
        }
        App::Requests { count, .. } => idle && count.is_none(),
        App::Bulk { .. } => false,
    }
}

fn config(scenario: &Scenario, index: usize, flow: &Flow, side: Side, host: usize) -> Config {
    let host = &scenario.hosts[host];
    let draw = |purpose: &str| {
        let owner = format!("flow {index} host {}", host.name);
        Stream::named(scenario.seed, &owner, purpose).next_u32()
    };
    Config {
        profile: host.profile.clone(),
        algorithm: host.cc,
        side,
        flow: FlowId(index as u32),
        ip: flow.ip,
        isn: SeqNum(host.isn.unwrap_or_else(|| draw("isn"))),
        timestamp: host.timestamp.unwrap_or_else(|| draw("timestamp")),
        clock_phase: host.clock_phase.min(Duration::from_secs(1)),
        tso: host.offload.tso,
        nodelay: flow.nodelay,
        keepalive: None,
    }
}
