//! The loop: take the next entry of the calendar, let it happen, note what follows.

mod packets;
mod parcels;

use machine::{Cx, Endpoint as _, PacketId, Signal};
use net::calendar::Calendar;
use record::Who;
use tcp::profile::SharedProfile;
use tcp::{Config, Endpoint, Keepalive, Side};
use units::{Bytes, Duration, FlowId, HostId, Instant, SeqNum, Stream};

use parcels::Parcels;

use crate::app::Application;
use crate::card::Card;
use crate::datagrams::{self, Datagrams};
use crate::observer::{Observer, PROGRESS_EVERY};
use crate::outcome::{FlowOutcome, Outcome};
use crate::road::{self, Roads, Station};
use crate::scenario::{App, Burst, Close, Element, Flow, Host, Pause, Scenario, TapPlace};
use crate::transport::Transport;

/// Why a scenario could not be set up. The text form refuses these with a better message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupError {
    /// Flow number `flow` names a host or path that is not there, or that does not fit.
    Route {
        /// Index of the flow.
        flow: usize,
    },
    /// Flow number `flow` joins a host with TCP and one with QUIC.
    Transport {
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

/// An entry of the calendar: who wants to run. Ends are numbered as in [`World::ends`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    Start(u32),
    Station(u32),
    Card(u16),
    Timer(u32),
    App(u32),
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
    host: u16,
    /// The host's delay.
    delay: Duration,
    /// Where on [`World::roads`] its segments begin their way.
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
}

#[derive(Debug)]
struct Connection {
    /// The side that sends the bytes that count.
    sender: usize,
    started: Instant,
    /// When the last byte that counts was read.
    read_all_at: Option<Instant>,
}

struct World<'a, O: Observer> {
    scenario: &'a Scenario,
    observer: &'a mut O,
    now: Instant,
    calendar: Calendar<Wake>,
    parcels: Parcels,
    datagrams: Datagrams,
    /// Packets that have left their hosts, and copies.
    packets: u64,
    /// Copies that have left the station where they were made, but gone no further yet.
    copies: Vec<PacketId>,
    /// A packet leaves its host just now; what comes of it at once must wait.
    departing: bool,
    stations: Vec<Station>,
    roads: Roads,
    cards: Vec<Card>,
    /// For each host whether its card lets packets go up alone and at once.
    plain_cards: Vec<bool>,
    /// Packets that wait in cards.
    in_cards: u32,
    /// Client and server of the first flow, then of the second, and so on.
    ends: Vec<End>,
    flows: Vec<Connection>,
    open: usize,
    /// Entries of the calendar that were taken, and turns of applications.
    turns: u64,
}

