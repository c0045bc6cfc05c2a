//! A case on a path: its runs, and the assertions made.

use std::sync::atomic::AtomicBool;

use scenario::{Overrides, load};
use units::Duration;

use super::cases::BbrCase;
use super::course::{BbrCourse, CourseRecorder, PROBE_RTT};
use super::paths::BbrPath;
use super::reference::BbrReference;
use super::report::BbrCheck;
use super::world::BbrWorld;
use crate::SuiteError;
use crate::sender::SuiteSender;

/// Why a state of a long path does not end by itself.
pub(super) const INTERRUPTED: &str = "CheckProbeRTT enters ProbeRTT from any state once ProbeRTTInterval has passed: on this \
                                      path before the rounds that the state needs";

/// The runs of a case on a path.
pub(super) struct CaseContext<'a> {
    pub(super) path: &'a BbrPath,
    pub(super) sender: &'a SuiteSender,
    seed: u64,
    stop: &'a AtomicBool,
    pub(super) checks: Vec<BbrCheck>,
    last: Option<(String, BbrCourse)>,
}

impl<'a> CaseContext<'a> {
    pub(super) const fn new(
        path: &'a BbrPath,
        sender: &'a SuiteSender,
        seed: u64,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { path, sender, seed, stop, checks: Vec::new(), last: None }
    }

    /// Runs a world.
    pub(super) fn run(&mut self, title: &str, world: &BbrWorld) -> Result<BbrCourse, SuiteError> {
        let text = world.text(title, self.path, self.sender, self.seed);
        let loaded = load(&text, title, &Overrides::default()).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            SuiteError::World(errors.join("\n"))
        })?;
        let mut recorder = CourseRecorder::default();
        runner::stop::run_shared(&loaded.scenario, &mut recorder, self.stop)
            .map_err(|error| SuiteError::Run(title.to_owned(), error.to_string()))?;
        let course = recorder.finish();
        self.last = Some((text, course.clone()));
        Ok(course)
    }

    /// Files that a stack can compare with: those of the last run.
    pub(super) fn into_reference(self, case: &BbrCase, path: &BbrPath) -> Option<BbrReference> {
        let (scenario, course) = self.last?;
        Some(BbrReference { case: case.id, path: path.name, scenario, course })
    }

    /// An assertion.
    pub(super) fn check(
        &mut self,
        what: &str,
        wanted: &str,
        measured: impl Into<String>,
        holds: bool,
    ) {
        self.checks.push(BbrCheck {
            what: what.to_owned(),
            wanted: wanted.to_owned(),
            measured: measured.into(),
            holds,
            conflict: None,
        });
    }

    /// An assertion of the appendix that the draft's pseudocode cannot meet, for the given reason.
    pub(super) fn conflicting(
        &mut self,
        what: &str,
        wanted: &str,
        measured: impl Into<String>,
        holds: bool,
        why: &str,
    ) {
        self.check(what, wanted, measured, holds);
        if let Some(check) = self.checks.last_mut().filter(|check| !check.holds) {
            check.conflict = Some(why.to_owned());
        }
    }

    /// An assertion that a state is reached, which ProbeRTT prevents on long round trips.
    pub(super) fn reached(&mut self, what: &str, course: &BbrCourse, reached: bool) {
        let probes = course.entries(PROBE_RTT).len();
        match (reached, probes) {
            (true, _) => self.check(what, "yes", "yes", true),
            (false, 0) => self.check(what, "yes", "no", false),
            (false, _) => {
                let measured = format!("no, but {probes} times ProbeRTT");
                self.conflicting(what, "yes", measured, false, INTERRUPTED);
            }
        }
    }

    /// A figure within a share of another.
    pub(super) fn near(
        &mut self,
        what: &str,
        measured: f64,
        wanted: f64,
        [below, above]: [f64; 2],
    ) {
        let ratio = if wanted > 0.0 { measured / wanted } else { 0.0 };
        let bounds = format!("{:.2} to {:.2} of the path's", 1.0 - below, 1.0 + above);
        let holds = (1.0 - below..=1.0 + above).contains(&ratio);
        self.check(what, &bounds, format!("{ratio:.3}"), holds);
    }
}

/// Seconds with three decimals.
pub(super) fn seconds(span: Duration) -> String {
    format!("{:.3} s", span.as_secs_f64())
}
