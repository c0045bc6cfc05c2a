//! What applications on a real host do: one thread for each end of a flow, in the host's namespace.

mod info;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use sha2::{Digest, Sha256};
use socket2::{Domain, Protocol, Socket, Type};
use units::{Duration, Instant};

use crate::clock::{Clock, real};
use crate::payload::Payload;

pub use info::{Info, Sample};

/// Bytes of one write where the scenario names none.
pub const WRITE: NonZeroU64 = NonZeroU64::new(256 << 10).unwrap();
/// Bytes of one write at most: they are held in memory.
pub const LARGEST_WRITE: u64 = 64 << 20;
/// Bytes of one read.
const READ: usize = 256 << 10;
/// How long a connection attempt may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an application at a real end does.
#[derive(Debug, Clone)]
pub enum Part {
    /// Listens, accepts one connection, reads to its end and closes.
    Reads,
    /// Connects, writes, closes, and waits for the other side to close.
    Writes {
        /// When it connects.
        start: Duration,
        /// Bytes in all; `None` writes until it is stopped.
        bytes: Option<u64>,
        /// Bytes of one write.
        write: usize,
        /// What it writes.
        payload: Payload,
        /// `TCP_CONGESTION`; the system's default without.
        congestion: Option<String>,
        /// How often `TCP_INFO` is asked for.
        poll: Duration,
    },
}

/// One real end of a flow.
#[derive(Debug, Clone)]
pub struct End {
    /// Own address and port.
    pub own: SocketAddr,
    /// Those of the other side.
    pub peer: SocketAddr,
    /// What it does.
    pub part: Part,
}

/// What came of an end.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Bytes read or written.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: [u8; 32],
    /// When the last of them was read or written.
    pub last_at: Instant,
    /// Did the stream come to its end?
    pub finished: bool,
    /// What `TCP_INFO` told, of a writer.
    pub samples: Vec<Sample>,
    /// What went wrong.
    pub error: Option<String>,
}

/// A listening socket, which may be that of several ends.
#[derive(Debug)]
struct Door {
    listener: TcpListener,
    /// Connections that came, until the end whose they are asks.
    came: Mutex<Vec<(SocketAddr, TcpStream)>>,
}

