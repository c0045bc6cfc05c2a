//! What if: simulates a captured transfer with its own sender, then with others.
//!
//! [`fit`] derives a scenario from the capture; [`WhatIf::of`] first simulates the senders that its
//! SYN allows and ranks them by how well they match the recorded delivery curve; among those that do, the ones that match
//! the recorded windows ([`fit::guesses`]) come first. If the best one matches, it simulates the
//! requested alternatives.

mod alternatives;
mod answer;
mod cures;
mod curve;
mod hypotheses;
mod page;
mod prediction;
mod quic;
mod reproduction;
mod send_trace;
mod settings;
mod simulate;
mod text;
mod tried;
mod tried_quic;
mod worst;

use core::cmp::Ordering;

use fit::{FitError, FittedTransfer, LossPattern, PathFit};
use serde::Serialize;
use sim::RunError;
use sim::scenario::Scenario;
use tcp::profile::{Family, TcpProfile};

use ingest::diagnosis::Prediction;
use ingest::inputs::CapturedConnection;
use runner::workers::Workers;
use scenario::ScenarioError;

use alternatives::{FittedPath, called};
use reproduction::{Reproduction, reported, reproduce, senders};
use simulate::{course, simulate, with_kernels};

pub use curve::{DeliveryCurve, TransferProgress};
use curve::{misfit, windows_match};
pub use quic::quic_scenario_of;
pub use tried::{TriedCures, TriedFinding, try_cures};
pub use tried_quic::try_quic_cures;
pub use worst::{MOST_CAPTURED, MOST_PACKETS, try_worst};

/// Version of the JSON format; a new field does not change it, a changed or removed one does.
pub const FORMAT: u32 = 1;

/// Sender events to keep of a capture, to match its windows.
pub use fit::MAX_EVENTS;

/// Largest misfit of the best sender that allows predictions.
const MAX_MISFIT: f64 = 0.10;
/// Misfits that differ by no more do not distinguish two senders.
const AS_NEAR: f64 = 0.02;

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
    /// The value of a change is not one that it has.
    Value {
        /// The change.
        setting: String,
        /// The values that it has.
        expected: &'static str,
    },
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
            Self::Value { setting, expected } => {
                write!(f, "--set {setting}: this value is none of it (expected {expected})")
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
    /// What the time is worth.
    #[serde(flatten)]
    pub prediction: Prediction,
}

/// Runs a scenario with real kernels as its Linux hosts.
pub type KernelRunner<'a> = dyn Fn(&Scenario, &mut DeliveryCurve) -> Result<(), String> + Sync + 'a;

/// The result of a run, and its progress.
type SimulatedTransfer = (TransferResult, TransferProgress);

/// The connection of a capture with this number, or the one with most bytes, and the others at its capture point.
pub fn selected(
    mut streams: Vec<CapturedConnection>,
    flow: Option<u32>,
) -> Option<(CapturedConnection, Vec<CapturedConnection>)> {
    let bytes = |stream: &CapturedConnection| stream.analysis().main().map_or(0, |flow| flow.bytes);
    let index = match flow {
        Some(number) => streams.iter().position(|one| one.stream() == number),
        None => (0..streams.len()).max_by_key(|&index| bytes(&streams[index])),
    }?;
    let one = streams.remove(index);
    streams.retain(|other| (other.file, other.interface) == (one.file, one.interface));
    Some((one, streams))
}

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

