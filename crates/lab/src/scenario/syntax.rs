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
            faults.push(other(error, start, source));
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

/// In the parser's own words: its first line says what is wrong, a second what would be right.
fn other(error: &Error, start: usize, source: SourceId) -> Fault {
    let span = error.span().unwrap_or(start..start);
    if error.message().starts_with(UNQUOTED) {
        // What the parser says of `key =` with nothing behind it, too.
        let fault = Fault::new(source.place(span), "a value is missing or unreadable");
        return fault.expected("a value such as \"text\", 5 or true");
    }
    let (message, expected) = match error.message().split_once(", expected ") {
        Some((message, expected)) => (message, Some(expected)),
        None => (error.message(), None),
    };
    let message = message.lines().next().unwrap_or("unreadable");
    let fault = Fault::new(source.place(span), format!("not valid TOML: {message}"));
    match expected {
        None | Some("nothing") => fault,
        Some(expected) => fault.expected(expected),
    }
}
