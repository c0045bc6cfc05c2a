//! Runs a scenario with the verifier and classifies the result.

use core::any::Any;
use core::fmt;
use core::ops::AddAssign;
use core::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use check::{EndpointSummary, Rejection, VerifiedSummary, Violation, WorldModel};
use record::{Event, EventSource, PacketEvent, Recorder, SenderState, SentKind};
use sim::audit::{AuditError, describe, run_against};
use sim::observer::{Observer, PROGRESS_EVERY};
use sim::scenario::{App, FlowSpec, Scenario};
use sim::{FlowOutcome, RunError, RunOutcome};
use units::Instant;

use super::oracle::{has_time, may_probe_for_ever, may_wait, must_end, totals};
use scenario::{self, Overrides};

/// Number of events, packet events and event-loop steps after which a run counts as endless.
pub(super) const MOST_STEPS: u64 = 5_000_000;

/// Statistics of worlds that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorldStats {
    /// Number of worlds.
    pub worlds: u64,
    /// Worlds in which all flows had to finish, and did.
    pub ended: u64,
    /// Data packets sent.
    pub segments: u64,
    /// Data packets retransmitted.
    pub retransmission: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Window probes.
    pub probes: u64,
    /// Connections aborted.
    pub aborted: u64,
    /// Packets dropped.
    pub lost: u64,
    /// Packets duplicated.
    pub copied: u64,
    /// Packets corrupted.
    pub damaged: u64,
    /// Steps of the longest run.
    pub longest: u64,
}

impl AddAssign for WorldStats {
    fn add_assign(&mut self, other: Self) {
        self.worlds += other.worlds;
        self.ended += other.ended;
        self.segments += other.segments;
        self.retransmission += other.retransmission;
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

impl WorldStats {
    fn one(
        outcome: &RunOutcome,
        summary: &VerifiedSummary,
        steps: &StepCounter,
        ended: bool,
    ) -> Self {
        let sum = |of: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(of).sum();
        Self {
            worlds: 1,
            ended: u64::from(ended),
            segments: outcome.segments,
            retransmission: sum(|flow| flow.retransmitted_segments),
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

/// Failure of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldFailure {
    /// The text is not a valid scenario.
    Refused(String),
    /// The run violated invariants, in the order of detection.
    Violated(Vec<Violation>),
    /// A flow that had to finish did not, or not with all bytes.
    Undelivered(String),
    /// With unlimited time, a flow has neither finished nor been aborted.
    Stalled(String),
    /// The run exceeds the step limit.
    Endless,
    /// The program panicked, with this message.
    Panicked(String),
}

impl WorldFailure {
    /// Identifies the fault: failures of one kind are treated as the same.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Violated(violations) => {
                let first = violations.first().map(|v| format!("{:?}", v.what));
                first.unwrap_or_default().split([' ', '{']).take(1).collect()
            }
            // Numbers in a message vary with the scenario.
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
            Self::Refused(errors) => write!(f, "invalid scenario: {errors}"),
            Self::Violated(violations) => {
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

/// Runs and checks the scenario of this text.
///
/// # Errors
/// The failure of the scenario or of its run.
pub fn judge(text: &str) -> Result<WorldStats, WorldFailure> {
    check_world_against(text, describe).0
}

/// Describes the invariants of a world.
pub(super) type InvariantsOf = fn(&Scenario) -> WorldModel;

/// Runs and checks with other invariants; also returns the number of steps.
pub(super) fn check_world_against(
    text: &str,
    laws: InvariantsOf,
) -> (Result<WorldStats, WorldFailure>, u64) {
    let mut steps = StepCounter::default();
    (run(text, laws, &mut steps), steps.taken)
}

fn run(
    text: &str,
    laws: InvariantsOf,
    steps: &mut StepCounter,
) -> Result<WorldStats, WorldFailure> {
    let loaded = scenario::load(text, "world", &Overrides::default()).map_err(|errors| {
        WorldFailure::Refused(errors.iter().map(|error| format!("{error}\n")).collect())
    })?;
    let scenario = &loaded.scenario;
    let run = AssertUnwindSafe(|| run_against(scenario, &laws(scenario), steps));
    let (outcome, summary) = match catch_unwind(run) {
        Ok(Ok(found)) => found,
        Ok(Err(AuditError::Run(RunError::Stopped))) => {
            // Probes and their answers may continue for ever.
            let endless = scenario.flows.iter().any(|flow| may_probe_for_ever(scenario, flow));
            return if endless { Ok(WorldStats::default()) } else { Err(WorldFailure::Endless) };
        }
        Ok(Err(AuditError::Run(error))) => return Err(WorldFailure::Refused(error.to_string())),
        Ok(Err(AuditError::Rejected(Rejection::World(error)))) => {
            return Err(WorldFailure::Refused(error.to_string()));
        }
        Ok(Err(AuditError::Rejected(Rejection::Record(found)))) => {
            return Err(WorldFailure::Violated(found));
        }
        Err(payload) => return Err(WorldFailure::Panicked(message(payload.as_ref()))),
    };
    check_not_stalled(scenario, &outcome).map_err(WorldFailure::Stalled)?;
    delivered(scenario, &outcome, &summary.flows).map_err(WorldFailure::Undelivered)?;
    // Datagrams end with their source, whatever arrives.
    let is_udp = |flow: &FlowSpec| matches!(flow.app, App::Datagrams(_));
    let ended = scenario.flows.iter().all(|flow| is_udp(flow) || must_end(scenario, flow));
    Ok(WorldStats::one(&outcome, &summary, steps, ended))
}

/// Checks that no connection waits for ever: then the run lasts to the end of time.
pub(super) fn check_not_stalled(scenario: &Scenario, outcome: &RunOutcome) -> Result<(), String> {
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

/// Checks that every byte written was read on the other side, where that is required.
pub(super) fn delivered(
    scenario: &Scenario,
    outcome: &RunOutcome,
    ends: &[[EndpointSummary; 2]],
) -> Result<(), String> {
    let flows = scenario.flows.iter().zip(&outcome.flows).zip(ends);
    for ((flow, result), ends) in flows.filter(|((flow, _), _)| must_end(scenario, flow)) {
        for (side, total) in totals(flow).into_iter().flatten().enumerate() {
            let (writer, reader) = (&ends[side], &ends[1 - side]);
            let total = total.unwrap_or(writer.written);
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

/// Counts events, and stops an endless run.
#[derive(Default)]
struct StepCounter {
    taken: u64,
    probes: u64,
    aborted: u64,
}

impl StepCounter {
    fn step(&mut self, steps: u64) {
        self.taken += steps;
    }
}

impl Recorder for StepCounter {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, event: Event, _: Option<&SenderState>) {
        self.step(1);
        match event {
            Event::Sent { kind: SentKind::Probe, .. } => self.probes += 1,
            Event::Aborted => self.aborted += 1,
            _ => {}
        }
    }

    fn record_packet(&mut self, _: Instant, _: PacketEvent) {
        self.step(1);
    }
}

impl Observer for StepCounter {
    /// Counts the steps of a run that records nothing.
    fn progress(&mut self, _: Instant) -> ControlFlow<()> {
        self.step(PROGRESS_EVERY);
        if self.taken > MOST_STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
