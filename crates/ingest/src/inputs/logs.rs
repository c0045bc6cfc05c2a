//! Adds the samples of kernels' logs to the connections they describe.
//!
//! A log is read completely, up to [`MAX_LOG_RECORDS`] records, before its samples are assigned:
//! its clock may differ from that of a capture (tcp_probe counts from boot), and siftr2 names its
//! connections in the last line. The clock offset is the median over events present in both.

mod black_box;
mod iperf3;
mod nstat;
mod siftr;
mod ss;
mod tcp_probe;

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::net::SocketAddr;

use diagnose::socket::SocketSample;
use diagnose::{CapturedPacket, StateSample};
use packet::Dir;
use packet::wire::Endpoints;
use units::{Duration, Instant};

use super::connection_key::CaptureSource;
use super::table::ConnectionTable;
use super::{ClockOffset, File, InputKind, Reason};

/// Most records of a log that are used.
pub const MAX_LOG_RECORDS: usize = 1_000_000;

/// An event present in both a log and a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Anchor {
    /// The sender sent data from this sequence number, for the first time.
    Sent(u32),
    /// The sender received this acknowledgment, for the first time.
    Acked(u32),
}

/// One record of a log.
#[derive(Debug, Clone, Copy)]
struct StateRecord {
    /// Nanoseconds on the clock of the log; `None` without a time.
    at: Option<u64>,
    sample: StateSample,
}

/// The records of a log about one connection. Sequence numbers count from the first byte if
/// `relative`.
#[derive(Debug, Default)]
pub(super) struct ConnectionLog {
    words: Vec<StateRecord>,
    /// Packets in the log, with their times.
    packets: Vec<(u64, Endpoints, CapturedPacket)>,
    pub(super) anchors: Vec<(Anchor, u64)>,
    pub(super) relative: bool,
    /// The host that wrote the log is known to be the server.
    is_of_server: bool,
    /// First and last sample of the socket, if the log has its kernel's own account.
    sockets: Option<[SocketSample; 2]>,
}

/// Addresses of the logging host and its peer.
type Ends = (SocketAddr, SocketAddr);

/// The records of a file, by connection.
#[derive(Debug, Default)]
struct LogFile {
    by_ends: BTreeMap<Ends, ConnectionLog>,
    words: usize,
    times: LogEpoch,
}

/// Epoch of the times of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LogEpoch {
    /// 1970.
    Since1970,
    /// The first packet of the capture.
    SinceFirst,
    /// An epoch that no capture has: the offset comes from events in both.
    #[default]
    Own,
}

impl LogFile {
    fn word(
        &mut self,
        ends: Ends,
        at: Option<u64>,
        sample: StateSample,
    ) -> Option<&mut ConnectionLog> {
        self.words += 1;
        if self.words > MAX_LOG_RECORDS {
            return None;
        }
        let log = self.by_ends.entry(ends).or_default();
        log.words.push(StateRecord { at, sample });
        Some(log)
    }

    /// A sample without time; time and direction are set when it is assigned.
    fn blank() -> StateSample {
        StateSample::new(Instant::ZERO, Dir::Forward)
    }
}

/// Reads the counters of a host.
pub(super) fn read_counters(input: impl Read, file: &mut File) -> Result<(), Reason> {
    nstat::read(BufReader::new(input), file).map_err(Reason::Read)?;
    if file.host_counters.is_none() {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    Ok(())
}

pub(super) fn read(
    input: impl Read,
    number: usize,
    file: &mut File,
    table: &mut ConnectionTable,
) -> Result<(), Reason> {
    let input = BufReader::new(input);
    let logs = match file.kind {
        InputKind::BlackBox => black_box::read(input, file),
        InputKind::Siftr => siftr::read(input, file),
        InputKind::TcpProbe => tcp_probe::read(input, file, table),
        InputKind::Iperf3 => iperf3::read(input, file),
        _ => ss::read(input, file),
    }
    .map_err(Reason::Read)?;
    if file.frames == 0 || logs.by_ends.is_empty() {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    if logs.words > MAX_LOG_RECORDS {
        let rest = logs.words - MAX_LOG_RECORDS;
        file.problems
            .push(&format!("{rest} records beyond the first {MAX_LOG_RECORDS} are left out"));
    }
    let times = logs.by_ends.values().flat_map(|log| log.words.iter().filter_map(|word| word.at));
    file.begins = times.min().map(Duration::from_nanos);
    let point = CaptureSource { file: number as u32, interface: 0 };
    for (ends, log) in logs.by_ends {
        place(point, ends, &log, logs.times, file, table);
    }
    Ok(())
}

/// Assigns the records to their connection at every capture point that has it; without one, the log
/// becomes a capture point of its own.
fn place(
    point: CaptureSource,
    ends: Ends,
    log: &ConnectionLog,
    times: LogEpoch,
    file: &mut File,
    table: &mut ConnectionTable,
) {
    let between = Endpoints { src: ends.0, dst: ends.1 };
    let (from, to) = span(log);
    let mut placed = false;
    for index in table.in_other_files(point, between) {
        let begins = table.begins(index);
        let offset = match table.ahead(index, between, log) {
            Some((ahead, matches)) => {
                let other = table.file(index);
                file.clocks.push(ClockOffset { other, ahead, matches });
                ahead
            }
            None => match times {
                LogEpoch::Since1970 => 0,
                LogEpoch::SinceFirst => begins.cast_signed().saturating_neg(),
                LogEpoch::Own => continue,
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
        log.sockets.into_iter().for_each(|samples| table.socket(index, between.src, samples));
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
        let packet = CapturedPacket { at: since(at), ..packet };
        index = Some(table.packet(point, between, packet, 0));
    }
    let opened = if log.is_of_server { between.reversed() } else { between };
    let index = index.unwrap_or_else(|| table.open(point, opened));
    for word in &log.words {
        table.state(index, ends.0, since(word.at.unwrap_or(0)).as_nanos(), word.sample);
    }
    log.sockets.into_iter().for_each(|samples| table.socket(index, ends.0, samples));
}

fn span(log: &ConnectionLog) -> (u64, u64) {
    let times = || log.words.iter().filter_map(|word| word.at);
    (times().min().unwrap_or(0), times().max().unwrap_or(u64::MAX))
}
