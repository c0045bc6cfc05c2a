//! Any text can be read; every error is at a position in the file; an import is a valid scenario.

use import_inet::read;
use scenario::{Overrides, load};

/// Checks `text`.
///
/// # Panics
/// If a property does not hold.
pub fn check(text: &str) {
    let lines = text.lines().count().max(1);
    let check = |errors: Vec<scenario::ScenarioError>| {
        for error in errors {
            assert!((1..=lines).contains(&error.line) || error.file != "x.ini", "{error}");
            let width = error.source_line.chars().count();
            assert!(error.column + error.width <= width + 1 || width == 0, "{error}");
        }
    };
    let ini = match read(text, "x.ini") {
        Ok(ini) => ini,
        Err(errors) => return check(errors),
    };
    // Each import reads two scenarios; an input exercises one of the three option sets.
    let ways =
        [(None, "quic-inet-2025-02"), (Some(0), "quic-inet-2025-02"), (None, "freebsd-14.3")];
    let (run, profile) = ways[text.len() % ways.len()];
    for config in ini.configs() {
        match ini.import(config, run, profile) {
            Ok(imported) => {
                load(&imported.toml, "x.toml", &Overrides::default()).expect("a scenario");
                assert!(imported.unmapped.iter().all(|one| (1..=lines).contains(&one.line)));
            }
            Err(errors) => check(errors),
        }
    }
}
