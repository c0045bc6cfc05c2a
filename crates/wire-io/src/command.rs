//! Runs programs in the namespace of a real host.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// The init process of the PID namespace of a host's programs. When it ends, the kernel kills all
/// processes in the namespace (pid_namespaces(7)). It reads from a pipe held by this value, so it
/// ends when the value is dropped or this program ends.
#[derive(Debug)]
pub(crate) struct Init(Child);

impl Init {
    /// Puts future children of the calling thread into a new PID namespace with its own /proc.
    fn start() -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
        let mut init = Command::new("cat");
        let init = init.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map(Self)?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let none = None::<&str>;
        // A container may forbid mounting /proc; programs then see the machine's.
        let _ = mount(none, "/", none, private, none)
            .and_then(|()| mount(Some("proc"), "/proc", Some("proc"), safe, none));
        Ok(init)
    }

    /// Kills the init process and with it all processes in the namespace.
    fn kill(&mut self) {
        let _ = self.0.kill();
    }
}

impl Drop for Init {
    /// Kills all processes in the namespace and waits: an init process exits last
    /// (`zap_pid_ns_processes`).
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

/// Runs shell commands concurrently in the network namespace of the calling thread, until the last
/// has exited or `stop` is set, which kills the rest. Returns the failed commands and the handle of
/// the remaining background processes.
pub(crate) fn run(lines: &[String], stop: &AtomicBool) -> (Vec<String>, Option<Init>) {
    if lines.is_empty() {
        return (Vec::new(), None);
    }
    // A thread whose children are in another PID namespace cannot spawn threads.
    let single_packet = thread::scope(|scope| scope.spawn(|| run_alone(lines, stop)).join());
    single_packet.unwrap_or_else(|_| (vec!["a thread has panicked".to_owned()], None))
}

fn run_alone(lines: &[String], stop: &AtomicBool) -> (Vec<String>, Option<Init>) {
    let mut init = match Init::start() {
        Ok(init) => init,
        Err(error) => return (vec![format!("cannot make a PID namespace: {error}")], None),
    };
    let mut failed = Vec::new();
    let mut running: Vec<(&String, Child)> = Vec::new();
    for line in lines {
        match Command::new("sh").args(["-c", line]).spawn() {
            Ok(child) => running.push((line, child)),
            Err(error) => failed.push(format!("{line}: {error}")),
        }
    }
    while !running.is_empty() {
        if stop.load(Ordering::Relaxed) {
            init.kill();
            running.iter_mut().for_each(|(_, child)| drop(child.wait()));
            return (failed, None);
        }
        running.retain_mut(|(line, child)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) if status.success() => false,
            Ok(Some(status)) => {
                failed.push(format!("{line}: {status}"));
                false
            }
            Err(error) => {
                failed.push(format!("{line}: {error}"));
                false
            }
        });
        pause();
    }
    (failed, Some(init))
}

#[expect(clippy::disallowed_methods, reason = "this crate reads real time")]
fn pause() {
    thread::sleep(Duration::from_millis(20));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace;

    #[expect(clippy::print_stderr, reason = "a skipped test must say so")]
    fn unavailable() -> bool {
        let why = namespace::unavailable();
        why.iter().for_each(|why| eprintln!("skipped: {why}"));
        why.is_some()
    }

    #[test]
    fn commands_run_concurrently_and_failures_are_returned() {
        if unavailable() {
            return;
        }
        let lines = ["true", "exit 3", "sleep 0.1"].map(str::to_owned);
        let (failed, _) = run(&lines, &AtomicBool::new(false));
        assert_eq!(failed, ["exit 3: exit status: 3"]);
    }

    #[test]
    fn running_commands_are_killed_on_stop() {
        if unavailable() {
            return;
        }
        let lines = ["sleep 1000".to_owned()];
        assert!(run(&lines, &AtomicBool::new(true)).0.is_empty());
    }

    /// A background process lives as long as its namespace.
    #[test]
    fn background_processes_end_with_the_namespace() {
        if unavailable() {
            return;
        }
        let mark = format!("sleep 98765.{}", std::process::id());
        let there = || {
            let list = Command::new("ps").args(["-A", "-o", "args="]).output().unwrap();
            String::from_utf8_lossy(&list.stdout).lines().any(|line| line == mark)
        };
        let line = format!("setsid {mark} < /dev/null > /dev/null 2>&1 &");
        let (failed, init) = run(&[line], &AtomicBool::new(false));
        assert!(failed.is_empty() && there(), "{failed:?}");
        drop(init);
        assert!(!there());
    }
}
