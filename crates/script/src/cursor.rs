//! Tokenizer: a position in a script and the tokens from there. Whitespace and comments only
//! separate tokens.

use units::Duration;

use crate::ast::Spanned;
use crate::conditional::Definitions;
use crate::diagnostic::{Diagnostic, ScriptSpan};

/// A position in a script.
#[derive(Debug, Clone)]
pub(crate) struct ScriptCursor<'t> {
    text: &'t str,
    definitions: &'t Definitions,
    at: usize,
    /// End of the last token taken.
    end: usize,
}

type Result<T> = core::result::Result<T, Diagnostic>;

impl<'t> ScriptCursor<'t> {
    pub(crate) fn new(text: &'t str, definitions: &'t Definitions) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { text, definitions, at, end: at }
    }

    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Returns the offset of the next token.
    pub(crate) fn start(&mut self) -> Result<usize> {
        self.skip()?;
        Ok(self.at)
    }

    /// Returns the span from `start` to the end of the last token taken.
    pub(crate) fn span(&self, start: usize) -> ScriptSpan {
        ScriptSpan { start, end: self.end.max(start) }
    }

    /// Skips whitespace and comments.
    pub(crate) fn skip(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let Some(length) = trimmed.find("*/") else {
                    let span = ScriptSpan { start: self.at, end: self.at + 2 };
                    return Err(Diagnostic::new(self.text, span, "this comment has no end")
                        .expected("`*/`"));
                };
                self.at += length + 2;
            } else {
                return Ok(());
            }
        }
    }

    pub(crate) fn at_end(&mut self) -> Result<bool> {
        self.skip()?;
        Ok(self.rest().is_empty())
    }

    /// Returns whether `token` is next.
    pub(crate) fn next_is(&mut self, token: &str) -> Result<bool> {
        self.skip()?;
        Ok(self.rest().starts_with(token))
    }

    /// Takes `token` if it is next.
    pub(crate) fn take(&mut self, token: &str) -> Result<bool> {
        let found = self.next_is(token)?;
        if found {
            self.advance(token.len());
        }
        Ok(found)
    }

    /// Takes `token`, or returns an error if it is missing.
    pub(crate) fn expect(&mut self, token: &str) -> Result<()> {
        if self.take(token)? { Ok(()) } else { Err(self.missing(&format!("`{token}`"))) }
    }

    /// Takes `bytes` of the text.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.end = self.at;
    }

    /// Takes the longest sequence of matching characters; `None` if it is empty.
    pub(crate) fn run(
        &mut self,
        belongs: impl Fn(char) -> bool,
    ) -> Result<Option<Spanned<&'t str>>> {
        self.skip()?;
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        if length == 0 {
            return Ok(None);
        }
        let start = self.at;
        self.advance(length);
        Ok(Some(Spanned { value: &rest[..length], span: self.span(start) }))
    }

    /// Takes a word: letters, digits and `_`, not starting with a digit.
    pub(crate) fn word(&mut self) -> Result<Option<Spanned<&'t str>>> {
        self.skip()?;
        if !self.rest().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Ok(None);
        }
        let word = self.run(|c| c.is_ascii_alphanumeric() || c == '_')?;
        let definitions = self.definitions;
        Ok(word.map(|word| Spanned {
            value: definitions.value(word.value).unwrap_or(word.value),
            span: word.span,
        }))
    }

    /// Returns whether a word is next.
    pub(crate) fn word_ahead(&mut self) -> Result<bool> {
        Ok(self.clone().word()?.is_some())
    }

    /// Takes `word` if it is the next whole word.
    pub(crate) fn keyword(&mut self, word: &str) -> Result<bool> {
        let mut ahead = self.clone();
        let found = ahead.word()?.is_some_and(|found| found.value == word);
        if found {
            *self = ahead;
        }
        Ok(found)
    }

    /// Takes an integer, decimal or with `0x`, of at most `most`.
    pub(crate) fn number(&mut self, what: &str, most: u64) -> Result<Spanned<u64>> {
        self.skip()?;
        let Some(digits) = self.clone().run(|c| c.is_ascii_alphanumeric())? else {
            return Err(self.missing(what));
        };
        let length = digits.value.len();
        let digits = Spanned {
            value: self.definitions.value(digits.value).unwrap_or(digits.value),
            span: digits.span,
        };
        let value = match digits.value.strip_prefix("0x").or(digits.value.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.value.parse(),
        };
        let all_digits = digits.value.bytes().all(|b| b.is_ascii_digit());
        match value {
            Ok(value) if value <= most => {
                self.advance(length);
                Ok(Spanned { value, span: digits.span })
            }
            Err(_) if !all_digits && !digits.value.starts_with("0x") => Err(self.missing(what)),
            _ => Err(Diagnostic::new(self.text, digits.span, format!("{what} is too large"))
                .expected(format!("at most {most}"))
                .found(digits.value)),
        }
    }

    /// Takes a duration in seconds: `0`, `.1`, `0.100`.
    pub(crate) fn seconds(&mut self) -> Result<Spanned<Duration>> {
        self.skip()?;
        // `...` and `~` can follow a time; `.` alone is not a time.
        let rest = self.rest();
        let whole = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let mut length = whole;
        if let Some(fraction) = rest[whole..].strip_prefix('.') {
            let digits = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
            if digits > 0 {
                length += 1 + digits;
            } else if whole > 0 && !fraction.starts_with('.') {
                length += 1;
            }
        }
        if length == 0 {
            return Err(self.missing("a time in seconds"));
        }
        let written = &rest[..length];
        let start = self.at;
        self.advance(length);
        let span = self.span(start);
        match nanoseconds(written) {
            Ok(nanos) => Ok(Spanned { value: Duration::from_nanos(nanos), span }),
            Err(why) => Err(Diagnostic::new(self.text, span, why)
                .expected("at most 1000000 seconds and nine decimal places")
                .found(written)),
        }
    }

    /// Returns the error for a missing token.
    pub(crate) fn missing(&self, expected: &str) -> Diagnostic {
        let mut ahead = self.clone();
        // An unterminated comment was reported before.
        let _ = ahead.skip();
        let rest = ahead.rest();
        if rest.is_empty() {
            let span = ScriptSpan { start: self.end, end: self.end };
            return Diagnostic::new(self.text, span, "the script ends too early")
                .expected(expected);
        }
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match rest.find(|c| !word(c)) {
            Some(0) => rest.chars().next().map_or(0, char::len_utf8),
            Some(length) => length,
            None => rest.len(),
        };
        let span = ScriptSpan { start: ahead.at, end: ahead.at + length };
        Diagnostic::new(self.text, span, "unexpected token")
            .expected(expected)
            .found(format!("`{}`", &rest[..length]))
    }
}

