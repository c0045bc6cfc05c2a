//! Groups of connections as one flow each: sums, completion times and slowdowns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use sim::scenario::{App, ElementSpec, FlowGroup, FlowSpec, LinkCapacity, PathSpec, Scenario};
use sim::{DatagramOutcome, FlowOutcome, GroupOutcome, RunOutcome};
use units::{Bytes, Duration};

/// The connections of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Connections that began within the run.
    pub flows: u64,
    /// Connections that finished.
    pub finished: u64,
    /// Completion times of those that finished, from the first SYN to the last byte read.
    pub completion_p50_s: Option<f64>,
    /// 95th percentile.
    pub completion_p95_s: Option<f64>,
    /// 99th percentile.
    pub completion_p99_s: Option<f64>,
    /// The longest.
    pub completion_max_s: Option<f64>,
    /// Slowdowns: completion times over those of an empty path, on which the first data follows a
    /// round trip after the SYN and the whole transfer at the rate of the slowest link.
    pub slowdown_p50: Option<f64>,
    /// 95th percentile.
    pub slowdown_p95: Option<f64>,
    /// 99th percentile.
    pub slowdown_p99: Option<f64>,
}

impl From<&GroupOutcome> for GroupReport {
    fn from(group: &GroupOutcome) -> Self {
        let time = |part: usize| group.completion.get(part).map(|time| time.as_secs_f64());
        let slowdown = |part: usize| group.slowdown.get(part).copied();
        Self {
            flows: group.flows,
            finished: group.finished,
            completion_p50_s: time(0),
            completion_p95_s: time(1),
            completion_p99_s: time(2),
            completion_max_s: time(3),
            slowdown_p50: slowdown(0),
            slowdown_p95: slowdown(1),
            slowdown_p99: slowdown(2),
        }
    }
}

/// The scenario and the outcome with each group as one flow; unchanged without groups.
pub fn grouped<'a>(
    scenario: &'a Scenario,
    outcome: &'a RunOutcome,
) -> (Cow<'a, Scenario>, Cow<'a, RunOutcome>) {
    if scenario.groups.is_empty() || scenario.flows.len() != outcome.flows.len() {
        return (Cow::Borrowed(scenario), Cow::Borrowed(outcome));
    }
    let mut flows = Vec::new();
    let mut outcomes = Vec::new();
    let mut groups: Vec<FlowGroup> = Vec::new();
    for (connections, group) in rows(scenario) {
        let Some(group) = group else {
            flows.push(scenario.flows[connections.start].clone());
            outcomes.push(outcome.flows[connections.start].clone());
            continue;
        };
        let Some(template) = scenario.flows.get(connections.start) else { continue };
        groups.push(FlowGroup { flows: flows.len()..flows.len() + 1, ..group.clone() });
        let (name, start) = (group.name.clone(), group.start);
        flows.push(FlowSpec { name, start, ..template.clone() });
        let index = groups.len() - 1;
        outcomes.push(summary(scenario, outcome, group, index));
    }
    let scenario = Scenario {
        title: scenario.title.clone(),
        seed: scenario.seed,
        duration: scenario.duration,
        hosts: scenario.hosts.clone(),
        paths: scenario.paths.clone(),
        shared: scenario.shared.clone(),
        flows,
        groups,
        taps: scenario.taps.clone(),
    };
    let outcome = RunOutcome {
        flows: outcomes,
        group_latencies: outcome.group_latencies.clone(),
        segments: outcome.segments,
        ended: outcome.ended,
    };
    (Cow::Owned(scenario), Cow::Owned(outcome))
}

/// The flows of each row of results: a single flow, or those of a group.
pub fn rows(
    scenario: &Scenario,
) -> impl Iterator<Item = (core::ops::Range<usize>, Option<&FlowGroup>)> {
    let mut next = 0;
    let mut groups = scenario.groups.iter().peekable();
    core::iter::from_fn(move || {
        if next >= scenario.flows.len() {
            return None;
        }
        let group = groups.next_if(|group| group.flows.start == next);
        let range = group.map_or(next..next + 1, |group| group.flows.clone());
        next = range.end.max(next + 1);
        Some((range, group))
    })
}

