//! Results of a suite.

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
    /// None is, but the limit of one lies within its confidence interval, or nothing was measured.
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
    /// It is on the right side of its limit with its whole confidence interval, or has no limit.
    #[default]
    Holds,
    /// It is beyond its limit with its whole confidence interval.
    Fails,
    /// Its confidence interval includes the limit: more start phases may decide.
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
    /// The mean over all start phases.
    pub value: f64,
    /// Half of its 95 % confidence interval, with several start phases that differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The worst of the references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<f64>,
    /// The limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Its side of the limit.
    pub bound: FigureBound,
    /// Whether it does not fail.
    pub holds: bool,
    /// The verdict: by the differences to the limit in the same start phases.
    #[serde(default)]
    pub verdict: FigureVerdict,
}

impl SuiteFigure {
    /// The confidence interval includes the limit: more start phases may decide.
    pub fn is_undecided(&self) -> bool {
        self.verdict == FigureVerdict::Undecided
    }

    /// How much of the limit is used: 1 at the limit, more beyond it; `None` without a limit.
    pub(crate) fn use_of_limit(&self) -> Option<f64> {
        match (self.bound, self.limit?) {
            (FigureBound::AtMost, limit) if limit > 0.0 => Some(self.value / limit),
            (FigureBound::AtLeast, limit) if self.value > 0.0 => Some(limit / self.value),
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
}

impl WorldText {
    /// Reads the scenario.
    pub(crate) fn load(&self) -> Result<Loaded, SuiteError> {
        load(&self.text, &self.name, &Overrides::default()).map_err(|errors| {
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
    /// Start phases of each of its worlds with several flows.
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
    /// Start phases of each world with several flows, at least; a criterion that these did not decide
    /// may have more.
    pub phases: u32,
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