impl WhatIf {
    /// Simulates what `question` requests for a connection whose packets were kept.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn of(stream: &CapturedConnection, question: &WhatIfRequest) -> Result<Self, WhatIfError> {
        Self::beside(stream, &[], question)
    }

    /// Does the same as [`of`](Self::of), beside those of `others`, further connections of the capture, that share its
    /// path.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn beside(
        stream: &CapturedConnection,
        others: &[&CapturedConnection],
        question: &WhatIfRequest,
    ) -> Result<Self, WhatIfError> {
        Self::on(stream, others, question, &Workers::one(), None)
    }

    /// Does the same as [`beside`](Self::beside) on the threads of `workers`, and ends with them; the answer is the same
    /// for any number of threads. `kernels` runs a scenario with real kernels: every sender of Linux is then run with
    /// them too, as a check of the answer.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn on(
        stream: &CapturedConnection,
        others: &[&CapturedConnection],
        question: &WhatIfRequest,
        workers: &Workers<'_>,
        kernels: Option<&KernelRunner<'_>>,
    ) -> Result<Self, WhatIfError> {
        let Reproduction { fitted, mut answer, best } =
            reproduce(stream, others, workers, kernels)?;
        let senders = &answer.senders;
        let path = FittedPath { fitted: &fitted, best: &best, senders, workers, kernels };
        answer.alternatives = path.requested(question)?;
        Ok(answer)
    }

    /// Simulates the senders that may have been the recorded one, and ranks them.
    fn candidates<'a>(
        fitted: &dyn FittedTransfer,
        senders: &[PossibleSender<'a>],
        workers: &Workers<'_>,
        kernels: Option<&KernelRunner<'_>>,
    ) -> Result<(Self, BestSender<'a>), WhatIfError> {
        let candidate = |sender: &PossibleSender<'a>| {
            let PossibleSender { profile, cc, shown_by_windows } = *sender;
            let text = fitted.scenario(profile, cc, LossPattern::Same, 1);
            let (course, seen) = simulate(&text, &[], fitted, workers.stop())?;
            let kernel = with_kernels(&text, &[], fitted, kernels)?;
            let misfit = misfit(fitted.delivered(), &seen.delivered, fitted.bytes(), fitted.time());
            let shown_by_windows = shown_by_windows
                .unwrap_or_else(|| windows_match(fitted.windows(), &seen.windows, fitted.bytes()));
            let sender = called((profile, cc));
            let candidate =
                Candidate { sender, shown_by_windows, course, progress: seen, kernel, misfit };
            Ok((candidate, profile, cc))
        };
        let mut candidates = workers.map(senders, candidate)?;
        // A stack that is not the default (FreeBSD's RACK) is preferred only if no default stack
        // explains the recording.
        let usual = |one: &Candidate| one.misfit <= MAX_MISFIT && !one.sender.contains("-rack-");
        let least = candidates.iter().map(|one| one.0.misfit).fold(f64::INFINITY, f64::min);
        // Of those that are about as near, the most usual is first.
        let near = |one: &Candidate| one.misfit <= least + AS_NEAR;
        // The windows decide among those whose times are as recorded, if any are.
        let is_shown = |one: &Candidate| {
            one.shown_by_windows
                && (one.misfit <= least.max(MAX_MISFIT / 2.0) || least > MAX_MISFIT)
        };
        candidates.sort_by(|(a, ..), (b, ..)| {
            let reported = is_shown(b).cmp(&is_shown(a));
            let order = reported.then(usual(b).cmp(&usual(a))).then(near(b).cmp(&near(a)));
            order.then_with(|| match near(a) {
                true => Ordering::Equal,
                false => a.misfit.total_cmp(&b.misfit),
            })
        });
        let (candidate, profile, cc) = candidates[0].clone();
        let mut answer = Self {
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
            licensed: false,
            senders: candidates.into_iter().map(|(candidate, ..)| candidate).collect(),
            alternatives: Vec::new(),
        };
        let Candidate { course, misfit, .. } = candidate;
        let end_error = (course.time_s / answer.recorded.time_s - 1.0).abs();
        let error = misfit.max(end_error);
        answer.licensed = error <= MAX_MISFIT;
        Ok((answer, BestSender { profile, cc, time_s: course.time_s, misfit, error }))
    }

    /// As JSON, pretty-printed, with a newline at the end.
    pub fn to_json(&self) -> String {
        // It has no maps with keys other than strings and no fallible serializer.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
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
    /// Its misfit to the recorded transfer, and the larger of it and the error of its time.
    misfit: f64,
    /// See `misfit`.
    error: f64,
}

impl BestSender<'_> {
    /// Its system.
    fn family(&self) -> Family {
        TcpProfile::named(self.profile).map_or(Family::Rfc, |profile| profile.family)
    }
}

/// A profile and its congestion control, if named.
fn split(name: &str) -> (&str, Option<&str>) {
    name.split_once('/').map_or((name, None), |(profile, cc)| (profile, Some(cc)))
}