/// The connections of a group as one; `index` is the number of the group.
fn summary(
    scenario: &Scenario,
    outcome: &RunOutcome,
    group: &FlowGroup,
    index: usize,
) -> FlowOutcome {
    let ended = Duration::from_nanos(outcome.ended.as_nanos());
    let specs = &scenario.flows[group.flows.clone()];
    let all = &outcome.flows[group.flows.clone()];
    let begun = || specs.iter().zip(all).filter(|(spec, _)| spec.start <= ended);
    let mut completion: Vec<Duration> = Vec::new();
    let mut slowdown: Vec<f64> = Vec::new();
    let ideal = specs.first().map(|spec| IdealPath::of(scenario, spec));
    // The connections of a page end with it; videos end when they are watched.
    let is_transfer = |spec: &FlowSpec| !matches!(spec.app, App::Page { .. } | App::Video(_));
    let finished = begun().filter(|(_, flow)| flow.finished).count() as u64;
    for (_, flow) in begun().filter(|(spec, flow)| flow.finished && is_transfer(spec)) {
        completion.push(flow.duration);
        let best = ideal.as_ref().map_or(Duration::ZERO, |ideal| ideal.completion(flow.bytes));
        if !best.is_zero() {
            slowdown.push(flow.duration.as_secs_f64() / best.as_secs_f64());
        }
    }
    completion.sort_unstable();
    slowdown.sort_unstable_by(f64::total_cmp);
    let first = begun().map(|(spec, _)| spec.start).min().unwrap_or(group.start);
    let last = begun().map(|(spec, flow)| spec.start + flow.duration).max().unwrap_or(first);
    let sum = |of: fn(&FlowOutcome) -> u64| all.iter().map(of).sum::<u64>();
    let begun_count = begun().count() as u64;
    let videos = all.iter().filter_map(|flow| flow.video.as_deref());
    let video = videos.cloned().reduce(|mut all, one| {
        all.add(&one);
        all
    });
    let counts = all.iter().filter_map(|flow| flow.datagrams).reduce(|all, one| DatagramOutcome {
        sent: all.sent + one.sent,
        received: all.received + one.received,
    });
    let sender = all.first();
    FlowOutcome {
        name: group.name.clone(),
        profile: sender.map_or("", |flow| flow.profile),
        cc: sender.map_or("".into(), |flow| flow.cc.clone()),
        bytes: Bytes(sum(|flow| flow.bytes.get())),
        finished: finished == all.len() as u64,
        duration: last.saturating_sub(first),
        retransmitted_segments: sum(|flow| flow.retransmitted_segments),
        fast_recoveries: sum(|flow| flow.fast_recoveries),
        rtos: sum(|flow| flow.rtos),
        spurious_recoveries: sum(|flow| flow.spurious_recoveries),
        max_cwnd: all.iter().map(|flow| flow.max_cwnd).max().unwrap_or(Bytes::ZERO),
        mss: sender.map_or(Bytes::ZERO, |flow| flow.mss),
        min_rtt: all.iter().filter_map(|flow| flow.min_rtt).min(),
        received_packet_bytes: None,
        latency: outcome.group_latencies.get(index).copied().flatten(),
        video: video.map(Box::new),
        datagrams: counts,
        group: Some(Box::new(GroupOutcome {
            flows: begun_count,
            finished,
            completion: quantiles(&completion),
            slowdown: quantiles(&slowdown),
        })),
    }
}

/// Median, 95th and 99th percentile and maximum of sorted values; nothing without values.
fn quantiles<T: Copy>(sorted: &[T]) -> Vec<T> {
    let of = |percent: usize| (sorted.len() * percent).div_ceil(100).checked_sub(1);
    let places = [50, 95, 99, 100].map(of);
    places.into_iter().filter_map(|place| sorted.get(place?).copied()).collect()
}

/// A path without other traffic.
struct IdealPath {
    forward: Duration,
    round_trip: Duration,
    /// Bits per second of the slowest link; `None` without a link.
    rate: Option<u64>,
    /// Headers per full segment, and its payload.
    header: u64,
    payload: u64,
}

impl IdealPath {
    fn of(scenario: &Scenario, flow: &FlowSpec) -> Self {
        let path: &PathSpec = &scenario.paths[flow.path];
        let turned = path.from != flow.from;
        let (out, back) =
            if turned { (&path.reverse, &path.forward) } else { (&path.forward, &path.reverse) };
        let element = |element: &ElementSpec| match element {
            ElementSpec::Shared(index) => scenario.shared[*index].element.clone(),
            own => own.clone(),
        };
        let delay = |route: &[ElementSpec]| {
            route.iter().map(element).fold(Duration::ZERO, |sum, element| match element {
                ElementSpec::Delay(delay) => sum + delay,
                ElementSpec::Netem(params) if params.reorder.is_none() => {
                    sum + params.shortest_delay()
                }
                ElementSpec::ChangingDelay(delays) => {
                    sum + delays.steps().iter().map(|(_, delay)| *delay).min().unwrap_or_default()
                }
                _ => sum,
            })
        };
        let rate = |element: ElementSpec| match element {
            ElementSpec::Link { rate, .. } | ElementSpec::Shaper { rate, .. } => {
                Some(rate.bits_per_second())
            }
            ElementSpec::Netem(params) => params.rate.map(|rate| rate.rate.bits_per_second()),
            ElementSpec::LinkWithQdisc { capacity: LinkCapacity::Rate(rate), .. } => {
                Some(rate.bits_per_second())
            }
            ElementSpec::LinkWithQdisc { capacity: LinkCapacity::Changing(rates), .. } => {
                rates.steps().iter().map(|(_, rate)| *rate).max()
            }
            _ => None,
        };
        let forward = delay(out);
        let header = match flow.ip {
            packet::IpVersion::V4 => 40,
            packet::IpVersion::V6 => 60,
        };
        let mtu = u64::from(scenario.hosts[flow.from].stack.mtu());
        Self {
            forward,
            round_trip: forward + delay(back),
            rate: out.iter().map(element).filter_map(rate).min(),
            header,
            payload: mtu.saturating_sub(header).max(1),
        }
    }

    fn completion(&self, bytes: Bytes) -> Duration {
        let wire = bytes.get() + bytes.get().div_ceil(self.payload) * self.header;
        let bits = u128::from(wire) * 8 * 1_000_000_000;
        let sending = self.rate.and_then(|rate| bits.checked_div(u128::from(rate))).unwrap_or(0);
        self.round_trip + self.forward + Duration::from_nanos(sending as u64)
    }
}
