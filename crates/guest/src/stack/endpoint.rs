//! One end of a connection: a process, and what it has answered.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration as RealTime;

use machine::Signal;
use packet::IpVersion;
use quic::QuicSide;
use quic::real::{Datagram, RealConfig, RealEndpoint, RealFailure, RealState};
use units::{Bytes, Duration, Instant};

use crate::guest::GuestError;
use crate::uml::process::{Process, RunDirectory};
use crate::uml::{next_name, run_directory};

use super::StackLogs;
use super::capture::StackCapture;

/// Kinds of messages.
mod kind {
    pub(super) const HELLO: u32 = 1;
    pub(super) const RECEIVE: u32 = 2;
    pub(super) const RUN: u32 = 3;
    pub(super) const OPEN: u32 = 5;
    pub(super) const WRITE: u32 = 6;
    pub(super) const READ: u32 = 7;
    pub(super) const FINISH: u32 = 8;
    pub(super) const RESET: u32 = 9;
    pub(super) const SEND: u32 = 17;
    pub(super) const DEADLINE: u32 = 19;
    pub(super) const SIGNAL: u32 = 20;
}

/// Bytes of a head.
const HEAD: usize = 16;
/// A body has no more bytes.
const LARGEST: usize = 1 << 17;
/// Numbers in a [`Report`].
const NUMBERS: usize = 11;
/// Times that a program may ask to run again at one time.
const MOST_RUNS: u32 = 10_000;
const UDP_HEADER: u32 = 8;

/// What a program says of itself with `DEADLINE`: one byte, 1 if the peer's stream has ended and all of it is read; then
/// the numbers in this order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Report {
    at_end: bool,
    /// Bytes that it takes from the application now.
    room: u64,
    /// Bytes that the application has read with this message.
    read: u64,
    /// Bytes that the application can read.
    available: u64,
    cwnd: u64,
    in_flight: u64,
    /// UDP payload of its largest datagram.
    datagram: u64,
    srtt_ns: u64,
    min_rtt_ns: u64,
    lost: u64,
    data_packets: u64,
    retransmitted: u64,
}

impl Report {
    fn parse(body: &[u8]) -> Option<Self> {
        let (&at_end, rest) = body.split_first()?;
        let mut numbers = [0; NUMBERS];
        if rest.len() != 8 * NUMBERS {
            return None;
        }
        for (number, bytes) in numbers.iter_mut().zip(rest.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [room, read, available, cwnd, in_flight, datagram, srtt_ns, min_rtt_ns, rest @ ..] =
            numbers;
        let [lost, data_packets, retransmitted] = rest;
        Some(Self {
            at_end: at_end != 0,
            room,
            read,
            available,
            cwnd,
            in_flight,
            datagram,
            srtt_ns,
            min_rtt_ns,
            lost,
            data_packets,
            retransmitted,
        })
    }
}

/// One end of a connection.
pub(crate) struct StackEndpoint {
    /// `None` once it has failed.
    running: Option<Running>,
    capture: Option<StackCapture>,
    deadline: Instant,
    report: Report,
    sent: VecDeque<Datagram>,
    signals: VecDeque<Signal>,
    /// The application was refused bytes, and waits for [`Signal::Writable`].
    blocked: bool,
    /// The application has ended its stream.
    closed: bool,
    /// When it last ran, and how often at that time.
    runs: (Instant, u32),
    failure: Option<RealFailure>,
}

/// A running program.
struct Running {
    stream: UnixStream,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are processed.
    parsed: usize,
    process: Process,
    patience: u16,
    /// It writes a log, which it completes before it ends.
    logs: bool,
    /// Dropped last, which removes the directory.
    _directory: RunDirectory,
}

impl core::fmt::Debug for StackEndpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StackEndpoint").field("report", &self.report).finish_non_exhaustive()
    }
}

impl Running {
    fn start(program: &Path, logs: bool, patience: u16) -> Result<Self, GuestError> {
        let directory = RunDirectory::new(&run_directory(), &next_name())
            .map_err(GuestError::system("the directory of a stack"))?;
        let (ours, theirs) =
            UnixStream::pair().map_err(GuestError::system("the socket of a stack"))?;
        let timeout = RealTime::from_secs(patience.into());
        let set = ours.set_read_timeout(Some(timeout));
        set.map_err(GuestError::system("the socket of a stack"))?;
        let process = Process::start_program(program, OwnedFd::from(theirs), directory.path())?;
        let buffer = Vec::new();
        Ok(Self { stream: ours, buffer, parsed: 0, process, patience, logs, _directory: directory })
    }

    fn write(&mut self, kind: u32, at: Instant, body: &[u8]) -> Result<(), GuestError> {
        let mut message = Vec::with_capacity(HEAD + body.len());
        message.extend_from_slice(&kind.to_le_bytes());
        message.extend_from_slice(&(body.len() as u32).to_le_bytes());
        message.extend_from_slice(&at.as_nanos().to_le_bytes());
        message.extend_from_slice(body);
        self.stream.write_all(&message).map_err(GuestError::system("the socket of a stack"))
    }

