//! Reads a log event by event, and resumes after every fault.
//!
//! After damage, reading resumes at the next event, recognized by its first field. If the end of a
//! trace is within the damage, the events of the next trace count as those of the previous one.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use serde_json::{Map, Value};

use super::decode;
use super::header::{self, Context};
use super::item::{Container, FileInfo, QlogItem};
use super::lean;
use super::problem::{QlogProblem, QlogProblemKind, QlogStats, short};
use super::source::{BEGINNING, JsonSource, event_begins};

/// Longest event or header read, in bytes.
pub const MAX_RECORD: usize = 1_024 * 1_024;
/// The byte before each record of a JSON text sequence (RFC 7464).
const RECORD: u8 = 0x1e;

/// State of the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QlogReaderState {
    Start,
    /// Among the fields of the document.
    Document,
    /// Among its traces.
    Traces,
    /// Among the fields of a trace.
    Trace,
    Events,
    /// Records that this byte precedes or follows.
    Records(u8),
    Done,
}

/// Reads a log with bounded memory.
#[derive(Debug)]
pub struct QlogReader<R> {
    source: JsonSource<R>,
    ready: VecDeque<QlogItem>,
    state: QlogReaderState,
    container: Container,
    /// Fields of the document and of the trace so far, and their bytes.
    top: Map<String, Value>,
    fields: Map<String, Value>,
    field_bytes: usize,
    /// Whether a header was read.
    headed: bool,
    context: Context,
    buffer: Vec<u8>,
    /// Whether fields beyond the model are skipped.
    lean: bool,
    loss: QlogStats,
}

