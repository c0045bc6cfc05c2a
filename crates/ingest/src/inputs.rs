//! Reads recordings of transfers into connections: captures, logs of stacks, text.
//!
//! [`read`] takes any number of files, each of which may be compressed (gzip, xz, zstd), and
//! detects their kind by content: pcap, pcapng, tcpdump's text (also within prose, such as a mail),
//! FreeBSD's BBLog and siftr, Linux' tcp_probe, polls of `ss -ti`, counters of `nstat`, qlog, Chromium's NetLog. Packets are sorted into
//! connections of TCP and QUIC and passed to the analysis ([`diagnose::ConnectionAnalyzer`]); the samples of a
//! kernel's log are added to the connection they describe.
//!
//! Memory: about 200 bytes per connection, and its packets in a compact form or, when there are more
//! than about thirty, the state of the analysis; the packets of those only if captures are compared
//! (40 bytes per packet, at most [`MAX_TRANSIT_PACKETS`]).
//!
//! The module opens no files (callers give readers) and diagnoses nothing.

mod active;
mod captured_quic;
mod captures;
mod connection_key;
mod convertible;
mod duplicates;
mod fragments;
mod host_names;
mod join;
mod kind;
mod live;
mod logs;
mod netlog;
mod open_connection;
mod others;
mod problems;
mod quic;
mod ring;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod transit;

use core::fmt;
use std::borrow::Cow;
use std::io::{self, Read};

use diagnose::host_counters::HostCounters;
use diagnose::{Analysis, AnalysisSettings, RecordedConnection};
use packet::wire::Endpoints;
use trace::capture::CaptureInterface;
use trace::unpack::{Packing, Unpacked};
use units::Duration;

pub use captured_quic::{
    CapturedQuicConnection, DecryptedCounts, KeyLog, KeyLogError, QuicClientHello, QuicCounts,
    QuicMigration,
};
pub use convertible::ConvertibleFormat;
pub use fragments::FragmentCounts;
pub use join::{CapturePair, ClockEstimate};
pub use kind::InputKind;
pub use live::{LiveConnection, LiveInterval, LiveReporter};
pub use logs::MAX_LOG_RECORDS;
pub use others::OtherFrames;
pub use problems::Problems;
pub use quic::beside::{PacketsBeside, QuicBeside};
pub use quic::{ClockOrigin, LoggedSender, QuicConnection, QuicPair, QuicTransit, quic_log_fields};
pub use transit::{MAX_TRANSIT_PACKETS, PacketOutcome, TwoPointTransit};

use host_names::HostNames;
use quic::QuicLogs;
use quic::beside::MAX_DATAGRAMS;
use table::ConnectionTable;

/// Bytes from which the kind of a file is detected.
const BEGINNING: usize = 64 * 1_024;

/// An input file.
pub struct InputFile<'a> {
    /// File name, for messages.
    pub name: String,
    /// Its bytes, compressed or not; they need not be buffered.
    pub bytes: Box<dyn Read + 'a>,
}

/// Summary of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// File name.
    pub name: String,
    /// Kind of the file.
    pub kind: InputKind,
    /// Compression.
    pub packing: Option<Packing>,
    /// Time of its first packet or record, the origin of `CapturedPacket::at`: since 1970, if its
    /// clock does.
    pub begins: Option<Duration>,
    /// Frames of a capture, packet lines of a text, records of a log.
    pub frames: u64,
    /// TCP packets among them.
    pub tcp: u64,
    /// Frames among them that were captured twice; the second copy is not analysed.
    pub duplicates: u64,
    /// Connections that [`LiveReporter::forgetting`] left out.
    pub forgotten: u64,
    /// TCP packets whose options the snap length truncated.
    pub options_cut: u64,
    /// Datagrams of QUIC in a capture; their frames are not among the others.
    pub quic: QuicCounts,
    /// Frames that are neither TCP nor QUIC, or cannot be parsed.
    pub others: OtherFrames,
    /// Capture points (one in pcap); empty for logs.
    pub interfaces: Vec<CaptureInterface>,
    /// The counters of a host, if it has those.
    pub host_counters: Option<Box<HostCounters>>,
    /// Offsets of its clock to those of the captures.
    pub clocks: Vec<ClockOffset>,
    /// Problems of the file.
    pub problems: Problems,
}

/// Offset of a log's clock to that of a capture, from events present in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Index of the capture in [`Reading::files`].
    pub other: usize,
    /// Nanoseconds by which the log is ahead (median).
    pub ahead: i64,
    /// Number of matching events.
    pub matches: usize,
}

/// A connection at one capture point.
#[derive(Debug, Clone)]
pub struct CapturedConnection {
    /// Index of its file in [`Reading::files`].
    pub file: usize,
    /// Index of the capture point in [`File::interfaces`]; 0 for logs.
    pub interface: usize,
    /// Names of the client and the server that replace the addresses of [`Analysis::ends`], if
    /// a text had names only.
    pub names: Option<Box<[String; 2]>>,
    record: RecordedConnection,
}

