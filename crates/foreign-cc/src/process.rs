//! The operations of a library in a process of their own.
//!
//! Each thread has a child per library: a copy of this process (`fork`) that reads an operation and a connection, carries
//! it out, and writes both back. It keeps nothing of a connection, so that a child can be replaced by another. A child
//! that crashes, or that does not answer, is an error of that run.

use core::cell::RefCell;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use cc::external::ControllerError;
use cc::kernel::{KernelOp, KernelSock};

use crate::library::{CallFunction, Library, Message};

/// Time after which the parent looks whether the child still works.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Processor time that one operation may take.
const MOST_CPU_SECONDS: u64 = 2;
/// Looks without an answer, by a child that takes no processor time.
const MOST_LOOKS: u32 = 240;
/// Bytes of a message.
const SIZE: usize = size_of::<Message>();

/// How a child ended that was to load a library.
pub(crate) enum Ended {
    /// It returned an error.
    Refused,
    /// It crashed.
    Fault(String),
}

/// A child that serves the operations of a library.
struct Server {
    number: u64,
    pid: libc::pid_t,
    stream: UnixStream,
    message: Box<Message>,
}

thread_local! {
    static SERVERS: RefCell<Vec<Server>> = const { RefCell::new(Vec::new()) };
}

/// Carries out an operation in the child of this thread.
pub(crate) fn call(
    library: &Library,
    op: KernelOp,
    sock: &mut KernelSock,
) -> Result<u32, ControllerError> {
    let outcome = SERVERS.try_with(|servers| {
        let mut servers = servers.borrow_mut();
        let number = library.number();
        let at = match servers.iter().position(|server| server.number == number) {
            Some(at) => at,
            // The end of a connection is not worth a new process.
            None if op == KernelOp::Release => return Ok(0),
            None => {
                servers.push(Server::start(library)?);
                servers.len() - 1
            }
        };
        servers[at].call(op, sock).inspect_err(|_| drop(servers.swap_remove(at)))
    });
    // The thread ends.
    outcome.unwrap_or(Ok(0)).map_err(|what| ControllerError(format!("{} {what}", op.name())))
}

impl Server {
    fn start(library: &Library) -> Result<Self, String> {
        let pair = UnixStream::pair();
        let (stream, other) = pair.map_err(|error| format!("cannot make a socket: {error}"))?;
        let message = Box::new(Message { word: 0, sock: KernelSock::empty() });
        let (working, call) = (library.working(), library.function());
        let pid = fork(|| serve(other.as_raw_fd(), call, working))?;
        let timeout = stream.set_read_timeout(Some(LOOK_AGAIN));
        timeout.map_err(|error| format!("cannot set a timeout: {error}"))?;
        Ok(Self { number: library.number(), pid, stream, message })
    }

    fn call(&mut self, op: KernelOp, sock: &mut KernelSock) -> Result<u32, String> {
        self.message.word = op as u64;
        self.message.sock.clone_from(sock);
        if self.stream.write_all(bytes(&self.message)).is_err() {
            return Err(self.fault());
        }
        let (mut done, mut looks, mut began) = (0, 0, None);
        while done < SIZE {
            match self.stream.read(&mut bytes_mut(&mut self.message)[done..]) {
                Ok(0) => return Err(self.fault()),
                Ok(more) => done += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    looks += 1;
                    let used = cpu_seconds(self.pid).unwrap_or(u64::from(looks) / 4);
                    let began = *began.get_or_insert(used);
                    if used >= began + MOST_CPU_SECONDS {
                        return Err(format!(
                            "did not return within {MOST_CPU_SECONDS} s of processor time"
                        ));
                    }
                    if looks >= MOST_LOOKS {
                        return Err("does not return".to_owned());
                    }
                }
                Err(_) => return Err(self.fault()),
            }
        }
        sock.clone_from(&self.message.sock);
        // The child writes a result of 32 bits.
        Ok(self.message.word as u32)
    }

    /// How the child ended.
    fn fault(&mut self) -> String {
        let what = wait(self.pid);
        self.pid = 0;
        what.unwrap_or_else(|| "ended the process".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.pid > 0 {
            #[expect(unsafe_code, reason = "kill is a function in C")]
            // SAFETY: a child of ours that has not been waited for.
            let _ = unsafe { libc::kill(self.pid, libc::SIGKILL) };
            let _ = wait(self.pid);
        }
    }
}

/// Runs `load` in a child.
pub(crate) fn probe(load: impl Fn() -> Result<(), String>) -> Result<(), Ended> {
    let pid = fork(|| {
        limit(libc::RLIMIT_CPU, MOST_CPU_SECONDS);
        i32::from(load().is_err())
    });
    let pid = pid.map_err(Ended::Fault)?;
    let mut status = 0;
    loop {
        #[expect(unsafe_code, reason = "waitpid is a function in C")]
        // SAFETY: a child of ours.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        let interrupted =
            waited < 0 && std::io::Error::last_os_error().kind() == ErrorKind::Interrupted;
        if !interrupted {
            break;
        }
    }
    match describe(status) {
        Some(what) => Err(Ended::Fault(what)),
        None if libc::WEXITSTATUS(status) == 0 => Ok(()),
        None => Err(Ended::Refused),
    }
}

