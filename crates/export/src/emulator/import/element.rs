//! Elements of a path as text for a scenario, each with the word that it represents.

use super::tokens::{ScriptToken, TokenPosition};

/// An element of a path as a line of TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathElement {
    pub(super) position: TokenPosition,
    /// A pair `KEY = VALUE`.
    pub(super) toml: String,
    pub(super) comments: Vec<String>,
}

impl PathElement {
    /// Creates an element `{ KEY = VALUE }` that represents the option of a word.
    pub(super) fn new(token: ScriptToken<'_>, pair: String) -> Self {
        Self { position: token.position, toml: pair, comments: Vec::new() }
    }

    /// Adds a comment.
    pub(super) fn comment(mut self, text: String) -> Self {
        self.comments.push(text);
        self
    }

    /// Adds comments.
    pub(super) fn notes(mut self, texts: impl IntoIterator<Item = String>) -> Self {
        self.comments.extend(texts);
        self
    }
}

/// A queue of packets that wait for a rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueueModel {
    /// Name of the qdisc.
    pub(super) kind: String,
    /// A size of a scenario.
    pub(super) buffer: String,
    /// The discipline as TOML; `None` for drop-tail.
    pub(super) queue: Option<String>,
    pub(super) notes: Vec<String>,
}

/// One direction of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedDirection {
    /// Position of the qdisc or pipe.
    pub(super) position: TokenPosition,
    pub(super) elements: Vec<PathElement>,
    /// Network namespace of the device; empty for the machine itself.
    pub(super) namespace: String,
    /// Whether packets of both directions pass it: the device is the loopback.
    pub(super) is_loopback: bool,
}
