//! What if: a transfer seen in a capture, run again with its own sender, then with others.
//!
//! [`fit`] makes a scenario of the capture; [`WhatIf::of`] first runs the senders that its SYN
//! allows and ranks them (the licence to go on): those first that the recorded windows tell
//! ([`fit::guesses`]), then by how well they follow the recorded course. Then what was asked for.

mod text;

use diagnose::place::CapturePoint;
use fit::{Chance, FitError, Fitted, System};
use record::{Event, Recorder, SenderState, Who};
use serde::Serialize;
use sim::{Observer, RunError};
use units::Instant;

use ingest::inputs::Stream;
use runner::stop::{self, NEVER, Stop};
use scenario::{Overrides, ScenarioError, load};

/// Version of the JSON form; a new field does not change it, a changed or missing one does.
pub const FORMAT: u32 = 1;

/// Turns of the sender to keep of a capture, by which its windows tell it.
pub use fit::TURNS;

/// Runs of an alternative whose losses are drawn by chance.
const SEEDS: u64 = 10;
/// Places of the stream at which two courses are compared.
const PLACES: u64 = 50;
/// A course that is further off than this is no licence to predict.
const LICENCE: f64 = 0.10;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// Senders to be tried: `PROFILE` or `PROFILE/CC`.
    pub compare: Vec<String>,
    /// Changes of the fitted scenario, `KEY=VALUE`, for one more alternative.
    pub set: Vec<String>,
    /// Profile of that alternative; the one that fits best by default.
    pub sender: Option<String>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum WhatIfError {
    /// The capture does not say enough.
    Fit(FitError),
    /// A change, or a name of a sender, is wrong.
    Scenario(Vec<ScenarioError>),
    /// The fitted scenario could not be run to its end.
    Run(RunError),
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
        }
    }
}

impl core::error::Error for WhatIfError {}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatIf {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Ackclock.
    pub ackclock: &'static str,
    /// Estimates with what they rest on.
    pub fitted: Vec<Estimate>,
    /// What the capture shows.
    pub recorded: Course,
    /// Senders that its SYN allows: those first that its windows tell, the best first.
    pub senders: Vec<Candidate>,
    /// Does the best one follow the recorded course closely enough to predict others?
    pub licensed: bool,
    /// What was asked for.
    pub alternatives: Vec<Alternative>,
}

/// An estimate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// What.
    pub what: &'static str,
    /// The figure with what it rests on.
    pub why: String,
}

/// How long it took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Course {
    /// Bytes delivered.
    pub bytes: u64,
    /// From the opening to the delivery of the last, in seconds.
    pub time_s: f64,
    /// One over the other, in bit/s.
    pub goodput_bps: f64,
}

/// A sender that may have been the recorded one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Profile and congestion control.
    pub sender: String,
    /// The recorded windows are those of this one.
    pub told_by_windows: bool,
    /// Its course.
    pub course: Course,
    /// How far its course lies from the recorded one: mean difference of the times at which the
    /// same bytes were delivered, as a share of the whole time.
    pub misfit: f64,
}

/// Another sender, or another path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Profile and congestion control, and what was changed.
    pub what: String,
    /// Runs it rests on: several where losses are drawn by chance.
    pub runs: u64,
    /// The middle one.
    pub course: Course,
    /// Shortest and longest time, in seconds.
    pub spread_s: (f64, f64),
    /// Time of the middle one against the best fitting sender's.
    pub time_ratio: f64,
}

/// What a run gave: its course, and bytes by time in ns.
type Ran = (Course, Vec<(u64, u64)>);

/// The scenario of a capture with the sender that its SYN names, as a file.
///
/// # Errors
/// What the capture lacks.
pub fn scenario_of(stream: &Stream) -> Result<String, FitError> {
    let fitted = Fitted::of(&stream.analysis)?;
    let told = told(stream);
    let senders = senders(fitted.sender);
    let (profile, cc) = *senders.iter().find(|sender| told.contains(sender)).unwrap_or(&senders[0]);
    Ok(fitted.scenario(profile, cc, Chance::Same, 1))
}

