//! Errors of commands.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use scenario::{self, ReportStyle, ScenarioError};

use crate::cli::ColourChoice;
use crate::visible::{ShownPath as _, visible, visible_in_colour};

/// An error in the arguments or in the files they name.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Errors in a scenario, each with its position.
    Scenario(Vec<ScenarioError>),
    /// A message, with an optional hint.
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

    /// An I/O error: the action, the file and the system's error.
    pub(crate) fn file(doing: &str, path: &Path, error: &io::Error) -> Self {
        let failure = Self::new(format!("cannot {doing} {}: {error}", path.shown()));
        let name = path.shown();
        match error.kind() {
            io::ErrorKind::PermissionDenied if doing == "read" => failure.hint(format!(
                "tcpdump as root writes files that only root reads: sudo chmod a+r {name}, or sudo cat {name} | ackclock diagnose -"
            )),
            _ => failure,
        }
    }

    /// An error of writing to standard output.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        Self::new(format!("cannot write to standard output: {error}"))
    }

    /// The error without its hint, a line for each in a scenario.
    #[cfg(target_os = "linux")]
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Scenario(errors) => {
                let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
                lines.join("\n")
            }
            Self::Plain { message, .. } => message.clone(),
        }
    }

    /// Writes the error to standard error.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Scenario(errors) => print_error_in_colour(|look| scenario::report(&errors, look)),
            Self::Plain { message, hint } => {
                let hint = hint.map(|hint| format!("  help: {hint}\n")).unwrap_or_default();
                print_error(&format!("error: {message}\n{hint}"));
            }
        }
        ExitCode::from(FAILED)
    }
}

/// Exit status of a command that has failed.
pub(crate) const FAILED: u8 = 2;

/// Writes to standard error.
pub(crate) fn print_error(text: &str) {
    // An error means that standard error is closed.
    let _ = io::stderr().lock().write_all(visible(text).as_bytes());
}

/// Writes `text` to standard error, with colours if enabled.
pub(crate) fn print_error_in_colour(text: impl Fn(ReportStyle) -> String) {
    match look() {
        ReportStyle::Plain => print_error(&text(ReportStyle::Plain)),
        look => {
            let text = text(look);
            let _ = io::stderr().lock().write_all(visible_in_colour(&text).as_bytes());
        }
    }
}

/// Colours only for a terminal, unless the user has disabled them (no-color.org).
fn look() -> ReportStyle {
    look_on(io::stderr().is_terminal())
}

/// What `--color` chose.
static CHOICE: OnceLock<ColourChoice> = OnceLock::new();

/// Sets what `--color` chose, before anything is printed.
pub(crate) fn choose_colours(choice: ColourChoice) {
    let _ = CHOICE.set(choice);
}

/// As [`look`], for any output.
#[expect(clippy::disallowed_methods, reason = "the look of messages, not of results")]
pub(crate) fn look_on(terminal: bool) -> ReportStyle {
    match CHOICE.get() {
        Some(ColourChoice::Always) => return ReportStyle::Coloured,
        Some(ColourChoice::Never) => return ReportStyle::Plain,
        Some(ColourChoice::Auto) | None => {}
    }
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !refused { ReportStyle::Coloured } else { ReportStyle::Plain }
}