impl<R: BufRead> QlogReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Self {
        Self {
            source: JsonSource::new(input),
            ready: VecDeque::new(),
            state: QlogReaderState::Start,
            container: Container::Document,
            top: Map::new(),
            fields: Map::new(),
            field_bytes: 0,
            headed: false,
            context: Context::default(),
            buffer: Vec::new(),
            lean: false,
            loss: QlogStats::default(),
        }
    }

    /// Reads from `input` without the fields beyond the model of frequent events, several times as
    /// fast: [`QlogEvent::more`](super::QlogEvent::more) lacks them.
    pub fn lean(input: R) -> Self {
        Self { lean: true, ..Self::new(input) }
    }

    /// Counts of events and losses so far.
    pub const fn loss(&self) -> &QlogStats {
        &self.loss
    }

    fn place(&self) -> (u64, u64) {
        (self.source.line(), self.source.offset())
    }

    fn problem(&mut self, (line, offset): (u64, u64), kind: QlogProblemKind) {
        self.loss.problems += 1;
        if let QlogProblemKind::Skipped { bytes, .. } | QlogProblemKind::Long { bytes } = kind {
            self.loss.skipped_bytes += bytes;
        }
        self.ready.push_back(QlogItem::Problem(QlogProblem { line, offset, kind }));
    }

    fn problems(&mut self, place: (u64, u64), kinds: Vec<QlogProblemKind>) {
        for kind in kinds {
            self.problem(place, kind);
        }
    }

    /// Executes one step, which may add items to `ready`.
    fn step(&mut self) -> io::Result<()> {
        if let QlogReaderState::Records(mark) = self.state {
            return self.records(mark);
        }
        let Some(byte) = self.source.skip_blanks()? else {
            if self.state != QlogReaderState::Start {
                let place = self.place();
                self.problem(place, QlogProblemKind::Unfinished);
            }
            self.state = QlogReaderState::Done;
            return Ok(());
        };
        match (self.state, byte) {
            (QlogReaderState::Start, 0xef | 0xbb | 0xbf) => self.pass(QlogReaderState::Start),
            (QlogReaderState::Start, RECORD) => {
                self.container = Container::Sequence;
                self.state = QlogReaderState::Records(RECORD);
                Ok(())
            }
            (QlogReaderState::Start, b'{') => self.pass(QlogReaderState::Document),
            (QlogReaderState::Start, _) => self.hunt("no JSON begins here"),
            (state, b',') => self.pass(state),
            (QlogReaderState::Document | QlogReaderState::Trace, b'"') => self.field(),
            (QlogReaderState::Document, b'}') => self.end_document(),
            (QlogReaderState::Traces, b'{') => {
                self.fields.clear();
                self.headed = false;
                self.pass(QlogReaderState::Trace)
            }
            (QlogReaderState::Traces, b']') => self.pass(QlogReaderState::Document),
            (QlogReaderState::Trace, b'}') => self.end_trace(),
            (QlogReaderState::Events, b'{' | b'[') => self.element(),
            (QlogReaderState::Events, b']') => self.pass(QlogReaderState::Trace),
            _ => self.hunt("no JSON here"),
        }
    }

    fn pass(&mut self, state: QlogReaderState) -> io::Result<()> {
        self.source.next()?;
        self.state = state;
        Ok(())
    }

    /// Reads a field of the document or of a trace.
    fn field(&mut self) -> io::Result<()> {
        let place = self.place();
        let mut buffer = core::mem::take(&mut self.buffer);
        let whole = self.source.value(&mut buffer, MAX_RECORD)?;
        let name = serde_json::from_slice::<String>(&buffer).ok().filter(|_| whole);
        self.buffer = buffer;
        let (Some(name), Some(b':')) = (name, self.source.skip_blanks()?) else {
            return self.hunt("a field without a name or a value");
        };
        self.source.next()?;
        let opens = self.source.skip_blanks()? == Some(b'[');
        match (self.state, name.as_str()) {
            (QlogReaderState::Document, "traces") if opens => {
                return self.pass(QlogReaderState::Traces);
            }
            (QlogReaderState::Trace, "events") if opens => {
                self.begin_trace(place);
                return self.pass(QlogReaderState::Events);
            }
            _ => {}
        }
        let mut buffer = core::mem::take(&mut self.buffer);
        let whole = self.source.value(&mut buffer, MAX_RECORD)?;
        let value = serde_json::from_slice::<Value>(&buffer);
        let bytes = buffer.len();
        self.buffer = buffer;
        let value = match value {
            Ok(value) if whole => value,
            _ => return self.damaged(place, "a field that is no JSON"),
        };
        self.field_bytes += bytes;
        if self.field_bytes > MAX_RECORD {
            self.problem(place, QlogProblemKind::Long { bytes: bytes as u64 });
        } else if self.headed && name == "vantage_point" {
            // aioquic writes it last. No event depends on it.
        } else if self.headed {
            self.problem(place, QlogProblemKind::Late { field: short(&name) });
        } else {
            let into =
                if self.state == QlogReaderState::Trace { &mut self.fields } else { &mut self.top };
            into.insert(name, value);
        }
        Ok(())
    }

    /// Emits the header of the trace whose events follow.
    fn begin_trace(&mut self, place: (u64, u64)) {
        let fields = core::mem::take(&mut self.fields);
        self.begin(fields, place);
    }

    fn begin(&mut self, fields: Map<String, Value>, place: (u64, u64)) {
        let mut problems = Vec::new();
        let generation = header::generation(&self.top, &mut problems);
        let code_version = header::code_version(&self.top, &fields);
        let (trace, context) = header::trace(fields, &mut problems);
        self.context = context;
        self.headed = true;
        self.field_bytes = 0;
        let title = self.top.get("title").and_then(Value::as_str).unwrap_or_default();
        let (container, title) = (self.container, title.to_owned());
        let info = FileInfo { generation, container, title, code_version, trace };
        self.ready.push_back(QlogItem::Header(Box::new(info)));
        self.problems(place, problems);
    }

    fn end_trace(&mut self) -> io::Result<()> {
        let place = self.place();
        if let Some(Value::String(description)) = self.fields.get("error_description") {
            let description = short(description);
            self.problem(place, QlogProblemKind::TraceError { description });
        } else if !self.headed {
            self.begin_trace(place);
        }
        self.headed = false;
        self.pass(QlogReaderState::Traces)
    }

    /// Ends the document; without traces it is the header of lines.
    fn end_document(&mut self) -> io::Result<()> {
        let place = self.place();
        self.pass(QlogReaderState::Records(b'\n'))?;
        if self.top.contains_key("name") {
            self.container = Container::Lines;
            let event = core::mem::take(&mut self.top);
            self.event(event.into(), place);
        } else if let Some(Value::Object(trace)) = self.top.remove("trace") {
            self.container = Container::Lines;
            self.begin(trace, place);
        } else if self.top.contains_key("qlog_version") || self.top.contains_key("file_schema") {
            self.headed = true;
        }
        Ok(())
    }

    /// Reads an event of a document.
    fn element(&mut self) -> io::Result<()> {
        let place = self.place();
        let mut buffer = core::mem::take(&mut self.buffer);
        let whole = self.source.value(&mut buffer, MAX_RECORD)?;
        if whole && self.lean_event(&buffer) {
            self.buffer = buffer;
            return Ok(());
        }
        let value = serde_json::from_slice::<Value>(&buffer);
        self.buffer = buffer;
        match value {
            Ok(value) if whole => {
                self.event(value, place);
                Ok(())
            }
            Err(error) if whole => self.damaged(place, &error.to_string()),
            _ if self.source.peek()?.is_none() => {
                self.damaged(place, "the file ends within an event")
            }
            _ => self.damaged(place, "an event that is no JSON"),
        }
    }

    /// Skips the invalid contents of the buffer up to the next event.
    fn damaged(&mut self, place: (u64, u64), why: &str) -> io::Result<()> {
        let buffer = core::mem::take(&mut self.buffer);
        if let Some(at) = event_begins(&buffer, 1) {
            self.source.unread(&buffer[at..]);
            self.state = QlogReaderState::Events;
            let (bytes, why) = (at as u64, why.to_owned());
            self.problem(place, QlogProblemKind::Skipped { bytes, why });
            return Ok(());
        }
        // The beginning of an event may be at the end.
        let keep = BEGINNING.min(buffer.len().saturating_sub(1));
        self.source.unread(&buffer[buffer.len() - keep..]);
        self.resync_from(place, why)
    }

    fn hunt(&mut self, why: &str) -> io::Result<()> {
        let place = self.place();
        self.resync_from(place, why)
    }

    /// Skips bytes until an event begins.
    fn resync_from(&mut self, place: (u64, u64), why: &str) -> io::Result<()> {
        // At least one byte is consumed, so that reading terminates.
        if self.source.offset() == place.1 {
            self.source.next()?;
        }
        let mut window = Vec::new();
        loop {
            match self.source.next()? {
                Some(byte) => window.push(byte),
                None => {
                    let begins = event_begins(&window, 0);
                    self.source.unread(&window[begins.unwrap_or(window.len())..]);
                    self.state = if begins.is_some() {
                        QlogReaderState::Events
                    } else {
                        QlogReaderState::Done
                    };
                    break;
                }
            }
            // An event is recognized once enough of it is read.
            if window.len() >= 2 * BEGINNING {
                if let Some(at) = event_begins(&window, 0).filter(|at| *at <= BEGINNING) {
                    self.source.unread(&window[at..]);
                    self.state = QlogReaderState::Events;
                    break;
                }
                window.drain(..BEGINNING);
            }
        }
        let bytes = self.source.offset() - place.1;
        self.problem(place, QlogProblemKind::Skipped { bytes, why: why.to_owned() });
        if self.state == QlogReaderState::Done {
            let place = self.place();
            self.problem(place, QlogProblemKind::Unfinished);
        }
        Ok(())
    }

    /// Reads a record of a sequence, or a line.
    fn records(&mut self, mark: u8) -> io::Result<()> {
        match self.source.skip_blanks()? {
            None => {
                self.state = QlogReaderState::Done;
                return Ok(());
            }
            Some(RECORD) => drop(self.source.next()?),
            Some(_) => {}
        }
        let place = self.place();
        let mut buffer = core::mem::take(&mut self.buffer);
        if !self.source.until(mark, &mut buffer, MAX_RECORD)? {
            let mut bytes = buffer.len() as u64;
            while self.source.peek()?.is_some_and(|byte| byte != mark) {
                self.source.next()?;
                bytes += 1;
            }
            self.problem(place, QlogProblemKind::Long { bytes });
            self.buffer = buffer;
            return Ok(());
        }
        let mut from = if self.lean_event(&buffer) { buffer.len() } else { 0 };
        while from < buffer.len() {
            let mut values = serde_json::Deserializer::from_slice(&buffer[from..]).into_iter();
            let here = |at: usize| {
                let lines = buffer[..at].iter().filter(|byte| **byte == b'\n').count();
                (place.0 + lines as u64, place.1 + at as u64)
            };
            match values.next() {
                None => break,
                Some(Ok(value)) => {
                    self.record(value, here(from));
                    from += values.byte_offset();
                }
                Some(Err(error)) => {
                    let next = event_begins(&buffer, from + 1).unwrap_or(buffer.len());
                    let (bytes, why) = ((next - from) as u64, error.to_string());
                    self.problem(here(from), QlogProblemKind::Skipped { bytes, why });
                    from = next;
                }
            }
        }
        self.buffer = buffer;
        Ok(())
    }

    /// Processes a header or an event.
    fn record(&mut self, value: Value, place: (u64, u64)) {
        match value {
            Value::Object(mut map)
                if !map.contains_key("name")
                    && ["file_schema", "qlog_version", "trace"]
                        .iter()
                        .any(|field| map.contains_key(*field)) =>
            {
                let trace = match map.remove("trace") {
                    Some(Value::Object(trace)) => trace,
                    _ => Map::new(),
                };
                self.top = map;
                self.begin(trace, place);
            }
            value => self.event(value, place),
        }
    }

    /// Decodes a frequent event after a header; false leaves it to the complete decoder.
    fn lean_event(&mut self, bytes: &[u8]) -> bool {
        let event =
            if self.lean && self.headed { lean::event(bytes, &mut self.context) } else { None };
        let found = event.is_some();
        self.loss.events += u64::from(found);
        self.ready.extend(event.map(QlogItem::Event));
        found
    }

    fn event(&mut self, value: Value, place: (u64, u64)) {
        // Writers that cannot remove the last comma end the list with an empty event.
        if matches!(&value, Value::Array(cells) if cells.is_empty()) {
            return;
        }
        let mut problems = Vec::new();
        match decode::event(value, &mut self.context, &mut problems) {
            Ok(event) => {
                if !self.headed {
                    self.headed = true;
                    self.problem(place, QlogProblemKind::NoHeader);
                }
                self.loss.events += 1;
                if matches!(event.data, super::QlogData::Other { .. }) {
                    self.loss.unknown_events += 1;
                }
                self.ready.push_back(QlogItem::Event(event));
            }
            Err(what) => {
                self.loss.bad_events += 1;
                self.problem(place, QlogProblemKind::NoEvent { what });
            }
        }
        self.problems(place, problems);
    }
}

impl<R: BufRead> Iterator for QlogReader<R> {
    type Item = io::Result<QlogItem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            if self.state == QlogReaderState::Done {
                return None;
            }
            if let Err(error) = self.step() {
                return Some(Err(error));
            }
        }
    }
}
