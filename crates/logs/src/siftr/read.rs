//! Reads a log row by row, and resumes after every fault.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use super::columns::{row, row_of_words};
use super::header::{SiftrFooter, SiftrGeneration, SiftrHeader};
use super::problem::{SiftrProblem, SiftrProblemKind, SiftrStats};
use super::row::SiftrRow;
use crate::lines::skip_line;
use trace::pcapng::PacketDirection;

/// Longest line read, in bytes: a footer lists all flows.
pub const MAX_LINE: usize = 1_024 * 1_024;
/// Bytes of a binary row: 18 numbers.
const BINARY_ROW: usize = 72;
/// Flow ids remembered to find rows after damage.
const MAX_FLOWS: usize = 64;

/// An item of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiftrItem {
    /// The first line.
    Header(SiftrHeader),
    /// A row.
    Row(SiftrRow),
    /// The last line.
    Footer(SiftrFooter),
    /// A problem; reading continues.
    Problem(SiftrProblem),
}

/// Reads a log with bounded memory.
#[derive(Debug)]
pub struct SiftrReader<R> {
    input: R,
    line: Vec<u8>,
    ready: VecDeque<SiftrItem>,
    header: Option<SiftrHeader>,
    /// Number of the current line; 0 in binary rows.
    number: u64,
    /// Offset of the current line or row.
    offset: u64,
    /// Flow ids seen in binary rows.
    flows: Vec<u32>,
    loss: SiftrStats,
}

impl<R: BufRead> SiftrReader<R> {
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
            loss: SiftrStats {
                rows: 0,
                bad_lines: 0,
                skipped_bytes: 0,
                lost_packets: 0,
                ended: false,
                problems: 0,
            },
        }
    }

    /// Counts of rows and losses so far.
    pub const fn loss(&self) -> &SiftrStats {
        &self.loss
    }

    fn problem(&mut self, at: usize, kind: SiftrProblemKind) {
        self.loss.problems += 1;
        let (line, column, offset) = (self.number, at + 1, self.offset + at as u64);
        self.ready.push_back(SiftrItem::Problem(SiftrProblem { line, column, offset, kind }));
    }

    fn row(&mut self, row: SiftrRow) {
        self.loss.rows += 1;
        self.ready.push_back(SiftrItem::Row(row));
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
        if line.starts_with(SiftrHeader::BEGINS) {
            let header = SiftrHeader::parse(line, &mut problems);
            self.header = Some(header.clone());
            self.flows.clear();
            self.ready.push_back(SiftrItem::Header(header));
        } else if line.starts_with(SiftrFooter::BEGINS) {
            let footer = SiftrFooter::parse(line, &mut problems);
            self.loss.lost_packets = self.loss.lost_packets.saturating_add(footer.lost());
            self.loss.ended = true;
            self.ready.push_back(SiftrItem::Footer(footer));
        } else if !line.is_empty() {
            self.take_row(line);
        }
        for (at, kind) in problems {
            self.problem(at, kind);
        }
    }

    fn take_row(&mut self, line: &str) {
        if self.header.is_none() {
            let generation = SiftrGeneration::of_columns(line.split(',').count());
            self.header = generation.map(|generation| SiftrHeader {
                // Ticks are no time without hz.
                hz: None,
                rtt_scale: None,
                ..SiftrHeader::new(generation)
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

    /// Reads a binary row, or the footer after the last one; false at the end of the file.
    fn binary(&mut self) -> io::Result<bool> {
        self.number = 0;
        let mut bytes = core::mem::take(&mut self.line);
        bytes.clear();
        let mut skipped = 0_u64;
        loop {
            let wanted = (BINARY_ROW - bytes.len()) as u64;
            (&mut self.input).take(wanted).read_to_end(&mut bytes)?;
            let whole = bytes.len() == BINARY_ROW;
            let footer = bytes.starts_with(SiftrFooter::BEGINS.as_bytes());
            if footer || (whole && self.is_row(&bytes, skipped > 0)) || bytes.is_empty() {
                break;
            }
            // The rest at the end of the file is not a row.
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
        if bytes.starts_with(SiftrFooter::BEGINS.as_bytes()) {
            let mut limited = (&mut self.input).take(MAX_LINE as u64);
            limited.read_until(b'\n', &mut bytes)?;
            self.take_line(readable(&bytes).trim_end());
        } else if let Some(header) = self.header.as_ref().filter(|_| going_on) {
            let word = |at: usize| {
                u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            let words = core::array::from_fn(|n| word(8 + 4 * n));
            let way = if word(4) == 0 { PacketDirection::In } else { PacketDirection::Out };
            let flow = word(0);
            let row = row_of_words(Some(flow), way, &words, header);
            if !self.flows.contains(&flow) && self.flows.len() < MAX_FLOWS {
                self.flows.push(flow);
            }
            self.row(row);
        }
        self.offset += bytes.len() as u64;
        self.line = bytes;
        Ok(going_on)
    }

    /// Whether these bytes can be a row; after damage, only one of a known flow.
    fn is_row(&self, bytes: &[u8], damaged: bool) -> bool {
        let flow = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let way = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let known = self.flows.is_empty() || self.flows.contains(&flow);
        way <= 1 && (known || !damaged)
    }
}

impl<R: BufRead> Iterator for SiftrReader<R> {
    type Item = io::Result<SiftrItem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            let binary = self.header.as_ref().is_some_and(|header| header.binary);
            let more = if binary && !self.loss.ended { self.binary() } else { self.text() };
            match more {
                Ok(true) => {}
                // The last step may have produced items.
                Ok(false) if self.ready.is_empty() => return None,
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Bytes as text of the same length: question marks replace invalid UTF-8.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match core::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect()
        }
    }
}
