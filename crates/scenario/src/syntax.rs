//! What to say where a text is not TOML.

use toml::de::Error;

use super::source::{Fault, SourceId};

const UNQUOTED: &str = "string values must be quoted";

/// The errors that do not follow from one another: values that lack their quotes, up to the
/// first error that throws the parser off its way.
pub(super) fn faults(errors: &[Error], text: &str, source: SourceId) -> Vec<Fault> {
    let mut errors: Vec<(usize, &Error)> =
        errors.iter().map(|error| (error.span().map_or(text.len(), |s| s.start), error)).collect();
    errors.sort_by_key(|(start, _)| *start);
    let mut faults = Vec::new();
    for (start, error) in errors {
        if let Some((start, value)) = unquoted(text, start, error.message()) {
            let place = source.place(start..start + value.len());
            let fault = Fault::new(place, "this value needs quotes");
            faults.push(fault.hint(format!("write \"{value}\"")));
        } else {
            faults.push(other(error, start, text, source));
            break;
        }
    }
    faults
}

/// The value at `at`, with its place, if it is one that only lacks quotes.
fn unquoted<'t>(text: &'t str, at: usize, message: &str) -> Option<(usize, &'t str)> {
    let about_value = [UNQUOTED, "invalid float", "invalid integer"];
    if !about_value.iter().any(|about| message.starts_with(about)) {
        return None;
    }
    let before = text.get(..at)?.rfind(['=', ',', '[', '{', '\n']).map_or(0, |found| found + 1);
    let value = text[before..].split([',', ']', '}', '#', '\n']).next()?;
    let start = before + (value.len() - value.trim_start().len());
    let value = value.trim();
    let plain = |c: char| c.is_alphanumeric() || " ./%_-".contains(c);
    (!value.is_empty() && value.chars().all(plain)).then_some((start, value))
}

/// In our own words where a mistake is common, else in the parser's: what is wrong, and behind a
/// comma what would be right.
fn other(error: &Error, start: usize, text: &str, source: SourceId) -> Fault {
    let span = error.span().unwrap_or(start..start);
    let place = source.place(span.clone());
    let message = error.message().lines().next().unwrap_or("unreadable");
    let (message, expected) = match message.split_once(", expected ") {
        Some((message, expected)) => (message, Some(expected)),
        None => (message, None),
    };
    match (message, expected) {
        // What the parser says of `key =` with nothing behind it, too.
        (UNQUOTED, _) => Fault::new(place, "a value is missing or unreadable")
            .expected("a value such as \"text\", 5 or true"),
        ("duplicate key", _) => {
            let key = text.get(span).unwrap_or_default();
            Fault::new(place, format!("`{key}` is defined for a second time"))
        }
        ("invalid basic string", Some("`\"`")) => {
            Fault::new(place, "this text has no closing quote").expected("`\"`")
        }
        (_, None | Some("nothing")) => Fault::new(place, format!("not valid TOML: {message}")),
        (_, Some(expected)) => {
            Fault::new(place, format!("not valid TOML: {message}")).expected(expected)
        }
    }
}
