//! A comparison as JUnit XML, SARIF and Markdown: a test case, or a result, for each flow.

use std::fmt::Write as _;
use std::path::Path;

use guest::compare::FlowComparison;
use report::junit::{TestCase, TestMessage, TestOutcome, TestSuite};
use serde_json::{Value as Json, json};
use units::Duration;

use super::linux::{Comparison, GradeRun, flow_text};
use crate::visible::ShownPath as _;

/// The comparisons of a scenario.
pub(super) struct ComparedScenario<'a> {
    pub(super) file: &'a Path,
    pub(super) runs: &'a [GradeRun],
    pub(super) comparisons: &'a [Comparison],
    pub(super) tolerance: Duration,
}

/// A flow in two grades.
struct ComparedFlow<'a> {
    flow: &'a FlowComparison,
    grades: [&'static str; 2],
    text: String,
}

impl ComparedFlow<'_> {
    /// Rule and headline of what differs; `None` if nothing does.
    fn difference(&self) -> Option<(&'static str, String)> {
        let flow = &self.flow.flow;
        let [one, other] = self.grades;
        if self.flow.first.is_some() {
            let same = self.flow.same_packets;
            let text =
                format!("flow {flow}: {other} differs from {one} after {same} equal packets");
            return Some(("packets-differ", text));
        }
        let late = self.flow.first_late.as_ref()?;
        let packet = late.index + 1;
        Some(("times-differ", format!("flow {flow}: packet {packet} of {other} has another time")))
    }
}

impl ComparedScenario<'_> {
    fn flows(&self) -> Vec<ComparedFlow<'_>> {
        let mut all = Vec::new();
        for one in self.comparisons {
            let grades = one.runs.map(|run| self.runs[run].grade.name());
            for (flow, states) in one.flows.iter().zip(&one.states) {
                let text = flow_text(flow, states, grades, self.tolerance).trim_start().to_owned();
                all.push(ComparedFlow { flow, grades, text });
            }
        }
        all
    }

    fn name(&self) -> String {
        self.file.shown()
    }

    /// The comparison as JUnit XML.
    pub(super) fn junit(&self) -> String {
        let case = |one: &ComparedFlow<'_>| TestCase {
            class: self.name(),
            name: format!("{} against {}: flow {}", one.grades[0], one.grades[1], one.flow.flow),
            seconds: 0.0,
            outcome: match one.difference() {
                None => TestOutcome::Passed,
                Some((_, message)) => {
                    TestOutcome::Failed(TestMessage { message, text: one.text.clone() })
                }
            },
        };
        let cases = self.flows().iter().map(case).collect();
        TestSuite { name: "ackclock compare".to_owned(), cases }.to_xml()
    }

    /// The differences as SARIF 2.1.0.
    pub(super) fn sarif(&self) -> String {
        let rules = [
            ("packets-differ", "The packets of two grades differ"),
            ("times-differ", "The times of equal packets differ by more than the tolerance"),
        ];
        let result = |one: &ComparedFlow<'_>| -> Option<Json> {
            let (rule, message) = one.difference()?;
            Some(json!({
                "ruleId": rule,
                "ruleIndex": rules.iter().position(|(id, _)| *id == rule),
                "level": "error",
                "message": { "text": format!("{message}\n{}", one.text) },
                "locations": [{
                    "physicalLocation": {
                        "artifactLocation": { "uri": ingest::diagnosis::path_uri(&self.name()) },
                    },
                    "logicalLocations": [{ "name": one.flow.flow, "kind": "flow" }],
                }],
                "properties": { "grades": one.grades, "comparison": one.flow },
            }))
        };
        let results: Vec<Json> = self.flows().iter().filter_map(result).collect();
        let rules: Vec<Json> = rules
            .iter()
            .map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }))
            .collect();
        format!("{:#}\n", ingest::diagnosis::sarif_log(&rules, &results))
    }

    /// The comparison as Markdown.
    pub(super) fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n", self.name().replace('`', "'"));
        out.push_str("| flow | grades | equal packets | result |\n|---|---|---:|---|\n");
        let flows = self.flows();
        for one in &flows {
            let result = match one.difference() {
                None => "equal",
                Some(("times-differ", _)) => "times differ",
                Some(_) => "packets differ",
            };
            let name = one.flow.flow.replace('|', "\\|");
            let [first, second] = one.grades;
            let same = one.flow.same_packets;
            let _ = writeln!(out, "| {name} | {first}, {second} | {same} | {result} |");
        }
        for one in flows.iter().filter(|one| one.difference().is_some()) {
            let _ = writeln!(out, "\n```text\n{}```", one.text);
        }
        out
    }
}