/// Senders with the windows that were recorded; none if no sender known has them, or if the turns of
/// the sender were not kept.
fn told(stream: &Stream) -> Vec<(&'static str, Option<&'static str>)> {
    let guesses = fit::guesses(&stream.analysis);
    let Some(best) = guesses.first().filter(|best| best.fits()) else { return Vec::new() };
    let told = guesses.iter().filter(|guess| guess.equals(best));
    told.map(|guess| (guess.profile, Some(guess.cc))).collect()
}

impl WhatIf {
    /// Answers `question` about a connection whose packets were kept.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn of(stream: &Stream, question: &Question) -> Result<Self, WhatIfError> {
        Self::until(stream, question, &NEVER)
    }

    /// The same; ends its runs once `stop` is set.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn until(
        stream: &Stream,
        question: &Question,
        stop: Stop<'_>,
    ) -> Result<Self, WhatIfError> {
        let fitted = Fitted::of(&stream.analysis).map_err(WhatIfError::Fit)?;
        let recorded = course(fitted.bytes, fitted.time);
        let told = told(stream);
        let mut candidates = Vec::new();
        for &(profile, cc) in senders(fitted.sender) {
            let text = fitted.scenario(profile, cc, Chance::Same, 1);
            let (course, curve) = simulate(&text, &[], &fitted, stop)?;
            let misfit = misfit(&fitted.delivered, &curve, fitted.bytes, fitted.time);
            let told_by_windows = told.contains(&(profile, cc));
            candidates.push((
                Candidate { sender: called(profile, cc), told_by_windows, course, misfit },
                profile,
                cc,
            ));
        }
        // A stack that somebody has to turn on (FreeBSD's RACK) is taken for the recorded one only
        // where the one that is there by itself does not explain the recording.
        let usual = |one: &Candidate| one.misfit <= LICENCE && !one.sender.contains("-rack-");
        candidates.sort_by(|(a, ..), (b, ..)| {
            let told = b.told_by_windows.cmp(&a.told_by_windows);
            told.then(usual(b).cmp(&usual(a))).then(a.misfit.total_cmp(&b.misfit))
        });
        let (best, profile, cc) = candidates[0].clone();
        let mut alternatives = Vec::new();
        for name in &question.compare {
            let (profile, cc) = match name.split_once('/') {
                Some((profile, cc)) => (profile, Some(cc)),
                None => (name.as_str(), None),
            };
            alternatives.push(alternative(&fitted, (profile, cc), &[], &best, stop)?);
        }
        if !question.set.is_empty() || question.sender.is_some() {
            let (profile, cc) = match question.sender.as_deref() {
                Some(name) => name.split_once('/').map_or((name, None), |(p, cc)| (p, Some(cc))),
                None => (profile, cc),
            };
            alternatives.push(alternative(&fitted, (profile, cc), &question.set, &best, stop)?);
        }
        Ok(Self {
            format: FORMAT,
            ackclock: env!("CARGO_PKG_VERSION"),
            fitted: fitted
                .bases
                .iter()
                .map(|basis| Estimate { what: basis.what, why: basis.why.clone() })
                .collect(),
            recorded,
            licensed: best.misfit <= LICENCE,
            senders: candidates.into_iter().map(|(candidate, ..)| candidate).collect(),
            alternatives,
        })
    }

    /// As JSON, pretty-printed, with a newline at the end.
    pub fn to_json(&self) -> String {
        // No map with keys other than strings and no fallible serializer is in it.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// Senders that a system may have.
fn senders(system: System) -> &'static [(&'static str, Option<&'static str>)] {
    const ALL: &[(&str, Option<&str>)] = &[
        ("linux-6.18", Some("cubic")),
        ("linux-6.18", Some("reno")),
        ("linux-6.18", Some("bbr")),
        ("freebsd-14.3", Some("cubic")),
        ("freebsd-13.2", Some("newreno")),
        ("freebsd-rack-main", Some("cubic")),
    ];
    match system {
        System::Linux => &ALL[..3],
        System::FreeBsd => &ALL[3..],
        System::Unknown => ALL,
    }
}

fn called(profile: &str, cc: Option<&str>) -> String {
    cc.map_or_else(|| profile.to_owned(), |cc| format!("{profile}/{cc}"))
}

