//! A draw: a world, its faults, where it is captured, and the truth about it.

use units::Duration;

use crate::capture::{CapturePoint, CaptureSettings, Engine, RunCapture, TransferTime};
use crate::cures::{self, AppliedCure};
use crate::draft::{DataDirection, Draft};
use crate::faults::{self, Fault, FaultKind, KINDS};
use crate::random::DrawRandom;
use crate::world::{Transport, Workload, World};

/// A fault that costs less than this is none.
const LEAST_COST: Duration = Duration::from_millis(50);
/// The same as a fraction of the transfer without it, in percent.
const LEAST_PERCENT: u64 = 3;

/// A buffer that limits no transfer of an exam.
pub(crate) const LARGE_BUFFER: u64 = 16 << 20;

/// A drawn case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Seed of the exam.
    pub seed: u64,
    /// Number of the draw.
    pub number: u64,
    /// The world.
    pub world: World,
    /// Its faults: none, one, or two.
    pub faults: Vec<Fault>,
    /// How it is captured.
    pub settings: CaptureSettings,
}

/// What a fault costs.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultCost {
    /// The fault.
    pub fault: Fault,
    /// Time of the transfer with all faults less that without this one; `None` if it failed.
    pub cost: Option<Duration>,
}

/// The truth about a case, by arithmetic on runs.
#[derive(Debug, Clone)]
pub struct Truth {
    /// Time of the transfer with its faults, or of the run if it failed.
    pub duration: Duration,
    /// The transfer was completed.
    pub finished: bool,
    /// Faults that cost something, the costliest first; empty for a healthy transfer.
    pub costs: Vec<FaultCost>,
    /// Codes that are true of a transfer without a fault that matters: its buffers as the systems have them,
    /// or slow start, cost something.
    pub allowed: Vec<&'static str>,
    /// Cures, each with the time of the same transfer after it was applied.
    pub cures: Vec<AppliedCure>,
}

/// A case that was run.
#[derive(Debug, Clone)]
pub struct RunCase {
    /// The case.
    pub case: Case,
    /// The truth about it.
    pub truth: Truth,
    /// The scenario with its faults.
    pub text: String,
    /// Captures at the client and the server.
    pub(crate) capture: RunCapture,
}

impl Case {
    /// Draws case `number` of `seed`. A third is healthy, a tenth has two faults.
    pub fn draw(transport: Transport, seed: u64, number: u64) -> Self {
        let is_drawn = |kind: &FaultKind| match transport {
            Transport::Tcp => true,
            Transport::Quic => kind.quic_codes().is_some(),
        };
        let kinds: Vec<FaultKind> = KINDS.into_iter().filter(is_drawn).collect();
        let mut random = DrawRandom::new(seed, number, "case");
        let direction = random.pick(&[DataDirection::Upload, DataDirection::Download]);
        let kind = random.pick(&kinds);
        let is_healthy = random.once_in(3);
        let healthy = random.pick(&[
            Workload::Bulk,
            Workload::Requests,
            Workload::Stream,
            Workload::Video,
            Workload::Short,
            Workload::Idle,
        ]);
        // Of the two thirds with a fault, 15 % have a second one: a tenth of all.
        let has_second = random.within(0..=99) < 15;
        let second = random.pick(&kinds);
        let workload = if is_healthy { healthy } else { kind.workload() };
        let world = World::draw(transport, (seed, number), workload, direction);
        let mut strengths = DrawRandom::new(seed, number, "strength");
        let mut faults = Vec::new();
        if !is_healthy {
            let fault = Fault::draw(kind, &world, &mut strengths);
            let rests = fault.rests();
            faults.push(fault);
            faults.extend(rests);
            if has_second && kind.combines() && second.combines() && second != kind {
                faults.push(Fault::draw(second, &world, &mut strengths));
            }
        }
        let mut points = DrawRandom::new(seed, number, "capture");
        let point = points.pick(match transport {
            // The log of the sender.
            Transport::Quic => &[CapturePoint::Sender][..],
            Transport::Tcp => &[
                CapturePoint::Sender,
                CapturePoint::Sender,
                CapturePoint::Receiver,
                CapturePoint::Receiver,
                CapturePoint::Middle,
                CapturePoint::Both,
            ],
        });
        // Without its SYN nothing shows what happened to it.
        let is_opening = |fault: &Fault| {
            let kind = fault.kind();
            kind.place() == "opening" || kind == FaultKind::SlowOpening
        };
        let settings = CaptureSettings {
            point,
            without_syn: points.once_in(6) && !faults.iter().any(is_opening),
            snaplen: points.once_in(4).then_some(96),
        };
        Self { seed, number, world, faults, settings }
    }

