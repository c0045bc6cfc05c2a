//! What kernels' own logs say, laid beside the packets of the connection they are about.
//!
//! A log is read whole before it is placed, up to [`MOST_WORDS`] records: its clock may be another
//! than that of a capture (tcp_probe counts from the start of the machine), and siftr2 names its
//! connections in the last line. The offset of the clocks is the median over events that both saw.

mod black_box;
mod siftr;
mod ss;
mod tcp_probe;

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::net::SocketAddr;

use diagnose::{Packet, StateSample};
use packet::Dir;
use packet::wire::Endpoints;
use units::{Duration, Instant};

use super::table::{Point, Table};
use super::{Clock, File, Kind, Reason};

/// Records of a log that are used.
pub const MOST_WORDS: usize = 1_000_000;

/// What a record and a capture both tell of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Anchor {
    /// The sender sent data that begin here (for the first time).
    Sent(u32),
    /// The sender was sent this acknowledgment (for the first time).
    Acked(u32),
}

/// One record.
#[derive(Debug, Clone, Copy)]
struct Word {
    /// Nanoseconds on the clock of the log; `None` if it tells no time.
    at: Option<u64>,
    sample: StateSample,
}

/// What a log tells of a connection. Numbers count from the first byte where `relative` says so.
#[derive(Debug, Default)]
pub(super) struct Log {
    words: Vec<Word>,
    /// Packets that the log itself has, with their times.
    packets: Vec<(u64, Endpoints, Packet)>,
    pub(super) anchors: Vec<(Anchor, u64)>,
    pub(super) relative: bool,
}

/// Who a log is about: whose state, and the peer.
type Ends = (SocketAddr, SocketAddr);

/// All that a file tells, by connection.
#[derive(Debug, Default)]
struct Logs {
    by_ends: BTreeMap<Ends, Log>,
    words: usize,
    times: Times,
}

/// What the times of a log count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Times {
    /// 1970.
    Since1970,
    /// The first packet of the capture.
    SinceFirst,
    /// Something that no capture has: what both saw must tell.
    #[default]
    Own,
}

impl Logs {
    fn word(&mut self, ends: Ends, at: Option<u64>, sample: StateSample) -> Option<&mut Log> {
        self.words += 1;
        if self.words > MOST_WORDS {
            return None;
        }
        let log = self.by_ends.entry(ends).or_default();
        log.words.push(Word { at, sample });
        Some(log)
    }

    /// A word without a time; the time and whose it is are set when it is placed.
    fn blank() -> StateSample {
        StateSample::new(Instant::ZERO, Dir::Forward)
    }
}

pub(super) fn read(
    input: impl Read,
    number: usize,
    file: &mut File,
    table: &mut Table,
) -> Result<(), Reason> {
    let input = BufReader::new(input);
    let logs = match file.kind {
        Kind::BlackBox => black_box::read(input, file),
        Kind::Siftr => siftr::read(input, file),
        Kind::TcpProbe => tcp_probe::read(input, file, table),
        _ => ss::read(input, file),
    }
    .map_err(Reason::Read)?;
    if file.frames == 0 || logs.by_ends.is_empty() {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    if logs.words > MOST_WORDS {
        let rest = logs.words - MOST_WORDS;
        file.problems.tell(&format!("{rest} records beyond the first {MOST_WORDS} are left out"));
    }
    let times = logs.by_ends.values().flat_map(|log| log.words.iter().filter_map(|word| word.at));
    file.begins = times.min().map(Duration::from_nanos);
    let point = Point { file: number as u32, interface: 0 };
    for (ends, log) in logs.by_ends {
        place(point, ends, &log, logs.times, file, table);
    }
    Ok(())
}

/// Hands the words to the connection they are about, at every capture point that saw it; if none
/// did, the log is a capture point of its own.
fn place(point: Point, ends: Ends, log: &Log, times: Times, file: &mut File, table: &mut Table) {
    let between = Endpoints { src: ends.0, dst: ends.1 };
    let (from, to) = span(log);
    let mut placed = false;
    for index in table.seen_elsewhere(point, between) {
        let begins = table.begins(index);
        let offset = match table.ahead(index, between, log) {
            Some((ahead, matches)) => {
                let other = table.file(index);
                file.clocks.push(Clock { other, ahead, matches });
                ahead
            }
            None => match times {
                Times::Since1970 => 0,
                Times::SinceFirst => begins.cast_signed().saturating_neg(),
                Times::Own => continue,
            },
        };
        // Nanoseconds since the first packet of that capture.
        let here = |at: u64| at.saturating_sub_signed(offset).saturating_sub(begins);
        if !table.overlaps(index, here(from), here(to)) {
            continue;
        }
        placed = true;
        for word in &log.words {
            table.state(index, between.src, here(word.at.unwrap_or(0)), word.sample);
        }
    }
    if placed {
        return;
    }
    let begins = file.begins.unwrap_or(Duration::ZERO);
    table.file_begins(point.file as usize, begins);
    let since = |at: u64| Instant::from_nanos(at.saturating_sub(begins.as_nanos()));
    let mut index = None;
    for &(at, between, packet) in &log.packets {
        file.tcp += 1;
        index = Some(table.packet(point, between, Packet { at: since(at), ..packet }));
    }
    let index = index.unwrap_or_else(|| table.open(point, between));
    for word in &log.words {
        table.state(index, ends.0, since(word.at.unwrap_or(0)).as_nanos(), word.sample);
    }
}

fn span(log: &Log) -> (u64, u64) {
    let times = || log.words.iter().filter_map(|word| word.at);
    (times().min().unwrap_or(0), times().max().unwrap_or(u64::MAX))
}
