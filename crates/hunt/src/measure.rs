//! A run of a world and the figure of the goal.

use std::sync::atomic::AtomicBool;

use record::{Event, EventSource, NullRecorder, PacketEvent, Recorder, SenderState};
use runner::sharing::Sharing;
use scenario::load;
use sim::scenario::ElementSpec;
use sim::{Observer, RunOutcome, Scenario};
use suite::SuiteSender;
use units::Instant;

use crate::HuntError;
use crate::goal::HuntGoal;
use crate::ideal::ideal_time;
use crate::scenario_text::DURATION;
use crate::space::{PARTS, PAUSE, Part, PartPosition, RATE, RATIO, RTT, TRANSFER};
use crate::world::HuntWorld;

/// The second half of the run, in nanoseconds.
const HALF: u64 = DURATION * 1_000_000_000 / 2;

/// With fewer data packets, a loss rate says nothing.
const LEAST_PACKETS: u64 = 200;

/// What the second half of a run shows.
struct SecondHalf {
    /// For the queue delay.
    sharing: Option<Sharing>,
    /// Whether an element is a queue or a limit of the rate, by its index.
    congested: Vec<bool>,
    /// Whether a packet has data, by its number.
    data: Vec<bool>,
    receiver: u16,
    read: Vec<u64>,
    sent: u64,
    lost: u64,
}

impl SecondHalf {
    fn new(scenario: &Scenario, goal: HuntGoal) -> Self {
        let congests = |element: &ElementSpec| {
            matches!(
                element,
                ElementSpec::Link { .. }
                    | ElementSpec::LinkWithQdisc { .. }
                    | ElementSpec::Policer { .. }
                    | ElementSpec::Shaper { .. }
            )
        };
        let mut congested = Vec::new();
        for path in &scenario.paths {
            for (forward, route) in [(true, &path.forward), (false, &path.reverse)] {
                let own = route.iter().filter(|one| !matches!(one, ElementSpec::Shared(_)));
                congested.extend(own.map(|element| forward && congests(element)));
            }
        }
        congested.extend(scenario.shared.iter().map(|shared| congests(&shared.element)));
        Self {
            sharing: (goal == HuntGoal::Delay).then(|| Sharing::new(scenario)),
            congested,
            data: Vec::new(),
            receiver: scenario.flows.first().map_or(0, |flow| flow.to as u16),
            read: vec![0; scenario.flows.len()],
            sent: 0,
            lost: 0,
        }
    }
}

impl Recorder for SecondHalf {
    const ON: bool = true;
    const PACKETS: bool = true;
    const STATES: bool = false;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if let Some(sharing) = &mut self.sharing {
            sharing.record(at, who, event, state);
        }
        if let Event::AppRead { bytes, .. } = event
            && at.as_nanos() >= HALF
            && who.host.0 == self.receiver
            && let Some(read) = self.read.get_mut(who.flow.0 as usize)
        {
            *read += u64::from(bytes);
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        if let Some(sharing) = &mut self.sharing {
            sharing.record_packet(at, movement);
        }
        match movement {
            PacketEvent::Sent { packet, len, .. } => {
                let number = packet.0 as usize;
                if self.data.len() <= number {
                    self.data.resize(number + 1, false);
                }
                self.data[number] = len > 0;
                self.sent += u64::from(len > 0 && at.as_nanos() >= HALF);
            }
            PacketEvent::Dropped { hop_index, packet } => {
                let here = self.congested.get(hop_index.0 as usize) == Some(&true);
                let data = self.data.get(packet.0 as usize) == Some(&true);
                self.lost += u64::from(here && data && at.as_nanos() >= HALF);
            }
            _ => {}
        }
    }
}

impl Observer for SecondHalf {}

/// What a run of a world shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorldFigure {
    /// The figure of the goal.
    pub value: f64,
    /// Data packets retransmitted by all flows.
    pub retransmitted: u64,
}

/// The figure of a world.
///
/// # Errors
/// The world cannot be read or run.
pub(crate) fn figure(
    world: &HuntWorld,
    sender: &SuiteSender,
    goal: HuntGoal,
    stop: &AtomicBool,
) -> Result<WorldFigure, HuntError> {
    let text = world.text(sender);
    let loaded = load(&text, "world", &sender.overrides()).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        HuntError::World(format!("{}\n{text}", errors.join("\n")))
    })?;
    let scenario = &loaded.scenario;
    let error = |error: sim::RunError| HuntError::World(format!("{error}\n{text}"));
    if goal == HuntGoal::Utilisation {
        let outcome = runner::stop::run_shared(scenario, &mut NullRecorder, stop).map_err(error)?;
        return Ok(WorldFigure {
            value: utilisation(world, &outcome),
            retransmitted: retransmitted(&outcome),
        });
    }
    let mut half = SecondHalf::new(scenario, goal);
    let outcome = runner::stop::run_shared(scenario, &mut half, stop).map_err(error)?;
    let value = match goal {
        HuntGoal::Starvation => {
            let total: u64 = half.read.iter().sum();
            let least = half.read.iter().copied().min().unwrap_or(0);
            if total == 0 {
                100.0
            } else {
                100.0 * (least * half.read.len() as u64) as f64 / total as f64
            }
        }
        HuntGoal::Loss if half.sent < LEAST_PACKETS => 0.0,
        HuntGoal::Loss => 100.0 * half.lost as f64 / half.sent as f64,
        HuntGoal::Delay | HuntGoal::Utilisation => {
            let report = half.sharing.map(|sharing| sharing.report(scenario, &outcome));
            let links = report.map_or_else(Vec::new, |report| report.links);
            let bottleneck = links.iter().find(|link| !link.link.contains("return"));
            let seconds = bottleneck.and_then(|link| link.delay_p95_s).unwrap_or(0.0);
            seconds * 1e3 / world.number(RTT)
        }
    };
    Ok(WorldFigure { value, retransmitted: retransmitted(&outcome) })
}