/// Converts decimal seconds to nanoseconds.
fn nanoseconds(written: &str) -> core::result::Result<u64, &'static str> {
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    if fraction.len() > 9 {
        return Err("this time is finer than a nanosecond");
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u64::MAX) };
    if whole > 1_000_000 {
        return Err("this time is too long");
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().unwrap_or(0);
    Ok(whole * 1_000_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(text: &str) -> ScriptCursor<'_> {
        static NONE: std::sync::LazyLock<Definitions> =
            std::sync::LazyLock::new(Definitions::default);
        ScriptCursor::new(text, &NONE)
    }

    #[test]
    fn times_are_exact() {
        for (text, nanos) in
            [("0", 0), (".1", 100_000_000), ("1.", 1_000_000_000), ("+2", 0), ("0.000000001 x", 1)]
        {
            let read = cursor(text).seconds().map(|time| time.value.as_nanos());
            assert_eq!(read.ok(), (nanos > 0 || text == "0").then_some(nanos), "{text}");
        }
        assert!(cursor("0.0000000001").seconds().is_err());
        assert!(cursor("9999999").seconds().is_err());
        let mut blocking = cursor("0...0.2");
        assert!(blocking.seconds().unwrap().value.is_zero());
        assert!(blocking.take("...").unwrap());
        assert_eq!(blocking.seconds().unwrap().value, Duration::from_millis(200));
    }

    #[test]
    fn comments_are_skipped_and_must_end() {
        let mut at = cursor("// one\n /* two\n */ word");
        assert_eq!(at.word().unwrap().unwrap().value, "word");
        assert!(cursor(" /* ").skip().is_err());
    }

    #[test]
    fn numbers_have_a_limit() {
        assert_eq!(cursor("0x1f").number("a number", 99).unwrap().value, 31);
        assert!(cursor("100").number("a number", 99).is_err());
        assert!(cursor("ten").number("a number", 99).is_err());
        assert!(cursor("99999999999999999999").number("a number", u64::MAX).is_err());
    }
}
