//! Reads a log, row by row, and goes on behind every fault.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use super::columns::{row, row_of_words};
use super::header::{Footer, Generation, Header};
use super::problem::{Loss, SiftrProblem, SiftrProblemKind};
use super::row::Row;
use crate::lines::skip_line;
use trace::pcapng::Way;

/// Longest line taken, in bytes: a footer lists all flows.
pub const MAX_LINE: usize = 1_024 * 1_024;
/// Bytes of a binary row: 18 numbers.
const BINARY_ROW: usize = 72;
/// Numbers of flows remembered to find rows behind damage.
const MOST_FLOWS: usize = 64;

/// One thing that a log tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The first line.
    Header(Header),
    /// A row.
    Row(Row),
    /// The last line.
    Footer(Footer),
    /// Something is wrong; reading goes on.
    Problem(SiftrProblem),
}

/// Reads a log; memory is bounded whatever the file is.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    line: Vec<u8>,
    ready: VecDeque<Item>,
    header: Option<Header>,
    /// Number of the present line; 0 within binary rows.
    number: u64,
    /// Place of the present line or row.
    offset: u64,
    /// Numbers of flows seen in binary rows.
    flows: Vec<u32>,
    loss: Loss,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`.
    pub const fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            ready: VecDeque::new(),
            header: None,
            number: 0,
            offset: 0,
            flows: Vec::new(),
            loss: Loss {
                rows: 0,
                bad_lines: 0,
                skipped_bytes: 0,
                lost_packets: 0,
                ended: false,
                problems: 0,
            },
        }
    }

    /// What is there and what is missing, so far.
    pub const fn loss(&self) -> &Loss {
        &self.loss
    }

    fn problem(&mut self, at: usize, kind: SiftrProblemKind) {
        self.loss.problems += 1;
        let (line, column, offset) = (self.number, at + 1, self.offset + at as u64);
        self.ready.push_back(Item::Problem(SiftrProblem { line, column, offset, kind }));
    }

    fn row(&mut self, row: Row) {
        self.loss.rows += 1;
        self.ready.push_back(Item::Row(row));
    }

    /// Reads a line; false at the end of the file.
    fn text(&mut self) -> io::Result<bool> {
        self.number += 1;
        self.line.clear();
        let mut limited = (&mut self.input).take(MAX_LINE as u64);
        let mut bytes = limited.read_until(b'\n', &mut self.line)? as u64;
        if bytes == 0 {
            return Ok(false);
        }
        let mut line = core::mem::take(&mut self.line);
        if line.len() == MAX_LINE && line.last() != Some(&b'\n') {
            bytes += skip_line(&mut self.input)?;
            self.loss.bad_lines += 1;
            self.problem(0, SiftrProblemKind::Long { bytes });
        } else {
            let ended = line.pop_if(|byte| *byte == b'\n').is_some();
            line.pop_if(|byte| *byte == b'\r');
            self.take_line(&readable(&line));
            if !ended {
                self.problem(line.len(), SiftrProblemKind::Unfinished);
            }
        }
        self.line = line;
        self.offset += bytes;
        Ok(true)
    }

    fn take_line(&mut self, line: &str) {
        let mut problems = Vec::new();
        if line.starts_with(Header::BEGINS) {
            let header = Header::parse(line, &mut problems);
            self.header = Some(header.clone());
            self.flows.clear();
            self.ready.push_back(Item::Header(header));
        } else if line.starts_with(Footer::BEGINS) {
            let footer = Footer::parse(line, &mut problems);
            self.loss.lost_packets = self.loss.lost_packets.saturating_add(footer.lost());
            self.loss.ended = true;
            self.ready.push_back(Item::Footer(footer));
        } else if !line.is_empty() {
            self.take_row(line);
        }
        for (at, kind) in problems {
            self.problem(at, kind);
        }
    }

    fn take_row(&mut self, line: &str) {
        if self.header.is_none() {
            let generation = Generation::of_columns(line.split(',').count());
            self.header = generation.map(|generation| Header {
                // Ticks without hz tell no time.
                hz: None,
                rtt_scale: None,
                ..Header::new(generation)
            });
            if self.header.is_some() {
                self.problem(0, SiftrProblemKind::NoHeader);
            }
        }
        let Some(header) = &self.header else {
            self.loss.bad_lines += 1;
            let found = line.split(',').count();
            return self
                .problem(0, SiftrProblemKind::Columns { found, expected: "18 or 26 to 28" });
        };
        match row(line, header) {
            Ok(row) => self.row(row),
            Err((at, kind)) => {
                self.loss.bad_lines += 1;
                self.problem(at, kind);
            }
        }
    }

    /// Reads a binary row, or the footer behind the last one; false at the end of the file.
    fn binary(&mut self) -> io::Result<bool> {
        self.number = 0;
        let mut bytes = core::mem::take(&mut self.line);
        bytes.clear();
        let mut skipped = 0_u64;
        loop {
            let wanted = (BINARY_ROW - bytes.len()) as u64;
            (&mut self.input).take(wanted).read_to_end(&mut bytes)?;
            let whole = bytes.len() == BINARY_ROW;
            let footer = bytes.starts_with(Footer::BEGINS.as_bytes());
            if footer || (whole && self.is_row(&bytes, skipped > 0)) || bytes.is_empty() {
                break;
            }
            // Whatever is left at the end of the file is no row.
            let drop = if whole { 1 } else { bytes.len() };
            bytes.drain(..drop);
            skipped += drop as u64;
        }
        if skipped > 0 {
            self.loss.skipped_bytes += skipped;
            self.problem(0, SiftrProblemKind::Skipped { bytes: skipped });
            self.offset += skipped;
        }
        let going_on = !bytes.is_empty();
        if bytes.starts_with(Footer::BEGINS.as_bytes()) {
            let mut limited = (&mut self.input).take(MAX_LINE as u64);
            limited.read_until(b'\n', &mut bytes)?;
            self.take_line(readable(&bytes).trim_end());
        } else if let Some(header) = self.header.as_ref().filter(|_| going_on) {
            let word = |at: usize| {
                u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            let words = core::array::from_fn(|n| word(8 + 4 * n));
            let way = if word(4) == 0 { Way::In } else { Way::Out };
            let flow = word(0);
            let row = row_of_words(Some(flow), way, &words, header);
            if !self.flows.contains(&flow) && self.flows.len() < MOST_FLOWS {
                self.flows.push(flow);
            }
            self.row(row);
        }
        self.offset += bytes.len() as u64;
        self.line = bytes;
        Ok(going_on)
    }

    /// Can these bytes be a row? Behind damage, only one of a flow that is known.
    fn is_row(&self, bytes: &[u8], damaged: bool) -> bool {
        let flow = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let way = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let known = self.flows.is_empty() || self.flows.contains(&flow);
        way <= 1 && (known || !damaged)
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            let binary = self.header.as_ref().is_some_and(|header| header.binary);
            let more = if binary && !self.loss.ended { self.binary() } else { self.text() };
            match more {
                Ok(true) => {}
                // The last step may have left something to tell.
                Ok(false) if self.ready.is_empty() => return None,
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Bytes as text, each at its place: what is no text becomes question marks.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match core::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect()
        }
    }
}
