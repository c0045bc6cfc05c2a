//! A diagnosis as JUnit XML: a test case for each connection.

use core::fmt::Write;

use diagnose::rules::{Finding, Severity, time};
use report::junit::{TestCase, TestMessage, TestOutcome, TestSuite};
use units::Duration;

use super::verdicts::{ConnectionVerdict, judged_verdicts};
use super::{DiagnosisReport, FailOn};

impl DiagnosisReport {
    /// Formats the report as JUnit XML. A connection fails on findings that meet the condition;
    /// without one, on warnings and errors. One that cannot be judged is skipped, and a file in which
    /// nothing was judged is an error.
    pub fn junit(&self, on: Option<FailOn>) -> String {
        let on = on.unwrap_or(FailOn::Severity(Severity::Warning));
        let mut cases: Vec<_> = judged_verdicts(self, on).iter().map(|one| case(one, on)).collect();
        cases.extend(self.unjudged().map(|(file, reason)| TestCase {
            class: file.to_owned(),
            name: "nothing was judged".to_owned(),
            seconds: 0.0,
            outcome: TestOutcome::Error(TestMessage {
                message: format!("nothing was judged: {reason}"),
                text: String::new(),
            }),
        }));
        TestSuite { name: "ackclock diagnose".to_owned(), cases }.to_xml()
    }
}

fn case(one: &ConnectionVerdict<'_>, on: FailOn) -> TestCase {
    let all = one.findings.iter().chain(&one.other_findings);
    let failing: Vec<&Finding> = all.filter(|finding| on.is_met_by(finding)).collect();
    TestCase {
        class: one.file.to_owned(),
        name: format!("connection {}: {}", one.number, one.transfer),
        seconds: one.duration.as_secs_f64(),
        outcome: match (failing.first(), one.unjudged) {
            (None, None) => TestOutcome::Passed,
            (None, Some(reason)) => TestOutcome::Skipped(TestMessage {
                message: format!("not judged: {reason}"),
                text: String::new(),
            }),
            (Some(first), _) => TestOutcome::Failed(TestMessage {
                message: headline(first),
                text: failing.iter().map(|finding| details(one, finding)).collect(),
            }),
        },
    }
}

/// Code, title and cost.
pub(super) fn headline(finding: &Finding) -> String {
    let Finding { code, title, cost, .. } = finding;
    match cost {
        &Duration::ZERO => format!("{code}: {title}"),
        cost => format!("{code}: {title} ({})", time(*cost)),
    }
}

fn details(one: &ConnectionVerdict<'_>, finding: &Finding) -> String {
    let mut text = headline(finding) + "\n";
    for item in finding.evidence.iter().filter(|item| !item.label.is_empty()) {
        let _ = writeln!(text, "  {}: {}", item.label, item.text);
    }
    let _ = writeln!(text, "  cause: {}", finding.cause);
    for (system, what) in finding.help.applicable() {
        let _ = writeln!(text, "  {system}: {what}");
    }
    if let Some(folded) = finding.folded_help() {
        let _ = writeln!(text, "  {folded}");
    }
    for cure in one.cures_of(finding) {
        let _ = writeln!(text, "  cure: {}", cure.text());
    }
    text
}
