//! Errors for text that is not TOML.

use toml::de::Error;

use super::source::{SourceId, SpannedError};

const UNQUOTED: &str = "string values must be quoted";

/// Returns the independent errors: values without quotes, up to the first error that the parser
/// cannot recover from.
pub(super) fn faults(errors: &[Error], text: &str, source: SourceId) -> Vec<SpannedError> {
    let mut errors: Vec<(usize, &Error)> =
        errors.iter().map(|error| (error.span().map_or(text.len(), |s| s.start), error)).collect();
    errors.sort_by_key(|(start, _)| *start);
    let mut faults = Vec::new();
    for (start, error) in errors {
        if let Some((start, value)) = unquoted(text, start, error.message()) {
            let place = source.span(start..start + value.len());
            let fault = SpannedError::new(place, "this value needs quotes");
            faults.push(fault.hint(format!("write \"{value}\"")));
        } else {
            faults.push(other(error, start, text, source));
            break;
        }
    }
    faults
}

/// Returns offset and text of the value at `at`, if it only lacks quotes.
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

/// Converts other errors: common ones get a message of their own, others the parser's text, in
/// which the expected token follows a comma.
fn other(error: &Error, start: usize, text: &str, source: SourceId) -> SpannedError {
    let span = error.span().unwrap_or(start..start);
    let place = source.span(span.clone());
    let message = error.message().lines().next().unwrap_or("unreadable");
    let (message, expected) = match message.split_once(", expected ") {
        Some((message, expected)) => (message, Some(expected)),
        None => (message, None),
    };
    match (message, expected) {
        // The parser also reports this for `key =` without a value.
        (UNQUOTED, _) => SpannedError::new(place, "a value is missing or unreadable")
            .expected("a value such as \"text\", 5 or true"),
        ("duplicate key", _) => {
            let key = text.get(span).unwrap_or_default();
            SpannedError::new(place, format!("`{key}` is defined twice"))
        }
        ("invalid basic string", Some("`\"`")) => {
            SpannedError::new(place, "this text has no closing quote").expected("`\"`")
        }
        (_, None | Some("nothing")) => {
            SpannedError::new(place, format!("not valid TOML: {message}"))
        }
        (_, Some(expected)) => {
            SpannedError::new(place, format!("not valid TOML: {message}")).expected(expected)
        }
    }
}
