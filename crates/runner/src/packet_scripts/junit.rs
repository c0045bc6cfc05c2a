//! Results of scripts as JUnit XML, for continuous integration.

use std::path::Path;

use report::junit::{TestCase, TestMessage, TestOutcome, TestSuite};

use super::{Ending, ScriptResult};

/// The results as one test suite: scripts that were not run are skipped tests, those that cannot
/// be parsed are errors.
pub fn junit(results: &[ScriptResult]) -> String {
    TestSuite { name: "packetdrill".to_owned(), cases: results.iter().map(case).collect() }.to_xml()
}

fn case(one: &ScriptResult) -> TestCase {
    let path = Path::new(&one.file);
    let folder = path.parent().map(|folder| folder.display().to_string());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    TestCase {
        class: folder.unwrap_or_default(),
        name: name.unwrap_or_default(),
        seconds: one.time.as_secs_f64(),
        outcome: outcome(&one.ending),
    }
}

fn outcome(ending: &Ending) -> TestOutcome {
    let Some(said) = ending.diagnostic() else { return TestOutcome::Passed };
    let parts = [("expected", &said.expected), ("found", &said.found), ("help", &said.hint)];
    let lines = parts
        .iter()
        .filter_map(|(title, text)| text.as_ref().map(|text| format!("{title}: {text}\n")));
    let message = TestMessage {
        message: format!("{}:{}: {}", said.line, said.column, said.message),
        text: lines.collect(),
    };
    match ending {
        Ending::Unsupported(_) => TestOutcome::Skipped(message),
        Ending::Unreadable(_) => TestOutcome::Error(message),
        _ => TestOutcome::Failed(message),
    }
}