/// Starts a copy of this process that runs `child` and ends with what it returns.
fn fork(child: impl FnOnce() -> i32) -> Result<libc::pid_t, String> {
    #[expect(unsafe_code, reason = "fork is a function in C")]
    // SAFETY: the child calls only functions that are safe after a fork in a program with threads, allocates nothing
    // (but the loader, whose locks the C library resets), and never returns to its caller.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(format!("cannot start a process: {}", std::io::Error::last_os_error())),
        0 => {
            quiet();
            let status = child();
            #[expect(unsafe_code, reason = "_exit is a function in C")]
            // SAFETY: it ends the child without running destructors of the parent's.
            unsafe {
                libc::_exit(status)
            }
        }
        pid => Ok(pid),
    }
}

/// In the child: signals have their default, nothing is printed, and no core is written.
#[expect(unsafe_code, reason = "functions in C")]
fn quiet() {
    limit(libc::RLIMIT_CORE, 0);
    // SAFETY: plain system calls with valid arguments.
    unsafe {
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT] {
            libc::signal(signal, libc::SIG_DFL);
        }
        // The parent ends it: an interrupt from the keyboard goes to both.
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_DFL);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        if null >= 0 {
            for standard in 0..3 {
                libc::dup2(null, standard);
            }
        }
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

fn limit(resource: Resource, most: u64) {
    // At the hard limit the signal would be SIGKILL, as of any other end.
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most + 1 };
    #[expect(unsafe_code, reason = "setrlimit is a function in C")]
    // SAFETY: a valid resource and limit.
    let _ = unsafe { libc::setrlimit(resource, &raw const limit) };
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
type Resource = libc::c_int;

/// In the child: serves operations until the parent closes the socket.
#[expect(unsafe_code, reason = "functions in C, on memory of this process alone")]
fn serve(socket: i32, call: CallFunction, working: *mut Message) -> i32 {
    // SAFETY: descriptors of the parent, which would hold its pipes open; the message is this process's own.
    unsafe {
        let kept = libc::dup2(socket, 3);
        if kept != 3 {
            return 1;
        }
        let all = libc::sysconf(libc::_SC_OPEN_MAX).clamp(64, 65_536) as i32;
        #[cfg(target_os = "linux")]
        let all = if libc::syscall(libc::SYS_close_range, 4, u32::MAX, 0) == 0 { 4 } else { all };
        for descriptor in 4..all {
            libc::close(descriptor);
        }
        loop {
            let mut done = 0;
            while done < SIZE {
                let at = working.cast::<u8>().add(done);
                match libc::read(3, at.cast(), SIZE - done) {
                    more if more > 0 => done += more as usize,
                    _ => return 0,
                }
            }
            (*working).word = u64::from(call(&raw mut (*working).sock, (*working).word as u32));
            let mut done = 0;
            while done < SIZE {
                let at = working.cast::<u8>().add(done);
                match libc::write(3, at.cast(), SIZE - done) {
                    more if more > 0 => done += more as usize,
                    _ => return 0,
                }
            }
        }
    }
}

/// Waits for the end of a child, and describes a crash.
fn wait(pid: libc::pid_t) -> Option<String> {
    let mut status = 0;
    #[expect(unsafe_code, reason = "waitpid is a function in C")]
    // SAFETY: a child of ours.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    if waited == pid { describe(status) } else { None }
}

/// A crash in words; `None` for an end by itself.
fn describe(status: i32) -> Option<String> {
    if !libc::WIFSIGNALED(status) {
        return None;
    }
    Some(match libc::WTERMSIG(status) {
        libc::SIGSEGV => "crashed: it used an invalid address (SIGSEGV)".to_owned(),
        libc::SIGBUS => "crashed: it used an invalid address (SIGBUS)".to_owned(),
        libc::SIGFPE => "crashed: it divided by zero (SIGFPE)".to_owned(),
        libc::SIGILL => "crashed: an invalid instruction or a trap (SIGILL)".to_owned(),
        libc::SIGTRAP => "crashed: a trap (SIGTRAP)".to_owned(),
        libc::SIGABRT => "crashed: it aborted (SIGABRT)".to_owned(),
        libc::SIGXCPU => {
            format!("did not return within {MOST_CPU_SECONDS} s of processor time")
        }
        signal => format!("was ended by signal {signal}"),
    })
}

/// Processor time of a child so far, in whole seconds.
#[cfg(target_os = "linux")]
fn cpu_seconds(pid: libc::pid_t) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // User and system time are the 14th and 15th field; the second may contain spaces, and ends with a parenthesis.
    let fields = text.rsplit_once(')')?.1;
    let mut ticks = fields.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    let (user, system) = (ticks.next()?, ticks.next()?);
    #[expect(unsafe_code, reason = "sysconf is a function in C")]
    // SAFETY: a valid name.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Some((user + system) / u64::try_from(a_second).ok()?.max(1))
}

/// Not known here: the looks count.
#[cfg(not(target_os = "linux"))]
fn cpu_seconds(_: libc::pid_t) -> Option<u64> {
    None
}

#[expect(unsafe_code, reason = "a message is plain numbers without padding")]
fn bytes(message: &Message) -> &[u8] {
    // SAFETY: a C layout of integers; a test compares it with the header, and finds no padding.
    unsafe { core::slice::from_raw_parts(core::ptr::from_ref(message).cast(), SIZE) }
}

#[expect(unsafe_code, reason = "a message is plain numbers without padding")]
fn bytes_mut(message: &mut Message) -> &mut [u8] {
    // SAFETY: as above; any bytes are valid integers.
    unsafe { core::slice::from_raw_parts_mut(core::ptr::from_mut(message).cast(), SIZE) }
}
