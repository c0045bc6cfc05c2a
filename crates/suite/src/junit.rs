//! A report as JUnit XML: one test case for each criterion.

use core::fmt::Write as _;

use crate::report::{CriterionVerdict, SuiteReport};
use crate::text::{limit, reference, value};

/// Escapes text for an attribute or an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The report as an XML document.
pub fn render(report: &SuiteReport) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{} {}\" tests=\"{}\" \
         failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
        escaped(&report.suite),
        escaped(&report.sender),
        report.criteria.len(),
        report.count(CriterionVerdict::Fail),
        report.count(CriterionVerdict::Undecided),
        report.count(CriterionVerdict::NotEvaluated)
    );
    for criterion in &report.criteria {
        let name = escaped(&format!("{} {}", criterion.section, criterion.title));
        let _ =
            write!(text, "  <testcase classname=\"{}\" name=\"{name}\">", escaped(&report.suite));
        match criterion.verdict {
            CriterionVerdict::Pass => {}
            CriterionVerdict::NotEvaluated => {
                let reason = criterion.reason.as_deref().unwrap_or_default();
                let _ = write!(text, "<skipped message=\"{}\"/>", escaped(reason));
            }
            verdict @ (CriterionVerdict::Fail | CriterionVerdict::Undecided) => {
                let is_failure = verdict == CriterionVerdict::Fail;
                let (kind, what) = match is_failure {
                    true => ("failure", "figures beyond their limits"),
                    false => (
                        "error",
                        "figures undecided: their intervals include their limits, or evidence is missing",
                    ),
                };
                let beyond: Vec<String> = criterion
                    .figures
                    .iter()
                    .filter(|figure| if is_failure { !figure.holds } else { figure.is_undecided() })
                    .map(|figure| {
                        let (value, limit) = (value(figure), limit(figure));
                        let reference = reference(figure);
                        format!("{}: {value} ({limit}, worst reference {reference})", figure.name)
                    })
                    .collect();
                let _ = write!(
                    text,
                    "<{kind} message=\"{}\">{}</{kind}>",
                    escaped(&format!("{} {what}", beyond.len())),
                    escaped(&beyond.join("\n"))
                );
            }
        }
        text.push_str("</testcase>\n");
    }
    text.push_str("</testsuite>\n");
    text
}
