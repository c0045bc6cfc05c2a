//! What if: simulates a captured transfer with its own sender, then with others.
//!
//! [`fit`] derives a scenario from the capture; [`WhatIf::of`] first simulates the senders that its
//! SYN allows and ranks them: first those that match the recorded windows ([`fit::guesses`]), then
//! by how well they match the recorded delivery curve. If the best one matches, it simulates the
//! requested alternatives.

mod cures;
mod curve;
mod page;
mod quic;
mod text;

use fit::{FitError, FittedTransfer, LossPattern, PathFit, PeerSystem};
use serde::Serialize;
use sim::RunError;
use sim::scenario::{Scenario, TapPoint, TapSpec};
use tcp::profile::Family;

use ingest::inputs::CapturedConnection;
use runner::stop::{self, NEVER, StopFlag};
use scenario::{Overrides, ScenarioError, load};

pub use curve::{DeliveryCurve, TransferProgress};
use curve::{misfit, windows_match};
pub use quic::quic_scenario_of;

/// Version of the JSON format; a new field does not change it, a changed or removed one does.
pub const FORMAT: u32 = 1;

/// Sender events to keep of a capture, to match its windows.
pub use fit::MAX_EVENTS;

/// Runs of an alternative with random losses.
const SEEDS: u64 = 10;
/// Largest misfit of the best sender that allows predictions.
const MAX_MISFIT: f64 = 0.10;

/// The requested alternatives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhatIfRequest {
    /// Senders to simulate: `PROFILE` or `PROFILE/CC`.
    pub compare: Vec<String>,
    /// Changes of the fitted scenario, `KEY=VALUE`, for one more alternative.
    pub set: Vec<String>,
    /// Profile of that alternative; the best fitting one by default.
    pub sender: Option<String>,
}

/// Why there is no result.
#[derive(Debug)]
pub enum WhatIfError {
    /// The capture has too little information.
    Fit(FitError),
    /// A change, or the name of a sender, is invalid.
    Scenario(Vec<ScenarioError>),
    /// The fitted scenario could not be run to its end.
    Run(RunError),
    /// It could not be run with real kernels.
    Kernel(String),
}

impl core::fmt::Display for WhatIfError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Fit(error) => error.fmt(f),
            Self::Scenario(mistakes) => {
                let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            Self::Run(error) => error.fmt(f),
            Self::Kernel(error) => f.write_str(error),
        }
    }
}

impl core::error::Error for WhatIfError {}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatIf {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Ackclock.
    pub ackclock: &'static str,
    /// Fitted values with their evidence.
    pub fitted: Vec<FittedValue>,
    /// The recorded transfer.
    pub recorded: TransferResult,
    /// Its progress.
    #[serde(skip)]
    pub recorded_progress: TransferProgress,
    /// Senders that its SYN allows: first those that match its windows, the best first.
    pub senders: Vec<Candidate>,
    /// Whether the best one matches the recorded transfer closely enough to predict others.
    pub licensed: bool,
    /// The requested alternatives.
    pub alternatives: Vec<Alternative>,
}

/// A fitted value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedValue {
    /// Name of the value.
    pub what: &'static str,
    /// The value with its evidence.
    pub why: String,
}

/// Duration and goodput of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TransferResult {
    /// Bytes delivered.
    pub bytes: u64,
    /// From the handshake to the delivery of the last byte, in seconds.
    pub time_s: f64,
    /// Goodput, in bit/s.
    pub goodput_bps: f64,
}

/// A sender that may have been the recorded one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Profile and congestion control.
    pub sender: String,
    /// It matches the recorded windows.
    #[serde(rename = "told_by_windows")]
    pub shown_by_windows: bool,
    /// Its simulated transfer.
    pub course: TransferResult,
    /// The progress of that transfer.
    #[serde(skip)]
    pub progress: TransferProgress,
    /// The same with real kernels as its Linux hosts, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<TransferResult>,
    /// Misfit to the recorded transfer: the mean difference of the times at which the same bytes
    /// were delivered, as a fraction of the whole time.
    pub misfit: f64,
}

