//! Why a command did not do its work.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use scenario::{self, Look, ScenarioError};

use crate::visible::{visible, visible_in_colour};

/// A mistake in the arguments, or in what they name.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Mistakes in a scenario, each with its place.
    Scenario(Vec<ScenarioError>),
    /// One sentence, and perhaps an advice.
    Plain { message: String, hint: Option<String> },
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Plain { message: message.into(), hint: None }
    }

    pub(crate) fn hint(self, advice: impl Into<String>) -> Self {
        match self {
            Self::Plain { message, .. } => Self::Plain { message, hint: Some(advice.into()) },
            other => other,
        }
    }

    /// `doing` what with which file, and what the system said.
    pub(crate) fn file(doing: &str, path: &Path, error: &io::Error) -> Self {
        Self::new(format!("cannot {doing} {}: {error}", path.display()))
    }

    /// What writing to standard output failed with.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        Self::new(format!("cannot write to standard output: {error}"))
    }

    /// Writes it to standard error.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Scenario(errors) => tell_in_colour(|look| scenario::report(&errors, look)),
            Self::Plain { message, hint } => {
                let hint = hint.map(|hint| format!("  help: {hint}\n")).unwrap_or_default();
                tell(&format!("error: {message}\n{hint}"));
            }
        }
        ExitCode::from(FAILED)
    }
}

/// Exit status of a command that has failed.
pub(crate) const FAILED: u8 = 2;

/// Writes to standard error.
pub(crate) fn tell(text: &str) {
    // Where it is closed nobody reads it.
    let _ = io::stderr().lock().write_all(visible(text).as_bytes());
}

/// Writes to standard error what `text` gives, with colours if that is to have some.
pub(crate) fn tell_in_colour(text: impl Fn(Look) -> String) {
    match look() {
        Look::Plain => tell(&text(Look::Plain)),
        look => {
            let text = text(look);
            let _ = io::stderr().lock().write_all(visible_in_colour(&text).as_bytes());
        }
    }
}

/// Colours only for a terminal whose user has not refused them (no-color.org).
fn look() -> Look {
    look_on(io::stderr().is_terminal())
}

/// The same for what is printed on something that is a terminal or not.
#[expect(clippy::disallowed_methods, reason = "the look of messages, not of results")]
pub(crate) fn look_on(terminal: bool) -> Look {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !refused { Look::Coloured } else { Look::Plain }
}
