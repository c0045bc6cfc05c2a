//! What the programs around QUIC stacks in Rust share: the messages of docs/guests.md, and the application, which is up
//! to 64 KiB ahead of the stream when it writes, and ahead by one read of 32 KiB when it reads, as `io.Copy` is in Go.

use std::io::{Read as _, Write as _};
use std::os::fd::FromRawFd as _;
use std::os::unix::net::UnixStream;

const HELLO: u32 = 1;
const RECEIVE: u32 = 2;
const RUN: u32 = 3;
const OPEN: u32 = 5;
const WRITE: u32 = 6;
const READ: u32 = 7;
const FINISH: u32 = 8;
const RESET: u32 = 9;
const SEND: u32 = 17;
const DEADLINE: u32 = 19;
const SIGNAL: u32 = 20;

const CONNECTED: u8 = 0;
const WRITABLE: u8 = 1;
const READABLE: u8 = 2;
const CLOSED: u8 = 3;
const ABORTED: u8 = 4;

/// Bytes that the application reads at once.
const CHUNK: usize = 32 << 10;
/// Bytes by which the application may be ahead of the stream.
const BUFFERED: u64 = 64 << 10;
/// Calls of a stack at one time; one that sends without end has failed.
const MOST_TURNS: u32 = 100_000;

/// The certificate of the server and its key, of Ed25519: its signatures all have the same length.
pub const CERTIFICATE: &str = include_str!("certificate.pem");
pub const KEY: &str = include_str!("key.pem");
/// The protocol of the application.
pub const PROTOCOL: &[u8] = b"ackclock";
/// What the application writes.
pub static ZEROS: [u8; BUFFERED as usize] = [0; BUFFERED as usize];

/// What `HELLO` says.
#[derive(Debug, Default)]
pub struct Config {
    pub server: bool,
    pub seed: [u8; 32],
    /// Largest UDP payload of the interface.
    pub payload: usize,
    pub six: bool,
    pub cc: String,
    /// File of the stack's own log.
    pub log: Option<std::path::PathBuf>,
    /// File of the key log.
    #[allow(dead_code, reason = "not of every stack")]
    pub keys: Option<std::path::PathBuf>,
}

impl Config {
    fn parse(text: &str) -> Self {
        let mut config = Self::default();
        let (mut logs, mut log) = (None, None);
        for line in text.lines() {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            match name {
                "version" if value != "1" => fail(&format!("version {value} of the protocol is unknown")),
                "side" => config.server = value == "server",
                "seed" => {
                    for (byte, digits) in config.seed.iter_mut().zip(value.as_bytes().chunks(2)) {
                        let digits = std::str::from_utf8(digits).unwrap_or_default();
                        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
                    }
                }
                "payload" => config.payload = value.parse().unwrap_or_default(),
                "ip" => config.six = value == "6",
                "cc" => config.cc = value.to_owned(),
                "logs" => logs = Some(std::path::PathBuf::from(value)),
                "log" => log = Some(value.to_owned()),
                "keys" => config.keys = Some(std::path::PathBuf::from(value)),
                _ => {}
            }
        }
        config.log = logs.zip(log).map(|(logs, log)| logs.join(log));
        config
    }

    /// Addresses of this side and of the other.
    pub fn addresses(&self) -> [std::net::SocketAddr; 2] {
        let address = |server: bool| {
            let last = if server { 2 } else { 1 };
            let ip: std::net::IpAddr = match self.six {
                true => std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).into(),
                false => std::net::Ipv4Addr::new(192, 0, 2, last as u8).into(),
            };
            std::net::SocketAddr::new(ip, 4_433)
        };
        [address(self.server), address(!self.server)]
    }
}

/// Ends the program with a message that the simulator shows.
pub fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(1)
}

/// A datagram that the stack sends.
#[derive(Debug)]
pub struct Datagram {
    pub ecn: u8,
    /// Bytes of streams in it.
    pub stream: u32,
    pub bytes: Vec<u8>,
}

/// What the stack says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    pub cwnd: u64,
    pub in_flight: u64,
    pub datagram: u64,
    pub srtt_ns: u64,
    pub min_rtt_ns: u64,
    pub lost: u64,
    pub data: u64,
    pub retransmitted: u64,
}

