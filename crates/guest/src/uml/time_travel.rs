//! The clock of a User-Mode Linux kernel: `time-travel=ext:` with this program as the calendar.
//!
//! Source: the protocol described in include/uapi/linux/um_timetravel.h (BSD-3-Clause). Every guest
//! has a calendar of its own, and so a clock of its own: the calendar is client 0 of the shared
//! page, the kernel client 1. Kernels before 6.12 do not support shared memory and use messages
//! instead.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

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
}

impl Page {
    const LEN: u64 = 8_192;
    const VERSION: u64 = 0;
    const SIZE: u64 = 4;
    const FREE_UNTIL: u64 = 8;
    const CURRENT_TIME: u64 = 16;
    const RUNNING: u64 = 24;
    const MOST_CLIENTS: u64 = 26;

    /// Creates the page; a kernel that is offered version 0 does not use it.
    fn new(version: u32) -> io::Result<Self> {
        let file = File::from(memfd_create(c"time travel", MFdFlags::MFD_CLOEXEC)?);
        file.set_len(Self::LEN)?;
        let page = Self { file };
        page.file.write_all_at(&version.to_ne_bytes(), Self::VERSION)?;
        page.file.write_all_at(&(Self::LEN as u32).to_ne_bytes(), Self::SIZE)?;
        page.file.write_all_at(&2_u16.to_ne_bytes(), Self::MOST_CLIENTS)?;
        // The calendar supports shared time: a kernel that it interrupts writes its request into
        // the page.
        page.file.write_all_at(&1_u32.to_ne_bytes(), Self::client(CALENDAR))?;
        Ok(page)
    }

    /// Returns the offset of a client's entry: capabilities, flags, time of its request.
    const fn client(number: u16) -> u64 {
        4_096 + 128 * number as u64
    }

    /// Sets limit, time and running client, which are adjacent.
    fn set_running(&self, client: u16, now: u64, limit: u64) -> io::Result<()> {
        let mut bytes = [0; 18];
        bytes[..8].copy_from_slice(&limit.to_ne_bytes());
        bytes[8..16].copy_from_slice(&now.to_ne_bytes());
        bytes[16..].copy_from_slice(&client.to_ne_bytes());
        self.file.write_all_at(&bytes, Self::FREE_UNTIL)
    }

    fn set_limit(&self, limit: u64) -> io::Result<()> {
        self.file.write_all_at(&limit.to_ne_bytes(), Self::FREE_UNTIL)
    }

    fn now(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, Self::CURRENT_TIME)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn give_up_turn(&self) -> io::Result<()> {
        self.file.write_all_at(&CALENDAR.to_ne_bytes(), Self::RUNNING)
    }

    /// Returns the kernel's request, if there is one.
    fn request(&self) -> io::Result<Option<u64>> {
        let mut bytes = [0; 12];
        self.file.read_exact_at(&mut bytes, Self::client(KERNEL) + 4)?;
        let (flags, time) = bytes.split_at(4);
        let time = time.try_into().map_or(0, u64::from_ne_bytes);
        Ok((flags[0] & 1 != 0).then_some(time))
    }

    /// Returns whether the kernel has declared that it shares time.
    fn is_shared(&self) -> io::Result<bool> {
        let mut capabilities = [0; 4];
        self.file.read_exact_at(&mut capabilities, Self::client(KERNEL))?;
        Ok(u32::from_ne_bytes(capabilities) & 1 != 0)
    }

