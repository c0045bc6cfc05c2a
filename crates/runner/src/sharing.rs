//! Fairness of flows and queue delays of packets.
//!
//! [`Sharing`] observes a run: the bytes each application reads in each second, and the packets at
//! each link; [`Sharing::detailed`] also queues over time and one-way delays. Reading order:
//! `fairness` (the indices), `lines` (the links), `histogram` (the delays), `over_time` (queues over
//! time), `one_way` (delays of packets), `text` (the tables of `ackclock run`).

mod arrivals;
mod fairness;
mod histogram;
mod lines;
mod one_way;
mod over_time;
mod phases;
mod text;

use std::io;

use record::{Event, EventSource, PacketEvent, Recorder, SenderState};
use serde::{Deserialize, Serialize};
use sim::scenario::{App, ElementSpec, Scenario};
use sim::{ErasedObserver, Observer, ObserverPair, RunError, RunOutcome};
use units::{Duration, HostId, Instant};

pub use fairness::{DELTA, FairnessReport, SecondsReport, alike_flows, compared, jain};
pub use lines::LinkReport;
pub use one_way::OneWayReport;
pub use over_time::{QueueInterval, QueueSeconds};
pub use phases::{PhaseEffects, phase_effects};
pub use text::text;
pub use text::{LINES, rows_of_lines};

use crate::groups;
use fairness::BytesPerSecond;
use lines::{LinkQueues, QueueChange};
use one_way::OneWayDelays;
use over_time::QueueHistory;

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
    /// Receiving host of each flow, and its row of results.
    readers: Vec<(HostId, u32)>,
    seconds: BytesPerSecond,
    lines: LinkQueues,
    details: Option<Box<PacketDetails>>,
}

/// What needs the size and the flow of every packet.
#[derive(Debug, Clone)]
struct PacketDetails {
    /// By the index of the element; `None` for elements that are not links.
    queues: Vec<Option<QueueHistory>>,
    delays: OneWayDelays,
}

impl PacketDetails {
    fn on_packet_event(&mut self, at: Instant, movement: PacketEvent, change: Option<QueueChange>) {
        if let Some(change) = change
            && let PacketEvent::Accepted { hop_index, packet }
            | PacketEvent::Forwarded { hop_index, packet }
            | PacketEvent::Dropped { hop_index, packet } = movement
            && let Some(Some(queue)) = self.queues.get_mut(hop_index.0 as usize)
        {
            let size = self.delays.size(packet);
            match change {
                QueueChange::Entered => queue.enter(at, size),
                QueueChange::Left(wait) => queue.leave(at, size, wait),
                QueueChange::Lost { queued } => queue.lose(at, size, queued),
            }
        }
        self.delays.on_packet_event(at, movement);
    }
}

impl Sharing {
    /// Does the scenario have several flows, a managed queue, a video or a web page?
    pub fn concerns(scenario: &Scenario) -> bool {
        let routes =
            scenario.paths.iter().flat_map(|path| path.forward.iter().chain(&path.reverse));
        let all = routes.chain(scenario.shared.iter().map(|shared| &shared.element));
        let fetches =
            |flow: &sim::scenario::FlowSpec| matches!(flow.app, App::Video(_) | App::Page { .. });
        scenario.flows.len() > 1
            || scenario.flows.iter().any(fetches)
            || all.into_iter().any(|element| matches!(element, ElementSpec::LinkWithQdisc { .. }))
    }

