//! Pasted texts: every section is in the text, and a scenario made of one is valid.

use ingest::pasted;
use scenario::Overrides;

/// Checks the property for a text.
///
/// # Panics
/// The text violates it.
pub fn check(text: &str) {
    let Some(report) = pasted::read(text) else { return };
    let lines = text.lines().count().max(1);
    for section in &report.sections {
        assert!((1..=lines).contains(&section.line), "{section:?}");
    }
    assert!(!report.next.is_empty() && !report.text("x").is_empty());
    if let Some(toml) = pasted::scenario(&report.figures) {
        let loaded = scenario::load(&toml, "pasted", &Overrides::default());
        assert!(loaded.is_ok(), "{toml}\n{loaded:?}");
    }
}
