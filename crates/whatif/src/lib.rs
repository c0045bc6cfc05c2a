//! What if: simulates a captured transfer with its own sender, then with others.
//!
//! [`fit`] derives a scenario from the capture; [`WhatIf::of`] first simulates the senders that its
//! SYN allows and ranks them: first those that match the recorded windows ([`fit::guesses`]), then
//! by how well they match the recorded delivery curve. If the best one matches, it simulates the
//! requested alternatives.

mod text;

use diagnose::capture_point::CapturePoint;
use fit::{FitError, LossPattern, PathFit, PeerSystem};
use packet::{Flags, Segment};
use record::{Event, EventSource, Recorder, Sender, SenderState};
use serde::Serialize;
use sim::scenario::{Scenario, TapPoint, TapSpec};
use sim::{Observer, RunError};
use tcp::profile::Family;
use units::{Instant, Offset, SeqNum};

use ingest::inputs::CapturedConnection;
use runner::stop::{self, NEVER, StopFlag};
use scenario::{Overrides, ScenarioError, load};

/// Version of the JSON format; a new field does not change it, a changed or removed one does.
pub const FORMAT: u32 = 1;

/// Sender events to keep of a capture, to match its windows.
pub use fit::MAX_EVENTS;

/// Runs of an alternative with random losses.
const SEEDS: u64 = 10;
/// Stream offsets at which two delivery curves are compared.
const CURVE_POINTS: u64 = 50;
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

