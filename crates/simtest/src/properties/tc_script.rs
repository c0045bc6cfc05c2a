//! Scripts of tc: every error is in the text, and an import is a valid scenario.

use export::emulator::import;
use scenario::Overrides;

/// Checks the property for a text.
///
/// # Panics
/// The text violates it.
pub fn check(text: &str) {
    match import(text) {
        Ok(toml) => assert!(scenario::load(&toml, "import", &Overrides::default()).is_ok()),
        Err(error) => {
            let lines = text.lines().count().max(1);
            assert!((1..=lines).contains(&error.position.line), "{error}");
            assert!(!error.message.is_empty());
        }
    }
}
