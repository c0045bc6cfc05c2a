//! Results of a suite.

use cc::ExternalAlgorithm;
use scenario::{Loaded, Overrides, load};
use serde::{Deserialize, Serialize};

use crate::criteria::{Suite, SuiteCriterion};
use crate::{SUITES, SuiteError, SuiteRequest};

/// The verdict on a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CriterionVerdict {
    /// Every figure holds.
    Pass,
    /// A figure is beyond its limit.
    Fail,
    /// None is, but the limit of one lies within its interval, or evidence is missing.
    Undecided,
    /// Not evaluated; `reason` says why.
    NotEvaluated,
}

impl CriterionVerdict {
    /// The verdict in one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Undecided => "?",
            Self::NotEvaluated => "-",
        }
    }
}

/// The verdict on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureVerdict {
    /// It is on the right side of its limit with its whole interval, or has no limit.
    #[default]
    Holds,
    /// It is beyond its limit with its whole interval.
    Fails,
    /// Its interval includes the limit, or evidence is missing: more draws may decide.
    Undecided,
}

/// On which side of its limit a figure must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureBound {
    /// At most the limit.
    AtMost,
    /// At least the limit.
    AtLeast,
    /// No limit: information.
    None,
}

/// A measured figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteFigure {
    /// What was measured, and in which world.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The mean over all draws; `None` if no run gave evidence.
    pub value: Option<f64>,
    /// Half of its 95 % confidence interval, with several draws that differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Runs with the sender under test that gave evidence.
    #[serde(default)]
    pub samples: u32,
    /// Runs with it that gave none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u32,
    /// The worst of the references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<f64>,
    /// Half of its 95 % confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_confidence: Option<f64>,
    /// The limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Its side of the limit.
    pub bound: FigureBound,
    /// Whether it does not fail.
    pub holds: bool,
    /// The verdict: by the differences to the limit in the same draws.
    #[serde(default)]
    pub verdict: FigureVerdict,
    /// The number of its world in the criterion, if more draws of it may be made.
    #[serde(skip)]
    pub(crate) world: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl SuiteFigure {
    /// The interval includes the limit, or evidence is missing: more draws may decide.
    pub fn is_undecided(&self) -> bool {
        self.verdict == FigureVerdict::Undecided
    }

    /// How much of the limit is used: 1 at the limit, more beyond it; `None` without a limit.
    pub(crate) fn use_of_limit(&self) -> Option<f64> {
        match (self.bound, self.limit?) {
            (FigureBound::AtMost, limit) if limit > 0.0 => Some(self.value? / limit),
            (FigureBound::AtLeast, limit) if self.value? > 0.0 => Some(limit / self.value?),
            _ => None,
        }
    }
}

/// The scenario file of a world that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldText {
    /// Its name, which is that of its file.
    pub name: String,
    /// The text.
    pub text: String,
    /// The controllers that it may name beside the built-in ones.
    pub(crate) controllers: Vec<ExternalAlgorithm>,
}

impl WorldText {
    /// A world with built-in controllers.
    pub(crate) fn new(name: impl Into<String>, text: String) -> Self {
        Self { name: name.into(), text, controllers: Vec::new() }
    }

    /// Reads the scenario.
    pub(crate) fn load(&self) -> Result<Loaded, SuiteError> {
        let overrides = Overrides { controllers: self.controllers.clone(), ..Overrides::default() };
        load(&self.text, &self.name, &overrides).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            SuiteError::World(errors.join("\n"))
        })
    }
}

/// The result of a criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CriterionReport {
    /// Section of the document.
    pub section: String,
    /// Its subject.
    pub title: String,
    /// The verdict.
    pub verdict: CriterionVerdict,
    /// Why it was not evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How its limits are set.
    pub limits: String,
    /// Where its limits come from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Draws of the world that has most.
    #[serde(default)]
    pub phases: u32,
    /// Its figures.
    pub figures: Vec<SuiteFigure>,
    /// The names of its worlds with the sender under test.
    pub worlds: Vec<String>,
    /// The worlds themselves.
    #[serde(skip)]
    pub texts: Vec<WorldText>,
}

impl CriterionReport {
    pub(crate) fn new(
        criterion: &SuiteCriterion,
        phases: u32,
        figures: Vec<SuiteFigure>,
        texts: Vec<WorldText>,
    ) -> Self {
        let has = |verdict| figures.iter().any(|figure| figure.verdict == verdict);
        let verdict = if criterion.not_evaluated.is_some() {
            CriterionVerdict::NotEvaluated
        } else if has(FigureVerdict::Fails) {
            CriterionVerdict::Fail
        } else if has(FigureVerdict::Undecided) || figures.is_empty() {
            CriterionVerdict::Undecided
        } else {
            CriterionVerdict::Pass
        };
        Self {
            section: criterion.section.to_owned(),
            title: criterion.title.to_owned(),
            verdict,
            reason: criterion.not_evaluated.map(str::to_owned),
            limits: criterion.limits.to_owned(),
            source: criterion.source.to_owned(),
            phases,
            figures,
            worlds: texts.iter().map(|world| world.name.clone()).collect(),
            texts,
        }
    }
}

/// The result of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteReport {
    /// Version of the program.
    pub version: String,
    /// Name of the suite.
    pub suite: String,
    /// The sender under test.
    pub sender: String,
    /// The references.
    pub against: Vec<String>,
    /// Draws of each world in which anything is drawn, at least; one that these did not decide may have
    /// more.
    pub phases: u32,
    /// Most draws of a world that does not decide.
    #[serde(default)]
    pub budget: u32,
    /// The noise of the hosts: `hosts`, `off`, or its bound.
    #[serde(default)]
    pub noise: String,
    /// The criteria in the order of the document.
    pub criteria: Vec<CriterionReport>,
}

impl SuiteReport {
    pub(crate) fn new(request: &SuiteRequest, criteria: Vec<CriterionReport>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            suite: request.suite.name.to_owned(),
            sender: request.sender.to_string(),
            against: request.against.iter().map(ToString::to_string).collect(),
            phases: request.phases,
            budget: request.budget,
            noise: request.noise.to_string(),
            criteria,
        }
    }

    /// The suite, if this version has it.
    pub(crate) fn of_suite(&self) -> Option<&'static Suite> {
        SUITES.into_iter().find(|suite| suite.name == self.suite)
    }

    /// Title of the suite.
    pub(crate) fn title(&self) -> &str {
        self.of_suite().map_or(&self.suite, |suite| suite.title)
    }

    /// True if no criterion failed.
    pub fn passes(&self) -> bool {
        self.count(CriterionVerdict::Fail) == 0
    }

    /// Number of criteria with this verdict.
    pub fn count(&self, verdict: CriterionVerdict) -> usize {
        self.criteria.iter().filter(|criterion| criterion.verdict == verdict).count()
    }

    /// The report as JSON, with a final line break.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a report.
    ///
    /// # Errors
    /// The text is not a report; the message has line and column.
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}
