//! A report compared with a former one: what became worse.

use crate::report::{CriterionVerdict, FigureBound, SuiteReport};
use crate::text::value;

/// A figure is worse if it moved by more than this part of its former value to the wrong side, and by
/// more than both confidence intervals.
const TOLERANCE: f64 = 0.05;

/// A change for the worse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteRegression {
    /// Section of the criterion.
    pub section: String,
    /// What became worse.
    pub what: String,
}

/// Error: the two reports cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineError(pub String);

impl core::fmt::Display for BaselineError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for BaselineError {}

/// The regressions of `now` against `before`, in the order of the criteria.
///
/// # Errors
/// The reports are of different suites, references, numbers of draws or noise. The sender may
/// differ: a patched one is compared with the original.
pub fn regressions(
    before: &SuiteReport,
    now: &SuiteReport,
) -> Result<Vec<SuiteRegression>, BaselineError> {
    for (what, former, present) in [
        ("suite", before.suite.clone(), now.suite.clone()),
        ("references", before.against.join(", "), now.against.join(", ")),
        ("draws", before.phases.to_string(), now.phases.to_string()),
        ("noise", before.noise.clone(), now.noise.clone()),
    ] {
        if former != present {
            return Err(BaselineError(format!(
                "the baseline has other {what}: {former}, now {present}"
            )));
        }
    }
    let mut worse = Vec::new();
    for criterion in &now.criteria {
        let Some(former) = before.criteria.iter().find(|old| old.section == criterion.section)
        else {
            continue;
        };
        let mut add = |what: String| {
            worse.push(SuiteRegression { section: criterion.section.clone(), what });
        };
        if former.verdict == CriterionVerdict::Pass && criterion.verdict == CriterionVerdict::Fail {
            add(format!("{} passed before", criterion.title));
        }
        for figure in &criterion.figures {
            let Some(old) = former.figures.iter().find(|old| old.name == figure.name) else {
                continue;
            };
            let (Some(present), Some(past)) = (figure.value, old.value) else { continue };
            let by = match figure.bound {
                FigureBound::AtMost => present - past,
                FigureBound::AtLeast => past - present,
                FigureBound::None => continue,
            };
            let noise = figure.confidence.unwrap_or(0.0) + old.confidence.unwrap_or(0.0);
            if by > past.abs() * TOLERANCE && by > noise {
                add(format!("{}: {}, before {}", figure.name, value(figure), value(old)));
            }
        }
    }
    Ok(worse)
}
