//! Runs a scenario under the eyes of the verifier and says what came of it.

use core::any::Any;
use core::fmt;
use core::ops::AddAssign;
use core::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use check::{EndSummary, Rejection, Summary, Violation, World};
use record::{Event, Movement, Recorder, SenderState, SentKind, Who};
use sim::audit::{AuditError, describe, run_against};
use sim::observer::{Observer, PROGRESS_EVERY};
use sim::scenario::Scenario;
use sim::{FlowOutcome, Outcome, RunError};
use units::Instant;

use super::demands::{has_time, may_wait, must_end, postpones_probes, totals};
use scenario::{self, Overrides};

/// A run of so many events, steps of packets and turns is taken for one that never ends.
pub(super) const MOST_STEPS: u64 = 5_000_000;

/// What happened in a world that obeyed, or in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// How many they are.
    pub worlds: u64,
    /// Those whose flows had to come to their end, and did.
    pub ended: u64,
    /// Data packets sent.
    pub segments: u64,
    /// Data packets sent again.
    pub resent: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Firings of the retransmission timer.
    pub timeouts: u64,
    /// Probes of a closed window.
    pub probes: u64,
    /// Connections given up.
    pub aborted: u64,
    /// Packets lost on the way.
    pub lost: u64,
    /// Packets doubled.
    pub copied: u64,
    /// Packets damaged.
    pub damaged: u64,
    /// Steps of the longest run of them.
    pub longest: u64,
}

impl AddAssign for Passed {
    fn add_assign(&mut self, other: Self) {
        self.worlds += other.worlds;
        self.ended += other.ended;
        self.segments += other.segments;
        self.resent += other.resent;
        self.recoveries += other.recoveries;
        self.timeouts += other.timeouts;
        self.probes += other.probes;
        self.aborted += other.aborted;
        self.lost += other.lost;
        self.copied += other.copied;
        self.damaged += other.damaged;
        self.longest = self.longest.max(other.longest);
    }
}

impl Passed {
    fn one(outcome: &Outcome, summary: &Summary, steps: &Steps, ended: bool) -> Self {
        let sum = |of: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(of).sum();
        Self {
            worlds: 1,
            ended: u64::from(ended),
            segments: outcome.segments,
            resent: sum(|flow| flow.retransmitted_segments),
            recoveries: sum(|flow| flow.fast_recoveries),
            timeouts: sum(|flow| flow.rtos),
            probes: steps.probes,
            aborted: steps.aborted,
            lost: summary.lost,
            copied: summary.copies,
            damaged: summary.damaged,
            longest: steps.taken,
        }
    }
}

/// What is wrong with a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldFailure {
    /// The text is no scenario.
    Refused(String),
    /// The run broke laws, in the order in which that was found.
    Broke(Vec<Violation>),
    /// A flow that had to come to its end did not, or not with all bytes.
    Undelivered(String),
    /// With all the time there is, a flow has neither come to its end nor been given up.
    Stalled(String),
    /// The run goes on and on.
    Endless,
    /// The program panicked, with this message.
    Panicked(String),
}

impl WorldFailure {
    /// Two failures of one kind are taken for the same fault.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Broke(violations) => {
                let first = violations.first().map(|v| format!("{:?}", v.what));
                first.unwrap_or_default().split([' ', '{']).take(1).collect()
            }
            // Numbers in a message change with the scenario.
            Self::Panicked(message) => {
                message.chars().filter(|c| !c.is_ascii_digit()).collect::<String>() + " panic"
            }
            Self::Refused(_) => "refused".into(),
            Self::Undelivered(_) => "undelivered".into(),
            Self::Stalled(_) => "stalled".into(),
            Self::Endless => "endless".into(),
        }
    }
}

impl fmt::Display for WorldFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(errors) => write!(f, "no scenario: {errors}"),
            Self::Broke(violations) => {
                let mut lines = violations.iter();
                lines.next().map_or(Ok(()), |first| write!(f, "{first}"))?;
                lines.try_for_each(|violation| write!(f, "\n{violation}"))
            }
            Self::Undelivered(what) | Self::Stalled(what) => f.write_str(what),
            Self::Endless => write!(f, "still running after {MOST_STEPS} steps"),
            Self::Panicked(message) => write!(f, "panic: {message}"),
        }
    }
}

impl core::error::Error for WorldFailure {}

/// Judges the scenario of this text.
///
/// # Errors
/// What is wrong with it, or with its run.
pub fn judge(text: &str) -> Result<Passed, WorldFailure> {
    judge_by(text, describe).0
}

/// The laws of a world.
pub(super) type Laws = fn(&Scenario) -> World;