    fn clear_request(&self) -> io::Result<()> {
        self.file.write_all_at(&[0; 4], Self::client(KERNEL) + 4)
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
    pub(super) fn new(stream: UnixStream, protocol: Protocol) -> io::Result<Self> {
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

    /// Reads the kernel's request from the page: after the kernel has begun to wait, and after an
    /// interrupt.
    pub(super) fn read_request(&mut self) -> Result<(), GuestError> {
        if self.shares {
            let request = self.page.request().map_err(GuestError::system("the shared page"))?;
            self.request = request.or(self.request);
        }
        Ok(())
    }

    /// Returns the time of the kernel; while it runs, the time of its last message.
    pub(super) fn now(&mut self) -> Result<u64, GuestError> {
        if self.shares {
            let now = self.page.now().map_err(GuestError::system("the shared page"))?;
            if now < self.now {
                return Err(GuestError::protocol("its clock goes backwards"));
            }
            self.now = now;
        }
        Ok(self.now)
    }

    /// Lets the kernel run: it may advance by itself to times before `limit`.
    pub(super) fn run(&mut self, now: u64, limit: u64) -> io::Result<()> {
        self.waits = false;
        self.request = None;
        self.now = now;
        if self.shares {
            self.page.clear_request()?;
            self.page.set_running(KERNEL, now, limit.min(NEVER))?;
        } else if limit > now {
            self.send(op::FREE_UNTIL, limit.min(NEVER))?;
        }
        self.send(op::RUN, now)
    }

    /// Shortens the limit while the kernel waits for the answer to a kick. With messages the kernel
    /// must acknowledge the limit before the answer is sent: otherwise it would read the answer
    /// first, and continue with the old limit.
    pub(super) fn shorten(&mut self, limit: u64) -> Result<(), GuestError> {
        if self.shares {
            return self.page.set_limit(limit.min(NEVER)).map_err(GuestError::system("the page"));
        }
        let lost = GuestError::system("its time-travel socket");
        self.send(op::FREE_UNTIL, limit.min(NEVER)).map_err(&lost)?;
        loop {
            let message = self.receive().map_err(&lost)?;
            if message.op == op::ACK && message.sequence == self.sequence {
                return Ok(());
            }
            self.answer(message).map_err(&lost)?;
        }
    }

    /// Prepares an interrupt: the calendar runs, at `now`.
    pub(super) fn interrupt_at(&mut self, now: u64) -> io::Result<()> {
        self.now = now;
        if self.shares { self.page.set_running(CALENDAR, now, NEVER) } else { Ok(()) }
    }

    /// Processes the kernel's transition to waiting.
    pub(super) fn settle(&mut self) -> Result<(), GuestError> {
        self.now()?;
        if self.shares {
            self.page.give_up_turn().map_err(GuestError::system("the shared page"))?;
        }
        self.read_request()
    }

    /// Reads and answers one message.
    ///
    /// # Errors
    /// Errors of the socket; its end is [`io::ErrorKind::UnexpectedEof`].
    pub(super) fn serve(&mut self) -> io::Result<()> {
        let message = self.receive()?;
        self.answer(message)
    }

    fn answer(&mut self, message: Message) -> io::Result<()> {
        let mut time = 0;
        match message.op {
            op::START => return self.answer_start(message),
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
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        self.write(&Message { op: op::ACK, sequence: message.sequence, time })
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
        clock.page.file.write_all_at(&1_u32.to_ne_bytes(), entry - 4).unwrap();
        let mut request = [0; 12];
        request[0] = 1;
        request[4..].copy_from_slice(&9_000_u64.to_ne_bytes());
        clock.page.file.write_all_at(&request, entry).unwrap();
        kernel.write_all(&Message { op: op::WAIT, sequence: 1, time: 0 }.bytes()).unwrap();
        clock.serve().unwrap();
        clock.settle().unwrap();
        assert!(clock.waits());
        assert_eq!(clock.deadline(), 9_000);
        clock.run(9_000, 12_000).unwrap();
        assert_eq!(clock.deadline(), NEVER);
        assert_eq!(clock.now().unwrap(), 9_000);
        clock.page.file.write_all_at(&11_000_u64.to_ne_bytes(), Page::CURRENT_TIME).unwrap();
        assert_eq!(clock.now().unwrap(), 11_000);
        clock.page.file.write_all_at(&10_000_u64.to_ne_bytes(), Page::CURRENT_TIME).unwrap();
        assert!(clock.now().is_err(), "time went backwards");
    }

    #[test]
    fn an_unknown_operation_and_the_end_are_errors() {
        let (mut clock, mut kernel) = pair(Protocol::Messages);
        kernel.write_all(&Message { op: 99, sequence: 0, time: 0 }.bytes()).unwrap();
        assert_eq!(clock.serve().unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(kernel);
        assert_eq!(clock.serve().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
