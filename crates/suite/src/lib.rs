//! Standard evaluations of a congestion controller, with verdicts.
//!
//! A suite is a list of criteria of a document. Each criterion runs worlds with the sender under
//! test and the same worlds with the reference senders, and compares figures with limits. RFC 9743
//! gives no limits: it asks that a new algorithm does no more harm than the existing ones. So each
//! limit is the worst reference with a margin, and each figure prints both.
//!
//! Reading order: `sender` (who is tested), `world` (the scenarios), `measure` (a run), `evaluation`
//! (its worlds), `verdict` (the comparison), `plan` (its runs by number), `criteria` (RFC 9743, one file per section), `slow_start`,
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
mod noise;
pub mod page;
mod plan;
mod report;
pub mod sarif;
mod sender;
mod slow_start;
mod student;
mod tcpeval;
pub mod text;
mod verdict;
mod world;
pub mod zoo;

use core::fmt;
pub use criteria::{RFC9743, Suite, SuiteCriterion};
pub use flent_test::{FlentRequest, FlentResult, FlentTest};
pub use noise::HostNoise;
pub use plan::{SuitePlan, SuiteRun, decide, decide_with};
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
    /// Draws of each world in which anything is drawn, at first.
    pub phases: u32,
    /// Most draws of a world that does not decide.
    pub budget: u32,
    /// The noise of the hosts.
    pub noise: HostNoise,
    /// Other seeds give other draws.
    pub seed: u32,
}

impl SuiteRequest {
    /// The evaluation of a sender against Reno and CUBIC of its own stack, with the defaults of the
    /// command line.
    pub fn new(suite: &'static Suite, sender: SuiteSender) -> Self {
        let against = sender.references();
        let phases = if suite.is_drawn { DEFAULT_DRAWS } else { 1 };
        let budget = if suite.is_drawn { DEFAULT_BUDGET } else { 1 };
        Self { suite, sender, against, phases, budget, noise: HostNoise::Hosts, seed: 0 }
    }
}

/// Draws of each world at first.
pub const DEFAULT_DRAWS: u32 = 4;
/// Most draws of a world that does not decide.
pub const DEFAULT_BUDGET: u32 = 16;

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
