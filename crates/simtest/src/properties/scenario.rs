//! Any text is a scenario, or a study of several, or rejected with positions in it, and its errors
//! can be displayed.

use scenario::{Overrides, ReportStyle, ScenarioError, Study, StudyOverrides, load, report};

/// Checks `text`.
///
/// # Panics
/// If a property does not hold.
pub fn check(text: &str) {
    match load(text, "x.toml", &Overrides::default()) {
        // The run uses the text as written.
        Ok(loaded) => assert_eq!(loaded.text, text),
        Err(errors) => lie_within(text, &errors),
    }
    if let Err(errors) = Study::load(text, "x.toml", &StudyOverrides::default()) {
        lie_within(text, &errors);
    }
}

fn lie_within(text: &str, errors: &[ScenarioError]) {
    assert!(!errors.is_empty());
    for error in errors {
        assert_eq!(error.file, "x.toml", "{error}");
        let line = text.split('\n').nth(error.line - 1).expect("the line is there");
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        assert_eq!(error.source_line, line, "{error}");
        let width = line.chars().count();
        assert!(error.column >= 1 && error.column + error.width <= width + 1, "{error}");
    }
    assert!(!report(errors, ReportStyle::Plain).is_empty());
}
