//! One run of a world: what its flows and its link did over time.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use record::{Event, EventSource, PacketEvent, Recorder, SenderState};
use runner::sharing::Sharing;
use scenario::{Overrides, load};
use serde::{Deserialize, Serialize};
use sim::Observer;
use units::{Duration, Instant};

use crate::SuiteError;
use crate::world::SuiteWorld;

const SECOND: u64 = 1_000_000_000;

/// Counts of one second.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct SecondCounts {
    read: u64,
    sent: u64,
    lost: u64,
}

/// Counts by flow and second.
#[derive(Debug, Default)]
struct CountsBySecond {
    flows: Vec<Vec<SecondCounts>>,
    /// The flow of each packet with data, by its number; `u16::MAX` for others.
    packets: Vec<u16>,
}

/// Times of the packets of one flow from host to host.
#[derive(Debug)]
struct PacketTimes {
    flow: u16,
    /// Packets in flight and when they were sent, in their order.
    sent: VecDeque<(u64, Instant)>,
    times: Vec<Duration>,
}

impl PacketTimes {
    fn received(&mut self, packet: u64, at: Instant) {
        if let Some(place) = self.sent.iter().position(|(sent, _)| *sent == packet) {
            let since = self.sent.remove(place).map(|(_, since)| since);
            self.times.extend(since.map(|since| at.since(since)));
        }
    }
}

impl CountsBySecond {
    fn at(&mut self, flow: usize, at: Instant) -> Option<&mut SecondCounts> {
        let second = (at.as_nanos() / SECOND) as usize;
        let seconds = self.flows.get_mut(flow)?;
        if seconds.len() <= second {
            seconds.resize(second + 1, SecondCounts::default());
        }
        seconds.get_mut(second)
    }
}

/// Watches the run.
struct SuiteObserver {
    sharing: Sharing,
    counts: CountsBySecond,
    times: Option<PacketTimes>,
}

impl Recorder for SuiteObserver {
    const ON: bool = true;
    const PACKETS: bool = true;
    const STATES: bool = false;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.sharing.record(at, who, event, state);
        // Hosts alternate: the sender and the sink of each flow.
        if let Event::AppRead { bytes, .. } = event
            && who.host.0 % 2 == 1
            && let Some(counts) = self.counts.at(who.flow.0 as usize, at)
        {
            counts.read += u64::from(bytes);
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.sharing.record_packet(at, movement);
        match movement {
            PacketEvent::Sent { flow, packet, len, .. } => {
                let number = packet.0 as usize;
                if self.counts.packets.len() <= number {
                    self.counts.packets.resize(number + 1, u16::MAX);
                }
                if len > 0 {
                    self.counts.packets[number] = flow.0 as u16;
                    if let Some(times) = self.times.as_mut().filter(|of| of.flow == flow.0 as u16) {
                        times.sent.push_back((packet.0, at));
                    }
                    if let Some(counts) = self.counts.at(flow.0 as usize, at) {
                        counts.sent += 1;
                    }
                }
            }
            PacketEvent::Dropped { packet, .. } => {
                let flow = self.counts.packets.get(packet.0 as usize).copied();
                if let Some(flow) = flow.filter(|&flow| flow != u16::MAX)
                    && let Some(counts) = self.counts.at(usize::from(flow), at)
                {
                    counts.lost += 1;
                }
            }
            PacketEvent::Received { packet, .. } => {
                if let Some(times) = &mut self.times {
                    times.received(packet.0, at);
                }
            }
            _ => {}
        }
    }
}

impl Observer for SuiteObserver {}

/// What a run showed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RunMeasures {
    /// By flow and whole second.
    seconds: Vec<Vec<SecondCounts>>,
    /// Time from its start to its last byte read, of each flow that finished.
    pub(crate) completion: Vec<Option<Duration>>,
    /// Timeouts of all flows.
    pub(crate) timeouts: u64,
    /// Times of the packets of the timed flow from host to host, ascending.
    times: Vec<Duration>,
    /// The 95th percentile of the queue delay at the shared link, in seconds; `None` without packets.
    delay_p95_s: Option<f64>,
    rate: u64,
    duration: Duration,
}

