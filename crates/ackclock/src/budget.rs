//! Limits of a command: `--memory-limit` and `--time-limit`.
//!
//! Memory is that of stacks and heap (RLIMIT_DATA), on which queues, readers and reports draw alike, and children by
//! inheritance. At a limit the program removes its temporary files and ends with a message and status 2, so that no
//! output is half-written.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use units::{Bytes, Duration};

use crate::cli::{Cli, Command};
use crate::failure::{FAILED, Failure, print_error};
use crate::output;

/// Least memory of a command: threads have stacks.
const LEAST: u64 = 64_000_000;

/// The limit of memory in bytes; 0: none is known.
static LIMIT: AtomicU64 = AtomicU64::new(0);
/// Memory ran out.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread ends the program.
    static ENDS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Begins the message of a program that ran out of memory.
pub(crate) const OUT_OF_MEMORY: &str = "error: out of memory";

/// Applies the limits of the arguments. Those of `mcp` are of each call, which is a process of its own.
pub(crate) fn apply(cli: &Cli) -> Result<(), Failure> {
    if matches!(cli.command, Some(Command::Mcp(_))) {
        return Ok(());
    }
    if let Some(memory) = cli.memory_limit.filter(|memory| memory.get() < LEAST) {
        let message = format!("--memory-limit {memory}: the least is {} MB", LEAST / 1_000_000);
        return Err(Failure::new(message));
    }
    limit_memory(cli.memory_limit)?;
    match cli.time_limit {
        Some(limit) => limit_time(limit),
        None => Ok(()),
    }
}

/// Ends the program after `limit` by the clock.
#[expect(clippy::disallowed_methods, reason = "a limit of wall-clock time")]
fn limit_time(limit: Duration) -> Result<(), Failure> {
    let started = thread::Builder::new().name("time limit".into()).spawn(move || {
        thread::sleep(core::time::Duration::from_nanos(limit.as_nanos()));
        print_error(&format!("error: stopped after {limit} (--time-limit)\n"));
        output::remove_temporaries();
        std::process::exit(i32::from(FAILED));
    });
    started.map(drop).map_err(|error| Failure::new(format!("--time-limit: {error}")))
}

/// Sets the limit of memory: that of the argument, else what the machine has.
#[cfg(target_os = "linux")]
fn limit_memory(limit: Option<Bytes>) -> Result<(), Failure> {
    let Some(limit) = limit.map(Bytes::get).or_else(memory_of_machine) else { return Ok(()) };
    let set = set_soft_limit(|known| known.min(limit));
    let set = set.map_err(|error| Failure::new(format!("--memory-limit: {error}")))?;
    LIMIT.store(set, Ordering::Relaxed);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(limit: Option<Bytes>) -> Result<(), Failure> {
    match limit {
        Some(_) => Err(Failure::new("--memory-limit: supported on Linux only")),
        None => Ok(()),
    }
}

/// Memory of the machine, or of the control group that the program is in, in bytes.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "sysconf(3)")]
fn memory_of_machine() -> Option<u64> {
    // SAFETY: sysconf takes a number and touches no memory of this process.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let all = u64::try_from(pages).ok()?.checked_mul(u64::try_from(size).ok()?)?;
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let of_group = files.iter().find_map(|file| std::fs::read_to_string(file).ok());
    let of_group = of_group.and_then(|text| text.trim().parse().ok());
    Some(of_group.map_or(all, |of_group: u64| of_group.min(all)).max(LEAST))
}

/// Changes the soft limit of private writable memory, and returns it; the hard limit stays.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "setrlimit(2)")]
fn set_soft_limit(change: impl Fn(u64) -> u64) -> io::Result<u64> {
    let mut known = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes the struct only.
    if unsafe { libc::getrlimit(libc::RLIMIT_DATA, &raw mut known) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let soft = change(known.rlim_cur).min(known.rlim_max);
    let limit = libc::rlimit { rlim_cur: soft, ..known };
    // SAFETY: setrlimit reads the struct only.
    match unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) } {
        0 => Ok(soft),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The system's allocator; an allocation that fails ends the program.
struct LimitedAllocator;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator;

// SAFETY: every call is that of the system's allocator with the same arguments.
#[expect(unsafe_code, reason = "GlobalAlloc")]
unsafe impl GlobalAlloc for LimitedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, known: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        checked(unsafe { System.realloc(known, layout, size) }, size)
    }

    unsafe fn dealloc(&self, known: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(known, layout) }
    }
}

#[inline]
fn checked(allocated: *mut u8, size: usize) -> *mut u8 {
    if allocated.is_null() {
        out_of_memory(size);
    }
    allocated
}

/// Ends the program; returns if this fails for want of memory too.
#[cold]
#[expect(clippy::disallowed_methods, reason = "waits for the end of the program")]
fn out_of_memory(size: usize) {
    if IS_ENDING.swap(true, Ordering::SeqCst) {
        if ENDS_HERE.get() {
            return;
        }
        // Another thread ends the program.
        loop {
            thread::sleep(core::time::Duration::from_secs(1));
        }
    }
    ENDS_HERE.set(true);
    // The end needs a little memory.
    #[cfg(target_os = "linux")]
    let _ = set_soft_limit(|_| u64::MAX);
    let mut out = io::stderr();
    let _ = match LIMIT.load(Ordering::Relaxed) {
        0 => writeln!(out, "{OUT_OF_MEMORY}: the machine has not {size} bytes more"),
        limit => writeln!(
            out,
            "{OUT_OF_MEMORY}: {size} bytes more exceed the limit of {} MB (--memory-limit)",
            limit / 1_000_000
        ),
    };
    output::remove_temporaries_if_free();
    std::process::exit(i32::from(FAILED));
}