    /// An observer for a run of `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let reader = |flow: &sim::scenario::FlowSpec| {
            if flow.app.is_answered() { flow.from } else { flow.to }
        };
        let mut readers = Vec::with_capacity(scenario.flows.len());
        let mut rows = 0;
        for (row, (flows, _)) in (0..).zip(groups::rows(scenario)) {
            let of = |flow| (HostId(reader(flow) as u16), row);
            readers.extend(scenario.flows[flows].iter().map(of));
            rows = row as usize + 1;
        }
        Self {
            readers,
            seconds: BytesPerSecond::new(rows),
            lines: LinkQueues::new(scenario),
            details: None,
        }
    }

    /// An observer that also measures queues over time and one-way delays.
    pub fn detailed(scenario: &Scenario) -> Self {
        let mut sharing = Self::new(scenario);
        let sender = |flow: &sim::scenario::FlowSpec| {
            if flow.app.is_answered() { flow.to } else { flow.from }
        };
        let senders = scenario
            .flows
            .iter()
            .zip(&sharing.readers)
            .map(|(flow, (_, row))| (HostId(sender(flow) as u16), *row));
        sharing.details = Some(Box::new(PacketDetails {
            queues: sharing.lines.keys().map(|key| key.map(|_| QueueHistory::default())).collect(),
            delays: OneWayDelays::new(senders.collect()),
        }));
        sharing
    }

    /// The reads of applications at these hosts, real kernels or other programs, are no events of the
    /// run: what follows from them is unknown.
    #[must_use]
    pub fn without_reads_of(mut self, hosts: &[usize]) -> Self {
        for (host, row) in &self.readers {
            if hosts.contains(&usize::from(host.0)) {
                self.seconds.hide(*row as usize);
            }
        }
        self
    }

    /// The report after the run.
    pub fn report(&self, scenario: &Scenario, outcome: &RunOutcome) -> SharingReport {
        let (scenario, outcome) = &groups::grouped(scenario, outcome);
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
        let (scenario, outcome) = &groups::grouped(scenario, outcome);
        let seconds = self
            .histories()
            .map(|(key, queue)| QueueSeconds::of(key, &queue.seconds(outcome.ended)));
        self.seconds.by_second(scenario, outcome, seconds.collect())
    }

    /// The key of each link, the width of its intervals and the intervals up to the end of the run;
    /// nothing if the observer is not [`Sharing::detailed`].
    pub fn queues(
        &self,
        ended: Instant,
    ) -> impl Iterator<Item = (&str, (Duration, Vec<QueueInterval>))> {
        self.histories().map(move |(key, queue)| (key, queue.fine(ended)))
    }

    /// Writes the queues over time as CSV: one row per link and interval, in the order of links, then of
    /// time; only the headings if the observer is not [`Sharing::detailed`].
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_queues(&self, ended: Instant, out: &mut impl io::Write) -> io::Result<()> {
        let text = |delay: Option<Duration>| {
            let ns = delay.map(Duration::as_nanos);
            ns.map_or_else(String::new, |ns| {
                format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
            })
        };
        writeln!(out, "time_s,link,delay_mean_s,delay_max_s,most_packets,most_bytes,lost")?;
        for (link, (width, intervals)) in self.queues(ended) {
            for (interval, place) in intervals.iter().zip(0..) {
                let time = text(Some(width.saturating_mul(place)));
                let mean = text(interval.mean());
                let longest = text((interval.packets > 0).then_some(interval.longest));
                let (packets, bytes) = (interval.most_packets, interval.most_bytes);
                writeln!(
                    out,
                    "{time},{link},{mean},{longest},{packets},{bytes},{}",
                    interval.lost
                )?;
            }
        }
        Ok(())
    }

    fn histories(&self) -> impl Iterator<Item = (&str, &QueueHistory)> {
        let queues = self.details.iter().flat_map(|details| &details.queues);
        self.lines.keys().zip(queues).filter_map(|(key, queue)| Some((key?, queue.as_ref()?)))
    }

    /// The one-way delays of each flow or group, in the order of the scenario; nothing if the observer is not
    /// [`Sharing::detailed`], or with more than a thousand flows.
    pub fn one_way(&self) -> Vec<Option<OneWayReport>> {
        self.details.iter().flat_map(|details| details.delays.reports()).collect()
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
    const STATES: bool = false;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::AppRead { bytes, .. } = event
            && let Some((reader, row)) = self.readers.get(who.flow.0 as usize)
            && *reader == who.host
        {
            self.seconds.add(*row as usize, at, u64::from(bytes));
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        let change = self.lines.on_packet_event(at, movement);
        if let Some(details) = &mut self.details {
            details.on_packet_event(at, movement, change);
        }
    }
}

impl Observer for Sharing {}