/// What has happened so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Events {
    /// The handshake is complete, and the stream can be used.
    pub connected: bool,
    /// The peer has acknowledged the end of the stream.
    pub finished: bool,
    /// The connection has ended.
    pub over: bool,
}

/// One end of a connection with one stream of both directions. Times are nanoseconds of virtual time.
pub trait Stack {
    fn open(&mut self, now: u64);
    fn receive(&mut self, now: u64, ecn: u8, bytes: &mut [u8]);
    fn handle_timeout(&mut self, now: u64);
    fn reset(&mut self, now: u64);
    /// Writes zeros to the stream; returns how many it took.
    fn write(&mut self, bytes: usize) -> usize;
    /// Ends the stream; returns whether it could.
    fn finish(&mut self) -> bool;
    /// Reads from the stream: the bytes, and whether it has ended.
    fn read(&mut self, most: usize) -> (usize, bool);
    /// Adds the datagrams that are ready.
    fn transmit(&mut self, now: u64, into: &mut Vec<Datagram>);
    fn events(&mut self) -> Events;
    /// When it wants to run; `None`: never.
    fn deadline(&mut self) -> Option<u64>;
    fn state(&mut self) -> State;
    /// Closes the connection and its log.
    fn end(&mut self, now: u64);
}

/// The application's side of the stream.
#[derive(Debug, Default)]
struct Application {
    /// Bytes written that the stream has not taken.
    pending: u64,
    /// The application was refused bytes.
    refused: bool,
    /// The stream ends after the pending bytes.
    closing: bool,
    finished: bool,
    /// Bytes read from the stream that the application has not read.
    available: u64,
    /// The peer's stream has ended.
    ended: bool,
    /// Bytes that the application has read with this message.
    taken: u64,
    connected: bool,
    over: bool,
    signals: Vec<u8>,
}

impl Application {
    fn signal(&mut self, signal: u8) {
        if !self.signals.contains(&signal) {
            self.signals.push(signal);
        }
    }

    /// Moves bytes between application and stream; returns whether any moved.
    fn advance(&mut self, stack: &mut impl Stack) -> bool {
        let events = stack.events();
        let mut moved = false;
        if events.connected && !std::mem::replace(&mut self.connected, true) {
            self.signal(CONNECTED);
            moved = true;
        }
        if self.connected && self.pending > 0 {
            let taken = stack.write(self.pending as usize) as u64;
            self.pending -= taken;
            moved |= taken > 0;
        }
        if self.refused && self.connected && self.pending < BUFFERED {
            self.refused = false;
            self.signal(WRITABLE);
        }
        if self.connected && self.closing && self.pending == 0 && !self.finished {
            self.finished = stack.finish();
            moved |= self.finished;
        }
        moved |= self.read(stack);
        if events.over && !std::mem::replace(&mut self.over, true) {
            self.signal(ABORTED);
        }
        if self.ended && self.available == 0 && events.finished && !std::mem::replace(&mut self.over, true) {
            self.signal(CLOSED);
        }
        moved
    }

    /// Reads from the stream what the application has room for.
    fn read(&mut self, stack: &mut impl Stack) -> bool {
        if !self.connected || self.available > 0 || self.ended {
            return false;
        }
        let (bytes, ended) = stack.read(CHUNK);
        self.available = bytes as u64;
        self.ended = ended;
        if bytes > 0 || ended {
            self.signal(READABLE);
        }
        bytes > 0 || ended
    }

    /// The application reads.
    fn consume(&mut self, mut most: u64, stack: &mut impl Stack) {
        while most > 0 && (self.available > 0 || self.read(stack)) {
            let taken = most.min(self.available);
            self.available -= taken;
            self.taken += taken;
            most -= taken;
        }
    }
}

