//! The polls of `ackclock watch`.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use scenario::units_text;
use units::{Duration, Instant};
use wire_io::clock::RealClock;
use wire_io::socket_table::{SocketSnapshot, SocketTable};

use super::forms;
use super::tracker::{SocketFilter, SocketTracker, WatchedInterval};
use crate::cli::WatchArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{OutFile, print, print_if_read};

/// Shortest interval: `struct tcp_info` counts time in jiffies, of up to 10 ms.
const SHORTEST: Duration = Duration::from_millis(10);

pub(super) fn run(args: &WatchArgs) -> Result<ExitCode, Failure> {
    let every = units_text::duration(&args.every)
        .map_err(|error| Failure::new(format!("--every: `{}` {error}", args.every)))?;
    if every < SHORTEST {
        return Err(Failure::new(format!(
            "--every {}: the shortest interval is 10ms, since the kernel counts in ticks",
            args.every
        )));
    }
    let stop = interrupt::orderly();
    let table = SocketTable::open().map_err(|error| refused(&error))?;
    let clock = RealClock::start();
    let filter = SocketFilter { hosts: args.host.clone(), ports: args.port.clone() };
    let mut tracker = SocketTracker::new(filter);
    let read = |at: Instant| table.read(at).map_err(|error| refused(&error));
    let begin = clock.now();
    tracker.poll(begin, read(begin)?);
    let mut number = 0;
    while !stop.load(Ordering::SeqCst) && args.count.is_none_or(|count| number < count) {
        number += 1;
        let until = begin + every.saturating_mul(number);
        while clock.now() < until && !stop.load(Ordering::SeqCst) {
            clock.wait(Some(until), &[]);
        }
        let at = clock.now();
        let snapshot: SocketSnapshot = read(at)?;
        let interval = tracker.poll(at, snapshot);
        let elapsed = at.since(begin);
        let text = if args.json {
            forms::json_line(&interval, elapsed)
        } else {
            forms::text(&interval, elapsed, args.limit)
        };
        let is_read = print_if_read(&text)?;
        match &args.openmetrics {
            Some(path) => write_metrics(path, &interval)?,
            None if !is_read => return Ok(ExitCode::SUCCESS),
            None => {}
        }
    }
    let (summary, elapsed) = (tracker.summary(), clock.now().since(begin));
    if args.json {
        print(&forms::json_end(&summary, elapsed))?;
    } else {
        print(&forms::end_text(&summary, elapsed, args.limit))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_metrics(path: &Path, interval: &WatchedInterval) -> Result<(), Failure> {
    let mut out = OutFile::create(path)?;
    io::Write::write_all(&mut out, forms::openmetrics(interval).as_bytes())
        .map_err(|error| Failure::file("write", path, &error))?;
    out.commit()
}

/// The error of a kernel that does not give its sockets.
fn refused(error: &io::Error) -> Failure {
    /// EPROTONOSUPPORT and ENOENT: netlink has no sock_diag, or tcp_diag is a module that is missing.
    const ABSENT: [i32; 2] = [93, 2];
    let failure = Failure::new(format!("cannot read the kernel's sockets: {error}"));
    if error.kind() == io::ErrorKind::PermissionDenied {
        return failure.hint(
            "no privilege is needed, but netlink (sock_diag) is forbidden here, as by the filter of a container; \
             where ss works: ss -tin > FILE, then ackclock diagnose FILE",
        );
    }
    if error.raw_os_error().is_some_and(|code| ABSENT.contains(&code)) {
        return failure.hint("the kernel lacks sock_diag for TCP: modprobe tcp_diag");
    }
    failure.hint("a capture shows the same: tcpdump -w - | ackclock diagnose - --every 10s")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the hint names for each error of the system: EACCES, EPERM, EPROTONOSUPPORT, ENOENT, ENOMEM.
    #[test]
    fn a_kernel_that_refuses_is_explained() {
        for (code, part) in [
            (13, "sock_diag) is forbidden here"),
            (1, "sock_diag) is forbidden here"),
            (93, "modprobe tcp_diag"),
            (2, "modprobe tcp_diag"),
            (12, "tcpdump -w -"),
        ] {
            let Failure::Plain { message, hint } = refused(&io::Error::from_raw_os_error(code))
            else {
                unreachable!("it is plain")
            };
            assert!(message.starts_with("cannot read the kernel's sockets: "), "{message}");
            assert!(hint.is_some_and(|hint| hint.contains(part)), "{code}");
        }
    }
}
