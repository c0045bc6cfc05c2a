//! Any text is a script or rejected with a position in it; any script runs to an end.

use script::{Diagnostic, RunOptions, ScriptOverrides, ScriptVerdict, parse, run};
use tcp::profile::TcpProfile;

/// Checks `text`.
///
/// # Panics
/// If a property does not hold.
pub fn check(text: &str) {
    let script = match parse(text) {
        Ok(script) => script,
        Err(error) => return lies_within(text, &error),
    };
    let profile = TcpProfile::named("linux-6.18").expect("a profile");
    let overrides = ScriptOverrides::default();
    let options = RunOptions {
        profile: &profile,
        relaxed_psh: false,
        packets: true,
        overrides,
        files: &|_| None,
        real: None,
    };
    match run(text, &script, &options).verdict {
        ScriptVerdict::Passed => {}
        ScriptVerdict::Failed(said) | ScriptVerdict::Unsupported(said) => lies_within(text, &said),
    }
}

fn lies_within(text: &str, said: &Diagnostic) {
    let line = text.split('\n').nth(said.line - 1).expect("the line is there");
    assert!(said.column <= line.chars().count() + 1, "{said}");
}