impl Door {
    /// The connection from there, if it has come.
    fn from(&self, peer: SocketAddr) -> io::Result<Option<TcpStream>> {
        let Ok(mut came) = self.came.lock() else { return Ok(None) };
        loop {
            match self.listener.accept() {
                Ok((stream, from)) => came.push((from, stream)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let at = came.iter().position(|(from, _)| *from == peer);
        Ok(at.map(|at| came.swap_remove(at).1))
    }
}

/// Binds an address. One of IPv6 is there a little later than its device: the kernel takes it over
/// in a work queue of its own, which on a busy machine may have to wait.
fn when_there<T>(bind: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let clock = Clock::start();
    loop {
        match bind() {
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
                let now = clock.now();
                if now > Instant::ZERO + PATIENCE {
                    return Err(error);
                }
                clock.wait(Some(now + Duration::from_millis(5)), &[]);
            }
            other => return other,
        }
    }
}

/// The listening sockets of a host.
#[derive(Debug, Default)]
pub struct Doors(Vec<(SocketAddr, Arc<Door>)>);

impl Doors {
    fn at(&mut self, own: SocketAddr) -> io::Result<Arc<Door>> {
        if let Some((_, door)) = self.0.iter().find(|(known, _)| *known == own) {
            return Ok(Arc::clone(door));
        }
        let listener = when_there(|| TcpListener::bind(own))?;
        listener.set_nonblocking(true)?;
        let door = Arc::new(Door { listener, came: Mutex::default() });
        self.0.push((own, Arc::clone(&door)));
        Ok(door)
    }
}

/// An end that is ready: a listener listens already.
#[derive(Debug)]
pub struct Ready {
    end: End,
    door: Option<Arc<Door>>,
}

impl End {
    /// Gets ready, in the namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's.
    pub fn ready(self, doors: &mut Doors) -> io::Result<Ready> {
        let door = match self.part {
            Part::Reads => Some(doors.at(self.own)?),
            Part::Writes { .. } => None,
        };
        Ok(Ready { end: self, door })
    }
}

impl Ready {
    /// Does its part, in a thread of its own.
    pub fn start(self, clock: Clock, stop: Arc<AtomicBool>) -> thread::JoinHandle<Ended> {
        thread::spawn(move || {
            let mut work = Work { clock, stop, hash: Sha256::new(), ended: Ended::new() };
            let done = match self.door {
                Some(door) => work.read(&door, self.end.peer),
                None => work.write(&self.end),
            };
            work.ended.error = done.err().map(|error| error.to_string());
            work.ended.sha256 = work.hash.finalize().into();
            work.ended
        })
    }
}

impl Ended {
    const fn new() -> Self {
        Self {
            bytes: 0,
            sha256: [0; 32],
            last_at: Instant::ZERO,
            finished: false,
            samples: Vec::new(),
            error: None,
        }
    }
}

struct Work {
    clock: Clock,
    stop: Arc<AtomicBool>,
    hash: Sha256,
    ended: Ended,
}

impl Work {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits at most `ms` milliseconds for the descriptor; returns whether it is ready.
    fn wait(fd: &impl AsFd, flags: PollFlags, ms: u16) -> bool {
        poll(&mut [PollFd::new(fd.as_fd(), flags)], PollTimeout::from(ms))
            .is_ok_and(|ready| ready > 0)
    }

    fn read(&mut self, door: &Door, peer: SocketAddr) -> io::Result<()> {
        let mut stream = loop {
            if let Some(stream) = door.from(peer)? {
                break stream;
            }
            if self.stopped() {
                return Ok(());
            }
            // Another end of the same door may take ours out of the queue: look often.
            Self::wait(&door.listener, PollFlags::POLLIN, 5);
        };
        stream.set_nonblocking(true)?;
        let mut chunk = vec![0; READ];
        while !self.stopped() {
            match stream.read(&mut chunk) {
                Ok(0) => {
                    self.ended.finished = true;
                    return Ok(());
                }
                Ok(len) => {
                    self.ended.last_at = self.clock.now();
                    self.hash.update(&chunk[..len]);
                    self.ended.bytes += len as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    Self::wait(&stream, PollFlags::POLLIN, 50);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&mut self, end: &End) -> io::Result<()> {
        let Part::Writes { start, bytes, write, payload, congestion, poll } = &end.part else {
            return Ok(());
        };
        let begin = Instant::ZERO + *start;
        while self.clock.now() < begin && !self.stopped() {
            self.clock.wait(Some(begin), &[]);
        }
        let domain = Domain::for_address(end.own);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        when_there(|| socket.bind(&end.own.into()))?;
        if let Some(name) = congestion {
            let refused = |error: nix::Error| {
                let error = io::Error::from(error);
                io::Error::new(error.kind(), format!("congestion control {name}: {error}"))
            };
            setsockopt(&socket, TcpCongestion, &name.into()).map_err(refused)?;
        }
        socket.connect_timeout(&end.peer.into(), real(PATIENCE))?;
        socket.set_nonblocking(true)?;
        let mut stream = TcpStream::from(socket);
        let mut chunk = vec![0; *write];
        // What of the chunk is still to be written.
        let (mut from, mut to) = (0, 0);
        let mut made = 0;
        let mut sample_at = self.clock.now();
        let mut writable = true;
        loop {
            let now = self.clock.now();
            if now >= sample_at {
                self.sample(&stream);
                sample_at = now + *poll;
            }
            if self.stopped() {
                return Ok(());
            }
            // A write to a full buffer is not without effect: tcp_sendmsg_locked appends to the unsent
            // tail up to size_goal before it asks for memory (sk_stream_memory_free).
            if !writable {
                writable =
                    Self::wait(&stream, PollFlags::POLLOUT, poll.as_millis().clamp(1, 50) as u16);
                continue;
            }
            if from == to {
                let left = bytes.map_or(u64::MAX, |bytes| bytes - made);
                to = left.min(*write as u64) as usize;
                from = 0;
                if to == 0 {
                    break;
                }
                payload.fill(made, &mut chunk[..to]);
                made += to as u64;
            }
            match stream.write(&chunk[from..to]) {
                Ok(len) => {
                    self.hash.update(&chunk[from..from + len]);
                    from += len;
                    self.ended.bytes += len as u64;
                    self.ended.last_at = self.clock.now();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => writable = false,
                Err(error) => return Err(error),
            }
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        while !self.stopped() {
            match stream.read(&mut chunk) {
                Ok(0) => {
                    self.ended.finished = true;
                    self.sample(&stream);
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    Self::wait(&stream, PollFlags::POLLIN, poll.as_millis().clamp(1, 50) as u16);
                    self.sample(&stream);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sample(&mut self, stream: &TcpStream) {
        if let Some(info) = Info::of(stream) {
            self.ended.samples.push(Sample { at: self.clock.now(), info });
        }
    }
}
