//! Independent check of a run: follows every packet with a model of its own, built only from the
//! taps and events, and panics at the first impossible one.

mod path;
mod stack;

use std::collections::{BTreeMap, BTreeSet};

use ackclock_sim as sim;
use packet::{Dir, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use sim::scenario::{HostSpec, Scenario};
use sim::{Observer, RunOutcome};
use tcp::profile::{DuplicateRule, LossDetectionRule};
use units::Instant;

use crate::common::tcp_of;

use path::RouteChecker;
use stack::{ConnectionChecker, EndpointChecker};

/// State of the check. The scenario must have the taps of `common::all_taps`.
pub(crate) struct Checker {
    scenario: Scenario,
    now: Instant,
    /// Two per path: forward, reverse.
    routes: Vec<RouteChecker>,
    flows: Vec<[EndpointChecker; 2]>,
    /// Flows that an end has aborted.
    aborted: BTreeSet<usize>,
    /// The route that a packet entered last: a queue at its entrance drops immediately.
    entered: Option<usize>,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

fn sender_of(dir: Dir) -> usize {
    if dir == Dir::Forward { CLIENT } else { SERVER }
}

impl Checker {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let routes = scenario
            .paths
            .iter()
            .flat_map(|p| [RouteChecker::new(&p.forward), RouteChecker::new(&p.reverse)]);
        let ends = |flow: &sim::scenario::FlowSpec| {
            [flow.from, flow.to].map(|host| EndpointChecker::new(&scenario.hosts[host]))
        };
        Self {
            routes: routes.collect(),
            flows: scenario.flows.iter().map(ends).collect(),
            aborted: BTreeSet::new(),
            scenario: scenario.clone(),
            now: Instant::ZERO,
            entered: None,
        }
    }

    fn route_of(&self, flow: usize, dir: Dir) -> usize {
        let flow = &self.scenario.flows[flow];
        let along = (self.scenario.paths[flow.path].from == flow.from) == (dir == Dir::Forward);
        2 * flow.path + usize::from(!along)
    }

    fn end_of(&mut self, who: EventSource) -> &mut EndpointChecker {
        let flow = who.flow.0 as usize;
        let side = usize::from(self.scenario.flows[flow].from != usize::from(who.host.0));
        &mut self.flows[flow][side]
    }

    /// Without timestamps only new data is timed (Karn), and tcp_xmit_timer alone sets `t_rxtshift`
    /// to zero: a queue that drops the end of thirteen flights makes FreeBSD's default stack abort
    /// (tcp_timer_rexmt). No other transfer of these tests may end so.
    fn abort(&mut self, who: EventSource) {
        let flow = who.flow.0 as usize;
        let timed = self.flows[flow].iter().all(|end| end.timestamps);
        let profile = &tcp_of(&self.scenario.hosts[usize::from(who.host.0)]).profile;
        let counts_on = !timed && matches!(profile.loss, LossDetectionRule::Sack(_));
        assert!(counts_on || self.aborted.contains(&flow), "flow {flow} was aborted");
        self.aborted.insert(flow);
    }

    fn pass(&mut self, at: Instant) {
        assert!(at >= self.now, "time ran back");
        self.now = at;
    }

    /// Checks the end of a run whose flows all finish.
    pub(crate) fn finish(&self, outcome: &RunOutcome) {
        for (number, ends) in self.flows.iter().enumerate() {
            if self.aborted.contains(&number) {
                continue;
            }
            let flow = &self.scenario.flows[number];
            let total = common_total(flow);
            let result = &outcome.flows[number];
            assert!(
                result.finished,
                "flow {number} stalled: {} of {total} bytes read; waits for {:?}",
                ends[SERVER].read, ends[CLIENT].waiting
            );
            assert_eq!(ends[SERVER].read, total, "flow {number}: bytes read");
            assert_eq!(result.bytes.get(), total, "flow {number}: bytes reported");
            assert_eq!(ends[CLIENT].wrote, total, "flow {number}: bytes written");
            let dropped: u64 = [Dir::Forward, Dir::Reverse]
                .map(|dir| self.routes[self.route_of(number, dir)].dropped_of(number))
                .iter()
                .sum();
            let hosts = [flow.from, flow.to].map(|host| &self.scenario.hosts[host]);
            for ((end, side), host) in ends.iter().zip(["client", "server"]).zip(hosts) {
                // A probe need not wait for a delayed ACK.
                let excused = dropped > 0
                    || end.timeouts + end.loss_probes > 0
                    || (end.three_duplicates && counts_window_updates(host));
                assert!(
                    end.retransmitted == 0 || excused,
                    "flow {number} {side}: retransmissions without a loss"
                );
            }
            assert_eq!(result.rtos, ends[CLIENT].timeouts, "flow {number}: timeouts reported");
        }
    }
}

/// Does the host count bare ACKs as duplicates whatever their window while nothing is SACKed, as
/// FreeBSD's default stack does since 14.0 (docs/freebsd-window-updates.md)?
fn counts_window_updates(host: &HostSpec) -> bool {
    let rule = &tcp_of(host).profile.loss;
    matches!(rule, LossDetectionRule::Sack(rule) if rule.duplicates == DuplicateRule::AnyWhileEmpty)
}

fn common_total(flow: &sim::scenario::FlowSpec) -> u64 {
    match flow.app {
        sim::scenario::App::Bulk { bytes, .. } | sim::scenario::App::Paced { bytes, .. } => {
            bytes.expect("flows of these tests end").get()
        }
        _ => panic!("flows of these tests write one way and without random pauses"),
    }
}

impl Recorder for Checker {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        self.pass(at);
        if let Event::Dropped { element, bytes } = event {
            let flow = who.flow.0 as usize;
            let to_server = self.scenario.flows[flow].to == usize::from(who.host.0);
            let dir = if to_server { Dir::Forward } else { Dir::Reverse };
            let route = self.route_of(flow, dir);
            let just_entered = self.entered == Some(route);
            self.routes[route].drop(at, flow, element, u64::from(bytes), just_entered);
            return;
        }
        match event {
            Event::Aborted => self.abort(who),
            _ => self.end_of(who).on_event(event),
        }
    }
}

