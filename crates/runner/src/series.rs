//! Selected columns of the senders of a run over time ([`logs::series`]).

use logs::series::Collector;
use record::{Event, EventSource, Recorder, Sender, SenderState};
use scenario::SeriesPlan;
use sim::Observer;
use sim::scenario::{FlowSpec, Scenario};
use units::Instant;

/// The host that sends the data of a flow, as in [`sim::FlowOutcome`].
pub fn sender(flow: &FlowSpec) -> usize {
    if flow.app.is_answered() { flow.to } else { flow.from }
}

/// Collects the states of the senders of a run.
#[derive(Debug)]
pub struct SenderSeries {
    senders: Vec<usize>,
    collector: Collector,
}

impl SenderSeries {
    /// A collector for the flows of `scenario`.
    pub fn new(scenario: &Scenario, plan: &SeriesPlan) -> Self {
        let names = scenario.flows.iter().map(|flow| flow.name.clone());
        Self {
            senders: scenario.flows.iter().map(sender).collect(),
            collector: Collector::new(plan.columns.clone(), plan.thinning, names),
        }
    }

    /// The collected columns.
    pub fn into_collector(self) -> Collector {
        self.collector
    }
}

impl Recorder for SenderSeries {
    const ON: bool = true;

    #[inline(always)]
    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if let Some(state) = state {
            self.record_sender(at, who, || event, state);
        }
    }

    #[inline(always)]
    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
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
