//! Standard evaluations of a congestion controller, with verdicts.
//!
//! A suite is a list of criteria of a document. Each criterion runs worlds with the sender under
//! test and the same worlds with the reference senders, and compares figures with limits. RFC 9743
//! gives no limits: it asks that a new algorithm does no more harm than the existing ones. So each
//! limit is the worst reference with a margin, and each figure prints both.
//!
//! Reading order: `sender` (who is tested), `world` (the scenarios), `measure` (a run), `evaluation`
//! (the comparison), `plan` (its runs by number), `criteria` (RFC 9743, one file per section), `slow_start`,
//! `tcpeval`, `flent_test`, `interop` (stacks in pairs), `bbr` (the test cases of its draft), `report` (results), and the forms `text`, `markdown`,
//! `junit` and `sarif`; `baseline` compares two reports.

pub mod baseline;
pub mod bbr;
mod criteria;
mod evaluation;
mod flent_test;
pub mod interop;
pub mod junit;
pub mod markdown;
mod measure;
pub mod page;
mod plan;
mod report;
pub mod sarif;
mod sender;
mod slow_start;
mod tcpeval;
pub mod text;
mod world;

use core::fmt;
use std::sync::atomic::AtomicBool;

pub use criteria::{RFC9743, Suite, SuiteCriterion};
pub use flent_test::{FlentRequest, FlentResult, FlentTest};
pub use plan::{SuitePlan, decide};
pub use report::{
    CriterionReport, CriterionVerdict, FigureBound, FigureVerdict, SuiteFigure, SuiteReport,
    WorldText,
};
pub use sender::{SenderError, SuiteSender, buffer_knobs};
pub use slow_start::SLOW_START;
pub use tcpeval::TCPEVAL;

/// All suites with verdicts.
pub static SUITES: [&Suite; 3] = [&RFC9743, &SLOW_START, &TCPEVAL];

/// What to evaluate.
#[derive(Debug, Clone)]
pub struct SuiteRequest {
    /// The suite whose criteria are run.
    pub suite: &'static Suite,
    /// The sender under test.
    pub sender: SuiteSender,
    /// The reference senders.
    pub against: Vec<SuiteSender>,
    /// Drawn start phases of each world with several flows.
    pub phases: u32,
}

/// An error of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuiteError {
    /// A world cannot be read; the text says why.
    World(String),
    /// A run ended with an error: the world and the reason.
    Run(String, String),
    /// The result of a run is missing or cannot be read; the text says which and why.
    NoResult(String),
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World(text) | Self::NoResult(text) => f.write_str(text),
            Self::Run(world, error) => write!(f, "{world}: {error}"),
        }
    }
}

impl core::error::Error for SuiteError {}

/// Evaluates these criteria on `threads` threads. The report is the same for any number of them.
/// `finished` is called after each run with the number of finished ones, of [`SuitePlan::runs`].
///
/// # Errors
/// The first error of a run, in their order; `stop` ends the runs with an error.
pub fn run(
    request: &SuiteRequest,
    criteria: &[&'static SuiteCriterion],
    threads: usize,
    stop: &AtomicBool,
    finished: &(impl Fn(usize) + Sync),
) -> Result<SuiteReport, SuiteError> {
    let plan = SuitePlan::new(request, criteria);
    let results = plan.run_all(0..plan.runs(), threads, stop, finished)?;
    plan.report(&results)
}
