//! The search for the worst case of a congestion controller.
//!
//! A hunt draws worlds from a space of paths, hosts and traffic, and looks for those whose figure (of
//! the goal) is beyond a limit. Such a world is shrunk: everything that returns to the plain path
//! without losing the effect does. What remains is the cause of a case. A local search then makes the
//! case as bad as the space allows. Further worlds count only if they are bad without the causes
//! found before, so the report has one case for each cause.
//!
//! The report depends on the request alone, not on the number of threads.
//!
//! Reading order: `space` (what may vary), `world` (a point of it), `scenario_text` (its scenario
//! file), `goal`, `ideal` and `measure` (its figure), `search`, `threads` (many worlds), `report`.

mod goal;
mod ideal;
mod measure;
mod report;
mod scenario_text;
mod search;
mod space;
mod threads;
mod world;

use core::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use suite::SuiteSender;

pub use goal::HuntGoal;
pub use measure::WorldFigure;
pub use report::{HuntAblation, HuntCase, HuntReport};
pub use space::dimension_names;
pub use threads::figures;
pub use world::HuntWorld;

/// Runs worlds and returns their figures in the same order, anywhere: [`figures`] of this request.
pub type WorldRunner<'a> = dyn FnMut(&[HuntWorld]) -> Result<Vec<WorldFigure>, HuntError> + 'a;

/// What to hunt.
#[derive(Debug, Clone)]
pub struct HuntRequest {
    /// The sender of all flows.
    pub sender: SuiteSender,
    /// What makes a world bad.
    pub goal: HuntGoal,
    /// The figure beyond which a world counts, in the unit of the goal.
    pub limit: f64,
    /// Numbers and parts of the space that are left out: they stay plain.
    pub without: Vec<String>,
    /// Worlds to run. Half of them are drawn; shrinking the last case may add some.
    pub worlds: usize,
    /// Seed of the search.
    pub seed: u64,
}

/// An error of a hunt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HuntError {
    /// The space has no such number or part.
    Unknown(String),
    /// A world cannot be read or run; the text says why.
    World(String),
}

impl fmt::Display for HuntError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "the search space has no `{name}`"),
            Self::World(error) => f.write_str(error),
        }
    }
}

impl core::error::Error for HuntError {}

/// The search space of a request as text: each number and part with its levels.
///
/// # Errors
/// A name of [`HuntRequest::without`] is unknown.
pub fn describe_space(request: &HuntRequest) -> Result<String, HuntError> {
    search::limits(request).map(|limits| space::describe(&limits))
}

/// Hunts on `threads` threads. `tried` is called after each world with the number of worlds that
/// have been run.
///
/// # Errors
/// A name of [`HuntRequest::without`] is unknown; a world cannot be run; `stop` was set.
pub fn run(
    request: &HuntRequest,
    threads: usize,
    stop: &AtomicBool,
    tried: &(dyn Fn(usize) + Sync),
) -> Result<HuntReport, HuntError> {
    let count = AtomicUsize::new(0);
    let finished = || tried(count.fetch_add(1, Ordering::Relaxed) + 1);
    search(request, &mut |worlds| figures(request, worlds, threads, stop, &finished))
}

/// Hunts with worlds that `runner` runs, such as on a cluster.
///
/// # Errors
/// A name of [`HuntRequest::without`] is unknown; those of `runner`.
pub fn search<'a>(
    request: &'a HuntRequest,
    runner: &'a mut WorldRunner<'a>,
) -> Result<HuntReport, HuntError> {
    search::Hunt::new(request, runner)?.run()
}
