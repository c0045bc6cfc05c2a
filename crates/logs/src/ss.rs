//! Reads polls of `ss -ti`: the state of Linux' sockets.
//!
//! A poll is a table of sockets, in two lines each (`ss -tin`) or in one (`ss -tinO`). ss prints no
//! time, so polling scripts print a line before each table; accepted are seconds since 1970 (`date
//! +%s.%N`), a date (`date -Is`, `date '+%F %T'`, plain `date` in UTC), a time of day, and
//! `t_us=...`, all with or without a leading `#`. Windows are in packets. Source of the format:
//! misc/ss.c of iproute2.
//!
//! ```
//! use logs::ss::{SsItem, SsReader};
//! # use ackclock_logs as logs;
//!
//! let text = "\
//! 1700000000.25
//! State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
//! ESTAB 0      31856  10.0.0.1:40001     10.0.0.2:5001
//! \t cubic wscale:10,10 rto:248 rtt:45.672/1.718 mss:1448 cwnd:17 send 4311788bps unacked:17
//! ";
//! let Some(Ok(SsItem::Socket(socket))) = SsReader::new(text.as_bytes()).next() else { panic!() };
//! assert_eq!((socket.info.cwnd, socket.send_queue), (Some(17), 31_856));
//! assert_eq!(socket.info.rtt.unwrap().as_micros(), 45_672);
//! assert_eq!(socket.at.unwrap().as_millis(), 1_700_000_000_250);
//! ```
//!
//! Sockets that are not TCP, or listen, are skipped; only values about sending are kept.

mod clock;
mod info;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use units::Duration;

pub use crate::lines::{LineFault, LineProblem};
use crate::lines::{LinePart, LineReader, NextLine};
pub use info::SsInfo;

/// An item of the polls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SsItem {
    /// A socket at a poll.
    Socket(Box<SsSocket>),
    /// A problem; reading continues.
    Problem(LineProblem),
}

/// A socket at a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SsSocket {
    /// First line in the text, from 1.
    pub line: u64,
    /// Time of the poll, from the line before it.
    pub at: Option<Duration>,
    /// State as printed by ss: `ESTAB`, `SYN-SENT`, ...; empty if omitted.
    pub state: String,
    /// Local address and port.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// Bytes that the application has not read.
    pub receive_queue: u64,
    /// Bytes that the peer has not acknowledged, unsent ones included.
    pub send_queue: u64,
    /// Values of the kernel.
    pub info: SsInfo,
}

/// Counts so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SsStats {
    /// Polls with a time.
    pub polls: u64,
    /// TCP sockets with both addresses.
    pub sockets: u64,
    /// Other lines.
    pub other_lines: u64,
    /// Problems reported.
    pub problems: u64,
}

/// Reads polls, one socket at a time.
#[derive(Debug)]
pub struct SsReader<R> {
    lines: LineReader<R>,
    at: Option<Duration>,
    /// The socket whose values may be on the next lines.
    open: Option<Box<SsSocket>>,
    held: Option<SsItem>,
    ended: bool,
    tally: SsStats,
}

impl<R: BufRead> SsReader<R> {
    /// Reads from `input`.
    pub const fn new(input: R) -> Self {
        let tally = SsStats { polls: 0, sockets: 0, other_lines: 0, problems: 0 };
        Self {
            lines: LineReader::new(input),
            at: None,
            open: None,
            held: None,
            ended: false,
            tally,
        }
    }

    /// What is there, so far.
    pub const fn tally(&self) -> &SsStats {
        &self.tally
    }

    fn problem(&mut self, problem: LineProblem) -> SsItem {
        self.tally.problems += 1;
        self.ended |= matches!(problem.kind, LineFault::Packed { .. });
        SsItem::Problem(problem)
    }

    /// Processes a line and returns completed items.
    fn take(&mut self, number: u64, text: &str, whole: bool) -> [Option<SsItem>; 2] {
        let mut reported = [None, None];
        let mut words = text;
        let indented = text.starts_with([' ', '\t']);
        if !(indented && self.open.is_some()) {
            reported[0] = self.open.take().map(SsItem::Socket);
            match heading(text) {
                Some((mut socket, skip_bytes)) => {
                    (socket.line, socket.at) = (number, self.at);
                    self.tally.sockets += 1;
                    self.open = Some(Box::new(socket));
                    words = &text[skip_bytes..];
                }
                None => {
                    if let Some(at) = clock::time(text) {
                        self.at = Some(at);
                        self.tally.polls += 1;
                    } else {
                        self.tally.other_lines += 1;
                    }
                    return reported;
                }
            }
        }
        let from = text.len() - words.len();
        let read = self.open.as_mut().map(|socket| socket.info.read(words));
        let fault = match read {
            Some(Err((at, kind))) => Some((from + at, kind)),
            _ if !whole => Some((text.len(), LineFault::Unfinished)),
            _ => None,
        };
        if let Some((at, kind)) = fault {
            reported[1] = Some(self.problem(LineProblem { line: number, column: at + 1, kind }));
        }
        reported
    }
}

impl<R: BufRead> Iterator for SsReader<R> {
    type Item = io::Result<SsItem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.held.take() {
                return Some(Ok(item));
            }
            if self.ended {
                return self.open.take().map(|socket| Ok(SsItem::Socket(socket)));
            }
            match self.lines.next() {
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                Ok(None) => self.ended = true,
                Ok(Some(NextLine::Problem(problem))) => {
                    let problem = self.problem(problem);
                    return Some(Ok(problem));
                }
                Ok(Some(NextLine::Line { number, text, whole })) => {
                    let [first, second] = self.take(number, &text, whole);
                    let mut reported = first.into_iter().chain(second);
                    let next = reported.next();
                    self.held = reported.next();
                    if let Some(item) = next {
                        return Some(Ok(item));
                    }
                }
            }
        }
    }
}

/// Whether the line begins a socket.
pub fn is_socket(line: &str) -> bool {
    heading(line).is_some()
}

/// States as ss prints them (`sstate_name`), without listening sockets.
const STATES: [&str; 10] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "CLOSING",
];

/// Parses a socket and the offset of its values: `[tcp] [state] queue queue local remote`.
fn heading(line: &str) -> Option<(SsSocket, usize)> {
    let mut words = LinePart::words(line).peekable();
    if words.peek()?.text == "tcp" {
        words.next();
    }
    let state = words.next_if(|word| STATES.contains(&word.text));
    let receive_queue = words.next()?.text.parse().ok()?;
    let send_queue = words.next()?.text.parse().ok()?;
    let local = end(words.next()?.text)?;
    let last = words.next()?;
    let remote = end(last.text)?;
    let socket = SsSocket {
        line: 0,
        at: None,
        state: state.map(|word| word.text.to_owned()).unwrap_or_default(),
        local,
        remote,
        receive_queue,
        send_queue,
        info: SsInfo::default(),
    };
    Some((socket, last.at + last.text.len()))
}

/// `10.0.0.1:80`, `[2001:db8::1]:80`, `10.0.0.1%eth0:80`, `[fe80::1]%eth0:80`.
fn end(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.split_once('%').map_or(host, |(host, _)| host);
    let ip = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(v6) => IpAddr::V6(v6.parse::<Ipv6Addr>().ok()?),
        None => IpAddr::V4(host.parse::<Ipv4Addr>().ok()?),
    };
    Some(SocketAddr::new(ip.to_canonical(), port.parse().ok()?))
}
