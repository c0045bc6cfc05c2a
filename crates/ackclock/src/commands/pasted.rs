//! Pasted text of other tools, for `ackclock diagnose` and `ackclock scenario from`.

use std::borrow::Cow;
use std::io::{self, Read};
use std::path::Path;

use ingest::inputs::{InputKind, is_recording, kind_of};
use ingest::pasted::{self, PastedReport};

use crate::input;

/// Largest text that is read.
const LARGEST: usize = 8 << 20;
/// Bytes of standard input that are read at a time: the first ones of a capture show that it is none.
const CHUNK: u64 = 4_096;

/// A text that a command diagnoses in place of a recording, or beside one.
pub(crate) struct PastedText {
    pub(crate) report: PastedReport,
    /// Whether the text has packets, sockets or a test of iperf3 that are diagnosed as such.
    pub(crate) has_recording: bool,
    /// Whether these are packets.
    pub(super) has_packets: bool,
    /// The recording without marks of a quotation, in place of the bytes of the file.
    pub(super) unquoted: Option<Vec<u8>>,
}

/// Reads the pasted text of a file; `None` for a recording, for binary data and for what no tool
/// printed.
pub(crate) fn read(file: &Path) -> Option<PastedText> {
    // Other inputs can be read only once.
    if file == Path::new("-") || input::is_own(file) {
        return None;
    }
    let mut opened = input::open_argument(file).ok()?;
    let mut bytes = Vec::new();
    // The first bytes of most captures show that it is none.
    opened.by_ref().take(CHUNK).read_to_end(&mut bytes).ok()?;
    if bytes.contains(&0) {
        return None;
    }
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
    let text = match core::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        // A compressed file is none; Windows writes Latin-1 in some languages.
        Err(_) if bytes.iter().any(|byte| matches!(byte, 1..=8 | 14..=26)) => return None,
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    let (mut kind, mut unquoted) = (kind_of(bytes), None);
    if kind.is_none() {
        let plain = pasted::unquoted(&text);
        kind = kind_of(plain.as_bytes())
            .filter(|kind| matches!(kind, InputKind::TcpdumpText | InputKind::Ss));
        unquoted = kind.map(|_| plain.into_bytes());
    }
    if kind == Some(InputKind::TcpdumpText) && unquoted.is_none() {
        unquoted = pasted::with_running_times(&text).map(String::into_bytes);
    }
    let recorded = match kind {
        None => None,
        // What can be said of packets without times is no connection.
        Some(InputKind::TcpdumpText) if pasted::has_no_times(&text) => None,
        // Any object of JSON is taken for qlog.
        Some(InputKind::Qlog) if !is_recording(bytes) => None,
        Some(InputKind::Iperf3) if !pasted::is_json_only(&text) => None,
        Some(InputKind::Nstat) if !is_counters_only(&text) => None,
        Some(kind @ (InputKind::TcpdumpText | InputKind::Ss | InputKind::Iperf3)) => Some(kind),
        Some(_) => return None,
    };
    let mut report = pasted::read(&text)?;
    let sections: &[&str] = match recorded {
        Some(InputKind::TcpdumpText) => &["tcpdump -q", "tshark"],
        Some(InputKind::Ss) => &["ss"],
        Some(InputKind::Iperf3) => &["iperf"],
        _ => &[],
    };
    report.sections.retain(|section| !sections.contains(&section.kind));
    Some(PastedText {
        report,
        has_recording: recorded.is_some(),
        has_packets: recorded == Some(InputKind::TcpdumpText),
        unquoted,
    })
}

/// Whether all lines of a text are counters, comments or times, as in a log of polls.
fn is_counters_only(text: &str) -> bool {
    let is_time =
        |line: &str| line.bytes().all(|byte| byte.is_ascii_digit() || b".:- TZ+".contains(&byte));
    text.lines()
        .map(str::trim)
        .all(|line| line.starts_with('#') || is_time(line) || is_counter_line(line))
}

/// Whether a line is a counter of nstat, though its value may be damaged.
fn is_counter_line(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_name = |name: &str| {
        ["Tcp", "Ip", "Udp", "Icmp"].iter().any(|group| name.starts_with(group))
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    logs::nstat::is_counter(line) || matches!(words[..], [name, _, _] if is_name(name))
}