    /// Makes the next `len` bytes available from `parsed` on.
    fn fill(&mut self, len: usize) -> Result<(), GuestError> {
        if self.parsed == self.buffer.len() {
            self.buffer.clear();
            self.parsed = 0;
        }
        while self.buffer.len() < self.parsed + len {
            let mut bytes = [0; 1 << 16];
            let read = match self.stream.read(&mut bytes) {
                Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                other => other,
            };
            let read = match read {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    let seconds = self.patience;
                    return Err(GuestError::Silent { seconds, console: String::new() });
                }
                Err(error) => return Err(GuestError::system("the socket of a stack")(error)),
            };
            self.buffer.extend_from_slice(&bytes[..read]);
        }
        Ok(())
    }

    /// Returns the next message: kind, time, and the position of its body.
    fn read(&mut self) -> Result<(u32, u64, core::ops::Range<usize>), GuestError> {
        self.fill(HEAD)?;
        let head = &self.buffer[self.parsed..self.parsed + HEAD];
        let number = |from: usize| {
            let bytes = head.get(from..from + 4).and_then(|bytes| bytes.try_into().ok());
            u32::from_le_bytes(bytes.unwrap_or_default())
        };
        let (kind, len) = (number(0), number(4) as usize);
        let time = u64::from(number(8)) | u64::from(number(12)) << 32;
        if len > LARGEST {
            return Err(GuestError::protocol(format!("a message of {len} bytes")));
        }
        self.parsed += HEAD;
        self.fill(len)?;
        let body = self.parsed..self.parsed + len;
        self.parsed += len;
        Ok((kind, time, body))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.logs && self.stream.shutdown(Shutdown::Write).is_ok() {
            // It closes its connection and its log, and ends.
            self.process.end();
        }
    }
}

impl StackEndpoint {
    /// Starts the program of an end; one that cannot be started has failed.
    pub(crate) fn start(
        program: &Path,
        config: &RealConfig,
        logs: Option<&StackLogs>,
        patience: u16,
    ) -> Self {
        let mut end = Self {
            running: None,
            capture: None,
            deadline: Instant::MAX,
            report: Report::default(),
            sent: VecDeque::new(),
            signals: VecDeque::new(),
            blocked: false,
            closed: false,
            runs: (Instant::ZERO, 0),
            failure: None,
        };
        if let Some(logs) = logs.filter(|logs| logs.captures) {
            let RealConfig { flow, side, ip, .. } = *config;
            let path = logs.directory.join(format!("{flow}-{}.pcap", side_name(side)));
            match StackCapture::create(&path, flow, side, ip) {
                Ok(capture) => end.capture = Some(capture),
                Err(error) => {
                    end.fail(Instant::ZERO, &GuestError::system("the capture of a stack")(error));
                    return end;
                }
            }
        }
        match Running::start(program, logs.is_some(), patience) {
            Ok(running) => {
                end.running = Some(running);
                end.call(kind::HELLO, Instant::ZERO, hello(config, logs).as_bytes());
            }
            Err(error) => end.fail(Instant::ZERO, &error),
        }
        end
    }

    fn fail(&mut self, at: Instant, error: &GuestError) {
        let what = error.to_string();
        self.failure = Some(RealFailure { at, what });
        self.running = None;
        self.deadline = Instant::MAX;
        self.sent.clear();
        self.signal(Signal::Aborted);
    }

    fn signal(&mut self, signal: Signal) {
        if !self.signals.contains(&signal) {
            self.signals.push_back(signal);
        }
    }

    /// Sends a message and processes the answer.
    fn call(&mut self, kind: u32, now: Instant, body: &[u8]) {
        let Some(running) = &mut self.running else { return };
        let written = running.write(kind, now, body);
        if let Err(error) = written.and_then(|()| self.answer(now)) {
            let error = match &mut self.running {
                Some(running) => running.process.explain(error),
                None => error,
            };
            self.fail(now, &error);
        }
    }

