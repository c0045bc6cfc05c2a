//! The stacks that take part.

use core::fmt;

use scenario::{Overrides, load};
use sim::scenario::StackSpec;

/// A profile, with its congestion control.
#[derive(Debug, Clone, PartialEq)]
pub struct InteropStack {
    /// As it was given: `PROFILE` or `PROFILE/CC`.
    pub name: String,
    /// The stack of a host.
    pub stack: StackSpec,
}

/// Error: no such stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InteropStackError {
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: String,
}

impl fmt::Display for InteropStackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.hint)
    }
}

impl core::error::Error for InteropStackError {}

impl InteropStack {
    /// Reads `PROFILE`, with its default congestion control, or `PROFILE/CC`.
    ///
    /// # Errors
    /// There is no such profile in this build, or it does not have the congestion control.
    pub fn read(name: &str) -> Result<Self, InteropStackError> {
        let host = match name.split_once('/') {
            Some((profile, cc)) => format!("profile = {profile:?}\ncc = {cc:?}\n"),
            None => format!("profile = {name:?}\n"),
        };
        let text = format!(
            "[host.a]\n{host}[host.b]\n{host}[[path]]\nfrom = \"a\"\nto = \"b\"\nforward = []\nreturn = []\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"1B\"\n"
        );
        let errors = match load(&text, "stack", &Overrides::default()) {
            Ok(loaded) => match loaded.scenario.hosts.into_iter().next() {
                Some(host) => return Ok(Self { name: name.to_owned(), stack: host.stack }),
                None => Vec::new(),
            },
            Err(errors) => errors,
        };
        let list = "`ackclock scenario keys` lists the profiles with their congestion controls";
        let (message, hint) = errors.first().map_or((String::new(), None), |error| {
            (
                error.message.clone(),
                error
                    .hint
                    .clone()
                    .or_else(|| Some(format!("expected {}", error.expected.as_ref()?))),
            )
        });
        Err(InteropStackError {
            message: format!("`{name}` is no stack: {message}"),
            hint: hint.unwrap_or_else(|| list.to_owned()),
        })
    }

    /// Returns whether the two can have a connection: both TCP, both models of QUIC, or both the same real
    /// implementation, as a model has no bytes.
    pub fn speaks_to(&self, other: &Self) -> bool {
        match (&self.stack, &other.stack) {
            (StackSpec::Tcp(_), StackSpec::Tcp(_)) | (StackSpec::Quic(_), StackSpec::Quic(_)) => {
                true
            }
            (StackSpec::Real(one), StackSpec::Real(other)) => {
                one.stack.name() == other.stack.name()
            }
            _ => false,
        }
    }
}