/// The result of a run, and its bytes by time in ns.
type SimulatedTransfer = (TransferResult, Vec<(u64, u64)>);

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
        let recorded = course(fitted.bytes, fitted.time);
        let reported = reported(stream);
        let mut candidates = Vec::new();
        for &(profile, cc) in senders(fitted.sender) {
            let text = fitted.scenario(profile, cc, LossPattern::Same, 1);
            let (course, curve) = simulate(&text, &[], &fitted, stop)?;
            let kernel = with_kernels(&text, &[], &fitted, kernels)?;
            let misfit = misfit(&fitted.delivered, &curve, fitted.bytes, fitted.time);
            let shown_by_windows = reported.contains(&(profile, cc));
            candidates.push((
                Candidate { sender: called(profile, cc), shown_by_windows, course, kernel, misfit },
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
        let (best, profile, cc) = candidates[0].clone();
        let mut alternatives = Vec::new();
        for name in &question.compare {
            let (profile, cc) = match name.split_once('/') {
                Some((profile, cc)) => (profile, Some(cc)),
                None => (name.as_str(), None),
            };
            alternatives.push(alternative(&fitted, (profile, cc), &[], &best, stop, kernels)?);
        }
        if !question.set.is_empty() || question.sender.is_some() {
            let (profile, cc) = match question.sender.as_deref() {
                Some(name) => name.split_once('/').map_or((name, None), |(p, cc)| (p, Some(cc))),
                None => (profile, cc),
            };
            let set = &question.set;
            alternatives.push(alternative(&fitted, (profile, cc), set, &best, stop, kernels)?);
        }
        Ok(Self {
            format: FORMAT,
            ackclock: env!("CARGO_PKG_VERSION"),
            fitted: fitted
                .bases
                .iter()
                .map(|basis| FittedValue { what: basis.what, why: basis.why.clone() })
                .collect(),
            recorded,
            licensed: best.misfit <= MAX_MISFIT,
            senders: candidates.into_iter().map(|(candidate, ..)| candidate).collect(),
            alternatives,
        })
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

fn called(profile: &str, cc: Option<&str>) -> String {
    cc.map_or_else(|| profile.to_owned(), |cc| format!("{profile}/{cc}"))
}

fn alternative(
    fitted: &PathFit,
    (profile, cc): (&str, Option<&str>),
    set: &[String],
    best: &Candidate,
    stop: StopFlag<'_>,
    kernels: Option<&KernelRunner<'_>>,
) -> Result<Alternative, WhatIfError> {
    let by_chance = !fitted.losses.packets.is_empty();
    let (chance, seeds) =
        if by_chance { (LossPattern::Random, SEEDS) } else { (LossPattern::Same, 1) };
    let mut courses = Vec::new();
    for seed in 1..=seeds {
        let text = fitted.scenario(profile, cc, chance, seed);
        courses.push((simulate(&text, set, fitted, stop)?.0, seed));
    }
    courses.sort_by(|(a, _), (b, _)| a.time_s.total_cmp(&b.time_s));
    let (middle, seed) = courses[courses.len() / 2];
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
        kernel,
        spread_s: (courses[0].0.time_s, courses[courses.len() - 1].0.time_s),
        time_ratio: middle.time_s / best.course.time_s,
    })
}

/// Simulates a fitted scenario; times are those at the capture point.
fn simulate(
    text: &str,
    set: &[String],
    fitted: &PathFit,
    stop: StopFlag<'_>,
) -> Result<SimulatedTransfer, WhatIfError> {
    let overrides = Overrides { set: set.to_vec(), ..Overrides::default() };
    let loaded = load(text, "the fitted scenario", &overrides).map_err(WhatIfError::Scenario)?;
    let mut seen = DeliveryCurve { bytes: fitted.bytes, ..DeliveryCurve::default() };
    stop::run_shared(&loaded.scenario, &mut seen, stop).map_err(WhatIfError::Run)?;
    Ok(seen.result(fitted))
}

/// Runs a fitted scenario with real kernels as its Linux hosts; `None` without `kernels`, or if its sender
/// is not of Linux.
fn with_kernels(
    text: &str,
    set: &[String],
    fitted: &PathFit,
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
    let mut seen = DeliveryCurve { bytes: fitted.bytes, ..DeliveryCurve::default() };
    run(&scenario, &mut seen).map_err(WhatIfError::Kernel)?;
    Ok(Some(seen.result(fitted).0))
}

fn course(bytes: u64, ns: u64) -> TransferResult {
    let time_s = ns.max(1) as f64 / 1e9;
    TransferResult { bytes, time_s, goodput_bps: bytes as f64 * 8.0 / time_s }
}

/// Stream offset of point `number` of the delivery curve.
fn place(bytes: u64, number: u64) -> u64 {
    (u128::from(bytes) * u128::from(number) / u128::from(CURVE_POINTS)) as u64
}

/// Mean difference of the times at which the same bytes were delivered, as a fraction of the whole
/// time.
fn misfit(recorded: &[(u64, u64)], simulated: &[(u64, u64)], bytes: u64, time: u64) -> f64 {
    let when = |curve: &[(u64, u64)], place: u64| {
        let at = curve.partition_point(|point| point.1 < place);
        curve.get(at).or(curve.last()).map_or(0, |point| point.0)
    };
    let places = (1..=CURVE_POINTS).map(|number| place(bytes, number));
    let off: u64 = places.map(|place| when(recorded, place).abs_diff(when(simulated, place))).sum();
    off as f64 / CURVE_POINTS as f64 / time.max(1) as f64
}

/// Delivery curve at the sender: bytes acknowledged by time, at fifty offsets and at the
/// last ACK.
#[derive(Debug, Default)]
pub struct DeliveryCurve {
    /// Length of the stream in bytes.
    bytes: u64,
    /// Sequence number of the first byte: seen at the sender's stack, where the sender is a kernel.
    first: Option<SeqNum>,
    /// Number of points reached.
    reached: u64,
    curve: Vec<(u64, u64)>,
    last: Option<(u64, u64)>,
}

impl DeliveryCurve {
    /// `una` is acknowledged.
    fn on_acked(&mut self, at: Instant, una: u64) {
        let point = (at.as_nanos(), una);
        if self.last.is_some_and(|last| una <= last.1) {
            return;
        }
        self.last = Some(point);
        let before = self.reached;
        while self.reached < CURVE_POINTS && una >= place(self.bytes, self.reached + 1) {
            self.reached += 1;
        }
        if self.reached > before {
            self.curve.push(point);
        }
    }

    /// The transfer, its times those at the capture point.
    fn result(self, fitted: &PathFit) -> SimulatedTransfer {
        let mut curve = self.curve;
        curve.extend(self.last);
        if fitted.point == CapturePoint::Receiver {
            let way = fitted.rtt / 2;
            curve.iter_mut().for_each(|point| point.0 = point.0.saturating_sub(way));
        }
        let (time, bytes) = curve.last().copied().unwrap_or((1, 0));
        (course(bytes, time), curve)
    }
}

impl Recorder for DeliveryCurve {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        // The sender is the first host of the scenario.
        if let (0, Event::Acked { una, .. }) = (who.host.0, event) {
            self.on_acked(at, una.0);
        }
    }

    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        _: &impl Sender,
    ) {
        self.record(at, who, event(), None);
    }
}

impl Observer for DeliveryCurve {
    /// Only runs with kernels have a tap, at the sender's stack.
    fn tap(&mut self, at: Instant, _: usize, outbound: bool, segment: &Segment) {
        if outbound {
            if segment.flags.has(Flags::SYN) {
                self.first = Some(SeqNum(segment.seq.0.wrapping_add(1)));
            }
        } else if let Some(first) = self.first
            && segment.flags.has(Flags::ACK)
        {
            let newest = Offset(self.last.map_or(0, |last| last.1));
            if let Some(una) = segment.ack.near(first, newest) {
                // The FIN has a number too.
                self.on_acked(at, una.0.min(self.bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_misfit_is_the_difference_of_times() {
        let recorded = [(0, 0), (1_000, 100)];
        assert!(misfit(&recorded, &recorded, 100, 1_000) < 1e-9);
        let later = [(0, 0), (1_100, 100)];
        assert!((misfit(&recorded, &later, 100, 1_000) - 0.1).abs() < 1e-9);
    }
}