    /// The scenario with all faults but the one of this index.
    fn draft_without(&self, absent: Option<usize>) -> Draft {
        let mut draft = self.world.draft();
        for (index, fault) in self.faults.iter().enumerate() {
            if absent == Some(index) {
                fault.apply_healthy(&self.world, &mut draft);
            } else {
                fault.apply(&self.world, &mut draft);
            }
        }
        draft
    }

    /// What limits a transfer without a fault: a buffer, if a larger one makes it faster; slow start, if the
    /// transfer takes longer than its bytes at the rate of the path and the round trips of its messages.
    fn allowed(
        &self,
        draft: &Draft,
        with: TransferTime,
        engine: &Engine,
    ) -> Result<Vec<&'static str>, String> {
        let mut allowed = Vec::new();
        let is_quic = self.world.transport == Transport::Quic;
        let mut larger = draft.clone();
        faults::receive_buffer(is_quic, &mut larger.receiver, LARGE_BUFFER);
        let codes: &[&str] = if is_quic { &["CC821", "CC822"] } else { &["CC401"] };
        let without = engine.time(&larger.text())?;
        if cost(with, without).is_some_and(|cost| matters(cost, without)) {
            allowed.extend(codes);
        }
        // QUIC has no send buffer of the system.
        if !is_quic {
            let mut larger = draft.clone();
            faults::send_buffer(&mut larger.sender, LARGE_BUFFER);
            let without = engine.time(&larger.text())?;
            if cost(with, without).is_some_and(|cost| matters(cost, without)) {
                allowed.push("CC503");
            }
        }
        let World { rate, size, count, workload, .. } = self.world;
        if matches!(workload, Workload::Bulk | Workload::Requests | Workload::Dialogue) {
            // Handshake, opening, and a round trip for each message.
            let round_trips = self.world.round_trip() * (count + 2);
            let ideal = Duration::from_micros(round_trips + size * count * 8_000 / rate);
            let ideal = TransferTime { duration: ideal, finished: true };
            if cost(with, ideal).is_some_and(|cost| matters(cost, ideal)) {
                allowed.push(if is_quic { "CC834" } else { "CC102" });
            }
        }
        Ok(allowed)
    }

    /// Runs the case with its faults, without each, and with each cure.
    ///
    /// # Errors
    /// A scenario that cannot be run, as text.
    pub fn run(&self, engine: &Engine) -> Result<RunCase, String> {
        let draft = self.draft_without(None);
        let text = draft.text();
        let (with, capture) = match self.world.transport {
            Transport::Tcp => {
                engine.captured(&text, self.settings.point == CapturePoint::Middle)?
            }
            Transport::Quic => engine.logged(&text)?,
        };
        let mut costs = Vec::new();
        for (index, fault) in self.faults.iter().enumerate() {
            let without = engine.time(&self.draft_without(Some(index)).text())?;
            let cost = cost(with, without);
            if cost.is_none_or(|cost| matters(cost, without)) {
                costs.push(FaultCost { fault: fault.clone(), cost });
            }
        }
        costs.sort_by_key(|one| core::cmp::Reverse(one.cost.unwrap_or(Duration::MAX)));
        let allowed = match costs.is_empty() && with.finished {
            true => self.allowed(&draft, with, engine)?,
            false => Vec::new(),
        };
        let is_tcp = self.world.transport == Transport::Tcp;
        let cures = match with.finished && is_tcp {
            true => cures::apply(&draft, &self.world, &costs, engine)?,
            false => Vec::new(),
        };
        let truth =
            Truth { duration: with.duration, finished: with.finished, costs, allowed, cures };
        Ok(RunCase { case: self.clone(), truth, text, capture })
    }
}

/// What a fault cost; `None` if the transfer failed with it alone.
fn cost(with: TransferTime, without: TransferTime) -> Option<Duration> {
    let failed = !with.finished && without.finished;
    (!failed).then(|| with.duration.saturating_sub(without.duration))
}

fn matters(cost: Duration, without: TransferTime) -> bool {
    cost >= LEAST_COST
        && u128::from(cost.as_nanos()) * 100
            >= u128::from(without.duration.as_nanos()) * u128::from(LEAST_PERCENT)
}

impl Truth {
    /// The kinds of faults of which naming one is right: the costliest, and a second that costs alike.
    pub fn causes(&self) -> Vec<FaultKind> {
        let Some(first) = self.costs.first() else { return Vec::new() };
        let worth = |cost: Option<Duration>| cost.unwrap_or(Duration::MAX).as_nanos();
        // Alike: within a third.
        let alike = |one: &&FaultCost| {
            // The rests cost more than what follows them, and may be meant.
            let follows_rests = one.fault.kind() == FaultKind::IdleRestart;
            follows_rests || worth(one.cost) >= worth(first.cost) / 3 * 2
        };
        self.costs.iter().filter(alike).map(|one| one.fault.kind()).collect()
    }
}
