//! The clock of a User-Mode Linux kernel: `time-travel=ext:` with this program as the calendar.
//!
//! Source: the protocol described in include/uapi/linux/um_timetravel.h (BSD-3-Clause). Every guest
//! has a calendar of its own, and so a clock of its own: the calendar is client 0 of the shared
//! page, the kernel client 1. Kernels before 6.12 do not support shared memory and use messages
//! instead.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use super::memory::SharedFile;
use crate::guest::GuestError;

/// Operations (`enum um_timetravel_ops`).
mod op {
    pub(super) const ACK: u32 = 0;
    pub(super) const START: u32 = 1;
    pub(super) const REQUEST: u32 = 2;
    pub(super) const WAIT: u32 = 3;
    pub(super) const GET: u32 = 4;
    pub(super) const UPDATE: u32 = 5;
    pub(super) const RUN: u32 = 6;
    pub(super) const FREE_UNTIL: u32 = 7;
    pub(super) const GET_TIME_OF_DAY: u32 = 8;
    pub(super) const BROADCAST: u32 = 9;
}

/// A time that never comes: the kernel reads times as signed.
pub(super) const NEVER: u64 = i64::MAX as u64;
/// Wall clock at the guest's time 0, in nanoseconds since 1970. The value is arbitrary but the same
/// in all runs.
const TIME_OF_DAY: u64 = 1_700_000_000_000_000_000;
/// Indices of the clients in the shared page.
const CALENDAR: u16 = 0;
const KERNEL: u16 = 1;

/// Protocol between calendar and kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Shared memory where the kernel supports it (6.12 and newer), and messages for the rest.
    #[default]
    SharedMemory,
    /// Messages only.
    Messages,
}

/// The page that calendar and kernel share (`struct um_timetravel_schedshm`).
#[derive(Debug)]
struct Page {
    file: File,
    memory: SharedFile,
}

impl Page {
    const LEN: u64 = 8_192;
    const VERSION: u64 = 0;
    const SIZE: u64 = 4;
    const FREE_UNTIL: u64 = 8;
    const CURRENT_TIME: u64 = 16;
    const RUNNING: u64 = 24;
    const MOST_CLIENTS: u64 = 26;

    /// The page; a kernel that is offered version 0 does without it.
    fn new(version: u32) -> Result<Self, GuestError> {
        let refused = GuestError::errno("the shared page");
        let file =
            File::from(memfd_create(c"time travel", MFdFlags::MFD_CLOEXEC).map_err(refused)?);
        let failed = GuestError::system("the shared page");
        file.set_len(Self::LEN).map_err(&failed)?;
        let memory = SharedFile::map(file.try_clone().map_err(&failed)?, 0, Self::LEN)?;
        memory.write(Self::VERSION, &version.to_ne_bytes())?;
        memory.write(Self::SIZE, &(Self::LEN as u32).to_ne_bytes())?;
        memory.write(Self::MOST_CLIENTS, &2_u16.to_ne_bytes())?;
        // The calendar can share time: a kernel that it interrupts writes its request into the page.
        memory.write(Self::client(CALENDAR), &1_u32.to_ne_bytes())?;
        Ok(Self { file, memory })
    }

    /// Returns the offset of a client's entry: capabilities, flags, time of its request.
    const fn client(number: u16) -> u64 {
        4_096 + 128 * number as u64
    }

    /// Sets limit, time and the client that runs, which are adjacent.
    fn set_running(&self, client: u16, now: u64, limit: u64) -> Result<(), GuestError> {
        let mut bytes = [0; 18];
        bytes[..8].copy_from_slice(&limit.to_ne_bytes());
        bytes[8..16].copy_from_slice(&now.to_ne_bytes());
        bytes[16..].copy_from_slice(&client.to_ne_bytes());
        self.memory.write(Self::FREE_UNTIL, &bytes)
    }

