//! A guest that is any program: another stack, connected by one stream socket.
//!
//! The program is started with the socket as its standard input. All numbers are little-endian, all times nanoseconds
//! of the world. A message is a head of 16 bytes, `kind: u32, length: u32, time: u64`, and `length` bytes of body.
//! The simulator has the word; it gives it away with a message and gets it back with `DEADLINE`:
//!
//! | from | kind | time | body | answer |
//! |---|---|---|---|---|
//! | simulator | 1 `HELLO` | 0 | lines of text: what the host is and does | any `RESULT`, then `DEADLINE` |
//! | simulator | 2 `RECEIVE` | now | packets that arrive at once: `length: u32`, IP packet | as above |
//! | simulator | 3 `RUN` | now, the deadline | `limit: u64`: run up to times before it | any `SEND`, `RESULT`, then `DEADLINE` |
//! | simulator | 4 `LIMIT` | the limit from now on | none | none: it is the answer to `SEND` |
//! | program | 17 `SEND` | of the packet, now or later | `gso_size: u32` (0: no burst), IP packet | `LIMIT` |
//! | program | 18 `RESULT` | ignored | a line: `end flow=0 listens=1 finished=1 at=NS received=N …` | none |
//! | program | 19 `DEADLINE` | when it wants `RUN` next; all ones: never | 0 or 1: its applications have ended | none |
//!
//! `HELLO` has the lines of [`crate::plan`] that are not about a kernel: `version 1`, `mtu`, `end`, and one `flow` for
//! each end of a connection. Byte n of every stream is n modulo 251. Packets need no checksum. A program whose
//! answers depend on nothing but these messages has the same run every time.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration as RealTime;

use units::Instant;

use crate::guest::{Guest, GuestError, Outlet, Packet};
use crate::results::HostResults;
use crate::uml::process::{Process, RunDirectory};
use crate::uml::{next_name, run_directory};

/// Kinds of messages.
mod kind {
    pub(super) const HELLO: u32 = 1;
    pub(super) const RECEIVE: u32 = 2;
    pub(super) const RUN: u32 = 3;
    pub(super) const LIMIT: u32 = 4;
    pub(super) const SEND: u32 = 17;
    pub(super) const RESULT: u32 = 18;
    pub(super) const DEADLINE: u32 = 19;
}

/// Bytes of a head.
const HEAD: usize = 16;
/// A body has no more bytes.
const LARGEST: usize = 1 << 17;

/// A program as a guest.
#[derive(Debug)]
pub struct SocketGuest {
    stream: UnixStream,
    deadline: Instant,
    finished: bool,
    patience: u16,
    results: HostResults,
    /// The program, unless the other end of the socket is in this one.
    process: Option<(Process, RunDirectory)>,
}