/// Judges by other laws; the number says how many steps the run took.
pub(super) fn judge_by(text: &str, laws: Laws) -> (Result<Passed, WorldFailure>, u64) {
    let mut steps = Steps::default();
    (run(text, laws, &mut steps), steps.taken)
}

fn run(text: &str, laws: Laws, steps: &mut Steps) -> Result<Passed, WorldFailure> {
    let loaded = scenario::load(text, "world", &Overrides::default()).map_err(|errors| {
        WorldFailure::Refused(errors.iter().map(|error| format!("{error}\n")).collect())
    })?;
    let scenario = &loaded.scenario;
    let run = AssertUnwindSafe(|| run_against(scenario, &laws(scenario), steps));
    let (outcome, summary) = match catch_unwind(run) {
        Ok(Ok(found)) => found,
        Ok(Err(AuditError::Run(RunError::Stopped))) => {
            // Keepalive probes and their answers may go on for ever.
            let endless = scenario.flows.iter().any(|flow| postpones_probes(scenario, flow));
            return if endless { Ok(Passed::default()) } else { Err(WorldFailure::Endless) };
        }
        Ok(Err(AuditError::Run(error))) => return Err(WorldFailure::Refused(error.to_string())),
        Ok(Err(AuditError::Rejected(Rejection::World(error)))) => {
            return Err(WorldFailure::Refused(error.to_string()));
        }
        Ok(Err(AuditError::Rejected(Rejection::Record(found)))) => {
            return Err(WorldFailure::Broke(found));
        }
        Err(payload) => return Err(WorldFailure::Panicked(message(payload.as_ref()))),
    };
    waits_for_nothing(scenario, &outcome).map_err(WorldFailure::Stalled)?;
    delivered(scenario, &outcome, &summary.flows).map_err(WorldFailure::Undelivered)?;
    let ended = scenario.flows.iter().all(|flow| must_end(scenario, flow));
    Ok(Passed::one(&outcome, &summary, steps, ended))
}

/// A run that lasts to the end of all time has a connection in it that nothing will ever happen to.
pub(super) fn waits_for_nothing(scenario: &Scenario, outcome: &Outcome) -> Result<(), String> {
    let over = outcome.ended < Instant::ZERO + scenario.duration;
    if over || !has_time(scenario) || scenario.flows.iter().any(|flow| may_wait(scenario, flow)) {
        return Ok(());
    }
    let unfinished = outcome.flows.iter().find(|flow| !flow.finished);
    Err(match unfinished.or(outcome.flows.first()) {
        Some(flow) => {
            let state = if flow.finished { "was never closed" } else { "waits for ever" };
            format!("flow {} {state}: {} read", flow.name, flow.bytes)
        }
        None => "a run without flows did not end".to_owned(),
    })
}

/// Has every byte that the applications had to write been read on the other side, where it must?
pub(super) fn delivered(
    scenario: &Scenario,
    outcome: &Outcome,
    ends: &[[EndSummary; 2]],
) -> Result<(), String> {
    let flows = scenario.flows.iter().zip(&outcome.flows).zip(ends);
    for ((flow, result), ends) in flows.filter(|((flow, _), _)| must_end(scenario, flow)) {
        for (side, total) in totals(flow).into_iter().flatten().enumerate() {
            let (writer, reader) = (&ends[side], &ends[1 - side]);
            let counts = [writer.written, writer.sent, reader.received, reader.read];
            if !result.finished || counts != [total; 4] {
                let host = [flow.from, flow.to].map(|host| &scenario.hosts[host].name)[side];
                let [written, sent, received, read] = counts;
                return Err(format!(
                    "flow {} {}: of {total} from {host}, {written} were written, {sent} sent, \
                     {received} received without a gap, {read} read; the run ended at {:?}",
                    flow.name,
                    if result.finished { "finished" } else { "did not finish" },
                    outcome.ended,
                ));
            }
        }
    }
    Ok(())
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

/// Counts what happens, and stops a run that has no end.
#[derive(Default)]
struct Steps {
    taken: u64,
    probes: u64,
    aborted: u64,
}

impl Steps {
    fn step(&mut self, steps: u64) {
        self.taken += steps;
    }
}

impl Recorder for Steps {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: Who, event: Event, _: Option<&SenderState>) {
        self.step(1);
        match event {
            Event::Sent { kind: SentKind::Probe, .. } => self.probes += 1,
            Event::Aborted => self.aborted += 1,
            _ => {}
        }
    }

    fn moved(&mut self, _: Instant, _: Movement) {
        self.step(1);
    }
}

impl Observer for Steps {
    /// A run that records nothing comes to its end too.
    fn progress(&mut self, _: Instant) -> ControlFlow<()> {
        self.step(PROGRESS_EVERY);
        if self.taken > MOST_STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
