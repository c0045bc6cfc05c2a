//! Fairness of flows and queue delays of packets.
//!
//! [`Sharing`] observes a run: the bytes each application reads in each second, and the packets at
//! each link. Reading order: `fairness` (the indices), `lines` (the links), `histogram` (the
//! delays), `text` (the tables of `ackclock run`).

mod fairness;
mod histogram;
mod lines;
mod text;

use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use serde::{Deserialize, Serialize};
use sim::scenario::{App, ElementSpec, Scenario};
use sim::{ErasedObserver, Observer, ObserverPair, RunError, RunOutcome};
use units::{Duration, HostId, Instant};

pub use fairness::{DELTA, FairnessReport, SecondsReport, jain};
pub use lines::LinkReport;
pub use text::text;
pub use text::{LINES, rows_of_lines};

use fairness::BytesPerSecond;
use lines::LinkQueues;

/// Fairness and link statistics of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SharingReport {
    /// The links with a queue, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkReport>,
    /// The fairness indices, for several flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<FairnessReport>,
}

/// Observes a run.
#[derive(Debug, Clone)]
pub struct Sharing {
    /// Receiving host of each flow.
    readers: Vec<HostId>,
    seconds: BytesPerSecond,
    lines: LinkQueues,
}

impl Sharing {
    /// Does the scenario have several flows or a managed queue?
    pub fn concerns(scenario: &Scenario) -> bool {
        let routes =
            scenario.paths.iter().flat_map(|path| path.forward.iter().chain(&path.reverse));
        let all = routes.chain(scenario.shared.iter().map(|shared| &shared.element));
        scenario.flows.len() > 1
            || all.into_iter().any(|element| matches!(element, ElementSpec::LinkWithQdisc { .. }))
    }

    /// An observer for a run of `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let reader = |flow: &sim::scenario::FlowSpec| match flow.app {
            App::Requests { .. } => flow.from,
            _ => flow.to,
        };
        Self {
            readers: scenario.flows.iter().map(|flow| HostId(reader(flow) as u16)).collect(),
            seconds: BytesPerSecond::new(scenario.flows.len()),
            lines: LinkQueues::new(scenario),
        }
    }

    /// The report after the run.
    pub fn report(&self, scenario: &Scenario, outcome: &RunOutcome) -> SharingReport {
        SharingReport {
            links: self.lines.reports(),
            fairness: self.seconds.report(scenario, outcome),
        }
    }

    /// The key of each link and its delay distribution: delays with the fraction of packets, in
    /// thousandths, that are delayed at most as long.
    pub fn waits(&self) -> impl Iterator<Item = (&str, Vec<(Duration, u64)>)> {
        self.lines.distributions()
    }

    /// The per-second rates after the run.
    pub fn seconds(&self, scenario: &Scenario, outcome: &RunOutcome) -> Option<SecondsReport> {
        self.seconds.by_second(scenario, outcome)
    }
}

/// Runs a scenario and measures how its flows share the path. `others` receives taps and progress,
/// not events, so all such runs share one engine.
///
/// # Errors
/// Those of [`sim::run`].
pub fn run<O: Observer>(
    scenario: &Scenario,
    sharing: &mut Sharing,
    others: &mut O,
) -> Result<RunOutcome, RunError> {
    const { assert!(!O::ON && !O::PACKETS) }
    run_erased(scenario, sharing, ErasedObserver::new(others))
}

/// Not generic, so that there is one engine.
fn run_erased(
    scenario: &Scenario,
    sharing: &mut Sharing,
    others: ErasedObserver<'_, false, false>,
) -> Result<RunOutcome, RunError> {
    sim::run(scenario, &mut ObserverPair(sharing, others))
}

impl Recorder for Sharing {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::AppRead { bytes, .. } = event
            && self.readers.get(who.flow.0 as usize) == Some(&who.host)
        {
            self.seconds.add(who.flow.0 as usize, at, u64::from(bytes));
        }
    }

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        _: &impl Sender,
    ) {
        self.record(at, who, event(), None);
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.lines.on_packet_event(at, movement);
    }
}

impl Observer for Sharing {}
