//! A diagnosis in the Static Analysis Results Interchange Format, SARIF 2.1.0.
//!
//! A finding is a result, its code a rule. A capture has no lines, so a result names the file, the
//! connection as a logical location, and the frames, the time and the display filter as properties.

use std::collections::BTreeMap;

use diagnose::rules::{Finding, Severity, help_by_system};
use serde_json::{Value, json};

use super::cures::CureJson;
use super::explain::{ExplainedRule, all};
use super::json::FindingJson;
use super::junit::headline;
use super::verdicts::{ConnectionVerdict, judged_verdicts};
use super::{DiagnosisReport, FailOn};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

impl DiagnosisReport {
    /// Formats the report as SARIF.
    pub fn sarif(&self) -> String {
        let connections = judged_verdicts(self, FailOn::Severity(Severity::Note));
        let rules: Vec<ExplainedRule> = all()
            .into_iter()
            .filter(|rule| {
                let findings = connections.iter().flat_map(|one| &one.findings);
                findings.into_iter().any(|finding| finding.code == rule.code)
            })
            .collect();
        let numbers: BTreeMap<&str, usize> =
            rules.iter().enumerate().map(|(number, rule)| (rule.code, number)).collect();
        let results: Vec<Value> = connections
            .iter()
            .flat_map(|one| one.findings.iter().map(move |finding| (one, finding)))
            .map(|(one, finding)| result(one, finding, &numbers))
            .collect();
        let rules: Vec<Value> = rules.iter().map(rule_json).collect();
        let mut log = sarif_log(&rules, &results);
        let unjudged: Vec<Value> = self.unjudged().map(unjudged).collect();
        if !unjudged.is_empty() {
            log["runs"][0]["invocations"] = json!([{
                "executionSuccessful": false,
                "toolExecutionNotifications": unjudged,
            }]);
        }
        format!("{log:#}\n")
    }
}

/// A SARIF log of one run.
pub fn sarif_log(rules: &[Value], results: &[Value]) -> Value {
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "ackclock",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
        }],
    })
}

/// A notification: nothing was judged in a file.
fn unjudged((file, reason): (&str, &str)) -> Value {
    json!({
        "level": "error",
        "message": { "text": format!("nothing was judged: {reason}") },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": path_uri(file) } },
        }],
    })
}

fn rule_json(rule: &ExplainedRule) -> Value {
    let help = help_by_system(rule.help);
    let help: Vec<_> = help.iter().map(|(system, what)| format!("{system}: {what}")).collect();
    json!({
        "id": rule.code,
        "shortDescription": { "text": rule.name },
        "fullDescription": { "text": rule.background },
        "help": { "text": help.join("\n") },
    })
}

fn result(
    one: &ConnectionVerdict<'_>,
    finding: &Finding,
    numbers: &BTreeMap<&str, usize>,
) -> Value {
    let code = finding.code;
    let is_primary = one.is_primary(finding);
    let filter = if one.is_quic { String::new() } else { finding.filter(one.number) };
    // The JSON of the finding: evidence, frames, times.
    let mut properties = json!(FindingJson::of_event(finding.clone()));
    properties["filter"] = json!(filter);
    properties["primary"] = json!(is_primary);
    let mut message = format!("{}. {}", headline(finding), finding.cause);
    let cures: Vec<_> = one.cures_of(finding).collect();
    for cure in &cures {
        message += &format!(". Cure: {}", cure.text());
    }
    if !cures.is_empty() {
        let cures: Vec<_> = cures.into_iter().map(CureJson::of).collect();
        properties["cures"] = json!(cures);
    }
    json!({
        "ruleId": code,
        "ruleIndex": numbers.get(code),
        "level": finding.severity.name(),
        "message": { "text": message },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": path_uri(one.file) } },
            "logicalLocations": [{
                "name": format!("connection {}", one.number),
                "fullyQualifiedName": one.transfer,
                "kind": "connection",
            }],
        }],
        "partialFingerprints": {
            "findingOfConnection/v1": format!("{code} {}", one.transfer),
        },
        "properties": properties,
    })
}

/// A path as a URI reference: characters that a path segment may not have are percent-encoded.
pub fn path_uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            b'\\' if cfg!(windows) => out.push('/'),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::path_uri;

    #[test]
    fn paths_are_uris() {
        assert_eq!(path_uri("a b/c:d#é.pcap"), "a%20b/c%3Ad%23%C3%A9.pcap");
    }
}
