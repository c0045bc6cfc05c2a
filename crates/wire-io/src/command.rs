//! Programs in the namespace of a real host.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// The first process of the PID namespace that a host's programs are in: the kernel kills all others in it, whoever
/// their parents are, when this one ends (pid_namespaces(7)). It ends with the value, and with this program, however
/// that ends: it reads from a pipe whose other end is here.
#[derive(Debug)]
pub(crate) struct Init(Child);

impl Init {
    /// Moves the children that the calling thread will have to a PID namespace, with a /proc that shows it.
    fn start() -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
        let mut init = Command::new("cat");
        let init = init.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map(Self)?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let none = None::<&str>;
        // A container may refuse its users a /proc of their own; then programs see that of the machine.
        let _ = mount(none, "/", none, private, none)
            .and_then(|()| mount(Some("proc"), "/proc", Some("proc"), safe, none));
        Ok(init)
    }

    /// Kills it, and all others in the namespace with it.
    fn kill(&mut self) {
        let _ = self.0.kill();
    }
}

impl Drop for Init {
    /// Afterwards nothing is left in the namespace: an init ends last (`zap_pid_ns_processes`), so that children in
    /// there must have been waited for.
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

/// Runs lines of a shell in the network namespace of the calling thread, all at once, until the last has
/// ended or `stop` is set; what still runs then is killed. Returns which did not end well, and what holds the
/// processes that the lines have left behind.
pub(crate) fn run(lines: &[String], stop: &AtomicBool) -> (Vec<String>, Option<Init>) {
    if lines.is_empty() {
        return (Vec::new(), None);
    }
    // A thread whose children are in another PID namespace can make no threads.
    let alone = thread::scope(|scope| scope.spawn(|| run_alone(lines, stop)).join());
    alone.unwrap_or_else(|_| (vec!["a thread has died".to_owned()], None))
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

#[expect(clippy::disallowed_methods, reason = "this crate is where real time comes in")]
fn pause() {
    thread::sleep(Duration::from_millis(20));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space;

    #[expect(clippy::print_stderr, reason = "a skipped test must say so")]
    fn unavailable() -> bool {
        let why = space::unavailable();
        why.iter().for_each(|why| eprintln!("skipped: {why}"));
        why.is_some()
    }

    #[test]
    fn all_run_at_once_and_failures_are_returned() {
        if unavailable() {
            return;
        }
        let lines = ["true", "exit 3", "sleep 0.1"].map(str::to_owned);
        let (failed, _) = run(&lines, &AtomicBool::new(false));
        assert_eq!(failed, ["exit 3: exit status: 3"]);
    }

    #[test]
    fn what_runs_when_it_is_stopped_is_killed() {
        if unavailable() {
            return;
        }
        let lines = ["sleep 1000".to_owned()];
        assert!(run(&lines, &AtomicBool::new(true)).0.is_empty());
    }

    /// A daemon lives as long as the hosts do, and no longer.
    #[test]
    fn what_a_line_leaves_behind_goes_with_the_namespace() {
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
