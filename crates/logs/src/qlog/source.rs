//! A byte source with positions and pushback.

use std::io::{self, BufRead};

/// The bytes of a log.
#[derive(Debug)]
pub(super) struct JsonSource<R> {
    input: R,
    /// Bytes pushed back or read ahead; those before `at` are consumed.
    held: Vec<u8>,
    at: usize,
    offset: u64,
    line: u64,
}

impl<R: BufRead> JsonSource<R> {
    pub(super) const fn new(input: R) -> Self {
        Self { input, held: Vec::new(), at: 0, offset: 0, line: 1 }
    }

    /// Byte offset of the next byte.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Line of the next byte, from 1.
    pub(super) const fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.at == self.held.len() {
            self.held.clear();
            self.at = 0;
            let bytes = self.input.fill_buf()?;
            self.held.extend_from_slice(bytes);
            let taken = bytes.len();
            self.input.consume(taken);
        }
        Ok(self.held.get(self.at).copied())
    }

    pub(super) fn next(&mut self) -> io::Result<Option<u8>> {
        let byte = self.peek()?;
        if let Some(byte) = byte {
            self.at += 1;
            self.offset += 1;
            self.line += u64::from(byte == b'\n');
        }
        Ok(byte)
    }

    /// Pushes back `bytes`, the last ones read.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        self.offset -= bytes.len() as u64;
        self.line -= bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        if self.at >= bytes.len() {
            self.at -= bytes.len();
        } else {
            let rest = self.held.split_off(self.at);
            self.held = bytes.to_vec();
            self.held.extend_from_slice(&rest);
            self.at = 0;
        }
    }

    /// Skips blanks and returns the next byte.
    pub(super) fn skip_blanks(&mut self) -> io::Result<Option<u8>> {
        while let Some(byte) = self.peek()? {
            if !is_blank(byte) {
                return Ok(Some(byte));
            }
            self.next()?;
        }
        Ok(None)
    }

    /// Collects one JSON value of at most `most` bytes; stops where brackets, quotes or letters
    /// show that it is invalid. Returns false if it is invalid or incomplete.
    pub(super) fn value(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<bool> {
        into.clear();
        let mut scan = ValueScan::default();
        while self.peek()?.is_some() {
            let rest = &self.held[self.at..];
            let room = rest.len().min(most - into.len());
            let (taken, end) = scan.take(&rest[..room], !into.is_empty());
            let rest = &rest[..taken];
            into.extend_from_slice(rest);
            self.offset += taken as u64;
            self.line += rest.iter().filter(|byte| **byte == b'\n').count() as u64;
            self.at += taken;
            if let Some(whole) = end {
                return Ok(whole);
            }
            if into.len() == most {
                // A number or a word may end here.
                let next = self.peek()?;
                return Ok(next.is_some_and(|byte| scan.is_over(byte, !into.is_empty())));
            }
        }
        Ok(false)
    }

    /// Collects bytes up to `end`, which is not consumed; false if there are more than `most`.
    pub(super) fn until(&mut self, end: u8, into: &mut Vec<u8>, most: usize) -> io::Result<bool> {
        into.clear();
        while self.peek()?.is_some() {
            let rest = &self.held[self.at..];
            let room = rest.len().min(most - into.len());
            let found = memchr::memchr(end, &rest[..room]);
            let taken = &rest[..found.unwrap_or(room)];
            into.extend_from_slice(taken);
            self.offset += taken.len() as u64;
            self.line += taken.iter().filter(|byte| **byte == b'\n').count() as u64;
            self.at += taken.len();
            if found.is_some() {
                break;
            }
            if into.len() == most {
                return Ok(self.peek()?.is_none_or(|byte| byte == end));
            }
        }
        Ok(true)
    }
}

/// Maximum nesting depth, that of serde_json.
const MAX_DEPTH: usize = 127;

/// Where a JSON value is, as far as it was read.
#[derive(Debug)]
struct ValueScan {
    /// Open brackets.
    nest: Vec<u8>,
    quoted: bool,
    escaped: bool,
    /// The last byte outside of strings that is no blank.
    before: u8,
}