/// Another sender, or another path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Profile and congestion control, and the changes.
    pub what: String,
    /// Number of runs: several with random losses.
    pub runs: u64,
    /// The median run.
    pub course: TransferResult,
    /// The progress of that run.
    #[serde(skip)]
    pub progress: TransferProgress,
    /// That run with real kernels as its Linux hosts, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<TransferResult>,
    /// Shortest and longest time, in seconds.
    pub spread_s: (f64, f64),
    /// Time of the median run relative to the best fitting sender's.
    pub time_ratio: f64,
}

/// Runs a scenario with real kernels as its Linux hosts.
pub type KernelRunner<'a> = dyn Fn(&Scenario, &mut DeliveryCurve) -> Result<(), String> + 'a;

/// The result of a run, and its progress.
type SimulatedTransfer = (TransferResult, TransferProgress);

/// The scenario fitted to a capture, with the sender that its SYN names, as a file.
///
/// # Errors
/// [`FitError`] if the capture lacks information.
pub fn scenario_of(stream: &CapturedConnection) -> Result<String, FitError> {
    let fitted = PathFit::of(&stream.analysis())?;
    let reported = reported(stream);
    let senders = senders(fitted.sender);
    let (profile, cc) =
        *senders.iter().find(|sender| reported.contains(sender)).unwrap_or(&senders[0]);
    Ok(fitted.scenario(profile, cc, LossPattern::Same, 1))
}

/// Senders that match the recorded windows; empty if no known sender does, or if the sender events
/// were not kept.
fn reported(stream: &CapturedConnection) -> Vec<(&'static str, Option<&'static str>)> {
    let guesses = fit::guesses(&stream.analysis());
    let Some(best) = guesses.first().filter(|best| best.fits()) else { return Vec::new() };
    let reported = guesses.iter().filter(|guess| guess.equals(best));
    reported.map(|guess| (guess.profile, Some(guess.cc))).collect()
}

