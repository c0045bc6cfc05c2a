//! Linux' tcp_probe: the state of a sender at every packet it receives, as text.
//!
//! Three forms are read, by their lines: the trace event `tcp:tcp_probe` (include/trace/events/tcp.h)
//! as ftrace, trace-cmd and perf print it; the former `/proc/net/tcpprobe` (net/ipv4/tcp_probe.c);
//! and columns with names (`t_us,flow,data_len,...`), where numbers count from the first byte.
//! Windows are in packets, as the kernel counts them. The state is that before the packet.
//!
//! ```
//! use logs::tcp_probe::{Item, Reader};
//! # use ackclock_logs as logs;
//!
//! let text = "\
//! iperf3-912 [001] ..s1. 4311.000250: tcp_probe: family=AF_INET src=10.0.0.1:40001 \
//! dest=10.0.0.2:5001 mark=0x0 data_len=0 snd_nxt=0x2a snd_una=0x1 snd_cwnd=10 \
//! ssthresh=2147483647 snd_wnd=65160 srtt=45206 rcv_wnd=64512 sock_cookie=7
//! ";
//! let Some(Ok(Item::Row(row))) = Reader::new(text.as_bytes()).next() else { panic!() };
//! assert_eq!((row.snd_cwnd, row.ssthresh), (10, None));
//! assert_eq!(row.ends.unwrap().dst.port(), 5001);
//! ```
//!
//! What it does not do: ftrace stamps count from the start of the machine, so that their times are
//! those of no other log until they are matched.

mod forms;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead};

use packet::wire::Endpoints;
use units::Duration;

pub use crate::lines::{LineFault, LineProblem};
use crate::lines::{Lines, Next};

/// `TCP_INFINITE_SSTHRESH` (include/net/tcp.h): no threshold yet.
const UNSET: u32 = 0x7fff_ffff;

/// One thing that a log tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A row.
    Row(Row),
    /// Something is wrong; reading goes on.
    Problem(LineProblem),
}

/// What a stamp counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The start of the machine (trace events).
    Boot,
    /// Something of the log's own: loading of the module, the first SYN.
    Own,
}

/// The state of a sender when a packet comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Line of the text, from 1.
    pub line: u64,
    /// What the stamp counts from.
    pub clock: Clock,
    /// The stamp.
    pub at: Duration,
    /// The sender and its peer; `None` in columns.
    pub ends: Option<Endpoints>,
    /// The sender's port, in columns.
    pub flow: Option<u16>,
    /// Payload bytes of the packet that comes in.
    pub data_len: u32,
    /// Next byte to send: of the wire, or in columns from the first byte.
    pub snd_nxt: u32,
    /// Oldest byte not acknowledged.
    pub snd_una: u32,
    /// Congestion window in packets.
    pub snd_cwnd: u32,
    /// Slow-start threshold in packets: `tcp_current_ssthresh`, outside of a recovery at least 3/4
    /// of the window; `None` as long as there is none.
    pub ssthresh: Option<u32>,
    /// Window the peer offers, in bytes.
    pub snd_wnd: u32,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Window offered, in bytes; missing in old kernels.
    pub rcv_wnd: Option<u32>,
}

/// What a log has, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Rows.
    pub rows: u64,
    /// Lines of other events, remarks and empty ones.
    pub other_lines: u64,
    /// Problems told.
    pub problems: u64,
}

/// Reads a log; one line is held at a time.
#[derive(Debug)]
pub struct Reader<R> {
    lines: Lines<R>,
    columns: Option<forms::Columns>,
    held: Option<LineProblem>,
    ended: bool,
    tally: Tally,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`.
    pub const fn new(input: R) -> Self {
        let tally = Tally { rows: 0, other_lines: 0, problems: 0 };
        Self { lines: Lines::new(input), columns: None, held: None, ended: false, tally }
    }

    /// What is there, so far.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    fn problem(&mut self, problem: LineProblem) -> Option<io::Result<Item>> {
        self.tally.problems += 1;
        self.ended |= matches!(problem.kind, LineFault::Packed { .. });
        Some(Ok(Item::Problem(problem)))
    }
}

/// Does the line look like one of this log?
pub fn is_row(line: &str) -> bool {
    forms::Columns::of(line).is_some()
        || forms::event(line).is_some()
        || matches!(forms::proc_row(line), Some(Ok(_)))
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Item>;

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
                Ok(Some(Next::Problem(problem))) => return self.problem(problem),
                Ok(Some(Next::Line { number, text, whole })) => (number, text, whole),
            };
            if let Some(columns) = forms::Columns::of(&text) {
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
                    return Some(Ok(Item::Row(Row { line, ..row })));
                }
                Some(Err((at, kind))) => {
                    return self.problem(LineProblem { line, column: at + 1, kind });
                }
            }
        }
        None
    }
}
