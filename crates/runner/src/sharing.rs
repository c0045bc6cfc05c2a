//! How flows share a path, and how long packets wait on it.
//!
//! [`Sharing`] watches a run from outside: what each application reads in each second, and what
//! each line does to packets. Reading order: `fairness` (the indices), `lines` (the queues),
//! `histogram` (how waits are kept), `text` (the tables of `ackclock run`).

mod fairness;
mod histogram;
mod lines;
mod text;

use record::{Event, Movement, Recorder, Sender, SenderState, Who};
use serde::{Deserialize, Serialize};
use sim::scenario::{App, Element, Scenario};
use sim::{Observer, Outcome};
use units::{Duration, HostId, Instant};

pub use fairness::{DELTA, FairnessReport, SecondsReport, jain};
pub use lines::LineReport;
pub use text::text;
pub use text::{LINES, rows_of_lines};

use fairness::Seconds;
use lines::Lines;

/// What a run says about sharing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SharingReport {
    /// Of each line with a queue, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LineReport>,
    /// Of several flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<FairnessReport>,
}

/// Watches a run.
#[derive(Debug, Clone)]
pub struct Sharing {
    /// Host whose application reads the bytes that count, of each flow.
    readers: Vec<HostId>,
    seconds: Seconds,
    lines: Lines,
}

impl Sharing {
    /// Is there anything to say about this scenario: several flows, or a managed queue?
    pub fn concerns(scenario: &Scenario) -> bool {
        let roads = scenario.paths.iter().flat_map(|path| path.forward.iter().chain(&path.reverse));
        let all = roads.chain(scenario.shared.iter().map(|shared| &shared.element));
        scenario.flows.len() > 1
            || all.into_iter().any(|element| matches!(element, Element::ManagedLink { .. }))
    }

    /// Before a run of `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let reader = |flow: &sim::scenario::Flow| match flow.app {
            App::Requests { .. } => flow.from,
            _ => flow.to,
        };
        Self {
            readers: scenario.flows.iter().map(|flow| HostId(reader(flow) as u16)).collect(),
            seconds: Seconds::new(scenario.flows.len()),
            lines: Lines::new(scenario),
        }
    }

    /// After the run.
    pub fn report(&self, scenario: &Scenario, outcome: &Outcome) -> SharingReport {
        SharingReport {
            links: self.lines.reports(),
            fairness: self.seconds.report(scenario, outcome),
        }
    }

    /// Of each line its key, and waits of its packets with the part of them, in thousandths, that
    /// wait no longer.
    pub fn waits(&self) -> impl Iterator<Item = (&str, Vec<(Duration, u64)>)> {
        self.lines.distributions()
    }

    /// What the flows read second by second, after the run.
    pub fn seconds(&self, scenario: &Scenario, outcome: &Outcome) -> Option<SecondsReport> {
        self.seconds.by_second(scenario, outcome)
    }
}

impl Recorder for Sharing {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, _: Option<&SenderState>) {
        if let Event::Read { bytes, .. } = event
            && self.readers.get(who.flow.0 as usize) == Some(&who.host)
        {
            self.seconds.add(who.flow.0 as usize, at, u64::from(bytes));
        }
    }

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        event: impl FnOnce() -> Event,
        _: &impl Sender,
    ) {
        self.record(at, who, event(), None);
    }

    fn moved(&mut self, at: Instant, movement: Movement) {
        self.lines.moved(at, movement);
    }
}

impl Observer for Sharing {}
