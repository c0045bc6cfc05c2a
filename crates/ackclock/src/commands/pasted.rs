//! Pasted text of other tools, for `ackclock diagnose` and `ackclock scenario from`.

use std::io::{self, Read};
use std::path::Path;

use ingest::inputs::{InputKind, kind_of};
use ingest::pasted::{self, PastedReport};

use crate::input;

/// Largest text that is read.
const LARGEST: usize = 8 << 20;
/// Bytes of standard input that are read at a time: the first ones of a capture show that it is none.
const CHUNK: u64 = 4_096;

/// A text that a command diagnoses in place of a recording, or beside one.
pub(super) struct PastedText {
    pub(super) report: PastedReport,
    /// Whether the text has packets or sockets that are diagnosed as such.
    pub(super) has_recording: bool,
}

/// Reads the pasted text of a file; `None` for a recording, for binary data and for what no tool
/// printed.
pub(super) fn read(file: &Path) -> Option<PastedText> {
    // Other inputs can be read only once.
    if file == Path::new("-") || input::is_own(file) {
        return None;
    }
    let mut bytes = Vec::new();
    let opened = input::open_argument(file).ok()?;
    opened.take(LARGEST as u64 + 1).read_to_end(&mut bytes).ok()?;
    of(&bytes)
}

/// Reads standard input as far as it may be pasted text: all of it if it is, and what was read, which comes before the
/// rest.
pub(super) fn read_standard() -> io::Result<(Option<PastedText>, Vec<u8>)> {
    let mut standard = io::stdin().lock();
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        let read = standard.by_ref().take(CHUNK).read_to_end(&mut bytes)?;
        if read == 0 {
            return Ok((of(&bytes), bytes));
        }
        if bytes.len() > LARGEST || bytes[before..].contains(&0) {
            return Ok((None, bytes));
        }
    }
}

/// The pasted text in these bytes, all of a file.
fn of(bytes: &[u8]) -> Option<PastedText> {
    if bytes.len() > LARGEST || bytes.contains(&0) {
        return None;
    }
    let text = core::str::from_utf8(bytes).ok()?;
    let has_recording = match kind_of(bytes) {
        None => false,
        // Any object of JSON is taken for qlog.
        Some(InputKind::Qlog) if !text.contains("\"qlog") && !text.contains("\"data\"") => false,
        Some(InputKind::TcpdumpText | InputKind::Ss) => true,
        Some(_) => return None,
    };
    let mut report = pasted::read(text)?;
    if has_recording {
        report.sections.retain(|section| section.kind != "ss" && section.kind != "tshark");
    }
    (!report.sections.is_empty()).then_some(PastedText { report, has_recording })
}