impl Default for ValueScan {
    fn default() -> Self {
        Self { nest: Vec::new(), quoted: false, escaped: false, before: b':' }
    }
}

impl ValueScan {
    /// Whether `byte` ends a number or a word, `begun` before.
    fn is_over(&self, byte: u8, begun: bool) -> bool {
        self.nest.is_empty() && !self.quoted && begun && ends_plain(byte)
    }

    /// Reads bytes; returns how many belong to the value, and whether it is complete once it ends or is invalid.
    fn take(&mut self, bytes: &[u8], begun: bool) -> (usize, Option<bool>) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.quoted {
                match self.quoted_part(&bytes[at..]) {
                    // Strings have no line breaks.
                    (taken, false) => return (at + taken, Some(false)),
                    (taken, true) => at += taken,
                }
                if !self.quoted && self.nest.is_empty() {
                    return (at, Some(true));
                }
                continue;
            }
            if self.is_over(byte, begun || at > 0) {
                return (at, Some(true));
            }
            if !self.fits(byte) || self.nest.len() > MAX_DEPTH {
                return (at, Some(false));
            }
            match byte {
                b'"' => self.quoted = true,
                b'{' | b'[' => self.nest.push(byte),
                b'}' | b']' => drop(self.nest.pop()),
                _ => {}
            }
            if !is_blank(byte) {
                self.before = byte;
            }
            at += 1;
            if self.nest.is_empty() && matches!(byte, b'}' | b']') {
                return (at, Some(true));
            }
        }
        (at, None)
    }

    /// Reads a string up to the end of the bytes or of the string; false at a control character.
    fn quoted_part(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (at, &byte) in bytes.iter().enumerate() {
            if byte < b' ' {
                return (at, false);
            }
            let ends = !self.escaped && byte == b'"';
            self.escaped = !self.escaped && byte == b'\\';
            if ends {
                self.quoted = false;
                return (at + 1, true);
            }
        }
        (bytes.len(), true)
    }

    fn fits(&self, byte: u8) -> bool {
        match byte {
            b'"' => true,
            // A value within an object follows its name.
            b'{' | b'[' => self.before == b':' || self.nest.last() == Some(&b'['),
            b'}' => self.nest.last() == Some(&b'{'),
            b']' => self.nest.last() == Some(&b'['),
            _ => is_plain(byte),
        }
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether the byte ends a number or a word.
const fn ends_plain(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b',' | b':' | b']' | b'}')
}

/// Whether the byte can be outside of strings: in numbers, `true`, `false`, `null`, between values.
const fn is_plain(byte: u8) -> bool {
    is_blank(byte)
        || matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b',' | b':' | b'E')
        || matches!(byte, b't' | b'r' | b'u' | b'e' | b'f' | b'a' | b'l' | b's' | b'n')
}

/// Offset of the first event in `bytes` from `from` on. Events begin with an object whose first
/// field is one of an event, or in the oldest versions with an array of a time and a category.
pub(super) fn event_begins(bytes: &[u8], from: usize) -> Option<usize> {
    (from..bytes.len()).find(|&at| match bytes[at] {
        b'{' => object_begins(&bytes[at + 1..]),
        b'[' => array_begins(&bytes[at + 1..]),
        _ => false,
    })
}

/// Bytes needed to recognize an event.
pub(super) const BEGINNING: usize = 48;

fn object_begins(rest: &[u8]) -> bool {
    let rest = blanks(rest);
    [&b"\"time\""[..], b"\"name\"", b"\"relative_time\"", b"\"delta_time\""]
        .iter()
        .any(|field| rest.strip_prefix(*field).is_some_and(|rest| blanks(rest).starts_with(b":")))
}

fn array_begins(rest: &[u8]) -> bool {
    let rest = blanks(rest);
    let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
    let digits = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let rest = rest[digits..].strip_prefix(b"\"").unwrap_or(&rest[digits..]);
    let Some(rest) = blanks(rest).strip_prefix(b",") else { return false };
    let Some(rest) = blanks(rest).strip_prefix(b"\"") else { return false };
    digits > 0 && rest.first().is_some_and(u8::is_ascii_alphabetic)
}

fn blanks(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| is_blank(**byte)).count()..]
}