impl SocketGuest {
    /// Starts `program`, and describes the host to it.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn start(program: &Path, hello: &str, patience: u16) -> Result<Self, GuestError> {
        let failed = |error| GuestError::Start { program: program.to_owned(), error };
        let path = fs::canonicalize(program).map_err(failed)?;
        let directory = RunDirectory::new(&run_directory(), &next_name())
            .map_err(GuestError::system("the directory of a guest"))?;
        let (ours, theirs) =
            UnixStream::pair().map_err(GuestError::system("the socket of a guest"))?;
        let process = Process::start_program(&path, OwnedFd::from(theirs), directory.path())?;
        let mut guest = Self::new(ours, patience)?;
        guest.process = Some((process, directory));
        let greeted = guest.greet(hello);
        greeted.map_err(|error| guest.explain(error))?;
        Ok(guest)
    }

    /// The guest at the other end of `stream`, to which the host is described.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn connected(stream: UnixStream, hello: &str, patience: u16) -> Result<Self, GuestError> {
        let mut guest = Self::new(stream, patience)?;
        guest.greet(hello)?;
        Ok(guest)
    }

    fn new(stream: UnixStream, patience: u16) -> Result<Self, GuestError> {
        let timeout = RealTime::from_secs(patience.into());
        let set = stream.set_read_timeout(Some(timeout));
        set.map_err(GuestError::system("the socket of a guest"))?;
        Ok(Self {
            stream,
            deadline: Instant::MAX,
            finished: false,
            patience,
            results: HostResults::default(),
            process: None,
        })
    }

    fn greet(&mut self, hello: &str) -> Result<(), GuestError> {
        self.write(kind::HELLO, 0, hello.as_bytes())?;
        self.answer(Instant::ZERO, None)
    }

    fn write(&mut self, kind: u32, time: u64, body: &[u8]) -> Result<(), GuestError> {
        let mut message = Vec::with_capacity(HEAD + body.len());
        message.extend_from_slice(&kind.to_le_bytes());
        message.extend_from_slice(&(body.len() as u32).to_le_bytes());
        message.extend_from_slice(&time.to_le_bytes());
        message.extend_from_slice(body);
        self.stream.write_all(&message).map_err(GuestError::system("the socket of a guest"))
    }

    /// Reads messages up to `DEADLINE`. Packets are only sent where there is an `outlet`.
    fn answer(
        &mut self,
        now: Instant,
        mut outlet: Option<&mut dyn Outlet>,
    ) -> Result<(), GuestError> {
        let mut latest = now;
        loop {
            let (kind, time, body) = self.read()?;
            let at = Instant::from_nanos(time);
            match (kind, &mut outlet) {
                (kind::SEND, Some(outlet)) => {
                    if at < latest || body.len() < 4 {
                        let len = body.len();
                        let what = format!(
                            "it sends a packet of {len} bytes at {} ns, after {} ns",
                            at.as_nanos(),
                            latest.as_nanos()
                        );
                        return Err(GuestError::protocol(what));
                    }
                    latest = at;
                    let gso_size = u16::from_le_bytes([body[0], body[1]]);
                    let limit = outlet.send(at, &Packet { bytes: &body[4..], gso_size });
                    self.write(kind::LIMIT, limit.as_nanos(), &[])?;
                }
                (kind::RESULT, _) => {
                    let line = String::from_utf8_lossy(&body);
                    self.results.read_line(&format!("ackclock: {line}"));
                }
                (kind::DEADLINE, _) => {
                    if at < now {
                        let [at, now] = [at, now].map(Instant::as_nanos);
                        let what = format!("its deadline of {at} ns is before {now} ns");
                        return Err(GuestError::protocol(what));
                    }
                    self.deadline = at;
                    self.finished = body.first().is_some_and(|&finished| finished != 0);
                    return Ok(());
                }
                _ => {
                    return Err(GuestError::protocol(format!(
                        "message {kind} does not belong here"
                    )));
                }
            }
        }
    }

    fn read(&mut self) -> Result<(u32, u64, Vec<u8>), GuestError> {
        let patience = self.patience;
        let lost = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                GuestError::Silent { seconds: patience, console: String::new() }
            }
            _ => GuestError::system("the socket of a guest")(error),
        };
        let mut head = [0; HEAD];
        self.stream.read_exact(&mut head).map_err(lost)?;
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let len = word(4) as usize;
        if len > LARGEST {
            return Err(GuestError::protocol(format!("a message of {len} bytes")));
        }
        let mut body = vec![0; len];
        self.stream.read_exact(&mut body).map_err(lost)?;
        Ok((word(0), u64::from(word(8)) | u64::from(word(12)) << 32, body))
    }

    /// Adds the exit status and what the program has printed.
    fn explain(&mut self, error: GuestError) -> GuestError {
        let Some((process, _)) = &mut self.process else { return error };
        process.explain(error)
    }

    fn receive_all(&mut self, now: Instant, packets: &[Packet<'_>]) -> Result<(), GuestError> {
        let mut body = Vec::new();
        for packet in packets {
            body.extend_from_slice(&(packet.bytes.len() as u32).to_le_bytes());
            body.extend_from_slice(packet.bytes);
        }
        self.write(kind::RECEIVE, now.as_nanos(), &body)?;
        self.answer(now, None)
    }

    fn run_until(
        &mut self,
        now: Instant,
        limit: Instant,
        outlet: &mut dyn Outlet,
    ) -> Result<(), GuestError> {
        self.write(kind::RUN, now.as_nanos(), &limit.as_nanos().to_le_bytes())?;
        self.answer(now, Some(outlet))
    }
}

impl Guest for SocketGuest {
    fn next_deadline(&mut self) -> Result<Instant, GuestError> {
        Ok(self.deadline)
    }

    fn receive(&mut self, now: Instant, packets: &[Packet<'_>]) -> Result<(), GuestError> {
        let received = self.receive_all(now, packets);
        received.map_err(|error| self.explain(error))
    }

    fn run(
        &mut self,
        now: Instant,
        limit: Instant,
        outlet: &mut dyn Outlet,
    ) -> Result<(), GuestError> {
        let run = self.run_until(now, limit, outlet);
        run.map_err(|error| self.explain(error))
    }

    fn is_finished(&self) -> bool {
        self.finished
    }

    fn results(&self) -> &HostResults {
        &self.results
    }
}