impl Observer for Checker {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.pass(at);
        let (host, on_wire) = (tap / 2, tap.is_multiple_of(2));
        let flow = segment.flow.0 as usize;
        let sender = sender_of(segment.dir);
        let route = self.route_of(flow, segment.dir);
        let spec = &self.scenario.flows[flow];
        let expected = if (sender == CLIENT) == outbound { spec.from } else { spec.to };
        assert_eq!(host, expected, "a segment at the wrong host");
        self.entered = None;
        let ends = &mut self.flows[flow];
        match (on_wire, outbound) {
            (false, true) => {
                ends[sender].stack_out(segment);
                let peer_isn = ends[1 - sender].isn;
                ConnectionChecker::stack_out(ends, sender, peer_isn, segment);
            }
            (true, true) => {
                ends[sender].wire_out(segment);
                self.routes[route].enter(at, segment);
                self.entered = Some(route);
            }
            (true, false) => {
                self.routes[route].leave(at, segment);
                ends[1 - sender].wire_in(segment);
            }
            (false, false) => {
                ends[1 - sender].stack_in(segment);
                ConnectionChecker::stack_in(ends, sender, segment);
            }
        }
    }
}

/// Ranges of a stream that have arrived.
#[derive(Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(crate) fn insert(&mut self, mut left: u64, mut right: u64) {
        if left >= right {
            return;
        }
        while let Some((&l, &r)) = self.0.range(..=right).next_back().filter(|&(_, &r)| r >= left) {
            self.0.remove(&l);
            left = left.min(l);
            right = right.max(r);
        }
        self.0.insert(left, right);
    }

    /// End of the contiguous stream from `start` on.
    pub(crate) fn upto(&self, start: u64) -> u64 {
        let last = self.0.range(..=start).next_back();
        last.map_or(start, |(_, &right)| right.max(start))
    }
}
