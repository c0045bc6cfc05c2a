//! Conditional lines of a script: `#ifdef NAME`, `#ifndef NAME`, `#else`, `#endif` (the lexer of
//! packetdrill for FreeBSD), and the definitions of `-D NAME=VALUE`.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, ScriptSpan};

/// Definitions by name: those of `-D`, and the name of the system under test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    values: BTreeMap<String, String>,
}

impl Definitions {
    /// Defines `name`; an empty value only makes `#ifdef` true.
    pub fn define(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    /// Returns whether the name is defined.
    pub fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the value that replaces a word, if there is one.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// Replaces directives and the lines they exclude by blanks, so that positions stay.
///
/// # Errors
/// A directive that is unknown, lacks its name, or has no counterpart.
pub(crate) fn apply(text: &str, definitions: &Definitions) -> Result<String, Diagnostic> {
    let mut out = String::with_capacity(text.len());
    // The open directives: their positions, and whether their lines are included.
    let mut open: Vec<(ScriptSpan, bool)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let words = line.trim_end();
        let span = ScriptSpan { start: at, end: at + words.len() };
        at += line.len();
        let directive = words.strip_prefix('#').and_then(|rest| {
            let mut parts = rest.split_whitespace();
            let name = parts.next().filter(|name| rest.starts_with(name))?;
            matches!(name, "ifdef" | "ifndef" | "else" | "endif").then(|| (name, parts.next()))
        });
        let error = |message: &str| Diagnostic::new(text, span, message);
        match directive {
            Some((kind @ ("ifdef" | "ifndef"), Some(name))) => {
                open.push((span, definitions.contains(name) == (kind == "ifdef")));
            }
            Some(("ifdef" | "ifndef", None)) => {
                return Err(error("this directive lacks its name").expected("`#ifdef NAME`"));
            }
            Some((kind, _)) => match (kind, open.pop()) {
                ("else", Some((span, included))) => open.push((span, !included)),
                (_, Some(_)) => {}
                (_, None) => return Err(error("this directive has no `#ifdef` before it")),
            },
            None if open.iter().all(|(_, included)| *included) => {
                out.push_str(line);
                continue;
            }
            None => {}
        }
        out.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
    }
    match open.pop() {
        Some((span, _)) => {
            Err(Diagnostic::new(text, span, "this directive is not closed").expected("`#endif`"))
        }
        None => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excluded_lines_become_blanks_of_the_same_length() {
        let mut definitions = Definitions::default();
        definitions.define("FreeBSD", "");
        let text = "a\n#ifdef FreeBSD\nb\n#else\nü\n#endif\n#ifndef FreeBSD\nc\n#endif\nd";
        let kept = apply(text, &definitions).unwrap();
        assert_eq!(kept.len(), text.len());
        assert_eq!(kept.split_whitespace().collect::<Vec<_>>(), ["a", "b", "d"]);
        assert_eq!(kept.find('d'), text.rfind('d'));
    }

    #[test]
    fn directives_must_be_paired() {
        for text in ["#endif\n", "#else\n", "#ifdef A\n", "#ifdef\n#endif\n"] {
            assert!(apply(text, &Definitions::default()).is_err(), "{text}");
        }
        // A comment of the shell in a command is no directive.
        assert!(apply("# else where\n", &Definitions::default()).is_ok());
    }
}
