//! The page of a run: sequence numbers, windows, round trips and rates over time, rounds, and
//! notable events.
//!
//! Reading order: [`RunPageRecorder`] (records a run), `flow` (the data of a flow), `spurious`
//! (spurious retransmissions), `rounds` (round trips), `panels` (plots), `tables`, `sharing`
//! (fairness and queue delays), `queues` (queues over time).

mod flow;
mod panels;
mod queues;
mod rounds;
mod sharing;
mod spurious;
mod tables;

use packet::Segment;
use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use report::page::{Page, PagePart};
use report::plots::Plots;
use sim::scenario::{App, FlowSpec, Scenario, TapPoint};
use sim::{Observer, RunOutcome};
use units::{Duration, Instant};

use export::capture;
use flow::FlowStory;
use runner::groups;
use runner::series::sender;
use runner::sharing::{Sharing, alike_flows};
use scenario::Loaded;
use spurious::SpuriousDetector;

pub use panels::{of_curve, of_spans};

/// Limit of the values in all series of a page.
const POINTS: usize = 1_500_000;
/// Flows that get their own plots.
const FLOWS: usize = 6;

/// Records the data of a run's page. Memory is bounded: long series are thinned as they grow, and
/// lose no peak.
#[derive(Debug)]
pub struct RunPageRecorder {
    /// The flows with plots of their own.
    shown: Vec<usize>,
    /// The place of each flow of the scenario in `shown`.
    places: Vec<Option<u8>>,
    flows: Vec<FlowStory>,
    detector: SpuriousDetector,
    /// How the flows with plots were selected, if not by their order.
    selection: Option<&'static str>,
}

impl RunPageRecorder {
    /// A recorder for the first flows of `scenario`, to which the needed taps are added; a tap does
    /// not change a run. At most `points` values are kept in all series.
    pub fn new(scenario: &mut Scenario, points: usize) -> Self {
        // Datagrams have no sender with a window.
        let has_sender = |flow: &usize| !matches!(scenario.flows[*flow].app, App::Datagrams(_));
        let shown = (0..scenario.flows.len()).filter(has_sender).take(FLOWS).collect();
        Self::of_flows(scenario, points, shown)
    }

    /// A recorder for the slowest flows of `scenario` by the outcome of a first run: the slowest of
    /// each kind of flow, then others of the largest group of flows that are alike.
    pub fn of_slowest(scenario: &mut Scenario, outcome: &RunOutcome) -> Self {
        let shown = slowest(scenario, outcome);
        let mut recorder = Self::of_flows(scenario, POINTS, shown);
        recorder.selection = Some("slowest of their kind, by goodput");
        recorder
    }

    fn of_flows(scenario: &mut Scenario, points: usize, shown: Vec<usize>) -> Self {
        let share = points / shown.len().max(1);
        let mut stories = Vec::new();
        let mut places = vec![None; scenario.flows.len()];
        for (place, &index) in (0..).zip(&shown) {
            places[index] = Some(place);
            let flow = &scenario.flows[index];
            let host = sender(flow);
            let answers = host != flow.from;
            let is_quic = scenario.hosts.get(host).is_some_and(|host| host.stack.is_quic());
            let name = flow.name.clone();
            let tap =
                (share > 0 && !is_quic).then(|| capture::tap(scenario, host, TapPoint::Stack));
            stories.push(FlowStory::new(name, host, answers, is_quic, tap, share));
        }
        let detector = SpuriousDetector::new(shown.len());
        Self { shown, places, flows: stories, detector, selection: None }
    }

    /// Would more flows than have plots of their own be worth a selection?
    pub fn selects(scenario: &Scenario) -> bool {
        scenario.flows.len() > FLOWS
    }

    /// A recorder with the default number of values.
    pub fn of(scenario: &mut Scenario) -> Self {
        Self::new(scenario, POINTS)
    }

    /// Builds the page of the run with this outcome; `file` is the name of the scenario's file,
    /// `sharing` observed the same run.
    pub fn page(
        self,
        loaded: &Loaded,
        outcome: &RunOutcome,
        file: &str,
        sharing: Option<&Sharing>,
    ) -> Page {
        let title = match loaded.scenario.title.as_str() {
            "" => file.to_owned(),
            title => title.to_owned(),
        };
        let facts = [
            ("scenario", file.to_owned()),
            ("seed", loaded.scenario.seed.to_string()),
            ("scenario sha256", loaded.sha256.clone()),
        ];
        let mut parts = self.parts(&loaded.scenario, outcome, sharing, "");
        parts.push(PagePart::Heading("Scenario".into()));
        parts.push(PagePart::Text(
            "The text that was run, with the changes of --set. Saved as a file, it gives these results \
             again; files that it names must be beside it."
                .into(),
        ));
        parts.push(PagePart::Folded { title: file.to_owned(), text: loaded.text.clone() });
        Page {
            title,
            lead: String::new(),
            facts: facts.map(|(name, value)| (name.to_owned(), value)).into(),
            maker: maker(),
            parts,
        }
    }