impl WhatIf {
    /// Simulates what `question` requests for a connection whose packets were kept.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn of(stream: &CapturedConnection, question: &WhatIfRequest) -> Result<Self, WhatIfError> {
        Self::until(stream, question, &NEVER, None)
    }

    /// Does the same as [`of`](Self::of); ends its runs once `stop` is set. `kernels` runs a scenario with real
    /// kernels: every sender of Linux is then run with them too, as a check of the answer.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn until(
        stream: &CapturedConnection,
        question: &WhatIfRequest,
        stop: StopFlag<'_>,
        kernels: Option<&KernelRunner<'_>>,
    ) -> Result<Self, WhatIfError> {
        let fitted = PathFit::of(&stream.analysis()).map_err(WhatIfError::Fit)?;
        let reported = reported(stream);
        let senders = senders(fitted.sender).iter().map(|&(profile, cc)| PossibleSender {
            profile,
            cc,
            shown_by_windows: Some(reported.contains(&(profile, cc))),
        });
        let (mut answer, best) = Self::candidates(&fitted, senders.collect(), stop, kernels)?;
        answer.alternatives = requested(&fitted, question, &best, stop, kernels)?;
        Ok(answer)
    }

    /// Simulates the senders that may have been the recorded one, and ranks them.
    fn candidates<'a>(
        fitted: &dyn FittedTransfer,
        senders: Vec<PossibleSender<'a>>,
        stop: StopFlag<'_>,
        kernels: Option<&KernelRunner<'_>>,
    ) -> Result<(Self, BestSender<'a>), WhatIfError> {
        let mut candidates = Vec::new();
        for PossibleSender { profile, cc, shown_by_windows } in senders {
            let text = fitted.scenario(profile, cc, LossPattern::Same, 1);
            let (course, seen) = simulate(&text, &[], fitted, stop)?;
            let kernel = with_kernels(&text, &[], fitted, kernels)?;
            let misfit = misfit(fitted.delivered(), &seen.delivered, fitted.bytes(), fitted.time());
            let shown_by_windows = shown_by_windows
                .unwrap_or_else(|| windows_match(fitted.windows(), &seen.windows, fitted.bytes()));
            let sender = called(profile, cc);
            candidates.push((
                Candidate { sender, shown_by_windows, course, progress: seen, kernel, misfit },
                profile,
                cc,
            ));
        }
        // A stack that is not the default (FreeBSD's RACK) is preferred only if no default stack
        // explains the recording.
        let usual = |one: &Candidate| one.misfit <= MAX_MISFIT && !one.sender.contains("-rack-");
        candidates.sort_by(|(a, ..), (b, ..)| {
            let reported = b.shown_by_windows.cmp(&a.shown_by_windows);
            reported.then(usual(b).cmp(&usual(a))).then(a.misfit.total_cmp(&b.misfit))
        });
        let (candidate, profile, cc) = candidates[0].clone();
        let answer = Self {
            format: FORMAT,
            ackclock: env!("CARGO_PKG_VERSION"),
            fitted: fitted
                .bases()
                .iter()
                .map(|basis| FittedValue { what: basis.what, why: basis.why.clone() })
                .collect(),
            recorded: course(fitted.bytes(), fitted.time()),
            recorded_progress: TransferProgress {
                delivered: fitted.delivered().to_vec(),
                windows: fitted.windows().to_vec(),
            },
            licensed: candidate.misfit <= MAX_MISFIT,
            senders: candidates.into_iter().map(|(candidate, ..)| candidate).collect(),
            alternatives: Vec::new(),
        };
        Ok((answer, BestSender { profile, cc, time_s: candidate.course.time_s }))
    }

    /// As JSON, pretty-printed, with a newline at the end.
    pub fn to_json(&self) -> String {
        // It has no maps with keys other than strings and no fallible serializer.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// Senders of a system.
fn senders(system: PeerSystem) -> &'static [(&'static str, Option<&'static str>)] {
    const ALL: &[(&str, Option<&str>)] = &[
        ("linux-6.18", Some("cubic")),
        ("linux-6.18", Some("reno")),
        ("linux-6.18", Some("bbr")),
        ("freebsd-14.3", Some("cubic")),
        ("freebsd-13.2", Some("newreno")),
        ("freebsd-rack-main", Some("cubic")),
    ];
    match system {
        PeerSystem::Linux => &ALL[..3],
        PeerSystem::FreeBsd => &ALL[3..],
        PeerSystem::Unknown => ALL,
    }
}

/// A sender that may have been the recorded one.
struct PossibleSender<'a> {
    profile: &'a str,
    cc: Option<&'a str>,
    /// Whether it matches the recorded windows; `None` if its simulation shows that.
    shown_by_windows: Option<bool>,
}

/// The sender that represents the recorded one.
struct BestSender<'a> {
    profile: &'a str,
    cc: Option<&'a str>,
    /// Its simulated time.
    time_s: f64,
}

/// A profile and its congestion control, if named.
fn split(name: &str) -> (&str, Option<&str>) {
    name.split_once('/').map_or((name, None), |(profile, cc)| (profile, Some(cc)))
}

/// Simulates the alternatives that `question` names.
fn requested(
    fitted: &dyn FittedTransfer,
    question: &WhatIfRequest,
    best: &BestSender<'_>,
    stop: StopFlag<'_>,
    kernels: Option<&KernelRunner<'_>>,
) -> Result<Vec<Alternative>, WhatIfError> {
    let mut alternatives = Vec::new();
    for name in &question.compare {
        alternatives.push(alternative(fitted, split(name), &[], best, stop, kernels)?);
    }
    if !question.set.is_empty() || question.sender.is_some() {
        let sender = question.sender.as_deref().map_or((best.profile, best.cc), split);
        alternatives.push(alternative(fitted, sender, &question.set, best, stop, kernels)?);
    }
    Ok(alternatives)
}

