//! The loop: take the next entry of the calendar, let it happen, note what follows.

pub(crate) mod outside;
mod packets;
mod parcels;
mod service;
mod setup;

use machine::{Endpoint as _, PacketId};
use packet::Dir;
use record::Event;
use tcp::Side;
use tcp::profile::{Family, SharedProfile};
use units::{Bytes, Duration, FlowId, Instant, Stream};

use outside::Leaving;
use packets::{Network, cx};
use setup::{profiles, stands_still, transport};

use crate::app::Application;
use crate::card::Card;
use crate::datagrams::number_of;
use crate::observer::Observer;
use crate::outcome::{FlowOutcome, Outcome};
use crate::road;
use crate::scenario::{App, Flow, Host, Scenario, TapPlace};
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
    /// Host number `host` has a controller that its stack cannot serve: BBR without Linux's TCP.
    Controller {
        /// Index of the host.
        host: usize,
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
    flow: FlowId,
    host: u16,
    /// The host's delay.
    delay: Duration,
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
    network: Network<'a, O>,
    /// Client and server of the first flow, then of the second, and so on.
    ends: Vec<End>,
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
/// [`SetupError`] if the scenario refers to what is not there.
pub fn run<O: Observer>(scenario: &Scenario, observer: &mut O) -> Result<Outcome, SetupError> {
    let mut world = World::new(scenario, &[], observer)?;
    let end = Instant::ZERO + scenario.duration;
    while world.open > 0 {
        // Without an entry nothing will ever happen: the rest of the time passes.
        let Some(&(at, wake)) = world.network.calendar.due_until(end) else {
            world.network.now = end;
            break;
        };
        world.network.calendar.take(at);
        world.network.now = at;
        world.count_turn();
        world.happen(wake);
    }
    Ok(world.outcome())
}

impl<'a, O: Observer> World<'a, O> {
    /// A world before its first moment; the stacks of the hosts in `outside` are not of this program.
    pub(crate) fn new(
        scenario: &'a Scenario,
        outside: &[usize],
        observer: &'a mut O,
    ) -> Result<Self, SetupError> {
        let hosts = scenario.hosts.len();
        let stations_and_roads = road::build(scenario)?;
        if let Some(tap) = scenario.taps.iter().position(|tap| tap.host >= hosts) {
            return Err(SetupError::Tap { tap });
        }
        let serves = |host: &Host| {
            host.cc != cc::Algorithm::Bbr
                || (host.quic.is_none() && host.profile.family == Family::Linux)
        };
        if let Some(host) = scenario.hosts.iter().position(|host| !serves(host)) {
            return Err(SetupError::Controller { host });
        }
        let cards = scenario.hosts.iter().map(|host| {
            let luck = Stream::named(scenario.seed, &format!("host {}", host.name), "rss hash");
            Card::new(&host.offload, host.delay, luck)
        });
        let cards = cards.collect();
        let mut world = Self {
            scenario,
            network: Network::new(observer, &scenario.taps, stations_and_roads, cards),
            ends: Vec::with_capacity(2 * scenario.flows.len()),
            flows: Vec::with_capacity(scenario.flows.len()),
            open: scenario.flows.len(),
            turns: 0,
            outside: Vec::new(),
        };
        let profiles = profiles(scenario);
        for (index, flow) in scenario.flows.iter().enumerate() {
            let ends = (flow.from, flow.to);
            let [forward, reverse] = world.network.roads.of_path(flow.path).unwrap_or_default();
            let (out, back) = match scenario.paths.get(flow.path) {
                Some(path) if (path.from, path.to) == ends => (forward, reverse),
                Some(path) if (path.to, path.from) == ends => (reverse, forward),
                _ => return Err(SetupError::Route { flow: index }),
            };
            let [from, to] = [flow.from, flow.to].map(|host| scenario.hosts[host].quic.is_some());
            if from != to {
                return Err(SetupError::Transport { flow: index });
            }
            let real = outside.contains(&flow.from) || outside.contains(&flow.to);
            if !real && stands_still(scenario, flow) {
                return Err(SetupError::Endless { flow: index });
            }
            world.add_flow(index, flow, [out, back], &profiles);
        }
        for end in &mut world.ends {
            if outside.contains(&usize::from(end.host)) {
                end.stack = Transport::Outside;
                // Its own end is nobody's business here: a flow is over once ours is.
                end.closed = true;
            }
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
            flow: FlowId(index as u32),
            host: host as u16,
            delay: self.scenario.hosts[host].delay,
            road,
            armed: None,
            app_at: None,
            closed: false,
            gone: false,
            gave_up: false,
        };
        let seed = self.scenario.seed;
        let draws = || Stream::named(seed, &format!("flow {}", flow.name), "pause");
        let client = Application::client(&flow.app, draws);
        let server = Application::server(&flow.app, flow.reads);
        self.ends.push(end(Side::Client, flow.from, out, client));
        self.ends.push(end(Side::Server, flow.to, back, server));
        self.flows.push(Connection {
            sender: if matches!(flow.app, App::Requests { .. }) { SERVER } else { CLIENT },
            started,
            read_all_at: None,
        });
        self.network.calendar.push(started, Wake::Start(index as u32));
    }

    #[inline]
    fn count_turn(&mut self) {
        self.network.count_turn(&mut self.turns);
    }

    // What the calendar asks for.

    #[inline(always)]
    fn happen(&mut self, wake: Wake) {
        match wake {
            Wake::Station(station) => self.run_station(station),
            other => self.happen_otherwise(other),
        }
    }

    /// What is seldom.
    #[inline(never)]
    fn happen_otherwise(&mut self, wake: Wake) {
        match wake {
            Wake::Start(flow) => self.open(flow),
            Wake::Station(_) => {}
            Wake::Card(card) => self.run_card(card),
            Wake::Timer(index) => self.run_timer(index as usize),
            Wake::App(index) => self.run_app(index as usize),
        }
    }

    fn open(&mut self, flow: u32) {
        let index = end_of(flow as usize, CLIENT);
        let end = &mut self.ends[index];
        end.stack.open(&mut self.network.cx(end.host, end.flow));
        self.serve(index);
    }

    #[inline(always)]
    fn run_station(&mut self, index: u32) {
        let now = self.network.now;
        let mut station = &mut self.network.stations[index as usize];
        if !station.is_due(now) {
            return;
        }
        if !station.is_simple() {
            return self.run_other_station(index);
        }
        while let Some((id, next)) = station.leave(now) {
            self.network.note_left(index, id);
            if let Some(host) = self.network.carry(id) {
                self.arrive(host, id);
            }
            if self.network.has_copies() {
                self.send_copies();
            }
            let Some(at) = next else { return };
            if at > now {
                return self.network.calendar.push(at, Wake::Station(index));
            }
            station = &mut self.network.stations[index as usize];
        }
    }

    /// The same where the element may do anything, or what leaves it may bring about that more comes.
    #[inline(never)]
    fn run_other_station(&mut self, index: u32) {
        while let Some(id) = self.network.leaving(index) {
            if let Some(host) = self.network.carry(id) {
                self.arrive(host, id);
            }
            self.send_copies();
            if !self.network.more_leave(index) {
                return;
            }
        }
        self.network.arm_station(index);
    }

    /// Copies go on behind what they were made of.
    #[inline(never)]
    fn send_copies(&mut self) {
        while let Some(copy) = self.network.next_copy() {
            if let Some(host) = self.network.carry(copy) {
                self.arrive(host, copy);
            }
        }
    }

    fn run_card(&mut self, host: u16) {
        let up = self.network.interrupt(host);
        for &segment in &up {
            let id = self.network.parcels.put(segment);
            self.deliver(host, id);
        }
        self.network.cards[usize::from(host)].give_back(up);
    }

    fn run_timer(&mut self, index: usize) {
        let end = &mut self.ends[index];
        end.armed = end.armed.filter(|&at| at > self.network.now);
        // The entry may be an old one: the deadline has moved on since.
        end.stack.handle_timeout(&mut self.network.cx(end.host, end.flow));
        self.serve(index);
    }

    fn run_app(&mut self, index: usize) {
        let end = &mut self.ends[index];
        end.app_at = end.app_at.filter(|&at| at > self.network.now);
        self.act(index);
        self.serve(index);
    }

    // What packets do to an end.

    /// A packet has come to a host.
    #[inline(always)]
    fn arrive(&mut self, host: u16, id: PacketId) {
        if self.network.goes_up_unseen(host) {
            self.take_up(host, id);
        } else {
            self.arrive_seen(host, id);
        }
    }

    /// The same where somebody may look, or the card has to do with it.
    #[inline(never)]
    fn arrive_seen(&mut self, host: u16, id: PacketId) {
        self.network.look(host, TapPlace::Wire, false, id);
        if self.network.goes_up_at_once(host) {
            self.deliver(host, id);
        } else {
            self.network.wait_in_card(host, id);
        }
    }

    /// A segment, perhaps merged, reaches the stack.
    fn deliver(&mut self, host: u16, id: PacketId) {
        self.network.look(host, TapPlace::Stack, false, id);
        self.take_up(host, id);
    }

    #[inline(never)]
    fn take_up(&mut self, host: u16, id: PacketId) {
        let segment = self.network.parcels.segment(id);
        let side = if segment.dir == Dir::Forward { SERVER } else { CLIENT };
        let index = end_of(segment.flow.0 as usize, side);
        let number = number_of(segment);
        match (&mut self.ends[index].stack, number) {
            (Transport::Tcp(tcp), None) => {
                let Network { parcels, observer, now, .. } = &mut self.network;
                let segment = parcels.segment(id);
                let mut cx = cx(&mut **observer, *now, host, segment.flow);
                if segment.merged() {
                    let packets = segment.packets().max(u32::from(segment.nsegs)) as u16;
                    cx.emit(|| Event::Merged { packets, bytes: segment.payload });
                }
                tcp.handle_segment(&mut cx, segment);
                parcels.release(id);
            }
            // A flow that joins TCP and QUIC is refused.
            (_, number) => self.deliver_other(index, id, number),
        }
        self.serve_now(index);
    }

    /// The same for QUIC, and for a stack outside.
    #[inline(never)]
    fn deliver_other(&mut self, index: usize, id: PacketId, number: Option<u32>) {
        let end = &mut self.ends[index];
        if matches!(end.stack, Transport::Outside) {
            let segment = *self.network.parcels.segment(id);
            self.outside.push(Leaving {
                at: self.network.now,
                host: usize::from(end.host),
                segment,
            });
        }
        if let (Transport::Quic(quic), Some(number)) = (&mut end.stack, number) {
            let Network { datagrams, observer, now, .. } = &mut self.network;
            let mut cx = cx(&mut **observer, *now, end.host, end.flow);
            quic.handle_segment(&mut cx, datagrams.get(number));
        }
        self.network.forget(id);
    }

    // Counting.

    pub(crate) fn outcome(&self) -> Outcome {
        let flows = (0..self.flows.len()).map(|flow| self.flow_outcome(flow)).collect();
        let segments = self.ends.iter().map(|end| end.stack.counted().data_packets).sum();
        Outcome { segments, flows, ended: self.network.now }
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
            duration: connection.read_all_at.unwrap_or(self.network.now).since(connection.started),
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