fn alternative(
    fitted: &Fitted,
    (profile, cc): (&str, Option<&str>),
    set: &[String],
    best: &Candidate,
    stop: Stop<'_>,
) -> Result<Alternative, WhatIfError> {
    let by_chance = !fitted.losses.packets.is_empty();
    let (chance, seeds) = if by_chance { (Chance::Random, SEEDS) } else { (Chance::Same, 1) };
    let mut courses = Vec::new();
    for seed in 1..=seeds {
        let text = fitted.scenario(profile, cc, chance, seed);
        courses.push(simulate(&text, set, fitted, stop)?.0);
    }
    courses.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    let middle = courses[courses.len() / 2];
    let what = match set {
        [] => called(profile, cc),
        set => format!("{} with {}", called(profile, cc), set.join(", ")),
    };
    Ok(Alternative {
        what,
        runs: seeds,
        course: middle,
        spread_s: (courses[0].time_s, courses[courses.len() - 1].time_s),
        time_ratio: middle.time_s / best.course.time_s,
    })
}

/// Runs a fitted scenario; times are those at the point where the capture was taken.
fn simulate(
    text: &str,
    set: &[String],
    fitted: &Fitted,
    stop: Stop<'_>,
) -> Result<Ran, WhatIfError> {
    let overrides = Overrides { set: set.to_vec(), ..Overrides::default() };
    let loaded = load(text, "the fitted scenario", &overrides).map_err(WhatIfError::Scenario)?;
    let mut seen = Acks { bytes: fitted.bytes, ..Acks::default() };
    stop::run(&loaded.scenario, &mut seen, stop).map_err(WhatIfError::Run)?;
    let mut curve = seen.curve;
    curve.extend(seen.last);
    if fitted.point == CapturePoint::Receiver {
        let way = fitted.rtt / 2;
        curve.iter_mut().for_each(|point| point.0 = point.0.saturating_sub(way));
    }
    let (time, bytes) = curve.last().copied().unwrap_or((1, 0));
    Ok((course(bytes, time), curve))
}

fn course(bytes: u64, ns: u64) -> Course {
    let time_s = ns.max(1) as f64 / 1e9;
    Course { bytes, time_s, goodput_bps: bytes as f64 * 8.0 / time_s }
}

/// The place of that number, of [`PLACES`].
fn place(bytes: u64, number: u64) -> u64 {
    (u128::from(bytes) * u128::from(number) / u128::from(PLACES)) as u64
}

/// Mean difference of the times at which the same bytes were delivered, as a share of the whole.
fn misfit(recorded: &[(u64, u64)], simulated: &[(u64, u64)], bytes: u64, time: u64) -> f64 {
    let when = |curve: &[(u64, u64)], place: u64| {
        let at = curve.partition_point(|point| point.1 < place);
        curve.get(at).or(curve.last()).map_or(0, |point| point.0)
    };
    let places = (1..=PLACES).map(|number| place(bytes, number));
    let off: u64 = places.map(|place| when(recorded, place).abs_diff(when(simulated, place))).sum();
    off as f64 / PLACES as f64 / time.max(1) as f64
}

/// Bytes acknowledged by time, as the sender learns it: where the [`PLACES`] are reached, and last.
#[derive(Debug, Default)]
struct Acks {
    /// Bytes of the whole stream.
    bytes: u64,
    /// Places that were reached.
    reached: u64,
    curve: Vec<(u64, u64)>,
    last: Option<(u64, u64)>,
}

impl Recorder for Acks {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, _: Option<&SenderState>) {
        // The sender is the first host of the scenario.
        if let (0, Event::Acked { una, .. }) = (who.host.0, event) {
            let point = (at.as_nanos(), una.0);
            self.last = Some(point);
            let before = self.reached;
            while self.reached < PLACES && una.0 >= place(self.bytes, self.reached + 1) {
                self.reached += 1;
            }
            if self.reached > before {
                self.curve.push(point);
            }
        }
    }
}

impl Observer for Acks {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_as_far_off_as_its_times() {
        let recorded = [(0, 0), (1_000, 100)];
        assert!(misfit(&recorded, &recorded, 100, 1_000) < 1e-9);
        let later = [(0, 0), (1_100, 100)];
        assert!((misfit(&recorded, &later, 100, 1_000) - 0.1).abs() < 1e-9);
    }
}
