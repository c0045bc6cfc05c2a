//! Reads Linux' tcp_probe: the state of a sender at every packet that it receives, as text.
//!
//! Three formats are detected by their lines: the trace event `tcp:tcp_probe`
//! (include/trace/events/tcp.h) as ftrace, trace-cmd and perf print it; the former
//! `/proc/net/tcpprobe` (net/ipv4/tcp_probe.c); and named columns (`t_us,flow,data_len,...`), in
//! which sequence numbers are relative. Windows are in packets, as in the kernel. The state is that
//! before the packet.
//!
//! ```
//! use logs::tcp_probe::{TcpProbeItem, TcpProbeReader};
//! # use ackclock_logs as logs;
//!
//! let text = "\
//! iperf3-912 [001] ..s1. 4311.000250: tcp_probe: family=AF_INET src=10.0.0.1:40001 \
//! dest=10.0.0.2:5001 mark=0x0 data_len=0 snd_nxt=0x2a snd_una=0x1 snd_cwnd=10 \
//! ssthresh=2147483647 snd_wnd=65160 srtt=45206 rcv_wnd=64512 sock_cookie=7
//! ";
//! let Some(Ok(TcpProbeItem::Row(row))) = TcpProbeReader::new(text.as_bytes()).next() else { panic!() };
//! assert_eq!((row.snd_cwnd, row.ssthresh), (10, None));
//! assert_eq!(row.ends.unwrap().dst.port(), 5001);
//! ```
//!
//! ftrace timestamps count from boot, so they must be matched with other logs.

mod forms;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead};

use packet::wire::Endpoints;
use units::Duration;

pub use crate::lines::{LineFault, LineProblem};
use crate::lines::{LineReader, NextLine};

/// `TCP_INFINITE_SSTHRESH` (include/net/tcp.h): no threshold yet.
const UNSET: u32 = 0x7fff_ffff;

/// An item of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpProbeItem {
    /// A row.
    Row(TcpProbeRow),
    /// A problem; reading continues.
    Problem(LineProblem),
}

/// Epoch of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpProbeClock {
    /// Boot (trace events).
    Boot,
    /// Specific to the log: loading of the module, the first SYN.
    Own,
}

/// The state of a sender when it receives a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpProbeRow {
    /// Line of the text, from 1.
    pub line: u64,
    /// Epoch of the timestamp.
    pub clock: TcpProbeClock,
    /// Timestamp.
    pub at: Duration,
    /// The sender and its peer; `None` in columns.
    pub ends: Option<Endpoints>,
    /// The sender's port, in columns.
    pub flow: Option<u16>,
    /// Payload bytes of the received packet.
    pub data_len: u32,
    /// Next byte to send: absolute, or in columns relative to the first byte.
    pub snd_nxt: u32,
    /// Oldest byte not acknowledged.
    pub snd_una: u32,
    /// Congestion window in packets.
    pub snd_cwnd: u32,
    /// Slow-start threshold in packets: `tcp_current_ssthresh`, outside recovery at least 3/4 of
    /// the window; `None` while unset.
    pub ssthresh: Option<u32>,
    /// Window advertised by the peer, in bytes.
    pub snd_wnd: u32,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Advertised window, in bytes; absent in old kernels.
    pub rcv_wnd: Option<u32>,
}

/// Counts so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpProbeStats {
    /// Rows.
    pub rows: u64,
    /// Lines of other events, comments and empty lines.
    pub other_lines: u64,
    /// Problems reported.
    pub problems: u64,
}

/// Reads a log, one line at a time.
#[derive(Debug)]
pub struct TcpProbeReader<R> {
    lines: LineReader<R>,
    columns: Option<forms::ColumnOrder>,
    held: Option<LineProblem>,
    ended: bool,
    tally: TcpProbeStats,
}

impl<R: BufRead> TcpProbeReader<R> {
    /// Reads from `input`.
    pub const fn new(input: R) -> Self {
        let tally = TcpProbeStats { rows: 0, other_lines: 0, problems: 0 };
        Self { lines: LineReader::new(input), columns: None, held: None, ended: false, tally }
    }

    /// Counts so far.
    pub const fn tally(&self) -> &TcpProbeStats {
        &self.tally
    }

    fn problem(&mut self, problem: LineProblem) -> Option<io::Result<TcpProbeItem>> {
        self.tally.problems += 1;
        self.ended |= matches!(problem.kind, LineFault::Packed { .. });
        Some(Ok(TcpProbeItem::Problem(problem)))
    }
}

/// Whether the line is one of this log.
pub fn is_row(line: &str) -> bool {
    forms::ColumnOrder::of(line).is_some()
        || forms::event(line).is_some()
        || matches!(forms::proc_row(line), Some(Ok(_)))
}

impl<R: BufRead> Iterator for TcpProbeReader<R> {
    type Item = io::Result<TcpProbeItem>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(problem) = self.held.take() {
            return self.problem(problem);
        }
        while !self.ended {
            let (line, text, whole) = match self.lines.next() {
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                Ok(None) => return None,
                Ok(Some(NextLine::Problem(problem))) => return self.problem(problem),
                Ok(Some(NextLine::Line { number, text, whole })) => (number, text, whole),
            };
            if let Some(columns) = forms::ColumnOrder::of(&text) {
                self.columns = Some(columns);
                continue;
            }
            let row = match (forms::event(&text), &self.columns) {
                (Some(event), _) => Some(event.row()),
                (None, Some(columns)) if !text.is_empty() => Some(columns.row(&text)),
                _ => forms::proc_row(&text),
            };
            if !whole && row.is_some() {
                let column = text.len() + 1;
                self.held = Some(LineProblem { line, column, kind: LineFault::Unfinished });
            }
            match row {
                None => self.tally.other_lines += 1,
                Some(Ok(row)) => {
                    self.tally.rows += 1;
                    return Some(Ok(TcpProbeItem::Row(TcpProbeRow { line, ..row })));
                }
                Some(Err((at, kind))) => {
                    return self.problem(LineProblem { line, column: at + 1, kind });
                }
            }
        }
        None
    }
}
