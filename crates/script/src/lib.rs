//! Packet scripts: what a host sends, packet by packet, when an application calls it and packets
//! arrive. Layer 6.
//!
//! The language is packetdrill's public one: [`parse()`] makes of a text a
//! [`Script`](ast::Script), [`run()`] drives one [`tcp::Endpoint`] with it in virtual time, and the
//! first difference is a [`Diagnostic`] that points at the script's own words.
//!
//! Reading order: [`ast`], `parse` (times, packets, options, calls), [`shell`] and [`settings`]
//! (what the commands of a script set), `code` (its assertions), [`run`](mod@run).
//!
//! What it does not do: UDP, ICMP, Fast Open, several connections at once, and all that
//! [`Verdict::Unsupported`] names when a script asks for it. It reads no files: a script's own
//! shell scripts are handed over by the caller.

pub mod ast;
mod code;
mod cursor;
mod diagnostic;
mod parse;
pub mod run;
pub mod settings;
pub mod shell;

pub use diagnostic::{Diagnostic, Span};
pub use parse::parse;
pub use run::{Options, Outcome, Verdict, run};
