//! Packet scripts: the packets that a host sends in response to system calls and received packets.
//! Layer 5.
//!
//! The language is packetdrill's public one: [`parse()`] converts a text to a
//! [`Script`](ast::Script), [`run()`] drives one [`tcp::TcpEndpoint`] with it in simulated time,
//! and the first difference is a [`Diagnostic`] that points into the script.
//!
//! Reading order: [`ast`], `parse` (times, packets, options, calls), [`shell`] and [`settings`]
//! (settings made by the commands of a script), `code` (assertions), [`run`](mod@run).
//!
//! With [`real`] a script drives a real stack in place of the model, with the same comparison.
//!
//! Not supported: UDP, several concurrent connections, and features that end a run with
//! [`ScriptVerdict::Unsupported`]. It reads no files: the caller provides shell scripts of a script.

pub mod ast;
mod code;
pub mod conditional;
mod cursor;
mod diagnostic;
mod parse;
pub mod real;
pub mod run;
pub mod settings;
pub mod shell;

pub use conditional::Definitions;
pub use diagnostic::{Diagnostic, ScriptSpan};
pub use parse::{parse, parse_with};
pub use run::{
    NonFatal, RunOptions, ScriptOutcome, ScriptOverrides, ScriptPacketSeen, ScriptVerdict, run,
};