impl RunMeasures {
    /// Runs a world.
    pub(crate) fn of(world: &SuiteWorld, stop: &AtomicBool) -> Result<Self, SuiteError> {
        let overrides = Overrides { controllers: world.controllers(), ..Overrides::default() };
        let loaded = load(&world.text(), &world.name, &overrides).map_err(|errors| {
            SuiteError::World(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        })?;
        let mut observer = SuiteObserver {
            sharing: Sharing::new(&loaded.scenario),
            counts: CountsBySecond {
                flows: vec![Vec::new(); world.flows.len()],
                packets: Vec::new(),
            },
            times: world.timed.map(|flow| PacketTimes {
                flow: flow as u16,
                sent: VecDeque::new(),
                times: Vec::new(),
            }),
        };
        let outcome = runner::stop::run_shared(&loaded.scenario, &mut observer, stop)
            .map_err(|error| SuiteError::Run(world.name.clone(), error.to_string()))?;
        let links = observer.sharing.report(&loaded.scenario, &outcome).links;
        // The link of the flows under test, not that of the other direction.
        let line = links.into_iter().find(|link| !link.link.contains("back"));
        let completion =
            outcome.flows.iter().map(|flow| flow.finished.then_some(flow.duration)).collect();
        let mut times = observer.times.map_or_else(Vec::new, |times| times.times);
        times.sort_unstable();
        Ok(Self {
            times,
            seconds: observer.counts.flows,
            completion,
            timeouts: outcome.flows.iter().map(|flow| flow.rtos).sum(),
            delay_p95_s: line.and_then(|line| line.delay_p95_s),
            rate: world.rate,
            duration: world.duration,
        })
    }

    fn sum(&self, flow: usize, from: u64, until: u64, of: fn(&SecondCounts) -> u64) -> u64 {
        let seconds = self.seconds.get(flow).map_or(&[][..], Vec::as_slice);
        let range = from as usize..(until as usize).min(seconds.len());
        seconds.get(range).map_or(0, |seconds| seconds.iter().map(of).sum())
    }

    /// Whole seconds of the run.
    pub(crate) fn end(&self) -> u64 {
        self.duration.as_nanos() / SECOND
    }

    /// Goodput of a flow from that second to the end, in Mbit/s.
    pub(crate) fn goodput(&self, flow: usize, from: u64) -> f64 {
        self.goodput_in(flow, from..self.end())
    }

    /// Goodput of a flow in these seconds, in Mbit/s.
    pub(crate) fn goodput_in(&self, flow: usize, seconds: core::ops::Range<u64>) -> f64 {
        let length = seconds.end.saturating_sub(seconds.start).max(1) as f64;
        let bytes = self.sum(flow, seconds.start, seconds.end, |counts| counts.read);
        bytes as f64 * 8.0 / 1e6 / length
    }

    /// Goodput of all flows from that second on, in percent of the link's rate.
    pub(crate) fn utilisation(&self, from: u64) -> f64 {
        let goodput: f64 = (0..self.seconds.len()).map(|flow| self.goodput(flow, from)).sum();
        100.0 * goodput * 1e6 / self.rate as f64
    }

    /// Data packets lost, in percent of those sent, from that second on; `None` if none was sent.
    pub(crate) fn loss(&self, from: u64) -> Option<f64> {
        let sent = self.all(from, |counts| counts.sent);
        let lost = self.all(from, |counts| counts.lost);
        (sent > 0).then(|| 100.0 * lost as f64 / sent as f64)
    }

    /// Bytes that the readers got, in percent of the payload that full packets of 1500 bytes sent
    /// could have carried, from that second on; `None` if none was sent.
    pub(crate) fn useful(&self, from: u64) -> Option<f64> {
        let sent = self.all(from, |counts| counts.sent);
        let read = self.all(from, |counts| counts.read);
        (sent > 0).then(|| 100.0 * read as f64 / (sent * 1_448) as f64)
    }

    /// A count of all flows from that second on.
    fn all(&self, from: u64, of: fn(&SecondCounts) -> u64) -> u64 {
        (0..self.seconds.len()).map(|flow| self.sum(flow, from, self.end(), of)).sum()
    }

    /// Data packets sent in these seconds.
    pub(crate) fn sent(&self, from: u64, until: u64) -> u64 {
        (0..self.seconds.len()).map(|flow| self.sum(flow, from, until, |counts| counts.sent)).sum()
    }

    /// The smallest goodput of a flow over any ten seconds from that second on, in percent of the
    /// fair share.
    pub(crate) fn least_share(&self, flow: usize, from: u64) -> f64 {
        let fair = self.rate as f64 / self.seconds.len() as f64;
        let last = self.end().saturating_sub(10).max(from);
        let share = |at| self.sum(flow, at, at + 10, |counts| counts.read) as f64 * 0.8 / fair;
        (from..=last).map(share).fold(f64::INFINITY, f64::min) * 100.0
    }

    /// The 95th percentile of the queue delay, in milliseconds; `None` without packets.
    pub(crate) fn delay_p95(&self) -> Option<f64> {
        self.delay_p95_s.map(|seconds| seconds * 1e3)
    }

    /// The 99th percentile of the one-way delay of the timed flow's packets above that of the
    /// fastest, in milliseconds; `None` if none arrived.
    pub(crate) fn added_delay_p99(&self) -> Option<f64> {
        let fastest = self.times.first()?.as_secs_f64();
        let last = self.times.len() - 1;
        let slow = self.times.get(last * 99 / 100)?.as_secs_f64();
        Some((slow - fastest) * 1e3)
    }

    /// Mean completion time of these flows, in milliseconds; those that did not finish count as
    /// the whole run.
    pub(crate) fn mean_completion(&self, flows: core::ops::Range<usize>) -> f64 {
        let count = flows.len().max(1) as f64;
        let of = |flow| {
            let time = self.completion.get(flow).copied().flatten();
            time.unwrap_or(self.duration).as_secs_f64() * 1e3
        };
        flows.map(of).sum::<f64>() / count
    }
}
