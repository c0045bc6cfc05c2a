//! Bounds of a call that hold even if the server is killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::available_parallelism;

use super::call::CallLimits;

/// Makes the process of a call end with the server, and limits its memory and processor time.
#[expect(unsafe_code, reason = "Command::pre_exec")]
pub(super) fn apply(command: &mut Command, limits: &CallLimits) {
    // All threads count: on an idle machine the wall clock of the server ends the call first.
    let cores = available_parallelism().map_or(1, usize::from) as u64;
    let seconds = limits.time.as_secs().saturating_add(2).saturating_mul(cores);
    let memory = limits.memory;
    let server = std::process::id();
    // SAFETY: between fork and exec the closure only makes system calls; it allocates no memory and
    // takes no lock.
    unsafe {
        command.pre_exec(move || {
            set_limits(seconds, memory)?;
            end_with(server)
        });
    }
}

/// Limits processor time in seconds, and memory in bytes that is private and writable: stacks and
/// heap, but no mapped files. Nothing is dumped.
#[expect(unsafe_code, reason = "setrlimit(2)")]
fn set_limits(seconds: u64, memory: u64) -> io::Result<()> {
    let limit = |most: u64| {
        let most = libc::rlim_t::try_from(most).unwrap_or(libc::RLIM_INFINITY);
        libc::rlimit { rlim_cur: most, rlim_max: most }
    };
    let (seconds, memory, none) = (limit(seconds), limit(memory), limit(0));
    // SAFETY: setrlimit reads the structs only.
    let set = unsafe {
        libc::setrlimit(libc::RLIMIT_CPU, &raw const seconds) == 0
            && libc::setrlimit(libc::RLIMIT_DATA, &raw const memory) == 0
            && libc::setrlimit(libc::RLIMIT_CORE, &raw const none) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The process is killed when the thread that started it ends, however that ends.
#[expect(unsafe_code, reason = "prctl(2) and getppid(2)")]
fn end_with(server: u32) -> io::Result<()> {
    // SAFETY: both take numbers and touch no memory of this process.
    let (set, parent) =
        unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
    match set {
        // The server may have ended before the call of prctl.
        0 if parent.cast_unsigned() != server => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
