//! The stacks that take part.

use core::fmt;

use scenario::{Overrides, Stacks, load};
use sim::scenario::StackSpec;

/// What precedes the name of a program that is a real QUIC stack.
const PROGRAM: &str = "stack:";

/// A profile or a real QUIC stack, with its congestion control.
#[derive(Debug, Clone, PartialEq)]
pub struct InteropStack {
    /// As it was given: `PROFILE`, `stack:NAME`, either with `/CC`.
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
    /// Reads `PROFILE` or `stack:NAME`, with its default congestion control, or with `/CC`; `programs` are the stacks.
    ///
    /// # Errors
    /// There is no such profile in this build, or no such stack, or it does not have the congestion control.
    pub fn read(name: &str, programs: Stacks) -> Result<Self, InteropStackError> {
        let (stack, cc) =
            name.split_once('/').map_or((name, None), |(stack, cc)| (stack, Some(cc)));
        let mut host = match stack.strip_prefix(PROGRAM) {
            // The profile is that of runs without the stack, of which there is none.
            Some(program) => format!("profile = \"quic-rfc9002\"\nstack = {program:?}\n"),
            None => format!("profile = {stack:?}\n"),
        };
        if let Some(cc) = cc {
            host += &format!("cc = {cc:?}\n");
        }
        let text = format!(
            "[host.a]\n{host}[host.b]\n{host}[[path]]\nfrom = \"a\"\nto = \"b\"\nforward = []\nreturn = []\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"1B\"\n"
        );
        let overrides = Overrides { stacks: programs, ..Overrides::default() };
        let errors = match load(&text, "stack", &overrides) {
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

    /// Returns whether the two can have a connection.
    pub fn speaks_to(&self, other: &Self) -> bool {
        self.stack.speaks_with(&other.stack)
    }
}