    fn answer(&mut self, now: Instant) -> Result<(), GuestError> {
        loop {
            let Some(running) = &mut self.running else { return Ok(()) };
            let (kind, time, body) = running.read()?;
            let body = &running.buffer[body];
            match kind {
                kind::SEND => {
                    let [a, b, c, d, ecn, bytes @ ..] = body else {
                        return Err(GuestError::protocol("a datagram without its head"));
                    };
                    let stream_bytes = u32::from_le_bytes([*a, *b, *c, *d]);
                    let bytes = bytes.to_vec();
                    if let Some(capture) = &mut self.capture {
                        capture.write(now, true, &bytes, *ecn);
                    }
                    self.sent.push_back(Datagram { bytes, ecn: *ecn, stream_bytes });
                }
                kind::SIGNAL => {
                    let signal = match body {
                        [0] => Signal::Connected,
                        [1] => Signal::Writable,
                        [2] => Signal::Readable,
                        [3] => Signal::Closed,
                        [4] => Signal::Aborted,
                        _ => return Err(GuestError::protocol(format!("signal {body:?}"))),
                    };
                    if signal != Signal::Writable || core::mem::take(&mut self.blocked) {
                        self.signal(signal);
                    }
                }
                kind::DEADLINE => {
                    let Some(report) = Report::parse(body) else {
                        let len = body.len();
                        return Err(GuestError::protocol(format!("a report of {len} bytes")));
                    };
                    self.report = report;
                    self.deadline = Instant::from_nanos(time);
                    if self.deadline < now {
                        let what =
                            format!("its deadline of {time} ns is before {} ns", now.as_nanos());
                        return Err(GuestError::protocol(what));
                    }
                    return Ok(());
                }
                _ => {
                    return Err(GuestError::protocol(format!("message {kind} is unknown")));
                }
            }
        }
    }
}

const fn side_name(side: QuicSide) -> &'static str {
    match side {
        QuicSide::Client => "client",
        QuicSide::Server => "server",
    }
}

/// The body of `HELLO`.
fn hello(config: &RealConfig, logs: Option<&StackLogs>) -> String {
    let side = side_name(config.side);
    let ip = match config.ip {
        IpVersion::V4 => 4,
        IpVersion::V6 => 6,
    };
    let payload = config.mtu.saturating_sub(config.ip.header_len() + UDP_HEADER);
    let seed: String = config.seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let cc = config.cc;
    let mut text =
        format!("version 1\nside {side}\nseed {seed}\npayload {payload}\nip {ip}\ncc {cc}\n");
    if let Some(logs) = logs {
        // Writing to a string cannot fail.
        let (folder, flow) = (logs.directory.display(), config.flow);
        let _ = write!(text, "logs {folder}\nlog {flow}-{side}.sqlog\n");
        if logs.captures {
            let _ = writeln!(text, "keys {folder}/{flow}-{side}.keys");
        }
    }
    text
}

impl RealEndpoint for StackEndpoint {
    fn open(&mut self, now: Instant) {
        self.call(kind::OPEN, now, &[]);
    }

    fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        let taken = bytes.min(self.report.room);
        self.blocked |= taken < bytes;
        if taken > 0 {
            self.call(kind::WRITE, now, &bytes.to_le_bytes());
        }
        if self.failure.is_some() { 0 } else { taken }
    }

    fn read(&mut self, now: Instant, most: u64) -> u64 {
        if self.report.available == 0 || most == 0 {
            return 0;
        }
        self.call(kind::READ, now, &most.to_le_bytes());
        if self.failure.is_some() { 0 } else { self.report.read }
    }

    fn close(&mut self, now: Instant) {
        if core::mem::replace(&mut self.closed, true) {
            return;
        }
        self.call(kind::FINISH, now, &[]);
    }

    fn reset(&mut self, now: Instant) {
        self.call(kind::RESET, now, &[]);
    }

    fn at_end(&self) -> bool {
        self.report.at_end
    }

    fn receive(&mut self, now: Instant, datagram: &[u8], ecn: u8) {
        if let Some(capture) = &mut self.capture {
            capture.write(now, false, datagram, ecn);
        }
        let mut body = Vec::with_capacity(1 + datagram.len());
        body.push(ecn);
        body.extend_from_slice(datagram);
        self.call(kind::RECEIVE, now, &body);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now < self.deadline {
            return;
        }
        let (at, count) = self.runs;
        self.runs = if at == now { (now, count + 1) } else { (now, 1) };
        if self.runs.1 > MOST_RUNS {
            let error = GuestError::protocol("it asks to run at the same time without end");
            return self.fail(now, &error);
        }
        self.call(kind::RUN, now, &[]);
    }

    fn poll_transmit(&mut self, _: Instant, into: &mut Datagram) -> bool {
        match self.sent.pop_front() {
            Some(datagram) => {
                *into = datagram;
                true
            }
            None => false,
        }
    }

    fn poll_signal(&mut self) -> Option<Signal> {
        self.signals.pop_front()
    }

    fn deadline(&mut self) -> Instant {
        self.deadline
    }

    fn state(&self) -> RealState {
        let Report { cwnd, in_flight, datagram, srtt_ns, min_rtt_ns, .. } = self.report;
        let duration = |ns: u64| (ns > 0).then(|| Duration::from_nanos(ns));
        RealState {
            cwnd: Bytes(cwnd),
            in_flight: Bytes(in_flight),
            datagram: Bytes(datagram),
            srtt: duration(srtt_ns),
            min_rtt: duration(min_rtt_ns),
            data_packets: self.report.data_packets,
            retransmitted_packets: self.report.retransmitted,
            lost_packets: self.report.lost,
        }
    }

    fn failure(&self) -> Option<&RealFailure> {
        self.failure.as_ref()
    }
}
