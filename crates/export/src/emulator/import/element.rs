//! Elements of a path as text for a scenario, each with the word that it represents.

use super::tokens::{ScriptToken, TokenPosition};

/// An element of a path as a line of TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathElement {
    pub(super) position: TokenPosition,
    /// A pair `KEY = VALUE`.
    pub(super) toml: String,
    pub(super) comment: Option<String>,
}

impl PathElement {
    /// Creates an element `{ KEY = VALUE }` that represents the option of a word.
    pub(super) fn new(token: ScriptToken<'_>, pair: String) -> Self {
        Self { position: token.position, toml: pair, comment: None }
    }

    /// Adds a comment.
    pub(super) fn comment(self, text: String) -> Self {
        Self { comment: Some(text), ..self }
    }
}

/// One direction of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedDirection {
    /// Position of the qdisc or pipe.
    pub(super) position: TokenPosition,
    pub(super) elements: Vec<PathElement>,
}