impl CapturedConnection {
    /// Analysis of its packets; computed from them if they are few, so keep it.
    pub fn analysis(&self) -> Cow<'_, Analysis> {
        self.record.analysis()
    }

    /// The client and the server: see [`Analysis::ends`].
    pub fn ends(&self) -> Endpoints {
        self.record.ends()
    }

    /// Its number: see [`Analysis::stream`].
    pub fn stream(&self) -> u32 {
        self.record.stream()
    }
}

/// The result of reading.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The files, in the order given.
    pub files: Vec<File>,
    /// The connections, by file, in order of their first packets.
    pub streams: Vec<CapturedConnection>,
    /// Connections present at two capture points, compared.
    pub pairs: Vec<CapturePair>,
    /// QUIC connections from their logs.
    pub quic: Vec<QuicConnection>,
    /// QUIC connections that the logs of both endpoints have, compared.
    pub quic_pairs: Vec<QuicPair>,
    /// QUIC connections of captures, without their keys.
    pub captured_quic: Vec<CapturedQuicConnection>,
    /// QUIC connections that a log and a capture have, compared.
    pub quic_beside: Vec<QuicBeside>,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub struct ReadError {
    /// The file.
    pub name: String,
    /// The reason.
    pub reason: Reason,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub enum Reason {
    /// The file is empty.
    Empty,
    /// The kind of the file is unknown.
    Foreign {
        /// Its first bytes.
        begins: String,
    },
    /// A capture that another program has to convert first.
    Convertible {
        /// Its format.
        format: ConvertibleFormat,
        /// The command that converts it.
        conversion: String,
    },
    /// The file has nothing usable.
    Nothing {
        /// The kind that it was read as.
        kind: InputKind,
        /// The first problem.
        problem: Option<String>,
    },
    /// Intervals are reported of captures only.
    NoIntervals {
        /// The kind of the file.
        kind: InputKind,
    },
    /// Reading failed.
    Read(io::Error),
}

/// How files are read.
#[derive(Debug, Default)]
pub struct ReadMode<'a> {
    /// The files are parts of one capture, as `tcpdump -C` and `-G` write them: they are joined in
    /// order of their first packets.
    pub is_ring: bool,
    /// Reports intervals of captures while they are read.
    pub live: Option<LiveReporter<'a>>,
    /// Secrets with which the packets of QUIC in captures are decrypted.
    pub keys: KeyLog,
    /// The packets with data of QUIC logs are kept, for a fit.
    pub keeps_quic: bool,
    /// Files that cannot be read are listed here, and the others are read; `None`: the first is an error. Parts of
    /// a ring are never left out.
    pub unreadable: Option<&'a mut Vec<ReadError>>,
}

impl ReadMode<'_> {
    /// Lists an unreadable file.
    fn leave_out(&mut self, name: String, reason: Reason) -> Result<(), ReadError> {
        let error = ReadError { name, reason };
        match &mut self.unreadable {
            Some(list) => {
                list.push(error);
                Ok(())
            }
            None => Err(error),
        }
    }

    /// The first unreadable file, if none of `files` was read.
    fn first_of_all(&mut self, files: usize) -> Result<(), ReadError> {
        match &mut self.unreadable {
            Some(list) if files > 0 && list.len() == files => Err(list.remove(0)),
            _ => Ok(()),
        }
    }
}

/// Reads files of any kind, recorded at the same time if there are several.
///
/// # Errors
/// The first file that cannot be read, or has nothing usable.
pub fn read(sources: Vec<InputFile<'_>>, settings: AnalysisSettings) -> Result<Reading, ReadError> {
    read_with(sources, settings, ReadMode::default())
}

