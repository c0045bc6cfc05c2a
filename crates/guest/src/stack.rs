//! A real QUIC stack as hosts: a program for each end of a connection, built by [`build`] and driven in lockstep with
//! the event queue.
//!
//! The simulator has the word, as in [`crate::socket`], with the same heads of messages; here the applications are the
//! simulator's. The program answers each message with any `SEND` and `SIGNAL`, then `DEADLINE`:
//!
//! | from | kind | time | body |
//! |---|---|---|---|
//! | simulator | 1 `HELLO` | 0 | lines of text: `version 1`, `side`, `seed`, `payload`, `ip`, `cc`, perhaps `logs`, `log`, `keys` |
//! | simulator | 2 `RECEIVE` | now | ECN bits: `u8`, UDP payload |
//! | simulator | 3 `RUN` | now | none: timers are due |
//! | simulator | 5 `OPEN` | now | none: the client connects |
//! | simulator | 6 `WRITE` | now | `u64`: bytes that the application offers |
//! | simulator | 7 `READ` | now | `u64`: bytes that the application reads at most |
//! | simulator | 8 `FINISH` | now | none: the stream ends after the bytes written |
//! | simulator | 9 `RESET` | now | none: the connection ends at once |
//! | program | 17 `SEND` | ignored | bytes of streams in it: `u32`, ECN bits: `u8`, UDP payload |
//! | program | 20 `SIGNAL` | ignored | `u8`: 0 connected, 1 writable, 2 readable, 3 closed, 4 aborted |
//! | program | 19 `DEADLINE` | when it wants `RUN`; all ones: never | 1 byte and eleven `u64`: `Report` of the crate `quic` |
//!
//! All packets of an answer leave at the time of the message.

pub mod build;
pub mod check;
pub mod compare;

mod capture;
mod endpoint;

use std::path::{Path, PathBuf};

use quic::real::{RealConfig, RealEndpoint, RealStack};

use endpoint::StackEndpoint;

/// Seconds after which a program that does not answer has failed.
pub const PATIENCE: u16 = 30;

/// A QUIC stack that is a program.
#[derive(Debug)]
pub struct StackProgram {
    name: &'static str,
    program: PathBuf,
    controllers: &'static [&'static str],
    logs: Option<StackLogs>,
    patience: u16,
}

/// The stacks' own logs.
#[derive(Debug, Clone)]
struct StackLogs {
    directory: PathBuf,
    /// With captures and key logs.
    captures: bool,
}

impl StackProgram {
    /// The stack with this name and program.
    pub fn new(name: &'static str, program: &Path, controllers: &'static [&'static str]) -> Self {
        let program = program.to_owned();
        Self { name, program, controllers, logs: None, patience: PATIENCE }
    }

    /// Each end of a connection writes its own log into this directory, which exists.
    #[must_use]
    pub fn with_logs(self, directory: &Path) -> Self {
        Self { logs: Some(StackLogs { directory: directory.to_owned(), captures: false }), ..self }
    }

    /// Each end of a connection writes its own log, a capture of its host and a key log for it into this directory.
    #[must_use]
    pub fn with_captures(self, directory: &Path) -> Self {
        Self { logs: Some(StackLogs { directory: directory.to_owned(), captures: true }), ..self }
    }

    /// Sets the seconds after which a program that does not answer has failed.
    #[must_use]
    pub fn with_patience(self, patience: u16) -> Self {
        Self { patience, ..self }
    }

    /// Makes it live as long as this process: hosts of scenarios refer to it.
    pub fn leak(self) -> &'static Self {
        Box::leak(Box::new(self))
    }
}

impl RealStack for StackProgram {
    fn name(&self) -> &'static str {
        self.name
    }

    fn controllers(&self) -> &'static [&'static str] {
        self.controllers
    }

    fn has_tls(&self) -> bool {
        true
    }

    fn endpoint(&self, config: &RealConfig) -> Box<dyn RealEndpoint> {
        let logs = self.logs.as_ref();
        Box::new(StackEndpoint::start(&self.program, config, logs, self.patience))
    }
}