/// The socket to the simulator.
struct Link {
    stream: UnixStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Link {
    /// Returns the next message; `None` when the simulator has closed the socket.
    fn read(&mut self) -> Option<(u32, u64, Vec<u8>)> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).ok()?;
        let [kind, length, low, high] =
            [0, 4, 8, 12].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        self.incoming.resize(length as usize, 0);
        self.stream.read_exact(&mut self.incoming).ok()?;
        Some((kind, u64::from(low) | u64::from(high) << 32, std::mem::take(&mut self.incoming)))
    }

    fn push(&mut self, kind: u32, at: u64, body: &[&[u8]]) {
        let length: usize = body.iter().map(|part| part.len()).sum();
        self.outgoing.extend_from_slice(&kind.to_le_bytes());
        self.outgoing.extend_from_slice(&(length as u32).to_le_bytes());
        self.outgoing.extend_from_slice(&at.to_le_bytes());
        body.iter().for_each(|part| self.outgoing.extend_from_slice(part));
    }

    fn flush(&mut self) -> Option<()> {
        self.stream.write_all(&self.outgoing).ok()?;
        self.outgoing.clear();
        Some(())
    }
}

fn number(body: &[u8]) -> u64 {
    let bytes = body.try_into().unwrap_or_else(|_| fail(&format!("a body of {} bytes is no number", body.len())));
    u64::from_le_bytes(bytes)
}

/// Runs a stack until the simulator closes the socket; `set_clock` gets the time of each message.
pub fn run<S: Stack>(set_clock: impl Fn(u64), start: impl FnOnce(&Config) -> S) {
    // SAFETY: the simulator's socket is descriptor 0, which nothing else uses.
    let stream = unsafe { UnixStream::from_raw_fd(0) };
    let mut link = Link { stream, incoming: Vec::new(), outgoing: Vec::new() };
    let Some((HELLO, _, body)) = link.read() else { fail("the first message is not HELLO") };
    set_clock(0);
    let mut stack = start(&Config::parse(&String::from_utf8_lossy(&body)));
    let mut application = Application::default();
    let mut last = 0;
    let mut message: Option<(u32, u64, Vec<u8>)> = None;
    loop {
        if let Some((kind, at, mut body)) = message.take() {
            last = at;
            set_clock(at);
            match kind {
                RECEIVE => match &mut body[..] {
                    [ecn, bytes @ ..] => stack.receive(at, *ecn, bytes),
                    [] => fail("a datagram without ECN bits"),
                },
                RUN => stack.handle_timeout(at),
                OPEN => stack.open(at),
                WRITE => {
                    let bytes = number(&body);
                    let taken = bytes.min(BUFFERED.saturating_sub(application.pending));
                    application.refused = taken < bytes;
                    application.pending += taken;
                }
                READ => application.consume(number(&body), &mut stack),
                FINISH => application.closing = true,
                RESET => {
                    stack.reset(at);
                    application.over = true;
                    application.signal(ABORTED);
                }
                other => fail(&format!("message {other} is unknown")),
            }
        }
        let mut sent = Vec::new();
        let mut turns = 0;
        loop {
            let before = sent.len();
            let moved = application.advance(&mut stack);
            stack.transmit(last, &mut sent);
            if !moved && sent.len() == before {
                break;
            }
            turns += 1;
            if turns > MOST_TURNS {
                fail("it sends without end");
            }
        }
        for datagram in &sent {
            link.push(SEND, 0, &[&datagram.stream.to_le_bytes(), &[datagram.ecn], &datagram.bytes]);
        }
        for signal in std::mem::take(&mut application.signals) {
            link.push(SIGNAL, 0, &[&[signal]]);
        }
        let state = stack.state();
        let at_end = application.ended && application.available == 0;
        let mut report = vec![u8::from(at_end)];
        for value in [
            BUFFERED.saturating_sub(application.pending),
            std::mem::take(&mut application.taken),
            application.available,
            state.cwnd,
            state.in_flight,
            state.datagram,
            state.srtt_ns,
            state.min_rtt_ns,
            state.lost,
            state.data,
            state.retransmitted,
        ] {
            report.extend_from_slice(&value.to_le_bytes());
        }
        let deadline = stack.deadline().map_or(u64::MAX, |at| at.max(last));
        link.push(DEADLINE, deadline, &[&report]);
        message = link.flush().and_then(|()| link.read());
        if message.is_none() {
            return stack.end(last);
        }
    }
}