/// Runs a scenario to its end, or to the end of its time.
///
/// # Errors
/// [`SetupError`] if the scenario refers to what is not there.
pub fn run<O: Observer>(scenario: &Scenario, observer: &mut O) -> Result<Outcome, SetupError> {
    let mut world = World::new(scenario, observer)?;
    let end = Instant::ZERO + scenario.duration;
    while world.open > 0 {
        // Without an entry nothing will ever happen: the rest of the time passes.
        let Some((at, wake)) = world.calendar.pop().filter(|&(at, _)| at <= end) else {
            world.now = end;
            break;
        };
        world.now = at;
        world.count_turn();
        world.happen(wake);
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
        let cards = scenario.hosts.iter().map(|host| {
            let luck = Stream::named(scenario.seed, &format!("host {}", host.name), "rss hash");
            Card::new(&host.offload, host.delay, luck)
        });
        let mut world = Self {
            scenario,
            observer,
            now: Instant::ZERO,
            calendar: Calendar::new(),
            parcels: Parcels::default(),
            datagrams: Datagrams::default(),
            packets: 0,
            copies: Vec::new(),
            departing: false,
            stations,
            roads,
            plain_cards: Vec::with_capacity(hosts),
            cards: cards.collect(),
            in_cards: 0,
            ends: Vec::with_capacity(2 * scenario.flows.len()),
            flows: Vec::with_capacity(scenario.flows.len()),
            open: scenario.flows.len(),
            turns: 0,
        };
        world.plain_cards.extend(world.cards.iter().map(Card::is_plain));
        let profiles = profiles(scenario);
        for (index, flow) in scenario.flows.iter().enumerate() {
            let ends = (flow.from, flow.to);
            let [forward, reverse] = world.roads.of_path(flow.path).unwrap_or_default();
            let (out, back) = match scenario.paths.get(flow.path) {
                Some(path) if (path.from, path.to) == ends => (forward, reverse),
                Some(path) if (path.to, path.from) == ends => (reverse, forward),
                _ => return Err(SetupError::Route { flow: index }),
            };
            let [from, to] = [flow.from, flow.to].map(|host| scenario.hosts[host].quic.is_some());
            if from != to {
                return Err(SetupError::Transport { flow: index });
            }
            if stands_still(scenario, flow) {
                return Err(SetupError::Endless { flow: index });
            }
            world.add_flow(index, flow, [out, back], &profiles);
        }
        Ok(world)
    }

    fn add_flow(
        &mut self,
        index: usize,
        flow: &Flow,
        [out, back]: [u32; 2],
        profiles: &[SharedProfile],
    ) {
        let started = Instant::ZERO + flow.start;
        let end = |side: Side, host: usize, road: u32, app: Application| End {
            stack: transport(self.scenario, index, flow, side, (host, &profiles[host])),
            app,
            read: 0,
            host: host as u16,
            delay: self.scenario.hosts[host].delay,
            road,
            armed: None,
            app_at: None,
            closed: false,
            gone: false,
            gave_up: false,
        };
        let draws = Stream::named(self.scenario.seed, &format!("flow {}", flow.name), "pause");
        let client = Application::client(&flow.app, draws);
        let server = Application::server(&flow.app, flow.reads);
        self.ends.push(end(Side::Client, flow.from, out, client));
        self.ends.push(end(Side::Server, flow.to, back, server));
        self.flows.push(Connection {
            sender: if matches!(flow.app, App::Requests { .. }) { SERVER } else { CLIENT },
            started,
            read_all_at: None,
        });
        self.calendar.push(started, Wake::Start(index as u32));
    }

    #[inline]
    fn count_turn(&mut self) {
        self.turns += 1;
        if self.turns.is_multiple_of(PROGRESS_EVERY) {
            self.observer.progress(self.now);
        }
    }

    fn happen(&mut self, wake: Wake) {
        match wake {
            Wake::Start(flow) => {
                let index = end_of(flow as usize, CLIENT);
                let end = &mut self.ends[index];
                let who = Who { host: HostId(end.host), flow: FlowId(flow) };
                let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
                end.stack.open(&mut cx);
                self.serve(index);
            }
            Wake::Station(station) => self.run_station(station as usize),
            Wake::Card(card) => self.run_card(card as usize),
            Wake::Timer(index) => self.run_timer(index as usize),
            Wake::App(index) => self.run_app(index as usize),
        }
    }

    /// After anything was said to an endpoint: sends what it wants to send, lets the application
    /// act or calls it for later, sets its alarm.
    fn serve(&mut self, index: usize) {
        loop {
            self.drain(index);
            let mut acts = false;
            while let Some(signal) = self.ends[index].stack.poll_signal() {
                acts |= self.on_signal(index, signal);
            }
            if !acts {
                break;
            }
            self.count_turn();
            self.act(index);
        }
        let end = &mut self.ends[index];
        let at = end.stack.next_deadline();
        if at < end.armed.unwrap_or(Instant::MAX) {
            end.armed = Some(at);
            self.calendar.push(at, Wake::Timer(index as u32));
        }
    }

    fn drain(&mut self, index: usize) {
        loop {
            let end = &mut self.ends[index];
            let (host, road) = (end.host, end.road);
            let tcp = match &mut end.stack {
                Transport::Tcp(tcp) if tcp.wants_to_send() => tcp,
                Transport::Tcp(_) => return,
                Transport::Quic(_) => return self.drain_quic(index),
            };
            let who = Who { host: HostId(host), flow: FlowId((index / 2) as u32) };
            let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
            // The endpoint writes its segment where it will lie on its way.
            let id = self.parcels.reserve();
            if tcp.poll_transmit(&mut cx, self.parcels.segment_mut(id)).is_err() {
                self.parcels.release(id);
                return;
            }
            self.depart(host, road, id);
        }
    }

    /// Returns true if the application is to act at once.
    fn on_signal(&mut self, index: usize, signal: Signal) -> bool {
        let delay = self.ends[index].delay;
        match signal {
            Signal::Closed | Signal::Aborted => {
                self.on_closed(index, signal == Signal::Aborted);
                return false;
            }
            Signal::Connected => self.ends[index].app.begin(self.now + delay),
            Signal::Writable | Signal::Readable => {}
        }
        if !delay.is_zero() {
            self.call_app(index, self.now + delay);
        }
        delay.is_zero()
    }

    #[cold]
    fn on_closed(&mut self, index: usize, aborted: bool) {
        let (one, other) = (index, index ^ 1);
        let was_over = self.ends[one].closed && self.ends[other].closed;
        self.ends[one].closed = true;
        self.ends[one].gone |= aborted;
        // The other side of a reset hears of it by the segment.
        self.ends[other].closed |= aborted && !self.ends[one].gave_up;
        if !was_over && self.ends[other].closed {
            self.open -= 1;
        }
    }

    fn call_app(&mut self, index: usize, at: Instant) {
        let end = &mut self.ends[index];
        if end.app_at.is_none_or(|set| at < set) {
            end.app_at = Some(at);
            self.calendar.push(at, Wake::App(index as u32));
        }
    }

    fn run_app(&mut self, index: usize) {
        let end = &mut self.ends[index];
        end.app_at = end.app_at.filter(|&at| at > self.now);
        self.act(index);
        self.serve(index);
    }

    /// The application reads, writes and closes as it wants; the endpoint is served afterwards.
    fn act(&mut self, index: usize) {
        loop {
            let end = &mut self.ends[index];
            let who = Who { host: HostId(end.host), flow: FlowId((index / 2) as u32) };
            let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
            let read = end.stack.read_up_to(&mut cx, end.app.most(self.now));
            end.read += read;
            end.app.read(self.now, read);
            let offered = end.app.offer(self.now);
            let taken = if offered == 0 { 0 } else { end.stack.write(&mut cx, offered) };
            if taken == 0 {
                break;
            }
            end.app.taken(self.now, taken);
            // Every write calls the stack's output routine, which may make more room.
            self.drain(index);
        }
        let end = &mut self.ends[index];
        let at_end = end.stack.at_end();
        if end.app.done(at_end) {
            if index % 2 == CLIENT && self.scenario.flows[index / 2].close == Close::Reset {
                let who = Who { host: HostId(end.host), flow: FlowId((index / 2) as u32) };
                let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
                if !core::mem::replace(&mut end.gave_up, true) {
                    end.stack.reset(&mut cx);
                }
            } else {
                end.stack.close();
            }
            // Bytes that count have come to their end where their reader has.
            let connection = &mut self.flows[index / 2];
            if index % 2 != connection.sender {
                connection.read_all_at.get_or_insert(self.now);
            }
        }
        let writes_in_vain = end.gone && index % 2 == CLIENT;
        let next = end.app.next_act(self.now).filter(|&at| at > self.now && !writes_in_vain);
        if let Some(at) = next {
            self.call_app(index, at);
        }
    }

    fn run_timer(&mut self, index: usize) {
        let end = &mut self.ends[index];
        end.armed = end.armed.filter(|&at| at > self.now);
        let who = Who { host: HostId(end.host), flow: FlowId((index / 2) as u32) };
        let mut cx = Cx { now: self.now, who, rec: &mut *self.observer };
        // The entry may be an old one: the deadline has moved on since.
        end.stack.handle_timeout(&mut cx);
        self.serve(index);
    }

    // Watching and counting.

    /// Shows a packet to the taps at this place.
    #[inline]
    fn look(&mut self, host: u16, place: TapPlace, outbound: bool, id: PacketId) {
        for (number, tap) in self.scenario.taps.iter().enumerate() {
            if tap.host == usize::from(host) && tap.place == place {
                let segment = self.parcels.segment(id);
                if datagrams::number_of(segment).is_none() {
                    self.observer.tap(self.now, number, outbound, segment);
                }
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let flows = (0..self.flows.len()).map(|flow| self.flow_outcome(flow)).collect();
        let segments = self.ends.iter().map(|end| end.stack.counted().data_packets).sum();
        Outcome { segments, flows, ended: self.now }
    }

    fn flow_outcome(&self, flow: usize) -> FlowOutcome {
        let connection = &self.flows[flow];
        let sending = &self.ends[end_of(flow, connection.sender)];
        let reading = &self.ends[end_of(flow, 1 - connection.sender)];
        let host = &self.scenario.hosts[usize::from(sending.host)];
        let totals = sending.stack.counted();
        let came = reading.stack.counted().received_packet_bytes;
        FlowOutcome {
            name: self.scenario.flows[flow].name.clone(),
            profile: host.quic.as_ref().map_or(host.profile.name, |quic| quic.name),
            cc: host.cc.name(),
            bytes: Bytes(reading.read),
            finished: connection.read_all_at.is_some(),
            duration: connection.read_all_at.unwrap_or(self.now).since(connection.started),
            retransmitted_segments: totals.retransmitted_packets,
            fast_recoveries: totals.recoveries,
            rtos: totals.timeouts,
            spurious_recoveries: totals.spurious,
            max_cwnd: totals.max_cwnd,
            mss: totals.mss,
            min_rtt: totals.min_rtt,
            latency: self.ends[end_of(flow, CLIENT)].app.latency(),
            received_packet_bytes: came,
        }
    }
}

/// Could a flow go on for ever in one instant?
fn stands_still(scenario: &Scenario, flow: &Flow) -> bool {
    let Some(path) = scenario.paths.get(flow.path) else { return false };
    let takes_time = |element: &Element| match element {
        Element::Link { .. } | Element::ManagedLink { .. } => true,
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

fn transport(
    scenario: &Scenario,
    index: usize,
    flow: &Flow,
    side: Side,
    (host, profile): (usize, &SharedProfile),
) -> Transport {
    let peer = if host == flow.from { flow.to } else { flow.from };
    let quic = |host: usize| scenario.hosts[host].quic;
    let (Some(own), Some(peer), Some(client)) = (quic(host), quic(peer), quic(flow.from)) else {
        return Transport::Tcp(Endpoint::new(config(scenario, index, flow, side, (host, profile))));
    };
    Transport::Quic(Box::new(quic::Endpoint::new(quic::Config {
        profile: own,
        peer: peer.parameters(),
        handshake: client.handshake,
        algorithm: scenario.hosts[host].cc,
        side: match side {
            Side::Client => quic::Side::Client,
            Side::Server => quic::Side::Server,
        },
        flow: FlowId(index as u32),
        ip: flow.ip,
    })))
}

/// The profiles of all hosts, equal ones shared: what every connection reads is in the cache.
fn profiles(scenario: &Scenario) -> Vec<SharedProfile> {
    let mut different: Vec<SharedProfile> = Vec::new();
    let mut shared = |host: &Host| {
        // Where many differ, it does not matter that some are there twice.
        let known = different.iter().rev().take(8).find(|known| ***known == host.profile);
        let profile = known.cloned().unwrap_or_else(|| host.profile.clone().into());
        if known.is_none() {
            different.push(profile.clone());
        }
        profile
    };
    scenario.hosts.iter().map(&mut shared).collect()
}

fn config(
    scenario: &Scenario,
    index: usize,
    flow: &Flow,
    side: Side,
    (host, profile): (usize, &SharedProfile),
) -> Config {
    let host = &scenario.hosts[host];
    let draw = |purpose: &str| {
        let owner = format!("flow {index} host {}", host.name);
        Stream::named(scenario.seed, &owner, purpose).next_u32()
    };
    Config {
        profile: profile.clone(),
        algorithm: host.cc,
        side,
        flow: FlowId(index as u32),
        ip: flow.ip,
        isn: SeqNum(host.isn.unwrap_or_else(|| draw("isn"))),
        timestamp: host.timestamp.unwrap_or_else(|| draw("timestamp")),
        clock_phase: host.clock_phase.min(Duration::from_secs(1)),
        tso: host.offload.tso,
        nodelay: flow.nodelay,
        keepalive: flow.keepalive.map(|wanted| {
            let own = host.profile.keepalive;
            Keepalive {
                idle: wanted.idle.unwrap_or(own.idle),
                interval: wanted.interval.unwrap_or(own.interval),
                count: wanted.count.unwrap_or(own.count),
            }
        }),
    }
}
