//! A report as SARIF 2.1.0 (OASIS), which code hosts show beside a change: a rule for each criterion,
//! a result for each figure that does not hold and for each regression.

use serde_json::{Value, json};

use crate::baseline::SuiteRegression;
use crate::report::{FigureVerdict, SuiteReport};
use crate::text::{limit, reference, value};

/// The report as a JSON document with a final line break.
pub fn render(report: &SuiteReport, worse: &[SuiteRegression]) -> String {
    let rules: Vec<Value> = report
        .criteria
        .iter()
        .map(|criterion| {
            json!({
                "id": criterion.section,
                "shortDescription": { "text": criterion.title },
                "fullDescription": { "text": criterion.limits },
            })
        })
        .collect();
    let result = |section: &str, level: &str, text: String| {
        json!({
            "ruleId": section,
            "level": level,
            "message": { "text": text },
            "locations": [{ "logicalLocations": [{ "name": report.sender, "kind": "module" }] }],
        })
    };
    let mut results = Vec::new();
    for criterion in &report.criteria {
        for figure in &criterion.figures {
            let (level, undecided) = match figure.verdict {
                FigureVerdict::Holds => continue,
                FigureVerdict::Fails => ("error", ""),
                FigureVerdict::Undecided => ("warning", "undecided: "),
            };
            let text = format!(
                "{undecided}{}: {} ({}, worst reference {})",
                figure.name,
                value(figure),
                limit(figure),
                reference(figure)
            );
            results.push(result(&criterion.section, level, text));
        }
    }
    for regression in worse {
        results.push(result(
            &regression.section,
            "error",
            format!("worse than the baseline: {}", regression.what),
        ));
    }
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "Ackclock", "version": report.version, "rules": rules } },
            "results": results,
        }],
    });
    format!("{document:#}\n")
}