/// Reads files as [`read`] does.
///
/// # Errors
/// As [`read`]; also parts of a ring that are no captures. With [`ReadMode::unreadable`] the first file, if none can
/// be read.
pub fn read_with(
    sources: Vec<InputFile<'_>>,
    settings: AnalysisSettings,
    mut mode: ReadMode<'_>,
) -> Result<Reading, ReadError> {
    if mode.is_ring {
        return ring::read(sources, settings, mode.live, &mode.keys);
    }
    // A single capture may have several capture points too, which is known only while reading it.
    let given = sources.len();
    let mut table = ConnectionTable::new(settings, given > 1);
    let mut begun = Vec::new();
    for source in sources {
        match open(source.name.clone(), source.bytes) {
            Ok(opened) => begun.push((begun.len(), opened)),
            Err(reason) => mode.leave_out(source.name, reason)?,
        }
    }
    // Logs are read last: their samples are added to the connections of the captures.
    begun.sort_by_key(|(_, (file, _))| file.kind.is_log());
    let (mut files, mut captured_quic) = (Vec::new(), Vec::<CapturedQuicConnection>::new());
    let of_quic = |(_, (file, _)): &&(usize, (File, _))| file.kind == InputKind::Qlog;
    let of_capture = |(_, (file, _)): &&(usize, (File, _))| file.kind == InputKind::Capture;
    let logs = begun.iter().filter(of_quic).count();
    let beside = logs > 0 && begun.iter().any(|one| of_capture(&one));
    let mut datagrams = if beside { MAX_DATAGRAMS } else { 0 };
    let mut quic = QuicLogs::new(logs > 1 || beside, mode.keeps_quic);
    let mut hosts = HostNames::default();
    for (number, (mut file, input)) in begun {
        let done = match file.kind {
            kind if kind != InputKind::Capture && mode.live.is_some() => {
                Err(Reason::NoIntervals { kind })
            }
            InputKind::Capture => {
                let live = mode.live.as_mut();
                captures::read(
                    input,
                    number,
                    &mut file,
                    &mut table,
                    live,
                    &mut datagrams,
                    &mode.keys,
                )
                .map(|connections| captured_quic.extend(connections))
            }
            InputKind::TcpdumpText => text::read(input, number, &mut file, &mut table, &mut hosts),
            InputKind::Qlog => quic::read(input, number, &mut file, &mut quic),
            InputKind::NetLog => {
                netlog::read(input, number, &mut file).map(|connections| quic.extend(connections))
            }
            InputKind::Nstat => logs::read_counters(input, &mut file),
            InputKind::Flent => Err(Reason::Nothing { kind: InputKind::Flent, problem: None }),
            _ => logs::read(input, number, &mut file, &mut table),
        };
        if let Err(reason) = done {
            // What was read of it before is among the connections.
            if matches!(reason, Reason::Read(_)) {
                file.problems.push(&reason);
            }
            mode.leave_out(file.name.clone(), reason)?;
        }
        if let Some(live) = &mut mode.live {
            live.finish(&mut table);
        }
        files.push((number, file));
    }
    mode.first_of_all(given)?;
    files.sort_by_key(|(number, _)| *number);
    let files = files.into_iter().map(|(_, file)| file).collect();
    let (streams, pairs) = table.finish();
    let quic_beside = quic.beside(&captured_quic);
    let (mut quic, quic_pairs) = quic.finish();
    quic.extend(captured_quic.iter_mut().filter_map(quic::decrypted));
    Ok(Reading { files, streams, pairs, quic, quic_pairs, captured_quic, quic_beside })
}

/// Detects the kind of a file from its first bytes, compressed or not.
pub fn kind_of(begin: &[u8]) -> Option<InputKind> {
    let mut unpacked = kind::PeekReader::new(Unpacked::new(begin).ok()?, BEGINNING);
    InputKind::of(unpacked.begin().ok()?)
}

/// Whether the first bytes of a file, compressed or not, are without doubt those of a capture or a
/// log. [`kind_of`] takes every JSON object for qlog, which a file that a user names may be.
pub fn is_recording(begin: &[u8]) -> bool {
    let Ok(unpacked) = Unpacked::new(begin) else { return false };
    let mut unpacked = kind::PeekReader::new(unpacked, BEGINNING);
    let Ok(begin) = unpacked.begin() else { return false };
    match InputKind::of(begin) {
        Some(InputKind::Qlog) => kind::has_qlog_fields(begin),
        kind => kind.is_some(),
    }
}

type PeekedInput<'a> = kind::PeekReader<Unpacked<Box<dyn Read + 'a>>>;

/// Detects the kind of a file.
fn open(name: String, bytes: Box<dyn Read + '_>) -> Result<(File, PeekedInput<'_>), Reason> {
    let unpacked = Unpacked::new(bytes).map_err(Reason::Read)?;
    let packing = unpacked.packing();
    let mut input = kind::PeekReader::new(unpacked, BEGINNING);
    let begin = input.begin().map_err(Reason::Read)?;
    let kind = match InputKind::of(begin) {
        Some(kind) => kind,
        None if begin.is_empty() => return Err(Reason::Empty),
        None => {
            return Err(match ConvertibleFormat::of(begin) {
                Some(format) => {
                    Reason::Convertible { format, conversion: format.conversion(&name) }
                }
                None => Reason::Foreign { begins: kind::beginning(begin) },
            });
        }
    };
    let file = File {
        name,
        kind,
        packing,
        begins: None,
        frames: 0,
        tcp: 0,
        duplicates: 0,
        forgotten: 0,
        options_cut: 0,
        quic: QuicCounts::default(),
        others: OtherFrames::default(),
        interfaces: Vec::new(),
        host_counters: None,
        clocks: Vec::new(),
        problems: Problems::default(),
    };
    Ok((file, input))
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::Foreign { begins } => {
                write!(f, "expected a capture or a log of TCP or QUIC, found a file that begins ")?;
                write!(f, "with {begins}")
            }
            Self::Convertible { format, conversion } => {
                write!(f, "the file is {format}, which is not read; convert it: {conversion}")
            }
            Self::Nothing { kind, problem } => {
                write!(f, "no packet or record found, taken for {kind}")?;
                match problem {
                    Some(problem) => write!(f, ": {problem}"),
                    None if *kind == InputKind::Capture => f.write_str(
                        ": it is intact and ends after its header; did the capture's filter match anything?",
                    ),
                    None => Ok(()),
                }
            }
            Self::NoIntervals { kind } => {
                write!(
                    f,
                    "it is {kind}, and only a capture is reported by intervals: tcpdump -U -w -"
                )
            }
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReadError {}
