//! What people have of a slow transfer, read into connections: captures, logs of stacks, text.
//!
//! [`read`] takes any number of files, of which each may be packed (gzip, xz, zstd) and is known by
//! its content: pcap, pcapng, tcpdump's text (a mail with prose around it as well), FreeBSD's BBLog
//! and siftr, Linux' tcp_probe, polls of `ss -ti`, qlog. Packets are sorted into connections and go
//! straight into the analysis ([`diagnose::Connection`]); what a kernel's log says joins the
//! connection it is about.
//!
//! Kept while reading: of each connection what its analysis needs, about 200 bytes for who talks to
//! whom; of packets nothing, unless captures are to be laid side by side (then 40 bytes for each
//! packet, [`MOST_CROSSING`] at most).
//!
//! What it does not do: it opens no file (callers give readers), judges nothing, and puts no
//! fragments or tunnels together: these are counted ([`Others`]).

mod captures;
mod crossing;
mod join;
mod kind;
mod logs;
mod others;
mod problems;
mod quic;
mod table;
#[cfg(test)]
mod tests;
mod text;

use core::fmt;
use std::io::{self, Read};

use diagnose::{Analysis, Settings};
use trace::capture::Interface;
use trace::unpack::{Packing, Unpacked};
use units::Duration;

pub use crossing::{Crossing, Fate, MOST_CROSSING};
pub use join::{Offset, Pair};
pub use kind::Kind;
pub use logs::MOST_WORDS;
pub use others::Others;
pub use problems::Problems;
pub use quic::{Limit, Quic};

use table::Table;

/// Bytes by which the kind of a file is told.
const BEGINNING: u64 = 64 * 1_024;

/// A file to be read.
pub struct Source<'a> {
    /// Its name, for messages.
    pub name: String,
    /// Its bytes, packed or not; they need not be buffered.
    pub bytes: Box<dyn Read + 'a>,
}

/// What a file had.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// How it was packed.
    pub packing: Option<Packing>,
    /// Time of its first packet or record, from which `Packet::at` counts: since 1970, where its
    /// clock does.
    pub begins: Option<Duration>,
    /// Frames of a capture, packet lines of a text, records of a log.
    pub frames: u64,
    /// Packets of TCP among them.
    pub tcp: u64,
    /// What was not TCP, or could not be read.
    pub others: Others,
    /// Capture points (one in pcap); empty for logs.
    pub interfaces: Vec<Interface>,
    /// How its clock stands to those of the captures it was laid beside.
    pub clocks: Vec<Clock>,
    /// What was wrong with it.
    pub problems: Problems,
}

/// How the clock of a log stands to that of a capture, from events that both tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Index of the capture in [`Reading::files`].
    pub other: usize,
    /// Nanoseconds by which the log is ahead: the median.
    pub ahead: i64,
    /// Events that both tell.
    pub matches: usize,
}

/// A connection as one capture point saw it.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Index of its file in [`Reading::files`].
    pub file: usize,
    /// Index of the capture point in [`File::interfaces`]; 0 for logs.
    pub interface: usize,
    /// Names that stand for the addresses of [`Analysis::ends`], where the text had names and no
    /// numbers: of who opened the connection, and of the other.
    pub names: Option<[String; 2]>,
    /// What its packets say.
    pub analysis: Analysis,
}

/// All that was read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The files, in the order given.
    pub files: Vec<File>,
    /// The connections, by file, in the order in which they begin there.
    pub streams: Vec<Stream>,
    /// Connections that two capture points saw, laid side by side.
    pub pairs: Vec<Pair>,
    /// Connections of QUIC, as their logs have them.
    pub quic: Vec<Quic>,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub struct ReadError {
    /// The file.
    pub name: String,
    /// Why.
    pub reason: Reason,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub enum Reason {
    /// It has no byte.
    Empty,
    /// It is of no known kind.
    Foreign {
        /// How it begins.
        begins: String,
    },
    /// Nothing in it can be used.
    Nothing {
        /// What it was taken for.
        kind: Kind,
        /// The first thing wrong with it.
        problem: Option<String>,
    },
    /// Reading failed.
    Read(io::Error),
}

/// Reads files of any kind, several as of one time.
///
/// # Errors
/// The first file that cannot be read, or is of no use.
pub fn read(sources: Vec<Source<'_>>, settings: Settings) -> Result<Reading, ReadError> {
    // One capture may have several points as well, but that shows only when it is read.
    let mut table = Table::new(settings, sources.len() > 1);
    let mut begun = Vec::new();
    for (number, source) in sources.into_iter().enumerate() {
        let name = source.name;
        let opened = open(name.clone(), source.bytes);
        begun.push((number, opened.map_err(|reason| ReadError { name, reason })?));
    }
    // Logs join the connections that captures have shown.
    begun.sort_by_key(|(_, (file, _))| file.kind.is_log());
    let (mut files, mut quic) = (Vec::new(), Vec::new());
    for (number, (mut file, input)) in begun {
        let done = match file.kind {
            Kind::Capture => captures::read(input, number, &mut file, &mut table),
            Kind::TcpdumpText => text::read(input, number, &mut file, &mut table),
            Kind::Qlog => {
                quic::read(input, number, &mut file).map(|connections| quic.extend(connections))
            }
            _ => logs::read(input, number, &mut file, &mut table),
        };
        if let Err(reason) = done {
            return Err(ReadError { name: file.name, reason });
        }
        files.push((number, file));
    }
    files.sort_by_key(|(number, _)| *number);
    let files = files.into_iter().map(|(_, file)| file).collect();
    let (streams, pairs) = table.finish();
    Ok(Reading { files, streams, pairs, quic })
}

type Input<'a> = kind::Begun<Unpacked<Box<dyn Read + 'a>>>;

/// Finds out what a file is.
fn open(name: String, bytes: Box<dyn Read + '_>) -> Result<(File, Input<'_>), Reason> {
    let unpacked = Unpacked::new(bytes).map_err(Reason::Read)?;
    let packing = unpacked.packing();
    let mut input = kind::Begun::new(unpacked, BEGINNING);
    let begin = input.begin().map_err(Reason::Read)?;
    let kind = match Kind::of(begin) {
        Some(kind) => kind,
        None if begin.is_empty() => return Err(Reason::Empty),
        None => return Err(Reason::Foreign { begins: kind::beginning(begin) }),
    };
    let file = File {
        name,
        kind,
        packing,
        begins: None,
        frames: 0,
        tcp: 0,
        others: Others::default(),
        interfaces: Vec::new(),
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
            Self::Nothing { kind, problem } => {
                write!(f, "no packet or record found, taken for {kind}")?;
                match problem {
                    Some(problem) => write!(f, ": {problem}"),
                    None if *kind == Kind::Capture => f.write_str(
                        ": it is whole and ends after its header; did the capture's filter match anything?",
                    ),
                    None => Ok(()),
                }
            }
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReadError {}
