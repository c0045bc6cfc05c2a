//! Applications on real hosts: one thread for each endpoint of a flow, in the host's namespace.

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

use crate::clock::{RealClock, real};
use crate::payload::PayloadGenerator;

pub use info::{KernelTcpInfo, TcpInfoSample};

/// Default bytes per write.
pub const WRITE: NonZeroU64 = NonZeroU64::new(256 << 10).unwrap();
/// Maximum bytes per write, which are held in memory.
pub const LARGEST_WRITE: u64 = 64 << 20;
/// Bytes per read.
const READ: usize = 256 << 10;
/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Task of an application on a real socket.
#[derive(Debug, Clone)]
pub enum SocketTask {
    /// Listens, accepts one connection, reads to end of file and closes.
    Reads,
    /// Connects, writes, shuts down, and waits for the peer to close.
    Writes {
        /// Time of connect.
        start: Duration,
        /// Total bytes; `None` writes until stopped.
        bytes: Option<u64>,
        /// Bytes per write.
        write: usize,
        /// Payload to write.
        payload: PayloadGenerator,
        /// `TCP_CONGESTION`; the system's default if `None`.
        congestion: Option<String>,
        /// Sampling interval of `TCP_INFO`.
        poll: Duration,
    },
}

/// A real endpoint of a flow.
#[derive(Debug, Clone)]
pub struct SocketEndpoint {
    /// Local address and port.
    pub own: SocketAddr,
    /// Remote address and port.
    pub peer: SocketAddr,
    /// Its task.
    pub part: SocketTask,
}

/// Result of an endpoint.
#[derive(Debug, Clone)]
pub struct SocketResult {
    /// Bytes read or written.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: [u8; 32],
    /// Time of the last read or write.
    pub last_at: Instant,
    /// Whether the stream ended regularly.
    pub finished: bool,
    /// `TCP_INFO` samples of a writer.
    pub samples: Vec<TcpInfoSample>,
    /// The error, if any.
    pub error: Option<String>,
}

/// A listening socket, which several endpoints can share.
#[derive(Debug)]
struct SharedListener {
    listener: TcpListener,
    /// Accepted connections not claimed by their endpoint yet.
    came: Mutex<Vec<(SocketAddr, TcpStream)>>,
}

impl SharedListener {
    /// Takes the connection from `peer`, if it was accepted.
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

/// Binds an address, with retries: an IPv6 address becomes usable some time after its device is
/// up, since the kernel adds it in a work queue.
fn retry_bind<T>(bind: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let clock = RealClock::start();
    loop {
        match bind() {
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
                let now = clock.now();
                if now > Instant::ZERO + CONNECT_TIMEOUT {
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
pub struct ListenerSet(Vec<(SocketAddr, Arc<SharedListener>)>);

impl ListenerSet {
    fn at(&mut self, own: SocketAddr) -> io::Result<Arc<SharedListener>> {
        if let Some((_, door)) = self.0.iter().find(|(known, _)| *known == own) {
            return Ok(Arc::clone(door));
        }
        let listener = retry_bind(|| TcpListener::bind(own))?;
        listener.set_nonblocking(true)?;
        let door = Arc::new(SharedListener { listener, came: Mutex::default() });
        self.0.push((own, Arc::clone(&door)));
        Ok(door)
    }
}

/// A prepared endpoint: a listener already listens.
#[derive(Debug)]
pub struct PreparedSocket {
    end: SocketEndpoint,
    door: Option<Arc<SharedListener>>,
}

impl SocketEndpoint {
    /// Prepares the socket, in the namespace of the calling thread.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn ready(self, doors: &mut ListenerSet) -> io::Result<PreparedSocket> {
        let door = match self.part {
            SocketTask::Reads => Some(doors.at(self.own)?),
            SocketTask::Writes { .. } => None,
        };
        Ok(PreparedSocket { end: self, door })
    }
}

impl PreparedSocket {
    /// Runs the task in a thread of its own.
    pub fn start(
        self,
        clock: RealClock,
        stop: Arc<AtomicBool>,
    ) -> thread::JoinHandle<SocketResult> {
        thread::spawn(move || {
            let mut work =
                SocketThread { clock, stop, hash: Sha256::new(), ended: SocketResult::new() };
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

impl SocketResult {
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

struct SocketThread {
    clock: RealClock,
    stop: Arc<AtomicBool>,
    hash: Sha256,
    ended: SocketResult,
}

impl SocketThread {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits at most `ms` milliseconds for the descriptor; returns whether it is ready.
    fn wait(fd: &impl AsFd, flags: PollFlags, ms: u16) -> bool {
        poll(&mut [PollFd::new(fd.as_fd(), flags)], PollTimeout::from(ms))
            .is_ok_and(|ready| ready > 0)
    }

    fn read(&mut self, door: &SharedListener, peer: SocketAddr) -> io::Result<()> {
        let mut stream = loop {
            if let Some(stream) = door.from(peer)? {
                break stream;
            }
            if self.stopped() {
                return Ok(());
            }
            // Another endpoint of the listener may accept our connection: poll often.
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

    fn write(&mut self, end: &SocketEndpoint) -> io::Result<()> {
        let SocketTask::Writes { start, bytes, write, payload, congestion, poll } = &end.part
        else {
            return Ok(());
        };
        let begin = Instant::ZERO + *start;
        while self.clock.now() < begin && !self.stopped() {
            self.clock.wait(Some(begin), &[]);
        }
        let domain = Domain::for_address(end.own);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        retry_bind(|| socket.bind(&end.own.into()))?;
        if let Some(name) = congestion {
            let refused = |error: nix::Error| {
                let error = io::Error::from(error);
                io::Error::new(error.kind(), format!("congestion control {name}: {error}"))
            };
            setsockopt(&socket, TcpCongestion, &name.into()).map_err(refused)?;
        }
        socket.connect_timeout(&end.peer.into(), real(CONNECT_TIMEOUT))?;
        socket.set_nonblocking(true)?;
        let mut stream = TcpStream::from(socket);
        let mut chunk = vec![0; *write];
        // The unwritten part of the chunk.
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
            // A write to a full buffer has an effect: tcp_sendmsg_locked appends to the unsent
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
        if let Some(info) = KernelTcpInfo::of(stream) {
            self.ended.samples.push(TcpInfoSample { at: self.clock.now(), info });
        }
    }
}
