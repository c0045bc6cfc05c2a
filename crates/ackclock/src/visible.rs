//! Escapes control characters in text from files and arguments before it reaches a terminal.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

/// Control characters except tab and newline (C0, DEL, C1), and characters that reorder the text
/// around them (Unicode's bidirectional embeddings, overrides and isolates).
const fn is_control(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{8}'
            | '\u{b}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Names of files in messages and reports.
pub(crate) trait ShownPath {
    /// The name, with control characters as [`visible`], and newlines too: a name forges no line.
    fn shown(&self) -> String;
}

impl ShownPath for Path {
    fn shown(&self) -> String {
        visible(&self.display().to_string()).replace('\r', "\\u000d").replace('\n', "\\u000a")
    }
}

impl ShownPath for OsStr {
    fn shown(&self) -> String {
        Path::new(self).shown()
    }
}

/// `text` with its control characters as `\u001b`, which is also the escape in JSON and TOML
/// strings. The carriage return of `\r\n` stays.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |_| 0)
}

/// As [`visible`], but colours stay (SGR sequences: ESC, `[`, digits and semicolons, `m`).
pub(crate) fn visible_in_colour(text: &str) -> Cow<'_, str> {
    escaped(text, |rest| {
        let Some(inside) = rest.strip_prefix("\u{1b}[") else { return 0 };
        let length = inside.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count();
        if inside[length..].starts_with('m') { 2 + length + 1 } else { 0 }
    })
}

/// Escapes control characters. `keep` returns the number of bytes to keep at the start of the rest,
/// which begins with a control character.
fn escaped(text: &str, keep: impl Fn(&str) -> usize) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_control) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let kept = if after.starts_with("\r\n") { 2 } else { keep(after) };
        out.push_str(&after[..kept]);
        rest = &after[kept..];
        if kept == 0
            && let Some(character) = rest.chars().next()
        {
            out.push_str(&format!("\\u{:04x}", u32::from(character)));
            rest = &rest[character.len_utf8()..];
        }
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// A writer that escapes control characters as [`visible`] does, and invalid UTF-8 as `\x9b`.
#[derive(Debug)]
pub(crate) struct Visible<W> {
    out: W,
    /// An incomplete character, or a carriage return before its newline.
    held: Vec<u8>,
}

impl<W: Write> Visible<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, held: Vec::new() }
    }

    fn hidden(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.iter().try_for_each(|byte| write!(self.out, "\\x{byte:02x}"))
    }

    fn text(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            let (good, bad, more) = match std::str::from_utf8(bytes) {
                Ok(text) => (text, 0, false),
                Err(error) => {
                    let good = &bytes[..error.valid_up_to()];
                    let bad = error.error_len().unwrap_or(0);
                    (
                        std::str::from_utf8(good).unwrap_or_default(),
                        bad,
                        error.error_len().is_none(),
                    )
                }
            };
            let whole = good.strip_suffix('\r').filter(|_| bad == 0).unwrap_or(good);
            self.out.write_all(visible(whole).as_bytes())?;
            if bad == 0 {
                let from = if more || whole.len() < good.len() { whole.len() } else { bytes.len() };
                self.held.extend_from_slice(&bytes[from..]);
                return Ok(());
            }
            self.hidden(&bytes[good.len()..good.len() + bad])?;
            bytes = &bytes[good.len() + bad..];
        }
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b' '..=b'~');
        if self.held.is_empty() && bytes.iter().all(plain) {
            self.out.write_all(bytes)?;
        } else {
            let mut all = core::mem::take(&mut self.held);
            all.extend_from_slice(bytes);
            self.text(&all)?;
        }
        Ok(bytes.len())
    }

    /// Incomplete characters are written as they are.
    fn flush(&mut self) -> io::Result<()> {
        let held = core::mem::take(&mut self.held);
        self.hidden(&held)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_written_out_and_text_stays() {
        assert_eq!(visible("a\tb\r\nc\u{e9}\u{1f600}"), "a\tb\r\nc\u{e9}\u{1f600}");
        let title = "x\u{1b}]0;title\u{7}\u{9b}2J\u{202e}y\rz";
        assert_eq!(visible(title), "x\\u001b]0;title\\u0007\\u009b2J\\u202ey\\u000dz");
        let json = format!("\"{}\"", visible("\u{9b}"));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "\u{9b}");
        let coloured = "\u{1b}[1;31mred\u{1b}[0m\u{1b}[2J";
        assert_eq!(visible_in_colour(coloured), "\u{1b}[1;31mred\u{1b}[0m\\u001b[2J");
    }

    #[test]
    fn characters_may_come_in_pieces() {
        let text = "a\u{9b}\u{e9}\r\n\u{1f600}\u{1b}".as_bytes();
        let bytes = [text, b"\xff\x9b!\xe2\x80"].concat();
        for size in 1..bytes.len() {
            let mut out = Visible::new(Vec::new());
            bytes.chunks(size).for_each(|part| out.write_all(part).unwrap());
            out.flush().unwrap();
            let said = String::from_utf8(out.out).unwrap();
            assert_eq!(said, "a\\u009b\u{e9}\r\n\u{1f600}\\u001b\\xff\\x9b!\\xe2\\x80", "{size}");
        }
    }
}
