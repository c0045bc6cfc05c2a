//! A run as a page: what was sent and acknowledged, windows, round trips and rates over time,
//! round by round, and the events of note.
//!
//! Reading order: [`RunStory`] (listens to a run), `flow` (what is kept of a flow), `needless`
//! (which bytes went again in vain), `rounds` (round trip by round trip), `panels` (what is kept
//! as plots), `tables`, `sharing` (how flows share, how long packets wait).

mod flow;
mod needless;
mod panels;
mod rounds;
mod sharing;
mod tables;

use packet::Segment;
use record::{Event, Movement, Recorder, Sender, SenderState, Who};
use report::page::{Page, Part};
use report::plots::Plots;
use sim::scenario::{Scenario, TapPlace};
use sim::{Observer, Outcome};
use units::{Duration, Instant};

use export::capture;
use flow::FlowStory;
use needless::Needless;
use runner::series::sender;
use runner::sharing::Sharing;
use scenario::Loaded;

pub(crate) use panels::{of_curve, of_spans};

/// Values that all series of a page may hold together.
const POINTS: usize = 1_500_000;
/// Flows that get plots of their own.
const FLOWS: usize = 6;

/// Keeps what a page tells of a run. Room is bounded: long series are thinned as they come, and
/// lose no peak.
#[derive(Debug)]
pub struct RunStory {
    flows: Vec<FlowStory>,
    needless: Needless,
}

impl RunStory {
    /// For the flows of `scenario`, which gets the taps this needs; a tap changes nothing in a
    /// run. At most `points` values are kept in all series together.
    pub fn new(scenario: &mut Scenario, points: usize) -> Self {
        let flows = scenario.flows.len();
        let share = points / flows.clamp(1, FLOWS);
        let mut stories = Vec::new();
        for index in 0..flows {
            let flow = &scenario.flows[index];
            let host = sender(flow);
            let answers = host != flow.from;
            let is_quic = scenario.hosts.get(host).is_some_and(|host| host.stack.quic().is_some());
            let name = flow.name.clone();
            let share = if index < FLOWS { share } else { 0 };
            let tap =
                (share > 0 && !is_quic).then(|| capture::tap(scenario, host, TapPlace::Stack));
            stories.push(FlowStory::new(name, host, answers, is_quic, tap, share));
        }
        Self { flows: stories, needless: Needless::new(flows.min(FLOWS)) }
    }

    /// As many values as a page holds well.
    pub fn of(scenario: &mut Scenario) -> Self {
        Self::new(scenario, POINTS)
    }

    /// The page of the run that ended so; `file` is the name of the scenario's, `sharing` watched the
    /// same run.
    pub fn page(
        self,
        loaded: &Loaded,
        outcome: &Outcome,
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
        Page {
            title,
            lead: String::new(),
            facts: facts.map(|(name, value)| (name.to_owned(), value)).into(),
            maker: maker(),
            parts: self.parts(&loaded.scenario, outcome, sharing, ""),
        }
    }

    /// The parts of a page that tell of the run; `prefix` sets the names of its plots apart from
    /// those of other runs on the page.
    pub fn parts(
        mut self,
        scenario: &Scenario,
        outcome: &Outcome,
        watched: Option<&Sharing>,
        prefix: &str,
    ) -> Vec<Part> {
        let needless = self.needless.finish();
        let mut parts = vec![tables::summary(outcome)];
        if let [flow] = &outcome.flows[..] {
            parts.insert(0, tables::figures(flow));
        }
        let known = self.flows.iter_mut().zip(needless).zip(&outcome.flows);
        let flows: Vec<_> = known
            .map(|((story, needless), outcome)| {
                (core::mem::take(&mut story.name), story.finish(needless), outcome)
            })
            .collect();
        if outcome.flows.len() > 1 {
            parts.push(Part::Heading("All flows".into()));
            parts.push(Part::Plots(panels::together(&flows, &format!("{prefix}all"))));
        }
        // Of several flows what is common to them comes first, of one what it did.
        let shared = watched.map(|seen| sharing::parts(seen, scenario, outcome, prefix));
        let mut shared = shared.unwrap_or_default();
        if flows.len() > 1 {
            parts.append(&mut shared);
        }
        for (number, (name, kept, outcome)) in flows.into_iter().enumerate() {
            let id = format!("{prefix}flow-{number}");
            parts.push(Part::Heading(format!("Flow {name}")));
            let rounds = tables::rounds(&kept, &id);
            let events = tables::events(&kept, &id);
            parts.push(Part::Plots(panels::of_flow(kept, outcome, &name, &id)));
            parts.extend([Part::Table(events), Part::Table(rounds)]);
        }
        parts.append(&mut shared);
        if outcome.flows.len() > FLOWS {
            let left = outcome.flows.len() - FLOWS;
            parts.push(Part::Text(format!(
                "{left} more flows stand in the table of all flows only; the first {FLOWS} have \
                 plots of their own."
            )));
        }
        parts
    }
}

/// Plots of the first flow of a scenario, as a part of another page.
///
/// # Errors
/// Why it cannot be run, or that it has no flow.
pub fn plots_of(loaded: &Loaded, id: &str, title: &str) -> Result<Plots, String> {
    let mut scenario = loaded.scenario.clone();
    let mut story = RunStory::of(&mut scenario);
    let outcome = sim::run(&scenario, &mut story).map_err(|error| error.to_string())?;
    let needless = story.needless.finish().into_iter().next().unwrap_or_default();
    let first = story.flows.first_mut().zip(outcome.flows.first());
    let (flow, outcome) = first.ok_or_else(|| String::from("the scenario has no flow"))?;
    let plots = panels::of_flow(flow.finish(needless), outcome, "", id);
    Ok(Plots { title: title.to_owned(), ..plots })
}

/// Who makes pages.
pub fn maker() -> String {
    concat!("Ackclock ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// An instant as a place on the axis.
fn nanos(at: Instant) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

/// A span as a value of an axis.
fn span(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// Bytes as a value of an axis.
fn amount(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Recorder for RunStory {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        let flow = who.flow.0 as usize;
        let Some(story) = self.flows.get_mut(flow).filter(|story| story.concerns(who)) else {
            return;
        };
        story.record(at, event, state);
        if let Event::Acked { una, .. } = event {
            self.needless.on_acked(flow, una.0);
        }
    }

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        // Of those who receive nothing is told.
        if self.flows.get(who.flow.0 as usize).is_some_and(|story| story.concerns(who)) {
            self.record(at, who, event(), Some(&sender.row()));
        }
    }

    fn moved(&mut self, at: Instant, movement: Movement) {
        match movement {
            Movement::Departed { host, flow, packet, seq, len, .. } => {
                let flow = flow.0 as usize;
                let Some(story) = self.flows.get_mut(flow) else { return };
                if !story.is_host(host) {
                    return;
                }
                if let Some(from) = story.offset(seq, len) {
                    self.needless.on_departed(flow, nanos(at), packet, from, u64::from(len));
                }
            }
            Movement::Dropped { packet, .. } | Movement::Damaged { packet, .. } => {
                self.needless.on_lost(packet);
            }
            _ => {}
        }
    }
}

impl Observer for RunStory {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if let Some(story) = self.flows.get_mut(segment.flow.0 as usize) {
            story.tap(at, tap, outbound, segment);
        }
    }
}

#[cfg(test)]
mod tests;