fn called(profile: &str, cc: Option<&str>) -> String {
    cc.map_or_else(|| profile.to_owned(), |cc| format!("{profile}/{cc}"))
}

fn alternative(
    fitted: &dyn FittedTransfer,
    (profile, cc): (&str, Option<&str>),
    set: &[String],
    best: &BestSender<'_>,
    stop: StopFlag<'_>,
    kernels: Option<&KernelRunner<'_>>,
) -> Result<Alternative, WhatIfError> {
    let by_chance = fitted.is_random();
    let (chance, seeds) =
        if by_chance { (LossPattern::Random, SEEDS) } else { (LossPattern::Same, 1) };
    let mut courses = Vec::new();
    for seed in 1..=seeds {
        let text = fitted.scenario(profile, cc, chance, seed);
        courses.push((simulate(&text, set, fitted, stop)?, seed));
    }
    courses.sort_by(|((a, _), _), ((b, _), _)| a.time_s.total_cmp(&b.time_s));
    let spread_s = (courses[0].0.0.time_s, courses[courses.len() - 1].0.0.time_s);
    let ((middle, progress), seed) = courses.swap_remove(courses.len() / 2);
    let text = fitted.scenario(profile, cc, chance, seed);
    let kernel = with_kernels(&text, set, fitted, kernels)?;
    let what = match set {
        [] => called(profile, cc),
        set => format!("{} with {}", called(profile, cc), set.join(", ")),
    };
    Ok(Alternative {
        what,
        runs: seeds,
        course: middle,
        progress,
        kernel,
        spread_s,
        time_ratio: middle.time_s / best.time_s,
    })
}

/// Simulates a fitted scenario; times are those at the capture point.
fn simulate(
    text: &str,
    set: &[String],
    fitted: &dyn FittedTransfer,
    stop: StopFlag<'_>,
) -> Result<SimulatedTransfer, WhatIfError> {
    let overrides = Overrides { set: set.to_vec(), ..Overrides::default() };
    let loaded = load(text, "the fitted scenario", &overrides).map_err(WhatIfError::Scenario)?;
    let mut seen = DeliveryCurve::new(fitted);
    stop::run_shared(&loaded.scenario, &mut seen, stop).map_err(WhatIfError::Run)?;
    Ok(seen.result(fitted))
}

/// Runs a fitted scenario with real kernels as its Linux hosts; `None` without `kernels`, or if its sender
/// is not of Linux.
fn with_kernels(
    text: &str,
    set: &[String],
    fitted: &dyn FittedTransfer,
    kernels: Option<&KernelRunner<'_>>,
) -> Result<Option<TransferResult>, WhatIfError> {
    let Some(run) = kernels else { return Ok(None) };
    let overrides = Overrides { set: set.to_vec(), ..Overrides::default() };
    let loaded = load(text, "the fitted scenario", &overrides).map_err(WhatIfError::Scenario)?;
    let linux = loaded.scenario.hosts.first().and_then(|host| host.stack.tcp());
    if linux.is_none_or(|tcp| tcp.profile.family != Family::Linux) {
        return Ok(None);
    }
    let mut scenario = loaded.scenario;
    scenario.taps = vec![TapSpec { host: 0, place: TapPoint::Stack }];
    let mut seen = DeliveryCurve::new(fitted);
    run(&scenario, &mut seen).map_err(WhatIfError::Kernel)?;
    Ok(Some(seen.result(fitted).0))
}

fn course(bytes: u64, ns: u64) -> TransferResult {
    let time_s = ns.max(1) as f64 / 1e9;
    TransferResult { bytes, time_s, goodput_bps: bytes as f64 * 8.0 / time_s }
}
