//! Chosen columns of the senders of a run over time ([`trace::series`]).

use record::{Event, Recorder, SenderState, Who};
use sim::Observer;
use sim::scenario::{App, Flow, Scenario};
use trace::series::{Collector, Columns, Thinning};
use units::Instant;

/// What is wanted of each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Columns, in their order.
    pub columns: Columns,
    /// How much is kept.
    pub thinning: Thinning,
}

/// Host whose bytes count, as in [`sim::FlowOutcome`].
pub(crate) fn sender(flow: &Flow) -> usize {
    if matches!(flow.app, App::Requests { .. }) { flow.to } else { flow.from }
}

/// Collects the states of the senders of a run.
#[derive(Debug)]
pub struct SenderSeries {
    senders: Vec<usize>,
    collector: Collector,
}

impl SenderSeries {
    /// For the flows of `scenario`.
    pub fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let names = scenario.flows.iter().map(|flow| flow.name.clone());
        Self {
            senders: scenario.flows.iter().map(sender).collect(),
            collector: Collector::new(plan.columns.clone(), plan.thinning, names),
        }
    }

    /// What was collected.
    pub fn into_collector(self) -> Collector {
        self.collector
    }
}

impl Recorder for SenderSeries {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, _: Event, state: Option<&SenderState>) {
        let flow = who.flow.0 as usize;
        let Some(state) = state else { return };
        if self.senders.get(flow) == Some(&usize::from(who.host.0)) {
            self.collector.add(at, flow, state);
        }
    }
}

impl Observer for SenderSeries {}
