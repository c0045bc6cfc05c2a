//! The result of the suite, as text and JSON.

use core::fmt::Write as _;

use serde::Serialize;

use crate::sender::SuiteSender;

/// An assertion on named state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BbrCheck {
    /// What is asserted.
    pub what: String,
    /// What has to be.
    pub wanted: String,
    /// What was measured.
    pub measured: String,
    /// Does it hold?
    pub holds: bool,
    /// Why the draft's own pseudocode cannot meet it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
}

/// The verdict on a case on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BbrVerdict {
    /// Every assertion holds.
    Pass,
    /// One does not.
    Fail,
    /// Only assertions fail that the draft's pseudocode contradicts.
    Conflict,
    /// The case says nothing on this path or this stack.
    NotApplicable,
}

impl BbrVerdict {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Conflict => "conflict",
            Self::NotApplicable => "n/a",
        }
    }
}

/// The result of a case on a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BbrResult {
    /// The case.
    pub case: &'static str,
    /// Its heading in the draft.
    pub section: &'static str,
    /// The path.
    pub path: &'static str,
    /// The verdict.
    pub verdict: BbrVerdict,
    /// The assertions.
    pub checks: Vec<BbrCheck>,
    /// Why the case does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BbrReport {
    /// The sender.
    pub sender: String,
    /// The revision of the draft.
    pub draft: &'static str,
    /// Seed of the runs.
    pub seed: u64,
    /// Results, by case and path.
    pub results: Vec<BbrResult>,
}

impl BbrReport {
    pub(super) fn new(sender: &SuiteSender, seed: u64, results: Vec<BbrResult>) -> Self {
        let draft = "draft-ietf-ccwg-bbr, commit 4ce5e87d (after revision 06)";
        Self { sender: sender.to_string(), draft, seed, results }
    }

    /// Number of results with a verdict.
    pub fn count(&self, verdict: BbrVerdict) -> usize {
        self.results.iter().filter(|result| result.verdict == verdict).count()
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{text}\n")
    }

    /// The report as text; `full`: with every assertion, not only those that do not hold.
    pub fn to_text(&self, full: bool) -> String {
        let mut text = format!("{}\n{}, seed {}\n\n", self.sender, self.draft, self.seed);
        let width = self.results.iter().map(|result| result.case.len()).max().unwrap_or(0);
        for result in &self.results {
            let (case, path, verdict) = (result.case, result.path, result.verdict.name());
            let _ = write!(text, "{case:width$}  {path:9}  {verdict}");
            if let Some(why) = &result.why {
                let _ = write!(text, ": {why}");
            }
            text.push('\n');
            for check in result.checks.iter().filter(|check| full || !check.holds) {
                let mark = if check.holds { "holds" } else { "not" };
                let _ = writeln!(
                    text,
                    "    {mark}: {}: {}, wanted {}",
                    check.what, check.measured, check.wanted
                );
                if let Some(why) = &check.conflict {
                    let _ = writeln!(text, "      the draft's own rules: {why}");
                }
            }
        }
        let counts =
            [BbrVerdict::Pass, BbrVerdict::Fail, BbrVerdict::Conflict, BbrVerdict::NotApplicable];
        let counts: Vec<String> = counts
            .iter()
            .map(|&verdict| format!("{} {}", self.count(verdict), verdict.name().to_lowercase()))
            .collect();
        let _ = writeln!(text, "\n{}", counts.join(", "));
        text
    }
}