    fn set_limit(&self, limit: u64) -> Result<(), GuestError> {
        self.memory.write(Self::FREE_UNTIL, &limit.to_ne_bytes())
    }

    fn now(&self) -> Result<u64, GuestError> {
        let mut bytes = [0; 8];
        self.memory.read(Self::CURRENT_TIME, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn give_up_turn(&self) -> Result<(), GuestError> {
        self.memory.write(Self::RUNNING, &CALENDAR.to_ne_bytes())
    }

    /// The kernel's request, if it has one.
    fn request(&self) -> Result<Option<u64>, GuestError> {
        let mut bytes = [0; 12];
        self.memory.read(Self::client(KERNEL) + 4, &mut bytes)?;
        let (flags, time) = bytes.split_at(4);
        let time = time.try_into().map_or(0, u64::from_ne_bytes);
        Ok((flags[0] & 1 != 0).then_some(time))
    }

    /// Whether the kernel has said that it shares time.
    fn is_shared(&self) -> Result<bool, GuestError> {
        let mut capabilities = [0; 4];
        self.memory.read(Self::client(KERNEL), &mut capabilities)?;
        Ok(u32::from_ne_bytes(capabilities) & 1 != 0)
    }

    fn clear_request(&self) -> Result<(), GuestError> {
        self.memory.write(Self::client(KERNEL) + 4, &[0; 4])
    }
}

/// The clock of one kernel.
#[derive(Debug)]
pub(super) struct TimeTravel {
    stream: UnixStream,
    page: Page,
    /// The kernel uses the page; assumed until its first wait.
    shares: bool,
    /// The time of the kernel, in nanoseconds since its start.
    now: u64,
    /// The last request, in the page or by message.
    request: Option<u64>,
    waits: bool,
    /// The kernel has waited before.
    has_waited: bool,
    sequence: u32,
}

impl TimeTravel {
    /// Serves the kernel at the other end of `stream`.
    pub(super) fn new(stream: UnixStream, protocol: Protocol) -> Result<Self, GuestError> {
        let version = if protocol == Protocol::SharedMemory { 2 } else { 0 };
        let page = Page::new(version)?;
        page.set_running(KERNEL, 0, 0)?;
        let shares = protocol == Protocol::SharedMemory;
        Ok(Self {
            stream,
            page,
            shares,
            now: 0,
            request: None,
            waits: false,
            has_waited: false,
            sequence: 0,
        })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Returns whether the kernel waits to run.
    pub(super) const fn waits(&self) -> bool {
        self.waits
    }

    /// Returns the time at which the kernel requests to run.
    pub(super) fn deadline(&self) -> u64 {
        self.request.unwrap_or(NEVER)
    }

    /// Reads its request from the page: after it has begun to wait, and after an interrupt.
    pub(super) fn read_request(&mut self) -> Result<(), GuestError> {
        if self.shares {
            self.request = self.page.request()?.or(self.request);
        }
        Ok(())
    }

    /// Returns the time of the kernel; while it runs, the time of its last message.
    pub(super) fn now(&mut self) -> Result<u64, GuestError> {
        if self.shares {
            let now = self.page.now()?;
            if now < self.now {
                return Err(GuestError::protocol("its clock goes backwards"));
            }
            self.now = now;
        }
        Ok(self.now)
    }

    /// Gives the kernel its turn: it may go on by itself to times before `limit`.
    pub(super) fn run(&mut self, now: u64, limit: u64) -> Result<(), GuestError> {
        self.waits = false;
        self.request = None;
        self.now = now;
        if self.shares {
            self.page.clear_request()?;
            self.page.set_running(KERNEL, now, limit.min(NEVER))?;
        } else if limit > now {
            self.send(op::FREE_UNTIL, limit.min(NEVER)).map_err(socket())?;
        }
        self.send(op::RUN, now).map_err(socket())
    }

    /// Shortens the limit while the kernel waits for the answer to a kick. With messages the kernel
    /// must acknowledge the limit before the answer is sent: otherwise it would read the answer
    /// first, and continue with the old limit.
    pub(super) fn shorten(&mut self, limit: u64) -> Result<(), GuestError> {
        if self.shares {
            return self.page.set_limit(limit.min(NEVER));
        }
        self.send(op::FREE_UNTIL, limit.min(NEVER)).map_err(socket())?;
        loop {
            let message = self.receive().map_err(socket())?;
            if message.op == op::ACK && message.sequence == self.sequence {
                return Ok(());
            }
            self.answer(message)?;
        }
    }

    /// Before an interrupt: the calendar runs, at `now`.
    pub(super) fn interrupt_at(&mut self, now: u64) -> Result<(), GuestError> {
        self.now = now;
        if self.shares { self.page.set_running(CALENDAR, now, NEVER) } else { Ok(()) }
    }

    /// Processes the kernel's transition to waiting.
    pub(super) fn settle(&mut self) -> Result<(), GuestError> {
        self.now()?;
        if self.shares {
            self.page.give_up_turn()?;
        }
        self.read_request()
    }

    /// Reads and answers one message.
    ///
    /// # Errors
    /// Those of the socket; its end is [`io::ErrorKind::UnexpectedEof`]. An unknown message.
    pub(super) fn serve(&mut self) -> Result<(), GuestError> {
        let message = self.receive().map_err(socket())?;
        self.answer(message)
    }

    fn answer(&mut self, message: Message) -> Result<(), GuestError> {
        let mut time = 0;
        match message.op {
            op::START => return self.answer_start(message).map_err(socket()),
            op::REQUEST => self.request = Some(message.time),
            op::WAIT => {
                self.waits = true;
                // A kernel before 6.12 has not entered the page and continues with messages.
                if !core::mem::replace(&mut self.has_waited, true) {
                    self.shares = self.shares && self.page.is_shared()?;
                }
                if self.shares {
                    return Ok(());
                }
            }
            op::GET => time = self.now,
            op::UPDATE => self.now = self.now.max(message.time),
            op::GET_TIME_OF_DAY => time = TIME_OF_DAY + self.now,
            op::BROADCAST => {}
            op::ACK => return Ok(()),
            other => {
                let what = format!("operation {other} of time travel is unknown");
                return Err(GuestError::protocol(what));
            }
        }
        let answer = Message { op: op::ACK, sequence: message.sequence, time };
        self.write(&answer).map_err(socket())
    }

    /// The answer to START carries two descriptors: the page and a log. The kernel takes both
    /// without checking that they are present.
    fn answer_start(&self, message: Message) -> io::Result<()> {
        let log = OpenOptions::new().write(true).open("/dev/null")?;
        let descriptors = [self.page.file.as_raw_fd(), log.as_raw_fd()];
        let bytes =
            Message { op: op::ACK, sequence: message.sequence, time: KERNEL.into() }.bytes();
        let control = [ControlMessage::ScmRights(&descriptors)];
        let data = [IoSlice::new(&bytes)];
        let fd = self.stream.as_raw_fd();
        sendmsg::<()>(fd, &data, &control, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }

    fn send(&mut self, op: u32, time: u64) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.write(&Message { op, sequence: self.sequence, time })
    }

    fn write(&self, message: &Message) -> io::Result<()> {
        (&self.stream).write_all(&message.bytes())
    }

    fn receive(&self) -> io::Result<Message> {
        let mut bytes = [0; 16];
        (&self.stream).read_exact(&mut bytes)?;
        let [op, sequence] = [0, 4]
            .map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        let mut time = [0; 8];
        time.copy_from_slice(&bytes[8..]);
        let time = u64::from_ne_bytes(time);
        Ok(Message { op, sequence, time })
    }
}

/// An error of its socket, for `map_err`.
fn socket() -> impl Fn(io::Error) -> GuestError {
    GuestError::system("its time-travel socket")
}

/// `struct um_timetravel_msg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Message {
    op: u32,
    sequence: u32,
    time: u64,
}

impl Message {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.op.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(protocol: Protocol) -> (TimeTravel, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (TimeTravel::new(ours, protocol).unwrap(), theirs)
    }

    fn ask(kernel: &mut UnixStream, clock: &mut TimeTravel, op: u32, time: u64) -> Message {
        kernel.write_all(&Message { op, sequence: 77, time }.bytes()).unwrap();
        clock.serve().unwrap();
        let mut reader = TimeTravel::new(kernel.try_clone().unwrap(), Protocol::Messages).unwrap();
        let answer = reader.receive().unwrap();
        reader.shares = false;
        assert_eq!((answer.op, answer.sequence), (op::ACK, 77));
        answer
    }

    #[test]
    fn by_messages_the_last_request_counts() {
        let (mut clock, mut kernel) = pair(Protocol::Messages);
        assert_eq!(clock.deadline(), NEVER);
        ask(&mut kernel, &mut clock, op::REQUEST, 4_000_000);
        ask(&mut kernel, &mut clock, op::REQUEST, 256);
        assert!(!clock.waits());
        ask(&mut kernel, &mut clock, op::WAIT, 0);
        assert!(clock.waits());
        assert_eq!(clock.deadline(), 256);
        clock.run(256, 256).unwrap();
        assert_eq!(clock.deadline(), NEVER);
        assert_eq!(ask_after_run(&mut kernel), Message { op: op::RUN, sequence: 1, time: 256 });
        assert_eq!(ask(&mut kernel, &mut clock, op::GET, 0).time, 256);
        ask(&mut kernel, &mut clock, op::UPDATE, 300);
        assert_eq!(clock.now().unwrap(), 300);
    }

    fn ask_after_run(kernel: &mut UnixStream) -> Message {
        TimeTravel::new(kernel.try_clone().unwrap(), Protocol::Messages).unwrap().receive().unwrap()
    }

    #[test]
    fn by_shared_memory_the_page_has_time_and_request() {
        let (mut clock, mut kernel) = pair(Protocol::SharedMemory);
        // The behaviour of a kernel: a request in the page, then WAIT, which has no answer.
        let entry = Page::client(KERNEL) + 4;
        clock.page.memory.write(entry - 4, &1_u32.to_ne_bytes()).unwrap();
        let mut request = [0; 12];
        request[0] = 1;
        request[4..].copy_from_slice(&9_000_u64.to_ne_bytes());
        clock.page.memory.write(entry, &request).unwrap();
        kernel.write_all(&Message { op: op::WAIT, sequence: 1, time: 0 }.bytes()).unwrap();
        clock.serve().unwrap();
        clock.settle().unwrap();
        assert!(clock.waits());
        assert_eq!(clock.deadline(), 9_000);
        clock.run(9_000, 12_000).unwrap();
        assert_eq!(clock.deadline(), NEVER);
        assert_eq!(clock.now().unwrap(), 9_000);
        clock.page.memory.write(Page::CURRENT_TIME, &11_000_u64.to_ne_bytes()).unwrap();
        assert_eq!(clock.now().unwrap(), 11_000);
        clock.page.memory.write(Page::CURRENT_TIME, &10_000_u64.to_ne_bytes()).unwrap();
        assert!(clock.now().is_err(), "time went backwards");
    }

    #[test]
    fn an_unknown_operation_and_the_end_are_errors() {
        let (mut clock, mut kernel) = pair(Protocol::Messages);
        kernel.write_all(&Message { op: 99, sequence: 0, time: 0 }.bytes()).unwrap();
        assert!(matches!(clock.serve(), Err(GuestError::Protocol { .. })));
        drop(kernel);
        let Err(GuestError::System { error, .. }) = clock.serve() else { panic!("no error") };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