    /// The parts of a page about the run; `prefix` distinguishes the names of its plots from those
    /// of other runs on the page.
    pub fn parts(
        mut self,
        scenario: &Scenario,
        outcome: &RunOutcome,
        watched: Option<&Sharing>,
        prefix: &str,
    ) -> Vec<PagePart> {
        let detector = self.detector.finish();
        let (_, rows) = groups::grouped(scenario, outcome);
        let mut parts = vec![tables::summary(&rows)];
        parts.extend(tables::completions(&rows));
        parts.extend(tables::latencies(&rows));
        parts.extend(tables::videos(&rows));
        if let [flow] = &outcome.flows[..] {
            parts.insert(0, tables::figures(flow));
        }
        let outcomes = self.shown.iter().map(|&flow| &outcome.flows[flow]);
        let known = self.flows.iter_mut().zip(detector).zip(outcomes);
        let flows: Vec<_> = known
            .map(|((story, detector), outcome)| {
                (core::mem::take(&mut story.name), story.finish(detector), outcome)
            })
            .collect();
        if outcome.flows.len() > 1 {
            let has_window = |flow: &&FlowSpec| !matches!(flow.app, App::Datagrams(_));
            let few = flows.len() < scenario.flows.iter().filter(has_window).count();
            let heading = if few { "Windows of single flows" } else { "All flows" };
            parts.push(PagePart::Heading(heading.into()));
            if few {
                parts.push(self.selected(outcome));
            }
            parts.push(PagePart::Plots(panels::together(&flows, &format!("{prefix}all"))));
        }
        // With several flows the shared parts come first, with one the parts of the flow.
        let shared = watched.map(|seen| sharing::parts(seen, scenario, outcome, prefix));
        let mut shared = shared.unwrap_or_default();
        if flows.len() > 1 {
            parts.append(&mut shared);
        }
        for (number, (name, data, outcome)) in flows.into_iter().enumerate() {
            let id = format!("{prefix}flow-{number}");
            parts.push(PagePart::Heading(format!("Flow {name}")));
            let rounds = tables::rounds(&data, &id);
            let events = tables::events(&data, &id);
            parts.push(PagePart::Plots(panels::of_flow(data, outcome, &name, &id)));
            parts.extend([PagePart::Table(events), PagePart::Table(rounds)]);
        }
        parts.append(&mut shared);
        parts
    }

    /// Which flows have plots of their own.
    fn selected(&self, outcome: &RunOutcome) -> PagePart {
        let names = self.shown.iter().map(|&flow| outcome.flows[flow].name.as_str());
        PagePart::Text(format!(
            "{} of {} flows have plots of their own, the {}: {}.",
            self.shown.len(),
            outcome.flows.len(),
            self.selection.unwrap_or("first"),
            names.collect::<Vec<_>>().join(", ")
        ))
    }

    fn story(&mut self, flow: usize) -> Option<(usize, &mut FlowStory)> {
        let place = usize::from((*self.places.get(flow)?)?);
        Some((place, self.flows.get_mut(place)?))
    }
}

/// The flows with plots of their own after a first run, in the order of the scenario.
fn slowest(scenario: &Scenario, outcome: &RunOutcome) -> Vec<usize> {
    let slowness = |flow: &usize| outcome.flows[*flow].goodput_bps();
    let mut groups = alike_flows(scenario);
    groups.retain(|group| !matches!(scenario.flows[group[0]].app, App::Datagrams(_)));
    groups.extend(scenario.groups.iter().map(|group| group.flows.clone().collect()));
    for group in &mut groups {
        group.sort_by(|one, other| slowness(one).total_cmp(&slowness(other)).then(one.cmp(other)));
    }
    groups.sort_by_key(|group| core::cmp::Reverse(group.len()));
    let first = groups.iter().filter_map(|group| group.first());
    let rest = groups.iter().flat_map(|group| group.iter().skip(1));
    let mut shown: Vec<usize> = first.chain(rest).copied().take(FLOWS).collect();
    shown.sort_unstable();
    shown
}

/// Runs a scenario and plots its first flow, as a part of another page.
///
/// # Errors
/// The scenario cannot be run or has no flow.
pub fn plots_of(loaded: &Loaded, id: &str, title: &str) -> Result<Plots, String> {
    let mut scenario = loaded.scenario.clone();
    let mut story = RunPageRecorder::of(&mut scenario);
    let outcome = sim::run_shared(&scenario, &mut story).map_err(|error| error.to_string())?;
    let detector = story.detector.finish().into_iter().next().unwrap_or_default();
    let first = story.flows.first_mut().zip(outcome.flows.first());
    let (flow, outcome) = first.ok_or_else(|| String::from("the scenario has no flow"))?;
    let plots = panels::of_flow(flow.finish(detector), outcome, "", id);
    Ok(Plots { title: title.to_owned(), ..plots })
}

/// The program and version that make pages.
pub fn maker() -> String {
    concat!("Ackclock ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// An instant as an axis coordinate.
fn nanos(at: Instant) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

/// A duration as an axis value.
fn span(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// Bytes as an axis value.
fn amount(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Recorder for RunPageRecorder {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        let found = self.story(who.flow.0 as usize).filter(|(_, story)| story.concerns(who));
        let Some((place, story)) = found else { return };
        story.record(at, event, state);
        if let Event::Acked { una, .. } = event {
            self.detector.on_acked(place, una.0);
        }
    }

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        // Only senders are recorded.
        if self.story(who.flow.0 as usize).is_some_and(|(_, story)| story.concerns(who)) {
            self.record(at, who, event(), Some(&sender.snapshot()));
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        match movement {
            PacketEvent::Sent { host, flow, packet, seq, len, .. } => {
                let Some((flow, story)) = self.story(flow.0 as usize) else { return };
                if !story.is_host(host) {
                    return;
                }
                if let Some(from) = story.offset(seq, len) {
                    self.detector.on_departed(flow, nanos(at), packet, from, u64::from(len));
                }
            }
            PacketEvent::Dropped { packet, .. } | PacketEvent::Corrupted { packet, .. } => {
                self.detector.on_lost(packet);
            }
            _ => {}
        }
    }
}

impl Observer for RunPageRecorder {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if let Some((_, story)) = self.story(segment.flow.0 as usize) {
            story.tap(at, tap, outbound, segment);
        }
    }
}

#[cfg(test)]
mod tests;