fn retransmitted(outcome: &RunOutcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.retransmitted_segments).sum()
}

/// Bytes a second that the bottleneck can carry, on average over the run.
fn capacity(world: &HuntWorld) -> f64 {
    let rate = world.number(RATE) * 1e6 / 8.0;
    let mut share = 1.0_f64;
    for (part, &level) in PARTS.iter().zip(&world.parts) {
        let of = match (part.position, part.name, level) {
            (PartPosition::Bottleneck, "policer", 1 | 2)
            | (PartPosition::Bottleneck, "shaper", 1) => 0.5,
            (PartPosition::Bottleneck, _, 1..) => 0.2,
            // Five seconds at one rate, fifteen at the other; or one second of two.
            (PartPosition::Rate, _, 1) => 0.25 + 0.75 / 2.0,
            (PartPosition::Rate, _, 2) => 0.25 + 0.75 / 5.0,
            (PartPosition::Rate, _, 3) => 0.25 / 5.0,
            (PartPosition::Rate, _, 4) => 0.5 + 0.5 / 5.0,
            _ => continue,
        };
        share = share.min(of);
    }
    // 40 bytes of headers and the timestamps of TCP in each packet.
    rate * share * 1448.0 / 1500.0
}

/// Seconds of a round trip without queue, with what its parts hold.
fn round_trip(world: &HuntWorld) -> f64 {
    let held = PARTS
        .iter()
        .zip(&world.parts)
        .filter_map(|(part, &level)| part.holds.get(level.checked_sub(1)?).copied());
    (world.number(RTT) + held.sum::<f64>()) / 1e3
}

/// Seconds of outages until `ended`.
fn outage(world: &HuntWorld, ended: f64) -> f64 {
    let of = |(part, &level): (&Part, &usize)| match (part.name, level) {
        ("outage" | "held-packets", 1) => (ended - 3.0).clamp(0.0, 0.3),
        ("outage" | "held-packets", 2) => (ended - 3.0).clamp(0.0, 2.0),
        ("outage" | "held-packets", 3) => (ended / 2.0).floor() * 0.1,
        _ => 0.0,
    };
    PARTS.iter().zip(&world.parts).map(of).sum()
}

/// The time that ideal senders need for the bytes read, in percent of the time taken.
fn utilisation(world: &HuntWorld, outcome: &RunOutcome) -> f64 {
    let (capacity, rtt) = (capacity(world), round_trip(world));
    let count = world.flows() as f64;
    let total: f64 = outcome.flows.iter().map(|flow| flow.bytes.get() as f64).sum();
    let last = outcome
        .flows
        .iter()
        .enumerate()
        .map(|(at, flow)| world.start(at) + flow.duration.as_secs_f64());
    let ended = last.fold(0.0, f64::max);
    let taken = (ended - outage(world, ended)).max(rtt);
    // All together, the capacity limits them; each alone needs its own time.
    let own = |at: usize| if at == 0 { rtt * world.number(RATIO) } else { rtt };
    let mut ideal = ideal_time(total, count, capacity, rtt);
    for (at, flow) in outcome.flows.iter().enumerate() {
        let alone = ideal_time(flow.bytes.get() as f64, 1.0, capacity, own(at));
        ideal = ideal.max(world.start(at) + alone);
    }
    if world.number(PAUSE) > 0.0 && world.number(TRANSFER) > 0.0 {
        let burst = world.number(TRANSFER) * 1e6;
        let pause = world.number(PAUSE) / 1e3;
        for (at, flow) in outcome.flows.iter().enumerate() {
            let bursts = (flow.bytes.get() as f64 / burst).floor();
            let alone = world.start(at)
                + bursts * (ideal_time(burst, 1.0, capacity, own(at)) + pause)
                + ideal_time(flow.bytes.get() as f64 - bursts * burst, 1.0, capacity, own(at));
            ideal = ideal.max(alone);
        }
    }
    (100.0 * ideal / taken).min(100.0)
}
