//! Chosen columns of the senders of a run over time ([`logs::series`]).

use logs::series::Collector;
use record::{Event, Recorder, Sender, SenderState, Who};
use scenario::Plan;
use sim::Observer;
use sim::scenario::{App, Flow, Scenario};
use units::Instant;

/// Host whose bytes count, as in [`sim::FlowOutcome`].
pub fn sender(flow: &Flow) -> usize {
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

    #[inline(always)]
    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        if let Some(state) = state {
            self.record_sender(at, who, || event, state);
        }
    }

    #[inline(always)]
    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        _: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        let flow = who.flow.0 as usize;
        if self.senders.get(flow) == Some(&usize::from(who.host.0)) {
            self.collector.add(at, flow, sender);
        }
    }
}

impl Observer for SenderSeries {}
