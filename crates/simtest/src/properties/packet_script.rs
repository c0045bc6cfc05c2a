//! Any text is a script or refused at a place in it; any script runs to an end.

use script::{Diagnostic, Options, Verdict, parse, run};
use tcp::profile::Profile;

/// Reads `text`.
///
/// # Panics
/// If a claim does not hold.
pub fn check(text: &str) {
    let script = match parse(text) {
        Ok(script) => script,
        Err(error) => return lies_within(text, &error),
    };
    let profile = Profile::named("linux-6.18").expect("a profile");
    let options = Options { profile: &profile, relaxed_psh: false, files: &|_| None };
    match run(text, &script, &options).verdict {
        Verdict::Passed => {}
        Verdict::Failed(said) | Verdict::Unsupported(said) => lies_within(text, &said),
    }
}

fn lies_within(text: &str, said: &Diagnostic) {
    let line = text.split('\n').nth(said.line - 1).expect("the line is there");
    assert!(said.column <= line.chars().count() + 1, "{said}");
}
