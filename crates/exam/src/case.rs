//! A draw: a world, its faults, where it is captured, and the truth about it.

use quic::QuicProfile;
use units::Duration;

use crate::capture::{CapturePoint, CaptureSettings, Engine, RunCapture, TransferTime};
use crate::cures::{self, AppliedCure};
use crate::draft::{DataDirection, Draft};
use crate::faults::{Fault, FaultKind, KINDS};
use crate::own;
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
    /// A fault that costs something leaves no trace at the capture point.
    pub hidden: bool,
    /// Codes that are true of the transfer beside its faults: what its buffers, slow start, round trips or
    /// queue cost, if that matters and no fault costs more.
    pub allowed: Vec<&'static str>,
    /// What each of these costs.
    pub own: Vec<(&'static str, Duration)>,
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
    /// The receiver of QUIC grants all data at once, so that it cannot limit the sender.
    pub(crate) has_ample_window: bool,
    /// The log of QUIC lists the frames of packets.
    pub(crate) has_frames: bool,
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
        let pairs: Vec<FaultKind> = kinds.iter().copied().filter(|kind| kind.combines()).collect();
        let kind = if has_second { random.pick(&pairs) } else { kind };
        let others: Vec<FaultKind> = pairs.into_iter().filter(|&other| other != kind).collect();
        let second = random.pick(&others);
        let workload = if is_healthy { healthy } else { kind.workload() };
        let world = World::draw(transport, (seed, number), workload, direction);
        let mut strengths = DrawRandom::new(seed, number, "strength");
        let mut faults = Vec::new();
        if !is_healthy {
            let fault = Fault::draw(kind, &world, &mut strengths);
            let rests = fault.rests();
            faults.push(fault);
            faults.extend(rests);
            if has_second {
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

    /// Whether the receiver of QUIC grants all data at once: then it cannot limit the sender. A real stack's window is that
    /// of its log; of a log without it, as quinn's, that of its model.
    fn has_ample_window(&self, engine: &Engine, capture: &RunCapture) -> bool {
        let small = self.faults.iter().find(|one| one.kind() == FaultKind::SmallReceiveBuffer);
        let of_profile = |name: &str| {
            QuicProfile::named(name)
                .map(|profile| profile.windows.connection.min(profile.windows.stream))
        };
        let granted = match engine.stack() {
            Some(stack) => capture.granted().or_else(|| of_profile(stack)),
            None => small.map(Fault::strength).or_else(|| of_profile(self.world.receiver)),
        };
        self.world.transport == Transport::Quic
            && granted.unwrap_or(0) >= self.world.size * self.world.count
    }

    /// Whether the log or the capture of this case can show a fault.
    fn shows(&self, fault: &Fault, has_ample_window: bool) -> bool {
        let is_download = self.world.direction == DataDirection::Download;
        let is_unseen = is_download && fault.kind() == FaultKind::SlowReader && has_ample_window;
        !is_unseen && fault.kind().is_seen_at(self.settings.point, self.world.direction)
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

    /// The scenario without any fault.
    fn healthy_draft(&self) -> Draft {
        let mut draft = self.world.draft();
        for fault in &self.faults {
            fault.apply_healthy(&self.world, &mut draft);
        }
        draft
    }

    /// The scenario with all faults but this one.
    pub(crate) fn draft_without_fault(&self, fault: &Fault) -> Draft {
        self.draft_without(self.faults.iter().position(|one| one == fault))
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
            Transport::Quic => {
                engine.logged(&text, self.world.direction == DataDirection::Download)?
            }
        };
        let mut costs = Vec::new();
        for (index, fault) in self.faults.iter().enumerate() {
            let without = engine.time(&self.draft_without(Some(index)).text())?;
            let cost = cost(with, without);
            if cost.is_none_or(|cost| matters(cost, without)) {
                costs.push(FaultCost { fault: fault.clone(), cost });
            }
        }
        // Where each hides the other, neither costs anything alone: then what they cost together is that of either.
        if costs.is_empty() && self.faults.len() > 1 {
            let without = engine.time(&self.healthy_draft().text())?;
            let cost = cost(with, without);
            if cost.is_none_or(|cost| matters(cost, without)) {
                costs.extend(
                    self.faults.iter().map(|fault| FaultCost { fault: fault.clone(), cost }),
                );
            }
        }
        costs.sort_by_key(|one| core::cmp::Reverse(one.cost.unwrap_or(Duration::MAX)));
        // Where the capture cannot show a fault, the truth is the transfer without it.
        let has_ample_window = self.has_ample_window(engine, &capture);
        let is_shown = |fault: &Fault| self.shows(fault, has_ample_window);
        let hidden = costs.iter().any(|one| !is_shown(&one.fault));
        costs.retain(|one| is_shown(&one.fault));
        let own = match (with.finished, hidden) {
            (false, _) => Vec::new(),
            (true, false) => own::costs(&draft, &self.world, (with, costs.is_empty()), engine)?,
            (true, true) => {
                let mut shown = self.clone();
                shown.faults.retain(is_shown);
                let draft = shown.draft_without(None);
                let without = engine.time(&draft.text())?;
                own::costs(&draft, &self.world, (without, costs.is_empty()), engine)?
            }
        };
        let allowed = own.iter().filter(|one| is_alike(one.cost, costs.first()));
        let own = allowed.flat_map(|one| one.codes.iter().map(|&code| (code, one.cost)));
        let own: Vec<_> = own.collect();
        let allowed = own.iter().map(|one| one.0).collect();
        let cures = match with.finished {
            true => cures::apply(self, &draft, &costs, engine)?,
            false => Vec::new(),
        };
        let truth = Truth {
            duration: with.duration,
            finished: with.finished,
            costs,
            hidden,
            allowed,
            own,
            cures,
        };
        let text = engine.text(&text).into_owned();
        let has_frames = capture.has_frames();
        Ok(RunCase { case: self.clone(), truth, text, capture, has_ample_window, has_frames })
    }
}

/// What a fault cost; `None` if the transfer failed with it alone.
pub(crate) fn cost(with: TransferTime, without: TransferTime) -> Option<Duration> {
    let failed = !with.finished && without.finished;
    (!failed).then(|| with.duration.saturating_sub(without.duration))
}

/// Does this cost as much as the costliest fault, or is there none? Alike: within a third.
fn is_alike(cost: Duration, first: Option<&FaultCost>) -> bool {
    first.is_none_or(|first| first.cost.is_some_and(|first| cost >= first / 3 * 2))
}

/// Is this cost one at all?
pub(crate) fn matters(cost: Duration, without: TransferTime) -> bool {
    cost >= LEAST_COST
        && u128::from(cost.as_nanos()) * 100
            >= u128::from(without.duration.as_nanos()) * u128::from(LEAST_PERCENT)
}

impl Truth {
    /// The true cost of what a right verdict with this code names: a fault, or else what the transfer costs by itself.
    /// `codes`: those of a fault.
    pub fn cost_of(
        &self,
        code: &str,
        codes: impl Fn(FaultKind) -> &'static [&'static str],
    ) -> Option<Duration> {
        let causes = self.causes();
        let is_named = |one: &&FaultCost| {
            let kind = one.fault.kind();
            causes.contains(&kind) && codes(kind).contains(&code)
        };
        match self.costs.iter().find(is_named) {
            Some(fault) => fault.cost,
            None => self.own.iter().find(|one| one.0 == code).map(|one| one.1),
        }
    }

    /// The kinds of faults of which naming one is right: the costliest, and a second that costs alike.
    pub fn causes(&self) -> Vec<FaultKind> {
        let Some(first) = self.costs.first() else { return Vec::new() };
        let alike = |one: &&FaultCost| {
            // The rests cost more than what follows them, and may be meant.
            let follows_rests = one.fault.kind() == FaultKind::IdleRestart;
            follows_rests || one.cost.is_none_or(|cost| is_alike(cost, Some(first)))
        };
        self.costs.iter().filter(alike).map(|one| one.fault.kind()).collect()
    }
}
