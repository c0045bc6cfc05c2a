//! Lines of a log, one at a time, and what can be wrong with one.

use core::fmt;
use std::io::{self, BufRead, Read};

/// Longest line taken, in bytes.
pub(crate) const MAX_LINE: u64 = 64 * 1_024;

/// Something wrong with a line of text, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineProblem {
    /// Line, from 1.
    pub line: u64,
    /// Byte of the line, from 1.
    pub column: usize,
    /// What.
    pub kind: LineFault,
}

/// What can be wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineFault {
    /// A value is not what it should be.
    Value {
        /// Its name.
        name: &'static str,
        /// What stands there, cut after 32 bytes.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// A value that every such line has is missing.
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// The line is longer than any of a log; it is passed over.
    Long {
        /// Bytes of it.
        bytes: u64,
    },
    /// The last line has no end: its last value may be cut.
    Unfinished,
    /// The packed file is damaged: all behind is lost.
    Packed {
        /// What the unpacker says.
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
            Self::Unfinished => f.write_str("the last line has no end"),
            Self::Packed { message } => {
                write!(f, "the packed file is damaged, all behind it is lost: {message}")
            }
        }
    }
}

/// A piece of text and its column, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) at: usize,
    pub(crate) text: &'a str,
}

impl<'a> Piece<'a> {
    /// The words of a line.
    pub(crate) fn words(line: &'a str) -> impl Iterator<Item = Piece<'a>> {
        // Blanks are single bytes, so the distance of two pieces of a line is that of their columns.
        line.split_ascii_whitespace()
            .map(move |text| Piece { at: text.as_ptr() as usize - line.as_ptr() as usize, text })
    }

    /// Behind its first `bytes`.
    pub(crate) fn behind(self, bytes: usize) -> Self {
        Self { at: self.at + bytes, text: &self.text[bytes..] }
    }

    /// As a number, or why not.
    pub(crate) fn number<T: core::str::FromStr>(
        self,
        name: &'static str,
    ) -> Result<T, (usize, LineFault)> {
        self.text.parse().map_err(|_| (self.at, LineFault::value(name, self.text, "a number")))
    }
}

/// A number with decimals as a whole number of `1 / unit`: `1.5` of milliseconds (a million
/// nanoseconds each) is 1,500,000. Digits beyond are cut off.
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

/// The lines of an input; one is held at a time.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    bytes: Vec<u8>,
    number: u64,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A line: text that is none has question marks. `whole` tells that it has an end.
    Line { number: u64, text: String, whole: bool },
    /// No line.
    Problem(LineProblem),
}

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, bytes: Vec::new(), number: 0 }
    }

    /// The next line; an input that is damaged ends with a problem.
    pub(crate) fn next(&mut self) -> io::Result<Option<Next>> {
        self.number += 1;
        self.bytes.clear();
        let number = self.number;
        let problem = |kind| Ok(Some(Next::Problem(LineProblem { line: number, column: 1, kind })));
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
        Ok(Some(Next::Line { number, text, whole }))
    }
}

/// Passes over the rest of a line; gives its bytes.
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
    fn long_lines_are_passed_over_and_the_last_may_have_no_end() {
        let text = [vec![b'x'; 70_000], b"\na\xff b\r\nend".to_vec()].concat();
        let mut lines = Lines::new(&text[..]);
        let mut told = Vec::new();
        while let Some(next) = lines.next().unwrap() {
            told.push(match next {
                Next::Line { number, text, whole } => format!("{number} {text} {whole}"),
                Next::Problem(problem) => problem.to_string(),
            });
        }
        let long = "line 1, column 1: a line of 70001 bytes";
        assert_eq!(told, [long, "2 a? b true", "3 end false"]);
    }

    #[test]
    fn words_know_their_columns() {
        let words: Vec<_> = Piece::words(" a  bc\td").map(|word| (word.at, word.text)).collect();
        assert_eq!(words, [(1, "a"), (4, "bc"), (7, "d")]);
    }
}
