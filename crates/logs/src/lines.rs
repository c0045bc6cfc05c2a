//! Reads the lines of a log, with their problems.

use core::fmt;
use std::io::{self, BufRead, Read};

/// Longest line read, in bytes.
pub(crate) const MAX_LINE: u64 = 64 * 1_024;

/// A problem of a line and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineProblem {
    /// Line, from 1.
    pub line: u64,
    /// Byte of the line, from 1.
    pub column: usize,
    /// Kind of the problem.
    pub kind: LineFault,
}

/// Kinds of problems of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineFault {
    /// A value is invalid.
    Value {
        /// Its name.
        name: &'static str,
        /// The text found, truncated to 32 bytes.
        found: String,
        /// The expected text.
        expected: &'static str,
    },
    /// A required value is missing.
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// The line exceeds the limit; it is skipped.
    Long {
        /// Its length in bytes.
        bytes: u64,
    },
    /// The last line has no newline: its last value may be truncated.
    Unfinished,
    /// The compressed file is damaged: the rest is lost.
    Packed {
        /// Message of the decompressor.
        message: String,
    },
}

impl LineFault {
    pub(crate) fn value(name: &'static str, found: &str, expected: &'static str) -> Self {
        let found = found[..found.floor_char_boundary(32)].to_owned();
        Self::Value { name, found, expected }
    }
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.kind)
    }
}

impl core::error::Error for LineProblem {}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { name, found, expected } => {
                write!(f, "{name}: expected {expected}, found {found:?}")
            }
            Self::Missing { name } => write!(f, "`{name}` is missing"),
            Self::Long { bytes } => write!(f, "a line of {bytes} bytes"),
            Self::Unfinished => f.write_str("the last line has no newline"),
            Self::Packed { message } => {
                write!(f, "the compressed file is damaged from here on: {message}")
            }
        }
    }
}

/// A part of a line and its column, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinePart<'a> {
    pub(crate) at: usize,
    pub(crate) text: &'a str,
}

impl<'a> LinePart<'a> {
    /// Splits a line into words.
    pub(crate) fn words(line: &'a str) -> impl Iterator<Item = LinePart<'a>> {
        // The words are slices of the line: their addresses give their columns.
        line.split_ascii_whitespace()
            .map(move |text| LinePart { at: text.as_ptr() as usize - line.as_ptr() as usize, text })
    }

    /// The part after the first `bytes`.
    pub(crate) fn skip_bytes(self, bytes: usize) -> Self {
        Self { at: self.at + bytes, text: &self.text[bytes..] }
    }

    /// Parses a number.
    pub(crate) fn number<T: core::str::FromStr>(
        self,
        name: &'static str,
    ) -> Result<T, (usize, LineFault)> {
        self.text.parse().map_err(|_| (self.at, LineFault::value(name, self.text, "a number")))
    }
}

/// Parses a decimal number as an integer of `1 / unit`: `1.5` of milliseconds (a million
/// nanoseconds each) is 1,500,000. Further digits are truncated.
pub(crate) fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let mut sum = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut weight = unit;
    for digit in fraction.bytes() {
        weight /= 10;
        sum = sum.checked_add(u64::from(digit - b'0') * weight)?;
    }
    Some(sum)
}

/// Reads the lines of an input, one at a time.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    input: R,
    bytes: Vec<u8>,
    number: u64,
}

/// A line or a problem.
#[derive(Debug)]
pub(crate) enum NextLine {
    /// A line, with question marks for invalid UTF-8; `whole` if it ends with a newline.
    Line { number: u64, text: String, whole: bool },
    /// A line that cannot be used.
    Problem(LineProblem),
}

impl<R: BufRead> LineReader<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, bytes: Vec::new(), number: 0 }
    }

    /// Reads the next line; a damaged input ends with a problem.
    pub(crate) fn next(&mut self) -> io::Result<Option<NextLine>> {
        self.number += 1;
        self.bytes.clear();
        let number = self.number;
        let problem =
            |kind| Ok(Some(NextLine::Problem(LineProblem { line: number, column: 1, kind })));
        let read = (&mut self.input).take(MAX_LINE).read_until(b'\n', &mut self.bytes);
        match read {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let message = error.to_string();
                return problem(LineFault::Packed { message });
            }
            Err(error) => return Err(error),
            Ok(0) => return Ok(None),
            Ok(_) => {}
        }
        if self.bytes.len() as u64 == MAX_LINE && self.bytes.last() != Some(&b'\n') {
            let bytes = MAX_LINE + skip_line(&mut self.input)?;
            return problem(LineFault::Long { bytes });
        }
        let whole = self.bytes.pop_if(|byte| *byte == b'\n').is_some();
        self.bytes.pop_if(|byte| *byte == b'\r');
        let text = match core::str::from_utf8(&self.bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                let readable = |byte: &u8| if byte.is_ascii() { char::from(*byte) } else { '?' };
                self.bytes.iter().map(readable).collect()
            }
        };
        Ok(Some(NextLine::Line { number, text, whole }))
    }
}

/// Skips the rest of a line and returns its length.
pub(crate) fn skip_line(input: &mut impl BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let bytes = end.map_or(buffer.len(), |end| end + 1);
        input.consume(bytes);
        skipped += bytes as u64;
        if bytes == 0 || end.is_some() {
            return Ok(skipped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_whole_numbers_of_a_smaller_unit() {
        let million = |text| decimal(text, 1_000_000);
        assert_eq!(million("45.301"), Some(45_301_000));
        assert_eq!(million("7"), Some(7_000_000));
        assert_eq!(million("0.0000019"), Some(1));
        for wrong in ["", ".5", "1,5", "-1", "1.2.3", "1e3", "99999999999999999999"] {
            assert_eq!(million(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn long_lines_are_skipped_and_the_last_may_lack_a_newline() {
        let text = [vec![b'x'; 70_000], b"\na\xff b\r\nend".to_vec()].concat();
        let mut lines = LineReader::new(&text[..]);
        let mut reported = Vec::new();
        while let Some(next) = lines.next().unwrap() {
            reported.push(match next {
                NextLine::Line { number, text, whole } => format!("{number} {text} {whole}"),
                NextLine::Problem(problem) => problem.to_string(),
            });
        }
        let long = "line 1, column 1: a line of 70001 bytes";
        assert_eq!(reported, [long, "2 a? b true", "3 end false"]);
    }

    #[test]
    fn words_know_their_columns() {
        let words: Vec<_> = LinePart::words(" a  bc\td").map(|word| (word.at, word.text)).collect();
        assert_eq!(words, [(1, "a"), (4, "bc"), (7, "d")]);
    }
}
