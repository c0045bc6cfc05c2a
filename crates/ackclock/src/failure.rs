//! Why a command did not do its work.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use scenario::{self, Look, ScenarioError};

/// A mistake in the arguments, or in what they name.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Mistakes in a scenario, each with its place.
    Scenario(Vec<ScenarioError>),
    /// One sentence, and perhaps an advice.
    Plain { message: String, hint: Option<String> },
    /// Whoever read standard output, or a pipe, has gone: nothing is wrong.
    ReaderGone,
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
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ReaderGone;
        }
        Self::new(format!("cannot {doing} {}: {error}", path.display()))
    }

    /// What writing to standard output failed with.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::new(format!("cannot write to standard output: {error}")),
        }
    }

    /// Says it on standard error.
    pub(crate) fn report(self) -> ExitCode {
        let text = match self {
            Self::Scenario(errors) => scenario::report(&errors, look()),
            Self::Plain { message, hint } => {
                let hint = hint.map(|hint| format!("  help: {hint}\n")).unwrap_or_default();
                format!("error: {message}\n{hint}")
            }
            Self::ReaderGone => return ExitCode::SUCCESS,
        };
        tell(&text);
        ExitCode::from(2)
    }
}

/// Writes to standard error.
pub(crate) fn tell(text: &str) {
    // Where it is closed there is nobody to tell.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Colours only for a terminal whose user has not refused them (no-color.org).
pub(crate) fn look() -> Look {
    look_on(io::stderr().is_terminal())
}

/// The same for what is printed on something that is a terminal or not.
#[expect(clippy::disallowed_methods, reason = "the look of messages, not of results")]
pub(crate) fn look_on(terminal: bool) -> Look {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !refused { Look::Coloured } else { Look::Plain }
}
