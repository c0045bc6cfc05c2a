//! Detects the kind of a file by its content.

use core::fmt;
use std::io::{self, Cursor, Read};

/// Kind of an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputKind {
    /// pcap or pcapng.
    Capture,
    /// Packet lines of tcpdump, with or without prose around them. Frame numbers are line numbers.
    TcpdumpText,
    /// FreeBSD's Black Box Log.
    BlackBox,
    /// FreeBSD's siftr.
    Siftr,
    /// Linux' tcp_probe, in any of its formats.
    TcpProbe,
    /// Polls of `ss -ti`.
    Ss,
    /// Counters of a Linux host: nstat, or its files in `/proc/net`.
    Nstat,
    /// qlog of any version.
    Qlog,
    /// Chromium's NetLog.
    NetLog,
    /// The output of `iperf3 --json`.
    Iperf3,
    /// A data file of flent, which has no connections.
    Flent,
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Capture => "a capture",
            Self::TcpdumpText => "tcpdump's text",
            Self::BlackBox => "a BBLog",
            Self::Siftr => "a siftr log",
            Self::TcpProbe => "rows of tcp_probe",
            Self::Ss => "polls of ss",
            Self::Nstat => "counters of a host",
            Self::Qlog => "qlog",
            Self::NetLog => "a NetLog",
            Self::Iperf3 => "the output of iperf3",
            Self::Flent => "a data file of flent",
        })
    }
}

impl InputKind {
    /// Detects the kind from the first bytes of a file.
    pub(super) fn of(begin: &[u8]) -> Option<Self> {
        if is_pcap(begin) {
            return Some(Self::Capture);
        }
        if is_pcapng(begin) {
            let is_log = trace::bblog::is_log(begin).unwrap_or(false);
            return Some(if is_log { Self::BlackBox } else { Self::Capture });
        }
        // An object or a record separator, after an optional byte order mark and blanks.
        let json = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start();
        if is_netlog(json) {
            return Some(Self::NetLog);
        }
        if logs::flent::is_flent(json) {
            return Some(Self::Flent);
        }
        if logs::iperf3::is_iperf3(json) {
            return Some(Self::Iperf3);
        }
        if matches!(json.first(), Some(b'{' | 0x1e)) {
            return Some(Self::Qlog);
        }
        let text = String::from_utf8_lossy(begin);
        text.lines().find_map(|line| {
            if line.starts_with("enable_time_secs=") {
                Some(Self::Siftr)
            } else if logs::tcp_probe::is_row(line) {
                Some(Self::TcpProbe)
            } else if logs::ss::is_socket(line) {
                Some(Self::Ss)
            } else if logs::nstat::is_counter(line) {
                Some(Self::Nstat)
            } else if line.contains(": Flags [") || trace::tcpdump::is_old_packet(line) {
                Some(Self::TcpdumpText)
            } else {
                None
            }
        })
    }

    /// Whether it is a log of states rather than of packets.
    pub const fn is_log(self) -> bool {
        !matches!(self, Self::Capture | Self::TcpdumpText)
    }
}

/// Whether a JSON text begins with the fields of a NetLog: `constants`, or an event with its source.
fn is_netlog(json: &[u8]) -> bool {
    let Some(fields) = json.strip_prefix(b"{") else { return false };
    let has = |field: &[u8]| json.windows(field.len()).any(|part| part == field);
    fields.trim_ascii_start().starts_with(b"\"constants\"")
        || (has(b"\"events\"")
            && has(b"\"phase\"")
            && has(b"\"source\"")
            && !has(b"\"qlog_version\"")
            && !has(b"\"file_schema\""))
}

/// Whether a JSON text has a field of qlog's header, or the fields of one of its events.
pub(super) fn has_qlog_fields(json: &[u8]) -> bool {
    let has = |field: &[u8]| json.windows(field.len()).any(|part| part == field);
    let header: [&[u8]; 4] =
        [b"\"qlog_version\"", b"\"qlog_format\"", b"\"file_schema\"", b"\"serialization_format\""];
    let event: [&[u8]; 3] = [b"\"time\"", b"\"name\"", b"\"data\""];
    header.into_iter().any(has) || event.into_iter().all(has)
}

fn is_pcap(begin: &[u8]) -> bool {
    const MAGICS: [u32; 3] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34];
    let magic = begin.first_chunk().map(|magic| u32::from_be_bytes(*magic));
    magic.is_some_and(|magic| MAGICS.contains(&magic) || MAGICS.contains(&magic.swap_bytes()))
}

fn is_pcapng(begin: &[u8]) -> bool {
    begin.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a])
}

/// Whether these bytes show the kind, whatever follows. A pipe may take long to give more.
fn is_enough(begin: &[u8]) -> bool {
    is_pcap(begin) || (is_pcapng(begin) && trace::bblog::is_log(begin).is_some())
}

/// Bytes that are read ahead at a time.
const READ_AHEAD: usize = 4 * 1_024;

/// A reader with a peekable beginning.
pub(super) struct PeekReader<R> {
    begin: Cursor<Vec<u8>>,
    /// Error that ended the input within its beginning.
    error: Option<io::Error>,
    input: R,
}

impl<R: Read> PeekReader<R> {
    /// Reads ahead until the bytes show the kind of the file, at most `bytes`.
    pub(super) fn new(input: R, bytes: usize) -> Self {
        let mut reader = Self { begin: Cursor::new(Vec::new()), error: None, input };
        reader.read_ahead(bytes, is_enough);
        reader
    }

    /// The first `bytes`, or all there are; an error if none could be read.
    pub(super) fn beginning(&mut self, bytes: usize) -> io::Result<&[u8]> {
        self.read_ahead(bytes, |_| false);
        self.begin()
    }

    fn read_ahead(&mut self, bytes: usize, is_enough: fn(&[u8]) -> bool) {
        let begin = self.begin.get_mut();
        while begin.len() < bytes && self.error.is_none() && !is_enough(begin) {
            let from = begin.len();
            begin.resize(bytes.min(from + READ_AHEAD), 0);
            let read = self.input.read(&mut begin[from..]);
            begin.truncate(from + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    self.error = Some(error);
                }
                _ => {}
            }
        }
    }

    /// The beginning; an error if none could be read.
    pub(super) fn begin(&mut self) -> io::Result<&[u8]> {
        match self.error.take_if(|_| self.begin.get_ref().is_empty()) {
            Some(error) => Err(error),
            None => Ok(self.begin.get_ref()),
        }
    }
}

impl<R: Read> Read for PeekReader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self.begin.read(to)? {
            0 if to.is_empty() => Ok(0),
            0 => match self.error.take() {
                Some(error) => Err(error),
                None => self.input.read(to),
            },
            bytes => Ok(bytes),
        }
    }
}

/// The first bytes of a file, for a message.
pub(super) fn beginning(begin: &[u8]) -> String {
    let first = &begin[..begin.len().min(16)];
    if first.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | b'\n' | b'\r')) {
        format!("{:?}", String::from_utf8_lossy(first))
    } else {
        first.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
    }
}
